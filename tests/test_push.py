"""Pushes of a block: geometry, split, derivatives, a push whose answer is known, and the experiment in small."""

import json

import numpy as np
import pytest

from jointgrad import cli
from jointgrad.reproduce import push, push_data
from jointgrad.reproduce.push_data import MIDDLE, Pushes, meeting, support_points, turned
from jointgrad.reproduce.push_fit import Point, Problem
from jointgrad.reproduce.push_world import (
    GRAVITY,
    MASS,
    NAMES,
    SCALES,
    Guess,
    Pace,
    Pushing,
    augmented,
    compiled,
    guess_of,
    loads,
    predicted,
    vector,
)
from jointgrad.reproduce.recordings import folder

FAST = Pace(speed=0.08, transition=0.03, dt=1e-3)
needs_data = pytest.mark.skipif(
    not (folder() / push_data.FILE).is_file(), reason=f"there is no {push_data.FILE} in {folder()}"
)


def made_up(heading=0.0, aim=0.0, incidence=0.0, gap=2e-3, reach=0.0163) -> Pushes:
    """One push of the long side, `aim` along it from its middle, by a finger of 1 mm that touches when it is `gap` on its way."""
    normal = np.array([[np.sqrt(0.5), np.sqrt(0.5)]])
    touch = np.array([[0.075, 0.075]]) - MIDDLE + aim * np.array([[np.sqrt(0.5), -np.sqrt(0.5)]]) + 1e-3 * normal
    ahead = turned(-normal, np.array([incidence]))
    place = np.array([[0.02, -0.01]])
    world = [
        turned(x, np.array([heading])) + place
        for x in (touch - gap * ahead, touch - gap * ahead + reach * ahead, touch)
    ]
    before = np.column_stack([place, [heading]])
    supports = support_points("30_90_30_30_30_90")[None]
    return Pushes(before, before.copy(), *world, supports, np.array([False]), np.array([0]))


def test_support_points_are_three_x_and_then_three_y():
    points = 1e3 * (support_points("wood_30_63.33_43.33_30_43.33_63.33") + MIDDLE)
    np.testing.assert_allclose(points, [[30, 30], [63.33, 43.33], [43.33, 63.33]])
    with pytest.raises(ValueError, match="three support points"):
        support_points("patch")


def test_loads_balance_the_weight_and_its_moment():
    supports, centre = support_points("10_90_10_10_30_130")[None], np.array([2e-3, -1e-3])
    found = loads(supports, centre)
    assert found.min() > 0
    np.testing.assert_allclose(found.sum(), MASS * GRAVITY)
    np.testing.assert_allclose(found[0] @ supports[0] / found.sum(), centre)


def test_the_finger_meets_the_side_that_it_is_before():
    pushes = made_up(heading=0.7, aim=0.03, incidence=0.3)
    normal, outside = meeting(pushes)
    np.testing.assert_allclose(normal, turned(np.array([[np.sqrt(0.5), np.sqrt(0.5)]]), np.array([0.7])))
    np.testing.assert_allclose(outside, 1e-3)


def test_a_push_through_the_centre_goes_straight():
    """Supports, block and push are alike on both sides of the line: the block does not turn, and goes as far as the finger does
    after it has touched."""
    pushes = made_up(heading=0.4)
    moved = predicted(Pushing(compiled(FAST), pushes, FAST).motion(Guess())) - pushes.before
    assert abs(moved[0, 2]) < 1e-4
    assert abs(moved[0, :2] @ turned(pushes.heading, np.array([np.pi / 2]))[0]) < 2e-6
    assert moved[0, :2] @ pushes.heading[0] == pytest.approx(0.0163 - 2e-3, abs=2e-4)


def test_a_push_beside_the_centre_turns_the_block_the_right_way():
    """At -40 mm, (-28, 28) mm from the middle of the side, a push along (-1, -1) has a positive moment."""
    model = compiled(FAST)
    turns = [predicted(Pushing(model, made_up(aim=a), FAST).motion(Guess()))[0, 2] for a in (-0.04, 0.04)]
    assert turns[0] > 0.03 and turns[1] == pytest.approx(-turns[0], rel=1e-3)


