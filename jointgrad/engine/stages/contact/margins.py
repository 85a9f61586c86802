"""A step that was computed -> how near it was to one with other contacts, and what its contacts did.

Trial values of all rows and sweeps are computed once more from the impulses that were kept. A row's margin is how far its
trial value was from where its clamp changes (N s; N m s for rows that turn): from zero for a normal, from the friction
bound for tangents, from the nearer bound for limits and dry friction. Within the smallest of them the derivative is
that of a smooth function. The signature is a number that two steps share if every clamp acted alike in both.
"""

from ....algebra.spatial import add, sub
from ....algebra.vector import cross, dot, scale
from ....compiler.elementary import inverse, maximum, minimum, safe_norm, select
from ....compiler.kernel import inlined, kernel, sweep
from ....compiler.trace import traced
from ....model.arrays import CONNECT, COULOMB, HOLLARS, IMPULSE, JOINT_TIE, MIMIC_ROW, WELD
from ....model.laws import STILL, Impulse
from ....model.pair_table import FIRST_WITH_FEATURES
from ...at_points import at_point
from ...operators import zero, zero3
from .energy import SLACK, bounce_at, mass_of_all, may_push, most_push, take_whole
from .gauss_seidel import changed, gathered
from .implicit_margins import edge_of, has_edge, unsolved
from .paths import BOUNDED, POINT, SPIN
from .response import no_sums, push
from .rows import BOUNCES, brake, push_out
from .running_sums import felt_by, tried
from .ties import connect_demand, is_stop, mimic_demand, stop_range, weld_demand

READS = (
    "state.q", "work.pose", "work.v", "work.D_inv", "touch.point", "touch.normal", "touch.gap", "touch.force", "touch.feature",
    "touch.shape", "params.joint_mimic",
    "block.active", "block.approach", "block.balance", "block.whole", "block.D", "block.G",
    "block.start", "block.x", "block.low", "block.high",
    "block.friction", "block.soft", "block.effort", "block.at_root", "block.answer",
    "params.joint_limit", "params.pair_restitution", "params.pair_transition", "params.pair_margin",
    "params.pair_max_push_out_speed", "params.pair_baumgarte", "params.world_dt", "params.world_limit_margin",
    "params.world_baumgarte",
)  # fmt: skip
WRITES = ("margin.record", "block.pushed", "block.motion")

FAR = float("inf")
LOOK = 0.02  # how far beyond its margin a point that does not touch yet is looked for, m
GOLDEN = 0.6180339887498949  # multiples of it fill the unit interval evenly


def size_of(x):
    return maximum(x, -x)


def counted(D, distance):
    """A row without contact has no step size, and no margin."""
    return select(D > 0.0, distance, FAR)


def beside(y, bound):
    """Distance of a trial value from a symmetric bound, and on which side it is: inside 1, below 0, above 2. No bound where
    nothing presses: the row stays zero whatever is tried."""
    side = select(y > bound, 2.0, select(-bound > y, 0.0, 1.0))
    is_open = bound > 0.0
    return select(is_open, size_of(size_of(y) - bound), FAR), select(is_open, side, 0.0)


def between(y, low, high):
    side = select(y > high, 2.0, select(low > y, 0.0, 1.0))
    return minimum(size_of(y - low), size_of(high - y)), side


def held_between(y, low, high):
    """The same of a bounded row, where what lies on a bound counts as clamped."""
    return between(y, low, high)[0], select(y > low, select(high > y, 1.0, 2.0), 0.0)


# trial values, margin and code of each kind of block, as in gauss_seidel.py ----------------------------------------------


@traced
def cone_margin(x, y, G, friction, D):
    n = maximum(y[0], 0.0)
    most, change = friction[0] * n, n - x[0]
    length = safe_norm((y[1] + G[3] * change, y[2] + G[6] * change))
    is_open = most > 0.0
    across = select(is_open, size_of(length - most), FAR)
    code = select(n > 0.0, 1.0, 0.0) + select(is_open, select(length > most, 2.0, 4.0), 0.0)
    return minimum(counted(D[0], size_of(y[0])), counted(D[1], across)), code


