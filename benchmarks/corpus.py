"""Robots as they come: how many files of some folders load, compile, touch with every shape, and stand on ground and rough terrain.

    python benchmarks/corpus.py FOLDER ... [--drop 10] [--only 20] [--kind urdf]

A folder may be a collection of files, or a wheel of robots that was unpacked (example-robot-data, robosuite). Files compile with
massless="estimate". With --drop a robot with a free base falls from just above the ground, and from above rough terrain, with its
motors off, for so many seconds; it has stood up to it if nothing diverged and energy did not come from nowhere: at the end no body
moves faster than it fell. Meshes that are not there are counted apart. Needs the extra [mesh].
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

import jointgrad as jg
from jointgrad.files.xml import parse

COLUMNS = (
    "files",
    "loaded",
    "compiled",
    "meshes missing",
    "every shape touches",
    "stood on ground",
    "stood on terrain",
)


def files_below(folder: Path, kind: str) -> list[Path]:
    """Files that hold a whole robot: URDF, or MJCF with a world."""
    found = []
    for path in sorted([*folder.rglob("*.urdf"), *folder.rglob("*.xml")]):
        try:
            root = parse(path)
        except jg.ModelError:
            found += [path] if path.suffix == ".urdf" else []
            continue
        is_mjcf = root.tag == "mujoco" and any(
            body.tag == "body" for world in root.all("worldbody") for body in world.children
        )
        if (root.tag == "robot" and kind != "mjcf") or (is_mjcf and kind != "urdf"):
            found.append(path)
    return found


def loaded(path: Path, roots: list[Path]) -> jg.Description:
    options = {"base": "free"} if path.suffix == ".urdf" else {}
    return jg.load(path, search_roots=roots, missing_meshes="skip", **options)


def lowest(model: jg.Model) -> float:
    """Height of the lowest point of the robot's shapes where it starts, or a little below."""
    tree = model.topology.tree
    bottoms = []
    seen = jg.inspect(model, model.initial_state())
    for k, link in enumerate(tree["shape_link"]):
        if link >= 0 and tree["shape_kind"][k] not in (0, 7):
            R, p = np.asarray(seen.rotation[link]), np.asarray(seen.position[link])
            bottoms.append((p + R @ model.params["shape.placement"][k, :3])[2] - reach(model, k))
    return min(bottoms, default=0.0)


def reach(model: jg.Model, k: int) -> float:
    tree, size = model.topology.tree, model.params["shape.size"][k]
    at = tree["shape_data"][k]
    return float(size.max() * tree["number"][at - 5]) if at else float(np.linalg.norm(size))


def stood(robot: jg.Description, ground: str, seconds: float) -> bool:
    alone = jg.World().add(robot).compile(massless="estimate", unphysical="warn")
    start = 0.02 - lowest(alone) + (0.1 if ground == "terrain" else 0.0)
    world = jg.World(dt=2e-3, integrator="implicit_damping").add(robot, name="robot", position=(0.0, 0.0, start))
    if ground == "terrain":
        world.add_terrain(jg.terrain.rough((8.0, 8.0), 0.1, 0.05, seed=1), 0.1)
    else:
        world.add_ground()
    model = world.compile(massless="estimate", unphysical="warn", max_contacts=512)
    state = model.initial_state()
    for _ in range(max(1, round(seconds))):
        motion = jg.rollout(model, state, steps=500)
        state = jg.State(motion.q[-1], motion.qd[-1])
    return bool(np.isfinite(state.q).all() and np.abs(state.qd[:3]).max() < 5.0)


def tried(path: Path, roots: list[Path], drop: float) -> tuple[Counter, str]:
    """What a file came to, and why it went no further."""
    done = Counter(files=1)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            robot = loaded(path, roots)
            done["loaded"] = 1
            robot.compile(massless="estimate", unphysical="warn")
            done["compiled"] = 1
            said = " ".join(str(w.message) for w in heard)
            misses = "meshes not found" in said or "missing mesh" in said
            done["meshes missing"] = int(misses)
            done["every shape touches"] = int("touch nothing" not in said and "do not touch anything" not in said)
            for ground in ("ground", "terrain") if drop and robot.base == "free" else ():
                done[f"stood on {ground}"] = int(stood(robot, ground, drop))
        except (jg.ModelError, jg.SimulationError, jg.InputError) as reason:
            return done, str(reason).splitlines()[0][:160]
    if not done["every shape touches"]:
        return done, next((str(w.message) for w in heard if "touch" in str(w.message)), "")[:160]
    return done, ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--drop", type=float, default=0.0, help="seconds to fall and stand")
    parser.add_argument("--only", type=int, default=None, help="the first so many files")
    parser.add_argument("--kind", choices=("urdf", "mjcf", "both"), default="both")
    parser.add_argument("--list", action="store_true", help="print every file that went no further, and why")
    asked = parser.parse_args()
    print(f"| folder | {' | '.join(COLUMNS)} | s |")
    print("|---" * (len(COLUMNS) + 2) + "|")
    for folder in asked.folders:
        total, start, reasons = Counter(), time.time(), []
        for path in files_below(folder, asked.kind)[: asked.only]:
            done, why = tried(path, [folder, *([p for p in path.parents if folder in p.parents])], asked.drop)
            total += done
            if why:
                reasons.append(f"  {path.relative_to(folder)}: {why}")
        print(
            f"| {folder.name} | {' | '.join(str(total[c]) for c in COLUMNS)} | {time.time() - start:.0f} |", flush=True
        )
        if asked.list:
            print("\n".join(reasons))


if __name__ == "__main__":
    main()
