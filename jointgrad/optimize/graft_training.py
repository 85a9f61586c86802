"""Train a grafted network through motions: windows of recorded runs as one batch, exact gradients, L-BFGS, ever longer windows.

Weights are searched in units of what the network sees and says, so that numbers of all layers are of order one. What is kept is
the point with the least error on recorded motions that training does not see.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

import jointgrad as jg

from ..grafts.discover import Prediction, Windows
from .progress import Progress, Stop
from .solvers import lbfgs

# of the loss: L-BFGS ends where differences drown in rounding
LOUDNESS = 1e3


class Objective:
    """Mean squared prediction error of windows, and a little of the squares of weights, as a function of z = weights / units."""

    def __init__(self, prediction: Prediction, units: np.ndarray, decay: float) -> None:
        self.prediction, self.units, self.decay, self.n = prediction, units, decay, len(units)

    def value(self, x: np.ndarray) -> np.ndarray:
        return np.array([LOUDNESS * (self.prediction.value(z * self.units) + self.decay * z @ z) for z in x])

    def gradient(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        losses, slopes = [], []
        for z in x:
            error, slope = self.prediction.gradient(z * self.units)
            losses.append(LOUDNESS * (error + self.decay * z @ z))
            slopes.append(LOUDNESS * (slope * self.units + 2 * self.decay * z))
        return np.array(losses), np.array(slopes)


@dataclass(frozen=True)
class Plan:
    """stages: windows of training (all of one length) with the iterations on them. scales: of q and qd, which errors are in
    units of. judge: windows that decide what is kept. look: iterations from one look at them to the next."""

    stages: Sequence[tuple[Windows, int]]
    judge: Windows
    scales: tuple[np.ndarray, np.ndarray]
    decay: float = 1e-12
    look: int = 10


@dataclass
class Trained:
    """The model with the best weights, its error on the windows that decide, and that error along the way."""

    model: jg.Model
    error: float
    path: list[float] = field(default_factory=list)


def train(model: jg.Model, units: np.ndarray, plan: Plan, show: Callable[[float], None] | None = None) -> Trained:
    """From the weights of the model on. show is told the best error so far at every look."""
    judge = Prediction(model, plan.judge, plan.scales)
    z = model.params["graft.weight"] / units
    best, kept = judge.value(z * units), z
    path = [best]

    def look(progress: Progress) -> None:
        nonlocal best, kept
        if progress.iteration % plan.look or progress.x is None:
            return
        error = judge.value(progress.x * units)
        path.append(error)
        if error < best:
            best, kept = error, progress.x.copy()
        if show:
            show(best)

    for data, iterations in plan.stages:
        problem = Objective(Prediction(model, data, plan.scales), units, plan.decay)
        result = lbfgs(problem, z, Stop(iterations=iterations), callback=look, memory=30)
        if result.is_interrupted:
            raise KeyboardInterrupt
        # training goes on from its own best point, not from the one that is kept: longer windows need not begin at a lucky one
        z = result.x
    return Trained(model.replace({"graft.weight": kept * units}), best, path)
