"""What of a body touches: a point, a line, the rim of a cylinder, an ellipsoid; and the normal where two of these meet.

The best direction n maximises n . (s_A(-n) - s_B(n)), s being what lies farthest. Where both are smooth this is a Newton step
on the unit sphere with the curvatures of s; a line holds n at right angles to itself.
"""

import math

from .....compiler.kernel import inlined, sweep
from .scalars import across3, axis3, cross3, dot3, entries3, placed3, plus3, scaled3, sub3, turned3, turned_back3, unit3

# kinds of elements; the last three are points of faces that are cut to each other: where an edge of one crosses an edge of the
# other, where a corner of the one that holds the normal faces the other, and where the side of a cylinder crosses an edge
CORNER, LINE, RIM, ROUND, CROSSING, HELD, SIDE = range(7)


@sweep
def element_point(body, kind, data, d):
    """The point of an element that lies farthest along d, in the world."""
    s, P = body[3], body[4]
    if kind == RIM:
        z = axis3(P)
        u = unit3(plus3(d, z, -dot3(z, d)))
        v = cross3(z, u)
        middle = placed3(P, (0.0, 0.0, data[0] * s[2]))
        return plus3(plus3(middle, u, s[0] * data[1]), v, s[0] * data[2])
    if kind == ROUND:
        local = entries3(turned_back3(P, d), s)
        return placed3(P, entries3(unit3(local), s))
    return placed3(P, entries3(data[:3], s))


@sweep
def curvature_along(body, kind, d, t):
    """How the point of an element moves where d turns towards t."""
    s, P = body[3], body[4]
    if kind == RIM:
        z = axis3(P)
        q = plus3(d, z, -dot3(z, d))
        u = unit3(q)
        across = plus3(plus3(t, z, -dot3(z, t)), u, -dot3(u, t))
        return scaled3(across, s[0] / math.sqrt(max(dot3(q, q), 1e-12)))
    if kind == ROUND:
        a, b = entries3(turned_back3(P, d), s), entries3(turned_back3(P, t), s)
        length = math.sqrt(dot3(a, a))
        u = scaled3(a, 1.0 / length)
        return turned3(P, entries3(scaled3(plus3(b, u, -dot3(u, b)), 1.0 / length), s))
    return 0.0, 0.0, 0.0


@inlined
def line_of(body, data):
    """Unit vector along a line, in the world."""
    return unit3(turned3(body[4], entries3(sub3(data[3:6], data[:3]), body[3])))


@sweep
def newton_direction(A, a_kind, a, B, b_kind, b, n):
    """One step from n to the direction in which two elements are separated best."""
    if a_kind == LINE and b_kind == LINE:
        m = unit3(cross3(line_of(A, a), line_of(B, b)))
        return m if dot3(m, n) > 0.0 else scaled3(m, -1.0)
    has_line = a_kind == LINE or b_kind == LINE
    e = line_of(A, a) if a_kind == LINE else (line_of(B, b) if b_kind == LINE else (0.0, 0.0, 0.0))
    n = unit3(plus3(n, e, -dot3(e, n)))
    t1 = cross3(e, n) if has_line else across3(n)
    t2 = cross3(n, t1)
    back = scaled3(n, -1.0)
    way = sub3(element_point(A, a_kind, a, back), element_point(B, b_kind, b, n))
    d = dot3(n, way)
    h1 = plus3(curvature_along(A, a_kind, back, t1), curvature_along(B, b_kind, n, t1), 1.0)
    k11, f1 = dot3(t1, h1) + d, dot3(t1, way)
    if has_line:
        return unit3(plus3(n, t1, f1 / k11)) if abs(k11) > 1e-12 else n
    h2 = plus3(curvature_along(A, a_kind, back, t2), curvature_along(B, b_kind, n, t2), 1.0)
    k12, k22, f2 = dot3(t1, h2), dot3(t2, h2) + d, dot3(t2, way)
    det = k11 * k22 - k12 * k12
    if abs(det) < 1e-24:
        return n
    x, y = (k22 * f1 - k12 * f2) / det, (k11 * f2 - k12 * f1) / det
    return unit3(plus3(plus3(n, t1, x), t2, y))
