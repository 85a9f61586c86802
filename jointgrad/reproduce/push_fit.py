"""Fits guesses and weights of networks to where pushed blocks came to rest: a robust loss for Levenberg-Marquardt."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

import jointgrad as jg

from .push_data import ARM, Pushes, difference
from .push_world import NAMES, SCALES, Guess, Pushing, guess_of, planar_weights, predicted, vector

KNEE = 0.5  # mm: larger errors count in proportion, smaller ones by their squares
PINNED = 1e9


@dataclass(frozen=True)
class Point:
    """Guesses, and weights of networks where there are any."""

    guess: Guess = field(default_factory=Guess)
    weights: np.ndarray = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True)
class Problem:
    """Residuals in mm. Each weight costs its penalty times the square of what it has moved from the first ones."""

    pushing: Pushing
    first: np.ndarray = field(default_factory=lambda: np.zeros(0))
    penalty: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def motion(self, point: Point) -> jg.Trajectory:
        return self.pushing.motion(point.guess, point.weights if len(point.weights) else None)

    def residuals(self, motion: jg.Trajectory) -> np.ndarray:
        return residuals_of(motion, self.pushing.pushes)

    def evaluated(self, point: Point) -> tuple[tuple[jg.Trajectory, np.ndarray], float]:
        """The motion with its residuals, and the cost."""
        motion = self.motion(point)
        residuals = self.residuals(motion)
        cost = robust(residuals) + float((self.penalty * (point.weights - self.first) ** 2).sum())
        return (motion, residuals), cost

    def normal_equations(
        self, point: Point, evaluation: tuple[jg.Trajectory, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        motion, residuals = evaluation
        by_guess, by_weight = self.pushing.jacobian(motion)
        J = 1e3 * np.concatenate([by_guess * SCALES, by_weight], axis=2)
        share = 1 / np.sqrt(1 + (residuals**2).sum(axis=1) / KNEE**2) / len(residuals)
        flat = (np.sqrt(share)[:, None, None] * J).reshape(-1, J.shape[2])
        H, b = flat.T @ flat, flat.T @ (np.sqrt(share)[:, None] * residuals).ravel()
        n = len(NAMES)
        H[range(n, len(H)), range(n, len(H))] += 2 * self.penalty
        b[n:] += 2 * self.penalty * (point.weights - self.first)
        return H, b

    def moved(self, point: Point, step: np.ndarray) -> Point:
        n = len(NAMES)
        return Point(guess_of(vector(point.guess) + step[:n] * SCALES), point.weights + step[n:])


def robust(residuals: np.ndarray) -> float:
    return float((KNEE**2 * (np.sqrt(1 + (residuals**2).sum(axis=1) / KNEE**2) - 1)).mean())


def residuals_of(motion: jg.Trajectory, pushes: Pushes) -> np.ndarray:
    """(n, 3) mm: x, y, and the turn times ARM."""
    return difference(predicted(motion), pushes.after) * (1e3, 1e3, 1e3 * ARM)


def with_networks(pushing: Pushing, guess: Guess, strength: float) -> Problem:
    """The penalty of a weight is `strength` times how much it moves the blocks at first; before the last layer, where that is
    nothing, the mean of the others. What would lift or tip the block stays zero."""
    first = np.array(pushing.model.params["graft.weight"])
    moves = ((1e3 * pushing.jacobian(pushing.motion(guess, first))[1]) ** 2).sum(axis=1).mean(axis=0)
    is_last, is_planar = planar_weights(pushing.model)
    moves = np.where(is_last, moves, moves[is_planar].mean())
    return Problem(pushing, first, np.where(is_last & ~is_planar, PINNED, strength * moves / 2))
