"""Full Jacobians of one step, in tangent coordinates: a small turn of a quaternion counts as three numbers, body axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..model.arguments import check_choice
from ..model.arrays import FREE, SPHERICAL, Model, State
from .rollout import _checked_inputs, rolled_out
from .runtime import as_array


def linearize(
    model: Model, state: State, u: Any = None, force: Any = None, wrt: str = "state", threads: int | None = None
) -> tuple[np.ndarray, ...] | dict[str, np.ndarray]:
    """A (batch, 2nv, 2nv) and B (batch, 2nv, nu) of the next state by the state and the controls; rows and columns are
    (tangent of q, qd), as MuJoCo's mjd_transitionFD orders them. With wrt="params": a dict name -> (batch, 2nv, ...).

    Each row is one cotangent pulled back, and rows fill the lanes of a pack.
    """
    check_choice("wrt", wrt, ("state", "params"))
    inputs = _checked_inputs(model, state, None if u is None else as_array("u", u)[None], 1, force)
    n, batch, is_batched = 2 * model.nv, inputs.batch, inputs.is_batched
    per_row = _per_row(model, batch, n, wrt == "params")
    rows = [np.repeat(x, n, axis=0) for x in (inputs.q, inputs.qd)]
    controls = None if inputs.u is None else np.repeat(inputs.u, n, axis=1)
    pushes = None if inputs.force is None else np.repeat(inputs.force, n, axis=0)
    motion = rolled_out(per_row, State(*rows), controls, 1, pushes, threads=threads, warns=False)
    seeds = _seeds(model, motion.last.q[::n])
    gradient = motion.backward(seeds[0], seeds[1], wrt=("params",) if wrt == "params" else ("state", "u"))
    strip = (lambda x: x) if is_batched else (lambda x: x[0])
    if wrt == "params":
        return {name: strip(bar.reshape(batch, n, *bar.shape[1:])) for name, bar in gradient.params.items()}
    state_rows = np.concatenate([to_tangent(model, rows[0], gradient.q), gradient.qd], axis=-1)
    by_u = gradient.u[0] if model.nu else np.zeros((batch * n, 0))
    return strip(state_rows.reshape(batch, n, n)), strip(by_u.reshape(batch, n, model.nu))


def _per_row(model: Model, batch: int, n: int, wants_params: bool) -> Model:
    """The model with its parameters once per row, where rows need their own."""
    if model.batch is None and not wants_params:
        return model
    values = {}
    for name, value in model.params.items():
        if wants_params or not model.is_shared(name):
            per_env = value if not model.is_shared(name) else np.broadcast_to(value, (batch, *value.shape))
            values[name] = np.repeat(per_env, n, axis=0)
    return model.with_params({**model.params, **values}, batch * n)


def _coordinates(model: Model) -> tuple[list[int], list[int], list[tuple[int, int]]]:
    """Coordinates that are their own tangent, the dofs they belong to, and (q, dof) where quaternions begin."""
    tree = model.topology.tree
    plain_q: list[int] = []
    plain_dof: list[int] = []
    turns: list[tuple[int, int]] = []
    for kind, q, dof in zip(tree["kind"], tree["q"], tree["dof"], strict=True):
        if kind == SPHERICAL:
            turns.append((q, dof))
        elif kind == FREE:
            plain_q += range(q, q + 3)
            plain_dof += range(dof, dof + 3)
            turns.append((q + 3, dof + 3))
        else:
            plain_q.append(q)
            plain_dof.append(dof)
    return plain_q, plain_dof, turns


def _turn_basis(quaternion: np.ndarray) -> np.ndarray:
    """q (x) (0, e_k) for k = x, y, z: how a quaternion (..., 4) changes, twice over, under a small turn in body axes."""
    w, x, y, z = np.moveaxis(quaternion, -1, 0)
    return np.stack([np.stack(c, -1) for c in ((-x, w, z, -y), (-y, -z, w, x), (-z, y, -x, w))], -2)


def to_tangent(model: Model, q: np.ndarray, q_bar: np.ndarray) -> np.ndarray:
    """Cotangents (..., nq) of q as cotangents (..., nv) of its tangent coordinates."""
    plain_q, plain_dof, turns = _coordinates(model)
    out = np.zeros((*q_bar.shape[:-1], model.nv))
    out[..., plain_dof] = q_bar[..., plain_q]
    for i, d in turns:
        basis = _turn_basis(q[..., i : i + 4])
        out[..., d : d + 3] = 0.5 * np.einsum("...kj,...j->...k", basis, q_bar[..., i : i + 4])
    return out


def _seeds(model: Model, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cotangents of the next q and qd that single out each row, (batch * 2nv, ...)."""
    batch, nv = q.shape[0], model.nv
    q_bar, qd_bar = np.zeros((batch, 2 * nv, model.nq)), np.zeros((batch, 2 * nv, nv))
    plain_q, plain_dof, turns = _coordinates(model)
    q_bar[:, plain_dof, plain_q] = 1.0
    for i, d in turns:
        # a unit quaternion's turn is 2 vec(conj(q) dq); its row is the basis, twice
        q_bar[:, d : d + 3, i : i + 4] = 2.0 * _turn_basis(q[:, i : i + 4])
    qd_bar[:, np.arange(nv, 2 * nv), np.arange(nv)] = 1.0
    return q_bar.reshape(-1, model.nq), qd_bar.reshape(-1, nv)
