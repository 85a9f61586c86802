"""Tasks for learning, in NumPy, gymnasium, PyTorch and stable-baselines3. Importing it registers jointgrad/Ant-v0 and so on."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .catalogue import TASKS, make_task
from .randomise import Randomisation
from .task import Moment, Task

_HOME = {
    "Batch": "batch",
    "DifferentiableTask": "differentiable",
    "Environment": "gym",
    "VectorEnvironment": "gym",
    "StableBaselinesEnvironments": "stable_baselines",
}
__all__ = ["TASKS", "Moment", "Randomisation", "Task", "make_task", *_HOME]

if TYPE_CHECKING:
    from .batch import Batch as Batch
    from .differentiable import DifferentiableTask as DifferentiableTask
    from .gym import Environment as Environment
    from .gym import VectorEnvironment as VectorEnvironment
    from .stable_baselines import StableBaselinesEnvironments as StableBaselinesEnvironments


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'jointgrad.rl' has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)


def _register() -> None:
    """Ids for gymnasium.make and make_vec."""
    try:
        import gymnasium
    except ModuleNotFoundError:
        # the tasks themselves and their gradients do not need it
        return
    for name, task in TASKS.items():
        gymnasium.register(
            f"jointgrad/{task.__name__}-v0", entry_point="jointgrad.rl.gym:Environment",
            vector_entry_point="jointgrad.rl.gym:VectorEnvironment", max_episode_steps=task.limit, kwargs={"task": name},
        )  # fmt: skip


_register()
