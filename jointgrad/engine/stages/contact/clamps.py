"""How the trial values of a block are clamped, and the same backwards: friction within its cone or pyramid, bounded rows.

Impulses after a sweep, with the scale that the cone left of the trial tangents, tell how each was clamped: the reverse
needs nothing else. Only where a bound is zero they do not, because they are zero on either side of it: there the side on
which the trial value was is kept, too. The derivative by such a bound is the one towards friction. A trial value that lies on
a bound counts as clamped, in both ways of differentiating: what equal corners or a stop that is just reached often do.
"""

from ....compiler.elementary import clamp, detach, inverse, maximum, root, safe_div, safe_norm, select
from ....compiler.kernel import accumulate, any_above, inlined, sweep
from ....compiler.trace import traced
from .paths import POINT, SPIN

# stands in for a squared impulse of zero, whose root has no derivative
TINY = 1e-280


# updates: from the old impulses x of a block and the trial values y that its neighbours (itself included) give it -----------


@traced
def cone_update(x, y, G, friction):
    """Normal first; the tangents see its change, and are scaled back onto the cone together."""
    n = maximum(0.0, y[0])
    # no normal impulse, no friction: the cone has closed
    most, change = friction[0] * n, n - x[0]
    p1, p2 = y[1] + G[3] * change, y[2] + G[6] * change
    # most / length as most length / length^2: the root and the quotient need not wait for each other
    square = maximum(p1 * p1 + p2 * p2, TINY)
    part = select(square > most * most, most * root(square) * inverse(square), 1.0)
    return n, part * p1, part * p2, part


@traced
def pyramid_update(x, y, G, friction):
    """Each row sees the change of those before it."""
    n = maximum(0.0, y[0])
    most, change = friction[0] * n, n - x[0]
    t1 = clamp(y[1] + G[3] * change, -most, most)
    t2 = clamp(y[2] + G[6] * change + G[7] * (t1 - x[1]), -most, most)
    return n, t1, t2, 0.0 * n


@traced
def spin_update(x, y, G, friction, normal):
    """Torsion and rolling, bounded by the normal impulse of their point."""
    turn, roll = friction[1] * normal[0], friction[2] * normal[0]
    s0 = clamp(y[0], -turn, turn)
    s1 = clamp(y[1] + G[3] * (s0 - x[0]), -roll, roll)
    s2 = clamp(y[2] + G[6] * (s0 - x[0]) + G[7] * (s1 - x[1]), -roll, roll)
    return s0, s1, s2, 0.0 * s0


def held(y, low, high):
    """y between two bounds, its derivative that of a bound it lies on; none where it lies on both."""
    on_low = select(low > y, low, select(high > low, low, detach(y)))
    return select(y > low, select(high > y, y, high), on_low)


@traced
def bounded_update(x, y, G, low, high):
    s0 = held(y[0], low[0], high[0])
    s1 = held(y[1] + G[3] * (s0 - x[0]), low[1], high[1])
    s2 = held(y[2] + G[6] * (s0 - x[0]) + G[7] * (s1 - x[1]), low[2], high[2])
    return s0, s1, s2, 0.0 * s0


# where a bound is zero --------------------------------------------------------------------------------------------------


def closed(bound, active):
    return select(active > 0.5, select(bound > 0.0, 0.0, 1.0), 0.0)


@traced
def closed_point(friction, active):
    """More than zero where a bound of the block is zero."""
    return closed(friction[0], active[0])


@traced
def closed_spin(friction, active):
    return closed(friction[1], active[0]) + closed(friction[2], active[0])


@traced
def closed_rows(low, high, active):
    return sum(closed(high[i] - low[i], active[i]) for i in range(3))


@sweep
def hides(frame, k):
    """1 where the impulses of a block do not tell how they were clamped, in some lane."""
    block = frame.block
    kind = block.kind[k]
    if kind == POINT:
        return 1 if any_above(closed_point(block.friction[k], block.active[k]), 0.5) else 0
    if kind == SPIN:
        return 1 if any_above(closed_spin(block.friction[k], block.active[k]), 0.5) else 0
    return 1 if any_above(closed_rows(block.low[k], block.high[k], block.active[k]), 0.5) else 0


def sign_of(x):
    return select(x > 0.0, 1.0, select(x < 0.0, -1.0, 0.0))


@traced
def row_sides(x, y, G, new):
    """Sign of what the clamp took of each trial value: above its bounds, below them, or between."""
    change = tuple(new[i] - x[i] for i in range(3))
    trial = y[0], y[1] + G[3] * change[0], y[2] + G[6] * change[0] + G[7] * change[1]
    return tuple(sign_of(trial[i] - new[i]) for i in range(3))


