"""The cart-pole of examples/05_swing_up_torch.py from ten seeds: how many policies swing it up, and how long each takes.

    python benchmarks/swing_up.py [--seeds 10] [--processes 1]

One seed after the other on one thread, or several at a time. A seed counts where all of 32 hanging starts end with the pole
upright (cosine above 0.95 through the last half second). Needs torch.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import sys
import time
from multiprocessing import get_context
from pathlib import Path

EXAMPLE = Path(__file__).parents[1] / "examples" / "05_swing_up_torch.py"


def outcome(seed: int) -> tuple[int, float, float, float]:
    """Seed, how upright its worst pole ends, wall seconds, processor seconds."""
    import torch

    torch.set_num_threads(1)
    spec = importlib.util.spec_from_file_location("swing_up", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    start, used = time.perf_counter(), time.process_time()
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        policy = example.trained(seed)
    seconds, used = time.perf_counter() - start, time.process_time() - used
    return seed, example.worst_end(policy), seconds, used


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    print("python", *sys.argv)
    found = []
    with get_context("spawn").Pool(options.processes) as pool:
        for seed, worst, seconds, used in pool.imap_unordered(outcome, range(options.seeds)):
            found.append((worst > 0.95, seconds))
            print(
                f"seed {seed}: pole at least {worst:.4f} upright, {seconds:.1f} s, {used:.1f} s of processor",
                flush=True,
            )
    print(
        f"{sum(up for up, _ in found)} of {len(found)} swing up; slowest {max(s for _, s in found):.1f} s (goal: all, under 60 s)"
    )


if __name__ == "__main__":
    main()
