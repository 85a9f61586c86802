"""Local solves with exact gradients from many starts, on all cores: in this process, as batches of motions.

All starts make their steps in rounds, one evaluation each, and a round does not depend on the company: it does not matter who is
solved together with whom, and all engines of `basin_hopping` that hop by our rule come to the same points.
"""

from __future__ import annotations

import dataclasses
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..model.errors import InputError
from .progress import Stop, Stopped
from .solvers import gauss_newton, lbfgs

METHODS = ("gauss_newton", "lbfgs")
ARRIVED = "another arrived"


@dataclass(frozen=True)
class Ends:
    """Where local solves from starts (batch, n) ended, with which losses, after how many rounds, and what it took. rounds is -1 for
    one that had not ended when another arrived at the target, or on Ctrl-C: it is where it had come to."""

    x: np.ndarray
    losses: np.ndarray
    rounds: np.ndarray
    evaluations: int
    gradients: int
    is_interrupted: bool = False

    @staticmethod
    def together(parts: list[Ends]) -> Ends:
        x, losses, rounds = (np.concatenate([getattr(p, name) for p in parts]) for name in ("x", "losses", "rounds"))
        done = sum(p.evaluations for p in parts), sum(p.gradients for p in parts)
        return Ends(x, losses, rounds, *done, any(p.is_interrupted for p in parts))

    def settled(self, target: float) -> tuple[np.ndarray, np.ndarray]:
        """Points and losses of those that ended before one arrived at the target, and of those that arrived with it: the same
        whether they were solved together (all stop at once) or apart (others may have gone further)."""
        has_arrived = (self.losses <= target) & (self.rounds >= 0)
        if not has_arrived.any():
            keep = self.rounds >= 0
        else:
            last = self.rounds[has_arrived].min()
            keep = ((self.rounds >= 0) & (self.rounds < last)) | (has_arrived & (self.rounds == last))
        return self.x[keep], self.losses[keep]


@dataclass(frozen=True)
class Local:
    """How local solves are made: a method of METHODS, when one ends, and the box. It has no state and may be sent elsewhere."""

    method: str
    stop: Stop
    bounds: tuple[np.ndarray, np.ndarray]

    @staticmethod
    def of(objective: Any, method: str, stop: Stop, bounds: tuple[np.ndarray, np.ndarray]) -> Local:
        """method "auto": Gauss-Newton where the objective has residuals and a Jacobian, otherwise L-BFGS."""
        has_squares = hasattr(objective, "tried") or (
            hasattr(objective, "residuals") and hasattr(objective, "jacobian")
        )
        if method == "auto":
            method = "gauss_newton" if has_squares else "lbfgs"
        if method not in METHODS:
            raise InputError(f'there is no local solver "{method}"; the names are auto, {", ".join(METHODS)}')
        if method == "gauss_newton" and not has_squares:
            raise InputError('local="gauss_newton" needs an objective with residuals and jacobian')
        return Local(method, stop, bounds)

    def solve(self, objective: Any, x: np.ndarray) -> Ends:
        """From all starts (batch, n) at once."""
        if self.method == "lbfgs":
            return _lbfgs_together(objective, x, self.stop, self.bounds)
        found = gauss_newton(objective, x, self.stop, self.bounds, trials=1, ease=0.2, alone=True)
        ends, h = (found.extra[k] for k in ("ends", "losses", "rounds")), found.history
        return Ends(*ends, h.evaluations[-1], h.gradients[-1], found.is_interrupted)  # type: ignore[call-arg]


# L-BFGS of scipy walks from one start; here each start has a thread, and what they ask for is one batch ----------------------


