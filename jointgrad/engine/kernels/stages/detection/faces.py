"""Candidates between a face of one convex body, which holds the normal, and another body: corners of the other over the face,
crossings of their edges, and corners of the face under the other."""

import math

from .....compiler.kernel import inlined, sweep
from .....model.arrays import CAPSULE, CYLINDER, ELLIPSOID, SPHERE
from .candidates import FOUND, NOTHING, ROW, put_candidate, put_measure, spread
from .cores import size_of, support_point
from .elements import CORNER, CROSSING, HELD, RIM, ROUND, SIDE, element_point
from .polygons import (
    COSINES,
    FACE_TIE,
    INCIDENT,
    REFERENCE,
    SIDES,
    SINES,
    area_of,
    is_inside,
    plane_of,
    polygon_of,
    polygon_of_corners,
    put_vertex,
    three_of,
    vertex_place,
)
from .scalars import across3, axis3, cross3, dot3, plus3, scaled3, sub3, turned_back3

NEAR_FACE = 0.05  # part of the size within which, and within the margin, corners of the other body count to its face


@inlined
def face_candidate(frame, count, holder, kind, held, other, n, measure):
    """A candidate whose normal one body holds: `held` are that body's points."""
    if holder > 0.0:
        return put_candidate(frame, count, (holder, 1.0 * kind, 0.0), other, held, n, measure)
    return put_candidate(frame, count, (holder, 0.0, 1.0 * kind), held, other, n, measure)


