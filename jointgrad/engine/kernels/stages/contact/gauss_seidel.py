"""Projected Gauss-Seidel on the contact problem, block by block, and the same sweeps backwards.

Find x with a = A x + b, 0 <= a_n _|_ x_n >= 0, tangents within the friction of their own normal impulse (Qiao 2021,
eq. 5; A holds what rows give on its diagonal). A sweep is x <- clamp(y), y = G x + start, with G = I - D A, start = -D b and D
the step sizes: 1 / A_rr for a row of its own, so that its G_rr is zero. The fixed number of sweeps starts from zero.
A row without contact has D = 0 and stays exactly zero, forwards and backwards.

Impulses after every sweep are kept, so that the reverse is that of what was computed, converged or not (Qiao 2021,
supplement, Algorithm 1, corrected). How trial values are clamped, and the reverse of that, is in clamps.py. This form writes out
how every contact moves every other (A and G); matrix_free.py is the other.
"""

from .....compiler.elementary import inverse, select
from .....compiler.kernel import accumulate, inlined, kernel, sweep
from .....compiler.reverse import adjoint
from .....compiler.trace import traced
from ...operators import plus, zero3, zero4, zero9
from .clamping import clamp_margin, clamped, clamped_reverse, hand_over, hides, keep_side
from .give import diagonal_of, give_adjoint
from .jumps import answers_adjoint, impulses_adjoint, jumps
from .paths import POINT
from .records import clamp_record, impulses_record
from .response import mixtures
from .rows import couplings
from .settling import settle

# a row that no impulse can move (a direction that the joints do not have) takes no part
IMMOVABLE = 1e-12


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


@traced
def gathered(y, G, x):
    return tuple(y[i] + G[3 * i] * x[0] + G[3 * i + 1] * x[1] + G[3 * i + 2] * x[2] for i in range(3))


@sweep
def prepare(frame):
    block = frame.block
    for k in range(block.n):
        block.x[k], block.hides[k] = zero4(frame.params.world_dt[0]), hides(frame, k)
        own = block.own[k]
        is_cone = block.kind[k] == POINT and frame.tree.is_cone != 0
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


@traced
def changed(x, before):
    return tuple(p - q for p, q in zip(x[:3], before[:3], strict=True))


@inlined
def trial(frame, t, k, newest):
    """What the others give block k in sweep t; `newest` are the impulses of block k - 1."""
    block = frame.block
    n, own, last = block.n, block.own[k], block.own[k] - 1
    y = block.start[k]
    # those from k on are as the last sweep left them; those before it are new, the newest last: y waits for that one
    for p in range(own, block.first[k + 1] if t != 0 else own):
        y = gathered(y, block.G[p], block.x[t * n + block.other[p]])
    for p in range(block.first[k], last):
        y = gathered(y, block.G[p], block.x[(t + 1) * n + block.other[p]])
    if last >= block.first[k]:
        # not by way of memory where it can be helped
        y = gathered(
            y, block.G[last], newest if block.other[last] == k - 1 else block.x[(t + 1) * n + block.other[last]]
        )
    return y


@sweep
def finish(frame):
    """What the last sweep left is what the step goes on with."""
    block = frame.block
    settle(frame)
    for k in range(block.n):
        hand_over(frame, k, block.x[frame.tree.sweeps * block.n + k])


@sweep
def keep_sides(frame, k):
    """Of a block that hides them; out of the sweeps, which are where the time goes."""
    block = frame.block
    n = block.n
    for t in range(frame.tree.sweeps):
        newest = block.x[(t + 1) * n + k - 1] if k > 0 else zero4(frame.params.world_dt[0])
        keep_side(frame, t, k, block.x[t * n + k], trial(frame, t, k, newest), block.x[(t + 1) * n + k])


@kernel
def sweeps(frame):
    block = frame.block
    prepare(frame)
    newest = zero4(frame.params.world_dt[0])
    for t in range(frame.tree.sweeps):
        for k in range(block.n):
            newest = clamped(frame, k, block.x[t * block.n + k], trial(frame, t, k, newest), newest)
            block.x[(t + 1) * block.n + k] = newest
    for k in range(block.n):
        if block.hides[k] != 0:
            keep_sides(frame, k)
    finish(frame)


@sweep
def solve(frame):
    couplings(frame)
    sweeps(frame)
    jumps(frame)


# the reverse: from the last sweep to the first, block after block backwards -----------------------------------------------
@traced
def returned(x_bar, G, e):
    """What an impulse receives of a trial value that it entered by G."""
    return tuple(x_bar[j] + G[j] * e[0] + G[3 + j] * e[1] + G[6 + j] * e[2] for j in range(3))


