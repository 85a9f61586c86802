"""Mutated robot files by the thousand: only our own errors may come out, quickly, and memory must not grow.

    python benchmarks/fuzz_files.py [--files 20000] [--seed 0] [--models ../shared/models]

Starts from the robot of tests/test_hostile_files.py and, where the folder is there, from real URDF and MJCF files.
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
LONGEST = 10.0  # seconds that one file may take


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--models", type=Path, default=ROOT.parent / "shared" / "models")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rng, texts = random.Random(options.seed), starting_points(options.models)
    counts, worst, wrong = collections.Counter(), 0.0, 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "robot.xml"
        for _ in range(options.files):
            mutant = hostile.mutated(rng.choice(texts), rng)
            path.write_bytes(mutant if isinstance(mutant, bytes) else mutant.encode(errors="replace"))
            start = time.perf_counter()
            try:
                counts[tried(path)] += 1
            except Exception:
                wrong += 1
                traceback.print_exc(limit=-3)
            worst = max(worst, time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{options.files} files from {len(texts)} texts: {dict(counts)}; slowest {worst:.2f} s, peak {peak:.0f} MB")
    print(f"{wrong} errors that are not ours")
    sys.exit(1 if wrong or worst > LONGEST else 0)


if __name__ == "__main__":
    main()
