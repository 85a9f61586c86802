"""Policies as files: weights as safetensors, and beside them JSON that says what they were learned with. Nothing in them is run.

A policy is read and played without PyTorch.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..grafts.weights import read_safetensors
from ..model.arguments import reading, writing
from ..model.errors import InputError
from .catalogue import make_task
from .task import Task

FORMAT = "jointgrad policy 1"
WEIGHTS, ABOUT, ONNX = "policy.safetensors", "policy.json", "policy.onnx"
# added to variances, as the network does that learned; and how many deviations an observation may be from the mean
EPSILON, NORM_EPSILON, FARTHEST = 1e-4, 1e-5, 10.0
# the most that is believed: characters of the JSON, hidden layers and their width, numbers among the options
TEXT, LAYERS, WIDTH, MOST = 1_000_000, 8, 4096, 10_000


@dataclass(frozen=True)
class PlainPolicy:
    """A learned policy in NumPy, in single precision: observations (batch, n) to actions (batch, nu)."""

    task: Task
    weights: Mapping[str, np.ndarray]
    n_hidden: int
    differences: tuple[str, ...] = ()  # between the task as it is and as it was when the policy learned

    def __call__(self, seen: np.ndarray) -> np.ndarray:
        w = self.weights
        scale = np.sqrt(w["statistics.variance"] + np.float32(EPSILON))
        x = np.clip((seen.astype(np.float32) - w["statistics.mean"]) / scale, -FARTHEST, FARTHEST)
        for k in range(self.n_hidden):
            x = self._hidden(x, 3 * k)
        last = 3 * self.n_hidden
        share = np.tanh(x @ w[f"layers.{last}.weight"].T + w[f"layers.{last}.bias"])
        return (w["low"] + 0.5 * (share + 1.0) * (w["high"] - w["low"])).astype(np.float64)

    def _hidden(self, x: np.ndarray, k: int) -> np.ndarray:
        """A linear layer, ELU, and a LayerNorm, as PyTorch numbers them."""
        w = self.weights
        x = x @ w[f"layers.{k}.weight"].T + w[f"layers.{k}.bias"]
        x = np.where(x > 0.0, x, np.expm1(np.minimum(x, 0.0)))
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + np.float32(NORM_EPSILON))
        return x * w[f"layers.{k + 2}.weight"] + w[f"layers.{k + 2}.bias"]


def shapes(n_seen: int, hidden: Sequence[int], n_actions: int) -> dict[str, tuple[int, ...]]:
    """Of all arrays of a policy."""
    found: dict[str, tuple[int, ...]] = {"statistics.mean": (n_seen,), "statistics.variance": (n_seen,)}
    for k, (a, b) in enumerate(itertools.pairwise([n_seen, *hidden])):
        found |= {f"layers.{3 * k}.weight": (b, a), f"layers.{3 * k}.bias": (b,)}
        found |= {f"layers.{3 * k + 2}.weight": (b,), f"layers.{3 * k + 2}.bias": (b,)}
    last = f"layers.{3 * len(hidden)}"
    found |= {f"{last}.weight": (n_actions, hidden[-1]), f"{last}.bias": (n_actions,)}
    return found | {"low": (n_actions,), "high": (n_actions,)}


def save_policy(folder: Path, task: Task, weights: Mapping[str, np.ndarray], hidden: Sequence[int]) -> None:
    """Write policy.safetensors, policy.json and policy.onnx."""
    from safetensors.numpy import save_file

    from .onnx_file import write_onnx

    wanted = shapes(task.n_observations, hidden, task.model.nu)
    about = {
        "format": FORMAT, "task": task.name, "options": own_options(task), "hidden": list(hidden),
        "n_observations": task.n_observations, "n_actions": task.model.nu, "settings": _plain(task.settings()),
    }  # fmt: skip
    with writing(folder):
        save_file({name: np.ascontiguousarray(weights[name], np.float32) for name in wanted}, folder / WEIGHTS)
        (folder / ABOUT).write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    write_onnx(
        PlainPolicy(task, {name: np.asarray(weights[name], np.float32) for name in wanted}, len(hidden)), folder / ONNX
    )


def own_options(task: Task) -> dict[str, Any]:
    """Options that are not those of the task by default. Laws are not among them."""
    usual = type(task)().options()
    return {n: _plain(v) for n, v in task.options().items() if v != usual[n] and n != "law"}


def _plain(value: Any) -> Any:
    """As JSON has it, with words for what is not finite."""
    if isinstance(value, Mapping):
        return {name: _plain(x) for name, x in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(x) for x in value]
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value


def load_policy(folder: Path) -> PlainPolicy:
    """Read what `save_policy` wrote; a file that is something else is refused, saying why."""
    about = _about(folder / ABOUT)
    task = make_task(about["task"], **_options(folder / ABOUT, about["options"]))
    with reading(folder / ABOUT, "a policy of this task"):
        sizes = about["n_observations"], about["n_actions"]
        if sizes != (task.n_observations, task.model.nu):
            raise ValueError(f"it sees and acts {sizes}, but the task has {(task.n_observations, task.model.nu)}")
    expected = shapes(*sizes[:1], about["hidden"], sizes[1])
    weights = read_safetensors(folder / WEIGHTS, expected)
    return PlainPolicy(task, weights, len(about["hidden"]), differences(about["settings"], task))


def _about(path: Path) -> dict[str, Any]:
    with reading(path, "a policy that jointgrad saved"):
        if path.stat().st_size > TEXT:
            raise ValueError(f"it has more than {TEXT} characters")
        about = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(about, dict) or about.get("format") != FORMAT:
            raise ValueError(f'it does not say "{FORMAT}"')
        for name, kind in (("task", str), ("options", dict), ("hidden", list), ("settings", dict)):
            if not isinstance(about[name], kind):
                raise ValueError(f'"{name}" is not what it should be')
        hidden = about["hidden"]
        if not 1 <= len(hidden) <= LAYERS or not all(type(n) is int and 1 <= n <= WIDTH for n in hidden):
            raise ValueError(f"its hidden layers must be 1 to {LAYERS} of 1 to {WIDTH}, but are {hidden!r:.60}")
    return about


def _options(path: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """Words, flags, numbers and rows of numbers: a file must not ask for a task of any size."""
    with reading(path, "a policy that jointgrad saved"):
        for name, value in given.items():
            parts = value if isinstance(value, list) else [value]
            if not all(isinstance(x, str | bool) or (isinstance(x, int | float) and abs(x) <= MOST) for x in parts):
                raise ValueError(f'its option "{name}" is {value!r:.60}')
        return {n: tuple(map(_number, v)) if isinstance(v, list) else _number(v) for n, v in given.items()}


def _number(value: Any) -> Any:
    """What `_plain` had no number for."""
    return float(value) if value in ("inf", "-inf") else value


def differences(then: Mapping[str, Any], task: Task) -> tuple[str, ...]:
    """How the task is another one than the policy learned; empty where it is the same."""
    now = _plain(task.settings())
    found = [f"{n} was {then.get(n)!r:.60}, and is {now[n]!r:.60}" for n in now if then.get(n) != now[n]]
    return tuple(found)


def check_folder(folder: Path) -> None:
    """Say so where there is no policy at all."""
    if not (folder / ABOUT).is_file():
        raise InputError(f"there is no policy in {folder}: `jointgrad train` writes one")
