"""Many environments of a task that move together: states, ages, random numbers and parameters of each, in NumPy.

Every environment has a generator of its own: what happens in it does not depend on how many there are beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..engine.run.outputs import LOADS
from ..engine.run.rollout import rollout
from ..engine.run.runtime import check_finite, checked
from ..model.arrays import Model, State
from ..model.errors import InputError
from .randomise import Randomisation, late
from .task import Moment, Task, total

# age of an environment before its first episode
NOT_BEGUN = -1


class Result(NamedTuple):
    """What an action did, one row per environment: before any reset."""

    reward: np.ndarray
    terminated: np.ndarray
    info: Mapping[str, np.ndarray]


class Batch:
    """Environments of one task. `now` is their moment; `generators` and `model` may differ from one to the next."""

    def __init__(
        self, task: Task, count: int, randomise: Randomisation | None = None, threads: int | None = None
    ) -> None:
        if count < 1:
            raise InputError(f"there must be 1 environment or more, but {count} are asked for")
        self.task, self.count, self.randomise, self.threads = task, count, randomise, threads
        self.generators: list[np.random.Generator] = [np.random.default_rng() for _ in range(count)]
        self.model: Model = task.model
        self.now: Moment = task.blank(count)._replace(age=np.full(count, NOT_BEGUN))
        self._params: dict[str, np.ndarray] = {}
        self._delays = np.zeros(count, dtype=np.int64)

    def observe(self) -> np.ndarray:
        """What policies see; an array of its own, whatever the task gives."""
        return np.array(self.task.observe(self.now))

    def reset(self, rows: np.ndarray) -> None:
        """Begin an episode in the environments where `rows` (count,) is true."""
        chosen = np.flatnonzero(rows)
        if not len(chosen):
            return
        generators = [self.generators[k] for k in chosen]
        self._redraw(chosen, generators)
        now = self.now
        q, qd, age, action, goal = (x.copy() for x in (now.q, now.qd, now.age, now.action, now.goal))
        starts = [(*self.task.start(rng, 1), self.task.goals(rng, 1)) for rng in generators]
        q[chosen], qd[chosen], goal[chosen] = (np.concatenate(parts) for parts in zip(*starts, strict=True))
        age[chosen], action[chosen] = 0, 0.0
        self.now = Moment(q, qd, action, age, self._outputs_at_start(State(q, qd), chosen), goal)

    def step(self, action: Any, idle: np.ndarray | None = None) -> Result:
        """Move all environments under actions (count, nu), which `idle` rows ignore. Where numbers would not stay finite, the
        episode is over."""
        if (self.now.age == NOT_BEGUN).any():
            raise InputError(f"environment {self.now.age.argmin()} has not begun: reset it before the first step")
        before, task = self.now, self.task
        action = self._checked(action, idle)
        state, outputs, is_lost = self._moved(action)
        self.now = Moment(state.q, state.qd, action, before.age + 1, outputs, before.goal)
        terms = task.terms(before, self.now)
        self._push()
        terminated = task.fallen(self.now) | is_lost
        return Result(total(terms), terminated, {**terms, **task.measures(before, self.now)})

    def _moved(self, action: np.ndarray) -> tuple[State, dict[str, np.ndarray], np.ndarray]:
        """States and outputs after an action was held, and where numbers would not stay finite."""
        now, task = self.now, self.task
        loads = tuple(name for name in task.outputs if name in LOADS)
        u, hold = action[None], task.hold
        if self._delays.any():
            u, hold = late(now.action, action, self._delays, hold), 1
        motion = rollout(
            self.model,
            State(now.q, now.qd),
            u,
            hold=hold,
            outputs=loads,
            threads=self.threads,
            on_nan="freeze",
            keep=False,
        )
        found = {name: motion.outputs[name][-1] for name in loads} | self._placed(motion.last)
        return motion.last, found, motion.status >= 0

    def _placed(self, state: State) -> dict[str, np.ndarray]:
        """Outputs of states, whatever step led there: asked of the last one alone, for every one costs."""
        names = tuple(name for name in self.task.outputs if name not in LOADS)
        if not names:
            return {}
        found = rollout(self.model, state, steps=0, outputs=names, threads=self.threads, keep=False).outputs
        return {name: found[name][0] for name in names}

    def _checked(self, action: Any, idle: np.ndarray | None) -> np.ndarray:
        # a copy: the moment keeps it, and the caller may write the next one into the same array
        array = checked("action", np.array(action, dtype=np.float64), (self.count, self.task.model.nu))
        if idle is not None:
            array = np.where(idle[:, None], 0.0, array)
        check_finite("action", array)
        return array

    def _push(self) -> None:
        if self.randomise is not None and self.randomise.push:
            kicks = [self.randomise.kick(rng, self.task.model, 1) for rng in self.generators]
            self.now = self.now._replace(qd=self.now.qd + np.concatenate(kicks))

    def _redraw(self, chosen: np.ndarray, generators: Sequence[np.random.Generator]) -> None:
        """Other parameters for some environments."""
        if self.randomise is None:
            return
        for k, rng in zip(chosen, generators, strict=True):
            for name, value in self.randomise.draw(rng, self.task.model).items():
                if name not in self._params:
                    self._params[name] = np.repeat(self.task.model.params[name][None], self.count, 0)
                self._params[name][k] = value
            self._delays[k] = self.randomise.delays(rng, self.task.hold, 1)[0]
        self.model = self.task.model.replace(self._params)

    def _outputs_at_start(self, state: State, chosen: np.ndarray) -> dict[str, np.ndarray]:
        """Named outputs with those of some environments as they are before anything has moved."""
        names = self.task.outputs
        if not names:
            return {}
        placed, found = self._placed(state), {name: self.now.outputs[name].copy() for name in names}
        for name in names:
            found[name][chosen] = placed[name][chosen] if name in placed else 0.0
        return found
