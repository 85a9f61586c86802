"""Named outputs of a rollout: which there are, and room for them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from ...model.arrays import Model
from .inputs import Inputs

if TYPE_CHECKING:
    pass


OUTPUTS = {
    "link.position": (3,), "link.rotation": (3, 3), "link.velocity": (6,), "contact.force": (3,), "contact.torque": (3,),
}  # fmt: skip


# of these, what belongs to the step that led to a state
LOADS = ("contact.force", "contact.torque")


def empty_outputs(model: Model, inputs: Inputs, names: Iterable[str]) -> dict[str, np.ndarray]:
    """Room for named outputs; nothing has touched before the first step."""
    shape = (inputs.steps + 1, inputs.batch, model.n_links)
    found = {o: np.empty((*shape, *OUTPUTS[o])) for o in names}
    for name in LOADS:
        if name in found:
            found[name][0] = 0.0
    return found


def wanted(names: Iterable[str]) -> dict[str, int]:
    """Which outputs a call is about: of states, and of steps."""
    names = tuple(names)
    is_load = [name in LOADS for name in names]
    return {"wants_outputs": int(not all(is_load)), "wants_wrenches": int(any(is_load))}
