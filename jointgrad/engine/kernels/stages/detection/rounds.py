"""Where cylinders, ellipsoids and corners of meshes meet planes."""

from .....algebra.vector import add, column, cross, dot, scale, sub, transposed_times
from .....compiler.elementary import maximum, select
from .....compiler.trace import traced
from .boxes import choose, entrywise, magnitude, sign
from .convex import in_world, round_point, unit
from .points import adjoint_along_motions, along_motions, plane_contact, where_it_exists
from .polygons import FLAT_RIM

# corners of a mesh that count as lying on a plane are within this part of its size of the lowest
NEAR_LOWEST = 0.02
# outermost corners are looked for askew to the mesh's own axes: along these, corners of what is like a box tie
ASKEW = 0.9210609940028851, 0.3894183423086505  # cosine and sine of 0.4


@traced
def cylinder_plane(A, a, B, b, end, cosine, sine):
    """A point of one rim: end is +1 or -1, or 0 for the lower one; cosine and sine turn it from the lowest point round the axis.
    A cylinder that stands on its end, to within FLAT_RIM, has points that are its own."""
    z, n = column(A[:9], 2), column(B[:9], 2)
    along = dot(z, n)
    across = sub(scale(z, along), n)
    is_flat = FLAT_RIM * FLAT_RIM > dot(across, across)
    u = choose(is_flat, column(A[:9], 0), unit(across))
    lower = select(end * end > 0.5, end, -sign(along))
    out = add(scale(u, a[0] * cosine), scale(cross(z, u), a[0] * sine))
    return plane_contact(add(add(A[9:], scale(z, lower * a[1])), out), 0.0, B)


moved_cylinder_plane = along_motions(cylinder_plane)
cylinder_plane_adjoint = adjoint_along_motions(moved_cylinder_plane)


@traced
def ellipsoid_plane(A, a, B, b):
    n = column(B[:9], 2)
    return plane_contact(round_point(A, a, scale(n, -1.0)), 0.0, B)


moved_ellipsoid_plane = along_motions(ellipsoid_plane)
ellipsoid_plane_adjoint = adjoint_along_motions(moved_ellipsoid_plane)


# a mesh ------------------------------------------------------------------------------------------------------------------


@traced
def looking_down(A, a, B):
    """For corners before their scale: what gives their depth below a plane, and their place along it in two directions."""
    n, x = column(B[:9], 2), column(A[:9], 0)
    is_steep = dot(x, n) * dot(x, n) > 0.5
    v = unit(choose(is_steep, cross(n, column(A[:9], 1)), cross(n, x)))
    u = add(scale(v, ASKEW[0]), scale(cross(n, v), ASKEW[1]))
    return tuple(entrywise(transposed_times(A[:9], d), a) for d in (scale(n, -1.0), u, cross(n, u)))


@traced
def higher(best, corner, along):
    """The larger of a number and a corner's."""
    return maximum(best, dot(corner, along))


@traced
def floor_of(deepest, a, radius):
    x, y, z = (magnitude(s) for s in a)
    return deepest - NEAR_LOWEST * radius * maximum(maximum(x, y), z)


@traced
def outer(found, corner, views, floor):
    """Of the corners above a floor the outermost ones in four directions, each a corner and how far out; and the deepest."""
    depth, x, y = (dot(corner, view) for view in views)
    counts = depth > floor
    new = []
    for (*kept, best), here in zip(found[:4], (x, y, -x, -y), strict=True):
        is_better = select(counts, here - best, -1.0) > 0.0
        new.append((*choose(is_better, corner, tuple(kept)), select(is_better, here, best)))
    *kept, best = found[4]
    return (*new, (*choose(depth > best, corner, tuple(kept)), maximum(best, depth)))


@traced
def nothing_found(like):
    zero = 0.0 * like
    return ((zero, zero, zero, zero - 1e300),) * 5


@traced
def corner_row(found, others, is_last):
    """A row of geometry of one corner. The deepest is left out where it is one of the others."""
    near = 1.0
    for other in others:
        way = sub(found[:3], other[:3])
        near = select(dot(way, way) > 0.0, near, 0.0)
    return (select(is_last > 0.5, near, 1.0), 0.0, 0.0, *found[:3], *(0.0,) * 18)


@traced
def mesh_plane(A, a, B, b, row):
    point, normal, gap = plane_contact(in_world(A, a, row[3:6]), 0.0, B)
    return where_it_exists(row[0] > 0.5, point, normal, gap)


moved_mesh_plane = along_motions(mesh_plane)
mesh_plane_adjoint = adjoint_along_motions(moved_mesh_plane)
