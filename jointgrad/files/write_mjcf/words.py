"""How numbers, names and refusals are put into words."""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from ...model.description import Joint
from ...model.errors import ModelError
from ...model.parts import plane_axes

JOINTS = {"revolute": "hinge", "continuous": "hinge", "prismatic": "slide", "spherical": "ball"}


def text(values: Any) -> str:
    return " ".join(repr(float(x)) for x in np.atleast_1d(np.asarray(values, dtype=np.float64)))


def named(placed: Any, name: str) -> str:
    return quoteattr(placed.prefix + name)


def refuse(owner: str, what: str, is_there: Any) -> None:
    if is_there:
        raise ModelError(f"MJCF cannot say that {owner} has {what}")


def primitives(joint: Joint) -> list[tuple[str, str, Any]]:
    if joint.kind == "planar":
        x, y, normal = plane_axes(joint.axis)
        return [(".x", "slide", x), (".y", "slide", y), (".turn", "hinge", normal)]
    if joint.kind == "universal":
        return [(".first", "hinge", joint.axis), (".second", "hinge", joint.second_axis)]
    return [("", JOINTS[joint.kind], joint.axis)]


def row(value: Any, count: int) -> list[float]:
    return [0.0] * count if value is None else [float(x) for x in np.atleast_1d(value)]
