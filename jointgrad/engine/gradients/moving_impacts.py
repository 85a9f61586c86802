"""Derivatives through bounces that know that a bounce moves in time.

Steps are fixed: a club that comes a little sooner meets the ball in the same step, a little deeper, until it meets it one step
sooner, all at once. Between these jumps the exact derivative is that of the depth, which is not what a motion does over any
distance that matters (docs/gradients.md, "A bounce"). Here the meeting moves with the club: what comes before is followed for
longer or shorter, what comes after the other way round, so that the gap at the meeting stays as it is (the saltation matrix of
hybrid systems: Kong, Payne, Zhu and Johnson 2024, "Saltation matrices").

With x' = F(x) the step of the bounce, A its Jacobian, f and f' the rates of the state before and after, g the slope of the gap:

    A  becomes  A + (f' - A f) g / (g f)
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...model.arguments import checked_number
from ...model.arrays import Model, State
from ..run.tangent_coordinates import difference, rows_of
from .exact import Exact
from .segments import (
    Bars,
    between,
    during,
    is_like_the_one_before,
    joined,
    joined_tangents,
    of_environment,
    with_all_states,
    with_batch,
)

if TYPE_CHECKING:
    from ..looks.contact_records import Contact
    from ..looks.inspect import Inspection
    from ..run.trajectory import Gradient, Trajectory

# a velocity that changes this many times more than in the middle one of all steps may have met something
SUDDEN = 8.0
# of the most sudden steps, how many are looked at
MOST = 12


@dataclass(frozen=True)
class Impact:
    """A bounce in a step: the slope of its gap by tangent coordinates (nv,), and how fast it closes (m/s, negative)."""

    step: int
    slope: np.ndarray
    closing: float


@dataclass(frozen=True)
class _Jump:
    """A bounce of an environment: a covector (nq,) of the state before, and what it gives the state after, (nq,) and (nv,)."""

    step: int
    env: int
    by_q: np.ndarray
    q: np.ndarray
    qd: np.ndarray


@dataclass(frozen=True)
class MovingImpacts:
    """Bounces move in time. Pairs with restitution that meet faster than `slowest` (m/s) count; of many at once the fastest. Not
    for bodies that chatter."""

    slowest: float = 0.1

    def __post_init__(self) -> None:
        checked_number("slowest", self.slowest, 0.0)

    def pulled_back(self, motion: Trajectory, bars: Bars, wrt: Sequence[str]) -> Gradient:
        """As that of Exact; segments between bounces go back one after the other."""
        motion = with_all_states(motion)
        jumps = self._jumps(motion)
        if not jumps:
            return Exact().pulled_back(motion, bars, wrt)
        wide, parts, end = bars.over_time(motion), [], motion.steps
        for step, together in _by_step(reversed(jumps)):
            back = _exact(motion, wide, step + 1, end, (*wrt, "state"))
            wide.q[step + 1], wide.qd[step + 1], end = back.q, back.qd, step + 1
            for one in together:
                share = back.q[one.env] @ one.q + back.qd[one.env] @ one.qd
                wide.q[step, one.env] += share * one.by_q
            parts.append(back)
        parts.append(_exact(motion, wide, 0, end, wrt))
        return joined(motion, parts[::-1], wrt)

    def pushed_forward(
        self, motion: Trajectory, dots: Mapping[str, Any], params: Mapping[str, Any], outputs: tuple[str, ...]
    ) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        """As that of Exact, segment by segment."""
        from ..run.tangent import tangents

        motion = with_all_states(motion)
        jumps = self._jumps(motion)
        if not jumps:
            return Exact().pushed_forward(motion, dots, params, outputs)
        wide, parts, first = with_batch(motion, dots), [], 0
        for step, together in [*_by_step(jumps), (motion.steps - 1, ())]:
            part = tangents(between(motion, first, step + 1), during(motion, wide, first, step + 1), params, outputs)
            parts.append(part)
            q, qd = part[0], part[1]
            for one in together:
                share = one.by_q @ q[-2, one.env]
                q[-1, one.env] += share * one.q
                qd[-1, one.env] += share * one.qd
            wide, first = wide | {"q": q[-1].copy(), "qd": qd[-1].copy()}, step + 1
        return joined_tangents(motion, parts)

    def jacobian(self, model: Model, state: State, u: Any, force: Any, A: np.ndarray) -> np.ndarray:
        """Of steps on their own: the rates are those of flight before, and of the next step after."""
        from ..looks.inspect import inspect
        from ..run.rollout import rollout

        if not can_bounce(model):
            return A
        seen = inspect(model, state, u, force)
        motion = rollout(model, state, None if u is None else np.stack([u, u]), steps=2, force=force)
        dt = np.reshape(model.params["world.dt"], (-1, 1))
        after = difference(model, *(State(motion.q[k], motion.qd[k]) for k in (2, 1))) / dt
        before, A, e = np.concatenate([state.qd, seen.qdd], axis=-1), A.copy(), _restitutions(model)
        for env in range(len(state.q)):
            for one in self._fastest(model, seen, e, env, 0, state.qd[env]):
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

    # where bounces are --------------------------------------------------------------------------------------------------

    def impacts(
        self, model: Model, q: np.ndarray, qd: np.ndarray, u: np.ndarray | None, force: np.ndarray | None = None
    ) -> list[Impact]:
        """The bounces of one motion q (T+1, nq), qd, under u (T, nu) and force (T, n_links, 6), in the order of time."""
        from ..looks.inspect import inspect

        if not can_bounce(model) or len(qd) < 4:  # a bounce in the first step, or the last, has no rate on one side
            return []
        jumps = np.abs(np.diff(qd, axis=0)).max(-1)
        sudden = np.flatnonzero(jumps > np.maximum(SUDDEN * np.median(jumps), self.slowest))
        sudden = sudden[(sudden > 0) & (sudden < len(jumps) - 1)]
        steps = np.sort(sudden[np.argsort(-jumps[sudden])][:MOST])
        if not len(steps):
            return []
        held = (None if x is None else x[steps] for x in (u, force))
        seen = inspect(model, State(q[steps], qd[steps]), *held)
        e = _restitutions(model)
        return [one for k, step in enumerate(steps) for one in self._fastest(model, seen, e, k, int(step), qd[step])]

    def _fastest(
        self,
        model: Model,
        seen: Inspection,
        restitution: Mapping[frozenset[str], float],
        env: int,
        step: int,
        qd: np.ndarray,
    ) -> list[Impact]:
        """The fastest of the points that meet and bounce in a step, if one is fast enough."""
        bouncing = [c for c in seen.contacts[env] if c.mode != "open" and restitution.get(frozenset(c.shapes))]
        slopes = [_gap_slope(model, seen, env, contact) for contact in bouncing]
        found = [Impact(step, slope, float(slope @ qd)) for slope in slopes]
        return sorted((one for one in found if one.closing < -self.slowest), key=lambda one: one.closing)[:1]

    def _jumps(self, motion: Trajectory) -> list[_Jump]:
        """Of all environments, in the order of time. Neighbours that move alike are looked at once."""
        if not can_bounce(motion.model):
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
        return sorted(found, key=lambda one: one.step)

    def _jumps_of(self, motion: Trajectory, q: np.ndarray, qd: np.ndarray, env: int) -> list[_Jump]:
        model, u, force = of_environment(motion, env)
        impacts = self.impacts(model, q, qd, u, force)
        if not impacts:
            return []
        late = _lateness(model, q, qd, u, force, [one.step for one in impacts])
        return [
            _Jump(one.step, env, one.slope @ rows_of(model, q[one.step]) / one.closing, late[0][k], late[1][k])
            for k, one in enumerate(impacts)
        ]


def _exact(motion: Trajectory, bars: Bars, first: int, last: int, wrt: Sequence[str]) -> Gradient:
    return Exact().pulled_back(between(motion, first, last), bars.between(first, last, last == motion.steps), wrt)


def can_bounce(model: Model) -> bool:
    return bool((model.params["pair.restitution"] > 0).any())


def moved_impact(A: np.ndarray, before: np.ndarray, after: np.ndarray, one: Impact) -> None:
    """Change the Jacobian of a step with a bounce in place; rates in tangent coordinates, (2nv,)."""
    slope = np.concatenate([one.slope, np.zeros_like(one.slope)])
    A += np.outer(after - A @ before, slope) / (slope @ before)


def _by_step(jumps: Any) -> Iterator[tuple[int, list[_Jump]]]:
    for step, together in itertools.groupby(jumps, key=lambda one: one.step):
        yield step, list(together)


def _restitutions(model: Model) -> dict[frozenset[str], float]:
    tree, values = model.topology.tree, model.params["pair.restitution"]
    largest = values if model.is_shared("pair.restitution") else values.max(0)
    pairs = zip(tree["pair_a"], tree["pair_b"], tree["pair_row"], strict=True)
    return {frozenset((model.shape_names[a], model.shape_names[b])): float(largest[row]) for a, b, row in pairs}


def _gap_slope(model: Model, seen: Inspection, env: int, contact: Contact) -> np.ndarray:
    """(nv,): how fast the points of the two links part, by the velocities."""
    slope = np.zeros(model.nv)
    for sign, name in zip((1.0, -1.0), contact.links, strict=True):
        link = model.link(name)
        point = seen.link_rotation[env, link].T @ (contact.point - seen.link_position[env, link])
        slope += sign * contact.normal @ seen.point_jacobian(name, point)[0][env]
    return slope


def _lateness(
    model: Model, q: np.ndarray, qd: np.ndarray, u: np.ndarray | None, force: np.ndarray | None, steps: list[int]
) -> list[np.ndarray]:
    """f' - A f of these steps, (steps, nq) and (steps, nv): how the state after each changes if the bounce comes sooner by a
    unit of time."""
    from ..run.rollout import known_motion

    dt, k = float(model.params["world.dt"]), np.array(steps)
    before = [(a[k] - a[k - 1]) / dt for a in (q, qd)]
    states = np.stack([q[k], q[k + 1]]), np.stack([qd[k], qd[k + 1]])
    controls, pushes = (None if x is None else x[None, k] for x in (u, force))
    carried = known_motion(model, states, controls, force=pushes).tangent(*before)
    return [(a[k + 2] - a[k + 1]) / dt - c[-1] for a, c in zip((q, qd), carried[:2], strict=True)]
