"""Learning a task from the command line: limits, a curve, the best policy so far, and a folder that can be gone on with."""

from __future__ import annotations

import copy
import csv
import dataclasses
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from ..model.arguments import checked_count, checked_number, reading, writing
from ..model.errors import InputError
from .catalogue import make_task
from .live import LivePage
from .methods import Method, checkpoint, method_named
from .play import Episodes, episodes
from .policy_file import PlainPolicy, own_options, save_policy
from .randomise import randomisation
from .recipes import recipe
from .task import Task

TENSORS, STATE, CURVE, PICTURE, SUMMARY = (
    "checkpoint.safetensors",
    "checkpoint.json",
    "curve.csv",
    "curve.png",
    "summary.json",
)
# of a row of the curve: before and after the numbers of the method itself
CLOCK, LOOKED = ("update", "env_steps", "cpu_seconds", "seconds"), ("return_mean", "distance_mean", "episode_falls")
LOOK, FINAL = 1_000_003, 2_000_003  # seeds of episodes that are looked at, and of those at the end


class Training:
    """A learner, its clock, its curve, and the best policy that was looked at."""

    def __init__(
        self, task: Task, learning: Task, method: Method, settings: Any, seed: int, shares: Any, threads: int
    ) -> None:
        self.task, self.learning, self.settings, self.seed, self.shares = task, learning, settings, seed, shares
        self.method, self.threads = method, threads
        self.learner = self._learner()
        self.rows: list[dict[str, Any]] = []
        self.seconds = self.cpu_seconds = 0.0
        self.best, self.best_return = self._weights(), -np.inf
        self._since: list[dict[str, float]] = []

    def _learner(self) -> Any:
        return self.method.learner_class()(
            self.learning, self.settings, self.seed, randomisation(self.shares), self.threads
        )

    @property
    def env_steps(self) -> int:
        return self.learner.updates * self.settings.steps()

    def warm_up(self) -> float:
        """Seconds until the engine is compiled, or loaded from the cache: a learner that is thrown away makes one update."""
        began = time.perf_counter()
        self._learner().update()
        episodes(self.task, self.learner.policy, 1, LOOK).motion(1)
        return time.perf_counter() - began

    def run(
        self, seconds: float | None, steps: int | None, say: Callable[[str], None], page: LivePage | None = None
    ) -> None:
        """Update until the processor was busy for so many seconds, or so many actions were tried, or it is ended on its page."""
        before = self.seconds, self.cpu_seconds
        began, busy = time.perf_counter(), time.process_time() - _shown(page)
        if not self.rows:
            say(self._look())  # what it can do before it has learned anything
        while (seconds is None or self.cpu_seconds < seconds) and (steps is None or self.env_steps < steps):
            self._since.append(self.learner.update())
            if self.learner.updates % self.settings.every == 0:
                say(self._look())
            self.seconds = before[0] + time.perf_counter() - began
            self.cpu_seconds = before[1] + time.process_time() - _shown(page) - busy
            if page is not None and not page.told(self.learner.updates, self.rows, self.plain_policy):
                return

    def _look(self) -> str:
        """Let the policy play; keep it if it is the best so far. A line that says how it is."""
        found = episodes(self.learning, self.learner.policy, self.settings.tried, LOOK, threads=self.threads).summary()
        if found["return_mean"] > self.best_return:
            self.best, self.best_return = self._weights(), found["return_mean"]
        means = {name: float(np.mean([one[name] for one in self._since])) for name in (self._since or [{}])[0]}
        self._since = []
        clock = (self.learner.updates, self.env_steps, self.cpu_seconds, self.seconds)
        looked = (found["return_mean"], found["distance_mean"], found["falls"])
        self.rows.append(dict(zip(CLOCK, clock, strict=True)) | means | dict(zip(LOOKED, looked, strict=True)))
        return (
            f"{self.env_steps:>9,} steps {self.cpu_seconds:6.1f} s: return {found['return_mean']:.1f}, "
            f"{found['distance_mean']:.1f} m, {found['falls']} of {self.settings.tried} failed"
        )

    def _weights(self) -> dict[str, torch.Tensor]:
        return copy.deepcopy(self.learner.policy.state_dict())

    def plain_policy(self) -> PlainPolicy:
        """The policy as it is now, apart from the one that goes on learning."""
        weights = {name: x.numpy().copy() for name, x in self.learner.policy.state_dict().items()}
        return PlainPolicy(self.task, weights, len(self.settings.actor))

    def policy(self) -> Any:
        """What is to be played: the best that was looked at, or the last if that is better."""
        now = episodes(self.learning, self.learner.policy, self.settings.tried, LOOK, threads=self.threads).summary()
        policy = copy.deepcopy(self.learner.policy)
        if now["return_mean"] < self.best_return:
            policy.load_state_dict(self.best)
        return policy

    # files --------------------------------------------------------------------------------------------------------------

    def save_all(self, folder: Path) -> None:
        """The checkpoint, and the policy that would be played."""
        self.save(folder)
        self.save_policy(folder)

    def save_policy(self, folder: Path) -> Any:
        """Write what is to be played, and return it."""
        policy = self.policy()
        weights = {n: x.numpy() for n, x in policy.state_dict().items()}
        save_policy(folder, self.task, weights, self.settings.actor)
        return policy

    def about(self) -> dict[str, Any]:
        """What a checkpoint must agree with."""
        return json.loads(json.dumps({
            "task": self.task.name, "method": self.method.module, "options": own_options(self.task),
            "learning": own_options(self.learning),
            "digest": self.task.digest, "settings": dataclasses.asdict(self.settings), "seed": self.seed,
            "randomise": None if self.shares is None else dict(self.shares),
        }))  # fmt: skip

    def save(self, folder: Path) -> None:
        tensors, said = checkpoint.state_of(self.learner)
        tensors |= {f"best.{name}": x for name, x in self.best.items()}
        said |= {"about": self.about(), "seconds": self.seconds, "cpu_seconds": self.cpu_seconds, "rows": self.rows,
                 "best_return": None if np.isinf(self.best_return) else self.best_return, "since": self._since}  # fmt: skip
        with writing(folder):
            save_file(tensors, folder / TENSORS)
            (folder / STATE).write_text(json.dumps(said) + "\n", encoding="utf-8")

    def resume(self, folder: Path) -> bool:
        """Go on where a checkpoint in the folder was, if there is one; it must be of the same learning."""
        if not (folder / STATE).is_file():
            return False
        with reading(folder / STATE, "a checkpoint that jointgrad saved"):
            said = json.loads((folder / STATE).read_text(encoding="utf-8"))
            then, now = said["about"], self.about()
            other = [name for name in now if then.get(name) != now[name]]
            if other:
                raise InputError(f"{folder} holds a run with another {', '.join(other)}: choose another --out")
            tensors = _read(folder / TENSORS)
            checkpoint.restore(self.learner, tensors, said)
            self.best = {n.removeprefix("best."): x for n, x in tensors.items() if n.startswith("best.")}
            self.rows, self._since = said["rows"], said["since"]
            self.seconds, self.cpu_seconds = said["seconds"], said["cpu_seconds"]
            self.best_return = -np.inf if said["best_return"] is None else said["best_return"]
        return True


