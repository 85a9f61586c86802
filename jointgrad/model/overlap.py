"""How deep shapes lie in each other, in NumPy, for a single pose: spheres, capsules and boxes exactly, others by their corners."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass
class Solid:
    """A box (half extents `half`), or all points within `radius` of the segment `centre` +- `R` z `half[2]`."""

    is_box: bool
    centre: np.ndarray
    R: np.ndarray
    half: np.ndarray
    radius: float

    @property
    def reach(self) -> float:
        """Radius of the ball about the centre that holds it."""
        return float(np.linalg.norm(self.half)) + self.radius


@dataclass
class Cloud:
    """The convex hull of `points` (n, 3), and all within `radius` of it; `normals` of its faces."""

    points: np.ndarray
    radius: float
    normals: np.ndarray

    @property
    def centre(self) -> np.ndarray:
        return np.asarray(self.points.mean(0))

    @property
    def reach(self) -> float:
        return float(np.linalg.norm(self.points - self.centre, axis=1).max()) + self.radius


def cloud_of(solid: Solid | Cloud) -> Cloud:
    """A box, sphere or capsule by its corners."""
    if isinstance(solid, Cloud):
        return solid
    signs = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    corners = np.unique(signs * solid.half, axis=0) @ solid.R.T + solid.centre
    return Cloud(corners, solid.radius, solid.R.T if solid.is_box else np.zeros((0, 3)))


def _spread_directions(count: int = 200) -> np.ndarray:
    """Unit vectors all over the sphere, along a spiral."""
    z = 1 - (2 * np.arange(count) + 1) / count
    turn = np.pi * (3 - np.sqrt(5)) * np.arange(count)
    return np.stack([np.sqrt(1 - z * z) * np.cos(turn), np.sqrt(1 - z * z) * np.sin(turn), z], 1)


def _cloud_cloud(a: Cloud, b: Cloud) -> float:
    """The least overlap over the faces' normals and many directions, after a search for one that separates them."""
    v = a.centre - b.centre
    for _ in range(60):  # towards the nearest point of a - b to the origin, Gilbert's way
        w = a.points[np.argmin(a.points @ v)] - b.points[np.argmax(b.points @ v)]
        length, gap = np.linalg.norm(v), float(v @ w)
        if length < 1e-9:
            break
        if gap / length > a.radius + b.radius:
            return float(a.radius + b.radius - gap / length)
        way = w - v
        v = v + min(1.0, max(0.0, -(v @ way) / max(way @ way, 1e-300))) * way
    n = np.concatenate(
        [_spread_directions(), a.normals, -a.normals, b.normals, -b.normals, [v / max(np.linalg.norm(v), 1e-12)]]
    )
    return float(((b.points @ n.T).max(0) - (a.points @ n.T).min(0)).min()) + a.radius + b.radius


def is_deep(a: Solid | Cloud, b: Solid | Cloud) -> float:
    """The depth where two solids overlap by more than touching or rounding in a file explains, else zero."""
    if np.linalg.norm(a.centre - b.centre) > a.reach + b.reach:
        return 0.0
    depth = depth_between(a, b)
    return depth if depth > max(1e-4, 0.02 * min(a.reach, b.reach)) else 0.0


def depth_between(a: Solid | Cloud, b: Solid | Cloud) -> float:
    """How far they must be moved apart; negative where they do not touch."""
    if isinstance(a, Cloud) or isinstance(b, Cloud):
        return _cloud_cloud(cloud_of(a), cloud_of(b))
    if a.is_box and b.is_box:
        return _box_box(a, b)
    if a.is_box or b.is_box:
        return _box_segment(a, b) if a.is_box else _box_segment(b, a)
    return a.radius + b.radius - _segment_segment(a, b)


def _box_box(a: Solid, b: Solid) -> float:
    """The least overlap over the fifteen axes that can separate two boxes."""
    crossed = [np.cross(u, v) for u in a.R.T for v in b.R.T]
    axes = [*a.R.T, *b.R.T, *(c / n for c in crossed if (n := np.linalg.norm(c)) > 1e-6)]
    between = b.centre - a.centre
    return min(float(np.abs(axis @ a.R) @ a.half + np.abs(axis @ b.R) @ b.half - abs(axis @ between)) for axis in axes)


def _box_segment(box: Solid, rod: Solid) -> float:
    """Signed distance to a box is convex along a line, so that halving the interval finds the least."""
    middle = box.R.T @ (rod.centre - box.centre)
    line = box.R.T @ rod.R[:, 2] * rod.half[2]

    def distance(t: float) -> float:
        outside = np.abs(middle + t * line) - box.half
        return float(np.linalg.norm(np.maximum(outside, 0.0)) + min(outside.max(), 0.0))

    low, high = -1.0, 1.0
    for _ in range(40 if rod.half[2] else 0):
        third = (high - low) / 3
        if distance(low + third) < distance(high - third):
            high -= third
        else:
            low += third
    return rod.radius - distance((low + high) / 2)


def _segment_segment(a: Solid, b: Solid) -> float:
    u, v, w = a.R[:, 2] * a.half[2], b.R[:, 2] * b.half[2], a.centre - b.centre
    uu, uv, vv, uw, vw = u @ u, u @ v, v @ v, u @ w, v @ w
    s = np.clip((uv * vw - vv * uw) / d, -1.0, 1.0) if (d := uu * vv - uv * uv) > 1e-12 * uu * vv else 0.0
    t = np.clip((uv * s + vw) / vv, -1.0, 1.0) if vv > 0 else 0.0
    s = np.clip((uv * t - uw) / uu, -1.0, 1.0) if uu > 0 else 0.0
    return float(np.linalg.norm(w + s * u - t * v))
