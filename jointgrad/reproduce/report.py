"""The demonstration as a user sees it: a bar while it runs, a table at the end, and a folder with everything."""

from __future__ import annotations

import csv
import dataclasses
import importlib.metadata
import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

import jointgrad as jg

from . import pendulum
from .pendulum import PAPER, Settings, Swing

# what a motion must reach to count as a success
GOOD_RATIO, GOOD_TIP_ERROR, GOOD_ENERGY_ERROR = 0.999, 0.02, 0.01
FIGURES = (
    "n", "return", "maximum", "ratio", "paper", "tip_error", "replay_tip_error", "energy_error", "work",
    "energy_gained", "iterations", "attempts", "seconds",
)  # fmt: skip
NOTE = (
    "return = d_0 - d_T, with d the squared distance from the tip to the top (m^2). Replay: the same torques with "
    f"steps {pendulum.REPLAY} times finer. Energy: largest difference between work done and energy gained. "
    "Qiao 2021, table 4: a learned policy, mean of ten seeds, one Euler step per torque."
)


def demonstrate(numbers: Sequence[int], out: Path, settings: Settings) -> int:
    """Swing pendulums of these numbers of links, show and keep what came out; returns the exit code."""
    numbers = checked(numbers, settings)
    console, began = Console(), time.perf_counter()
    out.mkdir(parents=True, exist_ok=True)
    swings: list[Swing] = []
    run: dict[str, Any] = {"compile_seconds": None, "seconds": None, "complete": False}
    try:
        run["compile_seconds"] = warmed_up(console, settings)
        with progress_bars(console) as bars:
            for n in numbers:
                swings.append(watched(bars, n, settings))
                save(out, swings, settings, run)
        run["complete"] = True
    except KeyboardInterrupt:
        console.print(f"Interrupted: {len(swings)} of {len(numbers)} pendulums are finished.", style="yellow")
    if swings:
        console.print(table(swings))
        draw(out, swings)
        run["seconds"] = time.perf_counter() - began
        save(out, swings, settings, run)
        console.print(verdict(swings, run), style="bold", highlight=False)
        console.print(f"Table, curves, animation and torques are in {out.resolve()}", soft_wrap=True, highlight=False)
    return 0 if run["complete"] else 130


def checked(numbers: Sequence[int], settings: Settings) -> list[int]:
    """The numbers of links in order; whatever is wrong with them is said before the work begins."""
    if not numbers:
        raise jg.InputError("n is empty: name at least one number of links")
    for n in numbers:
        pendulum.pendulum(n, settings)
    return sorted(set(numbers))


# while it runs --------------------------------------------------------------------------------------------------------


def warmed_up(console: Console, settings: Settings) -> float:
    """Seconds until the engine is compiled, or loaded from the cache."""
    began = time.perf_counter()
    console.print("Swinging pendulums to the top by gradient descent on their torques", style="bold")
    pendulum.objective(pendulum.pendulum(1, settings), np.zeros((pendulum.CONTROL_STEPS, 1, 1)), settings)
    seconds = time.perf_counter() - began
    console.print(f"Engine ready after {seconds:.1f} s", style="dim", highlight=False)
    return seconds


class Rate(ProgressColumn):
    """Iterations per second."""

    def render(self, task: Task) -> Text:
        seconds = task.finished_time or task.elapsed
        return Text(f"{task.completed / seconds:5.1f} /s" if seconds else "", style="dim")


def progress_bars(console: Console) -> Progress:
    columns = (
        TextColumn("n = {task.fields[n]}"), BarColumn(bar_width=24), MofNCompleteColumn(),
        TextColumn("{task.fields[tip]}"), Rate(), TimeRemainingColumn(elapsed_when_finished=True),
    )  # fmt: skip
    return Progress(*columns, console=console)


