"""One step, as a table of contents: one call per stage down the page, the same calls back up.

q, qd, u -> kinematics -> grafts -> detection -> point_grafts -> springs -> tendons -> forces -> articulated -> contact ->
integration -> next q, qd

The stages up to the acceleration serve every integrator, and are listed in dynamics.py. On request, contact_wrenches: what
contact did to every link.
"""

from ...compiler.kernel import kernel
from .dynamics import acceleration_adjoint, dynamics, place_adjoint
from .runge_kutta import runge_kutta, runge_kutta_adjoint
from .stages.contact import contact, contact_adjoint
from .stages.contact.wrenches import contact_wrenches, contact_wrenches_adjoint
from .stages.grafts import grafted_rates, grafted_rates_adjoint, regraft, ungraft
from .stages.integration import integration, integration_adjoint
from .workspace import RK4
from .zero_cotangents import zero_state_bar, zero_touch_bar, zero_work_bar


@kernel
def step(frame):
    tree = frame.tree
    if tree.integrator == RK4:
        runge_kutta(frame)
    else:
        dynamics(frame, tree.n_shapes)
        if tree.has_impulses != 0:
            contact(frame)
        if frame.call.wants_wrenches != 0:
            contact_wrenches(frame)
        if tree.n_rate_aims != 0:
            grafted_rates(frame)
        integration(frame)
        if tree.n_nets != 0:
            ungraft(frame)


@kernel
def step_adjoint(frame, bar):
    """Reads what `step` left in work, and the cotangents of the next state, of the outputs of this one, and of the wrenches.

    Overwrites bar.state; adds to bar.params and bar.assembly.
    """
    tree, call = frame.tree, frame.call
    zero_state_bar(frame, bar)
    if tree.integrator == RK4:
        runge_kutta_adjoint(frame, bar)
    else:
        zero_work_bar(frame, bar)
        zero_touch_bar(frame, bar)
        if tree.n_nets != 0:
            regraft(frame, bar)
        integration_adjoint(frame, bar)
        if tree.n_rate_aims != 0:
            grafted_rates_adjoint(frame, bar)
        if call.wants_wrenches != 0:
            contact_wrenches_adjoint(frame, bar)
        if tree.has_impulses != 0:
            contact_adjoint(frame, bar)
        acceleration_adjoint(frame, bar)
        place_adjoint(frame, bar, tree.n_shapes, call.wants_outputs)
