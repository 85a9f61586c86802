"""Episodes of a policy: how they went, and what is needed to see them again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..engine.run.rollout import rollout
from ..engine.run.trajectory import Trajectory
from ..model.arrays import State
from .batch import Batch
from .randomise import Randomisation
from .task import Task

Act = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Episodes:
    """One per row: what it earned, how many actions it lasted, whether it failed; means of measures; and all actions."""

    task: Task
    start: State
    actions: np.ndarray  # (actions, episodes, nu); those after an end are of no account
    returns: np.ndarray
    lengths: np.ndarray
    fallen: np.ndarray
    distances: np.ndarray  # along x, m
    measures: dict[str, float]

    def summary(self) -> dict[str, Any]:
        """Plain numbers."""
        return {
            "return_mean": float(self.returns.mean()), "return_min": float(self.returns.min()),
            "distance_mean": float(self.distances.mean()), "distance_min": float(self.distances.min()),
            "episodes": len(self.returns), "falls": int(self.fallen.sum()),
            "length_mean": float(self.lengths.mean() * self.task.control_dt), "measures": self.measures,
        }  # fmt: skip

    def motion(self, count: int = 9) -> Trajectory:
        """The first episodes once more, as a trajectory that can be saved and shown; up to the longest one's end."""
        longest = int(self.lengths[:count].max())
        u = self.actions[:longest, :count]
        start = State(self.start.q[:count], self.start.qd[:count])
        return rollout(self.task.model, start, u, hold=self.task.hold, on_nan="freeze", threads=1)


def episodes(
    task: Task, act: Any, count: int, seed: int, randomise: Randomisation | None = None, threads: int | None = 1,
    engine: str = "jointgrad",
) -> Episodes:  # fmt: skip
    """Let a policy play so many episodes side by side. act: from observations to actions, arrays or a torch module."""
    batch = _batch(engine)(task, count, randomise, threads)
    batch.generators = [np.random.default_rng([seed, k]) for k in range(count)]
    batch.reset(np.ones(count, dtype=bool))
    start, is_on = State(batch.now.q.copy(), batch.now.qd.copy()), np.ones(count, dtype=bool)
    returns, lengths, x = np.zeros(count), np.zeros(count, dtype=np.int64), batch.now.q[:, 0].copy()
    fallen, actions = np.zeros(count, dtype=bool), list[np.ndarray]()
    sums: dict[str, float] = {}
    act = _as_arrays(act)
    while is_on.any() and len(actions) < task.limit:
        actions.append(act(batch.observe()))
        result = batch.step(actions[-1])
        returns += np.where(is_on, result.reward, 0.0)
        lengths += is_on
        x = np.where(is_on, batch.now.q[:, 0], x)
        for name in task.measures(batch.now, batch.now):
            sums[name] = sums.get(name, 0.0) + np.where(is_on, result.info[name], 0.0).sum()
        fallen |= is_on & result.terminated
        is_on &= ~result.terminated
    means = {name: float(value / lengths.sum()) for name, value in sums.items()}
    return Episodes(task, start, np.array(actions), returns, lengths, fallen, x - start.q[:, 0], means)


def _batch(engine: str) -> type[Batch]:
    if engine == "jointgrad":
        return Batch
    from .in_mujoco import MujocoBatch

    return MujocoBatch


def _as_arrays(act: Any) -> Act:
    """A function of NumPy arrays, whatever it was."""
    if not hasattr(act, "parameters"):
        return act
    import torch

    def through_torch(seen: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return act(torch.from_numpy(seen)).double().numpy()

    return through_torch
