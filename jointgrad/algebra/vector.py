"""Tuples of three and nine. A 3x3 matrix is row-major; a symmetric one is (xx, xy, xz, yy, yz, zz)."""

from ..compiler.elementary import inverse


def add(a, b):
    return tuple(x + y for x, y in zip(a, b, strict=True))


def sub(a, b):
    return tuple(x - y for x, y in zip(a, b, strict=True))


def neg(a):
    return tuple(-x for x in a)


def scale(a, s):
    return tuple(x * s for x in a)


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def cross(a, b):
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def outer(a, b):
    return tuple(x * y for x in a for y in b)


def times(m, a):
    """Matrix times vector."""
    return tuple(dot(m[3 * i : 3 * i + 3], a) for i in range(3))


def transposed(m):
    return tuple(m[3 * j + i] for i in range(3) for j in range(3))


def transposed_times(m, a):
    return times(transposed(m), a)


def product(a, b):
    """Matrix times matrix."""
    return tuple(sum(a[3 * i + k] * b[3 * k + j] for k in range(3)) for i in range(3) for j in range(3))


def column(m, j):
    return (m[j], m[3 + j], m[6 + j])


def full(s):
    """A symmetric matrix written out."""
    return (s[0], s[1], s[2], s[1], s[3], s[4], s[2], s[4], s[5])


def symmetric(m):
    """The upper triangle of a matrix that is symmetric."""
    return (m[0], m[1], m[2], m[4], m[5], m[8])


def inverse_symmetric(m):
    """Inverse of a symmetric positive 3x3 matrix."""

    c0, c1, c2 = m[3] * m[5] - m[4] * m[4], m[2] * m[4] - m[1] * m[5], m[1] * m[4] - m[2] * m[3]
    d = inverse(m[0] * c0 + m[1] * c1 + m[2] * c2)
    return scale((c0, c1, c2, m[0] * m[5] - m[2] * m[2], m[1] * m[2] - m[0] * m[4], m[0] * m[3] - m[1] * m[1]), d)
