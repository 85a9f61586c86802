"""Meanings of the gradient: each against what it is defined as, each from every door, and where they are right and where not."""

from dataclasses import replace

import numpy as np
import pytest

import jointgrad as jg
from jointgrad.engine.gradients.truncated import steepness
from jointgrad.reproduce import meanings

MEANINGS = {
    "moving": jg.MovingImpacts(),
    "smoothed": jg.Smoothed(0.02),
    "truncated": jg.Truncated(150.0),
    "all cut": jg.Truncated(0.5),
}


def ball(position=(0, 0, 0.3), mass=1.0) -> jg.Description:
    robot = jg.Description("ball", base="free")
    robot.add_link("ball", mass, inertia=(4e-3 * mass,) * 3).shapes.append(jg.Shape("sphere", (0.1,)))
    return robot


@pytest.fixture(scope="module")
def landing() -> jg.Model:
    return jg.World().add(ball(), position=(0, 0, 0.3)).add_ground(friction=0.5).compile(dt=1e-3)


def thrown(model: jg.Model, meaning, steps: int = 300, lift=(0.0, 0.02, 0.05), **options) -> jg.Trajectory:
    """Three balls that move along while they fall from other heights."""
    start = model.initial_state(len(lift))
    start.q[:, 2] += lift
    start.qd[:, 0] = 1.0
    return jg.rollout(model, start, steps=steps, gradient=meaning, **options)


# landings that stick -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("height", [0.1, 0.2, 0.22])
def test_a_landing_moves_in_time(landing, height):
    """Flying for longer before friction takes 2/7 of the speed: 2/7 v / sqrt(2 g h) farther for each metre higher."""
    motion = thrown(landing, jg.MovingImpacts(), 600, lift=(height - 0.2,))
    bar = np.eye(7)[:1]
    true = 2 / 7 / np.sqrt(2 * 9.81 * height)
    assert motion.backward(bar).q[0, 2] == pytest.approx(true, rel=0.02)
    assert abs(thrown(landing, jg.Exact(), 600, lift=(height - 0.2,)).backward(bar).q[0, 2] - true) > 0.3 * true


# the same linear map, both ways and from every door ------------------------------------------------------------------------


@pytest.mark.parametrize("name", MEANINGS)
@pytest.mark.parametrize("memory", [None, "20 kB"])
def test_backward_and_tangent_agree(landing, name, memory):
    motion = thrown(landing, MEANINGS[name], 150, outputs=("link.position",), memory=memory)
    rng = np.random.default_rng(3)
    bars = [rng.normal(size=x.shape) for x in (motion.q, motion.qd, motion.outputs["link.position"])]
    dots = {"q": rng.normal(size=(3, 7)), "qd": rng.normal(size=(3, 6))}
    friction = {"pair.friction": np.ones(1)}
    dq, dqd, seen = motion.tangent(**dots, params=friction, outputs=("link.position",))
    back = motion.backward(bars[0], bars[1], {"link.position": bars[2]})
    left = sum((x * bar).sum() for x, bar in zip((dq, dqd, seen["link.position"]), bars, strict=True))
    right = (back.q * dots["q"]).sum() + (back.qd * dots["qd"]).sum() + back.params["pair.friction"].sum()
    np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", [*MEANINGS, "randomised"])
def test_a_batch_is_its_environments(landing, name):
    meaning = MEANINGS.get(name, jg.Randomised(0.01, 8))
    bar = np.ones((3, 7))
    whole = thrown(landing, meaning).backward(bar)
    for env, lift in enumerate((0.0, 0.02, 0.05)):
        alone = thrown(landing, meaning, lift=(lift,)).backward(bar[:1])
        assert np.array_equal(alone.q[0], whole.q[env]) and np.array_equal(alone.qd[0], whole.qd[env])


