"""Packs and fields as Numba sees them. Imported only when something is compiled.

A Pack is a few environments that move through the arithmetic together: one SIMD value. A Dual is a pack and its tangent.
"""

from __future__ import annotations

import operator

from llvmlite import ir
from numba import types
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

from .field import CURSOR, INTEGERS, LIST, NUMBERS, Schema

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
    """An array of integers; kernels may set those of a list."""

    def __init__(self, is_list: bool = False) -> None:
        self.is_list = is_list
        super().__init__(name="List" if is_list else "Integers")


class NumbersType(types.Type):
    """An array of floats that all lanes share."""

    def __init__(self) -> None:
        super().__init__(name="Numbers")


class FrameType(types.Type):
    """A frame, or the cotangents in it (view "bar"): the pointer to its integers. Tables are its attributes."""

    def __init__(self, schema: Schema, view: str, pack: PackType) -> None:
        self.schema, self.suffix, self.pack = schema, "" if view == "frame" else f"_{view}", pack
        super().__init__(name=f"Frame({schema.name}.{view},{pack.name})")


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
@register_model(NumbersType)
@register_model(FrameType)
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


def slot_of(builder, frame, index: int):
    return _invariant_load(builder, builder.gep(frame, [ir.Constant(I64, index)]))


@infer_getattr
class _FrameAttributes(AttributeTemplate):
    key = FrameType

    def generic_resolve(self, frame, attr):  # type: ignore[override]
        table = attr + frame.suffix
        return TableType(frame.schema, table, frame.pack) if table in frame.schema.tables else None


@lower_getattr_generic(FrameType)
def _table(context, builder, ty, frame, attr):
    return frame


@infer_getattr
class _TableAttributes(AttributeTemplate):
    key = TableType

    def generic_resolve(self, table, attr):  # type: ignore[override]
        width = table.schema.tables[table.table].get(attr)
        if width is None:
            return None
        if width in (INTEGERS, LIST):
            return IntegersType(is_list=width == LIST)
        if width == NUMBERS:
            return NumbersType()
        return types.int64 if width < 0 else FieldType(width, table.pack)


@lower_getattr_generic(TableType)
def _table_field(context, builder, ty, frame, attr):
    width, slot = ty.schema.tables[ty.table][attr], ty.schema.slots[f"{ty.table}.{attr}"]
    if width == CURSOR:
        return builder.load(builder.gep(frame, [ir.Constant(I64, slot)]))
    start = slot_of(builder, frame, slot)
    if width in (INTEGERS, LIST, NUMBERS):
        return builder.gep(frame, [start])
    if width < 0:
        return start
    numbers = builder.inttoptr(slot_of(builder, frame, 0), vector(ty.pack.lanes).as_pointer())
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
            if isinstance(field, NumbersType):
                return types.float64

    return typer


@lower_builtin(operator.getitem, IntegersType, types.Integer)
def _get_integer(context, builder, sig, args):
    index = context.cast(builder, args[1], sig.args[1], types.int64)
    place = builder.gep(args[0], [index])
    return builder.load(place) if sig.args[0].is_list else _invariant_load(builder, place)


@lower_builtin(operator.setitem, IntegersType, types.Integer, types.Integer)
def _set_integer(context, builder, sig, args):
    if not sig.args[0].is_list:
        raise TypeError("these integers are not for kernels to set")
    index = context.cast(builder, args[1], sig.args[1], types.int64)
    builder.store(context.cast(builder, args[2], sig.args[2], types.int64), builder.gep(args[0], [index]))
    return context.get_dummy_value()


def _number_pointer(context, builder, numbers, ty, index):
    place = builder.gep(numbers, [context.cast(builder, index, ty, types.int64)])
    return builder.bitcast(place, F64.as_pointer())


@lower_builtin(operator.getitem, NumbersType, types.Integer)
def _get_number(context, builder, sig, args):
    return builder.load(_number_pointer(context, builder, args[0], sig.args[1], args[1]))


@lower_builtin(operator.setitem, NumbersType, types.Integer, types.Any)
def _set_number(context, builder, sig, args):
    value = context.cast(builder, args[2], sig.args[2], types.float64)
    builder.store(value, _number_pointer(context, builder, args[0], sig.args[1], args[1]))
    return context.get_dummy_value()


def _row_pointers(builder, field, ty: FieldType, row):
    """Pointers to the vectors of one row: width times parts of them."""
    count = ty.width * ty.pack.parts
    base = builder.gep(field, [builder.mul(row, ir.Constant(I64, count))])
    return [builder.gep(base, [ir.Constant(I64, k)]) for k in range(count)]


