"""The restraint of energy.py for the convex law: impulses of a step that would do work are all taken by one share of themselves.

Here x . A x is x . J y, with the velocities y that the impulses give; what is felt of both is share x and share y.
"""

from .....compiler.kernel import accumulate, any_above, inlined, sweep
from .....compiler.trace import traced
from ...operators import plus, zero, zero3
from .clamping import impulses_of
from .energy import (
    bounce_at,
    constraint_entry,
    constraint_entry_adjoint,
    entry,
    entry_adjoint,
    in_share,
    larger,
    mass_of_all,
    may_push,
    of_mass,
    one_less,
    share_bar_of,
    share_of,
    share_of_adjoint,
    times_felt,
)
from .joint_space import along_rows, take_from
from .paths import POINT


@traced
def impulses_in_share(x, share):
    """The last number of a row is no impulse: whether a point sticks."""
    return (x[0] * share, x[1] * share, x[2] * share, x[3])


@inlined
def felt_of(frame, k):
    """J y of a block."""
    return along_rows(frame, k, zero3(frame.params.world_dt[0]), frame.block.y)


@sweep
def restrain_bounces(frame):
    """Leaves the share in block.share, and takes impulses and motions by it."""
    params, block = frame.params, frame.block
    balance, square, bounce = zero(params.world_dt[0]), zero(params.world_dt[0]), zero(params.world_dt[0])
    mass = mass_of_all(frame)
    for k in range(block.n):
        block.whole[k] = impulses_of(block.x[k])
        if block.kind[k] == POINT:
            bounce = larger(bounce, bounce_at(frame, k))
            is_pushed = may_push(frame, k)
            own = entry(block.x[k], block.approach[k], block.closing[k], block.b[k], is_pushed, mass)
        else:
            own = constraint_entry(block.x[k], block.closing[k], block.b[k])
        balance = plus(balance, own)
        square = plus(square, times_felt(block.x[k], felt_of(frame, k)))
    block.balance[0] = balance, square, bounce
    block.share[0] = share_of(balance, square, bounce)
    if any_above(one_less(block.share[0]), 0.0):
        block.restrained = 1
        for k in range(block.n):
            block.x[k] = impulses_in_share(block.x[k], block.share[0])
        for b in range(frame.tree.n_bodies):
            block.motion[b] = in_share(block.motion[b], block.share[0])


# the reverse ------------------------------------------------------------------------------------------------------------


@traced
def plus_product(total, a, b):
    return total + a * b


@traced
def product(a, b):
    return a * b


@traced
def whole_bar(x_bar, share, own_bar, square_bar, felt):
    """Cotangents of a block's impulses, from those of what is felt of them."""
    return tuple(share * p + q + square_bar * f for p, q, f in zip(x_bar, own_bar[:3], felt, strict=True))


@traced
def less_square(x, square_bar):
    return tuple(-(square_bar * p) for p in x[:3])


@sweep
def bounces_adjoint(frame, bar):
    """From the cotangents of what is felt, in bar.block.impulse and y, to those of the whole, in their place. block.x are the whole
    impulses. Leaves cotangents of closing, approach and demand, and that of x . J y in bar.block.square."""
    tree, params, block = frame.tree, frame.params, frame.block
    share, share_bar = block.share[0], zero(params.world_dt[0])
    for d in range(tree.n_dofs):
        share_bar = plus_product(share_bar, block.y[d], bar.block.y[d])
        bar.block.y[d] = product(bar.block.y[d], share)
    for k in range(block.n):
        share_bar = share_bar_of(share_bar, bar.block.impulse[k], block.x[k])
    balance_bar, square_bar = share_of_adjoint(block.balance[0][0], block.balance[0][1], block.balance[0][2], share_bar)
    bar.block.square[0] = square_bar
    mass, all_mass_bar = mass_of_all(frame), zero(params.world_dt[0])
    for k in range(block.n):
        if block.kind[k] == POINT:
            own_bar, bar.block.approach[k], bar.block.closing[k], bar.block.demand[k], mass_bar = entry_adjoint(
                block.x[k], block.approach[k], block.closing[k], block.b[k], may_push(frame, k), mass,
                balance_bar,
            )  # fmt: skip
            all_mass_bar = plus(all_mass_bar, mass_bar)
        else:
            own_bar, bar.block.closing[k], bar.block.demand[k] = constraint_entry_adjoint(
                block.x[k], block.closing[k], block.b[k], balance_bar
            )
            bar.block.approach[k] = zero(balance_bar)
        bar.block.impulse[k] = whole_bar(bar.block.impulse[k], share, own_bar, square_bar, felt_of(frame, k))
        take_from(frame, k, less_square(block.x[k], square_bar), bar.block.y)
    if frame.call.wants_params != 0 or tree.n_mass_aims != 0:
        for b in range(tree.n_bodies):
            accumulate(bar.assembly.inertia, b, of_mass(all_mass_bar))


@traced
def with_square(bar, x, square_bar):
    """What multiplies y in J_bar."""
    return tuple(b + square_bar * p for b, p in zip(bar, x[:3], strict=True))
