"""The damping of a joint from a noisy recording, with how sure it is."""

import mujoco
import numpy as np
import scipy.optimize

import jointgrad as jg
from jointgrad.model.parameters import Entry
from jointgrad.optimize.identify import Recording, identify

TRUTH = 0.15
robot = jg.zoo.pendulum(2)
start = jg.State(np.array([1.0, -0.5]), np.zeros(2))
true = robot.compile(dt=5e-3).replace({"joint.damping": {"joint0": 0.1, "joint1": TRUTH}})
motion, noise = jg.rollout(true, start, steps=300), np.random.default_rng(0)
q, qd = motion.q + 2e-3 * noise.normal(size=(301, 2)), motion.qd + 1e-2 * noise.normal(size=(301, 2))


def ours():
    fit = identify(
        robot.compile(dt=5e-3), Recording(q, qd, np.zeros((300, 2))), [Entry("joint.damping", bounds=(0, 5))]
    )
    return fit.estimates[1].value, fit.estimates[1].interval


def mujoco_():
    m = mujoco.MjModel.from_xml_string(jg.to_mjcf(jg.World().add(robot), dt=5e-3))
    d = mujoco.MjData(m)

    def residuals(damping):
        m.dof_damping[:] = damping
        mujoco.mj_resetData(m, d)
        d.qpos[:], seen = start.q, [start.q]
        for _ in range(300):
            mujoco.mj_step(m, d)
            seen.append(d.qpos.copy())
        return (np.array(seen) - q).ravel()

    fit = scipy.optimize.least_squares(residuals, [0.05, 0.05], bounds=(0, 5))
    deviation = np.sqrt(np.diag(np.linalg.inv(fit.jac.T @ fit.jac)) * 2 * fit.cost / len(fit.fun))
    return fit.x[1], fit.x[1] + 1.96 * np.array([-1, 1]) * deviation[1]


if __name__ != "counted":
    (value, interval), (other, _) = ours(), mujoco_()
    print("damping", value, "within", interval, "; with MuJoCo and SciPy", other)
    assert abs(value - TRUTH) < 0.01 and abs(other - TRUTH) < 0.02
