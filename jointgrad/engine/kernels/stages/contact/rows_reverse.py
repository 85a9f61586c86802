"""From cotangents of the contact problem back to rows, rates and parameters: the reverse of rows.py."""

from .....algebra.spatial import add, moved_pose
from .....algebra.vector import cross, times
from .....compiler.kernel import accumulate, kernel, sweep
from .....compiler.reverse import adjoint
from .....compiler.trace import traced
from .....model.arrays import FREE
from ...at_points import at_point, give_to_point
from ...operators import plus, zero, zero6
from .constraints_reverse import constraints_adjoint
from .paths import BOUNDED, POINT
from .response import free_rates
from .rows import (
    bouncing_compliance_adjoint,
    point_demand_adjoint,
    point_rows_adjoint,
    spin_demand_adjoint,
    spin_rows_adjoint,
    with_approach,
)
from .sides_reverse import sides_adjoint


@traced
def advanced(rate, qdd, dt):
    return rate + dt * qdd


@sweep
def point_adjoint(frame, bar, k):
    """Of the normal and the tangents of a point; the cotangent of its normal comes back."""
    params, touch, block = frame.params, frame.touch, frame.block
    i, dt = block.source[k], params.world_dt[0]
    row = frame.tree.pair_row[touch.pair[i]]
    closing_bar, approach_bar, gap, restitution, stabilisation, push_limit, dt_bar = point_demand_adjoint(
        block.closing[k], block.approach[k], touch.gap[i],
        at_point(frame, touch.restitution, params.pair_restitution, i, row), params.pair_baumgarte[row],
        params.pair_max_push_out_speed[row], params.pair_margin[row], dt, bar.block.b[k],
    )  # fmt: skip
    accumulate(bar.touch.gap, i, gap)
    give_to_point(frame, bar.touch.restitution, bar.params.pair_restitution, i, row, restitution)
    accumulate(bar.params.pair_baumgarte, row, stabilisation)
    accumulate(bar.params.pair_max_push_out_speed, row, push_limit)
    accumulate(bar.params.world_dt, 0, dt_bar)
    if block.restrained != 0 or frame.tree.is_implicit != 0:
        closing_bar = plus(closing_bar, bar.block.closing[k])
        approach_bar = plus(approach_bar, bar.block.approach[k])
    bars = sides_adjoint(frame, bar, k, closing_bar)
    if block.bounces != 0:
        bars = with_approach(frame, bar, k, bars, approach_bar)
    return axes_adjoint(frame, bar, k, bars)


@sweep
def axes_adjoint(frame, bar, k, bars):
    """From the rows of a point to where it is; the cotangent of its normal comes back."""
    tree, work, touch = frame.tree, frame.work, frame.touch
    i = frame.block.source[k]
    p = touch.pair[i]
    a, b = tree.shape_body[tree.pair_a[p]], tree.shape_body[tree.pair_b[p]]
    point, normal = point_rows_adjoint(
        touch.point[i], touch.normal[i], work.pose[tree.reference[a]], work.pose[tree.reference[b]], bars
    )
    accumulate(bar.touch.point, i, point)
    return normal


@sweep
def spin_adjoint(frame, bar, k):
    """Of turning at a point; the cotangent of its normal comes back."""
    params, touch, block = frame.params, frame.touch, frame.block
    i = block.source[k]
    row = frame.tree.pair_row[touch.pair[i]]
    closing_bar = spin_demand_adjoint(
        block.closing[k], touch.gap[i], at_point(frame, touch.restitution, params.pair_restitution, i, row),
        params.pair_margin[row], bar.block.b[k],
    )  # fmt: skip
    if block.restrained != 0 or frame.tree.is_implicit != 0:
        closing_bar = plus(closing_bar, bar.block.closing[k])
    return spin_rows_adjoint(touch.normal[i], sides_adjoint(frame, bar, k, closing_bar))


