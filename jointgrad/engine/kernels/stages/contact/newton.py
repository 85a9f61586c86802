"""Newton's method on the convex contact problem, in joint space.

Of what impulses add to the velocities, y: minimise y^T M y / 2 + the potentials of all blocks at u = b + J y. The gradient
M y - J^T x(u) vanishes where impulses and change of momentum agree. A step solves H s = -gradient, H = M + J^T D J with the
gains D of the blocks, and goes as far along s as the potential falls. The start is the velocity before the step: what rests,
rests on. A lane whose gradient is small enough is frozen as it is, whatever its neighbours still do; one that is not
there when the iterations end is counted (`block.unsettled`).
"""

from .....compiler.elementary import detach, inverse, maximum, minimum, select
from .....compiler.kernel import any_above, inlined, kernel, sweep
from .....compiler.trace import traced
from .....model.arrays import FREE
from ...operators import zero
from .convex_law import (
    level_speed,
    lifted,
    point_along,
    point_gain,
    point_mode,
    tie_along,
    tie_gain,
    tie_mode,
    turning_along,
    turning_gain,
    turning_mode,
)
from .joint_space import (
    along_rows,
    factor,
    gained,
    gained_with,
    gained_with_back,
    gather_block,
    mass_times,
    solve,
    start_H,
    take_from,
)
from .paths import BOUNDED, POINT, SPIN

# what is left of the gradient, as a velocity beside that which impulses give; and what is enough where rounding allows no less
TOLERANCE, ENOUGH = 1e-12, 1e-9
# m/s: and beside this where they give nothing
SLOW = 1e-3
# looks along a step at most, and how flat the potential is where one is content, beside where it began
LOOKS = 12
FLAT = 0.05


@inlined
def has_spin(frame, k):
    """Whether the block after a point is its turning."""
    block = frame.block
    return k + 1 < block.n and block.kind[k + 1] == SPIN


# start ------------------------------------------------------------------------------------------------------------------


@traced
def undone(rate, dt):
    return -(dt * rate)


@sweep
def start(frame):
    """y that leaves the velocities as they were before the step."""
    tree, work, block = frame.tree, frame.work, frame.block
    dt = frame.params.world_dt[0]
    for b in range(tree.n_bodies):
        d = tree.dof[b]
        if tree.kind[b] == FREE:
            a_joints = work.a_joints[b]
            for e in range(6):
                block.y[d + e] = undone(a_joints[e], dt)
        else:
            for e in range(d, d + tree.n_dof[b]):
                block.y[e] = undone(work.qdd[e], dt)


@sweep
def start_rows(frame):
    """u of every block at the start; `level` is what sliding takes off the normal velocity."""
    block = frame.block
    for k in range(block.n):
        u = block.b[k]
        if block.kind[k] == POINT and frame.tree.is_level != 0:
            block.level[k] = level_speed(block.b[k], block.closing[k], block.friction[k])
            u = lifted(u, block.level[k], block.active[k])
        block.u[k] = along_rows(frame, k, u, block.y)


# gradient and gains -----------------------------------------------------------------------------------------------------


@sweep
def evaluate(frame):
    """Impulses and gains of every block at its u, and the gradient M y - J^T x."""
    block = frame.block
    for d in range(frame.tree.n_dofs):
        block.gradient[d] = block.mass_y[d]
    for k in range(block.n):
        if block.kind[k] == BOUNDED:
            x, block.gain[k] = tie_gain(block.u[k], block.soft[k], block.low[k], block.high[k], block.active[k])
            take_from(frame, k, x, block.gradient)
        elif block.kind[k] == POINT:
            if has_spin(frame, k):
                x, spin, block.gain[k], block.cross[k + 1], block.gain[k + 1] = turning_gain(
                    block.u[k], block.u[k + 1], block.soft[k], block.friction[k], block.active[k]
                )
                take_from(frame, k + 1, spin, block.gradient)
            else:
                x, block.gain[k] = point_gain(block.u[k], block.soft[k], block.friction[k], block.active[k])
            take_from(frame, k, x, block.gradient)


@sweep
def gains(frame, k):
    """D J of a block."""
    block = frame.block
    if block.kind[k] == POINT and has_spin(frame, k):
        shift = block.first[k + 1] - block.first[k]
        for c in range(block.first[k], block.first[k + 1]):
            block.gained[c] = gained_with_back(
                block.gain[k], block.column[c], block.cross[k + 1], block.column[c + shift]
            )
    elif block.kind[k] == SPIN:
        shift = block.first[k] - block.first[k - 1]
        for c in range(block.first[k], block.first[k + 1]):
            block.gained[c] = gained_with(block.gain[k], block.column[c], block.cross[k], block.column[c - shift])
    else:
        for c in range(block.first[k], block.first[k + 1]):
            block.gained[c] = gained(block.gain[k], block.column[c])


