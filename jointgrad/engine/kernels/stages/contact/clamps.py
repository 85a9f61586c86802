"""How the trial values of a block are clamped, the same backwards, and how near a clamp was to acting otherwise.

Four kinds of block, one section each: a point with friction in a cone, or in a pyramid; turning; rows with bounds of their own.
A section says its bounds once; update, reverse and margin take them from there.

Impulses after a sweep, with the scale that the cone left of the trial tangents, tell how each was clamped: the reverse
needs nothing else. Only where a bound is zero they do not, because they are zero on either side of it: there the side on
which the trial value was is kept, too. The derivative by such a bound is the one towards friction. A trial value that lies on
a bound counts as clamped, in both ways of differentiating: what equal corners or a stop that is just reached often do.

In an update x are the old impulses of a block, y the trial values that its neighbours (itself included) give it, G what its own
rows give each other. In a reverse x are the new impulses, e is the cotangent of a trial value; it returns e, the cotangents of the
old impulses of the same block, and of its bounds. `side` is given where a bound is zero in some lane. A margin returns how far
the nearest trial value was from where its clamp changes, and a code of how each was clamped.
"""

from .....compiler.elementary import clamp, detach, inverse, maximum, minimum, root, safe_div, safe_norm, select
from .....compiler.trace import traced

# stands in for a squared impulse of zero, whose root has no derivative
TINY = 1e-280
FAR = float("inf")


def size_of(x):
    return maximum(x, -x)


def trial_of(i, x, y, G, new):
    """Trial value of row i, which sees the change of the rows before it."""
    total = y[i]
    for j in range(i):
        total = total + G[3 * i + j] * (new[j] - x[j])
    return total


def own_past(G, e):
    """Cotangent of the block's old impulses, which entered the trial values of the rows before them."""
    return 0.0, G[1] * e[0], G[2] * e[0] + G[5] * e[1]


def closed(bound, active):
    """1 where a row that takes part has a bound of zero."""
    return select(active > 0.5, select(bound > 0.0, 0.0, 1.0), 0.0)


def counted(D, distance):
    """A row without contact has no step size, and no margin."""
    return select(D > 0.0, distance, FAR)


def nearest(D, distances):
    a, b, c = (counted(d, m) for d, m in zip(D, distances, strict=True))
    return minimum(a, minimum(b, c))


def code_of(sides):
    return sides[0] + 3.0 * sides[1] + 9.0 * sides[2]


def sign_of(x):
    return select(x > 0.0, 1.0, select(x < 0.0, -1.0, 0.0))


@traced
def row_sides(x, y, G, new):
    """Sign of what the clamp took of each trial value: above its bounds, below them, or between."""
    return tuple(sign_of(trial_of(i, x, y, G, new) - new[i]) for i in range(3))


# symmetric bounds: the size of a row is at most `most` ------------------------------------------------------------------


def within(x, most, x_bar, side, k):
    """Cotangents of trial value k and of its symmetric bound: where the value is inside, all goes to the value."""
    is_inside = most > maximum(x[k], -x[k])
    to_bound = select(x[k] < 0.0, -x_bar, x_bar)
    if side is not None:
        to_bound = select(most > 0.0, to_bound, side[k] * x_bar)
    return select(is_inside, x_bar, 0.0), select(is_inside, 0.0, to_bound)


def beside(y, most):
    """Distance of a trial value from a symmetric bound, and on which side it is: inside 1, below 0, above 2. No bound where
    nothing presses: the row stays zero whatever is tried."""
    side = select(y > most, 2.0, select(-most > y, 0.0, 1.0))
    is_open = most > 0.0
    return select(is_open, size_of(size_of(y) - most), FAR), select(is_open, side, 0.0)


# a point in a cone: tangents together at most friction times the normal impulse -----------------------------------------


def cone_trial(x, y, G, normal):
    """Both tangents see the change of the normal impulse alone."""
    change = normal - x[0]
    return y[1] + G[3] * change, y[2] + G[6] * change


@traced
def cone_update(x, y, G, friction):
    """Normal first; the tangents see its change, and are scaled back onto the cone together."""
    n = maximum(0.0, y[0])
    # no normal impulse, no friction: the cone has closed
    most = friction[0] * n
    p1, p2 = cone_trial(x, y, G, n)
    # most / length as most length / length^2: the root and the quotient need not wait for each other
    square = maximum(p1 * p1 + p2 * p2, TINY)
    part = select(square > most * most, most * root(square) * inverse(square), 1.0)
    return n, part * p1, part * p2, part


@traced
def cone_sides(x, y, G, new):
    """Direction of the trial tangents, none where they are zero."""
    p1, p2 = cone_trial(x, y, G, new[0])
    length = safe_norm((p1, p2))
    return 0.0, safe_div(p1, length), safe_div(p2, length)


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