@traced
def cone_sides(x, y, G, new):
    """Direction of the trial tangents, none where they are zero."""
    change = new[0] - x[0]
    p1, p2 = y[1] + G[3] * change, y[2] + G[6] * change
    length = safe_norm((p1, p2))
    return 0.0, safe_div(p1, length), safe_div(p2, length)


@inlined
def clamped(frame, k, x, y, newest):
    """Impulses of block k from the old ones and their trial values; `newest` are those of block k - 1."""
    block = frame.block
    G, kind = block.G[block.own[k]], block.kind[k]
    if kind == POINT:
        if frame.tree.is_cone != 0:
            return cone_update(x, y, G, block.friction[k])
        return pyramid_update(x, y, G, block.friction[k])
    if kind == SPIN:
        return spin_update(x, y, G, block.friction[k], newest)
    return bounded_update(x, y, G, block.low[k], block.high[k])


@sweep
def keep_side(frame, t, k, x, y, new):
    """Of a block that hides it: on which side of its bounds sweep t found it."""
    block = frame.block
    G = block.G[block.own[k]]
    if block.kind[k] == POINT and frame.tree.is_cone != 0:
        block.side[t * block.n + k] = cone_sides(x, y, G, new)
    else:
        block.side[t * block.n + k] = row_sides(x, y, G, new)


# the reverse ------------------------------------------------------------------------------------------------------------
# e is the cotangent of a trial value; each update returns it, that of the old impulses of the same block, and of its bounds.
# `side` is given where a bound is zero in some lane


def own_past(G, e):
    """Cotangent of the block's old impulses, which entered the trial values of the rows before them."""
    return 0.0, G[1] * e[0], G[2] * e[0] + G[5] * e[1]


def cone_reverse(x, x_bar, G, friction, side=None):
    part, most = x[3], friction[0] * x[0]
    # along the slip the impulse is the bound; across it the trial tangents are turned, and scaled by part
    direction = (safe_div(x[1], most), safe_div(x[2], most))
    if side is not None:
        direction = tuple(select(friction[0] > 0.0, d, s) for d, s in zip(direction, side[1:], strict=True))
    along = direction[0] * x_bar[1] + direction[1] * x_bar[2]
    slips = 1.0 > part
    e1, e2 = (select(slips, part * (x_bar[i] - direction[i - 1] * along), x_bar[i]) for i in (1, 2))
    most_bar = select(slips, along, 0.0)
    e0 = select(x[0] > 0.0, x_bar[0] + G[3] * e1 + G[6] * e2 + friction[0] * most_bar, 0.0)
    old = (0.0 * e0, G[1] * e0 + G[4] * e1 + G[7] * e2, G[2] * e0 + G[5] * e1 + G[8] * e2)
    return (e0, e1, e2), old, (x[0] * most_bar, 0.0, 0.0)


def within(x, most, x_bar, side, k):
    """Cotangents of trial value k and of its symmetric bound: where the value is inside, all goes to the value."""
    is_inside = most > maximum(x[k], -x[k])
    to_bound = select(x[k] < 0.0, -x_bar, x_bar)
    if side is not None:
        to_bound = select(most > 0.0, to_bound, side[k] * x_bar)
    return select(is_inside, x_bar, 0.0), select(is_inside, 0.0, to_bound)


def pyramid_reverse(x, x_bar, G, friction, side=None):
    most = friction[0] * x[0]
    e2, most2 = within(x, most, x_bar[2], side, 2)
    e1, most1 = within(x, most, x_bar[1] + G[7] * e2, side, 1)
    most_bar = most1 + most2
    e0 = select(x[0] > 0.0, x_bar[0] + G[3] * e1 + G[6] * e2 + friction[0] * most_bar, 0.0)
    return (e0, e1, e2), own_past(G, (e0, e1, e2)), (x[0] * most_bar, 0.0, 0.0)


def spin_reverse(x, x_bar, G, friction, normal, side=None):
    turn, roll = friction[1] * normal[0], friction[2] * normal[0]
    e2, roll2 = within(x, roll, x_bar[2], side, 2)
    e1, roll1 = within(x, roll, x_bar[1] + G[7] * e2, side, 1)
    e0, turn_bar = within(x, turn, x_bar[0] + G[3] * e1 + G[6] * e2, side, 0)
    roll_bar = roll1 + roll2
    normal_bar = friction[1] * turn_bar + friction[2] * roll_bar
    friction_bar = (0.0, normal[0] * turn_bar, normal[0] * roll_bar)
    return (e0, e1, e2), own_past(G, (e0, e1, e2)), friction_bar, (normal_bar, 0.0, 0.0)


