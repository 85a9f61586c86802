"""What a robot feels: accelerometer and gyroscope in its trunk, forces under its feet, angles of its joints."""

import mujoco
import numpy as np

import jointgrad as jg

robot = jg.zoo.laikago(touch="feet")
for motor in robot.actuators.values():
    motor.kind, motor.gain, motor.damping = "position", 100.0, 2.0
world = jg.World().add(robot, position=(0, 0, 0.46)).add_ground(friction=0.7)
GRAVITY = np.array([0, 0, -9.81])


def ours():
    model = world.compile(dt=2e-3)
    u = model.initial_state().q[7:]
    motion = jg.rollout(model, model.initial_state(), np.tile(u, (1000, 1)), outputs=("contact.force",))
    seen = jg.inspect(model, motion.last, u)
    _, R = jg.site_pose(model, motion.last, "chassis")
    rise = (motion.qd[-1] - motion.qd[-2]) / 2e-3  # contacts included
    J, rest = jg.jacobian(model, motion.last, "chassis"), jg.jacobian_rate(model, motion.last, "chassis")
    accelerometer = R.T @ ((J @ rise + rest)[:3] - GRAVITY)
    gyroscope = R.T @ seen.link_velocity[model.link("chassis"), 3:]
    feet = {
        foot: motion.outputs["contact.force"][-1, model.link(foot), 2] for foot in ("toeFL", "toeFR", "toeRL", "toeRR")
    }
    return accelerometer, gyroscope, sum(feet.values()), motion.last.q[7:]


def mujoco_():
    spec = mujoco.MjSpec.from_string(jg.to_mjcf(world, dt=2e-3))
    spec.body("chassis").add_site(name="imu")
    for kind in (mujoco.mjtSensor.mjSENS_ACCELEROMETER, mujoco.mjtSensor.mjSENS_GYRO):
        spec.add_sensor(type=kind, objtype=mujoco.mjtObj.mjOBJ_SITE, objname="imu")
    m = spec.compile()
    d = mujoco.MjData(m)
    start = world.compile(dt=2e-3).initial_state().q
    d.qpos[:], d.ctrl[:] = start, start[7:]
    for _ in range(1000):
        mujoco.mj_step(m, d)
    force, total = np.zeros(6), 0.0
    for k in range(d.ncon):
        mujoco.mj_contactForce(m, d, k, force)
        total += force[0]
    return d.sensordata[:3], d.sensordata[3:6], total, d.qpos[7:]


if __name__ != "counted":
    for accelerometer, gyroscope, force, angles in (ours(), mujoco_()):
        print(
            "feels",
            np.round(accelerometer, 3),
            "m/s^2, turns",
            np.round(gyroscope, 3),
            "rad/s, stands with",
            round(force, 1),
            "N",
        )
        assert np.allclose(np.linalg.norm(accelerometer), 9.81, atol=0.2) and abs(force - 25.567 * 9.81) < 5.0
        assert np.abs(gyroscope).max() < 0.1 and len(angles) == 12
