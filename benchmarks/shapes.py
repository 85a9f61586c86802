"""Steps of two bodies that rest on each other, by pair of shapes, beside MuJoCo: one environment, and a batch of 256 on one thread.

    python benchmarks/shapes.py [--pairs "mesh plane" "cylinder box" ...] [--steps 200]

The upper body lies on the lower one, which is fixed, in both simulators; that it lies is checked. Times are CPU times
of alternating runs, the least of five; ratios above one are in our favour. Needs the extra [bench].
"""

from __future__ import annotations

import argparse
import time

import mujoco
import numpy as np

import jointgrad as jg

CUBE = np.array([(x, y, z) for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
SIZES = {
    "sphere": (0.1,), "capsule": (0.06, 0.1), "box": (0.1, 0.1, 0.1), "cylinder": (0.1, 0.1), "ellipsoid": (0.1, 0.12, 0.1),
    "mesh": (0.1, 0.1, 0.1), "plane": (1.0, 1.0, 1.0),
}  # fmt: skip
HALF = {"capsule": 0.16}  # height of a shape above its middle, else 0.1
PAIRS = (
    "box plane",
    "cylinder plane",
    "ellipsoid plane",
    "mesh plane",
    "cylinder box",
    "mesh box",
    "mesh mesh",
    "cylinder cylinder",
)
RUNS = 5


def ours(upper: str, lower: str) -> jg.Model:
    world = jg.World(dt=1e-3)
    if lower == "plane":
        world.add_ground(friction=0.8)
    else:
        held = jg.Description("held")
        held.add_link("held").shapes.append(shaped(lower, -HALF.get(lower, 0.1)))
        world.add(held)
    body = jg.Description("body", base="free")
    body.add_link("body", 1.0, inertia=(0.01, 0.01, 0.01)).shapes.append(shaped(upper, 0.0))
    return world.add(body, position=(0.0, 0.0, HALF.get(upper, 0.1) - 1e-4)).compile()


def shaped(kind: str, z: float) -> jg.Shape:
    return jg.Shape(kind, SIZES[kind], (0.0, 0.0, z), pieces=[CUBE] if kind == "mesh" else [])


def theirs(upper: str, lower: str) -> mujoco.MjModel:
    corners = " ".join(map(str, (0.1 * CUBE).ravel()))

    def geom(kind: str, z: float) -> str:
        form = 'mesh="m"' if kind == "mesh" else f'size="{" ".join(map(str, SIZES[kind]))}"'
        return f'<geom type="{kind}" {form} pos="0 0 {z}"/>'

    below = 0.0 if lower == "plane" else -HALF.get(lower, 0.1)
    return mujoco.MjModel.from_xml_string(
        f"""<mujoco><option timestep="0.001"/><asset><mesh name="m" vertex="{corners}"/></asset><worldbody>{geom(lower, below)}
        <body pos="0 0 {HALF.get(upper, 0.1) - 1e-4}"><freejoint/><inertial pos="0 0 0" mass="1" diaginertia="0.01 0.01 0.01"/>
        {geom(upper, 0.0)}</body></worldbody></mujoco>"""
    )


def spent(run) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def compare(pair: str, steps: int) -> tuple[float, float, float]:
    """Microseconds per step: MuJoCo, ours alone, ours per environment of a batch."""
    upper, lower = pair.split()
    model, m = ours(upper, lower), theirs(upper, lower)
    d = mujoco.MjData(m)
    states = {batch: model.initial_state(batch) for batch in (1, 256)}

    def in_mujoco() -> None:
        mujoco.mj_resetData(m, d)
        mujoco.mj_step(m, d, steps)

    last = [jg.rollout(model, states[b], steps=steps, threads=1) for b in states]  # compiled here
    in_mujoco()
    assert abs(float(last[0].q[-1, 0, 2]) - float(d.qpos[2])) < 2e-3, f"{pair}: it does not lie"
    found = np.full(3, np.inf)
    for _ in range(RUNS):
        alone = spent(lambda: jg.rollout(model, states[1], steps=steps, threads=1))
        many = spent(lambda: jg.rollout(model, states[256], steps=steps, threads=1)) / 256
        found = np.minimum(found, np.array([spent(in_mujoco), alone, many]) / steps * 1e6)
    return float(found[0]), float(found[1]), float(found[2])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", nargs="*", default=PAIRS)
    parser.add_argument("--steps", type=int, default=200)
    asked = parser.parse_args()
    print(
        "| pair | MuJoCo, us | ours, us | ours in a batch, us | ratio | ratio in a batch |\n|---|---|---|---|---|---|"
    )
    for pair in asked.pairs:
        mj, alone, many = compare(pair, asked.steps)
        print(f"| {pair} | {mj:.2f} | {alone:.2f} | {many:.2f} | {mj / alone:.2f} | {mj / many:.2f} |", flush=True)


if __name__ == "__main__":
    main()
