"""Eleven everyday tasks, ours beside MuJoCo or Pinocchio: lines of code and seconds.

    python benchmarks/first_hour.py

The tasks are the scripts in examples/first_hour: a function `ours`, and where the others can do it, one of theirs that does the
same. Counted are the lines of these functions without blanks and comments; seconds are of a second call, by the processor's clock,
with compiled code in the cache. Prints the table of docs/first_hour.md.
"""

from __future__ import annotations

import inspect
import os
import runpy
import time
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

TASKS = sorted((Path(__file__).resolve().parents[1] / "examples" / "first_hour").glob("*.py"))
THEIRS = {"mujoco_": "MuJoCo", "pinocchio": "Pinocchio"}


def lines(function) -> int:
    text = [line.strip() for line in inspect.getsource(function).splitlines()]
    return sum(bool(line) and not line.startswith("#") for line in text)


def seconds(function) -> float:
    function()
    start = time.process_time()
    function()
    return time.process_time() - start


def row(path: Path) -> str:
    found = runpy.run_path(str(path), run_name="counted")
    other = next((name for name in THEIRS if callable(found.get(name))), None)
    title = path.stem[3:].replace("_", " ")
    cells = [f"{lines(found['ours'])}", f"{seconds(found['ours']):.3g}"]
    cells += [f"{lines(found[other])} ({THEIRS[other]})", f"{seconds(found[other]):.3g}"] if other else ["-", "-"]
    return f"| [{title}](../examples/first_hour/{path.name}) | {' | '.join(cells)} |"


def main() -> None:
    warnings.simplefilter("ignore")
    print("| task | lines | s | lines of the other | s |\n|---|---|---|---|---|")
    for path in TASKS:
        print(row(path), flush=True)


if __name__ == "__main__":
    main()
