"""A second opinion on swings of the n-link pendulum, in code that knows nothing of the engine: a chain of bodies in a plane.

Absolute angles, Lagrange's equations, Runge-Kutta steps of 0.8 ms. What motors did is summed beside, and must be what the
energy has become.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# of the released model: kg and kg m^2 of the first link and of those behind it, all at the end of a link; of the tip
FIRST, BEHIND, TIP = (1.0, 0.00494875), (2.16, 0.00539427), (0.01, 1e-4)
LENGTH, GRAVITY, HELD = 0.5, 9.8, 1 / 60  # m, m/s^2, s
FINE = 20  # steps over which a torque is held


class Score(NamedTuple):
    """Return as table 4 has it, distance of the tip from the top at the end (m), mean of that over the last 30 torques, and how
    far work and energy are apart as a share of the energy gained or lost."""

    returned: float
    tip_error: float
    held_error: float
    energy_error: float


class Chain:
    """Links whose masses are at their ends."""

    def __init__(self, n: int, masses: np.ndarray | None = None, inertias: np.ndarray | None = None) -> None:
        bodies = np.array([FIRST, *[BEHIND] * (n - 1)])
        bodies[-1] += TIP
        self.n, self.masses = n, bodies[:, 0] if masses is None else masses
        self.inertias = bodies[:, 1] if inertias is None else inertias
        # what hangs on link max(i, j) and beyond moves with both i and j
        beyond = np.cumsum(self.masses[::-1])[::-1]
        self._shared = LENGTH**2 * beyond[np.maximum(*np.indices((n, n)))]
        self._weight = GRAVITY * LENGTH * beyond

    def acceleration(self, angle: np.ndarray, rate: np.ndarray, torque: np.ndarray) -> np.ndarray:
        apart = angle[:, None] - angle
        M = self._shared * np.cos(apart) + np.diag(self.inertias)
        push = torque - np.append(torque[1:], 0.0)
        return np.linalg.solve(M, push - (self._shared * np.sin(apart)) @ rate**2 - self._weight * np.cos(angle))

    def energy(self, angle: np.ndarray, rate: np.ndarray) -> float:
        M = self._shared * np.cos(angle[:, None] - angle) + np.diag(self.inertias)
        return float(0.5 * rate @ M @ rate + self._weight @ np.sin(angle))

    def distance(self, angle: np.ndarray) -> float:
        """From the tip to the highest point there is."""
        y, z = LENGTH * np.cos(angle).sum(), LENGTH * np.sin(angle).sum()
        return float(np.hypot(y, z - LENGTH * self.n))

    def step(self, x: np.ndarray, torque: np.ndarray, dt: float) -> np.ndarray:
        """x: angles, rates, and the work of the motors so far."""

        def slope(x: np.ndarray) -> np.ndarray:
            angle, rate = x[: self.n], x[self.n : -1]
            turns = np.diff(rate, prepend=0.0)
            return np.concatenate((rate, self.acceleration(angle, rate, torque), [torque @ turns]))

        a = slope(x)
        b = slope(x + 0.5 * dt * a)
        c = slope(x + 0.5 * dt * b)
        return x + dt / 6 * (a + 2 * b + 2 * c + slope(x + dt * c))


def score(torques: np.ndarray) -> Score:
    """Of torques (T, n) in N m, from the horizontal and from rest."""
    chain = Chain(torques.shape[1])
    x, tips = np.zeros(2 * chain.n + 1), []
    # a hundredth of what lifting the chain by its length takes, at least: where nothing is gained, nothing is divided by nothing
    before, largest = chain.energy(x[: chain.n], x[chain.n : -1]), 0.01 * float(chain._weight.sum())
    for torque in torques:
        for _ in range(FINE):
            x = chain.step(x, torque, HELD / FINE)
        tips.append(chain.distance(x[: chain.n]))
        largest = max(largest, abs(chain.energy(x[: chain.n], x[chain.n : -1]) - before))
    gained = chain.energy(x[: chain.n], x[chain.n : -1]) - before
    first = 2 * (LENGTH * chain.n) ** 2
    return Score(first - tips[-1] ** 2, tips[-1], float(np.mean(tips[-30:])), abs(gained - x[-1]) / largest)
