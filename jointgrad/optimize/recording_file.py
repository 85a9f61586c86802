"""What `jointgrad identify` is told: recordings in files, and unknowns in words."""

from __future__ import annotations

from pathlib import Path

from ..files.npz import read_npz
from ..model.errors import InputError
from ..model.parameters import Entry, Inertia
from .identify import Recording


def read_recording(path: Path) -> Recording:
    """An .npz file with q and qd, and if wanted u and every, as Recording has them."""
    arrays = read_npz(path, "a recording", ("q", "qd", "u", "every"))
    missing = [name for name in ("q", "qd") if name not in arrays]
    if missing:
        raise InputError(f"{path} has no {' and no '.join(missing)}")
    return Recording(arrays["q"], arrays["qd"], arrays.get("u"), int(arrays.get("every", 1)))


def unknown_of(text: str) -> Entry | Inertia:
    """What "joint.damping", "joint.damping=elbow", "joint.damping=elbow:0:5" and "inertia=hand" mean."""
    name, _, which = text.partition("=")
    row, *limits = which.split(":")
    if name == "inertia":
        return Inertia(row)
    try:
        bounds = [float(x) for x in limits]
    except ValueError:
        bounds = [0.0]
    if len(bounds) == 2:
        return Entry(name, row or None, bounds=(bounds[0], bounds[1]))
    if bounds:
        raise InputError(f'"{text}" is not of the form PARAMETER=ROW:LOW:HIGH')
    return Entry(name, row or None)
