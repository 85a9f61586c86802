"""How sure a fit is: what the noise of the data does to the numbers that were found.

An estimate errs by (G^T G)^-1 G^T e, with the noise e of the data and their slopes G by the parameters, of which only the part
counts that no change of a free start makes up for. The noise is measured by the residuals, channel by channel. What was fitted
to a channel has made its residuals smaller and their neighbours less alike; by how much, the leverage says: diagonal and
neighbours of the projector onto all that was fitted, starts included. Neighbouring samples may err alike: the noise of a channel
is taken as autoregressive of the first order, and never as alternating, which would only narrow the intervals.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ...model.arrays import Model
from ...model.parameters import Unknowns
from ..progress import Result
from .arrow import Arrow
from .noise import LEAST, Noise, rough_noise, size_of
from .problem import Identification

# a direction that the data determine this much less than the best one counts as not determined
BLIND = 1e-6
# of the normal distribution, for 95 %
TWO_SIDED = 1.959964
# a fit has converged where what is left to go is less than this share of a standard deviation (of white noise), or of the
# numbers themselves
NEAR, SMALL = 0.1, 1e-6
# the most that neighbouring samples may have in common; degrees of freedom below which a channel is judged with the others
MOST_ALIKE, FEWEST = 0.99, 5.0


@dataclass(frozen=True)
class Estimate:
    """One number that was found, with its standard deviation; nan where the data do not determine it. is_wide: the 95 % interval
    is wider than its bounds."""

    name: str
    start: float
    value: float
    deviation: float
    at_bound: bool = False
    is_wide: bool = False

    @property
    def interval(self) -> tuple[float, float]:
        """95 %; unbounded where the data do not determine the number."""
        half = TWO_SIDED * self.deviation if np.isfinite(self.deviation) else np.inf
        return self.value - half, self.value + half


@dataclass(frozen=True)
class Fit:
    """What was found: the model, its numbers, how sure they are, and which mixtures of them the data do not show."""

    model: Model
    estimates: list[Estimate]
    covariance: np.ndarray  # (n, n), of the physical numbers, over the directions that are determined
    singular_values: np.ndarray  # of the Jacobian by x, largest first
    unidentifiable: list[dict[str, float]]  # unit directions of x: name -> share
    residual_rms: float  # in standard deviations
    result: Result
    unknowns: Unknowns
    noise: Noise
    is_converged: bool
    segment: int | None = None  # samples; None for whole recordings
    period: float = np.nan  # s, from one sample to the next
    starts: str = "measured"
    choice: list[Any] = field(default_factory=list)  # of Candidate: what was compared on held-out windows
    notes: list[str] = field(default_factory=list)

    @property
    def x(self) -> np.ndarray:
        return self.result.x[: self.unknowns.n]

    @property
    def reason(self) -> str:
        """Why the search ended: "converged", "stalled" (no step helps, and it is not where it should end), "iterations", ..."""
        if self.result.reason in ("interrupted", "callback"):
            return self.result.reason
        if self.is_converged:
            return "converged"
        return "stalled" if self.result.reason in ("converged", "target") else self.result.reason


@dataclass(frozen=True)
class Linear:
    """Residuals (K, S, C) of samples, segments and channels, in units of their deviations, near a point; where there are any; their
    slopes by the parameters (K, S, C, P) less what starts make up for; an orthonormal basis (K, S, C, n) of what starts make
    up for; and residuals (joins,) with slopes (joins, P) that are no measurements, but bind segments together."""

    r: np.ndarray
    mask: np.ndarray
    slopes: np.ndarray
    of_starts: np.ndarray
    r_joins: np.ndarray
    joins: np.ndarray
    free: np.ndarray  # (P,): parameters that no bound holds

    @cached_property
    def directions(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Singular values (P,), directions (P, P) as rows, and which of them are determined."""
        P = self.slopes.shape[-1]
        flat = np.concatenate([self.slopes.reshape(-1, P), self.joins])
        # the triangle has the same values and directions, and does not grow with the number of residuals
        _, values, rows = np.linalg.svd(np.linalg.qr(flat, mode="r"), full_matrices=True)
        values = np.concatenate([values, np.zeros(P - len(values))])
        return values, rows, values > BLIND * max(values.max(), 1e-300)

    @cached_property
    def basis(self) -> np.ndarray:
        """(K, S, C, n): of all that was fitted."""
        values, rows, seen = self.directions
        return np.concatenate([self.of_starts, self.slopes @ (rows[seen].T / values[seen])], axis=-1)

    @cached_property
    def variances(self) -> np.ndarray:
        """(C,): of the noise of every channel, in the units assumed."""
        squares, left = ((a * self.mask).sum((0, 1)) for a in (self.r**2, 1.0 - (self.basis**2).sum(-1)))
        together = squares.sum() / max(left.sum(), 1.0)
        return np.where(left >= FEWEST, squares / np.maximum(left, 1.0), together)

    @cached_property
    def correlations(self) -> np.ndarray:
        """(C,): of neighbouring samples, corrected for what the fit has taken out."""
        pairs = (self.mask[1:] & self.mask[:-1]).sum((0, 1))
        alike = (self.r[1:] * self.r[:-1]).sum((0, 1))
        taken = np.einsum("kscn,kscn->c", self.basis[1:], self.basis[:-1])
        found = alike / np.maximum(self.variances, 1e-300) + taken
        return np.clip(found / np.maximum(pairs, 1), 0.0, MOST_ALIKE)

    def gathered_noise(self) -> np.ndarray:
        """(P, P): covariance of the slopes' products with the noise."""
        alike = self.correlations[:, None]
        total, tail = self.joins.T @ self.joins, np.zeros(self.slopes.shape[1:])
        for G in self.slopes:
            total += np.einsum("scp,c,scq->pq", G, self.variances, G)
            cross = np.einsum("scp,c,scq->pq", G, self.variances, alike * tail)
            total += cross + cross.T
            tail = alike * tail + G
        return total

    def through(self, noise: np.ndarray) -> np.ndarray:
        """Covariance (P, P) of x, over the directions that are determined, of gathered noise (P, P)."""
        values, rows, seen = self.directions
        back = rows[seen].T / values[seen] ** 2 @ rows[seen]
        return back @ noise @ back.T

    def way_to_go(self) -> tuple[np.ndarray, float]:
        """The step (P,) to where the linear problem has its minimum, and its length in standard deviations, with that of starts
        (root mean square)."""
        P = self.slopes.shape[-1]
        noise = np.sqrt(self.r[self.mask] @ self.r[self.mask] / max(self.mask.sum() - self.basis.shape[-1], 1.0))
        flat = np.concatenate([self.slopes[self.mask], self.joins])[:, self.free]
        U, values, rows = np.linalg.svd(flat, full_matrices=False)
        seen = values > BLIND * max(values.max(initial=0.0), 1e-300)
        along = U.T[seen] @ np.concatenate([self.r[self.mask], self.r_joins])
        step = np.zeros(P)
        step[self.free] = -(rows[seen].T @ (along / values[seen]))
        # starts that are bound to others rest where data and bonds balance, not where their own data alone would have them
        starts = np.zeros(0) if len(self.joins) else np.einsum("kscn,ksc->sn", self.of_starts, self.r)
        far = max(np.linalg.norm(along), np.sqrt((starts**2).mean()) if starts.size else 0.0)
        return step, far / max(noise, 1e-300)


