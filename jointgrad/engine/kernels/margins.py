"""A step that was computed -> how near it was to one with other contacts, and what its contacts did.

The solver records how near each clamp was to acting otherwise (N s; N m s for rows that turn): a normal from zero, tangents from
the bound of friction, limits and dry friction from the nearer bound. Within the smallest of these margins the derivative is that
of a smooth function. The signature is a number that two steps share if every clamp acted alike in both.
"""

from ...compiler.elementary import inverse, maximum, minimum, select
from ...compiler.kernel import kernel, sweep
from ...compiler.trace import traced
from ...model.arrays import CONNECT, JOINT_CONSTRAINT, MIMIC_ROW, WELD
from ...model.laws import Impulse
from ...model.pair_table import FIRST_WITH_FEATURES
from .at_points import at_point
from .operators import zero, zero3
from .stages.contact.clamps import FAR, size_of
from .stages.contact.constraints import connect_demand, is_stop, mimic_demand, stop_range, weld_demand
from .stages.contact.energy import SLACK, bounce_at, mass_of_all, may_push, most_push, solved
from .stages.contact.paths import POINT
from .stages.contact.records import GOLDEN, name_of, replaced, seed_of, smaller, weight_of, with_margin
from .stages.contact.rows import BOUNCES, brake, push_out
from .stages.contact.solvers import record_solution
from .stages.springs import spring_record

READS = (
    "state.q", "work.pose", "work.v", "work.D_inv", "touch.point", "touch.normal", "touch.gap", "touch.force", "touch.feature",
    "touch.shape", "params.joint_mimic",
    "block.active", "block.approach", "block.balance", "block.whole", "block.D", "block.G",
    "block.start", "block.impulse", "block.sticks", "block.x", "block.low", "block.high",
    "block.friction", "block.soft", "block.effort", "block.at_root", "block.answer",
    "params.joint_limit", "params.pair_restitution", "params.pair_transition", "params.pair_margin",
    "params.pair_max_push_out_speed", "params.pair_baumgarte", "params.world_dt", "params.world_limit_margin",
    "params.world_baumgarte",
)  # fmt: skip
WRITES = ("margin.record", "block.pushed", "block.motion")

LOOK = 0.02  # how far beyond its margin a point that does not touch yet is looked for, m


# a record of the step: see workspace.RECORD --------------------------------------------------------------------------------


@traced
def empty_record(anything):
    nothing = 0.0 * anything
    return (FAR, nothing, FAR, nothing, FAR, *(nothing,) * 9, FAR, nothing)


@traced
def with_gap(record, gap, margin, restitution, who):
    """What another environment alone has come near to does not count. Bounces are switched on at the surface."""
    to_margin = select(BOUNCES > restitution, size_of(gap - margin), FAR)
    nearest = minimum(to_margin, select(restitution > 0.0, size_of(gap), FAR))
    return smaller(record, 4, select(margin + LOOK > gap, nearest, FAR), who)


@traced
def with_share(record, balance, who, weight):
    """Whether bounces were restrained: how far they were from it, by a share of the largest impulse."""
    is_seen = select(balance[2] > 0.0, balance[1], 0.0) > 0.0
    excess = (balance[1] - maximum(balance[0], 0.0) * (1.0 + SLACK)) * inverse(select(is_seen, balance[1], 1.0))
    value = select(is_seen, size_of(excess) * record[9], FAR)
    code = select(is_seen, select(excess > 0.0, 1.0, 0.0), 0.0)
    return with_margin.fn(record, value, who, 1.0, code, weight)


@traced
def with_cap(record, x, approach, closing, b, is_pushed, mass, balance, weight):
    """Whether what a point may push with, in a bounce that was restrained, is bounded by the mass of all."""
    is_over = select(balance[2] > 0.0, balance[1], 0.0) > maximum(balance[0], 0.0) * (1.0 + SLACK)
    speed = closing[0] - b[0]
    code = select(
        x[0] * speed > most_push(speed, approach, closing, mass), 1.0 + select(approach > closing[0], 1.0, 0.0), 0.0
    )
    return replaced(record, 13, (record[13] + select(is_over, weight * is_pushed * code, 0.0),))


