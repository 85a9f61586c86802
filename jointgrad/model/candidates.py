"""Which shapes could touch at all, and which of one robot lie in each other where it starts; counted before they are listed."""

from __future__ import annotations

from typing import Any

import numpy as np

from .arrays import BOX, CAPSULE, CYLINDER, ELLIPSOID, MARK, MESH, PLANE, TERRAIN
from .budget import excess
from .constraint_rows import Block
from .contact_pairs import is_filtered
from .contact_shapes import ContactShape
from .errors import ModelError
from .overlap import Cloud, Solid, is_deep
from .parts import WorldParts
from .rotations import rotation

GROUND = (PLANE, TERRAIN, MARK)


def candidate_pairs(shapes: list[ContactShape]) -> np.ndarray:
    """Pairs (k, 2) of shapes that could touch, the earlier first, in order of the later: two planes never do, nor two points,
    nor the parts of one body."""
    points = np.array([k for k, s in enumerate(shapes) if _is_point(s)], dtype=np.int64)
    solids = np.array([k for k, s in enumerate(shapes) if s.kind != MARK and not _is_point(s)], dtype=np.int64)
    body, is_ground = np.array([s.body for s in shapes]), np.array([s.kind in GROUND for s in shapes])
    solids, points = (
        group[np.argsort(body[group], kind="stable")] if len(group) else group for group in (solids, points)
    )
    if not len(solids):
        return np.zeros((0, 2), dtype=np.int64)
    starts = np.flatnonzero(np.diff(body[solids], prepend=-1))
    ends, owners = np.append(starts[1:], len(solids)), body[solids[starts]]
    low, high = np.searchsorted(body[points], owners), np.searchsorted(body[points], owners, side="right")
    partners = len(solids) - ends + len(points) - (high - low)
    if why := excess("pairs", int(((ends - starts) * partners).sum())):
        raise ModelError(f"the world has {why}")
    found = [np.zeros((0, 2), dtype=np.int64)]
    for start, end, a, b in zip(starts, ends, low, high, strict=True):
        others = np.concatenate([solids[end:], points[:a], points[b:]])
        found.append(np.stack(np.meshgrid(solids[start:end], others, indexing="ij"), -1).reshape(-1, 2))
    pairs = np.sort(np.concatenate(found), axis=1)
    pairs = pairs[~is_ground[pairs].all(1)]
    return pairs[np.lexsort((pairs[:, 0], pairs[:, 1]))]


def _is_point(shape: ContactShape) -> bool:
    return shape.shape is not None and shape.shape.kind == "points" and shape.size[0] == 0


def overlapping_pairs(
    shapes: list[ContactShape], tree: dict[str, Any], loops: list[Block], parts: WorldParts, pairs: np.ndarray
) -> set[frozenset[int]]:
    """Pairs of one robot that lie in each other where the world starts: no motion leads there, so that its author does not
    mean them to touch. Robots that stand in each other, or in what is fixed other than their own base, are pushed apart.

    Trees that loops tie together are one robot. Marks and planes are left out."""
    solids = {k: _solid(s, *parts.poses[s.frame]) for k, s in enumerate(shapes) if s.kind not in GROUND}
    centre, reach = np.full((len(shapes), 3), np.inf), np.zeros(len(shapes))
    for k, solid in solids.items():
        centre[k], reach[k] = solid.centre, solid.reach
    i, j = pairs[np.isfinite(centre[pairs]).all((1, 2))].T
    near = np.linalg.norm(centre[i] - centre[j], axis=1) < reach[i] + reach[j]
    are_one = _are_one_robot(shapes, tree, loops)
    close = [(a, b) for a, b in zip(i[near].tolist(), j[near].tolist(), strict=True) if are_one(a, b)]
    close = [(a, b) for a, b in close if not is_filtered(shapes[a], shapes[b], tree)]
    if why := excess("overlaps", len(close)):
        raise ModelError(f"robots of the world have {why}")
    return {frozenset(pair) for pair in close if is_deep(solids[pair[0]], solids[pair[1]])}


