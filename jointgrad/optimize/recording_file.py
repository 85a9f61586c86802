"""What `jointgrad identify` is told: recordings in files, and unknowns in words."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..files.npz import read_npz
from ..model.arguments import checked_count
from ..model.arrays import Model
from ..model.errors import InputError
from ..model.parameters import Entry, Inertia
from .identify import Recording, Settings


def read_recording(path: Path) -> Recording:
    """An .npz file with q and qd, and if wanted u and every, as Recording has them."""
    arrays = read_npz(path, "a recording", ("q", "qd", "u", "every"))
    missing = [name for name in ("q", "qd") if name not in arrays]
    if missing:
        raise InputError(f"{path} has no {' and no '.join(missing)}")
    wrong = [name for name, x in arrays.items() if x.dtype.kind not in "iuf" or x.ndim != (0 if name == "every" else 2)]
    if wrong:
        raise InputError(
            f"{wrong[0]} of {path} is {arrays[wrong[0]].dtype} of shape {arrays[wrong[0]].shape}; numbers "
            "(samples, values) are needed, and for every one whole number"
        )
    every = arrays.pop("every", np.array(1))
    checked_count(f"every of {path}", int(every) if float(every).is_integer() else float(every), 1)
    return Recording(**{name: x.astype(np.float64) for name, x in arrays.items()}, every=int(every))


def segments_of(text: str, model: Model, every: int) -> Settings:
    """What --segments auto, none and SECONDS mean."""
    if text in ("auto", "none"):
        return Settings() if text == "auto" else Settings(segment=None, starts="measured")
    try:
        seconds = float(text)
    except ValueError:
        seconds = np.nan
    samples = seconds / (float(np.ravel(model.params["world.dt"])[0]) * every)
    if not 1.0 <= samples < np.inf:
        raise InputError(f'segments must be auto, none or seconds, one sample or longer, but is "{text}"')
    return Settings(segment=round(samples), starts="free")


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
