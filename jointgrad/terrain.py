"""Heights of ready-made terrains (m), rows along y and columns along x, for `World.add_terrain`.

Every function takes the size of the ground (x, y) and the spacing of its points, and gives an array of heights whose middle
lies at height zero or near it. Rough ground comes from a seed.
"""

from __future__ import annotations

import numpy as np

from .model.errors import ModelError


def _points(size: tuple[float, float], spacing: float) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates x (columns,), y (rows,) about the middle."""
    if not (np.shape(size) == (2,) and np.isfinite(size).all() and spacing > 0 and min(size) >= spacing):
        raise ModelError(f"a terrain needs a size (x, y) of at least its spacing, but has {size} and spacing {spacing}")
    x, y = (spacing * (np.arange(round(s / spacing) + 1) - round(s / spacing) / 2) for s in size)
    return x, y


def flat(size: tuple[float, float] = (8.0, 8.0), spacing: float = 0.1) -> np.ndarray:
    """Level ground at height zero."""
    x, y = _points(size, spacing)
    return np.zeros((len(y), len(x)))


def slopes(
    size: tuple[float, float] = (8.0, 8.0), spacing: float = 0.1, angle: float = 0.2, level: float = 1.0
) -> np.ndarray:
    """A hill like a roof across x: level over `level` m in the middle, and falling to both sides at an angle (rad)."""
    x, y = _points(size, spacing)
    fall = -np.tan(angle) * np.maximum(np.abs(x) - level / 2, 0.0)
    return np.tile(fall, (len(y), 1))


def stairs(
    size: tuple[float, float] = (8.0, 8.0),
    spacing: float = 0.05,
    rise: float = 0.1,
    run: float = 0.3,
    level: float = 1.0,
) -> np.ndarray:
    """Stairs up along x on both sides of a level middle. A riser is as steep as the spacing allows: one cell wide."""
    x, y = _points(size, spacing)
    steps = np.ceil(np.maximum(np.abs(x) - level / 2, 0.0) / run - 1e-9)
    return np.tile(rise * steps, (len(y), 1))


def steps(
    size: tuple[float, float] = (8.0, 8.0), spacing: float = 0.05, height: float = 0.1, width: float = 0.5, seed: int = 0,
    level: float = 1.0,
) -> np.ndarray:  # fmt: skip
    """Square stones of random heights, up to `height` up or down, about a level middle."""
    x, y = _points(size, spacing)
    i, j = (np.floor((c - c[0]) / width + 1e-9).astype(int) for c in (y, x))
    stones = np.random.default_rng(seed).uniform(-height, height, size=(i[-1] + 1, j[-1] + 1))
    return np.where(np.maximum(np.abs(y)[:, None], np.abs(x)) <= level / 2, 0.0, stones[i][:, j])


def rough(
    size: tuple[float, float] = (8.0, 8.0),
    spacing: float = 0.1,
    height: float = 0.05,
    seed: int = 0,
    smooth: float = 0.2,
) -> np.ndarray:
    """Random ground with bumps about `smooth` m wide, their standard deviation half of `height`; its middle is at zero."""
    x, y = _points(size, spacing)
    noise = np.random.default_rng(seed).normal(size=(len(y), len(x)))
    field = _blurred(_blurred(noise, smooth / spacing, 0), smooth / spacing, 1)
    field *= 0.5 * height / max(float(field.std()), 1e-300)
    return field - field[len(y) // 2, len(x) // 2]


def _blurred(field: np.ndarray, width: float, axis: int) -> np.ndarray:
    """Averaged along an axis by a bell about `width` points wide; edges are repeated."""
    reach = max(1, int(np.ceil(1.5 * width)))
    weights = np.exp(-2.0 * (np.arange(-reach, reach + 1) / max(width, 1e-9)) ** 2)
    weights /= weights.sum()
    padded = np.pad(field, [(reach, reach) if k == axis else (0, 0) for k in range(2)], mode="edge")
    return np.apply_along_axis(lambda row: np.convolve(row, weights, mode="valid"), axis, padded)
