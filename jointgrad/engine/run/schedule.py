"""What a rollout keeps of its states, and how the rest is recomputed while going back.

Without a budget every state is kept, and a step is reversed from its own state (Qiao 2021, sec. 4.2). With one, states
are kept every `interval` steps, and a short program reverses an interval: either it stores all states of the interval on
the way, or only as many as fit, at the distances that cost least (Griewank and Walther 2000). Every way replays the
same steps from the same states, so the bits of the result do not depend on it.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

from ...model.errors import InputError
from ..kernels.time_loop import ADVANCE, LOAD, REVERSE, STORE

Line = tuple[int, int, int]  # action, argument, step within the interval


@dataclass(frozen=True, eq=False)
class Schedule:
    interval: int
    slots: int
    program: tuple[Line, ...]
    tail: tuple[Line, ...]

    def rows(self, steps: int) -> int:
        """How many states are kept."""
        return steps + 1 if self.interval == 1 else math.ceil(steps / self.interval)


@functools.cache
def every_step() -> Schedule:
    one = ((REVERSE, 0, 0),)
    return Schedule(1, 0, one, one)


def interval_program(length: int) -> tuple[Line, ...]:
    """Store every state of the interval but the last on the way up."""
    up = [line for i in range(length - 1) for line in ((STORE, i, i), (ADVANCE, 1, 0))]
    down = [line for i in range(length - 2, -1, -1) for line in ((LOAD, i, i), (REVERSE, 0, 0))]
    return (*up, (REVERSE, 0, 0), *down)


@functools.lru_cache(maxsize=64)
def binomial_program(length: int, slots: int) -> tuple[Line, ...]:
    """Reverse an interval with `slots` stored states, the first of them its start."""
    lines: list[Line] = [(STORE, 0, 0)] if length > 1 else []

    def treat(start: int, length: int, slot: int) -> None:
        """The present state is that of `start`, and is stored in `slot`."""
        while length > 1:
            free = slots - slot - 1
            if free == 0:
                for i in range(length - 1, 0, -1):
                    lines.extend([(ADVANCE, i, 0), (REVERSE, 0, 0), (LOAD, slot, start)])
                length = 1
            else:
                ahead = _split(length, free + 1)
                lines.extend([(ADVANCE, ahead, 0), (STORE, slot + 1, start + ahead)])
                treat(start + ahead, length - ahead, slot + 1)
                lines.append((LOAD, slot, start))
                length = ahead
        lines.append((REVERSE, 0, 0))

    treat(0, length, 0)
    return tuple(lines)


def _split(length: int, states: int) -> int:
    """How far ahead to store next, with this many states in all: each step is then repeated as seldom as possible."""
    repeats = 0
    while math.comb(states + repeats, states) < length:
        repeats += 1
    farthest = math.comb(states + repeats - 1, states)
    nearest = length - math.comb(states - 1 + repeats, states - 1)
    return max(1, nearest, min(farthest, length - 1))


def steps_repeated(program: tuple[Line, ...]) -> int:
    return sum(argument for action, argument, _ in program if action == ADVANCE)


def planned(steps: int, batch: int, state_bytes: int, packed: int, budget: float) -> Schedule:
    """The schedule that repeats fewest steps within `budget` bytes. `packed` environments are reversed at a time."""
    if steps == 0 or (steps + 1) * batch * state_bytes <= budget:
        return every_step()
    for interval in range(2, steps + 1):
        kept = math.ceil(steps / interval) * batch * state_bytes
        if kept + (interval - 1) * packed * state_bytes <= budget:
            tail = steps - (math.ceil(steps / interval) - 1) * interval
            return Schedule(interval, interval - 1, interval_program(interval), interval_program(tail))
    return _binomial(steps, batch, state_bytes, packed, budget)


def _binomial(steps: int, batch: int, state_bytes: int, packed: int, budget: float) -> Schedule:
    """One interval for the whole motion where states of the batch are dear, several where they are cheap."""
    best: tuple[float, Schedule] | None = None
    for rows in sorted({1, 2, 4, 8, 16, 32, 64} & set(range(1, steps + 1))):
        interval = math.ceil(steps / rows)
        slots = int((budget - math.ceil(steps / interval) * batch * state_bytes) // (packed * state_bytes))
        if slots < 1 or interval < 2:
            continue
        tail = steps - (math.ceil(steps / interval) - 1) * interval
        slots = min(slots, interval)
        schedule = Schedule(interval, slots, binomial_program(interval, slots), binomial_program(tail, slots))
        cost = steps_repeated(schedule.program) * rows
        if best is None or cost < best[0]:
            best = cost, schedule
    if best is None:
        least = (batch + packed) * state_bytes
        raise InputError(f"memory={budget:.0f} bytes is too little for this rollout: it needs at least {least} bytes")
    return best[1]
