"""The adjoints printed in Qiao 2021 (eqs. 6-7, supplement eqs. 20-58, Algorithm 1) against those the compiler derives.

A case is a printed operator, on tuples, and its printed adjoint, in NumPy: (inputs, cotangents of the results) -> one
cotangent per input. Where the paper is misprinted the case names the input and holds what should stand there; the
printed form must then disagree, so that no correction is made without need. The list: docs/decisions/0003.
"""

from collections.abc import Callable, Mapping
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pytest
from numpy import cross as x
from numpy import outer as vvT

from jointgrad.algebra import vector as tup
from jointgrad.algebra.rotation import quaternion_product
from jointgrad.algebra.spatial import cross_force, cross_motion
from jointgrad.compiler.elementary import inverse, root
from jointgrad.compiler.reverse import adjoint, tangent
from jointgrad.compiler.trace import flatten, shaped_like, traced

AGREES, DIFFERS = 1e-12, 1e-2


class Case(NamedTuple):
    forward: Callable  # its arguments are numbers or tuples
    sizes: str  # one digit per argument; 9 is a 3x3 matrix
    printed: Callable
    corrected: Mapping[str, Callable] = {}


# forward operators ----------------------------------------------------------------------------------------------------


def plus(*vectors):
    return tuple(map(sum, zip(*vectors, strict=True)))


def square_product(a, b, n):
    return tuple(sum(a[n * i + k] * b[n * k + j] for k in range(n)) for i in range(n) for j in range(n))


def square_transposed(a, n):
    return tuple(a[n * j + i] for i in range(n) for j in range(n))


def matrix_inverse(a):
    """By cofactors: the rows of the adjugate are cross products of columns."""
    columns = [tup.column(a, j) for j in range(3)]
    rows = [tup.cross(columns[j - 2], columns[j - 1]) for j in range(3)]
    return tup.scale(sum(rows, ()), inverse(tup.dot(rows[0], columns[0])))


def halves(spatial):
    return spatial[:3], spatial[3:]


def apply(E, r, a1, a2):
    return tup.times(E, a1), tup.times(E, tup.sub(a2, tup.cross(r, a1)))


def apply_inv(E, r, a1, a2):
    turned = tup.transposed_times(E, a1)
    return turned, plus(tup.transposed_times(E, a2), tup.cross(r, turned))


def apply_trans(E, r, a1, a2):
    turned = tup.transposed_times(E, a2)
    return plus(tup.transposed_times(E, a1), tup.cross(r, turned)), turned


def apply_invtrans_printed(E, r, a1, a2):
    return apply_invtrans(tup.transposed(E), r, a1, a2)


def apply_invtrans(E, r, a1, a2):
    return tup.times(E, tup.sub(a1, tup.cross(r, a2))), tup.times(E, a2)


def multiply(E1, r1, E2, r2):
    return tup.product(E1, E2), plus(r2, tup.transposed_times(E2, r1))


def mul_ori(m11, m12, m21, m22, w, v):
    return plus(tup.times(m11, w), tup.times(m12, v)), plus(tup.times(m21, w), tup.times(m22, v))


def mul_inv(m11, m12, m21, m22, w, v):
    return mul_ori(*map(tup.transposed, (m11, m12, m21, m22)), w, v)


def skew(v):
    return (0.0, -v[2], v[1], v[2], 0.0, -v[0], -v[1], v[0], 0.0)


def st2sd(E, r):
    return E, (0.0,) * 9, tup.neg(tup.product(E, skew(r))), E


def shift(m11, m12, m21, m22, E, r):
    m, X = (_from_blocks(*blocks) for blocks in ((m11, m12, m21, m22), st2sd(E, r)))
    return square_product(square_product(square_transposed(X, 6), m, 6), X, 6)


