"""What is to be drawn of a model, however it is drawn: pieces fixed to links, as triangles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..model.arrays import Model
from ..model.bodies import rings
from ..model.budget import excess
from ..model.description import Shape
from ..model.errors import InputError, ModelError
from ..model.rotations import rotation

KINDS = ("plane", "sphere", "capsule", "cylinder", "ellipsoid", "box", "mesh", "hfield", "points", "rod")
ROLES = ("both", "visual", "collision", "skeleton")
SIZES = {
    "plane": 0,
    "sphere": 1,
    "capsule": 2,
    "cylinder": 2,
    "ellipsoid": 3,
    "box": 3,
    "mesh": 3,
    "hfield": 3,
    "points": 1,
    "rod": 2,
}
GREY = (0.55, 0.57, 0.60, 1.0)
# colours of links whose shapes have none of their own, in turn
PALETTE = (
    (0.30, 0.52, 0.78), (0.91, 0.55, 0.22), (0.36, 0.66, 0.48), (0.78, 0.36, 0.38),
    (0.52, 0.45, 0.72), (0.30, 0.65, 0.70), (0.80, 0.65, 0.28), (0.62, 0.50, 0.44),
)  # fmt: skip
AROUND = 32  # corners of a circle
POINT_CORNERS = 7 * AROUND  # of the ball that stands for a point
POINT_RADIUS = 0.008  # of a contact point without a size of its own (m)


@dataclass
class Piece:
    """A shape fixed to a link: its kind and size as in `Shape`, its place in the link's frame, its colour (r, g, b, a).

    The role "skeleton" marks a rod that is drawn only where a link has no shape along itself. Triangles are those of a
    mesh, in the piece's frame: corners (n, 3) and indices (k, 3). `points` belongs to a set of points.
    """

    link: int
    kind: str
    size: tuple[float, ...]
    position: tuple[float, ...] = (0.0, 0.0, 0.0)
    orientation: tuple[float, ...] = (1.0, 0.0, 0.0, 0.0)
    color: tuple[float, ...] = GREY
    role: str = "both"
    vertices: np.ndarray | None = None
    faces: np.ndarray | None = None
    points: np.ndarray | None = None

    @property
    def is_visual(self) -> bool:
        return self.role != "collision"

    @property
    def is_collision(self) -> bool:
        return self.role in ("both", "collision")

    @property
    def n_corners(self) -> int:
        """How many corners its triangles have, or a few more."""
        if self.vertices is not None:
            return len(self.vertices)
        if self.kind == "points" and self.points is not None:
            return POINT_CORNERS * len(self.points)
        return 24 if self.kind == "box" else 18 * AROUND

    def triangles(self) -> tuple[np.ndarray, np.ndarray]:
        """Corners (n, 3) in the link's frame, and indices (k, 3), counter-clockwise from outside."""
        vertices, faces = _surface(self)
        return vertices @ rotation(self.orientation).T + np.asarray(self.position), faces


@dataclass
class Scene:
    """Links by name, what each looks like, and which of them never move."""

    link_names: tuple[str, ...]
    pieces: list[Piece] = field(default_factory=list)
    is_still: tuple[bool, ...] = ()
    notes: list[str] = field(default_factory=list)  # what could not be drawn, and why

    @property
    def solids(self) -> list[Piece]:
        """All pieces with a surface of their own; planes are the ground."""
        return [p for p in self.pieces if p.kind != "plane"]

    def within_budget(self) -> Scene:
        """This scene, unless it takes too many corners to draw; they are counted, not made."""
        if why := excess("corners", sum(p.n_corners for p in self.solids)):
            raise InputError(f"the scene has {why}")
        return self

    @property
    def planes(self) -> list[Piece]:
        return [p for p in self.pieces if p.kind == "plane"]


