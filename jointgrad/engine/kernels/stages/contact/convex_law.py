"""The regularised convex law of contact: impulses as a function of the velocities along the rows of a block.

With u the velocity that a block is left with (less what it shall not fall below) and R what its rows give, the impulses are -u / R,
projected onto the friction cone in the norm of R (Castro 2022; MuJoCo's elliptic cone with R_t = R_n). They are the slope of a
convex potential: one minimum, and -d impulse / d u, here called the gain, is symmetric and never negative. A point is open
(u inside the dual cone), sticks (impulse -u / R), or slides: with r = |u_t|, t = u_t / r, p = mu r - u_n and
a = 1 / (R_n + mu^2 R_t) the impulse is a p (1, -mu t). Where a point also resists turning, all five are one cone: velocities
times their coefficients (mu, torsion, rolling) are one slip, whose rows then give kappa = R mu_i^2 alike.
Rows of ties are bounded: -u / R between low and high.
"""

from .....algebra.vector import dot
from .....compiler.elementary import inverse, maximum, minimum, safe_div, safe_norm, select
from .....compiler.reverse import adjoint
from .....compiler.trace import traced
from .give import LOOSE

# the slip of a point that resists turning gives this share of what its normal gives: an arm of 0.1 mm against rolling would else
# begin to hold at a radian per second
FIRM = 0.01
# of friction squared, so that a point without sliding friction still resists turning
NO_FRICTION = 1e-4
# of what a normal gives, the share that tangents give: what sticks creeps at the speed that they give way
TANGENT = 0.2
# what everything gives at least, as a share of the bodies' response
LEAST = 1e-6


def modes(r, u_n, R, most_give, friction):
    """Whether a point pushes, and whether it sticks; `most_give` is what slip gives, in the normal's measure."""
    pushes = friction * r > u_n
    return pushes, select(pushes, -(friction * most_give * u_n), -1.0) > r * R


def point_law(u, R, friction, active):
    """Impulses of a point, how far it presses (p), and the direction of its slip."""
    mu, r = friction[0], safe_norm(u[1:])
    t = safe_div(u[1], r), safe_div(u[2], r)
    is_on = active[0] > 0.5
    pushes, sticks = modes(r, u[0], R[0], R[1], mu)
    press = select(is_on, select(pushes, mu * r - u[0], 0.0), 0.0)
    a = inverse(R[0] + mu * mu * R[1])
    slide = a * press
    stuck = tuple(-(x * inverse(g)) for x, g in zip(u, R, strict=True))
    holds = select(is_on, select(sticks, 1.0, 0.0), 0.0) > 0.5
    x = tuple(
        select(holds, s, f) for s, f in zip(stuck, (slide, -(mu * slide * t[0]), -(mu * slide * t[1])), strict=True)
    )
    return x, holds, press, a, t, r


@traced
def point_impulse(u, R, friction, active):
    return point_law(u, R, friction, active)[0]


@traced
def point_mode(u, R, friction, active):
    """Impulses, and 1 where the point sticks, 0 where it slides, 1 where it is open."""
    x, holds, press, *_ = point_law(u, R, friction, active)
    return *x, select(holds, 1.0, select(press > 0.0, 0.0, 1.0))


def point_gain_of(u, R, friction, active):
    """Impulses, and minus their derivative by u (3 x 3)."""
    x, holds, press, a, t, r = point_law(u, R, friction, active)
    mu = friction[0]
    on = select(press > 0.0, a, 0.0)
    turn = safe_div(a * mu * press, r)
    across = on * mu * mu - turn
    nt, tt = tuple(-(on * mu * s) for s in t), across * t[0] * t[1]
    slide = (on, nt[0], nt[1], nt[0], across * t[0] * t[0] + turn, tt, nt[1], tt, across * t[1] * t[1] + turn)
    stick = [0.0] * 9
    for i in range(3):
        stick[4 * i] = inverse(R[i])
    return x, tuple(select(holds, s, f) for s, f in zip(stick, slide, strict=True))


