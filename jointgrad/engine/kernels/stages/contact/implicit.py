"""Contact solved to the end: the convex problem, its solution by Newton's method, and its reverse by the implicit function theorem.

With the gains D of the solution, H = M + J^T D J and y_bar, x_bar the cotangents of what impulses add to the velocities and of the
impulses themselves: lambda = H^-1 (y_bar - J^T D x_bar) and w = J lambda + x_bar. Then b_bar = -D w, J_bar = b_bar (v_free + y)^T +
x lambda^T, M_bar = -lambda y^T, and what the law reads besides (R, friction, bounds) has the cotangent of x(u) along w. One
factor, one solve; nothing of the iterations is kept. M_bar has rank one, so that inertias need no composites but those of the
rows of joints, whose compliance is a share of 1 / M_dd.
"""

from .....algebra import inertia
from .....algebra.spatial import add, scale
from .....algebra.vector import dot
from .....compiler.elementary import inverse, select
from .....compiler.kernel import accumulate, inlined, kernel, sweep
from .....compiler.trace import traced
from .....model.arrays import FREE
from ...operators import plus, zero, zero3, zero6, zero10
from ..articulated import joint_to_spatial
from .bounces import bounces_adjoint, product, restrain_bounces, with_square
from .clamping import hand_over
from .convex_law import (
    contact_give,
    contact_give_adjoint,
    joint_give,
    joint_give_adjoint,
    level_speed_adjoint,
    loop_give,
    loop_give_adjoint,
    point_impulse_adjoint,
    tie_impulse_adjoint,
    turning_impulse_adjoint,
)
from .implicit_margins import edge_of, has_edge, unsolved
from .joint_space import along_rows, columns, masses, neighbours, solve, take_from
from .newton import factorise, has_spin, keep_impulses, newton
from .paths import BOUNDED, IN_FIRST, POINT, SPIN, is_of_joints
from .records import name_of, seed_of, weight_of, with_impulse, with_margin
from .response import free_rates, inertia_of_dyad, moved_inertia_adjoint, own_armature_adjoint, weight_times

# what rows give ---------------------------------------------------------------------------------------------------------


@traced
def response_of(mass):
    return inverse(mass)


@sweep
def response_at(frame, r):
    """What the joint of row r of a tie would answer alone."""
    d = frame.tree.constraint_dof[r]
    return response_of(frame.block.own_mass[d]) if d >= 0 else zero(frame.params.world_dt[0])


@sweep
def responses(frame, k):
    r = 3 * frame.block.source[k]
    return (
        response_at(frame, r), response_at(frame, r + 1), response_at(frame, r + 2),
    )  # fmt: skip


@sweep
def gives(frame):
    """R of every row; D says which rows take part."""
    block = frame.block
    for k in range(block.n):
        block.D[k] = block.active[k]
        if is_of_joints(frame, k):
            block.soft[k] = joint_give(block.give[k], responses(frame, k), block.active[k])
        elif block.kind[k] == BOUNDED:
            block.soft[k] = loop_give(block.give[k])
        else:
            block.soft[k] = contact_give(block.give[k])


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
def motions(frame, x, out):
    """Motions of all bodies for given motions of roots and rates of joints."""
    tree = frame.tree
    out[tree.n_bodies] = zero6(frame.params.world_dt[0])
    for b in range(tree.n_bodies):
        d = tree.dof[b]
        if tree.kind[b] == FREE:
            out[b] = six_of(x, d)
        else:
            motion = out[tree.parent[b]]
            for e in range(d, d + tree.n_dof[b]):
                motion = carried(motion, frame.work.S[e], x[e])
            out[b] = motion


@sweep
def jump_of(frame):
    """What impulses add to the rates."""
    tree, work, block = frame.tree, frame.work, frame.block
    for b in range(tree.n_bodies):
        d = tree.dof[b]
        if tree.kind[b] == FREE:
            rates = free_rates(work.pose[b], work.arm[b], block.motion[b])
            for e in range(6):
                work.qd_jump[d + e] = rates[e]
        else:
            for e in range(d, d + tree.n_dof[b]):
                work.qd_jump[e] = block.y[e] if block.restrained == 0 else product(block.y[e], block.share[0])


