"""A search on disk: all that it must know to go on later with the same bits, in an npz file without pickle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from ..files.npz import read_npz
from ..model.arguments import reading, writing
from ..model.errors import InputError

Ended = list[tuple[np.ndarray, np.ndarray]]


def write_search(path: Path, settings: dict, progress: dict, rng: np.random.Generator, ends: Ended) -> None:
    """Ends (points, losses) of all hops so far, the progress, and the state of the random numbers."""
    said = {"settings": settings, "progress": progress, "rng": rng.bit_generator.state}
    new = path.with_name(path.name + ".new")  # an interruption while writing leaves the old file whole
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with writing(path), new.open("wb") as file:
        np.savez(
            file, said=np.array(json.dumps(said)), x=np.concatenate([x for x, _ in ends]),
            losses=np.concatenate([losses for _, losses in ends]), sizes=np.array([len(x) for x, _ in ends]),
        )  # fmt: skip
    new.replace(path)


def read_search(path: Path, settings: dict, rng: np.random.Generator) -> tuple[dict[str, Any], Ended] | None:
    """The progress and the ends of a search that was kept, None where there is none; sets the random numbers to where they were."""
    if not path.exists():
        return None
    what = "a search that was kept (remove it, or choose another file)"
    with reading(path, what):
        arrays = read_npz(path, what, ("said", "x", "losses", "sizes"))
        said = json.loads(str(arrays["said"]))
        found, state, progress = dict(said["settings"]), said["rng"], dict(said["progress"])
        at = np.cumsum(arrays["sizes"])[:-1]
        ends = list(zip(np.split(arrays["x"], at), np.split(arrays["losses"], at), strict=True))
        np.random.default_rng().bit_generator.state = state
    changed = [k for k in {**found, **settings} if found.get(k) != json.loads(json.dumps(settings)).get(k)]
    if changed:
        raise InputError(f"{path} is of a search with other {', '.join(changed)}: remove it, or choose another file")
    rng.bit_generator.state = state
    return progress, ends
