"""Optimisation: solvers against closed forms, shooting against differences, iLQR against scipy on the same problem."""

import numpy as np
import pytest
from scipy.optimize import Bounds, minimize

import jointgrad as jg
from jointgrad.optimize import shooting
from jointgrad.optimize.ilqr import Quadratic, box_newton, difference, ilqr
from jointgrad.optimize.progress import Stop
from jointgrad.optimize.search import cma_es, golden_section, nelder_mead
from jointgrad.optimize.shooting import Controls, Loss, Shooting, final_position, optimise, spline_basis
from jointgrad.optimize.solvers import SGD, Adam, Tried, descend, gauss_newton, lbfgs

STEPS = 40


class Valley:
    """The function of Rosenbrock: half the sum of squares of 10 (y - x^2) and 1 - x; its minimum is at (1, 1)."""

    n = 2

    def residuals(self, x):
        return np.stack([10 * (x[:, 1] - x[:, 0] ** 2), 1 - x[:, 0]], axis=-1)

    def jacobian(self, x):
        one = np.ones(len(x))
        J = np.stack([np.stack([-20 * x[:, 0], 10 * one], -1), np.stack([-one, 0 * one], -1)], axis=1)
        return self.residuals(x), J

    def tried(self, x):
        return Tried(self.residuals(x), lambda rows: (self.jacobian(x[list(rows)])[1], 0, len(rows)))

    def value(self, x):
        return 0.5 * (self.residuals(x) ** 2).sum(-1)

    def gradient(self, x):
        r, J = self.jacobian(x)
        return self.value(x), np.einsum("bm,bmn->bn", r, J)


START = np.array([-1.2, 1.0])


@pytest.mark.parametrize(
    "solve, tolerance",
    [
        (lambda f, stop: descend(f, START, Adam(0.05), stop), 1e-2),
        (lambda f, stop: descend(f, START, SGD(1e-3, momentum=0.9), stop), 1e-2),
        (lambda f, stop: lbfgs(f, START, stop), 1e-5),
        (lambda f, stop: lbfgs(f, START, stop, first_step=0.1), 1e-5),
        (lambda f, stop: gauss_newton(f, START, stop), 1e-6),
        (lambda f, stop: cma_es(f, START, 0.3, stop), 1e-3),
        (lambda f, stop: nelder_mead(f, START, stop), 1e-4),
    ],
)
def test_solvers_find_the_valley_floor(solve, tolerance):
    found = solve(Valley(), Stop(iterations=3000, target=1e-12))
    assert found.x == pytest.approx([1, 1], abs=tolerance)
    assert len(found.history) > 3 and np.all(np.diff(found.history.best) <= 0)
    assert np.all(np.diff(found.history.evaluations) > 0)


@pytest.mark.parametrize("method", ["adam", "lbfgs", "gauss_newton", "cma"])
def test_bounds_are_kept(method):
    # with x at most 0.5 the minimum is at (0.5, 0.25)
    settings = {"adam": {"rate": 0.02}, "cma": {"step": 0.3}}.get(method, {})
    found = optimise(Valley(), START, method, Stop(iterations=1500), (-2.0, [0.5, 2.0]), **settings)
    assert found.x == pytest.approx([0.5, 0.25], abs=1e-2)
    assert found.x[0] <= 0.5


def test_golden_section():
    found = golden_section(type("F", (), {"n": 1, "value": lambda self, x: (x[:, 0] - 0.3) ** 2})(), 0.0, 2.0)
    assert found.x[0] == pytest.approx(0.3, abs=1e-6)


def test_several_starts_in_one_batch():
    found = descend(Valley(), [[-1.2, 1.0], [1.1, 1.2]], Adam(0.01), Stop(iterations=20))
    alone = descend(Valley(), [1.1, 1.2], Adam(0.01), Stop(iterations=20))
    assert found.x == pytest.approx(alone.x)
    assert found.history.evaluations[-1] == 42


def test_searches_end_when_told():
    assert descend(Valley(), START, Adam(0.05), Stop(target=4.0)).reason == "target"
    assert descend(Valley(), START, Adam(0.05), Stop(iterations=3)).history.evaluations[-1] == 4
    assert descend(Valley(), [1.0, 1.0], SGD(1e-9), Stop(patience=5)).reason == "stalled"
    assert descend(Valley(), START, Adam(0.05), callback=lambda p: p.iteration == 2).reason == "callback"


