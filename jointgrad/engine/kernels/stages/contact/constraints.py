"""Joint limits, dry joint friction, mimic joints and closed loops -> blocks of rows with fixed bounds.

A tie is a block of three rows. Those of joints lie on one path (constraint_a is its last body), so that three of them cost as
much as one: each has a kind, a degree of freedom, and for a mimic joint the one that it follows (on the path of constraint_b
where that is another). Those of loops hold two points together (CONNECT: constraint_a, constraint_b are marks among the shapes),
or two orientations (WELD).
"""

from .....algebra.spatial import add, neg, sub
from .....algebra.vector import column, cross, scale
from .....compiler.elementary import clamp, detached, inverse, maximum, select
from .....compiler.kernel import any_above, kernel, sweep
from .....compiler.reverse import adjoint
from .....compiler.trace import traced
from .....model.arrays import CONNECT, HIGH_ROW, JOINT_CONSTRAINT, LOW_ROW, MIMIC_ROW, NO_ROW, STOP_ROW
from .....model.laws import Impulse
from ...operators import plus, zero, zero3, zero18
from .give import lightness_at, turning_lightness
from .paths import BOUNDED, IN_FIRST, joined, open_block, passed, reach_roots, settle

BIG = float("inf")


def gentle(speed):
    """The speed at which stabilisation closes an error: what starts far off is brought back, not thrown."""
    return clamp(speed, -Impulse.max_push_out_speed, Impulse.max_push_out_speed)


@traced
def no_row(anything):
    """weight, second weight, closing, b, low, high, active of a row that is not there."""
    return (0.0,) * 7


@traced
def low_end(limit, margin):
    """One end of a narrow range alone. The range is within its margin, so that from no place inside is either end crossed."""
    return (limit[0], BIG), margin + (limit[1] - limit[0])


@traced
def high_end(limit, margin):
    return (-BIG, limit[1]), margin + (limit[1] - limit[0])


@traced
def both_ends(limit, margin):
    return (limit[0], limit[1]), margin


@sweep
def is_stop(frame, r):
    tree = frame.tree
    return tree.constraint_row[r] == STOP_ROW or tree.constraint_row[r] == LOW_ROW or tree.constraint_row[r] == HIGH_ROW


@sweep
def stop_range(frame, r):
    """The range that a stop keeps its joint in, and how near to an end it acts."""
    tree, params = frame.tree, frame.params
    limit, margin = params.joint_limit[tree.constraint_frame[r]], params.world_limit_margin[0]
    if tree.constraint_row[r] == LOW_ROW:
        return low_end(limit, margin)
    if tree.constraint_row[r] == HIGH_ROW:
        return high_end(limit, margin)
    return both_ends(limit, margin)


@traced
def stop_demand(q, closing, limit, stabilisation, margin, dt):
    """The rate away from the nearer limit shall not fall below what takes the joint back, gently where it starts far out."""
    to_low, to_high = q - limit[0], limit[1] - q
    gap = select(to_high > to_low, to_low, to_high)
    is_active = margin > gap
    # an infinite gap must not meet a zero
    return select(is_active, closing + gentle(stabilisation * select(is_active, gap, 0.0) * inverse(dt)), 0.0)


@traced
def stop_row(q, rate, qdd, limit, stabilisation, margin, dt):
    """The nearer limit of a joint."""
    to_low, to_high = q - limit[0], limit[1] - q
    is_low = to_high > to_low
    sign, gap = select(is_low, 1.0, -1.0), select(is_low, to_low, to_high)
    closing = sign * (rate + dt * qdd)
    b = stop_demand.fn(q, closing, limit, stabilisation, margin, dt)
    return sign, 0.0, closing, b, 0.0, BIG, select(margin > gap, 1.0, 0.0)


@traced
def friction_bounds(friction, dt):
    return -(friction * dt), friction * dt


@traced
def friction_row(rate, qdd, friction, dt):
    """Dry friction of a joint: it takes the rate to zero, with at most this impulse."""
    closing = rate + dt * qdd
    return 1.0, 0.0, closing, closing, *friction_bounds.fn(friction, dt), 1.0


@traced
def mimic_demand(q, closing, q2, mimic, stabilisation, dt):
    return closing + gentle(stabilisation * (q - mimic[0] * q2 - mimic[1]) * inverse(dt))


@traced
def mimic_row(q, rate, qdd, q2, rate2, qdd2, mimic, stabilisation, dt):
    """q = ratio q2 + offset."""
    closing = (rate + dt * qdd) - mimic[0] * (rate2 + dt * qdd2)
    return 1.0, -mimic[0], closing, mimic_demand.fn(q, closing, q2, mimic, stabilisation, dt), -BIG, BIG, 1.0


