"""Derivatives through bounces and landings that know that these move in time.

Steps are fixed: a club that comes a little sooner meets the ball in the same step, a little deeper, until it meets it one step
sooner, all at once. Between these jumps the exact derivative is that of the depth, which is not what a motion does over any
distance that matters (docs/gradients.md, "A bounce"). Here the meeting moves with the club: what comes before is followed for
longer or shorter, what comes after the other way round, so that the gap at the meeting stays as it is (the saltation matrix of
hybrid systems: Kong, Payne, Zhu and Johnson 2024, "Saltation matrices").

With x' = F(x) the step of the bounce, A its Jacobian, f and f' the rates of the state before and after, g the slope of the gap:

    A  becomes  A + (f' - A f) g / (g f)

What does not bounce is caught in one step, and what is left of its gap closes over the next ones, by a share of it in each
(Baumgarte). Its F is of as many steps as that takes, so that f' is the rate of what has landed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...model.arguments import checked_number
from ...model.arrays import Model, State
from ..kernels.stages.contact.rows import BOUNCES
from ..run.tangent_coordinates import difference, rows_of
from .exact import Exact
from .meaning import Meaning
from .segments import (
    Bars,
    Tangents,
    ahead_in_segments,
    back_in_segments,
    is_like_the_one_before,
    of_environment,
    with_all_states,
)

if TYPE_CHECKING:
    from ..looks.contact_records import Contact
    from ..looks.inspect import Inspection
    from ..run.trajectory import Gradient, Trajectory

# a velocity that changes this many times more than in the middle one of all steps may have met something
SUDDEN = 8.0
# of the most sudden steps, how many are looked at
MOST = 12
# a landing is over when this share of the gap that was left is
LEFT = 0.05


@dataclass(frozen=True)
class Impact:
    """A bounce or a landing that begins in a step and takes some: the slope of its gap by tangent coordinates (nv,), and how fast
    it closes (m/s, negative)."""

    step: int
    slope: np.ndarray
    closing: float
    takes: int = 1


@dataclass(frozen=True)
class _Jump:
    """An impact of an environment: a covector (nq,) of the state before, and what it gives the state after, (nq,) and (nv,)."""

    step: int
    end: int
    env: int
    by_q: np.ndarray
    q: np.ndarray
    qd: np.ndarray


@dataclass(frozen=True)
class MovingImpacts(Meaning):
    """Bounces and landings move in time. Points under the impulse law that meet faster than `slowest` (m/s) count; of many at once
    the fastest, of many one after the other the twelve most sudden. Not for bodies that chatter."""

    slowest: float = 0.1

    def __post_init__(self) -> None:
        checked_number("slowest", self.slowest, 0.0)

    def pulled_back(self, motion: Trajectory, bars: Bars, wrt: Sequence[str]) -> Gradient:
        """As that of Exact; segments between impacts go back one after the other."""
        motion = with_all_states(motion)
        jumps = dict(_by_end(self._jumps(motion)))
        if not jumps:
            return Exact().pulled_back(motion, bars, wrt)

        def carry(end: int, back: Gradient, wide: Bars) -> None:
            wide.q[end], wide.qd[end] = back.q, back.qd
            for one in jumps[end]:
                share = back.q[one.env] @ one.q + back.qd[one.env] @ one.qd
                wide.q[one.step, one.env] += share * one.by_q

        return back_in_segments(motion, bars, wrt, tuple(jumps), carry)

    def pushed_forward(
        self, motion: Trajectory, dots: Mapping[str, Any], params: Mapping[str, Any], outputs: tuple[str, ...]
    ) -> Tangents:
        """As that of Exact, segment by segment."""
        motion = with_all_states(motion)
        jumps = dict(_by_end(self._jumps(motion)))
        if not jumps:
            return Exact().pushed_forward(motion, dots, params, outputs)
        seen = np.empty_like(motion.run.states()[0])

        def enter(end: int, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            seen[end + 1 - len(q) : end + 1] = q
            for one in jumps[end]:
                share = one.by_q @ seen[one.step, one.env]
                q[-1, one.env] += share * one.q
                qd[-1, one.env] += share * one.qd
            seen[end] = q[-1]
            return q[-1].copy(), qd[-1].copy()

        return ahead_in_segments(motion, dots, params, outputs, tuple(jumps), enter)

    @property
    def of_steps(self) -> Meaning:
        """Impacts are looked for in the whole motion."""
        return Exact()

    def jacobian(self, model: Model, state: State, u: Any, force: Any, A: np.ndarray) -> np.ndarray:
        """Of steps on their own: the rates are those of flight before, and of the next step after."""
        from ..looks.inspect import inspect
        from ..run.rollout import rolled_out

        if not can_meet(model):
            return A
        seen = inspect(model, state, u, force)
        motion = rolled_out(model, state, None if u is None else np.stack([u, u]), 2, force, warns=False)
        dt = np.reshape(model.params["world.dt"], (-1, 1))
        after = difference(model, *(State(motion.q[k], motion.qd[k]) for k in (2, 1))) / dt
        before, A, takes = np.concatenate([state.qd, seen.qdd], axis=-1), A.copy(), _durations(model)
        for env in range(len(state.q)):
            for one in self._fastest(model, seen, takes, env, 0, state.qd[env]):
                moved_impact(A[env], before[env], after[env], one)
        return A

    def jacobians(self, model: Model, A: np.ndarray, q: np.ndarray, qd: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Of all steps of one motion, A (T, 2nv, 2nv) being the exact ones."""
        A = A.copy()
        for one in self.impacts(model, q, qd, u):
            k = one.step
            before, after = (difference(model, State(q[i], qd[i]), State(q[i - 1], qd[i - 1])) for i in (k, k + 2))
            moved_impact(A[k], before, after, one)
        return A

    # where impacts are --------------------------------------------------------------------------------------------------

    def impacts(
        self, model: Model, q: np.ndarray, qd: np.ndarray, u: np.ndarray | None, force: np.ndarray | None = None
    ) -> list[Impact]:
        """The impacts of one motion q (T+1, nq), qd, under u (T, nu) and force (T, n_links, 6), in the order of time."""
        from ..looks.inspect import inspect

        if not can_meet(model) or len(qd) < 4:  # an impact in the first step, or the last, has no rate on one side
            return []
        jumps = np.abs(np.diff(qd, axis=0)).max(-1)
        sudden = np.flatnonzero(jumps > np.maximum(SUDDEN * np.median(jumps), self.slowest))
        sudden = sudden[(sudden > 0) & (sudden < len(jumps) - 1)]
        steps = np.sort(sudden[np.argsort(-jumps[sudden])][:MOST])
        if not len(steps):
            return []
        held = (None if x is None else x[steps] for x in (u, force))
        seen = inspect(model, State(q[steps], qd[steps]), *held)
        takes = _durations(model)
        found = [
            one for k, step in enumerate(steps) for one in self._fastest(model, seen, takes, k, int(step), qd[step])
        ]
        # a landing that something else interrupts ends there
        ends = [one.step for one in found[1:]] + [len(jumps) - 1] * bool(found)
        return [replace(one, takes=min(one.takes, end - one.step)) for one, end in zip(found, ends, strict=True)]

    def _fastest(
        self,
        model: Model,
        seen: Inspection,
        takes: Mapping[frozenset[str], int],
        env: int,
        step: int,
        qd: np.ndarray,
    ) -> list[Impact]:
        """The fastest of the points that meet in a step, if one is fast enough."""
        meeting = [c for c in seen.contacts[env] if c.mode != "open" and c.law == "impulse"]
        slopes = [_gap_slope(model, seen, env, contact) for contact in meeting]
        lasts = [takes[frozenset(contact.shapes)] for contact in meeting]
        found = [Impact(step, slope, float(slope @ qd), last) for slope, last in zip(slopes, lasts, strict=True)]
        return sorted((one for one in found if one.closing < -self.slowest), key=lambda one: one.closing)[:1]

    def _jumps(self, motion: Trajectory) -> list[_Jump]:
        """Of all environments, in the order of their ends. Neighbours that move alike are looked at once."""
        if not can_meet(motion.model):
            return []
        q, qd = motion.run.states()
        found: list[_Jump] = []
        own: list[_Jump] = []
        for env in range(q.shape[1]):
            if env and motion.model.batch is None and is_like_the_one_before(motion, env):
                own = [replace(one, env=env) for one in own]
            else:
                own = self._jumps_of(motion, q[:, env], qd[:, env], env)
            found += own
        return sorted(found, key=lambda one: one.end)

    def _jumps_of(self, motion: Trajectory, q: np.ndarray, qd: np.ndarray, env: int) -> list[_Jump]:
        model, u, force = of_environment(motion, env)
        impacts = self.impacts(model, q, qd, u, force)
        if not impacts:
            return []
        rows = rows_of(model, q)
        late = [_lateness(model, q, qd, u, force, one.step, one.step + one.takes) for one in impacts]
        return [
            _Jump(one.step, one.step + one.takes, env, one.slope @ rows[one.step] / one.closing, *change)
            for one, change in zip(impacts, late, strict=True)
        ]


