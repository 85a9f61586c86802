"""The laws of actuators, for the stages whose joints or tendons they push; not a stage itself.

An actuator pushes with gain (u - position or speed it serves) - damping speed + bias, within its force limit; position
and speed are those of what it drives times the gear, which feels the force times the gear (as MuJoCo's transmissions do).
"""

from ...compiler.elementary import clamp
from ...compiler.kernel import accumulate, inlined, sweep
from ...compiler.reverse import adjoint
from ...compiler.trace import traced
from ...model.arrays import POSITION, TORQUE, VELOCITY

# forces before their limit ------------------------------------------------------------------------------------------------


def served_force(serves_q, serves_rate, u, q, rate, gain, damping, bias, gear, control_limit):
    length, speed = gear * q, gear * rate
    command = clamp(u, *control_limit)
    force = gain * (command - (length if serves_q else 0.0) - (speed if serves_rate else 0.0)) - damping * speed
    return force + bias[0] + bias[1] * length + bias[2] * speed


def torque_force(*given):
    return served_force(False, False, *given)


def position_force(*given):
    return served_force(True, False, *given)


def velocity_force(*given):
    return served_force(False, True, *given)


def damper_force(u, q, rate, gain, damping, bias, gear, control_limit):
    """The control sets how much the motion is damped."""
    speed = gear * rate
    return bias[0] + bias[1] * (gear * q) + bias[2] * speed - (gain * clamp(u, *control_limit) + damping) * speed


# and within it, as what is driven feels it --------------------------------------------------------------------------------


@traced
def torque_drive(u, q, rate, gain, damping, bias, gear, control_limit, force_limit):
    return gear * clamp(torque_force(u, q, rate, gain, damping, bias, gear, control_limit), *force_limit)


@traced
def position_drive(u, q, rate, gain, damping, bias, gear, control_limit, force_limit):
    return gear * clamp(position_force(u, q, rate, gain, damping, bias, gear, control_limit), *force_limit)


@traced
def velocity_drive(u, q, rate, gain, damping, bias, gear, control_limit, force_limit):
    return gear * clamp(velocity_force(u, q, rate, gain, damping, bias, gear, control_limit), *force_limit)


@traced
def damper_drive(u, q, rate, gain, damping, bias, gear, control_limit, force_limit):
    return gear * clamp(damper_force(u, q, rate, gain, damping, bias, gear, control_limit), *force_limit)


@inlined
def settings_of(frame, a):
    """All that actuator a has of its own."""
    params = frame.params
    return (
        params.actuator_gain[a], params.actuator_damping[a], params.actuator_bias[a], params.actuator_gear[a],
        params.actuator_control_limit[a], params.actuator_force_limit[a],
    )  # fmt: skip


@sweep
def drive(frame, pushed, row, q, rate, a):
    """Adds the force of actuator a, which sees this position and rate, to a row of what it pushes."""
    kind, u = frame.tree.actuator_kind[a], frame.state.u[a]
    gain, damping, bias, gear, command, limit = settings_of(frame, a)
    if kind == TORQUE:
        accumulate(pushed, row, torque_drive(u, q, rate, gain, damping, bias, gear, command, limit))
    elif kind == POSITION:
        accumulate(pushed, row, position_drive(u, q, rate, gain, damping, bias, gear, command, limit))
    elif kind == VELOCITY:
        accumulate(pushed, row, velocity_drive(u, q, rate, gain, damping, bias, gear, command, limit))
    else:
        accumulate(pushed, row, damper_drive(u, q, rate, gain, damping, bias, gear, command, limit))


# the reverse ------------------------------------------------------------------------------------------------------------

DRIVE_INPUTS = "u q rate gain damping bias gear control_limit force_limit"
torque_drive_adjoint = adjoint(torque_drive, DRIVE_INPUTS)
position_drive_adjoint = adjoint(position_drive, DRIVE_INPUTS)
velocity_drive_adjoint = adjoint(velocity_drive, DRIVE_INPUTS)
damper_drive_adjoint = adjoint(damper_drive, DRIVE_INPUTS)


@sweep
def drive_adjoint(frame, bar, q, rate, force_bar, q_bar, q_row, rate_bar, rate_row, a):
    """Of actuator a, which saw this position and rate, and whose force has the cotangent `bar`."""
    kind, u = frame.tree.actuator_kind[a], frame.state.u[a]
    gain, damping, bias, gear, command, limit = settings_of(frame, a)
    if kind == TORQUE:
        bars = torque_drive_adjoint(u, q, rate, gain, damping, bias, gear, command, limit, force_bar)
    elif kind == POSITION:
        bars = position_drive_adjoint(u, q, rate, gain, damping, bias, gear, command, limit, force_bar)
    elif kind == VELOCITY:
        bars = velocity_drive_adjoint(u, q, rate, gain, damping, bias, gear, command, limit, force_bar)
    else:
        bars = damper_drive_adjoint(u, q, rate, gain, damping, bias, gear, command, limit, force_bar)
    accumulate(bar.state.u, a, bars[0])
    accumulate(q_bar, q_row, bars[1])
    accumulate(rate_bar, rate_row, bars[2])
    accumulate(bar.params.actuator_gain, a, bars[3])
    accumulate(bar.params.actuator_damping, a, bars[4])
    accumulate(bar.params.actuator_bias, a, bars[5])
    accumulate(bar.params.actuator_gear, a, bars[6])
    accumulate(bar.params.actuator_control_limit, a, bars[7])
    accumulate(bar.params.actuator_force_limit, a, bars[8])
