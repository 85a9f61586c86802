"""A real cube, thrown 300 times onto a table: its friction, restitution and softness, and networks for what is left.

Data: the tosses of ContactNets (Pfrommer, Halm and Posa 2020), an acrylic cube on a table, 148 Hz. Each toss is rolled out
open-loop from its first recorded state. Errors are those of that work: mean distance of the centre, as a share of the cube's
width, and mean angle between the orientations, over all frames of a toss, then over tosses.

Mass, inertia, size and gravity are the published ones. The parameters of contact are identified on 50 tosses drawn by a fixed
seed, and the errors reported are those on the other 250. One procedure for all: `starts` points drawn log-uniformly from
ranges, then Adam from the best three, on the logarithms, projected onto the ranges, with the gradient of each toss cut to
length 1 (a toss that balances on an edge has no useful gradient); the point with the least training loss is kept.

A recorded velocity is a backward difference, i.e. that of half a frame earlier, which is also what a semi-implicit step of a whole
frame carries. With n steps in a frame the start is corrected for the gravity of the (1 - 1/n) / 2 frames between.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

import jointgrad as jg

from ..optimize.solvers import Adam
from .recordings import cut, recording

FILE = "contactnets_cube_tosses.npz"
WIDTH, MASS, INERTIA, GRAVITY, RATE = 0.1048, 0.37, 8.1e-4, 9.81, 148.0
BLUNT = 0.02  # widths or radians below which the loss counts an error as its square
STEP = 0.08  # of Adam, in logarithms
TEACHING = 50  # tosses

Ranges = dict[str, tuple[float, float]]

RANGES: dict[str, Ranges] = {
    "impulse": {"friction": (0.05, 0.5), "restitution": (0.02, 0.6), "baumgarte": (0.02, 0.6), "softness": (1e-6, 3.0)},
    "spring": {
        "friction": (0.05, 0.5), "static_friction": (0.05, 0.5), "stiffness": (3e3, 1e6), "damping": (1e3, 1e6),
        "transition": (3e-3, 0.3),
    },
}  # fmt: skip
# what each law does when nobody has identified anything but the authors' friction
DEFAULTS = {
    "impulse": {"friction": 0.15, "restitution": 0.0, "baumgarte": 0.2, "softness": 1e-5},
    "spring": {
        "friction": 0.15, "static_friction": 0.15, "stiffness": 5e4, "damping": 5e4, "transition": 0.01,
    },
}  # fmt: skip

ROUNDING = (1e-3, 2e-2)  # m: where the radius of the corners is searched
CORNERS = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))


# data -------------------------------------------------------------------------------------------------------------------


@dataclass
class Tosses:
    """Poses (frames, tosses, 7: position, quaternion w x y z), where a toss has ended NaN; velocities at the start
    (tosses, 6: linear, world frame; angular, body frame)."""

    pose: np.ndarray
    start: np.ndarray

    @property
    def frames(self) -> int:
        return len(self.pose) - 1

    def __getitem__(self, which: np.ndarray) -> Tosses:
        pose = self.pose[:, which]
        return Tosses(pose[~np.isnan(pose[:, :, 0]).all(1)], self.start[which])


def load(data: Path | None = None) -> Tosses:
    record = recording(FILE, data)
    parts = [x.astype(np.float64) for x in cut(record, "x")]
    pose = np.full((max(map(len, parts)), len(parts), 7), np.nan)
    for i, x in enumerate(parts):
        pose[: len(x), i] = x[:, [4, 5, 6, 0, 1, 2, 3]]
    pose[..., 3:] /= np.linalg.norm(pose[..., 3:], axis=-1, keepdims=True)
    return Tosses(pose, np.array([x[0, [10, 11, 12, 7, 8, 9]] for x in parts]))


def split(tosses: Tosses, teaching: int = TEACHING, draw: int = 0) -> tuple[Tosses, Tosses]:
    """Tosses to learn from, drawn by a seed, and all others."""
    order = np.random.default_rng(draw).permutation(tosses.pose.shape[1])
    return tosses[np.sort(order[:teaching])], tosses[np.sort(order[teaching:])]


def start_velocity(tosses: Tosses, steps: int) -> np.ndarray:
    """The recorded one is half a frame old; that of `steps` steps per frame must be half a step old."""
    v = tosses.start.copy()
    v[:, 2] -= GRAVITY / RATE * (1.0 - 1.0 / steps) / 2
    return v


# errors -----------------------------------------------------------------------------------------------------------------


def errors(tosses: Tosses, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distance (widths) and angle (rad) of every frame and toss, NaN where the toss has ended."""
    distance = np.linalg.norm(q[..., :3] - tosses.pose[..., :3], axis=-1) / WIDTH
    same = np.abs((q[..., 3:] * tosses.pose[..., 3:]).sum(-1))
    return distance, 2.0 * np.arccos(np.minimum(same, 1.0))


