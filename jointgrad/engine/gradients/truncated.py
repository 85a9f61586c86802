"""A derivative that is cut where a step is too steep.

A step whose Jacobian is large hands on cotangents that say more about the step than about where to go, and many such steps one
after the other hand on nothing else (Georgiev et al. 2024 cut there to learn). Here the state after such a step does not depend on
the state before it; it still depends on the controls, forces and parameters of the step itself.

How large: the largest factor by which the step stretches a change of the state, in tangent coordinates, m and m/s (rad and rad/s)
counted alike. Found by a few rounds of the power method, in all steps at once; it is a little below the truth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...model.arguments import checked_number
from ..run.tangent_coordinates import displaced, rows_of, to_tangent
from .copies import all_steps
from .exact import Exact
from .meaning import Meaning
from .segments import Bars, Tangents, ahead_in_segments, back_in_segments, with_all_states

if TYPE_CHECKING:
    from ..run.trajectory import Gradient, Trajectory

ROUNDS = 3
SEED = 4


@dataclass(frozen=True)
class Truncated(Meaning):
    """Cut in every step whose Jacobian is larger than `bound`. A body in free flight has 1; one that rests under the impulse law
    has baumgarte / dt, 200 at 1 ms: a bound below that cuts wherever something touches, one above where it is steeper."""

    bound: float

    def __post_init__(self) -> None:
        checked_number("bound", self.bound, 0.0)

    def pulled_back(self, motion: Trajectory, bars: Bars, wrt: Sequence[str]) -> Gradient:
        """As that of Exact, in segments between the steps that are cut; `report` says how many there are, per environment."""
        motion = with_all_states(motion)
        is_cut = self.cuts(motion)
        found = _back(motion, bars, wrt, is_cut) if is_cut.any() else Exact().pulled_back(motion, bars, wrt)
        return replace(found, report={"cut": motion.run.unbatched(is_cut.sum(0), 0)})

    def pushed_forward(
        self, motion: Trajectory, dots: Mapping[str, Any], params: Mapping[str, Any], outputs: tuple[str, ...]
    ) -> Tangents:
        """The same map, the other way: a state after a cut begins with nothing."""
        motion = with_all_states(motion)
        is_cut = self.cuts(motion)
        if not is_cut.any():
            return Exact().pushed_forward(motion, dots, params, outputs)

        def enter(state: int, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            keep = ~is_cut[state][:, None]
            return q[-1] * keep, qd[-1] * keep

        return ahead_in_segments(motion, dots, params, outputs, _ends(is_cut), enter, seen_at_end=True)

    def cuts(self, motion: Trajectory) -> np.ndarray:
        """(T, batch): which steps are too steep; one whose size is not finite is."""
        return ~(steepness(motion) <= self.bound)


def _ends(is_cut: np.ndarray) -> tuple[int, ...]:
    return tuple(int(k) for k in np.flatnonzero(is_cut.any(1)))


def _back(motion: Trajectory, bars: Bars, wrt: Sequence[str], is_cut: np.ndarray) -> Gradient:
    def carry(state: int, back: Gradient, wide: Bars) -> None:
        keep = ~is_cut[state]
        wide.q[state, keep], wide.qd[state, keep] = back.q[keep], back.qd[keep]

    return back_in_segments(motion, bars, wrt, _ends(is_cut), carry, seen_at_end=True)


def steepness(motion: Trajectory) -> np.ndarray:
    """(T, batch): the spectral norm of every step's Jacobian in tangent coordinates, from below."""
    steps, batch, nv = motion.steps, motion.run.inputs.batch, motion.model.nv
    if not steps or not nv:
        return np.zeros((steps, batch))
    one = all_steps(motion)
    q, q_next = one.run.q[0], motion.run.states()[0][1:].reshape(-1, motion.model.nq)
    start = np.random.default_rng(SEED).normal(size=2 * nv)
    way = np.tile(start / np.linalg.norm(start), (steps * batch, 1))
    size = np.zeros(steps * batch)
    with np.errstate(all="ignore"):
        for _ in range(ROUNDS):
            dq, dqd, _ = Exact().pushed_forward(
                one, {"q": displaced(motion.model, q, way[:, :nv]), "qd": way[:, nv:]}, {}, ()
            )
            said = np.einsum("nij,nj->ni", rows_of(motion.model, q_next), dq[-1])
            ahead = np.concatenate([said, dqd[-1]], axis=-1)
            size = np.linalg.norm(ahead, axis=-1)
            ahead = np.nan_to_num(ahead / np.maximum(size, 1e-300)[:, None])
            bars = Bars(np.einsum("nij,ni->nj", rows_of(motion.model, q_next), ahead[:, :nv]), ahead[:, nv:], False, {})
            back = Exact().pulled_back(one, bars, ("state",))
            way = np.concatenate([to_tangent(motion.model, q, back.q), back.qd], axis=-1)
            way = np.nan_to_num(way / np.maximum(np.linalg.norm(way, axis=-1), 1e-300)[:, None])
    return size.reshape(steps, batch)
