"""In which direction two convex bodies of one environment are separated best: by the distance of their difference from the
origin (Gilbert, Johnson, Keerthi 1988), and where they overlap by growing a polytope inside it (van den Bergen 2001).

Points of the difference lie in `touch.scratch`, nine numbers each: the point, and the points of both bodies that it came
from, before their scale. The three of them that decide are left in the first rows.
"""

from .....compiler.kernel import inlined, sweep
from .cores import centre_of, is_round, separation_along, size_of, support_point
from .scalars import TINY, across3, cross3, dot3, entries3, placed3, plus3, scaled3, sub3, turned_back3, unit3

POINT = 9  # numbers of a point
GROWN, MOST_POINTS = 40, 72  # points of the polytope
FACE, MOST_FACES = 700, 200  # its faces: normal, distance, three points, whether it is alive
EDGE = 2300  # the rim of what a new point sees
# parts of the bodies' size within which the direction is found: round bodies are polished afterwards
SHARP, ROUND = 1e-10, 1e-4
ROUNDS = 64


@inlined
def point_at(frame, k):
    touch = frame.touch
    at = POINT * k
    return touch.scratch[at], touch.scratch[at + 1], touch.scratch[at + 2]


@sweep
def copy_point(frame, source, target):
    touch = frame.touch
    for j in range(POINT):
        touch.scratch[POINT * target + j] = touch.scratch[POINT * source + j]


@sweep
def put_point(frame, A, B, n, k):
    """What of A - B lies farthest along n, as point k."""
    touch = frame.touch
    a = support_point(frame, A, turned_back3(A[4], n))
    b = support_point(frame, B, turned_back3(B[4], scaled3(n, -1.0)))
    w = sub3(placed3(A[4], entries3(a, A[3])), placed3(B[4], entries3(b, B[3])))
    at = POINT * k
    for j in range(3):
        touch.scratch[at + j] = w[j]
        touch.scratch[at + 3 + j] = a[j]
        touch.scratch[at + 6 + j] = b[j]
    return w


# the nearest point of a simplex to the origin --------------------------------------------------------------------------


@sweep
def on_segment(a, b):
    """Weights of the nearest point."""
    way = sub3(b, a)
    square = dot3(way, way)
    t = min(1.0, max(0.0, -dot3(a, way) / square)) if square > TINY else 0.0
    return 1.0 - t, t


@sweep
def on_triangle(a, b, c):
    """Weights of the nearest point, by the regions of Ericson (2005, 5.1.5)."""
    ab, ac = sub3(b, a), sub3(c, a)
    d1, d2 = -dot3(ab, a), -dot3(ac, a)
    if d1 <= 0.0 and d2 <= 0.0:
        return 1.0, 0.0, 0.0
    d3, d4 = -dot3(ab, b), -dot3(ac, b)
    if d3 >= 0.0 and d4 <= d3:
        return 0.0, 1.0, 0.0
    d5, d6 = -dot3(ab, c), -dot3(ac, c)
    if d6 >= 0.0 and d5 <= d6:
        return 0.0, 0.0, 1.0
    vc = d1 * d4 - d3 * d2
    if vc <= 0.0 and d1 >= 0.0 and d3 <= 0.0:
        t = d1 / (d1 - d3) if d1 - d3 > TINY else 0.0
        return 1.0 - t, t, 0.0
    vb = d5 * d2 - d1 * d6
    if vb <= 0.0 and d2 >= 0.0 and d6 <= 0.0:
        t = d2 / (d2 - d6) if d2 - d6 > TINY else 0.0
        return 1.0 - t, 0.0, t
    va = d3 * d6 - d5 * d4
    if va <= 0.0 and d4 - d3 >= 0.0 and d5 - d6 >= 0.0:
        way = (d4 - d3) + (d5 - d6)
        t = (d4 - d3) / way if way > TINY else 0.0
        return 0.0, 1.0 - t, t
    per = 1.0 / (va + vb + vc)
    return 1.0 - (vb + vc) * per, vb * per, vc * per


@inlined
def mixed(a, b, c, weights):
    return plus3(plus3(scaled3(a, weights[0]), b, weights[1]), c, weights[2])


@sweep
def is_beyond(a, b, c, d):
    """Whether the origin lies on the other side of the plane a, b, c than d."""
    m = cross3(sub3(b, a), sub3(c, a))
    return dot3(m, a) * dot3(m, sub3(d, a)) >= 0.0


@sweep
def keep_heavy(frame, first, second, third, weights):
    """Points with a weight come first; how many there are."""
    n = 0
    for k in range(3):
        row = first if k == 0 else (second if k == 1 else third)
        if weights[k] > 0.0:
            copy_point(frame, row, n)
            n += 1
    return n


