"""A bounce gives back at most what came in: impulses of a step that would do work are all taken by one share of themselves.

Impulses x do the work x . (velocities before + velocities after) / 2, and so share * x do share / 2 (x . c + share x . A x) with
c the sum of the velocities before the step and before the impulses. Stabilisation is meant to do work: what it may do is its
speed times its impulse. The largest share that does no more is balance / square, or 1: see docs/decisions/0010.
Only steps in which something bounces are looked at.
"""

from .....algebra.vector import dot
from .....compiler.elementary import inverse, maximum, minimum, select
from .....compiler.kernel import accumulate, any_above, inlined, kernel, sweep
from .....compiler.reverse import adjoint
from .....compiler.trace import traced
from .....model.arrays import FREE
from ...at_points import at_point
from ...operators import plus, zero
from .felt import felt_by
from .give import plus_mass
from .paths import IN_FIRST, POINT
from .response import joint_rates, no_sums, push
from .rows import bounce_of, brake, push_out

# energy may grow by this share: rounding must not decide whether an elastic impact is restrained
SLACK = 1e-9


@traced
def is_pushed_out(approach, gap, restitution, stabilisation, push_limit, dt):
    """1 where stabilisation asks for more than the bounce, else 0: only the former may do work."""
    parting = minimum(-(stabilisation * gap * inverse(dt)), push_out(push_limit, brake(restitution)))
    bounce = select(0.0 > gap, maximum(-(restitution * approach), 0.0), 0.0)
    return select(bounce > parting, 0.0, 1.0)


def most_push(speed, approach, closing, mass):
    """Work that gives all bodies the speed of stabilisation, against what forces press in a step. Along a normal that joints hardly
    let move, the mass that is felt has no bound."""
    return mass * speed * (speed + maximum(approach - closing[0], 0.0))


@traced
def entry(x, approach, closing, b, may_push, mass):
    """What a point adds to the balance: twice what stabilisation may do, less the work against the velocities."""
    speed = closing[0] - b[0]
    push = may_push * minimum(maximum(x[0] * speed, 0.0), most_push(speed, approach, closing, mass))
    return 2.0 * push - dot(x[:3], (approach + closing[0], 2.0 * closing[1], 2.0 * closing[2]))


@traced
def constraint_entry(x, closing, b):
    """The same of what turns, and of ties; the velocities before the step are taken for those before the impulses."""
    pushes = tuple(maximum(p * (c - d), 0.0) for p, c, d in zip(x[:3], closing, b, strict=True))
    return 2.0 * (pushes[0] + pushes[1] + pushes[2] - dot(x[:3], closing))


entry_adjoint = adjoint(entry, "x approach closing b mass")
constraint_entry_adjoint = adjoint(constraint_entry, "x closing b")


@traced
def share_of(balance, square, bounce):
    most = maximum(balance, 0.0) * (1.0 + SLACK)
    is_over = select(bounce > 0.0, square, 0.0) > most
    return select(is_over, most * inverse(select(is_over, square, 1.0)), 1.0)


share_of_adjoint = adjoint(share_of, "balance square")


@traced
def times_felt(x, felt):
    return dot(x[:3], felt)


@traced
def larger(a, b):
    return maximum(a, b)


@traced
def one_less(share):
    return 1.0 - share


@traced
def in_share(values, share):
    return tuple(x * share for x in values)


@traced
def product(a, b):
    return a * b


@sweep
def mass_of_all(frame):
    total = zero(frame.params.world_dt[0])
    for b in range(frame.tree.n_bodies):
        total = plus_mass(total, frame.work.I[b])
    return total


@inlined
def may_push(frame, k):
    """Whether the stabilisation of a point may do work."""
    params, touch, block = frame.params, frame.touch, frame.block
    i = block.source[k]
    row = frame.tree.pair_row[touch.pair[i]]
    return is_pushed_out(
        block.approach[k], touch.gap[i], at_point(frame, touch.restitution, params.pair_restitution, i, row),
        params.pair_baumgarte[row], params.pair_max_push_out_speed[row], params.world_dt[0],
    )  # fmt: skip


@sweep
def bounce_at(frame, k):
    """Restitution of a point that overlaps."""
    touch, block = frame.touch, frame.block
    i = block.source[k]
    row = frame.tree.pair_row[touch.pair[i]]
    return bounce_of(
        block.active[k], touch.gap[i], at_point(frame, touch.restitution, frame.params.pair_restitution, i, row)
    )


@inlined
def solved(frame, k):
    """Impulses of a block before any were restrained."""
    return frame.block.whole[k] if frame.block.bounces != 0 else frame.block.impulse[k]


@kernel
def restrain(frame):
    """Reads the sums of the impulses; takes all of these, and the sums, by the share that does no work."""
    params, block = frame.params, frame.block
    balance, square, bounce = zero(params.world_dt[0]), zero(params.world_dt[0]), zero(params.world_dt[0])
    mass = mass_of_all(frame)
    for k in range(block.n):
        x = block.whole[k] = block.impulse[k]
        if block.kind[k] == POINT:
            bounce = larger(bounce, bounce_at(frame, k))
            is_pushed = may_push(frame, k)
            own = entry(x, block.approach[k], block.closing[k], block.b[k], is_pushed, mass)
        else:
            own = constraint_entry(x, block.closing[k], block.b[k])
        balance = plus(balance, own)
        square = plus(square, times_felt(x, felt_by(frame, block.pushed, block.motion, k)))
    block.balance[0] = balance, square, bounce
    block.share[0] = share_of(balance, square, bounce)
    if any_above(one_less(block.share[0]), 0.0):
        block.restrained = 1
        for k in range(block.n):
            block.impulse[k] = in_share(block.whole[k], block.share[0])
        share_sums(frame)


