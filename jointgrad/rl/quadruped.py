"""Robot dogs that walk as they are told: Go2, A1 and Laikago, from the same lines with their own numbers.

Twelve servos hold joints at a stance; an action moves their targets. A clock asks for a trot, diagonal legs together.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ..model import zoo
from ..model.arrays import State
from ..model.description import Description
from ..model.world import World
from .arrays import Array, cross, like, namespace, sum_of_squares
from .task import Moment, Task

# what is asked for beside forward, sideways and turning speed: where in its cycle the clock starts
COMMANDS, PHASE = slice(0, 3), 3


@dataclass(frozen=True)
class Quadruped(Task):
    """Paid for the commanded velocity (m/s and rad/s, in the body's heading), for feet that rise and land with the clock, and
    for doing so upright, gently and without sliding. Ends when it has fallen."""

    dt: float = 0.005
    hold: int = 4
    limit: int = 1000
    forward: tuple[float, float] = (-0.5, 1.0)  # commands, m/s
    sideways: tuple[float, float] = (-0.3, 0.3)
    turning: tuple[float, float] = (-0.8, 0.8)  # rad/s
    standing: float = 0.1  # share of episodes with the command zero
    extreme: float = 0.2  # and with every part of it at an end of its range
    reach: float = 0.5  # how far an action of 1 moves a target, rad
    armature: float = 0.01  # kg m^2
    friction: float = 0.8
    clock: float = 2.5  # strides per second: the faster, the less the body sways between two of them
    lift: float = 0.07  # of a foot in the middle of its swing, m
    full_body: bool = False  # whether more than feet can touch
    reset_noise_scale: float = 1.0

    outputs: ClassVar[tuple[str, ...]] = ("link.position", "link.velocity")
    n_goals: ClassVar[int] = 4

    # a robot's own numbers
    robot: ClassVar[Callable[[], Description]]
    feet: ClassVar[tuple[str, ...]]  # front left, front right, rear left, rear right
    foot_radius: ClassVar[float]
    stance: ClassVar[tuple[float, float, float] | None] = None  # hip, thigh, calf; unless said, the robot's own
    height: ClassVar[float]  # of the base where the feet of the stance touch the ground
    stiffness: ClassVar[float]  # of the servos, N m/rad
    damping: ClassVar[float]

    def world(self) -> World:
        robot = type(self).robot()
        for joint in robot.joints.values():
            if joint.kind != "fixed":
                joint.armature = self.armature
        for k, motor in enumerate(robot.actuators.values()):
            if self.stance is not None:
                robot.joints[motor.joint].initial = self.stance[k % 3]
            # force = stiffness (rest + reach action - q) - damping qd
            rest = float(np.sum(robot.joints[motor.joint].initial or 0.0))
            motor.gain, motor.control_limit = self.reach * self.stiffness, (-1.0, 1.0)
            motor.bias = (self.stiffness * rest, -self.stiffness, -self.damping)
        if not self.full_body:
            for name, link in robot.links.items():
                if name not in self.feet:
                    link.shapes = [replace(shape, role="visual") for shape in link.shapes]
        return World().add(robot, name="dog", position=(0.0, 0.0, self.height)).add_ground(friction=self.friction)

    def start(self, rng: np.random.Generator, batch: int) -> State:
        rest, noise = self.model.initial_state(batch), self.reset_noise_scale
        spread = noise * np.array([0.0, 0.0, 0.01, *4 * [0.03], *12 * [0.1]])
        q = rest.q + spread * rng.uniform(-1.0, 1.0, rest.q.shape)
        return State(q, 0.1 * noise * rng.uniform(-1.0, 1.0, rest.qd.shape))

    def goals(self, rng: np.random.Generator, batch: int, ease: float = 0.0) -> np.ndarray:
        # a trot on the spot is learned first: asked for speed before it can step, a dog learns to stand
        ranges = (1.0 - ease) * np.array([*self.goal_ranges().values()])
        where, corner = rng.random((batch, 3)), rng.integers(0, 2, (batch, 3))
        kind, phase = rng.random((batch, 1)), rng.random((batch, 1))
        share = np.where(kind < self.extreme, corner, where)
        command = ranges[:, 0] + share * (ranges[:, 1] - ranges[:, 0])
        return np.concatenate((np.where(kind > 1.0 - self.standing, 0.0, command), phase), axis=1)

    def goal_ranges(self) -> dict[str, tuple[float, float]]:
        return {"forward": self.forward, "sideways": self.sideways, "turning": self.turning}

    # what it sees -------------------------------------------------------------------------------------------------------

    def observe(self, now: Moment) -> Array:
        """Velocities of the body and the direction of down in its own frame, the command, angles, rates, last action, clock,
        and how high it stands."""
        xp, angle = namespace(now.q), self._angle(now)[..., None]
        speed, down = self._felt(now)
        parts = (
            speed, 0.25 * now.qd[..., 3:6], down, now.goal[..., COMMANDS],
            now.q[..., 7:] - like(now.q, self._rest), 0.05 * now.qd[..., 6:], now.action, xp.sin(angle), xp.cos(angle),
            10.0 * (now.q[..., 2:3] - self.height),
        )  # fmt: skip
        return xp.concat(parts, axis=-1)

    def _angle(self, now: Moment) -> Array:
        """Of the clock, rad."""
        age = now.age + 0 * now.q[..., 0]
        return 2 * np.pi * (self.clock * self.control_dt * age + now.goal[..., PHASE])

    @functools.cached_property
    def _rest(self) -> np.ndarray:
        return self.model.initial_state().q[7:]

    @staticmethod
    def _felt(now: Moment) -> tuple[Array, Array]:
        """Velocity of the base and the direction of down, in its own axes."""
        xp, v = namespace(now.q), now.qd[..., :3]
        both = _in_body(now.q[..., None, :], xp.stack((v, 0 * v + like(v, [0.0, 0.0, -1.0])), axis=-2))
        return both[..., 0, :], both[..., 1, :]

    # what it is paid for ------------------------------------------------------------------------------------------------

    def terms(self, before: Moment, now: Moment) -> dict[str, Array]:
        xp, command = namespace(now.q), now.goal[..., COMMANDS]
        speed, down = self._felt(now)
        missed = sum_of_squares(speed[..., :2] - command[..., :2])
        turned = (_heading_rate(now.qd, down) - command[..., 2]) ** 2
        return {
            # wide enough to be felt from afar, and narrow enough to matter near by
            "reward_speed": 2.0 * xp.exp(-4.0 * missed) + xp.exp(-40.0 * missed),
            "reward_turn": 0.8 * xp.exp(-4.0 * turned) + 0.4 * xp.exp(-15.0 * turned),
            "reward_survive": 0.5 + 0 * missed,
            "reward_bounce": -(speed[..., 2] ** 2) - 0.05 * sum_of_squares(now.qd[..., 3:5]),
            "reward_upright": -2.0 * sum_of_squares(down[..., :2]),
            "reward_height": -20.0 * (now.q[..., 2] - self.height) ** 2,
            "reward_effort": -0.6 * sum_of_squares(self._torques(now) / like(now.q, self._strength)),
            "reward_smooth": -0.02 * sum_of_squares(now.action - before.action),
            "reward_pose": -0.02 * sum_of_squares(now.q[..., 7:] - like(now.q, self._rest)),
            **self._foot_terms(now),
        }

    def _torques(self, now: Moment) -> Array:
        target = like(now.q, self._rest) + self.reach * now.action
        return self.stiffness * (target - now.q[..., 7:]) - self.damping * now.qd[..., 6:]

    @functools.cached_property
    def _strength(self) -> float:
        """A torque that counts as large, N m: weight times a tenth of the height of the body, for four legs."""
        return 9.81 * float(self.model.params["link.mass"].sum()) * self.height

    def _foot_terms(self, now: Moment) -> dict[str, Array]:
        """Feet shall be where the clock wants them, and those on the ground shall not slide."""
        xp = namespace(now.q)
        rows = [self.model.link_names.index(f"dog/{foot}") for foot in self.feet]
        rise = now.outputs["link.position"][..., rows, 2] - self.foot_radius
        sliding = now.outputs["link.velocity"][..., rows, :2]
        angle = self._angle(now)[..., None] + like(now.q, [0.0, np.pi, np.pi, 0.0])
        wanted = self.lift * xp.clip(xp.sin(angle), 0.0, 1.0)
        grip = xp.exp(-xp.clip(rise, 0.0, 1.0) / 0.01)
        return {
            "reward_clock": -150.0 * sum_of_squares(rise - wanted),
            "reward_slide": -0.1 * xp.clip(grip * sum_of_squares(sliding), 0.0, 4.0).sum(-1),
        }

    def fallen(self, now: Moment) -> Array:
        xp = namespace(now.q)
        is_finite = xp.all(xp.isfinite(xp.concat((now.q, now.qd), axis=-1)), axis=-1)
        is_up = (now.q[..., 2] > 0.6 * self.height) & (self._felt(now)[1][..., 2] < -0.6)
        return ~(is_finite & is_up)

    def measures(self, before: Moment, now: Moment) -> dict[str, Array]:
        speed, down = self._felt(now)
        return {
            "x_position": now.q[..., 0],
            "speed_error": namespace(now.q).sqrt(sum_of_squares(speed[..., :2] - now.goal[..., :2])),
            "turn_error": namespace(now.q).abs(_heading_rate(now.qd, down) - now.goal[..., 2]),
        }


def _heading_rate(qd: Array, down: Array) -> Array:
    """Of the angle about the vertical at which the base looks. Where it rolls while it pitches, that is not its own third rate."""
    y, z = down[..., 1], down[..., 2]
    return -(qd[..., 4] * y + qd[..., 5] * z) / (y * y + z * z)


def _in_body(q: Array, vector: Array) -> Array:
    """A vector of the world in the axes of a free base, whose quaternion (w, x, y, z) need not be of length one."""
    turn = q[..., 3:7]
    w, axis = turn[..., :1], turn[..., 1:]
    across = cross(vector, axis)
    length = sum_of_squares(turn)[..., None]
    return vector + 2.0 * (w * across + cross(across, axis)) / length


@dataclass(frozen=True)
class Go2(Quadruped):
    """Unitree's Go2 walks as it is told."""

    name: ClassVar[str] = "go2"
    robot: ClassVar[Callable[[], Description]] = staticmethod(zoo.go2)
    feet: ClassVar[tuple[str, ...]] = ("FL_foot", "FR_foot", "RL_foot", "RR_foot")
    foot_radius: ClassVar[float] = 0.022
    height: ClassVar[float] = 0.29
    stiffness: ClassVar[float] = 40.0
    damping: ClassVar[float] = 1.0


@dataclass(frozen=True)
class A1(Quadruped):
    """Unitree's A1 walks as it is told."""

    name: ClassVar[str] = "a1"
    robot: ClassVar[Callable[[], Description]] = staticmethod(zoo.a1)
    feet: ClassVar[tuple[str, ...]] = ("FL_foot", "FR_foot", "RL_foot", "RR_foot")
    foot_radius: ClassVar[float] = 0.02
    height: ClassVar[float] = 0.27
    stiffness: ClassVar[float] = 40.0
    damping: ClassVar[float] = 1.0


@dataclass(frozen=True)
class Laikago(Quadruped):
    """Unitree's Laikago walks as it is told."""

    name: ClassVar[str] = "laikago"
    robot: ClassVar[Callable[[], Description]] = staticmethod(functools.partial(zoo.laikago, touch="feet"))
    feet: ClassVar[tuple[str, ...]] = ("toeFL", "toeFR", "toeRL", "toeRR")
    foot_radius: ClassVar[float] = 0.03
    stance: ClassVar[tuple[float, float, float] | None] = (0.0, 0.15, -1.0)
    height: ClassVar[float] = 0.426
    stiffness: ClassVar[float] = 80.0
    damping: ClassVar[float] = 2.0