@sweep
def reduced(frame, n):
    """The points among the first n that hold the nearest point to the origin: how many, and that point. Four: it is inside."""
    a, b = point_at(frame, 0), point_at(frame, 1)
    if n == 2:
        w = on_segment(a, b)
        v = plus3(scaled3(a, w[0]), b, w[1])
        return keep_heavy(frame, 0, 1, 1, (w[0], w[1], 0.0)), v
    c = point_at(frame, 2)
    if n == 3:
        w = on_triangle(a, b, c)
        return keep_heavy(frame, 0, 1, 2, w), mixed(a, b, c, w)
    d = point_at(frame, 3)
    best, found, weights, nearest = 1e300, -1, (1.0, 0.0, 0.0), d
    for k in range(4):
        p, q, r = (a if k != 0 else d), (b if k != 1 else d), (c if k != 2 else d)
        if is_beyond(p, q, r, (a if k == 0 else (b if k == 1 else (c if k == 2 else d)))):
            w = on_triangle(p, q, r)
            v = mixed(p, q, r, w)
            if dot3(v, v) < best:
                best, found, weights, nearest = dot3(v, v), k, w, v
    if found < 0:
        return 4, (0.0, 0.0, 0.0)
    rows = (0 if found != 0 else 3), (1 if found != 1 else 3), (2 if found != 2 else 3)
    return keep_heavy(frame, rows[0], rows[1], rows[2], weights), nearest


@sweep
def nearest_to_origin(frame, A, B, size, close):
    """(number of points that hold it, nearest point of A - B to the origin); four, or no length, where the bodies overlap."""
    v = sub3(centre_of(frame, A), centre_of(frame, B))
    if dot3(v, v) < 1e-24 * size * size:
        v = (1.0, 0.0, 0.0)
    v, n = put_point(frame, A, B, scaled3(v, -1.0), 0), 1
    for _ in range(ROUNDS):
        square = dot3(v, v)
        w = put_point(frame, A, B, scaled3(v, -1.0), n)
        if square - dot3(v, w) <= close * close * square:
            break
        for k in range(n):
            if point_at(frame, k) == w:
                return n, v
        n, v = reduced(frame, n + 1)
        if n == 4 or dot3(v, v) < 1e-22 * size * size or dot3(v, v) >= square:
            break
    return n, v


# where they overlap ----------------------------------------------------------------------------------------------------


@sweep
def put_face(frame, j, p, q, r):
    """Face j through three points of the polytope, its normal away from the middle of the first four."""
    touch = frame.touch
    a = point_at(frame, p)
    m = cross3(sub3(point_at(frame, q), a), sub3(point_at(frame, r), a))
    square = dot3(m, m)
    m = unit3(m)
    at = FACE + 8 * j
    if dot3(m, sub3(a, (touch.scratch[36], touch.scratch[37], touch.scratch[38]))) < 0.0:
        m, q, r = scaled3(m, -1.0), r, q
    d = dot3(m, a)
    for k in range(3):
        touch.scratch[at + k] = m[k]
    touch.scratch[at + 3] = d if square > TINY else 1e300
    touch.scratch[at + 4] = p
    touch.scratch[at + 5] = q
    touch.scratch[at + 6] = r
    touch.scratch[at + 7] = 1.0


@sweep
def completed(frame, A, B, n):
    """Further points for a simplex of fewer than four, in directions that it lacks; whether there is a body at all."""
    while n < 4:
        a = point_at(frame, 0)
        if n == 1:
            d = (1.0, 0.0, 0.0)
        elif n == 2:
            d = across3(unit3(sub3(point_at(frame, 1), a)))
        else:
            d = unit3(cross3(sub3(point_at(frame, 1), a), sub3(point_at(frame, 2), a)))
        best, found = -1.0, d
        for turn in range(4):
            e = d if turn < 2 or n != 2 else cross3(unit3(sub3(point_at(frame, 1), a)), d)
            e = scaled3(e, 1.0 if turn % 2 == 0 else -1.0)
            w = sub3(put_point(frame, A, B, e, n), a)
            spread = abs(dot3(w, e))
            if spread > best:
                best, found = spread, e
        put_point(frame, A, B, found, n)
        if best < 1e-14:
            return False
        n += 1
    return True


@sweep
def nearest_face(frame, n_faces):
    touch = frame.touch
    best, found = 1e299, -1
    for j in range(n_faces):
        at = FACE + 8 * j
        if touch.scratch[at + 7] > 0.0 and touch.scratch[at + 3] < best:
            best, found = touch.scratch[at + 3], j
    return found


