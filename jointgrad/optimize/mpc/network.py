"""A network in place of the convex problem (NeuralSim, section V-E): from what the problem is made of to forces of standing feet.

Inputs are NeuralSim's 41 in the axes of the heading: velocity, roll pitch and zero, angular velocity, who stands, feet from the
centre of mass, wanted position, velocity, angles and angular velocity. In the four places of the friction, which never changes
here, stand the phases of the legs: the teacher knows how long each foot will stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...files.npz import read_npz
from ...model.errors import InputError
from .controller import Command, turn_about_z
from .quadruped import ConvexMPC, Moment

INPUTS, OUTPUTS = 41, 12


@dataclass(frozen=True)
class Network:
    """Layers (W, b) with ELU between them; inputs are scaled by mean and deviation first. Outputs: forces over the weight of
    the robot."""

    layers: tuple[tuple[np.ndarray, np.ndarray], ...]
    mean: np.ndarray
    deviation: np.ndarray

    def __call__(self, x: np.ndarray) -> np.ndarray:
        x = (x - self.mean) / self.deviation
        for k, (W, b) in enumerate(self.layers):
            x = W @ x + b
            if k + 1 < len(self.layers):
                x = np.where(x > 0, x, np.expm1(np.minimum(x, 0.0)))
        return x

    def save(self, path: Path) -> None:
        named = {f"W{k}": W for k, (W, _) in enumerate(self.layers)} | {
            f"b{k}": b for k, (_, b) in enumerate(self.layers)
        }
        np.savez(path, mean=self.mean, deviation=self.deviation, **named)  # type: ignore[arg-type]  # its stub, not ours


def load_network(path: Path) -> Network:
    """A file that `save` wrote; checked before it is used."""
    found = read_npz(path, "a walking network")
    count = sum(name.startswith("W") for name in found)
    wanted = {"mean", "deviation"} | {f"{letter}{k}" for letter in "Wb" for k in range(count)}
    if missing := wanted - found.keys():
        raise InputError(f"{path} is not a walking network: it has no {', '.join(sorted(missing))}")
    layers = tuple((found[f"W{k}"].astype(float), found[f"b{k}"].astype(float)) for k in range(count))
    network = Network(layers, found["mean"].astype(float), found["deviation"].astype(float))
    _check_network(path, network)
    return network


def _check_network(path: Path, network: Network) -> None:
    widths = [INPUTS, *(len(b) if b.ndim else 0 for _, b in network.layers)]
    fits = widths[-1] == OUTPUTS and network.mean.shape == network.deviation.shape == (INPUTS,)
    fits &= all(
        W.shape == (m, n) and b.ndim == 1 for (W, b), n, m in zip(network.layers, widths, widths[1:], strict=False)
    )
    numbers = [network.mean, network.deviation, *(a for layer in network.layers for a in layer)]
    if not (fits and all(np.isfinite(a).all() for a in numbers)):
        raise InputError(f"{path} holds no walking network of {INPUTS} inputs and {OUTPUTS} outputs")


@dataclass
class NetworkMPC(ConvexMPC):
    """The same controller with a network for its plans."""

    network: Network | None = None

    def features(self, now: Moment, at: float, stands: np.ndarray, command: Command) -> np.ndarray:
        """(41,)"""
        body, turn = now.body, turn_about_z(now.body.angles[2])
        place, velocity = self._wanted(now, command)
        feet = np.where(stands[:, None], now.feet, self._footholds(now, command, at))
        height = place[0, 5] - body.position[2]
        return np.concatenate((
            body.velocity @ turn, [*body.angles[:2], 0.0], body.turning @ turn, stands, ((feet - body.position) @ turn).ravel(),
            self.gait.phase(at, self.robot.places), [0.0, 0.0, height], velocity[0, 3:] @ turn, [*place[0, :2], 0.0],
            velocity[0, :3],
        ))  # fmt: skip

    def _plan(self, now: Moment, at: float, stands: np.ndarray, command: Command) -> np.ndarray:
        assert self.network is not None and self.problem is not None
        share = self.network(self.features(now, at, stands, command)).reshape(4, 3)
        return self.feasible(share, stands) @ turn_about_z(now.body.angles[2]).T

    def feasible(self, share: np.ndarray, stands: np.ndarray) -> np.ndarray:
        """Forces (4, 3) within their friction pyramids, from shares of the weight; swinging feet have none."""
        assert self.problem is not None
        problem = self.problem
        weight = 9.81 * problem.mass
        up = np.clip(share[:, 2:] * weight, problem.least * weight, problem.most * weight) * stands[:, None]
        across = np.clip(share[:, :2] * weight, -problem.friction * up, problem.friction * up)
        return np.concatenate((across, up), 1)


class Watched(NetworkMPC):
    """A network that walks while the convex problem says what it would do: what imitation learns from. Without a network the
    teacher walks."""

    def reset(self) -> None:
        super().reset()
        self.seen: list[np.ndarray] = []
        self.taught: list[np.ndarray] = []

    def _plan(self, now: Moment, at: float, stands: np.ndarray, command: Command) -> np.ndarray:
        assert self.problem is not None
        lesson = ConvexMPC._plan(self, now, at, stands, command)
        self.seen.append(self.features(now, at, stands, command))
        weight = 9.81 * self.problem.mass
        self.taught.append((lesson @ turn_about_z(now.body.angles[2])).ravel() / weight)
        return lesson if self.network is None else super()._plan(now, at, stands, command)


def scaling(inputs: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation of inputs; what never changes is left as it is."""
    x = np.array(inputs)
    deviation = x.std(0)
    return x.mean(0), np.where(deviation > 1e-6, deviation, 1.0)
