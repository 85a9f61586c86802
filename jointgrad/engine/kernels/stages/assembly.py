"""Parameters as people give them -> parameters as the step wants them, once per rollout.

Links that fixed joints weld together are lumped into one body; each keeps its own parameters, and the reverse hands
their gradients back. Each body's frame is turned so that a scalar joint's axis is its z axis: that makes the axis a
column of the pose. Which of the many such frames is taken (the reference) changes nothing that can be observed.
"""

from ....algebra import inertia, rotation
from ....algebra.spatial import WORLD, composed, dot, force_in_body, moved_pose, scale
from ....algebra.vector import add, cross, product, sub, times, transposed, transposed_times
from ....compiler.elementary import inverse, root
from ....compiler.kernel import accumulate, kernel, sweep
from ....compiler.reverse import adjoint
from ....compiler.trace import traced
from ....model.arrays import FIXED, FREE, SPHERICAL
from ..operators import zero10

READS = (
    "params.link_mass", "params.link_com", "params.link_inertia", "params.link_drag_placement", "params.joint_placement",
    "params.joint_axis", "params.shape_placement",
)  # fmt: skip
WRITES = (
    "assembly.frame_pose",
    "assembly.placement",
    "assembly.inertia",
    "assembly.com",
    "assembly.drag",
    "assembly.shape",
)


@traced
def world_frame(anything):
    return tuple(0.0 * anything + x for x in WORLD)


def placed(placement):
    """Pose from position and quaternion."""
    return (*rotation.matrix(placement[3:]), *placement[:3])


@traced
def fixed_frame(parent, placement):
    return composed(parent, placed(placement))


@traced
def joint_frame(parent, placement):
    """Placement of a joint whose body has the axes of its frame; and that frame in its body."""
    return composed(parent, placed(placement)), tuple(0.0 * parent[0] + x for x in WORLD)


def axis_frame(axis, reference_axis, reference):
    """A rotation that takes z to the axis: the reference, corrected by the arc from its own axis."""
    return product(rotation.arc(reference_axis, scale(axis, inverse(root(dot(axis, axis))))), reference)


@traced
def axis_joint_frame(parent, placement, axis, reference_axis, reference):
    """The same for a joint about or along an axis; the body is turned by the axis frame, its link is turned back."""
    turn = axis_frame(axis, reference_axis, reference)
    zero = (0.0 * turn[0],) * 3
    return composed(composed(parent, placed(placement)), (*turn, *zero)), (*transposed(turn), *zero)


@traced
def link_in_body(frame, mass, com, rotational):
    """Inertia of a link about its body's origin, and its centre of mass there."""
    return inertia.carried(frame, inertia.about_origin(mass, com, rotational)), add(frame[9:], times(frame[:9], com))


@kernel
def assembly_stage(frame):
    tree, params, axis_reference, assembly = frame.tree, frame.params, frame.axis_reference, frame.assembly
    for b in range(tree.n_bodies):
        assembly.inertia[b] = zero10(params.world_dt[0])
    assembly.frame_pose[tree.n_frames] = world_frame(params.world_dt[0])
    for i in range(tree.n_frames):
        parent = assembly.frame_pose[tree.frame_parent[i]]
        kind, b = tree.frame_kind[i], tree.frame_body[i]
        if kind == FIXED:
            assembly.frame_pose[i] = fixed_frame(parent, params.joint_placement[i])
        elif kind == SPHERICAL or kind == FREE:
            assembly.placement[b], assembly.frame_pose[i] = joint_frame(parent, params.joint_placement[i])
        else:
            assembly.placement[b], assembly.frame_pose[i] = axis_joint_frame(
                parent,
                params.joint_placement[i],
                params.joint_axis[i],
                axis_reference.axis[i],
                axis_reference.rotation[i],
            )
    for j in range(tree.n_links):
        I, assembly.com[j] = link_in_body(
            assembly.frame_pose[tree.link_frame[j]], params.link_mass[j], params.link_com[j], params.link_inertia[j]
        )
        assembly.drag[j] = fixed_frame(assembly.frame_pose[tree.link_frame[j]], params.link_drag_placement[j])
        if tree.link_body[j] < tree.n_bodies:
            accumulate(assembly.inertia, tree.link_body[j], I)
    for i in range(tree.n_shapes):
        assembly.shape[i] = fixed_frame(assembly.frame_pose[tree.shape_frame[i]], params.shape_placement[i])


