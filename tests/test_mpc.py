"""Walking by model-predictive control: legs and forces against independent truths, and walks in two engines."""

import json

import numpy as np
import pytest
from oracles.browser import Browser, chromium

import jointgrad as jg
from jointgrad.cli import main
from jointgrad.model.errors import InputError
from jointgrad.optimize.ilqr import Quadratic
from jointgrad.optimize.mpc import GAITS, ROBOTS, Command, ConvexMPC, ConvexProblem, Weights, quadruped
from jointgrad.optimize.mpc.controller import rotation, turn_about_z
from jointgrad.optimize.mpc.convex import GRAVITY, Body
from jointgrad.optimize.mpc.courses import COURSES, course
from jointgrad.optimize.mpc.estimator import Estimated, Noise
from jointgrad.optimize.mpc.ground import Ground
from jointgrad.optimize.mpc.legs import legs_of
from jointgrad.optimize.mpc.network import load_network
from jointgrad.optimize.mpc.planning import IlqrMPC, SamplingMPC, sensed_at
from jointgrad.optimize.mpc.session import Settings, shown
from jointgrad.optimize.mpc.solvers import OSQP, Proxsuite, solver
from jointgrad.optimize.mpc.swing import swing_point
from jointgrad.optimize.mpc.walking import DT, HOLD, MujocoPlant, OwnPlant, walk

pytestmark = pytest.mark.filterwarnings("ignore::jointgrad.model.errors.UnsupportedWarning")


@pytest.fixture(scope="module")
def go2():
    robot = quadruped("go2")
    return robot, course("flat", robot.add_to(jg.World())).compile(dt=DT)


# legs -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ROBOTS)
def test_legs_are_where_the_engine_has_them(name):
    robot = quadruped(name)
    model, legs = robot._alone, robot.legs
    rng, base = np.random.default_rng(0), [0.0, 0, 0, 1, 0, 0, 0]
    for _ in range(3):
        angles = robot.stance + rng.uniform(-0.4, 0.4, (4, 3))
        seen = jg.inspect(model, jg.State(np.concatenate((base, angles.ravel())), np.zeros(18)))
        feet = np.array([seen.link_position[model.link_names.index(f)] for f in robot.feet])
        np.testing.assert_allclose(legs.positions(angles), feet, atol=1e-14)
        np.testing.assert_allclose(legs.angles(feet), angles, atol=1e-12)
        columns = [seen.point_jacobian(f)[0][:, 6 + 3 * k : 9 + 3 * k] for k, f in enumerate(robot.feet)]
        np.testing.assert_allclose(legs.jacobians(angles), columns, atol=1e-14)
        holding = legs.holding(legs.moves(angles), GRAVITY)
        np.testing.assert_allclose(holding.ravel(), seen.bias[6:], atol=1e-12)


def test_a_foot_out_of_reach_is_pointed_at():
    legs = quadruped("go2").legs
    far = legs.hip + np.array([0.0, 0.0, -5.0])
    reached = legs.positions(legs.angles(far))
    assert np.isfinite(reached).all()
    assert (reached[:, 2] < -0.41).all()  # 0.426 m of thigh and shank


def test_a_robot_that_is_no_quadruped_is_refused():
    model = jg.World().add(jg.zoo.ant()).compile(dt=DT)
    with pytest.raises(InputError, match="12 actuators"):
        legs_of(model, ("a", "b", "c", "d"))


def test_the_rigid_body_is_that_of_the_engine():
    robot = quadruped("a1")
    q = np.concatenate(([0.0, 0, 0, 1, 0, 0, 0], robot.stance.ravel()))
    seen = jg.inspect(robot._alone, jg.State(q, np.zeros(18)))
    mass, centre, inertia = robot.rigid
    M = seen.mass_matrix[:6, :6]
    np.testing.assert_allclose(M[:3, :3], mass * np.eye(3), atol=1e-12)
    np.testing.assert_allclose(seen.centre_of_mass, centre, atol=1e-12)
    arm = np.array([[0, -centre[2], centre[1]], [centre[2], 0, -centre[0]], [-centre[1], centre[0], 0]])
    np.testing.assert_allclose(M[3:, 3:], inertia - mass * arm @ arm, atol=1e-12)


