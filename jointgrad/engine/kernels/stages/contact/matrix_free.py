"""The same sweeps without the matrix: what all impulses do is kept as running sums over joints and free roots.

A = E F^T and what rows give: E holds the efforts that rows leave at the joints of their paths and their forces on free roots, F the
efforts divided by the joints' articulated inertias and the answers of the roots (rows.py). With the sums p = F^T x a row
feels E p, and an update adds F^T times its change to p: a sweep costs what its contacts cost, not their square.

The reverse walks back through the same sums, with others, P = F^T felt_bar, that run the other way. A_bar is not formed
either. response.py needs of it W = S Y^T with S = A_bar + A_bar^T; as A_bar is the sum over all updates of felt_bar x^T, and
as x is the sum of all earlier changes, W gathers felt_bar v^T + change V^T with the rates v = Y x and V = Y felt_bar.
"""

from .....algebra.spatial import add
from .....algebra.vector import dot
from .....compiler.kernel import accumulate, inlined, kernel, sweep
from .....compiler.trace import traced
from ...operators import less, plus, zero, zero3, zero4, zero9, zero18
from .clamping import clamp_margin, clamped, clamped_reverse, keep_side
from .felt import felt_by, plus_of_joint, plus_of_root
from .gauss_seidel import (
    changed,
    cone_steps_adjoint,
    finish,
    from_coupling,
    from_start,
    prepare,
    row_steps_adjoint,
    with_mirror,
)
from .give import diagonal_of, give_adjoint
from .jumps import answers_adjoint, impulses_adjoint, jumps
from .paths import IN_FIRST, POINT, joined, three
from .records import clamp_record, impulses_record
from .response import all_answers, mix_with, no_sums, push
from .rows import own_couplings


@traced
def tried(start, x, D, soft, felt):
    """x - D (A x + b)."""
    return tuple(s + p - d * (f + g * p) for s, p, d, g, f in zip(start, x[:3], D, soft, felt, strict=True))


@kernel
def matrix_free(frame):
    block = frame.block
    prepare(frame)
    no_sums(frame, block.pushed, block.motion)
    n, newest = block.n, zero4(frame.params.world_dt[0])
    for t in range(frame.tree.sweeps):
        for k in range(n):
            x = block.x[t * n + k]
            felt = felt_by(frame, block.pushed, block.motion, k)
            y = tried(block.start[k], x, block.D[k], block.soft[k], felt)
            newest = clamped(frame, k, x, y, newest)
            if block.hides[k] != 0:
                keep_side(frame, t, k, x, y, newest)
            block.x[(t + 1) * n + k] = newest
            push(frame, block.pushed, block.motion, k, changed(newest, x))
    finish(frame)


@sweep
def solve(frame):
    own_couplings(frame)
    matrix_free(frame)
    jumps(frame)


# the reverse ------------------------------------------------------------------------------------------------------------


@sweep
def begin(frame, bar):
    """The sums as the sweeps left them, none of the cotangents."""
    tree, block = frame.tree, frame.block
    nothing = frame.params.world_dt[0]
    no_sums(frame, bar.block.pulled, bar.block.pulled_motion)
    for d in range(tree.n_dofs):
        bar.block.pushed[d], bar.block.speed[d], bar.block.pulled_speed[d] = (
            block.pushed[d],
            frame.work.qd_jump[d],
            zero(nothing),
        )
    for b in range(tree.n_bodies):
        bar.block.motion[b] = block.motion[b]
    for k in range(block.n):
        bar.block.friction[k] = bar.block.low[k] = bar.block.high[k] = bar.block.D[k] = bar.block.e[k] = zero3(nothing)
        bar.block.A[k], bar.block.soft[k] = zero9(nothing), zero3(nothing)
        for side in range(2 * k, 2 * k + 2):
            bar.block.W_root[side] = zero18(nothing)
            for d in range(tree.most_dofs):
                bar.block.W[side * tree.most_dofs + d] = zero3(nothing)


# One walk over a block's joints reads the sums of impulses, which still hold the update, and those of cotangents, which do
# not yet; another takes the update off the first and adds to the second.


@traced
def both_at_joint(felt, pulls, effort, D_inv, pushed, pulled):
    return plus_of_joint(felt, effort, D_inv, pushed), plus_of_joint(pulls, effort, D_inv, pulled)


@traced
def both_at_root(felt, pulls, at_root, motion, pulled):
    return plus_of_root(felt, at_root, motion), plus_of_root(pulls, at_root, pulled)


