"""The classical fourth-order Runge-Kutta step: four evaluations of the dynamics, each at a state of its own.

Turns are followed in the chart of rotation vectors about the start of the step (Munthe-Kaas 1998, BIT 38), as in MuJoCo's RK4
since 4.0: a mean of body rates at different orientations would be of second order only.
"""

from ...algebra import rotation
from ...algebra.vector import scale
from ...compiler.kernel import accumulate, inlined, kernel, sweep
from ...compiler.reverse import adjoint
from ...compiler.trace import traced
from ...model.arrays import FREE, SPHERICAL
from .dynamics import acceleration_adjoint, dynamics, place_adjoint
from .operators import zero, zero6
from .stages.contact.wrenches import contact_wrenches, contact_wrenches_adjoint
from .stages.grafts import grafted_rates, grafted_rates_adjoint, regraft, ungraft
from .stages.integration import advanced, advanced_adjoint, move, move_adjoint
from .zero_cotangents import zero_motion_bar, zero_touch_bar, zero_work_bar


@traced
def fraction(dt, k):
    """How far evaluation k + 1 lies from the start: dt/2, dt/2, dt."""
    return dt * k


@traced
def scaled(x, weight):
    return x * weight


@traced
def mean_of_four(a, b, c, d):
    return (a + d + 2.0 * (b + c)) * (1.0 / 6.0)


mean_of_four_adjoint = adjoint(mean_of_four, "a b c d")


@traced
def chart_rate(rx, ry, rz, part, wx, wy, wz):
    return rotation.chart_rate(scale((rx, ry, rz), part), (wx, wy, wz))


chart_rate_adjoint = adjoint(chart_rate, "rx ry rz part wx wy wz")


@sweep
def weight_of(k):
    """How far evaluation k lies from the start, in steps."""
    return 1.0 if k == 3 else 0.5


@sweep
def chart_rates(frame, k):
    """Rates of evaluation k in the chart of the start, from which it lies part times the rates of the one before."""
    tree, runge = frame.tree, frame.runge
    n = tree.n_dofs
    for d in range(n):
        runge.chart[k * n + d] = runge.qd[k * n + d]
    if k > 0:
        part = fraction(frame.params.world_dt[0], weight_of(k))
        for b in range(tree.n_bodies):
            if tree.kind[b] == SPHERICAL or tree.kind[b] == FREE:
                d = tree.dof[b] + (3 if tree.kind[b] == FREE else 0)
                i, e = k * n + d, (k - 1) * n + d
                runge.chart[i], runge.chart[i + 1], runge.chart[i + 2] = chart_rate(
                    runge.chart[e],
                    runge.chart[e + 1],
                    runge.chart[e + 2],
                    part,
                    runge.qd[i],
                    runge.qd[i + 1],
                    runge.qd[i + 2],
                )


@sweep
def chart_rates_adjoint(frame, bar, k):
    """Adds to the cotangents of the rates of k and, in the chart, of k - 1."""
    tree, runge = frame.tree, frame.runge
    n = tree.n_dofs
    for b in range(tree.n_bodies):
        first, straight = tree.dof[b], tree.n_dof[b]
        if k > 0 and (tree.kind[b] == SPHERICAL or tree.kind[b] == FREE):
            straight -= 3
            i, e, weight = k * n + first + straight, (k - 1) * n + first + straight, weight_of(k)
            rx, ry, rz, part, wx, wy, wz = chart_rate_adjoint(
                runge.chart[e], runge.chart[e + 1], runge.chart[e + 2], fraction(frame.params.world_dt[0], weight),
                runge.qd[i], runge.qd[i + 1], runge.qd[i + 2],
                (bar.runge.chart[i], bar.runge.chart[i + 1], bar.runge.chart[i + 2]),
            )  # fmt: skip
            accumulate(bar.runge.chart, e, rx)
            accumulate(bar.runge.chart, e + 1, ry)
            accumulate(bar.runge.chart, e + 2, rz)
            accumulate(bar.runge.qd, i, wx)
            accumulate(bar.runge.qd, i + 1, wy)
            accumulate(bar.runge.qd, i + 2, wz)
            accumulate(bar.params.world_dt, 0, scaled(part, weight))
        for d in range(first, first + straight):
            accumulate(bar.runge.qd, k * n + d, bar.runge.chart[k * n + d])


