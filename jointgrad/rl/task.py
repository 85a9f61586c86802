"""A task: a robot in its world, what a policy sees of it, what it is paid for, and when an episode has failed.

A task is written once, as functions of arrays with one row per environment. NumPy, PyTorch and JAX arrays are taken alike,
so that the same lines serve a gymnasium environment and a gradient.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..engine.run.outputs import OUTPUTS
from ..model.arrays import Model, State
from ..model.errors import InputError
from ..model.laws import Impulse, Law
from ..model.world import World
from .arrays import Array


class Moment(NamedTuple):
    """All that a task may look at, one row per environment.

    q (batch, nq), qd (batch, nv); action (batch, nu) that led here, zero at the start; age (batch,), how many actions there
    were; outputs, those that the task asks for, by name, (batch, n_links, ...); goal (batch, n_goals), what was drawn for the
    episode to reach, such as a speed.
    """

    q: Array
    qd: Array
    action: Array
    age: Array
    outputs: Mapping[str, Array]
    goal: Array


class Step(NamedTuple):
    """What an action led to in a differentiable step; nothing is reset."""

    now: Moment
    observation: Array
    reward: Array
    terminated: Array


def total(terms: Mapping[str, Array]) -> Array:
    """The reward that terms make together, in their order."""
    return functools.reduce(operator.add, terms.values())


@dataclass(frozen=True)
class Task:
    """What all tasks have. Fields are options; those here pin the simulation, and `digest` tells when they differ."""

    dt: float = 0.01  # s
    hold: int = 5  # steps of the simulation over which an action is held
    limit: int = 1000  # actions in an episode
    law: Law | None = Impulse(sweeps=20)
    integrator: str = "semi_implicit"

    name: ClassVar[str] = ""
    outputs: ClassVar[tuple[str, ...]] = ()
    n_goals: ClassVar[int] = 0

    # what a task says of itself -----------------------------------------------------------------------------------------

    def world(self) -> World:
        """The robot in its surroundings; its actuators' control limits are the limits of an action."""
        raise NotImplementedError

    def start(self, rng: np.random.Generator, batch: int) -> State:
        """States in which episodes begin."""
        raise NotImplementedError

    def goals(self, rng: np.random.Generator, batch: int, ease: float = 0.0) -> np.ndarray:
        """What episodes are to reach, (batch, n_goals); nothing, unless a task says otherwise. ease: 1 asks for what is learned
        first, 0 for the whole task."""
        return np.zeros((batch, self.n_goals))

    def goal_ranges(self) -> dict[str, tuple[float, float]]:
        """Lowest and highest of the first parts of a goal, by name: what a hand may command. Nothing, unless a task says so."""
        return {}

    def observe(self, now: Moment) -> Array:
        """What a policy sees, (batch, n)."""
        raise NotImplementedError

    def terms(self, before: Moment, now: Moment) -> dict[str, Array]:
        """The parts of the reward by name, (batch,) each."""
        raise NotImplementedError

    def fallen(self, now: Moment) -> Array:
        """Where an episode has failed, (batch,), true or false; nowhere, unless a task says otherwise."""
        return now.age < 0

    def over_as_seen(self, seen: Array) -> Array:
        """Where an episode is over, (batch,), as far as an observation tells: for models that know nothing else."""
        if type(self).fallen is not Task.fallen:
            raise InputError(f"{self.name} does not say by what is seen when an episode has failed: write over_as_seen")
        return seen[..., 0] != seen[..., 0]

    def measures(self, before: Moment, now: Moment) -> dict[str, Array]:
        """What one may want to know beside the reward, (batch,) each."""
        return {}

    # what follows from it -----------------------------------------------------------------------------------------------

    def reward(self, before: Moment, now: Moment) -> Array:
        """What the action between two moments is worth, (batch,)."""
        return total(self.terms(before, now))

    @functools.cached_property
    def model(self) -> Model:
        return self.world().compile(dt=self.dt, contact=self.law, integrator=self.integrator)

    @property
    def control_dt(self) -> float:
        """Seconds from one action to the next."""
        return self.dt * self.hold

    @property
    def action_limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Lowest and highest action, (nu,) each."""
        low, high = self.model.params["actuator.control_limit"].T
        return low, high

    @functools.cached_property
    def n_observations(self) -> int:
        return self.observe(self.blank(1)).shape[-1]

    def blank(self, batch: int) -> Moment:
        """The moment in which the world was described, with zeros for outputs."""
        state, n = self.model.initial_state(batch), self.model.n_links
        outputs = {name: np.zeros((batch, n, *OUTPUTS[name])) for name in self.outputs}
        action, age = np.zeros((batch, self.model.nu)), np.zeros(batch, dtype=np.int64)
        return Moment(state.q, state.qd, action, age, outputs, np.zeros((batch, self.n_goals)))

    # which simulation it is ---------------------------------------------------------------------------------------------

    def options(self) -> dict[str, Any]:
        """Fields by name."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def settings(self) -> dict[str, Any]:
        """All that a policy learned with: options, what may touch, armatures, and a digest of the whole model."""
        return {
            "task": self.name, **self.options(), "law": repr(self.law), "touching": list(self.model.pair_names),
            "armature": self.model.params["joint.armature"].tolist(), "digest": self.digest,
        }  # fmt: skip

    def __getstate__(self) -> dict[str, Any]:
        """Options alone go to another process: the model is compiled there."""
        return self.options()

    @property
    def digest(self) -> str:
        """The same for the same robot, world, law and steps, and for nothing else."""
        model, found = self.model, hashlib.sha256()
        t = model.topology
        names = (t.link_names, t.joint_names, t.actuator_names, t.shape_names, t.pair_names)
        for part in (self.name, self.hold, repr(self.law), sorted(t.tree.items()), names):
            found.update(repr(part).encode())
        for name, values in sorted(model.params.items()):
            found.update(name.encode() + values.tobytes())
        return found.hexdigest()
