"""Which features of two convex bodies of one environment meet, as rows of candidates in `touch.scratch`.

A row is (holder, kind of A's element, kind of B's, A's three points, B's three points, direction): what `convex.py` computes
contacts from. Holder 1: a face of B holds the normal; -1: one of A; 2: neither, two elements meet; 0: there is no contact.
"""

import math

from ....compiler.kernel import inlined, set_lane, sweep
from ....model.arrays import BOX, CAPSULE, CYLINDER, ELLIPSOID, MESH, SPHERE, TERRAIN
from .cores import corner_of, is_round, separation_along, size_of, snapped_to_face, support_point
from .elements import CORNER, CROSSING, HELD, LINE, RIM, ROUND, SIDE, element_point, line_of, newton_direction
from .scalars import across3, axis3, cross3, dot3, entries3, placed3, plus3, scaled3, sub3, turned_back3, unit3
from .separation import POINT, best_separation, better_of

WIDTH = 24  # of a row of geometry
REFERENCE, INCIDENT, SIDES, VERTEX = (
    2600,
    2720,
    16,
    6,
)  # polygons: three numbers of the body's own, place in the plane, height
FOUND, ROW, MOST = 2860, 28, 50  # candidates: a row of geometry, its gap, place in the plane
PIECE = 4300  # corners of a piece of terrain, its size before them
LISTED, MOST_NEAR = 4320, 128  # corners that lie in one face
SCRATCH = 4450
FACE_TIE = 1e-6  # part of a body's size within which corners lie in one face
NEAR_FACE = 0.05  # part of the size within which, and within the margin, corners of the other body count to its face
FLAT_RIM = 1e-3  # sine of the angle below which a cylinder stands on its end
LEVEL = 1e-2  # sine of the angle below which it lies on its side
PARALLEL = 1e-5  # square of the sine of the angle below which two lines are parallel
COSINES = tuple(math.cos(2.0 * math.pi * k / SIDES) for k in range(SIDES))
SINES = tuple(math.sin(2.0 * math.pi * k / SIDES) for k in range(SIDES))
NOTHING = (0.0,) * 9


# candidates ------------------------------------------------------------------------------------------------------------


@sweep
def put_candidate(frame, count, codes, a, b, n, measure):
    """One more candidate: codes (holder, kinds), points, direction, (gap, place in the plane), which become its place; how many there are."""
    touch = frame.touch
    if count >= MOST:
        return count
    at = FOUND + ROW * count
    for j in range(3):
        touch.scratch[at + j] = codes[j]
        touch.scratch[at + 21 + j] = n[j]
        touch.scratch[at + 24 + j] = measure[j]
    for j in range(9):
        touch.scratch[at + 3 + j] = a[j]
        touch.scratch[at + 12 + j] = b[j]
    return count + 1


@sweep
def swap_candidates(frame, i, j):
    touch = frame.touch
    if i != j:
        for k in range(ROW):
            x = touch.scratch[FOUND + ROW * i + k]
            touch.scratch[FOUND + ROW * i + k] = touch.scratch[FOUND + ROW * j + k]
            touch.scratch[FOUND + ROW * j + k] = x


@inlined
def place_at(frame, k):
    """Where candidate k is, in the world."""
    at, scratch = FOUND + ROW * k + 25, frame.touch.scratch
    return scratch[at], scratch[at + 1], scratch[at + 2]


@sweep
def put_measure(frame, k, gap, place):
    at, scratch = FOUND + ROW * k + 24, frame.touch.scratch
    scratch[at] = gap
    for j in range(3):
        scratch[at + 1 + j] = place[j]


@sweep
def worth(frame, k, start, chosen):
    """How much a candidate adds to those chosen from `start` on: its depth, then its distance from all of them."""
    if chosen == 0:
        return -frame.touch.scratch[FOUND + ROW * k + 24]
    least = 1e300
    for j in range(start, start + chosen):
        way = sub3(place_at(frame, k), place_at(frame, j))
        least = min(least, dot3(way, way))
    return least


@sweep
def spread(frame, start, count, most):
    """The candidates from `start` on that hold the area of contact, first; how many there are then in all."""
    if count - start <= most:
        return count
    for chosen in range(most):
        best, found = -1e300, start + chosen
        for k in range(start + chosen, count):
            here = worth(frame, k, start, chosen)
            if here > best:
                best, found = here, k
        swap_candidates(frame, start + chosen, found)
    return start + most


# polygons --------------------------------------------------------------------------------------------------------------


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


# a face ------------------------------------------------------------------------------------------------------------------


@inlined
def face_candidate(frame, count, holder, kind, held, other, n, measure):
    """A candidate whose normal one body holds: `held` are that body's points."""
    if holder > 0.0:
        return put_candidate(frame, count, (holder, 1.0 * kind, 0.0), other, held, n, measure)
    return put_candidate(frame, count, (holder, 0.0, 1.0 * kind), held, other, n, measure)


