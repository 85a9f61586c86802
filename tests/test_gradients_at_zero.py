"""Derivatives where a bound is exactly zero, and of environments that diverge: closed forms, tangents, one-sided differences."""

from __future__ import annotations

import numpy as np
import pytest

import jointgrad as jg

DT, STEPS, GRAVITY = 0.01, 10, 9.81
FORMS = [(cone, form) for cone in (True, False) for form in ("matrix", "sums")]


def ball(cone: bool, form: str, **options) -> jg.Model:
    """A ball of 2 kg on the ground, an arm hinged to it with dry friction."""
    robot = jg.Description("ball", base="free")
    robot.add_link("ball", 2.0, (0, 0, 0), (0.03, 0, 0, 0.04, 0, 0.05)).shapes.append(jg.Shape("sphere", (0.1,)))
    world = jg.World().add(robot, position=(0, 0, 0.1)).add_ground()
    world.pair("ball", "ground", **{"softness": 0.0, "torsion": 0.0, "rolling": 0.0} | options)
    return world.compile(dt=DT, contact=jg.Impulse(cone=cone, form=form))


def three_ways(model: jg.Model, state: jg.State, name: str, bar: np.ndarray, h: float = 1e-7) -> tuple[float, ...]:
    """d (bar . last rates) / d of the first entry of a parameter: by backward, tangent, and a difference towards more of it."""
    motion = jg.rollout(model, state, steps=STEPS)
    one = np.zeros_like(model.params[name])
    one.flat[0] = 1.0
    more = jg.rollout(model.replace({name: model.params[name] + h * one}), state, steps=STEPS)
    backward = (motion.backward(qd_bar=bar).params[name] * one).sum()
    tangent = motion.tangent(params={name: one})[1][-1] @ bar
    return backward, tangent, (more.last.qd - motion.last.qd) @ bar / h


@pytest.mark.parametrize(("cone", "form"), FORMS)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_no_friction(cone, form, sign):
    """A ball that slides without friction: with a little it slows down by g dt per step, and begins to turn."""
    model = ball(cone, form, friction=0.0)
    state = model.initial_state()
    state.qd[0] = sign
    bar = np.eye(model.nv)[0]
    found = three_ways(model, state, "pair.friction", bar)
    np.testing.assert_allclose(found, -sign * GRAVITY * DT * STEPS, rtol=1e-6)


@pytest.mark.parametrize("cone", [True, False], ids=["cone", "pyramid"])
def test_no_friction_askew(cone):
    """Across both tangents: a cone opposes the slip, a pyramid each tangent on its own."""
    model = ball(cone, "matrix", friction=0.0)
    state = model.initial_state()
    state.qd[:2] = (0.6, -0.8)
    expected = -GRAVITY * DT * STEPS * (np.array([0.6, -0.8]) if cone else np.array([1.0, -1.0]))
    for k in range(2):
        found = three_ways(model, state, "pair.friction", np.eye(model.nv)[k])
        np.testing.assert_allclose(found, expected[k], rtol=1e-6)


@pytest.mark.parametrize(("cone", "form"), FORMS)
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(("name", "axis", "inertia"), [("pair.torsion", 5, 0.05), ("pair.rolling", 3, 0.03)])
def test_no_resistance_to_turning(cone, form, name, axis, inertia, sign):
    """A ball that spins without torsion, or turns without rolling friction: with a little it slows down by m g dt / I."""
    other = "rolling" if name == "pair.torsion" else "torsion"
    model = ball(cone, form, friction=0.0, **{other: 0.01})
    state = model.initial_state()
    state.qd[axis] = 2.0 * sign
    found = three_ways(model, state, name, np.eye(model.nv)[axis])
    np.testing.assert_allclose(found, -2.0 * sign * GRAVITY * DT * STEPS / inertia, rtol=1e-6)


@pytest.mark.parametrize("rate", [1.5, -1.5, 0.0])
def test_no_dry_friction_in_a_joint(rate):
    """A wheel that turns freely: with a little dry friction it slows down by dt / I; one at rest stays at rest."""
    robot = jg.Description("wheel")
    robot.add_link("wheel", 1.0, (0, 0, 0), (0.02, 0, 0, 0.02, 0, 0.03))
    robot.add_joint("axle", "revolute", None, "wheel", axis=(0, 0, 1), friction=0.1)
    model = jg.World().add(robot).compile(dt=DT)
    model = model.replace({"joint.friction": np.zeros_like(model.params["joint.friction"])})
    state = jg.State(np.zeros(1), np.array([rate]))
    motion = jg.rollout(model, state, steps=STEPS)
    one = (
        np.asarray(model.topology.tree["constraint_frame"])[0] == np.arange(len(model.params["joint.friction"]))
    ).astype(float)
    expected = -np.sign(rate) * DT * STEPS / 0.03
    gradient = motion.backward(qd_bar=np.ones(1))
    np.testing.assert_allclose(gradient.params["joint.friction"] @ one, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        motion.tangent(params={"joint.friction": one})[1][-1, 0], expected, rtol=1e-9, atol=1e-12
    )
    # nothing holds it: a push is kept
    np.testing.assert_allclose(gradient.qd, 1.0)
    np.testing.assert_allclose(motion.tangent(qd=np.ones(1))[1][-1], 1.0)


