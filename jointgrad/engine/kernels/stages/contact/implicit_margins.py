"""How near the outcome of the convex law was to another: open, sticking or sliding points, rows on their bounds.

Distances are in N s, as those of the sweeps: of a point, how far its impulse is from vanishing, and from the edge of its cone.
"""

from .....compiler.elementary import inverse, maximum, minimum, safe_norm, select
from .....compiler.kernel import sweep
from .....compiler.trace import traced
from .convex_law import arms_of, slip_give, tie_law
from .newton import has_spin
from .paths import BOUNDED, POINT

FAR = float("inf")


def size_of(x):
    return maximum(x, -x)


def cone_of(u_n, slip, R_n, kappa, active):
    """Margin and code of a point, from its normal velocity and its slip, which gives kappa in the measure of friction."""
    press = (slip - u_n) * inverse(R_n + kappa)
    inside = -(u_n * inverse(R_n)) - slip * inverse(maximum(kappa, 1e-300))
    is_on, pushes = active[0] > 0.5, press > 0.0
    edge = select(pushes, select(kappa > 0.0, size_of(inside) * kappa * inverse(R_n + kappa), FAR), FAR)
    code = select(pushes, select(inside > 0.0, 5.0, 3.0), 0.0)
    return select(is_on, minimum(size_of(press), edge), FAR), select(is_on, code, 0.0)


@traced
def point_edge(u, R, friction, active):
    return cone_of(u[0], friction[0] * safe_norm(u[1:]), R[0], friction[0] * friction[0] * R[1], active)


@traced
def turning_edge(u, spin, R, friction, active):
    slip = safe_norm(tuple(m * s for m, s in zip(arms_of(friction), (*u[1:], *spin), strict=True)))
    return cone_of(u[0], slip, R[0], slip_give(R, friction), active)


@traced
def tie_edge(u, R, low, high, active):
    tried, _, _ = tie_law(u, R, low, high, active)
    margin, code = FAR, 0.0
    for i in range(3):
        own = minimum(size_of(tried[i] - low[i]), size_of(high[i] - tried[i]))
        side = select(tried[i] > low[i], select(high[i] > tried[i], 1.0, 2.0), 0.0)
        margin = minimum(margin, select(active[i] > 0.5, own, FAR))
        code = code + 3.0**i * select(active[i] > 0.5, side, 0.0)
    return margin, code


@traced
def level_code(b, closing, friction):
    """Which way the slip to be expected was found."""
    approaches = select(b[0] < 0.0, 1.0, 0.0)
    return approaches + select(safe_norm(closing[1:]) > friction[0] * maximum(-b[0], 0.0), 2.0, 0.0)


@traced
def plus_level(code, level, active):
    return code + select(active[0] > 0.5, 6.0 * level, 0.0)


@sweep
def edge_of(frame, k):
    """Margin and code of a block."""
    block = frame.block
    if block.kind[k] == BOUNDED:
        return tie_edge(block.u[k], block.soft[k], block.low[k], block.high[k], block.active[k])
    if has_spin(frame, k):
        margin, code = turning_edge(block.u[k], block.u[k + 1], block.soft[k], block.friction[k], block.active[k])
    else:
        margin, code = point_edge(block.u[k], block.soft[k], block.friction[k], block.active[k])
    if frame.tree.is_level != 0:
        code = plus_level(code, level_code(block.b[k], block.closing[k], block.friction[k]), block.active[k])
    return margin, code


@traced
def unsolved(x, excess):
    """What a problem that was not solved is taken to have left: all of it."""
    return tuple(select(excess > 1.0, 0.0, p) for p in x)


@sweep
def has_edge(frame, k):
    """Turning is part of its point's cone."""
    return frame.block.kind[k] == BOUNDED or frame.block.kind[k] == POINT