def can_meet(model: Model) -> bool:
    """Whether there are pairs under the impulse law."""
    return any(model.topology.tree["pair_has_rows"])


def moved_impact(A: np.ndarray, before: np.ndarray, after: np.ndarray, one: Impact) -> None:
    """Change the Jacobian of a step with a bounce in place; rates in tangent coordinates, (2nv,)."""
    slope = np.concatenate([one.slope, np.zeros_like(one.slope)])
    A += np.outer(after - A @ before, slope) / (slope @ before)


def _by_end(jumps: Iterable[_Jump]) -> Iterator[tuple[int, list[_Jump]]]:
    for end, together in itertools.groupby(jumps, key=lambda one: one.end):
        yield end, list(together)


def _durations(model: Model) -> dict[frozenset[str], int]:
    """Steps from the one in which two shapes meet until they have landed; 1 where they bounce. Those of the environment that takes
    longest."""
    tree, row_of = model.topology.tree, model.topology.tree["n_pair_rows"]
    e, share = (model.params[f"pair.{name}"].reshape(-1, row_of) for name in ("restitution", "baumgarte"))
    last = np.where(e.max(0) > BOUNCES, 1, [_landing(x) for x in share.min(0)])
    pairs = zip(tree["pair_a"], tree["pair_b"], tree["pair_row"], strict=True)
    return {frozenset((model.shape_names[a], model.shape_names[b])): int(last[row]) for a, b, row in pairs}


