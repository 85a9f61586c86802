"""Where terrains meet convex bodies, environment by environment: each triangle near the body is the top of a prism.

A terrain pushes along the normals of its triangles. Where a body touches an edge or a corner of it, or lies on one with a face,
the direction counts only if the terrain falls away from there, or the seams of flat ground would be felt.
"""

import math

from .....compiler.kernel import lane_of, sweep
from .....model.arrays import TERRAIN
from .candidates import FOUND, ROW, place_at, spread, swap_candidates, write_candidates
from .convex_pairs import ball_of, body_of, radius_of
from .cores import centre_of, separation_along, size_of, snapped_to_face
from .faces import face_along, face_manifold
from .manifold import element_manifold
from .scalars import cross3, dot3, entries3, scaled3, sub3, turned3, turned_back3, unit3
from .separation import SHARP, nearest_to_origin

PIECE = 4300  # in `touch.scratch`: corners of a prism, its size before them
AROUND = 8  # directions in which the ground must fall away
STEP = 0.2  # part of a cell that is looked at in each


@sweep
def height_at(frame, t, row, column):
    tree = frame.tree
    return tree.number[tree.shape_data[t] + row * tree.shape_columns[t] + column]


@sweep
def surface_at(frame, t, x, y):
    """Height of the ground, before its scale, x and y counted in cells."""
    tree = frame.tree
    c = min(max(int(math.floor(x)), 0), tree.shape_columns[t] - 2)
    r = min(max(int(math.floor(y)), 0), tree.shape_rows[t] - 2)
    u, v = x - c, y - r
    right, above = height_at(frame, t, r, c + 1), height_at(frame, t, r + 1, c)
    if u + v < 1.0:
        corner = height_at(frame, t, r, c)
        return corner + u * (right - corner) + v * (above - corner)
    corner = height_at(frame, t, r + 1, c + 1)
    return corner + (1.0 - u) * (above - corner) + (1.0 - v) * (right - corner)


@sweep
def put_corner(frame, t, k, row, column):
    """Corner k of a prism, above and below."""
    tree, scratch, bottom = frame.tree, frame.touch.scratch, frame.tree.number[frame.tree.shape_data[t] - 1]
    x, y = 2.0 * column / (tree.shape_columns[t] - 1) - 1.0, 2.0 * row / (tree.shape_rows[t] - 1) - 1.0
    for j in range(2):
        at = PIECE + 9 * j + 3 * k
        scratch[at] = x
        scratch[at + 1] = y
        scratch[at + 2] = bottom if j == 1 else height_at(frame, t, row, column)


@sweep
def put_piece(frame, t, row, column, half, scale, pose):
    """One triangle of a cell as a prism: half 0 holds its first corner, 1 its last."""
    put_corner(frame, t, 0, row + half, column + half)
    put_corner(frame, t, 1, row, column + 1)
    put_corner(frame, t, 2, row + 1, column)
    tree = frame.tree
    frame.touch.scratch[PIECE - 1] = max(
        2.0 * abs(scale[0]) / (tree.shape_columns[t] - 1), 2.0 * abs(scale[1]) / (tree.shape_rows[t] - 1)
    )
    return TERRAIN, PIECE, 6, scale, pose


@sweep
def top_of(frame, body):
    """Outward normal of a prism's top, in the world."""
    scratch, s = frame.touch.scratch, body[3]
    a = entries3((scratch[PIECE], scratch[PIECE + 1], scratch[PIECE + 2]), s)
    b = entries3((scratch[PIECE + 3], scratch[PIECE + 4], scratch[PIECE + 5]), s)
    c = entries3((scratch[PIECE + 6], scratch[PIECE + 7], scratch[PIECE + 8]), s)
    m = unit3(cross3(sub3(b, a), sub3(c, a)))
    return turned3(body[4], m if m[2] > 0.0 else scaled3(m, -1.0))


@sweep
def falls_away(frame, t, scale, pose, place, n):
    """Whether the ground round a place lies below the plane across n, which points into it."""
    tree = frame.tree
    up, at = turned_back3(pose, scaled3(n, -1.0)), turned_back3(pose, sub3(place, (pose[9], pose[10], pose[11])))
    if up[2] < 0.05:
        return False
    per_x, per_y = 0.5 * (tree.shape_columns[t] - 1) / scale[0], 0.5 * (tree.shape_rows[t] - 1) / scale[1]
    x, y = (at[0] + scale[0]) * per_x, (at[1] + scale[1]) * per_y
    here = surface_at(frame, t, x, y) * scale[2]
    for k in range(AROUND):
        dx, dy = STEP * math.cos(0.25 * math.pi * k), STEP * math.sin(0.25 * math.pi * k)
        there = surface_at(frame, t, x + dx, y + dy) * scale[2]
        level = here - (up[0] * dx / per_x + up[1] * dy / per_y) / up[2]
        if there > level + 1e-6 * (1.0 / per_x + 1.0 / per_y):
            return False
    return True


