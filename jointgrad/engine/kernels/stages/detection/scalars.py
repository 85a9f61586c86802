"""Vectors of one environment, as tuples of floats: what the searches for features are written in."""

import math

from .....compiler.kernel import inlined

TINY = 1e-30  # square of a length that has no direction


@inlined
def dot3(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@inlined
def sub3(a, b):
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@inlined
def plus3(a, b, t):
    """a + t b"""
    return a[0] + t * b[0], a[1] + t * b[1], a[2] + t * b[2]


@inlined
def scaled3(a, t):
    return t * a[0], t * a[1], t * a[2]


@inlined
def entries3(a, b):
    return a[0] * b[0], a[1] * b[1], a[2] * b[2]


@inlined
def cross3(a, b):
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@inlined
def unit3(a):
    """a over its length; zero stays zero."""
    square = dot3(a, a)
    return scaled3(a, 1.0 / math.sqrt(square) if square > TINY else 0.0)


@inlined
def across3(n):
    """A unit vector at right angles to the unit vector n."""
    if abs(n[0]) < 0.6:
        return unit3((0.0, n[2], -n[1]))
    return unit3((-n[2], 0.0, n[0]))


@inlined
def turned3(P, x):
    """From a shape's axes to the world's."""
    return (
        P[0] * x[0] + P[1] * x[1] + P[2] * x[2],
        P[3] * x[0] + P[4] * x[1] + P[5] * x[2],
        P[6] * x[0] + P[7] * x[1] + P[8] * x[2],
    )


@inlined
def turned_back3(P, x):
    return (
        P[0] * x[0] + P[3] * x[1] + P[6] * x[2],
        P[1] * x[0] + P[4] * x[1] + P[7] * x[2],
        P[2] * x[0] + P[5] * x[1] + P[8] * x[2],
    )


@inlined
def placed3(P, x):
    y = turned3(P, x)
    return y[0] + P[9], y[1] + P[10], y[2] + P[11]


@inlined
def axis3(P):
    """A shape's own z axis."""
    return P[2], P[5], P[8]