@pytest.mark.parametrize("method", ["sgd", "lbfgs", "gauss_newton", "cma"])
def test_interrupt_leaves_the_best(method):
    def press(progress):
        if progress.iteration == 3:
            raise KeyboardInterrupt

    settings = {"sgd": {"rate": 1e-3}, "cma": {"step": 0.3}}.get(method, {})
    found = optimise(Valley(), START, method, callback=press, **settings)
    assert found.is_interrupted
    assert found.loss == pytest.approx(Valley().value(found.x[None])[0])
    assert found.loss < Valley().value(START[None])[0]


def test_splines_go_through_their_knots():
    basis = spline_basis(2001, 6)
    at = (np.arange(2001) + 0.5) / 2001
    assert basis @ np.ones(6) == pytest.approx(np.ones(2001))
    assert basis @ np.linspace(0, 1, 6) == pytest.approx(at)
    assert basis[1000] @ np.sin(np.linspace(0, 1, 6)) == pytest.approx(np.sin(0.5), abs=1e-3)


@pytest.mark.parametrize(
    "options",
    [{}, {"knots": 5}, {"hold": 7}, {"actuators": [1], "scale": 3.0, "last": 30}, {"brake": 4.0},
     {"brake": 2.5, "knots": 6, "last": 33}],
)  # fmt: skip
def test_controls_and_their_way_back_agree(options):
    controls, rng = Controls(STEPS, 2, base=np.ones((STEPS, 2)), **options), np.random.default_rng(0)
    x, dx, u_bar = rng.normal(size=(3, controls.n)), rng.normal(size=(3, controls.n)), rng.normal(size=(STEPS, 3, 2))
    du = controls.expand(x + dx) - controls.expand(x)
    assert (du * u_bar).sum() == pytest.approx((dx * controls.pull(u_bar)).sum())
    assert controls.project(controls.expand(x)[:, 0]) == pytest.approx(x[0])


def test_a_braked_push_leaves_no_speed():
    """A push of 1 for one step, and all that it does afterwards: together nothing, half of it taken back after 3 ln 2 steps."""
    controls = Controls(200, 1, brake=3.0)
    u = controls.expand(np.eye(controls.n)[:1])[:, 0, 0]
    speed = np.cumsum(u)
    assert u[0] == 1.0 and np.all(u[1:] < 0)
    assert speed == pytest.approx(np.exp(-np.arange(200) / 3.0))
    with pytest.raises(jg.InputError, match="brake must be"):
        Controls(200, 1, brake=0.0)


# motions --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def arm():
    """Two links under gravity; nothing touches."""
    world = jg.World(gravity=(0, 0, -9.81))
    world.add(jg.zoo.pendulum(2, damping=0.1))
    return world.compile(dt=0.02, contact=None)


@pytest.fixture(scope="module")
def reach(arm):
    loss = final_position([0, 1], [1.0, -0.5], arm, kind="squares")
    return Shooting(arm, arm.initial_state(), Controls(STEPS, 2, knots=6), loss)


def test_gradient_is_that_of_differences(reach):
    x, dx = np.random.default_rng(1).normal(size=(2, 1, reach.n))
    _, x_bar = reach.gradient(x)
    numeric = (reach.value(x + 1e-5 * dx) - reach.value(x - 1e-5 * dx)) / 2e-5
    assert (x_bar * dx).sum() == pytest.approx(numeric[0], rel=1e-6)


def test_jacobian_is_that_of_differences(reach):
    x, dx = np.random.default_rng(2).normal(size=(2, 1, reach.n))
    _, J = reach.jacobian(x)
    numeric = (reach.residuals(x + 1e-5 * dx) - reach.residuals(x - 1e-5 * dx)) / 2e-5
    assert J[0] @ dx[0] == pytest.approx(numeric[0], rel=1e-6)


@pytest.mark.parametrize("method, most", [("adam", 150), ("lbfgs", 80), ("gauss_newton", 15)])
def test_shooting_reaches(reach, method, most):
    settings = {"adam": {"rate": 1.0}}.get(method, {})
    found = optimise(reach, np.zeros(reach.n), method, Stop(iterations=most, target=1e-4), (-20, 20), **settings)
    assert found.reason == "target"
    assert reach.motion(found.x).last.q == pytest.approx([1.0, -0.5], abs=0.03)


def test_lost_motions_count_as_infinitely_bad(arm):
    problem = Shooting(arm, arm.initial_state(), Controls(STEPS, 2), final_position([0], [1.0], arm))
    x = np.zeros((2, problem.n))
    x[1] = 1e300
    losses, x_bar = problem.gradient(x)
    assert np.isfinite(losses[0]) and np.isinf(losses[1])
    assert np.isfinite(x_bar).all()


