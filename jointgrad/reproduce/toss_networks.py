"""Networks for what the fitted law of contact leaves of a tossed cube's motion, and the experiment `jointgrad reproduce toss`.

They are trained through whole tosses, as they are judged. On which face a cube comes to rest is nearly a lottery, so that the loss
of one motion says little: each toss is thrown several times, with first velocities that differ by as much as the recorded ones are
uncertain, and the mean counts. A cube looks the same from 24 sides and the table from all: each time a toss is seen, it is turned.
Of the teaching tosses a fifth do not train, but say which weights are kept.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import jointgrad as jg

from ..grafts.weights import by_layer
from ..optimize.progress import Callback, Progress, Stop, bar
from ..optimize.solvers import Adam, clipped
from .kept import Kept
from .toss import (
    DEFAULTS,
    TEACHING,
    Ours,
    Tosses,
    errors,
    identified,
    load,
    loss_and_slope,
    split,
    start_velocity,
    summary,
)

COLOURS = ("tab:red", "tab:blue", "tab:purple", "tab:green")


@dataclass(frozen=True)
class Wiring:
    """One network: what it changes, what it sees, and how."""

    target: str
    inputs: tuple[str, ...]
    mode: str
    size: float = 1.0  # a typical output


# what networks change and see: the one place to name other quantities of the step
SEEN = ("contact.depth", "contact.velocity")
NETWORKS = (
    Wiring("contact.friction", SEEN, "scale", 0.3),
    Wiring("contact.restitution", SEEN, "residual", 0.1),
)
HIDDEN = (8, 8)
# of what is seen: m, m/s, m, rad/s
SPREAD = {
    "contact.depth": (5e-3,), "contact.velocity": (0.5,) * 4, "contact.place": (5e-3,) * 3,
    "link.velocity": (1.0,) * 3 + (5.0,) * 3,
}  # fmt: skip
# of a recorded velocity, in flight, where it should not change: m/s and rad/s
NOISE_V, NOISE_SPIN = 0.006, 0.05
COPIES, JUDGED_COPIES, JUDGED_EVERY = 4, 12, 5
FASTEST, LONGEST = 0.02, 0.3  # rate of Adam, which falls to zero; the most that one toss may pull


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


def turned(tosses: Tosses, turns: np.ndarray, yaw: np.ndarray) -> Tosses:
    """The same tosses of a cube whose axes have other names (turns, (tosses, 4)), on a table that was turned by yaw (tosses,)."""
    about = np.stack([np.cos(yaw / 2), 0 * yaw, 0 * yaw, np.sin(yaw / 2)], -1)
    pose = np.concatenate([_carried(about, tosses.pose[..., :3]), tosses.pose[..., 3:]], -1)
    pose[..., 3:] = product(np.broadcast_to(about, pose[..., 3:].shape), pose[..., 3:])
    pose[..., 3:] = product(pose[..., 3:], np.broadcast_to(turns, pose[..., 3:].shape))
    v, spin = tosses.start[:, :3], tosses.start[:, 3:]
    return Tosses(pose, np.concatenate([_carried(about, v), _carried(conjugate(turns), spin)], -1))


def _carried(turn: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Vectors (..., 3), turned."""
    turn = np.broadcast_to(turn, (*vector.shape[:-1], 4))
    wide = np.concatenate([np.zeros((*vector.shape[:-1], 1)), vector], -1)
    return product(product(turn, wide), conjugate(turn))[..., 1:]


def shaken(tosses: Tosses, copies: int, rng: np.random.Generator) -> Tosses:
    """Copies of tosses whose first velocities differ by as much as the recorded ones are uncertain."""
    which = np.tile(np.arange(len(tosses.start)), copies)
    noise = rng.normal(size=(len(which), 6)) * np.repeat((NOISE_V, NOISE_SPIN), 3)
    return Tosses(tosses.pose[:, which], tosses.start[which] + noise)


# networks ---------------------------------------------------------------------------------------------------------------