@traced
def cone_margin(x, y, G, friction, D):
    n = maximum(y[0], 0.0)
    most = friction[0] * n
    length = safe_norm(cone_trial(x, y, G, n))
    is_open = most > 0.0
    across = select(is_open, size_of(length - most), FAR)
    code = select(n > 0.0, 1.0, 0.0) + select(is_open, select(length > most, 2.0, 4.0), 0.0)
    return minimum(counted(D[0], size_of(y[0])), counted(D[1], across)), code


@traced
def cone_sticks(x):
    return select(1.0 > x[3], 0.0, 1.0)


# a point in a pyramid: each tangent at most friction times the normal impulse -------------------------------------------


@traced
def pyramid_update(x, y, G, friction):
    n = maximum(0.0, y[0])
    most = friction[0] * n
    t1 = clamp(trial_of(1, x, y, G, (n,)), -most, most)
    t2 = clamp(trial_of(2, x, y, G, (n, t1)), -most, most)
    return n, t1, t2, 0.0 * n


def pyramid_reverse(x, x_bar, G, friction, side=None):
    most = friction[0] * x[0]
    e2, most2 = within(x, most, x_bar[2], side, 2)
    e1, most1 = within(x, most, x_bar[1] + G[7] * e2, side, 1)
    most_bar = most1 + most2
    e0 = select(x[0] > 0.0, x_bar[0] + G[3] * e1 + G[6] * e2 + friction[0] * most_bar, 0.0)
    return (e0, e1, e2), own_past(G, (e0, e1, e2)), (x[0] * most_bar, 0.0, 0.0)


@traced
def pyramid_margin(x, y, G, friction, D, new):
    n = maximum(y[0], 0.0)
    most = friction[0] * n
    first, side1 = beside(trial_of(1, x, y, G, (n,)), most)
    second, side2 = beside(trial_of(2, x, y, G, (n, new[1])), most)
    code = select(n > 0.0, 1.0, 0.0) + 3.0 * side1 + 9.0 * side2
    return nearest(D, (size_of(y[0]), first, second)), code


@traced
def pyramid_sticks(x, friction):
    return select(friction[0] * x[0] > maximum(size_of(x[1]), size_of(x[2])), 1.0, 0.0)


# turning at a point: torsion and rolling at most their coefficients times the normal impulse of the point ---------------


def spin_bounds(friction, normal):
    turn, roll = friction[1] * normal[0], friction[2] * normal[0]
    return turn, roll, roll


@traced
def spin_update(x, y, G, friction, normal):
    new: tuple = ()
    for i, most in enumerate(spin_bounds(friction, normal)):
        new = (*new, clamp(trial_of(i, x, y, G, new), -most, most))
    return *new, 0.0 * new[0]


def spin_reverse(x, x_bar, G, friction, normal, side=None):
    turn, roll, _ = spin_bounds(friction, normal)
    e2, roll2 = within(x, roll, x_bar[2], side, 2)
    e1, roll1 = within(x, roll, x_bar[1] + G[7] * e2, side, 1)
    e0, turn_bar = within(x, turn, x_bar[0] + G[3] * e1 + G[6] * e2, side, 0)
    roll_bar = roll1 + roll2
    normal_bar = friction[1] * turn_bar + friction[2] * roll_bar
    friction_bar = (0.0, normal[0] * turn_bar, normal[0] * roll_bar)
    return (e0, e1, e2), own_past(G, (e0, e1, e2)), friction_bar, (normal_bar, 0.0, 0.0)


@traced
def spin_margin(x, y, G, friction, D, new, normal):
    found = [beside(trial_of(i, x, y, G, new), most) for i, most in enumerate(spin_bounds(friction, normal))]
    distances, sides = zip(*found, strict=True)
    return nearest(D, distances), code_of(sides)


# rows with bounds of their own: limits, dry friction, loops -------------------------------------------------------------


def held(y, low, high):
    """y between two bounds, its derivative that of a bound it lies on; none where it lies on both."""
    on_low = select(low > y, low, select(high > low, low, detach(y)))
    return select(y > low, select(high > y, y, high), on_low)


@traced
def bounded_update(x, y, G, low, high):
    new: tuple = ()
    for i in range(3):
        new = (*new, held(trial_of(i, x, y, G, new), low[i], high[i]))
    return *new, 0.0 * new[0]


def to_bounds(y, low, high):
    """Distance of a value from the nearer of two bounds."""
    return minimum(size_of(y - low), size_of(high - y))


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
def bounded_margin(x, y, G, low, high, D, new):
    trials = [trial_of(i, x, y, G, new) for i in range(3)]
    distances = [to_bounds(*row) for row in zip(trials, low, high, strict=True)]
    # what lies on a bound counts as clamped
    sides = [select(t > a, select(b > t, 1.0, 2.0), 0.0) for t, a, b in zip(trials, low, high, strict=True)]
    return nearest(D, distances), code_of([select(d > 0.0, s, 0.0) for d, s in zip(D, sides, strict=True)])


# where a bound is zero, and the reverses as operators, without and with `side` ------------------------------------------


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
