"""What an identification is given: recordings, how they are used, and the segments into which they are cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...model.arrays import Model
from ...model.errors import InputError

STARTS = ("auto", "free", "measured", "exact")


@dataclass(frozen=True)
class Recording:
    """Samples q (N+1, nq) and qd (N+1, nv), NaN where nothing was measured, and controls u (N * every, nu) of every time step.
    every: time steps from one sample to the next."""

    q: np.ndarray
    qd: np.ndarray
    u: np.ndarray | None = None
    every: int = 1

    @property
    def samples(self) -> int:
        return len(self.q)

    def part(self, first: int, last: int) -> Recording:
        """Samples first to last, both included."""
        u = None if self.u is None else self.u[first * self.every : last * self.every]
        return Recording(self.q[first : last + 1], self.qd[first : last + 1], u, self.every)


@dataclass(frozen=True)
class Settings:
    """How recordings are used.

    sigma_q, sigma_qd: standard deviations of the measurements, (nv,) or a number; infinite: do not use; None: estimated from what
    the model leaves unexplained. segment: samples per segment, None for the whole recording, "auto" for what predicts held-out
    windows best. starts: a segment starts at a state that is found too ("free"), at the recorded one ("measured"; its noise is
    part of the deviations), or at a recorded one without noise ("exact"); "auto": free for segments, measured for a whole
    recording, and of both what predicts better where segments are chosen too. sigma_defect: how well free segments must join;
    infinite: not at all.
    """

    sigma_q: Any = None
    sigma_qd: Any = None
    segment: int | str | None = "auto"
    starts: str = "auto"
    sigma_defect: float = np.inf
    mode: str = "auto"  # of the Jacobian: "forward" (tangents), "reverse" (one pass back per residual)

    @property
    def is_chosen(self) -> bool:
        """Whether held-out windows decide on the segments."""
        return self.segment == "auto"

    @property
    def samples(self) -> int | None:
        """Per segment; a problem by itself has nobody to choose, and takes a recording as one motion."""
        return self.segment if isinstance(self.segment, int) else None

    @property
    def start_kind(self) -> str:
        return self.starts if self.starts != "auto" else ("measured" if self.samples is None else "free")


@dataclass
class Pieces:
    """Segments of all recordings, side by side: starts (S, ...), controls (L, S, nu), the data at the samples."""

    q0: np.ndarray
    qd0: np.ndarray
    u: np.ndarray | None
    steps: int
    samples: np.ndarray  # time steps of the samples in a segment
    q: np.ndarray  # (K, S, nq), NaN beyond the end
    qd: np.ndarray
    at: list[tuple[int, int]]  # recording and its sample at which a segment starts
    follows: list[tuple[int, int]] = field(default_factory=list)  # segment pairs that must join

    @property
    def count(self) -> int:
        return len(self.q0)


def check(model: Model, recordings: Sequence[Recording], settings: Settings) -> None:
    """Refuse what does not fit together, by name."""
    if settings.starts not in STARTS:
        raise InputError(f"starts must be one of {', '.join(STARTS)}, but is {settings.starts!r}")
    if settings.mode not in ("auto", "forward", "reverse"):
        raise InputError(f'mode must be "auto", "forward" or "reverse", but is {settings.mode!r}')
    if not (settings.segment in ("auto", None) or (isinstance(settings.segment, int) and settings.segment > 0)):
        raise InputError(f'segment must be "auto", None or samples, 1 or more, but is {settings.segment!r}')
    if not recordings:
        raise InputError("there is no recording to fit to")
    for k, r in enumerate(recordings):
        _check_one(model, r, k)
        if r.every != recordings[0].every:
            raise InputError("recordings must have the same number of time steps between samples")


def _check_one(model: Model, r: Recording, k: int) -> None:
    if np.ndim(r.q) != 2 or r.q.shape[1:] != (model.nq,) or r.qd.shape != (r.samples, model.nv) or r.samples < 2:
        raise InputError(
            f"recording {k} must have q (samples, {model.nq}) and qd (samples, {model.nv}), two samples or more, but has "
            f"{r.q.shape} and {r.qd.shape}"
        )
    infinite = [name for name in ("q", "qd") if np.isinf(getattr(r, name)).any()]
    if infinite:
        raise InputError(f"recording {k} has infinite entries in {infinite[0]}; NaN stands for what was not measured")
    if r.every < 1:
        raise InputError(f"recording {k} must have every 1 or more, but has {r.every}")
    steps = (r.samples - 1) * r.every
    if r.u is not None and r.u.shape != (steps, model.nu):
        raise InputError(f"recording {k} must have u {(steps, model.nu)}, but has {r.u.shape}")
    if r.u is not None and not np.isfinite(r.u).all():
        raise InputError(f"recording {k} has controls u that are not finite; only q and qd may be NaN")


def cut(model: Model, recordings: Sequence[Recording], segment: int | None) -> Pieces:
    """Segments of equal length; beyond the end of a recording there is no data and no control."""
    length = min(segment or 10**9, max(r.samples for r in recordings) - 1)
    every, parts, follows, at = recordings[0].every, [], [], []  # type: ignore[var-annotated]
    for number, r in enumerate(recordings):
        firsts = list(range(0, r.samples - 1, length))
        follows += [(len(parts) + i, len(parts) + i + 1) for i in range(len(firsts) - 1)]
        parts += [_one_piece(model, r, first, length) for first in firsts]
        at += [(number, first) for first in firsts]
    q, qd, u = (None if parts[0][i] is None else np.stack([p[i] for p in parts], axis=1) for i in range(3))  # type: ignore[misc]
    return Pieces(q[0].copy(), qd[0].copy(), u, length * every, np.arange(length + 1) * every, q, qd, at, follows)  # type: ignore[arg-type, index]


def _one_piece(model: Model, r: Recording, first: int, length: int) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    last = min(first + length, r.samples - 1)
    pad = first + length - last
    q, qd = (np.pad(a[first : last + 1].astype(float), ((0, pad), (0, 0)), constant_values=np.nan) for a in (r.q, r.qd))
    if not model.nu:
        return q, qd, None
    u = np.zeros((length * r.every, model.nu)) if r.u is None else r.u[first * r.every : last * r.every].astype(float)
    return q, qd, np.pad(u, ((0, length * r.every - len(u)), (0, 0)))
