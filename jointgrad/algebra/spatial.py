"""Spatial vectors [angular, linear], all in world axes about one reference point, so that neighbours simply add.

A pose is a rotation (9) and a position (3) of a body in the world.
"""

from .rotation import IDENTITY
from .vector import add, column, cross, dot, neg, outer, product, scale, sub, times, transposed_times

WORLD = (*IDENTITY, 0.0, 0.0, 0.0)


def rotation_of(pose):
    return pose[:9]


def position_of(pose):
    return pose[9:]


def composed(outer_pose, inner):
    """Pose of an inner frame, given in the outer one, in whatever the outer one is given in."""
    R, p = outer_pose[:9], outer_pose[9:]
    return (*product(R, inner[:9]), *add(p, times(R, inner[9:])))


def work(m, f):
    """Motion times force. Two sums of three, which may run side by side, rather than one of six."""
    return dot(m[:3], f[:3]) + dot(m[3:], f[3:])


def cross_motion(v, m):
    """v x m: how a motion m that moves with v changes."""
    return (*cross(v[:3], m[:3]), *add(cross(v[:3], m[3:]), cross(v[3:], m[:3])))


def cross_force(v, f):
    """v x* f: how a force f that moves with v changes (Qiao 2021, eq. 40)."""
    return (*add(cross(v[:3], f[:3]), cross(v[3:], f[3:])), *cross(v[:3], f[3:]))


def axis_motion(pose, arm, k):
    """Unit turn about axis k of a frame whose origin is `arm` away from the reference point."""
    axis = column(pose[:9], k)
    return (*axis, *cross(arm, axis))


def slide_motion(pose, k):
    """Unit slide along axis k of a frame."""
    return (0.0, 0.0, 0.0, *column(pose[:9], k))


def motion_in_body(pose, arm, m):
    """A motion seen from a body: its own axes, its own origin."""
    R = pose[:9]
    return (*transposed_times(R, m[:3]), *transposed_times(R, add(m[3:], cross(m[:3], arm))))


def force_in_body(pose, arm, f):
    """A force (or any cotangent of a motion) seen from a body: its own axes, about its own origin."""
    R = pose[:9]
    return (*transposed_times(R, sub(f[:3], cross(arm, f[3:]))), *transposed_times(R, f[3:]))


def force_from_body(pose, f):
    """The converse, about the origin of the frame that the pose is given in."""
    force = times(pose[:9], f[3:])
    return (*add(times(pose[:9], f[:3]), cross(pose[9:], force)), *force)


def moved_pose(pose, delta):
    """A pose after a small motion delta, to first order, about the origin of its coordinates."""
    R, p, turn = pose[:9], pose[9:], delta[:3]
    columns = [add(column(R, j), cross(turn, column(R, j))) for j in range(3)]
    turned = tuple(columns[j][i] for i in range(3) for j in range(3))
    return (*turned, *add(add(p, cross(turn, p)), delta[3:]))


def moved_about(pose, reference, delta):
    """The same about the position of another pose, which itself stays."""
    moved = moved_pose((*pose[:9], *sub(pose[9:], reference[9:])), delta)
    return (*moved[:9], *add(moved[9:], reference[9:]))


__all__ = [
    "WORLD", "add", "axis_motion", "column", "composed", "cross_force", "cross_motion", "dot", "force_from_body",
    "force_in_body", "motion_in_body", "moved_about", "moved_pose", "neg", "outer", "position_of", "rotation_of", "scale",
    "slide_motion", "sub", "work",
]  # fmt: skip
