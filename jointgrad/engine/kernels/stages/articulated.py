"""Joint and body forces -> joint accelerations, by the articulated-body algorithm (Featherstone 2008, ch. 7; Qiao 2021, sec. 4.1).

All in world axes about one point per tree, so that inertias and forces pass from child to parent by addition. Forces
start from those of inverse dynamics with still joints, so that elimination only finds what the joints add (`a_joints`). A
joint with several degrees of freedom is eliminated one at a time; a free body is solved as a whole.

The reverse does not retrace the recursion. With mu = -M^-1 qdd_bar, from the factors at hand, every cotangent is that of
inverse dynamics along mu: tau = S . (sum of I a + v x* I v - f) + armature qdd.
"""

from ....algebra import inertia
from ....algebra.spatial import add, cross_force, motion_in_body, neg, scale, sub
from ....algebra.spatial import work as motion_work
from ....algebra.vector import cross, times, transposed_times
from ....compiler.elementary import inverse
from ....compiler.kernel import accumulate, inlined, kernel, sweep
from ....compiler.reverse import adjoint
from ....compiler.trace import traced
from ....model.arrays import FREE
from ..operators import less, plus, zero, zero6

READS = (
    "work.pose", "work.arm", "work.S", "work.v", "work.c", "work.armature", "work.tau", "work.f", "assembly.inertia",
)  # fmt: skip
WRITES = (
    "work.I", "work.IA", "work.pA", "work.U", "work.D_inv", "work.u", "work.factor", "work.a_joints", "work.qdd",
)  # fmt: skip


def bias_force(I, v):
    return cross_force(v, inertia.momentum(I, v))


@traced
def net_force(I, v, a):
    """What moves a body with velocity v and acceleration a."""
    return add(inertia.momentum(I, a), bias_force(I, v))


@traced
def inertia_in_world(pose, arm, I_body):
    return inertia.carried((*pose[:9], *arm), I_body)


@traced
def as_articulated(I):
    return inertia.articulated(I)


# elimination in two operators: between them the inertia is read again rather than held in registers that are not there


@traced
def felt(S, armature, tau, IA, pA):
    """What one degree of freedom feels of all it carries: inertia and force."""
    U = inertia.articulated_times(IA, S)
    return U, inverse(motion_work(U, S) + armature), tau - motion_work(S, pA)


@traced
def felt_last(S, armature, tau, I, pA):
    """The same for a body that carries no other."""
    U = inertia.momentum(I, S)
    return U, inverse(motion_work(U, S) + armature), tau - motion_work(S, pA)


@traced
def passed_on(U, D_inv, u, IA, pA):
    """Inertia and force that are left for those below, once the degree of freedom may move."""
    Ud = scale(U, D_inv)
    return inertia.less_dyad(IA, U, Ud), add(pA, scale(Ud, u))


@traced
def passed_on_last(U, D_inv, u, I, pA):
    return passed_on.fn(U, D_inv, u, inertia.articulated(I), pA)


@traced
def accelerate(S, U, D_inv, u, a):
    qdd = (u - motion_work(U, a)) * D_inv
    return qdd, add(a, scale(S, qdd))


def joint_to_spatial(pose, arm, linear, angular):
    """A force on a free joint (linear in world axes, angular in body axes), about the reference point."""
    return (*add(times(pose[:9], angular), cross(arm, linear)), *linear)


@traced
def free_acceleration(pose, arm, armature, IA, pA, l0, l1, l2, a0, a1, a2):
    """A free body: factor of its inertia, what its joint adds to its acceleration, and qdd."""
    own = (armature, 0.0, 0.0, armature, 0.0, armature)
    F = inertia.factor(add(IA, inertia.articulated(inertia.about_origin(armature, arm, own))))
    a_joints = inertia.solve(F, sub(joint_to_spatial(pose, arm, (l0, l1, l2), (a0, a1, a2)), pA))
    return F, a_joints, (*add(a_joints[3:], cross(a_joints[:3], arm)), *transposed_times(pose[:9], a_joints[:3]))


@sweep
def start(frame):
    """Each body on its own: its inertia, and the force that moves it while its joints do not accelerate."""
    tree, work, call = frame.tree, frame.work, frame.call
    for b in range(tree.n_bodies):
        work.I[b] = inertia_in_world(work.pose[b], work.arm[b], frame.assembly.inertia[b])
        work.pA[b] = net_force(work.I[b], work.v[b], work.c[b])
        if tree.is_last[b] == 0:
            work.IA[b] = as_articulated(work.I[b])
        if call.force != 0 or call.has_drag != 0 or tree.has_soft_contact != 0 or tree.n_link_aims != 0:
            work.pA[b] = less(work.pA[b], work.f[b])