@traced
def point_gain(u, R, friction, active):
    return point_gain_of(u, R, friction, active)


def along(x, gain, step):
    """What a step does to the potential: minus impulse times step, and its curvature."""
    pulled = tuple(dot(gain[3 * i : 3 * i + 3], step) for i in range(3))
    return -dot(x, step), dot(step, pulled)


@traced
def point_along(slope, curve, u, step, alpha, R, friction, active):
    moved = tuple(x + alpha * s for x, s in zip(u, step, strict=True))
    x, gain = point_gain_of(moved, R, friction, active)
    first, second = along(x, gain, step)
    return slope + first, curve + second


# a point that also resists turning ----------------------------------------------------------------------------------------


def slip_give(R, friction):
    """kappa: what the common slip gives."""
    return FIRM * R[0] * (friction[0] * friction[0] + NO_FRICTION)


def arms_of(friction):
    """By what each of the five velocities counts as slip."""
    return friction[0], friction[0], friction[1], friction[2], friction[2]


def turning_law(u, spin, R, friction, active):
    arms, kappa = arms_of(friction), slip_give(R, friction)
    slip = tuple(m * s for m, s in zip(arms, (*u[1:], *spin), strict=True))
    r = safe_norm(slip)
    t = tuple(safe_div(s, r) for s in slip)
    is_on = active[0] > 0.5
    pushes, sticks = modes(r, u[0], R[0], kappa, 1.0)
    press = select(is_on, select(pushes, r - u[0], 0.0), 0.0)
    a, firm = inverse(R[0] + kappa), inverse(kappa)
    holds = select(is_on, select(sticks, 1.0, 0.0), 0.0) > 0.5
    normal = select(holds, -(u[0] * inverse(R[0])), a * press)
    rest = tuple(m * select(holds, -(s * firm), -(a * press * d)) for m, s, d in zip(arms, slip, t, strict=True))
    return (normal, *rest), holds, press, a, t, r


@traced
def turning_impulse(u, spin, R, friction, active):
    x = turning_law(u, spin, R, friction, active)[0]
    return x[:3], x[3:]


@traced
def turning_mode(u, spin, R, friction, active):
    x, holds, press, *_ = turning_law(u, spin, R, friction, active)
    holds = select(holds, 1.0, select(press > 0.0, 0.0, 1.0))
    return (*x[:3], holds), (*x[3:], holds)


def turning_gain_of(u, spin, R, friction, active):
    """Impulses (6), and minus their derivative (6 x 6, as rows)."""
    x, holds, press, a, t, r = turning_law(u, spin, R, friction, active)
    arms, kappa = arms_of(friction), slip_give(R, friction)
    on, turn = select(press > 0.0, a, 0.0), safe_div(a * press, r)
    stick, slide = [[0.0] * 6 for _ in range(6)], [[0.0] * 6 for _ in range(6)]
    stick[0][0], slide[0][0] = inverse(R[0]), on
    for i in range(5):
        slide[0][i + 1] = slide[i + 1][0] = -(on * arms[i] * t[i])
        stick[i + 1][i + 1] = arms[i] * arms[i] * inverse(kappa)
        for j in range(i + 1):
            both = (on - turn) * t[i] * t[j] + (turn if i == j else 0.0)
            slide[i + 1][j + 1] = slide[j + 1][i + 1] = arms[i] * arms[j] * both
    return x, [[select(holds, stick[i][j], slide[i][j]) for j in range(6)] for i in range(6)]


@traced
def turning_gain(u, spin, R, friction, active):
    """Impulses of both blocks; gains of the point on itself, of turning on the point's velocities, and of turning on itself."""
    x, D = turning_gain_of(u, spin, R, friction, active)
    parts = ((0, 0), (3, 0), (3, 3))
    return x[:3], x[3:], *(tuple(D[a + i][b + j] for i in range(3) for j in range(3)) for a, b in parts)


