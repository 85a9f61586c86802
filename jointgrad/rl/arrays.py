"""What NumPy, PyTorch and JAX arrays have in common, so that a task is written once for all three.

PyTorch takes NumPy's names for most of what a task needs (`axis`, `concat`, `clip`, `where`, `linalg.cross`); the few
differences are here.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

Array = Any  # numpy.ndarray, torch.Tensor or jax.Array


def namespace(x: Array) -> Any:
    """The module whose functions take such an array."""
    if type(x).__module__.partition(".")[0] == "torch":
        return sys.modules["torch"]
    return x.__array_namespace__()


def like(x: Array, constant: Any) -> Array:
    """A constant as an array of x's kind and precision; a copy, for PyTorch does not take arrays that are read-only."""
    return namespace(x).asarray(np.array(constant), dtype=x.dtype)


def chosen(condition: Array, value: float, x: Array) -> Array:
    """A number where a condition holds and zero elsewhere, shaped like x."""
    xp = namespace(x)
    return xp.where(condition, xp.full_like(x, value), xp.zeros_like(x))


def flat(x: Array) -> Array:
    """All that belongs to an environment in one row: (batch, links, n) becomes (batch, links n)."""
    return x.reshape(*x.shape[:-2], x.shape[-2] * x.shape[-1])


def sum_of_squares(x: Array) -> Array:
    """Of each environment's row."""
    return (x * x).sum(-1)


def cross(a: Array, b: Array) -> Array:
    """Of vectors (..., 3). NumPy's own takes ten times as long for a hundred of them."""
    xp = namespace(a)
    if xp is not np:
        return xp.linalg.cross(a, b)
    (ax, ay, az), (bx, by, bz) = (np.moveaxis(x, -1, 0) for x in (a, b))
    return np.stack((ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx), axis=-1)