def test_wrong_input_is_named(arm, reach):
    with pytest.raises(jg.InputError, match="x0 must have shape"):
        optimise(reach, np.zeros(3), rate=0.1)
    with pytest.raises(jg.InputError, match="there is no method"):
        optimise(reach, np.zeros(reach.n), "newton")
    with pytest.raises(jg.InputError, match="residuals"):
        plain = Shooting(arm, arm.initial_state(), Controls(STEPS, 2), lambda m: Loss(np.zeros(len(m.status))))
        optimise(plain, np.zeros(plain.n), "gauss_newton")
    assert "adam" in shooting.METHODS


# iLQR -----------------------------------------------------------------------------------------------------------------


def test_box_newton_is_the_bounded_minimum():
    rng = np.random.default_rng(3)
    for _ in range(20):
        M, g = rng.normal(size=(5, 5)), 3 * rng.normal(size=5)
        H, low, high = M @ M.T + 0.1 * np.eye(5), -rng.uniform(0, 1, 5), rng.uniform(0, 1, 5)
        d, free = box_newton(H, g, low, high)
        truth = minimize(lambda d, H=H, g=g: d @ g + d @ H @ d / 2, np.zeros(5), bounds=Bounds(low, high), tol=1e-14).x
        assert d == pytest.approx(truth, abs=1e-5)
        assert np.all((d[free] > low[free] - 1e-12) & (d[free] < high[free] + 1e-12))


def cost_and_gradient(model, cost, u, shape):
    """The same cost by a rollout and its reverse: nothing of iLQR in it."""
    u = u.reshape(shape)
    motion = jg.rollout(model, model.initial_state(), u)
    target, wx, wf = cost.target, cost.state, cost.final_state
    off = np.concatenate([motion.q - target.q, motion.qd - target.qd], axis=-1)
    weights = np.concatenate([np.repeat(wx[None], len(u), 0), wf[None]])
    bar = weights * off
    gradient = motion.backward(q_bar=bar[:, :2].copy(), qd_bar=bar[:, 2:].copy(), wrt=("u",)).u + cost.control * u
    return 0.5 * ((weights * off**2).sum() + cost.control * (u**2).sum()), gradient.ravel()


@pytest.mark.parametrize("limit", [np.inf, 6.0])
def test_ilqr_finds_the_cost_that_scipy_finds(arm, limit):
    target = jg.State(np.array([1.2, -0.4]), np.zeros(2))
    cost = Quadratic(arm, target, np.full(4, 0.1), np.array([50.0, 50.0, 5.0, 5.0]), 1e-2)
    # the second motor is the weaker one
    high = np.array([3.0 * limit, limit])
    found = ilqr(arm, arm.initial_state(), cost, np.zeros((STEPS, 2)), (-high, high), Stop(iterations=200))
    rest = found.extra["plan"].u.ravel() * 0.9
    everywhere = np.tile(high, STEPS)
    truth = minimize(
        lambda u: cost_and_gradient(arm, cost, u, (STEPS, 2)), rest, jac=True, method="L-BFGS-B",
        bounds=Bounds(-everywhere, everywhere), options={"ftol": 1e-16, "gtol": 1e-10, "maxiter": 5000, "maxfun": 10000},
    )  # fmt: skip
    assert found.loss == pytest.approx(truth.fun, rel=1e-6)
    assert np.all(np.abs(found.extra["plan"].u) <= high)
    assert len(found.history) < 60
    if np.isfinite(limit):
        assert np.isclose(np.abs(found.extra["plan"].u[:, 1]), limit).any()  # or the limit would not have been tested


def test_difference_of_states_is_the_turn_between_them():
    model = jg.zoo.laikago(touch="feet").compile()
    rng, start = np.random.default_rng(4), model.initial_state()
    q, turn = start.q.copy(), np.array([0.3, -0.2, 0.5])
    half = np.linalg.norm(turn) / 2
    dw, dv = np.cos(half), np.sin(half) * turn / (2 * half)
    w, v = 0.5, np.array([0.5, 0.5, -0.5])
    q[3:7] = w, *v
    other = q.copy()
    other[3:7] = -np.array([w * dw - v @ dv, *(w * dv + dw * v + np.cross(v, dv))])  # the same turn, with either sign
    qd = rng.normal(size=model.nv)
    off = difference(model, jg.State(other, qd), jg.State(q, 0 * qd))
    assert off[3:6] == pytest.approx(turn)
    assert off[model.nv :] == pytest.approx(qd)
    assert off[[0, 1, 2]] == pytest.approx(0)
