"""Drag of links in a medium: MuJoCo's inertia-box model, and its derivatives."""

import mujoco
import numpy as np
import pytest
from oracles.differences import random_state

import jointgrad as jg

SWIMMER = """<mujoco><option density="{density}" viscosity="{viscosity}" gravity="0 0 -3"><flag contact="disable"/></option>
<worldbody><body><freejoint/><geom type="capsule" size="0.05 0.2" density="800"/><geom type="box" size=".1 .02 .03" pos=".1 0 0"/>
<body pos="0.3 0 0" euler="20 30 40"><joint type="hinge" axis="0 1 1"/><geom type="box" size="0.2 0.05 0.02" pos="0.2 0 0"/>
<body pos="0.4 0 0"><joint type="ball"/><geom type="ellipsoid" size="0.1 0.06 0.03" pos="0.1 0 0"/>
<body pos="0.1 0.1 0"><geom type="sphere" size="0.05"/></body></body></body></body></worldbody></mujoco>"""


@pytest.mark.parametrize(("density", "viscosity"), [(1000.0, 0.0), (0.0, 0.5), (1.2, 1.8e-5)])
def test_drag_equals_mujoco(density, viscosity):
    text = SWIMMER.format(density=density, viscosity=viscosity)
    m = mujoco.MjModel.from_xml_string(text)
    d = mujoco.MjData(m)
    model = jg.load(text).compile(contact=None)
    rng = np.random.default_rng(0)
    for _ in range(3):
        state = random_state(model, rng)
        d.qpos[:], d.qvel[:] = state.q, state.qd
        mujoco.mj_forward(m, d)
        assert np.abs(jg.inspect(model, state).qdd - d.qacc).max() < 1e-8 * np.abs(d.qacc).max()


def test_a_body_in_a_medium_never_gains_energy():
    robot = jg.zoo.random_tree(5, 3, passive=False, actuators=False, drag=True)
    model = robot.compile(dt=1e-3, gravity=(0, 0, 0), density=500.0, viscosity=0.1, integrator="rk4")
    motion = jg.rollout(model, random_state(model, np.random.default_rng(1)), steps=300)
    energy = jg.inspect(model, jg.State(motion.q, motion.qd)).kinetic_energy
    assert (np.diff(energy) < 0).all()
    assert energy[-1] < 0.5 * energy[0]


@pytest.mark.parametrize("name", ["link.drag_size", "link.drag_placement", "world.density", "world.viscosity"])
def test_gradient_of_the_medium(name):
    """Against differences, over 20 steps, all entries of the parameter at once along random directions."""
    rng = np.random.default_rng(4)
    model = jg.zoo.random_tree(5, 6, base="free", trees=2, drag=True).compile(dt=0.01, density=200.0, viscosity=0.3)
    start = random_state(model, rng, 3)
    q_bar, qd_bar = rng.normal(size=(3, model.nq)), rng.normal(size=(3, model.nv))
    gradient = jg.rollout(model, start, steps=20).backward(q_bar, qd_bar)

    def loss(value):
        last = jg.rollout(model.replace({name: value}), start, steps=20).last
        return (last.q * q_bar).sum() + (last.qd * qd_bar).sum()

    value, h = model.params[name], 1e-4
    for _ in range(4):
        direction = rng.normal(size=value.shape)
        ends = [loss(value + k * h * direction) for k in (1, -1, 2, -2)]
        slope = (8 * (ends[0] - ends[1]) - (ends[2] - ends[3])) / (12 * h)
        found = (gradient.params[name] * direction).sum()
        assert abs(found - slope) < 1e-6 * max(abs(slope), 1e-3)
