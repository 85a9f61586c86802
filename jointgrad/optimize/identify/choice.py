"""Which way to use a recording: as one motion from its measured start, or in segments whose starts are found.

A measured start is wrong by its noise, which a long or chaotic motion makes large, and the parameters are bent to make up for it.
Short segments cannot be bent so, and find parameters from afar; long ones say more. So segments grow, each fit from where the one
before ended, and then every candidate is fitted again without some blocks of the recording and judged in them: the state at the
start of a window is found in its first half, and its second half is predicted. The longest segments are taken of which it is not
clear (by two standard errors of the difference) that they predict worse than the best: to choose by less would choose by noise.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..progress import Stop
from ..solvers import gauss_newton
from .covariance import Fit
from .data import Recording, Settings
from .fitting import Fitting, Solved, Starts, with_sigma, without_derived
from .noise import rough_noise
from .problem import Identification

FOLDS = 4
# standard errors by which a difference is clear
CLEAR = 2.0
# the shortest segments: a share of the recording, but not fewer samples than these; and how they grow
SHARE, SHORTEST, GROWTH = 16, 10, 4
# searches that only prepare others
BRIEF = Stop(iterations=25, patience=2, least=1e-4)
BRIEFER = Stop(iterations=8, patience=1, least=1e-3)
# steps of these are tried with so many dampings at once
FEW = 3


@dataclass(frozen=True)
class Candidate:
    """A way to use the recording: segments of so many samples (None: whole), where they start, and the root mean square of
    its errors in held-out windows, in standard deviations of the noise."""

    segment: int | None
    starts: str
    error: float
    is_chosen: bool = False


@dataclass(frozen=True)
class Fold:
    """Parts of recordings (recording, first, last sample) to fit, and windows to predict."""

    fitted: list[tuple[int, int, int]]
    windows: list[Recording]


def choose(fitting: Fitting, settings: Settings, x: np.ndarray | None) -> Fit:
    """Fit in every way, judge in held-out windows, and fit in the best way to the end."""
    b = shortest(fitting.recordings)
    ladder, sigma, notes, starts = _ladder(fitting, settings, x, b)
    if ladder[-1].result.is_interrupted:
        return fitting.judged(ladder[-1], notes)
    ways = [*ladder, _from_measured(fitting, settings, sigma, x)]
    folds = list(_folds(fitting.recordings, 2 * b))
    fitting.announce("Predicting held-out windows")
    errors = np.array([_held_out(fitting, way, folds, starts, sigma, b) for way in ways])
    best = chosen(errors) if folds else len(ladder) - 1
    candidates = [_candidate(way, e, k == best) for k, (way, e) in enumerate(zip(ways, errors, strict=True))]
    if not folds:
        notes.append("the recording is too short to hold windows out: it is one motion whose start is found")
    if ways[best].result.is_interrupted:
        return fitting.judged(ways[best], notes, candidates)
    return fitting.judged(_to_the_end(fitting, ways[best], settings), notes, candidates)


def shortest(recordings: Sequence[Recording]) -> int:
    """Samples of the shortest segments."""
    longest = max(r.samples for r in recordings) - 1
    return min(max(-(-longest // SHARE), SHORTEST), longest)


def _lengths(recordings: Sequence[Recording], b: int) -> list[int | None]:
    """Samples of segments that grow, the last being whole recordings."""
    longest, lengths = max(r.samples for r in recordings) - 1, []
    while b < longest:
        lengths.append(b)
        b *= GROWTH
    return [*lengths, None]


def _ladder(
    fitting: Fitting, settings: Settings, x: np.ndarray | None, b: int
) -> tuple[list[Solved], np.ndarray, list[str], Starts]:
    """A fit for each length of segments, the deviations and notes that the first has given, and all starts found."""
    ladder: list[Solved] = []
    sigma = rough_noise(fitting.model, fitting.recordings)
    notes: list = []
    starts: dict = {}
    for length in _lengths(fitting.recordings, b):
        way = dataclasses.replace(with_sigma(settings, sigma), segment=length, starts="free", sigma_defect=np.inf)
        title = f"Segments of {length} samples" if length else "Whole, start found"
        solved = fitting.solved(way, x, starts, BRIEF, title)
        if not ladder:
            sigma, notes = without_derived(solved, settings)
        ladder.append(solved)
        x, starts = solved.x, {**solved.starts, **starts}
        if solved.result.is_interrupted:
            break
    return ladder, sigma, notes, starts


def _from_measured(fitting: Fitting, settings: Settings, sigma: np.ndarray, x: np.ndarray | None) -> Solved:
    way = dataclasses.replace(with_sigma(settings, sigma), segment=None, starts="measured")
    return fitting.solved(way, x, stop=BRIEF, title="Whole, measured start")


def _to_the_end(fitting: Fitting, way: Solved, settings: Settings) -> Solved:
    """The chosen fit, weighed by its own noise."""
    own = with_sigma(settings, way.sigma)
    own = dataclasses.replace(own, segment=way.problem.settings.segment, starts=way.problem.settings.starts)
    return fitting.solved(own, way.x, way.starts, title="Identifying")


def _candidate(way: Solved, errors: np.ndarray, is_chosen: bool) -> Candidate:
    settings = way.problem.settings
    error = float(np.sqrt(errors.mean())) if errors.size else np.nan
    return Candidate(settings.samples, settings.start_kind, error, is_chosen)


def chosen(errors: np.ndarray) -> int:
    """Of squared errors (ways, windows): segments that grow, and last the measured start, which must be the best of all."""
    means = errors.mean(1)
    if means[-1] < means[:-1].min():
        return len(errors) - 1
    best = int(np.argmin(means[:-1]))
    for k in range(len(errors) - 2, best, -1):
        more = errors[k] - errors[best]
        if np.isfinite(more).all() and more.mean() <= CLEAR * more.std(ddof=1) / np.sqrt(len(more)):
            return k
    return best


# held-out windows --------------------------------------------------------------------------------------------------------


def _folds(recordings: Sequence[Recording], window: int) -> Iterator[Fold]:
    """Whole recordings are held out where there are several, and else blocks of each."""
    if len(recordings) >= FOLDS:
        for k in range(FOLDS):
            held = range(k, len(recordings), FOLDS)
            rest = [(i, 0, r.samples - 1) for i, r in enumerate(recordings) if i not in held]
            yield Fold(rest, [w for i in held for w in _windows(recordings[i], 0, recordings[i].samples - 1, window)])
        return
    for k in range(FOLDS):
        fold = Fold([], [])
        for i, r in enumerate(recordings):
            _hold_block_out(fold, i, r, k, window)
        if fold.windows:
            yield fold


def _hold_block_out(fold: Fold, i: int, r: Recording, k: int, window: int) -> None:
    """One of the blocks of a recording, of whole windows; the last has the rest too."""
    windows = (r.samples - 1) // window
    first, last = (windows * k // FOLDS) * window, (windows * (k + 1) // FOLDS) * window
    last = last if k + 1 < FOLDS else r.samples - 1
    fold.windows.extend(_windows(r, first, last, window))
    fold.fitted.extend((i, a, b) for a, b in ((0, first), (last, r.samples - 1)) if b > a)


def _windows(r: Recording, first: int, last: int, window: int) -> list[Recording]:
    return [r.part(a, a + window) for a in range(first, last - window + 1, window)]


def _held_out(
    fitting: Fitting, way: Solved, folds: Sequence[Fold], starts: Starts, sigma: np.ndarray, half: int
) -> np.ndarray:
    """Mean squared errors (windows,) of predictions by fits that have not seen them."""
    return np.concatenate(
        [np.zeros(0)] + [_predicted(fitting, _refitted(fitting, way, f, starts), f.windows, sigma, half) for f in folds]
    )


def _refitted(fitting: Fitting, way: Solved, fold: Fold, starts: Starts) -> np.ndarray:
    """Parameters (P,) without the windows of a fold, from where those with them are."""
    parts = [fitting.recordings[i].part(a, b) for i, a, b in fold.fitted]
    near = {
        (k, sample - a): state
        for (i, sample), state in starts.items()
        for k, (j, a, b) in enumerate(fold.fitted)
        if i == j and a <= sample < b
    }
    briefly = dataclasses.replace(fitting, recordings=parts, solver=partial(gauss_newton, trials=FEW), callback=None)
    return briefly.solved(way.problem.settings, way.x, near, BRIEFER).x


def _predicted(
    fitting: Fitting, x: np.ndarray, windows: Sequence[Recording], sigma: np.ndarray, half: int
) -> np.ndarray:
    """Mean squared errors (windows,) of second halves, from states found in first halves by parameters x (P,)."""
    way = with_sigma(Settings(segment=None, starts="free"), sigma)
    finding, predicting = (Identification(fitting.model, windows, fitting.entries, way) for _ in range(2))
    finding.look_at(0, half)
    predicting.look_at(half + 1, 2 * half)
    begin = finding.start
    begin[: len(x)] = x
    finding.choose_starts(begin)
    low, high = finding.bounds
    low[: len(x)] = high[: len(x)] = x
    found = gauss_newton(finding, begin, BRIEFER, (low, high), trials=FEW)
    predicting.begin_at(finding.starts_at(found.x))
    counts = np.maximum(predicting.mask.sum((0, 2)), 1)
    return 2.0 * predicting.losses_by_segment(begin) / counts
