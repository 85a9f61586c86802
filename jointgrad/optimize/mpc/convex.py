"""Foot forces over the next quarter of a second, as one convex problem (Di Carlo et al. 2018; Kim et al. 2019).

The robot is one rigid body that the ground pushes at its feet. With roll pitch yaw, position p, angular velocity w, velocity v:
    d/dt angles = Rz(yaw)^T w,   d/dt p = v,   d/dt w = I^-1 sum r x f,   d/dt v = sum f / m + g.
The third power of these dynamics is zero, so that a step of any length is exact in closed form; forces of step j change the state
after step i by
    velocities: dt Bv,   places: dt^2 (i - j + 1/2) Bp,      Bv (6, 12) as above, Bp = Bv carried to angles and positions.
The Hessian is dt^2 N (x) Bv'WBv + dt^4 M (x) Bp'WBp + alpha, where N and M count steps and never change.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from .controller import turn_about_z

GRAVITY = np.array([0.0, 0.0, -9.81])


@dataclass(frozen=True)
class Weights:
    """Of squared misses: angles, position, angular velocity, velocity, (3,) each; of squared forces (1/N^2). NeuralSim's."""

    angles: tuple[float, float, float] = (5.0, 5.0, 0.2)
    position: tuple[float, float, float] = (0.0, 0.0, 10.0)
    turning: tuple[float, float, float] = (0.0, 0.0, 1.0)
    velocity: tuple[float, float, float] = (1.0, 1.0, 0.0)
    force: float = 1e-5


@dataclass(frozen=True)
class Body:
    """State of the rigid body in world axes: roll pitch yaw, centre of mass, angular velocity, velocity."""

    angles: np.ndarray
    position: np.ndarray
    turning: np.ndarray
    velocity: np.ndarray


@dataclass(frozen=True)
class QP:
    """Minimise x'Hx/2 + g'x with low <= C x <= high; x are the forces (3 each) of `who`: rows (step, leg)."""

    H: np.ndarray
    g: np.ndarray
    C: np.ndarray
    low: np.ndarray
    high: np.ndarray
    who: np.ndarray


@dataclass(frozen=True)
class ConvexProblem:
    """Of a robot of mass (kg) and inertia (3, 3) about its centre of mass, over `steps` steps of `dt` seconds."""

    mass: float
    inertia: np.ndarray
    friction: float = 0.45
    steps: int = 10
    dt: float = 0.025
    weights: Weights = field(default_factory=Weights)
    # of the weight of the robot: what a standing foot bears at least and at most
    least: float = 0.0
    most: float = 2.0

    @cached_property
    def _done(self) -> np.ndarray:
        """[i, j]: 1 where step j has been done after step i."""
        return np.tri(self.steps)

    @cached_property
    def _ago(self) -> np.ndarray:
        """How many steps ago the middle of step j was."""
        i, j = np.arange(self.steps)[:, None], np.arange(self.steps)
        return self._done * (i - j + 0.5)

    @cached_property
    def _counts(self) -> tuple[np.ndarray, np.ndarray]:
        """N and M."""
        return self._done.T @ self._done, self._ago.T @ self._ago

    @cached_property
    def _cone(self) -> np.ndarray:
        mu = self.friction
        return np.array([[-1.0, 0, mu], [1.0, 0, mu], [0, -1.0, mu], [0, 1.0, mu], [0, 0, 1.0]])

    def free_motion(self, body: Body) -> tuple[np.ndarray, np.ndarray]:
        """Places (steps, 6) and velocities (steps, 6) if no foot pushed."""
        t = self.dt * np.arange(1, self.steps + 1)[:, None]
        rates = turn_about_z(body.angles[2]).T @ body.turning
        velocity = np.concatenate((body.turning + 0 * t, body.velocity + t * GRAVITY), 1)
        place = np.concatenate((body.angles + t * rates, body.position + t * body.velocity + 0.5 * t**2 * GRAVITY), 1)
        return place, velocity

    def influence(self, yaw: float, arms: np.ndarray, R: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Bv and Bp (6, 12) of forces at arms (4, 3) from the centre of mass, all in world axes."""
        inverse = np.linalg.inv(R @ self.inertia @ R.T)
        Bv, Bp = np.zeros((6, 12)), np.zeros((6, 12))
        for leg, r in enumerate(arms):
            across = np.array([[0.0, -r[2], r[1]], [r[2], 0.0, -r[0]], [-r[1], r[0], 0.0]])
            Bv[:3, 3 * leg : 3 * leg + 3] = inverse @ across
            Bv[3:, 3 * leg : 3 * leg + 3] = np.eye(3) / self.mass
        Bp[:3], Bp[3:] = turn_about_z(yaw).T @ Bv[:3], Bv[3:]
        return Bv, Bp

    def qp(
        self, body: Body, R: np.ndarray, arms: np.ndarray, wanted: tuple[np.ndarray, np.ndarray], stands: np.ndarray,
        whole: bool = False,
    ) -> QP:  # fmt: skip
        """The problem for feet at arms (4, 3), wanted places and velocities (steps, 6), and who stands (steps, 4). The others'
        forces are zero and not in it; with `whole` they are, bounded by zero."""
        w = self.weights
        Wp, Wv = np.array([*w.angles, *w.position]), np.array([*w.turning, *w.velocity])
        Bv, Bp = self.influence(body.angles[2], arms, R)
        place, velocity = self.free_motion(body)
        off_p, off_v = place - wanted[0], velocity - wanted[1]
        (N, M), done, ago = self._counts, self._done, self._ago
        P, Q = self.dt**2 * Bv.T @ (Wv[:, None] * Bv), self.dt**4 * Bp.T @ (Wp[:, None] * Bp)
        g = self.dt * (done.T @ off_v * Wv) @ Bv + self.dt**2 * (ago.T @ off_p * Wp) @ Bp
        # forces cost where they differ from an even share of the weight: else the body would sag
        g[:, 2::3] -= w.force * stands * (-GRAVITY[2] * self.mass / np.maximum(stands.sum(1, keepdims=True), 1))
        among = np.repeat((stands | whole).ravel(), 3)
        n = self.steps
        all_steps = N[:, None, :, None] * P[None, :, None, :] + M[:, None, :, None] * Q[None, :, None, :]
        H = all_steps.reshape(12 * n, 12 * n)[np.ix_(among, among)]
        H[np.diag_indices_from(H)] += w.force
        who = np.argwhere(stands | whole)
        C, low, high = self.limits(stands[stands | whole])
        return QP(H, g.ravel()[among], C, low, high, who)

    def limits(self, stands: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Friction pyramids of forces, and how much those of standing feet may bear."""
        weight, n = -GRAVITY[2] * self.mass, len(stands)
        low, high = np.zeros((n, 5)), np.full((n, 5), np.inf)
        low[:, 4], high[:, 4] = self.least * weight * stands, self.most * weight * stands
        return self._cones(n), low.ravel(), high.ravel()

    def _cones(self, n: int) -> np.ndarray:
        """Of n forces; kept, for there are few numbers of them."""
        if n not in self._kept_cones:
            C = np.zeros((n, 5, n, 3))
            C[np.arange(n), :, np.arange(n)] = self._cone
            self._kept_cones[n] = C.reshape(5 * n, 3 * n)
        return self._kept_cones[n]

    @cached_property
    def _kept_cones(self) -> dict[int, np.ndarray]:
        return {}
