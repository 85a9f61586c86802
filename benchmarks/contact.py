"""Robots in contact beside MuJoCo: one run, one core, results checked before anything is timed.

    python benchmarks/contact.py [--quick] [--out FOLDER]

A Laikago stands on four feet (12 rows, 50 sweeps), held by position servos. Times are processor time, best of interleaved
repeats; the machine may be busy, so read the ratios. Needs the extra [bench].
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import mujoco
import numpy as np

import jointgrad as jg
from jointgrad.bench.fit import exponent
from jointgrad.bench.scene import FRICTION, released, world_of
from jointgrad.bench.timing import best, print_goals, write

DT, BATCH, STEPS = 1e-3, 256, 20
LEGS = 4
WEIGHT = 25.567 * 9.81


def standing(world: jg.World, cone: bool = True) -> tuple[jg.Model, np.ndarray, np.ndarray]:
    """Model, coordinates at which the toes touch the ground, and the controls that hold it there."""
    model = world.compile(dt=DT, contact=jg.Impulse(cone=cone))
    return model, *released(model, clearance=0.0)


def mujoco_twin(world: jg.World):
    model = mujoco.MjModel.from_xml_string(jg.to_mjcf(world))
    model.opt.timestep = DT
    return model, mujoco.MjData(model)


def check(model, q, u, twin, data) -> dict:
    """Both stand: four points touch, and after half a second the bases are at the same height, but for what MuJoCo's soft
    feet sink in."""
    motion = jg.rollout(model, jg.State(q, np.zeros(model.nv)), np.repeat(u[None], 500, 0), keep=False)
    mujoco.mj_resetData(twin, data)
    data.qpos[:], data.ctrl[:] = q, u
    mujoco.mj_step(twin, data, nstep=500)
    assert data.ncon == LEGS, f"MuJoCo has {data.ncon} contacts"
    sunk = -data.contact.dist.mean()
    difference = abs(motion.last.q[2] - data.qpos[2] - sunk)
    assert difference < 1e-3, f"the bases differ in height by {difference} m"
    return {"height_difference_mm": 1e3 * difference, "mujoco_sinks_mm": 1e3 * sunk, "mujoco_contacts": int(data.ncon)}


def laikago(repeats: int) -> dict:
    world = world_of()
    model, q, u = standing(world)
    pyramid = standing(world, cone=False)[0]
    twin, data = mujoco_twin(world)
    found = check(model, q, u, twin, data)
    rng = np.random.default_rng(0)
    start = jg.State(np.repeat(q[None], BATCH, 0), 1e-3 * rng.normal(size=(BATCH, model.nv)))
    us = np.tile(u, (STEPS, BATCH, 1))
    one, u_one = jg.State(q[None], start.qd[:1]), np.tile(u, (200, 1, 1))
    motion = jg.rollout(model, start, us, threads=1)
    bars = np.ones_like(motion.last.q), np.ones_like(motion.last.qd)
    A, B = np.zeros((2 * twin.nv, 2 * twin.nv)), np.zeros((2 * twin.nv, twin.nu))

    def stand():
        data.qpos[:], data.qvel[:], data.ctrl[:] = q, 0.0, u
        mujoco.mj_step(twin, data, nstep=200)

    times = best(
        {
            "forward": lambda: jg.rollout(model, start, us, threads=1),
            "pyramid": lambda: jg.rollout(pyramid, start, us, threads=1),
            "mujoco": stand,
            "single": lambda: jg.rollout(model, one, u_one, threads=1),
            "backward": lambda: motion.backward(*bars),
            "differences": lambda: mujoco.mjd_transitionFD(twin, data, 1e-6, True, A, B, None, None),
        },
        repeats,
    )
    forward, step = times["forward"] / (BATCH * STEPS), times["mujoco"] / 200
    return found | {
        "forward_us": forward * 1e6,
        "mujoco_us": step * 1e6,
        "times_mujoco": step / forward,
        "pyramid_times_mujoco": step / (times["pyramid"] / (BATCH * STEPS)),
        "single_times_mujoco": step / (times["single"] / 200),
        "backward_over_forward": times["backward"] / times["forward"],
        "differences_over_backward": times["differences"] / (times["backward"] / (BATCH * STEPS)),
    }


def ten_robots(repeats: int) -> dict:
    runs = {}
    for count in (1, 10):
        model, q, u = standing(world_of(count))
        start = jg.State(np.repeat(q[None], 8, 0), np.zeros((8, model.nv)))
        us = np.tile(u, (20, 8, 1))
        motion = jg.rollout(model, start, us, threads=1)
        bar = np.ones_like(motion.last.q)
        runs[f"forward{count}"] = lambda m=model, s=start, c=us: jg.rollout(m, s, c, threads=1)
        runs[f"backward{count}"] = lambda t=motion, b=bar: t.backward(b)
    times = best(runs, repeats)
    return {f"ten_{way}": times[f"{way}10"] / times[f"{way}1"] for way in ("forward", "backward")}


def table(feet: int) -> jg.World:
    """A plate on many small feet."""
    robot = jg.Description("table", base="free")
    link = robot.add_link("plate", 5.0, inertia=(0.2, 0.2, 0.4))
    for k in range(feet):
        turn = 2.0 * np.pi * k / feet
        link.shapes.append(
            jg.Shape("sphere", (0.02,), (0.4 * np.cos(turn), 0.4 * np.sin(turn), -0.05), name=f"foot{k}")
        )
    return jg.World().add(robot, position=(0.0, 0.0, 0.07)).add_ground(friction=FRICTION)


def many_contacts(repeats: int) -> dict:
    """Time of a step against the number of contacts of one body, ours and MuJoCo's."""
    counts, found = (4, 8, 16, 32, 64), {}
    for feet in counts:
        world = table(feet)
        model = world.compile(dt=DT)
        twin, data = mujoco_twin(world)
        start = jg.State(np.repeat(model.initial_state().q[None], 8, 0), np.zeros((8, model.nv)))
        motion = jg.rollout(model, start, steps=10, threads=1)
        bar = np.ones_like(motion.last.q)

        def stand(twin=twin, data=data):
            mujoco.mj_resetData(twin, data)
            mujoco.mj_step(twin, data, nstep=20)

        stand()
        assert data.ncon == feet
        times = best(
            {
                "forward": lambda m=model, s=start: jg.rollout(m, s, steps=10, threads=1),
                "backward": lambda t=motion, b=bar: t.backward(b),
                "mujoco": stand,
            },
            max(3, repeats // 2),
        )
        found[str(feet)] = {
            "forward_us": times["forward"] / 80 * 1e6,
            "backward_us": times["backward"] / 80 * 1e6,
            "mujoco_us": times["mujoco"] / 20 * 1e6,
        }
    slope = exponent(counts[2:], [found[str(c)]["forward_us"] for c in counts[2:]])
    return {"contacts": found, "exponent_contacts": slope}


GOALS = (
    ("times_mujoco", ">=", 6.0, "forward: times as fast as MuJoCo's step, cone, batch 256"),
    ("pyramid_times_mujoco", ">=", 6.0, "the same with a friction pyramid"),
    ("single_times_mujoco", ">=", 1.3, "the same at batch 1"),
    ("backward_over_forward", "<=", 3.5, "backward to state, control, all parameters / forward"),
    ("differences_over_backward", ">=", 60.0, "MuJoCo's finite-difference Jacobian / our backward"),
    ("ten_forward", "<=", 11.0, "ten Laikagos in one world / one, forward"),
    ("ten_backward", "<=", 11.0, "the same, backward"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    parser.add_argument("--out", type=Path, default=Path("out/contact"))
    options = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    repeats = 5 if options.quick else 40
    found = laikago(repeats) | ten_robots(repeats) | many_contacts(repeats)
    print(f"python {' '.join(sys.argv)}   MuJoCo {mujoco.__version__}, one core")
    print(
        f"checked: both stand on {found['mujoco_contacts']} feet, heights differ by {found['height_difference_mm']:.2f} mm "
        f"besides the {found['mujoco_sinks_mm']:.2f} mm that MuJoCo's feet sink in\n"
        f"per environment and step: ours {found['forward_us']:.2f} us, MuJoCo {found['mujoco_us']:.2f} us"
    )
    print_goals(found, GOALS)
    for count, row in found["contacts"].items():
        print(f"{count:>4} contacts on one body: " + ", ".join(f"{k[:-3]} {v:.1f} us" for k, v in row.items()))
    write(found, options.out)


if __name__ == "__main__":
    main()