def train(
    name: str, method: str, seconds: float | None, steps: int | None, seed: int, out: Path, changes: Mapping[str, Any],
    options: Mapping[str, Any], threads: int = 1, count: int = 64, say: Callable[[str], None] = print, page: LivePage | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Learn a task and write policy.safetensors, policy.json, policy.onnx, curve.csv, curve.png, summary.json and a checkpoint.
    page: on which it can be watched."""
    _check_limits(seconds, steps, seed)
    training = prepared(name, method, seed, changes, options, threads)
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
    if training.resume(out):
        say(f"going on in {out} after {training.env_steps:,} steps and {training.cpu_seconds:.1f} s")
    compiling = training.warm_up()
    say(f"ready after {compiling:.1f} s")
    if page is not None:
        page.save = lambda: training.save_all(out)
    is_interrupted = False
    try:
        training.run(seconds, steps, say, page)
    except KeyboardInterrupt:
        # an update may be half done: the checkpoint on disk stays
        is_interrupted = True
    else:
        training.save(out)
    policy = training.save_policy(out)
    played = episodes(training.task, policy, count, FINAL, threads=threads)
    said = _summary(training, method, compiling, played) | {"interrupted": is_interrupted}
    _write(out, training, said)
    return said


def prepared(
    name: str, method: str, seed: int, changes: Mapping[str, Any], options: Mapping[str, Any], threads: int = 1,
    randomise: Mapping[str, float] | None = None,
) -> Training:  # fmt: skip
    """A training by the task's recipe, with changes of the method's settings, of the task's options and of how robots differ."""
    kind, made = method_named(method), recipe(name)
    task = make_task(name, **{**made.options, **options})
    learning = dataclasses.replace(task, **{n: v for n, v in made.learning.items() if n not in options})
    settings = kind.made(learning, made.settings_of(method, kind.module), changes)
    return Training(task, learning, kind, settings, seed, randomise or made.randomise, threads)


def _shown(page: LivePage | None) -> float:
    """Seconds that the processor spent on the page: to show it is not to learn."""
    return 0.0 if page is None else page.cpu_seconds


def _read(path: Path) -> dict[str, torch.Tensor]:
    try:
        return load_file(path)
    except SafetensorError as failure:
        raise InputError(f"{path} is no safetensors file: {failure}") from None


def _check_limits(seconds: float | None, steps: int | None, seed: int) -> None:
    if seconds is None and steps is None:
        raise InputError("say how long to learn: --seconds or --steps")
    if seconds is not None:
        checked_number("--seconds", seconds, 0.0, is_above=True)
    if steps is not None:
        checked_count("--steps", steps, 1)
    checked_count("--seed", seed)


def _summary(training: Training, method: str, compiling: float, played: Episodes) -> dict[str, Any]:
    return {
        "task": training.task.name, "method": method, "seed": training.seed, "env_steps": training.env_steps,
        "updates": training.learner.updates, "seconds": training.seconds, "cpu_seconds": training.cpu_seconds,
        "compile_seconds": compiling, **played.summary(), "settings": dataclasses.asdict(training.settings),
        "options": own_options(training.task), "randomise": training.shares and dict(training.shares),
        "digest": training.task.digest,
    }  # fmt: skip


def _write(out: Path, training: Training, said: Mapping[str, Any]) -> None:
    with writing(out):
        with open(out / CURVE, "w", newline="", encoding="utf-8") as file:
            # the first look has no numbers of the method yet
            table = csv.DictWriter(file, list(training.rows[-1]))
            table.writeheader()
            table.writerows(training.rows)
        (out / SUMMARY).write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")
        draw(training.rows, out / PICTURE, training.task.name)


def draw(rows: list[dict[str, Any]], path: Path, title: str) -> None:
    """The return of episodes over the seconds of learning."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.5), layout="constrained")
    axes = figure.subplots()
    axes.plot([r["cpu_seconds"] for r in rows], [r["return_mean"] for r in rows], marker=".")
    axes.set(xlabel="processor seconds", ylabel="return of an episode", title=title)
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)