def scene_of(model: Model, rest: tuple[np.ndarray, np.ndarray] | None = None) -> Scene:
    """What a model looks like. `rest` is (position (n, 3), rotation (n, 3, 3)) of the links at the start; with it, rods are
    drawn along links that have no shape of their own."""
    from ..files.mesh import Meshes, MissingReaderError

    tree, meshes = model.topology.tree, Meshes()
    scene = Scene(model.link_names, is_still=tuple(b == tree["n_bodies"] for b in tree["link_body"]))
    unread: Counter[str] = Counter()
    for link, shape in model.topology.looks:
        try:
            scene.pieces.append(_piece(link, shape, meshes))
        except MissingReaderError as reason:
            unread[str(reason)] += 1
        except ModelError as reason:
            scene.notes.append(f'link "{model.link_names[link]}": {reason}')
    scene.notes += [f"{n} meshes are not drawn: {reason}" for reason, n in unread.items()]
    if rest is not None:
        scene.pieces += _skeleton(model, scene, *rest)
    return scene.within_budget()


def _piece(link: int, shape: Shape, meshes: Any) -> Piece:
    if shape.kind not in SIZES:
        raise ModelError(f'shapes of kind "{shape.kind}" are not drawn')
    size = tuple(float(s) for s in shape.size)[: SIZES[shape.kind]]
    if len(size) < SIZES[shape.kind]:
        raise ModelError(f"a {shape.kind} has {SIZES[shape.kind]} sizes, but this has {len(size)}")
    place = tuple(map(float, shape.position)), unit(shape.orientation)
    piece = Piece(link, shape.kind, size, *place, _color(link, shape), shape.role)
    if shape.kind == "mesh" and not shape.mesh and len(shape.pieces):
        piece.vertices, piece.faces = _joined([_hull(np.asarray(corners) * size) for corners in shape.pieces])
    elif shape.kind == "mesh":
        mesh = meshes.load(shape.mesh, shape.size)
        piece.vertices, piece.faces = mesh.vertices, mesh.faces
    if shape.kind == "hfield":
        piece.vertices, piece.faces = _ground(np.asarray(shape.heights, dtype=np.float64), size)
    if shape.kind == "points":
        piece.points = np.asarray(shape.points, dtype=np.float64).reshape(-1, 3)
    return piece


def _color(link: int, shape: Shape) -> tuple[float, ...]:
    """Shapes that were given no colour get that of their link's turn, so that links can be told apart."""
    given = tuple(float(c) for c in shape.color)
    if given == (0.5, 0.5, 0.5, 1.0) and shape.kind != "plane":
        return (*PALETTE[link % len(PALETTE)], 1.0)
    return tuple(min(max(c, 0.0), 1.0) for c in given)


def _skeleton(model: Model, scene: Scene, position: np.ndarray, turn: np.ndarray) -> list[Piece]:
    """Rods from a link's origin to those of the links it carries, where it has no shape that is long."""
    tree, solid = model.topology.tree, {p.link for p in scene.solids if p.is_visual and p.kind != "sphere"}
    reach = float(np.ptp(position, axis=0).max()) if len(position) else 0.0
    found = []
    parents = _parent_links(tree)
    ends = [(parents[j], position[j]) for j in range(model.n_links) if parents[j] >= 0]
    ends += [(p.link, position[p.link] + turn[p.link] @ p.position) for p in scene.solids if p.kind == "sphere"]
    for j, end in ends:
        along = turn[j].T @ (end - position[j])
        length = float(np.linalg.norm(along))
        if j in solid or length < 1e-6 or tree["link_body"][j] == tree["n_bodies"]:
            continue
        radius = max(min(0.1 * length, 0.03 * reach), 1e-3)
        place = tuple(along / 2), _turn_from_z(along / length)
        found.append(Piece(j, "rod", (radius, length / 2), *place, (*PALETTE[j % len(PALETTE)], 1.0), "skeleton"))
    return found


