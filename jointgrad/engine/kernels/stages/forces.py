"""Controls, springs, dampers, drag, outside forces -> joint forces per dof, forces per body.

Actuators of joints push as `drive` says; a tendon hands what pulls in it to its joints, by its coefficients.
"""

import math

from ....algebra import rotation
from ....algebra.spatial import add, composed, moved_about, moved_pose, scale, sub
from ....algebra.vector import cross, times, transposed_times
from ....compiler.elementary import detached, maximum
from ....compiler.kernel import accumulate, inlined, kernel, sweep
from ....compiler.reverse import adjoint
from ....compiler.trace import traced
from ....model.arrays import FREE, SPHERICAL
from ..drive import drive, drive_adjoint
from ..operators import zero6
from ..workspace import IMPLICIT_DAMPING

READS = (
    "state.q", "state.qd", "state.u", "state.force", "assembly.com", "assembly.drag", "work.pose", "work.v", "work.touch",
    "work.pull",
    "params.joint_damping", "params.joint_stiffness", "params.joint_rest", "params.joint_armature", "params.actuator_gain",
    "params.actuator_damping", "params.actuator_bias", "params.actuator_gear", "params.actuator_control_limit",
    "params.actuator_force_limit", "params.tendon_coefficient", "params.world_dt", "params.link_drag_size",
    "params.world_density", "params.world_viscosity",
)  # fmt: skip
WRITES = ("work.armature", "work.tau", "work.f")


@traced
def damped(damping, rate):
    return -(damping * rate)


@traced
def sprung(damping, rate, stiffness, q, rest):
    return -(damping * rate) - stiffness * (q - rest)


@traced
def sprung_turn(stiffness, w, x, y, z, rw, rx, ry, rz):
    """Spring torque in body axes, along the shorter turn back to the rest orientation."""
    return scale(
        rotation.rotation_vector(rotation.quaternion_product(rotation.conjugate((rw, rx, ry, rz)), (w, x, y, z))),
        -stiffness,
    )


@traced
def with_damping(armature, damping, dt):
    """Damping taken at the end of the step acts like inertia: (M + dt B) qdd = tau - B qd."""
    return armature + dt * damping


@traced
def share(coefficient, pull):
    """What a joint feels of the pull of a tendon."""
    return coefficient * pull


@traced
def push(pose, reference, com, fx, fy, fz, tx, ty, tz):
    """A force and torque in world axes, at a point of the body, about the reference point."""
    force = (fx, fy, fz)
    at = sub(add(pose[9:], times(pose[:9], com)), detached(reference[9:]))
    return (*add((tx, ty, tz), cross(at, force)), *force)


def signed_square(x):
    return x * maximum(x, -x)


@traced
def drag(pose, reference, frame, v, size, density, viscosity):
    """Force of a medium at rest on a box, about the reference point: Stokes for a sphere of the box's mean extent, and
    the pressure of a stream on each face (MuJoCo's inertia-box model)."""
    box = composed(pose, frame)
    R, arm = box[:9], sub(box[9:], detached(reference[9:]))
    turning = transposed_times(R, v[:3])
    moving = transposed_times(R, add(v[3:], cross(v[:3], arm)))
    mean = (size[0] + size[1] + size[2]) * (1.0 / 3.0)
    torque, force = [], []
    for k in range(3):
        a, b = size[(k + 1) % 3], size[(k + 2) % 3]
        slow_turn = (math.pi * viscosity) * mean * mean * mean * turning[k]
        fast_turn = density * size[k] * (a * a * a * a + b * b * b * b) * (1.0 / 64.0) * signed_square(turning[k])
        torque.append(-(slow_turn + fast_turn))
        slow = (3.0 * math.pi * viscosity) * mean * moving[k]
        force.append(-(slow + 0.5 * density * a * b * signed_square(moving[k])))
    push = times(R, tuple(force))
    return (*add(times(R, tuple(torque)), cross(arm, push)), *push)