@sweep
def factorise(frame):
    """The factor of H for the present gains."""
    block = frame.block
    start_H(frame)
    for k in range(block.n):
        gains(frame, k)
    for k in range(block.n):
        gather_block(frame, k)
    factor(frame)


@traced
def plus_square(total, g, mass):
    return total + g * g * inverse(mass)


@traced
def plus_product(total, a, b):
    return total + a * b


@traced
def plus_slow(total, mass):
    return total + (SLOW * SLOW) * mass


@traced
def excess_of(left, whole):
    """More than 1 where a lane is not there yet."""
    return left * inverse(whole) * (1.0 / (TOLERANCE * TOLERANCE))


@traced
def goes_on(excess, before):
    """2 where a lane has to go on, else 0. It is also there when little is left, and rounding keeps it from getting any less."""
    is_stuck = select(excess < (ENOUGH / TOLERANCE) ** 2, select(excess > 0.1 * before, 1.0, 0.0), 0.0)
    return select(excess > 1.0, 2.0 - 2.0 * is_stuck, 0.0)


@traced
def is_unsolved(excess):
    """More than 1 where a lane is not there in the end."""
    return excess * (TOLERANCE / ENOUGH) ** 2


@traced
def endless(anything):
    return 1e300 + 0.0 * anything


@sweep
def excess(frame):
    """Squared size of the gradient, beside what is small enough."""
    params, block = frame.params, frame.block
    left, whole = zero(params.world_dt[0]), zero(params.world_dt[0])
    for d in range(frame.tree.n_dofs):
        left = plus_square(left, block.gradient[d], block.own_mass[d])
        whole = plus_slow(plus_product(whole, block.y[d], block.mass_y[d]), block.own_mass[d])
    return excess_of(left, whole)


# along a step -----------------------------------------------------------------------------------------------------------


@sweep
def look(frame, alpha, slope, curve):
    """Slope and curvature of the potential at alpha times the step; `slope` and `curve` are those of the masses."""
    block = frame.block
    for k in range(block.n):
        if block.kind[k] == BOUNDED:
            slope, curve = tie_along(
                slope,
                curve,
                block.u[k],
                block.du[k],
                alpha,
                block.soft[k],
                block.low[k],
                block.high[k],
                block.active[k],
            )
        elif block.kind[k] == POINT:
            if has_spin(frame, k):
                slope, curve = turning_along(
                    slope, curve, block.u[k], block.u[k + 1], block.du[k], block.du[k + 1], alpha, block.soft[k],
                    block.friction[k], block.active[k],
                )  # fmt: skip
            else:
                slope, curve = point_along(
                    slope, curve, block.u[k], block.du[k], alpha, block.soft[k], block.friction[k], block.active[k]
                )
    return slope, curve


@traced
def mass_slope(y_slope, curve, alpha):
    return y_slope + alpha * curve


@traced
def narrowed(alpha, low, high, slope, curve, begun, is_done):
    """Where to look next, between places where the potential still falls and where it rises again. Nothing moves once the slope
    is a small part of that at the start."""
    size = maximum(slope, -slope)
    is_done = select(FLAT * begun > size, 1.0, is_done)
    falls = 0.0 > slope
    low, high = select(falls, maximum(alpha, low), low), select(falls, high, minimum(alpha, high))
    tried = alpha - slope * inverse(curve)
    middle = select(high < 1e30, 0.5 * (low + high), 2.0 * alpha)
    fits = select(tried > low, select(high > tried, 1.0, 0.0), 0.0) > 0.5
    tried = select(fits, tried, middle)
    return select(is_done > 0.5, alpha, tried), low, high, is_done


@traced
def begin_search(slope, still):
    """First look: the whole step. Frozen lanes have nothing to look for."""
    return 1.0 + 0.0 * slope, 0.0 * slope, 1e300 + 0.0 * slope, -slope, select(still > 1.0, 0.0, 1.0)


@traced
def not_done(is_done):
    return 1.0 - is_done


@sweep
def search(frame, y_slope, curve, begun, still):
    """How far to go along the step: near the minimum of the potential."""
    alpha, low, high, begun, is_done = begin_search(begun, still)
    looks = 0
    while looks < LOOKS and any_above(not_done(is_done), 0.5):
        slope, bend = look(frame, alpha, mass_slope(y_slope, curve, alpha), curve)
        alpha, low, high, is_done = narrowed(alpha, low, high, slope, bend, begun, is_done)
        looks += 1
    return alpha


