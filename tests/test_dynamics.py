"""Accelerations, steps and conserved quantities against MuJoCo, Pinocchio and the laws of mechanics."""

from __future__ import annotations

import functools

import mujoco
import numpy as np
import pytest
from oracles.differences import random_state, tangent_basis
from oracles.mujoco_model import mujoco_data, mujoco_model
from oracles.pinocchio_model import Twin

import jointgrad as jg
from jointgrad.engine.run import plain
from jointgrad.model.arrays import INTEGRATORS

GRAVITY = (1.0, 2.0, -9.0)
SEEDS = range(60)


def relative(found, expected) -> float:
    return float(np.abs(np.asarray(found) - expected).max(initial=0.0) / np.abs(expected).max(initial=1e-300))


@functools.cache
def random_robot(seed: int) -> jg.Description:
    """One to nine links in one to three trees; free and fixed bases in turn; all kinds of joints; something moves."""
    rng = np.random.default_rng(seed)
    base, trees = ("free", "fixed")[seed % 2], 1 + seed % 3
    while True:
        robot = jg.zoo.random_tree(trees + seed % 7, seed=int(rng.integers(10**6)), base=base, trees=trees)
        for k, joint in enumerate(robot.joints.values()):
            count = {"planar": 3, "universal": 2, "fixed": 0}.get(joint.kind, 1)
            joint.rest = tuple(rng.normal(size=4)) if joint.kind == "spherical" else tuple(rng.normal(size=count))
            joint.rest = joint.rest or None
            if joint.kind in ("spherical", "planar", "universal"):
                robot.add_actuator(f"part{k}", joint.name, "velocity", gain=0.7, gear=1.3, component=k % 2)
        for actuator in robot.actuators.values():
            actuator.control_limit, actuator.force_limit = (-0.8, 0.9), (-1.5, 1.2)
        if base == "free" or any(j.kind != "fixed" for j in robot.joints.values()):
            return robot


def kinds_seen() -> set[str]:
    return {joint.kind for seed in SEEDS for joint in random_robot(seed).joints.values()}


def test_every_kind_is_among_the_random_trees():
    """The comparisons below cover all kinds of joints, links with two joints, and several trees."""
    assert kinds_seen() == {"fixed", "revolute", "continuous", "prismatic", "spherical", "planar", "universal"}
    assert any(name.endswith("b") for seed in SEEDS for name in random_robot(seed).joints)


@pytest.mark.parametrize("seed", SEEDS)
def test_acceleration(seed):
    """qdd of a random tree in a random state, under controls and pushes, as MuJoCo and Pinocchio have it."""
    robot, rng = random_robot(seed), np.random.default_rng(seed)
    model = robot.compile(gravity=GRAVITY)
    state, u = random_state(model, rng, 2), rng.normal(size=(2, model.nu))
    force = rng.normal(size=(2, model.n_links, 6))
    info = jg.inspect(model, state, u, force)
    m, twin = mujoco_model(robot, gravity=GRAVITY), Twin(robot, gravity=GRAVITY)
    for env in range(2):
        q, qd = state.q[env], state.qd[env]
        d = mujoco_data(m, q, qd, u[env], force[env], model.link_names)
        mujoco.mj_forward(m, d)
        pinned = twin.acceleration(q, qd, twin.joint_forces(q, qd, u[env]), force[env])
        assert relative(info.qdd[env], d.qacc) < 1e-9
        assert relative(info.qdd[env], pinned) < 1e-9
        assert relative(plain.acceleration(model, q, qd, u[env], force[env]), d.qacc) < 1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_mass_bias_momentum(seed):
    """Mass matrix, bias forces and momentum, as MuJoCo and Pinocchio have them; inverse dynamics undoes dynamics."""
    robot, rng = random_robot(seed), np.random.default_rng(seed)
    model = robot.compile(gravity=GRAVITY)
    state, u = random_state(model, rng), rng.normal(size=model.nu)
    info, (q, qd) = jg.inspect(model, state, u), state
    m, twin = mujoco_model(robot, gravity=GRAVITY), Twin(robot, gravity=GRAVITY)
    d = mujoco_data(m, q, qd, u)
    mujoco.mj_forward(m, d)
    M = np.zeros((m.nv, m.nv))
    mujoco.mj_fullM(m, d, M)
    assert relative(info.mass_matrix, M) < 1e-9
    assert relative(info.mass_matrix, twin.mass_matrix(q)) < 1e-9
    assert relative(info.bias, d.qfrc_bias) < 1e-9
    assert relative(info.bias, twin.bias(q, qd)) < 1e-9
    assert np.allclose(info.joint_force, d.qfrc_passive + d.qfrc_actuator, rtol=1e-9, atol=1e-12)
    linear, angular = info.momentum
    expected = twin.momentum(q, qd)
    about_centre = angular - np.cross(info.centre_of_mass, linear)
    assert relative(np.r_[linear, about_centre], expected) < 1e-9
    # of forces that are about as large as the bias
    assert relative(info.inverse_dynamics(info.qdd) - info.joint_force + info.bias, info.bias) < 1e-9


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_inspection_is_of_the_state(integrator):
    """Mass matrix, bias and energy belong to the state, whatever the integrator does with them."""
    robot, rng = random_robot(4), np.random.default_rng(4)
    model, other = robot.compile(dt=0.1, integrator=integrator), robot.compile(dt=0.1)
    state = random_state(model, rng, 3)
    info, expected = jg.inspect(model, state), jg.inspect(other, state)
    for name in ("mass_matrix", "bias", "kinetic_energy", "potential_energy"):
        assert relative(getattr(info, name), getattr(expected, name)) < 1e-12, name


