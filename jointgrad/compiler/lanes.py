"""Packs, fields and traced operators as Numba sees them. Imported only when something is compiled.

A Pack is a few environments that move through the arithmetic together: one SIMD value. A Dual is a pack and its tangent.
No fast-math flag anywhere; products that feed one sum become explicit fma, so that bits do not depend on the pack width.
"""

from __future__ import annotations

import inspect
import operator
from collections import Counter

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    infer_getattr,
    intrinsic,
    lower_builtin,
    lower_getattr_generic,
    lower_setattr_generic,
    models,
    register_model,
    type_callable,
)

from . import elementary as el
from .field import CURSOR, INTEGERS, Schema
from .reverse import tangent
from .trace import Graph, Node, Traced, flatten, needed

I64, F64 = ir.IntType(64), ir.DoubleType()
INT_POINTER = I64.as_pointer()


def vector(lanes: int) -> ir.VectorType:
    return ir.VectorType(F64, lanes)


class PackType(types.Type):
    """`parts` is 1 for a plain pack, 2 for a pack with its tangent."""

    def __init__(self, lanes: int, parts: int) -> None:
        self.lanes, self.parts = lanes, parts
        super().__init__(name=f"Pack({lanes},{parts})")

    @property
    def llvm(self):
        one = vector(self.lanes)
        return one if self.parts == 1 else ir.LiteralStructType([one, one])


class FieldType(types.Type):
    def __init__(self, width: int, pack: PackType) -> None:
        self.width, self.pack = width, pack
        self.item = pack if width == 1 else types.UniTuple(pack, width)
        super().__init__(name=f"Field({width},{pack.name})")


class IntegersType(types.Type):
    def __init__(self) -> None:
        super().__init__(name="Integers")


class TableType(types.Type):
    """All tables share one runtime value, the pointer to the frame's integers; the type says which fields they have."""

    def __init__(self, schema: Schema, table: str, pack: PackType) -> None:
        self.schema, self.table, self.pack = schema, table, pack
        super().__init__(name=f"Table({schema.name}.{table},{pack.name})")


@register_model(PackType)
class _PackModel(models.PrimitiveModel):
    def __init__(self, dmm, fe):
        super().__init__(dmm, fe, fe.llvm)


@register_model(FieldType)
class _FieldModel(models.PrimitiveModel):
    def __init__(self, dmm, fe):
        super().__init__(dmm, fe, vector(fe.pack.lanes).as_pointer())


@register_model(IntegersType)
@register_model(TableType)
class _PointerModel(models.PrimitiveModel):
    def __init__(self, dmm, fe):
        super().__init__(dmm, fe, INT_POINTER)


# tables and fields ---------------------------------------------------------------------------------------------------


def _invariant_load(builder, pointer):
    """Integers of a frame do not change while a kernel runs, so that the optimiser may keep them."""
    value = builder.load(pointer)
    value.set_metadata("invariant.load", builder.module.add_metadata([]))
    return value


def _slot(builder, frame, index: int):
    return _invariant_load(builder, builder.gep(frame, [ir.Constant(I64, index)]))


@infer_getattr
class _TableAttributes(AttributeTemplate):
    key = TableType

    def generic_resolve(self, table, attr):
        width = table.schema.tables[table.table].get(attr)
        if width is None:
            return None
        if width < 0:
            return types.int64
        return IntegersType() if width == INTEGERS else FieldType(width, table.pack)


@lower_getattr_generic(TableType)
def _table_field(context, builder, ty, frame, attr):
    width, slot = ty.schema.tables[ty.table][attr], ty.schema.slots[f"{ty.table}.{attr}"]
    if width == CURSOR:
        return builder.load(builder.gep(frame, [ir.Constant(I64, slot)]))
    start = _slot(builder, frame, slot)
    if width < 0:
        return start
    if width == INTEGERS:
        return builder.gep(frame, [start])
    numbers = builder.inttoptr(_slot(builder, frame, 0), vector(ty.pack.lanes).as_pointer())
    return builder.gep(numbers, [builder.mul(start, ir.Constant(I64, ty.pack.parts))])


@lower_setattr_generic(TableType)
def _set_cursor(context, builder, sig, args, attr):
    ty = sig.args[0]
    if ty.schema.tables[ty.table][attr] != CURSOR:
        raise TypeError(f"{ty.table}.{attr} is not for kernels to set")
    slot = ir.Constant(I64, ty.schema.slots[f"{ty.table}.{attr}"])
    builder.store(context.cast(builder, args[1], sig.args[1], types.int64), builder.gep(args[0], [slot]))