@traced
def with_stop(record, q, limit, margin, stabilisation, dt, who, weight):
    to_low, to_high = q - limit[0], limit[1] - q
    gap = minimum(to_low, to_high)
    record = smaller(record, 4, size_of(gap - margin), who)
    # what is far out is brought back at the greatest speed there is, and what is far in may come no faster
    is_far = size_of(stabilisation * select(margin > gap, gap, 0.0) * inverse(dt)) > Impulse.max_push_out_speed
    side = select(to_high > to_low, 1.0, 2.0) + select(is_far, 2.0, 0.0)
    return replaced(record, 13, (record[13] + select(margin > gap, weight * side, 0.0),))


@traced
def with_point(
    record, active, x, friction, sticks, approach, gap, restitution, stabilisation, push_limit, dt, weight
):  # fmt: skip
    """Counts, impact and signature of a point with impulses; `weight` belongs to the choices made before these are solved."""
    is_active = active[0] > 0.5
    is_pressed = select(is_active, x[0], 0.0) > 0.0
    slips = select(friction[0] > 0.0, 1.0 - sticks, 1.0)
    pressed, open_ = select(is_pressed, 1.0, 0.0), select(is_active, select(is_pressed, 0.0, 1.0), 0.0)
    speed = select(is_pressed, maximum(-approach, 0.0), 0.0)
    # which of the demands on the normal velocity was the larger
    parting, push_limit = -(stabilisation * gap * inverse(dt)), push_out(push_limit, brake(restitution))
    bounce = select(0.0 > gap, -(restitution * approach), 0.0)
    choice = 1.0 + select(parting > push_limit, 2.0, 0.0)
    bounces = select(bounce > minimum(parting, push_limit), 4.0, 0.0) + select(approach < 0.0, 8.0, 0.0)
    choice = choice + select(restitution > 0.0, bounces + select(0.0 > gap, 16.0, 0.0), 0.0)
    return (
        *record[:6],
        record[6] + open_,
        record[7] + pressed * (1.0 - slips),
        record[8] + pressed * slips,
        *record[9:11],
        maximum(record[11], speed),
        maximum(record[12], select(restitution > 0.0, speed, 0.0)),
        record[13] + select(is_active, weight * choice, 0.0),
        *record[14:],
    )


@traced
def with_features(record, active, feature, weight):
    total = 0.0
    for i in range(7):
        total = total + (i + 1.0) * GOLDEN * feature[i]
    return replaced(record, 13, (record[13] + select(active > 0.5, weight * total, 0.0),))


@traced
def is_near(gap, margin):
    return select(margin > gap, 1.0, 0.0)


@sweep
def point_record(frame, record, k):
    tree, params, touch, block = frame.tree, frame.params, frame.touch, frame.block
    i = block.source[k]
    row = tree.pair_row[touch.pair[i]]
    return with_point(
        record, block.active[k], solved(frame, k), block.friction[k], block.sticks[k], block.approach[k], touch.gap[i],
        at_point(frame, touch.restitution, params.pair_restitution, i, row),
        params.pair_baumgarte[row], params.pair_max_push_out_speed[row],
        params.world_dt[0], weight_of(seed_of(frame, k), -1),
    )  # fmt: skip


@sweep
def touch_record(frame, record, i):
    tree, touch = frame.tree, frame.touch
    p = touch.pair[i]
    weight = weight_of(3 * (16 * p + touch.part[i]), -2)
    if tree.pair_has_rows[p] == 0:
        record = spring_record(frame, record, i, weight)
    if tree.pair_kind[p] >= FIRST_WITH_FEATURES:
        record = with_features(
            record, is_near(touch.gap[i], frame.params.pair_margin[tree.pair_row[p]]), touch.feature[i], weight
        )
    return record


