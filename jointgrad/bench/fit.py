"""Growth, and the cost of checkpoints as the paper has it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Slope of values against sizes, both as logarithms: 1 is linear, 0 does not grow."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def backward_time(interval: int, forward: float, backward: float) -> float:
    """Of one step, where every state between checkpoints is computed again from the last one (Qiao 2021, eq. 17)."""
    return 0.5 * (interval + 1) * forward + backward


def peak_memory(interval: int, steps: int, checkpoint: float, simulation: float) -> float:
    """Bytes at most (Qiao 2021, eq. 18)."""
    return steps / interval * checkpoint + simulation
