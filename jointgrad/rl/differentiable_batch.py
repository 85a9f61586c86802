"""Many environments of a task that move together in tensors: gradients pass from one action to the next, and stop at a reset."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..model.arrays import Model
from .differentiable import DifferentiableTask
from .randomise import Randomisation
from .task import Moment, Task

# those of a moment, but for its outputs
TENSORS = ("q", "qd", "action", "age", "goal")


class Outcome(NamedTuple):
    """What an action led to, one row per environment, before any reset; `over` where one begins anew."""

    reward: Tensor
    observation: Tensor
    terminated: Tensor
    over: Tensor


class Passage(NamedTuple):
    """The same before anything is observed or paid: moments before and after the actions, for many at once are cheaper."""

    before: Moment
    now: Moment
    terminated: Tensor
    over: Tensor


def together(moments: Sequence[Moment]) -> Moment:
    """Moments one after the other as one, with an axis for time in front."""
    outputs = {name: torch.stack([one.outputs[name] for one in moments]) for name in moments[0].outputs}
    rest = {name: torch.stack([getattr(one, name) for one in moments]) for name in TENSORS}
    return Moment(**rest, outputs=outputs)


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
        self.layer = DifferentiableTask(task, None, threads, on_nan="freeze")
        self.delays = torch.zeros(count, dtype=torch.int64)
        self._use(self._robots(count))
        self._delay(np.arange(count))
        self.now: Moment = self.layer.start(rng, count, ease)
        # as if they had begun at different times, so that they do not all end together
        self.now = self.now._replace(age=torch.from_numpy(rng.integers(0, task.limit, count)))
        self.seen: Tensor = task.observe(self.now)

    def step(self, action: Tensor) -> Outcome:
        """Hold actions (count, nu), and begin anew what is over."""
        before, now, terminated, over = self.advance(action)
        return Outcome(self.task.reward(before, now), self.task.observe(now), terminated, over)

    def advance(self, action: Tensor) -> Passage:
        """The same, but for what it is paid: push, hold actions, begin anew what is over, and see."""
        before = self.now
        self.now = self.layer.moved(self._pushed(before), action, self.delays if self._is_late else None)
        with torch.no_grad():
            terminated = self.task.fallen(self.now)
        passage = Passage(before, self.now, terminated, terminated | (self.now.age >= self.task.limit))
        if passage.over.any():
            self._begin(passage.over.numpy(), terminated.numpy())
        self.seen = self.task.observe(self.now)
        return passage

    def begin(self) -> None:
        """All environments anew and together, with episodes that have just begun."""
        self._use(self._robots(self.count))
        self._delay(np.arange(self.count))
        self.now = self.layer.start(self.rng, self.count, self.ease)
        self.seen = self.task.observe(self.now)

    def cut(self) -> None:
        """Gradients do not go back beyond here."""
        now = self.now
        outputs = {name: x.detach() for name, x in now.outputs.items()}
        self.now = now._replace(q=now.q.detach(), qd=now.qd.detach(), action=now.action.detach(), outputs=outputs)
        self.seen = self.seen.detach()

    # resets -------------------------------------------------------------------------------------------------------------

    def _robots(self, count: int) -> Model:
        """The model of so many robots of their own."""
        model = self.task.model
        if self.randomise is None:
            return model
        drawn = [self.randomise.draw(self.rng, model) for _ in range(count)]
        return model.replace({name: np.stack([one[name] for one in drawn]) for name in drawn[0]})

    def _use(self, model: Model) -> None:
        """Move the robots of a model."""
        self.layer.use(model)
        self.params = {name: x for name, x in model.params.items() if not model.is_shared(name)}

    @property
    def _is_late(self) -> bool:
        return self.randomise is not None and self.randomise.latency > 0

    def _delay(self, rows: np.ndarray) -> None:
        """How late actions arrive from now on in some environments."""
        if self.randomise is not None and self._is_late:
            drawn = torch.from_numpy(self.randomise.delays(self.rng, self.task.hold, len(rows)))
            self.delays = self.delays.index_put((torch.from_numpy(rows),), drawn)

    def _exchange(self, fresh: np.ndarray) -> Model:
        """Others in place of some robots. The model of those."""
        robots, model = self._robots(len(fresh)), self.task.model
        self._delay(fresh)
        if self.params:
            own = {name: x.copy() for name, x in self.params.items()}
            for name, x in own.items():
                x[fresh] = robots.params[name]
            self._use(model.with_params({**model.params, **own}, self.count))
        return robots

    def _pushed(self, now: Moment) -> Moment:
        if self.randomise is None or not self.randomise.push:
            return now
        kick = self.randomise.kick(self.rng, self.task.model, self.count)
        return now._replace(qd=now.qd + torch.from_numpy(kick)) if kick.any() else now

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
        state, now = self.task.start(self.rng, len(fresh)), self.now
        q, qd = (x.index_put(index, torch.from_numpy(new)) for x, new in ((now.q, state.q), (now.qd, state.qd)))
        action = now.action.index_fill(0, index[0], 0.0)
        begun = DifferentiableTask(self.task)
        begun.use(self._exchange(fresh))
        placed = begun.moment(*map(torch.from_numpy, state)).outputs
        outputs = {name: x.index_put(index, placed[name]) for name, x in now.outputs.items()}
        self.now = now._replace(q=q, qd=qd, action=action, outputs=outputs)

    # to go on another day -----------------------------------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Tensor], str]:
        """All that another batch needs to go on from here: tensors by name, and the generator's state as text."""
        now = self.now
        found = {name: getattr(now, name).detach() for name in TENSORS}
        found |= {f"outputs.{name}": x.detach() for name, x in now.outputs.items()} | {"delays": self.delays}
        found |= {f"params.{name}": torch.from_numpy(x.copy()) for name, x in self.params.items()}
        return found, json.dumps(self.rng.bit_generator.state)

    def restore(self, tensors: dict[str, Tensor], generator: str) -> None:
        parts: dict[str, Any] = {name: tensors[name] for name in TENSORS}
        parts["outputs"] = {name: tensors[f"outputs.{name}"] for name in self.task.outputs}
        self.now, self.delays = Moment(**parts), tensors["delays"]
        if self.params:
            own = {name: tensors[f"params.{name}"].numpy() for name in self.params}
            self._use(self.task.model.with_params({**self.task.model.params, **own}, self.count))
        self.rng.bit_generator.state = json.loads(generator)
        self.seen = self.task.observe(self.now)
