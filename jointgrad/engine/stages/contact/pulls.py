"""From cotangents of the contact problem back to rows, rates and parameters: the reverse of rows.py and ties.py.

J_bar = b_bar qd_free^T + x lambda^T + W, row by row along the paths. As J = S . row, it gives S_bar and the cotangent
of the row, a motion: what the row would have been multiplied with.
"""

from ....algebra.spatial import add, moved_pose, scale
from ....algebra.spatial import work as motion_work
from ....algebra.vector import cross, times
from ....compiler.kernel import accumulate, kernel, sweep
from ....compiler.reverse import adjoint
from ....compiler.trace import traced
from ....model.arrays import CONNECT, FREE, JOINT_TIE, MIMIC_ROW, NO_ROW
from ...at_points import at_point, give_to_point
from ...operators import plus, zero, zero3, zero6, zero18
from .paths import BOUNDED, IN_FIRST, POINT, joined, three
from .response import free_rates, together
from .rows import (
    bouncing_compliance_adjoint,
    point_demand_adjoint,
    point_rows_adjoint,
    spin_demand_adjoint,
    spin_rows_adjoint,
    with_approach,
)
from .ties import (
    connect_demand_adjoint,
    friction_bounds_adjoint,
    is_stop,
    mimic_demand_adjoint,
    moved_connect_rows_adjoint,
    moved_weld_demand_adjoint,
    stop_demand_adjoint,
    stop_range,
)


@traced
def advanced(rate, qdd, dt):
    return rate + dt * qdd


@traced
def felt_by_rows(rows_a, m_a, rows_b, m_b):
    """Minus the motions m, along rows: the cotangent of the impulses."""
    return tuple(
        -(motion_work(m_a, f) + motion_work(m_b, g)) for f, g in zip(three(rows_a), three(rows_b), strict=True)
    )


@traced
def felt_by_joint(weight, mu, weight2, mu2):
    return -(weight * mu + weight2 * mu2)


# one side's rows --------------------------------------------------------------------------------------------------------


@traced
def row_motions(closing_bar, v, rise, dt, x, m, w):
    """Cotangents of three rows on a body: what each is multiplied with."""
    free = add(v, scale(rise, dt))
    return joined(
        tuple(c * f - y * p + q for f, p, q in zip(free, m, row, strict=True))
        for c, y, row in zip(closing_bar, x[:3], three(w), strict=True)
    )


@traced
def carried_rows(w, S, rates):
    return joined(add(row, scale(S, r)) for row, r in zip(three(w), rates, strict=True))


@traced
def jacobian_bar(closing_bar, free, x, mu, w):
    return tuple(c * free - y * mu + q for c, y, q in zip(closing_bar, x[:3], w, strict=True))


@traced
def rate_bar(S, force):
    return motion_work(S, force)


@sweep
def side_adjoint(frame, bar, k, side, closing_bar):
    """Cotangents of a side's rows, of the axes on its path, and of the free rates."""
    tree, params, work, multiplier, block = frame.tree, frame.params, frame.work, frame.multiplier, frame.block
    body = block.body[side]
    t, D = tree.body_tree[body], tree.most_dofs
    # the answers of both sides on one tree are kept with the first
    own = side - 1 if block.root[side] == IN_FIRST else side
    base = own * D - tree.tree_dof[t]
    rows, x = block.rows[side], block.x[tree.sweeps * block.n + k]
    force = together(rows, closing_bar)
    w = zero18(params.world_dt[0])
    if block.root[own] >= 0:
        w = bar.block.W_root[own]
        accumulate(bar.block.root, block.root[own], force)
    for j in range(tree.path_length[body]):
        d = tree.path[tree.path_first[body] + j]
        w = carried_rows(w, work.S[d], bar.block.W[base + d])
        bars = jacobian_bar(closing_bar, bar.block.free[d], x, multiplier.mu[d], bar.block.W[base + d])
        accumulate(bar.work.S, d, together(rows, bars))
        accumulate(bar.block.rate, d, rate_bar(work.S[d], force))
    return row_motions(closing_bar, work.v[body], work.rise[body], params.world_dt[0], x, multiplier.m[body], w)


