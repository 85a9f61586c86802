"""@sweep and @kernel: loops over links and rows, written in plain Python, that call traced operators.

Run as they are, they work on lists (the no-compiler mode). Compiled, the same source is given other primitives: traced
operators become SIMD code, tables become pointers. A @sweep is compiled into whoever calls it. A @kernel is compiled
once, on its own, takes a frame (`frame.work` is table work of the schema) and, where it reverses something, the cotangents
in it (`bar.work` is table work_bar), and is called through its address.
"""

from __future__ import annotations

import ctypes
import inspect
import math
import os
import subprocess
import sys
import threading
import types as python_types
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from . import cache
from .cache import one_at_a_time
from .field import Frame, Schema, accumulate

__all__ = [
    "Kernel",
    "Library",
    "accumulate",
    "add_lanes",
    "all_finite",
    "any_above",
    "choice",
    "gather",
    "inlined",
    "kernel",
    "lane_of",
    "lanes_of",
    "mark",
    "scatter",
    "set_lane",
    "sweep",
]


class Sweep:
    def __init__(self, fn: Callable) -> None:
        self.fn, self.__name__, self.__doc__ = fn, fn.__name__, fn.__doc__
        self.__wrapped__ = fn

    def __call__(self, *args):
        return self.fn(*args)


class Inlined(Sweep):
    """A sweep that must not cost a call: for what runs in the innermost loops."""


class Kernel(Sweep):
    def __init__(self, fn: Callable) -> None:
        super().__init__(fn)
        self.views = tuple(inspect.signature(fn).parameters)
        if self.views not in (("frame",), ("frame", "bar")):
            raise TypeError(f"kernel {fn.__name__} takes {self.views}, and should take (frame) or (frame, bar)")


sweep, inlined, kernel = Sweep, Inlined, Kernel


def choice(name: str, field: str, sweeps: Sequence[Sweep]) -> Sweep:
    """A sweep that calls the one of several whose number an integer of the frame (`table.field`) is."""
    parameters = {tuple(inspect.signature(s.fn).parameters) for s in sweeps}
    if len(parameters) != 1:
        raise TypeError(f"{name} cannot choose between sweeps of different parameters: {parameters}")
    given = ", ".join(parameters.pop())
    *first, last = (f"return choice_{k}({given})" for k in range(len(sweeps)))
    lines = [f"    if frame.{field} == {k}:\n        {call}" for k, call in enumerate(first)]
    # of a module of its callers: what is in the compiler's own sources belongs to all kernels alike
    scope: dict = {"__name__": sweeps[0].fn.__module__, **{f"choice_{k}": s for k, s in enumerate(sweeps)}}
    exec("\n".join([f"def {name}({given}):", *lines, f"    {last}"]), scope)
    return Sweep(scope[name])


def _only_compiled(name: str) -> Callable:
    def primitive(*args):
        raise RuntimeError(f"{name} moves numbers between packs and arrays; it has no meaning without the compiler")

    primitive.__name__ = name
    return primitive


gather, scatter, add_lanes, all_finite, mark = (
    _only_compiled(n) for n in ("gather", "scatter", "add_lanes", "all_finite", "mark")
)


def lanes_of(field) -> int:
    """How many environments the first row of a field holds."""
    row = field[0] if isinstance(field[0], tuple) else (field[0],)
    return max(getattr(x, "size", 1) if isinstance(getattr(x, "size", 1), int) else x.numel() for x in row)


def _float(x, lane: int) -> float:
    x = x.detach() if hasattr(x, "detach") else x
    return float(x.reshape(-1)[lane if math.prod(x.shape) > 1 else 0]) if hasattr(x, "reshape") else float(x)


def lane_of(row, lane: int):
    """One environment's numbers of a row, as floats: for a search that branches, and that nothing is differentiated through."""
    return tuple(_float(x, lane) for x in row) if isinstance(row, tuple) else _float(row, lane)


def set_lane(field, i: int, lane: int, values: tuple) -> None:
    """Set one environment's numbers of a row."""
    if lane == 0:
        field[i] = tuple(values)
        return
    old = [np.append(x, np.zeros(max(0, lane + 1 - np.size(x)))) for x in field[i]]
    for x, value in zip(old, values, strict=True):
        x[lane] = value
    field[i] = tuple(old)


def any_above(x, floor: float) -> bool:
    """Whether some environment's number is above a floor. Numbers that cannot say so (traced ones) may be."""
    home = type(x).__module__.partition(".")[0]
    return bool((x > floor).any()) if home == "numpy" else home not in ("builtins", "mpmath") or bool(x > floor)


# kernels that have to be compiled at once before another process is asked to help, which takes a second to start
WORTH_HELP = 6
HELP = """
import importlib, sys
home, maker, lanes, parts, *names = sys.argv[1:]
library = getattr(importlib.import_module(home), maker)(int(lanes), int(parts))
for name in names:
    library.address(name)
"""


