"""Joint coordinates and rates -> poses, joint axes, velocities, velocity-product accelerations.

Everything spatial is in world axes about the tree's reference point, so that a velocity is the sum of what the joints
below contribute (Featherstone 2008, eq. 2.30 in one frame) and cotangents of poses are forces that add up the tree.
The reference point is the present position of one body, held fixed under differentiation: no result depends on it.
"""

from ....algebra import rotation
from ....algebra.spatial import (
    WORLD,
    add,
    axis_motion,
    composed,
    cross_force,
    cross_motion,
    force_in_body,
    neg,
    scale,
    slide_motion,
    sub,
)
from ....algebra.spatial import work as motion_work
from ....algebra.vector import cross, times, transposed_times
from ....compiler.elementary import cos, detached, sin
from ....compiler.kernel import accumulate, kernel, sweep
from ....compiler.reverse import adjoint
from ....compiler.trace import traced
from ....model.arrays import FREE, PRISMATIC, REVOLUTE, SPHERICAL

READS = ("state.q", "state.qd", "assembly.placement", "params.world_gravity")
WRITES = ("work.pose", "work.arm", "work.S", "work.v", "work.c")

# poses ----------------------------------------------------------------------------------------------------------------


@traced
def revolute_pose(parent, placement, q):
    joint = composed(parent, placement)
    return (*rotation.turned_about_z(joint[:9], sin(q), cos(q)), *joint[9:])


@traced
def prismatic_pose(parent, placement, q):
    joint = composed(parent, placement)
    return (*joint[:9], *add(joint[9:], scale((joint[2], joint[5], joint[8]), q)))


@traced
def spherical_pose(parent, placement, w, x, y, z):
    return composed(composed(parent, placement), (*rotation.matrix((w, x, y, z)), 0.0, 0.0, 0.0))


@traced
def free_pose(px, py, pz, w, x, y, z):
    return (*rotation.matrix((w, x, y, z)), px, py, pz)


@traced
def world_rows(gravity):
    """Pose, velocity and acceleration of the world, which less gravity falls upwards."""
    zero = 0.0 * gravity[0]
    return tuple(zero + x for x in WORLD), (zero,) * 6, (zero, zero, zero, *neg(gravity))


# motions --------------------------------------------------------------------------------------------------------------


def arm_of(pose, reference):
    return sub(pose[9:], detached(reference[9:]))


def with_rate(v_parent, c_parent, turning):
    """Velocity, and acceleration if no joint accelerated, of a body that moves against its parent."""
    v = add(v_parent, turning)
    return v, add(c_parent, cross_motion(v, turning))


@traced
def revolute_motion(pose, reference, v_parent, c_parent, rate):
    arm = arm_of(pose, reference)
    S = axis_motion(pose, arm, 2)
    return arm, S, *with_rate(v_parent, c_parent, scale(S, rate))


@traced
def prismatic_motion(pose, reference, v_parent, c_parent, rate):
    S = slide_motion(pose, 2)
    return arm_of(pose, reference), S, *with_rate(v_parent, c_parent, scale(S, rate))


@traced
def spherical_motion(pose, reference, v_parent, c_parent, x, y, z):
    arm = arm_of(pose, reference)
    S = tuple(axis_motion(pose, arm, k) for k in range(3))
    return arm, S, *with_rate(v_parent, c_parent, weighted(S, (x, y, z)))


def weighted(S, rates):
    x, y, z = rates
    return tuple(x * a + y * b + z * c for a, b, c in zip(*S, strict=True))


@traced
def free_motion(pose, reference, gravity, lx, ly, lz, ax, ay, az):
    """Rates are linear in world axes, angular in body axes; c is that of a body whose centre moves on while it turns."""
    arm, linear = arm_of(pose, reference), (lx, ly, lz)
    angular = times(pose[:9], (ax, ay, az))
    return arm, (*angular, *add(linear, cross(arm, angular))), (0.0, 0.0, 0.0, *sub(cross(linear, angular), gravity))


