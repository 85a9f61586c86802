"""States in tangent coordinates: x = (tangent of q, qd), 2 nv numbers, as `linearize` has them."""

from __future__ import annotations

import numpy as np

from ..engine.linearize import _coordinates, _turn_basis
from ..model.arrays import Model, State


def difference(model: Model, a: State, b: State) -> np.ndarray:
    """a - b in tangent coordinates, (..., 2 nv): a turn is that from b to a, in the axes of b."""
    plain_q, plain_dof, turns = _coordinates(model)
    out = np.zeros((*np.broadcast_shapes(a.q.shape, b.q.shape)[:-1], 2 * model.nv))
    out[..., plain_dof] = a.q[..., plain_q] - b.q[..., plain_q]
    for i, dof in turns:
        out[..., dof : dof + 3] = _turn(a.q[..., i : i + 4], b.q[..., i : i + 4])
    out[..., model.nv :] = a.qd - b.qd
    return out


def _turn(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The rotation vector of conj(b) a, for quaternions w x y z."""
    w = (a * b).sum(-1)
    av, bv = a[..., 1:], b[..., 1:]
    v = b[..., :1] * av - a[..., :1] * bv - np.cross(bv, av)
    length = np.linalg.norm(v, axis=-1)
    angle = 2 * np.arctan2(length, np.abs(w)) * np.where(w < 0, -1.0, 1.0)
    return v * np.where(length > 1e-12, angle / np.maximum(length, 1e-12), 2.0 / np.where(w == 0, 1.0, w))[..., None]


def rows_of(model: Model, q: np.ndarray) -> np.ndarray:
    """(..., nv, nq): what turns coordinates near q into tangent coordinates there; zero at q itself for a quaternion."""
    plain_q, plain_dof, turns = _coordinates(model)
    rows = np.zeros((*q.shape[:-1], model.nv, model.nq))
    rows[..., plain_dof, plain_q] = 1.0
    for i, d in turns:
        rows[..., d : d + 3, i : i + 4] = 2.0 * _turn_basis(q[..., i : i + 4])
    return rows