class Library:
    """Machine code of a set of kernels, for one pack width; `parts` is 2 where every number carries its tangent.

    `maker` is a function of lanes and parts, known by module and name, that makes this library anew in another process.
    """

    def __init__(
        self, schema: Schema, roots: Iterable[Kernel], lanes: int, parts: int = 1, maker: tuple[str, str] | None = None
    ) -> None:
        self.schema, self.lanes, self.parts, self.maker = schema, lanes, parts, maker
        self.kernels: dict[str, Kernel] = {}
        stack = list(roots)
        while stack:
            kernel_ = stack.pop()
            if kernel_.__name__ not in self.kernels:
                self.kernels[kernel_.__name__] = kernel_
                stack += called(kernel_.fn, Kernel)
        self._loaded: dict[str, int] = {}
        self._callable: dict[str, Callable] = {}

    def callee_names(self, name: str) -> set[str]:
        """The kernel and every kernel it calls, directly or not."""
        found, stack = set(), [name]
        while stack:
            current = stack.pop()
            if current not in found:
                found.add(current)
                stack += [k.__name__ for k in called(self.kernels[current].fn, Kernel)]
        return found

    def _key(self, name: str) -> tuple[str, bytes]:
        """Under which label, and made of what, the code of a kernel is kept."""
        from .ingredients import of_kernel

        return f"{name}-{self.lanes}x{self.parts}", of_kernel(self.kernels[name], self.schema)

    def _helper(self, names: list[str]) -> subprocess.Popen | None:
        """Another process that compiles the same kernels from the other end, if there are many."""
        missing = [n for n in names if n not in self._loaded and not cache.has(*self._key(n))]
        if self.maker is None or len(missing) < WORTH_HELP or (os.cpu_count() or 1) < 2 or not sys.executable:
            return None
        _announce()
        arguments = [*self.maker, str(self.lanes), str(self.parts), *reversed(missing)]
        try:
            return subprocess.Popen(
                # -P: the current folder is not on its path, where a downloaded robot's "numpy.py" may lie
                [sys.executable, "-P", "-c", HELP, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                env=os.environ | {
                    "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "JOINTGRAD_CACHE": str(cache.folder()),
                },
            )  # fmt: skip
        except OSError:
            return None

    def address(self, name: str) -> int:
        """Where the compiled kernel is; compiled now if it is not on disk."""
        with one_at_a_time:
            if name not in self._loaded:
                key = self._key(name)
                code = cache.load(*key)
                if code is None:
                    with cache.alone(*key):
                        code = cache.load(*key) or self._compiled(name, key)
                self._loaded[name] = cache.address_of(code)
            return self._loaded[name]

    def _compiled(self, name: str, key: tuple[str, bytes]) -> cache.Code:
        from . import build

        _announce()
        code = build.machine_code(self, self.kernels[name])
        cache.save(*key, code)
        return code

    def attach(self, frame: Frame, name: str, without: Iterable[str] = ()) -> Callable[[], None]:
        """Write the addresses that a kernel needs into a frame; what comes back runs the kernel on it, without the GIL.

        Kernels named in `without` are never reached on this frame, and are not compiled for it.
        """
        callees = sorted(self.callee_names(name) - set(without))
        # threads that want the same code wait for the first of them, whose helper is enough for all
        with one_at_a_time:
            helper = self._helper(callees)
            try:
                for callee in callees:
                    frame.integers[self.schema.kernel_slots[callee]] = self.address(callee)
            finally:
                if helper is not None:
                    helper.terminate()
                    helper.wait()
        n_views = len(self.kernels[name].views)
        prototype = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * (2 + n_views))
        function = prototype(self.address(name))
        slots = (ctypes.c_void_p * 2)()
        where = ctypes.addressof(slots)
        pointer = frame.integers.ctypes.data
        arguments = (where, where + ctypes.sizeof(ctypes.c_void_p), *[pointer] * n_views)
        keep = (slots, frame)

        def run() -> None:
            function(*arguments)

        run.keep = keep  # type: ignore[attr-defined]
        return run


_announced = threading.Event()


def _announce() -> None:
    """The first compilation in a process takes seconds: say so once."""
    if not _announced.is_set():
        _announced.set()
        print(
            "jointgrad: compiling the engine for this machine (once; kept in the cache) ...",
            file=sys.stderr,
            flush=True,
        )


def called(fn: Callable, kind: type) -> list:
    """Objects of a kind that a function, or a sweep or an inner function of it, refers to."""
    found = []
    for name in names_in(fn.__code__):
        value = fn.__globals__.get(name)
        if isinstance(value, kind):
            found.append(value)
        elif isinstance(value, Sweep) and not isinstance(value, Kernel):
            found += called(value.fn, kind)
    return found


def names_in(code: python_types.CodeType) -> list[str]:
    inner = [n for c in code.co_consts if isinstance(c, python_types.CodeType) for n in names_in(c)]
    return [*code.co_names, *inner]


def with_globals(fn: Callable, replace: Callable[[object], object]) -> Callable:
    """The same code, its global names bound to what `replace` gives for them."""
    scope = dict(fn.__globals__)
    for name in names_in(fn.__code__):
        if name in scope:
            scope[name] = replace(scope[name])
    new = python_types.FunctionType(fn.__code__, scope, fn.__name__, fn.__defaults__, fn.__closure__)
    new.__qualname__ = fn.__qualname__
    return new
