"""States in tangent coordinates: x = (tangent of q, qd), 2 nv numbers; a small turn counts as three of them, in body axes."""

from __future__ import annotations

import numpy as np

from ...model.arrays import FREE, SPHERICAL, Model, State


def coordinates(model: Model) -> tuple[list[int], list[int], list[tuple[int, int]]]:
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


def turn_basis(quaternion: np.ndarray) -> np.ndarray:
    """q (x) (0, e_k) for k = x, y, z: how a quaternion (..., 4) changes, twice over, under a small turn in body axes."""
    w, x, y, z = np.moveaxis(quaternion, -1, 0)
    return np.stack([np.stack(c, -1) for c in ((-x, w, z, -y), (-y, -z, w, x), (-z, y, -x, w))], -2)


def to_tangent(model: Model, q: np.ndarray, q_bar: np.ndarray) -> np.ndarray:
    """Cotangents (..., nq) of q as cotangents (..., nv) of its tangent coordinates."""
    plain_q, plain_dof, turns = coordinates(model)
    out = np.zeros((*q_bar.shape[:-1], model.nv))
    out[..., plain_dof] = q_bar[..., plain_q]
    for i, d in turns:
        basis = turn_basis(q[..., i : i + 4])
        out[..., d : d + 3] = 0.5 * np.einsum("...kj,...j->...k", basis, q_bar[..., i : i + 4])
    return out


def displaced(model: Model, q: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """How q (..., nq) changes along tangent coordinates (..., nv), to first order."""
    plain_q, plain_dof, turns = coordinates(model)
    out = np.zeros_like(q)
    out[..., plain_q] = turn[..., plain_dof]
    for i, d in turns:
        out[..., i : i + 4] = 0.5 * np.einsum("...kj,...k->...j", turn_basis(q[..., i : i + 4]), turn[..., d : d + 3])
    return out


def difference(model: Model, a: State, b: State) -> np.ndarray:
    """a - b in tangent coordinates, (..., 2 nv): a turn is that from b to a, in the axes of b."""
    plain_q, plain_dof, turns = coordinates(model)
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
    plain_q, plain_dof, turns = coordinates(model)
    rows = np.zeros((*q.shape[:-1], model.nv, model.nq))
    rows[..., plain_dof, plain_q] = 1.0
    for i, d in turns:
        rows[..., d : d + 3, i : i + 4] = 2.0 * turn_basis(q[..., i : i + 4])
    return rows
