"""How far two things are from each other, near or far, and how that changes with the joints.

The distance of two convex bodies is that of their cores (a point, a segment, corners of a box or of a hull, a cylinder, an
ellipsoid) less the radii around them; cores are compared by the algorithm of Gilbert, Johnson and Keerthi (1988), whose last step
is found here by trying every face of a simplex of at most four corners. Where bodies come apart at one pair of points, the
derivative is that of these points, held fast in their links.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...model.arrays import Compared, Model, State, checked_model
from ...model.errors import InputError
from ...model.names import unknown
from ...model.ranges import unit
from ...model.rotations import rotation
from .quantities import jacobian, site_pose

ITERATIONS, TOLERANCE = 64, 1e-12
FACES = [np.array(c) for n in range(1, 5) for c in itertools.combinations(range(4), n)]
CORNERS = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))


@dataclass(frozen=True, eq=False)
class Distance(Compared):
    """distance (batch,), m, negative where rounded bodies overlap, 0 where their cores do (nothing more is known there);
    points (batch, 2, 3) on either, world; normal (batch, 3) from the second to the first; gradient (batch, nv), by the rates'
    own coordinates: d distance / dt = gradient qd. Zero where cores overlap."""

    distance: np.ndarray
    points: np.ndarray
    normal: np.ndarray
    gradient: np.ndarray


@dataclass(frozen=True)
class Body:
    """Corners (n, 3) of a core in the frame of a link, and the radius around it; a plane has its point and normal; what is round
    has its place (position, axes) and half axes or (radius, half length) instead of corners."""

    link: str
    corners: np.ndarray
    radius: float
    normal: np.ndarray | None = None
    place: tuple[np.ndarray, np.ndarray] | None = None
    size: np.ndarray | None = None

    def farthest(self, way: np.ndarray) -> np.ndarray:
        """The point of the core that is farthest along a way, both in the link's frame."""
        if self.place is None or self.size is None:
            return self.corners[int(np.argmax(self.corners @ way))]
        position, axes = self.place
        own = way @ axes
        if len(self.size) == 3:  # ellipsoid
            return position + axes @ (self.size**2 * own / max(np.linalg.norm(self.size * own), 1e-300))
        across = self.size[0] * own[:2] / max(np.hypot(own[0], own[1]), 1e-300)
        return position + axes @ np.array([*across, np.copysign(self.size[1], own[2])])


def distance(model: Model, state: Any, first: str, second: str) -> Distance:
    """Between two shapes, links or sites by name, whether they may touch or not, at a State or coordinates q (batch, nq); with the
    gradient to the joints. Of a link: all its shapes, the nearest counts; without shapes, its origin. Sets of points and meshes
    count as their hulls. It is written in NumPy: a few milliseconds for a pair of shapes."""
    checked_model(model)
    q = state.q if isinstance(state, State) else state
    pairs = list(itertools.product(bodies_of(model, first), bodies_of(model, second)))
    found = [_between(model, q, a, b) for a, b in pairs]
    best = found[0]
    for one in found[1:]:
        nearer = one.distance < best.distance
        best = Distance(*(
            np.where(nearer.reshape(nearer.shape + (1,) * (x.ndim - nearer.ndim)), y, x)
            for x, y in zip(vars(best).values(), vars(one).values(), strict=True)
        ))  # fmt: skip
    return best


def bodies_of(model: Model, name: str) -> list[Body]:
    """What a name means: a shape, all shapes of a link, or a site."""
    links, shapes = model.link_names, model.topology.looks
    named = [(k, s) for k, s in shapes if s.name and f"{_prefix(links[k])}{s.name}" == name]
    if not named and name in links:
        own = [(k, s) for k, s in shapes if links[k] == name]
        named = [(k, s) for k, s in own if s.role != "visual"] or own
        if not named:
            return [Body(name, np.zeros((1, 3)), 0.0)]
    if named:
        return [_body(links[k], shape) for k, shape in named]
    if name in model.topology.sites:
        link, place, _ = model.topology.sites[name]
        return [Body(links[link], place[None], 0.0)]
    known = (*links, *model.topology.sites, *(s.name for _, s in shapes if s.name))
    raise InputError(unknown("link, shape or site", name, known))


def _prefix(link: str) -> str:
    return link.rpartition("/")[0] + "/" if "/" in link else ""


def _body(link: str, shape: Any) -> Body:
    R, p, size = (
        rotation(unit(shape.orientation)),
        np.asarray(shape.position, dtype=np.float64),
        np.asarray(shape.size, float),
    )
    if shape.kind == "plane":
        return Body(link, p[None], 0.0, R[:, 2])
    if shape.kind == "sphere":
        own, radius = np.zeros((1, 3)), size[0]
    elif shape.kind == "capsule":
        own, radius = np.array([[0, 0, -1.0], [0, 0, 1.0]]) * size[1], size[0]
    elif shape.kind == "box":
        own, radius = CORNERS * size[:3], 0.0
    elif shape.kind == "points":
        own, radius = np.asarray(shape.points, dtype=np.float64).reshape(-1, 3), size[0] if len(size) else 0.0
    elif shape.kind == "mesh":
        from ...files.mesh import load_mesh

        own, radius = load_mesh(shape.mesh, tuple(size)).vertices, 0.0
    elif shape.kind in ("cylinder", "ellipsoid"):
        return Body(link, p[None], 0.0, place=(p, R), size=size[: 2 if shape.kind == "cylinder" else 3])
    else:
        raise InputError(f'the distance of a {shape.kind} (link "{link}") is not known')
    return Body(link, own @ R.T + p, float(radius))


