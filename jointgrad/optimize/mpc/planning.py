"""Planning through the simulator itself, again at every action: by samples (MPPI, predictive sampling) and by iLQR.

Both keep the last plan, moved on by one action, as the start of the next, and serve any robot: a controller is called with what is
sensed and gives the controls of the next action. The command is not looked at: what is wanted is in the cost.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...engine.run.rollout import rollout
from ...model.arrays import Model, State
from ...model.errors import InputError
from ..ilqr import Cost, ilqr
from ..progress import Stop
from ..solvers import Bounds, limits
from .controller import Command, Sensed


def sensed_at(time: float, state: State) -> Sensed:
    """A state as controllers take it, of a robot without feet."""
    return Sensed(time, state.q, state.qd, np.zeros(0, dtype=bool))


def _moved_on(plan: np.ndarray) -> np.ndarray:
    """Without its first action; the last one is repeated."""
    return np.concatenate((plan[1:], plan[-1:]))


@dataclass
class SamplingMPC:
    """Plans of `horizon` actions, each held over `hold` steps, from `samples` random changes of the last one.

    deviation (number, or (nu,)): of the changes. temperature: of the weights exp(-(cost - best) / temperature) that mix the samples
    (MPPI, Williams et al. 2017), as a share of their spread; None takes the best alone (predictive sampling, Howell et al. 2022).
    knots: changes are straight lines between so many points in time. rounds: how often a plan is bettered per action.
    """

    model: Model
    cost: Cost
    horizon: int
    deviation: Any
    hold: int = 1
    samples: int = 64
    temperature: float | None = None
    knots: int = 5
    rounds: int = 1
    bounds: Bounds = None
    seed: int = 0
    threads: int | None = None
    plan: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        for name in ("horizon", "hold", "samples", "rounds"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be 1 or more, but is {getattr(self, name)}")
        self._low, self._high = limits(self.bounds, self.model.nu)
        self.reset()

    def reset(self) -> None:
        self._rng = np.random.default_rng(self.seed)
        self.plan = np.clip(np.zeros((self.horizon, self.model.nu)), self._low, self._high)
        self.best = np.inf

    def __call__(self, sensed: Sensed, command: Command | None = None) -> np.ndarray:
        for _ in range(self.rounds):
            self._better(State(sensed.q, sensed.qd))
        now = self.plan[0].copy()
        self.plan = _moved_on(self.plan)
        return now

    def _better(self, state: State) -> None:
        tried = np.clip(self.plan[:, None] + self._changes(), self._low, self._high)
        costs = self.costs(state, tried)
        lead = int(np.argmin(costs))
        self.best = float(costs[lead])
        if self.temperature is None or not np.isfinite(self.best):
            self.plan = tried[:, lead].copy()
            return
        spread = np.median(costs[np.isfinite(costs)]) - self.best
        weight = np.exp(-(costs - self.best) / max(self.temperature * spread, 1e-300))
        self.plan = np.einsum("s,tsu->tu", weight / weight.sum(), tried)

    def _changes(self) -> np.ndarray:
        """(horizon, samples, nu); the first sample is the plan itself."""
        knots = min(self.knots, self.horizon)
        points = self._rng.standard_normal((knots, self.samples, self.model.nu)) * np.asarray(self.deviation)
        points[:, 0] = 0.0
        at = np.linspace(0.0, knots - 1.0, self.horizon)
        below = np.minimum(at.astype(int), max(knots - 2, 0))
        share = (at - below)[:, None, None]
        return (1.0 - share) * points[below] + share * points[np.minimum(below + 1, knots - 1)]

    def costs(self, state: State, u: np.ndarray) -> np.ndarray:
        """Of plans (horizon, samples, nu) from one state; infinite where numbers do not stay finite."""
        many = State(*(np.repeat(np.asarray(a)[None], u.shape[1], axis=0) for a in (state.q, state.qd)))
        motion = rollout(self.model, many, u, hold=self.hold, on_nan="freeze", threads=self.threads)
        q, qd = motion.q[:: self.hold], motion.qd[:: self.hold]
        with np.errstate(all="ignore"):
            total = self.cost.running(q[:-1], qd[:-1], u).sum(0) + self.cost.final(q[-1], qd[-1])
        return np.where(np.isfinite(total), total, np.inf)


@dataclass
class IlqrMPC:
    """Plans of `horizon` steps of the model by `iterations` of iLQR per action, its Jacobians exact, contact included."""

    model: Model
    cost: Cost
    horizon: int
    iterations: int = 2
    bounds: Bounds = None
    first_iterations: int = 50
    start: np.ndarray | None = None  # the first plan (horizon, nu); unless said, zero

    def __post_init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        low, high = limits(self.bounds, self.model.nu)
        shape = (self.horizon, self.model.nu)
        self.plan = np.clip(np.zeros(shape) if self.start is None else np.asarray(self.start, float), low, high)
        self._is_first, self.best = True, np.inf

    def __call__(self, sensed: Sensed, command: Command | None = None) -> np.ndarray:
        stop = Stop(iterations=self.first_iterations if self._is_first else self.iterations)
        found = ilqr(self.model, State(sensed.q, sensed.qd), self.cost, self.plan, self.bounds, stop)
        self._is_first, self.best = False, float(found.loss)
        better = found.x.reshape(self.plan.shape)
        self.plan = _moved_on(better)
        return better[0].copy()
