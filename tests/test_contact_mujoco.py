"""Contact against MuJoCo on the same world, written out by `to_mjcf`. The figures are in docs/contact.md.

MuJoCo's contact is soft: with its defaults a toe of the Laikago sinks in by 4 mm, which ours does not. So what must agree is the
height less that depth, and everything else with MuJoCo's contact made hard.
"""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from oracles.contact_forces import mujoco_normal_forces, our_normal_forces

import jointgrad as jg

DT = 1e-3
MASS = {"box": 2.0, "sphere": 1.0, "capsule": 1.5}
SIZE = {"box": (0.1, 0.08, 0.05), "sphere": (0.07,), "capsule": (0.04, 0.1)}
RESTS_AT = {"box": 0.05, "sphere": 0.07, "capsule": 0.04}
LYING = {"capsule": (np.sqrt(0.5), 0.0, np.sqrt(0.5), 0.0)}
STANCE = np.tile([0.0, 0.0, -0.5], 4)


def solid(kind: str) -> jg.Description:
    robot = jg.Description(kind, base="free")
    robot.add_link(kind, MASS[kind], inertia=(0.01,) * 3).shapes.append(jg.Shape(kind, SIZE[kind]))
    return robot


def laikago() -> jg.Description:
    robot = jg.zoo.laikago(touch="feet")
    for actuator in robot.actuators.values():
        actuator.kind, actuator.gain, actuator.damping = "position", 150.0, 3.0
    return robot


def twin(world: jg.World, hard: bool) -> tuple[mujoco.MjModel, mujoco.MjData]:
    m = mujoco.MjModel.from_xml_string(jg.to_mjcf(world, dt=DT))
    m.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    if hard:
        m.geom_solref[:], m.geom_solimp[:, :2] = (2 * DT, 1.0), 0.999
        m.opt.impratio, m.opt.noslip_iterations = 100.0, 50
    d = mujoco.MjData(m)
    mujoco.mj_resetDataKeyframe(m, d, 0)
    return m, d


@pytest.mark.parametrize("kind", ["box", "sphere", "capsule"])
def test_standing_height_and_force(kind):
    """Dropped from 2 cm: the height at rest, MuJoCo's less its own depth, and the force, which is the weight."""
    world = jg.World().add(
        solid(kind), position=(0, 0, RESTS_AT[kind] + 0.02), orientation=LYING.get(kind, (1, 0, 0, 0))
    )
    world.add_ground(friction=0.7)
    model = world.compile(dt=DT)
    last = jg.rollout(model, model.initial_state(), steps=2000).last
    m, d = twin(world, hard=False)
    mujoco.mj_step(m, d, 2000)
    mujoco.mj_forward(m, d)
    depth = -np.mean([d.contact[i].dist for i in range(d.ncon)])
    assert last.q[2] == pytest.approx(RESTS_AT[kind], abs=1e-6)
    assert last.q[2] == pytest.approx(d.qpos[2] + depth, abs=1e-6)
    ours, theirs = sum(our_normal_forces(model, last).values()), sum(mujoco_normal_forces(m, d).values())
    assert ours == pytest.approx(MASS[kind] * 9.81, rel=1e-6)
    assert ours == pytest.approx(theirs, rel=1e-4)


def slid(displacement: np.ndarray, friction: float, seconds: float) -> np.ndarray:
    """Whether a block left its place: half as far as Coulomb's law takes it at 0.05 degrees beyond the threshold."""
    beyond = np.arctan(friction) + np.radians(0.05)
    return displacement > 0.5 * 0.5 * 9.81 * (np.sin(beyond) - friction * np.cos(beyond)) * seconds**2


