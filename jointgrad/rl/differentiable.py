"""Tasks as differentiable steps of PyTorch: gradients from rewards and observations to states, actions and parameters."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..engine.run.outputs import LOADS
from ..model.arrays import Model
from ..torch import Simulator
from .randomise import late
from .task import Moment, Step, Task


class DifferentiableTask:
    """A task whose moments hold tensors. `params` are tensors by name, with a leading axis for a value per environment."""

    def __init__(
        self,
        task: Task,
        params: Mapping[str, Tensor] | None = None,
        threads: int | None = None,
        on_nan: str = "raise",
    ) -> None:
        self.task, self.params = task, params
        self._options: dict[str, Any] = {"threads": threads, "on_nan": on_nan}
        self.use(task.model)

    def use(self, model: Model) -> None:
        """Move robots of this model from now on: parameters that need no gradient are cheaper there than in `params`, which are
        checked at every step."""
        self.simulator = Simulator(model, **self._options)

    def start(self, rng: np.random.Generator, batch: int, ease: float = 0.0) -> Moment:
        """Where episodes begin, in float64."""
        state = self.task.start(rng, batch)
        goal = torch.tensor(self.task.goals(rng, batch, ease))
        return self.moment(torch.tensor(state.q), torch.tensor(state.qd), goal)

    def moment(self, q: Tensor, qd: Tensor, goal: Tensor | None = None) -> Moment:
        """An episode that begins in a given state, (batch, nq) and (batch, nv), with a goal (batch, n_goals), else zero."""
        names = self.task.outputs
        placed = tuple(name for name in names if name not in LOADS)
        blank, outputs = self.task.blank(len(q)), {}
        if placed:
            found = self.simulator.rollout(q, qd, params=self.params, steps=0, outputs=placed).outputs
            outputs = {name: value[0] for name, value in found.items()}
        loads = {name: torch.from_numpy(blank.outputs[name]) for name in names if name in LOADS}
        action, age = torch.from_numpy(blank.action), torch.from_numpy(blank.age)
        goal = torch.from_numpy(blank.goal) if goal is None else goal
        return Moment(q, qd, action, age, outputs | loads, goal)

    def repeated(self, times: int) -> DifferentiableTask:
        """The same for batches in which every environment comes so many times, one after the other."""
        found = copy.copy(self)
        if self.params is not None:
            found.params = {name: x.repeat_interleave(times, 0) for name, x in self.params.items()}
        model = self.simulator.model
        if model.batch is not None:
            own = {name: np.repeat(x, times, 0) for name, x in model.params.items() if not model.is_shared(name)}
            found.use(model.with_params({**model.params, **own}, times * model.batch))
        return found

    def observe(self, now: Moment) -> Tensor:
        return self.task.observe(now)

    def step(self, before: Moment, action: Tensor) -> Step:
        """Hold actions (batch, nu) until the next are due."""
        task, now = self.task, self.moved(before, action)
        return Step(now, task.observe(now), task.reward(before, now), task.fallen(now))

    def moved(self, before: Moment, action: Tensor, delays: Tensor | None = None) -> Moment:
        """The moment after actions (batch, nu) were held: a step that looks at nothing yet. delays: over how many steps of the
        simulation the action before still acts, (batch,)."""
        task, hold = self.task, self.task.hold
        action = action.to(before.q.dtype)
        u = action[None]
        if delays is not None:
            u, hold = late(before.action, action, delays, hold), 1
        motion = self.simulator.rollout(
            before.q, before.qd, u, hold=hold, params=self.params, outputs=task.outputs, only_last=True,
            outputs_at="last",
        )  # fmt: skip
        return Moment(motion.q, motion.qd, action, before.age + 1, motion.outputs, before.goal)
