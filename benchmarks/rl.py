"""Environment steps per second, beside what one would take instead, in one run, one after the other, round by round.

    python benchmarks/rl.py                        # forward: ours, gymnasium's own (sync, async), MuJoCo's rollout module
    python benchmarks/rl.py --before COMMIT        # forward and backward, ours against an earlier commit of ours

All move gymnasium's Ant-v5 under random actions, 5 steps of 10 ms each; ours with 50 sweeps (`--sweeps`). Forward counts what a
user of `gymnasium.make_vec` waits for: observation (27 numbers), reward, resets; by the clock on the wall, as rivals use both
cores. MuJoCo's rollout module computes states alone. Forward and backward are counted in seconds of the processor. Medians over
rounds that take turns. (gymnasium's own environments need `pip install glfw imageio`.)
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

PLAIN = {"include_cfrc_ext_in_observation": False, "contact_cost_weight": 0.0}
ROOT = Path(__file__).resolve().parent.parent


def stepping(envs, steps: int) -> Callable[[], float]:
    """Seconds that a vector environment takes for so many actions."""
    envs.reset(seed=0)
    actions = np.random.default_rng(0).uniform(-1, 1, (steps, *envs.action_space.shape))

    def run() -> float:
        began = time.perf_counter()
        for action in actions:
            envs.step(action)
        return time.perf_counter() - began

    return run


def ours(count: int, steps: int, sweeps: int) -> Callable[[], float]:
    import gymnasium

    import jointgrad as jg
    import jointgrad.rl  # registers the names

    law = jg.Impulse(sweeps=sweeps)
    return stepping(gymnasium.make_vec("jointgrad/Ant-v0", num_envs=count, law=law, **PLAIN), steps)


def gymnasium_own(count: int, steps: int, mode: str) -> Callable[[], float]:
    import gymnasium

    # so many environments in each process as there are cores would be the best of async; it has one per process
    return stepping(gymnasium.make_vec("Ant-v5", num_envs=count, vectorization_mode=mode, **PLAIN), steps)


def mujoco_rollout(count: int, steps: int) -> Callable[[], float]:
    """States alone, all actions known beforehand: the least that MuJoCo can take."""
    import gymnasium
    import mujoco
    from mujoco import rollout

    env = gymnasium.make("Ant-v5", **PLAIN).unwrapped
    model, data = env.model, [mujoco.MjData(env.model) for _ in range(os.cpu_count() or 1)]
    full = np.zeros((count, mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)))
    full[:, 1 : 1 + model.nq] = env.init_qpos
    u = np.repeat(np.random.default_rng(0).uniform(-1, 1, (count, steps, model.nu)), env.frame_skip, 1)

    def run() -> float:
        began = time.perf_counter()
        rollout.rollout(model, data, full, u)
        return time.perf_counter() - began

    return run


def forward(count: int, steps: int, rounds: int, sweeps: int) -> dict[str, float]:
    """Actions of all environments per second, medians over rounds that take turns."""
    fewer = max(steps // 8, 4)  # rivals are slower: fewer actions for about the same time
    runs = {
        "jointgrad": (ours(count, steps, sweeps), steps),
        "gymnasium sync": (gymnasium_own(count, fewer, "sync"), fewer),
        "gymnasium async": (gymnasium_own(count, fewer, "async"), fewer),
        "mujoco.rollout": (mujoco_rollout(count, fewer), fewer),
    }
    found: dict[str, list[float]] = {name: [] for name in runs}
    for k in range(rounds + 1):
        for name, (run, n) in runs.items():
            seconds = run()
            if k:  # the first is to warm up
                found[name].append(count * n / seconds)
    return {name: float(np.median(rates)) for name, rates in found.items()}


# forward and backward, against an earlier commit ---------------------------------------------------------------------------

BACK = """
import json, sys, time, numpy as np, torch
import jointgrad as jg
from jointgrad.rl import DifferentiableTask, make_task
count, steps, sweeps = map(int, sys.argv[1:])
torch.set_num_threads(1)
task = make_task("ant", law=jg.Impulse(sweeps=sweeps), include_cfrc_ext_in_observation=False, contact_cost_weight=0.0)
layer = DifferentiableTask(task, on_nan="freeze")
rng = np.random.default_rng(0)
actions = torch.tensor(rng.uniform(-1, 1, (steps, count, 8)), requires_grad=True)
def run():
    now, worth = layer.start(np.random.default_rng(1), count), 0.0
    for action in actions:
        now, seen, reward, _ = layer.step(now, action)
        worth = worth + reward.sum() + 1e-3 * seen.sum()
    worth.backward()
run()
print("ready", flush=True)
for line in sys.stdin:
    wall, busy = time.perf_counter(), time.process_time()
    run()
    print(json.dumps([time.perf_counter() - wall, time.process_time() - busy]), flush=True)
"""


def both_ways(before: str, count: int, steps: int, rounds: int, sweeps: int) -> dict[str, list[float]]:
    """Actions per second of the processor, forward and backward, of a commit and of this tree, in turns: processes that wait for
    each other, as two versions do not fit into one."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "before"
        subprocess.run(
            ["git", "-C", ROOT, "worktree", "add", "--detach", tree, before], check=True, capture_output=True
        )
        try:
            return _in_turns({"before": tree, "now": ROOT}, [count, steps, sweeps], rounds, count * steps)
        finally:
            subprocess.run(["git", "-C", ROOT, "worktree", "remove", "--force", tree], check=True, capture_output=True)


def _in_turns(trees: dict[str, Path], arguments: list[int], rounds: int, actions: int) -> dict[str, list[float]]:
    running = {
        name: subprocess.Popen(
            [sys.executable, "-P", "-c", BACK, *map(str, arguments)], cwd=tree, env={**os.environ, "PYTHONPATH": str(tree)},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for name, tree in trees.items()
    }  # fmt: skip
    found: dict[str, list[float]] = {name: [] for name in trees}
    for one in running.values():
        assert one.stdout is not None and one.stdout.readline() == "ready\n"
    for _ in range(rounds):
        for name, one in running.items():
            assert one.stdin is not None and one.stdout is not None
            print("go", file=one.stdin, flush=True)
            found[name].append(actions / json.loads(one.stdout.readline())[1])
    for one in running.values():
        one.communicate()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", help="a commit to compare forward and backward with")
    parser.add_argument("--environments", type=int, default=128)
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--sweeps", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    sizes = given.environments, given.steps, given.rounds, given.sweeps
    if given.before:
        rates = both_ways(given.before, *sizes)
        ratio = np.array(rates["now"]) / np.array(rates["before"])
        print(
            {name: round(float(np.median(x))) for name, x in rates.items()}, "actions per second, forward and backward"
        )
        print(f"ratio {np.median(ratio):.2f} ({ratio.min():.2f} to {ratio.max():.2f})")
        return
    found = forward(*sizes)
    best = max(found["gymnasium sync"], found["gymnasium async"])
    for name, rate in found.items():
        print(f"{name:16s} {rate:9.0f} actions per second; ours is {found['jointgrad'] / rate:5.1f} times as fast")
    print(f"against the faster of gymnasium's two: {found['jointgrad'] / best:.1f} times")


if __name__ == "__main__":
    main()
