"""How long the engine takes from an empty cache of compiled code: one process alone, and two that start together.

    python benchmarks/cold_start.py

A Laikago on the ground: five steps, and back through them. Both processes must print the same gradient. About a minute.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from jointgrad.bench.timing import print_goals, write

FIRST_STEPS = """
import numpy as np
import jointgrad as jg
world = jg.World()
world.add(jg.zoo.laikago(touch="feet"), position=(0, 0, 0.5))
world.add_ground()
model = world.compile(dt=1e-3)
motion = jg.rollout(model, model.initial_state(), steps=5)
print(motion.backward(qd_bar=np.ones(model.nv)).q.tolist())
"""
GOALS = (("two_over_one", "<=", 1.5, "two processes that start together / one, wall time"),)


def seconds(processes: int) -> tuple[float, set[str]]:
    """Wall time until all are done, on an empty cache of their own, and what they print."""
    with tempfile.TemporaryDirectory() as cache:
        environment, start = os.environ | {"JOINTGRAD_CACHE": cache}, time.perf_counter()
        command = [sys.executable, "-P", "-c", FIRST_STEPS]
        running = [
            subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            for _ in range(processes)
        ]
        said = {one.communicate()[0] for one in running}
        assert not any(one.returncode for one in running), "a process failed"
        return time.perf_counter() - start, said


def main() -> None:
    (one, alone), (two, together) = seconds(1), seconds(2)
    assert alone == together, "the processes disagree"
    print(f"from an empty cache: one process {one:.1f} s, two together {two:.1f} s")
    found = {"one_s": one, "two_s": two, "two_over_one": two / one}
    print_goals(found, GOALS)
    write(found, Path("out/benchmarks/cold_start"))


if __name__ == "__main__":
    main()
