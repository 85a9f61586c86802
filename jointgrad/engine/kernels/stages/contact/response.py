"""Impulses -> what they add to the rates, and what their cotangents pull on: rows, axes, inertias.

With Y = M^-1 J^T the step is qd_next = qd_free + Y x, A = J Y, b = J qd_free + ... . From lambda = M^-1 jump_bar and
S = A_bar + A_bar^T: M_bar = -Y S Y^T / 2 - lambda jump^T and J_bar = b_bar qd_free^T + x lambda^T + S Y^T. Only the
entries of M_bar between joints of one path count; they are pulled back through composite inertias, once for all rows
(Featherstone 2008, sec. 6.2, in one frame: M_ij = S_j . I_c S_i).
"""

from .....algebra import inertia
from .....algebra.spatial import add, moved_pose, scale
from .....algebra.spatial import work as motion_work
from .....algebra.vector import cross, dot, transposed_times
from .....compiler.kernel import accumulate, inlined, kernel, sweep
from .....compiler.reverse import adjoint
from .....compiler.trace import traced
from .....model.arrays import FREE
from ...operators import plus, zero, zero3, zero6, zero10, zero18
from ..articulated import accelerate
from .paths import IN_FIRST, joined, list_members, three


@traced
def together(rows, x):
    """Three spatial vectors, weighted."""
    a, b, c = three(rows)
    return tuple(x[0] * p + x[1] * q + x[2] * r for p, q, r in zip(a, b, c, strict=True))


@traced
def weighed(a, x):
    return dot(a, x[:3])


@traced
def free_rates(pose, arm, m):
    """Rates of a free joint whose body has motion m: linear in world axes, angular in its own."""
    return (*add(m[3:], cross(m[:3], arm)), *transposed_times(pose[:9], m[:3]))


@inlined
def push(frame, pushed, motion, k, x):
    """Add a block's impulses to the efforts at joints and the motions of roots."""
    tree, block = frame.tree, frame.block
    for side in range(2 * k, 2 * k + 2):
        first = tree.path_first[block.body[side]]
        for j in range(block.fork[side], tree.path_length[block.body[side]]):
            accumulate(pushed, tree.path[first + j], weighed(block.effort[side * tree.most_path + j], x))
        if block.root[side] >= 0:
            accumulate(motion, block.root[side], together(block.answer[side], (x[0], x[1], x[2])))


@sweep
def no_sums(frame, pushed, motion):
    """No efforts at joints, no motions of roots."""
    tree, params = frame.tree, frame.params
    for d in range(tree.n_dofs):
        pushed[d] = zero(params.world_dt[0])
    for b in range(tree.n_bodies + 1):
        motion[b] = zero6(params.world_dt[0])


@sweep
def sum_pushes(frame):
    """The sums of the impulses."""
    block = frame.block
    no_sums(frame, block.pushed, block.motion)
    for k in range(block.n):
        push(frame, block.pushed, block.motion, k, block.impulse[k])


@sweep
def joint_rates(frame, b):
    """What the sums add to the rates of a body's joint."""
    tree, work, block = frame.tree, frame.work, frame.block
    motion = block.motion[tree.parent[b]]
    for d in range(tree.dof[b], tree.dof[b] + tree.n_dof[b]):
        work.qd_jump[d], motion = accelerate(work.S[d], work.U[d], work.D_inv[d], block.pushed[d], motion)
    block.motion[b] = motion


@sweep
def rates(frame):
    """The same of all bodies."""
    tree, work = frame.tree, frame.work
    for b in range(tree.n_bodies):
        if tree.kind[b] == FREE:
            own = free_rates(work.pose[b], work.arm[b], frame.block.motion[b])
            for e in range(6):
                work.qd_jump[tree.dof[b] + e] = own[e]
        else:
            joint_rates(frame, b)


# the reverse: who answers what ------------------------------------------------------------------------------------------


@inlined
def effort_at(frame, side, d):
    """What a side's rows leave at any joint of its tree: nothing off its paths."""
    tree, block = frame.tree, frame.block
    place, L = tree.place[d], tree.most_path
    body = block.body[side]
    if place < tree.path_length[body] and tree.path[tree.path_first[body] + place] == d:
        return block.effort[side * L + place]
    other = side + 1
    if side % 2 == 0 and block.root[other] == IN_FIRST:
        body = block.body[other]
        if place < tree.path_length[body] and tree.path[tree.path_first[body] + place] == d:
            return block.effort[other * L + place]
    return zero3(frame.params.world_dt[0])


@traced
def answered(S, U, D_inv, effort, rows):
    """Rates of a joint, and motions of what it carries, for unit impulses of three rows."""
    rates = tuple((u - motion_work(U, m)) * D_inv for u, m in zip(effort, three(rows), strict=True))
    return rates, joined(add(m, scale(S, r)) for m, r in zip(three(rows), rates, strict=True))


