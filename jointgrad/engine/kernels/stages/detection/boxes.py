"""Where boxes meet spheres, capsules and each other.

Capsules and boxes meet a box in two halves. A search finds the features that touch (faces, edges, corners), as numbers
-1, 0, 1 along the axes of a box: one sign is a face, two are an edge, three a corner. Nothing is differentiated through
it. An operator then computes each point from the features, and its derivative is that of the features found.
"""

from .....algebra.vector import add, column, cross, dot, neg, product, scale, sub, times, transposed, transposed_times
from .....compiler.elementary import clamp, inverse, maximum, minimum, root, select
from .....compiler.trace import traced
from .capsules import PARALLEL, axis_point, closest_on_segments
from .points import (
    COINCIDENT,
    FAR,
    adjoint_along_motions,
    along_motions,
    between,
    spheres_contact,
    where_it_exists,
)

# Sine of the angle by which a normal may leave the cone of an edge or a corner: a capsule that lies flat on a face
# touches both edges that it crosses, and no tilt is exactly zero. The same angle as for parallel segments.
FLAT = PARALLEL**0.5
# An edge must separate better than the best face by these parts of the face's depth and of the boxes' size, and a face
# of B better than one of A. Where a face and an edge tie, as in a stack that is turned about the vertical, the face
# holds the whole area of contact and the edges a point of it.
EDGE_MARGIN, SIZE_MARGIN = 0.05, 1e-6
# Square of the sine of the angle below which two edges have no normal of their own: faces separate such boxes as well.
SAME_DIRECTION = 1e-6
# Part of its extent by which a reference face is widened before the other face is clipped to it. Boxes of one size
# stand exactly on each other; the rounding of their sides must not decide how many points there are.
SLACK = 1e-5


def magnitude(x):
    return maximum(x, -x)


def sign(x):
    return select(0.0 > x, -1.0, 1.0)


def choose(condition, a, b):
    """select, number by number."""
    return tuple(select(condition, x, y) for x, y in zip(a, b, strict=True))


def largest(v):
    """One where the first largest entry of three is, else zero."""
    not_x, not_y = maximum(v[1], v[2]) > v[0], v[2] > v[1]
    return (
        select(not_x, 0.0, 1.0),
        select(not_x, select(not_y, 0.0, 1.0), 0.0),
        select(not_x, select(not_y, 1.0, 0.0), 0.0),
    )


def entrywise(a, b):
    return tuple(x * y for x, y in zip(a, b, strict=True))


# a sphere -------------------------------------------------------------------------------------------------------------


def way_to_box(place, size):
    """From a place in a box's axes to the nearest point of its surface: direction, and distance along it. Inside, the
    distance is negative and the direction is away from the nearest face, so that both go on through the surface."""
    # zero between two faces as a constant: a direction this short must not pass on rounding of what cancels
    way = tuple(select(x > h, h - x, select(-h > x, -h - x, 0.0)) for x, h in zip(place, size, strict=True))
    square = dot(way, way)
    is_inside = COINCIDENT > square
    distance = root(select(is_inside, 1.0, square))
    per_distance = inverse(distance)
    height = tuple(magnitude(x) - h for x, h in zip(place, size, strict=True))
    face = largest(height)
    inward = tuple(-f * sign(x) for f, x in zip(face, place, strict=True))
    return choose(is_inside, inward, scale(way, per_distance)), select(is_inside, dot(face, height), distance)


def box_sphere_contact(box, size, center, radius):
    direction, distance = way_to_box(transposed_times(box[:9], sub(center, box[9:])), size)
    normal = times(box[:9], direction)
    return add(center, scale(normal, 0.5 * (distance + radius))), normal, distance - radius


@traced
def box_sphere(A, a, B, b):
    return box_sphere_contact(A, a, B[9:], b[0])


moved_box_sphere = along_motions(box_sphere)
box_sphere_adjoint = adjoint_along_motions(moved_box_sphere)


# a capsule ------------------------------------------------------------------------------------------------------------


