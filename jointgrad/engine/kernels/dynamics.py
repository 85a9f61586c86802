"""From a state to its acceleration, but for impulses: the stages that every integrator and every look at a state have in common.

The reverse is in two parts, because a Runge-Kutta step has the wrenches of its contacts to reverse between them.
"""

from ...compiler.kernel import inlined
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
def dynamics(frame, detects):
    """Without `detects` nothing is looked for that touches."""
    tree = frame.tree
    kinematics(frame)
    if tree.n_nets != 0:
        grafts(frame)
    if detects != 0:
        detection(frame)
    if tree.n_point_nets != 0:
        point_grafts(frame)
    if tree.has_soft_contact != 0:
        springs(frame)
    if tree.n_point_forces != 0:
        grafted_springs(frame)
    if tree.n_tendons != 0:
        tendons(frame)
    forces(frame)
    if tree.n_nets != 0:
        grafted_forces(frame)
    articulated(frame)


# the reverse ------------------------------------------------------------------------------------------------------------


@inlined
def acceleration_adjoint(frame, bar):
    """From accelerations to the forces of contact and the rest."""
    tree = frame.tree
    articulated_adjoint(frame, bar)
    if tree.n_nets != 0:
        grafted_forces_adjoint(frame, bar)
    forces_adjoint(frame, bar)
    if tree.n_tendons != 0:
        tendons_adjoint(frame, bar)


@inlined
def place_adjoint(frame, bar, detects, wants_outputs):
    """From the forces of contact to the state; with `wants_outputs`, also from the state's named outputs."""
    tree = frame.tree
    if tree.n_point_forces != 0:
        grafted_springs_adjoint(frame, bar)
    if tree.has_soft_contact != 0:
        springs_adjoint(frame, bar)
    if tree.n_point_nets != 0:
        point_grafts_adjoint(frame, bar)
    if detects != 0:
        detection_adjoint(frame, bar)
    if tree.n_nets != 0:
        grafts_adjoint(frame, bar)
    if wants_outputs != 0:
        outputs_adjoint(frame, bar)
    kinematics_adjoint(frame, bar)
