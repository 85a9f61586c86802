"""Contact solved to the end: the convex problem, its solution by Newton's method, and its reverse by the implicit function theorem.

With the gains D of the solution, H = M + J^T D J and y_bar, x_bar the cotangents of what impulses add to the velocities and of the
impulses themselves: lambda = H^-1 (y_bar - J^T D x_bar) and w = J lambda + x_bar. Then b_bar = -D w, J_bar = b_bar (v_free + y)^T +
x lambda^T, M_bar = -lambda y^T, and what the law reads besides (R, friction, bounds) has the cotangent of x(u) along w. One
factor, one solve; nothing of the iterations is kept. M_bar has rank one, so that inertias need no composites but those of the
rows of joints, whose compliance is a share of 1 / M_dd.
"""

from ....algebra import inertia
from ....algebra.spatial import add, scale
from ....algebra.vector import dot
from ....compiler.elementary import inverse, select
from ....compiler.kernel import accumulate, inlined, kernel, sweep
from ....compiler.reverse import adjoint
from ....compiler.trace import traced
from ....model.arrays import FREE
from ...operators import plus, zero, zero3, zero6, zero10
from ..articulated import joint_to_spatial
from .bounces import bounces_adjoint, product, restrain_bounces, with_square
from .convex_law import (
    joint_give,
    joint_give_adjoint,
    level_speed_adjoint,
    point_give,
    point_give_adjoint,
    point_impulse_adjoint,
    tie_impulse_adjoint,
    turning_impulse_adjoint,
)
from .joint_space import along_rows, columns, masses, neighbours, solve, take_from
from .newton import factorise, has_spin, keep_impulses, newton
from .paths import BOUNDED, IN_FIRST, POINT, SPIN, is_of_joints
from .response import free_rates, inertia_of_dyad, moved_inertia_adjoint, own_armature_adjoint, weight_times

# what rows give ---------------------------------------------------------------------------------------------------------


@traced
def response_of(mass):
    return inverse(mass)


@sweep
def response_at(tree, params, block, r):
    """What the joint of row r of a tie would answer alone."""
    d = tree.tie_dof[r]
    return response_of(block.own_mass[d]) if d >= 0 else zero(params.world_dt[0])


@sweep
def responses(tree, params, block, k):
    r = 3 * block.source[k]
    return (
        response_at(tree, params, block, r), response_at(tree, params, block, r + 1), response_at(tree, params, block, r + 2),
    )  # fmt: skip


@sweep
def gives(tree, params, block):
    """R of every row."""
    for k in range(block.n):
        if is_of_joints(tree, block, k):
            block.soft[k] = joint_give(block.give[k], responses(tree, params, block, k), block.active[k])
        else:
            block.soft[k] = point_give(block.give[k])


# forwards ---------------------------------------------------------------------------------------------------------------


@traced
def carried(motion, S, rate):
    return add(motion, scale(S, rate))


@traced
def six(a, b, c, d, e, f):
    return (a, b, c, d, e, f)


@sweep
def six_of(field, d):
    return six(field[d], field[d + 1], field[d + 2], field[d + 3], field[d + 4], field[d + 5])


@sweep
def motions(tree, params, work, x, out):
    """Motions of all bodies for given motions of roots and rates of joints."""
    out[tree.n_bodies] = zero6(params.world_dt[0])
    for b in range(tree.n_bodies):
        d = tree.dof[b]
        if tree.kind[b] == FREE:
            out[b] = six_of(x, d)
        else:
            motion = out[tree.parent[b]]
            for e in range(d, d + tree.n_dof[b]):
                motion = carried(motion, work.S[e], x[e])
            out[b] = motion


@sweep
def kick_of(tree, work, block):
    """What impulses add to the rates."""
    for b in range(tree.n_bodies):
        d = tree.dof[b]
        if tree.kind[b] == FREE:
            rates = free_rates(work.pose[b], work.arm[b], block.motion[b])
            for e in range(6):
                work.kick[d + e] = rates[e]
        else:
            for e in range(d, d + tree.n_dof[b]):
                work.kick[e] = block.y[e] if block.restrained == 0 else product(block.y[e], block.share[0])