# forces ---------------------------------------------------------------------------------------------------------------


def _case(rng, steps=4):
    problem = ConvexProblem(12.0, np.diag([0.1, 0.3, 0.35]), steps=steps, weights=Weights(turning=(0.3, 0.2, 1.0)))
    R = rotation(np.array([1.0, 0.1, -0.05, 0.3]))
    body = Body(rng.normal(0, 0.1, 3), rng.normal(0, 0.3, 3), rng.normal(0, 0.5, 3), rng.normal(0, 0.5, 3))
    arms = np.array([[0.2, 0.15, -0.3], [0.2, -0.15, -0.3], [-0.2, 0.15, -0.3], [-0.2, -0.15, -0.3]])
    wanted = rng.normal(0, 0.2, (steps, 6)), rng.normal(0, 0.2, (steps, 6))
    stands = rng.random((steps, 4)) < 0.7
    stands[0, 0] = True
    return problem, body, R, arms, wanted, stands


def _cost(problem, body, R, arms, wanted, forces):
    """By following the motion step by step: the exponential of the whole system, with no algebra in common."""
    from scipy.linalg import expm

    w, n = problem.weights, problem.steps
    A = np.zeros((27, 27))  # angles, place, turning, speed, gravity, forces
    A[0:3, 6:9], A[3:6, 9:12], A[9:12, 12:15] = turn_about_z(body.angles[2]).T, np.eye(3), np.eye(3)
    inverse = np.linalg.inv(R @ problem.inertia @ R.T)
    for k, r in enumerate(arms):
        A[6:9, 15 + 3 * k : 18 + 3 * k] = inverse @ np.cross(r, np.eye(3)).T
        A[9:12, 15 + 3 * k : 18 + 3 * k] = np.eye(3) / problem.mass
    step = expm(A * problem.dt)
    x, cost = np.concatenate((body.angles, body.position, body.turning, body.velocity, GRAVITY)), 0.0
    weight = np.array([*w.angles, *w.position, *w.turning, *w.velocity])
    for k in range(n):
        x = (step @ np.concatenate((x, forces[k].ravel())))[:15]
        cost += 0.5 * weight @ (x[:12] - np.concatenate((wanted[0][k], wanted[1][k]))) ** 2
    return cost


def test_the_condensed_problem_is_the_cost_of_the_motion():
    rng = np.random.default_rng(1)
    problem, body, R, arms, wanted, stands = _case(rng)
    qp = problem.qp(body, R, arms, wanted, stands)
    share = problem.mass * 9.81 / stands.sum(1)

    def of(x):
        forces = np.zeros((problem.steps, 4, 3))
        forces[tuple(qp.who.T)] = x.reshape(-1, 3)
        even = np.zeros_like(forces)
        even[..., 2] = stands * share[:, None]
        own = _cost(problem, body, R, arms, wanted, forces)
        return own + 0.5 * problem.weights.force * ((forces - even) ** 2).sum()

    start = of(np.zeros(len(qp.g)))
    for _ in range(5):
        x = rng.normal(0, 30.0, len(qp.g))
        assert of(x) - start == pytest.approx(0.5 * x @ qp.H @ x + qp.g @ x, rel=1e-9)


@pytest.mark.parametrize("whole", [False, True])
def test_both_solvers_find_the_optimum(whole):
    rng = np.random.default_rng(2)
    accurate, other = Proxsuite(1e-9), OSQP(1e-7)
    for _ in range(4):  # warm after the first
        problem, body, R, arms, wanted, stands = _case(rng, steps=10)
        qp = problem.qp(body, R, arms, wanted, stands, whole)
        x = accurate(qp).ravel()
        _check_optimal(qp, x)
        np.testing.assert_allclose(other(qp).ravel(), x, atol=0.02)
        if whole:
            forces = x.reshape(-1, 3)[~stands[tuple(qp.who.T)]]
            np.testing.assert_allclose(forces, 0.0, atol=1e-6)


