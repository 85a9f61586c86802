"""Does a motion do what its derivative says, over a distance that matters? Tried out: copies that start a little elsewhere.

Copies start displaced and faster along a direction that the contacts of the start leave free: a random velocity is sent through the
derivative of the first step, which takes away what presses into a contact, drags a point that sticks, or opens a loop. One copy is
so near that it tells the derivative itself, which costs less than a tangent; two are `distance` away, on either side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...model.arrays import State
from ..gradients.copies import copies, rounds, unrun
from ..run.tangent import tangents
from ..run.tangent_coordinates import displaced, to_tangent

if TYPE_CHECKING:
    from ..run.trajectory import Gradient, Trajectory

DISTANCE = 5e-3  # m and rad of every coordinate, root mean square
RATE = 1.0  # 1/s: a velocity is changed by so many times the distance
# what is left of a random velocity by the contacts of the start: less, and nothing is free to move
FREE = 1e-2
# what changes by less than this share of the distance, and of the coordinate that changes most, counts for as much
FLOOR = 0.1
MOST = 2048  # copies at a time
SEED = 15
NEAR = 1e-5  # of the distance: the copy that stands for the derivative
COPIES = (NEAR, 1.0, -1.0)
SIGNS = np.array([(1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0)])  # of displacements and velocities along a loss
HOLDS = 0.4  # a gradient holds where motions end within this share of their change; benchmarks/certificate.py


class Probe(NamedTuple):
    """Changes of the last state (q, qd) by which copies differ, (batch, nq + nv), or of one loss, (batch, 1): what the derivative
    says, and what came of it ahead and behind."""

    said: np.ndarray
    ahead: np.ndarray
    behind: np.ndarray
    nq: int
    distance: float
    # of one loss: the part that displacements and the part that velocities have in it, (batch, 2) each, as said and as came
    parts: tuple[np.ndarray, np.ndarray] | None = None

    def mismatch(self) -> np.ndarray:
        """(batch,): by how much, as a share, copies end elsewhere than the derivative says, in the coordinate where it is worst; 0
        where the start leaves nothing free to move."""
        found = [_errors(self._columns(w), self.distance)[0] for w in self._parts()]
        if self.parts is not None:
            said, came = self.parts
            found += [_errors([x[:, [k]] for x in (said, came, came)], self.distance)[0] for k in (0, 1)]
        return np.max(found, axis=0)

    def mismatch_along(self, bars: np.ndarray) -> np.ndarray:
        """(batch,): the same in one sum of coordinates alone, weighted by bars (batch, nq + nv)."""
        size = np.abs(bars).max(-1)
        weights = bars / np.where(size > 0, size, 1.0)[:, None]
        return _errors(self._of(lambda x: (x * weights).sum(-1, keepdims=True)), self.distance)[0]

    def is_jump(self) -> np.ndarray:
        """(batch,): whether the motion has another slope than the derivative says, rather than one that changes: what the errors of
        both sides have in common is larger than what they have against each other."""
        found = [_errors(self._columns(w), self.distance) for w in self._parts()]
        return np.max([slope for _, slope, _ in found], axis=0) > np.max([curve for *_, curve in found], axis=0)

    def _parts(self) -> tuple[slice, ...]:
        return (slice(self.nq), slice(self.nq, None)) if self.said.shape[-1] > 1 else (slice(None),)

    def _columns(self, which: slice) -> tuple[np.ndarray, ...]:
        return self._of(lambda x: x[:, which])

    def _of(self, view: Callable[[np.ndarray], np.ndarray]) -> tuple[np.ndarray, ...]:
        with np.errstate(all="ignore"):
            return tuple(view(x) for x in (self.said, self.ahead, self.behind))


def _errors(changes: Sequence[np.ndarray], distance: float) -> tuple[np.ndarray, ...]:
    """(batch,) each, as a share of the change in the coordinate where it is worst: the larger error of the two sides, what the
    errors of both have in common, and what they have against each other."""
    said, ahead, behind = changes
    with np.errstate(all="ignore"):
        e, f = ahead - said, behind - said
        size = np.maximum(np.abs(said), np.maximum(np.abs(ahead), np.abs(behind)))
        size = np.maximum(size, FLOOR * np.maximum(size.max(-1, keepdims=True, initial=0.0), distance))
        shares = [x / size for x in (np.maximum(np.abs(e), np.abs(f)), np.abs(e + f) / 2, np.abs(e - f) / 2)]
    return tuple(np.where(np.isfinite(x), x, np.inf).max(-1, initial=0.0) for x in shares)


def probed(trajectory: Trajectory, distance: float = DISTANCE) -> Probe:
    """Copies of every environment along one direction, the same whatever the others are."""
    wish = np.random.default_rng(SEED).normal(size=trajectory.model.nv)

    def changes(some: slice, middle: np.ndarray) -> tuple[np.ndarray, ...]:
        one, many = copies(trajectory, some, 1), rounds(trajectory, some, len(COPIES))
        free = distance * free_directions(one, np.tile(wish, (len(middle), 1)))
        free = np.concatenate([share * free for share in COPIES])
        ends = last_states(many, displaced(many.model, many.run.inputs.q, free), RATE * free)
        with np.errstate(invalid="ignore"):
            near, ahead, behind = ends.reshape(3, *middle.shape) - middle
        return near / NEAR, ahead, -behind

    nq, n = trajectory.model.nq, trajectory.model.nq + trajectory.model.nv
    found = _gathered(trajectory, distance, (n, n, n), changes)
    return Probe(found[0], found[1], found[2], nq, distance)


def probed_along(
    trajectory: Trajectory, bars: tuple[np.ndarray, np.ndarray], gradient: Gradient, distance: float = DISTANCE
) -> Probe:
    """Copies along a gradient by the start, q (batch, nq) and qd, of a loss of the last state: along both, along the velocities
    and against the displacements, and against both. Where it is zero, along a direction of no meaning."""
    model, i = trajectory.model, trajectory.run.inputs
    slope = np.concatenate([to_tangent(model, i.q, gradient.q), gradient.qd], axis=-1)
    size = np.maximum(np.abs(bars[0]).max(-1, initial=0.0), np.abs(bars[1]).max(-1, initial=0.0))
    weights = np.concatenate(bars, axis=-1) / np.where(size > 0, size, 1.0)[:, None]
    slope = slope / np.where(size > 0, size, 1.0)[:, None]
    noise = np.random.default_rng(SEED).normal(size=2 * model.nv)
    halves = np.split(slope, 2, axis=-1), np.split(noise, 2)
    wish = np.concatenate(
        [np.where(np.abs(x).max(-1, keepdims=True, initial=0.0) > 1e-9, x, z) for x, z in zip(*halves, strict=True)],
        axis=-1,
    )

    def changes(some: slice, middle: np.ndarray) -> tuple[np.ndarray, ...]:
        one, many = copies(trajectory, some, 1), rounds(trajectory, some, len(SIGNS))
        ways = _steps_along(one, wish[some], distance)
        nv = model.nv
        said = np.stack([(slope[some][:, :nv] * ways[0]).sum(-1), (slope[some][:, nv:] * ways[1]).sum(-1)], axis=-1)
        q, qd = (np.concatenate([one * x for one in sign]) for x, sign in zip(ways, SIGNS.T, strict=True))
        ends = last_states(many, displaced(model, many.run.inputs.q, q), qd)
        with np.errstate(invalid="ignore"):
            moved = ((ends.reshape(len(SIGNS), *middle.shape) - middle) * weights[some]).sum(-1).T
            apart = np.stack([moved[:, 0] - moved[:, 1], moved[:, 1] - moved[:, 2]], axis=-1) / 2
        return said.sum(-1, keepdims=True), moved[:, :1], -moved[:, 2:], said, apart

    found = _gathered(trajectory, distance, (1, 1, 1, 2, 2), changes)
    return Probe(found[0], found[1], found[2], model.nq, distance, (found[3], found[4]))


def _steps_along(one: Trajectory, wish: np.ndarray, distance: float) -> tuple[np.ndarray, np.ndarray]:
    """Displacements and changes of velocity, each as long as `distance` (root mean square), along what is free of a wish."""
    nv = wish.shape[-1] // 2
    return distance * free_directions(one, wish[:, :nv]), RATE * distance * free_directions(one, wish[:, nv:])


def _gathered(
    trajectory: Trajectory, distance: float, widths: tuple[int, ...], changes: Callable[[slice, np.ndarray], Any]
) -> list[np.ndarray]:
    """Of all environments, some at a time."""
    i, model = trajectory.run.inputs, trajectory.model
    found = [np.zeros((i.batch, width)) for width in widths]
    at_once, last = MOST // len(COPIES), np.concatenate([trajectory.run.q_last, trajectory.run.qd_last], axis=-1)
    for first in range(0, i.batch if i.steps and model.nv else 0, at_once):
        some = slice(first, min(i.batch, first + at_once))
        for whole, part in zip(found, changes(some, last[some]), strict=True):
            whole[some] = part
    return found


def free_directions(trajectory: Trajectory, wish: np.ndarray) -> np.ndarray:
    """Velocities (batch, nv) near to those wished for, root mean square one, that the contacts of the start leave free; zero where
    they leave nothing of them."""
    from ..run.inputs import Inputs

    i = trajectory.run.inputs
    u, force = None if i.u is None else i.u[:1], i.force if i.force is None or i.force.ndim == 3 else i.force[:1]
    one = unrun(trajectory.model, Inputs(i.q, i.qd, u, force, 1, True, more=i.more), trajectory.run.threads)
    left = np.nan_to_num(tangents(one, {"qd": wish}, {})[1][-1], posinf=0.0, neginf=0.0)
    size, wished = (np.sqrt((x * x).mean(-1, keepdims=True)) for x in (left, wish))
    return np.where(size > FREE * wished, left / np.where(size > 0, size, 1.0), 0.0)


def last_states(trajectory: Trajectory, dq: np.ndarray, dqd: np.ndarray) -> np.ndarray:
    """(batch, nq + nv): where copies end that start displaced; not finite where one breaks down."""
    from ..run.rollout import rolled_out

    i = trajectory.run.inputs
    moved = rolled_out(
        trajectory.model, State(i.q + dq, i.qd + dqd, i.more), i.u, i.steps, i.force, threads=trajectory.run.threads,
        on_nan="freeze", keep=False, warns=False,
    )  # fmt: skip
    last = np.concatenate([moved.last.q, moved.last.qd], axis=-1)
    last[moved.status >= 0] = np.inf
    return last
