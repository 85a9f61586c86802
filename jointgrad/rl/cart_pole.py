"""Cart-pole swing-up: a pole that hangs from a cart is swung up and kept there by pushing the cart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..model import zoo
from ..model.arrays import State
from ..model.laws import Law
from ..model.world import World
from .arrays import Array, namespace, sum_of_squares
from .task import Moment, Task


@dataclass(frozen=True)
class CartPole(Task):
    """Paid for the height of the pole, less a little for distance from the middle and for pushing; ends off the track."""

    dt: float = 0.005
    hold: int = 4
    limit: int = 500
    law: Law | None = None
    force: float = 10.0  # N
    track: float = 3.0  # half its length, m
    place_cost_weight: float = 0.05
    ctrl_cost_weight: float = 0.01
    reset_noise_scale: float = 0.05

    name: ClassVar[str] = "cart-pole"

    def world(self) -> World:
        robot = zoo.cart_pole()
        for motor in robot.actuators.values():
            motor.gear, motor.control_limit = self.force, (-1.0, 1.0)
        return World().add(robot)

    def start(self, rng: np.random.Generator, batch: int) -> State:
        q, qd = (self.reset_noise_scale * rng.standard_normal((batch, 2)) for _ in range(2))
        return State(q + np.array([0.0, np.pi]), qd)

    def observe(self, now: Moment) -> Array:
        xp, place, angle = namespace(now.q), now.q[..., :1], now.q[..., 1:]
        return xp.concat((place, xp.cos(angle), xp.sin(angle), now.qd), axis=-1)

    def terms(self, before: Moment, now: Moment) -> dict[str, Array]:
        return {
            "reward_height": 0.5 + 0.5 * namespace(now.q).cos(now.q[..., 1]),
            "reward_place": -self.place_cost_weight * now.q[..., 0] ** 2,
            "reward_ctrl": -self.ctrl_cost_weight * sum_of_squares(now.action),
        }

    def fallen(self, now: Moment) -> Array:
        return namespace(now.q).abs(now.q[..., 0]) > self.track