@sweep
def sides_adjoint(frame, bar, k, closing_bar):
    tree, params, block = frame.tree, frame.params, frame.block
    a, b = zero18(params.world_dt[0]), zero18(params.world_dt[0])
    if block.body[2 * k] < tree.n_bodies:
        a = side_adjoint(frame, bar, k, 2 * k, closing_bar)
    if block.body[2 * k + 1] < tree.n_bodies:
        b = side_adjoint(frame, bar, k, 2 * k + 1, closing_bar)
    return a, b


# by kind of block -------------------------------------------------------------------------------------------------------


@sweep
def point_adjoint(frame, bar, k):
    tree, params, work, touch, block = frame.tree, frame.params, frame.work, frame.touch, frame.block
    i, dt = block.source[k], params.world_dt[0]
    p = touch.pair[i]
    row, a, b = tree.pair_row[p], tree.shape_body[tree.pair_a[p]], tree.shape_body[tree.pair_b[p]]
    if block.kind[k] == POINT:
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
        if block.restrained != 0 or tree.is_implicit != 0:
            closing_bar = plus(closing_bar, bar.block.closing[k])
            approach_bar = plus(approach_bar, bar.block.approach[k])
        bars = sides_adjoint(frame, bar, k, closing_bar)
        if block.bounces != 0:
            bars = with_approach(frame, bar, k, bars, approach_bar)
        point, normal = point_rows_adjoint(
            touch.point[i], touch.normal[i], work.pose[tree.reference[a]], work.pose[tree.reference[b]], bars
        )
        accumulate(bar.touch.point, i, point)
    else:
        closing_bar = spin_demand_adjoint(
            block.closing[k], touch.gap[i], at_point(frame, touch.restitution, params.pair_restitution, i, row),
            params.pair_margin[row], bar.block.b[k],
        )  # fmt: skip
        if block.restrained != 0 or tree.is_implicit != 0:
            closing_bar = plus(closing_bar, bar.block.closing[k])
        bars = sides_adjoint(frame, bar, k, closing_bar)
        normal = spin_rows_adjoint(touch.normal[i], bars)
    accumulate(bar.touch.normal, i, normal)
    give_to_point(frame, bar.touch.friction, bar.params.pair_friction, i, row, bar.block.friction[k][0])
    accumulate(bar.params.pair_torsion, row, bar.block.friction[k][1])
    accumulate(bar.params.pair_rolling, row, bar.block.friction[k][2])
    compliance_bar = bar.block.give[k][0]
    if tree.is_implicit != 0:
        compliance_bar, restitution_bar = bouncing_compliance_adjoint(
            params.pair_compliance[row],
            at_point(frame, touch.restitution, params.pair_restitution, i, row),
            compliance_bar,
        )
        give_to_point(frame, bar.touch.restitution, bar.params.pair_restitution, i, row, restitution_bar)
    accumulate(bar.params.pair_compliance, row, compliance_bar)
    accumulate(bar.params.pair_softness, row, bar.block.give[k][1])


@traced
def displacement(bar):
    """A force on a point as a force on a pose, about that point."""
    return (0.0, 0.0, 0.0, *bar[9:])


@sweep
def loop_adjoint(frame, bar, k):
    tree, params, work, touch, block = frame.tree, frame.params, frame.work, frame.touch, frame.block
    t, dt = block.source[k], params.world_dt[0]
    i, j = tree.tie_a[t], tree.tie_b[t]
    a, b = block.body[2 * k], block.body[2 * k + 1]
    closing_bar = bar.block.b[k]
    if block.restrained != 0 or tree.is_implicit != 0:
        closing_bar = plus(closing_bar, bar.block.closing[k])
    bars = sides_adjoint(frame, bar, k, closing_bar)
    if tree.tie_kind[t] == CONNECT:
        A_bar, B_bar = moved_connect_rows_adjoint(
            touch.shape[i], touch.shape[j], work.pose[tree.reference[a]], work.pose[tree.reference[b]], bars
        )
        accumulate(bar.touch.shape, i, A_bar)
        accumulate(bar.touch.shape, j, B_bar)
        A_pose, B_pose, stabilisation, dt_bar = connect_demand_adjoint(
            block.closing[k], touch.shape[i], touch.shape[j], params.world_baumgarte[0], dt, bar.block.b[k]
        )
        A_bar, B_bar = displacement(A_pose), displacement(B_pose)
    else:
        A_bar, B_bar, stabilisation, dt_bar = moved_weld_demand_adjoint(
            block.closing[k], touch.shape[i], touch.shape[j], params.world_baumgarte[0], dt, bar.block.b[k]
        )
    accumulate(bar.touch.shape, i, A_bar)
    accumulate(bar.touch.shape, j, B_bar)
    accumulate(bar.params.world_baumgarte, 0, stabilisation)
    accumulate(bar.params.world_dt, 0, dt_bar)
    accumulate(bar.params.world_compliance, 0, bar.block.give[k][0])
    accumulate(bar.params.world_softness, 0, bar.block.give[k][1])


