"""First guesses of the states at which segments start."""

from __future__ import annotations

import numpy as np

from ...engine.run.tangent_coordinates import coordinates
from ...model.arrays import Model, State
from .data import Pieces

# samples and powers of the curve through the beginning of a segment
SAMPLES, POWERS = 10, 4


def smoothed_starts(model: Model, p: Pieces, weight: np.ndarray) -> State:
    """(S, ...): position and velocity at which cubics through the first samples of q and qd begin, weighted (2 nv,); as recorded
    where coordinates turn or nothing was measured."""
    q0, qd0 = p.q0.copy(), p.qd0.copy()
    K, dt = min(SAMPLES, len(p.q)), float(np.ravel(model.params["world.dt"])[0])
    t = p.samples[:K] * dt
    end = t[-1]
    # time in units of the curve's length, so that powers are alike
    of_q = (t[:, None] / end) ** np.arange(POWERS)
    of_qd = np.arange(POWERS) * (t[:, None] / end) ** np.maximum(np.arange(POWERS) - 1, 0) / end
    plain_q, plain_dof, _ = coordinates(model)
    for i, d in zip(plain_q, plain_dof, strict=True):
        rows = np.concatenate([of_q * weight[d], of_qd * weight[model.nv + d]])
        data = np.concatenate([p.q[:K, :, i] * weight[d], p.qd[:K, :, d] * weight[model.nv + d]])
        for s in range(p.count):
            curve = _curve(rows, data[:, s])
            if curve is not None:
                q0[s, i], qd0[s, d] = curve[0], curve[1] / end
    return State(q0, qd0)


def _curve(rows: np.ndarray, data: np.ndarray) -> np.ndarray | None:
    """Coefficients, as many as the samples bear; None without any."""
    is_seen = np.isfinite(data) & (rows != 0).any(1)
    powers = min(POWERS, int(is_seen.sum()))
    if not powers:
        return None
    found = np.linalg.lstsq(rows[is_seen, :powers], data[is_seen], rcond=None)[0]
    return np.pad(found, (0, POWERS - powers))
