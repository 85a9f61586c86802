"""From cotangents of a block's rows back to the bodies and joints that the rows push on: the reverse of paths.py.

J_bar = b_bar qd_free^T + x lambda^T + W, row by row along the paths. As J = S . row, it gives S_bar and the cotangent
of the row, a motion: what the row would have been multiplied with.
"""

from .....algebra.spatial import add, scale
from .....algebra.spatial import work as motion_work
from .....compiler.kernel import accumulate, sweep
from .....compiler.trace import traced
from ...operators import zero18
from .paths import IN_FIRST, joined, three
from .response import together


@traced
def row_motions(closing_bar, v, a_joints, dt, x, m, w):
    """Cotangents of three rows on a body: what each is multiplied with."""
    free = add(v, scale(a_joints, dt))
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
    rows, x = block.rows[side], block.impulse[k]
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
    return row_motions(closing_bar, work.v[body], work.a_joints[body], params.world_dt[0], x, multiplier.m[body], w)


@sweep
def sides_adjoint(frame, bar, k, closing_bar):
    tree, params, block = frame.tree, frame.params, frame.block
    a, b = zero18(params.world_dt[0]), zero18(params.world_dt[0])
    if block.body[2 * k] < tree.n_bodies:
        a = side_adjoint(frame, bar, k, 2 * k, closing_bar)
    if block.body[2 * k + 1] < tree.n_bodies:
        b = side_adjoint(frame, bar, k, 2 * k + 1, closing_bar)
    return a, b
