"""A cart-pole held upright by LQR, in a loop that is closed at every step."""

import mujoco
import numpy as np
import scipy.linalg

import jointgrad as jg

robot, dt = jg.zoo.cart_pole(), 0.01
tilted = np.array([0.0, 0.2])


def gain(A, B):
    P = scipy.linalg.solve_discrete_are(A, B, np.eye(4), 0.1 * np.eye(1))
    return np.linalg.solve(0.1 * np.eye(1) + B.T @ P @ B, B.T @ P @ A)


def ours():
    model = robot.compile(dt=dt)
    upright = jg.State(np.zeros(2), np.zeros(2))
    K = gain(*jg.linearize(model, upright, np.zeros(1)))
    sim = jg.Simulation(model, jg.State(tilted, np.zeros(2)))
    for _ in range(500):
        sim.u = -K @ np.concatenate([sim.q, sim.qd])
        sim.step()
    return np.abs(sim.q).max()


def mujoco_():
    m = mujoco.MjModel.from_xml_string(jg.to_mjcf(jg.World().add(robot), dt=dt))
    d = mujoco.MjData(m)
    A, B = np.zeros((4, 4)), np.zeros((4, 1))
    mujoco.mjd_transitionFD(m, d, 1e-6, True, A, B, None, None)
    K = gain(A, B)
    d.qpos[:] = tilted
    for _ in range(500):
        d.ctrl[:] = -K @ np.concatenate([d.qpos, d.qvel])
        mujoco.mj_step(m, d)
    return np.abs(d.qpos).max()


if __name__ != "counted":
    print("after 5 s", ours(), "from upright; in MuJoCo", mujoco_())
    assert ours() < 0.02 and abs(ours() - mujoco_()) < 1e-9
