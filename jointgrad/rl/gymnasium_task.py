"""Tasks whose robots, observations and rewards are those of gymnasium's MuJoCo environments, version 5.

Options have the names they have there. The files come with the package gymnasium, whose Python is not imported here.
"""

from __future__ import annotations

import importlib.util
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from ..files import load_world
from ..model.arrays import State
from ..model.errors import ModelError, UnsupportedWarning
from ..model.world import World
from .arrays import Array, namespace, sum_of_squares
from .task import Moment, Task


def robot_file(name: str) -> Path:
    """A robot of gymnasium's, where the package is installed."""
    spec = importlib.util.find_spec("gymnasium")
    if spec is None or not spec.submodule_search_locations:
        raise ModelError(f"{name} comes with the package gymnasium, which is not installed: pip install jointgrad[rl]")
    return Path(spec.submodule_search_locations[0]) / "envs" / "mujoco" / "assets" / name


@dataclass(frozen=True)
class GymnasiumTask(Task):
    """What those tasks share: a file, starts near its pose, a price for controls."""

    # MuJoCo's own steps take joint damping implicitly too; at 3 ms the humanoid's would be unstable otherwise
    integrator: str = "implicit_damping"
    forward_reward_weight: float = 1.0
    ctrl_cost_weight: float = 0.1
    reset_noise_scale: float = 0.1
    exclude_current_positions_from_observation: bool = True

    file: ClassVar[str] = ""
    # coordinates that say where the robot is, not how it stands
    n_places: ClassVar[int] = 1

    def world(self) -> World:
        with warnings.catch_warnings():
            # lights, cameras and textures
            warnings.simplefilter("ignore", UnsupportedWarning)
            return load_world(robot_file(self.file))

    def start(self, rng: np.random.Generator, batch: int) -> State:
        rest = self.model.initial_state(batch)
        q = rest.q + self._uniform(rng, rest.q.shape)
        return State(q, rest.qd + self.speed_noise(rng, rest.qd.shape))

    def speed_noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return self.reset_noise_scale * rng.standard_normal(shape)

    def _uniform(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return rng.uniform(-self.reset_noise_scale, self.reset_noise_scale, shape)

    def posture(self, now: Moment) -> Array:
        """Coordinates that a policy sees."""
        return now.q[..., self.n_places :] if self.exclude_current_positions_from_observation else now.q

    def observe(self, now: Moment) -> Array:
        return namespace(now.q).concat((self.posture(now), now.qd), axis=-1)

    def forward_speed(self, before: Moment, now: Moment) -> Array:
        """Mean over the action, m/s."""
        return (now.q[..., 0] - before.q[..., 0]) / self.control_dt

    def terms(self, before: Moment, now: Moment) -> dict[str, Array]:
        return {
            "reward_forward": self.forward_reward_weight * self.forward_speed(before, now),
            "reward_ctrl": -self.ctrl_cost_weight * sum_of_squares(now.action),
        }

    def measures(self, before: Moment, now: Moment) -> dict[str, Array]:
        return {"x_position": now.q[..., 0], "x_velocity": self.forward_speed(before, now)}
