"""Robots that run in a plane: half-cheetah, hopper and walker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .arrays import Array, chosen, namespace
from .gymnasium_task import GymnasiumTask
from .task import Moment


@dataclass(frozen=True)
class HalfCheetah(GymnasiumTask):
    """HalfCheetah-v5: run to the right; nothing ends an episode but time."""

    name: ClassVar[str] = "half-cheetah"
    file: ClassVar[str] = "half_cheetah.xml"


@dataclass(frozen=True)
class _Upright(GymnasiumTask):
    """A robot that must stay up: paid for every action after which it does."""

    dt: float = 0.002
    hold: int = 4
    ctrl_cost_weight: float = 1e-3
    healthy_reward: float = 1.0
    terminate_when_unhealthy: bool = True
    healthy_z_range: tuple[float, float] = (0.7, float("inf"))
    healthy_angle_range: tuple[float, float] = (-0.2, 0.2)
    reset_noise_scale: float = 5e-3

    def speed_noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return self._uniform(rng, shape)

    def observe(self, now: Moment) -> Array:
        xp = namespace(now.q)
        return xp.concat((self.posture(now), xp.clip(now.qd, -10.0, 10.0)), axis=-1)

    def healthy(self, now: Moment) -> Array:
        z, angle = now.q[..., 1], now.q[..., 2]
        return _between(z, self.healthy_z_range) & _between(angle, self.healthy_angle_range)

    def terms(self, before: Moment, now: Moment) -> dict[str, Array]:
        found = super().terms(before, now)
        alive = chosen(self.healthy(now), self.healthy_reward, found["reward_forward"])
        return {"reward_forward": found["reward_forward"], "reward_survive": alive, "reward_ctrl": found["reward_ctrl"]}

    def fallen(self, now: Moment) -> Array:
        return ~self.healthy(now) & self.terminate_when_unhealthy


@dataclass(frozen=True)
class Hopper(_Upright):
    """Hopper-v5: hop to the right on one leg."""

    healthy_state_range: tuple[float, float] = (-100.0, 100.0)

    name: ClassVar[str] = "hopper"
    file: ClassVar[str] = "hopper.xml"

    def healthy(self, now: Moment) -> Array:
        xp = namespace(now.q)
        state = xp.concat((now.q[..., 2:], now.qd), axis=-1)
        return super().healthy(now) & xp.all(_between(state, self.healthy_state_range), axis=-1)


@dataclass(frozen=True)
class Walker(_Upright):
    """Walker2d-v5: walk to the right on two legs."""

    healthy_z_range: tuple[float, float] = (0.8, 2.0)
    healthy_angle_range: tuple[float, float] = (-1.0, 1.0)

    name: ClassVar[str] = "walker"
    file: ClassVar[str] = "walker2d_v5.xml"


def _between(x: Array, bounds: tuple[float, float]) -> Array:
    """Strictly; what is not a number is not."""
    return (bounds[0] < x) & (x < bounds[1])