@traced
def pyramid_margin(x, y, G, friction, D, new):
    n = maximum(y[0], 0.0)
    most, change = friction[0] * n, n - x[0]
    first, side1 = beside(y[1] + G[3] * change, most)
    second, side2 = beside(y[2] + G[6] * change + G[7] * (new[1] - x[1]), most)
    code = select(n > 0.0, 1.0, 0.0) + 3.0 * side1 + 9.0 * side2
    across = minimum(counted(D[1], first), counted(D[2], second))
    return minimum(counted(D[0], size_of(y[0])), across), code


@traced
def spin_margin(x, y, G, friction, D, new, normal):
    turn, roll = friction[1] * normal[0], friction[2] * normal[0]
    m0, s0 = beside(y[0], turn)
    m1, s1 = beside(y[1] + G[3] * (new[0] - x[0]), roll)
    m2, s2 = beside(y[2] + G[6] * (new[0] - x[0]) + G[7] * (new[1] - x[1]), roll)
    return minimum(counted(D[0], m0), minimum(counted(D[1], m1), counted(D[2], m2))), s0 + 3.0 * s1 + 9.0 * s2


@traced
def bounded_margin(x, y, G, low, high, D, new):
    m0, s0 = held_between(y[0], low[0], high[0])
    m1, s1 = held_between(y[1] + G[3] * (new[0] - x[0]), low[1], high[1])
    m2, s2 = held_between(y[2] + G[6] * (new[0] - x[0]) + G[7] * (new[1] - x[1]), low[2], high[2])
    sides = tuple(select(d > 0.0, s, 0.0) for d, s in zip(D, (s0, s1, s2), strict=True))
    return minimum(counted(D[0], m0), minimum(counted(D[1], m1), counted(D[2], m2))), (
        sides[0] + 3.0 * sides[1] + 9.0 * sides[2]
    )


@inlined
def trial(frame, t, k):
    """Trial values of block k in sweep t, as gauss_seidel.py or running_sums.py found them."""
    block = frame.block
    n = block.n
    if frame.tree.has_matrix == 0:
        x = block.x[t * n + k]
        felt = felt_by(frame, block.pushed, block.motion, k)
        push(frame, block.pushed, block.motion, k, changed(block.x[(t + 1) * n + k], x))
        return tried(block.start[k], x, block.D[k], block.soft[k], felt)
    y, own = block.start[k], block.own[k]
    for p in range(own, block.first[k + 1]):
        y = gathered(y, block.G[p], block.x[t * n + block.other[p]])
    for p in range(block.first[k], own):
        y = gathered(y, block.G[p], block.x[(t + 1) * n + block.other[p]])
    return y


@sweep
def margin_of(frame, t, k):
    """Margin and code of block k in sweep t; of sweep 0 first, then one after the other."""
    block = frame.block
    n, y = block.n, trial(frame, t, k)
    x, new = block.x[t * n + k], block.x[(t + 1) * n + k]
    G, D, kind = block.G[block.own[k]], block.D[k], block.kind[k]
    if kind == POINT:
        if frame.tree.is_cone != 0:
            return cone_margin(x, y, G, block.friction[k], D)
        return pyramid_margin(x, y, G, block.friction[k], D, new)
    if kind == SPIN:
        return spin_margin(x, y, G, block.friction[k], D, new, block.x[(t + 1) * n + k - 1])
    return bounded_margin(x, y, G, block.low[k], block.high[k], D, new)


# a record of the step: see workspace.RECORD --------------------------------------------------------------------------------


@traced
def empty_record(anything):
    nothing = 0.0 * anything
    return (FAR, nothing, FAR, nothing, FAR, *(nothing,) * 9, FAR, nothing)


def replaced(record, start, values):
    return (*record[:start], *values, *record[start + len(values) :])


def smaller(record, start, value, who):
    is_less = record[start] > value
    return replaced(record, start, (select(is_less, value, record[start]), select(is_less, who, record[start + 1])))