@sweep
def compliance_adjoint(frame, bar, i, row, compliance_bar):
    """The convex law gives less where a pair bounces."""
    params, touch = frame.params, frame.touch
    if frame.tree.is_implicit != 0:
        compliance_bar, restitution_bar = bouncing_compliance_adjoint(
            params.pair_compliance[row], at_point(frame, touch.restitution, params.pair_restitution, i, row), compliance_bar
        )  # fmt: skip
        give_to_point(frame, bar.touch.restitution, bar.params.pair_restitution, i, row, restitution_bar)
    return compliance_bar


@sweep
def contact_adjoint_of(frame, bar, k):
    """Of a block of a point that touches."""
    i = frame.block.source[k]
    row = frame.tree.pair_row[frame.touch.pair[i]]
    is_point = frame.block.kind[k] == POINT
    accumulate(bar.touch.normal, i, point_adjoint(frame, bar, k) if is_point else spin_adjoint(frame, bar, k))
    give_to_point(frame, bar.touch.friction, bar.params.pair_friction, i, row, bar.block.friction[k][0])
    accumulate(bar.params.pair_torsion, row, bar.block.friction[k][1])
    accumulate(bar.params.pair_rolling, row, bar.block.friction[k][2])
    accumulate(bar.params.pair_compliance, row, compliance_adjoint(frame, bar, i, row, bar.block.give[k][0]))
    accumulate(bar.params.pair_softness, row, bar.block.give[k][1])


# free bodies: their six rates are the motion of the body in other words ---------------------------------------------------


@traced
def moved_free_rates(pose, arm, m, delta=(0.0,) * 6):
    moved = moved_pose((*pose[:9], *arm), delta)
    return free_rates.fn(moved, moved[9:], m)


@traced
def moved_free_motion(pose, arm, rates, delta=(0.0,) * 6):
    """The converse of `free_rates`."""
    moved = moved_pose((*pose[:9], *arm), delta)
    angular = times(moved[:9], rates[3:])
    return (*angular, *add(rates[:3], cross(moved[9:], angular)))


moved_free_rates_adjoint = adjoint(moved_free_rates, "delta", at_zero="delta")
moved_free_motion_adjoint = adjoint(moved_free_motion, "delta rates", at_zero="delta")


@sweep
def six_of(field, d):
    return field[d], field[d + 1], field[d + 2], field[d + 3], field[d + 4], field[d + 5]


@sweep
def free_adjoint(frame, bar, b):
    work = frame.work
    d = frame.tree.dof[b]
    force, rates = moved_free_motion_adjoint(work.pose[b], work.arm[b], six_of(bar.block.free, d), bar.block.root[b])
    accumulate(bar.work.pose, b, force)
    for k in range(6):
        accumulate(bar.block.rate, d + k, rates[k])
    accumulate(
        bar.work.pose, b,
        moved_free_rates_adjoint(work.pose[b], work.arm[b], frame.block.motion[b], six_of(bar.work.qd_jump, d)),
    )  # fmt: skip


@traced
def free_rate_reverse(qdd, dt, bar):
    return dt * bar, qdd * bar


@sweep
def prepare(frame, bar):
    tree, params = frame.tree, frame.params
    for b in range(tree.n_bodies + 1):
        bar.block.root[b] = zero6(params.world_dt[0])
    for d in range(tree.n_dofs):
        bar.block.free[d] = advanced(frame.state.qd[d], frame.work.qdd[d], params.world_dt[0])
        bar.block.rate[d] = zero(params.world_dt[0])


@kernel
def rows_adjoint(frame, bar):
    """Adds to everything but the tables of blocks."""
    tree, block = frame.tree, frame.block
    prepare(frame, bar)
    if tree.n_constraints != 0:
        constraints_adjoint(frame, bar)
    for k in range(block.n):
        if block.kind[k] != BOUNDED:
            contact_adjoint_of(frame, bar, k)
    for b in range(tree.n_bodies):
        if tree.kind[b] == FREE:
            free_adjoint(frame, bar, b)
    for d in range(tree.n_dofs):
        accumulate(bar.state.qd, d, bar.block.rate[d])
        qdd_bar, dt_bar = free_rate_reverse(frame.work.qdd[d], frame.params.world_dt[0], bar.block.rate[d])
        accumulate(bar.work.qdd, d, qdd_bar)
        accumulate(bar.params.world_dt, 0, dt_bar)
