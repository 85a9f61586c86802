"""One step, as a table of contents: one call per stage down the page, the same calls back up.

q, qd, u -> kinematics -> tendons -> forces -> articulated -> integration -> next q, qd
"""

from ..compiler.kernel import kernel
from .clear import clear_state, clear_work
from .runge_kutta import runge_kutta, runge_kutta_adjoint
from .stages.articulated import articulated, articulated_adjoint
from .stages.forces import forces, forces_adjoint
from .stages.integration import integration, integration_adjoint
from .stages.kinematics import kinematics, kinematics_adjoint
from .stages.outputs import outputs_adjoint
from .stages.tendons import tendons, tendons_adjoint
from .workspace import RK4


@kernel
def step(tree, params, assembly, state, work, runge, call):
    if tree.integrator == RK4:
        runge_kutta(tree, params, assembly, state, work, runge, call)
    else:
        kinematics(tree, params, assembly, state, work)
        tendons(tree, params, state, work)
        forces(tree, params, assembly, state, work, call)
        articulated(tree, assembly, work, call)
        integration(tree, params, state, work)


@kernel
def step_adjoint(
    tree, params, params_bar, assembly, assembly_bar, state, state_bar, work, work_bar, multiplier, output_bar, runge,
    runge_bar, call
):  # fmt: skip
    """Reads what `step` left in work, and the cotangents of the next state and of the outputs of this one.

    Overwrites state_bar; adds to params_bar and assembly_bar.
    """
    clear_state(tree, state_bar, params, call)
    if tree.integrator == RK4:
        runge_kutta_adjoint(
            tree, params, params_bar, assembly, assembly_bar, state, state_bar, work, work_bar, multiplier, output_bar, runge,
            runge_bar, call,
        )  # fmt: skip
    else:
        clear_work(tree, work, work_bar)
        integration_adjoint(tree, params, params_bar, state, state_bar, work, work_bar)
        articulated_adjoint(tree, assembly, assembly_bar, work, work_bar, multiplier, call)
        forces_adjoint(tree, params, params_bar, assembly, assembly_bar, state, state_bar, work, work_bar, call)
        tendons_adjoint(tree, params, params_bar, state, state_bar, work, work_bar)
        if call.wants_outputs != 0:
            outputs_adjoint(tree, assembly, assembly_bar, work, work_bar, output_bar)
        kinematics_adjoint(tree, params_bar, assembly_bar, state, state_bar, work, work_bar, call)