@traced
def ratio_bar(closing_bar, free, x, mu, w):
    """Cotangent of a mimic ratio: minus that of the row's weight on the joint that it follows."""
    return (-(closing_bar * free - x * mu + w), 0.0)


@traced
def times2(a, b):
    return a * b


@sweep
def joint_row_adjoint(frame, bar, k, r, weight, weight2, closing, x, b_bar, more, low_bar, high_bar, w):
    """`more` is what the closing velocity received besides."""
    tree, params, state = frame.tree, frame.params, frame.state
    kind, i, d, q, dt = tree.tie_row[r], tree.tie_frame[r], tree.tie_dof[r], tree.tie_q[r], params.world_dt[0]
    closing_bar = plus(b_bar, more)
    if is_stop(frame, r):
        limit, margin = stop_range(frame, r)
        q_bar, own_bar, limit_bar, stabilisation, dt_bar = stop_demand_adjoint(
            state.q[q], closing, limit, params.world_baumgarte[0], margin, dt, b_bar
        )
        closing_bar = plus(own_bar, more)
        accumulate(bar.state.q, q, q_bar)
        accumulate(bar.params.joint_limit, i, limit_bar)
        accumulate(bar.params.world_baumgarte, 0, stabilisation)
        accumulate(bar.params.world_dt, 0, dt_bar)
    elif kind == MIMIC_ROW:
        q2, d2 = tree.tie_q2[r], tree.tie_dof2[r]
        q_bar, own_bar, q2_bar, mimic, stabilisation, dt_bar = mimic_demand_adjoint(
            state.q[q], closing, state.q[q2], params.joint_mimic[i], params.world_baumgarte[0], dt, b_bar
        )
        closing_bar = plus(own_bar, more)
        accumulate(bar.state.q, q, q_bar)
        accumulate(bar.state.q, q2, q2_bar)
        accumulate(bar.params.joint_mimic, i, mimic)
        accumulate(bar.params.joint_mimic, i, ratio_bar(closing_bar, bar.block.free[d2], x, frame.multiplier.mu[d2], w))
        accumulate(bar.params.world_baumgarte, 0, stabilisation)
        accumulate(bar.params.world_dt, 0, dt_bar)
        accumulate(bar.block.rate, d2, times2(weight2, closing_bar))
    else:
        friction, dt_bar = friction_bounds_adjoint(params.joint_friction[i], dt, (low_bar, high_bar))
        accumulate(bar.params.joint_friction, i, friction)
        accumulate(bar.params.world_dt, 0, dt_bar)
    accumulate(bar.block.rate, d, times2(weight, closing_bar))


@sweep
def followed(frame, bar, k, r):
    """W of a block at the joint that row r follows; any number where it follows none."""
    tree = frame.tree
    d = tree.tie_dof2[r]
    if d < 0:
        return bar.block.b[k]
    side = side_of_dof(frame, k, d)
    return bar.block.W[side * tree.most_dofs + d - tree.tree_dof[tree.body_tree[frame.block.body[side]]]]


@sweep
def side_of_dof(frame, k, d):
    """The side whose tree has a degree of freedom; the answers of two sides on one tree are kept with the first."""
    tree, block = frame.tree, frame.block
    a, b = 2 * k, 2 * k + 1
    t = tree.body_tree[block.body[a]]
    if block.root[b] == IN_FIRST or (t < tree.n_trees and tree.tree_dof[t] <= d and d < tree.tree_dof[t + 1]):
        return a
    return b


