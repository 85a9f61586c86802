"""Rows and masses as matrices over degrees of freedom: J column by column, M along paths, H = M + J^T D J and its factor.

Six columns of a free root are its spatial motion (world axes, about the reference point), all others the rates of joints. A
degree of freedom is coupled by M to those between it and its root, its chain, and by D to those that a block moves with it.
H is eliminated from the last degree of freedom to the first. Then a tree that touches only the world fills nothing in: its
neighbours are its chain (Featherstone 2008, sec. 6.5). Where blocks couple other branches or trees, neighbours are found anew
for the blocks of a pack. The order never changes, and what some lane does not have is an exact zero in it, so that the numbers of
a lane do not depend on its neighbours.
"""

from .....algebra import inertia
from .....algebra.spatial import add
from .....algebra.spatial import work as motion_work
from .....algebra.vector import dot
from .....compiler.elementary import inverse
from .....compiler.kernel import accumulate, inlined, kernel, sweep
from .....compiler.trace import traced
from .....model.arrays import FREE
from ...operators import zero
from .paths import is_of_joints, three
from .response import own_armature, weight_times

# columns -----------------------------------------------------------------------------------------------------------------


@traced
def column_of(S, rows):
    return tuple(motion_work(S, row) for row in three(rows))


@traced
def columns_of_root(rows):
    a, b, c = three(rows)
    return tuple((a[e], b[e], c[e]) for e in range(6))


@traced
def first_row(weight):
    return (weight, 0.0 * weight, 0.0 * weight)


@traced
def second_row(weight):
    return (0.0 * weight, weight, 0.0 * weight)


@traced
def third_row(weight):
    return (0.0 * weight, 0.0 * weight, weight)


@inlined
def put(frame, c, d, column):
    block = frame.block
    block.column_dof[c], block.column[c] = d, column
    return c + 1


@sweep
def side_columns(frame, side, c, first):
    """Columns of one side, from place `first` of its path on."""
    tree, block = frame.tree, frame.block
    body, rows = block.body[side], block.rows[side]
    start = tree.path_first[body]
    for j in range(first, tree.path_length[body]):
        d = tree.path[start + j]
        c = put(frame, c, d, column_of(frame.work.S[d], rows))
    return c


@sweep
def root_columns(frame, side, rows, c):
    tree = frame.tree
    body = frame.block.body[side]
    if body < tree.n_bodies:
        root = tree.tree_root[tree.body_tree[body]]
        if root >= 0:
            six, d = columns_of_root(rows), tree.dof[root]
            for e in range(6):
                c = put(frame, c, d + e, six[e])
    return c


@sweep
def body_columns(frame, k, c):
    """Of rows on two bodies; on one tree, joints and root that both hang on feel both."""
    tree, block = frame.tree, frame.block
    a, b = 2 * k, 2 * k + 1
    one, two = block.body[a], block.body[b]
    if one < tree.n_bodies and two < tree.n_bodies and tree.body_tree[one] == tree.body_tree[two]:
        both, start = plus18(block.rows[a], block.rows[b]), tree.path_first[one]
        c = root_columns(frame, a, both, c)
        for j in range(block.fork[b]):
            d = tree.path[start + j]
            c = put(frame, c, d, column_of(frame.work.S[d], both))
        c = side_columns(frame, a, c, block.fork[b])
        return side_columns(frame, b, c, block.fork[b])
    c = side_columns(frame, a, root_columns(frame, a, block.rows[a], c), 0)
    return side_columns(frame, b, root_columns(frame, b, block.rows[b], c), 0)


@traced
def plus18(a, b):
    return add(a, b)


@sweep
def joint_columns(frame, k, c):
    """Of rows of joints: each moves one degree of freedom, or two."""
    tree, block = frame.tree, frame.block
    r, w, o = 3 * block.source[k], block.weight[k], block.weight2[k]
    if tree.constraint_dof[r] >= 0:
        c = put(frame, c, tree.constraint_dof[r], first_row(w[0]))
    if tree.constraint_dof2[r] >= 0:
        c = put(frame, c, tree.constraint_dof2[r], first_row(o[0]))
    if tree.constraint_dof[r + 1] >= 0:
        c = put(frame, c, tree.constraint_dof[r + 1], second_row(w[1]))
    if tree.constraint_dof2[r + 1] >= 0:
        c = put(frame, c, tree.constraint_dof2[r + 1], second_row(o[1]))
    if tree.constraint_dof[r + 2] >= 0:
        c = put(frame, c, tree.constraint_dof[r + 2], third_row(w[2]))
    if tree.constraint_dof2[r + 2] >= 0:
        c = put(frame, c, tree.constraint_dof2[r + 2], third_row(o[2]))
    return c


@kernel
def columns(frame):
    """J of every block, as columns first[k] : first[k + 1]."""
    block = frame.block
    c = 0
    for k in range(block.n):
        block.first[k] = c
        c = joint_columns(frame, k, c) if is_of_joints(frame, k) else body_columns(frame, k, c)
    block.first[block.n] = c


# masses -----------------------------------------------------------------------------------------------------------------


@traced
def mass_between(S, F):
    return motion_work(S, F)