@kernel
def implicit(tree, params, work, touch, block):
    """Reads the blocks; leaves their impulses and work.kick."""
    columns(tree, work, block)
    masses(tree, work, block)
    gives(tree, params, block)
    neighbours(tree, block)
    newton(tree, params, work, block)
    motions(tree, params, work, block.y, block.motion)
    if block.bounces != 0:
        restrain_bounces(tree, params, work, touch, block)
    kick_of(tree, work, block)


# the reverse ------------------------------------------------------------------------------------------------------------


@traced
def minus(x):
    return -x


@traced
def minus6(x):
    return tuple(-a for a in x)


@traced
def force_on_root(pose, arm, rates):
    """Cotangent of a free root's motion, from that of its rates."""
    return joint_to_spatial(pose, arm, rates[:3], rates[3:])


@sweep
def start_multipliers(tree, work, work_bar, block_bar):
    """y_bar, where lambda will be."""
    for b in range(tree.n_bodies):
        d = tree.dof[b]
        if tree.kind[b] == FREE:
            force = force_on_root(work.pose[b], work.arm[b], six_of(work_bar.kick, d))
            for e in range(6):
                block_bar.y[d + e] = force[e]
        else:
            for e in range(d, d + tree.n_dof[b]):
                block_bar.y[e] = work_bar.kick[e]


@traced
def times_gain(D, w):
    return tuple(dot(D[3 * i : 3 * i + 3], w) for i in range(3))


@traced
def times_gain_and_cross(D, w, cross, other):
    return tuple(dot(D[3 * i : 3 * i + 3], w) + dot(cross[3 * i : 3 * i + 3], other) for i in range(3))


@traced
def times_gain_and_cross_back(D, w, cross, other):
    return tuple(dot(D[3 * i : 3 * i + 3], w) + sum(cross[3 * j + i] * other[j] for j in range(3)) for i in range(3))


@inlined
def gain_times(block, k, field):
    """D times three numbers of every block, for block k."""
    if block.kind[k] == SPIN:
        return times_gain_and_cross(block.gain[k], field[k], block.cross[k], field[k - 1])
    if block.kind[k] == POINT and has_spin(block, k):
        return times_gain_and_cross_back(block.gain[k], field[k], block.cross[k + 1], field[k + 1])
    return times_gain(block.gain[k], field[k])


@sweep
def multipliers_of(tree, params, work, multiplier, block, block_bar):
    """lambda, w = J lambda + x_bar in block_bar.e; minus lambda as the multipliers of joints and bodies."""
    factorise(tree, params, block)
    for k in range(block.n):
        take_from(block, k, gain_times(block, k, block_bar.x), block_bar.y)
    solve(tree, block, block_bar.y)
    for k in range(block.n):
        block_bar.e[k] = along_rows(block, k, block_bar.x[k], block_bar.y)
    for d in range(tree.n_dofs):
        block_bar.y[d] = multiplier.mu[d] = minus(block_bar.y[d])
    motions(tree, params, work, block_bar.y, multiplier.m)


# what the law reads besides u -----------------------------------------------------------------------------------------------


@sweep
def point_law_adjoint(tree, params, block, block_bar, k):
    """Cotangents of friction, and of what the rows give."""
    if has_spin(block, k):
        R_bar, friction = turning_impulse_adjoint(
            block.u[k], block.u[k + 1], block.soft[k], block.friction[k], block.active[k], (block_bar.e[k], block_bar.e[k + 1])
        )  # fmt: skip
        block_bar.friction[k + 1], block_bar.give[k + 1] = zero3(params.world_dt[0]), zero3(params.world_dt[0])
    else:
        R_bar, friction = point_impulse_adjoint(
            block.u[k], block.soft[k], block.friction[k], block.active[k], block_bar.e[k]
        )
    block_bar.give[k], block_bar.friction[k] = point_give_adjoint(block.give[k], R_bar), friction


@traced
def mass_bar_of(response, bar):
    return -(bar * response * response)


