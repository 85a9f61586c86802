"""Humanoid-v5: two legs run along x; the policy sees masses, velocities and forces of all links."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from ..model.world import World
from .about_centre import LOADS, POSES, centre, inertias, velocities, wrenches
from .arrays import Array, chosen, flat, like, namespace, sum_of_squares
from .gymnasium_task import GymnasiumTask
from .task import Moment


@dataclass(frozen=True)
class Humanoid(GymnasiumTask):
    """As gymnasium's. Inertias in the observation are the model's own, also where environments have other masses."""

    dt: float = 0.003
    forward_reward_weight: float = 1.25
    contact_cost_weight: float = 5e-7
    contact_cost_range: tuple[float, float] = (float("-inf"), 10.0)
    healthy_reward: float = 5.0
    terminate_when_unhealthy: bool = True
    healthy_z_range: tuple[float, float] = (1.0, 2.0)
    reset_noise_scale: float = 1e-2
    include_cinert_in_observation: bool = True
    include_cvel_in_observation: bool = True
    include_qfrc_actuator_in_observation: bool = True
    include_cfrc_ext_in_observation: bool = True

    name: ClassVar[str] = "humanoid"
    file: ClassVar[str] = "humanoid.xml"
    n_places: ClassVar[int] = 2
    outputs: ClassVar[tuple[str, ...]] = (*POSES, "link.velocity", *LOADS)

    def world(self) -> World:
        # thighs overlap the hip in the pose of the file: hard contact would drive them apart
        return super().world().pair("butt", "*_thigh1", contact=None)

    def speed_noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return self._uniform(rng, shape)

    def observe(self, now: Moment) -> Array:
        model, outputs = self.model, now.outputs
        parts = [super().observe(now)]
        # the first link is the ground's
        if self.include_cinert_in_observation:
            parts.append(flat(inertias(model, outputs)[..., 1:, :]))
        if self.include_cvel_in_observation:
            parts.append(flat(velocities(model, outputs)[..., 1:, :]))
        if self.include_qfrc_actuator_in_observation:
            parts.append(self.motor_torques(now.action))
        if self.include_cfrc_ext_in_observation:
            parts.append(flat(wrenches(model, outputs)[..., 1:, :]))
        return namespace(now.q).concat(parts, axis=-1)

    def motor_torques(self, action: Array) -> Array:
        """At the joints in the order of their rates, (batch, nv - 6)."""
        xp = namespace(action)
        low, high = (like(action, limit) for limit in self.action_limits)
        return xp.minimum(xp.maximum(action, low), high) @ like(action, self._gears)

    @cached_property
    def _gears(self) -> np.ndarray:
        """Torque at each joint per unit of each control, (nu, nv - 6)."""
        gears = np.zeros((self.model.nu, self.model.nv))
        gears[np.arange(self.model.nu), self.model.topology.tree["actuator_dof"]] = self.model.params["actuator.gear"]
        return gears[:, 6:]

    def forward_speed(self, before: Moment, now: Moment) -> Array:
        """Of the centre of mass, mean over the action, m/s."""
        way = centre(self.model, now.outputs) - centre(self.model, before.outputs)
        return way[..., 0] / self.control_dt

    def healthy(self, now: Moment) -> Array:
        low, high = self.healthy_z_range
        return (low < now.q[..., 2]) & (now.q[..., 2] < high)

    def terms(self, before: Moment, now: Moment) -> dict[str, Array]:
        found = super().terms(before, now)
        cost = self.contact_cost_weight * sum_of_squares(flat(wrenches(self.model, now.outputs)[..., 1:, :]))
        return {
            "reward_forward": found["reward_forward"],
            "reward_survive": chosen(self.healthy(now), self.healthy_reward, cost),
            "reward_ctrl": found["reward_ctrl"],
            "reward_contact": -namespace(cost).clip(cost, *self.contact_cost_range),
        }

    def fallen(self, now: Moment) -> Array:
        return ~self.healthy(now) & self.terminate_when_unhealthy

    def measures(self, before: Moment, now: Moment) -> dict[str, Array]:
        return {**super().measures(before, now), "y_position": now.q[..., 1]}
