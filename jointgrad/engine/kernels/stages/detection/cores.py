"""Convex bodies of one environment by what lies farthest in a direction.

A body is (kind, first, count, scale, pose). Its points are those of a unit body times `scale`: corners +-1 of a box, ends
+-1 of a capsule's axis (scale 0, 0, half length), corners of a mesh, the unit ball and the unit cylinder. Spheres and capsules
are points and segments here, and their radius is added where contacts are computed. Corners of meshes are rows
first..first + count of `tree.number`; those of a piece of terrain lie in `touch.scratch`.
"""

import math

from .....compiler.kernel import inlined, sweep
from .....model.arrays import BOX, CAPSULE, CYLINDER, ELLIPSOID, MESH, SPHERE, TERRAIN
from .scalars import dot3, entries3, placed3, plus3, sub3, turned3, turned_back3


@inlined
def corner_of(frame, body, i):
    """Corner i of a body that has corners, before its scale."""
    tree, touch = frame.tree, frame.touch
    kind, first = body[0], body[1]
    if kind == MESH:
        at = first + 3 * i
        return tree.number[at], tree.number[at + 1], tree.number[at + 2]
    if kind == TERRAIN:
        at = first + 3 * i
        return touch.scratch[at], touch.scratch[at + 1], touch.scratch[at + 2]
    if kind == BOX:
        return (1.0 if i & 1 else -1.0), (1.0 if i & 2 else -1.0), (1.0 if i & 4 else -1.0)
    return 0.0, 0.0, (1.0 if i == 1 else -1.0)


@sweep
def farthest_corner(frame, body, along):
    """Of a mesh or a piece of terrain; `along` is in the body's axes, times its scale."""
    best, found = -1e300, 0
    for i in range(body[2]):
        here = dot3(corner_of(frame, body, i), along)
        if here > best:
            best, found = here, i
    return corner_of(frame, body, found)


@sweep
def support_point(frame, body, along):
    """What lies farthest along a direction in the body's axes, before its scale."""
    kind, s = body[0], body[3]
    if kind == SPHERE:
        return 0.0, 0.0, 0.0
    if kind == CAPSULE:
        return 0.0, 0.0, (1.0 if along[2] > 0.0 else -1.0)
    if kind == BOX:
        return (
            (1.0 if along[0] > 0.0 else -1.0),
            (1.0 if along[1] > 0.0 else -1.0),
            (1.0 if along[2] > 0.0 else -1.0),
        )
    if kind == CYLINDER:
        r = math.sqrt(along[0] * along[0] + along[1] * along[1])
        per = 1.0 / r if r > 1e-15 else 0.0
        return (along[0] * per if r > 1e-15 else 1.0), along[1] * per, (1.0 if along[2] > 0.0 else -1.0)
    if kind == ELLIPSOID:
        v = entries3(along, s)
        r = math.sqrt(dot3(v, v))
        per = 1.0 / r if r > 1e-150 else 0.0
        return v[0] * per, v[1] * per, v[2] * per
    return farthest_corner(frame, body, entries3(along, s))


@sweep
def support(frame, body, direction):
    """What lies farthest along a direction of the world, in the world."""
    point = support_point(frame, body, turned_back3(body[4], direction))
    return placed3(body[4], entries3(point, body[3]))


@sweep
def separation_along(frame, A, B, n):
    """How far A lies from B along n (from B to A); negative where they overlap in this direction."""
    return dot3(n, sub3(support(frame, A, (-n[0], -n[1], -n[2])), support(frame, B, n)))


@sweep
def centre_of(frame, body):
    """A point inside."""
    tree = frame.tree
    kind, P = body[0], body[4]
    if kind == MESH:
        at = body[1]
        middle = (tree.number[at - 4], tree.number[at - 3], tree.number[at - 2])
        return placed3(P, entries3(middle, body[3]))
    if kind == TERRAIN:
        total = (0.0, 0.0, 0.0)
        for i in range(body[2]):
            total = plus3(total, corner_of(frame, body, i), 1.0 / body[2])
        return placed3(P, entries3(total, body[3]))
    return P[9], P[10], P[11]


@sweep
def size_of(frame, body):
    """How large a body is, for tolerances."""
    s = body[3]
    if body[0] == TERRAIN:
        return frame.touch.scratch[body[1] - 1]
    largest = max(abs(s[0]), max(abs(s[1]), abs(s[2])))
    return largest * frame.tree.number[body[1] - 1] if body[0] == MESH else largest


@inlined
def is_round(body):
    return body[0] == CYLINDER or body[0] == ELLIPSOID


@sweep
def snapped_to_face(frame, body, direction):
    """The outward normal of a body's face that is nearest to a direction of the world, or the direction itself."""
    kind, s, P = body[0], body[3], body[4]
    local = turned_back3(P, direction)
    if kind == BOX:
        x, y, z = abs(local[0]), abs(local[1]), abs(local[2])
        if x > y and x > z:
            return turned3(P, ((1.0 if local[0] > 0.0 else -1.0), 0.0, 0.0))
        if y > z:
            return turned3(P, (0.0, (1.0 if local[1] > 0.0 else -1.0), 0.0))
        return turned3(P, (0.0, 0.0, (1.0 if local[2] > 0.0 else -1.0)))
    if kind == CYLINDER:
        return turned3(P, (0.0, 0.0, (1.0 if local[2] > 0.0 else -1.0)))
    if kind == MESH:
        return turned3(P, _nearest_normal(frame, body, local, s))
    return direction


@sweep
def _nearest_normal(frame, body, local, s):
    """Normals of a mesh's faces follow its corners; those of the scaled body are each over the scale."""
    tree = frame.tree
    start, best, found = body[1] + 3 * body[2] + 1, -1e300, local
    for i in range(int(tree.number[start - 1])):
        at = start + 3 * i
        m = (tree.number[at] / s[0], tree.number[at + 1] / s[1], tree.number[at + 2] / s[2])
        per = 1.0 / math.sqrt(dot3(m, m))
        here = dot3(m, local) * per
        if here > best:
            best, found = here, (m[0] * per, m[1] * per, m[2] * per)
    return found
