"""Names that have changed. For one release the old ones still work, wherever a name is given, and warn."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from .errors import warn_caller

# the last word of a name: that of a parameter ("pair.push_limit"), of an option of a pair, or of an argument
RENAMED = MappingProxyType({"stabilisation": "baumgarte", "push_limit": "max_push_out_speed"})

Kind = TypeVar("Kind")


def renamed(name: str) -> str:
    """What a name is called, without a word: names in files are nobody's fault."""
    owner, dot, word = name.rpartition(".")
    return owner + dot + RENAMED.get(word, word)


def current(name: Any) -> Any:
    """What a name is called, with a warning where that is another."""
    if not isinstance(name, str):
        return name
    new = renamed(name)
    if new != name:
        warn_caller(f'"{name}" is called "{new}"; the old name works in this release only', DeprecationWarning)
    return new


def with_current_names(values: Mapping[str, Any]) -> dict[str, Any]:
    return {current(name): value for name, value in values.items()}


class ByName(dict):
    """A dictionary that is asked by old names too."""

    def __missing__(self, name: Any) -> Any:
        new = current(name)
        if new not in self:
            raise KeyError(name)
        return self[new]


def accepts_old_names(kind: type[Kind]) -> type[Kind]:
    """A class whose arguments and attributes may be given by old names."""
    make: Callable[..., None] = kind.__init__

    @functools.wraps(make)
    def __init__(self: Any, *args: Any, **options: Any) -> None:
        old = {name: options.pop(name) for name in RENAMED if name in options}
        # dataclasses.replace gives the fields as they were, by their own names, beside the one that is asked for
        make(self, *args, **options | with_current_names(old))

    kind.__init__ = __init__  # type: ignore[method-assign]
    for old, new in RENAMED.items():
        if hasattr(kind, new):
            setattr(kind, old, _property(old))
    return kind


def _property(old: str) -> property:
    return property(lambda self: getattr(self, current(old)))