@sweep
def joint_row(frame, r):
    """One row of a tie between joints."""
    tree, params, state, work = frame.tree, frame.params, frame.state, frame.work
    kind, i, dt = tree.constraint_row[r], tree.constraint_frame[r], params.world_dt[0]
    d, q = tree.constraint_dof[r], tree.constraint_q[r]
    if kind == NO_ROW:
        return no_row(dt)
    if is_stop(frame, r):
        limit, margin = stop_range(frame, r)
        return stop_row(state.q[q], state.qd[d], work.qdd[d], limit, params.world_baumgarte[0], margin, dt)
    if kind == MIMIC_ROW:
        q2, d2 = tree.constraint_q2[r], tree.constraint_dof2[r]
        return mimic_row(
            state.q[q], state.qd[d], work.qdd[d], state.q[q2], state.qd[d2], work.qdd[d2], params.joint_mimic[i],
            params.world_baumgarte[0], dt,
        )  # fmt: skip
    return friction_row(state.qd[d], work.qdd[d], params.joint_friction[i], dt)


@traced
def most_of(a, b, c):
    return maximum(maximum(a, b), c)


@traced
def plus_first(x, weight):
    return (x[0] + weight, x[1], x[2])


@traced
def plus_second(x, weight):
    return (x[0], x[1] + weight, x[2])


@traced
def plus_third(x, weight):
    return (x[0], x[1], x[2] + weight)


@traced
def taken(S, U, D_inv, rows, own):
    """Like `passed`, with efforts of the rows' own at this joint."""
    effort, _ = passed.fn(S, U, D_inv, rows)
    effort = add(effort, own)
    parts = (rows[:6], rows[6:12], rows[12:])
    return effort, joined(sub(row, scale(U, D_inv * u)) for row, u in zip(parts, effort, strict=True))


@sweep
def own_effort(frame, k, d):
    """What the rows of a tie put on a degree of freedom themselves."""
    tree, block = frame.tree, frame.block
    r = 3 * block.source[k]
    own = zero3(block.weight[k][0])
    if tree.constraint_dof[r] == d:
        own = plus_first(own, block.weight[k][0])
    if tree.constraint_dof[r + 1] == d:
        own = plus_second(own, block.weight[k][1])
    if tree.constraint_dof[r + 2] == d:
        own = plus_third(own, block.weight[k][2])
    if tree.constraint_dof2[r] == d:
        own = plus_first(own, block.weight2[k][0])
    if tree.constraint_dof2[r + 1] == d:
        own = plus_second(own, block.weight2[k][1])
    if tree.constraint_dof2[r + 2] == d:
        own = plus_third(own, block.weight2[k][2])
    return own


@sweep
def joints_along_path(frame, k, side, rows, last, first):
    tree, work, block = frame.tree, frame.work, frame.block
    start = tree.path_first[block.body[side]]
    for j in range(last, first - 1, -1):
        d = tree.path[start + j]
        block.effort[side * tree.most_path + j], rows = taken(
            work.S[d], work.U[d], work.D_inv[d], rows, own_effort(frame, k, d)
        )
    return rows


@sweep
def joints_reach_roots(frame, k):
    tree, block = frame.tree, frame.block
    if tree.is_implicit != 0:
        return
    a, b = 2 * k, 2 * k + 1
    fork, start = block.fork[b], zero18(block.weight[k][0])
    f = joints_along_path(frame, k, a, start, tree.path_length[block.body[a]] - 1, fork)
    g = joints_along_path(frame, k, b, start, tree.path_length[block.body[b]] - 1, fork)
    if block.root[b] == IN_FIRST:
        f = joints_along_path(frame, k, a, plus(f, g), fork - 1, 0)
    settle(frame, a, f)
    settle(frame, b, g)


@sweep
def joint_constraint(frame, t):
    tree, params, block = frame.tree, frame.params, frame.block
    r = 3 * t
    w0, o0, c0, b0, low0, high0, active0 = joint_row(frame, r)
    w1, o1, c1, b1, low1, high1, active1 = joint_row(frame, r + 1)
    w2, o2, c2, b2, low2, high2, active2 = joint_row(frame, r + 2)
    if any_above(most_of(active0, active1, active2), 0.5):
        k = open_block(frame, BOUNDED, t, tree.constraint_a[t], tree.constraint_b[t])
        block.weight[k], block.weight2[k], block.closing[k] = (w0, w1, w2), (o0, o1, o2), (c0, c1, c2)
        block.b[k], block.low[k], block.high[k] = (b0, b1, b2), (low0, low1, low2), (high0, high1, high2)
        block.active[k] = (active0, active1, active2)
        block.give[k] = params.world_compliance[0], params.world_softness[0], zero(params.world_dt[0])
        joints_reach_roots(frame, k)


# loops ------------------------------------------------------------------------------------------------------------------

AXES = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


@traced
def connect_rows(A, B, reference_a, reference_b):
    """Forces along the world's axes at two points that shall be one."""
    arm_a, arm_b = sub(A[9:], detached(reference_a[9:])), sub(B[9:], detached(reference_b[9:]))
    return (
        joined((*cross(arm_a, axis), *axis) for axis in AXES),
        neg(joined((*cross(arm_b, axis), *axis) for axis in AXES)),
    )


@traced
def weld_rows(A):
    rows = joined((*axis, *(0.0 * A[0],) * 3) for axis in AXES)
    return rows, neg(rows)