@inlined
def turned_joint(frame, b):
    """What damper and spring give a joint that turns every way."""
    tree, params, state, work = frame.tree, frame.params, frame.state, frame.work
    i, d, q = tree.frame[b], tree.dof[b], tree.q[b]
    damping, stiffness = params.joint_damping[i], params.joint_stiffness[i]
    turn, to = d, q
    for k in range(tree.n_dof[b]):
        work.tau[d + k] = damped(damping, state.qd[d + k])
    if tree.kind[b] == FREE:
        turn, to = d + 3, q + 3
        for k in range(3):
            work.tau[d + k] = sprung(damping, state.qd[d + k], stiffness, state.q[q + k], params.joint_rest[q + k])
    if frame.call.has_springs != 0:
        torque = sprung_turn(
            stiffness, state.q[to], state.q[to + 1], state.q[to + 2], state.q[to + 3],
            params.joint_rest[to], params.joint_rest[to + 1], params.joint_rest[to + 2], params.joint_rest[to + 3],
        )  # fmt: skip
        accumulate(work.tau, turn, torque[0])
        accumulate(work.tau, turn + 1, torque[1])
        accumulate(work.tau, turn + 2, torque[2])


@inlined
def joint_forces(frame, b):
    """Inertia, damper and spring of a body's own joint."""
    tree, params, state, work = frame.tree, frame.params, frame.state, frame.work
    i, d, q, kind = tree.frame[b], tree.dof[b], tree.q[b], tree.kind[b]
    damping, armature = params.joint_damping[i], params.joint_armature[i]
    if tree.integrator == IMPLICIT_DAMPING:
        armature = with_damping(armature, damping, params.world_dt[0])
    for k in range(tree.n_dof[b]):
        work.armature[d + k] = armature
    if kind == SPHERICAL or kind == FREE:
        turned_joint(frame, b)
    else:
        work.tau[d] = sprung(damping, state.qd[d], params.joint_stiffness[i], state.q[q], params.joint_rest[q])


@inlined
def drag_on(frame, j, b):
    """Of the water on a link of body b."""
    params, work = frame.params, frame.work
    return drag(
        work.pose[b], work.pose[frame.tree.reference[b]], frame.assembly.drag[j], work.v[b], params.link_drag_size[j],
        params.world_density[0], params.world_viscosity[0],
    )  # fmt: skip


@inlined
def push_on(frame, j, b):
    """The outside force on a link of body b."""
    force, work, k = frame.state.force, frame.work, 6 * j
    return push(
        work.pose[b], work.pose[frame.tree.reference[b]], frame.assembly.com[j], force[k], force[k + 1], force[k + 2],
        force[k + 3], force[k + 4], force[k + 5],
    )  # fmt: skip


@kernel
def forces(frame):
    tree, state, work, call = frame.tree, frame.state, frame.work, frame.call
    for b in range(tree.n_bodies):
        joint_forces(frame, b)
    for n in range(tree.n_joint_drives):
        a = tree.joint_drive[n]
        d = tree.actuator_dof[a]
        drive(frame, work.tau, d, state.q[tree.actuator_q[a]], state.qd[d], a)
    for t in range(tree.n_tendons):
        for k in range(tree.tendon_first[t], tree.tendon_first[t + 1]):
            accumulate(work.tau, tree.term_dof[k], share(frame.params.tendon_coefficient[k], work.pull[t]))
    if call.force != 0 or call.has_drag != 0 or tree.has_soft_contact != 0 or tree.n_link_aims != 0:
        for b in range(tree.n_bodies):
            work.f[b] = zero6(work.pose[b][0])
            if tree.has_soft_contact != 0:
                work.f[b] = work.touch[b]
    for j in range(tree.n_links if call.has_drag != 0 else 0):
        if tree.link_body[j] < tree.n_bodies:
            accumulate(work.f, tree.link_body[j], drag_on(frame, j, tree.link_body[j]))
    for j in range(tree.n_links if call.force != 0 else 0):
        if tree.link_body[j] < tree.n_bodies:
            accumulate(work.f, tree.link_body[j], push_on(frame, j, tree.link_body[j]))