@pytest.mark.parametrize("friction", [0.2, 0.5])
def test_angle_at_which_a_block_begins_to_slip(friction):
    """Gravity is tilted by angles 0.1 degrees apart: both begin to slip where tan(angle) = friction."""
    true = np.degrees(np.arctan(friction))
    angles = np.radians(true + np.arange(-1.05, 1.05, 0.1))
    gravity = 9.81 * np.stack([np.sin(angles), 0 * angles, -np.cos(angles)], -1)
    world = jg.World().add(solid("box"), position=(0, 0, 0.05)).add_ground(friction=friction)
    model = world.compile(dt=DT).replace({"world.gravity": gravity})
    ours = jg.rollout(model, model.initial_state(batch=len(angles)), steps=500).last.q[:, 0]
    theirs = []
    for g in gravity:
        m, d = twin(world, hard=True)
        m.opt.gravity[:] = g
        mujoco.mj_step(m, d, 500)
        theirs.append(d.qpos[0])
    print(np.c_[np.degrees(angles) - true, ours, theirs])
    expected = angles > np.arctan(friction)
    assert (slid(ours, friction, 0.5) == expected).all()
    assert (slid(np.array(theirs), friction, 0.5) == expected).sum() >= len(angles) - 1
    # and the distance, where both slide; MuJoCo's friction gives way by half a millimetre before it holds
    far = angles > np.arctan(friction) + np.radians(0.5)
    coulomb = 0.5 * 9.81 * (np.sin(angles) - friction * np.cos(angles)) * 0.5**2
    assert ours[far] == pytest.approx(coulomb[far], rel=0.01)
    assert ours[far] == pytest.approx(np.array(theirs)[far], abs=1e-3)


@pytest.fixture(scope="module")
def dropped():
    """A Laikago with servos at its joints, dropped askew: our motion, and MuJoCo's with soft and with hard contact."""
    turn = (np.cos(0.1), 0.6 * np.sin(0.1), 0.8 * np.sin(0.1), 0.0)
    world = jg.World().add(laikago(), position=(0, 0, 0.58), orientation=turn).add_ground(friction=0.7)
    model = world.compile(dt=DT)
    ours = jg.rollout(model, model.initial_state(), np.tile(STANCE, (12000, 1)))
    theirs = {}
    for name in ("soft", "hard"):
        m, d = twin(world, name == "hard")
        d.ctrl[:] = STANCE
        mujoco.mj_step(m, d, 12000)
        mujoco.mj_forward(m, d)
        theirs[name] = m, d
    return model, ours, theirs


def tilt(quaternion: np.ndarray) -> float:
    """Angle (degrees) between the body's z axis and the vertical."""
    return np.degrees(2 * np.arcsin(np.linalg.norm(quaternion[1:3])))


def test_a_dropped_laikago_comes_to_rest_alike(dropped):
    model, ours, theirs = dropped
    q = ours.last.q
    _, soft = theirs["soft"]
    _, hard = theirs["hard"]
    depth = -np.mean([soft.contact[i].dist for i in range(soft.ncon)])
    joints = np.abs(q[7:] - hard.qpos[7:]).max()
    print(f"\nheight {q[2]:.5f} m, MuJoCo soft {soft.qpos[2]:.5f} (depth {depth:.5f}), hard {hard.qpos[2]:.5f}")
    print(
        f"tilt {tilt(q[3:7]):.3f} deg, MuJoCo {tilt(soft.qpos[3:7]):.3f}, {tilt(hard.qpos[3:7]):.3f}; joints {joints:.5f} rad"
    )
    print(f"place {q[:2]}, MuJoCo soft {soft.qpos[:2]}, hard {hard.qpos[:2]}")
    assert np.abs(ours.last.qd).max() < 0.02 and np.abs(hard.qvel).max() < 0.02
    assert q[2] == pytest.approx(hard.qpos[2], abs=2e-4)
    assert q[2] == pytest.approx(soft.qpos[2] + depth, abs=2e-3)
    assert joints < 0.02
    assert q[:2] == pytest.approx(hard.qpos[:2], abs=0.02)
    assert abs(tilt(q[3:7]) - tilt(hard.qpos[3:7])) < 0.2


def test_forces_under_the_feet(dropped):
    """Torques of the servos fix the force at each foot: the sum is the weight, and each agrees."""
    model, ours, theirs = dropped
    m, d = theirs["hard"]
    weight = 9.81 * float(model.params["link.mass"].sum())
    found = {pair[0]: f for pair, f in our_normal_forces(model, ours.last, STANCE).items()}
    force, expected = np.zeros(6), {}
    for i in range(d.ncon):
        mujoco.mj_contactForce(m, d, i, force)
        toe = next(n for n in found if m.body(n).id in m.geom_bodyid[[d.contact[i].geom1, d.contact[i].geom2]])
        expected[toe] = expected.get(toe, 0.0) + force[0]
    print({toe: (round(f, 2), round(float(expected[toe]), 2)) for toe, f in found.items()}, f"weight {weight:.2f}")
    assert len(found) == 4 and found.keys() == expected.keys()
    assert sum(found.values()) == pytest.approx(weight, rel=1e-3)
    for toe, f in found.items():
        assert f == pytest.approx(expected[toe], abs=0.01 * weight)
