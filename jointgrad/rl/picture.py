"""Environments to look at: pictures without a screen, and the viewer in the browser, live."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import numpy as np

from ..model.arrays import State
from .batch import Batch

# the viewer's camera is near; from here a tall robot is seen whole
FARTHER = 1.4


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
            view = painter.camera
            self._view, self._from = dataclasses.replace(view, range=FARTHER * view.range), middle
        way = np.array([1.0, 1.0, 0.0]) * (middle - self._from)
        painter.camera = dataclasses.replace(self._view, middle=self._view.middle + way)
        return painter.picture(0)


class Window:
    """The viewer in the browser, moved along with the environments at the pace of their time, the first nine side by side."""

    def __init__(self) -> None:
        self.viewer: Any = None
        self._due = 0.0

    def show(self, batch: Batch) -> None:
        from ..viewer.browser import view_film
        from ..viewer.film import film_of

        film = film_of(batch.model, State(batch.now.q, batch.now.qd), environments=9).without_forces()
        if self.viewer is None:
            self.viewer = view_film(film, block=False)
        with self.viewer.lock, self.viewer.server.atomic():
            self.viewer.place(film.position[0], film.orientation[0])
        time.sleep(max(0.0, self._due - time.monotonic()))
        self._due = time.monotonic() + batch.task.control_dt

    def close(self) -> None:
        if self.viewer is not None:
            self.viewer.stop()
            self.viewer = None