@traced
def turning_along(slope, curve, u, spin, step, spin_step, alpha, R, friction, active):
    u, spin = (tuple(x + alpha * s for x, s in zip(of, by, strict=True)) for of, by in ((u, step), (spin, spin_step)))
    x, D = turning_gain_of(u, spin, R, friction, active)
    whole = (*step, *spin_step)
    pulled = tuple(dot(row, whole) for row in D)
    return slope - dot(x, whole), curve + dot(whole, pulled)


# rows with fixed bounds -------------------------------------------------------------------------------------------------


def tie_law(u, R, low, high, active):
    firm = tuple(select(on > 0.5, inverse(select(on > 0.5, g, 1.0)), 0.0) for g, on in zip(R, active, strict=True))
    tried = tuple(-(x * f) for x, f in zip(u, firm, strict=True))
    held = (minimum(maximum(t, a), b) for t, a, b in zip(tried, low, high, strict=True))
    return tried, tuple(select(on > 0.5, x, 0.0) for x, on in zip(held, active, strict=True)), firm


@traced
def tie_impulse(u, R, low, high, active):
    return tie_law(u, R, low, high, active)[1]


@traced
def tie_mode(u, R, low, high, active):
    return *tie_law(u, R, low, high, active)[1], 0.0 * u[0]


def tie_gain_of(u, R, low, high, active):
    tried, x, firm = tie_law(u, R, low, high, active)
    gain = [0.0] * 9
    for i in range(3):
        gain[4 * i] = select(tried[i] > low[i], select(high[i] > tried[i], firm[i], 0.0), 0.0)
    return x, tuple(gain)


@traced
def tie_gain(u, R, low, high, active):
    return tie_gain_of(u, R, low, high, active)


@traced
def tie_along(slope, curve, u, step, alpha, R, low, high, active):
    moved = tuple(x + alpha * s for x, s in zip(u, step, strict=True))
    x, gain = tie_gain_of(moved, R, low, high, active)
    first, second = along(x, gain, step)
    return slope + first, curve + second


# what sliding takes off the normal velocity -------------------------------------------------------------------------------


@traced
def level_speed(b, closing, friction):
    """The cone of a convex law pushes a body that slides at r away from the surface at mu r, and it hops. So mu times the slip that
    is to be expected is taken off: the slip before impulses, less what the impulse that stops the approach brakes of it."""
    slip = safe_norm(closing[1:])
    left = maximum(slip - friction[0] * maximum(-b[0], 0.0), 0.0)
    return friction[0] * left


@traced
def lifted(b, level, active):
    """Velocities of a point before impulses, as its law sees them."""
    return (b[0] + select(active[0] > 0.5, level, 0.0), b[1], b[2])


# what rows give ---------------------------------------------------------------------------------------------------------


@traced
def loop_give(give):
    """Of the rows of a loop: a share of what its trees would answer if nothing held them, and what knows no masses."""
    return ((give[0] + LEAST) * (give[2] * (1.0 / LOOSE)) + give[1],) * 3


@traced
def contact_give(give):
    """The same of a point, whose tangents give less."""
    response = give[2] * (1.0 / LOOSE)
    normal, least = give[0] * response, LEAST * response + give[1]
    return normal + least, TANGENT * normal + least, TANGENT * normal + least


@traced
def joint_give(give, response, active):
    """Of rows of joints: a share of what each joint would answer alone."""
    return tuple(select(on > 0.5, (give[0] + LEAST) * r + give[1], 1.0) for r, on in zip(response, active, strict=True))


point_impulse_adjoint = adjoint(point_impulse, "R friction")
turning_impulse_adjoint = adjoint(turning_impulse, "R friction")
tie_impulse_adjoint = adjoint(tie_impulse, "R low high")
level_speed_adjoint = adjoint(level_speed, "b closing friction")
loop_give_adjoint = adjoint(loop_give, "give")
contact_give_adjoint = adjoint(contact_give, "give")
joint_give_adjoint = adjoint(joint_give, "give response")
