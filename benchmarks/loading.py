"""How long robots take to load: a humanoid, beside MuJoCo's own reader, and every file of the models folder.

    python benchmarks/loading.py [--models ../shared/models] [--repeats 20]

What is loaded is checked first: nv and mass of the humanoid against MuJoCo's. Needs the extra [bench].
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import mujoco

import jointgrad as jg

ROOT = Path(__file__).resolve().parents[1]
GOALS = (
    ("humanoid_ms", 50.0, "a humanoid (MJCF text to a robot), ms"),
    ("humanoid_model_ms", 50.0, "the same to a compiled model, ms"),
    ("all_models_s", 120.0, "every URDF and MJCF file of the folder, s"),
    ("slowest_s", 10.0, "the slowest of them, s"),
)


def best(run: Callable[[], object], repeats: int) -> float:
    """Least wall time of a call, in seconds."""
    found = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        found = min(found, time.perf_counter() - start)
    return found


def humanoid(repeats: int) -> dict[str, float]:
    text = jg.to_mjcf(jg.zoo.humanoid())
    m, model = mujoco.MjModel.from_xml_string(text), jg.load(text).compile()
    assert model.nv == m.nv and abs(model.params["link.mass"].sum() / m.body_mass.sum() - 1) < 1e-9
    theirs = best(lambda: mujoco.MjModel.from_xml_string(text), repeats)
    ours, whole = best(lambda: jg.load(text), repeats), best(lambda: jg.load(text).compile(), repeats)
    return {"humanoid_ms": 1e3 * ours, "humanoid_model_ms": 1e3 * whole, "mujoco_ms": 1e3 * theirs}


def all_models(folder: Path) -> dict[str, float]:
    """Loaded or refused in our own words; any other error ends the run."""
    with open(folder / "manifest.csv") as file:
        names = [row["file"] for row in csv.DictReader(file) if row["kind"].startswith(("urdf", "mjcf"))]
    times, refused = {}, 0
    for name in names:
        start = time.perf_counter()
        try:
            jg.load(folder / name, search_roots=[folder], missing_meshes="skip")
        except jg.ModelError:
            refused += 1
        times[name] = time.perf_counter() - start
    slowest = max(times, key=lambda name: times[name])
    print(f"{len(names)} files, {refused} of them refused; the slowest is {slowest}")
    return {"all_models_s": sum(times.values()), "slowest_s": times[slowest]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=Path, default=ROOT.parent / "shared" / "models")
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"python {' '.join(sys.argv)}   MuJoCo {mujoco.__version__}")
    found = humanoid(options.repeats)
    print(
        f"the humanoid takes {found['humanoid_ms'] / found['mujoco_ms']:.1f} times as long as MuJoCo's reader and compiler"
    )
    if (options.models / "manifest.csv").exists():
        found |= all_models(options.models)
    else:
        print(f"{options.models} is not there: its files are left out")
    for key, goal, words in (g for g in GOALS if g[0] in found):
        print(f"{'ok  ' if found[key] <= goal else 'MISS'} {found[key]:8.2f}  (goal <= {goal:g})  {words}")


if __name__ == "__main__":
    main()