@traced
def loop_closing(rows_a, v_a, a_joints_a, rows_b, v_b, a_joints_b, dt):
    a, b = add(v_a, tuple(dt * x for x in a_joints_a)), add(v_b, tuple(dt * x for x in a_joints_b))
    return tuple(
        sum(x * y for x, y in zip(a, rows_a[6 * i : 6 * i + 6], strict=True))
        + sum(x * y for x, y in zip(b, rows_b[6 * i : 6 * i + 6], strict=True))
        for i in range(3)
    )


@traced
def connect_demand(closing, A, B, stabilisation, dt):
    pull = stabilisation * inverse(dt)
    return tuple(c + gentle(pull * (x - y)) for c, x, y in zip(closing, A[9:], B[9:], strict=True))


@traced
def weld_demand(closing, A, B, stabilisation, dt):
    """The small turn from B to A: its sine, along its axis."""
    turn = (0.0, 0.0, 0.0)
    for j in range(3):
        turn = add(turn, cross(column(B, j), column(A, j)))
    pull = 0.5 * stabilisation * inverse(dt)
    return tuple(c + gentle(pull * x) for c, x in zip(closing, turn, strict=True))


@traced
def unbounded(anything):
    return (-BIG,) * 3, (BIG,) * 3, (1.0,) * 3


@sweep
def loop_lightness(frame, k, t):
    """What the convex law takes for the response of a loop's trees."""
    tree = frame.tree
    if tree.is_implicit == 0:
        return zero(frame.params.world_dt[0])
    if tree.constraint_kind[t] == CONNECT:
        return lightness_at(frame, k)
    return turning_lightness(lightness_at(frame, k))


@sweep
def loop_constraint(frame, t):
    tree, params, work, touch, block = frame.tree, frame.params, frame.work, frame.touch, frame.block
    i, j, dt = tree.constraint_a[t], tree.constraint_b[t], params.world_dt[0]
    a, b = tree.shape_body[i], tree.shape_body[j]
    k = open_block(frame, BOUNDED, t, a, b)
    if tree.constraint_kind[t] == CONNECT:
        block.rows[2 * k], block.rows[2 * k + 1] = connect_rows(
            touch.shape[i], touch.shape[j], work.pose[tree.reference[a]], work.pose[tree.reference[b]]
        )
    else:
        block.rows[2 * k], block.rows[2 * k + 1] = weld_rows(touch.shape[i])
    block.closing[k] = loop_closing(
        block.rows[2 * k], work.v[a], work.a_joints[a], block.rows[2 * k + 1], work.v[b], work.a_joints[b], dt
    )
    if tree.constraint_kind[t] == CONNECT:
        block.b[k] = connect_demand(block.closing[k], touch.shape[i], touch.shape[j], params.world_baumgarte[0], dt)
    else:
        block.b[k] = weld_demand(block.closing[k], touch.shape[i], touch.shape[j], params.world_baumgarte[0], dt)
    block.low[k], block.high[k], block.active[k] = unbounded(dt)
    block.give[k] = params.world_compliance[0], params.world_softness[0], loop_lightness(frame, k, t)
    reach_roots(frame, k)


@kernel
def constraint_blocks(frame):
    tree = frame.tree
    for t in range(tree.n_constraints):
        if tree.constraint_kind[t] == JOINT_CONSTRAINT:
            joint_constraint(frame, t)
        else:
            loop_constraint(frame, t)


# the reverse ------------------------------------------------------------------------------------------------------------


@traced
def moved_connect_rows(A, B, reference_a, reference_b, A_delta=(0.0,) * 6, B_delta=(0.0,) * 6):
    """Only where the marks are matters; they move about themselves."""
    return connect_rows.fn(
        (*A[:9], *add(A[9:], A_delta[3:])), (*B[:9], *add(B[9:], B_delta[3:])), reference_a, reference_b
    )


@traced
def moved_weld_demand(closing, A, B, stabilisation, dt, A_delta=(0.0,) * 6, B_delta=(0.0,) * 6):
    def turned(pose, delta):
        columns = [add(column(pose, j), cross(delta[:3], column(pose, j))) for j in range(3)]
        return (*(columns[j][i] for i in range(3) for j in range(3)), *pose[9:])

    return weld_demand.fn(closing, turned(A, A_delta), turned(B, B_delta), stabilisation, dt)


moved_connect_rows_adjoint = adjoint(moved_connect_rows, "A_delta B_delta", at_zero="A_delta B_delta")
moved_weld_demand_adjoint = adjoint(moved_weld_demand, "A_delta B_delta stabilisation dt", at_zero="A_delta B_delta")
connect_demand_adjoint = adjoint(connect_demand, "A B stabilisation dt")


stop_demand_adjoint = adjoint(stop_demand, "q closing limit stabilisation dt")
mimic_demand_adjoint = adjoint(mimic_demand, "q closing q2 mimic stabilisation dt")
friction_bounds_adjoint = adjoint(friction_bounds, "friction dt")