def _between(model: Model, q: Any, a: Body, b: Body) -> Distance:
    poses = [site_pose(model, q, x.link) for x in (a, b)]
    is_batched = poses[0][0].ndim == 2
    rows = [[(p, R) for p, R in zip(np.atleast_2d(pose[0]), pose[1].reshape(-1, 3, 3), strict=True)] for pose in poses]
    found = [_nearest(a, b, one, two) for one, two in zip(*rows, strict=True)]
    points, normal, gap = (np.array(x) for x in zip(*found, strict=True)) if found else (
        np.zeros((0, 2, 3)), np.zeros((0, 3)), np.zeros(0))  # fmt: skip
    gradient = np.zeros((len(gap), model.nv))
    for sign, k, x in ((1.0, 0, a), (-1.0, 1, b)):
        if len(gap):
            positions, turns = (np.array(y) for y in zip(*rows[k], strict=True))
            own = np.einsum("bji,bj->bi", turns, points[:, k] - positions)  # in the link's frame
            J = jacobian(model, np.atleast_2d(q), x.link, own)[:, :3]
            gradient += sign * np.einsum("bi,bij->bj", normal, J)
    whole = (gap, points, normal, gradient)
    return Distance(*(x if is_batched else x[0] for x in whole))


Pose = tuple[np.ndarray, np.ndarray]


def _nearest(a: Body, b: Body, at: Pose, bt: Pose) -> tuple[np.ndarray, np.ndarray, float]:
    """Nearest points of two bodies, the normal from b to a, and the distance."""
    if a.normal is not None and b.normal is not None:
        raise InputError("two planes have no distance")
    if a.normal is not None or b.normal is not None:
        return _to_plane(a, b, at, bt)
    weights, one, two = _closest(lambda way: _farthest(a, at, way), lambda way: _farthest(b, bt, way))
    x, y = weights @ one, weights @ two
    gap = float(np.linalg.norm(x - y))
    if gap < 1e-10:
        return np.array([x, y]), np.zeros(3), 0.0
    n = (x - y) / gap
    return np.array([x - a.radius * n, y + b.radius * n]), n, gap - a.radius - b.radius


def _farthest(body: Body, pose: Pose, way: np.ndarray) -> np.ndarray:
    """The same in the world."""
    p, R = pose
    return p + R @ body.farthest(way @ R)


def _to_plane(a: Body, b: Body, at: Pose, bt: Pose) -> tuple[np.ndarray, np.ndarray, float]:
    body, own, plane, (p, R) = (a, at, b, bt) if b.normal is not None else (b, bt, a, at)
    n = R @ np.asarray(plane.normal)
    lowest = _farthest(body, own, -n)
    height = float((lowest - p - R @ plane.corners[0]) @ n)
    on_body, on_plane = lowest - body.radius * n, lowest - height * n
    points, normal = ([on_body, on_plane], n) if plane is b else ([on_plane, on_body], -n)
    return np.array(points), normal, height - body.radius


Farthest = Callable[[np.ndarray], np.ndarray]


def _closest(of_a: Farthest, of_b: Farthest) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points of either core, and weights that make them its point nearest to the other."""
    x = np.array([1.0, 0.0, 0.0])
    A, B, weights = of_a(-x)[None], of_b(x)[None], np.ones(1)
    for _ in range(ITERATIONS):
        v = weights @ (A - B)
        a, b = of_a(-v), of_b(v)
        if v @ v - v @ (a - b) <= TOLERANCE * max(v @ v, 1e-12) or (np.abs(A - B - (a - b)).sum(1) == 0).any():
            break
        A, B = np.concatenate([A, a[None]]), np.concatenate([B, b[None]])
        used, weights = _least(A - B)
        A, B = A[used], B[used]
    return weights, A, B


def _least(W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The point of a simplex (n, 3) nearest to the origin: the corners that it needs, and their weights."""
    best: tuple[float, Any, Any] = (np.inf, None, None)
    for face in FACES:
        if face[-1] >= len(W):
            continue
        own, n = W[face], len(face)
        system = np.block([[own @ own.T, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
        x = np.linalg.lstsq(system, np.append(np.zeros(n), 1.0), rcond=None)[0][:n]
        if (x > -1e-12).all():
            size = float(np.sum((x @ own) ** 2))
            if size < best[0] - 1e-16:
                best = size, face, np.maximum(x, 0.0) / np.maximum(x, 0.0).sum()
    return best[1], best[2]