@inlined
def update_adjoint(frame, bar, t, k):
    block = frame.block
    n, own = block.n, block.own[k]
    x_bar = bar.block.impulse[k]
    # the newest cotangents last
    if t + 1 < frame.tree.sweeps:
        for p in range(own - 1, block.first[k] - 1, -1):
            x_bar = returned(x_bar, block.G[block.mirror[p]], bar.block.e[(t + 1) * n + block.other[p]])
    for p in range(block.first[k + 1] - 1, own, -1):
        x_bar = returned(x_bar, block.G[block.mirror[p]], bar.block.e[t * n + block.other[p]])
    bar.block.e[t * n + k], bar.block.impulse[k] = clamped_reverse(frame, bar, t, k, x_bar)


@kernel
def sweeps_adjoint(frame, bar):
    """Uses up bar.block.impulse. Overwrites the cotangents of trial values, friction and bounds."""
    block = frame.block
    for k in range(block.n):
        bar.block.friction[k] = bar.block.low[k] = bar.block.high[k] = zero3(frame.params.world_dt[0])
    for t in range(frame.tree.sweeps - 1, -1, -1):
        for k in range(block.n - 1, -1, -1):
            update_adjoint(frame, bar, t, k)


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
def history(frame, bar, k, s, is_late):
    """Sum over sweeps of e_k x_s^T, with x_s from before or after the sweep."""
    block = frame.block
    n, total = block.n, zero9(frame.params.world_dt[0])
    for t in range(frame.tree.sweeps):
        x = block.x[(t + is_late) * n + s]
        total = plus_dyad(total, bar.block.e[t * n + k], (x[0], x[1], x[2]))
    return total


@kernel
def matrix_adjoint(frame, bar):
    """bar.block.b; bar.block.A as A_bar + A_bar^T, of every coupling; bar.block.give."""
    tree, block = frame.tree, frame.block
    n = block.n
    for k in range(n):
        is_cone = block.kind[k] == POINT and tree.is_cone != 0
        start_bar = zero3(frame.params.world_dt[0])
        for t in range(tree.sweeps):
            start_bar = plus(start_bar, bar.block.e[t * n + k])
        bar.block.b[k], D_bar = from_start(block.D[k], block.b[k], start_bar)
        own = block.own[k]
        for p in range(block.first[k], block.first[k + 1]):
            s = block.other[p]
            if s == k:
                late, early = history(frame, bar, k, s, 1), history(frame, bar, k, s, 0)
                G_bar = own_cone_bar(late, early) if is_cone else own_row_bar(late, early)
            else:
                G_bar = history(frame, bar, k, s, 1 if s < k else 0)
            bar.block.A[p], D_bar = from_coupling(block.D[k], block.A[p], G_bar, D_bar)
        if is_cone:
            accumulate(bar.block.A, own, cone_steps_adjoint(block.A[own], block.active[k], D_bar))
        else:
            accumulate(bar.block.A, own, row_steps_adjoint(block.A[own], block.active[k], D_bar))
        give_adjoint(frame, bar, k, own, diagonal_of(bar.block.A[own]))
    for k in range(n):
        for p in range(block.first[k], block.first[k + 1]):
            q = block.mirror[p]
            if q >= p:
                here, there = bar.block.A[p], bar.block.A[q]
                bar.block.A[p] = with_mirror(here, there)
                bar.block.A[q] = with_mirror(there, here)


@sweep
def solve_adjoint(frame, bar):
    impulses_adjoint(frame, bar)
    sweeps_adjoint(frame, bar)
    matrix_adjoint(frame, bar)
    mixtures(frame, bar)
    answers_adjoint(frame, bar)


# margins ------------------------------------------------------------------------------------------------------------------


@inlined
def tried_in(frame, t, k):
    """Trial values of block k in sweep t once more, all by way of memory."""
    block = frame.block
    n, y, own = block.n, block.start[k], block.own[k]
    for p in range(own, block.first[k + 1]):
        y = gathered(y, block.G[p], block.x[t * n + block.other[p]])
    for p in range(block.first[k], own):
        y = gathered(y, block.G[p], block.x[(t + 1) * n + block.other[p]])
    return y


@sweep
def record_sweeps(frame, record):
    for t in range(frame.tree.sweeps):
        for k in range(frame.block.n):
            value, code = clamp_margin(frame, t, k, tried_in(frame, t, k))
            record = clamp_record(frame, record, t, k, value, code)
    return impulses_record(frame, record)
