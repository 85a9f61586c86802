"""The recording of the Go2, cut into pieces, and the robot that it is of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import jointgrad as jg

from .recordings import recording

FILE = "iit_go2_chirp.npz"
RATE = 200.0
# time steps per sample: 1 would change angles by 2 mrad, 2 by 0.7 mrad (against 4)
SUBSTEPS = 2
# the base does not move, so that only the three joints of a leg push each other: 5 sweeps differ by 5e-11 rad from 50
SWEEPS = 6
BLOCK = 300  # samples


@dataclass(frozen=True)
class Split:
    """Numbers of blocks. validation: those of the teaching blocks that say when training ends."""

    name: str
    teaching: tuple[int, ...]
    validation: tuple[int, ...]
    held_out: tuple[int, ...]

    @property
    def training(self) -> tuple[int, ...]:
        return tuple(k for k in self.teaching if k not in self.validation)


SPLITS = (
    Split("blocks", tuple(range(0, 16, 2)), (6, 14), tuple(range(1, 16, 2))),
    Split("later", tuple(range(10)), (4, 9), tuple(range(10, 16))),
)


@dataclass(frozen=True)
class Chirp:
    """Angles and rates (N+1, 12) at 200 Hz, the angles that were asked for, and the gains of the motors (12,)."""

    q: np.ndarray
    qd: np.ndarray
    target: np.ndarray
    kp: np.ndarray
    kd: np.ndarray


@dataclass(frozen=True)
class Pieces:
    """Parts of the run side by side: starts, controls (steps, pieces, 12) and angles (samples, pieces, 12), NaN beyond the end."""

    start: jg.State
    u: np.ndarray
    q: np.ndarray


# the recording ----------------------------------------------------------------------------------------------------------


def load(data: Path | None = None) -> Chirp:
    record = recording(FILE, data)
    arrays = (record[k].astype(np.float64) for k in ("dof_pos", "dof_vel", "des_dof_pos"))
    gains = (np.broadcast_to(record[k].astype(np.float64), (12,)) for k in ("kp", "kd"))
    return Chirp(*arrays, *gains)


def blocks(chirp: Chirp, numbers: Sequence[int]) -> list[tuple[int, int]]:
    """First and last sample of blocks; a block begins where the one before ends."""
    last = len(chirp.q) - 1
    return [(k * BLOCK, min((k + 1) * BLOCK, last)) for k in numbers]


def cut(chirp: Chirp, spans: Sequence[tuple[int, int]]) -> Pieces:
    """Pieces from one sample to another; the shorter ones end earlier."""
    length = max(b - a for a, b in spans)
    first = [a for a, _ in spans]
    q = np.full((length + 1, len(spans), 12), np.nan)
    u = np.zeros((length * SUBSTEPS, len(spans), 12))
    for k, (a, b) in enumerate(spans):
        q[: b - a + 1, k] = chirp.q[a : b + 1]
        u[:, k] = chirp.target[b - 1]
        u[: (b - a) * SUBSTEPS, k] = np.repeat(chirp.target[a:b], SUBSTEPS, axis=0)
    return Pieces(jg.State(chirp.q[first], chirp.qd[first]), u, q)


# the robot --------------------------------------------------------------------------------------------------------------


def robot(chirp: Chirp) -> jg.Model:
    """The Go2 as Unitree files it, hung up by its base, its motors serving angles with the recorded gains."""
    dog = jg.zoo.go2()
    dog.base = "fixed"
    for link in dog.links.values():
        link.shapes.clear()  # nothing is near enough to be touched
    for name, motor in dog.actuators.items():
        joint = dog.joint(motor.joint)
        joint.limit, joint.friction = (-np.inf, np.inf), 1e-6  # friction is described, so that it may be set
        k = list(dog.actuators).index(name)
        motor.kind, motor.gain, motor.damping = "position", float(chirp.kp[k]), float(chirp.kd[k])
    return with_passive(dog.compile(dt=1.0 / RATE / SUBSTEPS, contact=jg.Impulse(sweeps=SWEEPS)), {"friction": 0.0})


def rows(model: jg.Model) -> list[int]:
    """The moving joints, in the order of the motors."""
    return [model.joint_names.index(f"{name}_joint") for name in model.actuator_names]


def with_passive(model: jg.Model, values: dict[str, Any]) -> jg.Model:
    """The same robot with other armatures, dampings or frictions: a number, or one for each joint."""
    new = {}
    for name, value in values.items():
        new[f"joint.{name}"] = np.array(model.params[f"joint.{name}"])
        new[f"joint.{name}"][rows(model)] = value
    return model.replace(new)


def motion(model: jg.Model, pieces: Pieces) -> np.ndarray:
    """Angles at the samples, (samples, pieces, 12)."""
    return jg.rollout(model, pieces.start, pieces.u).q[::SUBSTEPS]


def joint_errors(model: jg.Model, pieces: Pieces) -> np.ndarray:
    """Root mean square of the errors of each joint's angle, (12,) rad; the starts, which are given, do not count."""
    return np.sqrt(np.nanmean((motion(model, pieces) - pieces.q)[1:] ** 2, axis=(0, 1)))
