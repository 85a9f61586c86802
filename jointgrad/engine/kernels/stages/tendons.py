"""Joint positions, speeds and controls -> length and speed of tendons, and what pulls in them.

A tendon is a weighted sum of coordinates. A spring (slack between the two ends of its rest), a damper and actuators pull
in it (MuJoCo's fixed tendons).
"""

from ....compiler.elementary import maximum, minimum
from ....compiler.kernel import accumulate, kernel, sweep
from ....compiler.reverse import adjoint
from ....compiler.trace import traced
from ..drive import drive, drive_adjoint
from ..operators import zero

READS = (
    "state.q", "state.qd", "state.u", "params.actuator_gain", "params.actuator_damping", "params.actuator_bias",
    "params.actuator_gear", "params.actuator_control_limit", "params.actuator_force_limit", "params.tendon_stiffness",
    "params.tendon_damping", "params.tendon_rest", "params.tendon_coefficient", "params.world_dt",
)  # fmt: skip
WRITES = ("work.length", "work.speed", "work.pull")


@traced
def part(coefficient, x):
    """What one joint adds to the length or the speed."""
    return coefficient * x


@traced
def tendon_pull(length, speed, stiffness, damping, rest):
    """Spring and damper; the spring is slack between the two ends of `rest`, which may be one."""
    stretch = maximum(length - rest[1], 0.0) + minimum(0.0, length - rest[0])
    return -(stiffness * stretch) - damping * speed


@sweep
def stretch_tendon(frame, t):
    tree, params, state, work = frame.tree, frame.params, frame.state, frame.work
    work.length[t] = zero(params.world_dt[0])
    work.speed[t] = zero(params.world_dt[0])
    for k in range(tree.tendon_first[t], tree.tendon_first[t + 1]):
        coefficient = params.tendon_coefficient[k]
        accumulate(work.length, t, part(coefficient, state.q[tree.term_q[k]]))
        accumulate(work.speed, t, part(coefficient, state.qd[tree.term_dof[k]]))
    work.pull[t] = tendon_pull(
        work.length[t], work.speed[t], params.tendon_stiffness[t], params.tendon_damping[t], params.tendon_rest[t]
    )


@kernel
def tendons(frame):
    tree, work = frame.tree, frame.work
    for t in range(tree.n_tendons):
        stretch_tendon(frame, t)
    for n in range(tree.n_tendon_drives):
        a = tree.tendon_drive[n]
        t = tree.actuator_tendon[a]
        drive(frame, work.pull, t, work.length[t], work.speed[t], a)


# the reverse ------------------------------------------------------------------------------------------------------------

part_adjoint = adjoint(part, "coefficient x")
tendon_pull_adjoint = adjoint(tendon_pull, "length speed stiffness damping rest")


@sweep
def stretch_tendon_adjoint(frame, bar, t):
    tree, params, state, work = frame.tree, frame.params, frame.state, frame.work
    length, speed, stiffness, damping, rest = tendon_pull_adjoint(
        work.length[t], work.speed[t], params.tendon_stiffness[t], params.tendon_damping[t], params.tendon_rest[t],
        bar.work.pull[t],
    )  # fmt: skip
    accumulate(bar.work.length, t, length)
    accumulate(bar.work.speed, t, speed)
    accumulate(bar.params.tendon_stiffness, t, stiffness)
    accumulate(bar.params.tendon_damping, t, damping)
    accumulate(bar.params.tendon_rest, t, rest)
    for k in range(tree.tendon_first[t], tree.tendon_first[t + 1]):
        q, d, coefficient = tree.term_q[k], tree.term_dof[k], params.tendon_coefficient[k]
        by_length, q_bar = part_adjoint(coefficient, state.q[q], bar.work.length[t])
        by_speed, rate_bar = part_adjoint(coefficient, state.qd[d], bar.work.speed[t])
        accumulate(bar.params.tendon_coefficient, k, by_length)
        accumulate(bar.params.tendon_coefficient, k, by_speed)
        accumulate(bar.state.q, q, q_bar)
        accumulate(bar.state.qd, d, rate_bar)


@kernel
def tendons_adjoint(frame, bar):
    """Adds to all it touches."""
    tree, work = frame.tree, frame.work
    for n in range(tree.n_tendon_drives):
        a = tree.tendon_drive[n]
        t = tree.actuator_tendon[a]
        drive_adjoint(frame, bar, work.length[t], work.speed[t], bar.work.pull[t],
            bar.work.length, t, bar.work.speed, t, a)  # fmt: skip
    for t in range(tree.n_tendons):
        stretch_tendon_adjoint(frame, bar, t)
