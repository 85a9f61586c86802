"""What dogs are judged by, on walks whose marks are known beforehand."""

from __future__ import annotations

import numpy as np
import pytest

from jointgrad.reproduce.walk import MARKS, table
from jointgrad.reproduce.walk_marks import Walk, fallen, heading, marks

DT, N = 0.02, 1000


def walk(speed=0.5, sway=0.0, turning=0.0, standing=None, end=N):
    """Along a circle of its own heading, swaying sideways at 2 Hz."""
    t = DT * np.arange(N + 1)
    angle = turning * t
    forward = speed * DT * np.cumsum([np.cos(angle + turning * DT / 2), np.sin(angle + turning * DT / 2)], axis=1)
    place = np.concatenate((np.zeros((2, 1)), forward[:, :-1]), 1).T
    place += sway / (4 * np.pi) * np.sin(4 * np.pi * t)[:, None] * np.stack((-np.sin(angle), np.cos(angle)), 1)
    feet = np.ones((N, 1, 4), dtype=bool) if standing is None else standing[:, None]
    return Walk(place[:, None], angle[:, None], feet, np.array([end]), np.array([[0.5, 0.0, 0.3]]))


def test_errors_are_those_of_the_motion():
    said = marks(walk(0.45, turning=0.3), DT)
    assert said["speed_error_instant"] == pytest.approx(0.05, abs=1e-4) and said["turn_error_instant"] < 1e-9
    assert said["speed_error_stride"] == pytest.approx(0.05, abs=2e-3) and said["falls"] == 0
    assert marks(walk(turning=0.1), DT)["turn_error_stride"] == pytest.approx(0.2)


def test_sway_is_in_the_instant_and_not_in_the_stride():
    said = marks(walk(sway=0.1), DT)  # mean of |0.1 cos| over a cycle
    assert said["speed_error_instant"] == pytest.approx(0.1 * 2 / np.pi, rel=0.03) and said["speed_error_stride"] < 2e-3


def test_a_trot_is_exactly_one_diagonal_pair():
    feet = np.zeros((N, 4), dtype=bool)
    k = np.arange(N) % 4
    feet[k == 0] = (True, False, False, True)
    feet[k == 1] = (False, True, True, False)
    feet[k == 2] = (True, True, False, True)  # three feet are no trot, and none is none
    assert marks(walk(standing=feet), DT)["trot"] == pytest.approx(0.5, abs=2e-3)


def test_what_comes_after_a_fall_does_not_count():
    said = marks(walk(end=300), DT)
    assert said["falls"] == 1 and said["speed_error_instant"] < 1e-4
    lying, tilted, up = [0, 0, 0.1, 1, 0, 0, 0], [0, 0, 0.3, np.cos(0.6), np.sin(0.6), 0, 0], [0, 0, 0.3, 2, 0, 0, 0]
    assert fallen(np.array([lying, tilted, up], dtype=float), 0.29).tolist() == [True, True, False]
    assert heading(np.array([0, 0, 0, np.cos(0.4), 0, 0, np.sin(0.4)])) == pytest.approx(0.8)


def test_what_misses_its_mark_is_bold():
    good = {case: {measure: 0 for _, c, measure, *_ in MARKS if c == case} for _, case, *_ in MARKS}
    good["drawn"] |= {"trot": 0.7, "speed_error_instant": 0.0599}
    good["corners"]["trot"] = 0.61
    bad = {**good, "drawn": good["drawn"] | {"falls": 2, "speed_error_instant": 0.06}}
    text = table("go2", 60.0, {"good": good, "bad": bad})
    assert text.count("**") == 4 and "| falls of 64 | at most 1 | 0 | **2** |" in text and "0.060**" in text


def test_a_dog_is_paid_for_the_heading_that_it_is_judged_by():
    """Rolling while pitching turns the heading, whatever the third rate of the base says."""
    from jointgrad.rl.quadruped import _heading_rate, _in_body

    rng = np.random.default_rng(0)
    q, qd = (
        np.concatenate((np.zeros((50, 3)), rng.normal((1, 0, 0, 0.5), 0.2, (50, 4))), 1),
        rng.standard_normal((50, 18)),
    )
    q[:, 3:] /= np.linalg.norm(q[:, 3:], axis=1, keepdims=True)
    w, axis, rate, dt = q[:, 3:4], q[:, 4:7], qd[:, 3:6], 1e-6
    ahead = q.copy()
    ahead[:, 3:4] -= 0.5 * dt * (axis * rate).sum(1, keepdims=True)
    ahead[:, 4:7] += 0.5 * dt * (w * rate + np.cross(axis, rate))
    down = _in_body(q, np.tile([0.0, 0.0, -1.0], (50, 1)))
    np.testing.assert_allclose(_heading_rate(qd, down), (heading(ahead) - heading(q)) / dt, rtol=1e-4, atol=1e-4)
