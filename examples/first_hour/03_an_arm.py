"""Mass matrix, gravity, Jacobian and inverse kinematics of an arm."""

import sys
from pathlib import Path

import numpy as np
import pinocchio as pin

import jointgrad as jg

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
robot = jg.zoo.franka_arm()
del robot.links["ball"], robot.joints["ball_joint"]  # what it would throw
robot.link("hand").sites.clear()  # URDF, in which Pinocchio gets it, has neither sites nor postures
for joint in robot.joints.values():
    joint.initial, joint.armature = None, 0.0
wanted = np.array([0.4, 0.2, 0.5])
q = np.array([0.1, 0.4, -0.2, -1.8, 0.3, 1.9, 0.2])


def ours():
    model = robot.compile(contact=None)
    state = model.initial_state()
    state.q[:7] = q
    M, g, J = jg.mass_matrix(model, state), jg.gravity_force(model, state), jg.jacobian(model, state, "hand")
    return M, g, J, jg.inverse_kinematics(model, "hand", wanted, start=state.q).position_error


def pinocchio():
    model = pin.buildModelFromXML(jg.to_urdf(robot))
    data = model.createData()
    x = pin.neutral(model)
    x[:7] = q
    frame = model.getFrameId("hand")
    M, g = pin.crba(model, data, x), pin.computeGeneralizedGravity(model, data, x)
    M = np.triu(M) + np.triu(M, 1).T
    J = pin.computeFrameJacobian(model, data, x, frame, pin.LOCAL_WORLD_ALIGNED)
    for _ in range(200):  # damped least squares, without limits
        pin.framesForwardKinematics(model, data, x)
        error = wanted - data.oMf[frame].translation
        Jp = pin.computeFrameJacobian(model, data, x, frame, pin.LOCAL_WORLD_ALIGNED)[:3]
        x = pin.integrate(model, x, Jp.T @ np.linalg.solve(Jp @ Jp.T + 1e-6 * np.eye(3), error))
    return M, g, J, np.linalg.norm(error)


if __name__ != "counted":
    for a, b in zip(ours()[:3], pinocchio()[:3], strict=True):
        assert np.allclose(a[..., :7][:7], b[..., :7][:7], atol=1e-9), np.abs(a[..., :7][:7] - b[..., :7][:7]).max()
    print("the hand is", ours()[3], "m from where it should be; with Pinocchio", pinocchio()[3])
    assert ours()[3] < 1e-6 and pinocchio()[3] < 1e-6