# the reverse ------------------------------------------------------------------------------------------------------------

damped_adjoint = adjoint(damped, "damping rate")
sprung_adjoint = adjoint(sprung, "damping rate stiffness q rest")
sprung_turn_adjoint = adjoint(sprung_turn, "stiffness w x y z rw rx ry rz")
with_damping_adjoint = adjoint(with_damping, "armature damping dt")
share_adjoint = adjoint(share, "coefficient pull")


@traced
def push_reverse(pose, reference, com, fx, fy, fz, bar):
    """Cotangents of the outside force and torque and of the point, and the force on the pose."""
    force, torque_bar = (fx, fy, fz), bar[:3]
    offset = times(pose[:9], com)
    at = sub(add(pose[9:], offset), reference[9:])
    at_bar = cross(force, torque_bar)
    return (
        (*add(bar[3:], cross(torque_bar, at)), *torque_bar),
        transposed_times(pose[:9], at_bar),
        (*cross(at, at_bar), *at_bar),
    )


@traced
def moved_drag(pose, reference, frame, v, size, density, viscosity, body_delta=(0.0,) * 6, frame_delta=(0.0,) * 6):
    """A body moves about the reference point, which itself stays; the box moves about its body's origin."""
    moved = moved_about(pose, reference, body_delta)
    return drag.fn(moved, reference, moved_pose(frame, frame_delta), v, size, density, viscosity)


moved_drag_adjoint = adjoint(
    moved_drag, "body_delta frame_delta v size density viscosity", at_zero="body_delta frame_delta"
)


@sweep
def drag_adjoint(frame, bar, j):
    tree, params, work = frame.tree, frame.params, frame.work
    b = tree.link_body[j]
    pose_bar, frame_bar, v_bar, size, density, viscosity = moved_drag_adjoint(
        work.pose[b], work.pose[tree.reference[b]], frame.assembly.drag[j], work.v[b], params.link_drag_size[j],
        params.world_density[0], params.world_viscosity[0], bar.work.f[b],
    )  # fmt: skip
    accumulate(bar.work.pose, b, pose_bar)
    accumulate(bar.assembly.drag, j, frame_bar)
    accumulate(bar.work.v, b, v_bar)
    accumulate(bar.params.link_drag_size, j, size)
    accumulate(bar.params.world_density, 0, density)
    accumulate(bar.params.world_viscosity, 0, viscosity)


@sweep
def spring_adjoint(frame, bar, b):
    """A scalar joint, or one of a free joint's slides."""
    tree, params, state = frame.tree, frame.params, frame.state
    i, d, q = tree.frame[b], tree.dof[b], tree.q[b]
    for k in range(3 if tree.kind[b] == FREE else 1):
        damping, rate, stiffness, q_bar, rest = sprung_adjoint(
            params.joint_damping[i], state.qd[d + k], params.joint_stiffness[i], state.q[q + k],
            params.joint_rest[q + k], bar.work.tau[d + k],
        )  # fmt: skip
        accumulate(bar.params.joint_damping, i, damping)
        accumulate(bar.state.qd, d + k, rate)
        accumulate(bar.params.joint_stiffness, i, stiffness)
        accumulate(bar.state.q, q + k, q_bar)
        accumulate(bar.params.joint_rest, q + k, rest)


