"""A frame with z along each joint axis. Any would do: no result depends on the choice, so no derivative passes here."""

from __future__ import annotations

import numpy as np


def axis_references_of(axis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rotations (..., 9) that take z to the axes (..., 3), and the axes at unit length (Duff et al. 2017, eq. 9)."""
    axis = axis / np.sqrt((axis * axis).sum(-1, keepdims=True))
    x, y, z = np.moveaxis(axis, -1, 0)
    sign = np.where(z < 0, -1.0, 1.0)
    k = -1.0 / (sign + z)
    b = x * y * k
    columns = (1 + sign * x * x * k, sign * b, -sign * x), (b, sign + y * y * k, -y), (x, y, z)
    rotation = np.stack([columns[j][i] for i in range(3) for j in range(3)], -1)
    return np.ascontiguousarray(rotation), np.ascontiguousarray(axis)
