"""Levenberg-Marquardt on normal equations that a problem makes itself: robust losses, penalties, points that are no arrays.

`solvers.gauss_newton` is for plain sums of squares of arrays, from many starts at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

LEAST, MOST = 1e-4, 1e4  # of the damping; above the one no step helps
FLAT = 1e-9  # added to the diagonal where a number has no slope at all


class Problem(Protocol):
    """A cost of points of any kind, near which it is a quadratic function of a step (n,)."""

    def evaluated(self, point: Any) -> tuple[Any, float]:
        """What the normal equations need of a point, and its cost."""

    def normal_equations(self, point: Any, evaluation: Any) -> tuple[np.ndarray, np.ndarray]:
        """H (n, n) and b (n,): the best step solves H step = -b."""

    def moved(self, point: Any, step: np.ndarray) -> Any:
        """The point a step (n,) away."""


def levenberg_marquardt(
    problem: Problem, point: Any, iterations: int, seen: Callable[[int, Any, float], None],
    damping: float = 1e-2, enough: float = 1e-4,
) -> Any:  # fmt: skip
    """The point with the least cost. enough: a step that gains less of the cost is the last. `seen` is told of every new point."""
    evaluation, cost = problem.evaluated(point)
    for k in range(iterations):
        H, b = problem.normal_equations(point, evaluation)
        before = cost
        while damping < MOST:
            new = problem.moved(point, -np.linalg.solve(H + damping * np.diag(np.diag(H) + FLAT), b))
            new_evaluation, new_cost = problem.evaluated(new)
            if new_cost < cost:
                point, evaluation, cost, damping = new, new_evaluation, new_cost, max(damping / 4, LEAST)
                break
            damping *= 4
        if cost < before:
            seen(k, point, cost)
        if before - cost < enough * before:
            break
    return point
