"""Pairs of convex bodies: the search for features, environment by environment, and the loops over pairs."""

import math

from .....compiler.kernel import inlined, lane_of, sweep
from .....model.arrays import BOX, CAPSULE, CYLINDER, ELLIPSOID, MESH, SPHERE
from .candidates import spread, write_candidates
from .cores import centre_of, separation_along
from .manifold import convex_manifold
from .scalars import dot3, scaled3, sub3, unit3

POINT_FORM = (0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0)
SEGMENT_FORM = (0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0)
CYLINDER_FORM = (1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0)
OWN_FORM = (1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0)


@inlined
def form_of(kind):
    """How the sizes of a kind of shape make its scale and radii: see convex.py."""
    if kind == SPHERE:
        return POINT_FORM
    if kind == CAPSULE:
        return SEGMENT_FORM
    if kind == CYLINDER:
        return CYLINDER_FORM
    return OWN_FORM


@sweep
def body_of(frame, i, lane):
    """Shape i of one environment as cores.py takes it."""
    tree = frame.tree
    kind, size, pose = (
        tree.shape_kind[i],
        lane_of(frame.params.shape_size[i], lane),
        lane_of(frame.touch.shape[i], lane),
    )
    f = form_of(kind)
    scale = (f[0] * size[0], f[1] * size[1] + f[2] * size[0], f[3] * size[2] + f[4] * size[1])
    count = tree.shape_rows[i] if kind == MESH else (8 if kind == BOX else 2)
    return kind, tree.shape_data[i], count, scale, pose


@sweep
def radius_of(frame, i, lane):
    """Of a sphere or a capsule, about its core."""
    kind = frame.tree.shape_kind[i]
    return lane_of(frame.params.shape_size[i], lane)[0] if kind == SPHERE or kind == CAPSULE else 0.0


@sweep
def ball_of(frame, body):
    """Radius of the ball about a body's centre that holds its core."""
    kind, s = body[0], body[3]
    if kind == MESH:
        return frame.tree.number[body[1] - 1] * max(abs(s[0]), max(abs(s[1]), abs(s[2])))
    if kind == ELLIPSOID:
        return max(s[0], max(s[1], s[2]))
    if kind == CYLINDER:
        return math.sqrt(s[0] * s[0] + s[2] * s[2])
    return math.sqrt(dot3(s, s))


@sweep
def are_apart(frame, A, B, way, limit):
    """Whether the line between the centres, or an axis of either body, separates two bodies by more than a limit: most pairs
    are far apart, and the search for the best direction costs thirty times as much."""
    if separation_along(frame, A, B, unit3(way)) > limit:
        return True
    for side in range(2):
        P = A[4] if side == 0 else B[4]
        for k in range(3):
            axis = (P[k], P[3 + k], P[6 + k])
            n = axis if dot3(axis, way) > 0.0 else scaled3(axis, -1.0)
            if separation_along(frame, A, B, n) > limit:
                return True
    return False


@sweep
def convex_search(frame, p, first, most, lane):
    """Features of one pair in one environment, as rows of geometry from `first` on."""
    tree = frame.tree
    a, b = tree.pair_a[p], tree.pair_b[p]
    A, B = body_of(frame, a, lane), body_of(frame, b, lane)
    radii = radius_of(frame, a, lane), radius_of(frame, b, lane)
    margin = lane_of(frame.params.pair_margin[tree.pair_row[p]], lane)
    way = sub3(centre_of(frame, A), centre_of(frame, B))
    beyond = radii[0] + radii[1] + margin
    reach, count = ball_of(frame, A) + ball_of(frame, B) + beyond, 0
    # not where a number is no number
    if dot3(way, way) < reach * reach and not are_apart(frame, A, B, way, beyond):
        count = convex_manifold(frame, 0, A, B, radii, margin)
    count = spread(frame, 0, count, most)
    write_candidates(frame, count, first, most, lane)