def face_separation(middle, axis, half, size):
    """The largest distance of a segment from the planes of a box's faces, seen in the box's axes."""
    x, y, z = (magnitude(m) - half * magnitude(u) - h for m, u, h in zip(middle, axis, size, strict=True))
    return maximum(maximum(x, y), z)


def edge_in_touch(k, signs, middle, axis, half, size):
    """One edge of a box, along its axis k, and a segment: (do they touch there, or at a corner of the edge; the
    feature; the square of the distance; the height of the segment above it)."""
    i, j = (k + 1) % 3, (k + 2) % 3
    from_edge = tuple(m if n == k else m - signs[n] * size[n] for n, m in enumerate(middle))
    s, t = closest_on_segments(axis[k], dot(axis, from_edge), from_edge[k], half, size[k])
    corner = select(magnitude(t) < size[k], 0.0, sign(t))
    feature = tuple(corner if n == k else signs[n] for n in range(3))
    way = tuple(f + s * u - (t if n == k else 0.0) for n, (f, u) in enumerate(zip(from_edge, axis, strict=True)))
    square = dot(way, way)
    # the normal of an edge is across both directions; it must point away from the box, as must the way from a corner
    sine = root(maximum(axis[i] * axis[i] + axis[j] * axis[j], PARALLEL))
    out_i, out_j = signs[i] * axis[j], -signs[j] * axis[i]
    outward = sign(out_i + out_j)
    least_out = minimum(outward * out_i, outward * out_j) + FLAT * sine
    height = outward * (axis[j] * from_edge[i] - axis[i] * from_edge[j]) * inverse(sine)
    edge_holds = minimum(least_out, sine * sine - PARALLEL)
    leaning = minimum(minimum(feature[0] * way[0], feature[1] * way[1]), feature[2] * way[2])
    distance = root(maximum(square, COINCIDENT))
    is_corner = corner * corner > 0.0
    holds = minimum(select(is_corner, leaning + FLAT * distance, edge_holds), half - magnitude(s))
    return holds > 0.0, feature, square, select(is_corner, distance, height)


def nearer(is_candidate, here, best):
    """Of two results of `edge_in_touch`, the nearer, if the first is a candidate at all."""
    is_better = select(is_candidate, best[1] - here[1], -1.0) > 0.0
    return choose(is_better, here[0], best[0]), select(is_better, here[1], best[1]), select(is_better, here[2], best[2])


@traced
def box_capsule_features(A, a, B, b):
    """What of the box A touches the capsule B between its ends: six numbers, the feature on the side of the capsule's
    lower end, and that on the side of its upper end. A feature of zeros says that the end itself may touch.

    The distance of a point of the axis from the box is convex along the axis. So the closest point is an end, or faces
    an edge or a corner; and where the axis is parallel to a face it crosses one edge on the way to each end.
    """
    middle, axis = transposed_times(A[:9], sub(B[9:], A[9:])), transposed_times(A[:9], column(B[:9], 2))
    nowhere = ((0.0, 0.0, 0.0), FAR, -FAR)
    lower, upper = nowhere, nowhere
    for k in range(3):
        for p, q in ((-1.0, -1.0), (-1.0, 1.0), (1.0, -1.0), (1.0, 1.0)):
            signs = tuple({k: 0.0, (k + 1) % 3: p, (k + 2) % 3: q}[n] for n in range(3))
            touches, *here = edge_in_touch(k, signs, middle, axis, b[1], a)
            is_upper = dot(here[0], axis) > 0.0
            lower = nearer(select(touches, select(is_upper, 0.0, 1.0), 0.0) > 0.0, here, lower)
            upper = nearer(select(touches, select(is_upper, 1.0, 0.0), 0.0) > 0.0, here, upper)
    # an edge that lies deeper than a face, or than the other edge, is not the way out; flat on a face they tie
    best = maximum(maximum(lower[2], upper[2]), face_separation(middle, axis, b[1], a))
    least = best - EDGE_MARGIN * magnitude(best) - SIZE_MARGIN * (sum(a) + b[1])
    none = (0.0, 0.0, 0.0)
    return (*choose(lower[2] > least, lower[0], none), *choose(upper[2] > least, upper[0], none))


