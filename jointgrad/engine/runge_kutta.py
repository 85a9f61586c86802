"""The classical fourth-order Runge-Kutta step: four evaluations of the dynamics, each at a state of its own.

Coordinates move along weighted means of rates, on the manifold, as in MuJoCo's RK4.
"""

from ..compiler.kernel import accumulate, kernel, sweep
from ..compiler.reverse import adjoint
from ..compiler.trace import traced
from .clear import clear_motion, clear_work, zero
from .stages.articulated import articulated, articulated_adjoint
from .stages.forces import forces, forces_adjoint
from .stages.integration import advanced, advanced_adjoint, move, move_adjoint
from .stages.kinematics import kinematics, kinematics_adjoint
from .stages.outputs import outputs_adjoint


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


@sweep
def evaluate(tree, params, assembly, state, work, runge, call, k):
    """Dynamics at the state of evaluation k; its rate and acceleration are kept."""
    for i in range(tree.n_q):
        state.q[i] = runge.q[k * tree.n_q + i]
    for d in range(tree.n_dofs):
        state.qd[d] = runge.qd[k * tree.n_dofs + d]
    kinematics(tree, params, assembly, state, work)
    forces(tree, params, assembly, state, work, call)
    articulated(tree, assembly, work, call)
    for d in range(tree.n_dofs):
        runge.qdd[k * tree.n_dofs + d] = work.qdd[d]


@kernel
def runge_kutta(tree, params, assembly, state, work, runge, call):
    n, m, dt = tree.n_dofs, tree.n_q, params.world_dt[0]
    for i in range(m):
        runge.q0[i] = state.q[i]
        runge.q[i] = state.q[i]
    for d in range(n):
        runge.qd0[d] = state.qd[d]
        runge.qd[d] = state.qd[d]
    for k in range(4):
        evaluate(tree, params, assembly, state, work, runge, call, k)
        if k < 3:
            part = fraction(dt, 0.5 if k < 2 else 1.0)
            for d in range(n):
                runge.qd[(k + 1) * n + d] = advanced(runge.qd0[d], runge.qdd[k * n + d], part)
                runge.rate[d] = runge.qd[k * n + d]
            move(tree, runge.q0, runge.rate, part, work.q_next)
            for i in range(m):
                runge.q[(k + 1) * m + i] = work.q_next[i]
    for d in range(n):
        runge.rate[d] = mean_of_four(runge.qdd[d], runge.qdd[n + d], runge.qdd[2 * n + d], runge.qdd[3 * n + d])
        work.qd_next[d] = advanced(runge.qd0[d], runge.rate[d], dt)
        runge.rate[d] = mean_of_four(runge.qd[d], runge.qd[n + d], runge.qd[2 * n + d], runge.qd[3 * n + d])
    move(tree, runge.q0, runge.rate, dt, work.q_next)
    for i in range(m):
        state.q[i] = runge.q0[i]
    for d in range(n):
        state.qd[d] = runge.qd0[d]


@kernel
def runge_kutta_adjoint(
    tree,
    params,
    params_bar,
    assembly,
    assembly_bar,
    state,
    state_bar,
    work,
    work_bar,
    multiplier,
    output_bar,
    runge,
    runge_bar,
    call,
):
    """Each evaluation is repeated, last first, and reversed; runge_bar collects what later ones gave earlier ones."""
    n, m, dt = tree.n_dofs, tree.n_q, params.world_dt[0]
    for i in range(4 * m):
        runge_bar.q[i] = zero(dt)
    for d in range(n):
        runge_bar.rate[d] = zero(dt)
    move_adjoint(tree, runge.q0, runge.rate, dt, work_bar.q_next, runge_bar.q, runge_bar.rate, params_bar.world_dt)
    for d in range(n):
        a, b, c, e = mean_of_four_adjoint(
            runge.qd[d], runge.qd[n + d], runge.qd[2 * n + d], runge.qd[3 * n + d], runge_bar.rate[d]
        )
        runge_bar.qd[d], runge_bar.qd[n + d], runge_bar.qd[2 * n + d], runge_bar.qd[3 * n + d] = a, b, c, e
        mean = mean_of_four(runge.qdd[d], runge.qdd[n + d], runge.qdd[2 * n + d], runge.qdd[3 * n + d])
        mean_bar, dt_bar = advanced_adjoint(runge.qd0[d], mean, dt, work_bar.qd_next[d])
        accumulate(params_bar.world_dt, 0, dt_bar)
        accumulate(runge_bar.qd, d, work_bar.qd_next[d])
        a, b, c, e = mean_of_four_adjoint(
            runge.qdd[d], runge.qdd[n + d], runge.qdd[2 * n + d], runge.qdd[3 * n + d], mean_bar
        )
        runge_bar.qdd[d], runge_bar.qdd[n + d], runge_bar.qdd[2 * n + d], runge_bar.qdd[3 * n + d] = a, b, c, e
    for k in range(3, -1, -1):
        evaluate(tree, params, assembly, state, work, runge, call, k)
        clear_motion(tree, state_bar, params)
        for d in range(n):
            work_bar.qdd[d] = runge_bar.qdd[k * n + d]
        clear_work(tree, work, work_bar)
        articulated_adjoint(tree, assembly, assembly_bar, work, work_bar, multiplier, call)
        forces_adjoint(tree, params, params_bar, assembly, assembly_bar, state, state_bar, work, work_bar, call)
        if call.wants_outputs != 0 and k == 0:
            outputs_adjoint(tree, assembly, assembly_bar, work, work_bar, output_bar)
        kinematics_adjoint(tree, params_bar, assembly_bar, state, state_bar, work, work_bar, call)
        for i in range(m):
            accumulate(state_bar.q, i, runge_bar.q[k * m + i])
        for d in range(n):
            accumulate(state_bar.qd, d, runge_bar.qd[k * n + d])
        if k > 0:
            hand_down(tree, params, params_bar, state_bar, runge, runge_bar, k)
    for d in range(n):
        state.qd[d] = runge.qd0[d]
    for i in range(m):
        state.q[i] = runge.q0[i]


@sweep
def hand_down(tree, params, params_bar, state_bar, runge, runge_bar, k):
    """State k was start + part (rate, acceleration) of evaluation k - 1: its cotangents go there."""
    n, weight = tree.n_dofs, 1.0 if k == 3 else 0.5
    part = fraction(params.world_dt[0], weight)
    runge_bar.part[0] = zero(part)
    for d in range(n):
        runge.rate[d] = runge.qd[(k - 1) * n + d]
        runge_bar.rate[d] = zero(part)
    move_adjoint(tree, runge.q0, runge.rate, part, state_bar.q, runge_bar.q, runge_bar.rate, runge_bar.part)
    for d in range(n):
        qdd_bar, part_bar = advanced_adjoint(runge.qd0[d], runge.qdd[(k - 1) * n + d], part, state_bar.qd[d])
        accumulate(runge_bar.qd, (k - 1) * n + d, runge_bar.rate[d])
        accumulate(runge_bar.qd, d, state_bar.qd[d])
        accumulate(runge_bar.qdd, (k - 1) * n + d, qdd_bar)
        accumulate(runge_bar.part, 0, part_bar)
    accumulate(params_bar.world_dt, 0, scaled(runge_bar.part[0], weight))
