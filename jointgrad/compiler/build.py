"""From a kernel to machine code, by Numba. Imported only when something is not in the cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba import types

from . import emit, exchange, lanes
from .cache import CannotCompile, Code
from .kernel import Inlined, Kernel, Library, Sweep, with_globals
from .trace import Traced

# no bounds checks and no Python exceptions inside kernels: sizes are checked where arrays enter
_OPTIONS: dict[str, Any] = dict(
    error_model="numpy", boundscheck=False, no_cpython_wrapper=True, no_cfunc_wrapper=True, nogil=True
)


def _substitution(library: Library, pack: lanes.PackType) -> Callable[[object], object]:
    made: dict[int, object] = {}

    def replaced(value):
        if isinstance(value, Traced):
            return emit.compiled_operator(value, pack)
        if isinstance(value, Kernel):
            return emit.stage_call(library.schema, value.__name__, len(value.views))
        if isinstance(value, Sweep):
            return numba.njit(
                with_globals(value.fn, replace), error_model="numpy", forceinline=isinstance(value, Inlined)
            )
        return exchange.PRIMITIVES.get(getattr(value, "__name__", ""), value)

    def replace(value):
        if not isinstance(value, Traced | Sweep) and not callable(value):
            return value
        if id(value) not in made:
            made[id(value)] = replaced(value)
        return made[id(value)]

    return replace


def machine_code(library: Library, kernel: Kernel) -> Code:
    pack = lanes.PackType(library.lanes, library.parts)
    fn = with_globals(kernel.fn, _substitution(library, pack))
    arguments = [lanes.FrameType(library.schema, view, pack) for view in kernel.views]
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        raise CannotCompile("NUMBA_DISABLE_JIT is set, and the engine is compiled by numba: unset it")
    dispatcher = numba.njit(**_OPTIONS)(fn)
    dispatcher.compile(types.void(*arguments))
    result = next(iter(dispatcher.overloads.values()))
    _, _, (machine, _) = result.library.serialize_using_object_code()
    return Code(result.fndesc.llvm_func_name, machine)
