"""What every meaning of a gradient can be asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ...model.arrays import Model, State
    from ..run.trajectory import Gradient, Trajectory
    from .segments import Bars, Tangents


class Meaning:
    """A meaning is a frozen dataclass: a value that may be compared, hashed and kept."""

    def pulled_back(self, motion: Trajectory, bars: Bars, wrt: Sequence[str]) -> Gradient:
        """Cotangents of all that the motion started from."""
        raise NotImplementedError

    def pushed_forward(
        self, motion: Trajectory, dots: Mapping[str, Any], params: Mapping[str, Any], outputs: tuple[str, ...]
    ) -> Tangents:
        """Tangents of all states, and of named outputs; dots: directions of q, qd, u and force."""
        raise NotImplementedError

    def jacobian(self, model: Model, state: State, u: Any, force: Any, A: np.ndarray) -> np.ndarray:
        """Jacobians (batch, 2nv, 2nv) of steps on their own, from what pulled_back says of them; all with a batch axis."""
        return A

    def jacobians(self, model: Model, A: np.ndarray, q: np.ndarray, qd: np.ndarray, u: np.ndarray) -> np.ndarray:
        """The same of all steps of one motion, A (T, 2nv, 2nv) being in the sense of `of_steps`."""
        return A

    @property
    def of_steps(self) -> Meaning:
        """What the Jacobians of single steps mean where those of a whole motion are made of them."""
        return self