@traced
def with_margin(record, value, who, is_last, code, weight):
    """A clamp of some sweep; the margin of the last sweep is that of the outcome."""
    record = smaller(record, 0, value, who)
    record = smaller(record, 2, select(is_last > 0.5, value, FAR), who)
    return replaced(record, 13, (record[13] + weight * code,))


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
    record, active, x, friction, is_cone, approach, gap, restitution, stabilisation, push_limit, dt, weight
):  # fmt: skip
    """Counts, impact and signature of a point with impulses; `weight` belongs to the choices made before the sweeps."""
    is_active, n, most = active[0] > 0.5, x[0], friction[0] * x[0]
    is_pressed = select(is_active, n, 0.0) > 0.0
    is_outside = select(is_cone > 0.5, select(1.0 > x[3], 1.0, 0.0),
                        select(most > maximum(size_of(x[1]), size_of(x[2])), 0.0, 1.0))  # fmt: skip
    slips = select(friction[0] > 0.0, is_outside, 1.0)
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
def with_impulse(record, x, before):
    """Sizes of the last impulses, and of what the last sweep changed."""
    size, change = record[9], record[10]
    for i in range(3):
        size, change = maximum(size, size_of(x[i])), maximum(change, size_of(x[i] - before[i]))
    return replaced(record, 9, (size, change))


@traced
def with_spring(
    record,
    point,
    normal,
    gap,
    force,
    v_a,
    v_b,
    reference_a,
    reference_b,
    transition,
    margin,
    has_corner,
    has_jump,
    weight,
):
    """Counts of a point with a spring: it sticks while it slips more slowly than the transition of its friction, where some
    laws have a corner; Coulomb's jumps as soon as anything slips."""
    a = add(v_a[3:], cross(v_a[:3], sub(point, reference_a[9:])))
    b = add(v_b[3:], cross(v_b[:3], sub(point, reference_b[9:])))
    velocity = sub(a, b)
    speed = safe_norm(sub(velocity, scale(normal, dot(velocity, normal))))
    is_in = margin > gap
    pressed = select(is_in, select(dot(force, normal) > 0.0, 1.0, 0.0), 0.0)
    slips = select(speed > transition, 1.0, 0.0)
    code = pressed * (1.0 + has_corner * slips + has_jump * select(speed > STILL, 1.0, 0.0))
    return (
        *record[:6], record[6] + select(is_in, 1.0 - pressed, 0.0), record[7] + pressed * (1.0 - slips),
        record[8] + pressed * slips, *record[9:13], record[13] + weight * code, *record[14:],
    )  # fmt: skip


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
def name_of(frame, k):
    """The pair of shapes of a block, or minus one less its tie."""
    block = frame.block
    if block.kind[k] == BOUNDED:
        return -1.0 - block.source[k]
    return 1.0 * frame.touch.pair[block.source[k]]


@sweep
def seed_of(frame, k):
    """A number that the same candidate has whatever else touches."""
    block, touch = frame.block, frame.touch
    if block.kind[k] == BOUNDED:
        return 3 * block.source[k]
    i = block.source[k]
    return 3 * (16 * touch.pair[i] + touch.part[i]) + (1 if block.kind[k] == POINT else 2)


@sweep
def weight_of(seed, t):
    """Where a multiple of the golden ratio falls in the unit interval."""
    return ((t + 1) * 100003 + seed) * GOLDEN % 1.0 + 0.125


@sweep
def point_record(frame, record, k):
    tree, params, touch, block = frame.tree, frame.params, frame.touch, frame.block
    i, n, T = block.source[k], block.n, tree.sweeps
    row = tree.pair_row[touch.pair[i]]
    return with_point(
        record, block.active[k], block.x[T * n + k], block.friction[k], 1.0 * tree.is_cone, block.approach[k], touch.gap[i],
        at_point(frame, touch.restitution, params.pair_restitution, i, row),
        params.pair_baumgarte[row], params.pair_max_push_out_speed[row],
        params.world_dt[0], weight_of(seed_of(frame, k), -1),
    )  # fmt: skip


