"""Rotations: quaternions (w, x, y, z) and matrices (9, row-major; columns are the child's axes in the parent)."""

from ..compiler.elementary import angle_over_sine, inverse, root, select, sinc_of_square
from .vector import add, cross, dot, scale


def tangents(n):
    """Two directions across a unit normal, without a branch (Duff et al. 2017)."""
    sign = select(n[2] < 0.0, -1.0, 1.0)
    a = -inverse(sign + n[2])
    b = n[0] * n[1] * a
    return (1.0 + sign * n[0] * n[0] * a, sign * b, -(sign * n[0])), (b, sign + n[1] * n[1] * a, -n[1])


IDENTITY = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)


def matrix(quat):
    """Rotation matrix; does not depend on the quaternion's length, so its derivative along the quaternion is zero."""
    w, x, y, z = quat
    s = 2.0 * inverse(dot(quat, quat))
    return (
        1.0 - s * (y * y + z * z), s * (x * y - w * z), s * (x * z + w * y),
        s * (x * y + w * z), 1.0 - s * (x * x + z * z), s * (y * z - w * x),
        s * (x * z - w * y), s * (y * z + w * x), 1.0 - s * (x * x + y * y),
    )  # fmt: skip


def quaternion_product(a, b):
    real = a[0] * b[0] - dot(a[1:], b[1:])
    return (real, *add(add(scale(b[1:], a[0]), scale(a[1:], b[0])), cross(a[1:], b[1:])))


def conjugate(quat):
    return (quat[0], -quat[1], -quat[2], -quat[3])


def turned_about_z(m, s, c):
    """m times a rotation about z with sine s and cosine c."""
    return (
        c * m[0] + s * m[1], c * m[1] - s * m[0], m[2],
        c * m[3] + s * m[4], c * m[4] - s * m[3], m[5],
        c * m[6] + s * m[7], c * m[7] - s * m[6], m[8],
    )  # fmt: skip


def advanced(quat, turn):
    """Unit quaternion after a rotation vector `turn` in the body's own axes: the exponential map."""
    half = scale(turn, 0.5)
    c, s = sinc_of_square(dot(half, half))
    length = dot(quat, quat)
    # of a length beyond all numbers the inverse is zero, and so would be the quaternion; as NaN it is seen and told
    return scale(quaternion_product(quat, (c, *scale(half, s))), inverse(root(length)) + (length - length))


# |B_2k| / (2k)!, k = 1, 2, ...: the series of (1 - (a/2) cot(a/2)) / a^2 in a^2, good to 1e-15 up to a = 1
_CHART = (
    1 / 12,
    1 / 720,
    1 / 30240,
    1 / 1209600,
    1 / 47900160,
    691 / 1307674368000,
    1 / 74724249600,
    3617 / 10670622842880000,
)


def chart_rate(turn, rate):
    """Rate of the rotation vector `turn` of a body that turns with `rate` in its own axes: the inverse of dexp."""
    x = dot(turn, turn)
    series = _CHART[-1]
    for coefficient in reversed(_CHART[:-1]):
        series = series * x + coefficient
    once = cross(turn, rate)
    return add(add(rate, scale(once, 0.5)), scale(cross(turn, once), series))


def rotation_vector(quat):
    """The logarithm: axis times angle, of the shorter way round."""
    unit = scale(quat, inverse(root(dot(quat, quat))))
    short = select(unit[0] < 0.0, -1.0, 1.0)
    vector = scale(unit[1:], short)
    return scale(vector, angle_over_sine(unit[0] * short, dot(vector, vector)))


def arc(a, b):
    """The shortest rotation that takes unit vector a to unit vector b; not for opposite ones."""
    v = cross(a, b)
    k = inverse(1.0 + dot(a, b))
    return (
        1.0 - k * (v[1] * v[1] + v[2] * v[2]), k * v[0] * v[1] - v[2], k * v[0] * v[2] + v[1],
        k * v[0] * v[1] + v[2], 1.0 - k * (v[0] * v[0] + v[2] * v[2]), k * v[1] * v[2] - v[0],
        k * v[0] * v[2] - v[1], k * v[1] * v[2] + v[0], 1.0 - k * (v[0] * v[0] + v[1] * v[1]),
    )  # fmt: skip


def body_cotangent(quat, tangent_bar):
    """Cotangent of a quaternion from that of a small turn in the body's own axes; zero along the quaternion."""
    return scale(quaternion_product(quat, (0.0, *tangent_bar)), 2.0 * inverse(dot(quat, quat)))


def frame_cotangent(quat, tangent_bar):
    """The same for a small turn in the axes of the frame that the quaternion maps into."""
    return scale(quaternion_product((0.0, *tangent_bar), quat), 2.0 * inverse(dot(quat, quat)))