def _parent_links(tree: Any) -> list[int]:
    """The link that carries each link; -1 for the world."""
    owner = {frame: j for j, frame in enumerate(tree["link_frame"])}
    found = []
    for frame in tree["link_frame"]:
        at = tree["frame_parent"][frame]
        while at < tree["n_frames"] and at not in owner:
            at = tree["frame_parent"][at]
        found.append(owner.get(at, -1))
    return found


# rotations ------------------------------------------------------------------------------------------------------------


def unit(quaternion: Sequence[float]) -> tuple[float, ...]:
    """A quaternion of length one, w x y z."""
    q = np.asarray(quaternion, dtype=np.float64)
    return tuple((q / np.linalg.norm(q)).tolist())


def quaternion(R: np.ndarray) -> np.ndarray:
    """Unit quaternions (..., 4), w x y z, of matrices (..., 3, 3); of the four ways the one with the largest divisor."""
    d = np.diagonal(R, axis1=-2, axis2=-1)
    trace = d.sum(-1)
    squares = np.stack([1 + trace, *(1 + 2 * d[..., i] - trace for i in range(3))], -1)
    products = np.empty((*R.shape[:-2], 4, 4))
    for i in range(4):
        products[..., i, i] = squares[..., i]
    for i, (a, b) in enumerate(((2, 1), (0, 2), (1, 0))):
        products[..., 0, i + 1] = products[..., i + 1, 0] = R[..., a, b] - R[..., b, a]
    for i, j in ((0, 1), (0, 2), (1, 2)):
        products[..., i + 1, j + 1] = products[..., j + 1, i + 1] = R[..., i, j] + R[..., j, i]
    best = np.argmax(squares, -1)[..., None, None]
    row = np.take_along_axis(products, np.broadcast_to(best, (*best.shape[:-1], 4)), -2)[..., 0, :]
    return row / np.linalg.norm(row, axis=-1, keepdims=True)


def _turn_from_z(direction: np.ndarray) -> tuple[float, ...]:
    """The shortest turn that takes z into a unit direction."""
    if direction[2] < -0.999999:
        return (0.0, 1.0, 0.0, 0.0)
    return unit((1.0 + direction[2], -direction[1], direction[0], 0.0))


# surfaces -------------------------------------------------------------------------------------------------------------


def _surface(piece: Piece) -> tuple[np.ndarray, np.ndarray]:
    """Corners and triangles in the piece's own frame."""
    size = piece.size
    if piece.vertices is not None and piece.faces is not None:
        return piece.vertices, piece.faces
    if piece.kind == "box":
        return _box(np.asarray(size))
    if piece.kind == "cylinder":
        return _cylinder(*size)
    if piece.kind in ("capsule", "rod"):
        return _ball(np.full(3, size[0]), size[1])
    if piece.kind == "ellipsoid":
        return _ball(np.asarray(size))
    if piece.kind == "points" and piece.points is not None:
        return _cloud(piece.points, size[0] or POINT_RADIUS)
    return _ball(np.full(3, size[0]))


