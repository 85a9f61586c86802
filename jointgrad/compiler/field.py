"""Fields: tables of numbers that compiled sweeps see as `work.v[i]`, a tuple of known width.

A Schema says which tables exist and how wide their rows are; it is known when code is compiled. How many rows each
field has is known only when a robot is, so that one compiled kernel serves every robot. All fields of one worker
lie in one flat array (a Frame); a short array of integers says where each begins.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

SCALAR = -1  # an integer, the same while a kernel runs
CURSOR = -2  # an integer that kernels may set
LIST = -3  # an array of integers that kernels may set
NUMBERS = -4  # an array of floats that all environments share; kernels may set them
INTEGERS = 0  # an array of integers, the same while a kernel runs; any width from 1 on is a table of packs


def _slots(names: Iterable[str], count: int) -> dict[str, int]:
    """A slot from 1 on for every name, found by the name itself: another name more leaves nearly all of them where they are, and
    compiled code, which knows slots by their numbers, stays valid."""
    found: dict[int, str] = {}
    for name in sorted(names, key=lambda n: (zlib.crc32(n.encode()), n)):
        slot = zlib.crc32(name.encode()) % count
        while slot in found:
            slot = (slot + 1) % count
        found[slot] = name
    return {name: 1 + slot for slot, name in found.items()}


class Schema:
    """Tables and the width of their fields. Slot 0 of a frame's integers is the address of its numbers."""

    def __init__(self, name: str, tables: Mapping[str, Mapping[str, int]], kernels: tuple[str, ...]) -> None:
        self.name, self.tables, self.kernels = name, tables, kernels
        fields = [f"{table}.{field}" for table, widths in tables.items() for field in widths]
        room = max(64, 1 << (len(fields) + len(kernels)).bit_length())
        slots = _slots([*fields, *kernels], room)
        self.slots = {field: slots[field] for field in fields}
        self.kernel_slots = {kernel: slots[kernel] for kernel in kernels}
        self.n_slots = 1 + room

    def width(self, field: str) -> int:
        table, name = field.split(".")
        return self.tables[table][name]

    def is_pack(self, field: str) -> bool:
        return self.width(field) > 0


def _aligned(count: int) -> np.ndarray:
    """Zeros that begin on a cache line: a pack that lies across two lines costs twice (measured: 15 % of a rollout)."""
    line = 64
    raw = np.zeros(count + line // 8)
    start = -raw.ctypes.data % line // 8
    return raw[start : start + count]


def _as_integers(values: Any, width: int) -> np.ndarray:
    """Integers as they are; floats by their bits, for all that is not a pack lies among the integers."""
    if width != NUMBERS:
        return np.atleast_1d(np.asarray(values, dtype=np.int64))
    return np.atleast_1d(np.array(values, dtype=np.float64)).view(np.int64)


class Frame:
    """The memory of one worker: every field of every table, for one pack of environments."""

    def __init__(
        self,
        schema: Schema,
        rows: Mapping[str, int],
        integers: Mapping[str, Any],
        lanes: int,
        parts: int = 1,
        aliases: Mapping[str, tuple[str, int]] | None = None,
    ) -> None:
        """`parts` is 2 where every number carries a tangent. An alias is another name for the rows of a field from one on."""
        self.schema, self.lanes, self.parts, self.rows = schema, lanes, parts, dict(rows)
        self.offsets: dict[str, int] = {}
        size = 0
        for field in filter(schema.is_pack, schema.slots):
            if field not in (aliases or {}):
                self.offsets[field] = size
                size += rows[field] * schema.width(field)
        for alias, (field, first) in (aliases or {}).items():
            self.offsets[alias] = self.offsets[field] + first * schema.width(field)
        self.numbers = _aligned(size * parts * lanes)
        self.integers = self._integers(integers)

    def _integers(self, given: Mapping[str, Any]) -> np.ndarray:
        arrays = {f: _as_integers(v, self.schema.width(f)) for f, v in given.items()}
        inline = {f for f in given if self.schema.width(f) in (SCALAR, CURSOR)}
        starts, size = {}, self.schema.n_slots
        for f in arrays.keys() - inline:
            starts[f] = size
            size += len(arrays[f])
        out = np.zeros(size, dtype=np.int64)
        out[0] = self.numbers.ctypes.data
        for f, slot in self.schema.slots.items():
            if f in inline:
                out[slot] = arrays[f][0]
            elif f in starts:
                out[slot] = starts[f]
                out[starts[f] : starts[f] + len(arrays[f])] = arrays[f]
            elif f in self.offsets:
                out[slot] = self.offsets[f]
        return out

    def table(self, field: str) -> np.ndarray:
        """The numbers of one field, shape (rows, width, parts, lanes), as a view."""
        rows, width = self.rows[field], self.schema.width(field)
        start = self.offsets[field] * self.parts * self.lanes
        count = rows * width * self.parts * self.lanes
        return self.numbers[start : start + count].reshape(rows, width, self.parts, self.lanes)

    def set(self, **scalars: int) -> None:
        """Integers by name, `table__field=value`."""
        for name, value in scalars.items():
            self.integers[self.schema.slots[name.replace("__", ".")]] = value


class PlainField(list):
    """Rows of one field when nothing is compiled: a row is a number, or a tuple where the width is more than one."""


class PlainRows:
    """Rows of another field, from one on, under a name of their own."""

    def __init__(self, field: PlainField, first: int, count: int) -> None:
        self.field, self.first, self.count = field, first, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, i: int) -> Any:
        return self.field[self.first + i]

    def __setitem__(self, i: int, value: Any) -> None:
        self.field[self.first + i] = value


def plain_tables(
    schema: Schema,
    rows: Mapping[str, int],
    integers: Mapping[str, Any],
    aliases: Mapping[str, tuple[str, int]],
    zero: Any = 0.0,
) -> SimpleNamespace:
    """A frame whose tables are Python lists, for the no-compiler mode; every number may be of any type. `frame.bar` holds
    the cotangents: `frame.bar.work` is table work_bar."""
    tables = SimpleNamespace()
    for table, widths in schema.tables.items():
        fields = SimpleNamespace()
        for field, width in widths.items():
            name = f"{table}.{field}"
            if width in (SCALAR, CURSOR):
                value: Any = int(integers.get(name, 0))
            elif width in (INTEGERS, LIST):
                value = [int(x) for x in np.atleast_1d(integers.get(name, []))]
            elif width == NUMBERS:
                value = [float(x) for x in np.atleast_1d(integers.get(name, []))]
            else:
                row = zero if width == 1 else (zero,) * width
                value = PlainField([row] * rows.get(name, 0))
            setattr(fields, field, value)
        setattr(tables, table, fields)
    for name, (place, first) in aliases.items():
        (table, field), (home, own) = name.split("."), place.split(".")
        if field != "all":  # of a whole table: nothing that runs uncompiled asks for it
            setattr(getattr(tables, table), field, PlainRows(getattr(getattr(tables, home), own), first, rows[name]))
    tables.bar = SimpleNamespace(
        **{name.removesuffix("_bar"): table for name, table in vars(tables).items() if name.endswith("_bar")}
    )
    return tables


def accumulate(field: PlainField, i: int, value: Any) -> None:
    """field[i] += value"""
    old = field[i]
    field[i] = tuple(a + b for a, b in zip(old, value, strict=True)) if isinstance(old, tuple) else old + value
