"""Volume and inertia of the shapes of a link, as if they were solid and of one density."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...algebra.rotation import matrix
from ...model.description import Link, Shape

PRIMITIVES = ("sphere", "capsule", "cylinder", "box", "ellipsoid")


@dataclass
class Solid:
    """Inertia per mass (m^2) about the common centre, in the link's axes; `axes` (3, 3) are columns along which it is
    diagonal. `is_partial`: there are meshes beside the primitives, so that these may cover only a part of the link."""

    inertia: np.ndarray
    axes: np.ndarray
    is_partial: bool


def rotation(quaternion: Sequence[float]) -> np.ndarray:
    return np.array(matrix(tuple(float(c) for c in quaternion)), dtype=np.float64).reshape(3, 3)


def tensor(inertia: Sequence[float]) -> np.ndarray:
    xx, xy, xz, yy, yz, zz = inertia
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], dtype=np.float64)


def solid_of(link: Link) -> Solid | None:
    """What is seen, if it is made of primitives, else what touches; None where there is neither."""
    has_mesh = any(s.kind not in (*PRIMITIVES, "plane") for s in link.shapes)
    for roles in (("visual", "both"), ("collision", "both")):
        shapes = [s for s in link.shapes if s.role in roles and (s.kind in PRIMITIVES or s.kind != "plane")]
        if shapes and all(s.kind in PRIMITIVES and _volume(s) > 0 for s in shapes):
            return _joined(shapes, has_mesh)
    return None


def _joined(shapes: list[Shape], has_mesh: bool) -> Solid:
    if len(shapes) == 1:
        R = rotation(shapes[0].orientation)
        return Solid(R @ np.diag(_moments(shapes[0])) @ R.T, R, has_mesh)
    volumes = np.array([_volume(s) for s in shapes])
    places = np.array([[float(c) for c in s.position] for s in shapes])
    share = volumes / volumes.sum()
    total = np.zeros((3, 3))
    for s, part, arm in zip(shapes, share, places - share @ places, strict=True):
        R = rotation(s.orientation)
        total += part * (R @ np.diag(_moments(s)) @ R.T + (arm @ arm) * np.eye(3) - np.outer(arm, arm))
    return Solid(total, np.linalg.eigh(total)[1], has_mesh)


def _volume(shape: Shape) -> float:
    size = [float(v) for v in shape.size]
    if shape.kind == "sphere":
        return 4 * math.pi / 3 * size[0] ** 3
    if shape.kind in ("capsule", "cylinder"):
        balls = 4 * math.pi / 3 * size[0] ** 3 if shape.kind == "capsule" else 0.0
        return 2 * math.pi * size[0] ** 2 * size[1] + balls
    return (8 if shape.kind == "box" else 4 * math.pi / 3) * size[0] * size[1] * size[2]


def _moments(shape: Shape) -> tuple[float, float, float]:
    """Per mass (m^2), about the shape's own axes."""
    size = [float(v) for v in shape.size]
    r = size[0]
    if shape.kind == "sphere":
        return (0.4 * r * r,) * 3
    if shape.kind == "cylinder":
        across = r * r / 4 + size[1] ** 2 / 3
        return across, across, r * r / 2
    if shape.kind == "capsule":
        h = size[1]
        ball = 2 * r / (2 * r + 3 * h)  # share of the mass that is in the two half balls
        across = (1 - ball) * (r * r / 4 + h * h / 3) + ball * (0.4 * r * r + h * h + 0.75 * h * r)
        return across, across, (1 - ball) * r * r / 2 + ball * 0.4 * r * r
    a, b, c = (v * v / (3 if shape.kind == "box" else 5) for v in size)
    return b + c, a + c, a + b
