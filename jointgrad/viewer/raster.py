"""Pictures of a film without a screen or a browser: triangles filled into an array, with a depth buffer and a shadow."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numba
import numpy as np

from ..model.rotations import rotation
from .film import Film
from .scene import Piece, normals_of

SKY = np.array([0.914, 0.933, 0.953])
SUN = np.array([0.38, -0.5, 0.95]) / np.linalg.norm([0.38, -0.5, 0.95])
RED = np.array([0.86, 0.16, 0.20])
TINTS = np.array([[0.10, 0.62, 0.45], [0.58, 0.30, 0.78]])
FIELD_OF_VIEW = 0.7  # rad, of the height
FINER = 2  # each pixel is the mean of so many squared
SHADOW = 1024  # pixels of the depth picture seen from the sun


@numba.njit(cache=False)
def _fill(corners, values, depth, out):  # pragma: no cover, compiled
    """Fill triangles (n, 3, 3: column, row, distance) with values (n, 3, channels), nearest first by distance."""
    height, width = depth.shape
    for t in range(len(corners)):
        (x0, y0, z0), (x1, y1, z1), (x2, y2, z2) = corners[t]
        area = (x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0)
        if abs(area) < 1e-12:
            continue
        left, right = max(int(min(x0, x1, x2)), 0), min(int(max(x0, x1, x2)) + 1, width - 1)
        top, bottom = max(int(min(y0, y1, y2)), 0), min(int(max(y0, y1, y2)) + 1, height - 1)
        for row in range(top, bottom + 1):
            for column in range(left, right + 1):
                x, y = column + 0.5, row + 0.5
                a = ((x1 - x) * (y2 - y) - (x2 - x) * (y1 - y)) / area
                b = ((x2 - x) * (y0 - y) - (x0 - x) * (y2 - y)) / area
                c = 1.0 - a - b
                if a < 0 or b < 0 or c < 0:
                    continue
                z = a * z0 + b * z1 + c * z2
                if z < depth[row, column]:
                    depth[row, column] = z
                    for k in range(out.shape[2]):
                        out[row, column, k] = a * values[t, 0, k] + b * values[t, 1, k] + c * values[t, 2, k]


class Painter:
    """Draws the pictures of a film from one place."""

    def __init__(self, film: Film, width: int = 640, height: int = 400, contacts: bool = True, gradients: bool = True):
        self.film, self.width, self.height = film, width, height
        self.contacts, self.gradients = contacts, gradients
        self.camera, self.offsets = film.camera(), film.offsets()
        self.surfaces = [_surface(p) for p in film.scene.solids if p.is_visual]
        self.arrow = _arrow_surface()

    @cached_property
    def axes(self) -> np.ndarray:
        """Right, down and forward of the camera, as rows."""
        forward = self.camera.middle - self.camera.eye
        forward = forward / np.linalg.norm(forward)
        right = np.cross(forward, [0.0, 0.0, 1.0])
        right /= np.linalg.norm(right)
        return np.array([right, np.cross(forward, right), forward])

    def picture(self, frame: int) -> np.ndarray:
        """(height, width, 3), bytes."""
        triangles, normals, colors = self._triangles(frame)
        n_cast = len(triangles)
        marks = self._marks(frame)
        everything = [np.concatenate(parts) for parts in zip((triangles, normals, colors), marks, strict=True)]
        lamp = self._shadow(triangles[:n_cast])
        h, w = FINER * self.height, FINER * self.width
        depth, buffer = np.full((h, w), np.inf), np.zeros((h, w, 9))
        corners = self._seen(everything[0], w, h)
        keep = (corners[..., 2] > 0.02 * self.camera.range).all(-1)
        values = np.concatenate(everything, -1)
        _fill(corners[keep], values[keep], depth, buffer)
        image = self._background(w, h, lamp)
        hit = np.isfinite(depth)
        on_ground = self._ground_depth < depth
        body = _shaded(buffer[hit], self.camera.eye, self._lit(lamp, buffer[hit][:, :3]))
        image[hit] = np.where(on_ground[hit][:, None], image[hit], body)
        mean = image.reshape(self.height, FINER, self.width, FINER, 3).mean((1, 3))
        return (255 * np.clip(mean, 0, 1)).astype(np.uint8)

    def _triangles(self, frame: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        found: list[tuple] = []
        for env in range(self.film.n_shown):
            for piece, corners, normals in self.surfaces:
                R = rotation(self.film.orientation[frame, env, piece.link])
                at = self.film.position[frame, env, piece.link] + self.offsets[env]
                color = np.broadcast_to(np.array(piece.color[:3]), corners.shape)
                found.append((corners @ R.T + at, normals @ R.T, color))
        return _stacked(found)

    def _marks(self, frame: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Arrows of contact forces and gradients."""
        found: list[tuple] = []
        if self.contacts:
            for env, at, vector in zip(*self.film.force_arrows(frame), strict=True):
                found += self._arrow(at + self.offsets[env], vector, RED)
        if self.gradients:
            for env, at, vector, which in zip(*self.film.gradient_arrows(frame), strict=True):
                found += self._arrow(at + self.offsets[env], vector, TINTS[which % 2])
        return _stacked(found)

    def _arrow(self, at: np.ndarray, vector: np.ndarray, color: np.ndarray) -> list[tuple]:
        length = float(np.linalg.norm(vector))
        if length < 1e-9:
            return []
        z, width = vector / length, 0.008 * self.film.size
        x = np.cross(z, [1.0, 0, 0] if abs(z[0]) < 0.9 else [0, 1.0, 0])
        x /= np.linalg.norm(x)
        R = np.array([x, np.cross(z, x), z])
        head = min(0.35 * length, 6 * width)
        found = []
        for (corners, normals), scale, start in (
            (self.arrow[0], (width, width, length - head), 0.0),
            (self.arrow[1], (2.4 * width, 2.4 * width, head), length - head),
        ):
            placed = (corners * scale) @ R + at + start * z
            found.append((placed, normals @ R, np.broadcast_to(color, placed.shape)))
        return found

    def _seen(self, points: np.ndarray, width: int, height: int) -> np.ndarray:
        """Column, row and distance of points."""
        local = (points - self.camera.eye) @ self.axes.T
        scale = height / 2 / np.tan(FIELD_OF_VIEW / 2) / np.maximum(local[..., 2:], 1e-9)
        return np.concatenate([local[..., :2] * scale + (width / 2, height / 2), local[..., 2:]], -1)

    # ground and shadow --------------------------------------------------------------------------------------------------

    @cached_property
    def _floor(self) -> float:
        flat = [self.film.placed(p)[0][2] for p in self.film.scene.planes]
        return float(flat[0]) if flat else float(self.film.extent()[0][2])

    @cached_property
    def _rays(self) -> tuple[np.ndarray, np.ndarray]:
        """Where each fine pixel meets the floor, (h, w, 3), and how far forward; infinite above the horizon."""
        h, w = FINER * self.height, FINER * self.width
        scale = 2 * np.tan(FIELD_OF_VIEW / 2) / h
        x, y = (np.arange(w) + 0.5 - w / 2) * scale, (np.arange(h) + 0.5 - h / 2) * scale
        way = x[None, :, None] * self.axes[0] + y[:, None, None] * self.axes[1] + self.axes[2]
        with np.errstate(divide="ignore", invalid="ignore"):
            far = (self._floor - self.camera.eye[2]) / way[..., 2]
        far = np.where(far > 0, far, np.inf)
        return self.camera.eye + np.where(np.isfinite(far), far, 0.0)[..., None] * way, far

    @property
    def _ground_depth(self) -> np.ndarray:
        """Infinite where there is no ground to hide behind."""
        return self._rays[1] if self.film.scene.planes else np.full_like(self._rays[1], np.inf)

    @cached_property
    def _floor_paint(self) -> tuple[np.ndarray, np.ndarray]:
        """Colour of the floor, and how much of it is left towards the distance."""
        at, far = self._rays
        cell = at[..., :2] / self.camera.tile
        check = np.floor(cell).sum(-1) % 2
        color = np.where(check[..., None] > 0.5, (0.80, 0.835, 0.865), (0.735, 0.775, 0.81))
        away = np.linalg.norm(at[..., :2] - self.camera.middle[:2], axis=-1) / (10 * self.camera.reach)
        fade = np.where(np.isfinite(far), np.clip(1.15 - away, 0, 1), 0.0)
        return color, fade * (1.0 if self.film.scene.planes else 0.35)

    def _background(self, width: int, height: int, lamp: Any) -> np.ndarray:
        color, fade = self._floor_paint
        shade = np.ones((height, width))
        near = fade > 0.3
        if self.film.scene.planes:
            shade[near] = 0.62 + 0.38 * self._lit(lamp, self._rays[0][near])
        return SKY + fade[..., None] * (color * shade[..., None] - SKY)

    def _shadow(self, triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Distances seen from the sun, and the axes of that picture."""
        x = np.cross([0.0, 1.0, 0.0], SUN)
        x /= np.linalg.norm(x)
        axes = np.array([x, np.cross(SUN, x), -SUN])
        depth = np.full((SHADOW, SHADOW), np.inf)
        corners = self._from_sun(axes, triangles)
        _fill(corners, np.zeros((len(corners), 3, 1)), depth, np.zeros((SHADOW, SHADOW, 1)))
        return depth, axes

    def _from_sun(self, axes: np.ndarray, points: np.ndarray) -> np.ndarray:
        local = (points - self.camera.middle) @ axes.T
        return np.concatenate([(local[..., :2] / (1.15 * self.camera.reach) + 1) * SHADOW / 2, local[..., 2:]], -1)

    def _lit(self, lamp: tuple[np.ndarray, np.ndarray], points: np.ndarray) -> np.ndarray:
        """How much of the sun reaches points (n, 3), from 0 to 1, softened over neighbours."""
        depth, axes = lamp
        at = self._from_sun(axes, points)
        total, bias = np.zeros(len(points)), 0.006 * self.camera.reach
        for dx in (-1, 0, 1):
            for dy in (-1, 0, 1):
                i = np.clip(at[:, 1].astype(int) + dy, 0, SHADOW - 1)
                j = np.clip(at[:, 0].astype(int) + dx, 0, SHADOW - 1)
                total += at[:, 2] < depth[i, j] + bias
        return total / 9


def _shaded(values: np.ndarray, eye: np.ndarray, lit: np.ndarray) -> np.ndarray:
    """Colours of surface points: place, normal and colour in a row each."""
    place, normal, color = values[:, :3], values[:, 3:6], values[:, 6:]
    view = eye - place
    view /= np.linalg.norm(view, axis=-1, keepdims=True)
    normal = normal / np.maximum(np.linalg.norm(normal, axis=-1, keepdims=True), 1e-9)
    normal = np.where((normal * view).sum(-1, keepdims=True) < 0, -normal, normal)
    half = view + SUN
    half /= np.linalg.norm(half, axis=-1, keepdims=True)
    sky = 0.5 + 0.5 * normal[:, 2:]
    light = (0.16 + 0.29 * sky) + 0.78 * (np.maximum(normal @ SUN, 0) * lit)[:, None]
    gloss = 0.22 * lit * np.maximum((normal * half).sum(-1), 0) ** 48
    return np.clip(color**2.2 * light + gloss[:, None], 0, 1) ** (1 / 2.2)


def _surface(piece: Piece) -> tuple[Piece, np.ndarray, np.ndarray]:
    """Triangles (n, 3, 3) of a piece and the normals at their corners."""
    vertices, faces = piece.triangles()
    if piece.kind == "mesh":
        vertices, faces = vertices[faces].reshape(-1, 3), np.arange(3 * len(faces)).reshape(-1, 3)
    return piece, vertices[faces], normals_of(vertices, faces)[faces]


def _arrow_surface() -> list[tuple[np.ndarray, np.ndarray]]:
    """Shaft and head along z, of radius and length one."""
    angle = 2 * np.pi * np.arange(13) / 12
    low = np.stack([np.cos(angle), np.sin(angle), 0 * angle], -1)
    out, up = low.copy(), np.array([0.0, 0.0, 1.0])
    shaft = [np.stack([low[:-1], low[1:], low[1:] + up], 1), np.stack([low[:-1], low[1:] + up, low[:-1] + up], 1)]
    turned = [np.stack([out[:-1], out[1:], out[1:]], 1), np.stack([out[:-1], out[1:], out[:-1]], 1)]
    head = np.stack([low[:-1], low[1:], np.broadcast_to(up, (12, 3))], 1)
    return [(np.concatenate(shaft), np.concatenate(turned)), (head, turned[0] + 0.3 * up)]


def _stacked(parts: list[tuple]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if not parts:
        return np.zeros((0, 3, 3)), np.zeros((0, 3, 3)), np.zeros((0, 3, 3))
    a, b, c = (np.concatenate(column) for column in zip(*parts, strict=True))
    return a, b, c
