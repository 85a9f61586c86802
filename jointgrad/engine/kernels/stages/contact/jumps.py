"""Impulses that sweeps found -> what they add to the rates, and the same backwards around a solver's own reverse."""

from .....compiler.kernel import kernel, sweep
from ..articulated import multipliers
from .energy import restrain, restrain_adjoint, restrain_again, square_adjoint, unrestrain
from .impulse_cotangents import impulse_cotangents
from .response import inertia_adjoint, rates, sum_pushes
from .wrenches import wrenches_felt


@kernel
def jumps(frame):
    sum_pushes(frame)
    if frame.block.bounces != 0:
        restrain(frame)
    rates(frame)


# the reverse, before and after that of the sweeps ----------------------------------------------------------------------------


@sweep
def impulses_adjoint(frame, bar):
    """From what the rates received to the cotangents of the impulses that were solved."""
    multipliers(frame, bar.work.qd_jump)
    impulse_cotangents(frame, bar)
    if frame.call.wants_wrenches != 0:
        wrenches_felt(frame, bar)
    if frame.block.restrained != 0:
        unrestrain(frame)
        restrain_adjoint(frame, bar)


@sweep
def answers_adjoint(frame, bar):
    """From how trees answered to their inertias."""
    if frame.block.restrained != 0:
        square_adjoint(frame, bar)
        restrain_again(frame)
    inertia_adjoint(frame, bar)
