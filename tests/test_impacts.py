"""Derivatives through bounces that move in time: slopes over distances that matter, where the exact ones are of one step."""

import numpy as np
import pytest

import jointgrad as jg
from jointgrad.optimize.ilqr import Plan, _jacobians
from jointgrad.optimize.shooting import Controls, Shooting, final_position
from jointgrad.reproduce import golf


@pytest.fixture(scope="module")
def dropped():
    """A ball with a motor that lifts it, above a ground from which it bounces; its height after 0.4 s."""
    robot = jg.Description("ball")
    robot.add_link("ball", 1.0, inertia=(0.01, 0.01, 0.01)).shapes.append(jg.Shape("sphere", (0.05,)))
    robot.add_joint("rail", "prismatic", None, "ball", axis=(0, 0, 1), initial=0.3, limit=(-np.inf, np.inf))
    robot.add_actuator("lift", "rail")
    world = jg.World(gravity=(0, 0, -9.81)).add(robot).add_ground()
    world.pair("ball", "ground", restitution=0.8)
    model = world.compile(dt=1e-3)
    return model, Controls(400, 1, knots=1), final_position([0], [0.0], model, "squares")


def test_finds_the_bounce(dropped):
    model, controls, loss = dropped
    motion = Shooting(model, model.initial_state(), controls, loss).motion(np.zeros(1))
    (one,) = jg.MovingImpacts().impacts(model, motion.q, motion.qd, motion.u)
    assert one.step == pytest.approx(1e3 * np.sqrt(2 * 0.25 / 9.81), abs=1)
    assert one.closing == pytest.approx(-np.sqrt(2 * 9.81 * 0.25), rel=0.01)
    np.testing.assert_allclose(one.slope, [1.0])


def test_slope_is_that_of_mechanics(dropped):
    """Height after the bounce, by the lift: falling from h with g - f, for T in all, and back up with 0.8 of the speed."""
    model, controls, loss = dropped

    def end(f, h=0.25, T=0.4, g=9.81, e=0.8):
        a = g - f
        fall = np.sqrt(2 * h / a)
        return e * a * fall * (T - fall) - 0.5 * a * (T - fall) ** 2

    true = (end(1e-4) - end(-1e-4)) / 2e-4
    moving = Shooting(model, model.initial_state(), controls, loss, gradient=jg.MovingImpacts())
    exact = Shooting(model, model.initial_state(), controls, loss)
    slopes = [p.jacobian(np.zeros((1, 1)))[1][0, 0, 0] for p in (moving, exact)]
    # in m/N: a lift all the way up and down would give T^2 / 2 = 0.08; steps of 1 ms are good for a hundredth of that
    assert slopes[0] == pytest.approx(true, abs=1e-3)
    assert abs(slopes[1] - true) > 1e-2


def test_slopes_of_a_strike_are_those_over_a_distance():
    """Golf: the exact slope is another one, and even of other sign, than that of a line through 41 strikes."""
    task = golf.task("paper")
    problem, exact = task.problem(None, moving_impacts=True), task.problem(None)
    x, along = np.zeros(problem.n), np.linspace(-0.6, 0.6, 41)
    (J,), (E,) = problem.jacobian(x[None])[1], exact.jacobian(x[None])[1]
    for joint in (0, 1):
        push = np.tile(np.eye(2)[joint], 1000)
        far = np.polyfit(along, problem.residuals(x + along[:, None] * push)[:, 1:], 1)[0]
        size = np.linalg.norm(far)
        assert np.linalg.norm((J @ push)[1:] - far) < 0.2 * size
        assert np.linalg.norm((E @ push)[1:] - far) > 0.5 * size


def test_jacobians_of_steps_say_the_same(dropped):
    """iLQR's A and B, multiplied out, give the slope of shooting."""
    model, controls, loss = dropped
    problem = Shooting(model, model.initial_state(), controls, loss, gradient=jg.MovingImpacts())
    motion = problem.motion(np.zeros(1))
    A, B = _jacobians(model, Plan(motion.q, motion.qd, motion.u, 0.0), jg.MovingImpacts())
    change = np.zeros(2)
    for k in range(400):
        change = A[k] @ change + B[k][:, 0]
    assert change[0] == pytest.approx(problem.jacobian(np.zeros((1, 1)))[1][0, 0, 0], rel=1e-6)


