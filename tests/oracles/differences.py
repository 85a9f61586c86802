"""Derivatives by central differences of fourth order, and what tests need to compare them with."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

import jointgrad as jg
from jointgrad.model.arrays import FREE, SPHERICAL


def central(f: Callable[[np.ndarray], np.ndarray], x, h: float, entries: Sequence[int] | None = None) -> np.ndarray:
    """d f / d x for the given flat entries of x (default: all), one row per entry.

    f maps a stack of points (n, *x.shape) to a stack of results (n, ...), so that one call may serve all of them. The
    error is h^4 times the fifth derivative over 30, plus rounding over h.
    """
    x = np.asarray(x, dtype=float)
    rows = np.arange(x.size) if entries is None else np.asarray(entries, dtype=int)
    if not len(rows):
        return np.zeros(0)
    moves = np.zeros((len(rows), x.size))
    moves[np.arange(len(rows)), rows] = h
    moves = moves.reshape(len(rows), *x.shape)
    one, minus_one, two, minus_two = np.split(f(np.concatenate([x + s * moves for s in (1, -1, 2, -2)])), 4)
    return (8 * (one - minus_one) - (two - minus_two)) / (12 * h)


def worst_error(found, expected, floor: float = 1e-3) -> float:
    """Largest relative error of an entry; entries below `floor` of the largest are measured against that."""
    found, expected = np.asarray(found), np.asarray(expected)
    largest = np.abs(expected).max(initial=0.0)
    if largest == 0.0:
        return float(np.abs(found).max(initial=0.0))
    return float((np.abs(found - expected) / np.maximum(np.abs(expected), floor * largest)).max())


def random_state(model: jg.Model, rng: np.random.Generator, batch: int | None = None) -> jg.State:
    """Coordinates and rates of order one, quaternions of length one."""
    shape = () if batch is None else (batch,)
    q, qd = rng.normal(size=(*shape, model.nq)), rng.normal(size=(*shape, model.nv))
    for i in model.topology.quaternions:
        q[..., i : i + 4] /= np.linalg.norm(q[..., i : i + 4], axis=-1, keepdims=True)
    return jg.State(q, qd)


def tangent_basis(model: jg.Model, q: np.ndarray) -> np.ndarray:
    """dq/dt = basis @ qd, (nq, nv): a quaternion turns by half its product with the rate in body axes."""
    basis, tree = np.zeros((model.nq, model.nv)), model.topology.tree
    for kind, i, d, n in zip(tree["kind"], tree["q"], tree["dof"], tree["n_dof"], strict=True):
        if kind == FREE:
            basis[i : i + 3, d : d + 3] = np.eye(3)
            i, d, n = i + 3, d + 3, 3
        if kind in (SPHERICAL, FREE):
            w, x, y, z = q[i : i + 4]
            basis[i : i + 4, d : d + n] = 0.5 * np.array([[-x, -y, -z], [w, -z, y], [z, w, -x], [-y, x, w]])
        else:
            basis[i, d] = 1.0
    return basis
