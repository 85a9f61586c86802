"""With which options and settings `jointgrad train` learns each task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True)
class Recipe:
    """options: of the task. learning: options that differ while it learns. settings: of shac and its special cases. randomise:
    shares. others: settings of methods by name, of the file they are in and then their own."""

    options: Mapping[str, Any] = field(default_factory=dict)
    learning: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    randomise: Mapping[str, float] | None = None
    others: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def settings_of(self, method: str, module: str) -> dict[str, Any]:
        own = self.settings if module == "shac" else {}
        return {**own, **self.others.get(module, {}), **self.others.get(method, {})}


# contact forces neither seen nor paid for: steps are cheaper; episodes of 15 s
_ANT = Recipe(
    {"include_cfrc_ext_in_observation": False, "contact_cost_weight": 0.0, "limit": 300},
    settings={"actor": (128, 64, 32), "critic": (64, 64), "fits": 8, "decay": 400},
    others={"sac": {"first": 2000, "repeats": 5, "entropy": -4.0}, "mbpo": {"first": 2000, "entropy": -4.0}},
)
_DOG = Recipe(
    learning={"limit": 250},
    settings={"rate": 3e-3, "decay": 800, "ease": 100},
    randomise={"mass": 0.2, "friction": 0.5, "gain": 0.1, "push": 0.4},
)
# the paper's episodes end with time, which is seen, and nothing is discounted
_PENDULUM_POOL = {"period": 100, "repeats": 5, "first": 500, "discount": 1.0, "limit_ends": True, "tried": 1, "every": 5,
                  "entropy": -0.01}  # fmt: skip
_PENDULUM = Recipe(
    others={
        # noise smooths a chaotic landscape at first, and is gone at the end
        "apg": {
            "environments": 32,
            "noise": 0.15,
            "fade": True,
            "rate": 6e-4,
            "decay": 450,
            "floor": 0.01,
            "average": 0.9,
            "tried": 1,
            "every": 10,
        },
        "sac": _PENDULUM_POOL,
        "mbpo": {**_PENDULUM_POOL, "refit": 500, "passes": 10, "lengths": (1, 2, 1, 1)},
    }  # fmt: skip
)
RECIPES: Mapping[str, Recipe] = MappingProxyType(
    {"ant": _ANT, "go2": _DOG, "a1": _DOG, "laikago": _DOG, "pendulum": _PENDULUM}
)


def recipe(task: str) -> Recipe:
    return RECIPES.get(task, Recipe())
