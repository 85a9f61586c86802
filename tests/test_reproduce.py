"""`jointgrad reproduce`: small versions of throw, golf and racecar reach what they should and leave files that can be read."""

import csv
import json

import numpy as np
import pytest

import jointgrad as jg
from jointgrad import cli
from jointgrad.reproduce import contest, golf, racecar


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
    assert {row["method"] for row in rows} == {"L-BFGS", "Gauss-Newton"}
    assert str(tmp_path) in capsys.readouterr().out


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
        one, "Gauss-Newton", True,
        lambda c: racecar.gauss_newton(one.problem, one.problem.start, racecar.Stop(iterations=10), one.problem.bounds, c),
    )  # fmt: skip
    assert found.to_truth is not None and found.to_truth[0] <= 10
    assert found.found[0] == pytest.approx(friction, abs=1e-3)


def test_unknown_settings_are_named():
    with pytest.raises(jg.InputError, match="setting must be"):
        golf.task("moon")
    with pytest.raises(jg.InputError, match="there is no case"):
        racecar.case("moon")
