"""A real Go2, base held, legs swung by a chirp: armature, damping and friction of its joints, and networks for what is left.

Recording: 23.9 s at 200 Hz (IIT, simple-robot-identification-isaaclab); the motors are asked for angles with known gains, torques
were not measured. Models are judged by motions, as the reference is: started at a recorded state they see nothing but the angles
that are asked for, and the error is the root mean square of a joint's angle, then the mean over the twelve joints.

The run is cut into blocks of 1.5 s. Even ones teach and odd ones are held out ("blocks"); or the first ten teach and
the last six, in which the chirp is faster than ever before, are held out ("later"). Two of the teaching blocks do not train the
networks, but say when to stop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import jointgrad as jg

from ..grafts.blueprint import load_weights, save_weights
from ..model.parameters import Entry
from ..optimize.identify import Fit, Recording, Settings, identify
from ..optimize.progress import Callback, Progress, Stop, bar
from ..optimize.solvers import Adam
from .go2_chirp import (
    BLOCK,
    RATE,
    SPLITS,
    SUBSTEPS,
    Chirp,
    Pieces,
    Split,
    blocks,
    cut,
    joint_errors,
    load,
    motion,
    robot,
    rows,
    with_passive,
)
from .kept import Kept

PASSIVE = ("armature", "damping", "friction")
BY_HAND = {"armature": 0.05, "friction": 0.3}  # the guess of the reference
FIRST = {"armature": 0.02, "damping": 0.1, "friction": 0.3}  # where the search begins
SIZES = {"armature": 0.02, "damping": 0.3, "friction": 0.3}  # typical ones, and the most that is believed
COLOURS = ("tab:red", "tab:blue", "tab:green")  # untuned, fitted, augmented
MOST = {"armature": 0.5, "damping": 5.0, "friction": 5.0}

# parameters -------------------------------------------------------------------------------------------------------------


def fitted(chirp: Chirp, split: Split, iterations: int = 12, callback: Callback | None = None) -> Fit:
    """Armature, damping and friction of every joint from the teaching blocks, by Gauss-Newton through their motions."""
    model = with_passive(robot(chirp), FIRST)
    joints = [model.joint_names[i] for i in rows(model)]
    entries = [Entry(f"joint.{name}", joints, bounds=(0.0, MOST[name]), scale=SIZES[name]) for name in PASSIVE]
    parts = [
        Recording(chirp.q[a : b + 1], chirp.qd[a : b + 1], np.repeat(chirp.target[a:b], SUBSTEPS, axis=0), SUBSTEPS)
        for a, b in blocks(chirp, split.teaching)
    ]
    stop = Stop(iterations=iterations, patience=2, least=1e-3)
    settings = Settings(sigma_q=1.0, sigma_qd=np.inf, segment=None, starts="measured")
    return identify(model, parts, entries, settings, stop=stop, callback=callback)


# networks ---------------------------------------------------------------------------------------------------------------

GRAFTS = ("joint.friction", "joint.force")
INPUTS = ("joint.position", "joint.velocity", "control")
HIDDEN = (8, 8)
WINDOW, STRIDE = 150, 75  # samples
FASTEST = 0.01  # rate of Adam, which falls to zero


def grafted(model: jg.Model, seed: int) -> jg.Model:
    """For every joint a network that changes its dry friction, and one that adds to its torque. They see angle, rate and
    the angle that is asked for."""
    for k, target in enumerate(GRAFTS):
        network = jg.MLP(HIDDEN, "tanh", scale=0.05, seed=2 * seed + k)
        names = [model.joint_names[i] for i in rows(model)]
        model = jg.graft(model, target, INPUTS, network, rows=names)
    return model


class Weights:
    """Weights of networks that see (angle, rate, target) as those of networks that see the angle, the rate and how far the
    target is, each less its mean and divided by its spread: only so do all of them matter alike from the beginning."""

    def __init__(self, model: jg.Model, chirp: Chirp, spans: Sequence[tuple[int, int]]) -> None:
        self.model = model
        taught = np.concatenate([np.arange(a, b) for a, b in spans])
        q, qd, target = (x[taught] for x in (chirp.q, chirp.qd, chirp.target))
        features = np.stack([q, qd, target - q])  # (3, samples, 12)
        mean, spread = features.mean(1), features.std(1)
        mix = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 1.0]])  # features from what is seen
        self.first: list[int] = []
        self.maps: list[np.ndarray] = []  # of each network: (4, 4), what is seen and 1, from features and 1
        for blueprint in model.topology.grafts:
            for joint, first in enumerate(blueprint.first_weights):
                to = np.eye(4)
                to[:3, :3] = (mix / spread[:, joint, None]).T
                to[3, :3] = -mean[:, joint] / spread[:, joint]
                self.first.append(first)
                self.maps.append(to)

    def _places(self, first: int) -> np.ndarray:
        """(4, hidden): where the first layer's weights and biases are."""
        n = HIDDEN[0]
        return first + np.arange(4 * n).reshape(4, n)

    def plain(self, z: np.ndarray) -> np.ndarray:
        """Weights for the engine."""
        w = z.copy()
        for first, to in zip(self.first, self.maps, strict=True):
            at = self._places(first)
            w[at] = to @ z[at]
        return w

    def pulled(self, w_bar: np.ndarray) -> np.ndarray:
        """The way back."""
        z_bar = w_bar.copy()
        for first, to in zip(self.first, self.maps, strict=True):
            at = self._places(first)
            z_bar[at] = to.T @ w_bar[at]
        return z_bar


