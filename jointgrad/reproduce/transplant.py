"""An ant from one simulator in another: Qiao 2021, table 5, and the other way round. Nothing is trained again.

In MuJoCo neither our environments nor our rewards are used: gymnasium's ant.xml, its starts, and the reward of Ant-v4 (progress of
the torso, 1 for being healthy, half the square of the action), written out below. A zero action earns about 1000 there.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from ..rl.catalogue import make_task
from ..rl.gymnasium_task import robot_file
from ..rl.play import episodes
from ..rl.policy_file import load_policy
from .kept import Kept
from .learned import Run, outcome

# Qiao 2021, table 5: return in MuJoCo without and with pretraining in their simulator
PAPER = (868.0, 1735.0)
LIMIT, HOLD, HEALTHY, NOISE = 1000, 5, (0.2, 1.0), 0.1
OPTIONS = {"include_cfrc_ext_in_observation": False, "contact_cost_weight": 0.0, "limit": LIMIT}
RANDOMISED = {"mass": 0.2, "friction": 0.4, "gain": 0.1, "push": 0.3}
EPISODES, SEED = 20, 4_000_003
Act = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Plan:
    seeds: tuple[int, ...]
    steps: int
    rival_steps: int


def reproduce(plan: Plan, out: Path, say: Callable[[str], None]) -> dict[str, Any]:
    kept = Kept(out, "transplant", {"steps": plan.steps, "rival_steps": plan.rival_steps}, say)
    model = mujoco.MjModel.from_xml_path(str(robot_file("ant.xml")))
    kept.part("nothing", lambda: in_mujoco(model, lambda seen: np.zeros(8)))
    rng = np.random.default_rng(0)
    kept.part("random", lambda: in_mujoco(model, lambda seen: rng.uniform(-1.0, 1.0, 8)))
    for seed in plan.seeds:
        kept.part(f"learned here, seed {seed}", functools.partial(_there, plan, seed, model, out, say))
        if plan.rival_steps:
            kept.part(f"learned in MuJoCo, seed {seed}", functools.partial(_back, plan, seed, model, say))
    kept.write(plan=asdict(plan), paper=PAPER)
    for line in lines(kept.parts):
        say(line)
    return kept.said


def _there(plan: Plan, seed: int, model: Any, out: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Learned here with robots that differ, then in both."""
    run = Run("ant", "shac", seed, plan.steps, randomise=RANDOMISED, episodes=EPISODES)
    cost = outcome(run, out, say)
    policy = load_policy(out / run.name.replace(" ", "_"))

    def act(seen: np.ndarray) -> np.ndarray:
        return policy(seen[None])[0]

    return {"cpu_seconds": cost["cpu_seconds"], "here": here(policy), "mujoco": in_mujoco(model, act)}


def _back(plan: Plan, seed: int, model: Any, say: Callable[[str], None]) -> dict[str, Any]:
    """Learned in MuJoCo by PPO of stable-baselines3, then in both."""
    import time

    import stable_baselines3 as sb3
    import torch

    torch.set_num_threads(1)
    busy = time.process_time()
    learner = sb3.PPO("MlpPolicy", _environment(model), seed=seed, device="cpu", policy_kwargs={"net_arch": [128, 128]})
    learner.learn(plan.rival_steps)

    def act(seen: np.ndarray) -> np.ndarray:
        return learner.predict(seen.astype(np.float32), deterministic=True)[0].astype(np.float64)

    found = {"cpu_seconds": time.process_time() - busy, "here": here(act), "mujoco": in_mujoco(model, act)}
    say(f"learned in MuJoCo, seed {seed}: {json.dumps(found)}")
    return found


def here(act: Any) -> dict[str, float]:
    """Episodes in our own simulator."""
    found = episodes(make_task("ant", **OPTIONS), act, EPISODES, SEED)
    ends = int(((found.lengths == LIMIT) & ~found.fallen).sum())
    return {"return": float(found.returns.mean()), "distance": float(found.distances.mean()), "to_the_end": ends}


# MuJoCo, without our code --------------------------------------------------------------------------------------------------


class InMujoco:
    """One ant."""

    def __init__(self, model: Any) -> None:
        self.model, self.data, self.age = model, mujoco.MjData(model), 0
        self.torso = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, "torso")

    def begin(self, rng: np.random.Generator) -> np.ndarray:
        d = self.data
        mujoco.mj_resetData(self.model, d)
        d.qpos[:] += rng.uniform(-NOISE, NOISE, self.model.nq)
        d.qvel[:] = NOISE * rng.standard_normal(self.model.nv)
        mujoco.mj_forward(self.model, d)
        self.age = 0
        return self.seen()

    def seen(self) -> np.ndarray:
        return np.concatenate((self.data.qpos[2:], self.data.qvel))

    def place(self) -> float:
        return float(self.data.xpos[self.torso, 0])

    def step(self, action: np.ndarray) -> tuple[float, bool]:
        before, d = self.place(), self.data
        d.ctrl[:] = np.clip(action, -1.0, 1.0)
        mujoco.mj_step(self.model, d, HOLD)
        mujoco.mj_kinematics(self.model, d)
        self.age += 1
        is_fine = bool(np.isfinite(d.qpos).all() and HEALTHY[0] <= d.qpos[2] <= HEALTHY[1])
        speed = (self.place() - before) / (HOLD * self.model.opt.timestep)
        return speed + is_fine - 0.5 * float(np.sum(np.square(action))), not is_fine


def in_mujoco(model: Any, act: Act) -> dict[str, float]:
    """Mean return and distance of episodes, their deviation, and how many went to the end."""
    ant, returns, distances, ends = InMujoco(model), [], [], 0
    for k in range(EPISODES):
        seen, earned, is_over = ant.begin(np.random.default_rng([SEED, k])), 0.0, False
        start = ant.place()
        while not is_over and ant.age < LIMIT:
            reward, is_over = ant.step(act(seen))
            earned, seen = earned + reward, ant.seen()
        returns.append(earned)
        distances.append(ant.place() - start)
        ends += not is_over
    return {"return": float(np.mean(returns)), "deviation": float(np.std(returns)),
            "distance": float(np.mean(distances)), "to_the_end": ends}  # fmt: skip


def _environment(model: Any) -> Any:
    """For stable-baselines3."""
    import gymnasium

    class Ant(gymnasium.Env):
        observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (model.nq - 2 + model.nv,), np.float64)
        action_space = gymnasium.spaces.Box(-1.0, 1.0, (model.nu,), np.float32)
        ant = InMujoco(model)

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
            super().reset(seed=seed)
            return self.ant.begin(self.np_random), {}

        def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
            reward, is_over = self.ant.step(action)
            return self.ant.seen(), reward, is_over, self.ant.age >= LIMIT, {}

    return Ant()


def lines(parts: dict[str, Any]) -> list[str]:
    found = ["| | return here | m | to the end | return in MuJoCo | m | to the end | CPU s |", "|" + "---|" * 8]
    for name, said in parts.items():
        two = [said.get("here"), said.get("mujoco", None if "here" in said else said)]
        cells = [
            f"{x['return']:.0f} | {x['distance']:.1f} | {x['to_the_end']} of {EPISODES}" if x else "| |" for x in two
        ]
        found.append(f"| {name} | {cells[0]} | {cells[1]} | {said.get('cpu_seconds', 0):.0f} |")
    return [*found, f"Paper, table 5: {PAPER[0]:.0f} in MuJoCo without pretraining, {PAPER[1]:.0f} with it."]
