"""The mass matrix of a tree without writing it down: articulated inertias (Featherstone 2008, sec. 7.3) where the world starts.

All is about the world's origin, so that nothing is carried from frame to frame. Time and memory grow with the bodies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .arrays import FREE, PRISMATIC, REVOLUTE, SPHERICAL

# bodies that may be visited while an eigenvalue is sought, and steps that are worth it on any tree
VISITS, STEPS = 100_000, (8, 60)


class Elimination:
    """M of one tree, eliminated from its ends to its root; members are its bodies, parents first."""

    def __init__(
        self,
        members: Sequence[int],
        tree: Mapping[str, Any],
        inertias: np.ndarray,
        poses: list,
        params: Mapping[str, Any],
    ) -> None:
        self.n_bodies, first = len(members), min(tree["dof"][b] for b in members)
        number = {b: k for k, b in enumerate(members)}
        self.parent = [number.get(tree["parent"][b], -1) for b in members]
        self.dofs = [slice(tree["dof"][b] - first, tree["dof"][b] - first + tree["n_dof"][b]) for b in members]
        joints = [(tree["kind"][b], poses[tree["frame"][b]], params["joint.axis"][tree["frame"][b]]) for b in members]
        self.S = [_axes(kind, pose, axis) for kind, pose, axis in joints]
        armature = [float(params["joint.armature"][tree["frame"][b]]) for b in members]
        self._eliminate([inertias[b].copy() for b in members], armature)

    def _eliminate(self, composite: list[np.ndarray], armature: list[float]) -> None:
        """U and inverse of D per body; `least_share`: the least part of a joint's own resistance that is left once all that
        hangs on it may give way, zero where M is singular."""
        articulated = [I.copy() for I in composite]
        nothing = np.zeros((0, 0))
        self.U, self.D_inv, self.least_share = [nothing] * self.n_bodies, [nothing] * self.n_bodies, 1.0
        for k in reversed(range(self.n_bodies)):
            S, p = self.S[k], self.parent[k]
            U = articulated[k] @ S
            D = S.T @ U
            held = S.T @ composite[k] @ S
            D.flat[:: len(D) + 1] += armature[k]
            held.flat[:: len(D) + 1] += armature[k]
            self.U[k], (self.D_inv[k], share) = U, _inverse(D, held)
            self.least_share = min(self.least_share, share)
            if p >= 0:
                articulated[p] += articulated[k] - U @ self.D_inv[k] @ U.T
                composite[p] += composite[k]

    def solve(self, x: np.ndarray) -> np.ndarray:
        """M^-1 x; directions in which nothing resists get nothing."""
        force, motion = np.zeros((2, self.n_bodies + 1, 6))  # the last row is the world's
        left: list[Any] = [None] * self.n_bodies
        for k in reversed(range(self.n_bodies)):
            left[k] = self.D_inv[k] @ (x[self.dofs[k]] - self.S[k].T @ force[k])
            force[self.parent[k]] += force[k] + self.U[k] @ left[k]
        out = np.empty_like(x)
        for k, p in enumerate(self.parent):
            rate = left[k] - self.D_inv[k] @ (self.U[k].T @ motion[p])
            out[self.dofs[k]], motion[k] = rate, motion[p] + self.S[k] @ rate
        return out


def _axes(kind: int, pose: tuple[np.ndarray, np.ndarray], axis: np.ndarray) -> np.ndarray:
    """(6, k): motion [angular, linear at the world's origin] per rate; a free root moves about the origin itself."""
    if kind == FREE:
        return np.eye(6)
    R, p = pose
    along = R @ axis
    columns = {
        REVOLUTE: [(*along, *_cross(p, along))],
        PRISMATIC: [(0.0, 0.0, 0.0, *along)],
        SPHERICAL: [(*e, *_cross(p, e)) for e in np.eye(3)],
    }
    return np.array(columns[kind]).T


def _cross(a: np.ndarray, b: np.ndarray) -> tuple[float, float, float]:
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def _inverse(D: np.ndarray, held: np.ndarray) -> tuple[np.ndarray, float]:
    """Inverse of what is left of the resistance `held`, zero in directions where nothing is; and the least share left."""
    if len(D) == 1:
        share = D[0, 0] / held[0, 0] if held[0, 0] > 0 else 0.0
        return (1.0 / D if share > 1e-14 else np.zeros((1, 1))), share
    scale = np.sqrt(np.maximum(np.diag(held), np.finfo(float).tiny))
    share = float(np.linalg.eigvalsh(D / np.outer(scale, scale))[0])
    return np.linalg.pinv(D, hermitian=True), share


def largest_eigenpair(apply: Callable[[np.ndarray], np.ndarray], n: int, n_bodies: int) -> tuple[float, np.ndarray]:
    """The largest eigenvalue of a symmetric operator and its vector, by Lanczos steps with all directions kept orthogonal.

    Exact where there are as many steps as rows; else from below, so that what it finds to be too large is."""
    least, most = STEPS
    steps = min(n, max(least, min(most, VISITS // max(n_bodies, 1))))
    x = np.random.default_rng(0).normal(size=n)
    basis, T = [x / np.linalg.norm(x)], np.zeros((steps, steps))
    for k in range(steps):
        y = apply(basis[k])
        for _ in range(2):  # the second pass takes away what rounding left
            for j, direction in enumerate(basis):
                share = direction @ y
                T[j, k] += share
                y = y - share * direction
        size = float(np.linalg.norm(y))
        if size <= 1e-12 * np.abs(T).max() or k + 1 == steps:
            break
        basis.append(y / size)
    m = len(basis)
    values, vectors = np.linalg.eigh(T[:m, :m], UPLO="U")
    return float(values[-1]), np.array(basis).T @ vectors[:, -1]
