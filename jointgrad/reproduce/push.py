"""Pushes of a real block, predicted: by a simulator as it comes, by one whose numbers are fitted, and by one whose friction is
augmented by networks (NeuralSim, Heiden 2021, section IV-A; data of Zhou et al. 2016).

The split is fixed (`push_data.split`). How strongly the weights are held, how large the networks are and when to stop is decided
on the validation part; then fitted and augmented model are fitted once more to training and validation parts together. The
held-out part is only looked at in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ..optimize.levenberg_marquardt import levenberg_marquardt
from .kept import Kept
from .push_data import LOGS, SEED, Pushes, difference, load, split
from .push_fit import Point, Problem, robust, with_networks
from .push_world import Guess, Pace, Pushing, augmented, compiled, predicted

HIDDEN = ((), (4,))  # layers of the network
STRENGTHS = (0.3, 0.1, 0.03, 0.01)
ITERATIONS = 8
RESAMPLES = 2000  # for the deviation of a difference


def reproduce(out: Path, say: Callable[[str], None], quick: bool = False, data: Path | None = None) -> dict[str, Any]:
    """Errors of all models on the held-out pushes. Ctrl-C leaves finished parts."""
    pushes = load(data)
    rows = {name: some[::10] if quick else some for name, some in split(pushes).items()}
    pace = Pace(speed=0.08, transition=0.03, dt=1e-3) if quick else Pace()
    grid = [(HIDDEN[0], 0.1)] if quick else [(h, s) for h in HIDDEN for s in STRENGTHS]
    iterations = 1 if quick else ITERATIONS
    settings = {"split": SEED, "pace": asdict(pace), "grid": grid, "iterations": iterations, "quick": quick}
    kept = Kept(out, "push", settings, say)
    try:
        return _Experiment(pushes, rows, pace, iterations, kept, say).run(grid)  # type: ignore[arg-type]
    except KeyboardInterrupt:
        say(f"Interrupted: {len(kept.parts)} parts are kept in {kept.path}")
        raise


class _Experiment:
    def __init__(
        self,
        pushes: Pushes,
        rows: dict[str, np.ndarray],
        pace: Pace,
        iterations: int,
        kept: Kept,
        say: Callable[[str], None],
    ) -> None:
        self.pushes, self.rows, self.pace, self.iterations, self.kept, self.say = (
            pushes,
            rows,
            pace,
            iterations,
            kept,
            say,
        )
        self.plain = compiled(pace)
        self.both = np.concatenate([rows["training"], rows["validation"]])

    def run(self, grid: list[tuple[tuple[int, ...], float]]) -> dict[str, Any]:
        kept = self.kept
        first = kept.part("fitted to the training part", lambda: self._fit(self.rows["training"]))
        for hidden, strength in grid:
            name = _name(hidden, strength)
            found = kept.part(name, lambda h=hidden, s=strength: self._train(h, s, _point(first)))  # type: ignore[misc]
            self.say(f"  {name}: validation cost {found['validation']:.4f} (fitted {first['validation']:.4f})")
        hidden, strength = min(grid, key=lambda one: kept.parts[_name(*one)]["validation"])
        chosen = kept.parts[_name(hidden, strength)]
        fitted = kept.part("fitted", lambda: self._fit(self.both))
        final = kept.part("augmented", lambda: self._refit(hidden, strength, chosen["iterations"], _point(fitted)))
        models = {"untuned": Point(), "fitted": _point(fitted), "augmented": _point(final)}
        kept.part("held out", lambda: self._errors(models, hidden))
        kept.write(chosen=_name(hidden, strength), guess=fitted["guess"])
        for line in table(kept.parts["held out"]):
            self.say(line)
        if len(self.rows["held_out"]) > len(LOGS):
            from .push_pictures import draw

            draw(self.pushes[self.rows["held_out"]], kept.parts["held out"], kept.out / "push.png")
        return kept.said

    def _pushing(self, rows: np.ndarray, hidden: tuple[int, ...] | None = None, pace: Pace | None = None) -> Pushing:
        model = self.plain if pace is None else compiled(pace)
        model = model if hidden is None else augmented(model, hidden)
        return Pushing(model, self.pushes[rows], pace or self.pace)

    def _fit(self, rows: np.ndarray) -> dict[str, Any]:
        problem, judge = Problem(self._pushing(rows)), Problem(self._pushing(self.rows["validation"]))
        found = levenberg_marquardt(problem, Point(), self.iterations, self._line("fitting"))
        return {"guess": asdict(found.guess), "weights": [], "validation": _judged(judge, found)}

    def _train(self, hidden: tuple[int, ...], strength: float, start: Point) -> dict[str, Any]:
        """The best iteration by the validation part."""
        problem = with_networks(self._pushing(self.rows["training"], hidden), start.guess, strength)
        judge = Problem(self._pushing(self.rows["validation"], hidden))
        best = {"validation": np.inf}
        lines = self._line(_name(hidden, strength))

        def seen(k: int, point: Point, cost: float) -> None:
            value = _judged(judge, point)
            lines(k, point, cost)
            if value < best["validation"]:
                best.update(_said(point), validation=value, iterations=k + 1)

        levenberg_marquardt(problem, Point(start.guess, problem.first), self.iterations, seen)
        return best

    def _refit(self, hidden: tuple[int, ...], strength: float, iterations: int, start: Point) -> dict[str, Any]:
        problem = with_networks(self._pushing(self.both, hidden), start.guess, strength)
        point = Point(start.guess, problem.first)
        return _said(levenberg_marquardt(problem, point, iterations, self._line("augmented")))

    def _errors(self, models: dict[str, Point], hidden: tuple[int, ...]) -> dict[str, Any]:
        """Poses and errors of every held-out push by every model, and what half the speed would change."""
        rows, found = self.rows["held_out"], {}
        truth = self.pushes[rows]
        found["does not move"] = _poses(truth.before, truth)
        for name, point in models.items():
            poses = predicted(Problem(self._pushing(rows, hidden if len(point.weights) else None)).motion(point))
            found[name] = _poses(poses, truth)
        slow = Pace(self.pace.speed / 2, self.pace.transition / 2, self.pace.dt / 2, self.pace.reach)
        for name in ("fitted", "augmented"):
            problem = Problem(self._pushing(rows, hidden if name == "augmented" else None, slow))
            found[f"{name}, half the speed"] = _poses(predicted(problem.motion(models[name])), truth)
        return found

    def _line(self, name: str) -> Callable[[int, Point, float], None]:
        return lambda k, point, cost: self.say(f"    {name}, iteration {k + 1}: {cost:.4f}")


def _name(hidden: tuple[int, ...], strength: float) -> str:
    return f"network {'x'.join(map(str, hidden)) or 'linear'}, penalty {strength:g}"


def _judged(judge: Problem, point: Point) -> float:
    return robust(judge.residuals(judge.motion(point)))


def _said(point: Point) -> dict[str, Any]:
    return {"guess": asdict(point.guess), "weights": point.weights.tolist()}


def _point(said: dict[str, Any]) -> Point:
    return Point(Guess(**said["guess"]), np.array(said["weights"], dtype=np.float64))


def _poses(poses: np.ndarray, truth: Pushes) -> dict[str, list]:
    off = difference(poses, truth.after)
    mm, degrees = 1e3 * np.linalg.norm(off[:, :2], axis=1), np.abs(np.rad2deg(off[:, 2]))
    return {"pose": poses.tolist(), "mm": mm.tolist(), "degrees": degrees.tolist()}


def deviation(a: list[float], b: list[float]) -> tuple[float, float]:
    """Mean of a less b, push by push, and its standard deviation, by drawing pushes anew."""
    d = np.array(a) - np.array(b)
    drawn = d[np.random.default_rng(0).integers(len(d), size=(RESAMPLES, len(d)))].mean(axis=1)
    return float(d.mean()), float(drawn.std())


def table(found: dict[str, Any]) -> Iterator[str]:
    """Mean and median errors, in words."""
    yield f"{len(found['fitted']['mm'])} held-out pushes: error in mm (mean, median) and degrees (mean, median)"
    for name, one in found.items():
        mm, deg = (np.array(one[k]) for k in ("mm", "degrees"))
        yield f"  {name:24s} {mm.mean():6.3f} {np.median(mm):6.3f}   {deg.mean():6.3f} {np.median(deg):6.3f}"
    slow = ", half the speed"
    for better, worse in (("fitted", "untuned"), ("augmented", "fitted"), ("augmented" + slow, "fitted" + slow)):
        gains = [deviation(found[worse][k], found[better][k]) for k in ("mm", "degrees")]
        mm, degrees = (f"{mean:.3f} +- {spread:.3f}" for mean, spread in gains)  # type: ignore[assignment]
        yield f"  {better} gains {mm} mm, {degrees} degrees on {worse}"
