"""Places in MJCF: position and quaternion (w x y z), and the many ways in which a file may write an orientation."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...model.rotations import rotation_rows
from ..xml import Element

Vector = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]
Pose = tuple[Vector, Quaternion]

NO_TURN: Quaternion = (1.0, 0.0, 0.0, 0.0)
ORIGIN: Vector = (0.0, 0.0, 0.0)
IDENTITY: Pose = (ORIGIN, NO_TURN)
# orientation in words other than a quaternion; the last one written wins, and all of them win over quat
ALTERNATIVES = ("axisangle", "xyaxes", "zaxis", "euler")
TINY = 1e-14


def product(a: Sequence[float], b: Sequence[float]) -> Quaternion:
    return (
        a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
        a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
        a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
        a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
    )


def turned(q: Sequence[float], v: Sequence[float]) -> Vector:
    if q[1] == q[2] == q[3] == 0:
        return (v[0], v[1], v[2])
    a, b, c = rotation_rows(q)
    return (
        a[0] * v[0] + a[1] * v[1] + a[2] * v[2],
        b[0] * v[0] + b[1] * v[1] + b[2] * v[2],
        c[0] * v[0] + c[1] * v[1] + c[2] * v[2],
    )


def compose(outer: Pose, inner: Pose) -> Pose:
    """A pose given in the frame of another, in the frame that one is given in."""
    x = turned(outer[1], inner[0])
    place = (outer[0][0] + x[0], outer[0][1] + x[1], outer[0][2] + x[2])
    return place, unit(product(outer[1], inner[1]))


def inverse(pose: Pose) -> Pose:
    (w, x, y, z), p = pose[1], pose[0]
    back: Quaternion = (w, -x, -y, -z)
    moved = turned(back, p)
    return (-moved[0], -moved[1], -moved[2]), back


def norm(v: Sequence[float]) -> float:
    return math.sqrt(sum(x * x for x in v))


def unit(q: Sequence[float]) -> Quaternion:
    n = norm(q)
    if n == 1.0 or n == 0.0:
        return NO_TURN if n == 0 else (q[0], q[1], q[2], q[3])
    return (q[0] / n, q[1] / n, q[2] / n, q[3] / n)


def about(axis: Sequence[float], angle: float) -> Quaternion:
    """The turn about a unit axis."""
    s = math.sin(angle / 2)
    return (math.cos(angle / 2), s * axis[0], s * axis[1], s * axis[2])


def from_z(direction: Sequence[float]) -> Quaternion:
    """The smallest turn that brings z to a unit direction."""
    axis = (-direction[1], direction[0], 0.0)
    s = norm(axis)
    axis = (1.0, 0.0, 0.0) if s < 1e-10 else (axis[0] / s, axis[1] / s, 0.0)
    return about(axis, math.atan2(s, direction[2]))


def from_euler(angles: Sequence[float], sequence: str) -> Quaternion:
    """Lower-case letters turn about moving axes, upper-case ones about fixed axes."""
    q: Quaternion = NO_TURN
    for letter, angle in zip(sequence, angles, strict=True):
        axis = [float(letter.lower() == name) for name in "xyz"]
        one = about(axis, angle)
        q = product(q, one) if letter.islower() else product(one, q)
    return unit(q)


def from_axes(x: Sequence[float], y: Sequence[float], element: Element) -> Quaternion:
    x = direction(x, "the x axis", element)
    along = sum(a * b for a, b in zip(x, y, strict=True))
    y = direction([b - along * a for a, b in zip(x, y, strict=True)], "the y axis", element)
    z = (x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0])
    return from_columns(x, y, z)


def from_columns(x: Sequence[float], y: Sequence[float], z: Sequence[float]) -> Quaternion:
    """Of a rotation matrix, by its largest quaternion entry."""
    squares = (
        1 + x[0] + y[1] + z[2],
        1 + x[0] - y[1] - z[2],
        1 - x[0] + y[1] - z[2],
        1 - x[0] - y[1] + z[2],
    )
    largest = max(range(4), key=lambda k: squares[k])
    s = squares[largest]
    a, b, c = y[2] - z[1], z[0] - x[2], x[1] - y[0]
    d, e, f = y[0] + x[1], z[0] + x[2], z[1] + y[2]
    return unit(((s, a, b, c), (a, s, d, e), (b, d, s, f), (c, e, f, s))[largest])


def direction(v: Sequence[float], what: str, element: Element) -> Vector:
    n = norm(v)
    if n < TINY:
        raise element.error(f"{what} of <{element.tag}> has no length")
    return (v[0] / n, v[1] / n, v[2] / n)


def orientation(element: Element, degrees: bool, sequence: str) -> Quaternion:
    """What an element says of its orientation, in any of MJCF's ways."""
    given = [name for name in ALTERNATIVES if name in element.attributes]
    scale = math.pi / 180.0 if degrees else 1.0
    if len(given) > 1:
        raise element.error(f"<{element.tag}> gives its orientation twice: {' and '.join(given)}; keep one")
    if not given:
        q = element.floats("quat", 4, NO_TURN)
        if norm(q) < TINY:
            raise element.error(f"the quaternion of <{element.tag}> has no length; 1 0 0 0 is no turn")
        return unit(q)
    if given[0] == "axisangle":
        *axis, angle = element.floats("axisangle", 4)
        return about(direction(axis, "the axis", element), angle * scale)
    if given[0] == "xyaxes":
        six = element.floats("xyaxes", 6)
        return from_axes(six[:3], six[3:], element)
    if given[0] == "zaxis":
        return from_z(direction(element.floats("zaxis", 3), "the z axis", element))
    return from_euler([a * scale for a in element.floats("euler", 3)], sequence)


def pose(element: Element, degrees: bool, sequence: str) -> Pose:
    return element.floats("pos", 3, ORIGIN), orientation(element, degrees, sequence)
