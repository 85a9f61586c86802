"""Corners of meshes and heights of terrains as the engine reads them: floats in one row, before their scale.

A mesh: distance of its farthest corner from the origin, a point inside, the radius about it, the corners; then the number of its
faces and their outward normals. A terrain: its bottom, then heights row by row, x growing along a row and y from row to row.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from .budget import excess
from .errors import ModelError

HEADER = 5  # numbers before the corners of a mesh
SAME_FACE = 1e-9  # part of a body's size within which corners lie in a face, and normals are the same


@dataclass(frozen=True, eq=False)
class Data:
    """What lies in the row for one shape: where its corners or heights begin, how many rows and columns."""

    numbers: np.ndarray
    offset: int
    rows: int
    columns: int = 0


def mesh_data(owner: str, corners: Any) -> Data:
    """Of the convex hull of some points."""
    given = np.asarray(corners, dtype=np.float64)
    if given.ndim != 2 or given.shape[1:] != (3,) or not np.isfinite(given).all():
        raise ModelError(f"the corners of {owner} must be finite points, (n, 3), but have shape {given.shape}")
    if why := excess("hull", len(given)):
        raise ModelError(f"{owner} has {why}; jointgrad.files.mesh.reduced takes corners away")
    used, normals = hull(given)
    if not len(normals):
        raise ModelError(f"the corners of {owner} lie in a plane, on a line or in a point: they bound no body")
    kept = given[used]
    middle = kept.mean(0)
    header = [np.linalg.norm(kept, axis=1).max(), *middle, np.linalg.norm(kept - middle, axis=1).max()]
    return Data(np.concatenate([header, kept.ravel(), [len(normals)], normals.ravel()]), HEADER, len(kept))


def terrain_data(owner: str, heights: Any) -> Data:
    """Of a field of heights (rows along y, columns along x)."""
    field = np.asarray(heights, dtype=np.float64)
    if field.ndim != 2 or min(field.shape, default=0) < 2 or not np.isfinite(field).all():
        raise ModelError(f"the heights of {owner} must be finite numbers, (rows, columns) with two of each or more")
    if why := excess("heights", field.size):
        raise ModelError(f"{owner} has {why}")
    # prisms reach down to well below the lowest point
    bottom = field.min() - max(np.ptp(field), 1.0)
    return Data(np.concatenate([[bottom], field.ravel()]), 1, *field.shape)


def hull(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the points that are corners of their convex hull, and the outward normals of its faces.

    A face is a plane through three points with all others on one side. Every plane is tried; there are few points."""
    size = float(np.ptp(points, axis=0).max()) if len(points) else 0.0
    if len(points) < 4 or not size > 0:
        return np.zeros(0, int), np.zeros((0, 3))
    x = (points - points.mean(0)) / size
    if np.linalg.matrix_rank(x, tol=1e-9) < 3:
        return np.zeros(0, int), np.zeros((0, 3))
    corners: set[int] = set()
    normals: list[np.ndarray] = []
    for i in range(len(x) - 2):
        _faces_from(x, i, corners, normals)
    return np.array(sorted(corners), int), np.array(normals).reshape(-1, 3)


def _faces_from(x: np.ndarray, i: int, corners: set[int], normals: list[np.ndarray]) -> None:
    """Faces whose first point is i."""
    pairs = np.array(list(itertools.combinations(range(i + 1, len(x)), 2)))
    m = np.cross(x[pairs[:, 0]] - x[i], x[pairs[:, 1]] - x[i])
    length = np.linalg.norm(m, axis=1)
    is_plane = length > 1e-12
    m = m[is_plane] / length[is_plane, None]
    heights = m @ (x - x[i]).T
    for side in (1.0, -1.0):
        for k in np.flatnonzero((side * heights).max(1) < SAME_FACE):
            normal = side * m[k]
            if not any(normal @ other > 1.0 - SAME_FACE for other in normals):
                normals.append(normal)
                corners |= _outline(x, np.flatnonzero(np.abs(heights[k]) < SAME_FACE), normal)


def _outline(x: np.ndarray, members: np.ndarray, normal: np.ndarray) -> set[int]:
    """Of points in a face, those that are corners of it: outermost in some direction."""
    u = np.cross(normal, np.eye(3)[np.argmin(np.abs(normal))])
    flat = np.stack([x[members] @ u, x[members] @ np.cross(normal, u)], 1)
    found = set()
    order = np.lexsort((flat[:, 1], flat[:, 0]))
    for direction in (order, order[::-1]):
        chain: list[int] = []
        for k in direction:
            while len(chain) > 1 and _turn(flat[chain[-2]], flat[chain[-1]], flat[k]) <= 1e-12:
                chain.pop()
            chain.append(int(k))
        found |= set(members[chain].tolist())
    return found


def rings(corners: np.ndarray) -> list[np.ndarray]:
    """Numbers of the corners of every face of a convex body, counter-clockwise seen from outside."""
    size, found = np.ptp(corners, axis=0).max(), []
    for normal in hull(corners)[1]:
        height = corners @ normal
        members = np.flatnonzero(height > height.max() - SAME_FACE * size)
        u = np.cross(normal, np.eye(3)[np.argmin(np.abs(normal))])
        flat = corners[members] - corners[members].mean(0)
        found.append(members[np.argsort(np.arctan2(flat @ np.cross(normal, u), flat @ u))])
    return found


def _turn(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> float:
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))


def in_one_row(shapes: list[Any]) -> dict[str, Any]:
    """The row of all shapes, and where each one's numbers are; shapes that share numbers share their place."""
    numbers: list[np.ndarray] = []
    places: dict[int, int] = {}
    size, starts = 0, []
    for data in (s.data for s in shapes):
        if data is not None and id(data) not in places:
            places[id(data)] = size + data.offset
            numbers.append(data.numbers)
            size += len(data.numbers)
        starts.append(0 if data is None else places[id(data)])
    return {
        "number": np.concatenate(numbers).tolist() if numbers else [],
        "shape_data": starts,
        "shape_rows": [0 if s.data is None else s.data.rows for s in shapes],
        "shape_columns": [0 if s.data is None else s.data.columns for s in shapes],
    }
