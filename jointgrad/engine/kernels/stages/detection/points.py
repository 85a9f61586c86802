"""Where spheres, and the corners of boxes, meet planes and each other.

Every operator takes the poses A, B and sizes a, b of two shapes and yields (point, normal, gap) in the world: the
normal (unit) points from B to A, the gap is the distance of the two surfaces along it, negative where they overlap, and
the point lies halfway between them. The kinds are ordered plane, sphere, capsule, box; A is never of the earlier kind.
Sizes are three numbers: radius of a sphere; radius and half length (along z) of a capsule; half extents of a box. A
plane is the half space below its z axis.
"""

import inspect

from .....algebra.spatial import moved_pose
from .....algebra.vector import add, column, dot, scale, sub, times
from .....compiler.elementary import inverse, root, select
from .....compiler.reverse import adjoint
from .....compiler.trace import Traced, traced

FAR = 1e9  # gap of a contact that does not exist, m; a constant, so that no cotangent passes

COINCIDENT = 1e-24  # square of the distance below which two points have no direction, m^2


def displaced(pose, delta):
    """A pose after a small turn about its own position and a small displacement, to first order."""
    moved = moved_pose((*pose[:9], 0.0, 0.0, 0.0), delta)
    return (*moved[:9], *add(pose[9:], moved[9:]))


def along_motions(operator):
    """The operator with both shapes displaced: its further arguments are A_delta and B_delta."""

    def moved(*args):
        A, a, B, *rest, A_delta, B_delta = args
        return operator.fn(displaced(A, A_delta), a, displaced(B, B_delta), *rest)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    still = [inspect.Parameter(name, kind) for name in inspect.signature(operator.fn).parameters]
    deltas = [inspect.Parameter(name, kind, default=(0.0,) * 6) for name in ("A_delta", "B_delta")]
    moved.__signature__ = inspect.Signature([*still, *deltas])  # type: ignore[attr-defined]
    moved.__doc__ = f"{operator.__name__} of shapes that move a little."
    return Traced(moved, f"moved_{operator.__name__}")


def adjoint_along_motions(moved):
    """Cotangents of the small motions of A and B, taken at rest, and of the sizes."""
    return adjoint(moved, "A_delta B_delta a b", at_zero="A_delta B_delta")


def direction_and_length(v, otherwise):
    """Unit vector along v, and v's length; where v vanishes, a given unit vector, along which v is measured."""
    square = dot(v, v)
    vanishes = COINCIDENT > square
    length = root(select(vanishes, 1.0, square))
    per_length = inverse(length)
    direction = tuple(select(vanishes, o, x * per_length) for x, o in zip(v, otherwise, strict=True))
    return direction, select(vanishes, dot(v, otherwise), length)


def where_it_exists(exists, point, normal, gap):
    """A contact, or harmless constants in its place."""
    point = tuple(select(exists, x, 0.0) for x in point)
    normal = tuple(select(exists, x, z) for x, z in zip(normal, (0.0, 0.0, 1.0), strict=True))
    return point, normal, select(exists, gap, FAR)


def between(on_A, on_B):
    return scale(add(on_A, on_B), 0.5)


def spheres_contact(center_A, radius_A, center_B, radius_B, otherwise=(0.0, 0.0, 1.0)):
    """Two spheres; the normal is `otherwise` where the centres coincide."""
    normal, distance = direction_and_length(sub(center_A, center_B), otherwise)
    on_A, on_B = sub(center_A, scale(normal, radius_A)), add(center_B, scale(normal, radius_B))
    return between(on_A, on_B), normal, distance - radius_A - radius_B


def plane_contact(center, radius, plane):
    """A sphere and a plane."""
    normal = column(plane[:9], 2)
    height = dot(normal, sub(center, plane[9:]))
    gap = height - radius
    return sub(center, scale(normal, height - 0.5 * gap)), normal, gap


@traced
def sphere_plane(A, a, B, b):
    return plane_contact(A[9:], a[0], B)


moved_sphere_plane = along_motions(sphere_plane)
sphere_plane_adjoint = adjoint_along_motions(moved_sphere_plane)


@traced
def box_plane(A, a, B, b, sx, sy, sz):
    """The corner of the box on the sides with the given signs."""
    corner = add(A[9:], times(A[:9], (sx * a[0], sy * a[1], sz * a[2])))
    return plane_contact(corner, 0.0, B)


moved_box_plane = along_motions(box_plane)
box_plane_adjoint = adjoint_along_motions(moved_box_plane)


@traced
def sphere_sphere(A, a, B, b):
    return spheres_contact(A[9:], a[0], B[9:], b[0])


moved_sphere_sphere = along_motions(sphere_sphere)
sphere_sphere_adjoint = adjoint_along_motions(moved_sphere_sphere)
