"""The demonstration: a robot arm learns to throw a ball onto a mark, and the throw can be watched in a browser.

It is the physical setting of `jointgrad reproduce throw`: the hand opens after half a second, and the ball must fly, land, roll and
come to rest on the mark. Many random swings are tried as one batch, and the best are improved by exact gradients of where the
ball stops.
"""

from __future__ import annotations

import csv
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import jointgrad as jg

from ..optimize.progress import Result, Stop, bar
from ..optimize.shooting import Shooting, optimise
from . import throw
from .contest import Method, Task, screened

GOOD = 0.02  # m from the mark


def demonstrate(out: Path, seed: int, iterations: int) -> int:
    """Learn, show and keep a throw; returns the exit code. Ctrl-C keeps the best throw so far."""
    if iterations < 1:
        raise jg.InputError(f"iterations must be 1 or more, but is {iterations}")
    console, began = Console(), time.perf_counter()
    console.print("An arm learns to throw: the ball must come to rest on the mark, 1.5 m away", style="bold")
    task, method = throw.task("physical"), throw.methods("physical", quick=True)[0]
    problem = task.problem(method.knots, brake=method.brake)
    problem.jacobian(np.zeros((1, problem.n)))
    compiling = time.perf_counter() - began
    console.print(f"Engine ready after {compiling:.1f} s", style="dim", highlight=False)
    found = learned(problem, task, method, seed, iterations)
    motion = both(problem, found.x)
    figures = {
        **judged(task, motion), "distance_at_half_step": float(again(task, motion.u[:, 1])),  # type: ignore[index]
        "iterations": len(found.history) - 1, "seed": seed, "reason": found.reason,
        "evaluations": found.history.evaluations[-1] + found.history.gradients[-1] + method.screened,
        "seconds_learning": found.history.seconds[-1], "seconds_compiling": compiling,
        "command": " ".join(["jointgrad", *sys.argv[1:]]),
    }  # fmt: skip
    page = keep(out, task, motion, found, figures)
    console.print(verdict(figures), style="bold", highlight=False)
    console.print(f"Open it in a browser: {page.resolve()}", soft_wrap=True, highlight=False)
    return 130 if found.is_interrupted else 0


def learned(problem: Shooting, task: Task, method: Method, seed: int, iterations: int) -> Result:
    """The best of random swings, improved until the ball rests within the accuracy of the task; a bar shows how."""
    starts = screened(problem, problem.controls.project(task.start_controls(seed)), method, seed)  # type: ignore[attr-defined]
    stop = Stop(iterations=iterations, target=0.5 * task.accuracy**2)
    # the loss is half the squared distance
    with bar("Learning", iterations, lambda loss: f"ball {np.sqrt(2 * loss):.3f} m from the mark") as shown:
        return optimise(problem, starts, method.method, stop, callback=shown, **method.settings)


def both(problem: Shooting, x: np.ndarray) -> jg.Trajectory:
    """Two arms side by side: one that only holds still and opens its hand, and one that has learned."""
    return problem.motions(np.stack([np.zeros_like(x), x]))


def judged(task: Task, motion: jg.Trajectory) -> dict[str, Any]:
    """Where the balls end, how far from the mark, and how fast they still are."""
    ends, speeds = motion.last.q[:, list(task.at)], np.linalg.norm(motion.last.qd[:, -6:-3], axis=-1)
    off = np.linalg.norm(ends - task.target, axis=-1)
    return {"mark": task.target, "end": ends[1].tolist(), "distance_before": float(off[0]), "distance": float(off[1]),
            "speed_at_end": float(speeds[1])}  # fmt: skip


def again(task: Task, u: np.ndarray) -> np.floating:
    """How far from the mark the ball ends with steps half as long: what is learned must not depend on the step."""
    fine = task.model.replace({"world.dt": task.model.params["world.dt"] / 2})
    return np.linalg.norm(
        jg.rollout(fine, task.start, np.repeat(u, 2, axis=0), keep=False).last.q[list(task.at)] - task.target
    )


def verdict(figures: dict[str, Any]) -> str:
    hit = "on the mark" if figures["distance"] < GOOD else "not on the mark yet"
    stopped = "Interrupted. " if figures["reason"] == "interrupted" else ""
    finer = f"with steps half as long {100 * figures['distance_at_half_step']:.1f} cm"
    return (
        f"{stopped}The ball rests {100 * figures['distance']:.1f} cm from the middle of the mark: {hit} (before: "
        f"{figures['distance_before']:.2f} m; {finer}). "
        f"{figures['iterations']} iterations, {figures['evaluations']} motions, "
        f"{figures['seconds_learning']:.0f} s, and {figures['seconds_compiling']:.0f} s of compiling."
    )


def keep(out: Path, task: Task, motion: jg.Trajectory, found: Result, figures: dict[str, Any]) -> Path:
    """throw.html, throw.npz (for `jointgrad replay`), results.json, learning.csv; the path of the page."""
    from ..viewer.film import film_of
    from ..viewer.replay import write_html

    out.mkdir(parents=True, exist_ok=True)
    motion.save(out / "throw.npz")
    (out / "results.json").write_text(json.dumps(figures, indent=2) + "\n")
    with (out / "learning.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("iteration", "evaluations", "gradients", "seconds", "loss", "best"))
        writer.writerows(found.history.rows())
    film = film_of(task.model, motion, title="Before and after learning to throw")
    return write_html(film, out / "throw.html")