@sweep
def add_edge(frame, n_edges, p, q):
    """The rim of what a point sees: an edge that was there the other way round is inside it."""
    touch = frame.touch
    for e in range(n_edges):
        at = EDGE + 2 * e
        if touch.scratch[at] == q and touch.scratch[at + 1] == p:
            touch.scratch[at] = touch.scratch[EDGE + 2 * (n_edges - 1)]
            touch.scratch[at + 1] = touch.scratch[EDGE + 2 * (n_edges - 1) + 1]
            return n_edges - 1
    touch.scratch[EDGE + 2 * n_edges] = p
    touch.scratch[EDGE + 2 * n_edges + 1] = q
    return n_edges + 1


@sweep
def rim_of(frame, w, n_faces):
    """Takes away the faces that a point sees; how many edges their rim has."""
    touch = frame.touch
    n_edges = 0
    for j in range(n_faces):
        at = FACE + 8 * j
        if touch.scratch[at + 7] > 0.0:
            m = (touch.scratch[at], touch.scratch[at + 1], touch.scratch[at + 2])
            a = point_at(frame, int(touch.scratch[at + 4]))
            if dot3(m, sub3(w, a)) > 0.0 or touch.scratch[at + 3] > 1e299:
                touch.scratch[at + 7] = 0.0
                for k in range(3):
                    p, q = touch.scratch[at + 4 + k], touch.scratch[at + 4 + (k + 1) % 3]
                    n_edges = add_edge(frame, n_edges, p, q)
    return n_edges


@sweep
def free_face(frame, n_faces):
    for j in range(n_faces):
        if frame.touch.scratch[FACE + 8 * j + 7] == 0.0:
            return j
    return n_faces


@sweep
def sum_of_four(frame, j):
    touch = frame.touch
    return touch.scratch[j] + touch.scratch[9 + j] + touch.scratch[18 + j] + touch.scratch[27 + j]


@sweep
def grown(frame, A, B, size, close):
    """From a tetrahedron in the first four points: the face of A - B that is nearest to the origin; -1 where there is none."""
    touch = frame.touch
    base = (GROWN + POINT - 1) // POINT
    for k in range(4):
        copy_point(frame, k, base + k)
    for j in range(3):
        touch.scratch[36 + j] = 0.25 * sum_of_four(frame, j)
    n_points, n_faces = base + 4, 4
    put_face(frame, 0, base, base + 1, base + 2)
    put_face(frame, 1, base, base + 3, base + 1)
    put_face(frame, 2, base, base + 2, base + 3)
    put_face(frame, 3, base + 1, base + 3, base + 2)
    found = nearest_face(frame, n_faces)
    while found >= 0 and n_points < base + MOST_POINTS:
        at = FACE + 8 * found
        m, d = (touch.scratch[at], touch.scratch[at + 1], touch.scratch[at + 2]), touch.scratch[at + 3]
        w = put_point(frame, A, B, m, n_points)
        if dot3(w, m) - d <= close * size:
            break
        n_edges = rim_of(frame, w, n_faces)
        if n_edges < 3 or n_faces + n_edges >= MOST_FACES:
            break
        for e in range(n_edges):
            p, q = int(touch.scratch[EDGE + 2 * e]), int(touch.scratch[EDGE + 2 * e + 1])
            j = free_face(frame, n_faces)
            put_face(frame, j, p, q, n_points)
            n_faces = max(n_faces, j + 1)
        n_points += 1
        found = nearest_face(frame, n_faces)
    return found


@sweep
def best_separation(frame, A, B):
    """(direction from B to A, how many points decide); no direction, and none, where there is none."""
    touch = frame.touch
    size, close = size_of(frame, A) + size_of(frame, B), ROUND if is_round(A) or is_round(B) else SHARP
    n, v = nearest_to_origin(frame, A, B, size, close)
    if n < 4 and dot3(v, v) >= 1e-22 * size * size:
        return unit3(v), n
    found = grown(frame, A, B, size, close) if completed(frame, A, B, n) else -1
    if found < 0:
        return (0.0, 0.0, 0.0), 0
    at = FACE + 8 * found
    m = (touch.scratch[at], touch.scratch[at + 1], touch.scratch[at + 2])
    rows = int(touch.scratch[at + 4]), int(touch.scratch[at + 5]), int(touch.scratch[at + 6])
    w = on_triangle(point_at(frame, rows[0]), point_at(frame, rows[1]), point_at(frame, rows[2]))
    return scaled3(m, -1.0), keep_heavy(frame, rows[0], rows[1], rows[2], w)


@sweep
def better_of(frame, A, B, n, other):
    """Of two directions, the one that separates better; the other where they are as good to within rounding."""
    here, there = separation_along(frame, A, B, n), separation_along(frame, A, B, other)
    size = size_of(frame, A) + size_of(frame, B)
    return other if dot3(other, other) > 0.5 and there >= here - 1e-9 * size else n