def linear_at(problem: Identification, x: np.ndarray) -> Linear:
    """A problem near one point x (n,)."""
    tried = problem.tried(x[None])
    r, J = tried.residuals[0], tried.jacobians([0])[0][0]
    P, m = problem.unknowns.n, int(problem.mask.sum())
    free = _is_free(problem, x[:P], J.pull(r) if isinstance(J, Arrow) else r @ J)
    if isinstance(J, Arrow):
        Q = np.linalg.qr(J.own)[0]
        own = J.shared - Q @ (np.swapaxes(Q, 1, 2) @ J.shared)
        slopes, of_starts = (problem.by_samples(a) for a in (own, Q))
        return Linear(problem.laid_out(r), problem.mask, slopes, of_starts, np.zeros(0), np.zeros((0, P)), free)
    Q = np.linalg.qr(J[:, P:])[0]
    own = J[:, :P] - Q @ (Q.T @ J[:, :P])
    laid_out = [problem.laid_out(a[:m]) for a in (r, own, Q)]
    return Linear(laid_out[0], problem.mask, laid_out[1], laid_out[2], r[m:], own[m:], free)


def _is_free(problem: Identification, x: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """(P,): parameters within their bounds, or at one that the loss falls away from."""
    low, high = problem.unknowns.bounds
    slope = gradient[: len(x)]
    return ((x > low) | (slope < 0)) & ((x < high) | (slope > 0))


def noise_of_starts(problem: Identification, x: np.ndarray, near: Linear) -> np.ndarray:
    """(P, P): gathered noise of the states at which segments start as measured."""
    free = dataclasses.replace(problem.settings, starts="free", sigma_defect=np.inf, mode="auto")
    twin = Identification(problem.model, problem.recordings, problem.entries, free)
    all_x = np.concatenate([x, np.zeros(twin.n - len(x))])
    arrow = twin.tried(all_x[None]).jacobians([0])[0][0]
    by_start = problem.by_samples(arrow.own) * problem.mask[..., None]
    is_used, rough = problem.weight > 0, rough_noise(problem.model, problem.recordings)
    sigma = np.where(is_used, np.sqrt(near.variances) / np.where(is_used, problem.weight, 1.0), rough)
    moved = np.einsum("kscp,kscx->spx", near.slopes, by_start) * sigma
    return np.einsum("spx,sqx->pq", moved, moved)


def judged(problem: Identification, result: Result, notes: Sequence[str] = (), choice: Sequence[Any] = ()) -> Fit:
    """Covariance, singular values and blind directions at the point that was found."""
    unknowns, x = problem.unknowns, result.x[: problem.unknowns.n]
    near = linear_at(problem, result.x)
    gathered = near.gathered_noise()
    if problem.settings.start_kind == "measured":
        gathered = gathered + noise_of_starts(problem, x, near)
    of_x, slope = near.through(gathered), unknowns.slope(x)
    values, rows, seen = near.directions
    blind, covariance, r = rows[~seen], slope @ of_x @ slope.T, near.r[near.mask]
    return Fit(
        model=unknowns.model_at(x),
        estimates=_estimates(unknowns, x, of_x, covariance, blind),
        covariance=covariance,
        singular_values=values,
        unidentifiable=[_shares(unknowns, row) for row in blind],
        residual_rms=float(np.sqrt(np.mean(r**2))) if len(r) else 0.0,
        result=result,
        unknowns=unknowns,
        noise=measured_noise(problem, near),
        is_converged=_is_converged(near, x, result),
        segment=problem.settings.samples,
        period=float(problem.model.params["world.dt"].ravel()[0]) * problem.recordings[0].every,
        starts=problem.settings.start_kind,
        choice=list(choice),
        notes=list(notes),
    )


def measured_noise(problem: Identification, near: Linear) -> Noise:
    """Deviations and correlations of the measurements, as the residuals have them."""
    is_used, nv = near.mask.any((0, 1)), problem.model.nv
    least = LEAST * size_of(problem.model, problem.recordings)
    weight = np.where(is_used, problem.weight, 1.0)
    sigma = np.where(is_used, np.maximum(np.sqrt(near.variances) / weight, least), np.nan)
    alike = np.where(is_used, near.correlations, np.nan)
    return Noise(sigma[:nv], sigma[nv:], alike[:nv], alike[nv:])


def _is_converged(near: Linear, x: np.ndarray, result: Result) -> bool:
    if result.reason == "target":
        return True
    step, far = near.way_to_go()
    return bool(far < NEAR or (np.abs(step) <= SMALL * (1.0 + np.abs(x))).all())


def _shares(unknowns: Unknowns, direction: np.ndarray) -> dict[str, float]:
    """The larger parts of a unit direction, by name."""
    direction = direction * np.sign(direction[np.argmax(np.abs(direction))])
    order = np.argsort(-np.abs(direction))
    return {unknowns.names[i]: float(direction[i]) for i in order if abs(direction[i]) > 0.05}


def _estimates(
    unknowns: Unknowns, x: np.ndarray, of_x: np.ndarray, covariance: np.ndarray, blind: np.ndarray
) -> list[Estimate]:
    deviation = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    if len(blind):
        # a number that a blind direction moves is not determined, however small its part
        moved = np.abs(unknowns.slope(x) @ blind.T)
        size = np.abs(unknowns.slope(x)).max(1, initial=1e-300)
        deviation = np.where((moved.max(1) > 1e-3 * size), np.nan, deviation)
    before, after = unknowns.physical(unknowns.start), unknowns.physical(x)
    low, high = unknowns.bounds
    half = TWO_SIDED * np.sqrt(np.maximum(np.diag(of_x), 0.0))
    at_bound, is_wide = (x <= low) | (x >= high), (x - half <= low) & (x + half >= high) & np.isfinite(high - low)
    columns = zip(unknowns.physical_names, before, after, deviation, at_bound, is_wide, strict=True)
    return [Estimate(name, float(b), float(a), float(d), bool(e), bool(w)) for name, b, a, d, e, w in columns]
