"""Traced operators as SIMD code. Imported only when something is compiled.

Products that feed one sum become explicit fma and there is no fast-math flag, so that bits do not depend on the width.
"""

from __future__ import annotations

import inspect
from collections import Counter
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from . import elementary as el
from .field import Schema
from .lanes import I64, INT_POINTER, PackType, assembled, flat_packs, parts_of, slot_of, vector
from .reverse import tangent
from .trace import Graph, Node, Traced, flatten, needed


def _call(builder, name, args, lanes):
    kind = vector(lanes)
    fn = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(kind, [kind] * len(args)), f"llvm.{name}.v{lanes}f64"
    )
    return builder.call(fn, args)


def _lowered(outputs: list) -> tuple[Graph, list]:
    """The graph with every function that hardware does not have spelled in those it has."""
    graph = Graph()
    found: dict[int, Any] = {}

    def of(x):
        return found[id(x)] if isinstance(x, Node) else x

    order = next((o.graph.order for o in outputs if isinstance(o, Node)), [])
    reach = needed(outputs)
    for node in [n for n in order if id(n) in reach]:
        args = [of(a) for a in node.args]
        if node.op in el.LOWERED:
            found[id(node)] = el.LOWERED[node.op](args[0])
        elif node.op == "detach":
            found[id(node)] = args[0]
        elif node.op == "select" and args[1] is args[2]:  # a choice that only derivatives see
            found[id(node)] = args[1]
        else:
            found[id(node)] = graph.node(node.op, *args)
    return graph, [of(o) for o in outputs]


def emit(builder, outputs: list, inputs: list, lanes: int) -> list:
    """LLVM vectors for the outputs; a product used once, by a sum, becomes part of an fma."""
    graph, outputs = _lowered(outputs)
    reach = needed(outputs)
    live = [n for n in graph.order if id(n) in reach]
    uses = Counter(id(a) for n in live for a in n.args if isinstance(a, Node)) + Counter(id(o) for o in outputs)
    kind = vector(lanes)
    value: dict[int, Any] = {}

    def val(x):
        return value[id(x)] if isinstance(x, Node) else ir.Constant(kind, [float(x)] * lanes)

    def is_fusable(x):
        return isinstance(x, Node) and x.op == "mul" and uses[id(x)] == 1

    def fused_argument(node):
        return next((k for k in (1, 0) if is_fusable(node.args[k])), None)

    def fma(product, addend, flip):
        a, b = map(val, product.args)
        return _call(builder, "fma", [builder.fneg(a) if flip else a, b, addend], lanes)

    def sum_of(node):
        a, k, minus = node.args, fused_argument(node), node.op == "sub"
        if k is None:
            return (builder.fsub if minus else builder.fadd)(val(a[0]), val(a[1]))
        other = val(a[1 - k])
        return fma(a[k], builder.fneg(other) if minus and k == 0 else other, minus and k == 1)

    def power_of_two(k):
        wide = ir.VectorType(I64, lanes)
        biased = builder.add(builder.fptosi(k, wide), ir.Constant(wide, [1023] * lanes))
        return builder.bitcast(builder.shl(biased, ir.Constant(wide, [52] * lanes)), kind)

    def exponent(x):
        wide = ir.VectorType(I64, lanes)
        biased = builder.lshr(builder.bitcast(x, wide), ir.Constant(wide, [52] * lanes))
        return builder.sitofp(builder.sub(biased, ir.Constant(wide, [1023] * lanes)), kind)

    simple = {
        "mul": lambda a: builder.fmul(val(a[0]), val(a[1])),
        "div": lambda a: builder.fdiv(val(a[0]), val(a[1])),
        "neg": lambda a: builder.fneg(val(a[0])),
        "sqrt": lambda a: _call(builder, "sqrt", [val(a[0])], lanes),
        "rint": lambda a: _call(builder, "rint", [val(a[0])], lanes),
        "floor": lambda a: _call(builder, "floor", [val(a[0])], lanes),
        "exp2_integer": lambda a: power_of_two(val(a[0])),
        "exponent": lambda a: exponent(val(a[0])),
        "gt": lambda a: builder.fcmp_ordered(">", val(a[0]), val(a[1])),
        "select": lambda a: builder.select(val(a[0]), val(a[1]), val(a[2])),
        "input": lambda a: inputs[a[0]],
    }
    sums = [n for n in live if n.op in ("add", "sub")]
    fused = {id(n.args[fused_argument(n)]) for n in sums if fused_argument(n) is not None}
    for node in live:
        if id(node) not in fused:
            value[id(node)] = sum_of(node) if node.op in ("add", "sub") else simple[node.op](node.args)
    return [val(o) for o in outputs]


