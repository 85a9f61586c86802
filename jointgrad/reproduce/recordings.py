"""Where recordings of real machines are. They are not part of the package."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from ..files.npz import read_npz
from ..usage import UsageError

PLACE = "JOINTGRAD_DATA"  # environment variable: the folder


def folder(data: Path | None = None) -> Path:
    """The one that was asked for, that of the environment variable, or shared/data beside the project."""
    if data is not None:
        return data
    return Path(os.environ.get(PLACE) or Path(__file__).resolve().parents[3] / "shared" / "data")


def recording(name: str, data: Path | None = None) -> dict[str, np.ndarray]:
    """The arrays of one .npz file."""
    path = folder(data) / name
    if not path.is_file():
        raise UsageError(f"there is no recording {path}: say where it is with --data or {PLACE}")
    return read_npz(path, "a recording")


def cut(record: dict[str, np.ndarray], name: str, offsets: str = "offsets") -> list[np.ndarray]:
    """The trajectories of one array."""
    ends = record[offsets]
    return [record[name][a:b] for a, b in zip(ends[:-1], ends[1:], strict=True)]