# the reverse: a frame's cotangent is a force in its body, so that welded frames pass it on unchanged


@traced
def moved_link(frame, mass, com, rotational, delta=(0.0,) * 6):
    return link_in_body.fn(moved_pose(frame, delta), mass, com, rotational)


moved_link_adjoint = adjoint(moved_link, "delta mass com rotational", at_zero="delta")


@traced
def placement_cotangent(parent, placement, force):
    """Cotangent of (position, quaternion) from the force on the joint frame, given in the parent's body."""
    local = force_in_body(parent, parent[9:], force)
    turn = sub(local[:3], cross(placement[:3], local[3:]))
    return (*local[3:], *rotation.frame_cotangent(placement[3:], turn))


@traced
def axis_cotangent(parent, placement, axis, reference_axis, reference, force, frame_force):
    """An axis turns the joint against its parent, and turns everything on the body back."""
    turn = axis_frame(axis, reference_axis, reference)
    here = composed(parent, placed(placement))
    local = transposed_times(here[:9], sub(force[:3], cross(here[9:], force[3:])))
    turn_bar = sub(local, times(turn, frame_force[:3]))
    length_inv = inverse(root(dot(axis, axis)))
    return scale(cross(turn_bar, scale(axis, length_inv)), length_inv)


@sweep
def shape_adjoint(frame, bar, i):
    f, force = frame.tree.shape_frame[i], bar.assembly.shape[i]
    accumulate(bar.assembly.frame_pose, f, force)
    placement = placement_cotangent(frame.assembly.frame_pose[f], frame.params.shape_placement[i], force)
    accumulate(bar.params.shape_placement, i, placement)


@sweep
def link_adjoint(frame, bar, j):
    tree, params = frame.tree, frame.params
    f = tree.link_frame[j]
    pose, inertia_bar = frame.assembly.frame_pose[f], zero10(params.world_dt[0])
    if tree.link_body[j] < tree.n_bodies:
        inertia_bar = bar.assembly.inertia[tree.link_body[j]]
    force, mass, com, rotational = moved_link_adjoint(
        pose, params.link_mass[j], params.link_com[j], params.link_inertia[j], (inertia_bar + bar.assembly.com[j])
    )
    accumulate(bar.assembly.frame_pose, f, force)
    accumulate(bar.params.link_mass, j, mass)
    accumulate(bar.params.link_com, j, com)
    accumulate(bar.params.link_inertia, j, rotational)
    drag = bar.assembly.drag[j]
    accumulate(bar.assembly.frame_pose, f, drag)
    accumulate(bar.params.link_drag_placement, j, placement_cotangent(pose, params.link_drag_placement[j], drag))


@sweep
def joint_adjoint(frame, bar, i):
    """A frame hands its force on to its parent."""
    tree, params, reference = frame.tree, frame.params, frame.axis_reference
    p, kind, placement = tree.frame_parent[i], tree.frame_kind[i], params.joint_placement[i]
    parent, force = frame.assembly.frame_pose[p], bar.assembly.frame_pose[i]
    if kind != FIXED:
        force = bar.assembly.placement[tree.frame_body[i]]
    accumulate(bar.assembly.frame_pose, p, force)
    accumulate(bar.params.joint_placement, i, placement_cotangent(parent, placement, force))
    if kind != FIXED and kind != SPHERICAL and kind != FREE:
        axis = axis_cotangent(
            parent, placement, params.joint_axis[i], reference.axis[i], reference.rotation[i], force, bar.assembly.frame_pose[i]
        )  # fmt: skip
        accumulate(bar.params.joint_axis, i, axis)


@kernel
def assembly_stage_adjoint(frame, bar):
    """Adds to bar.params; uses up bar.assembly.frame_pose on the way."""
    tree = frame.tree
    for i in range(tree.n_shapes):
        shape_adjoint(frame, bar, i)
    for j in range(tree.n_links):
        link_adjoint(frame, bar, j)
    for i in range(tree.n_frames - 1, -1, -1):
        joint_adjoint(frame, bar, i)
