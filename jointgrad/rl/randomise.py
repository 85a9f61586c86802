"""Domain randomisation: every environment has a robot of its own, so that a policy does not learn one model by heart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ..model.arrays import FREE, Model
from ..model.errors import InputError
from ..model.names import unknown
from .arrays import Array, namespace

# pushes per action
PUSHES = 1 / 150


@dataclass(frozen=True)
class Randomisation:
    """By which share parameters differ: a factor between 1 - share and 1 + share, even between the two. And how hard a robot
    with a free base is pushed now and then, and how late actions arrive."""

    mass: float = 0.0  # of each link, and its inertia with it
    friction: float = 0.0  # of all pairs that touch, by one factor
    gain: float = 0.0  # of each actuator, and its damping with it
    push: float = (
        0.0  # the most by which a velocity of the base changes at once, m/s and rad/s; every 150 actions or so
    )
    latency: float = 0.0  # of the time between two actions, for how long at most the one before still acts

    def __post_init__(self) -> None:
        for field in fields(self):
            share, most = getattr(self, field.name), np.inf if field.name == "push" else 1
            if not 0 <= share < most:
                raise InputError(f"{field.name} of Randomisation must be from 0 to below {most}, but is {share!r}")

    def draw(self, rng: np.random.Generator, model: Model) -> dict[str, np.ndarray]:
        """Parameters of one environment; all numbers are drawn whatever the shares, so that one share moves one thing."""
        mass = self._factors(rng, self.mass, model.n_links)
        friction = self._factors(rng, self.friction, 1)
        gain = self._factors(rng, self.gain, model.nu)
        factors = {
            "link.mass": mass, "link.inertia": mass[:, None], "pair.friction": friction,
            "actuator.gain": gain, "actuator.damping": gain, "actuator.bias": gain[:, None],
        }  # fmt: skip
        return {name: model.params[name] * factor for name, factor in factors.items()}

    def delays(self, rng: np.random.Generator, hold: int, batch: int) -> np.ndarray:
        """Over how many of the `hold` steps of an action the one before still acts, (batch,), whole numbers."""
        if not self.latency:
            return np.zeros(batch, dtype=np.int64)
        return np.rint(self.latency * hold * rng.random(batch)).astype(np.int64)

    def kick(self, rng: np.random.Generator, model: Model, batch: int) -> np.ndarray:
        """What pushes add to the rates of robots with a free base, (batch, nv): mostly nothing."""
        found = np.zeros((batch, model.nv))
        if self.push and FREE in model.topology.tree["kind"][: model.topology.tree["q"].index(0) + 1]:
            is_pushed, way = rng.random((batch, 1)) < PUSHES, rng.uniform(-1.0, 1.0, (batch, 6))
            found[:, :6] = np.where(is_pushed, self.push * way * (1, 1, 0, 1, 1, 1), 0.0)
        return found

    @staticmethod
    def _factors(rng: np.random.Generator, share: float, count: int) -> np.ndarray:
        return 1.0 + share * rng.uniform(-1.0, 1.0, count)


def late(before: Array, action: Array, delays: Array, hold: int) -> Array:
    """Controls of each step while an action is held, (hold, batch, nu), where it arrives late."""
    xp = namespace(action)
    step = xp.arange(hold)[:, None, None]
    return xp.where(step < delays[None, :, None], before[None], action[None])


def randomisation(given: Any) -> Randomisation | None:
    """As given, or from a mapping of shares by name."""
    if given is None or isinstance(given, Randomisation):
        return given
    if not isinstance(given, Mapping):
        raise InputError(f"randomise must be a Randomisation or a mapping, but is {type(given).__name__}")
    names = [field.name for field in fields(Randomisation)]
    for name in given:
        if name not in names:
            raise InputError(unknown("randomised thing", name, names))
    return Randomisation(**given)
