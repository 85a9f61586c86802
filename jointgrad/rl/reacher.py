"""Reacher-v5: an arm of two links in a plane brings its tip to a target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..model.arrays import State
from .arrays import Array, namespace, sum_of_squares
from .gymnasium_task import GymnasiumTask
from .task import Moment

# the target lies in a circle of this radius, m
REACH = 0.2


@dataclass(frozen=True)
class Reacher(GymnasiumTask):
    """As gymnasium's: the target is a body whose two coordinates are part of the state."""

    hold: int = 2
    limit: int = 50
    reward_dist_weight: float = 1.0
    ctrl_cost_weight: float = 1.0

    name: ClassVar[str] = "reacher"
    file: ClassVar[str] = "reacher.xml"
    outputs: ClassVar[tuple[str, ...]] = ("link.position",)

    def start(self, rng: np.random.Generator, batch: int) -> State:
        rest = self.model.initial_state(batch)
        q = rng.uniform(-self.reset_noise_scale, self.reset_noise_scale, rest.q.shape) + rest.q
        q[:, -2:] = [_target(rng) for _ in range(batch)]
        qd = rest.qd + rng.uniform(-0.005, 0.005, rest.qd.shape)
        qd[:, -2:] = 0.0
        return State(q, qd)

    def gap(self, now: Moment) -> Array:
        """From the target to the tip, (batch, 3)."""
        place, model = now.outputs["link.position"], self.model
        return place[..., model.link("fingertip"), :] - place[..., model.link("target"), :]

    def observe(self, now: Moment) -> Array:
        xp, angles = namespace(now.q), now.q[..., :2]
        parts = (xp.cos(angles), xp.sin(angles), now.q[..., 2:], now.qd[..., :2], self.gap(now)[..., :2])
        return xp.concat(parts, axis=-1)

    def terms(self, before: Moment, now: Moment) -> dict[str, Array]:
        return {
            "reward_dist": -self.reward_dist_weight * self.distance(now),
            "reward_ctrl": -self.ctrl_cost_weight * sum_of_squares(now.action),
        }

    def distance(self, now: Moment) -> Array:
        gap = self.gap(now)
        return namespace(gap).sqrt(sum_of_squares(gap))

    def measures(self, before: Moment, now: Moment) -> dict[str, Array]:
        return {"distance": self.distance(now)}


def _target(rng: np.random.Generator) -> np.ndarray:
    """A point in the circle, by throwing at the square about it."""
    while True:
        target = rng.uniform(-REACH, REACH, 2)
        if np.linalg.norm(target) < REACH:
            return target
