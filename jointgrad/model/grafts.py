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
# what is seen
SEE_POSITION, SEE_RATE, SEE_CONTROL, SEE_LINK = range(4)
# what is changed: by how much, and what
ADD, REPLACE, SCALE, DISSIPATE = range(4)
MODES = {"residual": ADD, "replace": REPLACE, "scale": SCALE, "dissipate": DISSIPATE}
(
    JOINT_FORCE, LINK_FORCE, CONTROL, JOINT_DAMPING, JOINT_STIFFNESS, JOINT_ARMATURE, JOINT_FRICTION, ACTUATOR_GAIN,
    ACTUATOR_DAMPING, PAIR_FRICTION, PAIR_RESTITUTION, PAIR_STIFFNESS, PAIR_DAMPING, WORLD_DENSITY, WORLD_VISCOSITY,
) = range(15)  # fmt: skip
TARGETS = {
    "joint.force": JOINT_FORCE, "link.force": LINK_FORCE, "control": CONTROL, "joint.damping": JOINT_DAMPING,
    "joint.stiffness": JOINT_STIFFNESS, "joint.armature": JOINT_ARMATURE, "joint.friction": JOINT_FRICTION,
    "actuator.gain": ACTUATOR_GAIN, "actuator.damping": ACTUATOR_DAMPING, "pair.friction": PAIR_FRICTION,
    "pair.restitution": PAIR_RESTITUTION, "pair.stiffness": PAIR_STIFFNESS, "pair.damping": PAIR_DAMPING,
    "world.density": WORLD_DENSITY, "world.viscosity": WORLD_VISCOSITY,
}  # fmt: skip

COUNTS = ("n_nets", "n_senses", "n_aims", "n_nodes", "n_weights", "n_link_aims")
LISTS = (
    "net_weight", "net_node", "net_layer", "net_layers", "layer_in", "layer_out", "layer_kind", "sense_kind", "sense_index",
    "sense_node", "aim_kind", "aim_index", "aim_node", "aim_mode", "aim_rate", "aim_floor",
)  # fmt: skip


def no_grafts() -> dict[str, Any]:
    """A world without networks."""
    return {name: 0 for name in COUNTS} | {name: [] for name in LISTS}
