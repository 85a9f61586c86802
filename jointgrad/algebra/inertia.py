"""Rigid inertias (10: rotational about the origin as xx xy xz yy yz zz, first moment m*com, mass) and articulated ones.

An articulated inertia is (21): the blocks A (6, symmetric), H (9), M (6, symmetric) of [A H; H^T M].
"""

from .vector import (
    add,
    cross,
    dot,
    full,
    inverse_symmetric,
    outer,
    product,
    scale,
    sub,
    symmetric,
    times,
    transposed,
    transposed_times,
)


def shifted(rotational, h, m, p):
    """The rotational inertia (6) about a point from which the old origin lies p away; h is the first moment about the old one."""
    g = add(scale(h, 2.0), scale(p, m))
    d, e = dot(p, g), outer(p, h)
    ph = [e[3 * i + j] + e[3 * j + i] + m * p[i] * p[j] for i in range(3) for j in range(3)]
    r = rotational
    return (r[0] + d - ph[0], r[1] - ph[1], r[2] - ph[2], r[3] + d - ph[4], r[4] - ph[5], r[5] + d - ph[8])


def about_origin(mass, com, rotational):
    """Ten numbers from mass, centre of mass, and inertia about that centre, all in one frame."""
    zero = (0.0, 0.0, 0.0)
    return (*shifted(rotational, zero, mass, com), *scale(com, mass), mass)


def carried(pose, inertia):
    """A rigid inertia seen from the frame that the pose is given in, about that frame's origin (or, with an arm in
    place of the position, about the point the arm starts from)."""
    R, p, m = pose[:9], pose[9:], inertia[9]
    h = times(R, inertia[6:9])
    rotated = symmetric(product(product(R, full(inertia[:6])), transposed(R)))
    return (*shifted(rotated, h, m, p), *add(h, scale(p, m)), m)


def momentum(inertia, v):
    """Rigid inertia times motion."""
    h, m = inertia[6:9], inertia[9]
    return (*add(times(full(inertia[:6]), v[:3]), cross(h, v[3:])), *sub(scale(v[3:], m), cross(h, v[:3])))


def articulated(inertia):
    x, y, z, m = inertia[6:]
    return (*inertia[:6], 0.0, -z, y, z, 0.0, -x, -y, x, 0.0, m, 0.0, 0.0, m, 0.0, m)


def articulated_times(IA, v):
    A, H, M = IA[:6], IA[6:15], IA[15:]
    return (*add(times(full(A), v[:3]), times(H, v[3:])), *add(transposed_times(H, v[:3]), times(full(M), v[3:])))


def less_dyad(IA, U, Ud):
    """IA less the dyad U Ud^T, where Ud is a multiple of U."""
    A = sub(IA[:6], symmetric(outer(Ud[:3], U[:3])))
    H = sub(IA[6:15], outer(Ud[:3], U[3:]))
    return (*A, *H, *sub(IA[15:], symmetric(outer(Ud[3:], U[3:]))))


def factor(IA):
    """What `solve` needs to apply the inverse of an articulated inertia: S^-1, H M^-1, M^-1 with S = A - H M^-1 H^T."""
    H = IA[6:15]
    M_inv = inverse_symmetric(IA[15:])
    HM = product(H, full(M_inv))
    S = sub(IA[:6], symmetric(product(HM, transposed(H))))
    return (*inverse_symmetric(S), *HM, *M_inv)


def solve(F, f):
    """The motion that an articulated inertia with factor F answers a force with."""
    angular = times(full(F[:6]), sub(f[:3], times(F[6:15], f[3:])))
    return (*angular, *sub(times(full(F[15:]), f[3:]), transposed_times(F[6:15], angular)))
