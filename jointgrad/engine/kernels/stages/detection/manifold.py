"""Which features of two convex bodies of one environment meet: a face and what lies on it, or two elements."""

from .....compiler.kernel import inlined, sweep
from .....model.arrays import CYLINDER, ELLIPSOID, SPHERE
from .candidates import NOTHING, put_candidate, put_measure
from .cores import is_round, separation_along, size_of, snapped_to_face
from .elements import CORNER, LINE, RIM, ROUND, element_point, line_of, newton_direction
from .faces import face_along, face_manifold
from .polygons import FACE_TIE, REFERENCE, polygon_of_corners, three_of
from .scalars import across3, axis3, cross3, dot3, entries3, placed3, plus3, scaled3, sub3, unit3
from .separation import POINT, best_separation, better_of

PARALLEL = 1e-5  # square of the sine of the angle below which two lines are parallel


@sweep
def radius_beyond(body, radius, kind):
    """What an element's surface lies beyond its points: the radius of spheres, capsules and of a cylinder's side."""
    if body[0] == CYLINDER:
        return body[3][0] if kind == LINE else 0.0
    return radius if kind == CORNER or kind == LINE else 0.0


@sweep
def active_corners(frame, points, side):
    """Different corners of a body (side 0: A, 1: B) among the points that decide: how many, and three of them."""
    touch = frame.touch
    first, second, third, n = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 0
    for i in range(points):
        at = POINT * i + 3 + 3 * side
        x = (touch.scratch[at], touch.scratch[at + 1], touch.scratch[at + 2])
        if n == 0:
            first, n = x, 1
        elif n == 1 and x != first:
            second, n = x, 2
        elif n == 2 and x != first and x != second:
            third, n = x, 3
    return n, (first[0], first[1], first[2], second[0], second[1], second[2], third[0], third[1], third[2])


@sweep
def tied_corners(frame, body, d):
    """Corners that lie farthest along d, which are no face: (their number, one or two of them)."""
    u = across3(d)
    frame3 = (u, cross3(d, u), d, (body[4][9], body[4][10], body[4][11]))
    n = polygon_of_corners(frame, body, d, FACE_TIE * size_of(frame, body), REFERENCE, frame3)
    return n, three_of(frame, REFERENCE, 0, 1 if n > 1 else 0, 0)