@inlined
def both_felt_by(frame, bar, k):
    tree, block = frame.tree, frame.block
    felt = pulls = zero3(frame.params.world_dt[0])
    for side in range(2 * k, 2 * k + 2):
        first, root = tree.path_first[block.body[side]], block.root[side]
        for j in range(block.fork[side], tree.path_length[block.body[side]]):
            d = tree.path[first + j]
            felt, pulls = both_at_joint(
                felt,
                pulls,
                block.effort[side * tree.most_path + j],
                frame.work.D_inv[d],
                bar.block.pushed[d],
                bar.block.pulled[d],
            )
        if root >= 0:
            felt, pulls = both_at_root(
                felt, pulls, block.at_root[side], bar.block.motion[root], bar.block.pulled_motion[root]
            )
    return felt, pulls


@traced
def both_at(effort, change, felt_bar, pushed, pulled):
    return pushed - dot(effort, change), pulled + dot(effort, felt_bar)


@traced
def without(motion, answer, change):
    a, b, c = three(answer)
    return tuple(m - change[0] * p - change[1] * q - change[2] * r for m, p, q, r in zip(motion, a, b, c, strict=True))


@traced
def before_change(felt, A, soft, change):
    """What a block felt before it changed its own impulses."""
    own = tuple(dot(A[3 * i : 3 * i + 3], change) - soft[i] * change[i] for i in range(3))
    return tuple(f - o for f, o in zip(felt, own, strict=True))


@traced
def tried_reverse(x, D, soft, felt, e):
    """Cotangents of what a trial value is made of: the old impulse, the step, the give, what the row felt."""
    felt_bar = tuple(-(d * y) for d, y in zip(D, e, strict=True))
    D_bar = tuple(-((f + g * p) * y) for f, g, p, y in zip(felt, soft, x[:3], e, strict=True))
    old_bar = add(e, tuple(g * f for g, f in zip(soft, felt_bar, strict=True)))
    return old_bar, D_bar, tuple(f * p for f, p in zip(felt_bar, x[:3], strict=True)), felt_bar


@traced
def own_change(G, e, change, old_bar):
    """Later rows of a block saw the changes of the earlier ones, by G: cotangents of the old impulses, and of G."""
    old = (old_bar[0] - G[3] * e[1] - G[6] * e[2], old_bar[1] - G[7] * e[2], old_bar[2])
    return old, (0.0, 0.0, 0.0, e[1] * change[0], 0.0, 0.0, e[2] * change[0], e[2] * change[1], 0.0)


@traced
def own_cone_change(G, e, change, old_bar):
    """Both tangents of a cone saw the change of the normal impulse alone."""
    old = (old_bar[0] - G[3] * e[1] - G[6] * e[2], old_bar[1], old_bar[2])
    return old, (0.0, 0.0, 0.0, e[1] * change[0], 0.0, 0.0, e[2] * change[0], 0.0, 0.0)


@traced
def mixed_rate(w, y, speed, pulled, change, felt_bar):
    """W at one joint; the joint's rates before the update, and with what its cotangent pulls."""
    before = speed - dot(y, change)
    mixture = tuple(p + f * before + c * pulled for p, f, c in zip(w, felt_bar, change, strict=True))
    return mixture, before, pulled + dot(y, felt_bar)


@traced
def mixed_root(w, answer, motion, pulled, change, felt_bar):
    """The same at a free root."""
    before = without.fn(motion, answer, change)
    mixture = joined(
        tuple(p + f * m + c * q for p, m, q in zip(row, before, pulled, strict=True))
        for row, f, c in zip(three(w), felt_bar, change, strict=True)
    )
    return mixture, before, without.fn(pulled, answer, tuple(-f for f in felt_bar))


@inlined
def step_back(frame, bar, k, change, felt_bar):
    """Take an update off the sums, add its cotangents to theirs, and gather W on the way."""
    tree, block = frame.tree, frame.block
    D, L = tree.most_dofs, tree.most_path
    for side in range(2 * k, 2 * k + 2):
        body, root = block.body[side], block.root[side]
        path, t = tree.path_first[body], tree.body_tree[body]
        for j in range(block.fork[side], tree.path_length[body]):
            d = tree.path[path + j]
            bar.block.pushed[d], bar.block.pulled[d] = both_at(
                block.effort[side * L + j], change, felt_bar, bar.block.pushed[d], bar.block.pulled[d]
            )
        if t < tree.n_trees and root != IN_FIRST:
            own, first = side * D - tree.tree_dof[t], tree.tree_dof[t]
            if root >= 0:  # whose rates are kept as its motion
                first += 6
                bar.block.W_root[side], bar.block.motion[root], bar.block.pulled_motion[root] = mixed_root(
                    bar.block.W_root[side], block.answer[side], bar.block.motion[root], bar.block.pulled_motion[root], change,
                    felt_bar,
                )  # fmt: skip
            for d in range(first, tree.tree_dof[t + 1]):
                bar.block.W[own + d], bar.block.speed[d], bar.block.pulled_speed[d] = mixed_rate(
                    bar.block.W[own + d],
                    bar.block.Y[own + d],
                    bar.block.speed[d],
                    bar.block.pulled_speed[d],
                    change,
                    felt_bar,
                )


