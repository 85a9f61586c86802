"""One world of `jointgrad bench gradfuzz`: its gradient along many directions, against tangents and differences.

A kink is where the clamp signature is not the same on all points of a difference, however near they are: it is declared by
the signatures alone, never by a disagreement. There the gradient must be the slope of one of the two sides, if one clamp
changes; where several change at once (points that coincide, flat feet at rest) slopes do not add up, and no gradient can be.
Gradient and tangent agree everywhere, also where differences say nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import jointgrad as jg

from ..engine.looks.certificate import step_records
from ..engine.run.trajectory import Gradient
from ..model.arrays import NOT_NEGATIVE, PARAMS
from .gradfuzz_worlds import BATCH, Subject

TOLERANCE = 1e-5  # of what a derivative may differ from its differences, as a share of it
TANGENT_TOLERANCE = 1e-6  # and from the tangent, which differs by rounding alone
# steps of differences in units of what is moved: curvature spoils the large ones, rounding the small ones, and the nearer a
# kink is, the smaller they must be
STEPS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10)
# a difference says something while rounding is less than this share of it
INFORMATIVE = 1e-3
PROBES, PROBE = 8, 1e-13  # of rounding, and how far they go
# how small a derivative may be before rounding is all there is to compare: beside the largest of its kind, beside the largest
# of all, and in itself
SMALL, TINY, SMALLEST = 1e-3, 1e-6, 1e-3
# N s: the last digit of more than this is as much as gradient and tangent may differ by where they are small. A contact
# that presses where a joint lets nothing move, such as on its very axis, has impulses of 1e8 to 1e11
MOST_IMPULSE = SMALL * TANGENT_TOLERANCE / np.finfo(float).eps
# points of a difference and their weights, of fourth order; the last one of a side shows that nothing changes before the first
Sides = tuple[float, ...]
BOTH_SIDES: Sides = (1, -1, 2, -2)
ABOVE: Sides = (1, 2, 3, 4, 1e-6)
BELOW: Sides = (-1, -2, -3, -4, -1e-6)
# at the edge of what an input may be; the last point is as near to it as numbers are
EDGE: Sides = (1, 2, 3, 4, 0)
NEAREST = 1e-15
WEIGHTS = {
    BOTH_SIDES: (8 / 12, -8 / 12, -1 / 12, 1 / 12), ABOVE: (4.0, -3.0, 4 / 3, -1 / 4, 0.0), BELOW: (-4.0, 3.0, -4 / 3, 1 / 4, 0.0),
    EDGE: (4.0, -3.0, 4 / 3, -1 / 4, 0.0),
}  # fmt: skip
# how much more rounding each lets through than a central difference
SPREAD = {sides: sum(map(abs, w)) / sum(map(abs, WEIGHTS[BOTH_SIDES])) for sides, w in WEIGHTS.items()}
# bounds that, at zero, let no clamp act as it does a little above
BOUNDS = ("pair.friction", "pair.torsion", "pair.rolling", "joint.friction")
AGREES, DIFFERS, KINK, NEITHER, UNSURE = "agrees", "differs", "kink", "neither", "unsure"
STATE = ("q", "qd", "u", "force")
# how far an entry is moved where that is not in proportion to its size
UNITS = {
    "force": 10.0, "u": 1.0, "link.drag_size": 0.1, "world.density": 100.0, "joint.armature": 1e-2,
    "pair.stiffness": 100.0, "pair.damping": 100.0, "pair.margin": 1e-3,
    **dict.fromkeys(("pair.softness", "pair.compliance", "world.softness", "world.compliance"), 1e-4),
}  # fmt: skip


@dataclass(frozen=True)
class Direction:
    """A change of one input of one environment: one entry, or all of them at random, each in its unit."""

    env: int
    name: str
    change: np.ndarray
    entry: int | None

    def __str__(self) -> str:
        return f"{self.name}[{'random' if self.entry is None else self.entry}] of environment {self.env}"


@dataclass(frozen=True)
class Outcome:
    direction: Direction
    verdict: str
    gradient: float
    tangent: float
    slope: float  # by the difference that says most; at a kink, of the side that agrees best
    error: float
    is_kink: bool
    lost: float  # of the gradient beside the tangent, as a share, before rounding is allowed for

    @property
    def needs_allowance(self) -> bool:
        """Whether gradient and tangent agree only because rounding was seen to move them."""
        return self.verdict not in (DIFFERS, UNSURE) and self.lost > TANGENT_TOLERANCE

    @property
    def is_wrong(self) -> bool:
        return self.verdict == DIFFERS


class Check:
    """The motion of a subject, a loss (all its states, weighted at random), and the gradient of that."""

    def __init__(self, subject: Subject, rng: np.random.Generator) -> None:
        self.subject = subject
        self.motion = self.rollout(subject.inputs, subject.own)
        self.bars = tuple(rng.normal(size=x.shape) for x in (self.motion.q, self.motion.qd))
        self.signatures = signatures(self.motion)
        self.largest_impulse = np.array(step_records(self.motion)["impulse"]).max(0)

    def rollout(self, inputs: dict[str, np.ndarray], own: Sequence[str]) -> jg.Trajectory:
        model = self.subject.model.replace({name: inputs[name] for name in own})
        u, force = np.moveaxis(inputs["u"], 0, 1), np.moveaxis(inputs["force"], 0, 1)
        return jg.rollout(model, jg.State(inputs["q"], inputs["qd"]), u, force=force, on_nan="freeze", threads=1)

    @property
    def is_sound(self) -> bool:
        """Whether the motion stays where rounding is small."""
        return bool(
            (self.motion.status < 0).all() and np.abs(self.motion.q).max() < 1e3 and np.abs(self.motion.qd).max() < 1e3
        )

    @functools.cached_property
    def gradient(self) -> dict[str, np.ndarray]:
        return self.gradient_of(self.with_all_own(self.subject.inputs))

    @functools.cached_property
    def gradient_noise(self) -> dict[str, np.ndarray]:
        """What rounding does to the gradient: how far it is from that of starts a few last digits away with the same signature.
        (Others may be on the other side of a kink, where a gradient differs by more than rounding.)"""
        rng, start = np.random.default_rng(0), {name: self.subject.inputs[name] for name in ("q", "qd")}
        noise = {name: np.zeros_like(bar) for name, bar in self.gradient.items()}
        for _ in range(PROBES):
            moved = {name: x + PROBE * rng.normal(size=x.shape) for name, x in start.items()}
            motion = self.with_all_own(self.subject.inputs | moved)
            counts = (signatures(motion) == self.signatures).all(0)
            for name, bar in self.gradient_of(motion).items():
                noise[name][counts] = np.maximum(noise[name], np.abs(bar - self.gradient[name]))[counts]
        return noise

    def with_all_own(self, inputs: dict[str, np.ndarray]) -> jg.Trajectory:
        """Every parameter with a value per environment."""
        return self.rollout(inputs, tuple(n for n in PARAMS if inputs[n].size))

    def gradient_of(self, motion: jg.Trajectory) -> dict[str, np.ndarray]:
        """Cotangents of all inputs, environments first."""
        found: Gradient = motion.backward(self.bars[0], self.bars[1])
        own = {name: bar for name, bar in found.params.items() if bar.size}
        u = np.zeros((BATCH, self.subject.steps, 0)) if found.u is None else np.moveaxis(found.u, 1, 0)
        return {"q": found.q, "qd": found.qd, "u": u, "force": np.moveaxis(found.force, 1, 0), **own}

    @functools.cached_property
    def rounding(self) -> np.ndarray:
        """What the last digits of the motion amount to in the loss, per environment: what steps to either side, far too small
        for a curve, do not undo of each other."""
        rng, shape = np.random.default_rng(0), self.subject.inputs["qd"][0].shape
        probes = [Direction(env, "qd", rng.normal(size=shape), None) for env in range(BATCH) for _ in range(PROBES)]
        losses = sum(self.losses(probes, np.full(len(probes), side * PROBE))[0] for side in (1, -1))
        largest = sum(
            np.abs(bar * x).max((0, 2)) for bar, x in zip(self.bars, (self.motion.q, self.motion.qd), strict=True)
        )
        return 8 * np.abs(losses).reshape(BATCH, PROBES).max(1) + 1e-15 * largest

    # directions -------------------------------------------------------------------------------------------------------------

    def directions(self, count: int, rng: np.random.Generator) -> list[Direction]:
        names = [name for name in self.gradient if self.movable(name).any()]
        # parameters at zero are what most often goes wrong
        weights = np.array([3.0 if (self.subject.inputs[n] == 0).any() or n in STATE else 1.0 for n in names])
        drawn = rng.choice(len(names), count, p=weights / weights.sum())
        return [self.direction(names[k], int(rng.integers(BATCH)), rng) for k in drawn]

    def movable(self, name: str) -> np.ndarray:
        """Entries that may be moved at all, (batch, entries)."""
        value = self.subject.inputs[name].reshape(BATCH, -1)
        found = np.isfinite(value)
        if name == "link.inertia":  # what has no mass has no inertia, and some are at the edge of what a body can have
            inertia = self.subject.inputs[name]
            trace = inertia[..., [0, 3, 5]].sum(-1)
            room = np.linalg.eigvalsh(_matrices(inertia))
            found &= np.repeat(trace - 2 * room[..., -1] > 1e-2 * trace, 6, axis=-1)
        if name in ("link.mass", "joint.friction", "shape.size"):  # no body, no row, no shape
            found &= value > 0 if name != "joint.friction" else self.subject.model.params[name] > 0
        return found

    def units(self, name: str, env: int) -> np.ndarray:
        value = self.subject.inputs[name][env]
        if name == "link.inertia":
            return np.repeat(value[:, [0, 3, 5]].min(-1), 6)
        if name in ("link.mass", "world.dt", "shape.size", "pair.exponent", "pair.transition"):
            return np.abs(value).ravel()
        return np.maximum(np.abs(np.nan_to_num(value, posinf=1.0, neginf=1.0)).ravel(), UNITS.get(name, 1.0))

    def direction(self, name: str, env: int, rng: np.random.Generator) -> Direction:
        places, units = np.flatnonzero(self.movable(name)[env]), self.units(name, env)
        change, entry = np.zeros(units.size), None
        if not len(places):
            return Direction(env, name, change, None)
        if rng.random() < 0.7:
            entry = int(rng.choice(places))
            change[entry] = units[entry]
        else:
            change[places] = units[places] * rng.normal(size=len(places))
            if name in NOT_NEGATIVE:
                change = np.abs(change)
        return Direction(env, name, change, entry)

    # both derivatives and the differences --------------------------------------------------------------------------------------

    def along(self, d: Direction) -> float:
        return float(self.gradient[d.name][d.env].ravel() @ d.change)

    def noise_along(self, d: Direction) -> float:
        """What rounding of the gradient, and of the tangent likewise, may amount to along a direction."""
        return 8 * float(self.gradient_noise[d.name][d.env].ravel() @ np.abs(d.change))

    def size(self, d: Direction) -> float:
        """Below which a derivative counts as small."""
        return max(SMALL * self.largest(d.name, d.env), TINY * self.largest_of_all[d.env], SMALLEST)

    def largest(self, name: str, env: int) -> float:
        return float(np.abs(self.gradient[name][env].ravel() * self.units(name, env)).max(initial=0.0))

    @functools.cached_property
    def largest_of_all(self) -> list[float]:
        return [max(self.largest(name, env) for name in self.gradient) for env in range(BATCH)]

    def moved(
        self, directions: Sequence[Direction], lengths: np.ndarray
    ) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
        """Inputs of as many environments as there are directions, each moved by its length along its own; what differs."""
        envs = [d.env for d in directions]
        inputs = {name: value[envs] for name, value in self.subject.inputs.items()}
        for k, (d, length) in enumerate(zip(directions, lengths, strict=True)):
            inputs[d.name][k] += length * d.change.reshape(inputs[d.name][k].shape)
        names = {d.name for d in directions if d.name in PARAMS}
        return inputs, tuple(n for n in PARAMS if n in names or n in self.subject.own)

    def tangents(self, directions: Sequence[Direction]) -> np.ndarray:
        inputs, own = self.moved(directions, np.zeros(len(directions)))
        motion = self.rollout(inputs, own)
        dots = {n: np.zeros_like(inputs[n]) for n in {*STATE, *(d.name for d in directions)}}
        for k, d in enumerate(directions):
            dots[d.name][k] = d.change.reshape(dots[d.name][k].shape)
        u, force = (np.ascontiguousarray(np.moveaxis(dots[n], 0, 1)) for n in ("u", "force"))
        params = {n: dots[n] for n in dots if n in PARAMS}
        found = motion.tangent(dots["q"], dots["qd"], u if self.subject.model.nu else None, force, params)
        return self.weighted(found, directions)

    def weighted(self, parts: Sequence[np.ndarray], directions: Sequence[Direction]) -> np.ndarray:
        envs = [d.env for d in directions]
        return sum((bar[:, envs] * x).sum((0, 2)) for bar, x in zip(self.bars, parts, strict=True))

    def losses(self, directions: Sequence[Direction], lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The loss of each less that in the middle; the signatures, (steps, directions), NaN for one that was lost."""
        motion = self.rollout(*self.moved(directions, lengths))
        envs = [d.env for d in directions]
        change = motion.q - self.motion.q[:, envs], motion.qd - self.motion.qd[:, envs]
        found = signatures(motion)
        found[:, motion.status >= 0] = np.nan
        return self.weighted(change, directions), found

    def differences(
        self, directions: Sequence[Direction], step: float, sides: Sides
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Slopes, whether the signature is the same on all points, and whether it is so in the middle, too."""
        n = len(directions)
        lengths = np.array([step * side or NEAREST for side in sides])
        losses, found = self.losses(list(directions) * len(sides), np.repeat(lengths, n))
        points = found.reshape(self.subject.steps, len(sides), n)
        middle = self.signatures[:, [d.env for d in directions]]
        alike = (points == points[:, :1]).all((0, 1))
        slopes = np.tensordot(WEIGHTS[sides], losses.reshape(len(sides), n), 1) / step
        return slopes, alike, alike & (points[:, 0] == middle).all(0)

    # verdicts ---------------------------------------------------------------------------------------------------------------

    def outcomes(self, directions: Sequence[Direction]) -> list[Outcome]:
        """What comes of each direction: of all steps of differences within one signature the best counts."""
        tries = Tries(self, directions)
        for step in STEPS:
            for edge, sides in ((False, BOTH_SIDES), (True, EDGE)):
                left = np.flatnonzero(~(tries.best <= 0.1 * TOLERANCE) & (tries.at_edge == edge))
                if len(left):
                    slopes, alike, holds = self.differences([directions[int(k)] for k in left], step, sides)
                    tries.take(left, np.where(tries.is_bound[left] & edge, alike, holds), slopes, SPREAD[sides] / step)
        kinks = np.flatnonzero(~tries.has_held)
        for step in STEPS[1:-1] if len(kinks) else ():
            for sides in (ABOVE, BELOW):
                left = kinks if sides is ABOVE else kinks[~tries.at_edge[kinks]]
                if len(left):
                    slopes, alike, _ = self.differences([directions[int(k)] for k in left], step, sides)
                    has_seen = tries.above if sides is ABOVE else tries.below
                    tries.take(left, alike, slopes, SPREAD[sides] / step, has_seen)
        return [tries.outcome(k, k in kinks) for k in range(len(directions))]

    def is_at_edge(self, d: Direction) -> bool:
        """Whether a step back would leave what the input may be."""
        if d.name not in NOT_NEGATIVE:
            return False
        value = self.subject.inputs[d.name][d.env].ravel()
        return bool((value < 3 * STEPS[0] * np.abs(d.change)).any() and d.change.any())


class Tries:
    """Directions, their derivatives both ways, and the best that differences say of each so far."""

    def __init__(self, check: Check, directions: Sequence[Direction]) -> None:
        self.directions, n, self.is_at_kink = directions, len(directions), check.subject.is_at_kink
        self.gradient, self.tangents = np.array([check.along(d) for d in directions]), check.tangents(directions)
        self.sizes, self.noise = (np.array([f(d) for d in directions]) for f in (check.size, check.noise_along))
        self.rounding = check.rounding[[d.env for d in directions]]
        self.has_digits = check.largest_impulse[[d.env for d in directions]] < MOST_IMPULSE
        self.at_edge = np.array([check.is_at_edge(d) for d in directions])
        self.is_bound = np.array([d.name in BOUNDS for d in directions])
        self.best, self.slope, self.has_held = np.full(n, np.nan), np.full(n, np.nan), np.zeros(n, bool)
        # whether the slopes of a kink's sides are known; at an edge there is only one
        self.above, self.below = np.zeros(n, bool), self.at_edge.copy()

    def take(
        self,
        which: np.ndarray,
        holds: np.ndarray,
        slopes: np.ndarray,
        magnifies: float,
        has_seen: np.ndarray | None = None,
    ) -> None:
        """Slopes by a difference that magnifies rounding so much, where it says something."""
        noise, sizes = magnifies * self.rounding[which], self.sizes[which]
        error = relative(self.gradient[which], slopes, sizes, noise)
        is_clear = noise <= INFORMATIVE * np.maximum(np.abs(slopes), sizes)
        is_better = holds & is_clear & ~(error >= self.best[which])
        self.has_held[which] |= holds
        if has_seen is not None:
            has_seen[which] |= holds & is_clear
        self.best[which] = np.where(is_better, error, self.best[which])
        self.slope[which] = np.where(is_better, slopes, self.slope[which])

    def outcome(self, k: int, is_kink: bool) -> Outcome:
        error, by_tangent = self.best[k], relative(self.gradient[k], self.tangents[k], self.sizes[k], self.noise[k])
        if not self.has_digits[k]:
            verdict = UNSURE
        elif not by_tangent <= TANGENT_TOLERANCE:  # at kinks, too, both are the slope of the same side
            verdict = DIFFERS
        elif np.isnan(error):
            verdict = UNSURE
        elif is_kink and error <= TOLERANCE:
            verdict = KINK
        elif is_kink:
            has_both = self.above[k] and self.below[k]
            verdict = UNSURE if not has_both else DIFFERS if self.is_at_kink else NEITHER
        else:
            verdict = AGREES if error <= TOLERANCE else DIFFERS
        derivatives = float(self.gradient[k]), float(self.tangents[k]), float(self.slope[k])
        lost = float(relative(self.gradient[k], self.tangents[k], self.sizes[k], 0.0))
        return Outcome(self.directions[k], verdict, *derivatives, float(error), is_kink, lost)


def relative(gradient: Any, other: Any, sizes: Any, rounding: Any) -> Any:
    return np.maximum(np.abs(gradient - other) - rounding, 0.0) / np.maximum(np.abs(other), sizes)


def signatures(motion: jg.Trajectory) -> np.ndarray:
    """(steps, batch): equal where every clamp acted alike."""
    return np.array(step_records(motion)["signature"])


def _matrices(inertia: np.ndarray) -> np.ndarray:
    return inertia[..., (0, 1, 2, 1, 3, 4, 2, 4, 5)].reshape(*inertia.shape[:-1], 3, 3)
