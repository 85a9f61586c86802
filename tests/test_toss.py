"""The real cube: turns and copies of tosses are tosses, slopes are right, and the quick experiment goes through."""

import json

import numpy as np
import pytest

from jointgrad import cli
from jointgrad.reproduce import toss, toss_networks
from jointgrad.reproduce.recordings import folder

PARAMS = {"friction": 0.18, "restitution": 0.1, "baumgarte": 0.2, "softness": 1e-3, "rounding": 5e-3}


@pytest.fixture(scope="module")
def tosses():
    if not (folder() / toss.FILE).is_file():
        pytest.skip(f"the recordings are not here: {folder()}")
    return toss.load()


def early(tosses, count=30, frames=30):
    some = tosses[np.arange(0, 300, 300 // count)]
    return toss.Tosses(some.pose[:frames], some.start)


def test_the_split_is_the_same_every_time(tosses):
    teaching, held_out = toss.split(tosses)
    assert (len(teaching.start), len(held_out.start)) == (50, 250)
    seen = {tuple(row) for row in teaching.start}
    assert len(seen) == 50 and not any(tuple(row) in seen for row in held_out.start)
    training, judges = toss_networks.validation(teaching)
    assert (len(training.start), len(judges.start)) == (40, 10)


def test_turns_of_a_cube_are_24_and_a_group():
    turns = toss_networks.cube_turns()
    assert np.allclose(np.linalg.norm(turns, axis=1), 1.0)
    same = np.abs(turns @ turns.T)
    assert np.allclose(same[~np.eye(24, dtype=bool)].max(), np.sqrt(0.5))
    products = toss_networks.product(turns[:, None], turns[None])
    assert np.allclose(np.abs(products @ turns.T).max(-1), 1.0)


def test_a_turned_toss_is_foreseen_as_well(tosses):
    """Neither the names of the cube's axes nor the table's direction matter to physics: until rounding is amplified by a bounce."""
    some, rng = early(tosses, frames=20), np.random.default_rng(0)
    n = len(some.start)
    other = toss_networks.turned(some, toss_networks.cube_turns()[rng.integers(24, size=n)], rng.uniform(0, 6, n))
    for sim, params in ((toss.Ours("impulse", 1), {k: v for k, v in PARAMS.items() if k != "rounding"}),
                        (toss.Ours("impulse", 1, rounded=True), PARAMS)):  # fmt: skip
        before, after = (toss.errors(x, sim.poses(x, params)) for x in (some, other))
        assert np.nanmax(np.abs(before[0] - after[0])) < 1e-6
        assert np.nanmax(np.abs(before[1] - after[1])) < 1e-6


def test_small_balls_in_the_corners_are_the_cube(tosses):
    """Up to their size: the corner of a cube is 0.7 radii beyond a ball that touches its faces."""
    some = early(tosses, frames=20)
    params = {k: v for k, v in PARAMS.items() if k != "rounding"}
    sharp = toss.Ours("impulse", 1).poses(some, params)
    apart = [
        np.median(np.abs(toss.Ours("impulse", 1, rounded=True).poses(some, params | {"rounding": r})[-1] - sharp[-1]))
        for r in (1e-5, 1e-3)
    ]
    assert apart[0] < 1e-4 and 5.0 * apart[0] < apart[1] < 0.1


def test_slopes_to_the_rounding_are_those_of_differences(tosses):
    some, sim = early(tosses), toss.Ours("impulse", 1, rounded=True)
    loss, slopes = sim.gradient(some, PARAMS)
    for name, value in PARAMS.items():
        h = 1e-6 * value
        up, down = (toss.loss_and_slope(some, sim.poses(some, PARAMS | {name: value + s * h}))[0] for s in (1, -1))
        smooth = np.abs(up + down - 2 * loss) < 1e-3 * np.abs(up - down) + 1e-10
        assert smooth.mean() > 0.5
        assert slopes[name][smooth] == pytest.approx((up - down)[smooth] / (2 * h), rel=1e-3, abs=1e-4 / value)


def test_networks_that_say_nothing_change_nothing_and_slopes_are_right(tosses):
    some, sim = early(tosses), toss.Ours("impulse", 1, rounded=True)
    hybrid = toss_networks.Hybrid(sim, PARAMS)
    assert np.array_equal(hybrid.poses(some, np.zeros_like(hybrid.first)), sim.poses(some, PARAMS))
    rng = np.random.default_rng(1)
    z, d = hybrid.first + 0.1 * rng.normal(size=hybrid.first.shape), 1e-7 * rng.normal(size=hybrid.first.shape)
    loss, slopes = hybrid.gradient(some, z)
    up, down = (toss.loss_and_slope(some, hybrid.poses(some, z + s * d))[0] for s in (1, -1))
    smooth = np.abs(up + down - 2 * loss) < 1e-3 * np.abs(up - down) + 1e-11
    assert smooth.mean() > 0.5
    assert (slopes @ d)[smooth] == pytest.approx((up - down)[smooth] / 2, rel=1e-3, abs=1e-9)


def test_copies_differ_by_the_noise(tosses):
    some = early(tosses)
    copies = toss_networks.shaken(some, 200, np.random.default_rng(0))
    off = copies.start.reshape(200, -1, 6) - some.start
    assert off.std((0, 1)) == pytest.approx([toss_networks.NOISE_V] * 3 + [toss_networks.NOISE_SPIN] * 3, rel=0.05)
    assert np.array_equal(copies.pose[:, : len(some.start)], some.pose, equal_nan=True)


def test_the_quick_experiment(tosses, tmp_path, capsys):
    """Far from the end of the search, but a fit is better than none, and what is written can be read and adds up."""
    assert cli.main(["reproduce", "toss", "--quick", "--out", str(tmp_path)]) == 0
    parts = json.loads((tmp_path / "results.json").read_text())["parts"]
    position = {name: part["held_out"]["position_percent"] for name, part in parts.items()}
    assert position["fitted"] < 0.8 * position["untuned"]
    assert position["augmented 0"] < 0.8 * position["untuned"]
    for name, part in parts.items():
        assert np.mean(part["tosses"]["position_percent"]) == pytest.approx(position[name])
    assert (tmp_path / "toss.png").stat().st_size > 10_000
    assert "augmented 0" in capsys.readouterr().out
