"""How much a file, a world or a film may cost: one budget, asked before memory or time is spent.

A refusal names the entry that ran out. `with jg.budget(pairs=1e6): ...` allows more inside the block, and the environment
variable JOINTGRAD_BUDGET="pairs=1e6,bodies=5e4" for a whole process, the command line included.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import inspect
import os
from collections.abc import Iterator
from typing import Any

from .errors import InputError

VARIABLE = "JOINTGRAD_BUDGET"


def _most(count: float, words: str) -> Any:
    return dataclasses.field(default=count, metadata={"words": words})


@dataclasses.dataclass(frozen=True)
class Budget:
    """The most that is taken of everything. The largest robots of the field stay well below."""

    file_bytes: float = _most(32e6, "bytes of one XML file")
    depth: float = _most(256, "elements inside each other")
    elements: float = _most(500_000, "XML elements")
    attribute: float = _most(4e6, "characters of one attribute")  # inline meshes are the longest honest ones
    classes: float = _most(10_000, "default classes")
    parts: float = _most(60_000, "bodies, joints, geoms, sites and copies of them")
    rows: float = _most(2_000, "rows of a dense matrix")
    mesh_bytes: float = _most(64e6, "bytes of one mesh file")
    nodes: float = _most(2_000, "nodes, meshes and arrays of one mesh file")
    corners: float = _most(5e6, "corners of meshes and drawn shapes")
    hull: float = _most(256, "corners of one convex body")
    heights: float = _most(4e6, "heights of one terrain")
    bodies: float = _most(25_000, "links of one world")
    pairs: float = _most(250_000, "pairs of shapes that may touch")
    overlaps: float = _most(20_000, "pairs of shapes that lie in each other at the start")
    path: float = _most(10e6, "steps on the ways from bodies to their roots")
    working_bytes: float = _most(16e9, "bytes of working memory of a simulation")
    arrays: float = _most(10_000, "arrays in one file")
    unpacked_bytes: float = _most(500e6, "bytes when unpacked")
    video_seconds: float = _most(600, "seconds of video")


NAMES = tuple(field.name for field in dataclasses.fields(Budget))
_WORDS = {field.name: field.metadata["words"] for field in dataclasses.fields(Budget)}
_raised: contextvars.ContextVar[Budget | None] = contextvars.ContextVar("jointgrad budget", default=None)


@contextlib.contextmanager
def budget(**larger: float) -> Iterator[Budget]:
    """Another budget inside a block: `with jg.budget(pairs=1e6): model = world.compile()`."""
    token = _raised.set(_with(present(), larger, "jg.budget"))
    try:
        yield present()
    finally:
        _raised.reset(token)


budget.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=getattr(Budget, name)) for name in NAMES]
)


def present() -> Budget:
    """The budget that holds here."""
    return _raised.get() or _with(Budget(), _written(os.environ.get(VARIABLE, "")), VARIABLE)


def excess(name: str, amount: float) -> str:
    """Why so much is refused and what allows it, to end a sentence with; empty where the budget holds it."""
    most = getattr(present(), name)
    if amount <= most:
        return ""
    enough = f"{1.01 * amount:.3g}"  # three digits, rounded up
    return (
        f"{amount:,.0f} {_WORDS[name]}, more than the {most:,.0f} that the budget allows; to allow it: "
        f"with jg.budget({name}={enough}), or {VARIABLE}={name}={enough}"
    )


def _with(base: Budget, larger: dict[str, Any], owner: str) -> Budget:
    for name, value in larger.items():
        if name not in NAMES:
            raise InputError(f'{owner}: the budget has no "{name}"; it has {", ".join(NAMES)}')
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            raise InputError(f"{owner}: {name} must be a number above zero, but is {value!r}")
    return dataclasses.replace(base, **larger)


def _written(text: str) -> dict[str, float]:
    """What "pairs=1e6,bodies=5e4" says."""
    found = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = entry.partition("=")
        try:
            found[name.strip()] = float(value)
        except ValueError:
            raise InputError(f'{VARIABLE} holds "{entry}", which is not of the form pairs=1e6') from None
    return found
