"""`jointgrad reproduce`: small versions of throw, golf and racecar reach what they should and leave files that can be read."""

import csv
import json

import numpy as np
import pytest

import jointgrad as jg
from jointgrad import cli
from jointgrad.optimize import progress
from jointgrad.reproduce import contest, golf, racecar, racecar_truth, second_opinion, throw


def test_golf_reaches_the_accuracy_of_the_seed(tmp_path, capsys):
    assert cli.main(["reproduce", "golf", "--seeds", "0", "--quick", "--out", str(tmp_path)]) == 0
    said = json.loads((tmp_path / "results.json").read_text())
    assert said["start_loss"] > 5 * golf.SEED_ACCURACY
    for one in said["runs"]:
        assert one["to_accuracy"]["iterations"] <= 50
    kept = np.load(tmp_path / "motion.npz")
    task = golf.task("released")
    again = jg.rollout(task.model, task.start, kept["u"])
    assert contest.task_loss(task, again.q[-1]) <= golf.SEED_ACCURACY
    assert kept["q"].shape == (1001, task.model.nq)
    with (tmp_path / "history.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["method"] for row in rows} == {"L-BFGS", "Gauss-Newton, moving"}
    assert str(tmp_path) in capsys.readouterr().out


def test_throw_reaches_the_accuracy_of_the_seed():
    task, (sgd, newton) = throw.task("released"), throw.methods("released", quick=True)
    contest.warmed_up(task)
    assert contest.run(task, sgd, 0, 60.0).to_target[0] <= 20
    for seed in range(3):
        found = contest.run(task, newton, seed, 60.0)
        assert contest.task_loss(task, jg.rollout(task.model, task.start, found.u).q[-1]) <= throw.SEED_ACCURACY
        assert found.to_target[1] <= 8  # motions rolled out and pulled back


def test_ilqr_throws_in_a_third_of_the_iterations():
    """The start from which feedback gains lead astray."""
    task, method = throw.task("released"), next(m for m in throw.methods("released") if m.label == "iLQR")
    found = contest.run(task, method, 2, 120.0)
    assert found.to_target[0] <= 6
    assert contest.task_loss(task, jg.rollout(task.model, task.start, found.u).q[-1]) <= throw.SEED_ACCURACY


@pytest.mark.slow
@pytest.mark.parametrize("module, label, most", [(throw, "iLQR", 6), (golf, "iLQR, moving", 16)])
def test_ilqr_goes_through_contact(module, label, most):
    task, method = module.task("released"), next(m for m in module.methods("released") if m.label == label)
    for seed in range(3):
        assert contest.run(task, method, seed, 120.0).to_target[0] <= most


def test_golf_ball_comes_to_rest_and_mujoco_agrees():
    """MuJoCo's one cone for sliding and rolling makes the ball roll further; with a limit for each it ends where ours does."""
    task, (method,) = golf.task("physical"), golf.methods("physical", quick=True)
    found = contest.run(task, method, 0, 60.0)
    last = jg.rollout(task.model, task.start, found.u).last
    assert np.hypot(*(last.q[list(task.at)] - task.target)) < 0.05 and np.linalg.norm(last.qd[-6:-3]) < 0.01
    (said,) = second_opinion.opinions(task.world, task.model, task.start, found.u, task.at, substeps=(4,))
    assert said["apart_own_rolling"] < 0.1 < said["apart"]


def test_landing_is_that_of_coulomb_and_rolling_resistance():
    """A ball lands at v, falling at w: friction p and rolling torque arm * w in one impulse, then it rolls to rest.

    v' = v - p, v' = (radius p - arm w) / (0.4 radius) at the end of the impulse; v'^2 radius 1.4 / (2 arm g) further it rests.
    """
    radius, arm, v, w = 0.01, throw.ROLLING, 1.86, 3.4
    robot = jg.Description("ball", base="free")
    robot.add_link("ball", 0.05, inertia=(0.4 * 0.05 * radius**2,) * 3).shapes.append(jg.Shape("sphere", (radius,)))
    world = jg.World().add(robot).add_ground()
    world.pair("ball", "ground", contact=throw.LAW, friction=0.7, torsion=arm, rolling=arm)
    model = world.compile(dt=throw.DT)
    # it may meet the ground anywhere in a step
    height = 0.02 + w * throw.DT * np.arange(8) / 8
    start = model.initial_state(batch=8)
    start.q[:, 2], start.qd[:, 0], start.qd[:, 2] = height, v, -w
    motion = jg.rollout(model, start, steps=4000)
    p = (0.4 * v + arm * w / radius) / 1.4
    assert motion.qd[12, :, 0] == pytest.approx(np.full(8, v - p), abs=0.04)
    rolled = motion.q[-1, :, 0] - v * (height - radius) / w
    assert rolled == pytest.approx(np.full(8, 1.4 * radius * (v - p) ** 2 / (2 * arm * 9.81)), abs=8e-3)
    assert np.abs(motion.qd[-1]).max() < 1e-3


def test_contest_keeps_what_was_finished(monkeypatch, tmp_path, capsys):
    """Ctrl-C in the second search: its best point counts, and everything is written."""
    calls = []

    def interrupted(self, loss, end=progress.Progress.end_iteration):
        calls.append(self)
        end(self, loss)
        if len({id(c) for c in calls}) == 2 and self.iteration == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(progress.Progress, "end_iteration", interrupted)
    assert cli.main(["reproduce", "golf", "--seeds", "0", "--quick", "--out", str(tmp_path)]) == 130
    said = json.loads((tmp_path / "results.json").read_text())
    assert [r["reason"] for r in said["runs"]] == ["target", "interrupted"]
    assert (tmp_path / "motion.npz").exists() and "2 runs are kept" in capsys.readouterr().out


def test_all_methods_start_from_the_same_controls():
    task = golf.task("released")
    assert np.array_equal(task.start_controls(3), task.start_controls(3))
    assert not np.array_equal(task.start_controls(3), task.start_controls(4))
    assert not golf.task("paper").start_controls(3).any()


@pytest.mark.parametrize("name, seconds, friction", [("locked1", 1.0, 0.0408), ("locked2", 2.0, 0.0638)])
def test_racecar_finds_the_friction_of_the_closed_form(name, seconds, friction):
    one = racecar.case(name)
    assert one.truth[0] == pytest.approx(friction, abs=5e-5)
    found = racecar._watched(
        one, "Gauss-Newton", "gradient",
        lambda c: racecar.gauss_newton(one.problem, one.problem.start, racecar.Stop(iterations=10), one.problem.bounds, c),
    )  # fmt: skip
    assert found.to_truth is not None and found.to_truth[0] <= 10
    assert found.found[0] == pytest.approx(friction, abs=1e-3)


def test_racecar_finds_four_unknowns_of_two_axles():
    """Places and angles are those of a solver of its own; all four numbers come out, and in a tenth of the motions of CMA-ES."""
    one = racecar.case("axles")
    stop = racecar.Stop(iterations=10)
    found = racecar._watched(
        one, "Gauss-Newton", "gradient",
        lambda c: racecar.gauss_newton(one.problem, one.problem.start, stop, one.problem.bounds, c, damping=1e-8, trials=1),
    )  # fmt: skip
    assert found.to_truth is not None and found.to_truth[1] <= 40
    assert found.found == pytest.approx(one.truth, rel=0.06)
    # what is fitted is the motion, not only the numbers: 2 mm and 0.04 rad at most
    assert np.abs(one.problem.residuals(found.result.x[None])).max() < 2.0


def test_two_axles_alike_are_one_body_that_slides_and_rolls():
    """While all wheels slide the car loses mu g, and a wheel without damping gains mu N r / I; then v = w r."""
    model, _ = racecar.car(locked=False)
    times, found = racecar_truth.driven(model, *[racecar_truth.Axle(0.05, 0.0)] * 2, 1.0, 9.8, 11)
    assert found[1, 0] == pytest.approx(0.1 - 0.05 * 9.8 * 0.1**2 / 2, abs=1e-6)
    spin, mass = racecar_truth.SPIN, float(model.params["link.mass"].sum())
    # angular momentum about a point of the ground is kept: M v r + 4 I w
    rolling = 1.0 / (1.0 + 4 * spin / (mass * racecar_truth.RADIUS**2))
    assert (found[-1] - found[-2]) / 0.1 == pytest.approx(rolling * np.array([1.0, 20.0, 20.0]), rel=1e-4)


def test_unknown_settings_are_named():
    with pytest.raises(jg.InputError, match="setting must be"):
        golf.task("moon")
    with pytest.raises(jg.InputError, match="there is no case"):
        racecar.case("moon")
