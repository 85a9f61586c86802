"""The adjoint and the tangent of a traced function, derived once on its graph; there is no tape at run time."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from . import elementary as el
from .trace import Graph, Node, Traced, flatten, is_constant, needed, shaped_like

# how the arguments of each operation receive the cotangent v of its result n, and how its tangent follows from theirs
_ADJOINTS: dict[str, Callable] = {
    "add": lambda n, v, a, b: (v, v),
    "sub": lambda n, v, a, b: (v, -v),
    "mul": lambda n, v, a, b: (v * b, v * a),
    "neg": lambda n, v, a: (-v,),
    "div": lambda n, v, a, b: (_over(v, b), -(_over(v, b) * n)),
    "sqrt": lambda n, v, a: (v * 0.5 * el.inverse(n),),
    "sin": lambda n, v, a: (v * el.cos(a),),
    "cos": lambda n, v, a: (-(v * el.sin(a)),),
    "exp": lambda n, v, a: (v * n,),
    "log": lambda n, v, a: (v * el.inverse(a),),
    "tanh": lambda n, v, a: (v * (1.0 - n * n),),
    "atan": lambda n, v, a: (v * el.inverse(1.0 + a * a),),
    "select": lambda n, v, m, a, b: (0.0, el.select(m, v, 0.0), el.select(m, 0.0, v)),
}
_WITHOUT_DERIVATIVE = ("input", "gt", "rint", "floor", "exponent", "detach")


def _over(v, b):
    return v * el.inverse(b) if isinstance(b, Node) else v / b


def cotangents(graph: Graph, outputs: list, bars: list) -> dict[int, Any]:
    """Cotangent of every node that reaches an output, as further nodes of the same graph."""
    bar: dict[int, Any] = {}

    def give(node, value):
        if isinstance(node, Node) and not is_constant(value, 0):
            bar[id(node)] = bar[id(node)] + value if id(node) in bar else value

    order = list(graph.order)
    for out, out_bar in zip(outputs, bars, strict=True):
        give(out, out_bar)
    for node in reversed(order):
        if id(node) in bar and node.op not in _WITHOUT_DERIVATIVE:
            for arg, value in zip(node.args, _ADJOINTS[node.op](node, bar[id(node)], *node.args), strict=True):
                give(arg, value)
    return bar


def tangents(graph: Graph, outputs: list, seeds: dict[int, Any]) -> list:
    """Tangents of the outputs for given tangents of the inputs (by node identity)."""
    dot = dict(seeds)
    reach = needed(outputs)

    def of(x):
        return dot.get(id(x), 0.0) if isinstance(x, Node) else 0.0

    for node in [n for n in graph.order if id(n) in reach]:
        if node.op not in _WITHOUT_DERIVATIVE:
            dot[id(node)] = _tangent(node, [of(a) for a in node.args])
    return [of(o) for o in outputs]


def _tangent(node, dots):
    a = node.args
    if node.op == "add":
        return dots[0] + dots[1]
    if node.op == "sub":
        return dots[0] - dots[1]
    if node.op == "mul":
        return dots[0] * a[1] + a[0] * dots[1]
    if node.op == "select":
        if is_constant(dots[1], 0) and is_constant(dots[2], 0):
            return 0.0
        return el.select(a[0], dots[1], dots[2])
    if node.op == "div":
        quotient = dots[0] - node * dots[1]
        return 0.0 if is_constant(quotient, 0) else _over(quotient, a[1])
    if is_constant(dots[0], 0):
        return 0.0
    return _ADJOINTS[node.op](node, dots[0], *a)[0]


_BINARY = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "gt": lambda a, b: a > b}


def evaluate(graph: Graph, outputs: list, values: list) -> list:
    """The outputs for other inputs: numbers give numbers, nodes give nodes of their own graph (folded again)."""
    reach = needed(outputs)
    found: dict[int, Any] = {}

    def of(x):
        return found[id(x)] if isinstance(x, Node) else x

    for node in [n for n in graph.order if id(n) in reach]:
        args = [of(a) for a in node.args]
        if node.op == "input":
            result = values[args[0]]
        elif node.op in _BINARY:
            result = _BINARY[node.op](*args)
        elif node.op == "neg":
            result = -args[0]
        elif node.op == "div":
            result = el.inverse(args[1]) if is_constant(node.args[0], 1) else args[0] / args[1]
        elif node.op == "sqrt":
            result = el.root(args[0])
        else:
            result = getattr(el, node.op)(*args)
        found[id(node)] = result
    return [of(o) for o in outputs]


def _names(fn) -> list[str]:
    return list(inspect.signature(fn).parameters)


def adjoint(operator: Traced, wrt: str, at_zero: str = "") -> Traced:
    """Operator (the arguments of `operator`, then the cotangents of its results) -> one cotangent per name in `wrt`.

    Arguments named in `at_zero` are left out of the call: their derivative is taken at zero. This is how a cotangent
    along a small motion is derived without ever computing that motion.
    """
    fn, names = operator.fn, _names(operator.fn)
    wanted, zeros = wrt.split(), at_zero.split()
    assert set(wanted) | set(zeros) <= set(names), f"{operator}: no argument called {set(wanted) - set(names)}"
    given = [n for n in names if n not in zeros]
    sizes = {z: inspect.signature(fn).parameters[z].default for z in zeros}

    @functools.cache
    def derived(shapes):
        graph = Graph()
        args = [shaped_like(s, [graph.node("input", k) for k in flatten(s)]) for s in shapes]
        *inputs, bars = args
        by_name = dict(zip(given, inputs, strict=True))
        for k, z in enumerate(zeros):
            by_name[z] = tuple(graph.node("input", ("zero", k, j)) for j in range(len(sizes[z])))
        outs = fn(*(by_name[n] for n in names))
        flat_bars = flatten(bars)
        assert len(flatten(outs)) == len(flat_bars), (
            f"{operator} has {len(flatten(outs))} results, got {len(flat_bars)} cotangents"
        )
        bar = cotangents(graph, flatten(outs), flat_bars)
        result = tuple(shaped_like(by_name[w], [bar.get(id(x), 0.0) for x in flatten(by_name[w])]) for w in wanted)
        return graph, result if len(result) > 1 else result[0]

    def reverse(*args):
        shapes, values = _numbered(args)
        graph, result = derived(shapes)
        for node in graph.order:
            if node.op == "input" and isinstance(node.args[0], tuple):
                values[node.args[0]] = 0.0
        return shaped_like(result, evaluate(graph, flatten(result), values))

    reverse.__doc__ = f"Cotangents of {wrt} of {operator.__name__}."
    reverse.__signature__ = _signature([*given, "bars"])  # type: ignore[attr-defined]
    return Traced(reverse, f"{operator.__name__}_adjoint")


def tangent(operator: Traced) -> Traced:
    """Operator (arguments, tangents of the arguments as one tuple) -> (results, tangents of the results)."""
    fn = operator.fn

    @functools.cache
    def derived(shapes):
        graph = Graph()
        *args, dots = [shaped_like(s, [graph.node("input", k) for k in flatten(s)]) for s in shapes]
        outs = fn(*args)
        seeds = {id(x): d for x, d in zip(flatten(tuple(args)), flatten(dots), strict=True)}
        return graph, (outs, shaped_like(outs, tangents(graph, flatten(outs), seeds)))

    def forward(*args):
        shapes, values = _numbered(args)
        graph, result = derived(shapes)
        return shaped_like(result, evaluate(graph, flatten(result), values))

    forward.__signature__ = _signature([*_names(fn), "dots"])  # type: ignore[attr-defined]
    return Traced(forward, f"{operator.__name__}_tangent")


def _signature(names):
    return inspect.Signature([inspect.Parameter(p, inspect.Parameter.POSITIONAL_ONLY) for p in names])


def _numbered(args):
    """Argument shapes with a number in each place (hashable), and the values by number."""
    count = iter(range(10**9))
    shapes = tuple(shaped_like(a, [next(count) for _ in flatten(a)]) for a in args)
    return shapes, dict(enumerate(flatten(tuple(args))))
