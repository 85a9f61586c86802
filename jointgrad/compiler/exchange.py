"""Between the user's arrays, one environment after the other, and packs. Imported only when something is compiled."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .lanes import F64, I64, INT_POINTER, accumulate, lane_of, parts_of, set_lane, vector


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
    first = parts_of(builder, pack, value)[0]
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
def any_above(typingctx, pack, floor):
    """Whether some lane of a pack is above a number."""

    def codegen(context, builder, sig, args):
        pack = sig.args[0]
        level = ir.Constant(vector(pack.lanes), ir.Undefined)
        for lane in range(pack.lanes):
            level = builder.insert_element(level, args[1], ir.Constant(ir.IntType(32), lane))
        is_above = builder.fcmp_ordered(">", parts_of(builder, pack, args[0])[0], level)
        bits = builder.bitcast(is_above, ir.IntType(pack.lanes))
        return builder.icmp_signed("!=", bits, ir.Constant(bits.type, 0))

    return types.boolean(pack, types.float64), codegen


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


_ALL = (accumulate, gather, scatter, add_lanes, lanes_of, lane_of, set_lane, all_finite, any_above, mark)
PRIMITIVES = {f._name: f for f in _ALL}
