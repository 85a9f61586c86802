"""Points that touch -> forces of compliant contact on bodies (NeuralSim, sec. III-B; Hunt and Crossley 1975; Brown 2018).

With depth x and its rate xd the normal force is max(0, k x^n + d x^n xd). With a margin it begins at a distance: the depth is then
a parabola from there on until it is that far in, and so smooth. Friction opposes the slip, by one of the laws of
Tiny Differentiable Simulator, but with the slip taken across the true normal (its code keeps twice the normal part).
"""

from ....algebra.spatial import add, scale, sub
from ....algebra.vector import cross, dot
from ....compiler.elementary import detached, exp, inverse, log, maximum, minimum, safe_div, safe_norm, select, tanh
from ....compiler.kernel import accumulate, inlined, kernel, sweep
from ....compiler.reverse import adjoint
from ....compiler.trace import traced
from ....model.arrays import ANDERSSON, COULOMB, HOLLARS
from ....model.laws import STILL
from ..at_points import at_point, give_to_point
from ..operators import zero6

READS = (
    "touch.point", "touch.normal", "touch.gap", "work.pose", "work.v", "params.pair_friction", "params.pair_static_friction",
    "params.pair_transition", "params.pair_stiffness", "params.pair_damping", "params.pair_exponent", "params.pair_margin",
)  # fmt: skip
WRITES = ("work.touch", "touch.force")


def power(x, n):
    """x^n for x > 0, else 0."""
    is_deep = x > 0.0
    return select(is_deep, exp(n * log(select(is_deep, x, 1.0))), 0.0)


def depth(gap, margin):
    """How deep a point is, beginning at its margin: -gap without one; (margin - gap)^2 / 4 margin between -margin and margin."""
    way = margin - gap
    is_near = select(margin + gap > 0.0, margin, 0.0) > 0.0
    rounded = 0.25 * way * maximum(way, 0.0) * inverse(select(is_near, margin, 1.0))
    return select(is_near, rounded, -gap)


# laws of friction: share of the press at a speed, and its slope at rest. Coulomb's has none: at rest it holds nothing


def coulomb(speed, mu, mu_s, transition):
    return mu * select(speed > 0.0, 1.0, 0.0), 0.0


def andersson(speed, mu, mu_s, transition):
    """Andersson et al. 2007: a Stribeck peak of width `transition`, rounded by tanh of the speed."""
    r = speed * inverse(transition)
    return (mu + (mu_s - mu) * exp(-r)) * tanh(r), mu_s * inverse(transition)


def hollars(speed, mu, mu_s, transition):
    r = speed * inverse(transition)
    share = minimum(r, 1.0) * (mu + 2.0 * (mu_s - mu) * inverse(1.0 + r * r))
    return share, (2.0 * mu_s - mu) * inverse(transition)


def brown(speed, mu, mu_s, transition):
    r = speed * inverse(transition)
    peak = 0.25 * r * r + 0.75
    share = mu * tanh(4.0 * r) + (mu_s - mu) * r * inverse(peak * peak)
    return share, (4.0 * mu + (mu_s - mu) * (1.0 / 0.75**2)) * inverse(transition)


def contact_force(point, normal, gap, v_a, v_b, reference_a, reference_b, mu, mu_s, transition, k, d, n, margin, law):
    """Forces on bodies a and b, each about its own reference point."""
    arm_a, arm_b = sub(point, detached(reference_a[9:])), sub(point, detached(reference_b[9:]))
    velocity = sub(add(v_a[3:], cross(v_a[:3], arm_a)), add(v_b[3:], cross(v_b[:3], arm_b)))
    parting = dot(velocity, normal)
    press = maximum(power(depth(gap, margin), n) * (k - d * parting), 0.0)
    slip = sub(velocity, scale(normal, parting))
    speed = safe_norm(slip)
    share, slope = law(speed, mu, mu_s, transition)
    # at rest the slip has no direction, but friction has a derivative
    drag = press * select(speed > STILL, safe_div(share, speed), slope)
    force = sub(scale(normal, press), scale(slip, drag))
    push = (*cross(arm_a, force), *force)
    back = scale(force, -1.0)
    return push, (*cross(arm_b, back), *back)


