"""Operators that no stage owns: zeros, sums and differences.

A zero is made of some number of the caller's, because it has to be of that number's kind: a pack, or in the no-compiler mode an
array or a symbol.
"""

from ...algebra.vector import add, sub
from ...compiler.trace import traced


@traced
def zero(anything):
    return 0.0 * anything


@traced
def zero3(anything):
    return (0.0 * anything,) * 3


@traced
def zero4(anything):
    return (0.0 * anything,) * 4


@traced
def zero6(anything):
    return (0.0 * anything,) * 6


@traced
def zero9(anything):
    return (0.0 * anything,) * 9


@traced
def zero10(anything):
    return (0.0 * anything,) * 10


@traced
def zero18(anything):
    return (0.0 * anything,) * 18


@traced
def plus(a, b):
    """Of numbers or of rows."""
    return add(a, b) if isinstance(a, tuple) else a + b


@traced
def less(a, b):
    return sub(a, b) if isinstance(a, tuple) else a - b
