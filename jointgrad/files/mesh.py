"""Meshes: convex hull and mass properties of STL, OBJ, DAE, GLB, PLY and MuJoCo's MSH files, by trimesh (pip install
"jointgrad[mesh]")."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..model.budget import budget, excess
from ..model.errors import ModelError
from .mesh_cost import check_cost, one_group
from .xml import FileError, MissingFileError, parse

FORMATS = (".stl", ".obj", ".dae", ".glb", ".ply", ".msh")


@dataclass
class Mesh:
    """Corners (n, 3) in m, scaled, in the mesh's frame; triangles (k, 3) as indices, counter-clockwise seen from outside."""

    vertices: np.ndarray
    faces: np.ndarray
    file: str = ""

    @property
    def is_closed(self) -> bool:
        return _solid(self).is_volume


class MissingReaderError(ModelError):
    """A package that is not installed, the same for all files of a kind."""


def load_mesh(path: str | Path, scale: Sequence[float] = (1.0, 1.0, 1.0)) -> Mesh:
    """All triangles of a file as one mesh. A negative scale mirrors."""
    return Meshes().load(path, scale)


class Meshes:
    """The meshes of one robot: a file that many shapes refer to is read once, and all together keep to the budget."""

    def __init__(self) -> None:
        self._files: dict[Path, Mesh] = {}
        self._corners = 0

    def load(self, path: str | Path, scale: Sequence[float] = (1.0, 1.0, 1.0)) -> Mesh:
        """All triangles of a file as one mesh. A negative scale mirrors."""
        if not str(path):
            raise MissingFileError("its mesh was not found when the file was read; pass search_roots there")
        path, factors = Path(path), np.asarray(scale, dtype=np.float64)
        if factors.shape != (3,) or not np.isfinite(factors).all() or not factors.all():
            raise ModelError(
                f"the scale of {path} is {tuple(scale)}; it must be three finite numbers, none of them zero"
            )
        if path not in self._files:
            self._files[path] = _read(path)
        plain = self._files[path]
        self._corners += len(plain.vertices)
        if why := excess("corners", self._corners):
            raise FileError(f"{path}: with it the robot has {why}")
        # a mirrored triangle is turned over, so that it is still seen counter-clockwise from outside
        faces = plain.faces[:, ::-1] if factors.prod() < 0 else plain.faces
        return Mesh(plain.vertices * factors, faces, plain.file)


def _read(path: Path) -> Mesh:
    """A file as it is, in one piece."""
    _check_file(path)
    trimesh = _trimesh()
    try:
        whole = _in_one_piece(trimesh, path)
    except ImportError as reason:
        package = {".dae": "pycollada"}.get(path.suffix.lower(), str(reason))
        raise MissingReaderError(
            f'reading {path.suffix} files needs the package {package}: pip install "jointgrad[mesh]"'
        ) from None
    except FileError:
        raise
    except Exception as reason:  # readers of foreign formats fail in every way there is
        raise FileError(f"{path}: this is not a mesh that can be read: {reason}") from None
    if not len(whole.faces):
        raise FileError(f"{path}: there is no triangle in it")
    whole.merge_vertices()
    vertices = np.asarray(whole.vertices, dtype=np.float64)
    if not np.isfinite(vertices).all():
        raise FileError(f"{path}: a corner is not finite")
    return Mesh(vertices, np.asarray(whole.faces, dtype=np.int64), str(path))


def _in_one_piece(trimesh: Any, path: Path) -> Any:
    """By trimesh, from bytes and not from a path, so that nothing beside the file is looked up."""
    kind = path.suffix[1:].lower()
    if kind == "msh":
        return trimesh.Trimesh(*_msh(path), process=False)
    data = path.read_bytes()
    check_cost(path, kind, data)
    options = {"skip_materials": True} if kind in ("obj", "glb") else {}
    return trimesh.load_scene(io.BytesIO(one_group(kind, data)), file_type=kind, **options).to_mesh()


def _msh(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """MuJoCo's own format: four counts, corners, normals, places on a texture, triangles; little-endian, 4 bytes each."""
    raw = path.read_bytes()
    corners, normals, places, faces = (int(n) for n in np.frombuffer(raw, "<i4", 4))
    if min(corners, normals, places, faces) < 0 or len(raw) != 4 * (
        4 + 3 * corners + 3 * normals + 2 * places + 3 * faces
    ):
        raise ValueError("the counts at its beginning do not fit its length")
    vertices = np.frombuffer(raw, "<f4", 3 * corners, 16).reshape(-1, 3)
    triangles = np.frombuffer(raw, "<i4", 3 * faces, len(raw) - 12 * faces).reshape(-1, 3)
    if len(triangles) and not (0 <= triangles.min() and triangles.max() < corners):
        raise ValueError("a triangle refers to a corner that is not there")
    return vertices.astype(np.float64), triangles.astype(np.int64)


def convex_hull(mesh: Mesh) -> Mesh:
    """The smallest convex body around a mesh."""
    try:
        hull = _solid(mesh).convex_hull
    except ModelError:
        raise
    except Exception as reason:
        raise ModelError(f"{mesh.file or 'the mesh'} has no convex hull; it is flat or a line: {reason}") from None
    return Mesh(np.asarray(hull.vertices), np.asarray(hull.faces, dtype=np.int64), mesh.file)


def mass_properties(mesh: Mesh, density: float = 1000.0) -> tuple[float, tuple[float, ...], tuple[float, ...]]:
    """Mass (kg), centre of mass (m), inertia about it (kg m^2: xx xy xz yy yz zz) of the body that a closed mesh bounds."""
    if not 0 < density < np.inf:
        raise ModelError(f"density must be more than zero and finite, but is {density}")
    solid = _solid(mesh)
    if not solid.is_watertight:
        raise ModelError(f"{mesh.file or 'the mesh'} is not closed and bounds no volume; take its convex_hull")
    volume = float(solid.volume)
    if not abs(volume) > 0:
        raise ModelError(f"{mesh.file or 'the mesh'} has no volume")
    # a mesh turned inside out has the volume, and the inertia, of the other sign
    sign = 1.0 if volume > 0 else -1.0
    m = np.asarray(solid.moment_inertia) * density * sign
    inertia = (m[0, 0], m[0, 1], m[0, 2], m[1, 1], m[1, 2], m[2, 2])
    return sign * volume * density, tuple(map(float, solid.center_mass)), tuple(map(float, inertia))


def _check_file(path: Path) -> None:
    if path.suffix.lower() not in FORMATS:
        raise FileError(f'{path}: meshes are read from {", ".join(FORMATS)}, not from "{path.suffix}"')
    if not path.is_file():
        raise MissingFileError(f"{path}: there is no such file")
    size = path.stat().st_size
    if why := excess("mesh_bytes", size):
        raise FileError(f"{path}: it has {why}")
    if path.suffix.lower() == ".dae":  # XML: the bounded parser sees it first, for trimesh's would follow entities
        with budget(file_bytes=size + 1, attribute=size + 1):
            parse(path)


def _solid(mesh: Mesh) -> Any:
    return _trimesh().Trimesh(mesh.vertices, mesh.faces, process=False)


def _trimesh() -> Any:
    try:
        import trimesh
    except ImportError:
        raise MissingReaderError('reading meshes needs the package trimesh: pip install "jointgrad[mesh]"') from None
    return trimesh
