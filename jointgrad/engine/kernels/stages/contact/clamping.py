"""Blocks and their clamps: which of clamps.py acts on a block, forwards, backwards, and for its margin."""

from .....compiler.kernel import accumulate, any_above, inlined, sweep
from .....compiler.trace import traced
from .clamps import (
    bounded_margin,
    bounded_update,
    bounded_update_reverse,
    closed_cone_reverse,
    closed_point,
    closed_pyramid_reverse,
    closed_rows,
    closed_rows_reverse,
    closed_spin,
    closed_spin_reverse,
    cone_margin,
    cone_sides,
    cone_sticks,
    cone_update,
    cone_update_reverse,
    pyramid_margin,
    pyramid_sticks,
    pyramid_update,
    pyramid_update_reverse,
    row_sides,
    spin_margin,
    spin_update,
    spin_update_reverse,
)
from .paths import POINT, SPIN


@sweep
def hides(frame, k):
    """1 where the impulses of a block do not tell how they were clamped, in some lane."""
    block = frame.block
    kind = block.kind[k]
    if kind == POINT:
        return 1 if any_above(closed_point(block.friction[k], block.active[k]), 0.5) else 0
    if kind == SPIN:
        return 1 if any_above(closed_spin(block.friction[k], block.active[k]), 0.5) else 0
    return 1 if any_above(closed_rows(block.low[k], block.high[k], block.active[k]), 0.5) else 0


@inlined
def clamped(frame, k, x, y, newest):
    """Impulses of block k from the old ones and their trial values; `newest` are those of block k - 1."""
    block = frame.block
    G, kind = block.G[block.own[k]], block.kind[k]
    if kind == POINT:
        if frame.tree.is_cone != 0:
            return cone_update(x, y, G, block.friction[k])
        return pyramid_update(x, y, G, block.friction[k])
    if kind == SPIN:
        return spin_update(x, y, G, block.friction[k], newest)
    return bounded_update(x, y, G, block.low[k], block.high[k])


@sweep
def keep_side(frame, t, k, x, y, new):
    """Of a block that hides it: on which side of its bounds sweep t found it."""
    block = frame.block
    G = block.G[block.own[k]]
    if block.kind[k] == POINT and frame.tree.is_cone != 0:
        block.side[t * block.n + k] = cone_sides(x, y, G, new)
    else:
        block.side[t * block.n + k] = row_sides(x, y, G, new)


@traced
def impulses_of(x):
    return x[:3]


@inlined
def hand_over(frame, k, x):
    """The impulses of block k, and whether its friction holds."""
    block = frame.block
    block.impulse[k] = impulses_of(x)
    if block.kind[k] == POINT:
        block.sticks[k] = cone_sticks(x) if frame.tree.is_cone != 0 else pyramid_sticks(x, block.friction[k])


# the reverse ------------------------------------------------------------------------------------------------------------


@inlined
def point_reverse(frame, t, k, x, x_bar, G):
    tree, block = frame.tree, frame.block
    friction = block.friction[k]
    if block.hides[k] != 0:
        side = block.side[t * block.n + k]
        if tree.is_cone != 0:
            return closed_cone_reverse(x, x_bar, G, friction, side)
        return closed_pyramid_reverse(x, x_bar, G, friction, side)
    if tree.is_cone != 0:
        return cone_update_reverse(x, x_bar, G, friction)
    return pyramid_update_reverse(x, x_bar, G, friction)


@inlined
def turning_reverse(frame, t, k, x, x_bar, G):
    block = frame.block
    normal = block.x[(t + 1) * block.n + k - 1]
    if block.hides[k] != 0:
        return closed_spin_reverse(x, x_bar, G, block.friction[k], normal, block.side[t * block.n + k])
    return spin_update_reverse(x, x_bar, G, block.friction[k], normal)


@inlined
def rows_reverse(frame, t, k, x, x_bar, G):
    block = frame.block
    if block.hides[k] != 0:
        return closed_rows_reverse(x, x_bar, G, block.low[k], block.high[k], block.side[t * block.n + k])
    return bounded_update_reverse(x, x_bar, G, block.low[k], block.high[k])


@inlined
def clamped_reverse(frame, bar, t, k, x_bar):
    """Cotangents of the trial values and of the old impulses that `update` saw; adds to those of bounds."""
    block = frame.block
    G, x, kind = block.G[block.own[k]], block.x[(t + 1) * block.n + k], block.kind[k]
    if kind == POINT:
        e, old, friction = point_reverse(frame, t, k, x, x_bar, G)
        accumulate(bar.block.friction, k, friction)
    elif kind == SPIN:
        e, old, friction, normal_bar = turning_reverse(frame, t, k, x, x_bar, G)
        accumulate(bar.block.friction, k, friction)
        accumulate(bar.block.impulse, k - 1, normal_bar)
    else:
        e, old, low, high = rows_reverse(frame, t, k, x, x_bar, G)
        accumulate(bar.block.low, k, low)
        accumulate(bar.block.high, k, high)
    return e, old


@inlined
def clamp_margin(frame, t, k, y):
    """Margin and code of block k in sweep t, which tried y."""
    block = frame.block
    n = block.n
    x, new = block.x[t * n + k], block.x[(t + 1) * n + k]
    G, D, kind = block.G[block.own[k]], block.D[k], block.kind[k]
    if kind == POINT:
        if frame.tree.is_cone != 0:
            return cone_margin(x, y, G, block.friction[k], D)
        return pyramid_margin(x, y, G, block.friction[k], D, new)
    if kind == SPIN:
        return spin_margin(x, y, G, block.friction[k], D, new, block.x[(t + 1) * n + k - 1])
    return bounded_margin(x, y, G, block.low[k], block.high[k], D, new)
