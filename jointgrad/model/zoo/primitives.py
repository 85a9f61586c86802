"""Mass and inertia of simple solids, alone and put together, so that a robot's figures follow from its shapes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..description import Description, Link, Shape

ALONG_X = (math.sqrt(0.5), 0.0, math.sqrt(0.5), 0.0)  # turns z into x
ALONG_Y = (math.sqrt(0.5), -math.sqrt(0.5), 0.0, 0.0)  # turns z into y


def volume(kind: str, size: Sequence[float]) -> float:
    """Of a solid whose sizes (m) are those of a Shape, m^3."""
    if kind == "sphere":
        return 4 / 3 * math.pi * size[0] ** 3
    if kind == "cylinder":
        return 2 * math.pi * size[0] ** 2 * size[1]
    if kind == "capsule":
        return volume("cylinder", size) + volume("sphere", size[:1])
    if kind == "box":
        return 8 * size[0] * size[1] * size[2]
    raise ValueError(f'a "{kind}" has no volume here; the solids are sphere, capsule, cylinder and box')


def moments(kind: str, size: Sequence[float], mass: float) -> tuple[float, float, float]:
    """Moments of inertia (kg m^2) of a uniform solid about its centre: x, y, z of its own frame."""
    if kind == "sphere":
        return (0.4 * mass * size[0] ** 2,) * 3
    if kind == "box":
        x, y, z = (s**2 for s in size)
        return mass / 3 * (y + z), mass / 3 * (x + z), mass / 3 * (x + y)
    r, half = size
    if kind == "cylinder":
        across = mass * (r * r / 4 + half * half / 3)
        return across, across, mass * r * r / 2
    if kind == "capsule":
        ball = mass * volume("sphere", size[:1]) / volume(kind, size)
        across, _, along = moments("cylinder", size, mass - ball)
        # a half ball's centre of mass is 3/8 r beyond the end of the cylinder
        across += ball * (0.4 * r * r + half * half + 0.75 * half * r)
        return across, across, along + 0.4 * ball * r * r
    raise ValueError(f'a "{kind}" has no moments here; the solids are sphere, capsule, cylinder and box')


def rotation(quaternion: Sequence[float]) -> np.ndarray:
    """Matrix (3, 3) of a quaternion w x y z of any length."""
    w, *v = np.asarray(quaternion, dtype=np.float64) / np.linalg.norm(quaternion)
    cross = np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])
    return np.eye(3) + 2 * w * cross + 2 * cross @ cross


def combined(
    shapes: Iterable[Shape], density: float | None = None, mass: float | None = None
) -> tuple[float, tuple[float, ...], tuple[float, ...]]:
    """Mass, centre of mass and inertia about it (xx xy xz yy yz zz) of uniform solids that move as one.

    Give the density (kg/m^3) or the mass (kg) of all together. Where solids overlap, both count, as in MuJoCo.
    """
    solids = list(shapes)
    if density is None:
        if mass is None:
            raise ValueError("give the density or the mass of the shapes")
        density = mass / sum(volume(s.kind, s.size) for s in solids)
    masses = [density * volume(s.kind, s.size) for s in solids]
    total = sum(masses)
    com = np.array(masses) @ np.array([s.position for s in solids], dtype=np.float64) / total
    inertia = np.zeros((3, 3))
    for m, s in zip(masses, solids, strict=True):
        turn, arm = rotation(s.orientation), np.asarray(s.position) - com
        inertia += turn @ np.diag(moments(s.kind, s.size, m)) @ turn.T + m * (
            arm @ arm * np.eye(3) - np.outer(arm, arm)
        )
    rows, columns = np.triu_indices(3)
    return float(total), tuple(com.tolist()), tuple(inertia[rows, columns].tolist())


def rod(kind: str, start: Sequence[float], end: Sequence[float], radius: float, **options: Any) -> Shape:
    """A capsule or cylinder of a radius from one point to another."""
    a, b = np.asarray(start, dtype=np.float64), np.asarray(end, dtype=np.float64)
    length = float(np.linalg.norm(b - a))
    return Shape(
        kind, (radius, length / 2), tuple(((a + b) / 2).tolist()), z_towards(((b - a) / length).tolist()), **options
    )


def z_towards(direction: Sequence[float]) -> tuple[float, ...]:
    """The shortest turn of the z axis into a unit direction, as a quaternion."""
    x, y, z = (float(c) for c in direction)
    if z < -1 + 1e-12:
        return (0.0, 1.0, 0.0, 0.0)
    scale = math.sqrt(2 * (1 + z))
    return (scale / 2, -y / scale, x / scale, 0.0)


def add_solid_link(
    robot: Description, name: str, shapes: Sequence[Shape], density: float | None = None, mass: float | None = None
) -> Link:
    """A link that is its shapes, of uniform density."""
    link = robot.add_link(name, *combined(shapes, density, mass))
    link.shapes += shapes
    return link
