"""Plain solvers: descent (SGD, Adam) on a batch of starts at once, L-BFGS (scipy), Gauss-Newton.

An objective has `n`, `value(x) -> losses` and `gradient(x) -> losses, x_bar` for points x (batch, n). Bounds are a pair of
arrays (n,) or numbers; points are kept inside by projection.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..model.errors import InputError
from .progress import Callback, Progress, Result, Stop, Stopped

Bounds = tuple[Any, Any] | None


class Objective(Protocol):
    """A function of points x (batch, n) with its gradient."""

    n: int

    def value(self, x: np.ndarray) -> np.ndarray: ...

    def gradient(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]: ...


class SumOfSquares(Protocol):
    """A function that is half a sum of squares: residuals (batch, m) and their Jacobian (batch, m, n)."""

    n: int

    def residuals(self, x: np.ndarray) -> np.ndarray: ...

    def jacobian(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]: ...


@dataclass
class SGD:
    """x - rate x_bar, with momentum. largest: the norm above which a gradient is scaled down (impacts make huge ones)."""

    rate: float
    momentum: float = 0.0
    largest: float = np.inf
    velocity: Any = 0.0

    def step(self, x: np.ndarray, x_bar: np.ndarray) -> np.ndarray:
        self.velocity = self.momentum * self.velocity + clipped(x_bar, self.largest)
        return x - self.rate * self.velocity


@dataclass
class Adam:
    """A step size for each element (Kingma and Ba 2015)."""

    rate: float
    memory: tuple[float, float] = (0.9, 0.999)
    largest: float = np.inf
    mean: Any = 0.0
    square: Any = 0.0
    k: int = 0

    def step(self, x: np.ndarray, x_bar: np.ndarray) -> np.ndarray:
        self.k += 1
        first, second = self.memory
        x_bar = clipped(x_bar, self.largest)
        self.mean = first * self.mean + (1 - first) * x_bar
        self.square = second * self.square + (1 - second) * x_bar**2
        mean, square = self.mean / (1 - first**self.k), self.square / (1 - second**self.k)
        return x - self.rate * mean / (np.sqrt(square) + 1e-12)


def clipped(x_bar: np.ndarray, largest: float) -> np.ndarray:
    """Gradients (batch, n) no longer than this."""
    norm = np.linalg.norm(x_bar, axis=-1, keepdims=True)
    return x_bar * np.minimum(1.0, largest / np.maximum(norm, 1e-300))


def limits(bounds: Bounds, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds (n,), infinite where there are none."""
    low, high = (-np.inf, np.inf) if bounds is None else bounds
    low, high = np.broadcast_to(np.asarray(low, float), (n,)), np.broadcast_to(np.asarray(high, float), (n,))
    if (low > high).any():
        k = int(np.argmax(low > high))
        raise InputError(f"bounds: the lower one is above the upper one at entry {k} ({low[k]:g} > {high[k]:g})")
    return low, high


def starts_of(x0: Any, n: int) -> np.ndarray:
    """One start (n,) or several (batch, n), as (batch, n)."""
    x = np.array(x0, dtype=float)
    x = x[None] if x.ndim == 1 else x
    if x.ndim != 2 or x.shape[1] != n or not len(x):
        raise InputError(f"x0 must have shape ({n},) or (starts, {n}), but has {np.shape(x0)}")
    return x


def descend(
    objective: Objective, x0: Any, rule: SGD | Adam, stop: Stop | None = None, bounds: Bounds = None,
    callback: Callback | None = None,
) -> Result:  # fmt: skip
    """First-order descent from all starts at once. A start whose motion is lost (infinite loss) stays where it is."""
    progress, x = Progress(stop or Stop(), callback), starts_of(x0, objective.n)
    low, high = limits(bounds, objective.n)
    x = np.clip(x, low, high)
    with progress.running():
        while True:
            losses, x_bar = objective.gradient(x)
            progress.count(len(x), len(x))
            progress.see(x, losses)
            progress.end_iteration(np.min(losses))
            x = np.clip(rule.step(x, np.where(np.isfinite(losses)[:, None], x_bar, 0.0)), low, high)
    return progress.result()