@kernel
def implicit(frame):
    """Reads the blocks; leaves their impulses and work.qd_jump."""
    block = frame.block
    columns(frame)
    masses(frame)
    gives(frame)
    neighbours(frame)
    newton(frame)
    motions(frame, block.y, block.motion)
    if block.bounces != 0:
        restrain_bounces(frame)
    for k in range(block.n):
        hand_over(frame, k, block.x[k])
    jump_of(frame)


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
def start_multipliers(frame, bar):
    """y_bar, where lambda will be."""
    tree, work = frame.tree, frame.work
    for b in range(tree.n_bodies):
        d = tree.dof[b]
        if tree.kind[b] == FREE:
            force = force_on_root(work.pose[b], work.arm[b], six_of(bar.work.qd_jump, d))
            for e in range(6):
                bar.block.y[d + e] = force[e]
        else:
            for e in range(d, d + tree.n_dof[b]):
                bar.block.y[e] = bar.work.qd_jump[e]


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
def gain_times(frame, k, field):
    """D times three numbers of every block, for block k."""
    block = frame.block
    if block.kind[k] == SPIN:
        return times_gain_and_cross(block.gain[k], field[k], block.cross[k], field[k - 1])
    if block.kind[k] == POINT and has_spin(frame, k):
        return times_gain_and_cross_back(block.gain[k], field[k], block.cross[k + 1], field[k + 1])
    return times_gain(block.gain[k], field[k])


@sweep
def multipliers_of(frame, bar):
    """lambda, w = J lambda + x_bar in bar.block.e; minus lambda as the multipliers of joints and bodies."""
    multiplier, block = frame.multiplier, frame.block
    factorise(frame)
    for k in range(block.n):
        take_from(frame, k, gain_times(frame, k, bar.block.impulse), bar.block.y)
    solve(frame, bar.block.y)
    for k in range(block.n):
        bar.block.e[k] = along_rows(frame, k, bar.block.impulse[k], bar.block.y)
    for d in range(frame.tree.n_dofs):
        bar.block.y[d] = multiplier.mu[d] = minus(bar.block.y[d])
    motions(frame, bar.block.y, multiplier.m)


# what the law reads besides u -----------------------------------------------------------------------------------------------


@sweep
def point_law_adjoint(frame, bar, k):
    """Cotangents of friction, and of what the rows give."""
    params, block = frame.params, frame.block
    if has_spin(frame, k):
        R_bar, friction = turning_impulse_adjoint(
            block.u[k], block.u[k + 1], block.soft[k], block.friction[k], block.active[k], (bar.block.e[k], bar.block.e[k + 1])
        )  # fmt: skip
        bar.block.friction[k + 1], bar.block.give[k + 1] = zero3(params.world_dt[0]), zero3(params.world_dt[0])
    else:
        R_bar, friction = point_impulse_adjoint(
            block.u[k], block.soft[k], block.friction[k], block.active[k], bar.block.e[k]
        )
    bar.block.give[k], bar.block.friction[k] = contact_give_adjoint(block.give[k], R_bar), friction


@traced
def mass_bar_of(response, bar):
    return -(bar * response * response)


@sweep
def response_adjoint(frame, bar, r, own_bar):
    d = frame.tree.constraint_dof[r]
    if d >= 0:
        accumulate(bar.block.own_mass, d, mass_bar_of(response_of(frame.block.own_mass[d]), own_bar))


@sweep
def tie_law_adjoint(frame, bar, k):
    block = frame.block
    R_bar, bar.block.low[k], bar.block.high[k] = tie_impulse_adjoint(
        block.u[k], block.soft[k], block.low[k], block.high[k], block.active[k], bar.block.e[k]
    )
    if is_of_joints(frame, k):
        r = 3 * block.source[k]
        bar.block.give[k], bars = joint_give_adjoint(block.give[k], responses(frame, k), block.active[k], R_bar)
        response_adjoint(frame, bar, r, bars[0])
        response_adjoint(frame, bar, r + 1, bars[1])
        response_adjoint(frame, bar, r + 2, bars[2])
    else:
        bar.block.give[k] = loop_give_adjoint(block.give[k], R_bar)


