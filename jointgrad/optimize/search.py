"""Search beyond the next valley, or without gradients.

Parallel basin hopping (NeuralSim, Heiden 2021, section III-E): a population of exact-gradient local solves, one batch of motions
at a time, which hops about the best point so far. For comparison, without gradients: CMA-ES (cma) with a full or diagonal
covariance, golden section, Brent, Nelder-Mead. A generation of CMA-ES is one batch of motions, so that it has the same advantage of
many cores as everything else here.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..model.errors import InputError
from .populations import Ends, Local
from .progress import Callback, Progress, Result, Stop, Stopped
from .search_file import read_search, write_search
from .solvers import Bounds, limits, starts_of

ENGINES = ("batch", "ray", "pygmo")

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
    same: float = 1e-3, seed: int = 0, engine: str = "batch", address: str | None = None, workers: int | None = None,
    file: str | Path | None = None,
) -> Result:  # fmt: skip
    """Local solves from the guesses x0 and from random points of the box, then from random points about the best, and so on.

    An iteration is one hop of the whole population; stop.iterations counts those after the first. local: "gauss_newton" (the
    objective is a SumOfSquares), "lbfgs", or "auto": the former where it can; both step from all points as one batch of motions.
    local_stop: when a local solve ends (iterations, least); all end when one is at stop.target. spread: the standard deviation of a
    hop, in widths of the box; shrink: the k-th hop's is k times smaller. same: points closer than this, in widths of the box, are
    one optimum.

    engine: who makes the local solves. "batch": this process, on all cores. "ray": workers of a Ray cluster, which `address` names
    (as ray.init takes it; None starts one here); what a lost worker had is done again. Both come to the same points.
    "pygmo": islands of pagmo, one for each of `workers`, that hop by pagmo's own rule. See optimize/scale.py and islands.py.
    file: where population, random state and history are kept after each hop; a search that is called again with the same file
    goes on where it was, and does what it would have done without a pause.

    extra["optima"] has all local optima (Optimum), the best first; extra["solves"] counts local solves that
    came to an end.
    """
    low, high = limits(bounds, objective.n)
    _check(low, high, population, engine)
    stop, rng = stop or Stop(iterations=20), np.random.default_rng(seed)
    progress = Progress(stop, callback)
    # a local solve must not go on when it has found what the whole search is for
    local_stop = dataclasses.replace(local_stop or Stop(iterations=50), target=stop.target)
    each = Local.of(objective, local, local_stop, (low, high))
    first = _first_population(starts_of(x0, objective.n), low, high, population, rng)
    if engine == "pygmo":
        if file is not None or shrink or address is not None:
            raise InputError(
                'engine="pygmo" hops by the rule of pagmo, which knows neither `file`, `shrink` nor `address`'
            )
        from .islands import hop

        ends = hop(objective, first, each, progress, spread, seed, workers)
        return progress.result(**_findings(ends, high - low, same))
    settings = {"n": objective.n, "low": low.tolist(), "high": high.tolist(), "seed": seed,
                "population": population, "local": each.method, "spread": spread, "shrink": shrink,
                "local_stop": {k: v for k, v in dataclasses.asdict(local_stop).items() if k != "target"},
                "starts": first.tolist()}  # fmt: skip
    search = _Hopping(progress, rng, first, None if file is None else Path(file), settings)
    with progress.running(), _solver(engine, objective, each, address, workers) as solve:
        search.go_on()
        while True:
            reach = spread * (high - low) / (max(progress.iteration + 1, 1) if shrink else 1.0)
            search.end_hop(solve(search.starts(reach, low, high, population)))
    return progress.result(**_findings(search.ends, high - low, same))


def _check(low: np.ndarray, high: np.ndarray, population: int, engine: str) -> None:
    if not (np.isfinite(low) & np.isfinite(high)).all():
        raise InputError("basin hopping needs finite bounds: its hops are measured in widths of the box")
    if population < 1:
        raise InputError(f"population must be 1 or more, but is {population}")
    if engine not in ENGINES:
        raise InputError(f'there is no engine "{engine}"; the names are {", ".join(ENGINES)}')


def _first_population(
    guesses: np.ndarray, low: np.ndarray, high: np.ndarray, population: int, rng: np.random.Generator
) -> np.ndarray:
    """The guesses, and random points of the box up to the size of the population."""
    more = max(population - len(guesses), 0)
    return np.concatenate([np.clip(guesses, low, high), rng.uniform(low, high, size=(more, len(low)))])


@contextmanager
def _solver(
    engine: str, objective: Any, local: Local, address: str | None, workers: int | None
) -> Iterator[Callable[[np.ndarray], Ends]]:
    """From starts to their ends."""
    if engine == "batch":
        if address is not None or workers is not None:
            raise InputError('engine="batch" has no address and uses all cores; `workers` is for "ray" and "pygmo"')
        yield lambda x: local.solve(objective, x)
        return
    from .scale import ray_solver

    with ray_solver(objective, local, address, workers) as solve:
        yield solve


class _Hopping:
    """A search between two hops: its progress, the ends of all hops before, and the random state that draws the next."""

    def __init__(
        self,
        progress: Progress,
        rng: np.random.Generator,
        first: np.ndarray,
        path: Path | None,
        settings: dict[str, Any],
    ) -> None:
        self.progress, self.rng, self.first, self.path, self.settings = progress, rng, first, path, settings
        self.ends: list[tuple[np.ndarray, np.ndarray]] = []

    def go_on(self) -> None:
        """From where the file says, if there is one; raises Stopped where that search is over."""
        kept = None if self.path is None else read_search(self.path, self.settings, self.rng)
        if kept is not None:
            self.ends = kept[1]
            self.progress.go_on(kept[0])

    def starts(self, reach: np.ndarray, low: np.ndarray, high: np.ndarray, population: int) -> np.ndarray:
        """Of the next hop: random points about the best."""
        if not self.ends:
            return self.first
        return np.clip(self.progress.x + reach * self.rng.normal(size=(population, len(low))), low, high)  # type: ignore[operator]

    def end_hop(self, ends: Ends) -> None:
        """Raises Stopped at the end of the search."""
        progress = self.progress
        progress.count(ends.evaluations, ends.gradients)
        if ends.is_interrupted:
            progress.see(ends.x, ends.losses)
            raise KeyboardInterrupt  # what is on disk is the end of the hop before: this one will be made again, whole
        x, losses = ends.settled(progress.stop.target)
        self.ends.append((x, losses))
        progress.see(x, losses)
        try:
            progress.end_iteration(np.min(losses))
        finally:
            if self.path is not None:
                write_search(self.path, self.settings, progress.kept(), self.rng, self.ends)


def _findings(ends: list[tuple[np.ndarray, np.ndarray]], width: np.ndarray, same: float) -> dict[str, Any]:
    return {"optima": _optima(ends, width, same), "solves": sum(len(losses) for _, losses in ends)}


def _optima(ends: list[tuple[np.ndarray, np.ndarray]], width: np.ndarray, same: float) -> list[Optimum]:
    """Ends of local solves, the best first, those close to a better one counted with it."""
    if not ends:
        return []
    x, losses = (np.concatenate(part) for part in zip(*ends, strict=True))
    width = np.where(width > 0, width, 1.0)
    found: list = []
    for k in np.argsort(losses, kind="stable"):
        if not np.isfinite(losses[k]):
            break
        near = next((f for f in found if np.abs((f[0] - x[k]) / width).max() < same), None)
        if near is None:
            found.append([x[k], float(losses[k]), 1])
        else:
            near[2] += 1
    return [Optimum(*f) for f in found]


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
