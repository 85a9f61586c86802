"""A thousand copies of a robot, each with its own mass and friction, under the same controls."""

import mujoco
import numpy as np

import jointgrad as jg

N, STEPS = 1000, 200
robot = jg.Description("puck", base="free")
robot.add_link("puck", 1.0, inertia=(0.01, 0.01, 0.02)).shapes.append(jg.Shape("box", (0.1, 0.1, 0.05)))
world = jg.World().add(robot, position=(0, 0, 0.05)).add_ground(friction=0.5)
rng = np.random.default_rng(0)
mass, friction = rng.uniform(0.5, 2.0, N), rng.uniform(0.2, 0.9, N)


def ours():
    model = world.compile(dt=2e-3).replace({"link.mass": {"puck": mass}, "pair.friction": {"*": friction}})
    start = model.initial_state(N)
    start.qd[:, 0] = 1.0
    return jg.rollout(model, start, steps=STEPS, keep=False).last.q[:, 0]


def mujoco_():
    m = mujoco.MjModel.from_xml_string(jg.to_mjcf(world, dt=2e-3))
    d, found = mujoco.MjData(m), []
    for k in range(N):
        m.body_mass[1:] = mass[k]
        m.pair_friction[:, :2] = friction[k]
        mujoco.mj_setConst(m, d)
        mujoco.mj_resetData(m, d)
        d.qvel[0] = 1.0
        for _ in range(STEPS):
            mujoco.mj_step(m, d)
        found.append(d.qpos[0])
    return np.array(found)


if __name__ != "counted":
    x, way = ours(), 1.0 / (2 * 9.81 * friction)  # v^2 / (2 mu g), where it has come to rest
    rests = 1.0 / (9.81 * friction) < 0.9 * STEPS * 2e-3
    print("slides", x[rests].min(), "to", x[rests].max(), "m; closed form within", np.abs(x - way)[rests].max(), "m")
    assert np.abs(x - way)[rests].max() < 2e-3