@inlined
def answers(frame, bar, side, t):
    """Y: rates of every joint of the tree for unit impulses of a side's rows."""
    tree, work = frame.tree, frame.work
    n, base = tree.n_bodies, side * tree.most_dofs - tree.tree_dof[t]
    bar.block.Y_body[n] = zero18(frame.params.world_dt[0])
    for i in range(tree.tree_first[t], tree.tree_first[t + 1]):
        b = tree.tree_body[i]
        if tree.kind[b] == FREE:
            bar.block.Y_body[b] = frame.block.answer[side]
        else:
            rows = bar.block.Y_body[tree.parent[b]]
            for d in range(tree.dof[b], tree.dof[b] + tree.n_dof[b]):
                bar.block.Y[base + d], rows = answered(
                    work.S[d], work.U[d], work.D_inv[d], effort_at(frame, side, d), rows
                )
            bar.block.Y_body[b] = rows


@traced
def mixed(w, S, y):
    return tuple(w[i] + S[3 * i] * y[0] + S[3 * i + 1] * y[1] + S[3 * i + 2] * y[2] for i in range(3))


@traced
def mixed_rows(w, S, rows):
    a, b, c = three(rows)
    return joined(
        tuple(x + S[3 * i] * p + S[3 * i + 1] * q + S[3 * i + 2] * r for x, p, q, r in zip(own, a, b, c, strict=True))
        for i, own in enumerate(three(w))
    )


@inlined
def side_on(frame, s, t):
    """The side of block s that is on tree t, or -1."""
    tree, block = frame.tree, frame.block
    if tree.body_tree[block.body[2 * s]] == t:
        return 2 * s
    if tree.body_tree[block.body[2 * s + 1]] == t:
        return 2 * s + 1
    return -1


@inlined
def mix_with(frame, bar, S, side, other, t):
    """Add S Y^T of one coupling to W."""
    tree = frame.tree
    D, first = tree.most_dofs, tree.tree_dof[t]
    for d in range(tree.tree_dof[t + 1] - first):
        bar.block.W[side * D + d] = mixed(bar.block.W[side * D + d], S, bar.block.Y[other * D + d])
    if tree.tree_root[t] >= 0:
        bar.block.W_root[side] = mixed_rows(bar.block.W_root[side], S, frame.block.answer[other])


@inlined
def mixtures_of(frame, bar, side, t):
    """W = S Y^T for a side's rows."""
    tree, params, block = frame.tree, frame.params, frame.block
    k, D = side // 2, tree.most_dofs
    for d in range(tree.tree_dof[t + 1] - tree.tree_dof[t]):
        bar.block.W[side * D + d] = zero3(params.world_dt[0])
    bar.block.W_root[side] = zero18(params.world_dt[0])
    for p in range(block.first[k], block.first[k + 1]):
        other = side_on(frame, block.other[p], t)
        if other >= 0:
            mix_with(frame, bar, bar.block.A[p], side, other, t)


@sweep
def all_answers(frame, bar):
    block = frame.block
    list_members(frame)
    for t in range(frame.tree.n_trees):
        for i in range(block.member_first[t], block.member_first[t + 1]):
            answers(frame, bar, block.member[i], t)


@kernel
def mixtures(frame, bar):
    """Y and W of all sides, from bar.block.A."""
    block = frame.block
    all_answers(frame, bar)
    for t in range(frame.tree.n_trees):
        for i in range(block.member_first[t], block.member_first[t + 1]):
            mixtures_of(frame, bar, block.member[i], t)


# inertia ----------------------------------------------------------------------------------------------------------------


@traced
def weight_times(I, v):
    return inertia.momentum(I, v)


inertia_of_dyad = adjoint(weight_times, "I")


@traced
def root_pull(I, rows, mixtures):
    """Cotangent of a free root's composite inertia from the answers of three rows."""
    total = (0.0,) * 10
    for z, w in zip(three(rows), three(mixtures), strict=True):
        total = add(total, inertia_of_dyad(I, z, scale(w, -0.5)))
    return total


@traced
def pull_start(g_i, g_j, mu_i, mu_j):
    return mu_i * g_j + mu_j * g_i


@traced
def pull_more(m, y, w):
    return m - dot(y, w)


@traced
def half(x):
    return 0.5 * x


@traced
def root_start(g, m, g_i, mu_i):
    return add(scale(m, g_i), scale(g, mu_i))


@traced
def root_more(f, w_root, y):
    a, b, c = three(w_root)
    return tuple(x - y[0] * p - y[1] * q - y[2] * r for x, p, q, r in zip(f, a, b, c, strict=True))


@traced
def scaled(a, s):
    return scale(a, s)


@traced
def plus_scaled(a, b, s):
    return add(a, scale(b, s))


@traced
def axis_and_inertia(I, S, f_bar):
    """Cotangents of F = I S."""
    return inertia.momentum(I, f_bar), inertia_of_dyad(I, S, f_bar)