@sweep
def response_adjoint(tree, block, block_bar, r, own_bar):
    d = tree.tie_dof[r]
    if d >= 0:
        accumulate(block_bar.own_mass, d, mass_bar_of(response_of(block.own_mass[d]), own_bar))


@sweep
def tie_law_adjoint(tree, params, block, block_bar, k):
    R_bar, block_bar.low[k], block_bar.high[k] = tie_impulse_adjoint(
        block.u[k], block.soft[k], block.low[k], block.high[k], block.active[k], block_bar.e[k]
    )
    if is_of_joints(tree, block, k):
        r = 3 * block.source[k]
        block_bar.give[k], bars = joint_give_adjoint(
            block.give[k], responses(tree, params, block, k), block.active[k], R_bar
        )
        response_adjoint(tree, block, block_bar, r, bars[0])
        response_adjoint(tree, block, block_bar, r + 1, bars[1])
        response_adjoint(tree, block, block_bar, r + 2, bars[2])
    else:
        block_bar.give[k] = point_give_adjoint(block.give[k], R_bar)


@traced
def level_bar(active, b_bar):
    return select(active[0] > 0.5, b_bar[0], 0.0)


@sweep
def level_adjoint(block, block_bar, k):
    b, closing, friction = level_speed_adjoint(
        block.b[k], block.closing[k], block.friction[k], level_bar(block.active[k], block_bar.b[k])
    )
    accumulate(block_bar.b, k, b)
    accumulate(block_bar.closing, k, closing)
    accumulate(block_bar.friction, k, friction)


@traced
def minus3(x):
    return tuple(-a for a in x)


@sweep
def laws_adjoint(tree, params, block, block_bar):
    """From w to the cotangents of b and all else that laws read. W is what J_bar has of b_bar y^T."""
    nothing = params.world_dt[0]
    for d in range(tree.n_dofs):
        block_bar.own_mass[d] = zero(nothing)
    for k in range(block.n):
        block_bar.b[k] = minus3(gain_times(block, k, block_bar.e))
        if block.restrained == 0:
            block_bar.closing[k], block_bar.approach[k] = zero3(nothing), zero(nothing)
    for k in range(block.n):
        if block.kind[k] == BOUNDED:
            tie_law_adjoint(tree, params, block, block_bar, k)
        elif block.kind[k] == POINT:
            point_law_adjoint(tree, params, block, block_bar, k)
        keep_mixture(tree, block, block_bar, k)
        if block.kind[k] == POINT and tree.is_level != 0:
            level_adjoint(block, block_bar, k)
        if block.restrained != 0:
            accumulate(block_bar.b, k, block_bar.demand[k])


@traced
def dyad_with(b_bar, motion):
    return tuple(b * m for b in b_bar for m in motion)


@traced
def times3(b_bar, rate):
    return tuple(b * rate for b in b_bar)


@sweep
def keep_mixture(tree, block, block_bar, k):
    """W of a block: b_bar y^T along its paths."""
    whole, D = block_bar.b[k], tree.most_dofs
    if block.restrained != 0:
        whole = with_square(whole, block.x[k], block_bar.square[0])
    for side in range(2 * k, 2 * k + 2):
        body = block.body[side]
        if body < tree.n_bodies:
            t = tree.body_tree[body]
            own = side - 1 if block.root[side] == IN_FIRST else side
            base, start = own * D - tree.tree_dof[t], tree.path_first[body]
            for j in range(tree.path_length[body]):
                d = tree.path[start + j]
                block_bar.W[base + d] = times3(whole, block.y[d])
            if block.root[own] >= 0:
                block_bar.W_root[own] = dyad_with(whole, block_bar.motion[block.root[own]])


# inertias ---------------------------------------------------------------------------------------------------------------


@traced
def axis_bar(force, mu, other, rate):
    return add(scale(force, mu), scale(other, rate))


@traced
def own_mass_reverse(I, S, bar):
    """Cotangents of S . I S: of S, and of I."""
    return scale(inertia.momentum(I, S), 2.0 * bar), inertia_of_dyad(I, S, scale(S, bar))


