"""The ground as the feet have felt it: a plane through the places where they stood last."""

from __future__ import annotations

import numpy as np

from .controller import turn_about_z


class Ground:
    """Updated whenever feet touch; flat at the height of the first touch until three feet have told."""

    def __init__(self) -> None:
        self._points: np.ndarray | None = None
        self._plane = np.zeros(3)  # slopes along x and y, height at the origin

    def touch(self, feet: np.ndarray, radius: float, contact: np.ndarray) -> None:
        """Centres of the feet (4, 3) and which of them touch."""
        low = feet - np.array([0.0, 0.0, radius])
        if self._points is None:
            self._points = low.copy()
        self._points[contact] = low[contact]
        centre = self._points.mean(0)
        arm = self._points - centre
        # a little flatness in advance: four points of noise are no slope
        normal = arm[:, :2].T @ arm[:, :2] + 1e-3 * np.eye(2)
        fitted = np.linalg.solve(normal, arm[:, :2].T @ arm[:, 2])
        self._plane = np.array([*fitted, centre[2] - fitted @ centre[:2]])

    def height_at(self, place: np.ndarray) -> float:
        return float(self._plane[:2] @ place + self._plane[2])

    def tilt(self, yaw: float) -> tuple[float, float]:
        """Roll and pitch of a body of this heading that is level with the ground."""
        along, across = turn_about_z(yaw).T[:2, :2] @ self._plane[:2]
        return float(np.arctan(across)), float(-np.arctan(along))
