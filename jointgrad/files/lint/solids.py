"""Volume and inertia of the shapes of a link, as if they were solid and of one density."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...algebra.rotation import matrix
from ...model.description import Link, Shape
from ...model.solids import SOLIDS, moments_per_mass, volume


@dataclass
class Solid:
    """Inertia per mass (m^2) about the common centre, in the link's axes; `axes` (3, 3) are columns along which it is
    diagonal. `is_partial`: there are meshes beside the primitives, so that these may cover only a part of the link."""

    inertia: np.ndarray
    axes: np.ndarray
    is_partial: bool


def rotation(quaternion: Sequence[float]) -> np.ndarray:
    return np.array(matrix(tuple(float(c) for c in quaternion)), dtype=np.float64).reshape(3, 3)


def _floats(size: Sequence[float]) -> list[float]:
    return [float(v) for v in size]


def tensor(inertia: Sequence[float]) -> np.ndarray:
    xx, xy, xz, yy, yz, zz = inertia
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], dtype=np.float64)


def solid_of(link: Link) -> Solid | None:
    """What is seen, if it is made of primitives, else what touches; None where there is neither."""
    has_mesh = any(s.kind not in (*SOLIDS, "plane") for s in link.shapes)
    for roles in (("visual", "both"), ("collision", "both")):
        shapes = [s for s in link.shapes if s.role in roles and (s.kind in SOLIDS or s.kind != "plane")]
        if shapes and all(s.kind in SOLIDS and volume(s.kind, _floats(s.size)) > 0 for s in shapes):
            return _joined(shapes, has_mesh)
    return None


def _joined(shapes: list[Shape], has_mesh: bool) -> Solid:
    if len(shapes) == 1:
        R = rotation(shapes[0].orientation)
        return Solid(R @ np.diag(moments_per_mass(shapes[0].kind, _floats(shapes[0].size))) @ R.T, R, has_mesh)
    volumes = np.array([volume(s.kind, _floats(s.size)) for s in shapes])
    places = np.array([[float(c) for c in s.position] for s in shapes])
    share = volumes / volumes.sum()
    total = np.zeros((3, 3))
    for s, part, arm in zip(shapes, share, places - share @ places, strict=True):
        R = rotation(s.orientation)
        total += part * (
            R @ np.diag(moments_per_mass(s.kind, _floats(s.size))) @ R.T + (arm @ arm) * np.eye(3) - np.outer(arm, arm)
        )
    return Solid(total, np.linalg.eigh(total)[1], has_mesh)
