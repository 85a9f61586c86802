"""Two solvers of the convex problem behind one call: proxsuite (accurate, warm) and OSQP (that of NeuralSim's released code)."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from ...model.errors import InputError
from .convex import QP

LARGE = 1e20  # what both solvers take as no bound


class Solver(Protocol):
    def __call__(self, problem: QP) -> np.ndarray:
        """Forces (n, 3) of those who stand."""

    def reset(self) -> None:
        """Forget the last solution."""


class Warm:
    """The last solution and multipliers of every step and leg: a start for the next problem, whoever stands in it."""

    def __init__(self) -> None:
        self.force, self.multiplier = np.zeros((0, 4, 3)), np.zeros((0, 4, 5))

    def start(self, who: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        if len(who) == 0 or len(self.force) <= who[:, 0].max():
            return None
        return self.force[tuple(who.T)].ravel(), self.multiplier[tuple(who.T)].ravel()

    def keep(self, who: np.ndarray, force: np.ndarray, multiplier: np.ndarray) -> None:
        steps = int(who[:, 0].max()) + 1
        self.force, self.multiplier = np.zeros((steps, 4, 3)), np.zeros((steps, 4, 5))
        self.force[tuple(who.T)], self.multiplier[tuple(who.T)] = force, multiplier


class Proxsuite:
    """Dense ProxQP, one workspace per number of forces, started from the last solution."""

    def __init__(self, accuracy: float = 1e-5) -> None:
        try:
            from proxsuite import proxqp
        except ImportError:
            raise InputError('this controller needs the package proxsuite: pip install "jointgrad[mpc]"') from None
        self._proxqp, self.accuracy = proxqp, accuracy
        self._workspaces: dict[int, Any] = {}
        self.reset()

    def reset(self) -> None:
        self._warm = Warm()

    def __call__(self, problem: QP) -> np.ndarray:
        n, rows = len(problem.g), len(problem.low)
        high = np.minimum(problem.high, LARGE)
        start = self._warm.start(problem.who)
        if n not in self._workspaces:
            one = self._workspaces[n] = self._proxqp.dense.QP(n, 0, rows)
            one.settings.eps_abs, one.settings.eps_rel = self.accuracy, 0.0
            one.settings.initial_guess = self._proxqp.InitialGuess.WARM_START
            one.init(problem.H, problem.g, None, None, problem.C, problem.low, high)
        else:
            one = self._workspaces[n]
            one.update(H=problem.H, g=problem.g, C=problem.C, l=problem.low, u=high)
        x, z = start if start is not None else (np.zeros(n), np.zeros(rows))
        one.solve(x, None, z)
        force = np.array(one.results.x).reshape(-1, 3)
        self._warm.keep(problem.who, force, np.array(one.results.z).reshape(-1, 5))
        return force


class OSQP:
    """OSQP with the settings of the released code: warm start, 1e-3; without its polish, which prints a line for every problem."""

    def __init__(self, accuracy: float = 1e-3) -> None:
        try:
            import osqp
            import scipy.sparse
        except ImportError:
            raise InputError(
                'this controller needs the packages osqp and scipy: pip install "jointgrad[mpc]"'
            ) from None
        self._osqp, self._sparse, self.accuracy = osqp, scipy.sparse, accuracy
        self.reset()

    def reset(self) -> None:
        self._warm, self._solvers = Warm(), dict[int, Any]()

    def __call__(self, problem: QP) -> np.ndarray:
        n = len(problem.g)
        high = np.minimum(problem.high, LARGE)
        if n not in self._solvers:
            one = self._solvers[n] = self._osqp.OSQP()
            full = self._sparse.csc_matrix(np.triu(np.ones((n, n))))
            full.data = self._by_columns(problem.H)
            one.setup(
                full, problem.g, self._sparse.csc_matrix(problem.C), problem.low, high, verbose=False, polishing=False,
                adaptive_rho_interval=25, eps_abs=self.accuracy, eps_rel=self.accuracy,
            )  # fmt: skip
        else:
            one = self._solvers[n]
            one.update(q=problem.g, l=problem.low, u=high, Px=self._by_columns(problem.H))
        start = self._warm.start(problem.who)
        if start is not None:
            one.warm_start(*start)
        found = one.solve(raise_error=False)
        force = np.asarray(found.x).reshape(-1, 3)
        self._warm.keep(problem.who, force, np.asarray(found.y).reshape(-1, 5))
        return force

    @staticmethod
    def _by_columns(H: np.ndarray) -> np.ndarray:
        """Upper triangle, column by column."""
        return H.T[np.tril_indices(len(H))]


def solver(name: str) -> Solver:
    """By name."""
    if name == "proxsuite":
        return Proxsuite()
    if name == "osqp":
        return OSQP()
    raise InputError(f"there is no solver {name!r}; there are proxsuite and osqp")
