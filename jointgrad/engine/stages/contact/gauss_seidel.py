"""Projected Gauss-Seidel on the contact problem, block by block, and the same sweeps backwards.

Find x with a = A x + b, 0 <= a_n _|_ x_n >= 0, tangents within the friction of their own normal impulse (Qiao 2021,
eq. 5; A holds what rows give on its diagonal). A sweep is x <- clamp(y), y = G x + start, with G = I - D A, start = -D b and D
the step sizes: 1 / A_rr for a row of its own, so that its G_rr is zero. The fixed number of sweeps starts from zero.
A row without contact has D = 0 and stays exactly zero, forwards and backwards.

Impulses after every sweep are kept: with the scale that the cone left of the trial tangents they tell how each was
clamped, so that the reverse needs nothing else. It is that of what was computed, converged or not (Qiao 2021, supplement,
Algorithm 1, corrected).
"""

from ....compiler.elementary import clamp, inverse, maximum, root, safe_div, select
from ....compiler.kernel import accumulate, inlined, kernel, sweep
from ....compiler.reverse import adjoint
from ....compiler.trace import traced
from ...operators import plus, zero3, zero4, zero9
from .give import diagonal_of, give_adjoint
from .paths import POINT, SPIN

# a row that no impulse can move (a direction that the joints do not have) takes no part
IMMOVABLE = 1e-12
# stands in for a squared impulse of zero, whose root has no derivative
TINY = 1e-280


def reciprocal(a, active):
    counts = select(active > 0.5, a, 0.0) > IMMOVABLE
    return select(counts, inverse(select(counts, a, 1.0)), 0.0)


@traced
def row_steps(A, active):
    """A step per row that solves the row."""
    return tuple(reciprocal(A[4 * i], active[i]) for i in range(3))


@traced
def cone_steps(A, active):
    """One step for both tangents, or friction would not oppose the slip: trace / |A|^2 of their 2x2 block is the best one
    where that is isotropic or of rank one, and contracts wherever it is positive."""
    a, c, b = A[4], A[8], A[5]
    square = a * a + c * c + 2.0 * b * b
    counts = select(active[1] > 0.5, square, 0.0) > IMMOVABLE * IMMOVABLE
    step = select(counts, (a + c) * inverse(select(counts, square, 1.0)), 0.0)
    return reciprocal(A[0], active[0]), step, step


@traced
def started(D, b):
    return tuple(-(d * x) for d, x in zip(D, b, strict=True))


@traced
def coupled(D, A):
    """G between two blocks."""
    return tuple(-(D[i] * A[3 * i + j]) for i in range(3) for j in range(3))


@traced
def own_rows(D, A):
    """G of a block on itself where each row is solved by its step: no diagonal."""
    return tuple(0.0 if i == j else -(D[i] * A[3 * i + j]) for i in range(3) for j in range(3))


@traced
def own_cone(D, A):
    """G of a point on itself: the common step of the tangents leaves something on the diagonal."""
    G = list(own_rows.fn(D, A))
    for i in (1, 2):
        G[4 * i] = select(D[i] > 0.0, 1.0 - D[i] * A[4 * i], 0.0)
    return tuple(G)


# updates: from the impulses of a block and the trial values y that its neighbours (itself included) give it ---------------


@traced
def gathered(y, G, x):
    return tuple(y[i] + G[3 * i] * x[0] + G[3 * i + 1] * x[1] + G[3 * i + 2] * x[2] for i in range(3))


@traced
def cone_update(x, y, G, friction):
    """Normal first; the tangents see its change, and are scaled back onto the cone together."""
    n = maximum(y[0], 0.0)
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
    n = maximum(y[0], 0.0)
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


@traced
def bounded_update(x, y, G, low, high):
    s0 = clamp(y[0], low[0], high[0])
    s1 = clamp(y[1] + G[3] * (s0 - x[0]), low[1], high[1])
    s2 = clamp(y[2] + G[6] * (s0 - x[0]) + G[7] * (s1 - x[1]), low[2], high[2])
    return s0, s1, s2, 0.0 * s0


