"""What goes out as MJCF means the same in MuJoCo, or is refused with the reason."""

import mujoco
import numpy as np
import pytest
from oracles.differences import random_state

import jointgrad as jg
from jointgrad.files.write_mjcf import to_mjcf

SOLID = ("fixed", "revolute", "continuous", "prismatic", "spherical", "planar", "universal")
# what the twin is told to leave out
FREE = {"contact": None, "constraints": False}


def compared(world, model, dt=2e-3, integrator="semi_implicit"):
    """Largest relative error of mass matrix, acceleration and next state against MuJoCo's reading of the text."""
    m = mujoco.MjModel.from_xml_string(to_mjcf(world, dt, integrator))
    m.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    d = mujoco.MjData(m)
    assert (m.nq, m.nv, m.nu) == (model.nq, model.nv, model.nu)
    np.testing.assert_allclose(m.key_qpos[0], model.initial_state().q, atol=1e-15)
    rng = np.random.default_rng(0)
    state, u = random_state(model, rng), rng.normal(size=model.nu)
    d.qpos[:], d.qvel[:], d.ctrl[:] = state.q, state.qd, u
    mujoco.mj_forward(m, d)
    info = jg.inspect(model, state, u)
    M = np.zeros((m.nv, m.nv))
    mujoco.mj_fullM(m, d, M)
    pairs = [(info.mass_matrix, M), (info.qdd, d.qacc.copy())]
    mujoco.mj_step(m, d)
    after = jg.step(model, state, u)
    pairs += [(after.q, d.qpos), (after.qd, d.qvel)]
    return max(np.abs(a - b).max() / max(np.abs(b).max(), 1e-9) for a, b in pairs)


@pytest.mark.parametrize("integrator", ["semi_implicit", "rk4"])
@pytest.mark.parametrize("robot", ["laikago", "cart_pole", "pendulum"])
def test_zoo(robot, integrator):
    description = getattr(jg.zoo, robot)()
    assert (
        compared(description, description.compile(dt=2e-3, integrator=integrator, **FREE), integrator=integrator) < 1e-9
    )


@pytest.mark.filterwarnings("ignore::jointgrad.UnsupportedWarning")
@pytest.mark.parametrize("robot", ["ant", "humanoid", "a1", "go2", "franka_arm", "racecar", "golf", "swimmer"])
def test_the_rest_of_the_zoo(robot):
    """Shapes and their contact settings included; nothing of them acts without contact."""
    description = getattr(jg.zoo, robot)()
    assert compared(description, description.compile(dt=2e-3, **FREE)) < 1e-8


@pytest.mark.parametrize("seed", range(8))
def test_random_trees(seed):
    """Every joint kind, drives with gears and biases, springs, dampers, armature."""
    robot = jg.zoo.random_tree(6, seed, kinds=SOLID, base=("free", "fixed")[seed % 2], several=False)
    assert compared(robot, robot.compile(dt=2e-3, **FREE)) < 1e-9


def test_two_robots_in_one_world():
    world = jg.World(gravity=(0.5, 0, -9)).add(jg.zoo.laikago(), "dog", position=(1, 2, 3), orientation=(1, 0, 0, 1))
    world.add(jg.zoo.cart_pole(), "cart", position=(0, 1, 0), orientation=(1, 1, 0, 0))
    assert compared(world, world.compile(dt=2e-3, **FREE)) < 1e-9


@pytest.mark.parametrize(
    ("robot", "words"),
    [
        (jg.zoo.double_pendulum(), ["link0", "inertia"]),
        (jg.zoo.random_tree(12, 2, several=True, kinds=("revolute", "fixed")), ["joint", "apart from the first"]),
    ],
)
def test_refuses_what_mjcf_cannot_say(robot, words):
    with pytest.raises(jg.ModelError) as caught:
        to_mjcf(robot)
    assert all(word in str(caught.value) for word in words)


def test_refuses_explicit_euler():
    with pytest.raises(jg.ModelError, match="explicit"):
        to_mjcf(jg.zoo.cart_pole(), integrator="explicit")