def _are_one_robot(shapes: list[ContactShape], tree: dict[str, Any], loops: list[Block]) -> Any:
    """Whether two shapes belong to one robot; what is fixed belongs to all robots that stand on its frame."""
    robot, bases = _robots(shapes, tree, loops), _Bases(shapes, tree)
    tree_of = [tree["body_tree"][s.body] for s in shapes]

    def are_one(a: int, b: int) -> bool:
        if tree["n_trees"] not in (tree_of[a], tree_of[b]):
            return robot[tree_of[a]] == robot[tree_of[b]]
        fixed, moving = (a, b) if tree_of[a] == tree["n_trees"] else (b, a)
        return robot[tree_of[moving]] in bases.robots_on(shapes[fixed].frame, robot)

    return are_one


def _robots(shapes: list[ContactShape], tree: dict[str, Any], loops: list[Block]) -> list[int]:
    """Per tree, the first tree that loops tie it to."""
    above = list(range(tree["n_trees"]))

    def first(t: int) -> int:
        while above[t] != t:
            above[t] = t = above[above[t]]
        return t

    for loop in loops:
        a, b = (tree["body_tree"][shapes[mark].body] for mark in (loop.a, loop.b))
        if tree["n_trees"] not in (a, b):
            one, other = sorted((first(a), first(b)))
            above[other] = one
    return [first(t) for t in range(tree["n_trees"])]


class _Bases:
    """Which trees stand on frames that do not move and have shapes: a robot's own base, not the world's floor and walls."""

    def __init__(self, shapes: list[ContactShape], tree: dict[str, Any]) -> None:
        n, with_shapes = tree["n_frames"], {s.frame for s in shapes}
        # from each frame the next one below it that has shapes; parents come first
        self.next: list[int] = []
        for parent in tree["frame_parent"]:
            self.next.append(parent if parent == n or parent in with_shapes else self.next[parent])
        self.trees: dict[int, list[int]] = {}
        for t in {tree["body_tree"][s.body] for s in shapes} - {tree["n_trees"]}:
            frame = self.next[tree["frame"][tree["tree_body"][tree["tree_first"][t]]]]
            while frame < n:
                self.trees.setdefault(frame, []).append(t)
                frame = self.next[frame]
        self.robots: dict[int, set[int]] = {}

    def robots_on(self, frame: int, robot: list[int]) -> set[int]:
        if frame not in self.robots:
            self.robots[frame] = {robot[t] for t in self.trees.get(frame, ())}
        return self.robots[frame]


def _solid(s: ContactShape, R: np.ndarray, p: np.ndarray) -> Solid | Cloud:
    turn, at = R @ rotation(s.placement[3:]), p + R @ np.array(s.placement[:3])
    if s.kind in (CYLINDER, ELLIPSOID, MESH):
        corners, normals = _corners(s)
        return Cloud(corners @ turn.T + at, 0.0, normals @ turn.T)
    half = np.array(s.size) if s.kind == BOX else np.array((0.0, 0.0, s.size[1] if s.kind == CAPSULE else 0.0))
    radius = 0.0 if s.kind == BOX else float(s.size[0])
    return Solid(s.kind == BOX, at, turn, half, radius)


def _corners(s: ContactShape) -> tuple[np.ndarray, np.ndarray]:
    """Points of a round body's surface, or corners of a mesh; and normals of its faces."""
    angle = np.linspace(0.0, 2 * np.pi, 24, endpoint=False)
    ring = np.stack([np.cos(angle), np.sin(angle), np.zeros(24)], 1)
    if s.kind == CYLINDER:
        ends = np.concatenate([ring + (0, 0, z) for z in (-1, 1)])
        return ends * (s.size[0], s.size[0], s.size[1]), np.concatenate([[(0.0, 0.0, 1.0)], ring])
    if s.kind == ELLIPSOID:
        rings = [ring * np.sqrt(1 - z * z) + (0, 0, z) for z in np.linspace(-0.95, 0.95, 9)]
        return np.concatenate(rings) * s.size, np.zeros((0, 3))
    assert s.data is not None
    at, n = s.data.offset, s.data.rows
    normals = s.data.numbers[at + 3 * n + 1 :].reshape(-1, 3) / s.size
    lengths = np.linalg.norm(normals, axis=1, keepdims=True)
    return s.data.numbers[at : at + 3 * n].reshape(-1, 3) * s.size, normals / lengths