@sweep
def share_sums(frame):
    tree, block = frame.tree, frame.block
    share = block.share[0]
    for d in range(tree.n_dofs):
        block.pushed[d] = product(block.pushed[d], share)
    for b in range(tree.n_bodies):
        block.motion[b] = in_share(block.motion[b], share)


# the reverse ------------------------------------------------------------------------------------------------------------


@sweep
def unrestrain(frame):
    """Sums of impulses and rates of joints as they were solved; those of free roots are in the sums."""
    tree, block = frame.tree, frame.block
    no_sums(frame, block.pushed, block.motion)
    for k in range(block.n):
        push(frame, block.pushed, block.motion, k, block.whole[k])
    for b in range(tree.n_bodies):
        if tree.kind[b] != FREE:
            joint_rates(frame, b)


@sweep
def restrain_again(frame):
    tree, work = frame.tree, frame.work
    share_sums(frame)
    for b in range(tree.n_bodies):
        if tree.kind[b] != FREE:
            for d in range(tree.dof[b], tree.dof[b] + tree.n_dof[b]):
                work.qd_jump[d] = product(work.qd_jump[d], frame.block.share[0])


@traced
def share_bar_of(share_bar, x_bar, x):
    return share_bar + dot(x_bar, x[:3])


@traced
def whole_bar(x_bar, share, own_bar, square_bar, felt):
    """Cotangents of a block's impulses, from those of their shares."""
    return tuple(share * p + q + 2.0 * square_bar * f for p, q, f in zip(x_bar, own_bar[:3], felt, strict=True))


@traced
def of_mass(mass_bar):
    return (*(0.0 * mass_bar,) * 9, mass_bar)


@kernel
def restrain_adjoint(frame, bar):
    """From the cotangents of the impulses that were felt, in bar.block.impulse, to those of the whole ones in their place.
    Overwrites bar.block.closing, approach and demand; leaves that of x . A x in bar.block.square. The sums are those of the whole
    ones."""
    tree, params, block = frame.tree, frame.params, frame.block
    share_bar = zero(params.world_dt[0])
    for k in range(block.n):
        share_bar = share_bar_of(share_bar, bar.block.impulse[k], block.whole[k])
    balance_bar, square_bar = share_of_adjoint(block.balance[0][0], block.balance[0][1], block.balance[0][2], share_bar)
    bar.block.square[0] = square_bar
    mass, all_mass_bar = mass_of_all(frame), zero(params.world_dt[0])
    for k in range(block.n):
        if block.kind[k] == POINT:
            own_bar, bar.block.approach[k], bar.block.closing[k], bar.block.demand[k], mass_bar = entry_adjoint(
                block.whole[k], block.approach[k], block.closing[k], block.b[k], may_push(frame, k),
                mass, balance_bar,
            )  # fmt: skip
            all_mass_bar = plus(all_mass_bar, mass_bar)
        else:
            own_bar, bar.block.closing[k], bar.block.demand[k] = constraint_entry_adjoint(
                block.whole[k], block.closing[k], block.b[k], balance_bar
            )
        felt = felt_by(frame, block.pushed, block.motion, k)
        bar.block.impulse[k] = whole_bar(bar.block.impulse[k], block.share[0], own_bar, square_bar, felt)
    if frame.call.wants_params != 0 or tree.n_mass_aims != 0:
        for b in range(tree.n_bodies):
            accumulate(bar.assembly.inertia, b, of_mass(all_mass_bar))


@traced
def plus_rate(w, x, rate, square_bar):
    return tuple(p + 2.0 * square_bar * q * rate for p, q in zip(w, x[:3], strict=True))


@traced
def plus_motion(w, x, motion, square_bar):
    return tuple(w[6 * i + j] + 2.0 * square_bar * x[i] * motion[j] for i in range(3) for j in range(6))


@sweep
def square_adjoint(frame, bar):
    """W = S Y^T of the square's own S = 2 square_bar x x^T, and what the balance gives the demands. Rates are those of the whole
    impulses."""
    tree, block = frame.tree, frame.block
    for k in range(block.n):
        accumulate(bar.block.b, k, bar.block.demand[k])
        for side in range(2 * k, 2 * k + 2):
            t = tree.body_tree[block.body[side]]
            if t < tree.n_trees and block.root[side] != IN_FIRST:
                add_square(frame, bar, k, side, t)


@sweep
def add_square(frame, bar, k, side, t):
    tree, block = frame.tree, frame.block
    base, first, square_bar = side * tree.most_dofs - tree.tree_dof[t], tree.tree_dof[t], bar.block.square[0]
    root = tree.tree_root[t]
    if root >= 0:  # whose rates are kept as its motion
        first += 6
        bar.block.W_root[side] = plus_motion(bar.block.W_root[side], block.whole[k], block.motion[root], square_bar)
    for d in range(first, tree.tree_dof[t + 1]):
        bar.block.W[base + d] = plus_rate(bar.block.W[base + d], block.whole[k], frame.work.qd_jump[d], square_bar)
