"""Gaits as data: when each foot stands. Legs are named by their place, so that a gait serves every robot."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

PLACES = ("FL", "FR", "RL", "RR")


@dataclass(frozen=True)
class Gait:
    """A cycle of `period` seconds, of which a foot stands for the share `duty`, beginning at its own `offset` (0 to 1; order of
    PLACES)."""

    name: str
    period: float
    duty: float
    offset: tuple[float, float, float, float]

    def phase(self, time: float | np.ndarray, places: tuple[str, ...]) -> np.ndarray:
        """How far each leg is in its cycle, from 0 (it touches down) to 1."""
        offset = np.array([self.offset[PLACES.index(p)] for p in places])
        return (time / self.period - offset) % 1.0

    def stands(self, time: float | np.ndarray, places: tuple[str, ...]) -> np.ndarray:
        return self.phase(time, places) < self.duty

    def schedule(self, time: float, dt: float, steps: int, places: tuple[str, ...]) -> np.ndarray:
        """Which feet stand in the middle of each step to come, (steps, legs)."""
        return self.stands(time + (np.arange(steps)[:, None] + 0.5) * dt, places)

    @property
    def stance_time(self) -> float:
        return self.duty * self.period

    @property
    def swing_time(self) -> float:
        return (1.0 - self.duty) * self.period


GAITS = {
    g.name: g
    for g in (
        # diagonal feet together: 0.3 s of stance, as NeuralSim's controller has it
        Gait("trot", 0.5, 0.6, (0.0, 0.5, 0.5, 0.0)),
        Gait("pace", 0.4, 0.6, (0.0, 0.5, 0.0, 0.5)),
        Gait("bound", 0.4, 0.6, (0.0, 0.0, 0.5, 0.5)),
        Gait("walk", 0.8, 0.78, (0.0, 0.5, 0.75, 0.25)),
        Gait("stand", 1.0, 1.0, (0.0, 0.0, 0.0, 0.0)),
    )
}