class Training:
    """Mean square error of pieces in units of the fitted model's, as a function of the weights; 1 without networks."""

    def __init__(self, weights: Weights, pieces: Pieces, sizes: np.ndarray) -> None:
        self.weights, self.pieces, self.sizes = weights, pieces, sizes
        self.counts = np.isfinite(pieces.q)
        self.counts[0] = False

    def _motion(self, z: np.ndarray) -> tuple[jg.Trajectory, np.ndarray]:
        model = self.weights.model.replace({"graft.weight": self.weights.plain(z)})
        moved = jg.rollout(model, self.pieces.start, self.pieces.u, on_nan="freeze")
        off = np.where(self.counts, moved.q[::SUBSTEPS] - np.nan_to_num(self.pieces.q), 0.0)
        return moved, off / self.sizes

    def value(self, z: np.ndarray) -> float:
        moved, off = self._motion(z)
        return float((off**2).sum() / self.counts.sum()) if moved.status.max() < 0 else np.inf

    def gradient(self, z: np.ndarray) -> tuple[float, np.ndarray]:
        moved, off = self._motion(z)
        q_bar = np.zeros_like(moved.q)
        q_bar[::SUBSTEPS] = 2 * off / self.sizes / self.counts.sum()
        w_bar = moved.backward(q_bar=q_bar, wrt=("params",)).params["graft.weight"]
        return float((off**2).sum() / self.counts.sum()), self.weights.pulled(w_bar)


@dataclass(frozen=True)
class Augmented:
    """The model with its networks, and how training went: losses of training and validation, which iteration was kept."""

    model: jg.Model
    training: list[float]
    validation: list[float]
    kept: int


def augmented(
    chirp: Chirp, split: Split, model: jg.Model, seed: int = 0, iterations: int = 150, callback: Callback | None = None
) -> Augmented:
    """Networks on a fitted model, trained through windows of 0.75 s; the weights with the least error on validation are kept."""
    spans = blocks(chirp, split.training)
    sizes = joint_errors(model, cut(chirp, spans))
    hybrid = grafted(model, seed)
    weights = Weights(hybrid, chirp, spans)
    windows = [(f, min(f + WINDOW, b)) for a, b in spans for f in range(a, b - STRIDE, STRIDE)]
    training = Training(weights, cut(chirp, windows), sizes)
    judge = Training(weights, cut(chirp, blocks(chirp, split.validation)), sizes)
    z, rule, losses = np.array(hybrid.params["graft.weight"]), Adam(FASTEST, largest=5.0), []
    progress = Progress(Stop(iterations=iterations), callback)
    with progress.running():
        while True:
            judged = judge.value(z)
            progress.see(z[None], np.array([judged]))
            loss, slope = training.gradient(z)
            losses.append(loss)
            progress.end_iteration(judged)
            rule.rate = FASTEST * 0.5 * (1.0 + np.cos(np.pi * (len(losses) - 1) / iterations))
            z = rule.step(z[None], slope[None])[0]
    if progress.reason == "interrupted":
        raise KeyboardInterrupt
    found = progress.result()
    best = hybrid.replace({"graft.weight": weights.plain(found.x)})
    return Augmented(best, losses, found.history.loss, int(np.argmin(found.history.loss)))


# report -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Size:
    """How long to search."""

    splits: tuple[Split, ...] = SPLITS
    seeds: tuple[int, ...] = (0, 1, 2)
    fit: int = 12  # iterations
    train: int = 150


QUICK = Size(SPLITS[:1], (0,), 2, 12)


def reproduce(out: Path, say: Callable[[str], None], size: Size, data: Path | None = None) -> dict[str, Any]:
    """Errors of the untuned, fitted and augmented robot. Finished parts are kept; Ctrl-C leaves them."""
    chirp = load(data)
    settings = {"seeds": size.seeds, "fit": size.fit, "train": size.train, "splits": [s.name for s in size.splits]}
    kept = Kept(out, "go2", settings, say)
    try:
        for split in size.splits:
            _one_split(chirp, split, size, kept, say)
    except KeyboardInterrupt:
        say(f"Interrupted: {len(kept.parts)} parts are kept.")
        raise
    draw(chirp, size.splits[0], models(chirp, size.splits[0], kept, size.seeds[0]), out / "go2.png")
    return kept.said


