"""Does a motion do what its derivative says, over a distance that matters? Tried out: copies that start a little elsewhere.

A copy starts displaced, or faster, along a direction that the contacts of the start leave free: a random velocity is sent through
the derivative of the first step, which takes away what presses into a contact, drags a point that sticks, or opens a loop. Its
last state is compared with what the tangent says, on both sides.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..model.arrays import State
from .gradients.copies import copies, unrun
from .tangent import tangents
from .tangent_coordinates import displaced

if TYPE_CHECKING:
    from .rollout import Trajectory

DISTANCE = 5e-3  # m and rad of every coordinate, root mean square
RATE = 1.0  # 1/s: a velocity is changed by so many times the distance
DIRECTIONS = 4  # of displacements, and as many of velocities
# what is left of a random velocity by the contacts of the start: less, and nothing is free to move
FREE = 1e-2
# what changes by less than this share of the distance, and of the coordinate that changes most, counts for as much
FLOOR = 0.1
MOST = 2048  # copies at a time
SEED = 15


class Probe(NamedTuple):
    """Changes of the last state (q, qd) by which copies differ, (batch, 2, DIRECTIONS, nq + nv), of displacements and of
    velocities: what the tangent says, and what came of it ahead and behind."""

    said: np.ndarray
    ahead: np.ndarray
    behind: np.ndarray
    nq: int
    distance: float

    def mismatch(self) -> np.ndarray:
        """(batch,): by how much, as a share, copies end elsewhere than the tangent says, in the coordinate where it is worst; 0
        where the start leaves nothing free to move."""
        parts = (slice(self.nq), slice(self.nq, None))
        return np.max(
            [_worst_share(self._of(functools.partial(_columns, which=w)), self.distance) for w in parts], axis=0
        )

    def mismatch_along(self, bars: np.ndarray) -> np.ndarray:
        """(batch,): the same in one sum of coordinates alone, weighted by bars (batch, nq + nv)."""
        size = np.abs(bars).max(-1)
        weights = (bars / np.where(size > 0, size, 1.0)[:, None])[:, None, None]
        return _worst_share(self._of(lambda x: (x * weights).sum(-1, keepdims=True)), self.distance)

    def _of(self, view: Callable[[np.ndarray], np.ndarray]) -> tuple[np.ndarray, ...]:
        with np.errstate(all="ignore"):
            return tuple(view(x) for x in (self.said, self.ahead, self.behind))


def _columns(x: np.ndarray, which: slice) -> np.ndarray:
    return x[..., which]


def _worst_share(changes: tuple[np.ndarray, ...], distance: float) -> np.ndarray:
    """Of the coordinates that move as much as others do, the one that is farthest off, by displacements or by velocities."""
    said, ahead, behind = changes
    with np.errstate(all="ignore"):
        error = np.maximum(np.abs(ahead - said), np.abs(behind - said))
        size = np.maximum(np.abs(said), np.maximum(np.abs(ahead), np.abs(behind)))
        error, size = (np.sqrt((x**2).mean(2)) for x in (error, size))
        share = error / np.maximum(size, FLOOR * np.maximum(size.max(-1, keepdims=True), distance))
    return np.where(np.isfinite(share), share, np.inf).max((1, 2))


def probed(trajectory: Trajectory, distance: float = DISTANCE) -> Probe:
    """Copies of every environment, on both sides of its start."""
    i, model, many = trajectory._inputs, trajectory.model, 2 * DIRECTIONS
    shape = (i.batch, 2, DIRECTIONS, model.nq + model.nv)
    found = tuple(np.zeros(shape) for _ in range(3))
    at_once, last = max(1, MOST // many), np.concatenate([trajectory._q_last, trajectory._qd_last], axis=-1)
    for first in range(0, i.batch if i.steps and model.nv else 0, at_once):
        some = slice(first, min(i.batch, first + at_once))
        middle = np.repeat(last[some], many, axis=0)
        for whole, part in zip(found, _changes(copies(trajectory, some, many), middle, distance), strict=True):
            whole[some] = part.reshape(-1, *shape[1:])
    return Probe(*found, model.nq, distance)  # type: ignore[arg-type, call-arg]


def free_directions(trajectory: Trajectory, wish: np.ndarray) -> np.ndarray:
    """Velocities (batch, nv) near to those wished for, root mean square one, that the contacts of the start leave free; zero where
    they leave nothing of them."""
    from .rollout import Inputs

    i = trajectory._inputs
    u, force = None if i.u is None else i.u[:1], i.force if i.force is None or i.force.ndim == 3 else i.force[:1]
    one = unrun(trajectory.model, Inputs(i.q, i.qd, u, force, 1, True), trajectory._threads)
    left = np.nan_to_num(tangents(one, {"qd": wish}, {})[1][-1], posinf=0.0, neginf=0.0)
    size, wished = (np.sqrt((x * x).mean(-1, keepdims=True)) for x in (left, wish))
    return np.where(size > FREE * wished, left / np.where(size > 0, size, 1.0), 0.0)


def last_states(trajectory: Trajectory, dq: np.ndarray, dqd: np.ndarray) -> np.ndarray:
    """(batch, nq + nv): where copies end that start displaced; not finite where one breaks down."""
    from .rollout import rolled_out

    i = trajectory._inputs
    moved = rolled_out(
        trajectory.model, State(i.q + dq, i.qd + dqd), i.u, i.steps, i.force, threads=trajectory._threads, on_nan="freeze",
        keep=False, warns=False,
    )  # fmt: skip
    last = np.concatenate([moved.last.q, moved.last.qd], axis=-1)
    last[moved.status >= 0] = np.inf
    return last


def _changes(copies: Trajectory, middle: np.ndarray, distance: float) -> tuple[np.ndarray, ...]:
    """Changes from the last states in the middle: what the tangent says, and what becomes of copies ahead and behind."""
    i, model, many = copies._inputs, copies.model, 2 * DIRECTIONS
    # every environment has the same directions, whatever the others are
    wish = np.tile(np.random.default_rng(SEED).normal(size=(many, model.nv)), (i.batch // many, 1))
    free = distance * free_directions(copies, wish)
    is_turn = (np.arange(i.batch) % many < DIRECTIONS)[:, None]
    dq, dqd = np.where(is_turn, displaced(model, i.q, free), 0.0), np.where(is_turn, 0.0, RATE * free)
    said = np.concatenate([x[-1] for x in tangents(copies, {"q": dq, "qd": dqd}, {})[:2]], axis=-1)
    with np.errstate(invalid="ignore"):
        return said, last_states(copies, dq, dqd) - middle, middle - last_states(copies, -dq, -dqd)