@traced
def own_mass(S, F, armature):
    return motion_work(S, F) + armature


@traced
def six_masses(I, armature, pose, reference):
    """Rows of a free root's composite inertia, with what its joint adds."""
    I = add(I, own_armature.fn(armature, pose, reference))
    unit = tuple(tuple(1.0 if i == j else 0.0 for j in range(6)) for i in range(6))
    return tuple(inertia.momentum(I, e) for e in unit)


@sweep
def root_masses(frame, b):
    tree, work, block = frame.tree, frame.work, frame.block
    rows = six_masses(block.composite[b], work.armature[tree.dof[b]], work.pose[b], work.pose[tree.reference[b]])
    for i in range(6):
        d = tree.dof[b] + i
        for j in range(i):
            block.mass[tree.chain_first[d] + j] = rows[i][j]
        block.own_mass[d] = rows[i][i]


@sweep
def joint_masses(frame, b, d):
    tree, work, block = frame.tree, frame.work, frame.block
    F, at, root = weight_times(block.composite[b], work.S[d]), tree.chain_first[d], tree.tree_root[tree.body_tree[b]]
    if root >= 0:
        for e in range(6):
            block.mass[at + e] = F[e]
        at += 6
    for p in range(at, tree.chain_first[d + 1]):
        block.mass[p] = mass_between(work.S[tree.chain[p]], F)
    block.own_mass[d] = own_mass(work.S[d], F, work.armature[d])


@kernel
def masses(frame):
    """M, each row along the chain of its degree of freedom."""
    tree, block = frame.tree, frame.block
    n = tree.n_bodies
    for b in range(n):
        block.composite[b] = frame.work.I[b]
    for b in range(n - 1, -1, -1):
        if tree.parent[b] < n:
            accumulate(block.composite, tree.parent[b], block.composite[b])
    for b in range(n):
        if tree.kind[b] == FREE:
            root_masses(frame, b)
        else:
            for d in range(tree.dof[b], tree.dof[b] + tree.n_dof[b]):
                joint_masses(frame, b, d)


@traced
def times(a, b):
    return a * b


@traced
def plus_times(total, a, b):
    return total + a * b


@sweep
def mass_times(frame, x, out):
    """out = M x."""
    tree, block = frame.tree, frame.block
    for d in range(tree.n_dofs):
        out[d] = times(block.own_mass[d], x[d])
    for d in range(tree.n_dofs):
        total = out[d]
        for p in range(tree.chain_first[d], tree.chain_first[d + 1]):
            i = tree.chain[p]
            total = plus_times(total, block.mass[p], x[i])
            out[i] = plus_times(out[i], block.mass[p], x[d])
        out[d] = total


# products with J --------------------------------------------------------------------------------------------------------


@traced
def plus_column(u, column, x):
    return tuple(a + c * x for a, c in zip(u, column, strict=True))


@traced
def less_column(g, column, x):
    return g - dot(column, x)


@inlined
def along_rows(frame, k, u, x):
    """u + J x of a block."""
    block = frame.block
    for c in range(block.first[k], block.first[k + 1]):
        u = plus_column(u, block.column[c], x[block.column_dof[c]])
    return u


@inlined
def take_from(frame, k, x, out):
    """out -= J^T x of a block."""
    block = frame.block
    for c in range(block.first[k], block.first[k + 1]):
        d = block.column_dof[c]
        out[d] = less_column(out[d], block.column[c], x)


# H ----------------------------------------------------------------------------------------------------------------------


@traced
def gained(D, column):
    return tuple(dot(D[3 * i : 3 * i + 3], column) for i in range(3))


@traced
def gained_with(D, column, cross, other):
    """The same of two blocks that share a law."""
    return tuple(dot(D[3 * i : 3 * i + 3], column) + dot(cross[3 * i : 3 * i + 3], other) for i in range(3))


@traced
def gained_with_back(D, column, cross, other):
    return tuple(
        dot(D[3 * i : 3 * i + 3], column) + sum(cross[3 * j + i] * other[j] for j in range(3)) for i in range(3)
    )


@traced
def plus_dot(h, a, b):
    return h + dot(a, b)


@traced
def plus_six_dots(h, column, others):
    return tuple(x + dot(column, g) for x, g in zip(h, others, strict=True))


@traced
def less_six(h, a, row):
    return tuple(x - a * y for x, y in zip(h, row, strict=True))


@inlined
def six_from(field, p):
    return field[p], field[p + 1], field[p + 2], field[p + 3], field[p + 4], field[p + 5]


@inlined
def put_six(field, p, six):
    for e in range(6):
        field[p + e] = six[e]


@inlined
def are_neighbours(block, e, last):
    """Whether six columns from e on are of neighbouring degrees of freedom, as those of roots are: they are moved together."""
    if e + 5 >= last or block.column_dof[e + 5] != block.column_dof[e] + 5:
        return False
    steps = 0
    for i in range(e, e + 5):
        if block.column_dof[i + 1] == block.column_dof[i] + 1:
            steps += 1
    return steps == 5