@type_callable(operator.getitem)
def _getitem_type(context):
    def typer(field, index):
        if isinstance(index, types.Integer):
            if isinstance(field, FieldType):
                return field.item
            if isinstance(field, IntegersType):
                return types.int64

    return typer


@lower_builtin(operator.getitem, IntegersType, types.Integer)
def _get_integer(context, builder, sig, args):
    index = context.cast(builder, args[1], sig.args[1], types.int64)
    return _invariant_load(builder, builder.gep(args[0], [index]))


def _row_pointers(builder, field, ty: FieldType, row):
    """Pointers to the vectors of one row: width times parts of them."""
    count = ty.width * ty.pack.parts
    base = builder.gep(field, [builder.mul(row, ir.Constant(I64, count))])
    return [builder.gep(base, [ir.Constant(I64, k)]) for k in range(count)]


def _assemble(builder, pack: PackType, vectors):
    """Vectors, in order, as the values of packs."""
    if pack.parts == 1:
        return list(vectors)
    return [
        builder.insert_value(builder.insert_value(ir.Constant(pack.llvm, ir.Undefined), v, 0), d, 1)
        for v, d in zip(vectors[::2], vectors[1::2], strict=True)
    ]


def _parts(builder, pack: PackType, value):
    return [value] if pack.parts == 1 else [builder.extract_value(value, k) for k in range(2)]


@lower_builtin(operator.getitem, FieldType, types.Integer)
def _get_row(context, builder, sig, args):
    ty = sig.args[0]
    row = context.cast(builder, args[1], sig.args[1], types.int64)
    vectors = [builder.load(p, align=8) for p in _row_pointers(builder, args[0], ty, row)]
    packs = _assemble(builder, ty.pack, vectors)
    return packs[0] if ty.width == 1 else context.make_tuple(builder, sig.return_type, packs)


def splat(builder, scalar, lanes):
    undefined = ir.Constant(vector(lanes), ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes))


def _flat_packs(context, builder, ty, value, pack):
    """The packs in a value of a (nested) tuple type; a float becomes a pack of equal lanes."""
    if isinstance(ty, types.BaseTuple):
        return [
            p
            for k, t in enumerate(ty.types)
            for p in _flat_packs(context, builder, t, builder.extract_value(value, k), pack)
        ]
    if isinstance(ty, PackType):
        return [value]
    same = splat(builder, context.cast(builder, value, ty, types.float64), pack.lanes)
    zero = ir.Constant(vector(pack.lanes), [0.0] * pack.lanes)
    return _assemble(builder, pack, [same] if pack.parts == 1 else [same, zero])


@type_callable(operator.setitem)
def _setitem_type(context):
    return lambda field, index, value: types.void if isinstance(field, FieldType) else None


def _store(context, builder, sig, args, combine):
    ty = sig.args[0]
    row = context.cast(builder, args[1], sig.args[1], types.int64)
    pointers = _row_pointers(builder, args[0], ty, row)
    packs = _flat_packs(context, builder, sig.args[2], args[2], ty.pack)
    vectors = [v for p in packs for v in _parts(builder, ty.pack, p)]
    if len(vectors) != len(pointers):
        raise TypeError(f"a row of {ty.width} numbers was given {len(packs)}")
    for pointer, value in zip(pointers, vectors, strict=True):
        builder.store(combine(pointer, value), pointer, align=8)
    return context.get_dummy_value()


@lower_builtin(operator.setitem, FieldType, types.Integer, types.Any)
def _set_row(context, builder, sig, args):
    return _store(context, builder, sig, args, lambda pointer, value: value)


@intrinsic
def accumulate(typingctx, field, index, value):
    """field[index] += value"""

    def codegen(context, builder, sig, args):
        return _store(context, builder, sig, args, lambda p, v: builder.fadd(builder.load(p, align=8), v))

    return types.void(field, types.int64, value), codegen


# between the user's arrays (one environment after the other) and packs -------------------------------------------------


def _lane_pointers(builder, address, stride, count, lanes):
    """Where each lane's numbers begin; lanes past the last environment read the last one."""
    last = builder.sub(count, ir.Constant(I64, 1))
    for lane in range(lanes):
        here = ir.Constant(I64, lane)
        index = builder.select(builder.icmp_signed("<", here, count), here, last)
        yield builder.inttoptr(builder.add(address, builder.mul(index, stride)), F64.as_pointer())


