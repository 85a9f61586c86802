"""Mutated robot files by the thousand: only our own errors may come out, quickly, and memory must not grow.

    python benchmarks/fuzz_files.py [--files 20000] [--first 0] [--seconds 600] [--seed 0] [--models ../shared/models]

Starts from the robot of tests/test_hostile_files.py and, where the folder is there, from real URDF and MJCF files. File k is
the same whatever came before it: --first goes on where a run that ran out of --seconds ended. Time is the processor's.
"""

from __future__ import annotations

import argparse
import collections
import csv
import random
import resource
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import test_hostile_files as hostile

import jointgrad as jg

ROOT = Path(__file__).resolve().parents[1]
LONGEST, LARGEST = 10.0, 1000.0  # seconds that one file may take, and MB that the process may grow to


def starting_points(models: Path) -> list[str]:
    texts = [hostile.ROBOT] * 20
    manifest = models / "manifest.csv"
    if manifest.is_file():
        with manifest.open() as file:
            rows = [r for r in csv.DictReader(file) if int(r["size"]) < 20_000]
        texts += [(models / r["file"]).read_text(errors="replace") for r in rows[::7]]
    return texts


def tried(path: Path) -> str:
    """What became of one file."""
    try:
        robot = jg.load(path, missing_meshes="skip")
    except jg.ModelError:
        return "refused"
    try:
        robot.compile(unphysical="warn")
    except jg.ModelError:
        return "loaded"
    return "compiled"


def mutant(k: int, seed: int, texts: list[str]) -> bytes:
    rng = random.Random(f"{seed}:{k}")
    made = hostile.mutated(rng.choice(texts), rng)
    return made if isinstance(made, bytes) else made.encode(errors="replace")


def options_of() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--models", type=Path, default=ROOT.parent / "shared" / "models")
    return parser.parse_args()


def main() -> None:
    options = options_of()
    warnings.simplefilter("ignore")
    texts, begun = starting_points(options.models), time.monotonic()
    counts, worst, wrong, k = collections.Counter(), (0.0, -1), 0, options.first
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "robot.xml"
        while k < options.files and time.monotonic() - begun < options.seconds:
            path.write_bytes(mutant(k, options.seed, texts))
            start = time.process_time()
            try:
                counts[tried(path)] += 1
            except Exception:
                wrong += 1
                print(f"file {k}:")
                traceback.print_exc(limit=-3)
            worst = max(worst, (time.process_time() - start, k))
            k += 1
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"files {options.first} to {k - 1} of {options.files}, from {len(texts)} texts: {dict(counts)}")
    print(f"slowest {worst[0]:.2f} s (file {worst[1]}), peak {peak:.0f} MB, {wrong} errors that are not ours")
    sys.exit(1 if wrong or worst[0] > LONGEST or peak > LARGEST else 0)


if __name__ == "__main__":
    main()
