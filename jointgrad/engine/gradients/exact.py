"""The derivative of what was computed, step for step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .meaning import Meaning

if TYPE_CHECKING:
    from ..run.trajectory import Gradient, Trajectory
    from .segments import Bars, Tangents


@dataclass(frozen=True)
class Exact(Meaning):
    """The derivative of the motion as it was computed, to the last digits."""

    def pulled_back(self, motion: Trajectory, bars: Bars, wrt: Sequence[str]) -> Gradient:
        """By the reverse kernels."""
        from ..run.reverse import exact_gradient

        return exact_gradient(motion.run, bars, wrt)

    def pushed_forward(
        self, motion: Trajectory, dots: Mapping[str, Any], params: Mapping[str, Any], outputs: tuple[str, ...]
    ) -> Tangents:
        """By the forward kernels, for numbers that carry their tangents."""
        from ..run.tangent import tangents

        return tangents(motion, dots, params, outputs)
