"""Networks for what the fitted laws of contact leave of a tossed cube's motion, and the experiment `jointgrad reproduce toss`.

They are trained through motions: first through windows of a few frames that start at recorded states, where a bounce is judged before
chaos takes over, then through whole tosses as they are judged in the end. A cube looks the same from 24 sides: each time a
toss is seen, its axes are renamed by one of these turns, so that 40 tosses teach as much as they can. Of the teaching
tosses a fifth do not train, but say which weights are kept.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import jointgrad as jg

from ..optimize.progress import Callback, Progress, Stop
from ..optimize.solvers import Adam
from .toss import RATE, Ours, Tosses, loss_and_slope, start_velocity


@dataclass(frozen=True)
class Wiring:
    """One network: what it changes, what it sees, and how."""

    target: str
    inputs: tuple[str, ...]
    mode: str


# what networks change: the one place to name other quantities of the step
NETWORKS: dict[str, tuple[Wiring, ...]] = {
    "impulse": (
        Wiring("pair.friction", ("link.velocity",), "scale"),
        Wiring("pair.restitution", ("link.velocity",), "residual"),
    ),
    "spring": (
        Wiring("pair.friction", ("link.velocity",), "scale"),
        Wiring("pair.damping", ("link.velocity",), "scale"),
        Wiring("pair.stiffness", ("link.velocity",), "scale"),
    ),
}
HIDDEN = (8, 8)
SPREAD = {"link.velocity": (1.0,) * 3 + (5.0,) * 3}  # of what is seen: m/s and rad/s


# turns ------------------------------------------------------------------------------------------------------------------


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of quaternions (..., 4)."""
    w, v, x, y = a[..., :1], a[..., 1:], b[..., :1], b[..., 1:]
    return np.concatenate([w * x - (v * y).sum(-1, keepdims=True), w * y + x * v + np.cross(v, y)], -1)


def conjugate(a: np.ndarray) -> np.ndarray:
    return a * np.array([1.0, -1.0, -1.0, -1.0])


def cube_turns() -> np.ndarray:
    """(24, 4): quaternions of all turns that bring a cube onto itself."""
    units = [np.eye(4)[k] for k in range(4)]
    halves = [np.array([1.0, *signs]) / 2 for signs in itertools.product((1.0, -1.0), repeat=3)]
    mixed = [
        np.sqrt(0.5) * (units[a] + s * units[b]) for a, b in itertools.combinations(range(4), 2) for s in (1.0, -1.0)
    ]
    return np.array(units + halves + mixed)


def turned(tosses: Tosses, turns: np.ndarray) -> Tosses:
    """The same tosses of a cube whose axes have other names: turns (tosses, 4)."""
    pose, start = tosses.pose.copy(), tosses.start.copy()
    pose[..., 3:] = product(pose[..., 3:], np.broadcast_to(turns, pose[..., 3:].shape))
    spin = np.concatenate([np.zeros((len(start), 1)), start[:, 3:]], 1)
    start[:, 3:] = product(product(conjugate(turns), spin), turns)[:, 1:]
    return Tosses(pose, start)


def windows(tosses: Tosses, frames: int, every: int) -> Tosses:
    """Pieces of tosses from their second frame on; velocities are backward differences, as those of the recording are."""
    found = []
    for first in range(1, tosses.frames - frames // 2, every):
        pose = np.full((frames + 1, *tosses.pose.shape[1:]), np.nan)
        piece = tosses.pose[first : first + frames + 1]
        pose[: len(piece)] = piece
        goes_on = np.isfinite(pose[frames // 2, :, 0])
        before, now = tosses.pose[first - 1, goes_on], pose[0, goes_on]
        turn = product(conjugate(before[:, 3:]), now[:, 3:])
        turn *= np.sign(turn[:, :1])
        size = np.linalg.norm(turn[:, 1:], axis=1, keepdims=True)
        angle = 2 * np.arctan2(size, turn[:, :1])
        spin = np.where(size > 1e-12, turn[:, 1:] / np.maximum(size, 1e-12), 0.0) * angle
        start = np.concatenate([now[:, :3] - before[:, :3], spin], 1) * RATE
        found.append((pose[:, goes_on], start))
    return Tosses(np.concatenate([p for p, _ in found], 1), np.concatenate([s for _, s in found]))


# networks ---------------------------------------------------------------------------------------------------------------


class Hybrid:
    """Our cube with fitted parameters and networks; weights z are for what is seen divided by its spread."""

    def __init__(self, law: str, steps: int, params: dict[str, float], wirings: Sequence[Wiring] | None = None,
                 seed: int = 0) -> None:  # fmt: skip
        self.steps = steps
        plain = Ours(law, steps).model
        model = plain.replace({f"pair.{k}": np.full_like(plain.params[f"pair.{k}"], v) for k, v in params.items()})
        for k, wiring in enumerate(wirings or NETWORKS[law]):
            network = jg.MLP(HIDDEN, "tanh", scale=0.05, seed=10 * seed + k)
            model = jg.graft(model, wiring.target, wiring.inputs, network, mode=wiring.mode)
        self.model, self.unit = model, np.ones(model.params["graft.weight"].shape[-1])
        for blueprint in model.topology.grafts:
            spread = np.concatenate([SPREAD[name] for name in blueprint.inputs])
            for first in blueprint.first_weights:
                self.unit[first : first + len(spread) * HIDDEN[0]] = np.repeat(spread, HIDDEN[0])
        self.first = np.array(model.params["graft.weight"])

    def _motion(self, tosses: Tosses, z: np.ndarray) -> jg.Trajectory:
        n = tosses.pose.shape[1]
        model = self.model.replace({"graft.weight": np.repeat((z / self.unit)[None], n, axis=0)})
        state = jg.State(np.ascontiguousarray(tosses.pose[0]), start_velocity(tosses, self.steps))
        return jg.rollout(model, state, steps=tosses.frames * self.steps, on_nan="freeze")

    def poses(self, tosses: Tosses, z: np.ndarray) -> np.ndarray:
        return self._motion(tosses, z).q[:: self.steps]

    def loss(self, tosses: Tosses, z: np.ndarray) -> float:
        return float(loss_and_slope(tosses, self.poses(tosses, z))[0].mean())

    def gradient(self, tosses: Tosses, z: np.ndarray, longest: float) -> tuple[float, np.ndarray]:
        """Mean loss, and the mean of its slopes, each cut to a length: a toss that balances on an edge has no useful one."""
        motion = self._motion(tosses, z)
        q_bar = np.zeros_like(motion.q)
        loss, q_bar[:: self.steps] = loss_and_slope(tosses, motion.q[:: self.steps])
        each = np.nan_to_num(motion.backward(q_bar=q_bar, wrt=("params",)).params["graft.weight"] / self.unit)
        each /= np.maximum(np.linalg.norm(each, axis=1, keepdims=True) / longest, 1.0)
        return float(loss.mean()), each.mean(0)