@sweep
def prepare(tree, params, block):
    for k in range(block.n):
        block.x[k] = zero4(params.world_dt[0])
        own = block.own[k]
        is_cone = block.kind[k] == POINT and tree.is_cone != 0
        if is_cone:
            block.D[k] = cone_steps(block.A[own], block.active[k])
        else:
            block.D[k] = row_steps(block.A[own], block.active[k])
        block.start[k] = started(block.D[k], block.b[k])
        for p in range(block.first[k], block.first[k + 1]):
            if p != own:
                block.G[p] = coupled(block.D[k], block.A[p])
        if is_cone:
            block.G[own] = own_cone(block.D[k], block.A[own])
        else:
            block.G[own] = own_rows(block.D[k], block.A[own])


@inlined
def clamped(tree, block, k, x, y, newest):
    """Impulses of block k from the old ones and their trial values; `newest` are those of block k - 1."""
    G, kind = block.G[block.own[k]], block.kind[k]
    if kind == POINT:
        if tree.is_cone != 0:
            return cone_update(x, y, G, block.friction[k])
        return pyramid_update(x, y, G, block.friction[k])
    if kind == SPIN:
        return spin_update(x, y, G, block.friction[k], newest)
    return bounded_update(x, y, G, block.low[k], block.high[k])


@traced
def changed(x, before):
    return tuple(p - q for p, q in zip(x[:3], before[:3], strict=True))


@inlined
def update(tree, block, t, k, newest):
    """Impulses of block k after sweep t + 1; `newest` are those of block k - 1."""
    n, own, last = block.n, block.own[k], block.own[k] - 1
    y = block.start[k]
    # those from k on are as the last sweep left them; those before it are new, the newest last: y waits for that one
    for p in range(own, block.first[k + 1]):
        y = gathered(y, block.G[p], block.x[t * n + block.other[p]])
    for p in range(block.first[k], last):
        y = gathered(y, block.G[p], block.x[(t + 1) * n + block.other[p]])
    if last >= block.first[k]:
        # not by way of memory where it can be helped
        y = gathered(
            y, block.G[last], newest if block.other[last] == k - 1 else block.x[(t + 1) * n + block.other[last]]
        )
    return clamped(tree, block, k, block.x[t * n + k], y, newest)


@kernel
def sweeps(tree, params, block):
    prepare(tree, params, block)
    newest = zero4(params.world_dt[0])
    for t in range(tree.sweeps):
        for k in range(block.n):
            newest = update(tree, block, t, k, newest)
            block.x[(t + 1) * block.n + k] = newest


# the reverse: from the last sweep to the first, block after block backwards -----------------------------------------------
# e is the cotangent of a trial value; each update returns it, that of the old impulses of the same block, and of its bounds


def own_past(G, e):
    """Cotangent of the block's old impulses, which entered the trial values of the rows before them."""
    return 0.0, G[1] * e[0], G[2] * e[0] + G[5] * e[1]


@traced
def cone_update_reverse(x, x_bar, G, friction):
    part, most = x[3], friction[0] * x[0]
    # along the slip the impulse is the bound; across it the trial tangents are turned, and scaled by part
    direction = (safe_div(x[1], most), safe_div(x[2], most))
    along = direction[0] * x_bar[1] + direction[1] * x_bar[2]
    slips = 1.0 > part
    e1, e2 = (select(slips, part * (x_bar[i] - direction[i - 1] * along), x_bar[i]) for i in (1, 2))
    most_bar = select(slips, along, 0.0)
    e0 = select(x[0] > 0.0, x_bar[0] + G[3] * e1 + G[6] * e2 + friction[0] * most_bar, 0.0)
    old = (0.0 * e0, G[1] * e0 + G[4] * e1 + G[7] * e2, G[2] * e0 + G[5] * e1 + G[8] * e2)
    return (e0, e1, e2), old, (x[0] * most_bar, 0.0, 0.0)


def within(x, most, x_bar):
    """Cotangents of a trial value and of a symmetric bound: where the value is inside, all goes to the value."""
    is_inside = most > maximum(x, -x)
    return select(is_inside, x_bar, 0.0), select(is_inside, 0.0, select(x < 0.0, -x_bar, x_bar))