def _cell(builder, field, ty, index, part=0):
    """Pointer to the vector of number `index` of a field, its rows laid end to end."""
    at = builder.add(builder.mul(index, ir.Constant(I64, ty.pack.parts)), ir.Constant(I64, part))
    return builder.gep(field, [at])


def _gather_part(builder, field, ty, part, first, n, address, stride, count):
    pointers = list(_lane_pointers(builder, address, stride, count, ty.pack.lanes))
    with cgutils.for_range(builder, n, intp=I64) as loop:
        value = ir.Constant(vector(ty.pack.lanes), ir.Undefined)
        for lane, pointer in enumerate(pointers):
            one = builder.load(builder.gep(pointer, [loop.index]))
            value = builder.insert_element(value, one, ir.Constant(ir.IntType(32), lane))
        builder.store(value, _cell(builder, field, ty, builder.add(first, loop.index), part), align=8)


def _scatter_part(builder, field, ty, part, first, n, address, stride, count):
    pointers = list(_lane_pointers(builder, address, stride, count, ty.pack.lanes))
    with cgutils.for_range(builder, n, intp=I64) as loop:
        value = builder.load(_cell(builder, field, ty, builder.add(first, loop.index), part), align=8)
        # from the last lane to the first: a lane without an environment points at the last one, which writes after it
        for lane in reversed(range(ty.pack.lanes)):
            one = builder.extract_element(value, ir.Constant(ir.IntType(32), lane))
            builder.store(one, builder.gep(pointers[lane], [loop.index]))


def _zero_part(builder, field, ty, part, first, n):
    with cgutils.for_range(builder, n, intp=I64) as loop:
        zero = ir.Constant(vector(ty.pack.lanes), [0.0] * ty.pack.lanes)
        builder.store(zero, _cell(builder, field, ty, builder.add(first, loop.index), part), align=8)


@intrinsic
def gather(typingctx, field, first, n, address, tangent_address, stride, count):
    """n numbers of a field, from number `first` on, out of the user's array: environments lie `stride` bytes apart.

    A tangent address of 0 means tangents of zero.
    """

    def codegen(context, builder, sig, args):
        field, first, n, address, tangent_address, stride, count = args
        ty = sig.args[0]
        _gather_part(builder, field, ty, 0, first, n, address, stride, count)
        if ty.pack.parts == 2:
            is_given = builder.icmp_signed("!=", tangent_address, ir.Constant(I64, 0))
            with builder.if_else(is_given) as (given, absent):
                with given:
                    _gather_part(builder, field, ty, 1, first, n, tangent_address, stride, count)
                with absent:
                    _zero_part(builder, field, ty, 1, first, n)
        return context.get_dummy_value()

    return types.void(field, *[types.int64] * 6), codegen


@intrinsic
def scatter(typingctx, field, first, n, address, tangent_address, stride, count):
    """n numbers of a field, from number `first` on, into the user's array."""

    def codegen(context, builder, sig, args):
        field, first, n, address, tangent_address, stride, count = args
        ty = sig.args[0]
        for part, target in enumerate((address, tangent_address)[: ty.pack.parts]):
            _scatter_part(builder, field, ty, part, first, n, target, stride, count)
        return context.get_dummy_value()

    return types.void(field, *[types.int64] * 6), codegen


@intrinsic
def add_lanes(typingctx, field, index, address, count):
    """Add number `index` of a field to one double, environment after environment: the order of a sum is fixed."""

    def codegen(context, builder, sig, args):
        ty = sig.args[0]
        value = builder.load(_cell(builder, args[0], ty, args[1]), align=8)
        pointer = builder.inttoptr(args[2], F64.as_pointer())
        for lane in range(ty.pack.lanes):
            with builder.if_then(builder.icmp_signed("<", ir.Constant(I64, lane), args[3])):
                one = builder.extract_element(value, ir.Constant(ir.IntType(32), lane))
                builder.store(builder.fadd(builder.load(pointer), one), pointer)
        return context.get_dummy_value()

    return types.void(field, *[types.int64] * 3), codegen


@intrinsic
def lanes_of(typingctx, field):
    """How many environments a pack holds."""

    def codegen(context, builder, sig, args):
        return ir.Constant(I64, sig.args[0].pack.lanes)

    return types.int64(field), codegen


