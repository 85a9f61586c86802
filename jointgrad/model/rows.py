"""Rows of parameters by name: which link, joint or pair a number belongs to, and new numbers for some of them."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .arguments import shown
from .errors import InputError
from .names import unknown

if TYPE_CHECKING:
    from .arrays import Topology

# what a joint has only where it moves; of all else the base of a robot has a row that nobody described
OF_MOTION = ("damping", "stiffness", "armature", "limit", "friction", "mimic", "axis")


def row_names(topology: Topology, name: str) -> tuple[str, ...]:
    """Whose numbers are in the rows of a parameter; empty where rows have no names of their own."""
    if name in ("joint.rest", "tendon.coefficient"):
        return ()
    return {
        "link": topology.link_names, "joint": topology.joint_names, "shape": topology.shape_names, "pair": topology.pair_names,
        "tendon": topology.tendon_names, "actuator": topology.actuator_names,
    }.get(name.split(".")[0], ())  # fmt: skip


def row_name(topology: Topology, name: str, row: int) -> str:
    """In words: ' of link "lower"'; nothing where rows have no names."""
    names = row_names(topology, name)
    return f' of {name.split(".")[0]} "{names[row]}"' if names else ""


def own_rows(topology: Topology, name: str) -> list[int]:
    """Rows that say something: not those of what nobody described (the base of a robot), and neither damping of what is welded nor
    the mass of what the world carries."""
    kind, _, word = name.partition(".")
    tree, rows = topology.tree, range(topology.shape_of(name)[0] if topology.shape_of(name) else 0)
    if kind == "joint" and row_names(topology, name):
        moving = set(tree["frame"]) if word in OF_MOTION else set(rows)
        return [r for r in rows if r in moving and not topology.joint_names[r].endswith(".base")]
    if kind == "link":
        return [r for r in rows if tree["link_body"][r] < tree["n_bodies"]]
    return list(rows)


def with_rows(topology: Topology, name: str, before: np.ndarray, values: Mapping[str, Any]) -> np.ndarray:
    """A parameter with other numbers in some rows, by their names (patterns allowed), which may have a leading axis of environments
    like the parameter itself."""
    names, shape = row_names(topology, name), topology.shape_of(name)
    if not names:
        raise InputError(f'the rows of "{name}" have no names: give the whole array {shape}')
    if not values:
        raise InputError(f'"{name}" is {{}}, which names no row')
    found = np.array(before)
    for pattern, value in values.items():
        rows = [r for r, n in enumerate(names) if n == pattern or fnmatch.fnmatchcase(n, str(pattern))]
        if not rows:
            raise InputError(f"of {name} {unknown(name.split('.')[0], pattern, own_names(topology, name))}")
        array = _number(name, pattern, value, shape[1:])
        if array.ndim == len(shape) and found.ndim == len(shape):
            found = np.broadcast_to(found, (len(array), *shape)).copy()
        if array.ndim == len(shape) and len(array) != len(found):
            raise InputError(f'"{name}" has {len(array)} environments for "{pattern}", but {len(found)} for other rows')
        at = (..., rows, slice(None)) if len(shape) == 2 else (..., rows)
        found[at] = array[:, None] if array.ndim == len(shape) else array
    return found


def _number(name: str, row: str, value: Any, width: tuple[int, ...]) -> np.ndarray:
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f'"{name}" of "{row}" is not a number or a row of them: {shown(value)}') from None
    if array.shape != width and array.shape[1:] != width:
        raise InputError(f'"{name}" of "{row}" must have shape {width}, or {("batch", *width)}, but has {array.shape}')
    return array


def own_names(topology: Topology, name: str) -> list[str]:
    names = row_names(topology, name)
    return [names[r] for r in own_rows(topology, name)] if names else []