@sweep
def inward(frame):
    tree, work = frame.tree, frame.work
    n = tree.n_bodies
    for b in range(n - 1, -1, -1):
        if tree.kind[b] != FREE:
            p, d = tree.parent[b], tree.dof[b]
            for e in range(d + tree.n_dof[b] - 1, d, -1):
                work.U[e], work.D_inv[e], work.u[e] = felt(
                    work.S[e], work.armature[e], work.tau[e], work.IA[b], work.pA[b]
                )
                work.IA[b], work.pA[b] = passed_on(work.U[e], work.D_inv[e], work.u[e], work.IA[b], work.pA[b])
            if tree.is_last[b] != 0:
                work.U[d], work.D_inv[d], work.u[d] = felt_last(
                    work.S[d], work.armature[d], work.tau[d], work.I[b], work.pA[b]
                )
                if p < n:
                    IA, pA = passed_on_last(work.U[d], work.D_inv[d], work.u[d], work.I[b], work.pA[b])
                    accumulate(work.IA, p, IA)
                    accumulate(work.pA, p, pA)
            else:
                work.U[d], work.D_inv[d], work.u[d] = felt(
                    work.S[d], work.armature[d], work.tau[d], work.IA[b], work.pA[b]
                )
                if p < n:
                    IA, pA = passed_on(work.U[d], work.D_inv[d], work.u[d], work.IA[b], work.pA[b])
                    accumulate(work.IA, p, IA)
                    accumulate(work.pA, p, pA)


@sweep
def outward(frame):
    tree, work = frame.tree, frame.work
    n = tree.n_bodies
    work.a_joints[n] = zero6(work.v[n][0])
    for b in range(n):
        d = tree.dof[b]
        if tree.kind[b] == FREE:
            IA = work.IA[b]
            work.factor[b], work.a_joints[b], qdd = free_acceleration(
                work.pose[b], work.arm[b], work.armature[d], IA, work.pA[b],
                work.tau[d], work.tau[d + 1], work.tau[d + 2], work.tau[d + 3], work.tau[d + 4], work.tau[d + 5],
            )  # fmt: skip
            for k in range(6):
                work.qdd[d + k] = qdd[k]
        else:
            a_joints = work.a_joints[tree.parent[b]]
            for k in range(tree.n_dof[b]):
                work.qdd[d + k], a_joints = accelerate(
                    work.S[d + k], work.U[d + k], work.D_inv[d + k], work.u[d + k], a_joints
                )
            work.a_joints[b] = a_joints


@kernel
def articulated(frame):
    start(frame)
    inward(frame)
    outward(frame)


# the reverse ------------------------------------------------------------------------------------------------------------


@traced
def effort(S, U, D_inv, x, p):
    u = x - motion_work(S, p)
    return u, add(p, scale(U, D_inv * u))


@traced
def minus(x):
    return -x


@traced
def minus6(x):
    return neg(x)


@traced
def free_multiplier(pose, arm, F, p, l0, l1, l2, a0, a1, a2):
    m = inertia.solve(F, sub(joint_to_spatial(pose, arm, (l0, l1, l2), (a0, a1, a2)), p))
    return m, (*add(m[3:], cross(m[:3], arm)), *transposed_times(pose[:9], m[:3]))


@sweep
def multipliers(frame, rate_bar):
    """mu = -M^-1 bar, and the motion m that it gives each body."""
    tree, work, multiplier = frame.tree, frame.work, frame.multiplier
    n = tree.n_bodies
    for b in range(n + 1):
        multiplier.p[b] = zero6(work.v[b][0])
    for b in range(n - 1, -1, -1):
        if tree.kind[b] != FREE:
            first = tree.dof[b]
            d = first + tree.n_dof[b] - 1
            p = multiplier.p[b]
            while d >= first:
                multiplier.u[d], p = effort(work.S[d], work.U[d], work.D_inv[d], minus(rate_bar[d]), p)
                d -= 1
            accumulate(multiplier.p, tree.parent[b], p)
    multiplier.m[n] = zero6(work.v[n][0])
    for b in range(n):
        d = tree.dof[b]
        if tree.kind[b] == FREE:
            multiplier.m[b], mu = free_multiplier(
                work.pose[b], work.arm[b], work.factor[b], multiplier.p[b],
                minus(rate_bar[d]), minus(rate_bar[d + 1]), minus(rate_bar[d + 2]),
                minus(rate_bar[d + 3]), minus(rate_bar[d + 4]), minus(rate_bar[d + 5]),
            )  # fmt: skip
            for k in range(6):
                multiplier.mu[d + k] = mu[k]
        else:
            m = multiplier.m[tree.parent[b]]
            for k in range(tree.n_dof[b]):
                multiplier.mu[d + k], m = accelerate(
                    work.S[d + k], work.U[d + k], work.D_inv[d + k], multiplier.u[d + k], m
                )
            multiplier.m[b] = m


net_force_adjoint = adjoint(net_force, "v a")
inertia_cotangent = adjoint(net_force, "I")


@traced
def body_reverse(I, v, a, m):
    """The force that moves a body, and the cotangents that its own equation of motion gives v and a along m."""
    v_bar, a_bar = net_force_adjoint(I, v, a, m)
    return net_force.fn(I, v, a), v_bar, a_bar


