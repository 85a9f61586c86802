"""One fit after another: the noise is estimated by what the one before leaves unexplained."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...model.arrays import Model, State
from ...model.parameters import Entry, Inertia
from ..progress import Callback, Result, Stop
from .covariance import Fit, judged, linear_at, measured_noise
from .data import Recording, Settings
from .noise import derived_rates, rough_noise
from .problem import Identification

# states at which segments start, by recording and sample
Starts = dict[tuple[int, int], tuple[np.ndarray, np.ndarray]]
# residuals so many times the noise that the recording itself shows are more than noise
MISFIT = 3.0


@dataclass(frozen=True)
class Solved:
    """A problem and where its search ended."""

    problem: Identification
    result: Result

    @property
    def x(self) -> np.ndarray:
        """(P,): the parameters."""
        return self.result.x[: self.problem.unknowns.n]

    @property
    def starts(self) -> Starts:
        found, at = self.problem.starts_at(self.result.x), self.problem.pieces.at
        return {place: (found.q[s], found.qd[s]) for s, place in enumerate(at)}

    @property
    def sigma(self) -> np.ndarray:
        """(2 nv,): of the measurements; infinite where they were not used."""
        noise = measured_noise(self.problem, linear_at(self.problem, self.result.x))
        both = np.concatenate([noise.sigma_q, noise.sigma_qd])
        return np.where(np.isnan(both), np.inf, both)


@dataclass(frozen=True)
class Fitting:
    """What is fitted to what, and by which solver."""

    model: Model
    recordings: Sequence[Recording]
    entries: Sequence[Entry | Inertia]
    solver: Callable[..., Result]
    stop: Stop
    callback: Callback | None = None

    def solved(
        self, settings: Settings, x: np.ndarray | None = None, starts: Starts | None = None, stop: Stop | None = None,
        title: str = "",
    ) -> Solved:  # fmt: skip
        """One search from parameters x (P,) and from states that are known to be near, where there are such."""
        problem = Identification(self.model, self.recordings, self.entries, settings)
        begin = problem.start
        begin[: problem.unknowns.n] = problem.unknowns.start if x is None else x
        if problem.is_free:
            problem.choose_starts(begin)
            problem.begin_at(_known(problem, starts or {}))
        self.announce(title)
        return Solved(problem, self.solver(problem, begin, stop or self.stop, problem.bounds, self.callback))

    def weighed(self, settings: Settings, x: np.ndarray | None = None) -> tuple[Solved, list[str]]:
        """Fitted by rough deviations first where none are given, and then by those of what was left; and what is to be said."""
        if settings.sigma_q is not None and settings.sigma_qd is not None:
            return self.solved(settings, x, title="Identifying"), []
        rough = with_sigma(settings, rough_noise(self.model, self.recordings))
        first = self.solved(rough, x, title="Measuring the noise")
        if first.result.is_interrupted:
            return first, []
        sigma, notes = without_derived(first, settings)
        return self.solved(with_sigma(settings, sigma), first.x, first.starts, title="Identifying"), notes

    def judged(self, solved: Solved, notes: Sequence[str] = (), choice: Sequence[Any] = ()) -> Fit:
        fit = judged(solved.problem, solved.result, notes, choice)
        fit.notes.extend(self._misfits(fit))
        return fit

    def _misfits(self, fit: Fit) -> list[str]:
        """Where residuals are far larger than what the recording's own unevenness lets expect."""
        rough, nv = rough_noise(self.model, self.recordings), self.model.nv
        ratio = fit.noise.sigma_q / rough[:nv]
        if not (ratio > MISFIT).any():
            return []
        worst = int(np.nanargmax(ratio))
        return [
            f"the model does not explain the recording down to its noise: residuals of q are up to {ratio[worst]:.0f} times as "
            f"large (coordinate {worst}); the intervals hold only as far as the model is right"
        ]

    def announce(self, title: str) -> None:
        if title and hasattr(self.callback, "stage"):
            self.callback.stage(title)  # type: ignore[union-attr]


def with_sigma(settings: Settings, sigma: np.ndarray) -> Settings:
    """Deviations (2 nv,) where the settings leave them open."""
    nv = len(sigma) // 2
    return dataclasses.replace(
        settings,
        sigma_q=sigma[:nv] if settings.sigma_q is None else settings.sigma_q,
        sigma_qd=sigma[nv:] if settings.sigma_qd is None else settings.sigma_qd,
    )


def without_derived(solved: Solved, settings: Settings) -> tuple[np.ndarray, list[str]]:
    """Deviations (2 nv,) after a fit, infinite for velocities that were made of positions; and what is to be said of them."""
    problem, sigma = solved.problem, solved.sigma
    near, nv = linear_at(problem, solved.result.x), problem.model.nv
    derived = derived_rates(near.r, near.mask)
    if settings.sigma_qd is not None or not derived.any():
        return sigma, []
    sigma[nv:][derived] = np.inf
    which = "" if derived.all() else f" of {', '.join(map(str, np.flatnonzero(derived)))}"
    said = f"residuals of qd{which} follow from those of q (made by differences or a filter): q alone is fitted there"
    return sigma, [said]


def _known(problem: Identification, starts: Starts) -> State:
    """Starts that are known, and elsewhere those that the problem has."""
    q, qd = problem.pieces.q0.copy(), problem.pieces.qd0.copy()
    for s, place in enumerate(problem.pieces.at):
        if place in starts:
            q[s], qd[s] = starts[place]
    return State(q, qd)