def corner_contact(A, a, B, b, feature):
    """A corner of the box and the inside of the capsule's axis."""
    outward = times(A[:9], feature)
    corner = add(A[9:], times(A[:9], entrywise(feature, a)))
    s = clamp(dot(column(B[:9], 2), sub(corner, B[9:])), -b[1], b[1])
    return spheres_contact(corner, 0.0, axis_point(B, s), b[0], scale(outward, -(3.0**-0.5)))


def lines_contact(middle_A, e, middle_B, u, outward):
    """Two lines that are not parallel: closest points on both, normal against `outward`, distance along the normal."""
    across, between_middles = cross(e, u), sub(middle_A, middle_B)
    cosine, offset_e, offset_u = dot(e, u), dot(e, between_middles), dot(u, between_middles)
    # the searches leave no smaller sine to a pair that counts
    sine_squared = maximum(dot(across, across), SAME_DIRECTION)
    per_square = inverse(sine_squared)
    t, s = (cosine * offset_u - offset_e) * per_square, (offset_u - cosine * offset_e) * per_square
    normal = scale(across, select(dot(across, outward) > 0.0, -1.0, 1.0) * root(per_square))
    return t, s, normal, dot(normal, between_middles)


def edge_contact(A, a, B, b, feature):
    """An edge of the box and the inside of the capsule's axis."""
    e, u = times(A[:9], tuple(1.0 - f * f for f in feature)), column(B[:9], 2)
    middle = add(A[9:], times(A[:9], entrywise(feature, a)))
    t, s, normal, distance = lines_contact(middle, e, B[9:], u, times(A[:9], feature))
    on_B = add(axis_point(B, s), scale(normal, b[0]))
    return between(add(middle, scale(e, t)), on_B), normal, distance - b[0]


@traced
def box_capsule(A, a, B, b, features, side):
    """The contact on one side, -1 or +1, of the capsule: with the feature of the box that was found there, else of the
    sphere at that end. Beyond a feature the end is farther from the box, so the two hand over where they coincide."""
    feature = choose(side > 0.0, features[3:], features[:3])
    signs = dot(feature, feature)
    end_point, end_normal, end_gap = box_sphere_contact(A, a, axis_point(B, side * b[1]), b[0])
    edge_point, edge_normal, edge_gap = edge_contact(A, a, B, b, feature)
    corner_point, corner_normal, corner_gap = corner_contact(A, a, B, b, feature)

    def of_kind(end, edge, corner):
        return select(signs > 1.5, select(signs > 2.5, corner, edge), end)

    point = tuple(map(of_kind, end_point, edge_point, corner_point))
    normal = tuple(map(of_kind, end_normal, edge_normal, corner_normal))
    return point, normal, of_kind(end_gap, edge_gap, corner_gap)


moved_box_capsule = along_motions(box_capsule)
box_capsule_adjoint = adjoint_along_motions(moved_box_capsule)


# a box ----------------------------------------------------------------------------------------------------------------


def clearly_above(separation, size):
    """What another axis must separate by to be preferred."""
    return separation + EDGE_MARGIN * magnitude(separation) + SIZE_MARGIN * size


