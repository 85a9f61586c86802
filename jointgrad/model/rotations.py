"""Rotation matrices of unit quaternions (w x y z), outside compiled code; `algebra.rotation` is the engine's."""

from __future__ import annotations

from typing import Any

import numpy as np


def rotation_rows(quaternion: Any) -> tuple[tuple[Any, Any, Any], ...]:
    """Three rows of three: numbers, or arrays where the four are arrays."""
    w, x, y, z = quaternion
    return (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )


def rotation(quaternion: Any) -> np.ndarray:
    """Matrices (..., 3, 3) of unit quaternions (..., 4)."""
    q = np.asarray(quaternion, dtype=np.float64)
    if q.ndim == 1:
        return np.array(rotation_rows(q.tolist()))
    return np.stack([np.stack(row, -1) for row in rotation_rows(np.moveaxis(q, -1, 0))], -2)


def turned_quaternion(a: Any, b: Any) -> tuple[float, ...]:
    """The quaternion of turn b in the frame that turn a leaves."""
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    w = a[0] * b[0] - a[1:] @ b[1:]
    return (float(w), *(float(x) for x in a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:])))
