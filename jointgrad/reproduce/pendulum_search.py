"""Find the lengths of a double pendulum from its motion: local fits against parallel basin hopping (NeuralSim 2021, figure 4).

Recorded: both angles of a pendulum with links of 3 and 4 m that is let go at rest, its arms horizontal. A fit starts from wrong
lengths between 0.1 and 10.1 m. The longer the recording, the more local optima the loss has.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import jointgrad as jg

from ..engine.run.rollout import known_motion
from ..optimize.populations import Local
from ..optimize.progress import Stop
from ..optimize.search import basin_hopping
from ..optimize.solvers import Tried, half_squares
from .kept import Kept

TRUTH = np.array([3.0, 4.0])
LOW, HIGH = 0.1, 10.1
SUCCESS = 1e-2  # m, norm of the error of both lengths
DT, SECONDS = 1 / 60, 5.0
POPULATION, HOPS = 4, 50
# an angle is known to about 1e-4 rad: a fit that explains all to this is the one that was sought
KNOWN_TO = 1e-4


class Lengths:
    """Angles of the motion less the recorded ones as residuals of both lengths, any number of points at once."""

    n = 2

    def __init__(self, seconds: float = SECONDS) -> None:
        self.model = jg.zoo.double_pendulum(tuple(TRUTH)).compile(dt=DT)
        self.steps = round(seconds / DT)
        self.recorded = self._motion(TRUTH[None]).q[1:, 0]
        self.target = 0.5 * self.recorded.size * KNOWN_TO**2

    def _values(self, lengths: np.ndarray) -> dict[str, np.ndarray]:
        """Parameters (batch, ...) of pendulums: the first length is also where the second joint is."""
        com, placement = (
            np.repeat(self.model.params[k][None], len(lengths), 0) for k in ("link.com", "joint.placement")
        )
        com[:, :, 2] = -lengths
        placement[:, self._elbow, 2] = -lengths[:, 0]
        return {"link.com": com, "joint.placement": placement}

    @property
    def _elbow(self) -> int:
        return self.model.joint_names.index("joint1")

    def _motion(self, lengths: np.ndarray) -> jg.Trajectory:
        start = jg.State(np.tile([np.pi / 2, 0.0], (len(lengths), 1)), np.zeros((len(lengths), 2)))
        return jg.rollout(self.model.replace(self._values(lengths)), start, steps=self.steps, on_nan="freeze")

    def residuals(self, x: np.ndarray) -> np.ndarray:
        return self.tried(x).residuals

    def jacobian(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        tried = self.tried(x)
        return tried.residuals, tried.jacobians(range(len(x)))[0]

    def tried(self, x: np.ndarray) -> Tried:
        motion = self._motion(x)
        return Tried(
            self._flat(motion.q[1:] - self.recorded[:, None]), lambda rows: self._jacobians(x, motion, list(rows))
        )

    def _jacobians(self, x: np.ndarray, motion: jg.Trajectory, rows: list[int]) -> tuple[np.ndarray, int, int]:
        """One tangent for each point and length, all in one batch, along motions that are known."""
        envs, shapes = np.repeat(rows, 2), [self.model.params[k].shape for k in ("link.com", "joint.placement")]
        com, placement = (np.zeros((len(rows), 2, *shape)) for shape in shapes)
        com[:, (0, 1), (0, 1), 2] = -1.0
        placement[:, 0, self._elbow, 2] = -1.0
        flat = {
            "link.com": com.reshape(-1, *com.shape[2:]),
            "joint.placement": placement.reshape(-1, *placement.shape[2:]),
        }
        again = known_motion(self.model.replace(self._values(x[envs])), (motion.q[:, envs], motion.qd[:, envs]), None)
        J = self._flat(again.tangent(params=flat)[0][1:]).reshape(len(rows), 2, -1)
        return np.swapaxes(J, 1, 2), 0, len(envs)

    def value(self, x: np.ndarray) -> np.ndarray:
        return half_squares(self.residuals(x))

    def gradient(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        r, J = self.jacobian(x)
        return half_squares(r), np.einsum("bm,bmn->bn", r, J)

    @staticmethod
    def _flat(values: np.ndarray) -> np.ndarray:
        """(T, batch, 2) as (batch, T * 2)."""
        return np.moveaxis(values, 1, 0).reshape(values.shape[1], -1)


@dataclass(frozen=True)
class Maps:
    """Of a square grid of starts: errors of the lengths that were found (starts,), and what it cost."""

    starts: np.ndarray
    local: np.ndarray
    hopping: np.ndarray
    hops: np.ndarray  # after the first population
    solves: np.ndarray
    evaluations: np.ndarray
    local_seconds: float
    hopping_seconds: float

    @property
    def count(self) -> int:
        return len(self.hopping)


def grid(count: int) -> np.ndarray:
    """(count^2, 2): starts from LOW on, HIGH not included."""
    side = LOW + (HIGH - LOW) * np.arange(count) / count
    return np.stack(np.meshgrid(side, side, indexing="ij"), -1).reshape(-1, 2)


def searched(count: int, kept: Kept, say: Callable[[str], None], seed: int = 0) -> Maps:
    """Local fits from all starts as one batch; then a search of its own from each. Ctrl-C leaves the rows of the grid that are
    finished, and the next run goes on from there."""
    problem, starts = Lengths(SECONDS), grid(count)
    problem.jacobian(starts[:1])  # compiled before the clock runs
    local = kept.part("local", lambda: _fitted(problem, starts))
    good = sum(error < SUCCESS for error in local["errors"])
    say(f"local fits alone: {good} of {len(starts)} within {SUCCESS:g} m, {local['seconds']:.1f} s in all")
    found: list[list[float]] = []
    seconds = 0.0
    try:
        for row in range(count):
            own = range(row * count, (row + 1) * count)
            part = kept.part(f"row {row}", partial(_row, problem, starts, own, seed))
            found, seconds = found + part["searches"], seconds + part["seconds"]
            _say_progress(found, len(starts), seconds, say)
    except KeyboardInterrupt:
        say(f"Interrupted: {len(found)} searches are kept; the same command goes on from there.")
    error, hops, solves, evaluations = np.array(found).reshape(-1, 4).T
    return Maps(starts, np.array(local["errors"]), error, hops, solves, evaluations, local["seconds"], seconds)


def _fitted(problem: Lengths, starts: np.ndarray) -> dict[str, Any]:
    """Every start goes its own way to its end."""
    local = Local.of(problem, "gauss_newton", Stop(iterations=200, least=1e-9), (np.full(2, LOW), np.full(2, HIGH)))
    began = time.perf_counter()
    ends = local.solve(problem, starts)
    if ends.is_interrupted:
        raise KeyboardInterrupt
    seconds = time.perf_counter() - began
    return {"errors": np.linalg.norm(ends.x - TRUTH, axis=-1).tolist(), "seconds": seconds}


def _row(problem: Lengths, starts: np.ndarray, own: range, seed: int) -> dict[str, Any]:
    began = time.perf_counter()
    searches = [_hopped(problem, starts[k], seed + k) for k in own]
    return {"searches": searches, "seconds": time.perf_counter() - began}


def _hopped(problem: Lengths, start: np.ndarray, seed: int) -> tuple[float, int, int, int]:
    found = basin_hopping(
        problem, start, (LOW, HIGH), Stop(iterations=HOPS, target=problem.target), population=POPULATION, seed=seed
    )
    if found.is_interrupted:
        raise KeyboardInterrupt
    h = found.history
    error = float(np.linalg.norm(found.x - TRUTH))
    return error, len(h) - 1, found.extra["solves"], h.evaluations[-1] + h.gradients[-1]


def _say_progress(rows: list, total: int, seconds: float, say: Callable[[str], None]) -> None:
    good, left = sum(r[0] < SUCCESS for r in rows), seconds * (total - len(rows)) / len(rows)
    say(
        f"basin hopping: {len(rows)} of {total} starts, {good} within {SUCCESS:g} m, {seconds:.0f} s, about {left:.0f} s left"
    )


def reproduce(out: Path, say: Callable[[str], None], quick: bool = False, seed: int = 0) -> dict[str, Any]:
    """The grid of starts, its figures and its picture. quick: 4 x 4 starts."""
    count = 4 if quick else 20
    settings = {
        "starts": [count, count],
        "seed": seed,
        "seconds_recorded": SECONDS,
        "population": POPULATION,
        "hops": HOPS,
    }
    kept = Kept(out, "pendulum-search", settings, say)
    maps = searched(count, kept, say, seed)
    kept.write(**figures(maps))
    said = kept.said
    np.savez(out / "maps.npz", starts=maps.starts, local=maps.local, hopping=maps.hopping, hops=maps.hops)
    if maps.count == len(maps.starts):
        draw(maps, out / "success.png")
    local, hopping = said["local"], said["basin_hopping"]
    say(f"local {local['success']} of {local['of']}, basin hopping {hopping['success']} of {hopping['of']}; "
        f"hops {hopping['mean_hops']:.2f} on average and {hopping['most_hops']} at most, "
        f"{hopping['mean_evaluations']:.0f} motions a search")  # fmt: skip
    return said


def figures(maps: Maps) -> dict[str, Any]:
    return {
        "truth": TRUTH.tolist(), "seconds_recorded": SECONDS, "within": SUCCESS, "population": POPULATION,
        "local": {"success": int((maps.local < SUCCESS).sum()), "of": len(maps.local), "seconds": maps.local_seconds},
        "basin_hopping": {
            "success": int((maps.hopping < SUCCESS).sum()), "of": maps.count, "seconds": maps.hopping_seconds,
            "mean_hops": float(maps.hops.mean()) if maps.count else 0.0, "most_hops": int(maps.hops.max(initial=0)),
            "mean_evaluations": float(maps.evaluations.mean()) if maps.count else 0.0,
            "largest_error": float(maps.hopping.max(initial=0.0)),
        },
    }  # fmt: skip


def draw(maps: Maps, path: Path) -> None:
    """Which starts end at the truth: local fits, basin hopping; and how many hops the latter took."""
    from matplotlib.colors import ListedColormap

    from .pictures import new_figure

    side = round(len(maps.starts) ** 0.5)
    half = (HIGH - LOW) / side / 2
    extent = (LOW - half, HIGH - half, LOW - half, HIGH - half)
    figure = new_figure(13, 4.3)
    panels = figure.subplots(1, 3)
    two = ListedColormap(["#d9603b", "#2f6db5"])
    for axes, error, title in zip(
        panels, (maps.local, maps.hopping), ("local fits alone", "basin hopping"), strict=False
    ):
        is_good = error < SUCCESS
        axes.imshow(is_good.reshape(side, side).T, origin="lower", extent=extent, cmap=two, vmin=0, vmax=1)
        axes.set_title(f"{title}: {is_good.sum()} of {len(error)} find the lengths", loc="left", fontsize=11)
    shown = panels[2].imshow(maps.hops.reshape(side, side).T, origin="lower", extent=extent, cmap="viridis")
    panels[2].set_title("hops after the first population", loc="left", fontsize=11)
    figure.colorbar(shown, ax=panels[2])
    for axes in panels:
        axes.plot(*TRUTH, marker="*", color="white", markeredgecolor="#222222", markersize=13, linestyle="")
        axes.set(xlabel="start of the first length (m)", ylabel="start of the second (m)")
    figure.savefig(path, dpi=110)
