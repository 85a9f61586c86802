"""Runs of methods of learning: each in a folder of its own, gone on with where it was, and what its curve says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..rl.catalogue import make_task
from ..rl.play import Episodes, episodes
from ..rl.policy_file import save_policy
from ..rl.recipes import recipe
from ..rl.task import Task

JUDGED = 3_000_003  # seed of episodes that a finished policy is judged by
SAVES = 20  # checkpoints of a run
RIVALS = ("PPO (SB3)", "SAC (SB3)")
IDLE = ("nothing", "random")


@dataclass(frozen=True)
class Run:
    """A method on a task with options, by seed, for so many actions; `looks` of so many episodes."""

    task: str
    method: str
    seed: int
    steps: int
    options: Mapping[str, Any] = field(default_factory=dict)
    changes: Mapping[str, Any] = field(default_factory=dict)
    episodes: int = 1
    randomise: Mapping[str, float] | None = None

    @property
    def name(self) -> str:
        options = "".join(f" {k}={v}" for k, v in self.options.items())
        return f"{self.task}{options} {self.method} seed {self.seed}"

    def made_task(self) -> Task:
        return make_task(self.task, **{**recipe(self.task).options, **self.options})


def outcome(run: Run, folder: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """What a run came to: its curve, the final policy's return and the best look's, and what it cost."""
    if run.method in IDLE:
        found = _idle(run)
    elif run.method in RIVALS:
        found = _rival(run)
    else:
        found = _own(run, folder / run.name.replace(" ", "_"))
    say(f"{run.name}: final {found['final']:.3f}, best {found['best']:.3f}, {found['cpu_seconds']:.0f} s of processor")
    return found


def _said(curve: list[tuple[float, float, float]], last: Episodes, **more: Any) -> dict[str, Any]:
    """curve: actions, seconds of processor, return."""
    final = float(last.returns.mean())
    return {
        "curve": curve, "final": final, "best": max([final, *(row[2] for row in curve)]), "distance": float(last.distances.mean()),
        "falls": int(last.fallen.sum()), "episodes": len(last.returns),
        "actions": last.actions[:, 0].tolist() if len(last.actions) <= 200 else None, **more,
    }  # fmt: skip


def _own(run: Run, folder: Path) -> dict[str, Any]:
    from ..rl.train import prepared

    training = prepared(run.task, run.method, run.seed, run.changes, run.options, randomise=run.randomise)
    folder.mkdir(parents=True, exist_ok=True)
    training.resume(folder)
    training.warm_up()
    part = max(1, run.steps // SAVES)
    while training.env_steps < run.steps:
        training.run(None, min(run.steps, (training.env_steps // part + 1) * part), lambda text: None)
        training.save(folder)
    policy = training.learner.policy
    save_policy(folder, training.task, {n: x.numpy() for n, x in policy.state_dict().items()}, training.settings.actor)
    last = episodes(training.task, policy, run.episodes, JUDGED)
    curve = [(r["env_steps"], r["cpu_seconds"], r["return_mean"]) for r in training.rows]
    clock = {"cpu_seconds": training.cpu_seconds, "seconds": training.seconds, "env_steps": training.env_steps}
    return _said(curve, last, **clock)


def _idle(run: Run) -> dict[str, Any]:
    """Doing nothing, and acting at random."""
    task, rng = run.made_task(), np.random.default_rng(run.seed)
    low, high = task.action_limits

    def act(seen: np.ndarray) -> np.ndarray:
        shape = len(seen), task.model.nu
        return np.zeros(shape) if run.method == "nothing" else rng.uniform(low, high, shape)

    return _said([], episodes(task, act, max(run.episodes, 8), JUDGED), cpu_seconds=0.0, seconds=0.0, env_steps=0)


def _rival(run: Run) -> dict[str, Any]:
    """stable-baselines3, with its own settings but for the sizes of networks and what the task demands."""
    import time

    import stable_baselines3 as sb3
    import torch

    from ..rl.stable_baselines import StableBaselinesEnvironments

    torch.set_num_threads(1)
    task, is_ppo = run.made_task(), run.method.startswith("PPO")
    options = {name: value for name, value in task.options().items() if name not in ("limit", "law")}
    count = 4 if is_ppo else 1
    environments = StableBaselinesEnvironments(run.task, count, threads=1, max_episode_steps=task.limit, **options)
    common: dict[str, Any] = {"seed": run.seed, "device": "cpu", "policy_kwargs": {"net_arch": [128, 128]}}
    if is_ppo:
        model: Any = sb3.PPO("MlpPolicy", environments, n_steps=128, **common)
    else:
        model = sb3.SAC("MlpPolicy", environments, learning_starts=500, batch_size=128, **common)

    def act(seen: np.ndarray) -> np.ndarray:
        return model.predict(seen.astype(np.float32), deterministic=True)[0].astype(np.float64)

    curve, began, busy = [], time.perf_counter(), time.process_time()
    while model.num_timesteps < run.steps:
        left = run.steps - model.num_timesteps
        # PPO goes on to the end of its own horizon: by 511 actions more than asked for, at most
        model.learn(min(max(1, run.steps // SAVES), left), reset_num_timesteps=False)
        found = float(episodes(task, act, run.episodes, JUDGED + 1).returns.mean())
        curve.append((model.num_timesteps, time.process_time() - busy, found))
    last = episodes(task, act, run.episodes, JUDGED)
    clock = {"cpu_seconds": time.process_time() - busy, "seconds": time.perf_counter() - began}
    return _said(curve, last, env_steps=int(model.num_timesteps), **clock)


# what curves say -----------------------------------------------------------------------------------------------------------


def at(curve: Sequence[Sequence[float]], column: int, most: float) -> float | None:
    """The last return that was seen before so many actions (column 0) or seconds of processor (column 1)."""
    known = [row[2] for row in curve if row[column] <= most]
    return known[-1] if known else None


def area(curve: Sequence[Sequence[float]], most: float) -> float | None:
    """The mean return over actions up to so many, by trapezoids between looks."""
    rows = [(row[0], row[2]) for row in curve if row[0] <= most]
    if not rows:
        return None
    x, y = np.array([(0.0, rows[0][1]), *rows, (most, rows[-1][1])]).T
    return float(np.trapezoid(y, x) / most)


def interval(differences: Sequence[float], seed: int = 0) -> tuple[float, float] | None:
    """95 % of the means of samples drawn with repetition; of fewer than five differences nothing is said."""
    if len(differences) < 5:
        return None
    drawn = np.random.default_rng(seed).choice(np.asarray(differences), (10_000, len(differences)))
    low, high = np.percentile(drawn.mean(1), (2.5, 97.5))
    return float(low), float(high)
