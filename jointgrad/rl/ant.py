"""Ant-v5: four legs run along x."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .about_centre import LOADS, POSES, centre, wrenches
from .arrays import Array, chosen, flat, namespace, sum_of_squares
from .gymnasium_task import GymnasiumTask
from .task import Moment


@dataclass(frozen=True)
class Ant(GymnasiumTask):
    """As gymnasium's. Without contact forces in observation and reward (`include_cfrc_ext_in_observation=False`,
    `contact_cost_weight=0`) the engine need not return them, and steps are cheaper."""

    ctrl_cost_weight: float = 0.5
    contact_cost_weight: float = 5e-4
    healthy_reward: float = 1.0
    terminate_when_unhealthy: bool = True
    healthy_z_range: tuple[float, float] = (0.2, 1.0)
    contact_force_range: tuple[float, float] = (-1.0, 1.0)
    include_cfrc_ext_in_observation: bool = True

    name: ClassVar[str] = "ant"
    file: ClassVar[str] = "ant.xml"
    n_places: ClassVar[int] = 2

    @property
    def outputs(self) -> tuple[str, ...]:  # type: ignore[override]
        is_felt = self.include_cfrc_ext_in_observation or self.contact_cost_weight != 0
        return (*POSES, *LOADS) if is_felt else ()

    def contact_forces(self, now: Moment) -> Array:
        """Torques and forces on the links, (batch, 13 links, 6), cut; the first link is the ground's."""
        found = wrenches(self.model, now.outputs)[..., 1:, :]
        return namespace(found).clip(found, *self.contact_force_range)

    def observe(self, now: Moment) -> Array:
        seen = super().observe(now)
        if not self.include_cfrc_ext_in_observation:
            return seen
        return namespace(seen).concat((seen, flat(self.contact_forces(now))), axis=-1)

    def healthy(self, now: Moment) -> Array:
        xp, z, (low, high) = namespace(now.q), now.q[..., 2], self.healthy_z_range
        is_finite = xp.all(xp.isfinite(xp.concat((now.q, now.qd), axis=-1)), axis=-1)
        return is_finite & (low <= z) & (z <= high)

    def terms(self, before: Moment, now: Moment) -> dict[str, Array]:
        found = super().terms(before, now)
        alive = chosen(self.healthy(now), self.healthy_reward, found["reward_forward"])
        found = {
            "reward_forward": found["reward_forward"],
            "reward_survive": alive,
            "reward_ctrl": found["reward_ctrl"],
        }
        if self.contact_cost_weight != 0:
            found["reward_contact"] = -self.contact_cost_weight * sum_of_squares(flat(self.contact_forces(now)))
        return found

    def fallen(self, now: Moment) -> Array:
        return ~self.healthy(now) & self.terminate_when_unhealthy

    def over_as_seen(self, seen: Array) -> Array:
        if not self.exclude_current_positions_from_observation:
            return super().over_as_seen(seen)
        low, high = self.healthy_z_range
        return ~((low <= seen[..., 0]) & (seen[..., 0] <= high)) & self.terminate_when_unhealthy

    def measures(self, before: Moment, now: Moment) -> dict[str, Array]:
        return {**super().measures(before, now), "y_position": now.q[..., 1]}


@dataclass(frozen=True)
class ReleasedAnt(Ant):
    """The ant of the code released with Qiao 2021: rates are seen at a twentieth, and progress is that of the centre of mass. Its
    joint limits are springs there and hard stops here, and its steps are Runge-Kutta's there."""

    contact_cost_weight: float = 0.0
    include_cfrc_ext_in_observation: bool = False

    name: ClassVar[str] = "released-ant"

    @property
    def outputs(self) -> tuple[str, ...]:  # type: ignore[override]
        return POSES

    def observe(self, now: Moment) -> Array:
        return namespace(now.q).concat((self.posture(now), 0.05 * now.qd), axis=-1)

    def forward_speed(self, before: Moment, now: Moment) -> Array:
        places = [centre(self.model, one.outputs)[..., 0] for one in (before, now)]
        return (places[1] - places[0]) / self.control_dt
