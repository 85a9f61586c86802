"""Blocks of three rows, and how the trees that they push on answer: efforts along paths, answers of free roots.

Everything is about the reference point of a tree in world axes, so that a row passes down its path unchanged but for
what the joints take (Featherstone 2008, sec. 7.3, on forces alone).
"""

from .....algebra import inertia
from .....algebra.spatial import scale, sub
from .....algebra.spatial import work as motion_work
from .....compiler.kernel import inlined, sweep
from .....compiler.trace import traced
from .....model.arrays import JOINT_CONSTRAINT
from ...operators import plus

# kinds of blocks: a point with Coulomb friction, its torsion and rolling, rows with fixed bounds
POINT, SPIN, BOUNDED = range(3)
# where a side's path ends: in no free body, or in the path of the block's first side
NOWHERE, IN_FIRST = -1, -2


def three(rows):
    return rows[:6], rows[6:12], rows[12:]


def joined(rows):
    return tuple(x for row in rows for x in row)


@traced
def passed(S, U, D_inv, rows):
    """Effort that each row leaves at a joint, and what of it goes on."""
    effort = tuple(motion_work(S, row) for row in three(rows))
    return effort, joined(sub(row, scale(U, D_inv * u)) for row, u in zip(three(rows), effort, strict=True))


@traced
def answer_of(F, rows):
    return joined(inertia.solve(F, row) for row in three(rows))


@sweep
def fork_of(frame, a, b):
    """How many joints from the root two bodies have in common."""
    tree = frame.tree
    j = 0
    first_a, first_b = tree.path_first[a], tree.path_first[b]
    most = min(tree.path_length[a], tree.path_length[b])
    while j < most and tree.path[first_a + j] == tree.path[first_b + j]:
        j += 1
    return j


@sweep
def root_of(frame, body):
    tree = frame.tree
    if body == tree.n_bodies:
        return NOWHERE
    return tree.tree_root[tree.body_tree[body]]


@sweep
def open_block(frame, kind, source, a, b):
    """A new block between two bodies; its number."""
    tree, block = frame.tree, frame.block
    k = block.n
    block.n = k + 1
    block.kind[k], block.source[k] = kind, source
    block.body[2 * k], block.body[2 * k + 1] = a, b
    block.fork[2 * k], block.fork[2 * k + 1] = 0, 0
    block.root[2 * k], block.root[2 * k + 1] = root_of(frame, a), root_of(frame, b)
    if a < tree.n_bodies and b < tree.n_bodies and tree.body_tree[a] == tree.body_tree[b]:
        block.fork[2 * k + 1] = fork_of(frame, a, b)
        block.root[2 * k + 1] = IN_FIRST
    return k


@inlined
def is_of_joints(frame, k):
    """Whether the rows of a block are those of joints, not of points or marks."""
    block = frame.block
    return block.kind[k] == BOUNDED and frame.tree.constraint_kind[block.source[k]] == JOINT_CONSTRAINT


@inlined
def along_path(frame, side, rows, last, first):
    """Carry rows down the path of a side, from place `last` to place `first`."""
    tree, work, block = frame.tree, frame.work, frame.block
    start = tree.path_first[block.body[side]]
    for j in range(last, first - 1, -1):
        d = tree.path[start + j]
        block.effort[side * tree.most_path + j], rows = passed(work.S[d], work.U[d], work.D_inv[d], rows)
    return rows


@inlined
def reach_roots(frame, k):
    """Efforts of a block's rows at all joints of its paths, force at and answer of its roots; the convex law asks for none."""
    tree, block = frame.tree, frame.block
    if tree.is_implicit != 0:
        return
    a, b = 2 * k, 2 * k + 1
    is_joined = block.root[b] == IN_FIRST
    fork = block.fork[b]
    f = along_path(frame, a, block.rows[a], tree.path_length[block.body[a]] - 1, fork)
    g = along_path(frame, b, block.rows[b], tree.path_length[block.body[b]] - 1, fork)
    if is_joined:
        f = along_path(frame, a, plus(f, g), fork - 1, 0)
    settle(frame, a, f)
    settle(frame, b, g)


@inlined
def settle(frame, side, rows):
    block = frame.block
    root = block.root[side]
    if root >= 0:
        block.at_root[side] = rows
        block.answer[side] = answer_of(frame.work.factor[root], rows)


@inlined
def tree_of(frame, side):
    """The tree that a side pushes on, or n_trees: none, or that of the block's first side, which this one is part of."""
    tree, block = frame.tree, frame.block
    if block.root[side] == IN_FIRST:
        return tree.n_trees
    return tree.body_tree[block.body[side]]


@sweep
def list_members(frame):
    """The sides on each tree in order: of tree t, member[member_first[t] : member_first[t + 1]]."""
    tree, block = frame.tree, frame.block
    for t in range(tree.n_trees + 1):
        block.member_first[t] = 0
    for side in range(2 * block.n):
        t = tree_of(frame, side)
        if t < tree.n_trees:
            block.member_first[t] = block.member_first[t] + 1
    for t in range(tree.n_trees):
        block.member_first[t + 1] = block.member_first[t + 1] + block.member_first[t]
    # from the end, so that an end becomes a beginning when its tree is full
    for side in range(2 * block.n - 1, -1, -1):
        t = tree_of(frame, side)
        if t < tree.n_trees:
            block.member_first[t] = block.member_first[t] - 1
            block.member[block.member_first[t]] = side