def _count(ty) -> int:
    return sum(map(_count, ty.types)) if isinstance(ty, types.BaseTuple) else 1  # type: ignore[arg-type, attr-defined]


def _nodes_for(ty, numbers):
    if isinstance(ty, types.BaseTuple):
        return tuple(_nodes_for(t, numbers) for t in ty.types)  # type: ignore[attr-defined]
    return next(numbers)


def _result_type(out, pack):
    if not isinstance(out, tuple):
        return pack
    parts = [_result_type(o, pack) for o in out]
    return types.UniTuple(parts[0], len(parts)) if len(set(parts)) == 1 else types.Tuple(parts)


def _packed_up(context, builder, out, pack, values):
    if not isinstance(out, tuple):
        return next(values)
    return context.make_tuple(
        builder, _result_type(out, pack), [_packed_up(context, builder, o, pack, values) for o in out]
    )


def _plain_outputs(fn, argtypes):
    inputs = iter(Graph().inputs(sum(map(_count, argtypes))))
    out = fn(*(_nodes_for(t, inputs) for t in argtypes))
    return out, flatten(out)


def _dual_outputs(operator_, argtypes):
    """Results and tangents, interleaved; inputs are numbered value, tangent, value, tangent ..."""
    graph = Graph()
    total = sum(map(_count, argtypes))
    numbers = graph.inputs(2 * total)
    values, dots = iter(numbers[::2]), iter(numbers[1::2])
    args = tuple(_nodes_for(t, values) for t in argtypes)
    out, out_dot = tangent(operator_)(*args, tuple(_nodes_for(t, dots) for t in argtypes))
    return out, [x for pair in zip(flatten(out), flatten(out_dot), strict=True) for x in pair]


def compiled_operator(operator_: Traced, pack: PackType):
    """A traced function as a Numba-callable operator on packs and tuples of packs."""

    def implement(argtypes):
        out, flat = _plain_outputs(operator_.fn, argtypes) if pack.parts == 1 else _dual_outputs(operator_, argtypes)

        def codegen(context, builder, sig, values):
            packs = [p for t, v in zip(argtypes, values, strict=True) for p in flat_packs(context, builder, t, v, pack)]
            inputs = [v for p in packs for v in parts_of(builder, pack, p)]
            results = assembled(builder, pack, emit(builder, flat, inputs, pack.lanes))
            return _packed_up(context, builder, out, pack, iter(results))

        return _result_type(out, pack)(*argtypes), codegen

    names = ", ".join(inspect.signature(operator_.fn).parameters)
    scope = {"implement": implement}
    exec(f"def {operator_.__name__}(typingctx, {names}):\n    return implement(({names},))\n", scope)
    return intrinsic(scope[operator_.__name__])


def stage_call(schema: Schema, name: str, n_args: int):
    """A call of a kernel compiled on its own, through its address in the frame: the caller need not be optimised with it."""

    def implement(argtypes):
        def codegen(context, builder, sig, args):
            null = ir.IntType(8).as_pointer()
            kind = ir.FunctionType(ir.IntType(32), [null.as_pointer(), null.as_pointer()] + [INT_POINTER] * len(args))
            address = slot_of(builder, args[0], schema.kernel_slots[name])
            with builder.goto_entry_block():
                result, error = builder.alloca(null), builder.alloca(null)
            builder.call(builder.inttoptr(address, kind.as_pointer()), [result, error, *args])
            return context.get_dummy_value()

        return types.void(*argtypes), codegen

    names = ", ".join(f"a{k}" for k in range(n_args))
    scope = {"implement": implement}
    exec(f"def {name}(typingctx, {names}):\n    return implement(({names},))\n", scope)
    return intrinsic(scope[name])