def best_edges(C, way, a, b, level, found):
    """The pair of edges that separates two boxes better than `level`: (edge of A, edge of B, separation). If there is
    none, `found` and `level`.

    C[i, j] is the cosine of axis i of A and axis j of B, `way` leads from A to B in A's axes. All that is asked of the
    cross product of two axes follows from C.
    """
    (edge_A, edge_B), best = found, level
    for i in range(3):
        i1, i2 = (i + 1) % 3, (i + 2) % 3
        for j in range(3):
            j1, j2 = (j + 1) % 3, (j + 2) % 3
            # the cross product along A's axes i1, i2, and along B's axes j1, j2
            along = (-C[3 * i2 + j], C[3 * i1 + j], C[3 * i + j2], -C[3 * i + j1])
            square = along[0] * along[0] + along[1] * along[1]
            distance = way[i1] * along[0] + way[i2] * along[1]
            reach = dot((a[i1], a[i2], b[j1], b[j2]), tuple(map(magnitude, along)))
            separation = (magnitude(distance) - reach) * inverse(root(maximum(square, SAME_DIRECTION)))
            is_better = select(square > SAME_DIRECTION, separation - best, -1.0) > 0.0
            towards = sign(distance)
            signs = [towards * sign(x) for x in along]
            here_A = tuple({i: 0.0, i1: signs[0], i2: signs[1]}[n] for n in range(3))
            here_B = tuple({j: 0.0, j1: -signs[2], j2: -signs[3]}[n] for n in range(3))
            edge_A, edge_B = choose(is_better, here_A, edge_A), choose(is_better, here_B, edge_B)
            best = select(is_better, separation, best)
    return edge_A, edge_B, best


@traced
def box_box_features(A, a, B, b):
    """Which features of two boxes touch, by separating axes: seven numbers (holder, first (3), second (3)).

    Holder 1: a face of A is the reference face, `first` is it, in A's axes; `second` is the incident face of B, in B's
    axes. Holder -1: the same with A and B exchanged. Holder 0: `first` is an edge of A, `second` an edge of B.
    """
    C, way = product(transposed(A[:9]), B[:9]), sub(B[9:], A[9:])
    way_A, way_B = transposed_times(A[:9], way), transposed_times(B[:9], way)
    cosines = tuple(map(magnitude, C))
    apart_A = sub(sub(tuple(map(magnitude, way_A)), a), times(cosines, b))
    apart_B = sub(sub(tuple(map(magnitude, way_B)), b), transposed_times(cosines, a))
    face_A = entrywise(largest(apart_A), tuple(map(sign, way_A)))
    face_B = neg(entrywise(largest(apart_B), tuple(map(sign, way_B))))
    by_A, by_B = (maximum(maximum(v[0], v[1]), v[2]) for v in (apart_A, apart_B))
    size = sum(a) + sum(b)
    B_holds = by_B > clearly_above(by_A, size)
    first = choose(B_holds, face_B, face_A)
    seen = choose(B_holds, times(C, face_B), transposed_times(C, face_A))  # the reference normal along the other's axes
    second = neg(entrywise(largest(tuple(map(magnitude, seen))), tuple(map(sign, seen))))
    level = clearly_above(select(B_holds, by_B, by_A), size)
    first, second, best = best_edges(C, way_A, a, b, level, (first, second))
    return (select(best > level, 0.0, select(B_holds, -1.0, 1.0)), *first, *second)


def face_frame(pose, size, face):
    """Middle of a face, its outward normal, its two directions and the half extents along them."""
    R, (x, y, z) = pose[:9], tuple(f * f for f in face)
    one, two = (z, x, y), (y, z, x)
    middle = add(pose[9:], times(R, entrywise(face, size)))
    return middle, times(R, face), (times(R, one), times(R, two)), (dot(one, size), dot(two, size))


def touching_faces(A, a, B, b, features):
    """Frames of the reference and of the incident face; the sign that turns the reference normal from B to A."""
    A_holds = features[0] > 0.0
    reference = face_frame(choose(A_holds, A, B), choose(A_holds, a, b), features[1:4])
    incident = face_frame(choose(A_holds, B, A), choose(A_holds, b, a), features[4:7])
    return reference, incident, -features[0]


def in_face(middle, directions, place):
    return tuple(dot(d, sub(place, middle)) for d in directions)


def face_corner(middle, directions, extents, sx, sy):
    return add(middle, add(scale(directions[0], sx * extents[0]), scale(directions[1], sy * extents[1])))


def widened(extents):
    return scale(extents, 1.0 + SLACK)