@sweep
def rim_candidates(frame, count, face, body, n_ref, limits, held, frame3):
    """Points of the rims of a cylinder that lie deepest, and those beside them."""
    holder, _, m, n = face
    d = scaled3(m, -1.0)
    lower = 1.0 if dot3(axis3(body[4]), d) > 0.0 else -1.0
    for k in range(5):
        end = -lower if k == 4 else lower
        data = (end, COSINES[4 * k % SIDES], SINES[4 * k % SIDES], 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        x = sub3(element_point(body, RIM, data, d), frame3[3])
        gap, u, v = dot3(m, x) - limits[0], dot3(frame3[0], x), dot3(frame3[1], x)
        if gap < limits[1] and is_inside(frame, REFERENCE, n_ref, u, v, limits[2]):
            count = face_candidate(frame, count, holder, RIM, held, data, n, (gap, u, v))
    return count


@sweep
def deepest_candidate(frame, count, holder, n, sizes, limits, held):
    """The corner that lies deepest, which those at the edge of a face may leave out; it follows the polygon."""
    u, v, h = vertex_place(frame, INCIDENT, sizes[1])
    if not is_inside(frame, REFERENCE, sizes[0], u, v, limits[2]):
        return count
    data = three_of(frame, INCIDENT, sizes[1], 0, 1)
    return face_candidate(frame, count, holder, CORNER, held, data, n, (h - limits[0] - limits[3], u, v))


@sweep
def corner_candidates(frame, count, holder, n, sizes, limits, held):
    """Corners of the incident polygon inside the reference face; the deepest at any rate where it is alone."""
    for k in range(sizes[1]):
        u, v, h = vertex_place(frame, INCIDENT, k)
        gap = h - limits[0] - limits[3]
        if sizes[1] == 1 or (gap < limits[1] and is_inside(frame, REFERENCE, sizes[0], u, v, limits[2])):
            data = three_of(frame, INCIDENT, k, (k + 1) % sizes[1], (k + 2) % sizes[1])
            count = face_candidate(frame, count, holder, CORNER, held, data, n, (gap, u, v))
    return count


@sweep
def crossing_candidates(frame, count, holder, kind, n, sizes, limits):
    """Where edges of the incident polygon cross those of the reference face."""
    n_ref, n_inc = sizes
    for i in range(n_inc if n_inc > 2 else n_inc - 1):
        j = (i + 1) % n_inc
        x0, y0, h0 = vertex_place(frame, INCIDENT, i)
        x1, y1, h1 = vertex_place(frame, INCIDENT, j)
        for k in range(n_ref):
            p0, q0, _ = vertex_place(frame, REFERENCE, k)
            p1, q1, _ = vertex_place(frame, REFERENCE, (k + 1) % n_ref)
            # beyond the side by limits[2], as the test for being inside allows
            start = (p1 - p0) * (y0 - q0) - (q1 - q0) * (x0 - p0)
            end = (p1 - p0) * (y1 - q0) - (q1 - q0) * (x1 - p0)
            allowed = -limits[2] * math.sqrt((p1 - p0) * (p1 - p0) + (q1 - q0) * (q1 - q0))
            if (start < allowed) != (end < allowed):
                t = start / (start - end)
                u, v, gap = x0 + t * (x1 - x0), y0 + t * (y1 - y0), h0 + t * (h1 - h0) - limits[0] - limits[3]
                along = (u - p0) * (p1 - p0) + (v - q0) * (q1 - q0)
                square = (p1 - p0) * (p1 - p0) + (q1 - q0) * (q1 - q0)
                if gap < limits[1] and -1e-9 * square <= along <= (1.0 + 1e-9) * square:
                    held = three_of(frame, REFERENCE, k, (k + 1) % n_ref, (k + 2) % n_ref)
                    data = three_of(frame, INCIDENT, i, j, (i + 2) % n_inc)
                    count = face_candidate(frame, count, holder, kind, held, data, n, (gap, u, v))
    return count


@sweep
def held_candidates(frame, count, holder, n, sizes, limits, slope):
    """Corners of the reference face over the incident one, whose plane is h = slope . (u, v, 1)."""
    n_ref, n_inc = sizes
    for k in range(n_ref):
        u, v, _ = vertex_place(frame, REFERENCE, k)
        gap = slope[0] * u + slope[1] * v + slope[2] - limits[0]
        if gap < limits[1] and is_inside(frame, INCIDENT, n_inc, u, v, -limits[2]):
            held = three_of(frame, REFERENCE, k, (k + 1) % n_ref, (k + 2) % n_ref)
            data = three_of(frame, INCIDENT, 0, n_inc // 3, 2 * n_inc // 3)
            count = face_candidate(frame, count, holder, HELD, held, data, n, (gap, u, v))
    return count


@sweep
def on_face(frame, count, face, O, given, frame3):
    """Candidates between the reference polygon of a face and the body O."""
    holder, H, m, n = face
    n_ref, radius, margin = given
    size = size_of(frame, H)
    held = three_of(frame, REFERENCE, 0, n_ref // 3, 2 * n_ref // 3)
    height = vertex_place(frame, REFERENCE, 0)[2]
    tie = min(margin, NEAR_FACE * size_of(frame, O)) + FACE_TIE * size
    n_inc = polygon_of(frame, O, scaled3(m, -1.0), tie, INCIDENT, frame3)
    slack = 1e-5 * size
    if O[0] == CYLINDER and n_inc != SIDES:
        count = rim_candidates(frame, count, face, O, n_ref, (height, margin, slack), held, frame3)
        if n_inc == 2:
            limits = (height, margin, slack, O[3][0])
            count = crossing_candidates(frame, count, holder, SIDE, n, (n_ref, n_inc), limits)
        return count
    if O[0] == ELLIPSOID:
        x = sub3(element_point(O, ROUND, NOTHING, scaled3(m, -1.0)), frame3[3])
        measure = dot3(m, x) - height, dot3(frame3[0], x), dot3(frame3[1], x)
        return face_candidate(frame, count, holder, ROUND, held, NOTHING, n, measure)
    limits, sizes = (height, margin, slack, radius), (n_ref, n_inc)
    # the deepest point of a rim is none of the body's own: it moves round with the tilt, and the rim's points are near enough
    if n_inc > 2 and O[0] != CYLINDER:
        deepest = support_point(frame, O, turned_back3(O[4], scaled3(m, -1.0)))
        put_vertex(frame, INCIDENT, n_inc, deepest, O, frame3)
        count = deepest_candidate(frame, count, holder, n, sizes, limits, held)
    count = corner_candidates(frame, count, holder, n, sizes, limits, held)
    if n_inc >= 2:
        count = crossing_candidates(frame, count, holder, CROSSING, n, sizes, limits)
    if n_inc >= 3 and abs(area_of(frame, INCIDENT, n_inc)) > 1e-12 * size * size:
        count = held_candidates(frame, count, holder, n, sizes, limits, plane_of(frame, INCIDENT, n_inc))
    return count


@sweep
def places_of_candidates(frame, first, count, frame3, height):
    """From places in the plane of a face to the world."""
    for k in range(first, count):
        at, scratch = FOUND + ROW * k + 24, frame.touch.scratch
        place = plus3(
            plus3(plus3(frame3[3], frame3[0], scratch[at + 1]), frame3[1], scratch[at + 2]), frame3[2], height
        )
        put_measure(frame, k, scratch[at], place)


@sweep
def face_manifold(frame, count, face, O, radius, margin):
    """Candidates between a face, (holder, body, outward normal, direction from B to A), and the other body O."""
    _, H, m, _ = face
    u = across3(m)
    frame3 = (u, cross3(m, u), m, (H[4][9], H[4][10], H[4][11]))
    n_ref = polygon_of(frame, H, m, FACE_TIE * size_of(frame, H), REFERENCE, frame3)
    height = vertex_place(frame, REFERENCE, 0)[2]
    after = on_face(frame, count, face, O, (n_ref, radius, margin), frame3)
    places_of_candidates(frame, count, after, frame3, height)
    return spread(frame, count, after, 4)


@sweep
def face_along(frame, body, d, points, side):
    """Whether a body has a face whose outward normal is d."""
    kind = body[0]
    if kind == SPHERE or kind == CAPSULE or kind == ELLIPSOID:
        return False
    if kind == CYLINDER:
        along = dot3(axis3(body[4]), d)
        return 1.0 - along * along < 1e-14
    u = across3(d)
    frame3 = (u, cross3(d, u), d, (body[4][9], body[4][10], body[4][11]))
    size = size_of(frame, body)
    n = polygon_of_corners(frame, body, d, FACE_TIE * size, REFERENCE, frame3)
    return n >= 3 and abs(area_of(frame, REFERENCE, n)) > 1e-9 * size * size
