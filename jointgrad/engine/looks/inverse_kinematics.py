"""Joint angles that put a hand where it is wanted: damped least squares on a batch, within the limits of the joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...model.arguments import checked_count, checked_number
from ...model.arrays import PRISMATIC, REVOLUTE, Compared, Model, checked_model
from ...model.errors import InputError
from ...model.names import unknown
from ..run.runtime import check_finite, checked
from .quantities import jacobian, site_link, site_pose

LONGEST = 0.5  # rad or m that a joint moves in one iteration
SOFTEST, STIFFEST = 1e-7, 1e2  # damping, as a share of the largest singular value's square
RESTS = 3.0  # rad or m: from how wide a range a joint without limits starts again


@dataclass(frozen=True, eq=False)
class Reach(Compared):
    """Coordinates that were found, (batch, nq); how far the site is from where it was wanted, in position (m) and rotation (rad),
    (batch,); and whether that is within the tolerance."""

    q: np.ndarray
    position_error: np.ndarray
    rotation_error: np.ndarray
    is_reached: np.ndarray


def inverse_kinematics(
    model: Model,
    site: str,
    position: Any = None,
    rotation: Any = None,
    *,
    start: Any = None,
    point: Any = None,
    joints: Sequence[str] | None = None,
    tolerance: float = 1e-6,
    iterations: int = 100,
    restarts: int = 8,
    seed: int = 0,
) -> Reach:
    """Joint angles that bring a link or site (or a point of its frame) to positions (batch, 3) and rotations (batch, 3, 3) in the
    world; either may be left out.

    Damped least squares from `start`, coordinates (nq,) or (batch, nq), by default those of the description; joints stay within
    their limits. Where that gets stuck, again from `restarts` random points. joints: names of those that may move, by default
    those that carry it and turn or slide (a free base and ball joints stay). tolerance: m and rad.
    """
    checked_model(model)
    if model.batch is not None:
        raise InputError("the model has parameters per environment: take model.environment(k)")
    checked_number("tolerance", tolerance, 0.0, True)
    checked_count("iterations", iterations)
    checked_count("restarts", restarts)
    goal, is_batched = _goal(position, rotation, start)
    arm = _Arm(model, site, point, joints, goal)
    q = arm.start(start)
    left = np.arange(len(q))
    best, errors = arm.solved(q, left, iterations, tolerance)
    rng = np.random.default_rng(seed)
    for _ in range(restarts):
        left = np.flatnonzero(arm.is_far(errors, tolerance))
        if not len(left):
            break
        q, again = arm.solved(arm.drawn(best[left], rng), left, iterations, tolerance)
        better = again.sum(-1) < errors[left].sum(-1)
        best[left[better]], errors[left[better]] = q[better], again[better]
    found = (best, errors[:, 0], errors[:, 1], ~arm.is_far(errors, tolerance))
    return Reach(*(x if is_batched else x[0] for x in found))


def _goal(position: Any, rotation: Any, start: Any) -> tuple[tuple[np.ndarray | None, np.ndarray | None], bool]:
    """Targets with a batch axis, and whether something came with one."""
    if position is None and rotation is None:
        raise InputError("give the position or the rotation that is wanted, or both")
    batched = [np.ndim(x) == n for x, n in ((position, 2), (rotation, 3), (start, 2)) if x is not None]
    found: list[np.ndarray | None] = []
    for name, x, shape in (("position", position, (3,)), ("rotation", rotation, (3, 3))):
        if x is None:
            found.append(None)
            continue
        array = np.asarray(x, dtype=np.float64)
        if array.shape != shape and array.shape[1:] != shape:
            raise InputError(f"{name} must have shape {shape} or {('batch', *shape)}, but has {array.shape}")
        check_finite(name, array)
        found.append(array.reshape(-1, *shape))
    if found[1] is not None and not np.allclose(found[1] @ np.swapaxes(found[1], 1, 2), np.eye(3), atol=1e-6):
        raise InputError("rotation must be a rotation matrix, with axes of unit length across each other")
    return (found[0], found[1]), any(batched)


class _Arm:
    """What moves, where it should go, and how far it is from there."""

    def __init__(self, model: Model, site: str, point: Any, joints: Sequence[str] | None, goal: tuple) -> None:
        self.model, self.site, self.point, (self.position, self.rotation) = model, site, point, goal
        tree, names = model.topology.tree, model.joint_names
        kinds = zip(tree["frame"], tree["kind"], tree["q"], tree["dof"], strict=True)
        scalar = {names[frame]: (q, dof, frame) for frame, kind, q, dof in kinds if kind in (REVOLUTE, PRISMATIC)}
        for name in joints or ():
            if name not in scalar:
                raise InputError(unknown("joint that turns or slides", name, scalar))
        chosen = [scalar[name] for name in (self._carrying(scalar) if joints is None else joints)]
        self.q, self.dofs, frames = (
            np.array(x, dtype=int) for x in (zip(*chosen, strict=True) if chosen else ((), (), ()))
        )
        limits = model.params["joint.limit"][frames].reshape(-1, 2)
        self.low, self.high = limits[:, 0], limits[:, 1]
        self.size = max(len(x) for x in goal if x is not None)

    def _carrying(self, scalar: dict[str, tuple[int, int, int]]) -> list[str]:
        """Joints that carry the site; the others stay."""
        tree, b = self.model.topology.tree, self.model.topology.tree["link_body"][site_link(self.model, self.site)]
        frames = []
        while b < tree["n_bodies"]:
            frames.append(tree["frame"][b])
            b = tree["parent"][b]
        return [name for name, (_, _, frame) in scalar.items() if frame in frames]

    def start(self, start: Any) -> np.ndarray:
        q = self.model.initial_state().q if start is None else start
        array = checked("start", q, (self.model.nq,) if np.ndim(q) == 1 else ("batch", self.model.nq))
        check_finite("start", array)
        n = max(self.size, len(array) if array.ndim == 2 else 1)
        rows = array if array.ndim == 2 else None
        for name, x in (("position", self.position), ("rotation", self.rotation), ("start", rows)):
            if x is not None and len(x) not in (1, n):
                raise InputError(f"{name} has {len(x)} rows, but there are {n}")
        whole = np.array(np.broadcast_to(array, (n, self.model.nq)))
        whole[:, self.q] = np.clip(whole[:, self.q], self.low, self.high)
        return whole

    def drawn(self, q: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Somewhere else within the limits."""
        low, high = (
            np.where(np.isfinite(x), x, np.clip(r, self.low, self.high))
            for x, r in ((self.low, -RESTS), (self.high, RESTS))
        )
        q = q.copy()
        q[:, self.q] = rng.uniform(low, high, (len(q), len(self.q)))
        return q

    def is_far(self, errors: np.ndarray, tolerance: float) -> np.ndarray:
        return np.asarray((errors > tolerance).any(-1))

    def off(self, q: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The motion (n, 6) that is missing: linear, angular; zero where nothing is asked for."""
        position, rotation = site_pose(self.model, q, self.site, self.point)
        found = np.zeros((len(q), 6))
        if self.position is not None:
            found[:, :3] = self.position[rows if len(self.position) > 1 else 0] - position
        if self.rotation is not None:
            wanted = self.rotation[rows] if len(self.rotation) > 1 else self.rotation
            found[:, 3:] = turn_of(wanted @ np.swapaxes(rotation, 1, 2))
        return found

    def solved(
        self, q: np.ndarray, rows: np.ndarray, iterations: int, tolerance: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Levenberg and Marquardt's steps, each row with a damping of its own; errors (n, 2) in position and rotation."""
        q, damping = q.copy(), np.full(len(q), 1e-3)
        off = self.off(q, rows)
        for _ in range(iterations):
            errors = _sizes(off)
            active = np.flatnonzero(self.is_far(errors, tolerance) & (damping < STIFFEST))
            if not len(active):
                break
            tried = q[active]
            tried[:, self.q] = self._stepped(tried, off[active], damping[active])
            there = self.off(tried, rows[active])
            good = (there**2).sum(-1) < (off[active] ** 2).sum(-1)
            q[active[good]], off[active[good]] = tried[good], there[good]
            damping[active] = np.where(good, np.maximum(0.3 * damping[active], SOFTEST), 5.0 * damping[active])
        return q, _sizes(off)

    def _stepped(self, q: np.ndarray, off: np.ndarray, damping: np.ndarray) -> np.ndarray:
        """New coordinates of the joints. One that would leave its range stays at its end, and the others do its work."""
        J = jacobian(self.model, q, self.site, self.point)[:, :, self.dofs]
        if self.position is None:
            J[:, :3] = 0.0
        if self.rotation is None:
            J[:, 3:] = 0.0
        now = q[:, self.q]
        free = np.ones(now.shape, dtype=bool)
        for _ in range(2):
            step = _damped(J * free[:, None], off, damping)
            step *= np.minimum(1.0, LONGEST / np.maximum(np.abs(step).max(-1, initial=0.0), 1e-12))[:, None]
            stuck = ((now <= self.low) & (step < 0)) | ((now >= self.high) & (step > 0))
            if not (stuck & free).any():
                break
            free &= ~stuck
        return np.clip(now + step * free, self.low, self.high)


def _damped(J: np.ndarray, off: np.ndarray, damping: np.ndarray) -> np.ndarray:
    """J^T (J J^T + damping)^-1 off."""
    square = J @ np.swapaxes(J, 1, 2)
    size = np.trace(square, axis1=1, axis2=2) + 1e-12
    square += (damping * size)[:, None, None] * np.eye(6)
    return (np.swapaxes(J, 1, 2) @ np.linalg.solve(square, off[..., None]))[..., 0]


def _sizes(off: np.ndarray) -> np.ndarray:
    return np.stack([np.linalg.norm(off[:, :3], axis=-1), np.linalg.norm(off[:, 3:], axis=-1)], -1)


def turn_of(R: np.ndarray) -> np.ndarray:
    """Axis times angle (..., 3) of rotations (..., 3, 3). Near half a turn the axis is that of the largest column."""
    twice = np.stack([R[..., 2, 1] - R[..., 1, 2], R[..., 0, 2] - R[..., 2, 0], R[..., 1, 0] - R[..., 0, 1]], -1)
    sine, cosine = 0.5 * np.linalg.norm(twice, axis=-1), 0.5 * (np.trace(R, axis1=-2, axis2=-1) - 1.0)
    angle = np.arctan2(sine, cosine)
    plain = twice * (0.5 * angle / np.maximum(sine, 1e-12))[..., None]
    square = 0.5 * (R + np.swapaxes(R, -1, -2)) + np.eye(3)
    column = np.take_along_axis(square, np.argmax(np.diagonal(square, axis1=-2, axis2=-1), -1)[..., None, None], -1)[
        ..., 0
    ]
    axis = column / np.maximum(np.linalg.norm(column, axis=-1, keepdims=True), 1e-12)
    is_half = (sine < 1e-6) & (cosine < 0)
    return np.where(is_half[..., None], angle[..., None] * axis, plain)
