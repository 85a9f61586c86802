"""The Jacobian of segments with free starts: parameters move all of them, a start only its own.

Such a matrix is an arrow: full columns for the parameters, blocks for the starts. Blocks are eliminated one by one, so that a
step costs as much as the segments are many, not the cube of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
class Arrow:
    """shared (S, R, P) and own (S, R, nx): derivatives of the residuals of every segment by the parameters and by its start, rows
    of zeros where nothing was measured. mask (S, R): which of the rows are residuals. order (m,): where these stand among all.
    r (m,): the residuals themselves."""

    shared: np.ndarray
    own: np.ndarray
    mask: np.ndarray
    order: np.ndarray
    r: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.order), self.shared.shape[2] + len(self.own) * self.own.shape[2]

    def spread(self, r: np.ndarray) -> np.ndarray:
        """Residuals (m,) as (S, R)."""
        out = np.zeros(self.mask.shape)
        out[self.mask] = r[self.order]
        return out

    def dense(self) -> np.ndarray:
        """(m, P + S nx)."""
        S, _, nx = self.own.shape
        P = self.shared.shape[2]
        wide = np.zeros((*self.mask.shape, P + S * nx))
        wide[:, :, :P] = self.shared
        for s in range(S):
            wide[s, :, P + s * nx : P + (s + 1) * nx] = self.own[s]
        J = np.zeros(self.shape)
        J[self.order] = wide[self.mask]
        return J

    def pull(self, r: np.ndarray) -> np.ndarray:
        """The product of the transpose with r (m,)."""
        r = self.spread(r)
        own = np.einsum("srx,sr->sx", self.own, r)
        return np.concatenate([np.einsum("srp,sr->p", self.shared, r), own.ravel()])

    @cached_property
    def triangles(self) -> np.ndarray:
        """(S, c, c): of (own, shared, r) of every segment, all that a step needs to know, whatever its damping."""
        rows = np.concatenate([self.own, self.shared, self.spread(self.r)[..., None]], axis=2)
        lack = max(rows.shape[2] - rows.shape[1], 0)
        return np.asarray(np.linalg.qr(np.pad(rows, ((0, 0), (0, lack), (0, 0))), mode="r"))

    def damped_step(self, free: np.ndarray, scale: np.ndarray, damping: float) -> np.ndarray:
        """(n,): the least |r + J d|^2 + damping |d / scale|^2, relative to the size of J, over the entries that are free."""
        S, nx, P = len(self.own), self.own.shape[2], self.shared.shape[2]
        scale = np.where(free, scale, 0.0)
        of_own, of_shared = scale[P:].reshape(S, 1, nx), scale[:P]
        T = self.triangles * np.concatenate([of_own, np.broadcast_to(of_shared, (S, 1, P)), np.ones((S, 1, 1))], axis=2)
        size = (T[..., :-1] ** 2).sum() / max(min(self.shape[0], int(free.sum())), 1)
        root = np.sqrt(damping * max(size, 1e-300))
        return scale * _solved(T, root, nx, P)


def _solved(T: np.ndarray, root: float, nx: int, P: int) -> np.ndarray:
    """(P + S nx,): starts are eliminated, then the parameters are found, then every start."""
    damped = np.zeros((len(T), nx, T.shape[2]))
    damped[:, :, :nx] = root * np.eye(nx)
    R = np.asarray(np.linalg.qr(np.concatenate([T, damped], axis=1), mode="r"))
    rest = R[:, nx:, nx:].reshape(-1, P + 1)
    rows = np.concatenate([rest[:, :P], root * np.eye(P)])
    p = np.linalg.lstsq(rows, -np.concatenate([rest[:, P], np.zeros(P)]), rcond=None)[0] if P else np.zeros(0)
    aim = -(R[:, :nx, nx + P] + R[:, :nx, nx : nx + P] @ p)
    starts = np.linalg.solve(R[:, :nx, :nx], aim[..., None])[..., 0]
    return np.concatenate([p, starts.ravel()])