@traced
def coulomb_force(point, normal, gap, v_a, v_b, reference_a, reference_b, mu, mu_s, transition, k, d, n, margin):
    return contact_force(
        point, normal, gap, v_a, v_b, reference_a, reference_b, mu, mu_s, transition, k, d, n, margin, coulomb
    )


@traced
def andersson_force(point, normal, gap, v_a, v_b, reference_a, reference_b, mu, mu_s, transition, k, d, n, margin):
    return contact_force(
        point, normal, gap, v_a, v_b, reference_a, reference_b, mu, mu_s, transition, k, d, n, margin, andersson
    )


@traced
def hollars_force(point, normal, gap, v_a, v_b, reference_a, reference_b, mu, mu_s, transition, k, d, n, margin):
    return contact_force(
        point, normal, gap, v_a, v_b, reference_a, reference_b, mu, mu_s, transition, k, d, n, margin, hollars
    )


@traced
def brown_force(point, normal, gap, v_a, v_b, reference_a, reference_b, mu, mu_s, transition, k, d, n, margin):
    return contact_force(
        point, normal, gap, v_a, v_b, reference_a, reference_b, mu, mu_s, transition, k, d, n, margin, brown
    )


@traced
def force_alone(push):
    return push[3:]


@inlined
def given_to_laws(frame, i):
    """What contact_force is given of a point, but for the law."""
    tree, params, work, touch = frame.tree, frame.params, frame.work, frame.touch
    p = touch.pair[i]
    row, a, b = tree.pair_row[p], tree.shape_body[tree.pair_a[p]], tree.shape_body[tree.pair_b[p]]
    return (
        touch.point[i], touch.normal[i], touch.gap[i], work.v[a], work.v[b], work.pose[tree.reference[a]],
        work.pose[tree.reference[b]], at_point(frame, touch.friction, params.pair_friction, i, row),
        params.pair_static_friction[row], params.pair_transition[row],
        at_point(frame, touch.stiffness, params.pair_stiffness, i, row),
        at_point(frame, touch.damping, params.pair_damping, i, row), params.pair_exponent[row],
        params.pair_margin[row],
    )  # fmt: skip


@sweep
def force_between(frame, i):
    law, given = frame.tree.pair_law[frame.touch.pair[i]], given_to_laws(frame, i)
    if law == COULOMB:
        return coulomb_force(*given)
    if law == ANDERSSON:
        return andersson_force(*given)
    if law == HOLLARS:
        return hollars_force(*given)
    return brown_force(*given)


@kernel
def springs(frame):
    tree, work, touch = frame.tree, frame.work, frame.touch
    for b in range(tree.n_bodies + 1):
        work.touch[b] = zero6(frame.params.world_dt[0])
    for i in range(touch.n):
        p = touch.pair[i]
        if tree.pair_has_rows[p] == 0:
            push, back = force_between(frame, i)
            touch.force[i] = force_alone(push)
            accumulate(work.touch, tree.shape_body[tree.pair_a[p]], push)
            accumulate(work.touch, tree.shape_body[tree.pair_b[p]], back)


# the reverse ------------------------------------------------------------------------------------------------------------

INPUTS = "point normal gap v_a v_b mu mu_s transition k d n margin"
coulomb_force_adjoint = adjoint(coulomb_force, INPUTS)
andersson_force_adjoint = adjoint(andersson_force, INPUTS)
hollars_force_adjoint = adjoint(hollars_force, INPUTS)
brown_force_adjoint = adjoint(brown_force, INPUTS)


@traced
def with_own(push_bar, force_bar):
    """Cotangent of a push on a body, and of its force seen alone."""
    return (*push_bar[:3], *add(push_bar[3:], force_bar))