def _check_optimal(qp, x):
    """Feasible, and no feasible direction goes down: multipliers of the active rows by non-negative least squares."""
    from scipy.optimize import nnls

    slack_low, slack_high = qp.C @ x - qp.low, qp.high - qp.C @ x
    assert min(slack_low.min(), slack_high.min()) > -1e-6
    rows = np.concatenate((qp.C[slack_low < 1e-5], -qp.C[slack_high < 1e-5]))
    gradient = qp.H @ x + qp.g
    _, left = nnls(rows.T, gradient)
    assert left < 1e-5 * max(np.linalg.norm(qp.g), 1.0)


def test_an_unknown_solver_is_named():
    with pytest.raises(InputError, match="proxsuite and osqp"):
        solver("simplex")


# gaits, swings, ground ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GAITS)
def test_feet_stand_for_their_share(name):
    gait, places = GAITS[name], ("FR", "FL", "RR", "RL")
    stands = gait.schedule(0.123, gait.period / 1000, 3000, places)
    np.testing.assert_allclose(stands.mean(0), gait.duty, atol=2e-3)
    if name == "trot":
        assert (stands[:, 0] == stands[:, 3]).all() and (stands[:, 1] == stands[:, 2]).all()


def test_a_swing_leaves_lands_and_clears():
    start, end = np.zeros((4, 3)), np.full((4, 3), 0.1)
    np.testing.assert_allclose(swing_point(start, end, np.zeros(4), 0.08), start)
    np.testing.assert_allclose(swing_point(start, end, np.ones(4), 0.08), end)
    tops = [swing_point(start, end, np.full(4, s), 0.08)[0, 2] for s in np.linspace(0, 1, 201)]
    assert 0.18 <= max(tops) < 0.2


def test_the_ground_is_felt():
    ground, slope = Ground(), 0.2
    feet = np.array([[0.2, 0.15, 0.0], [0.2, -0.15, 0.0], [-0.2, 0.15, 0.0], [-0.2, -0.15, 0.0]])
    feet[:, 2] = slope * feet[:, 0] + 0.05
    ground.touch(feet, 0.02, np.ones(4, dtype=bool))
    assert ground.height_at(np.array([0.1, 0.0])) == pytest.approx(0.03 + 0.1 * slope, abs=1e-3)
    roll, pitch = ground.tilt(0.0)
    assert pitch == pytest.approx(-np.arctan(slope), abs=0.01) and abs(roll) < 1e-12
    roll, pitch = ground.tilt(np.pi / 2)  # across the slope: leaning to the left where it falls
    assert roll == pytest.approx(-np.arctan(slope), abs=0.01)


@pytest.mark.parametrize("name", COURSES)
def test_courses_begin_flat(name):
    boxes = list(COURSES[name](seed=3))
    assert len(boxes) > 1
    with pytest.raises(InputError, match="rough"):
        course("swamp", jg.World())


# walks ----------------------------------------------------------------------------------------------------------------


def test_a_dog_walks_turns_and_is_the_same_again(go2):
    robot, model = go2
    command = Command(0.4, 0.1, 0.3)
    walks = [walk(ConvexMPC(robot), OwnPlant(robot, model), command, 3.0) for _ in range(2)]
    marks = walks[0].marks()
    assert not marks["fell"]
    assert marks["velocity_error"] < 0.05 and marks["turn_error"] < 0.05
    assert marks["roll"] < 0.05 and marks["pitch"] < 0.08
    np.testing.assert_allclose(walks[0].q, walks[1].q, atol=1e-6)  # the solver rounds as its memory happens to lie


