"""Marks of dogs that have learned to walk (measured by `jointgrad/reproduce/walk_marks.py`).

python benchmarks/walk_marks.py FOLDER [FOLDER ...]            # folders of `jointgrad train go2`
python benchmarks/walk_marks.py FOLDER --mujoco                # the same policy, unchanged, in MuJoCo
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path

from jointgrad.reproduce.walk_marks import in_mujoco, ours
from jointgrad.rl.policy_file import load_policy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--mujoco", action="store_true")
    parser.add_argument("--seed", type=int, default=77)
    parser.add_argument("--seconds", type=float, default=20.0)
    given = parser.parse_args()
    for folder in given.folders:
        policy = load_policy(folder)
        limit = round(given.seconds / policy.task.control_dt)
        policy = dataclasses.replace(policy, task=dataclasses.replace(policy.task, limit=limit))
        for name, said in (in_mujoco if given.mujoco else ours)(policy, given.seed).items():
            rounded = {k: round(v, 3) for k, v in said.items()}
            print(f"{folder.name} {name}: {json.dumps(rounded)}", flush=True)


if __name__ == "__main__":
    main()
