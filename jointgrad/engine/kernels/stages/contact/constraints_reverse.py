"""The reverse of constraints.py: from cotangents of its rows back to joints, loops and parameters."""

from .....compiler.kernel import accumulate, kernel, sweep
from .....compiler.trace import traced
from .....model.arrays import CONNECT, JOINT_CONSTRAINT, MIMIC_ROW, NO_ROW
from ...operators import plus, zero3
from .constraints import (
    connect_demand_adjoint,
    friction_bounds_adjoint,
    is_stop,
    mimic_demand_adjoint,
    moved_connect_rows_adjoint,
    moved_weld_demand_adjoint,
    stop_demand_adjoint,
    stop_range,
)
from .paths import BOUNDED, IN_FIRST
from .sides_reverse import sides_adjoint


@traced
def displacement(bar):
    """A force on a point as a force on a pose, about that point."""
    return (0.0, 0.0, 0.0, *bar[9:])


@sweep
def loop_adjoint(frame, bar, k):
    tree, params, work, touch, block = frame.tree, frame.params, frame.work, frame.touch, frame.block
    t, dt = block.source[k], params.world_dt[0]
    i, j = tree.constraint_a[t], tree.constraint_b[t]
    a, b = block.body[2 * k], block.body[2 * k + 1]
    closing_bar = bar.block.b[k]
    if block.restrained != 0 or tree.is_implicit != 0:
        closing_bar = plus(closing_bar, bar.block.closing[k])
    bars = sides_adjoint(frame, bar, k, closing_bar)
    if tree.constraint_kind[t] == CONNECT:
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
def joint_row_adjoint(frame, bar, r, row, bars):
    """Of row r: its weights, closing velocity and impulse; the cotangents of its demand, of the closing velocity besides, of its
    bounds, and W at the joint that it follows."""
    weight, weight2, closing, x = row
    b_bar, more, low_bar, high_bar, w = bars
    tree, params, state = frame.tree, frame.params, frame.state
    kind, i, dt = tree.constraint_row[r], tree.constraint_frame[r], params.world_dt[0]
    d, q = tree.constraint_dof[r], tree.constraint_q[r]
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
        q2, d2 = tree.constraint_q2[r], tree.constraint_dof2[r]
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
    d = tree.constraint_dof2[r]
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
    weight, weight2, closing, x = block.weight[k], block.weight2[k], block.closing[k], block.impulse[k]
    b, low, high = bar.block.b[k], bar.block.low[k], bar.block.high[k]
    more = zero3(frame.params.world_dt[0])
    if block.restrained != 0 or tree.is_implicit != 0:
        more = bar.block.closing[k]
    if tree.constraint_row[r] != NO_ROW:
        own, w = (weight[0], weight2[0], closing[0], x[0]), followed(frame, bar, k, r)[0]
        joint_row_adjoint(frame, bar, r, own, (b[0], more[0], low[0], high[0], w))
    if tree.constraint_row[r + 1] != NO_ROW:
        own, w = (weight[1], weight2[1], closing[1], x[1]), followed(frame, bar, k, r + 1)[1]
        joint_row_adjoint(frame, bar, r + 1, own, (b[1], more[1], low[1], high[1], w))
    if tree.constraint_row[r + 2] != NO_ROW:
        own, w = (weight[2], weight2[2], closing[2], x[2]), followed(frame, bar, k, r + 2)[2]
        joint_row_adjoint(frame, bar, r + 2, own, (b[2], more[2], low[2], high[2], w))
    accumulate(bar.params.world_compliance, 0, bar.block.give[k][0])
    accumulate(bar.params.world_softness, 0, bar.block.give[k][1])


@kernel
def constraints_adjoint(frame, bar):
    block = frame.block
    for k in range(block.n):
        if block.kind[k] == BOUNDED:
            if frame.tree.constraint_kind[block.source[k]] == JOINT_CONSTRAINT:
                joints_adjoint(frame, bar, k)
            else:
                loop_adjoint(frame, bar, k)