@sweep
def start_inertias(tree, work, multiplier, block_bar):
    """Each body on its own: cotangent of its inertia, and the forces of both motions."""
    for b in range(tree.n_bodies):
        a, m = block_bar.motion[b], multiplier.m[b]
        block_bar.composite_bar[b] = inertia_of_dyad(work.I[b], a, m)
        multiplier.force[b], multiplier.a_bar[b] = weight_times(work.I[b], a), weight_times(work.I[b], m)


@sweep
def root_inertia(tree, work, work_bar, block_bar, b):
    """What a free joint itself adds to inertia."""
    d = tree.dof[b]
    armature, force = own_armature_adjoint(
        work.armature[d], work.pose[b], work.pose[tree.reference[b]], block_bar.composite_bar[b]
    )
    accumulate(work_bar.armature, d, armature)
    accumulate(work_bar.pose, b, force)


@sweep
def joint_inertia(tree, work, work_bar, multiplier, block, block_bar, b, d):
    """What M_bar gives the axis and the armature of a joint; leaves what 1 / M_dd gives what it carries."""
    S_bar = axis_bar(multiplier.force[b], multiplier.mu[d], multiplier.a_bar[b], block.y[d])
    accumulate(work_bar.S, d, S_bar)
    accumulate(work_bar.armature, d, product(multiplier.mu[d], block.y[d]))
    accumulate(work_bar.armature, d, block_bar.own_mass[d])
    S_bar, I_bar = own_mass_reverse(block.composite[b], work.S[d], block_bar.own_mass[d])
    accumulate(work_bar.S, d, S_bar)
    accumulate(block_bar.composite, b, I_bar)


@kernel
def masses_adjoint(tree, params, assembly, assembly_bar, work, work_bar, multiplier, block, block_bar, call):
    """M_bar = mu y^T, and of the diagonal block_bar.own_mass, to axes, armatures, poses and inertias."""
    n = tree.n_bodies
    start_inertias(tree, work, multiplier, block_bar)
    for b in range(n):
        block_bar.composite[b] = zero10(params.world_dt[0])
        if tree.kind[b] == FREE:
            root_inertia(tree, work, work_bar, block_bar, b)
    for b in range(n - 1, -1, -1):
        if tree.kind[b] != FREE:
            for d in range(tree.dof[b], tree.dof[b] + tree.n_dof[b]):
                joint_inertia(tree, work, work_bar, multiplier, block, block_bar, b, d)
            if tree.parent[b] < n:
                accumulate(multiplier.force, tree.parent[b], multiplier.force[b])
                accumulate(multiplier.a_bar, tree.parent[b], multiplier.a_bar[b])
    for b in range(n):
        if tree.parent[b] < n:
            accumulate(block_bar.composite, b, block_bar.composite[tree.parent[b]])
        whole = plus(block_bar.composite_bar[b], block_bar.composite[b])
        force, I_bar = moved_inertia_adjoint(work.pose[b], work.arm[b], assembly.inertia[b], whole)
        accumulate(work_bar.pose, b, force)
        if call.wants_params != 0 or tree.n_mass_aims != 0:
            accumulate(assembly_bar.inertia, b, I_bar)


@kernel
def implicit_adjoint(
    tree, params, assembly_bar, work, work_bar, multiplier, touch, block, block_bar, call
):  # fmt: skip
    """Reads work_bar.kick and block_bar.load. Leaves the cotangents of b, closing, friction, bounds and give, W and multipliers."""
    for k in range(block.n):
        block_bar.x[k] = block_bar.load[k] if call.wants_loads != 0 else zero3(params.world_dt[0])
    motions(tree, params, work, block.y, block_bar.motion)
    start_multipliers(tree, work, work_bar, block_bar)
    if block.restrained != 0:
        keep_impulses(block)
        bounces_adjoint(tree, params, assembly_bar, work, touch, block, block_bar, call)
    multipliers_of(tree, params, work, multiplier, block, block_bar)
    laws_adjoint(tree, params, block, block_bar)
