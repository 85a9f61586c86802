"""Contacts of convex bodies from the features that `manifold.py` found: what is differentiated.

Sizes of shapes become scales and radii by `forms`: seven numbers per kind, the first five for the scale, then the radius of its
corners and that of its lines, as parts of the first size.
"""

from .....algebra.vector import add, column, cross, dot, neg, scale, sub, times, transposed_times
from .....compiler.elementary import detach, inverse, maximum, root, select
from .....compiler.trace import traced
from .boxes import choose, entrywise
from .elements import CROSSING, HELD, LINE, RIM, ROUND, SIDE
from .points import adjoint_along_motions, along_motions, between, where_it_exists

NO_LENGTH = 1e-60


def scale_and_radii(size, form):
    own = (form[0] * size[0], form[1] * size[1] + form[2] * size[0], form[3] * size[2] + form[4] * size[1])
    return own, form[5] * size[0], form[6] * size[0]


def unit(v):
    """v over its length, and zero where it has none."""
    square = dot(v, v)
    vanishes = NO_LENGTH > square
    per = inverse(root(select(vanishes, 1.0, square)))
    return tuple(select(vanishes, 0.0, x * per) for x in v)


def is_kind(code, kind):
    """Whether a code, a number, is that of a kind: a condition."""
    return select(code > kind - 0.5, kind + 0.5 - code, -1.0) > 0.0


def in_world(pose, own, data):
    return add(pose[9:], times(pose[:9], entrywise(data, own)))


def rim_point(pose, own, data, d):
    z = column(pose[:9], 2)
    u = unit(sub(d, scale(z, dot(z, d))))
    out = add(scale(u, own[0] * data[1]), scale(cross(z, u), own[0] * data[2]))
    return add(add(pose[9:], scale(z, own[2] * data[0])), out)


def round_point(pose, own, d):
    return in_world(pose, own, unit(entrywise(transposed_times(pose[:9], d), own)))


def element_at(pose, own, code, data, d):
    """The point of an element that lies farthest along d; of a line its first end."""
    rim, ball = rim_point(pose, own, data, d), round_point(pose, own, d)
    corner = in_world(pose, own, data[:3])
    return choose(is_kind(code, RIM), rim, choose(is_kind(code, ROUND), ball, corner))


def curvature(pose, own, code, d, t):
    """How that point moves where d turns towards t; see elements.curvature_along."""
    z = column(pose[:9], 2)
    q = sub(d, scale(z, dot(z, d)))
    u = unit(q)
    across = sub(sub(t, scale(z, dot(z, t))), scale(u, dot(u, t)))
    rim = scale(across, own[0] * inverse(root(maximum(dot(q, q), 1e-12))))
    a, b = (entrywise(transposed_times(pose[:9], v), own) for v in (d, t))
    per = inverse(root(maximum(dot(a, a), NO_LENGTH)))
    w = scale(a, per)
    ball = times(pose[:9], entrywise(scale(sub(b, scale(w, dot(w, b))), per), own))
    return choose(is_kind(code, RIM), rim, choose(is_kind(code, ROUND), ball, (0.0, 0.0, 0.0)))


def safe_inverse(x, least=1e-24):
    """1 / x, and 0 where x is next to nothing."""
    vanishes = least > x * x
    return select(vanishes, 0.0, inverse(select(vanishes, 1.0, x)))


# two elements ------------------------------------------------------------------------------------------------------------


def perpendicular(n):
    is_steep = n[0] * n[0] > 0.36
    return unit(choose(is_steep, (-n[2], 0.0, n[0]), (0.0, n[2], -n[1])))


def direction_of(A, own_a, B, own_b, row, lines):
    """One Newton step from the direction that was found: its value is that one, its derivative that of the solution."""
    (is_a, e_a), (is_b, e_b) = lines
    start, none = row[21:24], (0.0, 0.0, 0.0)
    e = choose(is_a, e_a, choose(is_b, e_b, none))
    n = unit(sub(start, scale(e, dot(e, start))))
    has_line = dot(e, e) > 0.5
    t1 = choose(has_line, cross(e, n), perpendicular(start))
    t2 = cross(n, t1)
    way = sub(element_at(A, own_a, row[1], row[3:12], neg(n)), element_at(B, own_b, row[2], row[12:21], n))
    h1, h2 = (add(curvature(A, own_a, row[1], neg(n), t), curvature(B, own_b, row[2], n, t)) for t in (t1, t2))
    d, f1, f2 = dot(n, way), dot(t1, way), dot(t2, way)
    k11, k12, k22 = (detach(k) for k in (dot(t1, h1) + d, dot(t1, h2), dot(t2, h2) + d))
    per = safe_inverse(k11 * k22 - k12 * k12, 1e-48)
    x = select(has_line, f1 * safe_inverse(k11), (k22 * f1 - k12 * f2) * per)
    y = select(has_line, 0.0, (k11 * f2 - k12 * f1) * per)
    crossed = unit(cross(e_a, e_b))
    crossed = scale(crossed, select(dot(crossed, start) > 0.0, 1.0, -1.0))
    single = unit(add(n, add(scale(t1, x), scale(t2, y))))
    return choose(is_a, choose(is_b, crossed, single), single)


