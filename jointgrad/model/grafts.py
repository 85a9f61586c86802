"""Numbers by which the engine knows what networks see, say and change; see grafts/blueprint.py for the words."""

from __future__ import annotations

from typing import Any

# activations
LINEAR, TANH, ELU, RELU, SOFTPLUS, SIN, SIGMOID = range(7)
ACTIVATIONS = {
    "linear": LINEAR,
    "tanh": TANH,
    "elu": ELU,
    "relu": RELU,
    "softplus": SOFTPLUS,
    "sin": SIN,
    "sigmoid": SIGMOID,
}
# what is seen: of the robot, of earlier networks, of a point that touches
SEE_POSITION, SEE_RATE, SEE_CONTROL, SEE_LINK, SEE_NODE, SEE_DEPTH, SEE_SLIDING, SEE_NORMAL, SEE_PLACE = range(9)
# how many numbers each of these is
WIDTHS = {SEE_LINK: 6, SEE_SLIDING: 4, SEE_NORMAL: 3, SEE_PLACE: 3}
# what is changed: by how much, and what
ADD, REPLACE, SCALE, DISSIPATE = range(4)
MODES = {"residual": ADD, "replace": REPLACE, "scale": SCALE, "dissipate": DISSIPATE}
(
    JOINT_FORCE, JOINT_ACCELERATION, LINK_FORCE, LINK_MASS, CONTROL, JOINT_DAMPING, JOINT_STIFFNESS, JOINT_ARMATURE,
    JOINT_FRICTION, ACTUATOR_GAIN, ACTUATOR_DAMPING, PAIR_FRICTION, PAIR_RESTITUTION, PAIR_STIFFNESS, PAIR_DAMPING,
    WORLD_DENSITY, WORLD_VISCOSITY, POINT_DEPTH, POINT_FRICTION, POINT_RESTITUTION, POINT_STIFFNESS, POINT_DAMPING,
    POINT_PRESS, POINT_DRAG,
) = range(24)  # fmt: skip
TARGETS = {
    "joint.force": JOINT_FORCE, "joint.acceleration": JOINT_ACCELERATION, "link.force": LINK_FORCE, "link.mass": LINK_MASS,
    "control": CONTROL, "joint.damping": JOINT_DAMPING, "joint.stiffness": JOINT_STIFFNESS, "joint.armature": JOINT_ARMATURE,
    "joint.friction": JOINT_FRICTION, "actuator.gain": ACTUATOR_GAIN, "actuator.damping": ACTUATOR_DAMPING,
    "pair.friction": PAIR_FRICTION, "pair.restitution": PAIR_RESTITUTION, "pair.stiffness": PAIR_STIFFNESS,
    "pair.damping": PAIR_DAMPING, "world.density": WORLD_DENSITY, "world.viscosity": WORLD_VISCOSITY,
    "contact.depth": POINT_DEPTH, "contact.friction": POINT_FRICTION, "contact.restitution": POINT_RESTITUTION,
    "contact.stiffness": POINT_STIFFNESS, "contact.damping": POINT_DAMPING, "contact.normal_force": POINT_PRESS,
    "contact.friction_force": POINT_DRAG,
}  # fmt: skip

# nodes and kept numbers of networks at points come once for each point that touches, after those of the robot
COUNTS = (
    "n_nets", "n_senses", "n_aims", "n_nodes", "n_weights", "n_link_aims", "n_mass_aims", "n_rate_aims", "n_point_nets",
    "n_point_nodes", "n_point_kept", "n_point_forces",
)  # fmt: skip
# net_row: the row of pair parameters whose points a network is for, -1 for one of the robot. net_sense, net_aim: where its senses
# and aims begin, and how many there are. aim_kept: of an aim at points, where its old values begin
LISTS = (
    "net_weight", "net_node", "net_layer", "net_layers", "net_row", "net_sense", "net_senses", "net_aim", "net_aims",
    "layer_in", "layer_out", "layer_kind", "sense_kind", "sense_index", "sense_node", "aim_kind", "aim_index", "aim_node",
    "aim_mode", "aim_rate", "aim_floor", "aim_kept",
)  # fmt: skip


def no_grafts() -> dict[str, Any]:
    """A world without networks."""
    return {name: 0 for name in COUNTS} | {name: [] for name in LISTS}