@traced
def pyramid_update_reverse(x, x_bar, G, friction):
    most = friction[0] * x[0]
    e2, most2 = within(x[2], most, x_bar[2])
    e1, most1 = within(x[1], most, x_bar[1] + G[7] * e2)
    most_bar = most1 + most2
    e0 = select(x[0] > 0.0, x_bar[0] + G[3] * e1 + G[6] * e2 + friction[0] * most_bar, 0.0)
    return (e0, e1, e2), own_past(G, (e0, e1, e2)), (x[0] * most_bar, 0.0, 0.0)


@traced
def spin_update_reverse(x, x_bar, G, friction, normal):
    turn, roll = friction[1] * normal[0], friction[2] * normal[0]
    e2, roll2 = within(x[2], roll, x_bar[2])
    e1, roll1 = within(x[1], roll, x_bar[1] + G[7] * e2)
    e0, turn_bar = within(x[0], turn, x_bar[0] + G[3] * e1 + G[6] * e2)
    roll_bar = roll1 + roll2
    normal_bar = friction[1] * turn_bar + friction[2] * roll_bar
    friction_bar = (0.0, normal[0] * turn_bar, normal[0] * roll_bar)
    return (e0, e1, e2), own_past(G, (e0, e1, e2)), friction_bar, (normal_bar, 0.0, 0.0)


def between(x, low, high, x_bar):
    is_high, is_low = x < high, low < x
    inside = select(is_high, select(is_low, x_bar, 0.0), 0.0)
    return inside, select(is_low, 0.0, x_bar), select(is_low, select(is_high, 0.0, x_bar), 0.0)


@traced
def bounded_update_reverse(x, x_bar, G, low, high):
    e2, low2, high2 = between(x[2], low[2], high[2], x_bar[2])
    e1, low1, high1 = between(x[1], low[1], high[1], x_bar[1] + G[7] * e2)
    e0, low0, high0 = between(x[0], low[0], high[0], x_bar[0] + G[3] * e1 + G[6] * e2)
    return (e0, e1, e2), own_past(G, (e0, e1, e2)), (low0, low1, low2), (high0, high1, high2)


@traced
def returned(x_bar, G, e):
    """What an impulse receives of a trial value that it entered by G."""
    return tuple(x_bar[j] + G[j] * e[0] + G[3 + j] * e[1] + G[6 + j] * e[2] for j in range(3))


@inlined
def clamped_reverse(tree, block, block_bar, t, k, x_bar):
    """Cotangents of the trial values and of the old impulses that `update` saw; adds to those of bounds."""
    G, x, kind = block.G[block.own[k]], block.x[(t + 1) * block.n + k], block.kind[k]
    if kind == POINT:
        if tree.is_cone != 0:
            e, old, friction = cone_update_reverse(x, x_bar, G, block.friction[k])
        else:
            e, old, friction = pyramid_update_reverse(x, x_bar, G, block.friction[k])
        accumulate(block_bar.friction, k, friction)
    elif kind == SPIN:
        normal = block.x[(t + 1) * block.n + k - 1]
        e, old, friction, normal_bar = spin_update_reverse(x, x_bar, G, block.friction[k], normal)
        accumulate(block_bar.friction, k, friction)
        accumulate(block_bar.x, k - 1, normal_bar)
    else:
        e, old, low, high = bounded_update_reverse(x, x_bar, G, block.low[k], block.high[k])
        accumulate(block_bar.low, k, low)
        accumulate(block_bar.high, k, high)
    return e, old


@inlined
def update_adjoint(tree, block, block_bar, t, k):
    n, own = block.n, block.own[k]
    x_bar = block_bar.x[k]
    # the newest cotangents last
    if t + 1 < tree.sweeps:
        for p in range(own - 1, block.first[k] - 1, -1):
            x_bar = returned(x_bar, block.G[block.mirror[p]], block_bar.e[(t + 1) * n + block.other[p]])
    for p in range(block.first[k + 1] - 1, own, -1):
        x_bar = returned(x_bar, block.G[block.mirror[p]], block_bar.e[t * n + block.other[p]])
    block_bar.e[t * n + k], block_bar.x[k] = clamped_reverse(tree, block, block_bar, t, k, x_bar)