def loss_and_slope(tosses: Tosses, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Loss per toss, and its derivative to q (frames, tosses, 7). Angles count by their chord, 2 sin(angle/2)."""
    counts = ~np.isnan(tosses.pose[..., 0])
    truth = np.where(counts[..., None], tosses.pose, q)
    way = (q[..., :3] - truth[..., :3]) / WIDTH
    same = (q[..., 3:] * truth[..., 3:]).sum(-1)
    far = np.sqrt((way**2).sum(-1) + BLUNT**2)
    turned = np.sqrt(np.maximum(4.0 * (1.0 - same**2), 0.0) + BLUNT**2)
    share = counts / counts.sum(0)
    slope = np.concatenate([way / WIDTH / far[..., None], -4.0 * (same / turned)[..., None] * truth[..., 3:]], -1)
    return (share * (far + turned)).sum(0), share[..., None] * slope


# simulators -------------------------------------------------------------------------------------------------------------


class Simulator(Protocol):
    """What can be identified: poses of tosses with given parameters, and the loss of each toss with its slopes."""

    ranges: Ranges

    def poses(self, tosses: Tosses, params: dict[str, float]) -> np.ndarray: ...

    def gradient(self, tosses: Tosses, params: dict[str, float]) -> tuple[np.ndarray, dict[str, np.ndarray]]: ...


class Ours:
    """jointgrad with one of its laws; `steps` per frame of the data. rounded: the cube touches with eight balls in its corners,
    which is what a cube with rounded edges does on a plane; their radius is one more parameter, "rounding"."""

    def __init__(self, law: str, steps: int, rounded: bool = False) -> None:
        self.law, self.steps, self.rounded, self.calls = law, steps, rounded, 0
        self.ranges = RANGES[law] | ({"rounding": ROUNDING} if rounded else {})
        cube = jg.Description("cube", base="free")
        box = jg.Shape("box", (WIDTH / 2,) * 3)
        balls = [jg.Shape("sphere", (1e-3,), tuple((WIDTH / 2 - 1e-3) * CORNERS[k])) for k in range(8)]
        cube.add_link("cube", MASS, inertia=(INERTIA,) * 3).shapes.extend(balls if rounded else [box])
        world = jg.World(gravity=(0.0, 0.0, -GRAVITY)).add(cube).add_ground()
        # restitution is among the parameters: such pairs have no margin, or a bounce would begin above the ground
        margin = {"margin": 0.0, "restitution": 0.1} if law == "impulse" else {}
        world.pair("cube", "ground", **margin)
        contact = jg.Impulse() if law == "impulse" else jg.Spring()
        self.model = world.compile(dt=1.0 / RATE / steps, contact=contact)

    def values(self, params: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """For `Model.replace`, from one value per toss each."""
        pairs = len(self.model.pair_names)
        found = {f"pair.{k}": np.repeat(np.asarray(v)[:, None], pairs, 1) for k, v in params.items() if k != "rounding"}
        if self.rounded:
            r = np.asarray(params["rounding"])
            for name in ("shape.size", "shape.placement"):
                found[name] = np.repeat(self.model.params[name][None], len(r), axis=0)
            found["shape.size"][:, :8, 0] = r[:, None]
            found["shape.placement"][:, :8, :3] = (WIDTH / 2 - r)[:, None, None] * CORNERS
        return found

    def motion(self, tosses: Tosses, params: dict[str, np.ndarray]) -> jg.Trajectory:
        """params: one value per toss each."""
        state = jg.State(np.ascontiguousarray(tosses.pose[0]), start_velocity(tosses, self.steps))
        self.calls += len(state.q)
        model = self.model.replace(self.values(params))
        return jg.rollout(model, state, steps=tosses.frames * self.steps, on_nan="freeze")

    def poses(self, tosses: Tosses, params: dict[str, float]) -> np.ndarray:
        n = tosses.pose.shape[1]
        return self.motion(tosses, {k: np.full(n, v) for k, v in params.items()}).q[:: self.steps]

    def gradient(self, tosses: Tosses, params: dict[str, float]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Loss of each toss, and its derivative to each parameter."""
        n = tosses.pose.shape[1]
        motion = self.motion(tosses, {k: np.full(n, v) for k, v in params.items()})
        q = motion.q
        loss, slope = loss_and_slope(tosses, q[:: self.steps])
        q_bar = np.zeros_like(q)
        q_bar[:: self.steps] = slope
        found = motion.backward(q_bar=q_bar, wrt=("params",)).params
        self.calls += 3 * n  # about what the pass back costs
        slopes = {name: found[f"pair.{name}"].sum(1) for name in params if name != "rounding"}
        if self.rounded:
            moved = (found["shape.placement"][:, :8, :3] * CORNERS).sum((1, 2))
            slopes["rounding"] = found["shape.size"][:, :8, 0].sum(1) - moved
        return loss, slopes


# identification ---------------------------------------------------------------------------------------------------------


def identified(sim: Simulator, tosses: Tosses, starts: int, iterations: int, say: Callable = print) -> dict[str, float]:
    """Parameters with the least loss found on these tosses."""
    ranges = sim.ranges
    low, high = np.log(np.array(list(ranges.values()))).T
    rng = np.random.default_rng(0)

    def named(z: np.ndarray) -> dict[str, float]:
        return dict(zip(ranges, np.exp(z).tolist(), strict=True))

    def loss(z: np.ndarray) -> float:
        return float(np.mean(loss_and_slope(tosses, sim.poses(tosses, named(z)))[0]))

    drawn = sorted(((loss(z), z) for z in rng.uniform(low, high, (starts, len(low)))), key=lambda pair: pair[0])
    best = drawn[0]
    for number, (began, z) in enumerate(drawn[:3]):
        here = descended(sim, tosses, named, z, (low, high), iterations)
        say(f"    start {number}: loss {began:.4f} -> {here[0]:.4f}")
        best = min(best, here, key=lambda pair: pair[0])
    return named(best[1])


def descended(
    sim: Simulator, tosses: Tosses, named: Callable, z: np.ndarray, ends: tuple[np.ndarray, np.ndarray], iterations: int
) -> tuple[float, np.ndarray]:
    """The least loss that Adam meets from z on, and where."""
    best = (np.inf, z)
    rule = Adam(STEP, (0.8, 0.95), floor=1e-9)
    for k in range(iterations):
        params = named(z)
        losses, slopes = sim.gradient(tosses, params)
        best = min(best, (float(losses.mean()), z), key=lambda pair: pair[0])
        each = np.stack([slopes[name] * value for name, value in params.items()], 1)  # in logarithms
        each = np.nan_to_num(each) / np.maximum(np.linalg.norm(np.nan_to_num(each), axis=1, keepdims=True), 1.0)
        rule.rate = STEP * (1.0 - k / iterations)
        z = np.clip(rule.step(z, each.mean(0)), *ends)
    return best


# report -----------------------------------------------------------------------------------------------------------------


def summary(tosses: Tosses, q: np.ndarray) -> dict[str, float]:
    distance, angle = errors(tosses, q)
    per_toss = [np.nanmean(x, axis=0) for x in (distance, angle)]
    return {
        "position_percent": float(100 * per_toss[0].mean()),
        "position_mm": float(1e3 * WIDTH * per_toss[0].mean()),
        "rotation_deg": float(np.degrees(per_toss[1].mean())),
        "position_percent_median": float(100 * np.median(per_toss[0])),
        "rotation_deg_median": float(np.degrees(np.median(per_toss[1]))),
    }
