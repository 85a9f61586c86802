"""What contacts and ties give beyond the answer of the trees: compliance, a share of that answer, and softness (1/kg).

A point on the axis of a joint may have no answer to speak of, and would then ask for an impulse without bound. So to the answer of
a point is added a little of that which its trees would have if nothing held them: 1 / mass.
"""

from .....algebra.spatial import add
from .....compiler.elementary import inverse
from .....compiler.kernel import accumulate, inlined, sweep
from .....compiler.reverse import adjoint
from .....compiler.trace import traced
from .....model.arrays import JOINT_CONSTRAINT, WELD
from ...operators import zero
from .paths import BOUNDED, POINT, is_of_joints

# of the answer of a free tree
LOOSE = 0.1
# m
ARM = 0.1


@traced
def give_way(A, give):
    """What a point gives beyond the answer of the trees: a share of it, the same in all directions (some of which the joints may
    not have), and what knows no masses."""
    return (give[0] * ((1.0 / 3.0) * (A[0] + A[4] + A[8]) + give[2]) + give[1],) * 3


@traced
def give_way_each(A, give):
    """The same of joints, which have nothing to do with each other."""
    return tuple(give[0] * A[4 * i] + give[1] for i in range(3))


@traced
def plus_mass(total, inertia):
    return total + inertia[9]


@traced
def lightness_of(mass):
    return LOOSE * inverse(mass)


@traced
def sum_of(a, b):
    return a + b


@sweep
def lightnesses(frame):
    """Of every tree; none of the world."""
    tree, params, block = frame.tree, frame.params, frame.block
    for t in range(tree.n_trees):
        mass = zero(params.world_dt[0])
        for i in range(tree.tree_first[t], tree.tree_first[t + 1]):
            mass = plus_mass(mass, frame.work.I[tree.tree_body[i]])
        block.lightness[t] = lightness_of(mass)
    block.lightness[tree.n_trees] = zero(params.world_dt[0])


@inlined
def lightness_at(frame, k):
    """Of the trees that a block is between."""
    tree, block = frame.tree, frame.block
    a, b = tree.body_tree[block.body[2 * k]], tree.body_tree[block.body[2 * k + 1]]
    return sum_of(block.lightness[a], block.lightness[b])


@traced
def turning_lightness(lightness):
    """The same of what turns, with a radius of gyration of ARM."""
    return lightness * (1.0 / (ARM * ARM))


@traced
def softened(A, soft):
    return (A[0] + soft[0], *A[1:4], A[4] + soft[1], *A[5:8], A[8] + soft[2])


@inlined
def softness_of(frame, k, A):
    """What is added to the diagonal of a block's own A."""
    block = frame.block
    if is_of_joints(frame, k):
        return give_way_each(A, block.give[k])
    return give_way(A, block.give[k])


# the reverse ------------------------------------------------------------------------------------------------------------

give_way_adjoint = adjoint(give_way, "A give")
give_way_each_adjoint = adjoint(give_way_each, "A give")


@traced
def diagonal_of(A):
    return A[0], A[4], A[8]


def unsoftened(A, soft):
    return tuple(x - soft[j // 4] if j % 4 == 0 else x for j, x in enumerate(A))


@traced
def give_reverse(A, soft, give, soft_bar, A_bar):
    """Cotangents of what a block gives, and of its A before that."""
    answer_bar, give_bar = give_way_adjoint(unsoftened(A, soft), give, soft_bar)
    return give_bar, add(A_bar, answer_bar)


@traced
def give_each_reverse(A, soft, give, soft_bar, A_bar):
    answer_bar, give_bar = give_way_each_adjoint(unsoftened(A, soft), give, soft_bar)
    return give_bar, add(A_bar, answer_bar)


@inlined
def give_adjoint(frame, bar, k, own, soft_bar):
    """Adds to the cotangent of a block's own A; leaves that of what it gives."""
    block = frame.block
    A, soft, give, A_bar = block.A[own], block.soft[k], block.give[k], bar.block.A[own]
    if is_of_joints(frame, k):
        bar.block.give[k], bar.block.A[own] = give_each_reverse(A, soft, give, soft_bar, A_bar)
    else:
        bar.block.give[k], bar.block.A[own] = give_reverse(A, soft, give, soft_bar, A_bar)


@traced
def mass_bar_of(lightness, bar):
    """Of the mass, from the cotangent of LOOSE / mass."""
    return (*(0.0 * bar,) * 9, -(bar * lightness * lightness) * (1.0 / LOOSE))


@sweep
def lightness_adjoint(frame, bar):
    """Reads bar.block.give; adds to the cotangents of inertias."""
    tree, block = frame.tree, frame.block
    for t in range(tree.n_trees + 1):
        bar.block.lightness[t] = zero(frame.params.world_dt[0])
    for k in range(block.n):
        is_loop = (
            tree.is_implicit != 0
            and block.kind[k] == BOUNDED
            and tree.constraint_kind[block.source[k]] != JOINT_CONSTRAINT
        )
        if block.kind[k] == POINT or is_loop:
            mass_bar = bar.block.give[k][2]
            if is_loop and tree.constraint_kind[block.source[k]] == WELD:
                mass_bar = turning_lightness(mass_bar)
            for side in range(2 * k, 2 * k + 2):
                accumulate(bar.block.lightness, tree.body_tree[block.body[side]], mass_bar)
    for t in range(tree.n_trees):
        mass_bar = mass_bar_of(block.lightness[t], bar.block.lightness[t])
        for i in range(tree.tree_first[t], tree.tree_first[t + 1]):
            accumulate(bar.assembly.inertia, tree.tree_body[i], mass_bar)