@sweep
def force_between_adjoint(frame, bar, i):
    tree = frame.tree
    p = frame.touch.pair[i]
    a, b = tree.shape_body[tree.pair_a[p]], tree.shape_body[tree.pair_b[p]]
    law, given = tree.pair_law[p], given_to_laws(frame, i)
    bars = with_own(bar.work.touch[a], bar.touch.force[i]), bar.work.touch[b]
    if law == COULOMB:
        return coulomb_force_adjoint(*given, bars)
    if law == ANDERSSON:
        return andersson_force_adjoint(*given, bars)
    if law == HOLLARS:
        return hollars_force_adjoint(*given, bars)
    return brown_force_adjoint(*given, bars)


@kernel
def springs_adjoint(frame, bar):
    """Adds to all it touches. The world's own row of bar.work.touch is zero: nothing pushes the world."""
    tree, touch = frame.tree, frame.touch
    bar.work.touch[tree.n_bodies] = zero6(frame.params.world_dt[0])
    for i in range(touch.n):
        p = touch.pair[i]
        if tree.pair_has_rows[p] == 0:
            row, a, b = tree.pair_row[p], tree.shape_body[tree.pair_a[p]], tree.shape_body[tree.pair_b[p]]
            point, normal, gap, v_a, v_b, mu, mu_s, transition, k, d, n, margin = force_between_adjoint(frame, bar, i)
            accumulate(bar.touch.point, i, point)
            accumulate(bar.touch.normal, i, normal)
            accumulate(bar.touch.gap, i, gap)
            accumulate(bar.work.v, a, v_a)
            accumulate(bar.work.v, b, v_b)
            give_to_point(frame, bar.touch.friction, bar.params.pair_friction, i, row, mu)
            accumulate(bar.params.pair_static_friction, row, mu_s)
            accumulate(bar.params.pair_transition, row, transition)
            give_to_point(frame, bar.touch.stiffness, bar.params.pair_stiffness, i, row, k)
            give_to_point(frame, bar.touch.damping, bar.params.pair_damping, i, row, d)
            accumulate(bar.params.pair_exponent, row, n)
            accumulate(bar.params.pair_margin, row, margin)


# margins ------------------------------------------------------------------------------------------------------------------


@traced
def with_spring(
    record,
    point,
    normal,
    gap,
    force,
    v_a,
    v_b,
    reference_a,
    reference_b,
    transition,
    margin,
    has_corner,
    has_jump,
    weight,
):
    """Counts and signature of a point (see contact/records.py): it sticks while it slips more slowly than
    the transition of its friction, where some laws have a corner; Coulomb's jumps as soon as anything slips."""
    a = add(v_a[3:], cross(v_a[:3], sub(point, reference_a[9:])))
    b = add(v_b[3:], cross(v_b[:3], sub(point, reference_b[9:])))
    velocity = sub(a, b)
    speed = safe_norm(sub(velocity, scale(normal, dot(velocity, normal))))
    is_in = margin > gap
    pressed = select(is_in, select(dot(force, normal) > 0.0, 1.0, 0.0), 0.0)
    slips = select(speed > transition, 1.0, 0.0)
    code = pressed * (1.0 + has_corner * slips + has_jump * select(speed > STILL, 1.0, 0.0))
    return (
        *record[:6], record[6] + select(is_in, 1.0 - pressed, 0.0), record[7] + pressed * (1.0 - slips),
        record[8] + pressed * slips, *record[9:13], record[13] + weight * code, *record[14:],
    )  # fmt: skip


@sweep
def spring_record(frame, record, i, weight):
    tree, work, touch = frame.tree, frame.work, frame.touch
    p = touch.pair[i]
    a, b, law = tree.shape_body[tree.pair_a[p]], tree.shape_body[tree.pair_b[p]], tree.pair_law[p]
    row = tree.pair_row[p]
    return with_spring(
        record, touch.point[i], touch.normal[i], touch.gap[i], touch.force[i], work.v[a], work.v[b],
        work.pose[tree.reference[a]], work.pose[tree.reference[b]], frame.params.pair_transition[row],
        frame.params.pair_margin[row],
        1.0 if law == HOLLARS else 0.0, 1.0 if law == COULOMB else 0.0, weight,
    )  # fmt: skip
