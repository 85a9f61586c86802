"""Forces at contact points, ours from the impulses of one step, MuJoCo's from its solver, both by name of the shapes."""

from __future__ import annotations

import mujoco
import numpy as np

import jointgrad as jg
from jointgrad.engine.kernels.workspace import SCHEMA
from jointgrad.engine.run.runtime import address, worker


def our_normal_forces(model: jg.Model, state: jg.State, u=None) -> dict[tuple[str, str], float]:
    """Sum over the points of each pair of the normal impulse in one step from this state, per time, N."""
    tree, names = model.topology.tree, model.topology.shape_names
    q, qd = np.array(state.q)[None], np.array(state.qd)[None]
    u = np.zeros((1, 1, model.nu)) if u is None else np.asarray(u, dtype=float).reshape(1, 1, -1)
    found: dict[tuple[str, str], float] = {}
    with worker(model) as one:
        one.assembled_for = None
        one.take_params(model)
        one.set(first=0, last=1, batch=1, steps=1, q0=address(q), qd0=address(qd), u=address(u), force=0, force_step=0)
        one.run("evaluation")
        one.assembled_for = None
        integers = one.frame.integers
        n = int(integers[SCHEMA.slots["block.n"]])
        source, kind = (integers[integers[SCHEMA.slots[f"block.{w}"]] :][:n] for w in ("source", "kind"))
        pair = integers[integers[SCHEMA.slots["touch.pair"]] :]
        x = one.frame.table("block.impulse")[:n, 0, 0, 0]
        for k in range(n):
            if kind[k] == 0:  # a point
                p = pair[source[k]]
                key = names[tree["pair_a"][p]], names[tree["pair_b"][p]]
                found[key] = found.get(key, 0.0) + float(x[k]) / float(model.params["world.dt"])
    return found


def mujoco_normal_forces(m: mujoco.MjModel, d: mujoco.MjData) -> dict[str, float]:
    """Sum over the points of each moving body of the normal force, N."""
    found: dict[str, float] = {}
    force = np.zeros(6)
    for i in range(d.ncon):
        mujoco.mj_contactForce(m, d, i, force)
        body = max(m.geom_bodyid[d.contact[i].geom1], m.geom_bodyid[d.contact[i].geom2])
        found[m.body(body).name] = found.get(m.body(body).name, 0.0) + force[0]
    return found