def _one_split(chirp: Chirp, split: Split, size: Size, kept: Kept, say: Callable[[str], None]) -> None:
    name, plain = split.name, robot(chirp)
    kept.part(f"{name}: untuned", lambda: errors(chirp, split, plain))
    kept.part(f"{name}: by hand", lambda: errors(chirp, split, with_passive(plain, BY_HAND)))

    def fit() -> dict[str, Any]:
        with bar(f"{name}: parameters", size.fit) as show:
            found = fitted(chirp, split, size.fit, show)
        if found.result.is_interrupted:
            raise KeyboardInterrupt
        numbers = np.array([[e.value, e.deviation] for e in found.estimates]).reshape(len(PASSIVE), 12, 2)
        values = dict(zip(PASSIVE, numbers[..., 0].tolist(), strict=True))
        spread = dict(zip(PASSIVE, numbers[..., 1].tolist(), strict=True))
        return {"values": values, "deviations": spread, **errors(chirp, split, found.model)}

    physical = with_passive(plain, kept.part(f"{name}: fitted", fit)["values"])

    def train(seed: int) -> dict[str, Any]:
        with bar(f"{name}: networks, seed {seed}", size.train) as show:
            found = augmented(chirp, split, physical, seed, size.train, show)
        save_weights(found.model, _weights_file(kept.out, name, seed))
        return {"training": found.training, "validation": found.validation, "iteration": found.kept,
                **errors(chirp, split, found.model)}  # fmt: skip

    for seed in size.seeds:
        kept.part(f"{name}: augmented {seed}", partial(train, seed))
    for part in kept.parts:
        if part.startswith(f"{name}:"):
            said = kept.parts[part]
            say(f"{part:22s} held out {1e3 * said['held_out']:6.2f} mrad, whole run {1e3 * said['whole']:6.2f} mrad")


def errors(chirp: Chirp, split: Split, model: jg.Model) -> dict[str, Any]:
    """Mean over joints of the root mean square error (rad): teaching and held-out blocks, and the whole run from its start."""
    held_out = joint_errors(model, cut(chirp, blocks(chirp, split.held_out)))
    return {
        "teaching": float(joint_errors(model, cut(chirp, blocks(chirp, split.teaching))).mean()),
        "held_out": float(held_out.mean()),
        "whole": float(joint_errors(model, cut(chirp, [(0, len(chirp.q) - 1)])).mean()),
        "held_out_joints": dict(zip(model.actuator_names, held_out.tolist(), strict=True)),
    }


def _weights_file(out: Path, split: str, seed: int) -> Path:
    return out / f"networks_{split}_{seed}.npz"


def models(chirp: Chirp, split: Split, kept: Kept, seed: int) -> dict[str, jg.Model]:
    """The three robots of a finished run."""
    plain = robot(chirp)
    physical = with_passive(plain, kept.parts[f"{split.name}: fitted"]["values"])
    hybrid = load_weights(grafted(physical, seed), _weights_file(kept.out, split.name, seed))
    return {"untuned": plain, "fitted": physical, "augmented": hybrid}


def draw(chirp: Chirp, split: Split, robots: dict[str, jg.Model], path: Path) -> None:
    """Errors of all joints on held-out blocks, and the joint that is hardest to foresee in the longest of them."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    held_out = cut(chirp, blocks(chirp, split.held_out))
    worst, piece = int(np.argmax(joint_errors(robots["untuned"], held_out))), len(split.held_out) - 2
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained", width_ratios=(1, 1.2))
    at, names = np.arange(12), [n.replace("_", " ") for n in robots["untuned"].actuator_names]
    t = split.held_out[piece] * BLOCK / RATE + np.arange(BLOCK + 1) / RATE
    right.plot(t, chirp.target[split.held_out[piece] * BLOCK :][: BLOCK + 1, worst], "0.7", lw=1, label="asked for")
    right.plot(t, held_out.q[:, piece, worst], "k", lw=3.5, label="recorded")
    for k, (name, model) in enumerate(robots.items()):
        left.barh(at + 0.27 * (k - 1), 1e3 * joint_errors(model, held_out), 0.27, color=COLOURS[k], label=name)
        right.plot(t, motion(model, held_out)[:, piece, worst], color=COLOURS[k], lw=1.5, label=name)
    left.set(yticks=at, yticklabels=names, xlabel="error on held-out blocks, mrad", title="Every joint")
    left.invert_yaxis()
    left.legend()
    right.set(xlabel="time, s", ylabel="angle, rad", title=f"{names[worst]} in a block that was held out")
    right.set_ylim(top=right.get_ylim()[1] + 0.25)
    right.legend(loc="upper center", ncols=3)
    for axis in (left, right):
        axis.grid(alpha=0.3)
    figure.savefig(path, dpi=90)
    plt.close(figure)
