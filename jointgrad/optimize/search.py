"""Search without gradients, for comparison: CMA-ES (cma) with a full or diagonal covariance, golden section, Brent, Nelder-Mead.

A generation of CMA-ES is one batch of motions, so that it has the same advantage of many cores as everything else here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .progress import Callback, Progress, Result, Stop, Stopped
from .solvers import Bounds, limits, starts_of


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
    objective: Any, x0: Any, stop: Stop | None = None, bounds: Bounds = None, callback: Callback | None = None
) -> Result:
    """The simplex of Nelder and Mead (scipy) from one start."""
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
        options = {"maxiter": 10**9, "maxfev": 10**9, "xatol": 1e-15, "fatol": 1e-30}
        minimize(
            value, x[0], method="Nelder-Mead", bounds=list(zip(low, high, strict=True)), callback=note, options=options
        )
        raise Stopped("converged")
    return progress.result()
