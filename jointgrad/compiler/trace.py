"""@traced: a plain Python function of numbers, seen as a graph.

A traced function is straight-line: tuples in, tuples out, no branch that depends on a value (use `select`). Called with
numbers it just runs. Called with `Node`s it writes down what it would compute, which is what the compiler emits as SIMD
code and what `reverse` differentiates. Constants fold and repeats vanish while the graph is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


class Graph:
    """Operations in the order in which they were first asked for; each exists once."""

    def __init__(self) -> None:
        self.known: dict[tuple, Node] = {}
        self.order: list[Node] = []

    def node(self, op: str, *args: Any) -> Node:
        key = (op, *(("node", id(a)) if isinstance(a, Node) else a for a in args))
        if key not in self.known:
            self.known[key] = Node(self, op, args)
            self.order.append(self.known[key])
        return self.known[key]

    def inputs(self, count: int) -> list[Node]:
        return [self.node("input", k) for k in range(count)]


def is_constant(x: Any, value: float) -> bool:
    return not isinstance(x, Node) and x == value


class Node:
    """One number of the graph. Arithmetic on nodes makes nodes; arithmetic with 0 and 1 makes none."""

    __slots__ = ("args", "graph", "op")

    def __init__(self, graph: Graph, op: str, args: tuple) -> None:
        self.graph, self.op, self.args = graph, op, args

    def __add__(self, other):
        return self if is_constant(other, 0) else self.graph.node("add", self, other)

    def __radd__(self, other):
        return self if is_constant(other, 0) else self.graph.node("add", other, self)

    def __sub__(self, other):
        return self if is_constant(other, 0) else self.graph.node("sub", self, other)

    def __rsub__(self, other):
        return -self if is_constant(other, 0) else self.graph.node("sub", other, self)

    def __mul__(self, other):
        if is_constant(other, 0):
            return 0.0
        if is_constant(other, 1):
            return self
        if is_constant(other, -1):
            return -self
        return self.graph.node("mul", self, other)

    __rmul__ = __mul__

    def __truediv__(self, other):
        if isinstance(other, Node):
            raise TypeError(
                "a division whose denominator may vanish: use safe_div, or inverse() of what cannot be zero"
            )
        return self.graph.node("div", self, other)

    def __rtruediv__(self, other):
        raise TypeError("a division whose denominator may vanish: use safe_div, or inverse() of what cannot be zero")

    def __neg__(self):
        return self.args[0] if self.op == "neg" else self.graph.node("neg", self)

    def __gt__(self, other):
        return self.graph.node("gt", self, other)

    def __lt__(self, other):
        return self.graph.node("gt", other, self)

    def __eq__(self, other):
        raise TypeError("a traced function cannot ask whether a value equals another: use select(a > b, ...)")

    __hash__ = object.__hash__

    def __bool__(self):
        raise TypeError("a traced function cannot branch on a value: use select(condition, a, b)")


def flatten(x: Any) -> list:
    return [z for y in x for z in flatten(y)] if isinstance(x, tuple) else [x]


def shaped_like(x: Any, values: Iterable) -> Any:
    """The values of a flat sequence, nested as x is."""
    values = iter(values)

    def nest(y):
        return tuple(nest(z) for z in y) if isinstance(y, tuple) else next(values)

    return nest(x)


def needed(outputs: Iterable) -> set[int]:
    """Identities of the nodes that reach the outputs."""
    found: set[int] = set()
    stack = [o for o in outputs if isinstance(o, Node)]
    while stack:
        node = stack.pop()
        if id(node) not in found:
            found.add(id(node))
            stack += [a for a in node.args if isinstance(a, Node)]
    return found


class Traced:
    """A traced function: runs on numbers as it is, and is emitted as one operator on packs when a sweep is compiled."""

    def __init__(self, fn: Callable, name: str | None = None) -> None:
        self.fn = fn
        self.__name__ = name or fn.__name__
        self.__doc__ = fn.__doc__
        self.__wrapped__ = fn

    def __call__(self, *args):
        return self.fn(*args)

    def __repr__(self) -> str:
        return f"<traced {self.__name__}>"


def traced(fn: Callable) -> Traced:
    return Traced(fn)