@traced
def share(wrench, force, torque, weight):
    """What an evaluation adds to the mean of the wrenches."""
    return tuple(x + weight * y for x, y in zip(wrench, (*force, *torque), strict=True))


@traced
def shared_back(load_bar, weight):
    return tuple(weight * x for x in load_bar[:3]), tuple(weight * x for x in load_bar[3:])


@sweep
def mean_weight(k):
    return 1.0 / 6.0 if k == 0 or k == 3 else 1.0 / 3.0


@sweep
def go_to(frame, k):
    """The state of evaluation k."""
    tree, state, runge = frame.tree, frame.state, frame.runge
    for i in range(tree.n_q):
        state.q[i] = runge.q[k * tree.n_q + i]
    for d in range(tree.n_dofs):
        state.qd[d] = runge.qd[k * tree.n_dofs + d]
    for i in range(tree.n_more):
        state.more[i] = runge.more[k * tree.n_more + i]


@sweep
def go_back(frame):
    """The state that the step starts from."""
    tree, state, runge = frame.tree, frame.state, frame.runge
    for i in range(tree.n_q):
        state.q[i] = runge.q0[i]
    for d in range(tree.n_dofs):
        state.qd[d] = runge.qd0[d]
    for i in range(tree.n_more):
        state.more[i] = runge.more0[i]


@inlined
def mean_rate(frame, i):
    rate, n = frame.runge.more_rate, frame.tree.n_more
    return mean_of_four(rate[i], rate[n + i], rate[2 * n + i], rate[3 * n + i])


@sweep
def mean_rates_adjoint(frame, bar):
    """Of the further state: its cotangents at the start, and those of the rates of the four evaluations."""
    tree, rate, dt = frame.tree, frame.runge.more_rate, frame.params.world_dt[0]
    n = tree.n_more
    for i in range(4 * n):
        bar.runge.more[i] = bar.runge.more_rate[i] = zero(dt)
    for i in range(n):
        accumulate(bar.runge.more, i, bar.next.more[i])
    for i in range(tree.n_rates):
        mean_bar, dt_bar = advanced_adjoint(frame.runge.more0[i], mean_rate(frame, i), dt, bar.next.more[i])
        accumulate(bar.params.world_dt, 0, dt_bar)
        a, b, c, d = mean_of_four_adjoint(rate[i], rate[n + i], rate[2 * n + i], rate[3 * n + i], mean_bar)
        bar.runge.more_rate[i], bar.runge.more_rate[n + i] = a, b
        bar.runge.more_rate[2 * n + i], bar.runge.more_rate[3 * n + i] = c, d


@sweep
def hand_down_more(frame, bar, k, part):
    """As `hand_down`, of the further state; what is carried is that of the start."""
    tree, runge = frame.tree, frame.runge
    for i in range(tree.n_more):
        accumulate(bar.runge.more, i, bar.state.more[i])
    for i in range(tree.n_rates):
        e = (k - 1) * tree.n_more + i
        rate_bar, part_bar = advanced_adjoint(runge.more0[i], runge.more_rate[e], part, bar.state.more[i])
        accumulate(bar.runge.more_rate, e, rate_bar)
        accumulate(bar.runge.part, 0, part_bar)


@sweep
def evaluate(frame, k):
    """Dynamics at the state of evaluation k; its rates and accelerations are kept."""
    tree, runge = frame.tree, frame.runge
    go_to(frame, k)
    dynamics(frame, tree.has_soft_contact)
    if tree.n_rate_aims != 0:
        grafted_rates(frame)
    for d in range(tree.n_dofs):
        runge.qdd[k * tree.n_dofs + d] = frame.work.qdd[d]
    for i in range(tree.n_rates):
        runge.more_rate[k * tree.n_more + i] = frame.rate.more[i]
    if tree.n_nets != 0:
        ungraft(frame)