@pytest.mark.parametrize("meaning", [jg.Smoothed(0.05), jg.Randomised({"u": 0.5}, 8), jg.Truncated(2.0)])
def test_torch_and_jax_hand_it_through(meaning):
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    import jointgrad.jax
    import jointgrad.torch

    model = jg.zoo.cart_pole().compile(dt=2e-3)
    rng = np.random.default_rng(0)
    q, qd, u = rng.normal(size=(2, 2)), rng.normal(size=(2, 2)), rng.normal(size=(20, 2, 1))
    truth = jg.rollout(model, jg.State(q, qd), u, gradient=meaning).backward(np.ones((2, 2))).u
    tensors = [torch.tensor(x, requires_grad=True) for x in (q, qd, u)]
    jointgrad.torch.Simulator(model).rollout(*tensors, gradient=meaning).q[-1].sum().backward()
    np.testing.assert_allclose(tensors[2].grad.numpy(), truth, rtol=1e-12)
    with jax.enable_x64(True):
        loss = lambda u: jointgrad.jax.rollout(model, q, qd, u, gradient=meaning).q[-1].sum()  # noqa: E731
        np.testing.assert_allclose(np.asarray(jax.grad(loss)(u)), truth, rtol=1e-12)


@pytest.mark.parametrize("meaning", [jg.Smoothed(0.05), jg.Randomised(0.01, 8), jg.Truncated(2.0)])
@pytest.mark.parametrize("batch, steps", [(0, 3), (1, 0), (1, 1)])
def test_nothing_to_speak_of(landing, meaning, batch, steps):
    motion = jg.rollout(landing, landing.initial_state(batch), steps=steps, gradient=meaning)
    found = motion.backward(np.ones((batch, 7)))
    assert found.q.shape == (batch, 7) and np.isfinite(found.q).all()


# smoothed -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("height, speed", [(0.115, 0.0), (0.0999, 0.5), (0.105, 1.0), (0.13, 0.0)])
def test_smoothed_is_the_derivative_of_the_softer_step(landing, height, speed):
    """By central differences of one step of the surrogate, at a state that it did not come to by itself."""
    meaning, start = jg.Smoothed(0.02), landing.initial_state(1)
    start.q[:, 2], start.qd[:, 0], start.qd[:, 2] = height, speed, -speed
    soft = meaning.surrogate(landing)
    (A,), _ = jg.linearize(landing, start, gradient=meaning)
    h = 1e-6
    for column in (0, 1, 2, 6, 7, 8):
        q = h * np.eye(13)[column if column < 3 else column + 1]
        ends = [jg.step(soft, jg.State(start.q + s * q[:7], start.qd + s * q[7:])).qd[0] for s in (1.0, -1.0)]
        np.testing.assert_allclose(A[6:, column], (ends[0] - ends[1]) / (2 * h), rtol=1e-5, atol=1e-6)
    assert np.abs(A[8, 2]) > 1e-3 or height > 0.12  # it feels the ground before it touches, within the width alone


def test_the_softer_world_carries_the_weight_where_it_touches(landing):
    soft, start = jg.Smoothed(0.02).surrogate(landing), landing.initial_state()
    start.q[2] = 0.1
    np.testing.assert_allclose(jg.step(soft, start).qd, 0.0, atol=1e-12)


def test_smoothed_is_a_product_of_softer_steps(landing):
    """Backward through a motion is the Jacobians of the softer model at its states, multiplied."""
    meaning = jg.Smoothed(0.02)
    motion = thrown(landing, meaning, 60, lift=(-0.19,))
    A, _ = jg.linearize(landing, jg.State(motion.q[:-1, 0], motion.qd[:-1, 0]), gradient=meaning)
    row = np.eye(12)[0]
    for one in A[::-1]:
        row = row @ one
    back = motion.backward(np.eye(7)[:1])
    np.testing.assert_allclose(back.qd[0], row[6:], rtol=1e-6, atol=1e-9)
    assert (
        np.abs(back.qd[0, 0] - thrown(landing, jg.Exact(), 60, lift=(-0.19,)).backward(np.eye(7)[:1]).qd[0, 0]) > 1e-4
    )


