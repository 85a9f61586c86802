"""Primitives that traced functions may use besides + - *: guarded, so that neither they nor their reverse make a NaN.

A select does not stop a NaN in the reverse: the dead branch contributes 0 times infinity. So every singular operation
here is fed a harmless argument first. exp, log, sin, cos, tanh and atan are polynomials of our own when compiled, because
the vector forms of the platform fall back to scalar calls; on other number types they are the functions of that library.
"""

from __future__ import annotations

import math
import sys
from typing import Any

from .trace import Node

# the least normal number: frameworks flush smaller ones to zero on their threads, and would flush a smaller bound too
SMALLEST = sys.float_info.min


class _Numbers:
    """Elementary functions on Python floats; the other number types below answer to the same names."""

    sqrt, sin, cos, exp, log, tanh, atan = math.sqrt, math.sin, math.cos, math.exp, math.log, math.tanh, math.atan

    @staticmethod
    def select(condition, a, b):
        return a if condition else b

    @staticmethod
    def detach(x):
        return x


def _array_functions(module: Any, where: Any, detach: Any, arctan: str) -> Any:
    class Functions:
        sqrt, sin, cos, exp, log = module.sqrt, module.sin, module.cos, module.exp, module.log
        tanh = module.tanh
        atan = getattr(module, arctan)

    Functions.select = staticmethod(where)  # type: ignore[attr-defined]
    Functions.detach = staticmethod(detach)  # type: ignore[attr-defined]
    return Functions


def _torch_select(condition, a, b):
    torch = sys.modules["torch"]
    like = next((x for x in (a, b) if isinstance(x, torch.Tensor)), condition)
    dtype = like.dtype if like.dtype.is_floating_point else torch.float64
    a, b = (x if isinstance(x, torch.Tensor) else torch.full((), float(x), dtype=dtype) for x in (a, b))
    return torch.where(condition, a, b)


def _functions_for(x: Any) -> Any:
    """The library that x belongs to. Only a library that x itself comes from is ever touched."""
    home = type(x).__module__.partition(".")[0]
    if home == "numpy":
        np = sys.modules["numpy"]
        return _array_functions(np, np.where, lambda y: y, "arctan")
    if home == "torch":
        torch = sys.modules["torch"]
        return _array_functions(torch, _torch_select, lambda y: y.detach(), "atan")
    if home in ("jax", "jaxlib"):
        jax = sys.modules["jax"]
        return _array_functions(jax.numpy, jax.numpy.where, jax.lax.stop_gradient, "arctan")
    if home == "mpmath":
        mpmath = sys.modules["mpmath"]
        return _array_functions(mpmath, lambda c, a, b: a if c else b, lambda y: y, "atan")
    if home == "casadi":
        casadi = sys.modules["casadi"]
        return _array_functions(casadi, casadi.if_else, lambda y: y, "atan")
    return _Numbers


def _unary(op: str):
    def function(x):
        if isinstance(x, Node):
            return x.graph.node(op, x)
        return getattr(_functions_for(x), op)(x)

    function.__name__ = op
    return function


sin, cos, exp, log, tanh, atan, detach = (_unary(op) for op in ("sin", "cos", "exp", "log", "tanh", "atan", "detach"))
sin.__doc__, cos.__doc__ = "Sine.", "Cosine."
log.__doc__ = "Natural logarithm of an x that cannot be zero or less."
detach.__doc__ = "The same value, without derivative: for a choice of reference that the result does not depend on."
_sqrt = _unary("sqrt")


def detached(values):
    """A tuple without derivative."""
    return tuple(detach(x) for x in values)


def select(condition, a, b):
    """a where the condition holds, else b; only the chosen one receives a cotangent."""
    if isinstance(condition, Node):
        return condition.graph.node("select", condition, a, b)
    return _functions_for(condition).select(condition, a, b)


def maximum(a, b):
    return select(b > a, b, a)


def minimum(a, b):
    return select(a > b, b, a)


def clamp(x, low, high):
    """x between two bounds. Where these have met x says nothing any more, even if it lies on them: no derivative."""
    return minimum(maximum(select(high > low, x, detach(x)), low), high)


def inverse(x):
    """1 / x for an x that cannot be zero (the inertia a joint feels, the squared length of a quaternion)."""
    return x.graph.node("div", 1.0, x) if isinstance(x, Node) else 1.0 / x


def safe_div(a, b):
    """a / b, and 0 where b is 0."""
    vanishes = SMALLEST > b * b  # false for NaN, which goes on
    return select(vanishes, 0.0, a * inverse(select(vanishes, 1.0, b)))


def root(x):
    """Square root of an x that cannot be zero or less."""
    return _sqrt(x)


def safe_root(x):
    """Square root, 0 where x is not positive, with derivative 0 there."""
    vanishes = SMALLEST > x  # false for NaN, which goes on
    return select(vanishes, 0.0, _sqrt(select(vanishes, 1.0, x)))


def safe_norm(v):
    """Length of a tuple; its derivative at zero length is zero."""
    return safe_root(sum(x * x for x in v))


def atan2(y, x):
    """Angle of (x, y); 0 at the origin. The quotient is always of the smaller by the larger."""
    steep = y * y > x * x
    ratio = safe_div(select(steep, x, y), select(steep, y, x))
    small = atan(ratio)
    quarter = select(y > 0.0, math.pi / 2, -math.pi / 2)
    half = select(x < 0.0, select(y < 0.0, -math.pi, math.pi), 0.0)
    return select(steep, quarter - small, half + small)


