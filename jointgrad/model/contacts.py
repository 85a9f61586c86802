"""Which shapes of a world may touch, by which law and with which friction; limits, dry friction, loops.

Shapes of one body never touch, nor do neighbours on a tree (as in MuJoCo, the world does not count as one), shapes
that overlap where the robot starts, and pairs that a file or `World.pair` excludes.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .arrays import (
    BOX,
    CAPSULE,
    CONNECT,
    FRICTION_ROW,
    HIGH_ROW,
    JOINT_TIE,
    LOW_ROW,
    MIMIC_ROW,
    NO_ROW,
    PAIR_KINDS,
    PLANE,
    PRISMATIC,
    REVOLUTE,
    SPHERE,
    STOP_ROW,
    WELD,
    is_narrow,
)
from .description import Shape
from .errors import ModelError, UnsupportedWarning, warn_caller
from .laws import Impulse, Law, Spring
from .ranges import PAIR, numbers, unit_quaternion
from .trees import visits

KINDS = {"plane": PLANE, "sphere": SPHERE, "capsule": CAPSULE, "box": BOX, "points": SPHERE}
NAMES = {PLANE: "plane", SPHERE: "sphere", CAPSULE: "capsule", BOX: "box"}
# candidates that a pair has: in one lane fewer may touch, but each lane of a pack may have others
POINTS = dict(zip(PAIR_KINDS, (1, 2, 8, 1, 1, 2, 1, 2, 13), strict=True))
# friction of a shape that says nothing, where its partner says nothing either: sliding, torsional (m), rolling (m)
FRICTION = (1.0, 0.005, 0.0001)
# a world with room for more blocks of rows per tree is solved by running sums (twice as many where trees may touch each other,
# which few do at a time): not by what touches, or the bits of an environment would depend on its neighbours
MATRIX_BLOCKS = 12
SAME_FOR_ALL = {"condim": 3, "contype": 1, "conaffinity": 1, "priority": 0}
# what may be asked of a pair, besides its law
PAIR_OPTIONS = tuple(PAIR)


@dataclass
class Touching:
    """A shape as the engine knows it."""

    name: str
    link: str
    kind: int
    frame: int
    body: int
    size: tuple[float, ...]
    placement: tuple[float, ...]
    shape: Shape | None = None

    @property
    def robot(self) -> str:
        """The name that the robot was given in its world."""
        return self.link.rpartition("/")[0]

    def said(self, what: str) -> float:
        return self.shape.contact.get(what, SAME_FOR_ALL[what]) if self.shape else SAME_FOR_ALL[what]


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

    def matches(self, a: Touching, b: Touching) -> bool:
        return any(_is_called(x, self.first) and _is_called(y, self.second) for x, y in ((a, b), (b, a)))


def _is_called(shape: Touching, pattern: str) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for name in (shape.name, shape.link))


@dataclass
class Contacts:
    """Shapes, pairs and ties as flat lists."""

    shapes: list[Touching] = field(default_factory=list)
    pairs: list[tuple[int, int, int, int, int, bool]] = field(default_factory=list)  # kind, a, b, row, law, spins
    rows: list[dict[str, float]] = field(default_factory=list)
    row_names: list[str] = field(default_factory=list)
    ties: list[dict[str, Any]] = field(default_factory=list)
    overlapping: list[str] = field(default_factory=list)  # pairs left out for that
    laws: list[Impulse] = field(default_factory=list)  # impulse laws of single pairs


# shapes -----------------------------------------------------------------------------------------------------------------


def shapes_of(links: list, frame_body: list[int], wanted: bool) -> tuple[list[Touching], dict[str, list[str]]]:
    """Shapes that take part in contact, and those of kinds that cannot yet, by kind."""
    found: list[Touching] = []
    left_out: dict[str, list[str]] = {}
    for name, link, frame in links if wanted else ():
        for number, shape in enumerate(s for s in link.shapes if s.role != "visual"):
            own = shape.name or f"{name}.{number}" if number or shape.name else name
            if shape.kind not in KINDS:
                left_out.setdefault(shape.kind, []).append(own)
                continue
            found += _touching(own, name, shape, frame, frame_body[frame])
    return found, left_out


def _touching(name: str, link: str, shape: Shape, frame: int, body: int) -> Iterator[Touching]:
    owner = f'{shape.kind} "{name}"'
    size = () if shape.kind == "plane" else shape.size
    turn = unit_quaternion(owner, "orientation", shape.orientation)
    place = numbers(owner, "position", shape.position, 3)
    three = (*size, 0.0, 0.0, 0.0)[:3]
    if shape.kind != "points":
        yield Touching(name, link, KINDS[shape.kind], frame, body, three, (*place, *turn), shape)
        return
    w, xyz = turn[0], np.array(turn[1:])
    for k, point in enumerate(np.asarray(shape.points, dtype=np.float64).reshape(-1, 3)):
        at = place + point + 2.0 * np.cross(xyz, np.cross(xyz, point) + w * point)
        yield Touching(f"{name}[{k}]", link, SPHERE, frame, body, three, (*at, *turn), shape)


# pairs ------------------------------------------------------------------------------------------------------------------


def is_filtered(a: Touching, b: Touching, tree: dict[str, Any]) -> bool:
    """Shapes of one body, of neighbours, or that their files tell apart by bits."""
    n = tree["n_bodies"]
    if a.body == b.body:
        return True
    for x, y in ((a.body, b.body), (b.body, a.body)):
        if x < n and y < n and tree["parent"][x] == y:
            return True
    one, two = int(a.said("contype")) & int(b.said("conaffinity")), int(b.said("contype")) & int(a.said("conaffinity"))
    return not (one or two)


def _friction(a: Touching, b: Touching) -> tuple[float, float, float, int]:
    """Sliding, torsional, rolling friction and number of dimensions, as MuJoCo combines them: those of the shape with the higher
    priority, else the larger of the two; a shape that says nothing leaves it to the other."""
    first = max(a.said("priority"), b.said("priority"))
    heard = [s for s in (a, b) if s.said("priority") == first]
    given = [tuple(s.shape.friction) for s in heard if s.shape is not None and len(s.shape.friction)]
    padded = [(*g, *FRICTION[len(g) :]) for g in given] or [FRICTION]
    dims = int(max(s.said("condim") for s in heard))
    slide, turn, roll = (max(p[k] for p in padded) for k in range(3))
    return (0.0 if dims == 1 else slide), turn, (roll if dims == 6 else 0.0), dims


def _row(a: Touching, b: Touching, law: Law, options: dict[str, float]) -> tuple[dict[str, float], bool]:
    """Parameters of a pair, and whether it resists turning."""
    hard, soft = (law, Spring()) if isinstance(law, Impulse) else (Impulse(margin=0.0), law)
    slide, turn, roll, dims = _friction(a, b)
    row = {
        "friction": slide, "torsion": turn, "rolling": roll, "restitution": 0.0, "stabilisation": hard.stabilisation,
        "compliance": hard.compliance, "softness": hard.softness, "margin": hard.margin,
        "push_limit": hard.push_limit, "stiffness": soft.stiffness,
        "damping": soft.damping, "exponent": soft.exponent, "static_friction": soft.static_friction,
        "transition": soft.transition,
    }  # fmt: skip
    row |= options
    spins = dims > 3 or "torsion" in options or "rolling" in options
    if spins and dims <= 3:
        row |= {w: options.get(w, 0.0) for w in ("torsion", "rolling")}
    return row, spins and isinstance(law, Impulse)


def _category(a: Touching, b: Touching, tree: dict[str, Any], rule: int | None) -> str:
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
class Wishes:
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

    def matching(self, a: Touching, b: Touching) -> list[int]:
        """Rules that speak of a pair, in the order in which they were said."""
        if not self.rules:
            return []
        named = {frozenset((x, y)) for x in (a.name, a.link) for y in (b.name, b.link)}
        found = {k for names in named for k in self.by_names.get(names, ())}
        return sorted(found.union(k for k in self.patterns if self.rules[k].matches(a, b)))

    def of(self, i: int, j: int, shapes: list[Touching], tree: dict) -> tuple[Any, dict[str, float], int | None, bool]:
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


def list_pairs(contacts: Contacts, tree: dict[str, Any], wishes: Wishes, pairs: np.ndarray) -> list[str]:
    """Fill in pairs and their rows, runs of one kind between two trees together; names of pairs that no rule matched."""
    shapes, world = contacts.shapes, tree["n_trees"]
    rows: dict[Any, int] = {}
    listed = []
    for i, j in pairs.tolist():
        law, options, number, is_apart = wishes.of(i, j, shapes, tree)
        if is_apart:
            contacts.overlapping.append(f'"{shapes[i].name}" and "{shapes[j].name}"')
        if law is None:
            continue
        # the later kind first, as the operators take them
        one, two = (i, j) if shapes[i].kind > shapes[j].kind else (j, i)
        values, spins = _row(shapes[one], shapes[two], law, options)
        name = _category(shapes[one], shapes[two], tree, number)
        row = rows.setdefault((name, number, tuple(values.values()), law.code), len(rows))
        if row == len(contacts.rows):
            contacts.rows.append(values)
            contacts.row_names.append(name)
        kind = PAIR_KINDS.index(f"{NAMES[shapes[one].kind]}_{NAMES[shapes[two].kind]}")
        s, t = sorted(tree["body_tree"][shapes[k].body] for k in (one, two))
        listed.append(((t == world, s == t, s, t, kind), (kind, one, two, row, law.code, spins)))
    contacts.pairs = [pair for _, pair in sorted(listed, key=lambda entry: entry[0])]
    contacts.laws = [r.contact for r in wishes.rules if isinstance(r.contact, Impulse)]
    return [f'"{r.first}" and "{r.second}"' for k, r in enumerate(wishes.rules) if k not in wishes.used]


def _solver(law: Law | None, others: list[Impulse]) -> tuple[int, bool, str]:
    """Sweeps, cone and form. All rows of a world are one problem, so that all impulse laws in it must agree on them."""
    laws = ([law] if isinstance(law, Impulse) else []) + others
    asked = {(one.sweeps, one.cone, one.form) for one in laws}
    if len(asked) > 1:
        raise ModelError(
            f"impulse laws of one world ask for different ones of (sweeps, cone, form): {', '.join(map(str, sorted(asked)))}; "
            "all contacts are solved together, so give them the same"
        )
    return asked.pop() if asked else (Impulse().sweeps, Impulse().cone, Impulse().form)


def contact_arrays(contacts: Contacts, tree: dict[str, Any], law: Law | None, most: int | None) -> dict[str, Any]:
    """The integers of shapes, pairs and ties."""
    pairs = contacts.pairs
    runs: list[tuple[int, int, int, int]] = []
    for number, (kind, a, b, *_) in enumerate(pairs):
        trees = [tree["body_tree"][contacts.shapes[k].body] for k in (a, b)]
        if not runs or runs[-1][:3] != (kind, *trees):
            runs.append((kind, *trees, number))
    touches = sum(POINTS[PAIR_KINDS[kind]] for kind, *_ in pairs)
    blocks = sum(
        POINTS[PAIR_KINDS[kind]] * (1 + spins) for kind, _, _, _, code, spins in pairs if code == Impulse().code
    )
    room = most if most is not None else 128 + 8 * tree["n_trees"]
    touches = min(touches, room)
    # ties are always there, and a point that resists turning needs two blocks
    blocks = len(contacts.ties) + min(blocks, room * (1 + any(spins for *_, spins in pairs)))
    sweeps, is_cone, form = _solver(law, contacts.laws)
    has_matrix = form == "matrix" or (form == "auto" and blocks <= MATRIX_BLOCKS * (2 * tree["n_trees"] - 1))
    has_trees = any(tree["n_trees"] not in (s, t) and s != t for _, s, t, _ in runs)
    return {
        "n_shapes": len(contacts.shapes), "n_runs": len(runs), "n_pairs": len(pairs), "n_pair_rows": len(contacts.rows),
        "shape_frame": [s.frame for s in contacts.shapes], "shape_body": [s.body for s in contacts.shapes],
        "shape_kind": [s.kind for s in contacts.shapes],
        "run_kind": [r[0] for r in runs], "run_tree_a": [r[1] for r in runs], "run_tree_b": [r[2] for r in runs],
        "run_first": [*(r[3] for r in runs), len(pairs)], "has_tree_pairs": int(has_trees),
        "pair_kind": [p[0] for p in pairs], "pair_a": [p[1] for p in pairs], "pair_b": [p[2] for p in pairs],
        "pair_row": [p[3] for p in pairs], "pair_law": [p[4] for p in pairs], "pair_spins": [int(p[5]) for p in pairs],
        "n_ties": len(contacts.ties), **_tie_arrays(contacts.ties),
        "has_impulses": int(blocks > 0), "has_soft_contact": int(any(p[4] != Impulse().code for p in pairs)),
        "sweeps": sweeps, "is_cone": int(is_cone),
        "most_touches": touches, "most_blocks": blocks, "has_matrix": int(has_matrix),
        "most_couplings": min(blocks, 128) * blocks if has_matrix else blocks,
    }  # fmt: skip


def _tie_arrays(ties: list[dict[str, Any]]) -> dict[str, list[int]]:
    none = {"kind": NO_ROW, "frame": 0, "dof": -1, "q": 0, "dof2": -1, "q2": 0}
    rows = [row for tie in ties for row in (*tie["rows"], none, none, none)[:3]]
    return {
        **{f"tie_{what}": [tie[what] for tie in ties] for what in ("kind", "a", "b")},
        "tie_row": [row["kind"] for row in rows],
        **{f"tie_{what}": [row[what] for row in rows] for what in ("frame", "dof", "q", "dof2", "q2")},
    }


# ties -------------------------------------------------------------------------------------------------------------------


def joint_ties(
    frames: list, frame_body: list[int], first_q: Any, first_dof: Any, tree: dict, mimics: dict
) -> list[dict]:
    """Limits, dry friction and mimic rows; neighbours on a path share a block."""
    rows = []
    for i, f in enumerate(frames):
        if f.joint is None or f.kind not in (REVOLUTE, PRISMATIC):
            continue
        own = {"frame": i, "dof": int(first_dof[i]), "q": int(first_q[i]), "dof2": -1, "q2": 0, "body": frame_body[i]}
        if f.joint.friction:
            rows.append(own | {"kind": FRICTION_ROW})
        if f.joint.kind in ("revolute", "prismatic") and np.isfinite(f.joint.limit).any():
            ends = (LOW_ROW, HIGH_ROW) if is_narrow(f.joint.limit, Impulse.margin) else (STOP_ROW,)
            rows += [own | {"kind": kind} for kind in ends]
        if i in mimics:
            j = mimics[i]
            other = {"dof2": int(first_dof[j]), "q2": int(first_q[j]), "body2": frame_body[j]}
            rows.append(own | other | {"kind": MIMIC_ROW})
    ties: list[dict] = []
    n, (enter, leave) = tree["n_bodies"], visits(tree["parent"])
    for row in rows:
        if row["kind"] == MIMIC_ROW:
            ties.append({"kind": JOINT_TIE, "a": row["body"], "b": row["body2"], "rows": [row]})
            continue
        last = ties[-1] if ties else None
        if (
            last
            and len(last["rows"]) < 3
            and last["b"] == n
            and enter[last["a"]] <= enter[row["body"]] < leave[last["a"]]
        ):
            last["a"] = row["body"]
            last["rows"].append(row)
        else:
            ties.append({"kind": JOINT_TIE, "a": row["body"], "b": n, "rows": [row]})
    return ties


def loop_tie(kind: str, a: int, b: int) -> list[dict]:
    """Blocks that hold two marks together."""
    connect = {"kind": CONNECT, "a": a, "b": b, "rows": []}
    return [connect] if kind == "connect" else [connect, {"kind": WELD, "a": a, "b": b, "rows": []}]


def warn_of_shapes(left_out: dict[str, list[str]]) -> None:
    if left_out:
        listed = "; ".join(
            f"{kind}: {', '.join(names[:4])}{' ...' if len(names) > 4 else ''}" for kind, names in left_out.items()
        )
        warn_caller(f"shapes of these kinds do not touch anything yet: {listed}", UnsupportedWarning)


def warn_of_overlaps(pairs: list[str]) -> None:
    if pairs:
        named = "; ".join(pairs[:4]) + (f"; {len(pairs) - 4} more" if len(pairs) > 4 else "")
        warn_caller(
            f"these pairs of one robot overlap where it starts, and do not touch each other: {named} "
            "(World.pair with their names makes them touch)",
            UnsupportedWarning,
        )