def between(x, low, high, x_bar, side, k):
    """Cotangents of trial value k and of both its bounds."""
    is_high, is_low = x[k] < high[k], low[k] < x[k]
    inside = select(is_high, select(is_low, x_bar, 0.0), 0.0)
    to_low, to_high = select(is_low, 0.0, x_bar), select(is_low, select(is_high, 0.0, x_bar), 0.0)
    if side is not None:
        is_open = high[k] > low[k]
        to_low = select(is_open, to_low, select(side[k] < 0.0, x_bar, 0.0))
        to_high = select(is_open, to_high, select(side[k] > 0.0, x_bar, 0.0))
    return inside, to_low, to_high


def bounded_reverse(x, x_bar, G, low, high, side=None):
    e2, low2, high2 = between(x, low, high, x_bar[2], side, 2)
    e1, low1, high1 = between(x, low, high, x_bar[1] + G[7] * e2, side, 1)
    e0, low0, high0 = between(x, low, high, x_bar[0] + G[3] * e1 + G[6] * e2, side, 0)
    return (e0, e1, e2), own_past(G, (e0, e1, e2)), (low0, low1, low2), (high0, high1, high2)


@traced
def cone_update_reverse(x, x_bar, G, friction):
    return cone_reverse(x, x_bar, G, friction)


@traced
def pyramid_update_reverse(x, x_bar, G, friction):
    return pyramid_reverse(x, x_bar, G, friction)


@traced
def spin_update_reverse(x, x_bar, G, friction, normal):
    return spin_reverse(x, x_bar, G, friction, normal)


@traced
def bounded_update_reverse(x, x_bar, G, low, high):
    return bounded_reverse(x, x_bar, G, low, high)


@traced
def closed_cone_reverse(x, x_bar, G, friction, side):
    return cone_reverse(x, x_bar, G, friction, side)


@traced
def closed_pyramid_reverse(x, x_bar, G, friction, side):
    return pyramid_reverse(x, x_bar, G, friction, side)


@traced
def closed_spin_reverse(x, x_bar, G, friction, normal, side):
    return spin_reverse(x, x_bar, G, friction, normal, side)


@traced
def closed_rows_reverse(x, x_bar, G, low, high, side):
    return bounded_reverse(x, x_bar, G, low, high, side)


@inlined
def point_reverse(frame, t, k, x, x_bar, G):
    tree, block = frame.tree, frame.block
    friction = block.friction[k]
    if block.hides[k] != 0:
        side = block.side[t * block.n + k]
        if tree.is_cone != 0:
            return closed_cone_reverse(x, x_bar, G, friction, side)
        return closed_pyramid_reverse(x, x_bar, G, friction, side)
    if tree.is_cone != 0:
        return cone_update_reverse(x, x_bar, G, friction)
    return pyramid_update_reverse(x, x_bar, G, friction)


@inlined
def turning_reverse(frame, t, k, x, x_bar, G):
    block = frame.block
    normal = block.x[(t + 1) * block.n + k - 1]
    if block.hides[k] != 0:
        return closed_spin_reverse(x, x_bar, G, block.friction[k], normal, block.side[t * block.n + k])
    return spin_update_reverse(x, x_bar, G, block.friction[k], normal)


@inlined
def rows_reverse(frame, t, k, x, x_bar, G):
    block = frame.block
    if block.hides[k] != 0:
        return closed_rows_reverse(x, x_bar, G, block.low[k], block.high[k], block.side[t * block.n + k])
    return bounded_update_reverse(x, x_bar, G, block.low[k], block.high[k])


@inlined
def clamped_reverse(frame, bar, t, k, x_bar):
    """Cotangents of the trial values and of the old impulses that `update` saw; adds to those of bounds."""
    block = frame.block
    G, x, kind = block.G[block.own[k]], block.x[(t + 1) * block.n + k], block.kind[k]
    if kind == POINT:
        e, old, friction = point_reverse(frame, t, k, x, x_bar, G)
        accumulate(bar.block.friction, k, friction)
    elif kind == SPIN:
        e, old, friction, normal_bar = turning_reverse(frame, t, k, x, x_bar, G)
        accumulate(bar.block.friction, k, friction)
        accumulate(bar.block.x, k - 1, normal_bar)
    else:
        e, old, low, high = rows_reverse(frame, t, k, x, x_bar, G)
        accumulate(bar.block.low, k, low)
        accumulate(bar.block.high, k, high)
    return e, old