@sweep
def undo(frame, bar, t, k):
    """One update backwards."""
    block = frame.block
    x = block.x[t * block.n + k]
    change = changed(block.x[(t + 1) * block.n + k], x)
    felt, change_bar = both_felt_by(frame, bar, k)
    e, _ = clamped_reverse(frame, bar, t, k, plus(bar.block.impulse[k], change_bar))
    old_bar, D_bar, soft_bar, felt_bar = tried_reverse(
        x, block.D[k], block.soft[k], before_change(felt, block.A[k], block.soft[k], change), e
    )
    if block.kind[k] == POINT and frame.tree.is_cone != 0:
        old_bar, G_bar = own_cone_change(block.G[k], e, change, old_bar)
    else:
        old_bar, G_bar = own_change(block.G[k], e, change, old_bar)
    bar.block.impulse[k] = less(old_bar, change_bar)
    accumulate(bar.block.e, k, e)
    accumulate(bar.block.D, k, D_bar)
    accumulate(bar.block.soft, k, soft_bar)
    accumulate(bar.block.A, k, G_bar)
    step_back(frame, bar, k, change, felt_bar)


@sweep
def own_adjoint(frame, bar, k):
    """What a block's steps and its rows' sight of each other give its own 3 x 3 of A."""
    tree, block = frame.tree, frame.block
    bar.block.b[k], D_bar = from_start(block.D[k], block.b[k], bar.block.e[k])
    A_bar, D_bar = from_coupling(block.D[k], block.A[k], bar.block.A[k], plus(D_bar, bar.block.D[k]))
    bar.block.A[k] = A_bar
    if block.kind[k] == POINT and tree.is_cone != 0:
        accumulate(bar.block.A, k, cone_steps_adjoint(block.A[k], block.active[k], D_bar))
    else:
        accumulate(bar.block.A, k, row_steps_adjoint(block.A[k], block.active[k], D_bar))
    accumulate(bar.block.soft, k, diagonal_of(bar.block.A[k]))
    give_adjoint(frame, bar, k, k, bar.block.soft[k])
    S = with_mirror(bar.block.A[k], bar.block.A[k])
    for side in range(2 * k, 2 * k + 2):
        t = tree.body_tree[block.body[side]]
        if t < tree.n_trees and block.root[side] != IN_FIRST:
            mix_with(frame, bar, S, side, side, t)


@kernel
def matrix_free_adjoint(frame, bar):
    """Uses up bar.block.impulse. Leaves bar.block.b, give, friction and bounds; Y, W and W_root for the inertias."""
    block = frame.block
    all_answers(frame, bar)
    begin(frame, bar)
    for t in range(frame.tree.sweeps - 1, -1, -1):
        for k in range(block.n - 1, -1, -1):
            undo(frame, bar, t, k)
    for k in range(block.n):
        own_adjoint(frame, bar, k)


@sweep
def solve_adjoint(frame, bar):
    impulses_adjoint(frame, bar)
    matrix_free_adjoint(frame, bar)
    answers_adjoint(frame, bar)


# margins ------------------------------------------------------------------------------------------------------------------


@sweep
def tried_in(frame, t, k):
    """Trial values of block k in sweep t once more; one block after the other, for the sums follow."""
    block = frame.block
    x = block.x[t * block.n + k]
    felt = felt_by(frame, block.pushed, block.motion, k)
    push(frame, block.pushed, block.motion, k, changed(block.x[(t + 1) * block.n + k], x))
    return tried(block.start[k], x, block.D[k], block.soft[k], felt)


@sweep
def record_sweeps(frame, record):
    """Overwrites the sums."""
    block = frame.block
    no_sums(frame, block.pushed, block.motion)
    for t in range(frame.tree.sweeps):
        for k in range(block.n):
            value, code = clamp_margin(frame, t, k, tried_in(frame, t, k))
            record = clamp_record(frame, record, t, k, value, code)
    return impulses_record(frame, record)
