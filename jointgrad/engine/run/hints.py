"""Mistakes that run without an error and that newcomers make: one warning each, silenced by its name.

    warnings.filterwarnings("ignore", "no-ground")

They are looked for when a world is first run.
"""

from __future__ import annotations

import numpy as np

from ...model.arrays import FREE, Model
from ...model.errors import HintWarning, warn_caller

# a quaternion whose last number is so large and the others so small: no turn, if w is written last
LAST = 0.995


def hint(model: Model, q: np.ndarray) -> None:
    """Of the first run of a world, from coordinates (batch, nq)."""
    if "hinted" in model.workers or not len(q):
        return
    model.workers["hinted"] = []
    _hint_quaternions(model, q[0])
    _hint_ground(model)


def _hint_quaternions(model: Model, q: np.ndarray) -> None:
    for start in model.topology.quaternions:
        w, x, y, z = q[start : start + 4]
        if abs(z) > LAST and abs(w) < 0.1 and abs(np.linalg.norm((w, x, y, z)) - 1.0) < 1e-3:
            warn_caller(
                f"w-last: q[{start}:{start + 4}] is {np.round(q[start : start + 4], 4).tolist()}, half a turn about z. Quaternions "
                "are w x y z here: no turn is (1, 0, 0, 0)",
                HintWarning,
            )
            return


def _hint_ground(model: Model) -> None:
    tree = model.topology.tree
    n, falls = tree["n_bodies"], np.any(model.params["world.gravity"])
    free = [b for b in range(n) if tree["kind"][b] == FREE]
    if not falls or not free or not tree["n_shapes"]:
        return
    bodies = set(tree["shape_body"])
    # what hangs on the world, or is tied, does not fall
    is_held = any(tree["parent"][b] == n and tree["kind"][b] != FREE for b in range(n)) or any(tree["constraint_kind"])
    if n in bodies or is_held:
        return
    link = model.link_names[list(tree["link_body"]).index(free[0])]
    warn_caller(
        f'no-ground: "{link}" falls, and there is nothing that it could land on: world.add_ground(), or compile(contact=None) '
        "where that is meant",
        HintWarning,
    )