def crossing(start, end, extents):
    """The part (enter, leave) of the way from start to end, as parts of one, inside a rectangle, by the cuts of Liang
    and Barsky; leave is less than enter where there is none."""
    enter, leave = 0.0, 1.0
    for x, y, h in zip(start, end, extents, strict=True):
        for side in (-1.0, 1.0):
            room, rate = h - side * x, side * (y - x)
            is_along = 1e-30 > rate * rate  # along the side to within rounding: inside all the way, or outside
            part = room * inverse(select(is_along, 1.0, rate))
            enter = maximum(enter, select(is_along, 0.0, select(0.0 > rate, part, 0.0)))
            leave = minimum(leave, select(is_along, select(0.0 > room, -1.0, 1.0), select(0.0 > rate, 1.0, part)))
    return enter, leave


@traced
def box_box_clip(A, a, B, b, features, sx, sy, leaves):
    """An edge of the incident face, from its corner (sx, sy) on round the face, cut to the reference face: the point
    where it enters (leaves = -1), the corner itself if that is inside; or where it leaves (+1), if before its end."""
    (middle, normal, directions, extents), incident, turn = touching_faces(A, a, B, b, features)
    start = face_corner(incident[0], incident[2], incident[3], sx, sy)
    end = face_corner(incident[0], incident[2], incident[3], -sy, sx)
    enter, leave = crossing(in_face(middle, directions, start), in_face(middle, directions, end), widened(extents))
    place = add(start, scale(sub(end, start), select(leaves > 0.0, leave, enter)))
    gap = dot(normal, sub(place, middle))
    # each corner begins one edge, so the end of an edge belongs to the next
    is_inside = select(leave > enter, select(leaves > 0.0, 1.0 - leave, 1.0), 0.0) > 0.0
    exists = select(is_inside, turn * turn, 0.0) > 0.5
    return where_it_exists(exists, sub(place, scale(normal, 0.5 * gap)), scale(normal, turn), gap)


moved_box_box_clip = along_motions(box_box_clip)
box_box_clip_adjoint = adjoint_along_motions(moved_box_box_clip)


@traced
def box_box_corner(A, a, B, b, features, sx, sy):
    """The corner (sx, sy) of the reference face, where the incident face covers it."""
    (middle, normal, directions, extents), incident, turn = touching_faces(A, a, B, b, features)
    corner = face_corner(middle, directions, widened(extents), sx, sy)
    # of three perpendicular faces the incident one faces the reference by a cosine of 0.57 at least
    facing = dot(normal, incident[1])
    gap = dot(incident[1], sub(incident[0], corner)) * inverse(select(-0.5 > facing, facing, -1.0))
    x, y = in_face(incident[0], incident[2], add(corner, scale(normal, gap)))
    room = minimum(incident[3][0] - magnitude(x), incident[3][1] - magnitude(y))
    exists = select(room > 0.0, turn * turn, 0.0) > 0.5
    return where_it_exists(exists, add(corner, scale(normal, 0.5 * gap)), scale(normal, turn), gap)


moved_box_box_corner = along_motions(box_box_corner)
box_box_corner_adjoint = adjoint_along_motions(moved_box_box_corner)


@traced
def box_box_edge(A, a, B, b, features):
    """The one point of two edges that cross."""
    edge_A, edge_B = features[1:4], features[4:7]
    along_A, along_B = tuple(1.0 - f * f for f in edge_A), tuple(1.0 - f * f for f in edge_B)
    e, u = times(A[:9], along_A), times(B[:9], along_B)
    middle_A = add(A[9:], times(A[:9], entrywise(edge_A, a)))
    middle_B = add(B[9:], times(B[:9], entrywise(edge_B, b)))
    t, s, normal, gap = lines_contact(middle_A, e, middle_B, u, times(A[:9], edge_A))
    # boxes apart may have their edges cross beyond an end
    half_A, half_B = dot(along_A, a), dot(along_B, b)
    on_A, on_B = scale(e, clamp(t, -half_A, half_A)), scale(u, clamp(s, -half_B, half_B))
    point = between(add(middle_A, on_A), add(middle_B, on_B))
    return where_it_exists(features[0] * features[0] < 0.5, point, normal, gap)


moved_box_box_edge = along_motions(box_box_edge)
box_box_edge_adjoint = adjoint_along_motions(moved_box_box_edge)
