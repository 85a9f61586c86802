"""What the words of networks do to the quantities of a step: added, in place of, times, or as a brake."""

from .....compiler.elementary import maximum
from .....compiler.kernel import inlined, sweep
from .....compiler.reverse import adjoint
from .....compiler.trace import traced
from .....model.grafts import (
    ACTUATOR_DAMPING,
    ACTUATOR_GAIN,
    ADD,
    CONTROL,
    DISSIPATE,
    JOINT_ACCELERATION,
    JOINT_ARMATURE,
    JOINT_DAMPING,
    JOINT_FORCE,
    JOINT_FRICTION,
    JOINT_STIFFNESS,
    LINK_FORCE,
    LINK_MASS,
    PAIR_DAMPING,
    PAIR_FRICTION,
    PAIR_RESTITUTION,
    PAIR_STIFFNESS,
    REPLACE,
    WORLD_DENSITY,
    WORLD_VISCOSITY,
)
from ...operators import zero


@traced
def added(base, said, rate):
    return base + said


@traced
def replaced(base, said, rate):
    return said


@traced
def scaled(base, said, rate):
    return base * (1.0 + said)


@traced
def braked(base, said, rate):
    """A brake that is never negative cannot give energy."""
    return base - said * said * rate


added_adjoint, replaced_adjoint = adjoint(added, "base said rate"), adjoint(replaced, "base said rate")
scaled_adjoint, braked_adjoint = adjoint(scaled, "base said rate"), adjoint(braked, "base said rate")


@traced
def not_negative(x):
    return maximum(x, 0.0)


not_negative_adjoint = adjoint(not_negative, "x")


@inlined
def free_value(mode, base, said, rate):
    if mode == ADD:
        return added(base, said, rate)
    if mode == REPLACE:
        return replaced(base, said, rate)
    if mode == DISSIPATE:
        return braked(base, said, rate)
    return scaled(base, said, rate)


@inlined
def combined(frame, a, base, said, rate):
    """What an aim becomes; some things cannot be negative."""
    tree = frame.tree
    value = free_value(tree.aim_mode[a], base, said, rate)
    if tree.aim_floor[a] != 0:
        return not_negative(value)
    return value


@inlined
def combined_adjoint(frame, a, base, said, rate, bar):
    tree = frame.tree
    mode = tree.aim_mode[a]
    if tree.aim_floor[a] != 0:
        bar = not_negative_adjoint(free_value(mode, base, said, rate), bar)
    if mode == ADD:
        return added_adjoint(base, said, rate, bar)
    if mode == REPLACE:
        return replaced_adjoint(base, said, rate, bar)
    if mode == DISSIPATE:
        return braked_adjoint(base, said, rate, bar)
    return scaled_adjoint(base, said, rate, bar)


@sweep
def rate_of(frame, a):
    """What a brake acts on; any number elsewhere."""
    tree = frame.tree
    if tree.aim_rate[a] < 0:
        return zero(frame.params.world_dt[0])
    return frame.state.qd[tree.aim_rate[a]]


# controls and parameters, for the time of a step ------------------------------------------------------------------------------


@inlined
def is_value(kind):
    """Whether an aim is one number of a table, which is replaced and put back."""
    return kind != JOINT_FORCE and kind != JOINT_ACCELERATION and kind != LINK_FORCE and kind != LINK_MASS


@inlined
def taken(frame, kind, i):
    """The present value of what an aim changes."""
    params = frame.params
    if kind == CONTROL:
        return frame.state.u[i]
    if kind == JOINT_DAMPING:
        return params.joint_damping[i]
    if kind == JOINT_STIFFNESS:
        return params.joint_stiffness[i]
    if kind == JOINT_ARMATURE:
        return params.joint_armature[i]
    if kind == JOINT_FRICTION:
        return params.joint_friction[i]
    if kind == ACTUATOR_GAIN:
        return params.actuator_gain[i]
    if kind == ACTUATOR_DAMPING:
        return params.actuator_damping[i]
    if kind == PAIR_FRICTION:
        return params.pair_friction[i]
    if kind == PAIR_RESTITUTION:
        return params.pair_restitution[i]
    if kind == PAIR_STIFFNESS:
        return params.pair_stiffness[i]
    if kind == PAIR_DAMPING:
        return params.pair_damping[i]
    if kind == WORLD_DENSITY:
        return params.world_density[i]
    return params.world_viscosity[i]


@inlined
def put(frame, kind, i, value):
    params = frame.params
    if kind == CONTROL:
        frame.state.u[i] = value
    elif kind == JOINT_DAMPING:
        params.joint_damping[i] = value
    elif kind == JOINT_STIFFNESS:
        params.joint_stiffness[i] = value
    elif kind == JOINT_ARMATURE:
        params.joint_armature[i] = value
    elif kind == JOINT_FRICTION:
        params.joint_friction[i] = value
    elif kind == ACTUATOR_GAIN:
        params.actuator_gain[i] = value
    elif kind == ACTUATOR_DAMPING:
        params.actuator_damping[i] = value
    elif kind == PAIR_FRICTION:
        params.pair_friction[i] = value
    elif kind == PAIR_RESTITUTION:
        params.pair_restitution[i] = value
    elif kind == PAIR_STIFFNESS:
        params.pair_stiffness[i] = value
    elif kind == PAIR_DAMPING:
        params.pair_damping[i] = value
    elif kind == WORLD_DENSITY:
        params.world_density[i] = value
    elif kind == WORLD_VISCOSITY:
        params.world_viscosity[i] = value