@sweep
def stop_record(frame, record):
    tree, params = frame.tree, frame.params
    for r in range(3 * tree.n_constraints):
        if tree.constraint_kind[r // 3] == JOINT_CONSTRAINT and is_stop(frame, r):
            limit, margin = stop_range(frame, r)
            record = with_stop(
                record, frame.state.q[tree.constraint_q[r]], limit, margin, params.world_baumgarte[0], params.world_dt[0],
                -1.0 - r // 3, weight_of(r, -3),
            )  # fmt: skip
    return record


@traced
def with_pulls(record, speeds, weight):
    """Loops and mimic joints that are far off are brought back at the greatest speed there is: which rows, and which way."""
    code = 0.0
    for i, speed in enumerate(speeds):
        side = select(speed > 0.0, 1.0, 2.0)
        code = code + 3.0**i * select(Impulse.max_push_out_speed > size_of(speed), 0.0, side)
    return replaced(record, 13, (record[13] + weight * code,))


@sweep
def pull_record(frame, record):
    """What stabilisation asks of loops and of mimic joints, as in constraints.py, apart from their rates."""
    tree, params, state, touch = frame.tree, frame.params, frame.state, frame.touch
    still, gain, dt = zero3(params.world_dt[0]), params.world_baumgarte[0], params.world_dt[0]
    for t in range(tree.n_constraints):
        kind, i, j = tree.constraint_kind[t], tree.constraint_a[t], tree.constraint_b[t]
        if kind == CONNECT:
            pulls = connect_demand(still, touch.shape[i], touch.shape[j], gain, dt)
            record = with_pulls(record, pulls, weight_of(3 * t, -4))
        elif kind == WELD:
            pulls = weld_demand(still, touch.shape[i], touch.shape[j], gain, dt)
            record = with_pulls(record, pulls, weight_of(3 * t, -4))
        elif tree.constraint_row[3 * t] == MIMIC_ROW:
            q, q2, mimic = (
                state.q[tree.constraint_q[3 * t]],
                state.q[tree.constraint_q2[3 * t]],
                params.joint_mimic[tree.constraint_frame[3 * t]],
            )
            record = with_pulls(record, (mimic_demand(q, zero(dt), q2, mimic, gain, dt),), weight_of(3 * t, -4))
    return record


@traced
def named(who, bounce, name):
    return select(bounce > 0.0, name, who)


@sweep
def share_record(frame, record):
    """Whether bounces were restrained, by the name of one of them."""
    block = frame.block
    who, mass = zero(frame.params.world_dt[0]), mass_of_all(frame)
    for k in range(block.n):
        if block.kind[k] == POINT:
            who = named(who, bounce_at(frame, k), name_of(frame, k))
            record = with_cap(
                record, solved(frame, k), block.approach[k], block.closing[k], block.b[k],
                may_push(frame, k), mass, block.balance[0], weight_of(seed_of(frame, k), -5),
            )  # fmt: skip
    return with_share(record, block.balance[0], who, weight_of(1, -4))


@kernel
def margins(frame):
    block = frame.block
    record = empty_record(frame.params.world_dt[0])
    if block.n > 0:
        record = record_solution(frame, record)
    for k in range(block.n):
        if block.kind[k] == POINT:
            record = point_record(frame, record, k)
    if block.n > 0 and block.bounces != 0:
        record = share_record(frame, record)
    for i in range(frame.touch.n):
        record = touch_record(frame, record, i)
    frame.margin.record[0] = pull_record(frame, stop_record(frame, record))


@traced
def together(before, here):
    """Records of two evaluations of one step: the nearer of both, counts of the first, a signature of both in their order."""
    record = before
    for start in (0, 2, 4, 14):
        record = smaller(record, start, here[start], here[start + 1])
    return replaced(record, 13, (GOLDEN * before[13] + here[13],))


# points about to touch, or to part ----------------------------------------------------------------------------------------


@traced
def stretched(margin):
    return margin + LOOK


@sweep
def stretch_margins(frame):
    params = frame.params
    for row in range(frame.tree.n_pair_rows):
        frame.margin.own[row] = params.pair_margin[row]
        params.pair_margin[row] = stretched(params.pair_margin[row])


@sweep
def unstretch_margins(frame):
    for row in range(frame.tree.n_pair_rows):
        frame.params.pair_margin[row] = frame.margin.own[row]


@sweep
def nearer(frame):
    """The candidate nearest to its own margin; springs grow from nothing, and switch nothing on."""
    tree, touch, margin = frame.tree, frame.touch, frame.margin
    for i in range(touch.n):
        p = touch.pair[i]
        if tree.pair_has_rows[p] != 0:
            row = tree.pair_row[p]
            margin.record[0] = with_gap(
                margin.record[0], touch.gap[i], margin.own[row], frame.params.pair_restitution[row], 1.0 * p
            )
