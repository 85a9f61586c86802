"""Poses and velocities of bodies -> the same of every link, as a rollout's named outputs, in the world frame."""

from ....algebra.spatial import add, composed, moved_about, moved_pose, sub
from ....algebra.vector import cross
from ....compiler.elementary import detached
from ....compiler.kernel import accumulate, kernel
from ....compiler.reverse import adjoint
from ....compiler.trace import traced

READS = ("work.pose", "work.v", "assembly.frame_pose")
WRITES = ("output.position", "output.rotation", "output.velocity")


@traced
def link_motion(pose, reference, frame, v):
    """Position and rotation of a link's frame; velocity of its origin (linear, angular)."""
    link = composed(pose, frame)
    arm = sub(link[9:], detached(reference[9:]))
    return link[9:], link[:9], (*add(v[3:], cross(v[:3], arm)), *v[:3])


@kernel
def outputs(frame):
    tree, work, output = frame.tree, frame.work, frame.output
    for j in range(tree.n_links):
        b = tree.link_body[j]
        output.position[j], output.rotation[j], output.velocity[j] = link_motion(
            work.pose[b], work.pose[tree.reference[b]], frame.assembly.frame_pose[tree.link_frame[j]], work.v[b]
        )


@traced
def moved_link_motion(pose, reference, frame, v, body_delta=(0.0,) * 6, frame_delta=(0.0,) * 6):
    """A body moves about the reference point, which itself stays; a frame moves about its body's origin."""
    moved = moved_about(pose, reference, body_delta)
    return link_motion.fn(moved, reference, moved_pose(frame, frame_delta), v)


moved_link_motion_adjoint = adjoint(moved_link_motion, "body_delta frame_delta v", at_zero="body_delta frame_delta")


@kernel
def outputs_adjoint(frame, bar):
    """Adds to all it touches."""
    tree, work = frame.tree, frame.work
    for j in range(tree.n_links):
        b, i = tree.link_body[j], tree.link_frame[j]
        pose_bar, frame_bar, v_bar = moved_link_motion_adjoint(
            work.pose[b], work.pose[tree.reference[b]], frame.assembly.frame_pose[i], work.v[b],
            (bar.output.position[j], bar.output.rotation[j], bar.output.velocity[j]),
        )  # fmt: skip
        accumulate(bar.work.pose, b, pose_bar)
        accumulate(bar.work.v, b, v_bar)
        accumulate(bar.assembly.frame_pose, i, frame_bar)
