"""Faces of convex bodies of one environment: the corners that lie farthest in a direction, in order round the plane across it.

Polygons lie in `touch.scratch`: for each vertex three numbers of the body's own, before its scale, its place in the plane and its
height above it.
"""

import math

from .....compiler.kernel import inlined, sweep
from .....model.arrays import CYLINDER, ELLIPSOID, SPHERE
from .cores import corner_of
from .scalars import axis3, cross3, dot3, entries3, placed3, plus3, scaled3, sub3, turned_back3

REFERENCE, INCIDENT, SIDES, VERTEX = (
    2600,
    2720,
    16,
    6,
)  # polygons: three numbers of the body's own, place in the plane, height
LISTED, MOST_NEAR = 4320, 128  # corners that lie in one face
FACE_TIE = 1e-6  # part of a body's size within which corners lie in one face
FLAT_RIM = 1e-3  # sine of the angle below which a cylinder stands on its end
LEVEL = 1e-2  # sine of the angle below which it lies on its side
COSINES = tuple(math.cos(2.0 * math.pi * k / SIDES) for k in range(SIDES))
SINES = tuple(math.sin(2.0 * math.pi * k / SIDES) for k in range(SIDES))


@sweep
def put_vertex(frame, base, k, data, body, frame3):
    """Vertex k of a polygon, from a body's own numbers; frame3: two directions of the plane, its normal, an origin."""
    touch = frame.touch
    u, v, n, origin = frame3
    x = sub3(placed3(body[4], entries3(data, body[3])), origin)
    at = base + VERTEX * k
    for j in range(3):
        touch.scratch[at + j] = data[j]
    touch.scratch[at + 3] = dot3(u, x)
    touch.scratch[at + 4] = dot3(v, x)
    touch.scratch[at + 5] = dot3(n, x)


@sweep
def list_near(frame, body, d, tie):
    """Corners that lie within `tie` of the farthest along d, as numbers in the list; how many."""
    scratch, local = frame.touch.scratch, entries3(turned_back3(body[4], d), body[3])
    best = -1e300
    for i in range(body[2]):
        best = max(best, dot3(corner_of(frame, body, i), local))
    n = 0
    for i in range(body[2]):
        if dot3(corner_of(frame, body, i), local) >= best - tie and n < MOST_NEAR:
            scratch[LISTED + n] = 1.0 * i
            n += 1
    return n


@sweep
def polygon_of_corners(frame, body, d, tie, base, frame3):
    """Corners that lie within `tie` of the farthest along d, round the plane; how many."""
    scratch, listed, n, last, first = frame.touch.scratch, list_near(frame, body, d, tie), 0, -1, -1
    u = entries3(turned_back3(body[4], frame3[0]), body[3])
    v = entries3(turned_back3(body[4], frame3[1]), body[3])
    for k in range(SIDES if listed > 1 else 1):
        e = plus3(scaled3(u, COSINES[k]), v, SINES[k])
        best, found = -1e300, -1
        for j in range(listed):
            i = int(scratch[LISTED + j])
            here = dot3(corner_of(frame, body, i), e)
            if here > best + 1e-12 * abs(best):
                best, found = here, i
        if found != last and found != first and found >= 0:
            put_vertex(frame, base, n, corner_of(frame, body, found), body, frame3)
            first = found if n == 0 else first
            n += 1
        last = found
    return n


@sweep
def polygon_of(frame, body, d, tie, base, frame3):
    """The part of a body that lies farthest along d; of a cylinder that does not stand on its end its axis, or nothing."""
    kind = body[0]
    if kind == SPHERE:
        put_vertex(frame, base, 0, (0.0, 0.0, 0.0), body, frame3)
        return 1
    if kind == ELLIPSOID:
        return 0
    if kind == CYLINDER:
        along = dot3(axis3(body[4]), d)
        if 1.0 - along * along < FLAT_RIM * FLAT_RIM:
            # the plane's own turn must not matter: rim points are the body's own
            is_turned = dot3(cross3(axis3(body[4]), frame3[0]), frame3[1]) < 0.0
            for k in range(SIDES):
                j = SIDES - 1 - k if is_turned else k
                put_vertex(frame, base, k, (COSINES[j], SINES[j], 1.0 if along > 0.0 else -1.0), body, frame3)
            return SIDES
        if abs(along) < LEVEL:
            put_vertex(frame, base, 0, (0.0, 0.0, -1.0), body, frame3)
            put_vertex(frame, base, 1, (0.0, 0.0, 1.0), body, frame3)
            return 2
        return 0
    return polygon_of_corners(frame, body, d, tie, base, frame3)


@inlined
def vertex_place(frame, base, k):
    touch = frame.touch
    at = base + VERTEX * k
    return touch.scratch[at + 3], touch.scratch[at + 4], touch.scratch[at + 5]


@inlined
def vertex_data(frame, base, k):
    touch = frame.touch
    at = base + VERTEX * k
    return touch.scratch[at], touch.scratch[at + 1], touch.scratch[at + 2]


@sweep
def area_of(frame, base, count):
    total = 0.0
    for k in range(count):
        x, y, _ = vertex_place(frame, base, k)
        p, q, _ = vertex_place(frame, base, (k + 1) % count)
        total += x * q - y * p
    return 0.5 * total


@sweep
def is_inside(frame, base, count, x, y, slack):
    """Whether a place of the plane lies in a polygon that goes round anticlockwise."""
    for k in range(count):
        x0, y0, _ = vertex_place(frame, base, k)
        x1, y1, _ = vertex_place(frame, base, (k + 1) % count)
        length = math.sqrt((x1 - x0) * (x1 - x0) + (y1 - y0) * (y1 - y0))
        if (x1 - x0) * (y - y0) - (y1 - y0) * (x - x0) < -slack * length:
            return False
    return True


@inlined
def three_of(frame, base, i, j, k):
    a, b, c = vertex_data(frame, base, i), vertex_data(frame, base, j), vertex_data(frame, base, k)
    return a[0], a[1], a[2], b[0], b[1], b[2], c[0], c[1], c[2]


@sweep
def plane_of(frame, base, count):
    """Height over the plane, as h = a u + b v + c, through three vertices of a polygon."""
    x0, y0, h0 = vertex_place(frame, base, 0)
    x1, y1, h1 = vertex_place(frame, base, count // 3)
    x2, y2, h2 = vertex_place(frame, base, 2 * count // 3)
    det = (x1 - x0) * (y2 - y0) - (y1 - y0) * (x2 - x0)
    if abs(det) < 1e-30:
        return 0.0, 0.0, h0
    a = ((h1 - h0) * (y2 - y0) - (h2 - h0) * (y1 - y0)) / det
    b = ((x1 - x0) * (h2 - h0) - (x2 - x0) * (h1 - h0)) / det
    return a, b, h0 - a * x0 - b * y0