def _landing(share: float) -> int:
    return math.ceil(math.log(LEFT) / math.log(1.0 - share)) if 0.0 < share < 1.0 else 1


def _gap_slope(model: Model, seen: Inspection, env: int, contact: Contact) -> np.ndarray:
    """(nv,): how fast the points of the two links part, by the velocities."""
    slope = np.zeros(model.nv)
    for sign, name in zip((1.0, -1.0), contact.links, strict=True):
        link = model.link(name)
        point = seen.link_rotation[env, link].T @ (contact.point - seen.link_position[env, link])
        slope += sign * contact.normal @ seen.point_jacobian(name, point)[0][env]
    return slope


def _lateness(
    model: Model, q: np.ndarray, qd: np.ndarray, u: np.ndarray | None, force: np.ndarray | None, first: int, last: int
) -> list[np.ndarray]:
    """f' - A f of the steps from state `first` to `last`, (nq,) and (nv,): how the state after changes if the impact comes sooner
    by a unit of time."""
    from ..run.rollout import known_motion

    dt = float(model.params["world.dt"])
    before = [(a[first] - a[first - 1]) / dt for a in (q, qd)]
    controls, pushes = (None if x is None else x[first:last] for x in (u, force))
    part = known_motion(model, (q[first : last + 1], qd[first : last + 1]), controls, force=pushes)
    carried = part.tangent(*before)
    return [(a[last + 1] - a[last]) / dt - c[-1] for a, c in zip((q, qd), carried[:2], strict=True)]
