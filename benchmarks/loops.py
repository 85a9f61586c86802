"""Feedback loops and quantities of one state, beside MuJoCo and Pinocchio, in one run.

    python benchmarks/loops.py [--repeats 7]

Microseconds per call, the least of all repeats, by the processor's clock: one step in a Python loop with a control that is written
every time, and one quantity each of an arm of seven joints, alone and in a batch of 1,000 (per state). Results are compared before
they are timed. Needs the extra [bench].
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import mujoco
import numpy as np
import pinocchio as pin

import jointgrad as jg

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

LOOP, ALONE, MANY = 400, 300, 1000
BEYOND, ONE, EACH = 4.0, 10.0, 2.0  # us: goals of a step beyond its kernel, of one quantity, of one in a batch


def least(call: Callable[[], object], count: int, repeats: int, before: Callable[[], object] = lambda: None) -> float:
    """Microseconds per call."""
    found = np.inf
    for _ in range(repeats):
        before()
        start = time.process_time()
        for _ in range(count):
            call()
        found = min(found, time.process_time() - start)
    return 1e6 * found / count


# loops --------------------------------------------------------------------------------------------------------------------


def worlds() -> dict[str, tuple[jg.World, float]]:
    dog = jg.zoo.laikago(touch="feet")
    for motor in dog.actuators.values():
        motor.kind, motor.gain, motor.damping, motor.force_limit = "position", 100.0, 2.0, (-np.inf, np.inf)
    standing = jg.World().add(dog, position=(0, 0, 0.46)).add_ground(friction=0.7)
    return {"cart-pole": (jg.World().add(jg.zoo.cart_pole()), 0.01), "Laikago on the ground": (standing, 1e-3)}


def loops(repeats: int) -> None:
    print("one step in a Python loop, us:  Simulation.step   beyond its kernel   recorded   jg.step   mj_step")
    for name, (world, dt) in worlds().items():
        model = world.compile(dt=dt)
        sim, kept = jg.Simulation(model), jg.Simulation(model, record=True)
        u = np.zeros(model.nu) if name == "cart-pole" else model.initial_state().q[7:]
        state, kernel = model.initial_state(), sim._one.ready("rollout")
        m = mujoco.MjModel.from_xml_string(jg.to_mjcf(world, dt=dt))
        d = mujoco.MjData(m)

        def ours(sim: jg.Simulation = sim, u: np.ndarray = u) -> None:
            sim.u[:] = u
            sim.step()

        def theirs(m: mujoco.MjModel = m, d: mujoco.MjData = d, u: np.ndarray = u) -> None:
            d.ctrl[:] = u
            mujoco.mj_step(m, d)

        def begin(
            m: mujoco.MjModel = m, d: mujoco.MjData = d, sim: jg.Simulation = sim, kept: jg.Simulation = kept
        ) -> None:
            mujoco.mj_resetData(m, d)
            sim.reset()
            kept.reset()

        begin()
        ours()
        inside = least(kernel, LOOP, repeats, begin)
        stepped = least(ours, LOOP, repeats, begin)
        recorded, plain = (
            least(kept.step, LOOP, repeats, begin),
            least(lambda m=model, s=state, u=u: jg.step(m, s, u), LOOP, repeats),
        )
        other = least(theirs, LOOP, repeats, begin)
        verdict = "ok  " if stepped - inside <= BEYOND else "MISS"
        print(
            f"{verdict} {name:24s} {stepped:18.1f} {stepped - inside:19.1f} {recorded:10.1f} {plain:9.1f} {other:9.1f}"
        )


# quantities ---------------------------------------------------------------------------------------------------------------


def arm() -> jg.Description:
    """The Franka arm without its hand's fingers and its ball."""
    robot = jg.zoo.franka_arm()
    for link in ("left_finger", "right_finger", "ball"):
        robot.links.pop(link)
    robot.joints = {name: j for name, j in robot.joints.items() if j.child in robot.links}
    robot.actuators = {name: a for name, a in robot.actuators.items() if a.joint in robot.joints}
    return robot


def quantities(repeats: int) -> None:
    from oracles.pinocchio_model import Twin

    robot = arm()
    model, twin = robot.compile(contact=None), Twin(robot)
    P, data, rng = twin.model, twin.data, np.random.default_rng(0)
    q, qd, qdd = (rng.uniform(-1, 1, (MANY, model.nv)) for _ in range(3))
    many, one = jg.State(q, qd), jg.State(q[0], qd[0])
    a, v, p = qdd[0], qd[0], q[0]
    hand = P.njoints - 1
    pairs: dict[str, tuple[Callable, Callable]] = {
        "mass matrix": (lambda s, b: jg.mass_matrix(model, s), lambda: pin.crba(P, data, p)),
        "bias force": (lambda s, b: jg.bias_force(model, s), lambda: pin.nonLinearEffects(P, data, p, v)),
        "gravity": (lambda s, b: jg.gravity_force(model, s.q), lambda: pin.computeGeneralizedGravity(P, data, p)),
        "inverse dynamics": (lambda s, b: jg.inverse_dynamics(model, s, b), lambda: pin.rnea(P, data, p, v, a)),
        "Jacobian of the hand": (
            lambda s, b: jg.jacobian(model, s.q, "hand"),
            lambda: pin.computeJointJacobian(P, data, p, hand),
        ),
        "dJ/dt qd": (
            lambda s, b: jg.jacobian_rate(model, s, "hand"),
            lambda: pin.forwardKinematics(P, data, p, v, 0 * a),
        ),
        "pose of the hand": (lambda s, b: jg.site_pose(model, s.q, "hand"), lambda: pin.forwardKinematics(P, data, p)),
        "momentum": (
            lambda s, b: jg.centroidal_momentum(model, s),
            lambda: pin.computeCentroidalMomentum(P, data, p, v),
        ),
        "momentum matrix": (
            lambda s, b: jg.centroidal_momentum_matrix(model, s),
            lambda: pin.computeCentroidalMap(P, data, p),
        ),
        "torque regressor": (
            lambda s, b: jg.torque_regressor(model, s, b),
            lambda: pin.computeJointTorqueRegressor(P, data, p, v, a),
        ),
    }
    error = max(
        np.abs(jg.mass_matrix(model, one) - twin.mass_matrix(p)).max(),
        np.abs(jg.bias_force(model, one) - twin.bias(p, v)).max(),
    )
    print(f"\nan arm of {model.nv} joints; checked: mass matrix and bias against Pinocchio {error:.1e}")
    print(
        "one quantity, us:              one state   Pinocchio   each of 1,000 on one core   and jg.inspect (one state)"
    )
    inspected = least(lambda: jg.inspect(model, one).mass_matrix, ALONE, repeats)
    for name, (ours, theirs) in pairs.items():
        alone = least(lambda f=ours: f(one, a), ALONE, repeats)
        each = least(lambda f=ours: f(many, qdd), 5, repeats) / MANY
        other = least(theirs, ALONE, repeats)
        verdict = "ok  " if alone <= ONE and each <= EACH else "MISS"
        more = f"{inspected:10.1f}" if name == "mass matrix" else ""
        print(f"{verdict} {name:24s} {alone:10.1f} {other:11.1f} {each:27.2f}   {more}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    os.environ["JOINTGRAD_THREADS"] = "1"
    print(f"python {' '.join(sys.argv)}")
    loops(options.repeats)
    quantities(options.repeats)


if __name__ == "__main__":
    main()