def test_without_bounces_nothing_changes():
    model = jg.zoo.cart_pole().compile(dt=2e-3)
    controls, loss = Controls(50, model.nu), final_position([0], [1.0], model)
    moving = Shooting(model, model.initial_state(), controls, loss, gradient=jg.MovingImpacts())
    plain = Shooting(model, model.initial_state(), controls, loss)
    x = np.random.default_rng(0).normal(size=(2, controls.n))
    assert np.array_equal(moving.gradient(x)[1], plain.gradient(x)[1])


# the same meaning from every door -----------------------------------------------------------------------------------------


def thrown(gradient, steps: int = 400, **options) -> jg.Trajectory:
    """Three balls from other heights, each under a lift and an outside force of its own: they bounce at other times, one never."""
    robot = jg.Description("ball")
    robot.add_link("ball", 1.0, inertia=(0.01, 0.01, 0.01)).shapes.append(jg.Shape("sphere", (0.05,)))
    robot.add_joint("rail", "prismatic", None, "ball", axis=(0, 0, 1), limit=(-np.inf, np.inf))
    robot.add_actuator("lift", "rail")
    model = jg.World().add(robot).add_ground(restitution=0.8).compile(dt=1e-3)
    u = 0.3 * np.random.default_rng(0).normal(size=(steps, 3, 1))
    state = jg.State(np.array([[0.3], [0.2], [3.0]]), np.zeros((3, 1)))
    force = np.zeros((3, model.n_links, 6))
    force[:, model.link("ball"), 2] = 0.1, -0.2, 0.0
    return jg.rollout(model, state, u, force=force, outputs=("link.position",), gradient=gradient, **options)


def directions(motion: jg.Trajectory) -> dict:
    rng = np.random.default_rng(1)
    shapes = {"q": motion.q[0], "qd": motion.qd[0], "u": motion.u, "force": motion.force}
    return {name: rng.normal(size=x.shape) for name, x in shapes.items()}


@pytest.mark.parametrize("memory", [None, "8 kB"])
def test_backward_and_tangent_agree(memory):
    motion, rng = thrown(jg.MovingImpacts(), memory=memory), np.random.default_rng(2)
    q_bar, bar = rng.normal(size=motion.q.shape), rng.normal(size=motion.outputs["link.position"].shape)
    dots = directions(motion)
    params = {"pair.restitution": np.full(len(motion.model.params["pair.restitution"]), 0.7)}
    dq, _, seen = motion.tangent(**dots, params=params, outputs=("link.position",))
    back = motion.backward(q_bar, bars={"link.position": bar})
    right = sum((getattr(back, name) * dot).sum() for name, dot in dots.items())
    right += (back.params["pair.restitution"] * params["pair.restitution"]).sum()
    left = (dq * q_bar).sum() + (seen["link.position"] * bar).sum()
    np.testing.assert_allclose(left, right, rtol=1e-9)
    exact = thrown(jg.Exact(), memory=memory).backward(q_bar, bars={"link.position": bar})
    assert not np.allclose(exact.q[:2], back.q[:2], rtol=1e-2)
    np.testing.assert_allclose(exact.q[2], back.q[2], rtol=1e-12)  # which met nothing


def test_a_batch_is_its_environments():
    """Each bounces at its own times, whatever the others do."""
    motion, q_bar = thrown(jg.MovingImpacts()), np.ones((3, 1))
    back = motion.backward(q_bar)
    for env in range(3):
        state = jg.State(motion.q[0, env], motion.qd[0, env])
        alone = jg.rollout(motion.model, state, motion.u[:, env], force=motion.force[env], gradient=jg.MovingImpacts())
        own = alone.backward(q_bar[env])
        np.testing.assert_allclose(own.q, back.q[env], rtol=1e-12)
        np.testing.assert_allclose(own.u, back.u[:, env], rtol=1e-12)
        np.testing.assert_allclose(own.force, back.force[env], rtol=1e-12)


