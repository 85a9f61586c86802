"""Volume and inertia of uniform solids; sizes are those of a Shape."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .bodies import rings
from .rotations import rotation

SOLIDS = ("sphere", "capsule", "cylinder", "box", "ellipsoid")


def volume(kind: str, size: Sequence[float]) -> float:
    """Of a solid, m^3."""
    if kind == "sphere":
        return 4 / 3 * math.pi * size[0] ** 3
    if kind == "cylinder":
        return 2 * math.pi * size[0] ** 2 * size[1]
    if kind == "capsule":
        return volume("cylinder", size) + volume("sphere", size[:1])
    if kind in ("box", "ellipsoid"):
        return (8 if kind == "box" else 4 / 3 * math.pi) * size[0] * size[1] * size[2]
    raise ValueError(f'a "{kind}" has no volume here; the solids are {", ".join(SOLIDS)}')


def moments_per_mass(kind: str, size: Sequence[float]) -> tuple[float, float, float]:
    """Moments of inertia (m^2) of a solid of unit mass about its centre: x, y, z of its own frame."""
    if kind == "sphere":
        return (0.4 * size[0] ** 2,) * 3
    if kind in ("box", "ellipsoid"):
        x, y, z = (s * s / (3 if kind == "box" else 5) for s in size)
        return y + z, x + z, x + y
    if kind not in SOLIDS:
        raise ValueError(f'a "{kind}" has no moments here; the solids are {", ".join(SOLIDS)}')
    r, half = size
    across, along = r * r / 4 + half * half / 3, r * r / 2
    if kind == "capsule":
        ball = 2 * r / (2 * r + 3 * half)  # share of the mass that is in the two half balls
        # a half ball's centre of mass is 3/8 r beyond the end of the cylinder
        across = (1 - ball) * across + ball * (0.4 * r * r + half * half + 0.75 * half * r)
        along = (1 - ball) * along + ball * 0.4 * r * r
    return across, across, along


def matter_of_shapes(shapes: Iterable[Any], density: float) -> tuple[float, tuple[float, ...], tuple[float, ...]]:
    """Mass (kg), centre of mass and inertia about it (xx xy xz yy yz zz) of the collision shapes of a link, else of all its
    shapes; of meshes those that have corners."""
    every = list(shapes)
    bodies = [b for s in every if s.role != "visual" for b in _bodies(s)] or [b for s in every for b in _bodies(s)]
    mass = density * sum(v for v, _, _ in bodies)
    if not mass > 0:
        return 0.0, (0.0,) * 3, (0.0,) * 6
    com = density / mass * np.sum([v * at for v, at, _ in bodies], axis=0)
    total = np.zeros((3, 3))
    for v, at, second in bodies:
        arm = at - com
        total += density * (second + v * (arm @ arm * np.eye(3) - np.outer(arm, arm)))
    six = total[(0, 0, 0, 1, 1, 2), (0, 1, 2, 1, 2, 2)]
    return float(mass), tuple(map(float, com)), tuple(map(float, six))


def _bodies(shape: Any) -> list[tuple[float, np.ndarray, np.ndarray]]:
    """Volume, centre and inertia per density about it, in the link's frame, of the solids that a shape is."""
    q = np.asarray(shape.orientation, dtype=np.float64)
    R, p = rotation(q / np.linalg.norm(q)), np.asarray(shape.position, dtype=np.float64)
    if shape.kind in SOLIDS:
        v = volume(shape.kind, shape.size)
        own = [(v, np.zeros(3), v * np.diag(moments_per_mass(shape.kind, shape.size)))]
    elif shape.kind == "mesh":
        own = [_hull_matter(np.asarray(corners) * np.asarray(shape.size)) for corners in shape.pieces]
    else:
        own = []
    return [(v, p + R @ at, R @ inertia @ R.T) for v, at, inertia in own]


def _hull_matter(corners: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Volume, centre and inertia per density about it of a convex hull: pyramids from a point inside to the faces."""
    inside, parts = corners.mean(0), []
    for ring in rings(corners):
        parts += [(corners[ring[0]], corners[a], corners[b]) for a, b in zip(ring[1:-1], ring[2:], strict=True)]
    tips = np.array(parts).reshape(-1, 3, 3) - inside
    share = np.abs(np.linalg.det(tips)) / 6
    whole = share.sum()
    if not whole > 0:
        return 0.0, inside, np.zeros((3, 3))
    com = share @ tips.sum(1) / 4 / whole
    # second moments of a pyramid with its tip at the origin
    second = np.einsum("i,ikx,iky->xy", share, tips, tips) + np.einsum("i,ix,iy->xy", share, tips.sum(1), tips.sum(1))
    second = second / 20 - whole * np.outer(com, com)
    return float(whole), inside + com, np.trace(second) * np.eye(3) - second
