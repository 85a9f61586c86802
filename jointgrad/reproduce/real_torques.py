"""Torques that recorded motions of real pendulums need, against those measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import jointgrad as jg

from ..grafts.weights import said_by
from .real_machines import (
    BASE,
    Machine,
    Run,
    Split,
    base_numbers,
    inverse,
)

# seconds of smoothing for accelerations that are tried on the training runs
SMOOTHINGS = (0.06, 0.1, 0.14, 0.18, 0.24, 0.3)


def needed(model: jg.Model, m: Machine, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
    """Torques that a motion needs, with what networks do. Where these see the torque, it is found by repetition."""
    tau = inverse(base_numbers(model, m.length), m.length, q, qd, qdd)
    if not model.topology.grafts:
        return tau
    blueprint, found = model.topology.grafts[0], tau
    sees_torque = "control" in blueprint.inputs
    for _ in range(20 if sees_torque else 1):
        seen = [{"joint.velocity": qd, "control": found}[k] for k in blueprint.inputs]
        own = [np.stack([a[:, i] for a in seen], -1) for i in range(model.nv)]
        said = np.concatenate([said_by(model, i, x) for i, x in enumerate(own)], -1)
        found = 0.5 * (found + tau - said) if sees_torque else tau - said
    return found


def torques(model: jg.Model, m: Machine, runs: Sequence[Run], seconds: float) -> tuple[np.ndarray, np.ndarray]:
    """Predicted and measured (T, n), of motions smoothed over so many seconds."""
    said, measured = [], []
    for r in runs:
        q, qd, qdd = (r.smoothed(m.dt, k, seconds) for k in range(3))
        said.append(needed(model, m, q, qd, qdd))
        measured.append(r.u)
    return np.concatenate(said), np.concatenate(measured)


def explained(said: np.ndarray, measured: np.ndarray) -> np.ndarray:
    """1 - SSE/SS, by joint."""
    return 1 - ((said - measured) ** 2).sum(0) / (measured**2).sum(0)


def of_torques(model: jg.Model, m: Machine, split: Split) -> dict[str, Any]:
    """Of held-out motions, smoothed so that the model explains the torques that it may see best."""
    seconds = max(SMOOTHINGS, key=lambda s: explained(*torques(model, m, split.seen, s)).sum())
    return {"smoothing_s": seconds, "explained": explained(*torques(model, m, split.held_out, seconds)).tolist()}


def regression(m: Machine, split: Split) -> dict[str, Any]:
    """Least squares of the measured torques in the numbers of the equations of motion (`base`); smoothing as above."""
    best: dict[str, Any] = {}
    for seconds in SMOOTHINGS:
        A, B = (np.concatenate([_columns(m, r, seconds) for r in runs]) for runs in (split.seen, split.held_out))
        a, b = (np.concatenate([r.u for r in runs]) for runs in (split.seen, split.held_out))
        x = np.linalg.lstsq(A.reshape(-1, A.shape[-1]), a.ravel(), rcond=None)[0]
        seen = float(explained(A @ x, a).sum())
        if not best or seen > best["seen"]:
            best = {
                "smoothing_s": seconds,
                "seen": seen,
                "explained": explained(B @ x, b).tolist(),
                "base": _named(x, m),
            }
    return best


def _named(x: np.ndarray, m: Machine) -> dict[str, list[float]]:
    """Numbers of a regression by name; the first armature is part of the first inertia."""
    n = m.runs[0].q.shape[1]
    return {name: [0.0] * (name == "armature") + x[at : at + n - (name == "armature")].tolist()
            for name, at in zip(BASE, (0, n, 2 * n, 3 * n - 1, 4 * n - 1), strict=True)}  # fmt: skip


def _columns(m: Machine, run: Run, seconds: float) -> np.ndarray:
    """(T, n, numbers): torques per unit of each base number; the first armature acts as the first inertia does."""
    q, qd, qdd = (run.smoothed(m.dt, k, seconds) for k in range(3))
    n, found = q.shape[1], []
    for name in BASE:
        for i in range(1 if name == "armature" else 0, n):
            unit = {k: np.zeros(n) for k in BASE}
            unit[name][i] = 1.0
            found.append(inverse(unit, m.length, q, qd, qdd))
    return np.stack(found, -1)