@kernel
def kinematics(frame):
    tree, params, assembly, state, work = frame.tree, frame.params, frame.assembly, frame.state, frame.work
    n = tree.n_bodies
    work.pose[n], work.v[n], work.c[n] = world_rows(params.world_gravity[0])
    for b in range(n):
        parent, kind, q = work.pose[tree.parent[b]], tree.kind[b], tree.q[b]
        if kind == REVOLUTE:
            work.pose[b] = revolute_pose(parent, assembly.placement[b], state.q[q])
        elif kind == PRISMATIC:
            work.pose[b] = prismatic_pose(parent, assembly.placement[b], state.q[q])
        elif kind == SPHERICAL:
            work.pose[b] = spherical_pose(
                parent, assembly.placement[b], state.q[q], state.q[q + 1], state.q[q + 2], state.q[q + 3]
            )
        else:
            work.pose[b] = free_pose(
                state.q[q],
                state.q[q + 1],
                state.q[q + 2],
                state.q[q + 3],
                state.q[q + 4],
                state.q[q + 5],
                state.q[q + 6],
            )
    for b in range(n):
        pose, reference, kind, d = work.pose[b], work.pose[tree.reference[b]], tree.kind[b], tree.dof[b]
        v, c = work.v[tree.parent[b]], work.c[tree.parent[b]]
        if kind == REVOLUTE:
            work.arm[b], work.S[d], work.v[b], work.c[b] = revolute_motion(pose, reference, v, c, state.qd[d])
        elif kind == PRISMATIC:
            work.arm[b], work.S[d], work.v[b], work.c[b] = prismatic_motion(pose, reference, v, c, state.qd[d])
        elif kind == SPHERICAL:
            work.arm[b], (work.S[d], work.S[d + 1], work.S[d + 2]), work.v[b], work.c[b] = spherical_motion(
                pose, reference, v, c, state.qd[d], state.qd[d + 1], state.qd[d + 2]
            )
        else:
            work.arm[b], work.v[b], work.c[b] = free_motion(
                pose, reference, params.world_gravity[0],
                state.qd[d], state.qd[d + 1], state.qd[d + 2], state.qd[d + 3], state.qd[d + 4], state.qd[d + 5],
            )  # fmt: skip


# the reverse: S moves with its body, so its cotangent is a force on the body; forces add up the tree; a coordinate
# receives the work that the force of all it carries does along its axis


@traced
def scalar_rates(S, v_parent, rate):
    """Velocity and acceleration, the parent's acceleration apart: it passes unchanged."""
    return with_rate(v_parent, (0.0,) * 6, scale(S, rate))


scalar_rates_adjoint = adjoint(scalar_rates, "S v_parent rate")


@traced
def scalar_reverse(S, v_parent, rate, S_bar, v_bar, c_bar, force):
    """Cotangents of q and qd, of the parent's velocity, and the whole force on the body and what it carries."""
    S_more, v_parent_bar, rate_bar = scalar_rates_adjoint(S, v_parent, rate, (v_bar, c_bar))
    force = add(force, cross_force(S, add(S_bar, S_more)))
    return motion_work(S, force), rate_bar, v_parent_bar, force


@traced
def spherical_rates(S1, S2, S3, v_parent, x, y, z):
    return with_rate(v_parent, (0.0,) * 6, weighted((S1, S2, S3), (x, y, z)))


spherical_rates_adjoint = adjoint(spherical_rates, "S1 S2 S3 v_parent x y z")


@traced
def spherical_reverse(S1, S2, S3, v_parent, x, y, z, w, i, j, k, S1_bar, S2_bar, S3_bar, v_bar, c_bar, force):
    S, S_bars = (S1, S2, S3), (S1_bar, S2_bar, S3_bar)
    *more, v_parent_bar, xb, yb, zb = spherical_rates_adjoint(S1, S2, S3, v_parent, x, y, z, (v_bar, c_bar))
    for axis, bar, extra in zip(S, S_bars, more, strict=True):
        force = add(force, cross_force(axis, add(bar, extra)))
    turn = tuple(motion_work(axis, force) for axis in S)
    return rotation.body_cotangent((w, i, j, k), turn), (xb, yb, zb), v_parent_bar, force