def _is_nan(builder, pack, value):
    first = _parts(builder, pack, value)[0]
    return builder.fcmp_unordered("uno", first, first)


@intrinsic
def all_finite(typingctx, pack):
    """Whether no lane of a pack is NaN."""

    def codegen(context, builder, sig, args):
        bad = _is_nan(builder, sig.args[0], args[0])
        bits = builder.bitcast(bad, ir.IntType(sig.args[0].lanes))
        return builder.icmp_signed("==", bits, ir.Constant(bits.type, 0))

    return types.boolean(pack), codegen


@intrinsic
def mark(typingctx, pack, address, value, count):
    """Store a number for each environment whose lane is NaN and that has none yet (a negative one)."""

    def codegen(context, builder, sig, args):
        bad = _is_nan(builder, sig.args[0], args[0])
        for lane in range(sig.args[0].lanes):
            exists = builder.icmp_signed("<", ir.Constant(I64, lane), args[3])
            is_bad = builder.extract_element(bad, ir.Constant(ir.IntType(32), lane))
            with builder.if_then(builder.and_(exists, is_bad)):
                pointer = builder.inttoptr(builder.add(args[1], ir.Constant(I64, 8 * lane)), INT_POINTER)
                old = builder.load(pointer)
                is_new = builder.icmp_signed("<", old, ir.Constant(I64, 0))
                builder.store(builder.select(is_new, args[2], old), pointer)
        return context.get_dummy_value()

    return types.void(pack, *[types.int64] * 3), codegen


# traced operators ----------------------------------------------------------------------------------------------------


def _call(builder, name, args, lanes):
    kind = vector(lanes)
    fn = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(kind, [kind] * len(args)), f"llvm.{name}.v{lanes}f64"
    )
    return builder.call(fn, args)


def _lowered(outputs: list) -> tuple[Graph, list]:
    """The graph with every function that hardware does not have spelled in those it has."""
    graph = Graph()
    found = {}

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
        else:
            found[id(node)] = graph.node(node.op, *args)
    return graph, [of(o) for o in outputs]


def emit(builder, outputs: list, inputs: list, lanes: int) -> list:
    """LLVM vectors for the outputs; a product used once, by a sum, becomes part of an fma."""
    graph, outputs = _lowered(outputs)
    reach = needed(outputs)
    live = [n for n in graph.order if id(n) in reach]
    uses = Counter(id(a) for n in live for a in n.args if isinstance(a, Node)) + Counter(id(o) for o in outputs)
    kind, value = vector(lanes), {}

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

    simple = {
        "mul": lambda a: builder.fmul(val(a[0]), val(a[1])),
        "div": lambda a: builder.fdiv(val(a[0]), val(a[1])),
        "neg": lambda a: builder.fneg(val(a[0])),
        "sqrt": lambda a: _call(builder, "sqrt", [val(a[0])], lanes),
        "rint": lambda a: _call(builder, "rint", [val(a[0])], lanes),
        "floor": lambda a: _call(builder, "floor", [val(a[0])], lanes),
        "exp2_integer": lambda a: power_of_two(val(a[0])),
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
    return sum(map(_count, ty.types)) if isinstance(ty, types.BaseTuple) else 1


def _nodes_for(ty, numbers):
    if isinstance(ty, types.BaseTuple):
        return tuple(_nodes_for(t, numbers) for t in ty.types)
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
            packs = [
                p for t, v in zip(argtypes, values, strict=True) for p in _flat_packs(context, builder, t, v, pack)
            ]
            inputs = [v for p in packs for v in _parts(builder, pack, p)]
            results = _assemble(builder, pack, emit(builder, flat, inputs, pack.lanes))
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
            address = _slot(builder, args[0], schema.kernel_slots[name])
            with builder.goto_entry_block():
                result, error = builder.alloca(null), builder.alloca(null)
            builder.call(builder.inttoptr(address, kind.as_pointer()), [result, error, *args])
            return context.get_dummy_value()

        return types.void(*argtypes), codegen

    names = ", ".join(f"a{k}" for k in range(n_args))
    scope = {"implement": implement}
    exec(f"def {name}(typingctx, {names}):\n    return implement(({names},))\n", scope)
    return intrinsic(scope[name])


PRIMITIVES = {f._name: f for f in (accumulate, gather, scatter, add_lanes, lanes_of, all_finite, mark)}
