"""Small versions of pendulum-rl, ant-rl and transplant; and the scorer against closed forms and the engine."""

from __future__ import annotations

import json

import numpy as np
import pytest

import jointgrad as jg
import jointgrad.rl as rl
from jointgrad.reproduce import chain_scorer, learned, pendulum_rl
from jointgrad.reproduce.commands import EXPERIMENTS

TINY = {"actor": (8,), "critic": (8,), "batch": 8, "first": 50, "repeats": 1, "every": 1, "tried": 1}


def test_the_scorer_says_what_the_engine_says():
    """Two codes, one pendulum: random torques on three links."""
    torques = 10 * np.random.default_rng(0).uniform(-1, 1, (60, 3))
    task = rl.make_task("pendulum", links=3)
    found = jg.rollout(task.model, task.model.initial_state(), torques / 10, hold=5)
    end = rl.Moment(found.last.q, found.last.qd, None, None, {}, None)
    said = chain_scorer.score(torques)
    assert said.tip_error == pytest.approx(np.sqrt(task.squared_distance(end)), abs=1e-5)
    assert said.returned == pytest.approx(4.5 - said.tip_error**2) and said.energy_error < 1e-6


def test_the_scorer_holds_a_link_that_is_held():
    """One link that is pushed as hard as it weighs does not move; 1.01 kg at half a metre."""
    said = chain_scorer.score(np.full((50, 1), 1.01 * 9.8 * 0.5))
    assert said.returned == pytest.approx(0.0, abs=1e-9) and said.tip_error == pytest.approx(np.sqrt(0.5))


def test_areas_and_intervals():
    assert learned.area([(10, 0, 2.0), (20, 0, 4.0)], 20) == pytest.approx((2.0 * 10 + 3.0 * 10) / 20)
    assert learned.area([], 20) is None and learned.at([(10, 1.0, 2.0), (20, 3.0, 4.0)], 1, 2.0) == 2.0
    assert learned.interval([1.0] * 4) is None
    low, high = learned.interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert 1.0 <= low < 3.0 < high <= 5.0


def test_a_table_of_pendulums_is_resumed(tmp_path, monkeypatch):
    monkeypatch.setattr(pendulum_rl.Plan, "run", lambda self, n, method, seed: learned.Run(
        "pendulum", method, seed, 200, {"links": n}, TINY if method in ("sac", "mbpo-policy") else {}))  # fmt: skip
    plan = pendulum_rl.Plan((1,), (0,), 1, ("nothing", "sac", "mbpo-policy"))
    said = pendulum_rl.reproduce(plan, tmp_path, lambda text: None)
    rows = {r["method"]: r for r in said["table"]}
    # nothing hangs: down half a metre from the horizontal, further from the top than at the start or not
    assert rows["nothing"]["final"] == pytest.approx(rows["nothing"]["scored"], abs=1e-4)
    assert rows["sac"]["final"] == pytest.approx(rows["sac"]["scored"], abs=1e-3) and rows["sac"]["env_steps"] == 200
    assert rows["mbpo-policy"]["paper"] == 0.49 and rows["sac"]["best"] <= 0.5
    before = (tmp_path / "results.json").read_text()
    monkeypatch.setattr(pendulum_rl, "outcome", None)
    assert json.loads(before)["table"] == pendulum_rl.reproduce(plan, tmp_path, lambda text: None)["table"]


def test_rivals_learn_the_same_task():
    pytest.importorskip("stable_baselines3")
    run = learned.Run("pendulum", "SAC (SB3)", 0, 60, {"links": 1})
    found = learned.outcome(run, None, lambda text: None)
    assert found["env_steps"] == 60 and len(found["curve"]) == learned.SAVES and np.isfinite(found["final"])
    run = learned.Run("pendulum", "PPO (SB3)", 0, 600, {"links": 1})
    assert learned.outcome(run, None, lambda text: None)["env_steps"] == 1024


def test_an_ant_in_mujoco_earns_by_standing():
    """What gymnasium's Ant-v4 pays for doing nothing: 1 per action."""
    import mujoco

    from jointgrad.reproduce import transplant
    from jointgrad.rl.gymnasium_task import robot_file

    model = mujoco.MjModel.from_xml_path(str(robot_file("ant.xml")))
    ant = transplant.InMujoco(model)
    ant.begin(np.random.default_rng(0))
    rewards = [ant.step(np.zeros(8)) for _ in range(50)]
    assert not any(over for _, over in rewards) and np.mean([r for r, _ in rewards]) == pytest.approx(1.0, abs=0.2)
    assert ant.step(np.full(8, 0.5))[0] == pytest.approx(1 - 0.5 * 8 * 0.25, abs=1.5)


def test_they_are_commands():
    assert {"pendulum-rl", "ant-rl", "transplant"} <= EXPERIMENTS.keys()
