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

from dataclasses import dataclass

import numpy as np

from ..engine.contact_records import Contact
from ..engine.inspect import Inspection, inspect
from ..engine.rollout import known_motion
from ..model.arrays import Model, State
from .tangent import difference, rows_of

# bounces slower than this move so little that their exact derivative will do, m/s
SLOW = 0.1
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


def can_bounce(model: Model) -> bool:
    return bool((model.params["pair.restitution"] > 0).any())


def impacts_of(model: Model, q: np.ndarray, qd: np.ndarray, u: np.ndarray) -> list[Impact]:
    """The bounces of one motion q (T+1, nq), qd, under u (T, nu), in the order of time."""
    if not can_bounce(model):
        return []
    jumps = np.abs(np.diff(qd, axis=0)).max(-1)
    sudden = np.flatnonzero(jumps > np.maximum(SUDDEN * np.median(jumps), SLOW))
    # a bounce in the first step, or the last, has no rate on one side
    sudden = sudden[(sudden > 0) & (sudden < len(u) - 1)]
    steps = np.sort(sudden[np.argsort(-jumps[sudden])][:MOST])
    if not len(steps):
        return []
    seen, restitution, found = inspect(model, State(q[steps], qd[steps]), u[steps]), _restitutions(model), []
    for env, contacts in enumerate(seen.contacts):
        bouncing = [c for c in contacts if c.mode != "open" and restitution.get(frozenset(c.shapes))]
        found += _fastest(model, seen, env, bouncing, int(steps[env]), qd[steps[env]])
    return found


def _fastest(
    model: Model, seen: Inspection, env: int, bouncing: list[Contact], step: int, qd: np.ndarray
) -> list[Impact]:
    """The fastest of the points that meet and bounce in a step, if one is fast enough."""
    slopes = [_gap_slope(model, seen, env, contact) for contact in bouncing]
    found = [Impact(step, slope, float(slope @ qd)) for slope in slopes]
    return sorted((one for one in found if one.closing < -SLOW), key=lambda one: one.closing)[:1]


def _restitutions(model: Model) -> dict[frozenset[str], float]:
    tree, values = model.topology.tree, model.params["pair.restitution"]
    pairs = zip(tree["pair_a"], tree["pair_b"], tree["pair_row"], strict=True)
    return {frozenset((model.shape_names[a], model.shape_names[b])): float(values[row]) for a, b, row in pairs}


def _gap_slope(model: Model, seen: Inspection, env: int, contact: Contact) -> np.ndarray:
    """(nv,): how fast the points of the two links part, by the velocities."""
    slope = np.zeros(model.nv)
    for sign, name in zip((1.0, -1.0), contact.links, strict=True):
        link = model.link(name)
        point = seen.link_rotation[env, link].T @ (contact.point - seen.link_position[env, link])
        slope += sign * contact.normal @ seen.point_jacobian(name, point)[0][env]
    return slope


def moved(model: Model, A: np.ndarray, q: np.ndarray, qd: np.ndarray, found: list[Impact]) -> np.ndarray:
    """Jacobians A (T, 2 nv, 2 nv) of the steps of one motion in tangent coordinates, with bounces that move."""
    A = A.copy()
    for one in found:
        k = one.step
        before, after = (difference(model, State(q[i], qd[i]), State(q[i - 1], qd[i - 1])) for i in (k, k + 2))
        slope = np.concatenate([one.slope, np.zeros(model.nv)])
        A[k] += np.outer(after - A[k] @ before, slope) / (slope @ before)
    return A


def pulled_back(
    model: Model, q: np.ndarray, qd: np.ndarray, u: np.ndarray, q_bar: np.ndarray, qd_bar: np.ndarray, found: list[Impact]
) -> np.ndarray:  # fmt: skip
    """Cotangents (T, n, nu) of the controls of one motion, from n cotangents (T+1, n, ...) of its states."""
    q_bar, qd_bar, last, parts = q_bar.copy(), qd_bar.copy(), len(u), []
    late_q, late_qd = _lateness(model, q, qd, u, [one.step for one in found]) if found else ([], [])
    for number, one in reversed(list(enumerate(found))):
        k = one.step
        back = _back(model, q, qd, u, q_bar, qd_bar, k + 1, last)
        parts.append(back.u)
        # what the rest of the motion makes of the state after the bounce takes the place of its own cotangent
        q_bar[k + 1], qd_bar[k + 1], last = back.q, back.qd, k + 1
        share = (back.q @ late_q[number] + back.qd @ late_qd[number]) / one.closing
        q_bar[k] += share[:, None] * (one.slope @ rows_of(model, q[k]))
    parts.append(_back(model, q, qd, u, q_bar, qd_bar, 0, last).u)
    return np.concatenate(parts[::-1])


def _back(model: Model, q, qd, u, q_bar, qd_bar, first: int, last: int):
    """From state `last` to state `first`, one environment for each cotangent."""
    n, at = q_bar.shape[1], slice(first, last + 1)
    states = tuple(np.repeat(a[at, None], n, axis=1) for a in (q, qd))
    controls = np.repeat(u[first:last, None], n, axis=1)
    return known_motion(model, states, controls).backward(q_bar[at], qd_bar[at], wrt=("state", "u"))


def _lateness(model: Model, q: np.ndarray, qd: np.ndarray, u: np.ndarray, steps: list[int]) -> list[np.ndarray]:
    """f' - A f of these steps, (steps, nq) and (steps, nv): how the state after each changes if the bounce comes sooner by a
    unit of time."""
    dt, k = float(model.params["world.dt"]), np.array(steps)
    before = [(a[k] - a[k - 1]) / dt for a in (q, qd)]
    states = np.stack([q[k], q[k + 1]]), np.stack([qd[k], qd[k + 1]])
    carried = known_motion(model, states, u[None, k]).tangent(*before)
    return [(a[k + 2] - a[k + 1]) / dt - c[-1] for a, c in zip((q, qd), carried[:2], strict=True)]