def _ball(axes: np.ndarray, half_length: float = 0.0, rings: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """An ellipsoid, or with a half length a capsule along z."""
    up = np.linspace(-np.pi / 2, 0, rings + 1)
    latitude = np.concatenate([up, -up[::-1] if half_length else -up[-2::-1]])
    shift = np.concatenate([np.full(rings + 1, -half_length), np.full(len(latitude) - rings - 1, half_length)])
    vertices, faces = _lathe(np.cos(latitude), axes[2] * np.sin(latitude) + shift)
    return vertices * (axes[0], axes[1], 1.0), faces


def _cylinder(radius: float, half_length: float) -> tuple[np.ndarray, np.ndarray]:
    """Corners are doubled along the edges, so that smooth shading leaves them sharp."""
    side = _lathe(np.full(2, radius), np.array([-half_length, half_length]))
    low = _lathe(np.array([0.0, radius]), np.full(2, -half_length))
    high = _lathe(np.array([radius, 0.0]), np.full(2, half_length))
    return _joined([side, low, high])


def _lathe(radius: np.ndarray, height: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A profile from below, turned about z."""
    angle = 2 * np.pi * np.arange(AROUND) / AROUND
    grid = np.stack(
        [np.outer(radius, np.cos(angle)), np.outer(radius, np.sin(angle)), np.outer(height, np.ones(AROUND))], -1
    )
    ring, j = np.meshgrid(np.arange(len(radius) - 1) * AROUND, np.arange(AROUND), indexing="ij")
    a, b = ring + j, ring + (j + 1) % AROUND
    faces = np.stack([a, b, b + AROUND, a, b + AROUND, a + AROUND], -1).reshape(-1, 3)
    return grid.reshape(-1, 3), faces[_has_area(grid.reshape(-1, 3), faces)]


def _has_area(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    a, b, c = np.moveaxis(vertices[faces], 1, 0)
    area = np.linalg.norm(np.cross(b - a, c - a), axis=-1)
    return area > 1e-9 * (area.max() if len(area) else 1.0)


def _box(half: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Six faces with corners of their own."""
    vertices: list[np.ndarray] = []
    faces: list[np.ndarray] = []
    for axis in range(3):
        u, v = (axis + 1) % 3, (axis + 2) % 3
        for side in (1.0, -1.0):
            corners = np.empty((4, 3))
            corners[:, axis] = side
            corners[:, u], corners[:, v] = (-1, 1, 1, -1), (-1, -1, 1, 1)
            first = 4 * len(vertices)
            vertices.append(corners * half)
            square = np.array([[0, 1, 2], [0, 2, 3]]) + first
            faces.append(square if side > 0 else square[:, ::-1])
    return np.concatenate(vertices), np.concatenate(faces)


def _hull(corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A convex body by its corners, each face with corners of its own, so that edges stay sharp."""
    vertices: list[np.ndarray] = []
    faces: list[np.ndarray] = []
    for ring in rings(corners):
        first = sum(map(len, vertices))
        vertices.append(corners[ring])
        faces.append(np.array([(first, first + k, first + k + 1) for k in range(1, len(ring) - 1)]))
    return np.concatenate(vertices), np.concatenate(faces)


def _ground(heights: np.ndarray, size: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The surface of a height field: two triangles per cell, as they are touched."""
    if heights.ndim != 2 or min(heights.shape) < 2:
        raise ModelError("a height field without heights is not drawn")
    rows, columns = heights.shape
    y, x = np.meshgrid(np.linspace(-size[1], size[1], rows), np.linspace(-size[0], size[0], columns), indexing="ij")
    first = (columns * np.arange(rows - 1)[:, None] + np.arange(columns - 1)).ravel()
    right, above = first + 1, first + columns
    faces = np.concatenate([np.stack([first, right, above], 1), np.stack([right, above + 1, above], 1)])
    return np.stack([x, y, size[2] * heights], -1).reshape(-1, 3), faces


def _cloud(points: np.ndarray, radius: float) -> tuple[np.ndarray, np.ndarray]:
    vertices, faces = _ball(np.full(3, radius), rings=3)
    return _joined([(vertices + point, faces) for point in points]) if len(points) else (np.zeros((0, 3)), faces[:0])


def _joined(parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    starts = np.cumsum([0] + [len(v) for v, _ in parts])
    faces = [f + start for (_, f), start in zip(parts, starts, strict=False)]
    return np.concatenate([v for v, _ in parts]), np.concatenate(faces)


def normals_of(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Unit normals (n, 3) at the corners, of the triangles that meet there weighted by area."""
    a, b, c = np.moveaxis(vertices[faces], 1, 0)
    across = np.cross(b - a, c - a)
    total = np.zeros_like(vertices)
    for corner in range(3):
        np.add.at(total, faces[:, corner], across)
    return total / np.maximum(np.linalg.norm(total, axis=-1, keepdims=True), 1e-12)
