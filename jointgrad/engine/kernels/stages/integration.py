"""Joint accelerations and jumps of rates -> next coordinates and rates, on the manifold: quaternions by the exponential map.

Semi-implicit Euler moves with the new rates, explicit Euler with the old ones; implicit joint damping is semi-implicit
here and has done its part in `forces`. The fourth-order Runge-Kutta step is in runge_kutta.py, of the same operators.
"""

from ....algebra import rotation
from ....algebra.vector import scale
from ....compiler.kernel import accumulate, kernel, sweep
from ....compiler.reverse import adjoint
from ....compiler.trace import traced
from ....model.arrays import FREE, SPHERICAL
from ..workspace import EXPLICIT

READS = ("state.q", "state.qd", "state.more", "work.qdd", "work.qd_jump", "rate.more", "params.world_dt")
WRITES = ("next.q", "next.qd", "next.more")


@traced
def advanced(x, rate, dt):
    return x + rate * dt


@traced
def turned(w, x, y, z, a, b, c, dt):
    return rotation.advanced((w, x, y, z), scale((a, b, c), dt))


advanced_adjoint = adjoint(advanced, "rate dt")
turned_adjoint = adjoint(turned, "w x y z a b c dt")


@sweep
def move(frame, q, rate, dt, q_next):
    """q_next = q (+) dt rate."""
    tree = frame.tree
    for b in range(tree.n_bodies):
        kind, i, d = tree.kind[b], tree.q[b], tree.dof[b]
        if kind == SPHERICAL or kind == FREE:
            if kind == FREE:
                for k in range(3):
                    q_next[i + k] = advanced(q[i + k], rate[d + k], dt)
                i, d = i + 3, d + 3
            q_next[i], q_next[i + 1], q_next[i + 2], q_next[i + 3] = turned(
                q[i], q[i + 1], q[i + 2], q[i + 3], rate[d], rate[d + 1], rate[d + 2], dt
            )
        else:
            q_next[i] = advanced(q[i], rate[d], dt)


@sweep
def move_adjoint(frame, q, rate, dt, q_next_bar, q_bar, rate_bar, dt_bar):
    """Adds to the cotangents of q and rate, and to dt_bar[0]."""
    tree = frame.tree
    for b in range(tree.n_bodies):
        kind, i, d, straight = tree.kind[b], tree.q[b], tree.dof[b], 1
        if kind == FREE:
            straight = 3
        if kind == SPHERICAL:
            straight = 0
        for k in range(straight):
            r, t = advanced_adjoint(q[i + k], rate[d + k], dt, q_next_bar[i + k])
            accumulate(q_bar, i + k, q_next_bar[i + k])
            accumulate(rate_bar, d + k, r)
            accumulate(dt_bar, 0, t)
        if kind == SPHERICAL or kind == FREE:
            i, d = i + straight, d + straight
            w, x, y, z, ra, rb, rc, t = turned_adjoint(
                q[i], q[i + 1], q[i + 2], q[i + 3], rate[d], rate[d + 1], rate[d + 2], dt,
                (q_next_bar[i], q_next_bar[i + 1], q_next_bar[i + 2], q_next_bar[i + 3]),
            )  # fmt: skip
            accumulate(q_bar, i, w)
            accumulate(q_bar, i + 1, x)
            accumulate(q_bar, i + 2, y)
            accumulate(q_bar, i + 3, z)
            accumulate(rate_bar, d, ra)
            accumulate(rate_bar, d + 1, rb)
            accumulate(rate_bar, d + 2, rc)
            accumulate(dt_bar, 0, t)


@traced
def with_jump(rate, jump):
    return rate + jump


@kernel
def integration(frame):
    tree, state, work, next = frame.tree, frame.state, frame.work, frame.next
    dt = frame.params.world_dt[0]
    for d in range(tree.n_dofs):
        next.qd[d] = advanced(state.qd[d], work.qdd[d], dt)
    if tree.has_impulses != 0:
        for d in range(tree.n_dofs):
            next.qd[d] = with_jump(next.qd[d], work.qd_jump[d])
    if tree.integrator == EXPLICIT:
        move(frame, state.q, state.qd, dt, next.q)
    else:
        move(frame, state.q, next.qd, dt, next.q)
    for i in range(tree.n_rates):
        next.more[i] = advanced(state.more[i], frame.rate.more[i], dt)


@kernel
def integration_adjoint(frame, bar):
    """Overwrites bar.work.qdd and qd_jump, bar.rate.more; adds to the others, bar.next.qd included."""
    tree, state, work, next = frame.tree, frame.state, frame.work, frame.next
    dt = frame.params.world_dt[0]
    if tree.integrator == EXPLICIT:
        move_adjoint(frame, state.q, state.qd, dt, bar.next.q, bar.state.q, bar.state.qd, bar.params.world_dt)
    else:
        move_adjoint(frame, state.q, next.qd, dt, bar.next.q, bar.state.q, bar.next.qd, bar.params.world_dt)
    for d in range(tree.n_dofs):
        bar.work.qdd[d], dt_bar = advanced_adjoint(state.qd[d], work.qdd[d], dt, bar.next.qd[d])
        accumulate(bar.state.qd, d, bar.next.qd[d])
        accumulate(bar.params.world_dt, 0, dt_bar)
        bar.work.qd_jump[d] = bar.next.qd[d]
    for i in range(tree.n_rates):
        bar.rate.more[i], dt_bar = advanced_adjoint(state.more[i], frame.rate.more[i], dt, bar.next.more[i])
        accumulate(bar.state.more, i, bar.next.more[i])
        accumulate(bar.params.world_dt, 0, dt_bar)
