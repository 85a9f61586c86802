"""From a state to its acceleration, but for impulses: the stages that every integrator and every look at a state have in common.

The reverse is in two parts, because a Runge-Kutta step has the loads of its contacts to reverse between them.
"""

from ..compiler.kernel import inlined
from .stages.articulated import articulated, articulated_adjoint
from .stages.detection import detection, detection_adjoint
from .stages.forces import forces, forces_adjoint
from .stages.grafts import grafted_forces, grafted_forces_adjoint, grafts, grafts_adjoint
from .stages.grafts.points import grafted_springs, grafted_springs_adjoint, point_grafts, point_grafts_adjoint
from .stages.kinematics import kinematics, kinematics_adjoint
from .stages.outputs import outputs_adjoint
from .stages.springs import springs, springs_adjoint
from .stages.tendons import tendons, tendons_adjoint


@inlined
def dynamics(tree, params, assembly, state, work, touch, call, detects):
    """Without `detects` nothing is looked for that touches."""
    kinematics(tree, params, assembly, state, work)
    if tree.n_nets != 0:
        grafts(tree, params, assembly, state, work)
    if detects != 0:
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


# the reverse ------------------------------------------------------------------------------------------------------------


@inlined
def acceleration_adjoint(
    tree, params, params_bar, assembly, assembly_bar, state, state_bar, work, work_bar, multiplier, call
):  # fmt: skip
    """From accelerations to the forces of contact and the rest."""
    articulated_adjoint(tree, assembly, assembly_bar, work, work_bar, multiplier, call)
    if tree.n_nets != 0:
        grafted_forces_adjoint(tree, params, assembly, assembly_bar, state, state_bar, work, work_bar)
    forces_adjoint(tree, params, params_bar, assembly, assembly_bar, state, state_bar, work, work_bar, call)
    if tree.n_tendons != 0:
        tendons_adjoint(tree, params, params_bar, state, state_bar, work, work_bar)


@inlined
def place_adjoint(
    tree, params, params_bar, assembly, assembly_bar, state, state_bar, work, work_bar, touch, touch_bar, output_bar, call,
    detects, wants_outputs
):  # fmt: skip
    """From the forces of contact to the state; with `wants_outputs`, also from the state's named outputs."""
    if tree.n_point_forces != 0:
        grafted_springs_adjoint(tree, params, work, work_bar, touch, touch_bar)
    if tree.has_soft_contact != 0:
        springs_adjoint(tree, params, params_bar, work, work_bar, touch, touch_bar)
    if tree.n_point_nets != 0:
        point_grafts_adjoint(
            tree, params, params_bar, assembly, assembly_bar, state_bar, work, work_bar, touch, touch_bar, call
        )
    if detects != 0:
        detection_adjoint(tree, params, params_bar, assembly_bar, work, work_bar, touch, touch_bar)
    if tree.n_nets != 0:
        grafts_adjoint(tree, params, params_bar, assembly, assembly_bar, state, state_bar, work, work_bar, call)
    if wants_outputs != 0:
        outputs_adjoint(tree, assembly, assembly_bar, work, work_bar, output_bar)
    kinematics_adjoint(tree, params_bar, assembly_bar, state, state_bar, work, work_bar, call)
