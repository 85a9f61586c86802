"""Between NumPy and compiled kernels: checks what comes in, lends out frames, shares a batch among threads."""

from __future__ import annotations

import functools
import os
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...compiler.cache import CannotCompile, one_at_a_time
from ...compiler.field import Frame
from ...compiler.kernel import Library
from ...model.arguments import shown
from ...model.arrays import NO_TURN, Model, State, checked_model, has_no_direction
from ...model.arrays import PARAMS as NAMED_PARAMS
from ...model.budget import excess
from ...model.errors import InputError, SimulationError
from ...model.state_fields import state_counts
from ..kernels.entry import KERNELS
from ..kernels.time_loop import DONE, EACH_PACK, ONCE
from ..kernels.workspace import (
    ASSEMBLY_BAR,
    OUTPUT,
    PARAMS,
    PARTS,
    SCHEMA,
    STATE_ARRAYS,
    aliases_of,
    lists_of,
    rows_of,
    unused_kernels,
)
from .axis_references import axis_references_of
from .naming import source_names
from .schedule import Schedule, every_step

# environments whose parameter cotangents are summed together, whatever the width and the threads: the sum keeps its bits
CHUNK = 8


# bodies from which on one environment alone is faster without packs: empty lanes would crowd the cache
LARGE_WORLD = 50


def lanes_for(model: Model, batch: int | None) -> int:
    """Pack width for so many environments; it changes no bit."""
    is_alone = (batch or 1) == 1 and model.topology.tree["n_bodies"] >= LARGE_WORLD
    return 1 if is_alone and "JOINTGRAD_LANES" not in os.environ else lanes()


def lanes() -> int:
    """Pack width: four doubles on AVX2; JOINTGRAD_LANES changes it."""
    width = os.environ.get("JOINTGRAD_LANES", "4")
    if width not in ("1", "2", "4", "8"):
        raise InputError(f"JOINTGRAD_LANES must be 1, 2, 4 or 8, but is {width}")
    return int(width)


_libraries: dict[tuple[int, int], Library] = {}


def library(n_lanes: int, parts: int) -> Library:
    """One for each width in a process, whichever threads ask first: two would load the same code twice."""
    with one_at_a_time:
        if (n_lanes, parts) not in _libraries:
            _libraries[n_lanes, parts] = Library(SCHEMA, KERNELS, n_lanes, parts, (__name__, library.__name__))
        return _libraries[n_lanes, parts]


def address(array: np.ndarray | None) -> int:
    return 0 if array is None else array.__array_interface__["data"][0]