@kernel
def runge_kutta(frame):
    tree, state, next, runge, output, call = frame.tree, frame.state, frame.next, frame.runge, frame.output, frame.call
    n, m, dt = tree.n_dofs, tree.n_q, frame.params.world_dt[0]
    for i in range(m):
        runge.q0[i] = state.q[i]
        runge.q[i] = state.q[i]
    for d in range(n):
        runge.qd0[d] = state.qd[d]
        runge.qd[d] = state.qd[d]
    for i in range(tree.n_more):
        runge.more0[i] = state.more[i]
        for k in range(4):
            runge.more[k * tree.n_more + i] = state.more[i]
    if call.wants_wrenches != 0:
        for j in range(tree.n_links):
            runge.wrench[j] = zero6(dt)
    for k in range(4):
        evaluate(frame, k)
        chart_rates(frame, k)
        if call.wants_wrenches != 0:
            contact_wrenches(frame)
            for j in range(tree.n_links):
                runge.wrench[j] = share(runge.wrench[j], output.force[j], output.torque[j], mean_weight(k))
        if k < 3:
            part = fraction(dt, weight_of(k + 1))
            for d in range(n):
                runge.qd[(k + 1) * n + d] = advanced(runge.qd0[d], runge.qdd[k * n + d], part)
                runge.rate[d] = runge.chart[k * n + d]
            move(frame, runge.q0, runge.rate, part, next.q)
            for i in range(m):
                runge.q[(k + 1) * m + i] = next.q[i]
            for i in range(tree.n_rates):
                e = k * tree.n_more + i
                runge.more[e + tree.n_more] = advanced(runge.more0[i], runge.more_rate[e], part)
    for d in range(n):
        runge.rate[d] = mean_of_four(runge.qdd[d], runge.qdd[n + d], runge.qdd[2 * n + d], runge.qdd[3 * n + d])
        next.qd[d] = advanced(runge.qd0[d], runge.rate[d], dt)
        runge.rate[d] = mean_of_four(runge.chart[d], runge.chart[n + d], runge.chart[2 * n + d], runge.chart[3 * n + d])
    move(frame, runge.q0, runge.rate, dt, next.q)
    for i in range(tree.n_more):
        next.more[i] = runge.more0[i]
    for i in range(tree.n_rates):
        next.more[i] = advanced(runge.more0[i], mean_rate(frame, i), dt)
    if call.wants_wrenches != 0:
        for j in range(tree.n_links):
            output.force[j], output.torque[j] = shared_back(runge.wrench[j], 1.0)
    go_back(frame)


@kernel
def runge_kutta_adjoint(frame, bar):
    """Each evaluation is repeated, last first, and reversed; bar.runge collects what later ones gave earlier ones."""
    tree, call = frame.tree, frame.call
    n, m = tree.n_dofs, tree.n_q
    mean_adjoint(frame, bar)
    for k in range(3, -1, -1):
        chart_rates_adjoint(frame, bar, k)
        evaluate(frame, k)
        evaluate_adjoint(frame, bar, k)
        place_adjoint(frame, bar, tree.has_soft_contact, call.wants_outputs if k == 0 else 0)
        for i in range(m):
            accumulate(bar.state.q, i, bar.runge.q[k * m + i])
        for d in range(n):
            accumulate(bar.state.qd, d, bar.runge.qd[k * n + d])
        for i in range(tree.n_more):
            accumulate(bar.state.more, i, bar.runge.more[k * tree.n_more + i])
        if k > 0:
            hand_down(frame, bar, k)
    go_back(frame)


