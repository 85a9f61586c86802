"""Volume and inertia of the shapes of a link, as if they were solid and of one density."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...model.description import Link, Shape
from ...model.errors import ModelError
from ...model.ranges import unit
from ...model.rotations import rotation
from ...model.solids import SOLIDS, moments_per_mass, volume
from ..mesh import Meshes, convex_hull, mass_properties

LARGEST_MESH = 20_000_000  # bytes


@dataclass
class Solid:
    """Inertia per mass (m^2) about the common centre, in the link's axes; `axes` (3, 3) are columns along which it is
    diagonal. `is_partial`: there are meshes beside the primitives, so that these may cover only a part of the link, or hulls of
    open meshes, which hold more."""

    inertia: np.ndarray
    axes: np.ndarray
    is_partial: bool


def _floats(size: Sequence[float]) -> list[float]:
    return [float(v) for v in size]


def tensor(inertia: Sequence[float]) -> np.ndarray:
    xx, xy, xz, yy, yz, zz = inertia
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], dtype=np.float64)


def solid_of(link: Link, meshes: Meshes | None = None) -> Solid | None:
    """What is seen, if it is made of primitives, else what touches, else what is seen or touches in meshes that are there;
    None where there is nothing."""
    has_mesh = any(s.kind not in (*SOLIDS, "plane") for s in link.shapes)
    for roles in (("visual", "both"), ("collision", "both")):
        shapes = [s for s in link.shapes if s.role in roles and (s.kind in SOLIDS or s.kind != "plane")]
        if shapes and all(s.kind in SOLIDS and volume(s.kind, _floats(s.size)) > 0 for s in shapes):
            return _joined([_primitive(s) for s in shapes], has_mesh)
    for roles in (("collision", "both"), ("visual", "both")):
        shapes = [s for s in link.shapes if s.role in roles and s.kind != "plane"]
        if shapes and all(s.kind in SOLIDS or os.path.isfile(s.mesh) for s in shapes):
            files = meshes or Meshes()
            pieces = [_primitive(s) if s.kind in SOLIDS else _mesh(s, files) for s in shapes]
            found = [piece for piece in pieces if piece is not None]
            if len(found) == len(pieces):
                return _joined(found, not all(piece.is_exact for piece in found))
    return None


@dataclass
class Piece:
    """Volume, centre and inertia per mass about it of one shape, in the link's frame; `is_exact` unless it is a hull."""

    volume: float
    centre: np.ndarray
    inertia: np.ndarray
    axes: np.ndarray
    is_exact: bool = True


def _primitive(shape: Shape) -> Piece:
    R, size = rotation(unit(shape.orientation)), _floats(shape.size)
    inertia = R @ np.diag(moments_per_mass(shape.kind, size)) @ R.T
    return Piece(volume(shape.kind, size), np.array(_floats(shape.position)), inertia, R)


def _mesh(shape: Shape, meshes: Meshes) -> Piece | None:
    """What a closed mesh bounds; of an open one, its convex hull. None where it cannot be read or is too large to be quick."""
    try:
        if os.path.getsize(shape.mesh) > LARGEST_MESH:
            return None
        mesh = meshes.load(shape.mesh, _floats(shape.size) or (1.0, 1.0, 1.0))
        is_closed = mesh.is_closed
        extent, centre, inertia = mass_properties(mesh if is_closed else convex_hull(mesh), density=1.0)
    except (ModelError, OSError):
        return None
    R = rotation(unit(shape.orientation))
    own = R @ tensor(inertia) @ R.T / extent
    return Piece(
        extent, np.array(_floats(shape.position)) + R @ np.array(centre), own, np.linalg.eigh(own)[1], is_closed
    )


def _joined(pieces: list[Piece], is_partial: bool) -> Solid:
    if len(pieces) == 1:
        return Solid(pieces[0].inertia, pieces[0].axes, is_partial)
    volumes = np.array([piece.volume for piece in pieces])
    places = np.array([piece.centre for piece in pieces])
    share = volumes / volumes.sum()
    total = np.zeros((3, 3))
    for piece, part, arm in zip(pieces, share, places - share @ places, strict=True):
        total += part * (piece.inertia + (arm @ arm) * np.eye(3) - np.outer(arm, arm))
    return Solid(total, np.linalg.eigh(total)[1], is_partial)