@sweep
def without_seams(frame, t, A, first, count, top):
    """The candidates from `first` on whose direction the ground as a whole allows; how many there are then in all."""
    scratch, k = frame.touch.scratch, first
    while k < count:
        at = FOUND + ROW * k
        n = scratch[at + 21], scratch[at + 22], scratch[at + 23]
        is_top = scratch[at] == -1.0 and dot3(n, top) < -1.0 + 1e-9
        if is_top or (scratch[at] > 0.0 and falls_away(frame, t, A[3], A[4], place_at(frame, k), n)):
            k += 1
        else:
            count -= 1
            swap_candidates(frame, k, count)
    return count


@sweep
def piece_manifold(frame, count, t, A, B, radius, margin):
    """Candidates between one prism, A, and a body, after `count` others."""
    size, top = size_of(frame, A) + size_of(frame, B), top_of(frame, A)
    points, v = nearest_to_origin(frame, A, B, size, SHARP)
    n = scaled3(top, -1.0)
    if points < 4 and dot3(v, v) > 1e-20 * size * size:
        n = unit3(v)
        if dot3(v, v) > (radius + margin) * (radius + margin):
            return count
        if face_along(frame, B, n, points, 1):
            after = face_manifold(frame, count, (1.0, B, n, n), A, 0.0, margin)
        elif face_along(frame, A, scaled3(n, -1.0), points, 0):
            after = face_manifold(frame, count, (-1.0, A, scaled3(n, -1.0), n), B, radius, margin)
        else:
            after = element_manifold(frame, count, A, B, n, points, (0.0, radius))
        return without_seams(frame, t, A, count, after, top)
    m = snapped_to_face(frame, B, n)
    if dot3(m, n) > 0.5 and separation_along(frame, A, B, m) > separation_along(frame, A, B, n) + 1e-9 * size:
        after = face_manifold(frame, count, (1.0, B, m, m), A, 0.0, margin)
    else:
        after = face_manifold(frame, count, (-1.0, A, top, n), B, radius, margin)
    return without_seams(frame, t, A, count, after, top)


@sweep
def terrain_search(frame, p, first, most, lane):
    """Features of a terrain and a body in one environment, as rows of geometry from `first` on."""
    tree = frame.tree
    t, i = tree.pair_a[p], tree.pair_b[p]
    scale, pose = lane_of(frame.params.shape_size[t], lane), lane_of(frame.touch.shape[t], lane)
    B, radius = body_of(frame, i, lane), radius_of(frame, i, lane)
    margin = lane_of(frame.params.pair_margin[tree.pair_row[p]], lane)
    at = turned_back3(pose, sub3(centre_of(frame, B), (pose[9], pose[10], pose[11])))
    reach, count = ball_of(frame, B) + radius + margin, 0
    if dot3(at, at) < 1e200:  # not where a number is no number
        columns, rows = tree.shape_columns[t] - 1, tree.shape_rows[t] - 1
        c0 = max(int(math.floor((at[0] - reach + scale[0]) / scale[0] * 0.5 * columns)), 0)
        c1 = min(int(math.floor((at[0] + reach + scale[0]) / scale[0] * 0.5 * columns)), columns - 1)
        r0 = max(int(math.floor((at[1] - reach + scale[1]) / scale[1] * 0.5 * rows)), 0)
        r1 = min(int(math.floor((at[1] + reach + scale[1]) / scale[1] * 0.5 * rows)), rows - 1)
        for r in range(r0, r1 + 1):
            for c in range(c0, c1 + 1):
                count = cell_manifold(frame, count, t, (r, c), B, (scale, pose, at[2] - reach), (radius, margin))
    count = spread(frame, 0, count, most)
    write_candidates(frame, count, first, most, lane)


@sweep
def cell_manifold(frame, count, t, cell, B, field, limits):
    """Candidates of both triangles of a cell that reach up to the body's lowest."""
    r, c = cell
    scale, pose, lowest = field
    near, far = height_at(frame, t, r, c), height_at(frame, t, r + 1, c + 1)
    shared = max(height_at(frame, t, r, c + 1), height_at(frame, t, r + 1, c))
    for half in range(2):
        if max(shared, near if half == 0 else far) * scale[2] > lowest:
            A = put_piece(frame, t, r, c, half, scale, pose)
            count = piece_manifold(frame, count, t, A, B, limits[0], limits[1])
    return count