@kernel
def sweeps_adjoint(tree, params, block, block_bar):
    """Reads block_bar.x, cotangents of the last impulses. Overwrites those of trial values, friction and bounds."""
    for k in range(block.n):
        block_bar.friction[k] = block_bar.low[k] = block_bar.high[k] = zero3(params.world_dt[0])
    for t in range(tree.sweeps - 1, -1, -1):
        for k in range(block.n - 1, -1, -1):
            update_adjoint(tree, block, block_bar, t, k)


# A_bar from the two histories, once, after all sweeps -------------------------------------------------------------------


@traced
def plus_dyad(G_bar, e, x):
    return tuple(G_bar[3 * i + j] + e[i] * x[j] for i in range(3) for j in range(3))


@traced
def own_row_bar(late, early):
    """A row saw the new value of the rows before it, the old value of those after it, and not itself."""
    return tuple(late[3 * i + j] if j < i else early[3 * i + j] if j > i else 0.0 for i in range(3) for j in range(3))


@traced
def own_cone_bar(late, early):
    """The tangents saw the new normal impulse, and both their old values."""
    return tuple(
        0.0 if i == j == 0 else late[3 * i + j] if j == 0 else early[3 * i + j] for i in range(3) for j in range(3)
    )


@traced
def from_coupling(D, A, G_bar, D_bar):
    """Cotangents of A between blocks, and of D, from that of G."""
    A_bar = tuple(-(D[i] * G_bar[3 * i + j]) for i in range(3) for j in range(3))
    own = tuple(D_bar[i] - sum(A[3 * i + j] * G_bar[3 * i + j] for j in range(3)) for i in range(3))
    return A_bar, own


@traced
def from_start(D, b, start_bar):
    return tuple(-(d * x) for d, x in zip(D, start_bar, strict=True)), tuple(
        -(y * x) for y, x in zip(b, start_bar, strict=True)
    )


row_steps_adjoint = adjoint(row_steps, "A")
cone_steps_adjoint = adjoint(cone_steps, "A")


@traced
def with_mirror(A_bar, mirror):
    return tuple(A_bar[3 * i + j] + mirror[3 * j + i] for i in range(3) for j in range(3))


@inlined
def history(tree, params, block, block_bar, k, s, is_late):
    """Sum over sweeps of e_k x_s^T, with x_s from before or after the sweep."""
    n, total = block.n, zero9(params.world_dt[0])
    for t in range(tree.sweeps):
        x = block.x[(t + is_late) * n + s]
        total = plus_dyad(total, block_bar.e[t * n + k], (x[0], x[1], x[2]))
    return total


@kernel
def matrix_adjoint(tree, params, block, block_bar):
    """block_bar.b; block_bar.A as A_bar + A_bar^T, of every coupling; block_bar.give."""
    n = block.n
    for k in range(n):
        is_cone = block.kind[k] == POINT and tree.is_cone != 0
        start_bar = zero3(params.world_dt[0])
        for t in range(tree.sweeps):
            start_bar = plus(start_bar, block_bar.e[t * n + k])
        block_bar.b[k], D_bar = from_start(block.D[k], block.b[k], start_bar)
        own = block.own[k]
        for p in range(block.first[k], block.first[k + 1]):
            s = block.other[p]
            if s == k:
                late, early = (
                    history(tree, params, block, block_bar, k, s, 1),
                    history(tree, params, block, block_bar, k, s, 0),
                )
                G_bar = own_cone_bar(late, early) if is_cone else own_row_bar(late, early)
            else:
                G_bar = history(tree, params, block, block_bar, k, s, 1 if s < k else 0)
            block_bar.A[p], D_bar = from_coupling(block.D[k], block.A[p], G_bar, D_bar)
        if is_cone:
            accumulate(block_bar.A, own, cone_steps_adjoint(block.A[own], block.active[k], D_bar))
        else:
            accumulate(block_bar.A, own, row_steps_adjoint(block.A[own], block.active[k], D_bar))
        give_adjoint(tree, block, block_bar, k, own, diagonal_of(block_bar.A[own]))
    for k in range(n):
        for p in range(block.first[k], block.first[k + 1]):
            q = block.mirror[p]
            if q >= p:
                here, there = block_bar.A[p], block_bar.A[q]
                block_bar.A[p] = with_mirror(here, there)
                block_bar.A[q] = with_mirror(there, here)
