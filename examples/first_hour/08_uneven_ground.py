"""A ball rolls over uneven ground: slabs of many heights."""

import mujoco
import numpy as np

import jointgrad as jg

HEIGHTS = 0.02 * np.random.default_rng(0).uniform(size=20)


def ours():
    ground = jg.Description("ground")
    for k, height in enumerate(HEIGHTS):
        ground.add_link(f"slab{k}").shapes.append(jg.Shape("box", (0.1, 1.0, 0.1), (0.2 * k, 0, height - 0.1)))
    ball = jg.Description("ball", base="free")
    ball.add_link("ball", 1.0, inertia=(0.004, 0.004, 0.004)).shapes.append(jg.Shape("sphere", (0.1,)))
    model = jg.World().add(ground).add(ball, position=(0, 0, HEIGHTS[0] + 0.1)).compile(dt=1e-3)
    start = model.initial_state()
    start.qd[0], start.qd[4] = 2.0, 20.0
    return jg.rollout(model, start, steps=1000).q[:, [0, 2]]


def mujoco_():
    slabs = "".join(f'<geom type="box" size=".1 1 .1" pos="{0.2 * k} 0 {h - 0.1}"/>' for k, h in enumerate(HEIGHTS))
    ball = f'<body pos="0 0 {HEIGHTS[0] + 0.1}"><freejoint/><geom size=".1" mass="1"/></body>'
    option = '<option timestep="0.001"/>'
    m = mujoco.MjModel.from_xml_string(f"<mujoco>{option}<worldbody>{slabs}{ball}</worldbody></mujoco>")
    d, found = mujoco.MjData(m), []
    d.qvel[0], d.qvel[4] = 2.0, 20.0
    for _ in range(1000):
        mujoco.mj_step(m, d)
        found.append(d.qpos[[0, 2]].copy())
    return np.array(found)


if __name__ != "counted":
    for who, found in (("ours", ours()), ("MuJoCo", mujoco_())):
        under = HEIGHTS[np.clip(np.round(found[:, 0] / 0.2).astype(int), 0, 19)]
        print(who, "gets to x =", found[-1, 0], "m, lowest above its slab:", (found[:, 1] - under).min(), "m")
        assert found[-1, 0] > 0.5 and (found[:, 1] - under).min() > 0.07
