"""Arguments of public functions: what is not of the right kind is refused with its name, before anything is made of it."""

from __future__ import annotations

import math
import os
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .errors import InputError
from .names import close_to


def shown(value: Any) -> str:
    """A value in a message: one line, and not a long one."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."


def is_whole(value: Any) -> bool:
    return type(value) is int or (isinstance(value, int | np.integer) and not isinstance(value, bool))


def checked_count(name: str, value: Any, low: int = 0) -> int:
    """A whole number from `low` on."""
    if not is_whole(value) or value < low:
        raise InputError(f"{name} must be a whole number from {low} on, but is {shown(value)}")
    return int(value)


def checked_number(name: str, value: Any, low: float = -np.inf, is_above: bool = False) -> float:
    """A finite number, at least (or above) `low`."""
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not is_number or not np.isfinite(value) or value < low or (is_above and value == low):
        bound = "" if low == -np.inf else f" {'above' if is_above else 'from'} {low:g}{'' if is_above else ' on'}"
        raise InputError(f"{name} must be a finite number{bound}, but is {shown(value)}")
    return float(value)


def check_flag(name: str, value: Any) -> None:
    if type(value) is not bool and not isinstance(value, np.bool_):
        raise InputError(f"{name} must be True or False, but is {shown(value)}")


def check_choice(name: str, value: Any, known: Iterable[str]) -> None:
    words = tuple(known)
    if not isinstance(value, str) or value not in words:
        close = close_to(value, words)
        hint = f'; did you mean "{close}"?' if close else ""
        given = f'"{value}"' if isinstance(value, str) else shown(value)
        raise InputError(f"{name} {given} is none of {', '.join(words)}{hint}")


def checked_names(name: str, value: Any, known: Iterable[str], kind: str = "") -> tuple[str, ...]:
    """Names as a tuple (one name alone will do), all of them known."""
    if type(value) is tuple and not value:
        return ()
    words = tuple(known)
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, list | tuple | set | frozenset) or not all(isinstance(x, str) for x in names):
        raise InputError(f"{name} must be a row of names, but is {shown(value)}")
    for one in names:
        if one not in words:
            close = close_to(one, words)
            hint = f'did you mean "{close}"? ' if close else ""
            raise InputError(f'{name}: there is no {kind or name} "{one}"; {hint}the names are {", ".join(words)}')
    return tuple(names)


def checked_mapping(name: str, value: Any) -> Mapping[str, Any]:
    """A mapping; None stands for an empty one."""
    if value is not None and not isinstance(value, Mapping):
        raise InputError(f"{name} must be a mapping from names to arrays, but is {shown(value)}")
    return {} if value is None else value


def checked_kind(name: str, value: Any, kind: type, remedy: str) -> Any:
    """A thing of one of our classes."""
    if not isinstance(value, kind):
        raise InputError(f"{name} must be a {kind.__name__}, {remedy}, but is {shown(value)}")
    return value


def checked_path(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"path must be a text or a Path, but is {shown(path)}")
    return Path(path)


# what NumPy, zip files and JSON say of a file that is broken, or is another
BROKEN = (ValueError, KeyError, TypeError, AttributeError, IndexError, OSError, EOFError, OverflowError, NotImplementedError,
          RuntimeError, MemoryError, SyntaxError, RecursionError, zipfile.BadZipFile, zlib.error)  # fmt: skip


@contextmanager
def reading(path: Any, what: str) -> Iterator[None]:
    """While a file of ours is read: whatever is wrong with it becomes one error of ours that names the path."""
    try:
        yield
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except BROKEN as reason:
        said = f'"{reason.args[0]}" is missing' if isinstance(reason, KeyError) and reason.args else str(reason)
        raise InputError(f"{path} is not {what}: {' '.join(said.split()) or type(reason).__name__}") from None


@contextmanager
def writing(path: Any) -> Iterator[None]:
    """While a file is written: what the system says becomes an error of ours that names the path."""
    try:
        yield
    except OSError as reason:
        raise InputError(f"{path} cannot be written: {reason.strerror or reason}") from None


_CORES = os.cpu_count() or 1


def default_threads() -> int:
    return int(os.environ.get("JOINTGRAD_THREADS", "0")) or _CORES


def byte_count(memory: int | str | None) -> float:
    """A memory budget in bytes from a number or a text such as "64 MB"; no budget is infinite."""
    if memory is None:
        return math.inf
    if isinstance(memory, str):
        units = {"b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
        number = memory.strip().rstrip("BbiKkMmGg ").strip()
        unit = memory.strip()[len(number) :].strip().lower()
        try:
            return float(number) * units[unit]
        except (KeyError, ValueError):
            raise InputError(f'memory="{memory}" is not understood; write for example "64 MB"') from None
    if isinstance(memory, bool) or not isinstance(memory, int | float | np.integer | np.floating) or not memory > 0:
        raise InputError(f'memory must be bytes above zero or a text such as "64 MB", but is {shown(memory)}')
    return float(memory)
