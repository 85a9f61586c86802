"""Search beyond the next valley, or without gradients.

Parallel basin hopping (NeuralSim, Heiden 2021, section III-E): a population of exact-gradient local solves, one batch of motions
at a time, which hops about the best point so far. For comparison, without gradients: CMA-ES (cma) with a full or diagonal
covariance, golden section, Brent, Nelder-Mead. A generation of CMA-ES is one batch of motions, so that it has the same advantage of
many cores as everything else here.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..model.errors import InputError
from .progress import Callback, Progress, Result, Stop, Stopped
from .solvers import Bounds, half_squares, lbfgs, limits, starts_of

# basin hopping -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Optimum:
    """Where local solves ended: a point, its loss, and how many of them came to it."""

    x: np.ndarray
    loss: float
    visits: int


def basin_hopping(
    objective: Any, x0: Any, bounds: Bounds, stop: Stop | None = None, callback: Callback | None = None,
    population: int = 8, local: str = "auto", local_stop: Stop | None = None, spread: float = 1.0, shrink: bool = False,
    same: float = 1e-3, seed: int = 0,
) -> Result:  # fmt: skip
    """Local solves from the guesses x0 and from random points of the box, then from random points about the best, and so on.

    An iteration is one hop of the whole population; stop.iterations counts those after the first. local: "gauss_newton" (all
    points as one batch; the objective is a SumOfSquares), "lbfgs" (one after the other), or "auto": the former where it can.
    local_stop: when a local solve ends. spread: the standard deviation of a hop, in widths of the box; shrink: the k-th hop's
    is k times smaller. same: points closer than this, in widths of the box, are one optimum.
    extra["optima"] has all local optima (Optimum), the best first; extra["solves"] counts local solves.
    """
    low, high = limits(bounds, objective.n)
    if not (np.isfinite(low) & np.isfinite(high)).all():
        raise InputError("basin hopping needs finite bounds: its hops are measured in widths of the box")
    if population < 1:
        raise InputError(f"population must be 1 or more, but is {population}")
    stop = stop or Stop(iterations=20)
    progress, rng, width = Progress(stop, callback), np.random.default_rng(seed), high - low
    ends: list[tuple[np.ndarray, np.ndarray]] = []
    x = _first_population(starts_of(x0, objective.n), low, high, population, rng)
    # a local solve must not go on when the whole search has arrived
    each = dataclasses.replace(local_stop or Stop(iterations=50), target=stop.target)
    solve = _local_solver(objective, local)
    with progress.running():
        while True:
            x, losses = solve(x, each, (low, high), progress)
            ends.append((x, losses))
            progress.see(x, losses)
            progress.end_iteration(np.min(losses))
            assert progress.x is not None
            reach = spread * width / (progress.iteration + 1 if shrink else 1.0)
            x = np.clip(progress.x + reach * rng.normal(size=(population, objective.n)), low, high)
    return progress.result(optima=_optima(ends, width, same), solves=sum(len(losses) for _, losses in ends))


def _first_population(
    guesses: np.ndarray, low: np.ndarray, high: np.ndarray, population: int, rng: np.random.Generator
) -> np.ndarray:
    """The guesses, and random points of the box up to the size of the population."""
    more = max(population - len(guesses), 0)
    return np.concatenate([np.clip(guesses, low, high), rng.uniform(low, high, size=(more, len(low)))])


def _local_solver(objective: Any, local: str) -> Callable:
    has_squares = hasattr(objective, "residuals") and hasattr(objective, "jacobian")
    if local == "auto":
        local = "gauss_newton" if has_squares else "lbfgs"
    if local == "gauss_newton":
        if not has_squares:
            raise InputError('local="gauss_newton" needs an objective with residuals and jacobian')
        return lambda x, stop, bounds, progress: gauss_newton_population(objective, x, stop, bounds, progress)
    if local == "lbfgs":
        return lambda x, stop, bounds, progress: _lbfgs_each(objective, x, stop, bounds, progress)
    raise InputError(f'there is no local solver "{local}"; the names are auto, gauss_newton, lbfgs')


def _optima(ends: list[tuple[np.ndarray, np.ndarray]], width: np.ndarray, same: float) -> list[Optimum]:
    """Ends of local solves, the best first, those close to a better one counted with it."""
    if not ends:
        return []
    x, losses = (np.concatenate(part) for part in zip(*ends, strict=True))
    width, found = np.where(width > 0, width, 1.0), []
    for k in np.argsort(losses, kind="stable"):
        if not np.isfinite(losses[k]):
            break
        near = next((f for f in found if np.abs((f[0] - x[k]) / width).max() < same), None)
        if near is None:
            found.append([x[k], float(losses[k]), 1])
        else:
            near[2] += 1
    return [Optimum(*f) for f in found]


def _lbfgs_each(
    objective: Any, x: np.ndarray, stop: Stop, bounds: Bounds, progress: Progress
) -> tuple[np.ndarray, np.ndarray]:
    ends = []
    for start in x:
        ends.append(lbfgs(objective, start, stop, bounds))
        progress.count(ends[-1].history.evaluations[-1], ends[-1].history.gradients[-1])
        progress.see(ends[-1].x[None], np.array([ends[-1].loss]))
        if ends[-1].is_interrupted:
            raise KeyboardInterrupt
    return np.array([e.x for e in ends]), np.array([e.loss for e in ends])


def gauss_newton_population(
    objective: Any, x: np.ndarray, stop: Stop, bounds: Bounds, progress: Progress | None = None, damping: float = 1e-3
) -> tuple[np.ndarray, np.ndarray]:
    """Levenberg-Marquardt from many starts (batch, n) at once, each with its own damping: where they end, and their losses.

    A start is finished when its loss is at stop.target, its step or its gain negligible, or no damping helps; the rest goes on.
    With one at the target, all end: what is sought is the best.
    """
    progress = progress or Progress(Stop())
    low, high = limits(bounds, objective.n)
    x, dampings = np.clip(x, low, high), np.full(len(x), damping)
    r, J = objective.jacobian(x)
    losses, active = half_squares(r), np.arange(len(x))
    progress.count(len(x), len(x) * min(J.shape[1:]))
    active = active[np.isfinite(losses)]
    for _ in range(stop.iterations):
        progress.see(x, losses)
        if not len(active) or losses.min() <= stop.target:
            break
        step = _population_step(r[active], J[active], x[active], low, high, dampings[active])
        points = np.clip(x[active] + step, low, high)
        trial = half_squares(objective.residuals(points))
        progress.count(len(points))
        is_better = trial < losses[active]
        gain = np.where(is_better, losses[active] - trial, np.inf) / np.maximum(losses[active], 1e-300)
        moved = np.abs(points - x[active]).max(-1) / (1.0 + np.abs(x[active]).max(-1))
        dampings[active] *= np.where(is_better, 0.2, 5.0)
        better = active[is_better]
        if len(better):
            x[better] = points[is_better]
            r[better], J[better] = objective.jacobian(x[better])
            losses[better] = half_squares(r[better])
            progress.count(len(better), len(better) * min(J.shape[1:]))
        is_over = (moved < 1e-9) | (gain < stop.least) | (dampings[active] > 1e9)
        active = active[~is_over]
        dampings = np.maximum(dampings, 1e-12)
    return x, losses


def _population_step(
    r: np.ndarray, J: np.ndarray, x: np.ndarray, low: np.ndarray, high: np.ndarray, dampings: np.ndarray
) -> np.ndarray:
    """(batch, n): min |r + J d|^2 + damping |J|^2 |d|^2; an entry at a bound that the slope would push across is held."""
    slope, curvature = np.einsum("bmi,bm->bi", J, r), np.einsum("bmi,bmj->bij", J, J)
    is_held = ((x <= low) & (slope > 0)) | ((x >= high) & (slope < 0))
    free = (~is_held).astype(float)
    n = x.shape[1]
    size = np.maximum(np.einsum("bii->b", curvature) / n, 1e-300)
    curvature = curvature * free[:, :, None] * free[:, None, :]
    ridge = (dampings * size)[:, None] + size[:, None] * is_held
    return -np.linalg.solve(curvature + ridge[:, :, None] * np.eye(n), (slope * free)[..., None])[..., 0]


# without gradients ---------------------------------------------------------------------------------------------------------


def cma_es(
    objective: Any, x0: Any, step: float, stop: Stop | None = None, bounds: Bounds = None,
    callback: Callback | None = None, diagonal: bool = False, population: int | None = None, seed: int = 0,
) -> Result:  # fmt: skip
    """CMA-ES (Hansen 2016) from one start with the standard deviation `step` at first. diagonal: separable CMA-ES, for when
    the n x n covariance would not fit. Bounds are kept by projection."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # cma warns of plots and of noise handlers that nobody asked for
        import cma

    progress, x = Progress(stop or Stop(), callback), starts_of(x0, objective.n)[:1]
    low, high = limits(bounds, objective.n)
    options = {"verbose": -9, "seed": seed + 1, "CMA_diagonal": diagonal, "maxiter": 10**9, "tolfun": 0, "tolx": 0,
               "tolfunhist": 0, "tolstagnation": 10**9, "tolflatfitness": 10**9}  # fmt: skip
    if population is not None:
        options["popsize"] = population
    with progress.running(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        strategy = cma.CMAEvolutionStrategy(x[0], step, options)
        losses = objective.value(np.clip(x, low, high))
        progress.count(1)
        progress.see(np.clip(x, low, high), losses)
        progress.end_iteration(losses[0])
        while True:
            asked = strategy.ask()
            points = np.clip(np.array(asked), low, high)
            losses = objective.value(points)
            progress.count(len(points))
            progress.see(points, losses)
            progress.end_iteration(np.min(losses))
            strategy.tell(asked, np.where(np.isfinite(losses), losses, 1e10))
    return progress.result()


def golden_section(
    objective: Any, low: float, high: float, stop: Stop | None = None, callback: Callback | None = None
) -> Result:
    """The minimum of a function of one number between two others, by halving in the golden ratio."""
    progress, ratio = Progress(stop or Stop(), callback), (np.sqrt(5) - 1) / 2

    def value(x: float) -> float:
        loss = objective.value(np.array([[x]]))
        progress.count(1)
        progress.see(np.array([[x]]), loss)
        return float(loss[0])

    with progress.running():
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        f_a, f_b = value(a), value(b)
        progress.end_iteration(min(f_a, f_b))
        while high - low > 1e-12:
            if f_a < f_b:
                high, b, f_b = b, a, f_a
                a = high - ratio * (high - low)
                f_a = value(a)
            else:
                low, a, f_a = a, b, f_b
                b = low + ratio * (high - low)
                f_b = value(b)
            progress.end_iteration(min(f_a, f_b))
        raise Stopped("converged")
    return progress.result()


def brent(
    objective: Any, low: float, high: float, stop: Stop | None = None, callback: Callback | None = None
) -> Result:
    """The minimum of a function of one number between two others, by parabolas and the golden section (Brent 1973, scipy)."""
    from scipy.optimize import minimize_scalar

    progress = Progress(stop or Stop(), callback)

    def value(x: float) -> float:
        loss = objective.value(np.array([[x]]))
        progress.count(1)
        progress.see(np.array([[x]]), loss)
        progress.end_iteration(float(loss[0]))
        return float(loss[0])

    with progress.running():
        minimize_scalar(value, bounds=(low, high), method="bounded", options={"xatol": 1e-12})
        raise Stopped("converged")
    return progress.result()


def nelder_mead(
    objective: Any, x0: Any, stop: Stop | None = None, bounds: Bounds = None, callback: Callback | None = None,
    step: float | None = None,
) -> Result:  # fmt: skip
    """The simplex of Nelder and Mead (scipy) from one start. step: the length of its first edges, where scipy's, a twentieth of
    each number, would not do."""
    from scipy.optimize import minimize

    progress, x = Progress(stop or Stop(), callback), starts_of(x0, objective.n)[:1]
    low, high = limits(bounds, objective.n)

    def value(point: np.ndarray) -> float:
        losses = objective.value(point[None])
        progress.count(1)
        progress.see(point[None], losses)
        return float(losses[0])

    note: Callable = lambda point: progress.end_iteration(progress.loss)  # noqa: E731
    with progress.running():
        progress.end_iteration(value(x[0]))
        options: dict[str, Any] = {"maxiter": 10**9, "maxfev": 10**9, "xatol": 1e-15, "fatol": 1e-30}
        if step is not None:
            corners = np.concatenate([x, x + step * np.eye(objective.n)])
            options["initial_simplex"] = np.clip(corners, low, high)
        minimize(
            value, x[0], method="Nelder-Mead", bounds=list(zip(low, high, strict=True)), callback=note, options=options
        )
        raise Stopped("converged")
    return progress.result()