@traced
def own_armature(armature, pose, reference, delta=(0.0,) * 6):
    """The inertia that a free joint itself adds, which moves with its body."""
    arm = tuple(p - r for p, r in zip(pose[9:], reference[9:], strict=True))
    arm = add(arm, add(cross(delta[:3], arm), delta[3:]))
    return inertia.about_origin(armature, arm, (armature, 0.0, 0.0, armature, 0.0, armature))


own_armature_adjoint = adjoint(own_armature, "armature delta", at_zero="delta")


@traced
def moved_inertia(pose, arm, I_body, delta=(0.0,) * 6):
    return inertia.carried(moved_pose((*pose[:9], *arm), delta), I_body)


moved_inertia_adjoint = adjoint(moved_inertia, "delta I_body", at_zero="delta")


@sweep
def composites(frame, bar, t):
    tree = frame.tree
    for i in range(tree.tree_first[t], tree.tree_first[t + 1]):
        b = tree.tree_body[i]
        bar.block.composite[b] = frame.work.I[b]
        bar.block.composite_bar[b] = zero10(frame.params.world_dt[0])
    for i in range(tree.tree_first[t + 1] - 1, tree.tree_first[t] - 1, -1):
        b = tree.tree_body[i]
        if tree.parent[b] < tree.n_bodies:
            accumulate(bar.block.composite, tree.parent[b], bar.block.composite[b])


@sweep
def pull_root(frame, bar, t):
    tree, work, block = frame.tree, frame.work, frame.block
    root = tree.tree_root[t]
    I = bar.block.composite[root]
    I_bar = inertia_of_dyad(I, block.motion[root], frame.multiplier.m[root])
    for i in range(block.member_first[t], block.member_first[t + 1]):
        side = block.member[i]
        I_bar = plus(I_bar, root_pull(I, block.answer[side], bar.block.W_root[side]))
    accumulate(bar.block.composite_bar, root, I_bar)
    d = tree.dof[root]
    armature, force = own_armature_adjoint(work.armature[d], work.pose[root], work.pose[tree.reference[root]], I_bar)
    accumulate(bar.work.armature, d, armature)
    accumulate(bar.work.pose, root, force)


@inlined
def pull_joint(frame, bar, t, b, i):
    """M_bar between a degree of freedom i of body b and all on its path, pulled back to axes and composite inertia."""
    tree, work, multiplier, block = frame.tree, frame.work, frame.multiplier, frame.block
    D, first, root = tree.most_dofs, tree.tree_dof[t], tree.tree_root[t]
    F = weight_times(bar.block.composite[b], work.S[i])
    f_bar = zero6(frame.params.world_dt[0])
    if root >= 0:
        f_bar = root_start(block.motion[root], multiplier.m[root], work.qd_jump[i], multiplier.mu[i])
        for s in range(block.member_first[t], block.member_first[t + 1]):
            side = block.member[s]
            f_bar = root_more(f_bar, bar.block.W_root[side], bar.block.Y[side * D + i - first])
    path = tree.path_first[b]
    for place in range(tree.place[i] + 1):
        j = tree.path[path + place]
        m = pull_start(work.qd_jump[i], work.qd_jump[j], multiplier.mu[i], multiplier.mu[j])
        for s in range(block.member_first[t], block.member_first[t + 1]):
            side = block.member[s] * D - first
            m = pull_more(m, bar.block.Y[side + i], bar.block.W[side + j])
        if i == j:
            m = half(m)
            accumulate(bar.work.armature, i, m)
        accumulate(bar.work.S, j, scaled(F, m))
        f_bar = plus_scaled(f_bar, work.S[j], m)
    S_bar, I_bar = axis_and_inertia(bar.block.composite[b], work.S[i], f_bar)
    accumulate(bar.work.S, i, S_bar)
    accumulate(bar.block.composite_bar, b, I_bar)


@kernel
def inertia_adjoint(frame, bar):
    """Reads Y and W. Adds to the cotangents of axes, armatures, poses and inertias."""
    tree, work, block = frame.tree, frame.work, frame.block
    for t in range(tree.n_trees):
        if block.member_first[t + 1] > block.member_first[t]:
            composites(frame, bar, t)
            for i in range(tree.tree_first[t], tree.tree_first[t + 1]):
                b = tree.tree_body[i]
                if tree.kind[b] == FREE:
                    pull_root(frame, bar, t)
                else:
                    for d in range(tree.dof[b], tree.dof[b] + tree.n_dof[b]):
                        pull_joint(frame, bar, t, b, d)
            for i in range(tree.tree_first[t], tree.tree_first[t + 1]):
                b = tree.tree_body[i]
                if tree.parent[b] < tree.n_bodies:
                    accumulate(bar.block.composite_bar, b, bar.block.composite_bar[tree.parent[b]])
                force, I_bar = moved_inertia_adjoint(
                    work.pose[b], work.arm[b], frame.assembly.inertia[b], bar.block.composite_bar[b]
                )
                accumulate(bar.work.pose, b, force)
                if frame.call.wants_params != 0 or tree.n_mass_aims != 0:
                    accumulate(bar.assembly.inertia, b, I_bar)