@pytest.mark.parametrize("seed", SEEDS[:12])
@pytest.mark.parametrize(
    ("integrator", "options"),
    [
        ("semi_implicit", {"integrator": "Euler"}),
        ("rk4", {"integrator": "RK4"}),
        ("implicit_damping", {"integrator": "Euler", "eulerdamp": True}),
    ],
)
def test_steps(seed, integrator, options):
    """Five steps with controls and pushes arrive where MuJoCo's arrive."""
    robot, rng = random_robot(seed), np.random.default_rng(seed)
    model = robot.compile(dt=0.01, gravity=GRAVITY, integrator=integrator)
    state, u = random_state(model, rng), rng.normal(size=(5, model.nu))
    force = rng.normal(size=(model.n_links, 6))
    m = mujoco_model(robot, gravity=GRAVITY, dt=0.01, **options)
    d = mujoco_data(m, state.q, state.qd, None, force, model.link_names)
    for k in range(5):
        d.ctrl[:] = u[k]
        mujoco.mj_step(m, d)
    last = jg.rollout(model, state, u, force=force).last
    assert relative(last.q, d.qpos) < 1e-10
    assert relative(last.qd, d.qvel) < 1e-10


def test_explicit_step():
    """Explicit Euler moves with the rates it starts from: scalar joints by hand."""
    model = jg.zoo.cart_pole().compile(dt=0.1, integrator="explicit")
    state = jg.State(np.array([0.3, 0.4]), np.array([-1.0, 2.0]))
    after = jg.step(model, state, np.array([0.5]))
    assert np.allclose(after.q, state.q + 0.1 * state.qd, rtol=0, atol=1e-15)
    assert np.allclose(after.qd, state.qd + 0.1 * jg.inspect(model, state, np.array([0.5])).qdd, rtol=0, atol=1e-14)


# what nature conserves --------------------------------------------------------------------------------------------


def isolated(seed: int, base: str = "free", n: int = 6) -> jg.Description:
    """A robot without springs, dampers, rotors, drives."""
    kinds = ("revolute", "prismatic", "spherical", "universal", "fixed")
    return jg.zoo.random_tree(n, seed=seed, base=base, kinds=kinds, passive=False, actuators=False)


@pytest.mark.parametrize("seed", range(8))
def test_momentum_rate_is_zero_in_free_flight(seed):
    """Without gravity, the rate of momentum that follows from qdd vanishes."""
    robot = isolated(seed)
    model = robot.compile(gravity=(0, 0, 0))
    state = random_state(model, np.random.default_rng(seed))
    twin = Twin(robot, gravity=(0, 0, 0))
    rate = twin.momentum_rate(state.q, state.qd, jg.inspect(model, state).qdd)
    typical = twin.momentum_rate(state.q, state.qd, np.zeros(model.nv))
    assert np.abs(typical).max() > 0.1  # what it would be without the forces between the links
    assert np.abs(rate).max() < 1e-12