class Worker:
    """One frame and the kernels that run on it."""

    # parameters that this frame holds the assembly of, and those of which the next run will leave it
    assembled_for: Any = None
    _to_assemble: Any = None
    # parameters whose addresses the call has; held, so that they stay where they are
    _pointed_at: Any = None
    axis_references: Any = None

    def __init__(self, model: Model, n_lanes: int, parts: int, schedule: Schedule) -> None:
        tree = model.topology.tree
        rows, aliases = rows_of(tree, schedule.slots), aliases_of(tree)
        n_fields, n_outputs = len(PARAMS), len(OUTPUT)
        program = [x for line in (*schedule.program, *schedule.tail) for x in line]
        integers = {f"tree.{k}": v for k, v in {**tree, **state_counts(tree)}.items()} | {
            "call.state_size": [rows[f"state.{part}"] for part in PARTS],
            **{f"call.{name}": [0] * len(PARTS) for name in (*STATE_ARRAYS, "nowhere")},
            "call.program": program,
            "call.param_size": [rows[f"params.{f}"] * w for f, w in PARAMS.items()],
            **{f"call.{name}": [0] * n_fields for name in ("param", "param_dot", "param_stride", "param_bar")},
            **{f"call.{name}": [0] * n_outputs for name in ("output", "output_dot", "output_bar")},
            **{name: np.zeros(count, dtype=np.int64) for name, count in lists_of(tree).items()},
        }
        _check_room(rows, aliases, n_lanes * parts)
        self.model, self.library = model, library(n_lanes, parts)
        self.frame = Frame(SCHEMA, rows, integers, n_lanes, parts, aliases)
        self.frame.set(
            call__n_fields=n_fields,
            call__n_params=sum(rows[f"params.{f}"] * w for f, w in PARAMS.items()),
            call__n_assembly=sum(rows[f"assembly_bar.{f}"] * w for f, w in ASSEMBLY_BAR.items()),
            call__interval=schedule.interval,
            call__program_length=len(schedule.program),
            call__tail_length=len(schedule.tail),
            call__chunk=CHUNK,
            tree__has_tangents=int(parts == 2),
        )
        self._slots = {f: SCHEMA.slots[f"call.{f}"] for f in SCHEMA.tables["call"]}
        for name, word in STATE_ARRAYS.items():
            first = self.frame.integers[self._slots[name]]
            self._slots |= {word.format(part): first + k for k, part in enumerate(PARTS)}
        self._full, self._stopped = SCHEMA.slots["touch.is_full"], SCHEMA.slots["at.is_stopped"]
        self._runs: dict[tuple[str, bool], Callable[[], None]] = {}
        self._without = unused_kernels(tree)

    def integers(self, name: str) -> np.ndarray:
        """An integer array of the call, as a view."""
        start = self.frame.integers[self._slots[name]]
        count = len(OUTPUT) if name.startswith("output") else len(PARAMS)
        return self.frame.integers[start : start + count]

    def take_params(self, model: Model, dots: Mapping[str, np.ndarray] | None = None) -> None:
        """Point the call at the model's parameters; assemble them unless this frame has already."""
        shared = model.batch is None
        if self._pointed_at is model.params and dots is None:
            self.set(assemble=(DONE if self.assembled_for is model.params else ONCE) if shared else EACH_PACK)
            return
        self.assembled_for, self._pointed_at = None, model.params if dots is None else None
        arrays = [model.params[name] for name in NAMED_PARAMS]
        self.integers("param")[:] = [address(a) for a in arrays]
        self.integers("param_stride")[:] = [
            8 * a[0].size if name in model.own_params else 0 for name, a in zip(NAMED_PARAMS, arrays, strict=True)
        ]
        self.integers("param_dot")[:] = [address((dots or {}).get(name)) for name in NAMED_PARAMS]
        self.axis_references = axis_references_of(model.params["joint.axis"])
        self.set(
            axis_reference_rotation=address(self.axis_references[0]),
            axis_reference_axis=address(self.axis_references[1]),
            axis_reference_is_shared=int("joint.axis" not in model.own_params),
            assemble=ONCE if shared else EACH_PACK,
            # a spring of zero stiffness on a turning joint is dear and does nothing
            # where no link has a box and there is no medium, drag and all its derivatives are zero
            has_drag=int(
                any(p.any() for p in (model.params[n] for n in ("link.drag_size", "world.density", "world.viscosity")))
            ),
            has_springs=int(bool(model.params["joint.stiffness"].any() or "joint.stiffness" in (dots or {}))),
        )
        self._to_assemble = model.params if shared and dots is None else None

    def set(self, **values: int) -> None:
        integers, slots = self.frame.integers, self._slots
        for name, value in values.items():
            integers[slots[name]] = value

    def ready(self, kernel: str) -> Callable[[], None]:
        """What runs a kernel on this frame; compiled and loaded here, so that any thread may call it at once."""
        # forces on links are compiled for those who ask for them
        wants_wrenches = bool(self.frame.integers[self._slots["wants_wrenches"]])
        key = kernel, wants_wrenches
        if key not in self._runs:
            without = (
                self._without if wants_wrenches else (*self._without, "contact_wrenches", "contact_wrenches_adjoint")
            )
            try:
                self._runs[key] = self.library.attach(self.frame, kernel, without)
            except CannotCompile as reason:
                raise InputError(str(reason)) from None
        return self._runs[key]

    def run(self, kernel: str) -> None:
        self.ready(kernel)()
        self.conclude()

    def stop(self) -> None:
        """Let a kernel that runs on another thread end before its next step."""
        self.frame.integers[self._stopped] = 1

    def conclude(self) -> None:
        """After a run that came to its end: what this frame holds, and whether it had room for it."""
        integers, slots = self.frame.integers, self._slots
        if self.assembled_for is None and integers[slots["last"]] > integers[slots["first"]]:
            self.assembled_for = self._to_assemble
        if integers[self._full] != 0:
            tree = self.model.topology.tree
            most = max(tree["most_blocks"], tree["most_touches"])
            raise SimulationError(
                f"more points touch at once than there is room for ({most}{self._crowd()}); "
                f"compile the world with max_contacts={2 * most} or more"
            )

    def _crowd(self) -> str:
        """Between which links most of the present points are."""
        integers, slots = self.frame.integers, SCHEMA.slots
        start, n = integers[slots["touch.pair"]], integers[slots["touch.n"]]
        counts = Counter(tuple(sorted(source_names(self.model, p))) for p in integers[start : start + n])
        if not counts:
            return ""
        (a, b), count = counts.most_common(1)[0]
        return f'; {count} between "{a}" and "{b}"'


