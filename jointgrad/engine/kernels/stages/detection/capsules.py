"""Where capsules meet planes, spheres and each other: a capsule is a sphere that slides along a segment."""

from .....algebra.vector import add, column, dot, scale, sub
from .....compiler.elementary import clamp, inverse, maximum, minimum, select
from .....compiler.trace import traced
from .points import adjoint_along_motions, along_motions, plane_contact, spheres_contact, where_it_exists

# Square of the sine of the angle below which two segments count as parallel (about 0.2 degrees). Where they cross, the
# ends of their overlap are then farther apart than the closest points by at most L^2 1e-5 / (2 d), for ends L from the
# crossing and axes d apart: 0.01 mm for an overlap of 0.9 m and d = 0.1 m, a micrometre for limbs. Where they do not
# cross, one of the ends is the closest point. At greater angles the closest points move at most about 300 times as
# fast as the capsules.
PARALLEL = 1e-5


def axis_point(pose, s):
    """The point of a capsule's axis at s from its middle."""
    return add(pose[9:], scale(column(pose[:9], 2), s))


@traced
def capsule_plane(A, a, B, b, end):
    """The sphere at one end, +1 or -1, of the capsule."""
    return plane_contact(axis_point(A, end * a[1]), a[0], B)


moved_capsule_plane = along_motions(capsule_plane)
capsule_plane_adjoint = adjoint_along_motions(moved_capsule_plane)


@traced
def capsule_sphere(A, a, B, b):
    s = clamp(dot(column(A[:9], 2), sub(B[9:], A[9:])), -a[1], a[1])
    return spheres_contact(axis_point(A, s), a[0], B[9:], b[0], column(A[:9], 0))


moved_capsule_sphere = along_motions(capsule_sphere)
capsule_sphere_adjoint = adjoint_along_motions(moved_capsule_sphere)


def closest_on_segments(cosine, offset_u, offset_v, half_u, half_v):
    """Positions (s, t) of the closest points of two segments c + s u and e + t v, |s| <= half_u, |t| <= half_v, given
    u.v, u.(c - e) and v.(c - e). Where they are parallel, s begins at a bounded place, and any place will do."""
    sine_squared = maximum(1.0 - cosine * cosine, PARALLEL)
    s = clamp((cosine * offset_v - offset_u) * inverse(sine_squared), -half_u, half_u)
    t = clamp(cosine * s + offset_v, -half_v, half_v)
    # t is final: if it was not clamped this returns the same s, else the point that is closest to that end
    return clamp(cosine * t - offset_u, -half_u, half_u), t


@traced
def capsule_capsule(A, a, B, b, side):
    """Parallel capsules side by side: the lower (-1) or upper (+1) end of their overlap along A. Otherwise +1 is the
    pair of closest points, and -1 does not exist."""
    u, v, between_middles = column(A[:9], 2), column(B[:9], 2), sub(A[9:], B[9:])
    cosine, offset_u, offset_v = dot(u, v), dot(u, between_middles), dot(v, between_middles)
    spread = maximum(cosine, -cosine) * b[1]
    low, high = maximum(-a[1], -offset_u - spread), minimum(a[1], spread - offset_u)
    is_parallel = select(PARALLEL > 1.0 - cosine * cosine, high - low, 0.0) > 0.0
    overlap_s = select(side > 0.0, high, low)
    overlap_t = clamp(cosine * overlap_s + offset_v, -b[1], b[1])
    closest_s, closest_t = closest_on_segments(cosine, offset_u, offset_v, a[1], b[1])
    s, t = select(is_parallel, overlap_s, closest_s), select(is_parallel, overlap_t, closest_t)
    contact = spheres_contact(axis_point(A, s), a[0], axis_point(B, t), b[0], column(A[:9], 0))
    return where_it_exists(select(is_parallel, 1.0, side) > 0.0, *contact)


moved_capsule_capsule = along_motions(capsule_capsule)
capsule_capsule_adjoint = adjoint_along_motions(moved_capsule_capsule)
