"""Windows of recorded motions whose starting states are found: the model that is judged or fitted finds them itself.

A state that is read off a recording (a polynomial through some samples) has a velocity that is wrong by its noise, and that error
soon is larger than what a model gets wrong. So the state at the start of a window is the one from which the model follows the
recorded angles best: those of the first samples alone where predictions are judged, all of them where numbers are fitted.

Fits are by variable projection (Golub and Pereyra 1973): starts are found for every trial, and of the slopes by the numbers that
are sought only the part counts that no change of a start makes up for (Kaufman 1975).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

import jointgrad as jg

from ..engine.run.rollout import known_motion
from ..engine.run.trajectory import Trajectory
from .solvers import Tried

SHARES = (0.5, 1.0)  # of a window, over which its start is found first and then
ROUNDS, TRIAL_ROUNDS = 3, 1  # of Gauss-Newton for starts; a trial of a fit begins where the last ended, and takes fewer


@dataclass(frozen=True)
class RecordedWindows:
    """Windows of equal length: recorded angles q (T+1, N, nv), controls (T, N, nu), and starts (N, 2 nv) as first guesses."""

    q: np.ndarray
    u: np.ndarray | None
    start: np.ndarray

    @property
    def steps(self) -> int:
        return len(self.q) - 1

    def times(self, copies: int) -> np.ndarray | None:
        """Controls of so many copies of all windows, side by side."""
        return None if self.u is None else np.tile(self.u, (1, copies, 1))


def moved(model: jg.Model, start: np.ndarray, u: np.ndarray | None, steps: int) -> Trajectory:
    """From starts (N, 2 nv)."""
    return jg.rollout(model, jg.State(start[:, : model.nv], start[:, model.nv :]), u, steps=steps, on_nan="freeze")


def slopes_by_start(motion: Trajectory) -> np.ndarray:
    """(T+1, N, nv, 2 nv): of angles, by one tangent for each number of the start."""
    nv, N = motion.model.nv, motion.q.shape[1]
    unit = np.repeat(np.eye(2 * nv), N, axis=0)
    dq = _copied(motion, 2 * nv).tangent(q=unit[:, :nv], qd=unit[:, nv:])[0]
    return np.moveaxis(dq.reshape(len(dq), 2 * nv, N, nv), 1, -1)


def _copied(motion: Trajectory, copies: int) -> Trajectory:
    """The same motion in several directions: nothing is run."""
    model = motion.model
    own = {k: np.tile(v := model.params[k], (copies, *(1,) * (v.ndim - 1))) for k in model.own_params}
    states = np.tile(motion.q, (1, copies, 1)), np.tile(motion.qd, (1, copies, 1))
    u = None if motion.u is None else np.tile(motion.u, (1, copies, 1))
    return known_motion(model.environment(0).replace(own), states, u)


def found_starts(
    model: jg.Model,
    data: RecordedWindows,
    units: np.ndarray,
    samples: int | None = None,
    shares: Sequence[float] = SHARES,
) -> np.ndarray:
    """(N, 2 nv): from which the model follows the first samples of every window best, found for ever larger shares of them: over
    the whole of a long window the error has many valleys."""
    start, steps = data.start, data.steps if samples is None else samples - 1
    for share in shares:
        upto = max(round(share * steps), 2)
        start = nearest_starts(model, data, units, start, upto, ROUNDS)
    return start


def nearest_starts(
    model: jg.Model, data: RecordedWindows, units: np.ndarray, start: np.ndarray, steps: int, rounds: int
) -> np.ndarray:
    """By Gauss-Newton from there, each window on its own."""
    s = np.array(start)
    u, q = None if data.u is None else data.u[:steps], data.q[: steps + 1]
    least = np.full(len(s), np.inf)
    best, step = s.copy(), np.zeros_like(s)
    for k in range(rounds + 1):
        motion = moved(model, s, u, steps)
        off = (motion.q - q) / units
        error = np.where(motion.status < 0, (off**2).sum((0, 2)), np.inf)
        is_better = error < least
        best[is_better], least = s[is_better], np.minimum(error, least)
        if k == rounds:
            break
        # where the last step did not help, a quarter of it is tried
        step[~is_better] /= 4
        if is_better.any():
            J = slopes_by_start(motion) / units[:, None]
            J, r = np.swapaxes(J, 0, 1).reshape(len(s), -1, s.shape[1]), np.swapaxes(off, 0, 1).reshape(len(s), -1)
            H = np.einsum("nij,nik->njk", J, J)
            H += 1e-9 * np.einsum("njj->n", H)[:, None, None] * np.eye(s.shape[1])
            new = np.linalg.solve(H, np.einsum("nij,ni->nj", J, r)[..., None])[..., 0]
            step[is_better] = new[is_better]
        s = best - step
    return best


@dataclass(frozen=True)
class FittedParameters:
    """Numbers x (n,) of a model: where they start, their bounds, parameters of points (B, n), changes by a unit of each, and
    whether bodies with such numbers exist."""

    start: np.ndarray
    bounds: tuple[np.ndarray, np.ndarray] | None
    values: Callable[[np.ndarray], Mapping[str, np.ndarray]]
    directions: Callable[[np.ndarray], Mapping[str, np.ndarray]]
    is_physical: Callable[[np.ndarray], np.ndarray] = lambda x: np.ones(len(x), bool)


class WindowFit:
    """Residuals of recorded angles (in `units`) as a function of the numbers sought, starts found; and of their pull towards where
    they start: strength 1 counts a unit of x as all residuals of one."""

    def __init__(
        self, model: jg.Model, data: RecordedWindows, sought: FittedParameters, units: np.ndarray, strength: float = 0.0,
        every: int = 5,
    ) -> None:  # fmt: skip
        self.model, self.data, self.sought, self.units = model, data, sought, units
        self.n, self.start, self.bounds = len(sought.start), sought.start, sought.bounds
        self.samples = np.arange(0, data.steps + 1, every)
        self.starts = found_starts(model, data, units)
        self.pull = np.sqrt(strength * len(self.samples) * data.q[0].size)

    def _at(self, x: np.ndarray) -> jg.Model:
        """Windows of each point x side by side, the window's index fastest."""
        return self.model.replace({k: np.repeat(v, len(self.starts), axis=0) for k, v in self.sought.values(x).items()})

    def tried(self, x: np.ndarray) -> Tried:
        B, N = len(x), len(self.starts)
        is_body = self.sought.is_physical(x)
        x = np.where(is_body[:, None], x, self.start)
        wide = RecordedWindows(np.tile(self.data.q, (1, B, 1)), self.data.times(B), np.tile(self.starts, (B, 1)))
        model = self._at(x)
        starts = nearest_starts(model, wide, self.units, wide.start, wide.steps, TRIAL_ROUNDS)
        motion = moved(model, starts, wide.u, wide.steps)
        off = self._seen((motion.q - wide.q).reshape(-1, B, N, self.model.nv))
        r = np.concatenate([off.reshape(B, -1), self.pull * (x - self.start)], axis=1)
        r[(motion.status >= 0).reshape(B, N).any(1) | ~is_body] = np.inf

        def jacobians(rows: Sequence[int]) -> tuple[np.ndarray, int, int]:
            self.starts = starts.reshape(B, N, -1)[rows[0]]
            return np.stack([self._slopes(x[row], starts.reshape(B, N, -1)[row]) for row in rows]), 0, len(rows)

        return Tried(r, jacobians)

    def _seen(self, q: np.ndarray) -> np.ndarray:
        """(B, N, residuals of a window) of angles (T+1, B, N, nv)."""
        q = q[self.samples] / self.units
        return np.moveaxis(q, 0, 2).reshape(*q.shape[1:3], -1)

    def _slopes(self, x: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """(residuals, n): less what starts can make up for."""
        N, n, nv = len(starts), self.n, self.model.nv
        shared = self.model.replace({k: v[0] for k, v in self.sought.values(x[None]).items()})
        motion = moved(shared, starts, self.data.u, self.data.steps)
        towards = {k: np.repeat(v, N, axis=0) for k, v in self.sought.directions(x).items()}
        copies = _copied(motion, n)
        each = copies.model.replace({k: np.repeat(shared.params[k][None], n * N, axis=0) for k in towards})
        dq = known_motion(each, (copies.q, copies.qd), copies.u).tangent(params=towards)[0]
        J = np.moveaxis(self._seen(dq.reshape(-1, n, N, nv)), 0, -1)
        of_start = np.moveaxis(self._seen(np.moveaxis(slopes_by_start(motion), -1, 1)), 0, -1)
        Q = np.linalg.qr(of_start)[0]
        J = J - Q @ (np.swapaxes(Q, -1, -2) @ J)
        return np.concatenate([J.reshape(-1, n), self.pull * np.eye(n)])