@sweep
def joints_adjoint(frame, bar, k):
    tree, block = frame.tree, frame.block
    r = 3 * block.source[k]
    weight, weight2, closing, x = (
        block.weight[k],
        block.weight2[k],
        block.closing[k],
        block.x[tree.sweeps * block.n + k],
    )
    b, low, high = bar.block.b[k], bar.block.low[k], bar.block.high[k]
    more = zero3(frame.params.world_dt[0])
    if block.restrained != 0 or tree.is_implicit != 0:
        more = bar.block.closing[k]
    if tree.tie_row[r] != NO_ROW:
        joint_row_adjoint(frame, bar, k, r, weight[0], weight2[0], closing[0],
            x[0], b[0], more[0], low[0], high[0], followed(frame, bar, k, r)[0])  # fmt: skip
    if tree.tie_row[r + 1] != NO_ROW:
        joint_row_adjoint(frame, bar, k, r + 1, weight[1], weight2[1],
            closing[1], x[1], b[1], more[1], low[1], high[1], followed(frame, bar, k, r + 1)[1])  # fmt: skip
    if tree.tie_row[r + 2] != NO_ROW:
        joint_row_adjoint(frame, bar, k, r + 2, weight[2], weight2[2],
            closing[2], x[2], b[2], more[2], low[2], high[2], followed(frame, bar, k, r + 2)[2])  # fmt: skip
    accumulate(bar.params.world_compliance, 0, bar.block.give[k][0])
    accumulate(bar.params.world_softness, 0, bar.block.give[k][1])


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
        moved_free_rates_adjoint(work.pose[b], work.arm[b], frame.block.motion[b], six_of(bar.work.kick, d)),
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
def ties_adjoint(frame, bar):
    block = frame.block
    for k in range(block.n):
        if block.kind[k] == BOUNDED:
            if frame.tree.tie_kind[block.source[k]] == JOINT_TIE:
                joints_adjoint(frame, bar, k)
            else:
                loop_adjoint(frame, bar, k)


@kernel
def rows_adjoint(frame, bar):
    """Adds to everything but the tables of blocks."""
    tree, block = frame.tree, frame.block
    prepare(frame, bar)
    if tree.n_ties != 0:
        ties_adjoint(frame, bar)
    for k in range(block.n):
        if block.kind[k] != BOUNDED:
            point_adjoint(frame, bar, k)
    for b in range(tree.n_bodies):
        if tree.kind[b] == FREE:
            free_adjoint(frame, bar, b)
    for d in range(tree.n_dofs):
        accumulate(bar.state.qd, d, bar.block.rate[d])
        qdd_bar, dt_bar = free_rate_reverse(frame.work.qdd[d], frame.params.world_dt[0], bar.block.rate[d])
        accumulate(bar.work.qdd, d, qdd_bar)
        accumulate(bar.params.world_dt, 0, dt_bar)


@sweep
def impulse_cotangents(frame, bar):
    """x_bar = J lambda, of the last impulses."""
    multiplier, block = frame.multiplier, frame.block
    for k in range(block.n):
        if block.kind[k] == BOUNDED and frame.tree.tie_kind[block.source[k]] == JOINT_TIE:
            r, w, o = 3 * block.source[k], block.weight[k], block.weight2[k]
            bar.block.x[k] = (
                felt_at(frame, r, w[0], o[0]),
                felt_at(frame, r + 1, w[1], o[1]),
                felt_at(frame, r + 2, w[2], o[2]),
            )
        else:
            a, b = block.body[2 * k], block.body[2 * k + 1]
            bar.block.x[k] = felt_by_rows(block.rows[2 * k], multiplier.m[a], block.rows[2 * k + 1], multiplier.m[b])


@sweep
def felt_at(frame, r, weight, weight2):
    tree, multiplier = frame.tree, frame.multiplier
    d, d2 = tree.tie_dof[r], tree.tie_dof2[r]
    if d < 0:
        return zero(frame.params.world_dt[0])
    mu = multiplier.mu[d]
    mu2 = zero(mu)
    if d2 >= 0:
        mu2 = multiplier.mu[d2]
    return felt_by_joint(weight, mu, weight2, mu2)