def test_slope_by_the_height_is_that_of_mechanics():
    """From h, e = 0.8, after T: e v (T - t) - g (T - t)^2 / 2 with v = g t and t = sqrt(2 h / g)."""
    motion = thrown(jg.MovingImpacts())
    model = motion.model

    def end(h, T=0.4, g=9.81, e=0.8):
        t = np.sqrt(2 * h / g)
        return e * g * t * (T - t) - 0.5 * g * (T - t) ** 2

    true = (end(0.25 + 1e-6) - end(0.25 - 1e-6)) / 2e-6
    state = jg.State(np.array([0.3]), np.zeros(1))
    found = jg.rollout(model, state, steps=400, gradient=jg.MovingImpacts()).backward(np.ones(1)).q[0]
    assert found == pytest.approx(true, rel=0.01)


def test_linearize_at_a_bounce():
    motion = thrown(jg.MovingImpacts())
    k = int(np.argmax(np.abs(np.diff(motion.qd[:, 0, 0]))))
    state, u, force = jg.State(motion.q[k, :1], motion.qd[k, :1]), motion.u[k, :1], motion.force[:1]
    (A,), _ = jg.linearize(motion.model, state, u, force, gradient=jg.MovingImpacts())
    (E,), _ = jg.linearize(motion.model, state, u, force)
    # the height at the meeting moves the meeting: what falls at v and parts at -0.8 v is higher by -0.8 of it afterwards
    assert A[0, 0] == pytest.approx(-0.8, abs=0.02)
    assert E[0, 0] > 0.7


def test_torch_and_jax_hand_it_through():
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    import jointgrad.jax
    import jointgrad.torch

    motion = thrown(jg.MovingImpacts())
    given = motion.q[0].copy(), motion.qd[0].copy(), motion.u.copy()
    truth = (
        jg.rollout(motion.model, jg.State(*given[:2]), given[2], gradient=jg.MovingImpacts())
        .backward(np.ones((3, 1)))
        .u
    )
    tensors = [torch.tensor(x, requires_grad=True) for x in given]
    jointgrad.torch.Simulator(motion.model).rollout(*tensors, gradient=jg.MovingImpacts()).q[-1].sum().backward()
    np.testing.assert_allclose(tensors[2].grad.numpy(), truth, rtol=1e-12)
    with jax.enable_x64(True):
        loss = lambda u: jointgrad.jax.rollout(motion.model, *given[:2], u, gradient=jg.MovingImpacts()).q[-1].sum()  # noqa: E731
        np.testing.assert_allclose(np.asarray(jax.grad(loss)(given[2])), truth, rtol=1e-12)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("steps", [0, 1, 2])
def test_motions_too_short_to_bounce(steps):
    motion = thrown(jg.MovingImpacts(), steps=steps)
    np.testing.assert_allclose(motion.backward(np.ones((3, 1))).q, 1.0)


def test_a_jolt_is_no_impact():
    """A motor that pulls all at once: nothing meets."""
    motion = thrown(jg.MovingImpacts(), steps=100)
    u = motion.u.copy()
    u[50] = 1e3
    start = jg.State(motion.q[0].copy() + 1.0, motion.qd[0].copy())
    both = [
        jg.rollout(motion.model, start, u, gradient=g).backward(np.ones((3, 1))).u
        for g in (jg.MovingImpacts(), jg.Exact())
    ]
    assert np.array_equal(*both)


def test_a_speed_that_is_none_is_refused():
    with pytest.raises(jg.InputError, match="slowest"):
        jg.MovingImpacts(slowest=float("nan"))


def test_another_meaning_is_refused():
    with pytest.raises(jg.InputError, match="gradient must be"):
        thrown("exact", steps=2)