def _lbfgs_together(objective: Any, x: np.ndarray, stop: Stop, bounds: tuple[np.ndarray, np.ndarray]) -> Ends:
    gathered = _Gathered(objective, len(x), stop.target)
    threads = [threading.Thread(target=gathered.walk, args=(k, x[k], stop, bounds)) for k in range(len(x))]
    for thread in threads:
        thread.start()
    try:
        gathered.serve()
    except KeyboardInterrupt:
        pass  # the threads were told, and say how far they came
    finally:
        for thread in threads:
            thread.join()
    if gathered.errors:
        raise gathered.errors[0]
    found = [gathered.found.get(k, (start, np.inf, -1)) for k, start in enumerate(x)]
    ends = (np.array(column) for column in zip(*found, strict=True))
    is_interrupted = isinstance(gathered.ending, KeyboardInterrupt)
    return Ends(*ends, gathered.evaluations, gathered.evaluations, is_interrupted)  # type: ignore[arg-type, call-arg]


class _Gathered:
    """Gradients that several threads ask for, computed as one batch, by the thread that serves, when all that still walk have
    asked. With one at the target all end."""

    def __init__(self, objective: Any, count: int, target: float) -> None:
        self.objective, self.walking, self.target, self.evaluations = objective, count, target, 0
        self.asked: dict[int, np.ndarray] = {}
        self.answers: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self.rounds = [0] * count
        self.found: dict[int, tuple[np.ndarray, float, int]] = {}  # point, loss, rounds or -1
        self.errors: list[Exception] = []
        self.ending: BaseException | None = None  # why no more answers come
        self.changed = threading.Condition()

    def walk(self, number: int, start: np.ndarray, stop: Stop, bounds: Any) -> None:
        """In a thread of its own: from one start to its end."""
        try:
            end = lbfgs(_Asker(self, number), start, dataclasses.replace(stop, target=-np.inf), bounds)  # type: ignore[arg-type]
            with self.changed:
                has_ended = end.reason not in ("interrupted", ARRIVED)
                self.found.setdefault(number, (end.x, end.loss, self.rounds[number] if has_ended else -1))
        except (KeyboardInterrupt, Stopped, InputError) as failure:  # before its first answer
            if isinstance(failure, InputError) and self.ending is None:
                self.errors.append(failure)
        except Exception as failure:  # told where the threads are joined
            self.errors.append(failure)
        finally:
            with self.changed:
                self.walking -= 1
                self.changed.notify_all()

    def answer(self, number: int, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """In the thread that asks."""
        with self.changed:
            self.asked[number] = x[0]
            self.changed.notify_all()
            self.changed.wait_for(lambda: number in self.answers or self.ending is not None)
            if number not in self.answers:
                assert self.ending is not None
                raise self.ending
            return self.answers.pop(number)

    def serve(self) -> None:
        """Until the last thread has ended, or one arrived."""
        try:
            while True:
                with self.changed:
                    self.changed.wait_for(lambda: len(self.asked) == self.walking)
                    if not self.walking:
                        return
                    numbers, self.asked, asked = sorted(self.asked), {}, self.asked
                points = np.array([asked[k] for k in numbers])
                losses, x_bar = self.objective.gradient(points)
                with self.changed:
                    self._note(numbers, points, losses)
                    self.answers |= {k: (losses[i : i + 1], x_bar[i : i + 1]) for i, k in enumerate(numbers)}
                    self.changed.notify_all()
        except BaseException as ending:
            with self.changed:
                self.ending = ending
                self.changed.notify_all()
            if not isinstance(ending, Stopped):
                raise

    def _note(self, numbers: list[int], points: np.ndarray, losses: np.ndarray) -> None:
        self.evaluations += len(numbers)
        for k in numbers:
            self.rounds[k] += 1
        arrived = [i for i in range(len(numbers)) if losses[i] <= self.target]
        for i in arrived:
            self.found[numbers[i]] = (points[i], float(losses[i]), self.rounds[numbers[i]])
        if arrived:
            raise Stopped(ARRIVED)


@dataclasses.dataclass(frozen=True)
class _Asker:
    """The objective as one of the threads sees it."""

    gathered: _Gathered
    number: int

    @property
    def n(self) -> int:
        return self.gathered.objective.n

    def value(self, x: np.ndarray) -> np.ndarray:
        return self.gradient(x)[0]

    def gradient(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.gathered.answer(self.number, x)