@sweep
def turn_adjoint(frame, bar, b):
    tree, params, state, call = frame.tree, frame.params, frame.state, frame.call
    i, d, q = tree.frame[b], tree.dof[b], tree.q[b]
    if tree.kind[b] == FREE:
        d, q = d + 3, q + 3
    for k in range(3):
        damping, rate = damped_adjoint(params.joint_damping[i], state.qd[d + k], bar.work.tau[d + k])
        accumulate(bar.params.joint_damping, i, damping)
        accumulate(bar.state.qd, d + k, rate)
    if call.has_springs != 0 or call.wants_params != 0:
        stiffness, w, x, y, z, rw, rx, ry, rz = sprung_turn_adjoint(
            params.joint_stiffness[i], state.q[q], state.q[q + 1], state.q[q + 2], state.q[q + 3],
            params.joint_rest[q], params.joint_rest[q + 1], params.joint_rest[q + 2], params.joint_rest[q + 3],
            (bar.work.tau[d], bar.work.tau[d + 1], bar.work.tau[d + 2]),
        )  # fmt: skip
        accumulate(bar.params.joint_stiffness, i, stiffness)
        accumulate(bar.state.q, q, w)
        accumulate(bar.state.q, q + 1, x)
        accumulate(bar.state.q, q + 2, y)
        accumulate(bar.state.q, q + 3, z)
        accumulate(bar.params.joint_rest, q, rw)
        accumulate(bar.params.joint_rest, q + 1, rx)
        accumulate(bar.params.joint_rest, q + 2, ry)
        accumulate(bar.params.joint_rest, q + 3, rz)


@sweep
def pull_adjoint(frame, bar, t):
    """How a tendon hands its pull to the joints."""
    tree = frame.tree
    for k in range(tree.tendon_first[t], tree.tendon_first[t + 1]):
        coefficient, pull = share_adjoint(
            frame.params.tendon_coefficient[k], frame.work.pull[t], bar.work.tau[tree.term_dof[k]]
        )
        accumulate(bar.params.tendon_coefficient, k, coefficient)
        accumulate(bar.work.pull, t, pull)


@sweep
def push_adjoint(frame, bar, j, b):
    """Of the outside force on a link of body b."""
    work, force, k = frame.work, frame.state.force, 6 * j
    bars, com, pose_bar = push_reverse(
        work.pose[b], work.pose[frame.tree.reference[b]], frame.assembly.com[j], force[k], force[k + 1], force[k + 2], bar.work.f[b]
    )  # fmt: skip
    for e in range(6):
        accumulate(bar.state.force, k + e, bars[e])
    accumulate(bar.assembly.com, j, com)
    accumulate(bar.work.pose, b, pose_bar)


@sweep
def armature_adjoint(frame, bar, b):
    tree, params = frame.tree, frame.params
    i = tree.frame[b]
    for k in range(tree.n_dof[b]):
        armature_bar = bar.work.armature[tree.dof[b] + k]
        if tree.integrator == IMPLICIT_DAMPING:
            armature, damping, dt = with_damping_adjoint(
                params.joint_armature[i], params.joint_damping[i], params.world_dt[0], armature_bar
            )
            accumulate(bar.params.joint_armature, i, armature)
            accumulate(bar.params.joint_damping, i, damping)
            accumulate(bar.params.world_dt, 0, dt)
        else:
            accumulate(bar.params.joint_armature, i, armature_bar)


@kernel
def forces_adjoint(frame, bar):
    """Adds to all it touches; overwrites bar.work.touch."""
    tree, state, call = frame.tree, frame.state, frame.call
    if tree.has_soft_contact != 0:
        for b in range(tree.n_bodies):
            bar.work.touch[b] = bar.work.f[b]
    for j in range(tree.n_links if call.has_drag != 0 else 0):
        if tree.link_body[j] < tree.n_bodies:
            drag_adjoint(frame, bar, j)
    for j in range(tree.n_links if call.force != 0 else 0):
        if tree.link_body[j] < tree.n_bodies:
            push_adjoint(frame, bar, j, tree.link_body[j])
    for t in range(tree.n_tendons):
        pull_adjoint(frame, bar, t)
    for n in range(tree.n_joint_drives):
        a = tree.joint_drive[n]
        q, d = tree.actuator_q[a], tree.actuator_dof[a]
        drive_adjoint(frame, bar, state.q[q], state.qd[d], bar.work.tau[d], bar.state.q, q, bar.state.qd, d, a)
    for b in range(tree.n_bodies):
        kind = tree.kind[b]
        if kind != SPHERICAL:
            spring_adjoint(frame, bar, b)
        if kind == SPHERICAL or kind == FREE:
            turn_adjoint(frame, bar, b)
        armature_adjoint(frame, bar, b)