def drifts(robot, gravity, integrator, quantity, dts, seconds=0.32) -> list[float]:
    """Largest change of a conserved quantity on the way, for each time step."""
    found = []
    for dt in dts:
        model = robot.compile(dt=dt, gravity=gravity, integrator=integrator)
        state = random_state(model, np.random.default_rng(3))
        traj = jg.rollout(model, state, steps=round(seconds / dt))
        every = round(dts[0] / dt)
        values = np.array([quantity(q, qd) for q, qd in zip(traj.q[::every], traj.qd[::every], strict=True)])
        found.append(float(np.abs(values - values[0]).max()))
    return found


@pytest.mark.parametrize(("integrator", "order"), [("semi_implicit", 1), ("explicit", 1), ("rk4", 4)])
@pytest.mark.parametrize(("what", "base"), [("energy", "fixed"), ("energy", "free"), ("momentum", "free")])
def test_drift_falls_with_the_step(what, base, integrator, order):
    """Halving the time step divides the drift of energy (under gravity) and of momentum (in free flight) by 2^order."""
    robot = isolated(5, base)
    gravity = GRAVITY if what == "energy" else (0, 0, 0)
    quantity = getattr(Twin(robot, gravity=gravity), what)
    dts = (0.016, 0.008, 0.004) if order == 4 else (0.002, 0.001, 0.0005)
    coarse, fine, finest = drifts(robot, gravity, integrator, quantity, dts)
    slopes = np.log2([coarse / fine, fine / finest])
    assert np.all(np.abs(slopes - order) < 0.25), slopes


# derivatives ------------------------------------------------------------------------------------------------------


def driven(seed: int) -> jg.Description:
    """A random robot with rotors but without springs and dampers, and a motor on every degree of freedom."""
    base = ("free", "fixed")[seed % 2]
    robot = jg.zoo.random_tree(2 + seed % 5, seed=seed, base=base, trees=1 + seed % 2, actuators=False)
    for joint in robot.joints.values():
        joint.damping = joint.stiffness = 0.0
    for name in [n for n in robot.links if n not in {j.child for j in robot.joints.values()}]:
        robot.add_joint(f"{name}.root", "free", None, name)
    for joint in robot.joints.values():
        count = {"fixed": 0, "spherical": 3, "planar": 3, "universal": 2, "free": 6}.get(joint.kind, 1)
        for k in range(count):
            robot.add_actuator(f"{joint.name}.{k}", joint.name, component=k)
    return robot


@pytest.mark.parametrize("seed", range(12))
def test_derivatives_of_acceleration(seed):
    """d qdd / d (q, qd, tau), pulled back through one step, equals Pinocchio's analytic derivatives."""
    robot, rng = driven(seed), np.random.default_rng(seed)
    model = robot.compile(dt=1.0, gravity=GRAVITY)
    if not model.nv:
        pytest.skip("nothing moves")
    state, u = random_state(model, rng), rng.normal(size=model.nu)
    n = model.nv
    rows = jg.State(np.repeat(state.q[None], n, 0), np.repeat(state.qd[None], n, 0))
    traj = jg.rollout(model, rows, np.repeat(u[None, None], n, 1))
    # with dt = 1 the next rate is qd + qdd: row i of the gradient is the derivative of its entry i
    grad = traj.backward(qd_bar=np.eye(n))
    torque_of = np.array([model.topology.tree["actuator_dof"]]).ravel()
    tau = np.zeros(n)
    tau[torque_of] = u
    by_tau = np.zeros((n, n))
    by_tau[:, torque_of] = grad.u[0]
    expected = Twin(robot, gravity=GRAVITY).derivatives(state.q, state.qd, tau)
    found = grad.q @ tangent_basis(model, state.q), grad.qd - np.eye(n), by_tau
    for ours, theirs in zip(found, expected, strict=True):
        assert relative(ours, theirs) < 1e-8