# the loop ---------------------------------------------------------------------------------------------------------------


@traced
def minus(x):
    return -x


@traced
def gone(x, step, alpha, still):
    """x + alpha step, but in a frozen lane x."""
    return select(still > 1.0, x + alpha * step, x)


@traced
def gone3(x, step, alpha, still):
    return tuple(select(still > 1.0, a + alpha * s, a) for a, s in zip(x, step, strict=True))


@traced
def counted(count, still):
    return count + select(still > 1.0, 1.0, 0.0)


@sweep
def direction(frame):
    """The step s = -H^-1 gradient, du = J s, and M s."""
    block = frame.block
    for d in range(frame.tree.n_dofs):
        block.step[d] = minus(block.gradient[d])
    solve(frame, block.step)
    mass_times(frame, block.step, block.mass_step)
    for k in range(block.n):
        block.du[k] = along_rows(frame, k, no_rows(block.u[k]), block.step)


@traced
def no_rows(u):
    return tuple(0.0 * x for x in u)


@sweep
def advance_along(frame, alpha, still):
    block = frame.block
    for d in range(frame.tree.n_dofs):
        block.y[d] = gone(block.y[d], block.step[d], alpha, still)
        block.mass_y[d] = gone(block.mass_y[d], block.mass_step[d], alpha, still)
    for k in range(block.n):
        block.u[k] = gone3(block.u[k], block.du[k], alpha, still)


@sweep
def iterate(frame, still):
    """One step of Newton's method."""
    block = frame.block
    factorise(frame)
    direction(frame)
    nothing = zero(frame.params.world_dt[0])
    y_slope, curve, begun = nothing, nothing, nothing
    for d in range(frame.tree.n_dofs):
        y_slope = plus_product(y_slope, block.step[d], block.mass_y[d])
        curve = plus_product(curve, block.step[d], block.mass_step[d])
        begun = plus_product(begun, block.step[d], block.gradient[d])
    alpha = search(frame, y_slope, curve, begun, still)
    advance_along(frame, alpha, still)
    evaluate(frame)


@traced
def with_tangent(x, step):
    """x, its derivative that of x + step."""
    moved = x + step
    return detach(x) + (moved - detach(moved))


@traced
def with_tangent3(x, step):
    return tuple(with_tangent.fn(a, s) for a, s in zip(x, step, strict=True))


@sweep
def settle_tangents(frame):
    """Derivatives are one step behind numbers: one more step, whole, for them alone."""
    block = frame.block
    factorise(frame)
    direction(frame)
    for d in range(frame.tree.n_dofs):
        block.y[d] = with_tangent(block.y[d], block.step[d])
    for k in range(block.n):
        block.u[k] = with_tangent3(block.u[k], block.du[k])


@traced
def reported(unsettled, count, still):
    """Steps of the motion that did not converge; iterations of all steps, and of the worst."""
    return (
        unsettled[0] + select(still > 1.0, 1.0, 0.0), unsettled[1] + count, maximum(unsettled[2], count)
    )  # fmt: skip


@sweep
def keep_impulses(frame):
    block = frame.block
    for k in range(block.n):
        if block.kind[k] == BOUNDED:
            block.x[k] = tie_mode(block.u[k], block.soft[k], block.low[k], block.high[k], block.active[k])
        elif block.kind[k] == POINT:
            if has_spin(frame, k):
                block.x[k], block.x[k + 1] = turning_mode(
                    block.u[k], block.u[k + 1], block.soft[k], block.friction[k], block.active[k]
                )
            else:
                block.x[k] = point_mode(block.u[k], block.soft[k], block.friction[k], block.active[k])


@kernel
def newton(frame):
    """Leaves y, u and the impulses of the minimum."""
    tree, block = frame.tree, frame.block
    start(frame)
    mass_times(frame, block.y, block.mass_y)
    start_rows(frame)
    evaluate(frame)
    left, count, turn = excess(frame), zero(frame.params.world_dt[0]), 0
    still = goes_on(left, endless(count))
    while turn < tree.iterations and any_above(still, 1.0):
        iterate(frame, still)
        count = counted(count, still)
        before = left
        left = excess(frame)
        still = goes_on(left, before)
        turn += 1
    if tree.has_tangents != 0:
        settle_tangents(frame)
    keep_impulses(frame)
    block.excess[0] = is_unsolved(left)
    block.unsettled[0] = reported(block.unsettled[0], count, block.excess[0])