def test_a_finger_that_the_log_misplaces_touches_when_its_force_says():
    """The log is 1.5 mm off along the path; the force sensor makes up for it."""
    right = made_up(aim=0.03)
    off = 1.5e-3 * right.heading
    wrong = Pushes(right.before, right.after, right.first + off, right.last + off, right.onset + off, right.supports,
                   right.is_wood, right.condition)  # fmt: skip
    model = compiled(FAST)
    ends = [predicted(Pushing(model, one, FAST).motion(Guess())) for one in (right, wrong)]
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-9)


def test_derivatives_are_those_of_differences():
    pushes = made_up(heading=0.3, aim=0.035, incidence=0.5)
    one = Pushing(augmented(compiled(FAST), ()), pushes, FAST)
    rng = np.random.default_rng(0)
    weights = 0.02 * rng.normal(size=one.model.params["graft.weight"].shape)
    guess = Guess(centre_x=1e-3, aside=-5e-4, further=5e-4)
    by_guess, by_weight = one.jacobian(one.motion(guess, weights))
    unit = np.array([1.0, 1.0, push_data.ARM])
    for k, name in enumerate(NAMES):
        step = 1e-4 * SCALES[k] * np.eye(len(NAMES))[k]
        ends = [predicted(one.motion(guess_of(vector(guess) + s * step), weights)) * unit for s in (1, -1)]
        found = (ends[0] - ends[1])[0] / (2e-4 * SCALES[k])
        np.testing.assert_allclose(by_guess[0, :, k], found, rtol=2e-4, atol=2e-6 / SCALES[k] * 1e-3, err_msg=name)
    direction = rng.normal(size=weights.shape)
    ends = [predicted(one.motion(guess, weights + s * 1e-5 * direction)) * unit for s in (1, -1)]
    np.testing.assert_allclose(by_weight[0] @ direction, (ends[0] - ends[1])[0] / 2e-5, rtol=2e-4, atol=1e-7)


def test_networks_that_say_nothing_change_nothing():
    pushes, model = made_up(aim=0.03), compiled(FAST)
    with_nets = augmented(model, (6,))
    weights = np.array(with_nets.params["graft.weight"])
    plain = Problem(Pushing(model, pushes, FAST)).motion(Point())
    silent = Problem(Pushing(with_nets, pushes, FAST)).motion(Point(weights=weights))
    np.testing.assert_array_equal(plain.last.q, silent.last.q)


@needs_data
def test_the_split_is_fixed_and_within_each_log():
    pushes = push_data.load()
    parts = push_data.split(pushes)
    everyone = np.concatenate(list(parts.values()))
    assert len(pushes) == len(set(everyone.tolist())) == 400
    for part, count in (("training", 30), ("validation", 10), ("held_out", 10)):
        assert (np.bincount(pushes.condition[parts[part]]) == count).all()
    # no push is there twice, as some are in other logs
    assert len(np.unique(np.round(np.column_stack([pushes.before, pushes.first]), 6), axis=0)) == 400


@needs_data
def test_frames_agree_with_the_force_sensor():
    """When the force begins the finger is at the outline, to what cameras and robot agree: within 3 mm always, 1 mm mostly."""
    _, outside = meeting(push_data.load())
    assert np.abs(outside).max() < 3e-3 and np.mean(np.abs(outside) < 1.2e-3) > 0.7


@needs_data
def test_the_experiment_in_small(tmp_path, capsys):
    assert cli.main(["reproduce", "push", "--quick", "--out", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "results.json").read_text())["parts"]["held out"]
    still, fitted = (np.mean(found[name]["mm"]) for name in ("does not move", "fitted"))
    assert fitted < still / 3
    assert {"untuned", "augmented", "fitted, half the speed"} <= found.keys()
    assert "held-out pushes" in capsys.readouterr().out
    mean, spread = push.deviation([2.0, 3.0, 4.0], [1.0, 2.0, 3.0])
    assert mean == pytest.approx(1.0) and spread == pytest.approx(0.0)