@sweep
def radius_beyond(body, radius, kind):
    """What an element's surface lies beyond its points: the radius of spheres, capsules and of a cylinder's side."""
    if body[0] == CYLINDER:
        return body[3][0] if kind == LINE else 0.0
    return radius if kind == CORNER or kind == LINE else 0.0


@sweep
def rim_candidates(frame, count, holder, body, m, n, sizes, limits, held, frame3):
    """Points of the rims of a cylinder that lie deepest, and those beside them."""
    d = scaled3(m, -1.0)
    lower = 1.0 if dot3(axis3(body[4]), d) > 0.0 else -1.0
    for k in range(5):
        end = -lower if k == 4 else lower
        data = (end, COSINES[4 * k % SIDES], SINES[4 * k % SIDES], 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        x = sub3(element_point(body, RIM, data, d), frame3[3])
        gap, u, v = dot3(m, x) - limits[0], dot3(frame3[0], x), dot3(frame3[1], x)
        if gap < limits[1] and is_inside(frame, REFERENCE, sizes[0], u, v, limits[2]):
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


@sweep
def on_face(frame, count, holder, H, O, m, n, given, frame3):
    """Candidates between the reference polygon of H, with the outward normal m, and the body O."""
    n_ref, radius, margin = given
    size = size_of(frame, H)
    held = three_of(frame, REFERENCE, 0, n_ref // 3, 2 * n_ref // 3)
    height = vertex_place(frame, REFERENCE, 0)[2]
    tie = min(margin, NEAR_FACE * size_of(frame, O)) + FACE_TIE * size
    n_inc = polygon_of(frame, O, scaled3(m, -1.0), tie, INCIDENT, frame3)
    slack = 1e-5 * size
    if O[0] == CYLINDER and n_inc != SIDES:
        count = rim_candidates(frame, count, holder, O, m, n, (n_ref, 0), (height, margin, slack), held, frame3)
        if n_inc == 2:
            limits = (height, margin, slack, O[3][0])
            count = crossing_candidates(frame, count, holder, SIDE, n, (n_ref, n_inc), limits)
        return count
    if O[0] == ELLIPSOID:
        return face_candidate(frame, count, holder, ROUND, held, NOTHING, n, (0.0, 0.0, 0.0))
    limits, sizes = (height, margin, slack, radius), (n_ref, n_inc)
    first = count
    if n_inc > 2:
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
        place = plus3(plus3(plus3(frame3[3], frame3[0], scratch[at + 1]), frame3[1], scratch[at + 2]), frame3[2], height)
        put_measure(frame, k, scratch[at], place)


@sweep
def face_manifold(frame, count, holder, H, O, m, n, radius, margin):
    """Candidates between a face of H with the outward normal m and the body O."""
    u = across3(m)
    frame3 = (u, cross3(m, u), m, (H[4][9], H[4][10], H[4][11]))
    n_ref = polygon_of(frame, H, m, FACE_TIE * size_of(frame, H), REFERENCE, frame3)
    height = vertex_place(frame, REFERENCE, 0)[2]
    after = on_face(frame, count, holder, H, O, m, n, (n_ref, radius, margin), frame3)
    places_of_candidates(frame, count, after, frame3, height)
    return spread(frame, count, after, 4)


# elements ----------------------------------------------------------------------------------------------------------------


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


# both --------------------------------------------------------------------------------------------------------------------


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
        return face_manifold(frame, count, 1.0, B, A, n, n, radii[0], margin)
    if face_along(frame, A, scaled3(n, -1.0), points, 0):
        return face_manifold(frame, count, -1.0, A, B, scaled3(n, -1.0), n, radii[1], margin)
    return element_manifold(frame, count, A, B, n, points, radii)


@sweep
def write_candidates(frame, count, first, most, lane):
    """The rows of one environment, from row `first` of the geometry on; those that it does not have are empty."""
    for k in range(most):
        set_lane(frame.touch.geometry, first + k, lane, candidate_row(frame, FOUND + ROW * k, 1.0 if k < count else 0.0))


@sweep
def candidate_row(frame, k, holds):
    """The numbers of a row from place k of the scratch on."""
    s = frame.touch.scratch
    return (
        s[k] * holds, s[k + 1], s[k + 2], s[k + 3], s[k + 4], s[k + 5], s[k + 6], s[k + 7], s[k + 8], s[k + 9], s[k + 10],
        s[k + 11], s[k + 12], s[k + 13], s[k + 14], s[k + 15], s[k + 16], s[k + 17], s[k + 18], s[k + 19], s[k + 20],
        s[k + 21], s[k + 22], s[k + 23],
    )  # fmt: skip