def elements_contact(A, B, forms, row):
    (own_a, corner_a, line_a), (own_b, corner_b, line_b) = forms
    is_a, is_b = is_kind(row[1], LINE), is_kind(row[2], LINE)
    ends = [in_world(A, own_a, row[6:9]), in_world(B, own_b, row[15:18])]
    a0, b0 = in_world(A, own_a, row[3:6]), in_world(B, own_b, row[12:15])
    none = (0.0, 0.0, 0.0)
    e_a, e_b = choose(is_a, unit(sub(ends[0], a0)), none), choose(is_b, unit(sub(ends[1], b0)), none)
    n = direction_of(A, own_a, B, own_b, row, ((is_a, e_a), (is_b, e_b)))
    p, q = element_at(A, own_a, row[1], row[3:12], neg(n)), element_at(B, own_b, row[2], row[12:21], n)
    # along lines: the foot of the other point, and of two lines the points where they pass each other
    way, cosine = sub(p, q), dot(e_a, e_b)
    offset_a, offset_b = dot(e_a, way), dot(e_b, way)
    per = inverse(maximum(1.0 - cosine * cosine, 1e-9))
    s, t = (cosine * offset_b - offset_a) * per, (offset_b - cosine * offset_a) * per
    p, q = add(p, scale(e_a, s)), add(q, scale(e_b, t))
    radius_a = select(is_a, line_a, select(row[1] > 0.5, 0.0, corner_a))
    radius_b = select(is_b, line_b, select(row[2] > 0.5, 0.0, corner_b))
    gap = dot(n, sub(p, q)) - radius_a - radius_b
    return between(sub(p, scale(n, radius_a)), add(q, scale(n, radius_b))), n, gap


# a face ------------------------------------------------------------------------------------------------------------------


def place_on_face(other, own, kind, data, corners, m, radii):
    """The point of the other body that a face with corners and outward normal m meets, and the radius about it."""
    ends = [in_world(other, own, data[3 * k : 3 * k + 3]) for k in range(3)]
    f0, f1, _ = corners
    plain = element_at(other, own, kind, data, neg(m))
    beside, along = cross(sub(f1, f0), m), sub(ends[1], ends[0])
    t = dot(beside, sub(f0, ends[0])) * safe_inverse(dot(beside, along), NO_LENGTH)
    crossing = add(ends[0], scale(along, t))
    k = cross(along, sub(ends[2], ends[0]))
    height = dot(k, sub(ends[0], f0)) * safe_inverse(dot(k, m), NO_LENGTH)
    held = add(f0, scale(m, height))
    is_side, is_crossing = is_kind(kind, SIDE), is_kind(kind, CROSSING)
    place = choose(is_side, crossing, choose(is_crossing, crossing, choose(is_kind(kind, HELD), held, plain)))
    return place, select(is_side, radii[1], select(is_crossing, radii[0], select(kind > 0.5, 0.0, radii[0])))


def face_contact(A, B, forms, row):
    """A face of one body, the holder, and a point of the other."""
    B_holds = row[0] > 0.0
    (own_a, *radii_a), (own_b, *radii_b) = forms
    holder, own_held = choose(B_holds, B, A), choose(B_holds, own_b, own_a)
    other, own_other = choose(B_holds, A, B), choose(B_holds, own_a, own_b)
    held, data = choose(B_holds, row[12:21], row[3:12]), choose(B_holds, row[3:12], row[12:21])
    kind, radii = select(B_holds, row[1], row[2]), choose(B_holds, radii_a, radii_b)
    corners = [in_world(holder, own_held, held[3 * k : 3 * k + 3]) for k in range(3)]
    across = unit(cross(sub(corners[1], corners[0]), sub(corners[2], corners[0])))
    turn = select(dot(across, row[21:24]) > 0.0, 1.0, -1.0)
    n = scale(across, turn)  # from B to A
    m = choose(B_holds, n, neg(n))
    place, radius = place_on_face(other, own_other, kind, data, corners, m, radii)
    gap = dot(m, sub(place, corners[0])) - radius
    return sub(place, scale(m, radius + 0.5 * gap)), n, gap


@traced
def convex_contact(A, a, B, b, form_a, form_b, row):
    forms = scale_and_radii(a, form_a), scale_and_radii(b, form_b)
    face_point, face_normal, face_gap = face_contact(A, B, forms, row)
    point, normal, gap = elements_contact(A, B, forms, row)
    is_face = 1.5 > row[0]
    exists = row[0] * row[0] > 0.25
    return where_it_exists(
        exists, choose(is_face, face_point, point), choose(is_face, face_normal, normal), select(is_face, face_gap, gap)
    )


moved_convex_contact = along_motions(convex_contact)
convex_contact_adjoint = adjoint_along_motions(moved_convex_contact)
