"""Full Jacobians of one step, in tangent coordinates: a small turn of a quaternion counts as three numbers, body axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...model.arguments import check_choice
from ...model.arrays import Model, State
from ..gradients import Meaning
from ..run.inputs import checked_inputs
from ..run.rollout import rolled_out
from ..run.runtime import as_array
from ..run.tangent_coordinates import coordinates, to_tangent, turn_basis
from ..run.trajectory import EXACT, check_meaning


def linearize(
    model: Model,
    state: State,
    u: Any = None,
    force: Any = None,
    wrt: str = "state",
    threads: int | None = None,
    gradient: Meaning = EXACT,
) -> tuple[np.ndarray, ...] | dict[str, np.ndarray]:
    """A (batch, 2nv, 2nv) and B (batch, 2nv, nu) of the next state by the state and the controls; rows and columns are
    (tangent of q, qd), as MuJoCo's mjd_transitionFD orders them, and then further state where the model has any.
    With wrt="params": a dict name -> (batch, 2nv, ...).

    Each row is one cotangent pulled back, and rows fill the lanes of a pack. gradient: what they mean, as in jg.rollout;
    `jg.MovingImpacts()` changes A alone, of steps in which something meets.
    """
    check_choice("wrt", wrt, ("state", "params"))
    check_meaning(gradient)
    inputs = checked_inputs(model, state, None if u is None else as_array("u", u)[None], 1, force)
    n, batch, is_batched = 2 * model.nv + model.n_more, inputs.batch, inputs.is_batched
    wide = per_row(model, batch, n, wrt == "params")
    rows = [np.repeat(x, n, axis=0) for x in (inputs.q, inputs.qd, inputs.more) if x is not None]
    controls = None if inputs.u is None else np.repeat(inputs.u, n, axis=1)
    pushes = None if inputs.force is None else np.repeat(inputs.force, n, axis=0)
    motion = rolled_out(wide, State(*rows), controls, 1, pushes, threads=threads, warns=False)
    motion.gradient = gradient
    seeds = _seeds(model, motion.last.q[::n])
    wanted = ("params",) if wrt == "params" else ("state", "u")
    back = motion.backward(seeds[0], seeds[1], wrt=wanted, more_bar=seeds[2] if model.n_more else None)
    strip = (lambda x: x) if is_batched else (lambda x: x[0])
    if wrt == "params":
        return {name: strip(bar.reshape(batch, n, *bar.shape[1:])) for name, bar in back.params.items()}
    further = [] if back.more is None else [back.more]
    state_rows = np.concatenate([to_tangent(model, rows[0], back.q), back.qd, *further], axis=-1)
    by_u = back.u[0] if model.nu else np.zeros((batch * n, 0))
    own_u = None if inputs.u is None else inputs.u[0]
    A = gradient.jacobian(model, State(inputs.q, inputs.qd), own_u, inputs.force, state_rows.reshape(batch, n, n))
    return strip(A), strip(by_u.reshape(batch, n, model.nu))


def per_row(model: Model, batch: int, n: int, wants_params: bool) -> Model:
    """The model with its parameters once per row, where rows need their own."""
    if model.batch is None and not wants_params:
        return model
    values = {}
    for name, value in model.params.items():
        if wants_params or not model.is_shared(name):
            per_env = value if not model.is_shared(name) else np.broadcast_to(value, (batch, *value.shape))
            values[name] = np.repeat(per_env, n, axis=0)
    return model.with_params({**model.params, **values}, batch * n)


def _seeds(model: Model, q: np.ndarray) -> tuple[np.ndarray, ...]:
    """Cotangents of the next q, qd and further state that single out each row, (batch * rows, ...)."""
    batch, nv, rows = q.shape[0], model.nv, 2 * model.nv + model.n_more
    q_bar, qd_bar, more_bar = (np.zeros((batch, rows, n)) for n in (model.nq, nv, model.n_more))
    plain_q, plain_dof, turns = coordinates(model)
    q_bar[:, plain_dof, plain_q] = 1.0
    for i, d in turns:
        # a unit quaternion's turn is 2 vec(conj(q) dq); its row is the basis, twice
        q_bar[:, d : d + 3, i : i + 4] = 2.0 * turn_basis(q[:, i : i + 4])
    qd_bar[:, np.arange(nv, 2 * nv), np.arange(nv)] = 1.0
    more_bar[:, 2 * nv :] = np.eye(model.n_more)
    return tuple(bar.reshape(batch * rows, bar.shape[-1]) for bar in (q_bar, qd_bar, more_bar))
