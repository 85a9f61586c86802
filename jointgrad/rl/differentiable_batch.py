"""Many environments of a task that move together in tensors: gradients pass from one action to the next, and stop at a reset."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from .differentiable import DifferentiableTask
from .randomise import Randomisation
from .task import Moment, Task


class Outcome(NamedTuple):
    """What an action led to, one row per environment, before any reset; `over` where one begins anew."""

    reward: Tensor
    observation: Tensor
    terminated: Tensor
    over: Tensor


class DifferentiableBatch:
    """`now` is the moment of the environments and `seen` what policies see of it. Everything random comes from one generator.

    carry: the share of episodes ended by time whose robot goes on from where it is, with another goal: so it learns to change
    from one to the next. ease: of the goals that are drawn.
    """

    def __init__(
        self, task: Task, count: int, rng: np.random.Generator, randomise: Randomisation | None = None,
        threads: int | None = 1, carry: float = 0.5, ease: float = 0.0,
    ) -> None:  # fmt: skip
        self.task, self.count, self.rng, self.randomise, self.carry = task, count, rng, randomise, carry
        self.ease = ease
        self.layer = DifferentiableTask(task, self._robots(count), threads, on_nan="freeze")
        self.now: Moment = self.layer.start(rng, count, ease)
        # as if they had begun at different times, so that they do not all end together
        self.now = self.now._replace(age=torch.from_numpy(rng.integers(0, task.limit, count)))
        self.seen: Tensor = task.observe(self.now)

    def step(self, action: Tensor) -> Outcome:
        """Hold actions (count, nu), push, and begin anew what is over."""
        self.now, self.seen, reward, terminated = self.layer.step(self.now, action)
        outcome = Outcome(reward, self.seen, terminated, terminated | (self.now.age >= self.task.limit))
        is_pushed = self._push()
        if outcome.over.any():
            self._begin(outcome.over.numpy(), terminated.numpy())
        elif not is_pushed:
            return outcome
        self.seen = self.task.observe(self.now)
        return outcome

    def begin(self) -> None:
        """All environments anew and together, with episodes that have just begun."""
        self.layer.params = self._robots(self.count)
        self.now = self.layer.start(self.rng, self.count, self.ease)
        self.seen = self.task.observe(self.now)

    def cut(self) -> None:
        """Gradients do not go back beyond here."""
        now = self.now
        outputs = {name: x.detach() for name, x in now.outputs.items()}
        self.now = now._replace(q=now.q.detach(), qd=now.qd.detach(), action=now.action.detach(), outputs=outputs)
        self.seen = self.seen.detach()

    # resets -------------------------------------------------------------------------------------------------------------

    def _robots(self, count: int) -> dict[str, Tensor] | None:
        """Parameters of so many robots."""
        if self.randomise is None:
            return None
        drawn = [self.randomise.draw(self.rng, self.task.model) for _ in range(count)]
        return {name: torch.from_numpy(np.stack([one[name] for one in drawn])) for name in drawn[0]}

    def _push(self) -> bool:
        if self.randomise is None or not self.randomise.push:
            return False
        kick = self.randomise.kick(self.rng, self.task.model, self.count)
        if not kick.any():
            return False
        self.now = self.now._replace(qd=self.now.qd + torch.from_numpy(kick))
        return True

    def _begin(self, over: np.ndarray, fallen: np.ndarray) -> None:
        """Goals anew in all that are over; states and robots too, but for those that go on."""
        goes_on = over & ~fallen & (self.rng.random(self.count) < self.carry)
        rows, fresh = np.flatnonzero(over), np.flatnonzero(over & ~goes_on)
        now, goals = self.now, torch.from_numpy(self.task.goals(self.rng, len(rows), self.ease))
        index = (torch.from_numpy(rows),)
        self.now = now._replace(goal=now.goal.index_put(index, goals), age=now.age.index_fill(0, index[0], 0))
        if len(fresh):
            self._replace(fresh)

    def _replace(self, fresh: np.ndarray) -> None:
        index = (torch.from_numpy(fresh),)
        robots = self._robots(len(fresh))
        if robots is not None and self.layer.params is not None:
            self.layer.params = {name: x.index_put(index, robots[name]) for name, x in self.layer.params.items()}
        state, now = self.task.start(self.rng, len(fresh)), self.now
        q, qd = (x.index_put(index, torch.from_numpy(new)) for x, new in ((now.q, state.q), (now.qd, state.qd)))
        action = now.action.index_fill(0, index[0], 0.0)
        placed = self.layer.moment(q.detach(), qd.detach()).outputs
        outputs = {name: x.index_put(index, placed[name][index[0]]) for name, x in now.outputs.items()}
        self.now = now._replace(q=q, qd=qd, action=action, outputs=outputs)

    # to go on another day -----------------------------------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Tensor], str]:
        """All that another batch needs to go on from here: tensors by name, and the generator's state as text."""
        now, params = self.now, self.layer.params or {}
        found = {name: getattr(now, name).detach() for name in ("q", "qd", "action", "age", "goal")}
        found |= {f"outputs.{name}": x.detach() for name, x in now.outputs.items()}
        found |= {f"params.{name}": x for name, x in params.items()}
        return found, json.dumps(self.rng.bit_generator.state)

    def restore(self, tensors: dict[str, Tensor], generator: str) -> None:
        parts: dict[str, Any] = {name: tensors[name] for name in ("q", "qd", "action", "age", "goal")}
        parts["outputs"] = {name: tensors[f"outputs.{name}"] for name in self.task.outputs}
        self.now = Moment(**parts)
        if self.layer.params is not None:
            self.layer.params = {name: tensors[f"params.{name}"] for name in self.layer.params}
        self.rng.bit_generator.state = json.loads(generator)
        self.seen = self.task.observe(self.now)
