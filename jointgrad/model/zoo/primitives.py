"""Mass and inertia of simple solids, alone and put together, so that a robot's figures follow from its shapes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..description import Description, Link, Shape
from ..ranges import unit
from ..rotations import rotation
from ..solids import moments_per_mass, volume

ALONG_X = (math.sqrt(0.5), 0.0, math.sqrt(0.5), 0.0)  # turns z into x
ALONG_Y = (math.sqrt(0.5), -math.sqrt(0.5), 0.0, 0.0)  # turns z into y


def moments(kind: str, size: Sequence[float], mass: float) -> tuple[float, ...]:
    """Moments of inertia (kg m^2) of a uniform solid about its centre: x, y, z of its own frame."""
    return tuple(mass * m for m in moments_per_mass(kind, size))


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
        turn, arm = rotation(unit(s.orientation)), np.asarray(s.position) - com
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
