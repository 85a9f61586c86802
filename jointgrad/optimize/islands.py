"""Basin hopping by pagmo (`pip install "jointgrad[scale]"`; wheels for Linux): an archipelago, each island a process of its own.

An island has a part of the population and hops by monotonic basin hopping (pygmo.mbh): all its points are moved by up to `spread`
widths of the box, solved locally with exact gradients, and kept if the best of them is better. An iteration is one call of mbh on
every island, which hops until it does not get better. Islands do not exchange points, so that the same seed does the same.
pygmo starts its processes anew: a script must guard its calls by `if __name__ == "__main__":`.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np

from ..model.errors import InputError
from . import scale  # noqa: F401  (lets models travel to other processes)
from .populations import Local
from .progress import Progress

Ended = list[tuple[np.ndarray, np.ndarray]]


class Problem:
    """An objective as pagmo knows problems. It also remembers what the local solves of its island came to."""

    def __init__(self, objective: Any, local: Local) -> None:
        self.objective, self.local = objective, local
        self.ends: Ended = []
        self.evaluations = self.gradients = 0

    def fitness(self, x: np.ndarray) -> list[float]:
        self.evaluations += 1
        return [float(self.objective.value(np.array(x)[None])[0])]

    def gradient(self, x: np.ndarray) -> np.ndarray:
        self.evaluations, self.gradients = self.evaluations + 1, self.gradients + 1
        return self.objective.gradient(np.array(x)[None])[1][0]

    def get_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        return self.local.bounds

    def solve(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ends = self.local.solve(self.objective, x)
        self.evaluations, self.gradients = self.evaluations + ends.evaluations, self.gradients + ends.gradients
        self.ends.append(ends.settled(self.local.stop.target))
        return ends.x, ends.losses


class LocalSolves:
    """An algorithm for pagmo: every point of a population goes to its local optimum, all as one batch."""

    def evolve(self, population: Any) -> Any:
        x, losses = population.problem.extract(Problem).solve(population.get_x())
        for k, (point, loss) in enumerate(zip(x, losses, strict=True)):
            population.set_xf(k, point, [loss])
        return population

    def get_name(self) -> str:
        return "jointgrad, local solves with exact gradients"


def hop(
    objective: Any, first: np.ndarray, local: Local, progress: Progress, spread: float, seed: int, workers: int | None
) -> Ended:
    """Hops until the progress says that it is enough; the ends of all local solves."""
    try:
        import pygmo
    except ImportError:
        raise InputError(
            'engine="pygmo" needs pygmo: pip install "jointgrad[scale]" (it has wheels for Linux)'
        ) from None
    if not 0 < spread <= 1:
        raise InputError(f"pagmo hops by up to one width of the box, but spread is {spread:g}")
    parts = np.array_split(first, min(len(first), workers or os.cpu_count() or 1))
    islands, ends = _islands(pygmo, objective, local, parts, seed), Ended()
    try:
        with progress.running():
            while True:
                for island in islands:
                    island.evolve()
                for island in islands:
                    island.wait_check()
                new = [island.get_population().problem.extract(Problem) for island in islands]
                ends = [one for problem in new for one in problem.ends]
                _note(progress, new, ends)
                for k, island in enumerate(islands):
                    solves = pygmo.algorithm(LocalSolves())
                    island.set_algorithm(
                        pygmo.algorithm(pygmo.mbh(solves, 1, spread, seed + len(islands) * progress.iteration + k))
                    )
    finally:
        pygmo.mp_island.shutdown_pool()
    return ends


def _islands(pygmo: Any, objective: Any, local: Local, parts: list[np.ndarray], seed: int) -> list[Any]:
    """With the first local solves as their first task."""
    found = []
    for k, part in enumerate(parts):
        population = pygmo.population(pygmo.problem(Problem(objective, local)), 0, seed=seed + k)
        for x in part:
            population.push_back(x, [np.inf])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pools are started by fork-like means that Python warns of
            found.append(pygmo.island(algo=pygmo.algorithm(LocalSolves()), pop=population, udi=pygmo.mp_island()))
    return found


def _note(progress: Progress, problems: list[Problem], ends: Ended) -> None:
    done = sum(p.evaluations for p in problems), sum(p.gradients for p in problems)
    progress.count(done[0] - progress.evaluations, done[1] - progress.gradients)
    for x, losses in ends:
        progress.see(x, losses)
    progress.end_iteration(progress.loss)
