"""What the benchmarks share: fair timing on a busy machine, and a table of goals."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np


def best(runs: Mapping[str, Callable], repeats: int) -> dict[str, float]:
    """Least processor time of each, in seconds; one after the other in every round, so that all meet the same machine."""
    found = dict.fromkeys(runs, float("inf"))
    for _ in range(repeats):
        for name, run in runs.items():
            start = time.process_time()
            run()
            found[name] = min(found[name], time.process_time() - start)
    return found


def exponent(sizes: Sequence[float], times: Sequence[float]) -> float:
    """Slope of time against size, both as logarithms: 1 is linear."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def print_goals(found: Mapping[str, float], goals: Sequence[tuple[str, str, float, str]]) -> None:
    for key, sign, goal, words in goals:
        is_met = found[key] >= goal if sign == ">=" else found[key] <= goal
        print(f"{'ok  ' if is_met else 'MISS'} {found[key]:8.2f}  (goal {sign} {goal:g})  {words}")


def write(found: Mapping, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(found, indent=2))
    print(f"written to {folder}")