def watched(bars: Progress, n: int, settings: Settings) -> Swing:
    """A swing with its own progress bar."""
    task = bars.add_task("", total=settings.iterations, n=n, tip="")

    def watch(iteration: int, tip_error: float) -> None:
        total = settings.iterations * -(-iteration // settings.iterations)
        bars.update(task, completed=iteration, total=total, tip=f"tip {tip_error:.4f} m from the top")

    swing = pendulum.swing(n, settings, watch)
    bars.update(task, total=swing.iterations)  # the search ends as soon as the goal is reached
    return swing


# what is shown --------------------------------------------------------------------------------------------------------


def is_good(swing: Swing) -> bool:
    """At the top, by the laws of mechanics."""
    at_top = swing.ratio >= GOOD_RATIO and swing.tip_error < GOOD_TIP_ERROR and swing.replay_tip_error < GOOD_TIP_ERROR
    return at_top and swing.energy_error < GOOD_ENERGY_ERROR


def table(swings: Sequence[Swing]) -> Table:
    """One row for each pendulum, in 80 columns."""
    shown = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), caption=NOTE, caption_justify="left")
    heads = ("n", "return", "maxi-\nmum", "ratio", "Qiao\n2021", "tip er-\nror (m)", "replay\n(m)", "energy\n(%)",
             "itera-\ntions", "sec-\nonds", "at\ntop")  # fmt: skip
    for head in heads:
        shown.add_column(head, justify="right", no_wrap=True)
    for s in swings:
        mark = Text("yes", "green") if is_good(s) else Text("no", "red")
        shown.add_row(
            str(s.n), f"{s.reward:.4f}", f"{s.maximum:.1f}", f"{s.ratio:.5f}", f"{s.paper:.2f}", f"{s.tip_error:.4f}",
            f"{s.replay_tip_error:.4f}", f"{100 * s.energy_error:.2f}", str(s.iterations), f"{s.seconds:.1f}", mark,
        )  # fmt: skip
    return shown


def verdict(swings: Sequence[Swing], run: dict[str, Any]) -> str:
    return (
        f"{sum(map(is_good, swings))} of {len(swings)} at the top (ratio at least {GOOD_RATIO}, both tip errors below "
        f"{GOOD_TIP_ERROR} m, energy within {100 * GOOD_ENERGY_ERROR:.0f} %); {run['seconds']:.0f} s in all, "
        f"{run['compile_seconds']:.0f} s of them compiling."
    )


# what is kept ---------------------------------------------------------------------------------------------------------


def draw(out: Path, swings: Sequence[Swing]) -> None:
    """learning_curves.png and swing.gif."""
    from . import pictures  # here, because matplotlib takes a second to load

    pictures.draw_learning_curves(swings, out / "learning_curves.png")
    pictures.draw_animation(swings, out / "swing.gif")


def save(out: Path, swings: Sequence[Swing], settings: Settings, run: dict[str, Any]) -> None:
    """results.json, results.csv, learning_curves.csv and one file of torques for each pendulum."""
    rows = [figures(s) for s in swings]
    (out / "results.json").write_text(json.dumps(provenance(settings) | run | {"results": rows}, indent=2) + "\n")
    write_csv(out / "results.csv", FIGURES, ([row[name] for name in FIGURES] for row in rows))
    curves = ((s.n, k + 1, error) for s in swings for k, error in enumerate(s.curve))
    write_csv(out / "learning_curves.csv", ("n", "iteration", "best_tip_error"), curves)
    last = swings[-1]
    np.savez(out / f"torques_n{last.n}.npz", torques=last.torques, dt=pendulum.CONTROL_DT, joints=last.joints)


def figures(swing: Swing) -> dict[str, Any]:
    """The numbers of one pendulum, by the names of the files' columns."""
    values = {name: getattr(swing, name) for name in FIGURES if name != "return"} | {"return": swing.reward}
    return {name: values[name] for name in FIGURES} | {"is_good": is_good(swing), "torques": f"torques_n{swing.n}.npz"}


def write_csv(path: Path, head: Sequence[str], rows: Any) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        writer.writerows(rows)


def provenance(settings: Settings) -> dict[str, Any]:
    """Where the numbers come from: enough to get them again."""
    packages = ("numpy", "numba", "llvmlite", "matplotlib", "rich")
    return {
        "experiment": "n-link pendulum to its highest point (Qiao 2021, table 4)",
        "command": " ".join(["jointgrad", *sys.argv[1:]]),
        "note": NOTE,
        "task": {
            "control_steps": pendulum.CONTROL_STEPS, "control_dt": pendulum.CONTROL_DT, "gravity": pendulum.GRAVITY,
            "torque_limit": pendulum.TORQUE_LIMIT, "link_length": pendulum.LENGTH, "paper": PAPER,
        },
        "settings": dataclasses.asdict(settings),
        "good": {"ratio": GOOD_RATIO, "tip_error": GOOD_TIP_ERROR, "energy_error": GOOD_ENERGY_ERROR},
        "versions": {"jointgrad": jg.__version__, "python": platform.python_version()}
        | {p: importlib.metadata.version(p) for p in packages},
        "machine": {"platform": platform.platform(), "processor": platform.machine(), "cores": os.cpu_count()},
    }  # fmt: skip