# below this squared angle the series is used: its first neglected term is under 1e-18 there
_SMALL = 0.04


def sinc_of_square(z):
    """cos(sqrt z) and sin(sqrt z) / sqrt z, smooth through z = 0, for z >= 0."""
    is_large = z > _SMALL
    angle = _sqrt(select(is_large, z, 1.0))
    c_series = s_series = 0.0
    for k in range(7, 0, -1):
        c_series = (c_series + 1.0) * z * (-1.0 / ((2 * k - 1) * 2 * k))
        s_series = (s_series + 1.0) * z * (-1.0 / (2 * k * (2 * k + 1)))
    return (
        select(is_large, cos(angle), c_series + 1.0),
        select(is_large, sin(angle) * inverse(angle), s_series + 1.0),
    )


def angle_over_sine(w, n_squared):
    """2 atan2(n, w) / n for a unit quaternion (w, n e), w >= 0: what turns its vector part into a rotation vector."""
    is_large = n_squared > 1e-3
    n = _sqrt(select(is_large, n_squared, 1.0))
    # asin(n) / n as a series in n squared
    series, term = 0.0, 1.0
    coefficients = []
    for k in range(9):
        coefficients.append(term / (2 * k + 1))
        term *= (2 * k + 1) / (2 * k + 2)
    for c in reversed(coefficients):
        series = series * n_squared + c
    return 2.0 * select(is_large, atan2(n, w) * inverse(n), series)


# how the compiler spells the functions that hardware does not have -------------------------------------------------


def _horner(x, coefficients):
    p = coefficients[-1]
    for c in coefficients[-2::-1]:
        p = p * x + c
    return p


def _rounded(x):
    return x.graph.node("rint", x)


def _reduced_angle(x):
    """x less a whole number k of quarter turns (three-part pi/2, exact products by fma), and k modulo 4."""
    k = _rounded(x * 0.6366197723675814)
    r = x - k * 1.5707963267341256 - k * 6.077100506303966e-11 - k * 2.0222662487959506e-21
    quarter = k - 4.0 * k.graph.node("floor", k * 0.25)
    return r, quarter


_SIN = (
    -1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04,
    2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10,
)  # fmt: skip
_COS = (
    4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05,
    -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11,
)  # fmt: skip


def _sin_cos_polynomials(r):
    z = r * r
    return r + r * z * _horner(z, _SIN), 1.0 - 0.5 * z + z * z * _horner(z, _COS)


def lowered_sin(x):
    r, quarter = _reduced_angle(x)
    s, c = _sin_cos_polynomials(r)
    odd = select(quarter > 1.5, quarter - 2.0, quarter) > 0.5
    value = select(odd, c, s)
    return select(quarter > 1.5, -value, value)


def lowered_cos(x):
    r, quarter = _reduced_angle(x)
    s, c = _sin_cos_polynomials(r)
    odd = select(quarter > 1.5, quarter - 2.0, quarter) > 0.5
    value = select(odd, s, c)
    is_negative = select(quarter > 2.5, 0.0, quarter) > 0.5
    return select(is_negative, -value, value)


def lowered_exp(x):
    """2^k e^r with |r| <= ln(2) / 2, by the Taylor series of degree 13; saturates near the range of a double."""
    x = clamp(x, -700.0, 700.0)
    k = _rounded(x * 1.4426950408889634)
    r = x - k * 0.6931471803691238 - k * 1.9082149292705877e-10
    series = _horner(r, tuple(1.0 / math.factorial(n) for n in range(14)))
    return series * x.graph.node("exp2_integer", k)


def lowered_log(x):
    """x = m 2^k with m between 1/sqrt 2 and sqrt 2; log m = 2 atanh((m - 1) / (m + 1)) by its odd series."""
    k = x.graph.node("exponent", x)
    m = x * x.graph.node("exp2_integer", -k)
    is_large = m > math.sqrt(2.0)
    m, k = select(is_large, 0.5 * m, m), select(is_large, k + 1.0, k)
    s = (m - 1.0) * inverse(m + 1.0)
    z = s * s
    series = 2.0 * s * _horner(z, tuple(1.0 / (2 * n + 1) for n in range(12)))
    return k * 0.6931471803691238 + (series + k * 1.9082149292705877e-10)


def lowered_tanh(x):
    """By exp for large |x|, by its odd series near zero where that would cancel."""
    z = x * x
    is_large = z > 0.0625
    e = lowered_exp(select(is_large, x * 2.0, 1.0))
    series = x * _horner(z, _TANH_SERIES)
    return select(is_large, 1.0 - 2.0 * inverse(e + 1.0), series)


def _tanh_series(count):
    """Coefficients of tanh(x)/x in x^2, from tanh' = 1 - tanh^2."""
    t = [1.0]
    for n in range(1, count):
        t.append(-sum(t[k] * t[n - 1 - k] for k in range(n)) / (2 * n + 1))
    return tuple(t)


_TANH_SERIES = _tanh_series(14)


def lowered_atan(x):
    """Two half-angle steps bring |x| below tan(pi/8)/..., then the odd series."""

    def halved(y):
        return y * inverse(1.0 + _sqrt(1.0 + y * y))

    y = halved(halved(halved(x)))
    z = y * y
    return 8.0 * y * _horner(z, tuple((-1.0) ** k / (2 * k + 1) for k in range(13)))


LOWERED = {
    "sin": lowered_sin,
    "cos": lowered_cos,
    "exp": lowered_exp,
    "log": lowered_log,
    "tanh": lowered_tanh,
    "atan": lowered_atan,
}