def assembled(builder, pack: PackType, vectors):
    """Vectors, in order, as the values of packs."""
    if pack.parts == 1:
        return list(vectors)
    return [
        builder.insert_value(builder.insert_value(ir.Constant(pack.llvm, ir.Undefined), v, 0), d, 1)
        for v, d in zip(vectors[::2], vectors[1::2], strict=True)
    ]


def parts_of(builder, pack: PackType, value):
    return [value] if pack.parts == 1 else [builder.extract_value(value, k) for k in range(2)]


@lower_builtin(operator.getitem, FieldType, types.Integer)
def _get_row(context, builder, sig, args):
    ty = sig.args[0]
    row = context.cast(builder, args[1], sig.args[1], types.int64)
    vectors = [builder.load(p, align=8) for p in _row_pointers(builder, args[0], ty, row)]
    packs = assembled(builder, ty.pack, vectors)
    return packs[0] if ty.width == 1 else context.make_tuple(builder, sig.return_type, packs)


def splat(builder, scalar, lanes):
    undefined = ir.Constant(vector(lanes), ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes))


def flat_packs(context, builder, ty, value, pack):
    """The packs in a value of a (nested) tuple type; a float becomes a pack of equal lanes."""
    if isinstance(ty, types.BaseTuple):
        return [
            p
            for k, t in enumerate(ty.types)  # type: ignore[attr-defined]
            for p in flat_packs(context, builder, t, builder.extract_value(value, k), pack)
        ]
    if isinstance(ty, PackType):
        return [value]
    same = splat(builder, context.cast(builder, value, ty, types.float64), pack.lanes)
    zero = ir.Constant(vector(pack.lanes), [0.0] * pack.lanes)
    return assembled(builder, pack, [same] if pack.parts == 1 else [same, zero])


@type_callable(operator.setitem)
def _setitem_type(context):
    return lambda field, index, value: types.void if isinstance(field, (FieldType, IntegersType, NumbersType)) else None


def _store(context, builder, sig, args, combine):
    ty = sig.args[0]
    row = context.cast(builder, args[1], sig.args[1], types.int64)
    pointers = _row_pointers(builder, args[0], ty, row)
    packs = flat_packs(context, builder, sig.args[2], args[2], ty.pack)
    vectors = [v for p in packs for v in parts_of(builder, ty.pack, p)]
    if len(vectors) != len(pointers):
        raise TypeError(f"a row of {ty.width} numbers was given {len(packs)}")
    for pointer, value in zip(pointers, vectors, strict=True):
        builder.store(combine(pointer, value), pointer, align=8)
    return context.get_dummy_value()


@lower_builtin(operator.setitem, FieldType, types.Integer, types.Any)
def _set_row(context, builder, sig, args):
    return _store(context, builder, sig, args, lambda pointer, value: value)


@intrinsic
def lane_of(typingctx, row, lane):
    """One environment's numbers of a row, as floats."""
    kept = types.UniTuple(types.float64, row.count) if isinstance(row, types.UniTuple) else types.float64

    def codegen(context, builder, sig, args):
        ty = sig.args[0]
        packs = [builder.extract_value(args[0], k) for k in range(ty.count)] if kept is not types.float64 else [args[0]]
        pack = ty.dtype if kept is not types.float64 else ty
        floats = [builder.extract_element(parts_of(builder, pack, p)[0], args[1]) for p in packs]
        return context.make_tuple(builder, sig.return_type, floats) if kept is not types.float64 else floats[0]

    return kept(row, types.int64), codegen


@intrinsic
def set_lane(typingctx, field, index, lane, values):
    """Set one environment's numbers of a row from floats; they have no tangent."""

    def codegen(context, builder, sig, args):
        ty, parts = sig.args[0], sig.args[0].pack.parts
        pointers = _row_pointers(builder, args[0], ty, args[1])[::parts]
        for k, pointer in enumerate(pointers):
            row = builder.insert_element(builder.load(pointer, align=8), builder.extract_value(args[3], k), args[2])
            builder.store(row, pointer, align=8)
        return context.get_dummy_value()

    return types.void(field, types.int64, types.int64, values), codegen


@intrinsic
def accumulate(typingctx, field, index, value):
    """field[index] += value"""

    def codegen(context, builder, sig, args):
        return _store(context, builder, sig, args, lambda p, v: builder.fadd(builder.load(p, align=8), v))

    return types.void(field, types.int64, value), codegen
