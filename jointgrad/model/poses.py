"""Where a world starts: rotation and position of every frame."""

from __future__ import annotations

from typing import Any

import numpy as np

from .arrays import FIXED, FREE, PRISMATIC, SPHERICAL


def rotation(quaternion: Any) -> np.ndarray:
    w, x, y, z = np.asarray(quaternion, dtype=np.float64) / np.linalg.norm(quaternion)
    return np.array([
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ])  # fmt: skip


def quaternion(R: np.ndarray) -> np.ndarray:
    """Of a rotation matrix: the row of the largest of the four squares."""
    xx, yy, zz = np.diag(R)
    squares = np.array([
        [1 + xx + yy + zz, R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]],
        [R[2, 1] - R[1, 2], 1 + xx - yy - zz, R[0, 1] + R[1, 0], R[0, 2] + R[2, 0]],
        [R[0, 2] - R[2, 0], R[0, 1] + R[1, 0], 1 - xx + yy - zz, R[1, 2] + R[2, 1]],
        [R[1, 0] - R[0, 1], R[0, 2] + R[2, 0], R[1, 2] + R[2, 1], 1 - xx - yy + zz],
    ])  # fmt: skip
    row = squares[np.argmax(np.diag(squares))]
    return row / np.linalg.norm(row)


def initial_poses(frames: list) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rotation and position of every frame where the world starts."""
    found: list[tuple[np.ndarray, np.ndarray]] = []
    for f in frames:
        R, p = found[f.parent] if f.parent is not None else (np.eye(3), np.zeros(3))
        if f.kind == FREE:
            R, p = rotation(f.initial[3:]), np.asarray(f.initial[:3], dtype=np.float64)
        else:
            R, p = R @ rotation(f.orientation), p + R @ np.asarray(f.position, dtype=np.float64)
            if f.kind == SPHERICAL:
                R = R @ rotation(f.initial)
            elif f.kind != FIXED:
                axis = np.asarray(f.axis, dtype=np.float64) / np.linalg.norm(f.axis)
                if f.kind == PRISMATIC:
                    p = p + R @ axis * f.initial
                else:
                    R = R @ rotation((np.cos(f.initial / 2), *(np.sin(f.initial / 2) * axis)))
        found.append((R, p))
    return found
