"""What the rows of a block feel of all impulses: E p, from their sums at joints and the motions of roots."""

from .....algebra.spatial import work as motion_work
from .....compiler.kernel import inlined
from .....compiler.trace import traced
from ...operators import zero3
from .paths import three


def plus_of_joint(felt, effort, D_inv, pushed):
    return tuple(f + e * (D_inv * pushed) for f, e in zip(felt, effort, strict=True))


def plus_of_root(felt, at_root, motion):
    return tuple(f + motion_work(motion, row) for f, row in zip(felt, three(at_root), strict=True))


@traced
def felt_at_joint(felt, effort, D_inv, pushed):
    return plus_of_joint(felt, effort, D_inv, pushed)


@traced
def felt_at_root(felt, at_root, motion):
    return plus_of_root(felt, at_root, motion)


@inlined
def felt_by(frame, pushed, motion, k):
    """E p of a block's rows."""
    tree, block = frame.tree, frame.block
    felt = zero3(frame.params.world_dt[0])
    for side in range(2 * k, 2 * k + 2):
        first = tree.path_first[block.body[side]]
        for j in range(block.fork[side], tree.path_length[block.body[side]]):
            d = tree.path[first + j]
            felt = felt_at_joint(felt, block.effort[side * tree.most_path + j], frame.work.D_inv[d], pushed[d])
        if block.root[side] >= 0:
            felt = felt_at_root(felt, block.at_root[side], motion[block.root[side]])
    return felt