def _from_blocks(*blocks):
    return tuple(blocks[2 * (i // 3) + j // 3][3 * (i % 3) + j % 3] for i in range(6) for j in range(6))


def mul_qt(q1, q2):
    """Quaternions are x, y, z, w here, as in the paper."""
    w, *vector = quaternion_product((q1[3], *q1[:3]), (q2[3], *q2[:3]))
    return (*vector, w)


# printed adjoints that are more than a line, and their corrections ----------------------------------------------------


def aTba_bar(a, b, c_bar):
    return b.T @ a @ c_bar + b @ a @ c_bar.T


def aTba_bar_printed(a, b, c_bar):
    """a_bar stands on both sides, where a and c_bar should: the true one does not satisfy it."""
    c, a_bar = a.T @ b @ a, aTba_bar(a, b, c_bar)
    return b.T @ a_bar @ c + b @ a_bar @ c.T


def skew_bar(m):
    return np.array([m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]])


def as_matrix(r):
    return np.array(skew(r)).reshape(3, 3)


def st2sd_bars(E, r, n11, n12, n21, n22):
    return n11 + n22 + n21 @ as_matrix(r), -skew_bar(E.T @ n21)


def shift_bars(m11, m12, m21, m22, E, r, n):
    """Composed of eqs. 23 and 51, both corrected, as the paper says it should be."""
    m, X = np.block([[m11, m12], [m21, m22]]), np.block([[E, np.zeros((3, 3))], [-E @ as_matrix(r), E]])
    return *_blocks(X @ n @ X.T), *st2sd_bars(E, r, *_blocks(aTba_bar(X, m, n)))


def _blocks(m):
    return m[:3, :3], m[:3, 3:], m[3:, :3], m[3:, 3:]


def left_factor_bar(q_bar, q):
    """Eq. 57, cotangent of the left factor of a quaternion product."""
    return np.array([
        q_bar[0] * q[3] - q_bar[1] * q[2] + q_bar[2] * q[1] - q_bar[3] * q[0],
        q_bar[0] * q[2] + q_bar[1] * q[3] - q_bar[2] * q[0] - q_bar[3] * q[1],
        -q_bar[0] * q[1] + q_bar[1] * q[0] + q_bar[2] * q[3] - q_bar[3] * q[2],
        q_bar @ q,
    ])  # fmt: skip


def right_factor_bar(q_bar, q):
    """Eq. 58, cotangent of the right factor."""
    return np.array([
        q_bar[0] * q[3] + q_bar[1] * q[2] - q_bar[2] * q[1] - q_bar[3] * q[0],
        -q_bar[0] * q[2] + q_bar[1] * q[3] + q_bar[2] * q[0] - q_bar[3] * q[1],
        q_bar[0] * q[1] - q_bar[1] * q[0] + q_bar[2] * q[3] - q_bar[3] * q[2],
        q_bar @ q,
    ])  # fmt: skip


# the table ------------------------------------------------------------------------------------------------------------

CASES = {
    "6-7 bias force": Case(
        lambda f1, f2, w1, v1, w2, v2: halves(plus((*f1, *f2), cross_force((*w1, *v1), (*w2, *v2)))),
        "333333",
        lambda f1, f2, w1, v1, w2, v2, w, v: (w, v, -x(w, w2) - x(v, v2), -x(w, v2), x(w, w1), x(w, v1) + x(v, w1)),
    ),
    "20 scalars": Case(lambda b, c: b * c, "11", lambda b, c, a: (a * c, b * a)),
    "21 matrix, vector": Case(tup.times, "93", lambda m, a, v: (vvT(v, a), m.T @ v)),
    "22 matrices": Case(tup.product, "99", lambda a, b, c: (c @ b.T, a.T @ c)),
    "23 A^T B A": Case(
        lambda a, b: tup.product(tup.product(tup.transposed(a), b), a),
        "99",
        lambda a, b, c: (aTba_bar_printed(a, b, c), a @ c @ a.T),
        {"a": aTba_bar},
    ),
    "24 inverse": Case(matrix_inverse, "9", lambda a, b: (-np.linalg.inv(a).T @ b @ np.linalg.inv(a).T,)),
    "25 three matrices": Case(
        lambda a, b, c: tup.product(tup.product(a, b), c),
        "999",
        lambda a, b, c, m: (m @ c.T @ b.T, a.T @ m @ c.T, b.T @ a.T @ m),
    ),
    "26 cross product": Case(tup.cross, "33", lambda a, b, v: (-x(v, b), x(v, a))),
    "27 norm": Case(lambda b: root(tup.dot(b, b)), "3", lambda b, a: (a / np.linalg.norm(b) * b,)),
    "28-29 apply": Case(
        apply,
        "9333",
        lambda E, r, a1, a2, b1, b2: (
            vvT(a1, b1) + vvT(a2 - x(r, a1), b2), x(E.T @ b2, a1), E.T @ b1 - x(E.T @ b2, r), E.T @ b2,
        ),
        {"E": lambda E, r, a1, a2, b1, b2: vvT(b1, a1) + vvT(b2, a2 - x(r, a1))},
    ),
    "30-31 apply-inv": Case(
        apply_inv,
        "9333",
        lambda E, r, a1, a2, b1, b2: (
            vvT(a1, b1 + x(b2, r)) + vvT(a2, b2), -x(b2, E.T @ a1), E @ (b1 + x(b2, r)), E @ b2,
        ),
    ),
    "32-33 apply-trans": Case(
        apply_trans,
        "9333",
        lambda E, r, a1, a2, b1, b2: (
            vvT(b1, a1) + vvT(x(b1, r) + b2, a2), -x(b1, E.T @ a2), E @ b1, E @ (x(b1, r) + b2),
        ),
        {"E": lambda E, r, a1, a2, b1, b2: vvT(a1, b1) + vvT(a2, x(b1, r) + b2)},
    ),
    "34-35 apply-invtrans, as printed": Case(
        apply_invtrans_printed,
        "9333",
        lambda E, r, a1, a2, b1, b2: (
            vvT(a1 - x(r, a2), b1) + vvT(a2, b2), x(E @ b1, a2), E @ b1, -x(E @ b1, r) + E @ b2,
        ),
    ),
    "34-35 apply-invtrans, the operator meant": Case(
        apply_invtrans,
        "9333",
        lambda E, r, a1, a2, b1, b2: (
            vvT(a1 - x(r, a2), b1) + vvT(a2, b2), x(E @ b1, a2), E @ b1, -x(E @ b1, r) + E @ b2,
        ),
        {
            "E": lambda E, r, a1, a2, b1, b2: vvT(b1, a1 - x(r, a2)) + vvT(b2, a2),
            "r": lambda E, r, a1, a2, b1, b2: x(E.T @ b1, a2),
            "a1": lambda E, r, a1, a2, b1, b2: E.T @ b1,
            "a2": lambda E, r, a1, a2, b1, b2: -x(E.T @ b1, r) + E.T @ b2,
        },
    ),
    "36-37 multiply": Case(
        multiply, "9393", lambda E1, r1, E2, r2, E0, r0: (E0 @ E2.T, E2 @ r0, E1.T @ E0 + vvT(r1, r0), r0)
    ),
    "38-39 crossm": Case(
        lambda w1, v1, w2, v2: halves(cross_motion((*w1, *v1), (*w2, *v2))),
        "3333",
        lambda w1, v1, w2, v2, w, v: (-x(w, w2) - x(v, v2), -x(v, w2), x(w, w1) + x(v, v1), x(v, w1)),
    ),
    "40-41 crossf": Case(
        lambda w1, v1, w2, v2: halves(cross_force((*w1, *v1), (*w2, *v2))),
        "3333",
        lambda w1, v1, w2, v2, w, v: (-x(w, w2) - x(v, v2), -x(w, v2), x(w, w1), x(w, v1) + x(v, w1)),
    ),
    "42-43 mul-ori": Case(
        mul_ori,
        "999933",
        lambda m11, m12, m21, m22, w, v, w0, v0: (
            vvT(w0, w), vvT(w0, v), vvT(v0, w), vvT(v0, v), m11.T @ w0 + m21.T @ v0, m12.T @ w0 + m22.T @ v0,
        ),
    ),
    "44-45 mul-inv": Case(
        mul_inv,
        "999933",
        lambda m11, m12, m21, m22, w, v, w0, v0: (
            vvT(w, w0), vvT(v, w0), vvT(w, v0), vvT(v, v0), m11 @ w0 + m21 @ v0, m12 @ w0 + m22 @ v0,
        ),
    ),
    "46-47 vvT": Case(
        lambda w1, v1, w2, v2: (tup.outer(w1, w2), tup.outer(w1, v2), tup.outer(v1, w2), tup.outer(v1, v2)),
        "3333",
        lambda w1, v1, w2, v2, m11, m12, m21, m22: (
            m11 @ w2 + m12 @ v2, m21 @ w2 + m22 @ v2, m11.T @ w1 + m21.T @ v1, m12.T @ w1 + m22.T @ v1,
        ),
    ),
    "48-49 skew": Case(skew, "3", lambda v, m: (skew_bar(m),)),
    "50-51 st2sd": Case(
        st2sd,
        "93",
        lambda E, r, n11, n12, n21, n22: (n11.T + n22.T - as_matrix(r) @ n21, -skew_bar(E @ n21)),
        {"E": lambda *a: st2sd_bars(*a)[0], "r": lambda *a: st2sd_bars(*a)[1]},
    ),
    "52 shift": Case(shift, "999993", shift_bars),
    "53-55 mul_vec": Case(
        lambda q2, v: mul_qt(q2, (*v, 0.0)),
        "43",
        lambda q2, v, q1: (left_factor_bar(q1, np.append(v, 0.0))[:3], left_factor_bar(q1, q2)[:3]),
        {
            "q2": lambda q2, v, q1: np.append(left_factor_bar(q1, np.append(v, 0.0))[:3], q1[:3] @ v),
            "v": lambda q2, v, q1: right_factor_bar(q1, q2)[:3],
        },
    ),
    "56-58 mul_qt": Case(mul_qt, "44", lambda q1, q2, q: (left_factor_bar(q, q2), right_factor_bar(q, q1))),
}  # fmt: skip


# the tests ------------------------------------------------------------------------------------------------------------


def drawn(rng, like):
    return shaped_like(like, rng.normal(size=len(flatten(like))).tolist())


def as_array(value):
    array = np.array(value)
    return array.reshape({9: (3, 3), 36: (6, 6)}.get(array.size, array.shape))


def distance(a, b):
    """Largest difference, in units of the largest entry; none is comparable where entries are missing."""
    a, b = as_array(a), as_array(b)
    return np.abs(a - b).max() / np.abs(b).max() if a.shape == b.shape else np.inf


def at_random(case):
    """The traced operator, argument names, inputs, and cotangents of its results."""
    rng, operator = np.random.default_rng(20210701), traced(case.forward)
    names = case.forward.__code__.co_varnames[: case.forward.__code__.co_argcount]
    inputs = [drawn(rng, (0.0,) * int(n) if n != "1" else 0.0) for n in case.sizes]
    return operator, names, inputs, drawn(rng, operator(*inputs))


def derived_adjoint(operator, names, inputs, bars):
    found = adjoint(operator, " ".join(names))(*inputs, bars)
    return dict(zip(names, found if len(names) > 1 else (found,), strict=True))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_printed_adjoint(case):
    operator, names, inputs, bars = at_random(case)
    derived = derived_adjoint(operator, names, inputs, bars)
    several = isinstance(bars, tuple) and isinstance(bars[0], tuple)
    arrays = [*map(as_array, inputs), *map(as_array, bars if several else (bars,))]
    for name, value in zip(names, case.printed(*arrays), strict=True):
        if name in case.corrected:
            assert distance(value, derived[name]) > DIFFERS, f"{name}_bar is right as printed"
            value = case.corrected[name](*arrays)
        assert distance(value, derived[name]) < AGREES, name


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_derived_adjoint_against_differences(case):
    operator, names, inputs, bars = at_random(case)
    derived = flatten(tuple(derived_adjoint(operator, names, inputs, bars).values()))
    start, h = np.array(flatten(tuple(inputs))), 1e-5

    def value(moved):
        return np.dot(flatten(operator(*shaped_like(tuple(inputs), moved.tolist()))), flatten(bars))

    differences = [(value(start + h * e) - value(start - h * e)) / (2 * h) for e in np.eye(start.size)]
    np.testing.assert_allclose(derived, differences, rtol=1e-7, atol=1e-8)


def test_steps_of_derivation_in_24_and_27():
    """Their results are right; on the way the sums of 24 run over the wrong indices, and 27 has a sign too many."""
    rng = np.random.default_rng(1)
    a, a_dot, v, v_dot = rng.normal(size=(3, 3)), rng.normal(size=(3, 3)), rng.normal(size=3), rng.normal(size=3)
    b, b_dot = map(as_array, tangent(traced(matrix_inverse))(tuple(a.ravel()), (tuple(a_dot.ravel()),)))
    assert distance(-np.einsum("ij,jk,kt->ij", b, a_dot, b), b_dot) > DIFFERS  # over k and t
    assert distance(-np.einsum("ij,jk,kt->it", b, a_dot, b), b_dot) < AGREES  # over j and k
    n, n_dot = tangent(traced(CASES["27 norm"].forward))(tuple(v), (tuple(v_dot),))
    assert distance(-0.5 / n * (v_dot @ v + v @ v_dot), n_dot) > DIFFERS
    assert distance(0.5 / n * (v_dot @ v + v @ v_dot), n_dot) < AGREES


def test_what_the_transforms_are_of_each_other():
    """28 is X; then 30 is its inverse, 32 its transpose, 36 the product. 34 is its inverse transpose with E for E^T."""
    rng = np.random.default_rng(2)
    (E, E2), (r, r2) = np.linalg.qr(rng.normal(size=(2, 3, 3)))[0], rng.normal(size=(2, 3))

    def matrix(transform, E, r):
        E, r = tuple(np.ravel(E)), tuple(r)
        return np.array([flatten(transform(E, r, *halves(tuple(e)))) for e in np.eye(6)]).T

    X = matrix(apply, E, r)
    assert distance(matrix(apply_inv, E, r), np.linalg.inv(X)) < AGREES
    assert distance(matrix(apply_trans, E, r), X.T) < AGREES
    assert distance(matrix(apply_invtrans_printed, E, r), np.linalg.inv(X).T) > DIFFERS
    assert distance(matrix(apply_invtrans, E, r), np.linalg.inv(X).T) < AGREES
    both = multiply(tuple(E.ravel()), tuple(r), tuple(E2.ravel()), tuple(r2))
    assert distance(matrix(apply, *both), X @ matrix(apply, E2, r2)) < AGREES


def test_what_mul_inv_is():
    """44 transposes each block where it stands, which is neither the inverse nor the transpose; 45 is its adjoint."""
    m = np.random.default_rng(5).normal(size=(6, 6))
    blocks = [tuple(block.ravel()) for block in _blocks(m)]
    printed = np.array([flatten(mul_inv(*blocks, *halves(tuple(e)))) for e in np.eye(6)]).T
    assert distance(printed, np.linalg.inv(m)) > DIFFERS
    assert distance(printed, m.T) > DIFFERS


# Algorithm 1 ----------------------------------------------------------------------------------------------------------

MISPRINTS = ("V_x2 stored after the loop", "b_bar without index", "A_bar times d_bar")


def gauss_seidel(A, b, x, sweeps):
    """The forward pass, on tuples: the loop solves A x = b."""
    n, x = len(b), list(x)
    for _ in range(sweeps):
        for i in range(n):
            d = sum(A[n * i + j] * x[j] for j in range(n) if j != i)
            x[i] = (b[i] - d) * inverse(A[n * i + i])
    return tuple(x)


def gauss_seidel_reverse(A, b, x, x_bar, sweeps, misprints=()):
    """Algorithm 1 with the lines named in `misprints` as they are printed."""
    n, x, x_bar = len(b), x.copy(), x_bar.copy()
    V_d, V_x1, V_x2 = np.zeros((3, sweeps, n))
    for t in range(sweeps):
        V_x1[t] = x
        for i in range(n):
            V_d[t, i] = A[i] @ x - A[i, i] * x[i]
            x[i] = (b[i] - V_d[t, i]) / A[i, i]
            if MISPRINTS[0] not in misprints or i == n - 1:  # after the loop, i is the last row
                V_x2[t, i] = x[i]
    A_bar, b_bar = np.zeros_like(A), np.zeros_like(b)
    for t in reversed(range(sweeps)):
        for i in reversed(range(n)):
            d_bar = -x_bar[i] / A[i, i]
            b_bar[slice(None) if MISPRINTS[1] in misprints else i] += x_bar[i] / A[i, i]
            A_bar[i, i] -= x_bar[i] * (b[i] - V_d[t, i]) / A[i, i] ** 2
            x_bar[i] = 0.0
            for j in [*range(n - 1, i, -1), *range(i - 1, -1, -1)]:
                kept = A_bar[i, j] * d_bar if MISPRINTS[2] in misprints else A_bar[i, j]
                A_bar[i, j] = kept + d_bar * (V_x1 if j > i else V_x2)[t, j]
                x_bar[j] += d_bar * A[i, j]
    return A_bar, b_bar


def test_algorithm_1():
    rng, n, sweeps, h = np.random.default_rng(3), 5, 3, 1e-6
    A = rng.normal(size=(n, n)) + 2.0 * n * np.eye(n)
    b, start, x_bar = rng.normal(size=(3, n))
    corrected = gauss_seidel_reverse(A, b, start, x_bar, sweeps)

    def value(Ab):
        return np.dot(gauss_seidel(Ab[:-n], Ab[-n:], start, sweeps), x_bar)

    at = np.append(A, b)
    differences = np.array([(value(at + h * e) - value(at - h * e)) / (2 * h) for e in np.eye(at.size)])
    np.testing.assert_allclose(np.append(*corrected), differences, rtol=1e-7, atol=1e-9)

    reverse = adjoint(traced(lambda A, b, x: gauss_seidel(A, b, x, sweeps)), "A b")
    derived = reverse(tuple(A.ravel()), tuple(b), tuple(start), tuple(x_bar))
    assert distance(np.append(*corrected), flatten(derived)) < AGREES

    for count in (1, 2, 3):  # each misprint alone is enough, and no two cancel
        for misprints in combinations(MISPRINTS, count):
            printed = gauss_seidel_reverse(A, b, start, x_bar, sweeps, misprints)
            assert distance(np.append(*printed), differences) > DIFFERS, misprints


def test_algorithm_1_solves_another_equation_than_the_text_says():
    """The text: A x + b = 0. The loop: A x = b."""
    rng = np.random.default_rng(4)
    A, b = rng.normal(size=(5, 5)) + 10.0 * np.eye(5), rng.normal(size=5)
    solution = gauss_seidel(tuple(A.ravel()), tuple(b), (0.0,) * 5, 60)
    assert distance(A @ solution, b) < AGREES
    assert distance(A @ solution, -b) > DIFFERS
