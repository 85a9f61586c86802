"""Where a swinging foot goes: to its foothold (Raibert 1986), on a parabola."""

from __future__ import annotations

import numpy as np

from .controller import Command, cross, turn_about_z
from .convex import Body


def foothold(
    hips: np.ndarray, body: Body, command: Command, stance: float, left: np.ndarray, feedback: float
) -> np.ndarray:
    """Places (4, 3) relative to the body's origin, in world axes, for feet that land in `left` seconds (4,) and then stand for
    `stance` seconds: half of the stance is to be in front of the hip, and more where the body is faster than told."""
    turn = turn_about_z(body.angles[2])
    wanted = turn @ np.array([command.forward, command.sideways, 0.0])
    spin = np.array([0.0, 0.0, command.turning])
    hip = hips @ turn.T
    # a hip moves with the body's turning, too
    speed = body.velocity + cross(np.array([0.0, 0.0, body.turning[2]]), hip)
    told = wanted + cross(spin, hip)
    place = hip + speed * (left[:, None] + 0.5 * stance) + feedback * (speed - told)
    place[:, 2] = 0.0
    return place


def swing_point(start: np.ndarray, end: np.ndarray, share: np.ndarray, clearance: float) -> np.ndarray:
    """Points (4, 3) on the way from start to end: the parabola's middle is `clearance` above the higher of both. The foot
    hurries in the first half and settles in the second."""
    s = np.where(share <= 0.5, 0.8 * np.sin(np.pi * share), 0.8 + 0.4 * (share - 0.5))[:, None]
    point = start + s * (end - start)
    z0, z1 = start[:, 2], end[:, 2]
    top = np.maximum(z0, z1) + clearance
    # through (0, z0), (1/2, top), (1, z1)
    a, b = 2 * (z0 + z1) - 4 * top, 4 * top - 3 * z0 - z1
    s = s[:, 0]
    point[:, 2] = a * s * s + b * s + z0
    return point