def lbfgs(
    objective: Objective, x0: Any, stop: Stop | None = None, bounds: Bounds = None, callback: Callback | None = None,
    memory: int = 20, first_step: float | None = None,
) -> Result:  # fmt: skip
    """L-BFGS-B (scipy) from each start in turn. first_step: the length of the first trial step, where a unit gradient
    step would be too long or too short; the function is scaled for it."""
    from scipy.optimize import minimize

    starts, (low, high), stop, scale = starts_of(x0, objective.n), limits(bounds, objective.n), stop or Stop(), 1.0
    # every start has the iterations that were asked for
    progress = Progress(dataclasses.replace(stop, iterations=stop.iterations * len(starts) + len(starts) - 1), callback)

    def value_and_slope(x: np.ndarray) -> tuple[float, np.ndarray]:
        losses, x_bar = objective.gradient(x[None])
        progress.count(1, 1)
        progress.see(x[None], losses)
        if not np.isfinite(losses[0]):
            return 1e10, np.zeros_like(x)  # a lost motion: the line search must turn back
        return scale * float(losses[0]), scale * x_bar[0]

    def note(intermediate_result: Any) -> None:
        progress.end_iteration(intermediate_result.fun / scale)

    options = {"maxiter": stop.iterations, "maxcor": memory, "ftol": 0.0, "gtol": 1e-14, "maxfun": 10**9}
    with progress.running():
        for x in np.clip(starts, low, high):
            f, g = value_and_slope(x)
            # scipy's first trial step is g / |g|: in units where that is the wanted length, with the slope kept
            unit = 1.0 if first_step is None else first_step
            scale = scale if first_step is None else 1.0 / max(np.linalg.norm(g) * unit, 1e-300)
            progress.end_iteration(f)
            minimize(
                lambda y, unit=unit: _scaled(value_and_slope, y, unit), x / unit, jac=True, method="L-BFGS-B",
                bounds=list(zip(low / unit, high / unit, strict=True)), options=options,
                callback=note,
            )  # fmt: skip
            scale = 1.0
        raise Stopped("converged")
    return progress.result()


def _scaled(function: Any, y: np.ndarray, unit: float) -> tuple[float, np.ndarray]:
    """A function of x = unit * y, and its slope by y."""
    f, g = function(unit * y)
    return f, unit * g


def gauss_newton(
    objective: SumOfSquares, x0: Any, stop: Stop | None = None, bounds: Bounds = None, callback: Callback | None = None,
    damping: float = 1e-3, scale: Any = 1.0, trials: int = 8,
) -> Result:  # fmt: skip
    """Levenberg-Marquardt on half a sum of squares, from one start.

    The step solves min |r + J d|^2 + damping |d / scale|^2 over the entries that are free; several dampings are tried as one
    batch, and the best is kept. With fewer residuals than entries it is solved in the space of the residuals.
    """
    progress, x = Progress(stop or Stop(), callback), starts_of(x0, objective.n)[:1]
    low, high = limits(bounds, objective.n)
    x, scale = np.clip(x, low, high), np.broadcast_to(np.asarray(scale, float), (objective.n,))
    factors = 10.0 ** (np.arange(trials) - min(2, trials - 1))
    with progress.running():
        r, J = objective.jacobian(x)
        progress.count(1, min(J.shape[1:]))
        progress.see(x, 0.5 * (r**2).sum(-1))
        progress.end_iteration(progress.loss)
        while True:
            dampings = damping * factors
            points = x + np.array([_damped_step(r[0], J[0], x[0], low, high, scale, d) for d in dampings])
            points = np.clip(points, low, high)
            losses = half_squares(objective.residuals(points))
            progress.count(len(points))
            lead, before = int(np.argmin(losses)), progress.loss
            progress.see(points, losses)
            if losses[lead] < before:
                damping = max(dampings[lead], 1e-15)
                x = points[lead][None]
                r, J = objective.jacobian(x)
                progress.count(1, min(J.shape[1:]))
            progress.end_iteration(losses[lead])
            if not losses[lead] < before:
                if dampings[-1] > 1e12 or before < 1e-28:
                    raise Stopped("converged")
                damping = dampings[-1] * 10
    return progress.result(residuals=r[0], jacobian=J[0])


def half_squares(r: np.ndarray) -> np.ndarray:
    """Half the sum of squares of residuals (batch, m); infinite where they are not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = 0.5 * (r**2).sum(-1)
    return np.where(np.isfinite(total), total, np.inf)


def _damped_step(
    r: np.ndarray, J: np.ndarray, x: np.ndarray, low: np.ndarray, high: np.ndarray, scale: np.ndarray, damping: float
) -> np.ndarray:
    """The step of Levenberg and Marquardt. An entry at a bound that the step would cross is held there."""
    free, step = np.ones(len(x), bool), np.zeros(len(x))
    for _ in range(3):
        step[:] = 0.0
        step[free] = _ridge(r, J[:, free] * scale[free], damping) * scale[free]
        held = free & (((x <= low) & (step < 0)) | ((x >= high) & (step > 0)))
        if not held.any():
            break
        free &= ~held
    return np.where(free, step, 0.0)


def _ridge(r: np.ndarray, J: np.ndarray, damping: float) -> np.ndarray:
    """min |r + J d|^2 + damping |d|^2, relative to the size of J."""
    m, n = J.shape
    if n == 0:
        return np.zeros(0)
    weight = damping * max((J**2).sum() / min(m, n), 1e-300)
    if m < n:
        return -J.T @ np.linalg.solve(J @ J.T + weight * np.eye(m), r)
    return -np.linalg.lstsq(
        np.concatenate([J, np.sqrt(weight) * np.eye(n)]), np.concatenate([r, np.zeros(n)]), rcond=None
    )[0]
