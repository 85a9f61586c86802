"""What a search has done so far: counts, seconds, the best point; and when it ends."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..model.errors import InputError

# called after each iteration; a true answer ends the search
Callback = Callable[["Progress"], Any]


class Stopped(Exception):
    """Ends a search from within; says why."""


@dataclass(frozen=True)
class Stop:
    """When a search ends: whichever comes first. patience: iterations without an improvement of `least` (relative)."""

    iterations: int = 100
    target: float = -math.inf
    evaluations: float = math.inf
    seconds: float = math.inf
    patience: int | None = None
    least: float = 1e-6

    def __post_init__(self) -> None:
        if self.iterations < 1:
            raise InputError(f"iterations must be 1 or more, but is {self.iterations}")


@dataclass
class History:
    """One entry per iteration: evaluations are motions rolled out, gradients motions pulled back (or linearised)."""

    evaluations: list[int] = field(default_factory=list)
    gradients: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    loss: list[float] = field(default_factory=list)  # the least of this iteration
    best: list[float] = field(default_factory=list)  # the least so far

    def __len__(self) -> int:
        return len(self.best)

    def first_below(self, target: float) -> int | None:
        """Index of the first iteration whose best loss is at the target, or None."""
        return next((k for k, best in enumerate(self.best) if best <= target), None)

    def rows(self) -> Iterator[tuple]:
        """(iteration, evaluations, gradients, seconds, loss, best), the first iteration being the start, 0."""
        columns = zip(self.evaluations, self.gradients, self.seconds, self.loss, self.best, strict=True)
        return ((k, *row) for k, row in enumerate(columns))


@dataclass(frozen=True)
class Result:
    """The best point found, its loss, why the search ended, and its history."""

    x: np.ndarray
    loss: float
    reason: str
    history: History
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def is_interrupted(self) -> bool:
        return self.reason == "interrupted"


class Progress:
    """Counts, times and keeps the best of a running search. The first iteration is the start."""

    def __init__(self, stop: Stop, callback: Callback | None = None) -> None:
        self.stop, self.callback, self.history = stop, callback, History()
        self.evaluations = self.gradients = 0
        self.x: np.ndarray | None = None
        self.loss, self.reason = math.inf, "iterations"
        self._best, self._last_gain, self._began = math.inf, 0, time.perf_counter()

    @property
    def iteration(self) -> int:
        return len(self.history) - 1

    def count(self, evaluations: int = 0, gradients: int = 0) -> None:
        self.evaluations += evaluations
        self.gradients += gradients

    def see(self, x: np.ndarray, losses: np.ndarray) -> None:
        """Points (batch, n) and their losses (batch,): keep the best."""
        lead = int(np.argmin(np.where(np.isnan(losses), np.inf, losses)))
        if losses[lead] < self.loss:
            self.x, self.loss = np.array(x[lead]), float(losses[lead])
        elif self.x is None:
            self.x = np.array(x[lead])

    def end_iteration(self, loss: float) -> None:
        """Note where we are; raises Stopped at the end of the search."""
        self._note(loss)
        if self.loss < self._best - self.stop.least * abs(self._best) or not math.isfinite(self._best):
            self._best, self._last_gain = self.loss, self.iteration
        reason = self._ending()
        if reason:
            raise Stopped(reason)

    def kept(self) -> dict[str, Any]:
        """All that must be known to go on later: plain numbers and lists."""
        return {"history": vars(self.history), "evaluations": self.evaluations, "gradients": self.gradients,
                "x": None if self.x is None else self.x.tolist(), "loss": self.loss, "best": self._best,
                "last_gain": self._last_gain}  # fmt: skip

    def go_on(self, kept: dict[str, Any]) -> None:
        """From where `kept` was; raises Stopped where the search is over already."""
        self.history = History(**kept["history"])
        self.evaluations, self.gradients, self.loss = kept["evaluations"], kept["gradients"], kept["loss"]
        self.x = None if kept["x"] is None else np.array(kept["x"], dtype=float)
        self._best, self._last_gain = kept["best"], kept["last_gain"]
        self._began -= self.history.seconds[-1]
        reason = self._ending()
        if reason:
            raise Stopped(reason)

    def _note(self, loss: float) -> None:
        h = self.history
        h.evaluations.append(self.evaluations)
        h.gradients.append(self.gradients)
        h.seconds.append(time.perf_counter() - self._began)
        h.loss.append(float(loss))
        h.best.append(self.loss)

    def _ending(self) -> str | None:
        """Why the search is over, or None."""
        s = self.stop
        if self.callback is not None and self.callback(self):
            return "callback"
        if self.loss <= s.target:
            return "target"
        if s.patience is not None and self.iteration - self._last_gain >= s.patience:
            return "stalled"
        if self.evaluations >= s.evaluations:
            return "evaluations"
        if self.history.seconds[-1] >= s.seconds:
            return "seconds"
        return "iterations" if self.iteration >= s.iterations else None

    @contextmanager
    def running(self) -> Iterator[None]:
        """Around a search: its end and Ctrl-C both leave the best point so far."""
        try:
            yield
        except Stopped as end:
            self.reason = str(end)
        except KeyboardInterrupt:
            if self.x is None:
                raise
            self.reason = "interrupted"

    def result(self, **extra: Any) -> Result:
        if self.x is None:
            raise InputError("the search ended before its first evaluation")
        return Result(self.x, self.loss, self.reason, self.history, extra)


@contextmanager
def bar(title: str, iterations: int, said: Callable[[float], str] = "loss {:.4g}".format) -> Iterator[Callback]:
    """A progress bar (rich) as a callback: iterations, rate, time left, and what is said of the best loss. Of several searches one
    after the other, `stage(title)` of the callback begins the next."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    text = TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn()
    with Bars(*text, TextColumn("{task.fields[loss]}"), TimeRemainingColumn(elapsed_when_finished=True)) as bars:
        task = bars.add_task(title, total=iterations, loss="")

        def show(progress: Progress) -> None:
            rate = progress.iteration / max(progress.history.seconds[-1], 1e-9)
            bars.update(task, completed=progress.iteration, loss=f"{said(progress.loss)}, {rate:.1f} /s")

        show.stage = lambda title: bars.reset(task, description=title, total=iterations, loss="")  # type: ignore[attr-defined]
        yield show
