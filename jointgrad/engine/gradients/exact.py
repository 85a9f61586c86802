"""The derivative of what was computed, step for step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ...model.arrays import Model, State
    from ..run.trajectory import Gradient, Trajectory
    from .segments import Bars


@dataclass(frozen=True)
class Exact:
    """The derivative of the motion as it was computed, to the last digits."""

    def pulled_back(self, motion: Trajectory, bars: Bars, wrt: Sequence[str]) -> Gradient:
        """Cotangents of all that the motion started from."""
        from ..run.reverse import exact_gradient

        return exact_gradient(motion.run, bars, wrt)

    def pushed_forward(
        self, motion: Trajectory, dots: Mapping[str, Any], params: Mapping[str, Any], outputs: tuple[str, ...]
    ) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        """Tangents of all states, and of named outputs; dots: directions of q, qd, u and force."""
        from ..run.tangent import tangents

        return tangents(motion, dots, params, outputs)

    def jacobian(self, model: Model, state: State, u: Any, force: Any, A: np.ndarray) -> np.ndarray:
        """The Jacobians (batch, 2nv, 2nv) of steps from their exact ones; all with a batch axis."""
        return A

    def jacobians(self, model: Model, A: np.ndarray, q: np.ndarray, qd: np.ndarray, u: np.ndarray) -> np.ndarray:
        """The same of all steps of one motion, A (T, 2nv, 2nv)."""
        return A
