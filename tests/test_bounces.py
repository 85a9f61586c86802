"""Bounces: what simultaneous impacts do, that no energy comes from nowhere, and where restitution begins."""

from __future__ import annotations

import numpy as np
import pytest
from test_contact_gradients import check, contact_case, restrained_case
from worlds import cluster, rounded, thrown_together

import jointgrad as jg
from jointgrad.engine.run import plain

G = 9.81
RADIUS = 0.1
ROUNDING = 1e-8


def row_of_balls(count: int, **pair) -> jg.Model:
    world = jg.World(gravity=(0, 0, 0))
    for k in range(count):
        world.add(rounded("sphere", 1.0, RADIUS), name=f"b{k}", position=(k * (2 * RADIUS - 1e-9), 0, 0))
    options = {"restitution": 1.0, "friction": 0.0, "compliance": 0.0, "baumgarte": 0.0} | pair
    return world.pair("*", "*", **options).compile(dt=1e-3)


def pushed(model: jg.Model, speeds) -> jg.State:
    state = model.initial_state()
    state.qd[::6] = speeds
    return state


def kinetic(model: jg.Model, qd: np.ndarray) -> np.ndarray:
    """Of free bodies of equal inertia about every axis, turned or not."""
    mass, inertia = model.params["link.mass"][-(model.nv // 6) :], model.params["link.inertia"][-(model.nv // 6) :, 0]
    rates = qd.reshape(*qd.shape[:-1], -1, 6)
    return 0.5 * ((rates[..., :3] ** 2).sum(-1) @ mass + (rates[..., 3:] ** 2).sum(-1) @ inertia)


def test_three_balls_in_a_row():
    """One after the other, as in reality: the second hits the third, then the first the second, and all energy is left."""
    model = row_of_balls(3)
    motion = jg.rollout(model, pushed(model, (0.5, 1.0, 0.0)), steps=20)
    np.testing.assert_allclose(motion.qd[1, ::6], (0.5, 0.0, 1.0), atol=1e-9)
    np.testing.assert_allclose(motion.last.qd[::6], (0.0, 0.5, 1.0), atol=1e-9)


@pytest.mark.parametrize("count", [3, 5])
@pytest.mark.parametrize("e", [0.3, 1.0])
def test_cradle_gains_nothing(count, e):
    model = row_of_balls(count, restitution=e)
    motion = jg.rollout(model, pushed(model, np.eye(count)[0]), steps=50)
    energy = kinetic(model, motion.qd)
    assert (np.diff(energy) <= ROUNDING * energy[0]).all()
    np.testing.assert_allclose(motion.qd[:, ::6].sum(-1), 1.0, rtol=1e-9)
    if e == 1:
        np.testing.assert_allclose(energy, energy[0], rtol=1e-6)


@pytest.mark.parametrize("compliance", [0.0, 1e-5])
def test_elastic_bounces_for_twenty_seconds(compliance):
    """What semi-implicit steps conserve in flight is (v - g dt / 2)^2 / 2 + g z; forty bounces leave it as it is."""
    world = jg.World().add(rounded("sphere", 1.0, RADIUS), position=(0, 0, 0.6)).add_ground(restitution=1.0)
    model = world.compile(dt=1e-3, contact=jg.Impulse(compliance=compliance))
    motion = jg.rollout(model, model.initial_state(), steps=20_000)
    energy = 0.5 * (motion.qd[:, 2] - 0.5e-3 * G) ** 2 + G * (motion.q[:, 2] - RADIUS)
    assert (np.diff(np.sign(motion.qd[:, 2])) > 0).sum() > 25
    assert energy.max() <= energy[0] * (1 + 1e-9)
    assert energy[-1] > energy[0] * (1 - 1e-9 - 500 * compliance)


# random clusters ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cone", [True, False], ids=["cone", "pyramid"])
@pytest.mark.parametrize("form", ["matrix", "sums"])
def test_clusters_gain_no_energy(cone, form):
    """Many impacts at once, with friction, other masses, a restitution of each pair's own: in a single step, settled or not."""
    gains, touched = [], 0
    for seed in range(6):
        model = cluster(seed, form, cone)
        state = thrown_together(model, 400, seed)
        before, after = (kinetic(model, qd) for qd in (state.qd, jg.step(model, state).qd))
        gains.append((after / before - 1).max())
        touched += (np.abs(after - before) > 1e-6 * before).sum()
    print(f"largest gain {max(gains):.2g}, {touched} of 2400 touched")
    assert max(gains) < ROUNDING
    assert touched > 1500


@pytest.mark.parametrize("cone", [True, False], ids=["cone", "pyramid"])
@pytest.mark.parametrize("form", ["matrix", "sums"])
def test_gradients_of_restrained_bounces(form, cone):
    case = restrained_case(form, cone)
    check(case, most=6)
    motion = case.rollout()
    rng = np.random.default_rng(0)
    dots = {name: rng.normal(size=case.inputs[name].shape) for name in ("q", "qd")}
    params = {"pair.restitution": rng.normal(size=case.inputs["pair.restitution"].shape)}
    q_dot, qd_dot = motion.tangent(dots["q"], dots["qd"], params=params)
    left = (q_dot * case.bars["q"]).sum() + (qd_dot * case.bars["qd"]).sum()
    back = motion.backward(case.bars["q"], case.bars["qd"])
    right = (back.q * dots["q"]).sum() + (back.qd * dots["qd"]).sum()
    right += (back.params["pair.restitution"] * params["pair.restitution"]).sum()
    np.testing.assert_allclose(left, right, rtol=1e-8)


def jammed(angle: float = 0.02) -> jg.Model:
    """A rod that a wall holds nearly along its length, 1 mm in it: the wall feels 2,500 times its mass."""
    robot = jg.Description("rod")
    link = robot.add_link("rod", 1.0, (0.0, 0.0, 0.5), (0.09, 0.0, 0.0, 0.09, 0.0, 0.01))
    robot.add_joint("hinge", "revolute", None, "rod", axis=(0.0, 1.0, 0.0))
    robot.add_actuator("motor", "hinge")
    link.shapes.append(jg.Shape("sphere", (0.05,), (0.0, 0.0, 1.0), name="tip"))
    ceiling = jg.Description("wall")
    ceiling.add_link("wall", 1.0, (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 1.0, 0.0, 1.0)).shapes.append(
        jg.Shape("box", (1.0, 1.0, 0.1), (0.0, 0.0, float(np.cos(angle)) + 0.149), name="wall")
    )
    ceiling.add_joint("fixed", "fixed", None, "wall")
    world = jg.World(gravity=(0, 0, 0)).add(robot).add(ceiling).pair("*", "*", restitution=0.5, friction=0.0)
    return world.compile(dt=1e-3)


def test_a_jammed_body_is_not_shot_out():
    """Stabilisation may give a body its own speed of 25 mm/s, not that speed to all the mass that the wall feels."""
    model, angle = jammed(), 0.02
    rate = jg.step(model, jg.State(np.array([angle]), np.array([-0.1]))).qd[0]
    energy = 0.5 * (0.09 + 0.25) * (rate**2 - 0.1**2)
    assert energy < 1.01 * 0.025**2
    assert rate > -0.1


def test_gradient_of_a_jammed_body():
    model = jammed()
    q, qd = np.array([[0.02], [0.0201]]), np.array([[-0.1], [-0.2]])
    check(contact_case(model, q, qd), most=6)


def test_restrained_bounces_without_the_compiler():
    case = restrained_case("matrix", True)
    model = case.model
    for k in range(len(case.inputs["q"])):
        given = case.inputs["q"][k], case.inputs["qd"][k], case.inputs["u"][k, 0]
        q, qd = plain.step(model, *given)
        one = jg.step(model, jg.State(*given[:2]), given[2])
        np.testing.assert_allclose(one.qd, qd, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(one.q, q, rtol=1e-11, atol=1e-12)


# where restitution begins -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gap", [-2e-4, 2e-4, 9e-4])
@pytest.mark.parametrize("kind", ["sphere", "box"])
def test_restitution_begins_at_zero(kind, gap):
    """The motion is continuous there, also in a model compiled without; the derivative at zero is the one-sided one."""
    world = jg.World().add(rounded(kind, 1.0, RADIUS), position=(0, 0, RADIUS + gap)).add_ground()
    model = world.compile(dt=1e-3)
    state = jg.State(model.initial_state().q, np.array([0.2, 0.0, -1.0, 0.0, 0.1, 0.0]))

    def with_restitution(e: float) -> jg.Model:
        return model.replace({"pair.restitution": np.full(len(model.pair_names), e)})

    def speed(e: float) -> np.ndarray:
        return jg.step(with_restitution(e), state).qd

    np.testing.assert_allclose(speed(1e-12), speed(0.0), atol=1e-9)
    grid = np.linspace(0.0, 0.02, 2001)
    heights = np.array([speed(e)[2] for e in grid])
    assert np.abs(np.diff(heights)).max() < 0.25, "no jumps on the way either"
    bar = np.array([0.3, -0.2, 1.0, 0.1, 0.4, -0.3])
    slope = jg.rollout(with_restitution(0.0), state, steps=1).backward(qd_bar=bar).params["pair.restitution"].sum()
    h = 1e-7
    one_sided = (4 * (speed(h) - speed(0.0)) - (speed(2 * h) - speed(0.0))) @ bar / (2 * h)
    np.testing.assert_allclose(slope, one_sided, rtol=1e-5, atol=1e-6)


def test_what_bounces_comes_to_rest():
    """And rests as quietly as what does not."""
    world = jg.World().add(rounded("box", 1.0, RADIUS), position=(0, 0, 0.3)).add_ground(restitution=0.5, friction=0.8)
    model = world.compile(dt=1e-3)
    motion = jg.rollout(model, model.initial_state(), steps=4000)
    np.testing.assert_allclose(motion.last.q[2], RADIUS, atol=1e-6)
    assert np.abs(motion.qd[-500:]).max() < 1e-6