def test_a_push_that_sticks_is_felt():
    """A box that is pushed too weakly to move: exactly nothing, and softly that a stronger push moves it along."""
    robot = jg.Description("box", base="free")
    robot.add_link("box", 1.0, inertia=(7e-3,) * 3).shapes.append(jg.Shape("box", (0.1, 0.1, 0.1)))
    model = jg.World().add(robot, position=(0, 0, 0.1)).add_ground(friction=0.5).compile(dt=2e-3)
    force = np.zeros((1, model.n_links, 6))
    force[0, model.link("box"), 0] = 2.0
    slopes = []
    for meaning in (jg.Exact(), jg.Smoothed(0.01)):
        motion = jg.rollout(model, model.initial_state(1), steps=100, force=force, gradient=meaning)
        slopes.append(motion.backward(np.eye(7)[:1]).force[0, model.link("box"), 0])
    assert abs(slopes[0]) < 1e-6 and slopes[1] > 1e-4


def test_parameters_of_the_user_alone(landing):
    back = thrown(landing, jg.Smoothed(0.02)).backward(np.ones((3, 7)))
    assert back.params["pair.friction"].any() and back.params["link.mass"].any()
    for name in ("stiffness", "damping", "exponent", "static_friction", "transition", "margin"):
        assert not back.params[f"pair.{name}"].any(), name


def test_spring_with_a_margin_begins_there():
    """Its force: a parabola from the margin on, the straight law from the same depth on; derivatives by central differences."""
    law = jg.Spring(stiffness=1e3, damping=0.0, exponent=1.0, margin=0.02)
    model = jg.World(gravity=(0, 0, 0)).add(ball()).add_ground().compile(dt=1e-3, contact=law)
    start = model.initial_state(5)
    gap = np.array([0.021, 0.01, 0.0, -0.01, -0.03])
    start.q[:, 2] = 0.1 + gap
    pressed = np.array([0.0, 0.01**2, 0.02**2, 0.03**2, 4 * 0.02 * 0.03]) / (4 * 0.02)
    np.testing.assert_allclose(jg.step(model, start).qd[:, 2], pressed, atol=1e-12)
    margin, h = model.params["pair.margin"], 1e-6
    ends = [jg.step(model.replace({"pair.margin": margin + s * h}), start).qd[:, 2].sum() for s in (1, -1)]
    found = jg.rollout(model, start, steps=1).backward(qd_bar=np.tile(np.eye(6)[2], (5, 1))).params["pair.margin"]
    np.testing.assert_allclose(found.sum(), (ends[0] - ends[1]) / (2 * h), rtol=1e-6)


# randomised ---------------------------------------------------------------------------------------------------------------


def test_randomised_sees_a_jump():
    """A ball that bounces without loss: exactly +1 by its height, truly -1. The mean moves as mechanics says, and the report tells
    that the first order had little part in it."""
    robot = jg.Description("ball")
    robot.add_link("ball", 1.0, inertia=(0.01,) * 3).shapes.append(jg.Shape("sphere", (0.1,)))
    robot.add_joint("rail", "prismatic", None, "ball", axis=(0, 0, 1), initial=0.3003)
    model = jg.World(gravity=(0, 0, 0)).add(robot).add_ground(restitution=1.0).compile(dt=1e-3)
    start = jg.State(model.initial_state().q, np.array([-1.0]))
    found = jg.rollout(model, start, steps=400, gradient=jg.Randomised({"q": 5e-3}, 256)).backward(np.ones(1))
    assert found.q[0] == pytest.approx(-1.0, abs=0.3)
    assert found.report["first_order"]["q"] < 0.1 and found.report["lost"] == 0
    assert jg.rollout(model, start, steps=400).backward(np.ones(1)).q[0] == pytest.approx(1.0)


