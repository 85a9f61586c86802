"""Prints the reference of all public names from their docstrings:

python docs/reference.py > docs/reference.md
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import jointgrad as jg
from jointgrad.model.renamed import RENAMED

HEAD = """# Reference

Every public name of `jointgrad`, printed from the docstrings by `docs/reference.py`. Units are SI, arrays are float64, their axes
time, batch, value ([conventions](conventions.md)).
"""


def text() -> str:
    """The page."""
    return "\n".join([HEAD, *(line for name in sorted(jg.__all__, key=str.lower) for line in entry(name))])


def entry(name: str) -> Iterator[str]:
    """Of one public name: how it is called, what it says, and its public methods."""
    thing = getattr(jg, name)
    yield f"## `jg.{name}{signature(thing)}`\n"
    yield f"{described(thing)}\n"
    for method, member in methods(thing):
        yield f"### `{name}.{method}{signature(member)}`\n"
        yield f"{described(member)}\n"


def methods(thing: Any) -> list[tuple[str, Any]]:
    """Public methods and properties that a class of ours defines or inherits from one of ours, and functions of a module."""
    if isinstance(thing, ModuleType):
        own = {
            n: x for n, x in vars(thing).items() if inspect.isfunction(x) and x.__module__.startswith(thing.__name__)
        }
        return [(n, x) for n, x in own.items() if n[0] != "_"]
    if not inspect.isclass(thing) or issubclass(thing, Exception):
        return []
    ours = [kind for kind in thing.__mro__ if kind.__module__.startswith("jointgrad")]
    found = {name: member for kind in reversed(ours) for name, member in vars(kind).items()}
    kinds = (property, classmethod, staticmethod)
    public = [(n, m) for n, m in found.items() if n[0] != "_" and n not in RENAMED]
    return [(n, m) for n, m in public if inspect.isfunction(m) or isinstance(m, kinds)]


def signature(thing: Any) -> str:
    if isinstance(thing, ModuleType | property) or (inspect.isclass(thing) and issubclass(thing, Exception)):
        return ""
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return "()"
    plain = [p.replace(annotation=p.empty) for p in found.parameters.values() if p.name != "self"]
    return str(found.replace(parameters=plain, return_annotation=found.empty))


def described(thing: Any) -> str:
    return inspect.cleandoc(getattr(thing, "__doc__", None) or "")


if __name__ == "__main__":
    print(text(), end="")