class Hybrid:
    """A fitted cube with networks, the same at every corner. Weights z are for what is seen and said in typical sizes."""

    def __init__(
        self, sim: Ours, params: dict[str, float], seed: int = 0, wirings: Sequence[Wiring] = NETWORKS
    ) -> None:
        self.steps = sim.steps
        values = sim.values({k: np.array([v]) for k, v in params.items()})
        model = sim.model.replace({name: value[0] for name, value in values.items()})
        for k, wiring in enumerate(wirings):
            network = jg.MLP(HIDDEN, "tanh", scale=0.05, seed=10 * seed + k)
            model = jg.graft(model, wiring.target, wiring.inputs, network, mode=wiring.mode, shared=True)
        self.model, self.unit = model, np.ones(model.params["graft.weight"].shape[-1])
        for k, (wiring, blueprint) in enumerate(zip(wirings, model.topology.grafts, strict=True)):
            spread = np.concatenate([SPREAD[name] for name in blueprint.inputs])
            self.unit *= by_layer(model, spread, 1.0 / wiring.size, k)
        self.first = np.array(model.params["graft.weight"])

    def _motion(self, tosses: Tosses, z: np.ndarray) -> jg.Trajectory:
        n = len(tosses.start)
        model = self.model.replace({"graft.weight": np.repeat((z / self.unit)[None], n, axis=0)})
        state = jg.State(np.ascontiguousarray(tosses.pose[0]), start_velocity(tosses, self.steps))
        return jg.rollout(model, state, steps=tosses.frames * self.steps, on_nan="freeze")

    def poses(self, tosses: Tosses, z: np.ndarray) -> np.ndarray:
        return self._motion(tosses, z).q[:: self.steps]

    def loss(self, tosses: Tosses, z: np.ndarray) -> float:
        return float(loss_and_slope(tosses, self.poses(tosses, z))[0].mean())

    def gradient(self, tosses: Tosses, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Loss of each toss, and its slope (tosses, weights)."""
        motion = self._motion(tosses, z)
        q_bar = np.zeros_like(motion.q)
        loss, q_bar[:: self.steps] = loss_and_slope(tosses, motion.q[:: self.steps])
        return loss, motion.backward(q_bar=q_bar, wrt=("params",)).params["graft.weight"] / self.unit


def validation(teaching: Tosses) -> tuple[Tosses, Tosses]:
    """Those that train, and every fifth, which judges."""
    judges = np.arange(len(teaching.start)) % 5 == 4
    return teaching[np.flatnonzero(~judges)], teaching[np.flatnonzero(judges)]


def trained(
    hybrid: Hybrid, teaching: Tosses, seed: int, iterations: int, callback: Callback | None = None
) -> tuple[np.ndarray, list[float]]:
    """The weights with the least loss on the judging tosses, networks that say nothing among them, and all these losses."""
    training, judges = validation(teaching)
    rng, turns = np.random.default_rng(seed), cube_turns()
    judged_by = shaken(judges, JUDGED_COPIES, np.random.default_rng(0))
    rule, z, silent = Adam(FASTEST), hybrid.first.copy(), np.zeros_like(hybrid.first)
    progress = Progress(Stop(iterations=iterations), callback)
    with progress.running():
        progress.see(silent[None], np.array([hybrid.loss(judged_by, silent)]))
        progress.end_iteration(progress.loss)
        for k in range(1, iterations + 1):
            seen = shaken(training, COPIES, rng)
            n = len(seen.start)
            seen = turned(seen, turns[rng.integers(24, size=n)], rng.uniform(0.0, 2 * np.pi, n))
            slopes = clipped(np.nan_to_num(hybrid.gradient(seen, z)[1]), LONGEST)
            rule.rate = FASTEST * 0.5 * (1.0 + np.cos(np.pi * k / iterations))
            z = rule.step(z[None], slopes.mean(0)[None])[0]
            loss = progress.history.loss[-1]
            if k % JUDGED_EVERY == 0:
                loss = hybrid.loss(judged_by, z)
                progress.see(z[None], np.array([loss]))
            progress.end_iteration(loss)
    if progress.reason == "interrupted":
        raise KeyboardInterrupt
    return progress.result().x, progress.history.loss[::JUDGED_EVERY]


# report -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Size:
    """How long to search: random points and Adam's iterations for parameters, iterations and seeds for networks."""

    starts: int = 48
    iterations: int = 25
    train: int = 60
    seeds: tuple[int, ...] = (0, 1, 2)
    teaching: int = TEACHING
    held_out: int | None = None
    draw: int = 0  # which of the tosses teach


QUICK = Size(8, 3, 5, (0,), 15, 60)
NAMES = ("untuned", "fitted", "fitted, rounded corners")


def reproduce(out: Path, say: Callable[[str], None], size: Size, data: Path | None = None) -> dict[str, Any]:
    """Errors on tosses that were held out. Finished parts are kept; Ctrl-C leaves them."""
    teaching, held_out = split(load(data), size.teaching, size.draw)
    held_out = held_out[np.arange(len(held_out.start))[: size.held_out]]
    kept = Kept(out, "toss", asdict(size), say)
    sharp, rounded = Ours("impulse", 1), Ours("impulse", 1, rounded=True)

    def fit(sim: Ours) -> dict[str, Any]:
        params = identified(sim, teaching, size.starts, size.iterations, say)
        return {"params": params, **judged(sim.poses(teaching, params), sim.poses(held_out, params))}

    def judged(taught: np.ndarray, foreseen: np.ndarray) -> dict[str, Any]:
        distance, angle = (np.nanmean(x, axis=0) for x in errors(held_out, foreseen))
        return {"teaching": summary(teaching, taught), "held_out": summary(held_out, foreseen),
                "tosses": {"position_percent": (100 * distance).tolist(), "rotation_deg": np.degrees(angle).tolist()}}  # fmt: skip

    def train(seed: int, params: dict[str, float]) -> dict[str, Any]:
        hybrid = Hybrid(rounded, params, seed)
        with bar(f"networks, seed {seed}", size.train) as show:
            z, losses = trained(hybrid, teaching, seed, size.train, show)
        return {"weights": (z / hybrid.unit).tolist(), "validation": losses,
                **judged(hybrid.poses(teaching, z), hybrid.poses(held_out, z))}  # fmt: skip

    plain = DEFAULTS["impulse"]
    try:
        kept.part(NAMES[0], lambda: judged(sharp.poses(teaching, plain), sharp.poses(held_out, plain)))
        kept.part(NAMES[1], lambda: fit(sharp))
        found = kept.part(NAMES[2], lambda: fit(rounded))
        for seed in size.seeds:
            kept.part(f"augmented {seed}", partial(train, seed, found["params"]))
    except KeyboardInterrupt:
        say(f"Interrupted: {len(kept.parts)} parts are kept.")
        raise
    kept.write(against_the_rounded_fit=_differences(kept.parts))
    for name, part in kept.parts.items():
        at = part["held_out"]
        say(f"{name:24s} position {at['position_percent']:5.2f} % of the width, rotation {at['rotation_deg']:5.2f} degrees; "
            f"medians {at['position_percent_median']:5.2f}, {at['rotation_deg_median']:5.2f}")  # fmt: skip
    draw(kept.parts, out / "toss.png")
    return kept.said


def _differences(parts: dict[str, Any]) -> dict[str, Any]:
    """Of the augmented cubes to the fitted one, toss by toss, the mean of the seeds: mean and standard error."""
    said = {}
    for what in ("position_percent", "rotation_deg"):
        seeds = [part["tosses"][what] for name, part in parts.items() if name.startswith("augmented")]
        off = np.mean(seeds, axis=0) - np.array(parts[NAMES[2]]["tosses"][what])
        said[what] = {"mean": float(off.mean()), "standard_error": float(off.std() / np.sqrt(len(off)))}
    return said


def draw(parts: dict[str, Any], path: Path) -> None:
    """How many of the held-out tosses are foreseen within an error."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    first = next(name for name in parts if name.startswith("augmented"))
    shown = {name: parts[name] for name in (*NAMES, first)}
    for axis, what in zip(axes, ("position_percent", "rotation_deg"), strict=True):
        for (name, part), colour in zip(shown.items(), COLOURS, strict=True):
            x = np.sort(part["tosses"][what])
            label = f"{name.replace('augmented ', 'augmented, seed ')}: mean {x.mean():.1f}"
            axis.plot(x, 100 * np.arange(1, len(x) + 1) / len(x), color=colour, label=label)
        axis.set(ylim=(0, 100), ylabel="share of the held-out tosses, %")
        axis.grid(alpha=0.3)
        axis.legend(loc="lower right")
    axes[0].set(xlim=(0, 50), xlabel="position error below, % of the cube's width")
    axes[1].set(xlim=(0, 90), xlabel="rotation error below, degrees")
    figure.savefig(path, dpi=90)
    plt.close(figure)