@traced
def level_bar(active, b_bar):
    return select(active[0] > 0.5, b_bar[0], 0.0)


@sweep
def level_adjoint(frame, bar, k):
    block = frame.block
    b, closing, friction = level_speed_adjoint(
        block.b[k], block.closing[k], block.friction[k], level_bar(block.active[k], bar.block.b[k])
    )
    accumulate(bar.block.b, k, b)
    accumulate(bar.block.closing, k, closing)
    accumulate(bar.block.friction, k, friction)


@traced
def minus3(x):
    return tuple(-a for a in x)


@sweep
def laws_adjoint(frame, bar):
    """From w to the cotangents of b and all else that laws read. W is what J_bar has of b_bar y^T."""
    tree, block = frame.tree, frame.block
    nothing = frame.params.world_dt[0]
    for d in range(tree.n_dofs):
        bar.block.own_mass[d] = zero(nothing)
    for k in range(block.n):
        bar.block.b[k] = minus3(gain_times(frame, k, bar.block.e))
        if block.restrained == 0:
            bar.block.closing[k], bar.block.approach[k] = zero3(nothing), zero(nothing)
    for k in range(block.n):
        if block.kind[k] == BOUNDED:
            tie_law_adjoint(frame, bar, k)
        elif block.kind[k] == POINT:
            point_law_adjoint(frame, bar, k)
        keep_mixture(frame, bar, k)
        if block.kind[k] == POINT and tree.is_level != 0:
            level_adjoint(frame, bar, k)
        if block.restrained != 0:
            accumulate(bar.block.b, k, bar.block.demand[k])


@traced
def dyad_with(b_bar, motion):
    return tuple(b * m for b in b_bar for m in motion)


@traced
def times3(b_bar, rate):
    return tuple(b * rate for b in b_bar)


@sweep
def keep_mixture(frame, bar, k):
    """W of a block: b_bar y^T along its paths."""
    tree, block = frame.tree, frame.block
    whole, D = bar.block.b[k], tree.most_dofs
    if block.restrained != 0:
        whole = with_square(whole, block.x[k], bar.block.square[0])
    for side in range(2 * k, 2 * k + 2):
        body = block.body[side]
        if body < tree.n_bodies:
            t = tree.body_tree[body]
            own = side - 1 if block.root[side] == IN_FIRST else side
            base, start = own * D - tree.tree_dof[t], tree.path_first[body]
            for j in range(tree.path_length[body]):
                d = tree.path[start + j]
                bar.block.W[base + d] = times3(whole, block.y[d])
            if block.root[own] >= 0:
                bar.block.W_root[own] = dyad_with(whole, bar.block.motion[block.root[own]])


# inertias ---------------------------------------------------------------------------------------------------------------


@traced
def axis_bar(force, mu, other, rate):
    return add(scale(force, mu), scale(other, rate))


@traced
def own_mass_reverse(I, S, bar):
    """Cotangents of S . I S: of S, and of I."""
    return scale(inertia.momentum(I, S), 2.0 * bar), inertia_of_dyad(I, S, scale(S, bar))


@sweep
def start_inertias(frame, bar):
    """Each body on its own: cotangent of its inertia, and the forces of both motions."""
    work, multiplier = frame.work, frame.multiplier
    for b in range(frame.tree.n_bodies):
        a, m = bar.block.motion[b], multiplier.m[b]
        bar.block.composite_bar[b] = inertia_of_dyad(work.I[b], a, m)
        multiplier.force[b], multiplier.a_bar[b] = weight_times(work.I[b], a), weight_times(work.I[b], m)


