"""How large the noise of a recording is: from the recording alone, and from what a fit leaves unexplained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...engine.run.tangent_coordinates import coordinates
from ...model.arrays import Model
from .data import Recording

# of a white noise, the variance of fourth differences is so many times its own, and its median size so much of its deviation
FOURTH, MEDIAN = 70.0, 0.6745
# no noise is taken to be smaller than this share of what was recorded: rounding is not noise
LEAST = 1e-9
# velocities whose residuals are those of neighbouring positions to this share of their variance say nothing of their own
DERIVED, REACH = 0.5, 4


@dataclass(frozen=True)
class Noise:
    """Standard deviation and correlation from one sample to the next of q and qd (nv,); nan where nothing was used."""

    sigma_q: np.ndarray
    sigma_qd: np.ndarray
    correlation_q: np.ndarray
    correlation_qd: np.ndarray


def size_of(model: Model, recordings: Sequence[Recording]) -> np.ndarray:
    """(2 nv,): how large the recorded numbers are; one for those that rest at zero."""
    q, qd = (np.concatenate([getattr(r, name) for r in recordings]) for name in ("q", "qd"))
    plain_q, plain_dof, _ = coordinates(model)
    size = np.ones(2 * model.nv)
    size[plain_dof] = _largest(q[:, plain_q])
    size[model.nv :] = _largest(qd)
    return size


def _largest(a: np.ndarray) -> np.ndarray:
    most = np.where(np.isfinite(a), np.abs(a), 0.0).max(0, initial=0.0)
    return np.where(most > 0, most, 1.0)


def rough_noise(model: Model, recordings: Sequence[Recording]) -> np.ndarray:
    """(2 nv,): standard deviations of q and qd by their fourth differences, in which a smooth motion vanishes; a first guess,
    too large where the motion is not smooth from sample to sample."""
    of_q = _by_differences([r.q for r in recordings])
    of_qd = _by_differences([r.qd for r in recordings])
    plain_q, plain_dof, turns = coordinates(model)
    sigma = np.full(2 * model.nv, np.nan)
    sigma[plain_dof], sigma[model.nv :] = of_q[plain_q], of_qd
    for i, d in turns:
        sigma[d : d + 3] = 2.0 * np.sqrt((of_q[i : i + 4] ** 2).mean())  # an angle turns its quaternion by half
    size = size_of(model, recordings)
    return np.maximum(np.where(np.isfinite(sigma), sigma, size), LEAST * size)


def _by_differences(parts: Sequence[np.ndarray]) -> np.ndarray:
    fourth = np.concatenate([np.diff(np.asarray(a, float), n=4, axis=0) for a in parts if len(a) > 4] or [parts[0][:0]])
    out = np.full(fourth.shape[1], np.nan)
    has = np.isfinite(fourth).any(0)
    if has.any():
        out[has] = np.nanmedian(np.abs(fourth[:, has]), axis=0) / (MEDIAN * np.sqrt(FOURTH))
    return out


def derived_rates(r: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """(nv,): whether the residuals (K, S, 2 nv) of qd follow from those of q nearby, as those of differences and filters do. Their
    second differences are looked at, in which what is smooth (such as the error of the differences themselves) vanishes."""
    nv = r.shape[2] // 2
    r, mask = np.diff(r, n=2, axis=0), mask[:-2] & mask[1:-1] & mask[2:]
    return np.array(
        [_explained(r[..., d], r[..., nv + d], mask[..., d], mask[..., nv + d]) > DERIVED for d in range(nv)]
    )


def _explained(of_q: np.ndarray, of_qd: np.ndarray, has_q: np.ndarray, has_qd: np.ndarray) -> float:
    """The share of the variance of qd (K, S) that a filter of q explains, less what it would of pure noise."""
    K, width = len(of_q), 2 * REACH + 1
    if width + 2 > K:
        return 0.0
    windows = [slice(k, K - width + 1 + k) for k in range(width)]
    X, y = np.stack([of_q[w] for w in windows], -1), of_qd[windows[REACH]]
    has = np.all([has_q[w] for w in windows], axis=0) & has_qd[windows[REACH]]
    X, y = X[has], y[has]
    if len(y) < 3 * width or not (y @ y) > 0:
        return 0.0
    left = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
    return 1.0 - (left @ left) / (y @ y) * len(y) / (len(y) - width)
