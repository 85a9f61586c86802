"""Walking controllers: how long plans take, which pushes they survive, which grounds they cross.

    python benchmarks/mpc.py latency              # one process, one core: proxsuite, and OSQP as released
    python benchmarks/mpc.py pushes --robot go2   # the largest sideways push (m/s) survived in 9 of 10, here and in MuJoCo
    python benchmarks/mpc.py grounds              # share of 20 crossings
    python benchmarks/mpc.py walks                # 20 s on 20 unseen commands
    python benchmarks/mpc.py samples              # plans that are tried per second on one core, beside MuJoCo's rollout module

Every result is checked before it is printed: a plan must be within its friction pyramids, a crossing must end on the far side.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

import jointgrad as jg
from jointgrad.optimize.mpc import Command, ConvexMPC, quadruped
from jointgrad.optimize.mpc.courses import FAR, course
from jointgrad.optimize.mpc.walking import DT, MujocoPlant, OwnPlant, walk

RELEASED = {"solver": "osqp", "horizon": "frozen", "whole": True}


def placed(robot, ground: str, seed: int, engine: str = "jointgrad"):
    """A robot on a ground, a little off its place and heading by the seed."""
    rng = np.random.default_rng(seed)
    world = course(ground, robot.add_to(jg.World()), 0.8, seed)
    back, angle = rng.uniform(0.0, 0.3), rng.uniform(-0.15, 0.15)
    if engine == "mujoco":
        plant = MujocoPlant(robot, world)
        q = plant.data.qpos
    else:
        model = world.compile(dt=DT)
        q = model.initial_state().q.copy()
    q[0] -= back
    q[3], q[6] = np.cos(angle / 2), np.sin(angle / 2)
    return plant if engine == "mujoco" else OwnPlant(robot, model, jg.State(q, np.zeros(18)))


def latency(robot, seconds: float) -> None:
    """Plans of the same walk by each solver, timed by the processor."""
    rows = {}
    for name, options in (("proxsuite, swing legs removed", {}), ("OSQP, as released", RELEASED)):
        controller = ConvexMPC(robot, **options)
        plant = placed(robot, "flat", 0)
        walk(controller, plant, Command(0.5, 0.1, 0.3), 0.5)
        clock = time.perf_counter
        time.perf_counter = time.process_time  # a shared machine stops the clock on the wall now and then
        try:
            result = walk(controller, plant, Command(0.5, 0.1, 0.3), seconds)
        finally:
            time.perf_counter = clock
        assert not result.fell
        rows[name] = result.planned
        print(
            f"{name}: p50 {1e3 * np.median(result.planned):.3f} ms, p99 {1e3 * np.quantile(result.planned, 0.99):.3f} ms"
        )
    a, b = (np.median(r) for r in rows.values())
    print(f"ratio of medians {b / a:.1f}")


def pushes(robot, seconds: float) -> None:
    """Ten moments of a stride; the push grows until fewer than nine of ten survive."""
    for engine in ("jointgrad", "mujoco"):
        last = 0.0
        for speed in np.arange(0.5, 3.01, 0.25):
            stood = sum(
                not walk(
                    ConvexMPC(robot), placed(robot, "flat", k, engine), Command(0.3), 2.0 + seconds,
                    {2.0 + 0.05 * k: np.array([0.0, speed * (-1) ** k, 0.0])},
                ).fell
                for k in range(10)
            )  # fmt: skip
            if stood < 9:
                break
            last = speed
        print(f"{robot.name}, {engine}: survives {last:.2f} m/s ({last * robot.rigid[0]:.1f} N s) in 9 of 10")


def grounds(robot, count: int) -> None:
    for name in ("slope", "steps", "rough"):
        crossed = 0
        for seed in range(count):
            result = walk(ConvexMPC(robot), placed(robot, name, seed), Command(0.4), 12.0)
            crossed += (not result.fell) and result.q[-1, 0] > FAR[name] - 0.3
        print(f"{robot.name}, {name}: {crossed} of {count} crossed", flush=True)


def walks(robot, count: int, engine: str) -> None:
    rng, rows = np.random.default_rng(2026), []
    for seed in range(count):
        command = Command(rng.uniform(-0.5, 1.0), rng.uniform(-0.3, 0.3), rng.uniform(-0.8, 0.8))
        rows.append(walk(ConvexMPC(robot), placed(robot, "flat", seed, engine), command, 20.0).marks())
    falls, numbers = sum(r["fell"] for r in rows), ("velocity_error", "turn_error", "roll", "pitch", "power")
    means = ", ".join(f"{n} {np.mean([r[n] for r in rows]):.4f}" for n in numbers)
    print(f"{robot.name}, {engine}: {falls} falls of {count}; {means}")


def samples(robot, count: int = 64, horizon: int = 25, hold: int = 4, repeats: int = 5) -> None:
    """The same plans from the same state, by turns; the first step's accelerations must agree."""
    import mujoco
    from mujoco import rollout as theirs

    world = course("flat", robot.add_to(jg.World()))
    model = world.compile(dt=5e-3)
    peer = mujoco.MjModel.from_xml_string(jg.to_mjcf(world, dt=5e-3))
    state = model.initial_state()
    state.q[2] += 0.2  # in the air at first, so that one step can be compared
    u = np.random.default_rng(0).normal(0, 2.0, (horizon, count, 12))
    many = jg.State(np.repeat(state.q[None], count, 0), np.repeat(state.qd[None], count, 0))
    held = np.repeat(u, hold, 0).swapaxes(0, 1).copy()
    start = np.concatenate((np.zeros((count, 1)), many.q, many.qd), 1)
    data = mujoco.MjData(peer)
    times: dict[str, list[float]] = {"jointgrad": [], "MuJoCo": []}
    for _ in range(repeats + 1):
        began = time.process_time()
        ours = jg.rollout(model, many, u, hold=hold, threads=1)
        middle = time.process_time()
        states, _ = theirs.rollout(peer, data, start, held)
        times["jointgrad"].append(middle - began)
        times["MuJoCo"].append(time.process_time() - middle)
    off = np.abs(ours.qd[1] - states[:, 0, 20:38]).max()
    assert off < 1e-6, f"the first step differs by {off}"
    ours_s, theirs_s = (np.median(t[1:]) for t in times.values())
    print(
        f"{robot.name}, {count} plans of {horizon} x {hold} steps: {count / ours_s:.0f} and {count / theirs_s:.0f} plans a second,"
    )
    print(f"ratio {theirs_s / ours_s:.1f}; first step differs by {off:.1e}")


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("latency", "pushes", "grounds", "walks", "samples"))
    parser.add_argument("--robot", default="go2")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=4.0)
    given = parser.parse_args()
    robot = quadruped(given.robot)
    if given.what == "latency":
        latency(robot, given.seconds)
    elif given.what == "pushes":
        pushes(robot, given.seconds)
    elif given.what == "samples":
        samples(robot)
    elif given.what == "grounds":
        grounds(robot, given.count)
    else:
        for engine in ("jointgrad", "mujoco"):
            walks(robot, given.count, engine)


if __name__ == "__main__":
    main()
