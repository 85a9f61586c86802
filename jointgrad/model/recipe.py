"""From what a model was made, so that it can be made again elsewhere: the world, how it was compiled, what was grafted on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .contact_pairs import Rule
from .parts import PlacedRobot


@dataclass(frozen=True, eq=False)
class Recipe:
    """`world` and `compile` are the arguments of World and World.compile, each of `grafts` those of jg.graft."""

    world: dict[str, Any]
    placed: tuple[PlacedRobot, ...]
    rules: tuple[Rule, ...]
    compile: dict[str, Any]
    grafts: tuple[dict[str, Any], ...] = ()
