"""The tasks there are, by the name that the command line knows."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from ..model.errors import InputError
from ..model.names import unknown
from .ant import Ant, ReleasedAnt
from .arm import Reach, Throw
from .cart_pole import CartPole
from .humanoid import Humanoid
from .pendulum import Pendulum
from .quadruped import A1, Go2, Laikago
from .reacher import Reacher
from .runners import HalfCheetah, Hopper, Walker
from .task import Task

TASKS: Mapping[str, type[Task]] = MappingProxyType(
    {
        task.name: task
        for task in (
            A1,
            Ant,
            CartPole,
            Go2,
            HalfCheetah,
            Hopper,
            Humanoid,
            Laikago,
            Pendulum,
            Reach,
            Reacher,
            ReleasedAnt,
            Throw,
            Walker,
        )  # fmt: skip
    }
)


def make_task(name: str, **options: Any) -> Task:
    """A task by name; options are the fields of its class."""
    if name not in TASKS:
        raise InputError(unknown("task", name, tuple(TASKS)))
    kind = TASKS[name]
    for option in options:
        if option not in kind.__dataclass_fields__:
            raise InputError(unknown(f"option of task {name}", option, tuple(kind.__dataclass_fields__)))
    return kind(**options)