class Borrowed:
    """Something from a list of idle ones, or a new one, for a while; lists are safe to share between threads.

    It goes back to the list after work that came to its end. What an error or Ctrl-C left half done is thrown away.
    """

    def __init__(self, idle: list, make: Callable[[], Any]) -> None:
        self.idle, self.make = idle, make

    def __enter__(self) -> Any:
        try:
            self.one = self.idle.pop()
        except IndexError:
            self.one = self.make()
        return self.one

    def __exit__(self, failure: Any, *_: Any) -> None:
        if failure is None:
            self.idle.append(self.one)


def _check_room(rows: Mapping[str, int], aliases: Mapping[str, Any], copies: int) -> None:
    """Long chains with many limits take room in proportion to the square of their length."""
    numbers = sum(rows[f] * SCHEMA.width(f) for f in SCHEMA.slots if SCHEMA.is_pack(f) and f not in aliases)
    if why := excess("working_bytes", 8 * copies * numbers):
        raise SimulationError(f"this world needs {why}; fewer contacts (max_contacts), limits or bodies need less")


def worker(model: Model, parts: int = 1, schedule: Schedule | None = None, n_lanes: int | None = None) -> Borrowed:
    """Borrow a worker; those without room for states are kept with the model and used again."""
    key, schedule = (n_lanes or lanes(), parts), schedule or every_step()
    idle = [] if schedule.slots else model.workers.setdefault(key, [])
    return Borrowed(idle, lambda: Worker(model, *key, schedule))


# what comes in ----------------------------------------------------------------------------------------------------------


def checked(
    name: str, value: Any, shape: tuple[int | str, ...], hint: Callable[[tuple[int, ...]], str] | None = None
) -> np.ndarray:
    """A float64 array of the given shape (words stand for any size), else one clear error. Values are not looked at."""
    array = value if type(value) is np.ndarray else as_array(name, value)
    if array.dtype != np.float64:
        if array.dtype.kind not in "fiu":
            raise InputError(f"{name} has dtype {array.dtype}, but must hold real numbers: pass {name}.astype(float)")
        array = array.astype(np.float64)
    if array.shape != shape and not _fits(array.shape, shape):
        wanted = "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"
        more = hint(array.shape) if hint else ""
        raise InputError(f"{name} has shape {array.shape}, but must have {wanted}{more}")
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


def as_array(name: str, value: Any) -> np.ndarray:
    """What is not an array yet, as floats."""
    try:
        return value if isinstance(value, np.ndarray) else np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} is not an array of numbers: {shown(value)}") from None


def _fits(shape: tuple[int, ...], wanted: tuple[int | str, ...]) -> bool:
    return len(shape) == len(wanted) and all([w == s or type(w) is str for w, s in zip(wanted, shape, strict=True)])


def check_finite(name: str, array: np.ndarray | None) -> None:
    if array is not None and not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise InputError(f"{name} contains {array[where]} at {where}; it must be finite")


def check_quaternions(model: Model, q: np.ndarray) -> None:
    for start in model.topology.quaternions:
        if has_no_direction(q[..., start : start + 4]).any():
            raise InputError(f"state.q holds {NO_TURN} (entries {start} to {start + 3})")


def checked_state(model: Model, state: State) -> tuple[np.ndarray, np.ndarray, bool]:
    """q and qd with a batch axis, and whether they came with one."""
    if not isinstance(state, State):
        raise InputError(f"state must be a State(q, qd), as model.initial_state() gives, but is {type(state).__name__}")
    if type(model) is not Model:
        checked_model(model)
    is_batched = np.ndim(state.q) == 2
    batch: tuple[int | str, ...] = (model.batch or "batch",) if is_batched else ()
    q = checked("state.q", state.q, (*batch, model.nq), functools.partial(_missing, model))
    qd = checked("state.qd", state.qd, (*q.shape[:-1], model.nv))
    if model.batch is not None and not is_batched:
        raise InputError(f"the model has parameters for {model.batch} environments, but the state has no batch axis")
    return (q, qd, True) if is_batched else (q[None], qd[None], False)


def _missing(model: Model, shape: tuple) -> str:
    if not shape or shape[-1] == model.nq:
        return ""
    return f" (nq={model.nq}: {', '.join(model.topology.dof_names[:6])} ...)"


def controls_hint(model: Model, shape: tuple) -> str:
    """Names the first actuator that got no control."""
    if not shape or shape[-1] == model.nu:
        return ""
    names = model.actuator_names
    first = f' (first missing: "{names[shape[-1]]}")' if shape[-1] < model.nu else ""
    return f": u has {shape[-1]} entries, but the model has {model.nu} actuators{first}"
