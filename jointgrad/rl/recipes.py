"""With which options and settings `jointgrad train` learns each task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True)
class Recipe:
    """options: of the task. learning: options that differ while it learns. settings: of the method. randomise: shares."""

    options: Mapping[str, Any] = field(default_factory=dict)
    learning: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    randomise: Mapping[str, float] | None = None


# contact forces neither seen nor paid for: steps are cheaper; episodes of 15 s
_ANT = Recipe(
    {"include_cfrc_ext_in_observation": False, "contact_cost_weight": 0.0, "limit": 300},
    settings={"actor": (128, 64, 32), "critic": (64, 64), "fits": 8, "decay": 400},
)
_DOG = Recipe(
    learning={"limit": 250},
    settings={"rate": 3e-3, "decay": 800, "ease": 150},
    randomise={"mass": 0.2, "friction": 0.4, "gain": 0.1, "push": 0.3},
)
RECIPES: Mapping[str, Recipe] = MappingProxyType({"ant": _ANT, "go2": _DOG, "a1": _DOG, "laikago": _DOG})


def recipe(task: str) -> Recipe:
    return RECIPES.get(task, Recipe())
