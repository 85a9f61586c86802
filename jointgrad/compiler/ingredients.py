"""What the machine code of a kernel is made of, as one digest: what changes none of it leaves the compiled kernel valid.

A kernel is compiled with every operator, sweep and constant that it reaches, and with the places of the fields that their code
names; other kernels it calls by their address. The compiler belongs to every kernel.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .field import Schema
from .kernel import Kernel, Sweep, called, names_in
from .trace import Traced

_HOME = __package__.rpartition(".")[0]  # the whole package


@functools.cache
def sources(*parts: str) -> bytes:
    """Digest of every source file of parts of the package."""
    root, digest = Path(__file__).resolve().parents[1], hashlib.sha256()
    for path in (p for part in parts for p in sorted((root / part).rglob("*.py"))):
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.digest()


@functools.cache
def _places(schema: Schema) -> dict[str, list[str]]:
    """Where code finds what it calls by a name: the fields of that name, in whichever table."""
    found: dict[str, list[str]] = {}
    for field, slot in schema.slots.items():
        found.setdefault(field.split(".")[1], []).append(f"{field} {slot} {schema.width(field)}")
    return found


def of_kernel(kernel: Kernel, schema: Schema) -> bytes:
    """Digest of all that the kernel's code depends on but for the processor."""
    digest = hashlib.sha256(sources("compiler") + schema.name.encode() + sys.version.encode())
    parts = [_function(fn) for fn in _reached(kernel.fn)]
    for code in sorted({part.digest for part in parts}):
        digest.update(code)
    names = sorted({name for part in parts for name in part.names})
    words = [word for name in names for word in _places(schema).get(name, ())]
    words += sorted({f"{k.__name__} {schema.kernel_slots[k.__name__]}" for k in called(kernel.fn, Kernel)})
    digest.update("\n".join(words).encode())
    return digest.digest()


def _reached(fn: Any) -> set[types.FunctionType]:
    """A function and each one that it reaches."""
    known, stack = {fn}, [fn]
    while stack:
        callees = _function(stack.pop()).callees
        stack += [f for f in callees if f not in known]
        known.update(callees)
    return known


class _Part(NamedTuple):
    """A function's own code and constants in a digest, the functions that it refers to, and the names in its code."""

    digest: bytes
    callees: tuple[types.FunctionType, ...]
    names: frozenset[str]


@functools.cache
def _function(fn: types.FunctionType) -> _Part:
    callees: list[types.FunctionType] = []
    values = dict(_references(fn))
    words = [f"{name}={_word(value, callees)}" for name, value in sorted(values.items())]
    text = "\n".join([fn.__module__, fn.__qualname__, _code(fn.__code__), *words])
    return _Part(hashlib.sha256(text.encode()).digest(), tuple(callees), frozenset(names_in(fn.__code__)))


def _references(fn: types.FunctionType) -> Iterator[tuple[str, object]]:
    # what the compiler's own functions refer to is in its sources, but for what they were made with
    if not fn.__module__.startswith(__package__):
        yield from ((n, fn.__globals__[n]) for n in names_in(fn.__code__) if n in fn.__globals__)
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
        yield f"closure {name}", cell.cell_contents
    yield "defaults", (fn.__defaults__, fn.__kwdefaults__)


def _code(code: types.CodeType) -> str:
    constants = [_code(c) if isinstance(c, types.CodeType) else _word(c, []) for c in code.co_consts]
    return repr((code.co_code.hex(), code.co_names, code.co_varnames, constants))


def _word(value: object, callees: list[types.FunctionType]) -> str:
    """A value in words; functions that it leads to are added to `callees`."""
    if isinstance(value, Kernel):
        return f"kernel {value.__name__} {value.views}"
    if isinstance(value, Sweep | Traced):
        return f"{type(value).__name__} {value.__name__} {_word(value.fn, callees)}"
    if isinstance(value, functools._lru_cache_wrapper):
        return _word(value.__wrapped__, callees)
    if isinstance(value, types.FunctionType):
        callees.append(value)
        return f"function {value.__module__}.{value.__qualname__}"
    if isinstance(value, types.ModuleType):
        return f"module {value.__name__} {_module(value.__name__).hex()}"
    if isinstance(value, tuple | list):
        return f"({', '.join(_word(v, callees) for v in value)})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{k!r}: {_word(v, callees)}' for k, v in value.items())}}}"
    if isinstance(value, frozenset | set):
        return f"{{{', '.join(sorted(_word(v, callees) for v in value))}}}"
    if value is None or isinstance(value, bool | int | float | str | bytes | enum.Enum):
        return repr(value)
    if isinstance(value, type | types.BuiltinFunctionType):
        return f"{value.__module__}.{value.__qualname__}"
    # something whose meaning for the code is not known here: then all of the package is
    return f"{type(value).__qualname__} {_whole_package().hex()}"


def _module(name: str) -> bytes:
    """Digest of all that a module may hold; algebra imports nothing but itself and the compiler."""
    home, _, part = name.partition(".")
    if home != _HOME or part.startswith("compiler"):
        return b""
    return sources("algebra") if part.startswith("algebra") else _whole_package()


def _whole_package() -> bytes:
    return sources("compiler", "algebra", "model", "engine")