@inlined
def gather_block(frame, k):
    """H += J^T D J of a block, whose D J is in block.gained; the lower half."""
    block, n = frame.block, frame.tree.n_dofs
    first, last = block.first[k], block.first[k + 1]
    e = first
    while e < last:
        i = block.column_dof[e]
        if are_neighbours(block, e, last):
            others = six_from(block.gained, e)
            for c in range(first, last):
                d = block.column_dof[c]
                if d >= i + 5:
                    at = d * n + i
                    put_six(block.H, at, plus_six_dots(six_from(block.H, at), block.column[c], others))
                else:
                    for j in range(i, d + 1):
                        block.H[d * n + j] = plus_dot(block.H[d * n + j], block.column[c], block.gained[e + j - i])
            e += 6
        else:
            for c in range(first, last):
                d = block.column_dof[c]
                if d >= i:
                    block.H[d * n + i] = plus_dot(block.H[d * n + i], block.column[c], block.gained[e])
            e += 1


@inlined
def is_across(frame, k):
    """Whether a block moves degrees of freedom that may not be on one chain."""
    tree, block = frame.tree, frame.block
    return block.body[2 * k] < tree.n_bodies and block.body[2 * k + 1] < tree.n_bodies


@sweep
def start_neighbours(frame):
    """Chains, and what blocks couple besides."""
    tree, block = frame.tree, frame.block
    n = tree.n_dofs
    for p in range(n * n):
        block.is_near[p] = 0
    for d in range(n):
        for p in range(tree.chain_first[d], tree.chain_first[d + 1]):
            block.is_near[d * n + tree.chain[p]] = 1
    for k in range(block.n):
        for c in range(block.first[k], block.first[k + 1]):
            for e in range(block.first[k], block.first[k + 1]):
                if block.column_dof[e] < block.column_dof[c]:
                    block.is_near[block.column_dof[c] * n + block.column_dof[e]] = 1


@sweep
def list_near(frame, d, p):
    """The neighbours of d before it, in order, and what its elimination couples: all of them, by way of the last."""
    block = frame.block
    n, first = frame.tree.n_dofs, p
    for i in range(d):
        if block.is_near[d * n + i] != 0:
            block.near[p] = i
            p += 1
    if p > first:
        last = block.near[p - 1]
        for q in range(first, p - 1):
            block.is_near[last * n + block.near[q]] = 1
    return p


@kernel
def neighbours(frame):
    """Which entries of H there are, those that elimination fills in included."""
    tree, block = frame.tree, frame.block
    is_across_any = False
    for k in range(block.n):
        if not is_across_any and is_across(frame, k):
            is_across_any = True
    n, p = tree.n_dofs, 0
    if is_across_any:
        start_neighbours(frame)
        for d in range(n - 1, -1, -1):
            block.near_first[d] = p
            p = list_near(frame, d, p)
            block.near_last[d] = p
    else:
        for d in range(n):
            block.near_first[d] = p
            for q in range(tree.chain_first[d], tree.chain_first[d + 1]):
                block.near[p] = tree.chain[q]
                p += 1
            block.near_last[d] = p


@sweep
def start_H(frame):
    """H = M, and zero where something may come."""
    tree, block = frame.tree, frame.block
    n, nothing = tree.n_dofs, zero(frame.params.world_dt[0])
    for d in range(n):
        for p in range(block.near_first[d], block.near_last[d]):
            block.H[d * n + block.near[p]] = nothing
        for p in range(tree.chain_first[d], tree.chain_first[d + 1]):
            block.H[d * n + tree.chain[p]] = block.mass[p]
        block.H[d * n + d] = block.own_mass[d]


@traced
def inverse_of(x):
    return inverse(x)


@traced
def less_times(h, a, b):
    return h - a * b


@kernel
def factor(frame):
    """H = L^T diag L with unit L, in place; its diagonal becomes the inverse."""
    block = frame.block
    n = frame.tree.n_dofs
    for d in range(n - 1, -1, -1):
        row, first, last = d * n, block.near_first[d], block.near_last[d]
        own = inverse_of(block.H[row + d])
        block.H[row + d] = own
        for p in range(last - 1, first - 1, -1):
            i = block.near[p]
            a, other = times(block.H[row + i], own), i * n
            q = first
            while q <= p:
                j = block.near[q]
                if q + 5 <= p and block.near[q + 5] == j + 5:
                    six = less_six(six_from(block.H, other + j), a, six_from(block.H, row + j))
                    put_six(block.H, other + j, six)
                    q += 6
                else:
                    block.H[other + j] = less_times(block.H[other + j], a, block.H[row + j])
                    q += 1
            block.H[row + i] = a


@sweep
def solve(frame, x):
    """x becomes H^-1 x."""
    block = frame.block
    n = frame.tree.n_dofs
    for d in range(n - 1, -1, -1):
        for p in range(block.near_first[d], block.near_last[d]):
            i = block.near[p]
            x[i] = less_times(x[i], block.H[d * n + i], x[d])
    for d in range(n):
        total = times(block.H[d * n + d], x[d])
        for p in range(block.near_first[d], block.near_last[d]):
            i = block.near[p]
            total = less_times(total, block.H[d * n + i], x[i])
        x[d] = total
