"""Which shapes of a world may touch, by which law and with which friction.

Shapes of one body never touch, nor do neighbours on a tree (as in MuJoCo, the world does not count as one), shapes
that overlap where the robot starts, and pairs that a file or `World.pair` excludes.
"""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass, field
from typing import Any

from .contact_shapes import ContactShape
from .laws import ROWS, Impulse, Law, Spring
from .ranges import PAIR

# friction of a shape that says nothing, where its partner says nothing either: sliding, torsional (m), rolling (m)
FRICTION = (1.0, 0.005, 0.0001)
# what may be asked of a pair, besides its law
PAIR_OPTIONS = tuple(PAIR)


@dataclass
class Rule:
    """What `World.pair` says of all pairs whose names match."""

    first: str
    second: str
    contact: Any
    options: dict[str, float]
    is_literal: bool = False  # a name of a file may have stars in it, and means itself

    @property
    def is_pattern(self) -> bool:
        """Patterns speak of pairs that may touch; names also of neighbours and of shapes that overlap."""
        return not self.is_literal and any(c in name for name in (self.first, self.second) for c in "*?[")

    def matches(self, a: ContactShape, b: ContactShape) -> bool:
        return any(_is_called(x, self.first) and _is_called(y, self.second) for x, y in ((a, b), (b, a)))


def _is_called(shape: ContactShape, pattern: str) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for name in (shape.name, shape.link))


def is_filtered(a: ContactShape, b: ContactShape, tree: dict[str, Any]) -> bool:
    """Shapes of one body, of neighbours, or that their files tell apart by bits."""
    n = tree["n_bodies"]
    if a.body == b.body:
        return True
    for x, y in ((a.body, b.body), (b.body, a.body)):
        if x < n and y < n and tree["parent"][x] == y:
            return True
    one, two = int(a.said("contype")) & int(b.said("conaffinity")), int(b.said("contype")) & int(a.said("conaffinity"))
    return not (one or two)


def _friction(a: ContactShape, b: ContactShape) -> tuple[float, float, float, int]:
    """Sliding, torsional, rolling friction and number of dimensions, as MuJoCo combines them: those of the shape with the higher
    priority, else the larger of the two; a shape that says nothing leaves it to the other."""
    first = max(a.said("priority"), b.said("priority"))
    heard = [s for s in (a, b) if s.said("priority") == first]
    given = [tuple(s.shape.friction) for s in heard if s.shape is not None and len(s.shape.friction)]
    padded = [(*g, *FRICTION[len(g) :]) for g in given] or [FRICTION]
    dims = int(max(s.said("condim") for s in heard))
    slide, turn, roll = (max(p[k] for p in padded) for k in range(3))
    return (0.0 if dims == 1 else slide), turn, (roll if dims == 6 else 0.0), dims


def parameters_of(
    a: ContactShape, b: ContactShape, law: Law, options: dict[str, float]
) -> tuple[dict[str, float], bool]:
    """Parameters of a pair, and whether it resists turning."""
    hard, soft = (law, Spring()) if isinstance(law, ROWS) else (Impulse(margin=law.margin), law)
    slide, turn, roll, dims = _friction(a, b)
    row = {
        "friction": slide, "torsion": turn, "rolling": roll, "restitution": 0.0, "baumgarte": hard.baumgarte,
        "compliance": hard.compliance, "softness": hard.softness, "margin": hard.margin,
        "max_push_out_speed": hard.max_push_out_speed, "stiffness": soft.stiffness,
        "damping": soft.damping, "exponent": soft.exponent, "static_friction": soft.static_friction,
        "transition": soft.transition,
    }  # fmt: skip
    row |= options
    spins = dims > 3 or "torsion" in options or "rolling" in options
    if spins and dims <= 3:
        row |= {w: options.get(w, 0.0) for w in ("torsion", "rolling")}
    return row, spins and isinstance(law, ROWS)


def sharing_name(a: ContactShape, b: ContactShape, tree: dict[str, Any], rule: int | None) -> str:
    """Pairs of one category and with equal values share a row: each shape with what is fixed has its own."""
    if rule is not None:
        return f"{a.name}:{b.name}"
    s, t = tree["body_tree"][a.body], tree["body_tree"][b.body]
    if tree["n_trees"] in (s, t):
        return f"{a.name}:{b.name}"
    return f"within {a.robot}".rstrip() if s == t else "between"


class Default:
    """Stands for the law of the world."""


@dataclass
class PairRules:
    """What was said about pairs: rules, the law of all others, options of pairs that files name, pairs to leave apart."""

    rules: list[Rule]
    law: Law | None
    explicit: dict[frozenset, dict[str, float]]
    overlapping: set[frozenset[int]]
    used: set[int] = field(default_factory=set)
    # numbers of the rules that speak of two names, and of those that speak in patterns
    by_names: dict[frozenset, list[int]] = field(default_factory=dict)
    patterns: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        for k, rule in enumerate(self.rules):
            if rule.is_pattern:
                self.patterns.append(k)
            else:
                self.by_names.setdefault(frozenset((rule.first, rule.second)), []).append(k)

    def matching(self, a: ContactShape, b: ContactShape) -> list[int]:
        """Rules that speak of a pair, in the order in which they were said."""
        if not self.rules:
            return []
        named = {frozenset((x, y)) for x in (a.name, a.link) for y in (b.name, b.link)}
        found = {k for names in named for k in self.by_names.get(names, ())}
        return sorted(found.union(k for k in self.patterns if self.rules[k].matches(a, b)))

    def of(
        self, i: int, j: int, shapes: list[ContactShape], tree: dict
    ) -> tuple[Any, dict[str, float], int | None, bool]:
        """Law of a pair (None: it does not touch), its options, the rule that spoke, and whether it is left apart because the
        shapes overlap where the robot starts."""
        a, b = shapes[i], shapes[j]
        names = frozenset((a.name, b.name))
        options = dict(self.explicit.get(names, {}))
        may_not = names not in self.explicit and is_filtered(a, b, tree)
        is_apart = names not in self.explicit and not may_not and frozenset((i, j)) in self.overlapping
        matching = self.matching(a, b)
        self.used.update(matching)
        heard = [
            k
            for k in matching
            if self.rules[k].contact is None or not (self.rules[k].is_pattern and (may_not or is_apart))
        ]
        if heard:
            rule = self.rules[heard[-1]]
            return (self.law if rule.contact is Default else rule.contact), options | rule.options, heard[-1], False
        return (None if may_not or is_apart else self.law), options, None, is_apart
