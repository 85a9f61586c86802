"""Mesh geoms: which file they mean, and what they weigh."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from ...model.description import Shape
from ...model.rotations import rotation
from ..xml import Element, MissingFileError
from .geom import Matter
from .pose import NO_TURN, ORIGIN, compose, from_columns, unit


def mesh_shape(
    builder: Any, element: Element, scope: Any, shape: Shape, wants_matter: bool
) -> tuple[Shape, Matter | None] | None:
    """The shape of a geom that refers to a mesh, and its matter; None where it is left out."""
    asset = _asset(element, scope)
    report = builder.report
    if shape.kind not in ("mesh", "sdf"):
        # MuJoCo would fit the primitive to the mesh
        (report.changes if wants_matter else report.ignores)("primitive fitted to a mesh")
        return None
    if shape.kind == "sdf":
        report.ignores("signed distance field (contact)")
    scale = asset.floats("scale", 3, (1.0, 1.0, 1.0))
    shape = replace(shape, kind="mesh", size=scale, mesh="", reference=element.attributes["mesh"])
    if "file" in asset.attributes:
        compiler, name = scope.source.compiler, asset.attributes["file"].replace("\\", "/")
        if compiler.strip_path:
            name = PurePosixPath(name).name
        try:
            path = scope.source.path(name, asset, compiler.mesh_folder)
        except MissingFileError:
            if builder.missing_meshes == "error":
                raise
            report.ignores("missing mesh, and its mass" if wants_matter else "missing mesh")
            return None
        shape.mesh, shape.reference = str(path), ""
    _settle_corners(builder, asset, shape)
    if not wants_matter or element.number("mass", 1.0) == 0 or element.number("density", 1.0) == 0:
        return shape, None
    return shape, _matter(builder, element, asset, shape)


def _settle_corners(builder: Any, asset: Element, shape: Shape) -> None:
    """Corners that only this asset knows: written in the file, or with an origin of their own. Others are read for contact."""
    moves = any(asset.floats("refpos", 3, ORIGIN)) or tuple(asset.floats("refquat", 4, NO_TURN)) != NO_TURN
    if shape.role == "visual" or not ("vertex" in asset.attributes or (moves and shape.mesh)):
        return
    from ..hull import hull_corners, reduced

    corners = _written(asset)[0] if "vertex" in asset.attributes else builder.meshes.load(shape.mesh).vertices
    turn = rotation(unit(asset.floats("refquat", 4, NO_TURN)))
    corners = (corners - np.array(asset.floats("refpos", 3, ORIGIN))) @ turn
    shape.pieces = [reduced(hull_corners(corners, asset.get("name", "")))[0]]


def _asset(element: Element, scope: Any) -> Element:
    wanted = element.attributes["mesh"]
    if wanted in (known := scope.source.mesh_assets):
        return known[wanted]
    raise element.error(f'<geom> refers to the mesh "{wanted}", which is not in <asset>')


def _matter(builder: Any, element: Element, asset: Element, shape: Shape) -> Matter | None:
    corners, faces, is_shell = _triangles(builder, asset, shape)
    if corners is None:
        return None
    turn = rotation(unit(asset.floats("refquat", 4, NO_TURN)))
    corners = (corners - np.array(asset.floats("refpos", 3, ORIGIN))) @ turn * np.array(shape.size)
    extent, com, inertia = _weight(corners[faces], asset.get("inertia", "legacy"), is_shell)
    if not extent > 0:
        raise asset.error(
            f'the mesh "{shape.mesh or shape.reference}" bounds no volume; inertia="shell" weighs its surface'
        )
    moments, axes = np.linalg.eigh(inertia)
    axes[:, 2] *= np.linalg.det(axes)  # right-handed
    mass = element.number("mass", element.number("density", 1000.0) * extent)
    own = tuple(map(float, com)), from_columns(*axes.T)
    x, y, z = (float(m) for m in mass * moments / extent)
    return Matter(mass, (x, y, z), compose((shape.position, shape.orientation), own))  # type: ignore[arg-type]


def _triangles(builder: Any, asset: Element, shape: Shape) -> tuple[Any, Any, bool]:
    """Corners (n, 3) before scale, as the single precision that MuJoCo keeps, and triangles (k, 3)."""
    faces: np.ndarray | None
    if "file" in asset.attributes:
        mesh = builder.meshes.load(shape.mesh)
        corners, faces = mesh.vertices, mesh.faces
    elif "vertex" in asset.attributes:
        corners, faces = _written(asset)
    else:
        builder.report.changes(
            "mass that follows from a builtin mesh" if "builtin" in asset.attributes else "mesh of a plugin"
        )
        return None, None, False
    kind = asset.get("inertia", "legacy")
    if kind not in ("legacy", "exact", "convex", "shell"):
        raise asset.error(f'<mesh inertia="{kind}">: the words are legacy, exact, convex, shell')
    if faces is None or kind == "convex":
        faces = _hull(asset, corners)
    return np.float32(corners).astype(np.float64), faces, kind == "shell"


def _written(asset: Element) -> tuple[np.ndarray, np.ndarray | None]:
    values = asset.floats("vertex")
    indices = asset.floats("face", None, ())
    corners = np.array(values[: len(values) // 3 * 3]).reshape(-1, 3)
    if len(values) % 3 or len(indices) % 3 or len(corners) < 4:
        raise asset.error("<mesh> needs at least four corners, and three numbers for each corner and each face")
    faces = np.array(indices, dtype=np.int64).reshape(-1, 3)
    if len(faces) and not (0 <= faces.min() and faces.max() < len(corners)):
        raise asset.error("a face of <mesh> refers to a corner that is not there")
    return corners, faces if len(faces) else None


def _hull(asset: Element, corners: np.ndarray) -> np.ndarray:
    """Triangles of the convex hull, seen from outside counter-clockwise."""
    try:
        from scipy.spatial import ConvexHull, QhullError
    except ImportError:
        raise asset.error('a mesh without faces needs the package scipy: pip install "jointgrad[mesh]"') from None
    try:
        hull = ConvexHull(corners)
    except (QhullError, ValueError):
        raise asset.error("the corners of <mesh> have no convex hull; they are flat or on a line") from None
    faces = hull.simplices.astype(np.int64)
    a, b, c = np.moveaxis(corners[faces], 1, 0)
    inward = np.einsum("ij,ij->i", np.cross(b - a, c - a), hull.equations[:, :3]) < 0
    faces[inward] = faces[inward][:, ::-1]
    return faces


def _weight(triangles: np.ndarray, kind: str, is_shell: bool) -> tuple[float, np.ndarray, np.ndarray]:
    """Volume or area, centre and inertia per density, as sums over pyramids, the way MuJoCo does it."""
    a, b, c = np.moveaxis(triangles, 1, 0)
    cross = np.cross(b - a, c - a) / 2  # area times normal
    areas, centres = np.linalg.norm(cross, axis=1), (a + b + c) / 3
    middle = areas @ centres / areas.sum()

    def parts(about: np.ndarray) -> np.ndarray:
        if is_shell:
            return areas
        volumes = np.einsum("ij,ij->i", centres - about, cross) / 3
        return np.abs(volumes) if kind == "legacy" else volumes

    share = parts(middle)
    com = share @ (0.75 * centres + 0.25 * middle) / share.sum()
    share = parts(com)
    corners = triangles - com
    total = corners.sum(1)
    # second moments of a triangle (or pyramid) from its corners: sum of x x' over corners plus that of their sum
    second = np.einsum("i,ikx,iky->xy", share, corners, corners) + np.einsum("i,ix,iy->xy", share, total, total)
    second /= 12 if is_shell else 20
    return float(share.sum()), com, np.trace(second) * np.eye(3) - second