@traced
def inertia_moved(v, a, m, force, v_bar, a_bar):
    """Force on the pose because the inertia moves with the body while v, a, m stay: as if they moved the other way."""
    return neg(add(cross_force(m, force), add(cross_force(a, a_bar), cross_force(v, v_bar))))


@traced
def inertia_reverse(pose, arm, I, v, a, m):
    """Cotangent of the body's inertia, in its own frame."""
    v, a, m = (motion_in_body(pose, arm, x) for x in (v, a, m))
    return inertia_cotangent(I, v, a, m)


@traced
def axis_reverse(force, mu, a_bar, qdd):
    return add(scale(force, mu), scale(a_bar, qdd))


@traced
def times_(a, b):
    return a * b


@traced
def free_reverse(pose, arm, force, a_bar, mu, qdd):
    """A free body's own part: a_joints = S qdd and m = S mu turn and move with it."""
    angular_acc, angular_mu = times(pose[:9], qdd[3:]), times(pose[:9], mu[3:])
    # a_joints = (angular, linear + arm x angular), and m likewise
    arm_bar = add(cross(angular_acc, a_bar[3:]), cross(angular_mu, force[3:]))
    acc_bar = add(a_bar[:3], cross(a_bar[3:], arm))
    mu_bar = add(force[:3], cross(force[3:], arm))
    turn = add(cross(angular_acc, acc_bar), cross(angular_mu, mu_bar))
    return (*add(turn, cross(arm, arm_bar)), *arm_bar)


@traced
def six(a, b, c, d, e, f):
    return (a, b, c, d, e, f)


@inlined
def body_adjoint(frame, bar, b):
    """What its equation of motion gives a body's velocity, pose, outside force and inertia."""
    tree, work, multiplier, call = frame.tree, frame.work, frame.multiplier, frame.call
    multiplier.a[b] = plus(work.c[b], work.a_joints[b])
    multiplier.force[b], multiplier.v_bar[b], bar.work.c[b] = body_reverse(
        work.I[b], work.v[b], multiplier.a[b], multiplier.m[b]
    )
    accumulate(bar.work.v, b, multiplier.v_bar[b])
    pose_bar = inertia_moved(
        work.v[b], multiplier.a[b], multiplier.m[b], multiplier.force[b], multiplier.v_bar[b], bar.work.c[b]
    )
    accumulate(bar.work.pose, b, pose_bar)
    multiplier.a_bar[b] = bar.work.c[b]
    if call.force != 0 or call.has_drag != 0 or tree.has_soft_contact != 0 or tree.n_link_aims != 0:
        bar.work.f[b] = minus6(multiplier.m[b])
        multiplier.force[b] = less(multiplier.force[b], work.f[b])
    if call.wants_params != 0 or tree.n_mass_aims != 0:
        I_bar = inertia_reverse(
            work.pose[b], work.arm[b], frame.assembly.inertia[b], work.v[b], multiplier.a[b], multiplier.m[b]
        )
        accumulate(bar.assembly.inertia, b, I_bar)


@inlined
def free_body_adjoint(frame, bar, b):
    work, multiplier, d = frame.work, frame.multiplier, frame.tree.dof[b]
    mu, qdd = multiplier.mu, work.qdd
    pose_bar = free_reverse(
        work.pose[b], work.arm[b], multiplier.force[b], multiplier.a_bar[b],
        six(mu[d], mu[d + 1], mu[d + 2], mu[d + 3], mu[d + 4], mu[d + 5]),
        six(qdd[d], qdd[d + 1], qdd[d + 2], qdd[d + 3], qdd[d + 4], qdd[d + 5]),
    )  # fmt: skip
    accumulate(bar.work.pose, b, pose_bar)
    # all six degrees of freedom feel the first one's armature
    for k in range(1, 6):
        accumulate(bar.work.armature, d, bar.work.armature[d + k])
        bar.work.armature[d + k] = zero(work.qdd[d])


@kernel
def articulated_adjoint(frame, bar):
    """Reads bar.work.qdd. Overwrites the cotangents of c, tau, f; adds to those of pose, v, S, armature."""
    tree, work, multiplier = frame.tree, frame.work, frame.multiplier
    multipliers(frame, bar.work.qdd)
    n = tree.n_bodies
    for b in range(n):
        body_adjoint(frame, bar, b)
    for b in range(n - 1, -1, -1):
        d, p = tree.dof[b], tree.parent[b]
        for k in range(tree.n_dof[b]):
            bar.work.tau[d + k] = minus(multiplier.mu[d + k])
            accumulate(bar.work.armature, d + k, times_(multiplier.mu[d + k], work.qdd[d + k]))
        if tree.kind[b] == FREE:
            free_body_adjoint(frame, bar, b)
        else:
            for k in range(tree.n_dof[b]):
                S_bar = axis_reverse(multiplier.force[b], multiplier.mu[d + k], multiplier.a_bar[b], work.qdd[d + k])
                accumulate(bar.work.S, d + k, S_bar)
            if p < n:
                accumulate(multiplier.force, p, multiplier.force[b])
                accumulate(multiplier.a_bar, p, multiplier.a_bar[b])