@sweep
def mean_adjoint(frame, bar):
    """The next state is the start, moved by the mean of the four evaluations: what each receives of it."""
    tree, runge = frame.tree, frame.runge
    n, dt = tree.n_dofs, frame.params.world_dt[0]
    for i in range(4 * tree.n_q):
        bar.runge.q[i] = zero(dt)
    for d in range(n):
        bar.runge.rate[d] = zero(dt)
    move_adjoint(frame, runge.q0, runge.rate, dt, bar.next.q, bar.runge.q, bar.runge.rate, bar.params.world_dt)
    for d in range(n):
        a, b, c, e = mean_of_four_adjoint(
            runge.chart[d], runge.chart[n + d], runge.chart[2 * n + d], runge.chart[3 * n + d], bar.runge.rate[d]
        )
        bar.runge.chart[d], bar.runge.chart[n + d], bar.runge.chart[2 * n + d], bar.runge.chart[3 * n + d] = a, b, c, e
        for k in range(4):
            bar.runge.qd[k * n + d] = zero(dt)
        mean = mean_of_four(runge.qdd[d], runge.qdd[n + d], runge.qdd[2 * n + d], runge.qdd[3 * n + d])
        mean_bar, dt_bar = advanced_adjoint(runge.qd0[d], mean, dt, bar.next.qd[d])
        accumulate(bar.params.world_dt, 0, dt_bar)
        accumulate(bar.runge.qd, d, bar.next.qd[d])
        a, b, c, e = mean_of_four_adjoint(
            runge.qdd[d], runge.qdd[n + d], runge.qdd[2 * n + d], runge.qdd[3 * n + d], mean_bar
        )
        bar.runge.qdd[d], bar.runge.qdd[n + d], bar.runge.qdd[2 * n + d], bar.runge.qdd[3 * n + d] = a, b, c, e
    mean_rates_adjoint(frame, bar)
    if frame.call.wants_wrenches != 0:
        for j in range(tree.n_links):
            bar.runge.wrench[j] = share(zero6(dt), bar.output.force[j], bar.output.torque[j], 1.0)


@sweep
def evaluate_adjoint(frame, bar, k):
    """From the acceleration of evaluation k to the forces of its contacts."""
    tree, n = frame.tree, frame.tree.n_dofs
    zero_motion_bar(frame, bar)
    for d in range(n):
        bar.work.qdd[d] = bar.runge.qdd[k * n + d]
    for i in range(tree.n_rates):
        bar.rate.more[i] = bar.runge.more_rate[k * tree.n_more + i]
    zero_work_bar(frame, bar)
    if tree.has_soft_contact != 0:
        zero_touch_bar(frame, bar)
    if tree.n_nets != 0:
        regraft(frame, bar)
    if tree.n_rate_aims != 0:
        grafted_rates_adjoint(frame, bar)
    acceleration_adjoint(frame, bar)
    if tree.has_soft_contact != 0 and frame.call.wants_wrenches != 0:
        for j in range(tree.n_links):
            bar.output.force[j], bar.output.torque[j] = shared_back(bar.runge.wrench[j], mean_weight(k))
        contact_wrenches_adjoint(frame, bar)


@sweep
def hand_down(frame, bar, k):
    """State k was start + part (rate, acceleration) of evaluation k - 1: its cotangents go there."""
    runge = frame.runge
    n, weight = frame.tree.n_dofs, weight_of(k)
    part = fraction(frame.params.world_dt[0], weight)
    bar.runge.part[0] = zero(part)
    for d in range(n):
        runge.rate[d] = runge.chart[(k - 1) * n + d]
        bar.runge.rate[d] = zero(part)
    move_adjoint(frame, runge.q0, runge.rate, part, bar.state.q, bar.runge.q, bar.runge.rate, bar.runge.part)
    for d in range(n):
        qdd_bar, part_bar = advanced_adjoint(runge.qd0[d], runge.qdd[(k - 1) * n + d], part, bar.state.qd[d])
        accumulate(bar.runge.chart, (k - 1) * n + d, bar.runge.rate[d])
        accumulate(bar.runge.qd, d, bar.state.qd[d])
        accumulate(bar.runge.qdd, (k - 1) * n + d, qdd_bar)
        accumulate(bar.runge.part, 0, part_bar)
    hand_down_more(frame, bar, k, part)
    accumulate(bar.params.world_dt, 0, scaled(bar.runge.part[0], weight))