@sweep
def element_of(frame, body, d, points, side, choice):
    """What of a body may meet another one in the direction d, where that is no face: (kind, its numbers); kind -1 where it
    has no such choice. The last points of the search name corners, of which one, or two as a line, may be meant."""
    kind = body[0]
    if kind == SPHERE:
        return (CORNER if choice == 0 else -1), NOTHING
    if kind == ELLIPSOID:
        return (ROUND if choice == 0 else -1), NOTHING
    if kind == CYLINDER:
        along = dot3(axis3(body[4]), d)
        if choice == 0 and abs(along) < 0.4:
            return LINE, (0.0, 0.0, -1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
        end = 1.0 if along > 0.0 else -1.0
        return (RIM if choice < 3 else -1), (end if choice < 2 else -end, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    if choice == 0:
        n, data = tied_corners(frame, body, d)
        return (LINE if n > 1 else CORNER), data
    n, c = active_corners(frame, points, side)
    if choice == 1:
        return (LINE if n > 1 else -1), c
    if choice == 2:
        return (LINE if n > 2 else -1), (c[3], c[4], c[5], c[6], c[7], c[8], c[0], c[1], c[2])
    return (LINE if n > 2 else -1), (c[6], c[7], c[8], c[0], c[1], c[2], c[3], c[4], c[5])


@inlined
def end_of(body, data, k):
    return placed3(body[4], entries3((data[3 * k], data[3 * k + 1], data[3 * k + 2]), body[3]))


@inlined
def reversed_ends(data):
    return data[3], data[4], data[5], data[0], data[1], data[2], data[6], data[7], data[8]


@sweep
def beside_candidates(frame, count, A, a, B, b, n):
    """Two lines side by side: the ends of their overlap, each an end of one and the line of the other."""
    for side in range(2):
        for k in range(2):
            body, own, other, line = (A, a, B, b) if side == 0 else (B, b, A, a)
            end, start = end_of(body, own, k), end_of(other, line, 0)
            way = sub3(end_of(other, line, 1), start)
            square, along = dot3(way, way), dot3(sub3(end, start), way)
            slack = 1e-9 if side == 0 else -1e-9
            if -slack * square <= along <= (1.0 + slack) * square:
                ends = own if k == 0 else reversed_ends(own)
                codes = (2.0, 1.0 * CORNER, 1.0 * LINE) if side == 0 else (2.0, 1.0 * LINE, 1.0 * CORNER)
                one, two = (ends, line) if side == 0 else (line, ends)
                count = put_candidate(frame, count, codes, one, two, n, (0.0, 0.0, 0.0))
                put_measure(frame, count - 1, 0.0, end)
    return count


@sweep
def element_manifold(frame, count, A, B, n, points, radii):
    """The candidate of two elements that meet; two where lines lie side by side.

    Which elements they are is what separates best: each choice leads to a direction of its own."""
    best, a_best, b_best, codes, found = -1e300, NOTHING, NOTHING, (2.0, 0.0, 0.0), n
    for choice in range(16):
        a_kind, a = element_of(frame, A, scaled3(n, -1.0), points, 0, choice // 4)
        b_kind, b = element_of(frame, B, n, points, 1, choice % 4)
        if a_kind >= 0 and b_kind >= 0:
            m = n
            if a_kind == LINE and b_kind == LINE:
                across = cross3(line_of(A, a), line_of(B, b))
                if dot3(across, across) < PARALLEL and choice == 0:
                    return beside_candidates(frame, count, A, a, B, b, n)
            if is_round(A) or is_round(B) or a_kind == LINE or b_kind == LINE:
                for _ in range(12 if is_round(A) or is_round(B) else 2):
                    m = newton_direction(A, a_kind, a, B, b_kind, b, m)
            here = separation_along(frame, A, B, m) if dot3(m, n) > 0.5 else -1e300
            if here > best + 1e-12 * abs(best):
                best, a_best, b_best, codes, found = here, a, b, (2.0, 1.0 * a_kind, 1.0 * b_kind), m
    after = put_candidate(frame, count, codes, a_best, b_best, found, (0.0, 0.0, 0.0))
    if after > count:
        radii = radius_beyond(A, radii[0], int(codes[1])), radius_beyond(B, radii[1], int(codes[2]))
        place = element_point(B, int(codes[2]), b_best, found)
        put_measure(frame, count, best - radii[0] - radii[1], place)
    return after


@sweep
def polished(frame, A, B, n):
    """Towards a face or the side of a cylinder, where that separates as well."""
    for side in range(2):
        body, sign = (A, -1.0) if side == 0 else (B, 1.0)
        d = scaled3(n, sign)
        m = snapped_to_face(frame, body, d)
        if dot3(m, d) > 0.9:
            n = better_of(frame, A, B, n, scaled3(m, sign))
        if body[0] == CYLINDER:
            z = axis3(body[4])
            along = dot3(z, n)
            if abs(along) < 0.4:
                n = better_of(frame, A, B, n, unit3(plus3(n, z, -along)))
    return n


@sweep
def convex_manifold(frame, count, A, B, radii, margin):
    """Candidates of two convex bodies, after `count` others; how many there are then."""
    n, points = best_separation(frame, A, B)
    if points == 0:
        return count
    if is_round(A) or is_round(B):
        n = polished(frame, A, B, n)
    if face_along(frame, B, n, points, 1):
        return face_manifold(frame, count, (1.0, B, n, n), A, radii[0], margin)
    if face_along(frame, A, scaled3(n, -1.0), points, 0):
        return face_manifold(frame, count, (-1.0, A, scaled3(n, -1.0), n), B, radii[1], margin)
    return element_manifold(frame, count, A, B, n, points, radii)
