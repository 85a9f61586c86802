"""This tree against an earlier commit: the same workloads, in fresh processes that take turns.

    python benchmarks/since.py COMMIT [--pairs 20] [--count] [--cold] [--out FOLDER]

Each pair runs both, the one first in every other pair; a process reports its least processor time per workload. Printed: the
median of the ratios new / old and its 95 % interval (order statistics). --count adds the ratio of the instructions of one call,
Python included, which no other process disturbs: valgrind runs both trees, compiled for a processor that it knows (2 minutes a
tree); on a busy machine `--pairs 0 --count` is enough. --cold adds the time from an empty cache, a minute a pair. Needs the extra
[bench].
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import inspect
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import jointgrad.bench

HERE = Path(__file__).resolve().parents[1]
# both trees are measured by the code of this one
jointgrad.bench.__path__[:] = [str(HERE / "jointgrad" / "bench")]

from jointgrad.bench.timing import best, write  # noqa: E402

LIMIT, WIDTH = 1.03, 0.05  # no median above this; no interval wider than that


# what a process runs ------------------------------------------------------------------------------------------------------


def workloads() -> dict:
    import oracles.mujoco_model  # noqa: F401, of the tree that is measured, before anybody takes those of this one

    import articulated  # isort: skip
    import contact

    import jointgrad as jg

    robot = jg.zoo.laikago
    if "touch" not in inspect.signature(robot).parameters:  # of older commits, whose robot had feet alone
        jg.zoo.laikago = lambda touch="feet": robot()
    runs = {}

    def add(name, model, start, u=None, steps=None):
        motion = jg.rollout(model, start, u, steps=steps, threads=1)
        bar = np.ones_like(motion.last.qd)
        runs[f"{name}, forward"] = lambda: jg.rollout(model, start, u, steps=steps, threads=1)
        runs[f"{name}, backward"] = lambda: motion.backward(qd_bar=bar)

    for name, world, cone, batch, steps in (
        ("Laikago on four feet, batch 256", contact.world_of(), True, 256, 10),
        ("the same, pyramid", contact.world_of(), False, 256, 10),
        ("the same, batch 1", contact.world_of(), True, 1, 100),
        ("ten Laikagos, batch 8", contact.world_of(10), True, 8, 10),
    ):
        model, q, u = contact.standing(world, cone)
        qd = 1e-3 * np.random.default_rng(0).normal(size=(batch, model.nv))
        add(name, model, jg.State(np.repeat(q[None], batch, 0), qd), np.tile(u, (steps, batch, 1)))
    many = contact.table(64).compile(dt=contact.DT)
    add("64 contacts on one body, batch 8", many, many.initial_state(batch=8), steps=10)
    add("Laikago in flight, batch 256", *articulated.laikago_in_flight(256, 20))
    tree = jg.zoo.random_tree(30, 1).compile(dt=1e-3, contact=None)
    add("tree of 30 links, batch 64", tree, tree.initial_state(batch=64), steps=20)
    return runs


# instructions that are counted ------------------------------------------------------------------------------------------------

# what valgrind can run of the instructions for packs
PROCESSOR, FEATURES = "haswell", {"avx2": True, "avx": True, "fma": True, "bmi": True, "bmi2": True, "sse4.2": True}


def compile_for_valgrind() -> None:
    """All code of this process is for one processor, whatever it runs on: valgrind is another than the machine."""
    import llvmlite.binding as llvm

    flat = ",".join(f"+{name}" for name in sorted(FEATURES))
    os.environ |= {"NUMBA_CPU_NAME": PROCESSOR, "NUMBA_CPU_FEATURES": flat}
    llvm.get_host_cpu_name = lambda: PROCESSOR
    llvm.get_host_cpu_features = lambda: llvm.FeatureMap(FEATURES)
    import jointgrad.compiler.kernel as kernel

    kernel.WORTH_HELP = 10**9  # processes that help to compile know nothing of this


def run_marked() -> None:
    """Every workload once, after it has run before; `getpriority`, which nobody else calls, ends what is counted for it."""
    runs = workloads()
    for run in runs.values():
        run()
    gc.collect()
    gc.disable()
    os.getpriority(os.PRIO_PROCESS, 0)
    for run in runs.values():
        run()
        os.getpriority(os.PRIO_PROCESS, 0)
    print(json.dumps(list(runs)))


def counted(tree: Path) -> dict[str, float]:
    """Instructions of one call of every workload."""
    ours = [sys.executable, "-P", str(Path(__file__).resolve()), "--marked", "-"]
    run_in(tree, ours)  # what is not in the cache is compiled outside valgrind
    with tempfile.TemporaryDirectory() as folder:
        callgrind = ["valgrind", "--tool=callgrind", "--dump-before=getpriority", f"--callgrind-out-file={folder}/out"]
        names = json.loads(run_in(tree, [*callgrind, *ours]).splitlines()[-1])
        dumps = sorted(Path(folder).iterdir(), key=lambda path: int(path.suffix[1:] or 0))
        totals = [int(re.search(r"^totals: (\d+)", path.read_text(), re.M)[1]) for path in dumps]
    # what came before the first mark and after the last is nobody's
    return dict(zip(names, totals[-len(names) - 1 : -1] if len(totals) > len(names) + 1 else totals[1:], strict=True))


def report(repeats: int) -> None:
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    print(json.dumps(best(workloads(), repeats)))


# the two sides ------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def checkout(commit: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        git = ["git", "-C", str(HERE), "worktree"]
        subprocess.run([*git, "add", "--detach", "--force", f"{folder}/tree", commit], check=True, capture_output=True)
        try:
            yield Path(folder) / "tree"
        finally:
            subprocess.run([*git, "remove", "--force", f"{folder}/tree"], check=True)


def run_in(tree: Path, command: list[str]) -> str:
    """What a process prints that imports the package of this tree."""
    path = os.pathsep.join(map(str, (tree, HERE / "benchmarks", tree / "tests")))
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, check=True, capture_output=True, text=True)
    return done.stdout


def times(tree: Path, repeats: int) -> dict[str, float]:
    command = [sys.executable, "-P", str(Path(__file__).resolve()), "--report", str(repeats), "-"]
    return json.loads(run_in(tree, command).splitlines()[-1])


def cold(tree: Path) -> dict[str, float]:
    command = [sys.executable, "-P", "-c", "import since, cold_start; print(cold_start.seconds(1)[0])"]
    return {"from an empty cache": float(run_in(tree, command))}


def median_with_interval(ratios: list[float]) -> tuple[float, float, float]:
    """The median and, from order statistics, an interval that holds the true one in at least 95 % of cases."""
    ordered, n = sorted(ratios), len(ratios)
    tail, low = 0.0, 0
    while low < n // 2 and tail + math.comb(n, low) / 2**n <= 0.025:
        tail += math.comb(n, low) / 2**n
        low += 1
    first = max(low - 1, 0)
    return float(np.median(ordered)), ordered[first], ordered[n - 1 - first]


def compared(old: Path, pairs: int, measure) -> dict[str, list[float]]:
    """Ratios new / old of every workload, pair by pair."""
    for tree in (old, HERE):  # compiled code is in the cache from here on
        measure(tree)
    ratios: dict[str, list[float]] = {}
    for k in range(pairs):
        sides = {side: measure(side) for side in ((old, HERE) if k % 2 else (HERE, old))}
        for name, seconds in sides[HERE].items():
            ratios.setdefault(name, []).append(seconds / sides[old][name])
        print(f"\rpair {k + 1} of {pairs}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return ratios


def print_table(ratios: dict[str, list[float]]) -> None:
    for name, values in ratios.items():
        middle, low, high = median_with_interval(values)
        verdict = "ok  " if middle <= LIMIT else "SLOW"
        wide = "" if high - low <= WIDTH else "   (wide: more pairs, or --count)"
        print(f"{verdict} {middle:6.3f}  [{low:.3f}, {high:.3f}]  {name}{wide}")


def print_counts(counts: dict[str, float]) -> None:
    print("instructions of one call, new / old")
    for name, ratio in counts.items():
        print(f"{'ok  ' if ratio <= LIMIT else 'SLOW'} {ratio:6.3f}  {name}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commit")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=5, help="of each workload in a process")
    parser.add_argument("--cold", action="store_true", help="the time from an empty cache too")
    parser.add_argument("--count", action="store_true", help="instructions too")
    parser.add_argument("--marked", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--report", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=Path("out/benchmarks/since"))
    options = parser.parse_args()
    if options.report:
        report(options.report)
        return
    if options.marked:
        compile_for_valgrind()
        run_marked()
        return
    with checkout(options.commit) as old:
        ratios = compared(old, options.pairs, lambda tree: times(tree, options.repeats)) if options.pairs else {}
        if options.cold:
            ratios |= compared(old, options.pairs, cold)
        new, before = (counted(tree) for tree in (HERE, old)) if options.count else ({}, {})
    print(f"python {' '.join(sys.argv)}   {options.pairs} pairs, new / old")
    print_table(ratios)
    counts = {name: new[name] / before[name] for name in new}
    if counts:
        print_counts(counts)
    write({"ratios": ratios, "instructions": counts}, options.out)


if __name__ == "__main__":
    main()