@sweep
def touch_record(frame, record, i):
    tree, params, work, touch = frame.tree, frame.params, frame.work, frame.touch
    p = touch.pair[i]
    row, a, b = tree.pair_row[p], tree.shape_body[tree.pair_a[p]], tree.shape_body[tree.pair_b[p]]
    weight = weight_of(3 * (16 * p + touch.part[i]), -2)
    if tree.pair_law[p] != IMPULSE:
        record = with_spring(
            record, touch.point[i], touch.normal[i], touch.gap[i], touch.force[i], work.v[a], work.v[b],
            work.pose[tree.reference[a]], work.pose[tree.reference[b]], params.pair_transition[row], params.pair_margin[row],
            1.0 if tree.pair_law[p] == HOLLARS else 0.0, 1.0 if tree.pair_law[p] == COULOMB else 0.0, weight,
        )  # fmt: skip
    if tree.pair_kind[p] >= FIRST_WITH_FEATURES:
        record = with_features(record, is_near(touch.gap[i], params.pair_margin[row]), touch.feature[i], weight)
    return record


@sweep
def stop_record(frame, record):
    tree, params = frame.tree, frame.params
    for r in range(3 * tree.n_ties):
        if tree.tie_kind[r // 3] == JOINT_TIE and is_stop(frame, r):
            limit, margin = stop_range(frame, r)
            record = with_stop(
                record, frame.state.q[tree.tie_q[r]], limit, margin, params.world_baumgarte[0], params.world_dt[0], -1.0 - r // 3,
                weight_of(r, -3),
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
    """What stabilisation asks of loops and of mimic joints, as in ties.py, apart from their rates."""
    tree, params, state, touch = frame.tree, frame.params, frame.state, frame.touch
    still, gain, dt = zero3(params.world_dt[0]), params.world_baumgarte[0], params.world_dt[0]
    for t in range(tree.n_ties):
        kind, i, j = tree.tie_kind[t], tree.tie_a[t], tree.tie_b[t]
        if kind == CONNECT:
            pulls = connect_demand(still, touch.shape[i], touch.shape[j], gain, dt)
            record = with_pulls(record, pulls, weight_of(3 * t, -4))
        elif kind == WELD:
            pulls = weld_demand(still, touch.shape[i], touch.shape[j], gain, dt)
            record = with_pulls(record, pulls, weight_of(3 * t, -4))
        elif tree.tie_row[3 * t] == MIMIC_ROW:
            q, q2, mimic = (
                state.q[tree.tie_q[3 * t]],
                state.q[tree.tie_q2[3 * t]],
                params.joint_mimic[tree.tie_frame[3 * t]],
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
                record, block.x[frame.tree.sweeps * block.n + k], block.approach[k], block.closing[k], block.b[k],
                may_push(frame, k), mass, block.balance[0], weight_of(seed_of(frame, k), -5),
            )  # fmt: skip
    return with_share(record, block.balance[0], who, weight_of(1, -4))


@sweep
def implicit_record(frame, record):
    """Of the convex law there is one outcome, and no sweeps."""
    for k in range(frame.block.n):
        if has_edge(frame, k):
            value, code = edge_of(frame, k)
            record = with_margin(record, value, name_of(frame, k), 1.0, code, weight_of(seed_of(frame, k), 0))
    return record


@kernel
def margins(frame):
    block = frame.block
    record = empty_record(frame.params.world_dt[0])
    n, T = block.n, frame.tree.sweeps
    if frame.tree.is_implicit != 0:
        record = implicit_record(frame, record)
    elif n > 0:
        if block.restrained != 0:
            take_whole(frame)
        no_sums(frame, block.pushed, block.motion)
    for t in range(T):
        for k in range(n):
            name, seed = name_of(frame, k), seed_of(frame, k)
            value, code = margin_of(frame, t, k)
            record = with_margin(record, value, name, 1.0 if t == T - 1 else 0.0, code, weight_of(seed, t))
    for k in range(n):
        if frame.tree.is_implicit != 0:
            record = with_impulse(record, block.x[k], unsolved(block.x[k], block.excess[0]))
        else:
            record = with_impulse(record, block.x[T * n + k], block.x[(T - 1) * n + k])
        if block.kind[k] == POINT:
            record = point_record(frame, record, k)
    if n > 0 and block.bounces != 0:
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
        if tree.pair_law[p] == IMPULSE:
            row = tree.pair_row[p]
            margin.record[0] = with_gap(
                margin.record[0], touch.gap[i], margin.own[row], frame.params.pair_restitution[row], 1.0 * p
            )
