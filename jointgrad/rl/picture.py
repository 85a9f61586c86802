"""Pictures of environments without a screen: the viewer's own, from a camera that keeps its distance."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from ..model.arrays import State
from .batch import Batch


class Camera:
    """Looks at one environment; it goes along with the robot and does not zoom."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._view: Any = None
        self._from = np.zeros(3)

    def picture(self, batch: Batch, row: int) -> np.ndarray:
        """(height, width, 3), bytes."""
        from ..viewer.film import film_of
        from ..viewer.raster import Painter

        film = film_of(batch.model.environment(row), State(batch.now.q[row], batch.now.qd[row])).without_forces()
        painter = Painter(film, self.width, self.height)
        middle = film.position[0, 0].mean(0)
        if self._view is None:
            self._view, self._from = painter.camera, middle
        way = np.array([1.0, 1.0, 0.0]) * (middle - self._from)
        painter.camera = dataclasses.replace(self._view, middle=self._view.middle + way)
        return painter.picture(0)
