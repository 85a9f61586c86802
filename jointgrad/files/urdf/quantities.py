"""Numbers of a URDF file as ours: poses, inertias, sizes, limits."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

import numpy as np

from ...algebra.rotation import matrix
from ...model.description import INFINITE, Joint
from ..xml import Element
from .tree import SCALAR

LARGEST = sys.float_info.max
GREY = (0.5, 0.5, 0.5, 1.0)
# beside angles that do not give back every bit of a quaternion; other readers pass over it
EXACT = "quaternion_wxyz"
NO_TURN = (1.0, 0.0, 0.0, 0.0)


def pose_of(element: Element) -> tuple[tuple[float, ...], tuple[float, ...]]:
    origin = element.first("origin")
    if origin is None:
        return (0.0, 0.0, 0.0), NO_TURN
    position = origin.floats("xyz", 3, (0.0, 0.0, 0.0))
    if "quat_xyzw" in origin.attributes:
        x, y, z, w = origin.floats("quat_xyzw", 4)
        length = math.sqrt(x * x + y * y + z * z + w * w)
        if not length:
            raise origin.error("the quaternion of <origin> has zero length")
        return position, (w / length, x / length, y / length, z / length)
    turn = quaternion_from_rpy(*origin.floats("rpy", 3, (0.0, 0.0, 0.0)))
    exact = origin.floats(EXACT, 4)
    return position, turn if exact is None or not _is_same_turn(exact, turn) else exact


def _is_same_turn(a: Sequence[float], b: Sequence[float]) -> bool:
    """To twelve digits: angles that were edited after us win over the quaternion that we left beside them."""
    length = math.sqrt(sum(c * c for c in a))
    sign = math.copysign(length, sum(c * d for c, d in zip(a, b, strict=True)))
    return all(abs(c - sign * d) <= 1e-12 * length for c, d in zip(a, b, strict=True)) and length > 0


def quaternion_from_rpy(roll: float, pitch: float, yaw: float) -> tuple[float, ...]:
    """w x y z of turns about the fixed axes x, then y, then z; of the two signs the one whose first entry is positive."""
    cr, sr = math.cos(roll / 2), math.sin(roll / 2)
    cp, sp = math.cos(pitch / 2), math.sin(pitch / 2)
    cy, sy = math.cos(yaw / 2), math.sin(yaw / 2)
    q = (
        cr * cp * cy + sr * sp * sy, sr * cp * cy - cr * sp * sy,
        cr * sp * cy + sr * cp * sy, cr * cp * sy - sr * sp * cy,
    )  # fmt: skip
    return canonical(q)


def rpy_from_quaternion(quaternion: Sequence[float]) -> tuple[float, float, float]:
    """Angles about the fixed axes x, then y, then z, to rounding."""
    w, x, y, z = canonical(quaternion)
    sine = 2 * (w * y - z * x)
    if abs(sine) < 0.9:
        angles = (
            math.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y)), math.asin(sine),
            math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)),
        )  # fmt: skip
    else:  # near the pole only sum and difference of roll and yaw are well defined
        half_sum, half_difference = math.atan2(x + z, w - y), math.atan2(x - z, w + y)
        pitch = 2 * math.atan2(math.hypot(w + y, x - z), math.hypot(w - y, x + z)) - math.pi / 2
        angles = (half_sum + half_difference, pitch, half_sum - half_difference)
    return angles


def canonical(q: Sequence[float]) -> tuple[float, ...]:
    first = next((c for c in q if c), 1.0)
    return tuple(float(c) if first > 0 else 0.0 - c for c in q)


def product(a: Sequence[float], b: Sequence[float]) -> tuple[float, ...]:
    if tuple(b) == NO_TURN:
        return tuple(a)
    u, v = np.array(a[1:]), np.array(b[1:])
    return canonical((a[0] * b[0] - u @ v, *(a[0] * v + b[0] * u + np.cross(u, v))))


def turn_from_z(normal: Sequence[float], element: Element) -> tuple[float, ...]:
    x, y, z = normal
    length = math.sqrt(x * x + y * y + z * z)
    if not length:
        raise element.error("the normal of a <plane> has zero length")
    half = math.sqrt(max(0.0, (1 + z / length) / 2))
    return (half, -y / length / 2 / half, x / length / 2 / half, 0.0) if half > 1e-9 else (0.0, 1.0, 0.0, 0.0)


def axis_of(element: Element, kind: str) -> tuple[float, ...]:
    axis = element.first("axis")
    xyz = (1.0, 0.0, 0.0) if axis is None else axis.floats("xyz", 3, (1.0, 0.0, 0.0))
    if not any(xyz) and kind in (*SCALAR, "planar"):
        raise (axis or element).error(f'the axis of joint "{element.get("name")}" has zero length')
    return xyz


def _only(element: Element, tag: str) -> Element:
    found = element.all(tag)
    if len(found) != 1:
        raise element.error(f"<{element.tag}> holds {len(found)} times <{tag}>; one is needed")
    return found[0]


def mass_of(inertial: Element) -> float:
    element = _only(inertial, "mass")
    element.require("value")
    return element.number("value")


def inertia_of(inertial: Element) -> tuple[float, ...]:
    element = _only(inertial, "inertia")
    for name in ("ixx", "iyy", "izz"):
        element.require(name)
    return tuple(element.number(name, 0.0) for name in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"))


def turned(inertia: tuple[float, ...], turn: tuple[float, ...]) -> tuple[float, ...]:
    """Inertia in the link's axes: R I R^T. What is not turned keeps every bit."""
    if turn == NO_TURN:
        return inertia
    xx, xy, xz, yy, yz, zz = inertia
    R = np.array(matrix(turn), dtype=np.float64).reshape(3, 3)
    m = R @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R.T
    return tuple(float(v) for v in (m[0, 0], m[0, 1], m[0, 2], m[1, 1], m[1, 2], m[2, 2]))


def size_of(form: Element) -> tuple[float, ...]:
    names = {"box": ("size",), "sphere": ("radius",)}.get(form.tag, ("radius", "length"))
    for name in names:
        form.require(name)
    values = [form.floats(name, 3 if name == "size" else 1) for name in names]
    if any(v < 0 for row in values for v in row):
        raise form.error(f"a <{form.tag}> has a negative size")
    if form.tag == "box":
        return tuple(v / 2 for v in values[0])
    return tuple(row[0] / 2 if name == "length" else row[0] for name, row in zip(names, values, strict=True))


def scale_of(form: Element) -> tuple[float, ...]:
    scale = form.floats("scale", (1, 3), (1.0, 1.0, 1.0))
    return scale * 3 if len(scale) == 1 else scale


def unlimited(value: float) -> float:
    return math.copysign(math.inf, value) if abs(value) >= LARGEST else value


def force_limit(joint: Joint) -> tuple[float, float]:
    return (-joint.effort_limit, joint.effort_limit) if joint.effort_limit > 0 else INFINITE