def test_a_motor_between_bounds_that_have_met():
    """It cannot be moved by its control, even if that is just what the bounds allow; it can by the bounds."""
    robot = jg.Description("wheel")
    robot.add_link("wheel", 1.0, (0, 0, 0), (0.02, 0, 0, 0.02, 0, 0.03))
    robot.add_joint("axle", "revolute", None, "wheel", axis=(0, 0, 1))
    robot.add_actuator("motor", "axle", control_limit=(-1.0, 1.0))
    model = jg.World().add(robot).compile(dt=DT).replace({"actuator.control_limit": np.zeros((1, 2))})
    motion = jg.rollout(model, model.initial_state(), np.zeros((STEPS, 1)))
    assert not motion.backward(qd_bar=np.ones(1)).u.any()
    assert not motion.tangent(u=np.ones((STEPS, 1)))[1].any()


def test_lanes_with_and_without_friction():
    """An environment's gradient has the same bits whether a neighbour has friction or not."""
    model = ball(True, "matrix", friction=0.3, rolling=0.01)
    state = model.initial_state(4)
    state.qd[:] = np.random.default_rng(0).normal(size=state.qd.shape) * 0.3
    frictions = np.array([[0.3], [0.2], [0.4], [0.1]])
    bar = np.ones((4, model.nv))
    found = []
    for first in (0.3, 0.0):
        own = frictions.copy()
        own[0] = first
        grad = jg.rollout(model.replace({"pair.friction": own}), state, steps=STEPS).backward(qd_bar=bar)
        found.append([grad.q[1:], grad.qd[1:], grad.params["pair.friction"][1:]])
    assert all(np.array_equal(a, b) for a, b in zip(*found, strict=True))


# environments that diverge ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("speed", [100.0, 1e3, 1e20])
@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_lost_environment_has_no_part_in_what_is_shared(speed, share):
    """A robot thrown so fast that it leaves the finite numbers; on its way there its derivatives are 1e100 or infinite.
    The others' gradients and the sums over the batch are those of a batch without it, bit by bit."""
    model = jg.World().add(jg.zoo.laikago(touch="feet"), position=(0, 0, 0.4)).add_ground().compile(dt=1e-3)
    state, others = model.initial_state(4), [0, 1, 3]
    state.qd[:] = 0.1 * np.random.default_rng(0).normal(size=state.qd.shape)
    state.qd[2] = speed
    u, bar = np.zeros((100, 4, model.nu)), np.ones((4, model.nv))
    bar[2] = share
    motion = jg.rollout(model, state, u, on_nan="freeze")
    assert np.array_equal(motion.status >= 0, [False, False, True, False])
    gradient = motion.backward(qd_bar=bar)
    alone = jg.rollout(model, jg.State(state.q[others], state.qd[others]), u[:, others]).backward(qd_bar=bar[others])
    for name, value in alone.params.items():
        assert np.array_equal(gradient.params[name], value), name
    assert np.array_equal(gradient.q[others], alone.q) and np.array_equal(gradient.u[:, others], alone.u)
    assert np.isfinite(gradient.q).all() and np.isfinite(gradient.u).all()
    if not share:
        assert not gradient.q[2].any() and not gradient.qd[2].any() and not gradient.u[:, 2].any()


def test_a_lost_environment_with_its_own_parameters():
    model = jg.World().add(jg.zoo.laikago(touch="feet"), position=(0, 0, 0.4)).add_ground().compile(dt=1e-3)
    own = {name: np.repeat(model.params[name][None], 2, 0) for name in ("link.mass", "pair.friction")}
    state = model.initial_state(2)
    state.qd[1] = 1e20
    motion = jg.rollout(model.replace(own), state, steps=50, on_nan="freeze")
    bar = np.ones((2, model.nv))
    bar[1] = 0.0
    params = motion.backward(qd_bar=bar).params
    assert params["link.mass"][0].any() and not params["link.mass"][1].any() and not params["pair.friction"][1].any()
