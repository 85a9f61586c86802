"""Copies of a motion under noise, in pairs +z and -z, and how what is said of copies becomes what is said of the motion.

Arrays of copies have the environments first. Noise is kept in coordinates of its own: that of q in tangent coordinates, that of
controls once for all steps over which it is held.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...model.arrays import State
from ..run.tangent_coordinates import coordinates, displaced, rows_of, to_tangent
from .copies import copies

if TYPE_CHECKING:
    from ..run.trajectory import Trajectory
    from .randomised import Randomised

NAMES = ("q", "qd", "u", "force")


class Copies:
    """Environments `some` of a motion, each `samples` times; noise: z (pairs, ...) of standard deviation one, by name."""

    def __init__(self, meaning: Randomised, motion: Trajectory, some: slice, outputs: tuple[str, ...]) -> None:
        self.motion, self.some, self.pairs = motion, some, meaning.samples // 2
        self.hold, self.sigma = meaning.hold * motion.run.inputs.hold, meaning.sigmas
        self.noise = {
            n: self._drawn(k, n, meaning.seed) for k, n in enumerate(NAMES) if n in self.sigma and self.has(n)
        }
        self.run = self._run(copies(motion, some, meaning.samples), outputs)
        # (environments, pairs): 1 where neither of the two diverged
        self.weights: np.ndarray = self.paired(self.run.status < 0).all(2).astype(float)

    def has(self, name: str) -> bool:
        return name in ("q", "qd") or getattr(self.motion.run.inputs, name) is not None

    def has_time(self, name: str) -> bool:
        return name == "u" or (name == "force" and bool(self.motion.run.inputs.force_step))

    def _drawn(self, number: int, name: str, seed: int) -> np.ndarray:
        model, steps = self.motion.model, self.motion.steps
        shape: dict[str, tuple] = {"q": (model.nv,), "qd": (model.nv,), "force": (model.n_links, 6)}
        shape["u"] = (-(-steps // self.hold), model.nu)
        time = (steps,) if name == "force" and self.has_time(name) else ()
        return np.random.default_rng((seed, number)).normal(size=(self.pairs, *time, *shape[name]))

    def _run(self, wide: Trajectory, outputs: tuple[str, ...]) -> Trajectory:
        from ..run.rollout import rolled_out

        i, n = wide.run.inputs, self.some.stop - self.some.start
        given: dict[str, Any] = {"q": i.q, "qd": i.qd, "u": i.u, "force": i.force}
        for name, z in self.noise.items():
            both = self.sigma[name] * np.tile(
                np.stack([z, -z], 1).reshape(-1, *z.shape[1:]), (n,) + (1,) * (z.ndim - 1)
            )
            change = self.outwards(name, both, i.q)
            given[name] = given[name] + (np.moveaxis(change, 0, 1) if self.has_time(name) else change)
        given["q"] = _with_unit_turns(wide.model, given["q"])
        return rolled_out(
            wide.model, State(given["q"], given["qd"]), given["u"], i.steps, given["force"], outputs, self.motion.run.threads,
            on_nan="freeze", warns=False,
        )  # fmt: skip

    # axes -----------------------------------------------------------------------------------------------------------------

    def paired(self, x: np.ndarray) -> np.ndarray:
        """(copies, ...) -> (environments, pairs, 2, ...)."""
        return x.reshape(-1, self.pairs, 2, *x.shape[1:])

    def first(self, name: str, x: np.ndarray) -> np.ndarray:
        """With the environments first."""
        return np.moveaxis(x, 1, 0) if self.has_time(name) else x

    def repeated(self, x: np.ndarray, axis: int) -> np.ndarray:
        """Of the motion's environments: for every copy the same."""
        return np.repeat(np.take(x, range(self.some.start, self.some.stop), axis), 2 * self.pairs, axis)

    # coordinates of noise -------------------------------------------------------------------------------------------------

    def outwards(self, name: str, z: np.ndarray, q: np.ndarray) -> np.ndarray:
        """A change in coordinates of noise, as one of the array itself; q: where."""
        if name == "q":
            return displaced(self.motion.model, q, z)
        return np.repeat(z, self.hold, 1)[:, : self.motion.steps] if name == "u" else z

    def inwards(self, name: str, bar: np.ndarray, q: np.ndarray) -> np.ndarray:
        """A cotangent of an array, as one of noise: the transpose."""
        if name == "q":
            return to_tangent(self.motion.model, q, bar)
        return np.add.reduceat(bar, range(0, self.motion.steps, self.hold), 1) if name == "u" and self.hold > 1 else bar

    def told(self, name: str, bar: np.ndarray, q: np.ndarray) -> np.ndarray:
        """A cotangent of noise, as one of an array: steps over which a control is held have equal parts of it."""
        if name == "q":
            return np.einsum("ni,nij->nj", bar, rows_of(self.motion.model, q))
        return self.outwards(name, bar / self._counts(), q) if name == "u" else bar

    def direction(self, name: str, dot: np.ndarray, q: np.ndarray) -> np.ndarray:
        """A direction of an array, as one of noise: of held controls the mean."""
        if name == "q":
            return np.einsum("nij,nj->ni", rows_of(self.motion.model, q), dot)
        return self.inwards(name, dot, q) / self._counts() if name == "u" else dot

    def _counts(self) -> np.ndarray:
        starts = np.arange(0, self.motion.steps, self.hold)
        return np.minimum(self.hold, self.motion.steps - starts)[:, None]


def _with_unit_turns(model: Any, q: np.ndarray) -> np.ndarray:
    for at, _ in coordinates(model)[2]:
        q[:, at : at + 4] /= np.linalg.norm(q[:, at : at + 4], axis=-1, keepdims=True)
    return q


def mean_of(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(environments, pairs, ...) -> (environments, ...), of the pairs that count."""
    wide = weights.reshape(*weights.shape, *(1,) * (x.ndim - 2))
    return np.where(wide > 0, x, 0.0).sum(1) / np.maximum(wide.sum(1), 1.0)


def share_of_first(first: np.ndarray, zeroth: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(environments,): the share of the first of two estimates, (environments, pairs, ...), that makes the square error of their
    mix least, if the second is true but for its noise."""
    n = np.maximum(weights.sum(1), 1.0)
    means = [mean_of(x, weights) for x in (first, zeroth)]
    axes = tuple(range(1, first.ndim - 1))
    noise = [
        mean_of((x - m[:, None]) ** 2, weights).sum(axes) / np.maximum(n - 1.0, 1.0)
        for x, m in zip((first, zeroth), means, strict=True)
    ]
    bias = np.maximum(((means[0] - means[1]) ** 2).sum(axes) - noise[0] - noise[1], 0.0)
    total = noise[0] + noise[1] + bias
    return np.where(total > 0, noise[1] / np.where(total > 0, total, 1.0), 1.0)


def said(copied: Copies, bars: Any) -> np.ndarray:
    """(environments, pairs, 2): what the cotangents of a loss say of the copies."""
    run = copied.run
    parts = [(bars.q, run.run.states()[0]), (bars.qd, run.run.states()[1])]
    parts += [(bar, run.run.outputs[name]) for name, bar in bars.outputs.items()]
    total = np.zeros(run.run.inputs.batch)
    for bar, value in parts:
        total += np.moveaxis(bar * value, 1, 0).reshape(run.run.inputs.batch, -1).sum(-1)
    return copied.paired(total)


def all_of(parts: list[Mapping[str, np.ndarray]], axes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Arrays by name, side by side along their axes of environments."""
    return {name: np.concatenate([part[name] for part in parts], axes[name]) for name in parts[0]}
