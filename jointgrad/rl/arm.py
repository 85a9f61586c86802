"""An arm of seven joints that reaches for points in space, or throws a ball onto a mark on the ground.

Servos hold its joints at a pose, against gravity; an action moves their targets. Motors are as strong as the real arm's.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ..engine.looks.inspect import inspect
from ..model import zoo
from ..model.arrays import State
from ..model.description import Description, Link, Shape
from ..model.laws import Impulse, Law
from ..model.world import World
from .arrays import Array, like, namespace, sum_of_squares
from .task import Moment, Task

POSE = (0.0, -0.3, 0.0, -2.0, 0.0, 1.7, 0.785)
STIFFNESS, DAMPING = (400.0,) * 4 + (100.0,) * 3, (40.0,) * 4 + (10.0,) * 3  # of the servos, N m/rad and N m s/rad
ARM = len(POSE)
GRASP = (0.0, 0.0, 0.105)  # between the fingers, in the frame of the hand, m
GRIP = 140.0  # N, of the real hand
BALL_AHEAD = 0.0434  # from the fingers' frames, along them, m
ROLLING = 0.003  # of the ball on the ground, m


def servo_arm(reach: float) -> Description:
    """The arm in its pose, with a servo for every joint of it."""
    robot = zoo.franka_arm()
    for k, (angle, holding) in enumerate(zip(POSE, _holding(), strict=True)):
        joint, motor = robot.joint(f"joint{k + 1}"), robot.actuators[f"joint{k + 1}"]
        joint.initial, joint.armature = angle, 0.1
        # force = stiffness (rest + reach action - q) - damping qd + holding
        motor.gain, motor.control_limit = reach * STIFFNESS[k], (-1.0, 1.0)
        motor.bias = (STIFFNESS[k] * angle + holding, -STIFFNESS[k], -DAMPING[k])
    return robot


@functools.cache
def _holding() -> tuple[float, ...]:
    """Torques that hold the arm in its pose against gravity."""
    robot = zoo.franka_arm()
    for k, angle in enumerate(POSE):
        robot.joint(f"joint{k + 1}").initial = angle
    model = World().add(robot).compile(dt=0.01, contact=None)
    return tuple(inspect(model, model.initial_state()).bias[:ARM].tolist())


def _without_ball(robot: Description) -> Description:
    """Fingers welded to the hand, and nothing that could touch."""
    del robot.links["ball"], robot.joints["ball_joint"]
    for number in (1, 2):
        robot.joint(f"finger_joint{number}").kind = "fixed"
        del robot.actuators[f"finger_joint{number}"]
    for link in robot.links.values():
        link.shapes = _seen_only(link)
    return robot


def _seen_only(link: Link) -> list[Shape]:
    return [replace(shape, role="visual") for shape in link.shapes]


@dataclass(frozen=True)
class Reach(Task):
    """Bring the middle between the fingers to a point, drawn in a box in front of the arm, and keep it there."""

    dt: float = 0.005
    hold: int = 4
    limit: int = 100
    law: Law | None = None
    reach: float = 1.0  # how far an action of 1 moves a target, rad
    box: tuple[float, ...] = (0.3, 0.6, -0.3, 0.3, 0.2, 0.7)  # where goals lie: x, y and z, m
    ctrl_cost_weight: float = 0.01
    reset_noise_scale: float = 0.1

    name: ClassVar[str] = "reach"
    outputs: ClassVar[tuple[str, ...]] = ("link.position", "link.rotation")
    n_goals: ClassVar[int] = 3

    def world(self) -> World:
        return World().add(_without_ball(servo_arm(self.reach)))

    def start(self, rng: np.random.Generator, batch: int) -> State:
        rest = self.model.initial_state(batch)
        q, qd = (x + self.reset_noise_scale * rng.uniform(-1.0, 1.0, x.shape) for x in rest)
        return State(q, qd)

    def goals(self, rng: np.random.Generator, batch: int, ease: float = 0.0) -> np.ndarray:
        low, high = np.reshape(self.box, (3, 2)).T
        return rng.uniform(low, high, (batch, 3))

    def hand(self, now: Moment) -> Array:
        """The middle between the fingers, (batch, 3)."""
        k, place, turn = self.model.link("hand"), now.outputs["link.position"], now.outputs["link.rotation"]
        return place[..., k, :] + turn[..., k, :, :] @ like(place, GRASP)

    def observe(self, now: Moment) -> Array:
        hand = self.hand(now)
        parts = (now.q, 0.2 * now.qd, hand, now.goal, now.goal - hand, now.action)
        return namespace(now.q).concat(parts, axis=-1)

    def distance(self, now: Moment) -> Array:
        # one micrometre, so that the slope is finite at the goal itself
        return namespace(now.q).sqrt(sum_of_squares(self.hand(now) - now.goal) + 1e-12)

    def terms(self, before: Moment, now: Moment) -> dict[str, Array]:
        return {
            "reward_distance": -self.distance(now),
            "reward_ctrl": -self.ctrl_cost_weight * sum_of_squares(now.action),
        }

    def measures(self, before: Moment, now: Moment) -> dict[str, Array]:
        return {"distance": self.distance(now)}


@dataclass(frozen=True)
class Throw(Task):
    """Throw a ball that is held between two fingers onto a mark on the ground, drawn ahead of the arm. Paid for the ball's way
    towards the mark. The last two parts of an action press the fingers: together at 0, apart from 1/3 on."""

    dt: float = 0.002
    hold: int = 10
    limit: int = 75
    law: Law | None = Impulse(sweeps=20, margin=4e-3)
    reach: float = 1.5  # how far an action of 1 moves a target, rad
    near: float = 0.8  # how far ahead marks lie, m
    far: float = 1.6
    aside: float = 0.3
    ctrl_cost_weight: float = 1e-3

    name: ClassVar[str] = "throw"
    n_goals: ClassVar[int] = 2

    def world(self) -> World:
        robot = servo_arm(self.reach)
        for number in (1, 2):
            motor = robot.actuators[f"finger_joint{number}"]
            motor.gain, motor.bias, motor.control_limit = 1.5 * GRIP, (-0.5 * GRIP, 0.0, 0.0), (-1.0, 1.0)
            motor.force_limit = (-GRIP, GRIP)
            # without it nothing would hold the pair of fingers in the middle of the hand
            robot.joint(f"finger_joint{number}").damping = 100.0
        for name, link in robot.links.items():
            if name != "ball" and not name.endswith("finger"):
                link.shapes = _seen_only(link)
        world = World().add(robot).add_ground(friction=0.7)
        world.pair("*", "*", contact=None)
        world.pair("ball", "*finger", contact=self.law, friction=1.0)
        return world.pair("ball", "ground", contact=self.law, friction=0.7, torsion=ROLLING, rolling=ROLLING)

    @functools.cached_property
    def _held(self) -> State:
        """The ball in the middle between the fingers."""
        start = self.model.initial_state()
        found = inspect(self.model, start)
        fingers = [self.model.link(f"{side}_finger") for side in ("left", "right")]
        middle = found.link_position[fingers].mean(0)
        start.q[self._ball] = middle + BALL_AHEAD * found.link_rotation[fingers[0]][:, 2]
        return start

    def start(self, rng: np.random.Generator, batch: int) -> State:
        return State(*(np.repeat(x[None], batch, 0) for x in self._held))

    def goals(self, rng: np.random.Generator, batch: int, ease: float = 0.0) -> np.ndarray:
        return rng.uniform((self.near, -self.aside), (self.far, self.aside), (batch, 2))

    # coordinates: the arm's seven, two fingers, place and turn of the ball
    _ball: ClassVar[slice] = slice(ARM + 2, ARM + 5)

    def observe(self, now: Moment) -> Array:
        xp, ball = namespace(now.q), now.q[..., self._ball]
        share = ((now.age + 0 * now.q[..., 0]) / self.limit)[..., None]
        parts = (
            now.q[..., : ARM + 2], 0.2 * now.qd[..., : ARM + 2], ball, 0.2 * now.qd[..., self._ball],
            now.goal - ball[..., :2], now.action, share,
        )  # fmt: skip
        return xp.concat(parts, axis=-1)

    def distance(self, now: Moment) -> Array:
        """From the ball to the mark, along the ground."""
        ball = now.q[..., self._ball]
        return namespace(now.q).sqrt(sum_of_squares(ball[..., :2] - now.goal) + 1e-12)

    def terms(self, before: Moment, now: Moment) -> dict[str, Array]:
        return {
            "reward_progress": self.distance(before) - self.distance(now),
            "reward_ctrl": -self.ctrl_cost_weight * sum_of_squares(now.action),
        }

    def measures(self, before: Moment, now: Moment) -> dict[str, Array]:
        return {"distance": self.distance(now), "height": now.q[..., self._ball.stop - 1]}
