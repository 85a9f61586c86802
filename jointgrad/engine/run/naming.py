"""Names of what a number in a record of contacts stands for."""

from __future__ import annotations

from ...model.arrays import JOINT_CONSTRAINT, NO_ROW, Model


def link_of_shape(model: Model, shape: int) -> str:
    j = model.topology.tree["shape_link"][shape]
    return model.link_names[j] if j >= 0 else "world"


def source_names(model: Model, number: float) -> tuple[str, str]:
    """The two links of a pair of shapes, or the joint or loop of a tie, as margins.py numbers them."""
    tree, k = model.topology.tree, int(number)
    if k >= 0:
        return link_of_shape(model, tree["pair_a"][k]), link_of_shape(model, tree["pair_b"][k])
    t = -1 - k
    if tree["constraint_kind"][t] != JOINT_CONSTRAINT:
        return model.topology.shape_names[tree["constraint_a"][t]].rpartition(".")[0], "loop"
    names = [
        model.joint_names[tree["constraint_frame"][r]]
        for r in range(3 * t, 3 * t + 3)
        if tree["constraint_row"][r] != NO_ROW
    ]
    return ", ".join(dict.fromkeys(names)), "limit or friction"