@traced
def free_reverse(pose, arm, lx, ly, lz, ax, ay, az, w, i, j, k, v_bar, c_bar, force):
    """A free body: position and quaternion take the force itself; the rates are turned with the body."""
    R, linear, angular = pose[:9], (lx, ly, lz), times(pose[:9], (ax, ay, az))
    # v = (angular, linear + arm x angular), c = (0, linear x angular - gravity)
    linear_bar = add(v_bar[3:], cross(angular, c_bar[3:]))
    angular_bar = add(add(v_bar[:3], cross(v_bar[3:], arm)), cross(c_bar[3:], linear))
    arm_bar = cross(angular, v_bar[3:])
    # moving the body turns `angular` and carries `arm`
    force = add(force, (*add(cross(angular, angular_bar), cross(arm, arm_bar)), *arm_bar))
    turn = transposed_times(R, sub(force[:3], cross(arm, force[3:])))
    return force[3:], rotation.body_cotangent((w, i, j, k), turn), linear_bar, transposed_times(R, angular_bar)


@traced
def force_on_joint(parent, reference, force):
    """The force on all that a joint carries, in the frame of the parent body."""
    return force_in_body(parent, sub(parent[9:], reference[9:]), force)


@sweep
def add3(field, i, value):
    accumulate(field, i, value[0])
    accumulate(field, i + 1, value[1])
    accumulate(field, i + 2, value[2])


@sweep
def add4(field, i, value):
    add3(field, i, value)
    accumulate(field, i + 3, value[3])


@traced
def gravity_cotangent(c_bar):
    return neg(c_bar[3:])


@kernel
def kinematics_adjoint(frame, bar):
    """Uses up bar.work.pose, v and c: on the way they become sums over all that a body carries."""
    tree, state, work = frame.tree, frame.state, frame.work
    for b in range(tree.n_bodies - 1, -1, -1):
        p, kind, d, q = tree.parent[b], tree.kind[b], tree.dof[b], tree.q[b]
        if kind == FREE:
            at, quat_bar, linear, angular = free_reverse(
                work.pose[b], work.arm[b], state.qd[d], state.qd[d + 1], state.qd[d + 2], state.qd[d + 3], state.qd[d + 4],
                state.qd[d + 5], state.q[q + 3], state.q[q + 4], state.q[q + 5], state.q[q + 6],
                bar.work.v[b], bar.work.c[b], bar.work.pose[b],
            )  # fmt: skip
            add3(bar.state.q, q, at)
            add4(bar.state.q, q + 3, quat_bar)
            add3(bar.state.qd, d, linear)
            add3(bar.state.qd, d + 3, angular)
            accumulate(bar.work.c, p, bar.work.c[b])
        else:
            if kind == SPHERICAL:
                quat_bar, rate_bar, v_bar, force = spherical_reverse(
                    work.S[d], work.S[d + 1], work.S[d + 2], work.v[p], state.qd[d], state.qd[d + 1], state.qd[d + 2],
                    state.q[q], state.q[q + 1], state.q[q + 2], state.q[q + 3],
                    bar.work.S[d], bar.work.S[d + 1], bar.work.S[d + 2], bar.work.v[b], bar.work.c[b], bar.work.pose[b],
                )  # fmt: skip
                add4(bar.state.q, q, quat_bar)
                add3(bar.state.qd, d, rate_bar)
            else:
                q_bar, rate_bar, v_bar, force = scalar_reverse(
                    work.S[d], work.v[p], state.qd[d], bar.work.S[d], bar.work.v[b], bar.work.c[b], bar.work.pose[b]
                )
                accumulate(bar.state.q, q, q_bar)
                accumulate(bar.state.qd, d, rate_bar)
            accumulate(bar.work.v, p, v_bar)
            accumulate(bar.work.c, p, bar.work.c[b])
            accumulate(bar.work.pose, p, force)
            if frame.call.wants_params != 0:
                accumulate(bar.assembly.placement, b, force_on_joint(work.pose[p], work.pose[tree.reference[b]], force))
    accumulate(bar.params.world_gravity, 0, gravity_cotangent(bar.work.c[tree.n_bodies]))
