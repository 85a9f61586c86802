"""Convex pieces of mesh files, for contact: the hull, cut to a number of corners, or a decomposition; kept by content.

Hulls need scipy, decompositions coacd (both in the extra [mesh]). What was worked out lies beside the compiled kernels.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..compiler import cache
from ..model.errors import ModelError
from .mesh import Mesh, Meshes

CORNERS = 64  # of one piece; MuJoCo's own advice for fast contact is below this
ENOUGH = 1e-4  # part of a mesh's size that a hull with fewer corners may leave out
FORMAT = b"hulls 1"


class Hulls:
    """Pieces of the meshes of one world; each file is worked on once. `cuts`: by how much hulls were cut, (file, corners, m)."""

    def __init__(self, mode: str = "hull", corners: int = CORNERS) -> None:
        self.mode, self.corners = mode, corners
        self.cuts: list[tuple[str, int, float]] = []
        self._known: dict[str, list[np.ndarray]] = {}
        self._meshes = Meshes()

    def pieces(self, path: str) -> list[np.ndarray]:
        """Corners (n, 3) of every convex piece of a file, before any scale."""
        if path not in self._known:
            mesh = self._meshes.load(path)
            kept = cached(mesh, self.mode, self.corners)
            self._known[path] = kept["pieces"]
            if kept["error"] > 0:
                self.cuts.append((Path(path).name, kept["full"], kept["error"]))
        return self._known[path]


def cached(mesh: Mesh, mode: str, corners: int) -> dict[str, Any]:
    """Pieces, the greatest error of cutting, and how many corners the largest had before; from disk where it is known."""
    name = hashlib.sha256(
        FORMAT + mode.encode() + bytes([corners % 256]) + mesh.vertices.tobytes() + mesh.faces.tobytes()
    )
    place = cache.folder() / "hulls" / f"{name.hexdigest()}.npz"
    try:
        return _opened(place)
    except (OSError, ValueError, KeyError):
        made = worked_out(mesh, mode, corners)
        _keep(place, made)
        return made


def worked_out(mesh: Mesh, mode: str, corners: int) -> dict[str, Any]:
    bodies = [mesh.vertices] if mode == "hull" else list(decomposed(mesh))
    whole = [hull_corners(points, mesh.file) for points in bodies]
    cut = [reduced(points, corners) for points in whole]
    return {
        "pieces": [points for points, _ in cut],
        "error": max(error for _, error in cut),
        "full": max(len(points) for points in whole),
    }


def hull_corners(points: np.ndarray, file: str = "") -> np.ndarray:
    """Corners of the convex hull of points."""
    return points[_hull(points, file).vertices]


def reduced(corners: np.ndarray, most: int = CORNERS) -> tuple[np.ndarray, float]:
    """At most so many corners of a convex body, and how far the farthest of the others lies outside their hull (m).

    From the outermost in fourteen directions, those farthest from the present hull are added, a few at a time."""
    if len(corners) <= most:
        return corners, 0.0
    size = float(np.ptp(corners, axis=0).max())
    axes = np.array(
        [(x, y, z) for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1) if abs(x) + abs(y) + abs(z) in (1, 3)]
    )
    chosen = sorted({int(k) for k in np.argmax(corners @ axes.T, axis=0)})
    while True:
        planes = _hull(corners[chosen]).equations
        heights = planes[:, :3] @ corners.T + planes[:, 3:]
        outside, face = heights.max(0), heights.argmax(0)
        if outside.max() <= ENOUGH * size or len(chosen) >= most:
            return corners[chosen], max(float(outside.max()), 0.0)
        order = [k for k in np.argsort(-outside) if outside[k] > 0.5 * outside.max()]
        first_of_face = {int(face[k]): int(k) for k in reversed(order)}
        chosen = sorted({*chosen, *list(first_of_face.values())[: max(1, most - len(chosen))]})[:most]


def decomposed(mesh: Mesh) -> Iterator[np.ndarray]:
    """Convex pieces of a mesh that is not, by coacd."""
    try:
        import coacd
    except ImportError:
        raise ModelError('meshes="decompose" needs the package coacd: pip install "jointgrad[mesh]"') from None
    coacd.set_log_level("error")
    for points, _ in coacd.run_coacd(coacd.Mesh(mesh.vertices, mesh.faces), seed=0):
        yield np.asarray(points, dtype=np.float64)


def _hull(points: np.ndarray, file: str = "") -> Any:
    try:
        from scipy.spatial import ConvexHull, QhullError
    except ImportError:
        raise ModelError('hulls of meshes need the package scipy: pip install "jointgrad[mesh]"') from None
    try:
        return ConvexHull(points)
    except (QhullError, ValueError):
        raise ModelError(f"{file or 'the mesh'} has no convex hull; it is flat or on a line") from None


def _opened(place: Path) -> dict[str, Any]:
    with np.load(io.BytesIO(place.read_bytes()), allow_pickle=False) as data:
        ends, points = data["ends"], data["points"]
        pieces = [points[a:b] for a, b in zip([0, *ends[:-1]], ends, strict=True)]
        return {"pieces": pieces, "error": float(data["error"]), "full": int(data["full"])}


def _keep(place: Path, made: dict[str, Any]) -> None:
    """A cache that cannot be written costs time only."""
    ends = np.cumsum([len(points) for points in made["pieces"]])
    raw = io.BytesIO()
    np.savez(raw, ends=ends, points=np.concatenate(made["pieces"]), error=made["error"], full=made["full"])
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        spare = place.with_suffix(f".{id(made)}.part")
        spare.write_bytes(raw.getvalue())
        spare.replace(place)
    except OSError:
        return
