"""What every number and word of a description may be: one table, and the checks that read it.

A rule says what it accepts and raises a ModelError that names the thing, what is wrong and what would be right.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .arguments import is_whole, shown
from .errors import ModelError
from .names import close_to

JOINTS = ("fixed", "revolute", "continuous", "prismatic", "spherical", "planar", "universal", "free")
ACTUATORS = ("torque", "position", "velocity", "damper")
SHAPES = ("sphere", "capsule", "cylinder", "box", "ellipsoid", "plane", "points", "mesh", "hfield", "sdf")
# numbers that tell the size of a shape; of a plane those that a file has are for the eye alone
SIZES = {"sphere": 1, "capsule": 2, "cylinder": 2, "box": 3, "ellipsoid": 3, "points": 1}
ROLES = ("collision", "visual", "both")
BASES = ("free", "fixed")
# lengths whose squares are neither lost nor infinite, with room for products of several
SHORTEST, LONGEST = 1e-140, 1e140


def numbers(owner: str, what: str, value: Any, count: int | None, may_be_infinite: bool = False) -> np.ndarray:
    """A value as `count` floats (None: one number), else an error that names it."""
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "iufO" or isinstance(value, bool):
            raise ValueError
        array = array.astype(np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"{what} of {owner} is {shown(value)}, which is not a number or a row of numbers") from None
    if array.shape != (() if count is None else (count,)):
        wanted = "one number" if count is None else f"{count} numbers"
        raise ModelError(f"{what} of {owner} is {shown(value)}, but must be {wanted}")
    if not np.isfinite(array).all() and (np.isnan(array).any() or not may_be_infinite):
        raise ModelError(f"{what} of {owner} is {shown(value)}; it must be finite")
    return array


def unit(vector: Any) -> np.ndarray:
    """A vector over its length, however long or short it is; only a zero has no direction."""
    v = np.asarray(vector, dtype=np.float64)
    if not SHORTEST < np.abs(v).max() < LONGEST:
        v = v / np.abs(v).max()  # else its squares would be lost, or infinite
    return v / np.linalg.norm(v)


def unit_quaternion(owner: str, what: str, value: Any) -> tuple[float, ...]:
    try:
        q = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        q = np.zeros(0)
    if q.shape != (4,) or not np.any(q):
        raise ModelError(
            f"{what} of {owner} is {shown(value)}, a quaternion of zero length or none: it needs four numbers of which not "
            "all are zero; (1, 0, 0, 0) is no turn"
        )
    return tuple(float(x) for x in unit(numbers(owner, what, value, 4)))


def quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else shown(value)


def check_word(owner: str, what: str, value: Any, known: Iterable[str]) -> None:
    words = tuple(known)
    if not isinstance(value, str) or value not in words:
        close = close_to(value, words)
        hint = f'; did you mean "{close}"?' if close else ""
        raise ModelError(f"{owner} has {what} {quoted(value)}; it can be one of {', '.join(words)}{hint}")


@dataclass(frozen=True)
class Number:
    """`count` numbers in a row (None: one), none below `low` nor above `high`; with is_above none at `low`, either."""

    count: int | None = None
    low: float = -math.inf
    high: float = math.inf
    is_above: bool = False
    may_be_infinite: bool = False

    def check(self, owner: str, what: str, value: Any) -> None:
        array = numbers(owner, what, value, self.count, self.may_be_infinite)
        if (array < self.low).any() and not self.is_above:
            raise ModelError(f"{what} of {owner} is negative ({shown(value)}); it must be zero or more")
        if self.is_above and (array <= self.low).any():
            raise ModelError(f"{what} of {owner} is {shown(value)}; it must be more than zero")
        if (array > self.high).any():
            raise ModelError(f"{what} of {owner} is {shown(value)}; it must be {self.high:g} or less")


@dataclass(frozen=True)
class Range:
    """A lower and an upper end, in this order; infinite where there is none."""

    may_be_infinite: bool = True

    def check(self, owner: str, what: str, value: Any) -> None:
        low, high = numbers(owner, what, value, 2, self.may_be_infinite)
        if low > high or low == math.inf or high == -math.inf:
            raise ModelError(f"{what} of {owner} is ({low:g}, {high:g}); the lower end must come first")


@dataclass(frozen=True)
class Direction:
    """Three numbers, not all zero."""

    def check(self, owner: str, what: str, value: Any) -> None:
        if not numbers(owner, what, value, 3).any():
            raise ModelError(f"the {what} of {owner} has zero length")


@dataclass(frozen=True)
class Turn:
    """A quaternion w x y z of any length but zero."""

    def check(self, owner: str, what: str, value: Any) -> None:
        unit_quaternion(owner, what, value)


@dataclass(frozen=True)
class Row:
    """Up to `most` numbers, none below `low`; one of them may be alone, where files write it so."""

    most: int
    low: float = -math.inf
    may_be_alone: bool = False

    def check(self, owner: str, what: str, value: Any) -> None:
        if self.may_be_alone and isinstance(value, int | float):
            value = (value,)
        count = len(value) if isinstance(value, list | tuple | np.ndarray) and np.ndim(value) else self.most
        Number(min(count, self.most), self.low).check(owner, what, value)


@dataclass(frozen=True)
class Whole:
    """A whole number from `low` on."""

    low: int = 0

    def check(self, owner: str, what: str, value: Any) -> None:
        if not is_whole(value) or value < self.low:
            raise ModelError(f"{what} of {owner} must be a whole number from {self.low} on, but is {shown(value)}")


@dataclass(frozen=True)
class Among:
    """One of a few numbers."""

    known: tuple[int, ...]

    def check(self, owner: str, what: str, value: Any) -> None:
        if not isinstance(value, int | float) or value not in self.known:
            raise ModelError(f"{what} of {owner} is {shown(value)}; it can be {', '.join(map(str, self.known))}")


@dataclass(frozen=True)
class Flag:
    def check(self, owner: str, what: str, value: Any) -> None:
        if not isinstance(value, bool | np.bool_):
            raise ModelError(f"{what} of {owner} must be True or False, but is {shown(value)}")


@dataclass(frozen=True)
class Word:
    known: tuple[str, ...]

    def check(self, owner: str, what: str, value: Any) -> None:
        check_word(owner, what, value, self.known)


@dataclass(frozen=True)
class Perhaps:
    """What may be left out, as None."""

    rule: Any

    def check(self, owner: str, what: str, value: Any) -> None:
        if value is not None:
            self.rule.check(owner, what, value)


ANY, POINT, NOT_BELOW_ZERO, ABOVE_ZERO = Number(), Number(3), Number(low=0.0), Number(low=0.0, is_above=True)
UNBOUNDED, SHARE = Number(may_be_infinite=True), Number(low=0.0, high=1.0)

PAIR = {
    "friction": NOT_BELOW_ZERO, "torsion": NOT_BELOW_ZERO, "rolling": NOT_BELOW_ZERO, "restitution": SHARE,
    "baumgarte": NOT_BELOW_ZERO, "compliance": NOT_BELOW_ZERO, "softness": NOT_BELOW_ZERO, "margin": NOT_BELOW_ZERO,
    "max_push_out_speed": NOT_BELOW_ZERO, "stiffness": NOT_BELOW_ZERO, "damping": NOT_BELOW_ZERO,
    "exponent": ABOVE_ZERO, "static_friction": NOT_BELOW_ZERO,
    "transition": ABOVE_ZERO,
}  # fmt: skip

# by what a thing is, its fields and what they may be
FORM: dict[str, dict[str, Any]] = {
    "link": {
        "mass": NOT_BELOW_ZERO, "com": POINT, "inertia": Number(6), "drag_size": Number(3, low=0.0), "drag_position": POINT,
        "drag_orientation": Turn(),
    },
    "shape": {
        "kind": Word(SHAPES), "role": Word(ROLES), "position": POINT, "orientation": Turn(), "color": Row(4),
        "friction": Row(3, low=0.0),
    },
    "what a file says of contact": {"contype": ANY, "conaffinity": ANY, "priority": ANY, "condim": Among((1, 3, 4, 6))},
    "joint": {
        "kind": Word(JOINTS), "position": POINT, "orientation": Turn(), "anchor": POINT, "damping": NOT_BELOW_ZERO,
        "armature": NOT_BELOW_ZERO, "stiffness": ANY, "friction": NOT_BELOW_ZERO, "limit": Range(), "effort_limit": UNBOUNDED,
        "velocity_limit": UNBOUNDED,
    },
    "actuator": {
        "kind": Word(ACTUATORS), "gain": ANY, "damping": ANY, "gear": ANY, "bias": POINT, "component": Whole(),
        "control_limit": Range(), "force_limit": Range(),
    },
    "tendon": {"stiffness": ANY, "damping": NOT_BELOW_ZERO, "rest": Range(may_be_infinite=False)},
    "constraint": {"anchor": POINT, "pose": Perhaps(Number(7)), "polynomial": Row(5, may_be_alone=True),
                   "friction": Row(5, low=0.0, may_be_alone=True)},
    "pair": PAIR,
    "impulse": {
        "sweeps": Whole(1), "cone": Flag(), "form": Word(("auto", "matrix", "sums")),
        **{what: PAIR[what] for what in ("baumgarte", "compliance", "softness", "margin", "max_push_out_speed")},
    },
    "implicit": {
        "iterations": Whole(1), "is_level": Flag(),
        **{what: PAIR[what] for what in ("baumgarte", "compliance", "softness", "margin", "max_push_out_speed")},
    },
    "spring": {
        "friction_law": Word(("coulomb", "andersson", "hollars", "brown")),
        **{what: PAIR[what] for what in ("stiffness", "damping", "exponent", "static_friction", "transition", "margin")},
    },
    "world": {
        "dt": ABOVE_ZERO, "gravity": POINT, "density": NOT_BELOW_ZERO, "viscosity": NOT_BELOW_ZERO,
        "baumgarte": NOT_BELOW_ZERO, "compliance": NOT_BELOW_ZERO, "softness": NOT_BELOW_ZERO, "limit_margin": NOT_BELOW_ZERO,
    },
    "compile": {
        "unphysical": Word(("error", "warn")), "constraints": Flag(), "max_contacts": Perhaps(Whole(1)),
        "massless": Word(("refuse", "weld", "estimate")), "meshes": Word(("hull", "decompose")),
    },
    "ground": {"friction": Perhaps(NOT_BELOW_ZERO), "restitution": SHARE, "height": ANY},
}  # fmt: skip


def check_form(kind: str, owner: str, values: Any) -> None:
    """Every field that the table has for this kind, of an object or of a mapping (of which some may be absent)."""
    for what, rule in FORM[kind].items():
        if isinstance(values, Mapping):
            if what in values:
                rule.check(owner, what, values[what])
        else:
            rule.check(owner, what, getattr(values, what))


def parameters_with(low: float, is_above: bool) -> tuple[str, ...]:
    """Names of parameters, "link.mass", whose numbers have this lowest value."""
    return tuple(name for name, rule in number_rules().items() if (rule.low, rule.is_above) == (low, is_above))


def highest_values() -> dict[str, float]:
    """The largest number that parameters may have, of those that have one."""
    return {name: rule.high for name, rule in number_rules().items() if rule.high < math.inf}


def number_rules() -> dict[str, Number]:
    """Rules of numbers by their names as parameters, "link.mass"."""
    rules = {f"{kind}.{what}": rule for kind, rules in FORM.items() for what, rule in rules.items()}
    return {name: rule for name, rule in rules.items() if isinstance(rule, Number)}
