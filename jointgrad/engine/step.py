"""One step, as a table of contents: one call per stage down the page, the same calls back up.

q, qd, u -> kinematics -> grafts -> detection -> point_grafts -> springs -> tendons -> forces -> articulated -> contact ->
integration -> next q, qd

On request, loads: what contact did to every link.
"""

from ..compiler.kernel import kernel
from .clear import clear_state, clear_touch, clear_work
from .runge_kutta import runge_kutta, runge_kutta_adjoint
from .stages.articulated import articulated, articulated_adjoint
from .stages.contact import contact, contact_adjoint
from .stages.contact.loads import loads, loads_adjoint
from .stages.detection import detection, detection_adjoint
from .stages.forces import forces, forces_adjoint
from .stages.grafts import (
    grafted_forces,
    grafted_forces_adjoint,
    grafted_rates,
    grafted_rates_adjoint,
    grafts,
    grafts_adjoint,
    regraft,
    ungraft,
)
from .stages.grafts.points import grafted_springs, grafted_springs_adjoint, point_grafts, point_grafts_adjoint
from .stages.integration import integration, integration_adjoint
from .stages.kinematics import kinematics, kinematics_adjoint
from .stages.outputs import outputs_adjoint
from .stages.springs import springs, springs_adjoint
from .stages.tendons import tendons, tendons_adjoint
from .workspace import RK4


@kernel
def step(tree, params, assembly, state, work, touch, block, runge, output, call):
    if tree.integrator == RK4:
        runge_kutta(tree, params, assembly, state, work, touch, block, runge, output, call)
    else:
        kinematics(tree, params, assembly, state, work)
        if tree.n_nets != 0:
            grafts(tree, params, assembly, state, work)
        if tree.n_shapes != 0:
            detection(tree, params, assembly, work, touch)
        if tree.n_point_nets != 0:
            point_grafts(tree, params, assembly, state, work, touch)
        if tree.has_soft_contact != 0:
            springs(tree, params, work, touch)
        if tree.n_point_forces != 0:
            grafted_springs(tree, params, work, touch)
        if tree.n_tendons != 0:
            tendons(tree, params, state, work)
        forces(tree, params, assembly, state, work, call)
        if tree.n_nets != 0:
            grafted_forces(tree, params, assembly, state, work)
        articulated(tree, assembly, work, call)
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
        articulated_adjoint(tree, assembly, assembly_bar, work, work_bar, multiplier, call)
        if tree.n_nets != 0:
            grafted_forces_adjoint(tree, params, assembly, assembly_bar, state, state_bar, work, work_bar)
        forces_adjoint(tree, params, params_bar, assembly, assembly_bar, state, state_bar, work, work_bar, call)
        if tree.n_tendons != 0:
            tendons_adjoint(tree, params, params_bar, state, state_bar, work, work_bar)
        if tree.n_point_forces != 0:
            grafted_springs_adjoint(tree, params, work, work_bar, touch, touch_bar)
        if tree.has_soft_contact != 0:
            springs_adjoint(tree, params, params_bar, work, work_bar, touch, touch_bar)
        if tree.n_point_nets != 0:
            point_grafts_adjoint(
                tree, params, params_bar, assembly, assembly_bar, state_bar, work, work_bar, touch, touch_bar, call
            )
        if tree.n_shapes != 0:
            detection_adjoint(tree, params, params_bar, assembly_bar, work, work_bar, touch, touch_bar)
        if tree.n_nets != 0:
            grafts_adjoint(tree, params, params_bar, assembly, assembly_bar, state, state_bar, work, work_bar, call)
        if call.wants_outputs != 0:
            outputs_adjoint(tree, assembly, assembly_bar, work, work_bar, output_bar)
        kinematics_adjoint(tree, params_bar, assembly_bar, state, state_bar, work, work_bar, call)
