"""Volume and inertia of uniform solids; sizes are those of a Shape."""

from __future__ import annotations

import math
from collections.abc import Sequence

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
