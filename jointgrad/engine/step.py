"""One step, as a table of contents: one call per stage down the page, the same calls back up.

q, qd, u -> kinematics -> grafts -> detection -> point_grafts -> springs -> tendons -> forces -> articulated -> contact ->
integration -> next q, qd

The stages up to the acceleration serve every integrator, and are listed in dynamics.py. On request, loads: what contact did to
every link.
"""

from ..compiler.kernel import kernel
from .clear import clear_state, clear_touch, clear_work
from .dynamics import acceleration_adjoint, dynamics, place_adjoint
from .runge_kutta import runge_kutta, runge_kutta_adjoint
from .stages.contact import contact, contact_adjoint
from .stages.contact.loads import loads, loads_adjoint
from .stages.grafts import grafted_rates, grafted_rates_adjoint, regraft, ungraft
from .stages.integration import integration, integration_adjoint
from .workspace import RK4


@kernel
def step(tree, params, assembly, state, work, touch, block, runge, output, call):
    if tree.integrator == RK4:
        runge_kutta(tree, params, assembly, state, work, touch, block, runge, output, call)
    else:
        dynamics(tree, params, assembly, state, work, touch, call, tree.n_shapes)
        if tree.has_impulses != 0:
            contact(tree, params, state, work, touch, block)
        if call.wants_loads != 0:
            loads(tree, params, assembly, work, touch, block, output)
        if tree.n_rate_aims != 0:
            grafted_rates(tree, params, state, work)
        integration(tree, params, state, work)
        if tree.n_nets != 0:
            ungraft(tree, params, assembly, state, work)


@kernel
def step_adjoint(
    tree, params, params_bar, assembly, assembly_bar, state, state_bar, work, work_bar, touch, touch_bar, block, block_bar,
    multiplier, output_bar, runge, runge_bar, call
):  # fmt: skip
    """Reads what `step` left in work, and the cotangents of the next state, of the outputs of this one, and of the loads.

    Overwrites state_bar; adds to params_bar and assembly_bar.
    """
    clear_state(tree, state_bar, params, call)
    if tree.integrator == RK4:
        runge_kutta_adjoint(
            tree, params, params_bar, assembly, assembly_bar, state, state_bar, work, work_bar, touch, touch_bar, block,
            block_bar, multiplier, output_bar, runge, runge_bar, call,
        )  # fmt: skip
    else:
        clear_work(tree, work, work_bar)
        clear_touch(tree, touch, touch_bar, params)
        if tree.n_nets != 0:
            regraft(tree, params, params_bar, assembly, assembly_bar, state, state_bar, work, work_bar, touch)
        integration_adjoint(tree, params, params_bar, state, state_bar, work, work_bar)
        if tree.n_rate_aims != 0:
            grafted_rates_adjoint(tree, params, state, state_bar, work, work_bar)
        if call.wants_loads != 0:
            loads_adjoint(
                tree, params, params_bar, assembly, assembly_bar, work, work_bar, touch, touch_bar, block, block_bar, output_bar
            )  # fmt: skip
        if tree.has_impulses != 0:
            contact_adjoint(
                tree, params, params_bar, assembly, assembly_bar, state, state_bar, work, work_bar, multiplier, touch, touch_bar,
                block, block_bar, call,
            )  # fmt: skip
        acceleration_adjoint(
            tree, params, params_bar, assembly, assembly_bar, state, state_bar, work, work_bar, multiplier, call
        )
        place_adjoint(
            tree, params, params_bar, assembly, assembly_bar, state, state_bar, work, work_bar, touch, touch_bar, output_bar,
            call, tree.n_shapes, call.wants_outputs,
        )  # fmt: skip
