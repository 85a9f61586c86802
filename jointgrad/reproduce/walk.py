"""Dogs learn to walk by command, and are judged: the quadruped that Qiao 2021's authors promised in their rebuttal.

Each dog learns by `jointgrad train` (what is finished is kept, what was interrupted goes on), then walks in our simulator and,
unchanged, in MuJoCo. A table says which marks it meets; a dog that does nothing and one that moves at random stand beside.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..model.errors import InputError
from ..rl.batch import Batch
from ..rl.catalogue import make_task
from ..rl.policy_file import load_policy
from ..rl.task import Task
from ..rl.train import SUMMARY, train
from .walk_marks import Walk, in_mujoco, ours, walked

DOGS = ("go2", "a1", "laikago")
JUDGE = 77  # seed of the episodes that dogs are judged by
# name, where it is measured, which measure, the most (or least) that is asked for
MARKS = (
    ("falls of 64", "drawn", "falls", "at most", 1), ("planar speed, m/s", "drawn", "speed_error_instant", "below", 0.06),
    ("the same over strides", "drawn", "speed_error_stride", "below", 0.06),
    ("turning, rad/s", "drawn", "turn_error_instant", "below", 0.1), ("trot", "drawn", "trot", "above", 0.6),
    ("trot at the corners", "corners", "trot", "above", 0.6), ("falls of 64 at the corners", "corners", "falls", "", None),
    ("speed at the corners", "corners", "speed_error_instant", "", None),
    ("told to stand: falls of 64", "zero", "falls", "at most", 0), ("told to stand: drift, m/s", "zero", "drift", "below", 0.05),
    ("MuJoCo, falls of 32: as it is", "default", "falls", "at most", 0),
    ("pushed by up to 0.5 m/s every 2 s", "pushes 0.5 m/s", "falls", "at most", 2),
    ("3 kg more", "+3 kg", "falls", "at most", 2), ("friction 0.4", "friction 0.4", "falls", "at most", 2),
)  # fmt: skip


@dataclass(frozen=True)
class Still:
    """A policy that has learned nothing: no action at all, or random ones."""

    task: Task
    reach: float

    def __call__(self, seen: np.ndarray) -> np.ndarray:
        if not self.reach:
            return np.zeros((len(seen), self.task.model.nu))
        return np.random.default_rng(zlib.crc32(seen.tobytes())).uniform(-1, 1, (len(seen), self.task.model.nu))


def run(
    dogs: Sequence[str], seeds: Sequence[int], seconds: float, out: Path, settings: Mapping[str, Any] | None = None
) -> str:
    """Learn, judge and write walk.md and a picture of each gait; the tables as text."""
    for dog in dogs:
        if dog not in DOGS:
            raise InputError(f"there is no dog {dog!r:.40}: there are {', '.join(DOGS)}")
    tables = []
    for dog in dogs:
        found = {"nothing": judged(Still(make_task(dog), 0.0)), "random": judged(Still(make_task(dog), 1.0))}
        for seed in seeds:
            found[f"seed {seed}"] = learned(dog, seed, seconds, out / dog / f"seed{seed}", settings or {})
            print(table(dog, seconds, found), flush=True)
        tables.append(table(dog, seconds, found))
    text = "\n\n".join(tables) + "\n"
    (out / "walk.md").write_text(text, encoding="utf-8")
    return text


def learned(dog: str, seed: int, seconds: float, folder: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Marks of a dog that has learned for so long; kept in its folder."""
    kept = folder / "marks.json"
    if kept.is_file():
        said = json.loads(kept.read_text(encoding="utf-8"))
        if said["asked_seconds"] == seconds:
            return said
    train(dog, "shac", seconds, None, seed, folder, settings, {})
    policy = load_policy(folder)
    draw_gait(policy.task, walked(policy, Batch(policy.task, 4, threads=1), None, JUDGE), folder / "gait.png")
    summary = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
    spent = {name: summary[name] for name in ("cpu_seconds", "seconds", "env_steps")}
    said = judged(policy) | {"asked_seconds": seconds} | spent
    kept.write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")
    return said


def judged(policy: Any) -> dict[str, Any]:
    return ours(policy, JUDGE) | in_mujoco(policy, JUDGE)


def table(dog: str, seconds: float, found: Mapping[str, Mapping[str, Any]]) -> str:
    """What was measured, mark by mark; what misses its mark is bold."""
    lines = [
        f"{dog}, {seconds:g} s of the processor",
        "",
        f"| | mark | {' | '.join(found)} |",
        "|---" * (2 + len(found)) + "|",
    ]
    for name, case, measure, word, bound in MARKS:
        cells = [_cell(one[case][measure], word, bound) for one in found.values()]
        lines.append(f"| {name} | {f'{word} {bound}' if word else ''} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(value: float, word: str, bound: Any) -> str:
    text = str(value) if isinstance(value, int) else f"{value:.3f}"
    met = {
        "at most": lambda: value <= bound,
        "below": lambda: value < bound,
        "above": lambda: value > bound,
        "": lambda: True,
    }
    return text if met[word]() else f"**{text}**"


def draw_gait(task: Task, walk: Walk, path: Path, seconds: float = 3.0) -> None:
    """Which feet stand, of four dogs: bars over time, from the second second on."""
    from matplotlib.figure import Figure

    assert walk.standing is not None
    figure = Figure(figsize=(8, 6), layout="constrained")
    rows = slice(round(1.0 / task.control_dt), round((1.0 + seconds) / task.control_dt))
    for k, axes in enumerate(figure.subplots(4, 1, sharex=True)):
        axes.imshow(
            walk.standing[rows, k].T,
            aspect="auto",
            cmap="Greys",
            extent=(1.0, 1.0 + seconds, 3.5, -0.5),
            vmin=0,
            vmax=1.4,
        )
        axes.set_yticks(range(4), ("FL", "FR", "RL", "RR"))
        axes.set_title(
            "told {:.2f} m/s forward, {:.2f} sideways, {:.2f} rad/s".format(*walk.command[k]), fontsize=9, loc="left"
        )
    axes.set_xlabel("s")
    figure.savefig(path, dpi=110)