@sweep
def root_inertia(frame, bar, b):
    """What a free joint itself adds to inertia."""
    tree, work = frame.tree, frame.work
    d = tree.dof[b]
    armature, force = own_armature_adjoint(
        work.armature[d], work.pose[b], work.pose[tree.reference[b]], bar.block.composite_bar[b]
    )
    accumulate(bar.work.armature, d, armature)
    accumulate(bar.work.pose, b, force)


@sweep
def joint_inertia(frame, bar, b, d):
    """What M_bar gives the axis and the armature of a joint; leaves what 1 / M_dd gives what it carries."""
    multiplier, block = frame.multiplier, frame.block
    S_bar = axis_bar(multiplier.force[b], multiplier.mu[d], multiplier.a_bar[b], block.y[d])
    accumulate(bar.work.S, d, S_bar)
    accumulate(bar.work.armature, d, product(multiplier.mu[d], block.y[d]))
    accumulate(bar.work.armature, d, bar.block.own_mass[d])
    S_bar, I_bar = own_mass_reverse(block.composite[b], frame.work.S[d], bar.block.own_mass[d])
    accumulate(bar.work.S, d, S_bar)
    accumulate(bar.block.composite, b, I_bar)


@kernel
def masses_adjoint(frame, bar):
    """M_bar = mu y^T, and of the diagonal bar.block.own_mass, to axes, armatures, poses and inertias."""
    tree, work, multiplier = frame.tree, frame.work, frame.multiplier
    n = tree.n_bodies
    start_inertias(frame, bar)
    for b in range(n):
        bar.block.composite[b] = zero10(frame.params.world_dt[0])
        if tree.kind[b] == FREE:
            root_inertia(frame, bar, b)
    for b in range(n - 1, -1, -1):
        if tree.kind[b] != FREE:
            for d in range(tree.dof[b], tree.dof[b] + tree.n_dof[b]):
                joint_inertia(frame, bar, b, d)
            if tree.parent[b] < n:
                accumulate(multiplier.force, tree.parent[b], multiplier.force[b])
                accumulate(multiplier.a_bar, tree.parent[b], multiplier.a_bar[b])
    for b in range(n):
        if tree.parent[b] < n:
            accumulate(bar.block.composite, b, bar.block.composite[tree.parent[b]])
        whole = plus(bar.block.composite_bar[b], bar.block.composite[b])
        force, I_bar = moved_inertia_adjoint(work.pose[b], work.arm[b], frame.assembly.inertia[b], whole)
        accumulate(bar.work.pose, b, force)
        if frame.call.wants_params != 0 or tree.n_mass_aims != 0:
            accumulate(bar.assembly.inertia, b, I_bar)


@kernel
def implicit_adjoint(frame, bar):
    """Reads bar.work.qd_jump and bar.block.wrench. Leaves cotangents of b, closing, friction, bounds, give, W, multipliers."""
    block = frame.block
    for k in range(block.n):
        bar.block.impulse[k] = (
            bar.block.wrench[k] if frame.call.wants_wrenches != 0 else zero3(frame.params.world_dt[0])
        )
    motions(frame, block.y, bar.block.motion)
    start_multipliers(frame, bar)
    if block.restrained != 0:
        keep_impulses(frame)
        for k in range(block.n):
            block.impulse[k] = block.whole[k]
        bounces_adjoint(frame, bar)
    multipliers_of(frame, bar)
    laws_adjoint(frame, bar)


@sweep
def solve_adjoint(frame, bar):
    implicit_adjoint(frame, bar)
    masses_adjoint(frame, bar)


# margins ------------------------------------------------------------------------------------------------------------------


@sweep
def record_solution(frame, record):
    """There is one outcome, and no sweeps."""
    block = frame.block
    for k in range(block.n):
        if has_edge(frame, k):
            value, code = edge_of(frame, k)
            record = with_margin(record, value, name_of(frame, k), 1.0, code, weight_of(seed_of(frame, k), 0))
    for k in range(block.n):
        record = with_impulse(record, block.x[k], unsolved(block.x[k], block.excess[0]))
    return record
