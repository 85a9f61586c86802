"""How far the sweeps of a step were from settled: what the last of them still had to change, as a velocity.

Impulses of a stiff problem grow a little with every sweep, so that their own change says nothing of how far they have to go. The
velocity that the last sweep still found along a normal does: it is that at which bodies sink into each other. It is counted
in what the forces of the step give, or in a tenth of what contacts were asked for where that is more. Fewer than one or two
of these are held by stabilisation at a depth of some g dt^2; beyond a handful bodies sink through each other. A landing may leave
some steps unsettled and no harm done, so that the figure is smoothed over steps.
"""

from .....compiler.elementary import inverse, maximum, minimum, select
from .....compiler.kernel import sweep
from .....compiler.trace import traced
from ...operators import zero, zero3
from .paths import POINT

STEPS = 16  # over which the figure is smoothed
SLOW = 1e-5  # m/s: what forces give is not taken for less


@traced
def left_over(found, x, before, A, active, gap, stabilisation, dt, who):
    """The largest velocity that the last sweep found along a normal, with the name of its pair. More than what stabilisation asks
    for does not count: what is not in each other does not sink, or not yet."""
    change, parting = x[0] - before[0], maximum(-(stabilisation * gap * inverse(dt)), 0.0)
    speed = select(active[0] > 0.5, minimum(maximum(change, -change) * A[0], parting), 0.0)
    is_more = speed > found[0]
    return select(is_more, speed, found[0]), select(is_more, who, found[1])


@traced
def begun_with(most, b, closing, approach, active):
    """The larger of what forces changed in the step, and a tenth of what the contacts were asked for."""
    change = closing[0] - approach
    own = maximum(maximum(change, -change), -0.1 * b[0])
    return maximum(most, select(active[0] > 0.5, own, 0.0))


@traced
def smoothed(unsettled, found, most):
    """Worst so far, present, and the pair of the worst."""
    count = minimum(found[0] * inverse(maximum(most, SLOW)), 1.0 * STEPS)  # no step alone makes it more than one
    present = unsettled[1] + (1.0 / STEPS) * (count - unsettled[1])
    is_worse = present > unsettled[0]
    return select(is_worse, present, unsettled[0]), present, select(is_worse, found[1], unsettled[2])


@sweep
def settle(frame):
    tree, params, touch, block = frame.tree, frame.params, frame.touch, frame.block
    found = zero(params.world_dt[0]), zero(params.world_dt[0])
    most, n, T = zero(params.world_dt[0]), block.n, tree.sweeps
    for k in range(n):
        if block.kind[k] == POINT:
            i = block.source[k]
            p = touch.pair[i]
            found = left_over(
                found, block.x[T * n + k], block.x[(T - 1) * n + k], block.A[block.own[k]], block.active[k], touch.gap[i],
                params.pair_baumgarte[tree.pair_row[p]], params.world_dt[0], 1.0 * p,
            )  # fmt: skip
            most = begun_with(most, block.b[k], block.closing[k], block.approach[k], block.active[k])
    block.unsettled[0] = smoothed(block.unsettled[0], found, most)


@sweep
def forget(frame):
    """Before a motion begins."""
    frame.block.unsettled[0] = zero3(frame.params.world_dt[0])
