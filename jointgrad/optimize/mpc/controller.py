"""What a walking controller is given and what it gives: the interface of all of them."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from ...model import rotations


class Command(NamedTuple):
    """Wanted speeds of the body: forward and sideways in its heading (m/s), turning (rad/s)."""

    forward: float = 0.0
    sideways: float = 0.0
    turning: float = 0.0


class Sensed(NamedTuple):
    """What is known at one moment: time (s), coordinates q (nq,) and rates qd (nv,) as jg.State has them, which feet touch (4,)."""

    time: float
    q: np.ndarray
    qd: np.ndarray
    contact: np.ndarray


class Controller(Protocol):
    def reset(self) -> None:
        """Forget the walk before."""

    def __call__(self, sensed: Sensed, command: Command) -> np.ndarray:
        """Controls (nu,) for the next moment."""


def rotation(quaternion: np.ndarray) -> np.ndarray:
    """Matrix that takes vectors of the body into the world; w, x, y, z, of any length."""
    return rotations.rotation(quaternion / np.sqrt(quaternion @ quaternion))


def roll_pitch_yaw(R: np.ndarray) -> np.ndarray:
    """Angles of turns about x, y and z, the last one first: R = Rz Ry Rx."""
    return np.array([
        np.arctan2(R[2, 1], R[2, 2]), np.arctan2(-R[2, 0], np.hypot(R[2, 1], R[2, 2])), np.arctan2(R[1, 0], R[0, 0]),
    ])  # fmt: skip


def turn_about_z(angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of vectors (..., 3); numpy.cross takes forty microseconds to look at its arguments."""
    x, y, z = b[..., 0], b[..., 1], b[..., 2]
    return np.stack((a[..., 1] * z - a[..., 2] * y, a[..., 2] * x - a[..., 0] * z, a[..., 0] * y - a[..., 1] * x), -1)
