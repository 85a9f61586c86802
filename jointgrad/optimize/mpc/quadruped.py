"""Walking by convex MPC: standing legs push as the convex problem says, swinging ones step to where the body is going.

gait -> who stands -> forces of standing feet (a few dozen times a second) -> torques -J^T f
                   -> places of swinging feet (Raibert) -> joint angles in closed form -> servos
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from .controller import Command, Sensed, cross, roll_pitch_yaw, rotation, turn_about_z
from .convex import GRAVITY, Body, ConvexProblem
from .gaits import GAITS, Gait
from .ground import Ground
from .robots import Quadruped
from .solvers import solver
from .swing import foothold, swing_point

FEEDBACK = 0.03  # of the foothold on the miss in speed (s), Raibert's; NeuralSim's value
# what lasts of a miss in speed is asked for in addition: how fast (1/s), and at most (m/s, m/s, rad/s)
PATIENCE, MOST_ADDED = 0.5, np.array([0.2, 0.2, 0.2])


@dataclass(frozen=True)
class Moment:
    """The rigid body, its rotation, the feet's centres in the world (4, 3), the joints' angles (4, 3)."""

    body: Body
    R: np.ndarray
    feet: np.ndarray
    angles: np.ndarray


@dataclass
class ConvexMPC:
    """Controller of a quadruped. Forces are planned anew every `period` seconds.

    solver: "proxsuite" or "osqp". horizon: "predicted" follows the gait over the plan; "frozen" keeps who stands now, as
    NeuralSim's released code does. whole: swinging feet stay in the problem, bounded by zero, as there.
    """

    robot: Quadruped
    gait: Gait = field(default_factory=lambda: GAITS["trot"])
    solver: str = "proxsuite"
    horizon: str = "predicted"
    whole: bool = False
    period: float = 0.02
    clearance: float = 0.1  # of a foot in the middle of its swing, m
    problem: ConvexProblem | None = None

    def __post_init__(self) -> None:
        mass, self._centre, inertia = self.robot.rigid
        if self.problem is None:
            self.problem = ConvexProblem(mass, inertia)
        self._solve = solver(self.solver)
        self.reset()

    def reset(self) -> None:
        self._solve.reset()
        self._planned, self.forces = -np.inf, np.zeros((4, 3))
        self._lifted: np.ndarray | None = None
        self._ground = Ground()
        self._yaw: float | None = None
        self._added = np.zeros(3)
        self.plan_seconds: list[float] = []

    def __call__(self, sensed: Sensed, command: Command) -> np.ndarray:
        now = self._look(sensed)
        stands = self._stands(sensed)
        if sensed.time - self._planned >= self.period - 1e-9:
            self._count_misses(now.body, command)
            began = time.perf_counter()
            self.forces = self._plan(now, sensed.time, stands, self._corrected(command))
            self.plan_seconds.append(time.perf_counter() - began)
            self._planned = sensed.time
        return self._torques(now, sensed, stands, self._corrected(command))

    # what is known of this moment --------------------------------------------------------------------------------------

    def _look(self, sensed: Sensed) -> Moment:
        R, angles = rotation(sensed.q[3:7]), sensed.q[7:].reshape(4, 3)
        feet = self.robot.legs.positions(angles) @ R.T + sensed.q[:3]
        rpy = roll_pitch_yaw(R)
        # without a jump where the heading passes half a turn
        self._yaw = rpy[2] if self._yaw is None else self._yaw + (rpy[2] - self._yaw + np.pi) % (2 * np.pi) - np.pi
        turning = R @ sensed.qd[3:6]
        offset = R @ self._centre
        body = Body(
            np.array([rpy[0], rpy[1], self._yaw]), sensed.q[:3] + offset, turning,
            sensed.qd[:3] + cross(turning, offset),
        )  # fmt: skip
        if self._lifted is None:
            self._lifted = feet.copy()
        self._ground.touch(feet, self.robot.foot_radius, sensed.contact)
        return Moment(body, R, feet, angles)

    def _stands(self, sensed: Sensed) -> np.ndarray:
        """By the gait; and a foot that meets the ground in the second half of its swing stands from then on."""
        phase = self.gait.phase(sensed.time, self.robot.places)
        late = phase > 0.5 * (1.0 + self.gait.duty)
        return (phase < self.gait.duty) | (late & sensed.contact)

    def _count_misses(self, body: Body, command: Command) -> None:
        """What has been missed for long is asked for in addition: legs in the air pull at the body, and loads are not known."""
        speed = turn_about_z(body.angles[2]).T @ body.velocity
        missed = np.array(command) - [speed[0], speed[1], body.turning[2]]
        self._added = np.clip(self._added + PATIENCE * self.period * missed, -MOST_ADDED, MOST_ADDED)

    def _corrected(self, command: Command) -> Command:
        return Command(*(np.array(command) + self._added))

    # forces -----------------------------------------------------------------------------------------------------------

    def _plan(self, now: Moment, at: float, stands: np.ndarray, command: Command) -> np.ndarray:
        problem = self.problem
        assert problem is not None
        if self.horizon == "frozen":
            schedule = np.repeat(stands[None], problem.steps, 0)
        else:
            schedule = self.gait.schedule(at, problem.dt, problem.steps, self.robot.places)
            schedule[0] = stands
        if not schedule.any():
            return np.zeros((4, 3))
        # a foot in the air pushes where it will land
        feet = np.where(stands[:, None], now.feet, self._footholds(now, command, at))
        wanted = self._wanted(now, command)
        qp = problem.qp(now.body, now.R, feet - now.body.position, wanted, schedule, self.whole)
        forces = self._solve(qp)
        first, out = qp.who[:, 0] == 0, np.zeros((4, 3))
        out[qp.who[first, 1]] = forces[first]
        return out * stands[:, None]

    def _wanted(self, now: Moment, command: Command) -> tuple[np.ndarray, np.ndarray]:
        """Places and velocities over the plan: the body level with the ground, at its height, as fast as told."""
        problem = self.problem
        assert problem is not None
        t = problem.dt * np.arange(1, problem.steps + 1)
        yaw = now.body.angles[2] + command.turning * t
        along = turn_about_z(now.body.angles[2]) @ np.array([command.forward, command.sideways, 0.0])
        slope = self._ground.tilt(now.body.angles[2])
        height = self._ground.height_at(now.body.position[:2]) + self.robot.height + (now.R @ self._centre)[2]
        ahead = now.body.position[:2, None] + along[:2, None] * t
        place = np.stack((slope[0] + 0 * t, slope[1] + 0 * t, yaw, *ahead, height + 0 * t), 1)
        velocity = np.tile(np.concatenate(([0.0, 0.0, command.turning], along)), (len(t), 1))
        return place, velocity

    # feet -------------------------------------------------------------------------------------------------------------

    def _footholds(self, now: Moment, command: Command, at: float) -> np.ndarray:
        left = (1.0 - self.gait.phase(at, self.robot.places)) * self.gait.period
        places = foothold(self.robot.hips, now.body, command, self.gait.stance_time, left, FEEDBACK)
        places[:, :2] += now.body.position[:2] - (now.R @ self._centre)[:2]
        places[:, 2] = [self._ground.height_at(p) + self.robot.foot_radius for p in places[:, :2]]
        return places

    def _torques(self, now: Moment, sensed: Sensed, stands: np.ndarray, command: Command) -> np.ndarray:
        robot, R = self.robot, now.R
        assert self._lifted is not None
        self._lifted[stands] = now.feet[stands]
        moves = robot.legs.moves(now.angles)
        own = robot.legs.holding(moves, GRAVITY @ R)
        torque = -((self.forces @ R)[:, None] @ moves[0])[:, 0]
        if not stands.all():
            share = (self.gait.phase(sensed.time, robot.places) - self.gait.duty) / (1.0 - self.gait.duty)
            goal = swing_point(
                self._lifted, self._footholds(now, command, sensed.time), np.clip(share, 0.0, 1.0), self.clearance
            )
            wanted = robot.legs.angles((goal - sensed.q[:3]) @ R)
            servo = np.array(robot.stiffness) * (wanted - now.angles) - np.array(robot.damping) * sensed.qd[6:].reshape(
                4, 3
            )
            torque = np.where(stands[:, None], torque, servo)
        return (torque + own).ravel()
