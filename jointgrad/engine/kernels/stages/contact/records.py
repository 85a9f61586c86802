"""The record of a step that certificates are made of (workspace.RECORD), and how margins of clamps enter it.

A signature adds up what every choice was, each with a weight of its own, so that two steps share it if all choices were alike.
"""

from .....compiler.elementary import maximum, select
from .....compiler.kernel import sweep
from .....compiler.trace import traced
from .clamps import FAR, size_of
from .paths import BOUNDED, POINT

GOLDEN = 0.6180339887498949  # multiples of it fill the unit interval evenly


def replaced(record, start, values):
    return (*record[:start], *values, *record[start + len(values) :])


def smaller(record, start, value, who):
    is_less = record[start] > value
    return replaced(record, start, (select(is_less, value, record[start]), select(is_less, who, record[start + 1])))


@traced
def with_margin(record, value, who, is_last, code, weight):
    """A clamp of some sweep; the margin of the last sweep is that of the outcome."""
    record = smaller(record, 0, value, who)
    record = smaller(record, 2, select(is_last > 0.5, value, FAR), who)
    return replaced(record, 13, (record[13] + weight * code,))


@traced
def with_impulse(record, x, before):
    """Sizes of the last impulses, and of what the last sweep changed."""
    size, change = record[9], record[10]
    for i in range(3):
        size, change = maximum(size, size_of(x[i])), maximum(change, size_of(x[i] - before[i]))
    return replaced(record, 9, (size, change))


@sweep
def name_of(frame, k):
    """The pair of shapes of a block, or minus one less its tie."""
    block = frame.block
    if block.kind[k] == BOUNDED:
        return -1.0 - block.source[k]
    return 1.0 * frame.touch.pair[block.source[k]]


@sweep
def seed_of(frame, k):
    """A number that the same candidate has whatever else touches."""
    block, touch = frame.block, frame.touch
    if block.kind[k] == BOUNDED:
        return 3 * block.source[k]
    i = block.source[k]
    return 3 * (16 * touch.pair[i] + touch.part[i]) + (1 if block.kind[k] == POINT else 2)


@sweep
def weight_of(seed, t):
    """Where a multiple of the golden ratio falls in the unit interval."""
    return ((t + 1) * 100003 + seed) * GOLDEN % 1.0 + 0.125


@sweep
def clamp_record(frame, record, t, k, value, code):
    """With the margin and code of block k in sweep t."""
    is_last = 1.0 if t == frame.tree.sweeps - 1 else 0.0
    return with_margin(record, value, name_of(frame, k), is_last, code, weight_of(seed_of(frame, k), t))


@sweep
def impulses_record(frame, record):
    """With the last impulses of all blocks."""
    block = frame.block
    n, T = block.n, frame.tree.sweeps
    for k in range(n):
        record = with_impulse(record, block.x[T * n + k], block.x[(T - 1) * n + k])
    return record
