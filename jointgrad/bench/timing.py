"""What the commands in benchmarks/ share: fair timing on a busy machine, memory of the process, and a table of goals."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path


def best(
    runs: Mapping[str, Callable], repeats: int, clock: Callable[[], float] = time.process_time
) -> dict[str, float]:
    """Least time of each, in seconds; one after the other in every round, so that all meet the same machine."""
    found = dict.fromkeys(runs, float("inf"))
    for _ in range(repeats):
        for name, run in runs.items():
            start = clock()
            run()
            found[name] = min(found[name], clock() - start)
    return found


def resident(key: str = "VmRSS") -> int:
    """Bytes of this process in memory; key VmHWM: the most there ever were (Linux)."""
    line = next(x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith(key))
    return int(line.split()[1]) * 1024


def print_goals(found: Mapping[str, float], goals: Sequence[tuple[str, str, float, str]]) -> None:
    for key, sign, goal, words in goals:
        is_met = found[key] >= goal if sign == ">=" else found[key] <= goal
        print(f"{'ok  ' if is_met else 'MISS'} {found[key]:8.2f}  (goal {sign} {goal:g})  {words}")


def write(found: Mapping, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(found, indent=2))
    print(f"written to {folder}")