def test_randomised_is_exact_where_all_is_linear():
    """A mass on a rail: nothing but noise to add, and there is none of it."""
    robot = jg.Description("mass")
    robot.add_link("mass", 2.0, inertia=(0.01,) * 3)
    robot.add_joint("rail", "prismatic", None, "mass", axis=(1, 0, 0))
    robot.add_actuator("motor", "rail")
    model = jg.World().add(robot).compile(dt=1e-2)
    u = np.ones((30, 2, 1))
    bars = np.ones((2, 1)), np.ones((2, 1))
    exact = jg.rollout(model, model.initial_state(2), u).backward(*bars)
    for hold, held in ((1, 1), (7, 1), (1, 5)):
        motion = jg.rollout(
            model, model.initial_state(2), u[::held], hold=held, gradient=jg.Randomised(0.1, 8, hold=hold)
        )
        found = motion.backward(*bars)
        np.testing.assert_allclose(found.q, exact.q, rtol=1e-9)
        np.testing.assert_allclose(found.u, exact.u.reshape(-1, held, 2, 1).sum(1), rtol=1e-9)
        dq, _ = motion.tangent(u=np.ones_like(u[::held]))
        assert np.isfinite(dq).all()


@pytest.mark.parametrize(
    "wrong", [{"sigma": 0.0}, {"sigma": {"mass": 1.0}}, {"sigma": 1.0, "samples": 5}, {"sigma": "much"}]
)
def test_randomised_refuses(wrong):
    with pytest.raises(jg.InputError):
        jg.Randomised(**wrong)


# truncated ----------------------------------------------------------------------------------------------------------------


def test_steepness_is_the_norm_of_the_jacobian(landing):
    motion = thrown(landing, jg.Exact(), 250)
    found = steepness(motion)
    for k in (0, 120, 249):
        A, _ = jg.linearize(landing, jg.State(motion.q[k], motion.qd[k]))
        np.testing.assert_allclose(found[k], np.linalg.norm(A, 2, axis=(1, 2)), rtol=0.1)
    assert found[0].max() < 2 and found[-1].min() > 150  # in flight, and at rest


def test_truncated_forgets_what_was_before(landing):
    motion = thrown(landing, jg.Truncated(150.0), 250)
    cut = steepness(motion) > 150
    last = max(np.flatnonzero(cut[:, 0]))
    back = motion.backward(np.ones((3, 7)))
    assert not back.q.any() and np.array_equal(back.report["cut"], cut.sum(0))
    start = jg.State(motion.q[last + 1, :1].copy(), motion.qd[last + 1, :1].copy())
    short = jg.rollout(landing, start, steps=250 - last - 1) if last < 249 else None
    assert short is None or short.backward(np.ones((1, 7))).q.any()


@pytest.mark.parametrize(
    "make", [lambda: jg.Smoothed(0.0), lambda: jg.Truncated(float("nan")), lambda: jg.Smoothed("1 cm")]
)
def test_numbers_that_are_none_are_refused(make):
    with pytest.raises(jg.InputError):
        make()


# problems that the exact gradient cannot solve --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["throw", "push", "bounce"])
def test_the_right_meaning_solves_what_the_exact_one_cannot(name):
    """Four of the starts of `jointgrad reproduce meanings`, fewer steps."""
    task = replace(meanings.TASKS[name](), iterations=75)
    solved = {one: meanings.follow(task, one, starts=4).solved(task.solved) for one in ("exact", task.right)}
    assert solved == {"exact": 0, task.right: 4}


def test_an_implicit_law_has_every_meaning():
    """Its contacts are springs in the softer world too, and its landings move."""
    model = (
        jg.World().add(ball(), position=(0, 0, 0.3)).add_ground(friction=0.5).compile(dt=1e-3, contact=jg.Implicit())
    )
    true, bar = 2 / 7 / np.sqrt(2 * 9.81 * 0.2), np.eye(7)[:1]
    found = {m: thrown(model, m, 600, lift=(0.0,)).backward(bar).q[0, 2] for m in (jg.Exact(), jg.MovingImpacts())}
    assert abs(found[jg.MovingImpacts()] - true) < 0.25 * true < 0.25 * abs(found[jg.Exact()] - true)
    soft, start = jg.Smoothed(0.02).surrogate(model), model.initial_state()
    start.q[2] = 0.1
    np.testing.assert_allclose(jg.step(soft, start).qd, 0.0, atol=1e-12)
