"""What a robot knows of itself from its own sensors: an IMU in its body, encoders in its joints, and which feet touch.

Gyroscope and accelerometer give the attitude (integrated, and drawn to the measured direction of gravity while the body does not
accelerate: Mahony et al. 2008); a Kalman filter gives position and velocity, since feet that stand do not move (Bledt et al. 2018):
state (position, velocity, four feet), driven by the measured acceleration, corrected by where the legs say the feet are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...model.rotations import turned_quaternion
from .controller import Command, Controller, Sensed, cross, rotation
from .convex import GRAVITY
from .robots import Quadruped


@dataclass(frozen=True)
class Noise:
    """Standard deviations of one reading: gyroscope (rad/s), accelerometer (m/s^2), encoders (rad) and their rates (rad/s); and
    constant offsets of the gyroscope and the accelerometer, drawn with these deviations."""

    gyro: float = 0.01
    accelerometer: float = 0.1
    angle: float = 0.001
    rate: float = 0.05
    gyro_offset: float = 0.002
    accelerometer_offset: float = 0.05


class Estimator:
    """Position and velocity of the body, from readings every `dt` seconds; it starts where it is told."""

    DRAW = 0.3  # how fast the attitude is drawn to the measured direction of gravity, 1/s
    # deviations: of what acceleration misses (m/s^2), how far standing and swinging feet move in a second (m), what legs' places
    # and rates miss (m, m/s), and the heights of standing feet above the ground that they knew (m)
    PUSH, SLIP, FLY, PLACE, SPEED = 0.5, 0.02, 100.0, 0.002, 0.1

    def __init__(self, robot: Quadruped, dt: float) -> None:
        self.robot, self.dt = robot, dt

    def start(self, q: np.ndarray, qd: np.ndarray) -> None:
        self.quaternion = q[3:7].copy()
        R = rotation(self.quaternion)
        feet = q[:3] + self.robot.legs.positions(q[7:].reshape(4, 3)) @ R.T
        self.x = np.concatenate((q[:3], qd[:3], feet.ravel()))
        self.P = 1e-4 * np.eye(18)

    def update(
        self, gyro: np.ndarray, accelerometer: np.ndarray, q: np.ndarray, qd: np.ndarray, contact: np.ndarray
    ) -> None:
        """One reading of everything; q and qd (12,) are those of the joints."""
        R = self._attitude(gyro, accelerometer)
        self._predict(R @ accelerometer + GRAVITY, contact)
        angles, rates = q.reshape(4, 3), qd.reshape(4, 3)
        legs = self.robot.legs
        arm = legs.positions(angles)
        moving = (legs.jacobians(angles) @ rates[..., None])[..., 0] + cross(np.broadcast_to(gyro, (4, 3)), arm)
        self._correct(arm @ R.T, -(moving @ R.T), contact)

    def _attitude(self, gyro: np.ndarray, accelerometer: np.ndarray) -> np.ndarray:
        up, size = rotation(self.quaternion)[2], np.sqrt(accelerometer @ accelerometer)
        trust = max(0.0, 1.0 - abs(size + GRAVITY[2]) / 2.0)
        w = gyro + self.DRAW * trust * cross(accelerometer / max(size, 1e-9), up)
        turn = np.concatenate(([1.0], 0.5 * self.dt * w))
        self.quaternion = np.array(turned_quaternion(self.quaternion, turn / np.sqrt(turn @ turn)))
        return rotation(self.quaternion)

    def _predict(self, acceleration: np.ndarray, contact: np.ndarray) -> None:
        dt, x, P = self.dt, self.x, self.P
        x[:3] += dt * x[3:6] + 0.5 * dt**2 * acceleration
        x[3:6] += dt * acceleration
        P[:3] += dt * P[3:6]
        P[:, :3] += dt * P[:, 3:6]
        feet = np.repeat(np.where(contact, self.SLIP, self.FLY), 3)
        P[np.diag_indices(18)] += np.concatenate((3 * [1e-8], 3 * [(dt * self.PUSH) ** 2], dt * feet**2))

    def _correct(self, arms: np.ndarray, velocity: np.ndarray, contact: np.ndarray) -> None:
        """Feet are at the body's place plus their arms; the body moves against feet that stand."""
        H = np.zeros((24, 18))
        H[np.arange(12), 6 + np.arange(12)] = 1.0
        H[np.arange(12), np.tile(np.arange(3), 4)] = -1.0
        H[12 + np.arange(12), np.tile(3 + np.arange(3), 4)] = 1.0
        variance = np.concatenate((12 * [self.PLACE**2], np.repeat(np.where(contact, self.SPEED, 1e3) ** 2, 3)))
        missed = np.concatenate((arms.ravel(), velocity.ravel())) - H @ self.x
        S = H @ self.P @ H.T + np.diag(variance)
        K = np.linalg.solve(S, H @ self.P).T
        self.x += K @ missed
        self.P -= K @ H @ self.P
        self.P = 0.5 * (self.P + self.P.T)


class Estimated:
    """A controller that knows only what sensors say. Readings are made from the true motion, with noise by seed."""

    def __init__(
        self, controller: Controller, robot: Quadruped, dt: float, noise: Noise | None = None, seed: int = 0
    ) -> None:
        self.controller, self.robot, self.dt, self.seed = controller, robot, dt, seed
        self.noise = noise or Noise()
        self.reset()

    def reset(self) -> None:
        self.controller.reset()
        self._rng = np.random.default_rng(self.seed)
        self._before: Sensed | None = None
        self._offsets = (
            self.noise.gyro_offset * self._rng.standard_normal(3),
            self.noise.accelerometer_offset * self._rng.standard_normal(3),
        )
        self.estimator = Estimator(self.robot, self.dt)
        self.missed: list[float] = []  # in speed, m/s, for who wants to know

    @property
    def plan_seconds(self) -> list[float]:
        return getattr(self.controller, "plan_seconds", [])

    def __call__(self, sensed: Sensed, command: Command) -> np.ndarray:
        if self._before is None:
            self.estimator.start(sensed.q, sensed.qd)
        else:
            self.estimator.update(*self._readings(self._before, sensed))
        self._before = sensed
        x = self.estimator.x
        self.missed.append(float(np.linalg.norm(x[3:6] - sensed.qd[:3])))
        q = np.concatenate((x[:3], self.estimator.quaternion, sensed.q[7:19]))
        qd = np.concatenate((x[3:6], sensed.qd[3:6], sensed.qd[6:18]))
        return self.controller(Sensed(sensed.time, q, qd, sensed.contact), command)

    def _readings(self, before: Sensed, now: Sensed) -> tuple[np.ndarray, ...]:
        """What the sensors show at this moment; the accelerometer's is the mean since the last one."""
        noise, draw = self.noise, self._rng.standard_normal
        R = rotation(now.q[3:7])
        gyro = now.qd[3:6] + self._offsets[0] + noise.gyro * draw(3)
        force = ((now.qd[:3] - before.qd[:3]) / self.dt - GRAVITY) @ R
        accelerometer = force + self._offsets[1] + noise.accelerometer * draw(3)
        return (
            gyro,
            accelerometer,
            now.q[7:19] + noise.angle * draw(12),
            now.qd[6:18] + noise.rate * draw(12),
            now.contact,
        )
