"""Derivatives through bounces that move in time: slopes over distances that matter, where the exact ones are of one step."""

import numpy as np
import pytest

import jointgrad as jg
from jointgrad.optimize.ilqr import Plan, _jacobians
from jointgrad.optimize.impacts import impacts_of
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
    (one,) = impacts_of(model, motion.q, motion.qd, motion.u)
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
    moving = Shooting(model, model.initial_state(), controls, loss, moving_impacts=True)
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
    problem = Shooting(model, model.initial_state(), controls, loss, moving_impacts=True)
    motion = problem.motion(np.zeros(1))
    A, B = _jacobians(model, Plan(motion.q, motion.qd, motion.u, 0.0), True)
    change = np.zeros(2)
    for k in range(400):
        change = A[k] @ change + B[k][:, 0]
    assert change[0] == pytest.approx(problem.jacobian(np.zeros((1, 1)))[1][0, 0, 0], rel=1e-6)


def test_without_bounces_nothing_changes():
    model = jg.zoo.cart_pole().compile(dt=2e-3)
    controls, loss = Controls(50, model.nu), final_position([0], [1.0], model)
    moving = Shooting(model, model.initial_state(), controls, loss, moving_impacts=True)
    plain = Shooting(model, model.initial_state(), controls, loss)
    x = np.random.default_rng(0).normal(size=(2, controls.n))
    assert np.array_equal(moving.gradient(x)[1], plain.gradient(x)[1])