def test_a_dog_that_is_not_moved_falls(go2):
    """The marks can tell."""
    robot, model = go2

    class Nothing:
        def reset(self):
            pass

        def __call__(self, sensed, command):
            return 10.0 * np.tile([1.0, 0.0, 0.0], 4) * np.sign(np.arange(12) - 6)

    result = walk(Nothing(), OwnPlant(robot, model), Command(0.5), 3.0)
    assert result.fell or result.marks()["velocity_error"] > 0.3


def test_it_walks_in_mujoco_too(go2):
    robot, _ = go2
    world = course("flat", robot.add_to(jg.World()))
    marks = walk(ConvexMPC(robot), MujocoPlant(robot, world), Command(0.4), 3.0).marks()
    assert not marks["fell"] and marks["velocity_error"] < 0.06


def test_the_estimator_follows_the_truth(go2):
    robot, model = go2
    quiet = Noise(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    missed = {}
    for name, noise in (("quiet", quiet), ("noisy", Noise())):
        estimated = Estimated(ConvexMPC(robot), robot, HOLD * DT, noise, seed=3)
        result = walk(estimated, OwnPlant(robot, model), Command(0.3, 0.0, 0.2), 3.0)
        assert not result.fell
        missed[name] = np.mean(estimated.missed)
    assert missed["quiet"] < missed["noisy"] < 0.1


def test_walks_need_time(go2):
    with pytest.raises(InputError, match="seconds"):
        walk(ConvexMPC(go2[0]), OwnPlant(*go2), Command(), 0.0)
    with pytest.raises(InputError, match="laikago, a1, go2"):
        quadruped("cat")


def test_the_command_line_says_how_it_went(capsys):
    assert (
        main(
            f"walk --robot go2 --controller osqp --command {0.3} 0 0 --seconds 2 --push 0.3 --payload 2 --json".split()
        )
        == 0
    )
    said = json.loads(capsys.readouterr().out)
    assert said["fell"] is False and said["velocity_error"] < 0.15
    assert {"p50_ms", "p99_ms", "distance", "power", "turn_error", "robot", "controller"} <= said.keys()


def test_a_network_learns_to_walk_from_the_solver(tmp_path, capsys):
    pytest.importorskip("torch")
    from jointgrad.reproduce.mpc_imitation import Settings as Size
    from jointgrad.reproduce.mpc_imitation import run

    size = Size("go2", transitions=450, rounds=1, epochs=200, walks=1, seconds=2.0)
    said = run(size, tmp_path, say=lambda _: None)
    assert said["parts"]["imitation"]["missed"] < 0.08  # of the weight; an untrained network misses 0.2
    assert said["parts"]["DAgger, jointgrad"]["falls"] == 0
    assert (tmp_path / "walks.png").stat().st_size > 5000
    again = run(size, tmp_path, say=lambda _: None)
    assert again["parts"] == said["parts"]
    file = tmp_path / "dagger_1.npz"
    assert (
        main(["walk", "--robot", "go2", "--controller", "network", "--network", str(file), "--seconds", "2", "--json"])
        == 0
    )
    assert json.loads(capsys.readouterr().out)["fell"] is False


def test_files_that_hold_no_network_are_refused(tmp_path):
    path = tmp_path / "net.npz"
    np.savez(path, W0=np.zeros((12, 40)), b0=np.zeros(12), mean=np.zeros(40), deviation=np.ones(40))
    with pytest.raises(InputError, match="41 inputs"):
        load_network(path)
    path.write_bytes(b"PK\x03\x04 not a zip")
    with pytest.raises(InputError, match="walking network"):
        load_network(path)
    with pytest.raises(InputError, match="--network"):
        Settings(controller="network").mover(quadruped("go2"))


def test_the_browser_shows_this_engine_only(capsys):
    assert main(["walk", "--engine", "mujoco"]) == 2
    assert "--headless" in capsys.readouterr().err


@pytest.mark.skipif(chromium() is None, reason="there is no chromium to open the page with")
def test_the_page_steers_the_dog():
    pytest.importorskip("viser")
    view = shown(Settings("go2"), (0.5, 0.0, 0.0), 8277, block=False)
    try:
        with Browser() as browser:
            browser.open(view.address)
            browser.wait_for("document.body.innerText.includes('Command') && !!document.querySelector('canvas')")
            for kind in ("keyDown", "keyUp"):
                browser.call("Input.dispatchKeyEvent", type=kind, key="x", code="KeyX", windowsVirtualKeyCode=88)
            browser.wait_for("document.body.innerText.includes('plan:')")
            for _ in range(50):
                if not view.command.any():
                    break
                browser.evaluate("new Promise(r => setTimeout(r, 100))")
            assert not view.command.any()
            assert view.robot.plant.time > 0.3
            assert len(view.plot.data) == 5
    finally:
        view.stop()


# planning through the simulator ---------------------------------------------------------------------------------------


class Upright:
    """A pole that stands, its cart in the middle."""

    def running(self, q, qd, u):
        return 1 - np.cos(q[..., 1]) + 0.05 * q[..., 0] ** 2 + 0.005 * (qd**2).sum(-1) + 1e-3 * (u**2).sum(-1)

    def final(self, q, qd):
        return 10 * (1 - np.cos(q[..., 1])) + 0.1 * (qd**2).sum(-1) + 0.5 * q[..., 0] ** 2


@pytest.fixture(scope="module")
def cart():
    return jg.World().add(jg.zoo.cart_pole()).compile(dt=0.02, contact=None)


def _swung(model, planner, steps):
    """Cosine of the pole's angle in the last half second, from hanging down."""
    state, height = jg.State(np.array([0.0, np.pi]), np.zeros(2)), []
    for k in range(steps):
        state = jg.step(model, state, planner(sensed_at(0.02 * k, state)))
        height.append(np.cos(state.q[1]))
    return np.array(height[-25:])


@pytest.mark.parametrize("temperature", [None, 0.1])
def test_samples_swing_a_pole_up(cart, temperature):
    planner = SamplingMPC(cart, Upright(), 50, 6.0, temperature=temperature, bounds=(-10.0, 10.0), seed=5)
    assert _swung(cart, planner, 250).min() > 0.9
    first = planner.plan.copy()
    planner.reset()
    _swung(cart, planner, 250)
    assert np.array_equal(planner.plan, first)


def test_ilqr_swings_a_pole_up(cart):
    rest = jg.State(np.zeros(2), np.zeros(2))
    cost = Quadratic(cart, rest, [0.1, 0.5, 0.01, 0.01], [10.0, 100.0, 10.0, 10.0], 1e-3)
    planner = IlqrMPC(cart, cost, 80, bounds=(-20.0, 20.0))
    assert _swung(cart, planner, 130).min() > 0.99


def test_the_plan_itself_is_among_the_samples(cart):
    """So that a plan never gets worse where nothing disturbs it."""
    planner = SamplingMPC(cart, Upright(), 20, 3.0, samples=8, seed=1)
    state = jg.State(np.array([0.0, 0.3]), np.zeros(2))
    best = []
    for _ in range(6):
        planner._better(state)
        best.append(planner.best)
    assert best == sorted(best, reverse=True) and best[-1] < best[0]


def test_samples_that_diverge_are_not_chosen(cart):
    planner = SamplingMPC(cart, Upright(), 5, 1.0, samples=3)
    u = np.zeros((5, 3, 1))
    u[:, 1] = 1e300
    costs = planner.costs(jg.State(np.zeros(2), np.zeros(2)), u)
    assert np.isfinite(costs[[0, 2]]).all() and not costs[1] < 1e10
    with pytest.raises(InputError, match="samples must be 1 or more"):
        SamplingMPC(cart, Upright(), 5, 1.0, samples=0)
