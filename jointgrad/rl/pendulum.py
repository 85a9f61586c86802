"""The n-link pendulum of Qiao 2021 (section 5.2, table 4): bring the tip to the highest point there is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..model import zoo
from ..model.arrays import State
from ..model.errors import InputError
from ..model.laws import Law
from ..model.world import World
from ..model.zoo.arms import LINK
from .arrays import Array, namespace
from .task import Moment, Task

REWARDS = ("paper", "released")


@dataclass(frozen=True)
class Pendulum(Task):
    """Links of 0.5 m, horizontal and at rest at the start, 10 N m at each joint, 100 actions of 1/60 s.

    The paper pays for progress, d_before^2 - d^2 with d from the tip to its goal (equation 15, whose sign is printed the
    other way round); the code released with it takes another d^2 away after the last action. An action is held over five
    Runge-Kutta steps: single steps of 1/60 s, as released, gain energy that no motor gave (docs/decisions/0004).
    """

    dt: float = 1 / 300
    limit: int = 100
    law: Law | None = None
    integrator: str = "rk4"
    links: int = 1
    torque: float = 10.0
    pay: str = "paper"

    name: ClassVar[str] = "pendulum"

    def __post_init__(self) -> None:
        if self.pay not in REWARDS:
            raise InputError(f"pay must be one of {', '.join(REWARDS)}, but is {self.pay!r}")
        if self.links < 1:
            raise InputError(f"links must be 1 or more, but is {self.links}")

    def world(self) -> World:
        robot = zoo.pendulum(self.links)
        for motor in robot.actuators.values():
            motor.gear, motor.control_limit = self.torque, (-1.0, 1.0)
        return World(gravity=(0.0, 0.0, -9.8)).add(robot)

    def start(self, rng: np.random.Generator, batch: int) -> State:
        return self.model.initial_state(batch)

    def ends(self, now: Moment) -> tuple[Array, Array]:
        """Of the links, along y and z, (batch, links) each; the last is the tip."""
        xp = namespace(now.q)
        angle = xp.cumsum(now.q, axis=-1)
        return LINK * xp.cumsum(xp.cos(angle), axis=-1), LINK * xp.cumsum(xp.sin(angle), axis=-1)

    def observe(self, now: Moment) -> Array:
        """Rates, where the links end, and the share of the episode that is over."""
        share = ((now.age + 0 * now.q[..., 0]) / self.limit)[..., None]
        return namespace(now.q).concat((now.qd, *self.ends(now), share), axis=-1)

    def over_as_seen(self, seen: Array) -> Array:
        return seen[..., -1] > 1.0 - 0.5 / self.limit

    def squared_distance(self, now: Moment) -> Array:
        y, z = self.ends(now)
        return y[..., -1] ** 2 + (z[..., -1] - LINK * self.links) ** 2

    def terms(self, before: Moment, now: Moment) -> dict[str, Array]:
        d = self.squared_distance(now)
        found = {"reward_progress": self.squared_distance(before) - d}
        if self.pay == "released":
            found["reward_end"] = -d * (now.age == self.limit)
        return found

    def measures(self, before: Moment, now: Moment) -> dict[str, Array]:
        return {"distance": namespace(now.q).sqrt(self.squared_distance(now))}
