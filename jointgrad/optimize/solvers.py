"""Plain solvers: descent (SGD, Adam) on a batch of starts at once, L-BFGS (scipy), Gauss-Newton.

An objective has `n`, `value(x) -> losses` and `gradient(x) -> losses, x_bar` for points x (batch, n). Bounds are a pair of
arrays (n,) or numbers; points are kept inside by projection.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..model.errors import InputError
from .progress import Callback, Progress, Result, Stop, Stopped

Bounds = tuple[Any, Any] | None
# Gauss-Newton ends a search whose damping exceeds the one, or whose loss is below the other
GIVE_UP, LEAST_LOSS = 1e12, 1e-28
# a step shorter than this, relative to the point, is none
SHORT = 1e-9


class Objective(Protocol):
    """A function of points x (batch, n) with its gradient."""

    n: int

    def value(self, x: np.ndarray) -> np.ndarray: ...

    def gradient(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]: ...


@dataclass(frozen=True)
class Tried:
    """Points that were evaluated: residuals (batch, m), infinite where a motion is lost, and the Jacobians (k, m, n) of k of
    the points, with how many motions that took: rolled out again, and pulled back (or pushed forward)."""

    residuals: np.ndarray
    jacobians: Callable[[Sequence[int]], tuple[np.ndarray, int, int]]


class SumOfSquares(Protocol):
    """A function that is half a sum of squares of residuals."""

    n: int

    def tried(self, x: np.ndarray) -> Tried: ...


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
    floor: float = 1e-12  # below which a root mean square counts as none
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
        return x - self.rate * mean / (np.sqrt(square) + self.floor)


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
            scale = scale if first_step is None else 1.0 / max(float(np.linalg.norm(g)) * unit, 1e-300)
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
    damping: float = 1e-3, scale: Any = 1.0, trials: int = 8, ratio: float = 10.0, secant: float = 0.0, ease: float = 1.0,
    alone: bool = False,
) -> Result:  # fmt: skip
    """Levenberg-Marquardt on half a sum of squares, from all starts at once.

    The step solves min |r + J d|^2 + damping |d / scale|^2 over the entries that are free; several dampings, each `ratio` times
    the one before, are tried for all starts as one batch, and the best is kept. With fewer residuals than entries it is
    solved in the space of the residuals. A start that no damping helps tries larger ones, until it gives up.
    ease: what the damping is multiplied by after a step that helped, beside that choice (with trials=1 there is none).

    secant: after a step that left no more than this share of the residuals, the Jacobian is not asked for but changed so that it
    explains the step (Broyden 1965), which costs nothing; it is asked for when that does not help any more.

    alone: a start also ends where a step gains less than stop.least of its loss: what is sought is every start's own optimum.
    All end when one is at stop.target. extra["ends"] and extra["losses"] say where each came to, extra["rounds"] after how many
    iterations it ended, or -1: it was on its way when another arrived, or on Ctrl-C.
    """
    stop, x = stop or Stop(), starts_of(x0, objective.n)
    progress = Progress(stop, callback)
    low, high = limits(bounds, objective.n)
    x, scale = np.clip(x, low, high), np.broadcast_to(np.asarray(scale, float), (objective.n,))
    factors = ratio ** (np.arange(trials) - min(2.0, trials - 1.0))
    everyone = searchers = [_Searcher(start, damping) for start in x]
    with progress.running():
        while True:
            tried = _tried(objective, x)
            losses = half_squares(tried.residuals)
            progress.count(len(x))
            progress.see(x, losses)
            needy = _advanced(searchers, x, losses, tried, factors, secant, ease)
            progress.end_iteration(float(losses.min()))
            least = stop.least if alone else 0.0
            _take_slopes([s for s in needy if s.gain >= least and s.loss > LEAST_LOSS], progress)
            searchers = [s for s in searchers if s.goes_on(least, progress.iteration)]
            if not searchers:
                raise Stopped("converged")
            steps = [_damped_step(s.r, s.J, s.x, low, high, scale, s.damping * f) for s in searchers for f in factors]
            x = np.clip(np.repeat([s.x for s in searchers], trials, axis=0) + steps, low, high)
    # the last iteration is an end, for those that arrived or have no more
    is_on_its_way = progress.reason in ("target", "interrupted")
    for s in everyone:
        if s.rounds < 0 and (s.loss <= stop.target or not is_on_its_way):
            s.rounds = progress.iteration
    ends, losses, rounds = (np.array([getattr(s, name) for s in everyone]) for name in ("x", "loss", "rounds"))
    return progress.result(ends=ends, losses=losses, rounds=rounds)


def _tried(objective: Any, x: np.ndarray) -> Tried:
    """Of an objective that has `tried`, or `residuals` and `jacobian` alone."""
    if hasattr(objective, "tried"):
        return objective.tried(x)

    def jacobians(rows: Sequence[int]) -> tuple[np.ndarray, int, int]:
        J = objective.jacobian(x[list(rows)])[1]
        return J, len(J), len(J) * min(J.shape[1:])

    return Tried(objective.residuals(x), jacobians)


@dataclass(eq=False)
class _Searcher:
    """One of the starts of Gauss-Newton, where it has come to, and the evaluation that brought it there."""

    x: np.ndarray
    damping: float
    loss: float = np.inf
    r: Any = None
    J: Any = None  # None before the first evaluation
    is_exact: bool = False  # whether J is the Jacobian, or has been changed by secants
    tried: Any = None
    row: int = 0  # of x in `tried`
    gain: float = np.inf  # of the last step, as a share of the loss; infinite where another step may do better
    rounds: int = -1  # iterations after which it ended

    def goes_on(self, least: float, iteration: int) -> bool:
        """Whether a next step may help; where not, this iteration was its last."""
        is_hopeful = self.J is not None and self.damping < GIVE_UP and self.loss > LEAST_LOSS and self.gain >= least
        self.rounds = -1 if is_hopeful else iteration
        return is_hopeful

    def move(self, x: np.ndarray, loss: float, tried: Tried, row: int, secant: float) -> bool:
        """Go to a better point; whether a new Jacobian is wanted there."""
        r, is_enough = tried.residuals[row], self.J is not None and loss <= secant**2 * self.loss
        if is_enough:
            step = x - self.x
            self.J = self.J + np.outer(r - self.r - self.J @ step, step) / (step @ step)
        self.gain = np.inf if self.J is None else (self.loss - loss) / max(self.loss, 1e-300)
        self.x, self.r, self.loss, self.tried, self.row, self.is_exact = x, r, loss, tried, row, not is_enough
        return not is_enough


def _advanced(
    searchers: list[_Searcher], x: np.ndarray, losses: np.ndarray, tried: Tried, factors: np.ndarray, secant: float,
    ease: float,
) -> list[_Searcher]:  # fmt: skip
    """Move every searcher to the best of its own points; those that need a new Jacobian."""
    each, needy = len(x) // len(searchers), []
    for number, s in enumerate(searchers):
        own = slice(number * each, (number + 1) * each)
        row = number * each + int(np.argmin(losses[own]))
        if losses[row] < s.loss:
            if s.J is not None:
                s.damping = max(s.damping * factors[row - number * each] * ease, 1e-15)
            if s.move(x[row], float(losses[row]), tried, row, secant):
                needy.append(s)
        elif s.J is not None and not s.is_exact:
            s.is_exact, s.gain = True, np.inf
            needy.append(s)
        else:
            s.damping *= factors[-1] * 10.0
            # steps too short to help, and only shorter ones to come
            is_short = np.abs(x[own] - s.x).max() < SHORT * (1.0 + np.abs(s.x).max())
            s.gain = 0.0 if s.J is not None and is_short else np.inf
    return needy


def _take_slopes(needy: list[_Searcher], progress: Progress) -> None:
    """Jacobians of all that need one, those of one evaluation together."""
    for tried in {id(s.tried): s.tried for s in needy}.values():
        own = [s for s in needy if s.tried is tried]
        jacobians, rolled, pulled = tried.jacobians([s.row for s in own])
        progress.count(rolled, pulled)
        for s, J in zip(own, jacobians, strict=True):
            s.J = J


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
        step[free] = _step_of(r, J, free, scale, damping)
        held = free & (((x <= low) & (step < 0)) | ((x >= high) & (step > 0)))
        if not held.any():
            break
        free &= ~held
    return np.where(free, step, 0.0)


def _step_of(r: np.ndarray, J: Any, free: np.ndarray, scale: np.ndarray, damping: float) -> np.ndarray:
    """Of the free entries; a Jacobian that knows its own structure solves for it itself."""
    if hasattr(J, "damped_step"):
        return J.damped_step(free, scale, damping)[free]
    return _ridge(r, J[:, free] * scale[free], damping) * scale[free]


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
