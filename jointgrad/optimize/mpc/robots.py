"""Quadrupeds that the controller knows, in one table, and what it needs of their models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...engine.looks.inspect import inspect
from ...model import zoo
from ...model.arrays import Model, State
from ...model.description import Description
from ...model.errors import InputError
from ...model.world import World
from .legs import Legs, legs_of


@dataclass(frozen=True)
class Quadruped:
    """A robot's own numbers. Legs in the order of its actuators.

    height: of the body's origin above the ground where it walks (m); stiffness (N m/rad) and damping (N m s/rad) of the servos of
    swinging legs, (3,): hip, thigh, knee.
    """

    name: str
    make: Callable[[], Description]
    places: tuple[str, str, str, str]
    foot_names: tuple[str, str, str, str]
    foot_radius: float
    height: float
    stiffness: tuple[float, float, float]
    damping: tuple[float, float, float]
    armature: float = 0.01

    def description(self, payload: float = 0.0) -> Description:
        """The robot, standing at its height, with the inertia of its motors, and a load (kg) in the middle of its body."""
        robot = self.make()
        next(iter(robot.links.values())).mass += payload
        angles = self.stance
        for k, motor in enumerate(robot.actuators.values()):
            joint = robot.joints[motor.joint]
            joint.initial, joint.armature = float(angles.flat[k]), max(joint.armature, self.armature)
        return robot

    def add_to(self, world: World, payload: float = 0.0) -> World:
        """Stand it on the ground at the origin, under the name "dog"."""
        return world.add(self.description(payload), name="dog", position=(0.0, 0.0, self.height), base="free")

    @property
    def feet(self) -> tuple[str, ...]:
        """Names of the foot links in a world."""
        return tuple(f"dog/{name}" for name in self.foot_names)

    @cached_property
    def _alone(self) -> Model:
        return World().add(self.make(), name="dog").compile(dt=1e-3, contact=None)

    @cached_property
    def legs(self) -> Legs:
        return legs_of(self._alone, self.feet)

    @cached_property
    def hips(self) -> np.ndarray:
        """Where feet stand by default, in the axes of the body: beside their hips, on the ground (4, 3)."""
        legs = self.legs
        under = legs.hip.copy()
        under[:, 1] += legs.thigh[:, 1] + legs.shank[:, 1] + legs.foot[:, 1]
        under[:, 2] = self.foot_radius - self.height
        return under

    @cached_property
    def stance(self) -> np.ndarray:
        """Angles (4, 3) that put the feet there."""
        return self.legs.angles(self.hips)

    @cached_property
    def rigid(self) -> tuple[float, np.ndarray, np.ndarray]:
        """Mass, centre of mass in the body's axes and inertia about it, of the robot frozen in its stance."""
        q = np.concatenate(([0.0, 0, 0, 1, 0, 0, 0], self.stance.ravel()))
        seen, params = inspect(self._alone, State(q, np.zeros(18))), self._alone.params
        mass, R = params["link.mass"], seen.link_rotation
        at = seen.link_position + np.einsum("nij,nj->ni", R, params["link.com"])
        centre = mass @ at / mass.sum()
        xx, xy, xz, yy, yz, zz = params["link.inertia"].T
        own = np.stack((xx, xy, xz, xy, yy, yz, xz, yz, zz), -1).reshape(-1, 3, 3)
        arm = at - centre
        moved = np.einsum(
            "n,nij->ij", mass, np.eye(3) * (arm**2).sum(1)[:, None, None] - arm[:, :, None] * arm[:, None]
        )
        return float(mass.sum()), centre, np.einsum("nij,njk,nlk->il", R, own, R) + moved


ROBOTS = {
    r.name: r
    for r in (
        Quadruped(
            "laikago", zoo.laikago, ("FR", "FL", "RR", "RL"), ("toeFR", "toeFL", "toeRR", "toeRL"), 0.03, 0.44,
            (220.0, 220.0, 220.0), (2.0, 2.0, 2.0),
        ),
        Quadruped(
            "a1", zoo.a1, ("FR", "FL", "RR", "RL"), ("FR_foot", "FL_foot", "RR_foot", "RL_foot"), 0.02, 0.27,
            (100.0, 100.0, 100.0), (1.5, 1.5, 1.5),
        ),
        Quadruped(
            "go2", zoo.go2, ("FL", "FR", "RL", "RR"), ("FL_foot", "FR_foot", "RL_foot", "RR_foot"), 0.022, 0.30,
            (100.0, 100.0, 100.0), (1.5, 1.5, 1.5),
        ),
    )
}  # fmt: skip


def quadruped(name: str) -> Quadruped:
    """By name."""
    if name not in ROBOTS:
        raise InputError(f"there is no quadruped {name!r} with a controller; there are {', '.join(ROBOTS)}")
    return ROBOTS[name]
