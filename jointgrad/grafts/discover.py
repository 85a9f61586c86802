"""Which inputs of grafted networks matter: sparse-group lasso on input weights (NeuralSim, Heiden 2021, equation 2).

    found = discover(model, training, held_out)
    found.inputs      # {"joint.force[joint0]": ("joint.velocity[joint0]",), ...}
    found.model       # trained with these alone

Lowered is

    error + penalty * (share * sum |w| + (1 - share) * sum over inputs of sqrt(h) |w_input|_2) + upper * sum of other weights^2

where error is the mean squared prediction error, in units of that of the model without networks, of motions of a few steps that
start at recorded states (multiple shooting), w are the first weights of a network times the standard deviation of what they
see, and h is the number of its first hidden units. Without the last term a network would evade the first by small first
and large later weights. Steps are proximal: a weight that does not pay is exactly zero, and so is an input as a whole.

The penalty rises along a path, from all inputs to none. Each set of inputs on the path is trained again without the penalty, which
makes weights too small, and judged on motions that no training saw; the fewest inputs that explain almost as much as the best win.
In the end each of these must pay for itself: it stays only if the held-out error rises without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.run.rollout import rollout
from ..model.arrays import Model, State
from ..model.errors import InputError


@dataclass(frozen=True)
class Windows:
    """Short pieces of recorded motions: starts (N, .), controls (T, N, nu), and what came of it, q (T, N, nq), qd (T, N, nv)."""

    start: State
    u: np.ndarray | None
    q: np.ndarray
    qd: np.ndarray


@dataclass(frozen=True)
class Settings:
    """penalties: the path, which ends early where nothing is left. share: of the plain lasso in the penalty. upper: weight of
    the squares of all other weights. iterations: proximal steps for each penalty, first_iterations: before the first.
    give_up: how much of what the best explains may be lost for fewer inputs."""

    penalties: Sequence[float] = tuple(np.geomspace(0.01, 1.0, 16))
    share: float = 0.1
    upper: float = 1e-4
    iterations: int = 150
    first_iterations: int = 400
    give_up: float = 0.01


@dataclass(frozen=True)
class PathPoint:
    """A set of inputs on the path: of each network, the sizes of their first weights, exactly zero where they do not count;
    errors after training without the penalty, in units of the model without networks; the weights."""

    penalty: float
    sizes: tuple[np.ndarray, ...]
    training: float
    held_out: float
    weights: np.ndarray

    @property
    def count(self) -> int:
        return sum(int((sizes > 0).sum()) for sizes in self.sizes)


@dataclass(frozen=True)
class Discovery:
    """The model with the inputs that matter, their names for each network, and the path that led there."""

    model: Model
    inputs: dict[str, tuple[str, ...]]
    seen: dict[str, tuple[str, ...]]  # all that there were
    path: list[PathPoint]
    chosen: int
    # inputs that the path had kept, but that did not pay for themselves; their points are the last of the path
    left_out: int


def windows(q: np.ndarray, qd: np.ndarray, u: np.ndarray | None, steps: int, every: int | None = None) -> Windows:
    """Pieces of `steps` steps, one starting at every `every`-th, of recorded runs q (T+1, runs, nq), qd, u (T, runs, nu)."""
    total = len(q) - 1
    if steps < 1 or steps > total:
        raise InputError(f"windows must have from 1 to {total} steps, but steps is {steps}")
    firsts = range(0, total - steps + 1, every or steps)
    cut = lambda a, shift, length: np.concatenate([a[f + shift : f + shift + length] for f in firsts], axis=1)  # noqa: E731
    start = State(cut(q, 0, 1)[0], cut(qd, 0, 1)[0])
    return Windows(start, None if u is None else cut(u, 0, steps), cut(q, 1, steps), cut(qd, 1, steps))


class Network:
    """Where the first weights of one network are in the flat weights, and what they are called."""

    def __init__(self, first: int, n_hidden: int, seen: tuple[str, ...], name: str) -> None:
        # a row of the stored matrix is one input
        self.rows = slice(first, first + len(seen) * n_hidden)
        self.shape, self.seen, self.name = (len(seen), n_hidden), seen, name

    def named(self, sizes: np.ndarray) -> tuple[str, ...]:
        """The inputs that are left."""
        return tuple(name for name, size in zip(self.seen, sizes, strict=True) if size > 0)


def networks(model: Model) -> list[Network]:
    """All networks of a model; those that share weights once."""
    found: dict[int, Network] = {}
    for b in model.topology.grafts:
        is_each = len(b.first_weights) == len(b.rows)
        for k, first in enumerate(b.first_weights):
            name = f"{b.target}[{b.rows[k] if is_each else ', '.join(b.rows)}]"
            found.setdefault(first, Network(first, b.sizes[1], b.seen[k], name))
    if not found:
        raise InputError("the model has no networks: graft some first")
    return list(found.values())


class Prediction:
    """Mean squared error of motions against recorded windows as a function of the weights, 1 for networks that say nothing."""

    def __init__(self, model: Model, data: Windows, scales: tuple[np.ndarray, np.ndarray] | None = None) -> None:
        self.model, self.data = model, data
        self.scales = scales or self._plain_errors()
        self.count = data.q.size + data.qd.size

    def _plain_errors(self) -> tuple[np.ndarray, np.ndarray]:
        """Of each coordinate: root mean square of what the model without networks gets wrong."""
        off = self._off(np.zeros_like(self.model.params["graft.weight"]))[1:]
        sizes = [np.sqrt((part**2).mean((0, 1))) for part in off]
        return tuple(np.where(s > 0, s, 1.0) for s in sizes)  # type: ignore[return-value]

    def _off(self, weights: np.ndarray) -> tuple:
        d = self.data
        motion = rollout(self.model.replace({"graft.weight": weights}), d.start, d.u, steps=len(d.q), on_nan="freeze")
        return motion, motion.q[1:] - d.q, motion.qd[1:] - d.qd

    def value(self, weights: np.ndarray) -> float:
        motion, q, qd = self._off(weights)
        return self._error(motion, q, qd)

    def _error(self, motion: Any, q: np.ndarray, qd: np.ndarray) -> float:
        if motion.status.max() >= 0:
            return np.inf
        return float((((q / self.scales[0]) ** 2).sum() + ((qd / self.scales[1]) ** 2).sum()) / self.count)

    def gradient(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        motion, q, qd = self._off(weights)
        bars = [np.concatenate([np.zeros_like(a[:1]), 2 * a / s**2 / self.count])
                for a, s in zip((q, qd), self.scales, strict=True)]  # fmt: skip
        return self._error(motion, q, qd), motion.backward(*bars, wrt=("params",)).params["graft.weight"]


class Lasso:
    """The penalised training of all networks, in weights that are scaled by what they see."""

    def __init__(self, model: Model, training: Windows, settings: Settings) -> None:
        self.settings, self.networks = settings, networks(model)
        self.prediction = Prediction(model, training)
        self.unit = np.ones(model.params["graft.weight"].shape[-1])
        self.is_upper = np.ones(len(self.unit), bool)
        for net in self.networks:
            spread = _spread(model, training, net.seen)
            self.unit[net.rows] = np.repeat(spread, net.shape[1])
            self.is_upper[net.rows] = False

    def value(self, z: np.ndarray) -> float:
        """The smooth part: prediction error and squares of upper weights."""
        return self.prediction.value(z / self.unit) + self.settings.upper * float((z[self.is_upper] ** 2).sum())

    def gradient(self, z: np.ndarray) -> tuple[float, np.ndarray]:
        error, slope = self.prediction.gradient(z / self.unit)
        upper = np.where(self.is_upper, z, 0.0)
        return error + self.settings.upper * float(upper @ upper), slope / self.unit + 2 * self.settings.upper * upper

    def penalty(self, z: np.ndarray, penalty: float) -> float:
        share, total = self.settings.share, 0.0
        for net in self.networks:
            W = z[net.rows].reshape(net.shape)
            total += share * np.abs(W).sum() + (1 - share) * np.sqrt(net.shape[1]) * np.linalg.norm(W, axis=1).sum()
        return penalty * float(total)

    def shrunk(self, z: np.ndarray, amount: float) -> np.ndarray:
        """The proximal step of the penalty: plain thresholds, then those of whole inputs (Simon et al. 2013)."""
        z, share = z.copy(), self.settings.share
        for net in self.networks:
            W = z[net.rows].reshape(net.shape)
            W = np.sign(W) * np.maximum(np.abs(W) - share * amount, 0.0)
            size = np.linalg.norm(W, axis=1, keepdims=True)
            keep = 1.0 - (1 - share) * np.sqrt(net.shape[1]) * amount / np.maximum(size, 1e-300)
            z[net.rows] = (W * np.maximum(keep, 0.0)).ravel()
        return z

    def sizes(self, z: np.ndarray) -> list[np.ndarray]:
        """Of each network: norms of the first weights of each input."""
        return [np.linalg.norm(z[net.rows].reshape(net.shape), axis=1) for net in self.networks]

    def kept(self, z: np.ndarray) -> np.ndarray:
        """Which weights may be trained when inputs without weights stay out."""
        mask = np.ones(len(z), bool)
        for net, sizes in zip(self.networks, self.sizes(z), strict=True):
            mask[net.rows] = np.repeat(sizes > 0, net.shape[1])
        return mask


def _spread(model: Model, data: Windows, seen: Sequence[str]) -> np.ndarray:
    """Standard deviations, over the windows, of numbers that a network sees; those that are not recorded count as they are."""
    blocks = {"joint.position": data.q, "joint.velocity": data.qd}
    tree, found = model.topology.tree, []
    at = {"joint.position": "q", "joint.velocity": "dof"}
    body = {model.joint_names[tree["frame"][b]]: b for b in range(tree["n_bodies"])}
    for name in seen:
        kind, _, rest = name.partition("[")
        own = rest.rstrip("]")
        if kind in blocks:
            found.append(blocks[kind][..., tree[at[kind]][body[own]]].std())
        elif kind == "control" and data.u is not None:
            found.append(data.u[..., model.actuator_names.index(own)].std())
        else:
            found.append(1.0)
    return np.where(np.array(found) > 1e-9, found, 1.0)


def proximal_descent(
    lasso: Lasso, z: np.ndarray, penalty: float, iterations: int, mask: np.ndarray | None = None
) -> np.ndarray:
    """Accelerated proximal gradient (Beck and Teboulle 2009) with backtracking, begun afresh where momentum leads uphill.

    mask: which weights may move.
    """
    free = np.ones(len(z)) if mask is None else mask.astype(float)
    rate, momentum, ahead = 1.0, 1.0, z
    total = lasso.value(z) + lasso.penalty(z, penalty)
    for _ in range(iterations):
        smooth, slope = lasso.gradient(ahead)
        slope = slope * free
        rate *= 1.5  # backtracking only shortens: give it a chance to grow again
        while True:
            new = lasso.shrunk(ahead - rate * slope, rate * penalty)
            move = new - ahead
            value = lasso.value(new)
            if value <= smooth + slope @ move + (move @ move) / (2 * rate) + 1e-14 or rate < 1e-12:
                break
            rate *= 0.5
        new_total = value + lasso.penalty(new, penalty)
        if new_total > total and momentum > 1.0:
            momentum, ahead = 1.0, z
            continue
        next_momentum = 0.5 * (1 + np.sqrt(1 + 4 * momentum**2))
        ahead = new + (momentum - 1) / next_momentum * (new - z)
        z, total, momentum = new, new_total, next_momentum
    return z


def discover(
    model: Model, training: Windows, held_out: Windows, settings: Settings | None = None,
    say: Callable[[str], None] | None = None,
) -> Discovery:  # fmt: skip
    """Train the networks of a model along a path of penalties; see the module. Ctrl-C leaves the path so far."""
    settings = settings or Settings()
    lasso = Lasso(model, training, settings)
    judge = Prediction(model, held_out, lasso.prediction.scales)
    path: list[PathPoint] = []
    less: list[PathPoint] = []
    try:
        for point in _followed(lasso, judge, model.params["graft.weight"] * lasso.unit):
            path.append(point)
            if say:
                say(f"penalty {point.penalty:.2g}: {point.count} inputs, held-out error {point.held_out:.4g}")
        less = _thinned(lasso, judge, path[_chosen(path, settings.give_up)], min(p.held_out for p in path))
        path += less
    except KeyboardInterrupt:
        if not path:
            raise
    chosen = _chosen(path, settings.give_up)
    # on the path training is short: good enough to compare, not to use
    path[chosen] = _retrained(
        lasso, judge, path[chosen].weights * lasso.unit, path[chosen].penalty, settings.first_iterations
    )
    names = {net.name: net.named(sizes) for net, sizes in zip(lasso.networks, path[chosen].sizes, strict=True)}
    seen = {net.name: net.seen for net in lasso.networks}
    return Discovery(model.replace({"graft.weight": path[chosen].weights}), names, seen, path, chosen, len(less))


def _followed(lasso: Lasso, judge: Prediction, z: np.ndarray) -> Iterator[PathPoint]:
    """The path: a point for each new set of inputs, each begun where the one before ended."""
    z = proximal_descent(lasso, z, 0.0, lasso.settings.first_iterations)
    before: np.ndarray | None = None
    for penalty in lasso.settings.penalties:
        z = proximal_descent(lasso, z, float(penalty), lasso.settings.iterations)
        kept = lasso.kept(z)
        if before is None or (kept != before).any():
            yield _retrained(lasso, judge, z, float(penalty))
        before = kept
        if not any(sizes.any() for sizes in lasso.sizes(z)):
            return


def _retrained(
    lasso: Lasso, judge: Prediction, z: np.ndarray, penalty: float, iterations: int | None = None
) -> PathPoint:
    """The same inputs, trained without the penalty."""
    free = proximal_descent(lasso, z, 0.0, iterations or lasso.settings.iterations, lasso.kept(z))
    weights = free / lasso.unit
    return PathPoint(penalty, tuple(lasso.sizes(z)), lasso.prediction.value(weights), judge.value(weights), weights)


def _thinned(lasso: Lasso, judge: Prediction, point: PathPoint, best: float) -> list[PathPoint]:
    """Leave out one more input at a time, the smallest first, while the rest explains enough. One penalty for all networks can be
    too small for one of them where it is already too large for another."""
    found: list[PathPoint] = []
    is_tried: set[tuple[int, int]] = set()
    while True:
        left = [(size, n, i) for n, sizes in enumerate(point.sizes) for i, size in enumerate(sizes)
                if size > 0 and (n, i) not in is_tried]  # fmt: skip
        if not left:
            return found
        _, n, i = min(left)
        is_tried.add((n, i))
        z, net = point.weights * lasso.unit, lasso.networks[n]
        z[net.rows].reshape(net.shape)[i] = 0.0
        less = _retrained(lasso, judge, z, point.penalty)
        if less.held_out <= best + lasso.settings.give_up * max(1.0 - best, 0.0):
            found.append(less)
            point = less


def _chosen(path: Sequence[PathPoint], give_up: float) -> int:
    """The fewest inputs that explain almost as much of the held-out motions as the best."""
    best = min(p.held_out for p in path)
    enough = [k for k, p in enumerate(path) if p.held_out <= best + give_up * max(1.0 - best, 0.0)]
    return min(enough, key=lambda k: (path[k].count, path[k].held_out))


# picture ------------------------------------------------------------------------------------------------------------------


def draw(found: Discovery, path: str | Path) -> None:
    """Left: which inputs survive, and how large their weights are. Right: what each set of inputs on the path explains."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 1.8 + 0.9 * max(len(found.seen), 3)), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    _draw_connections(left, found)
    for k, point in enumerate(found.path):
        style = {"color": "#e8710a", "s": 90, "zorder": 3} if k == found.chosen else {"color": "#2f6db5", "s": 40}
        right.scatter(point.count, point.held_out, **style)
    right.set(xlabel="inputs that are left", ylabel="held-out error / error without networks", yscale="log")
    right.set_title("orange: the choice", loc="left", fontsize=11)
    figure.savefig(path, dpi=110)


def _draw_connections(axes: Any, found: Discovery) -> None:
    """Inputs on the left, networks on the right, a line for each input that is left."""
    inputs = list(dict.fromkeys(name for seen in found.seen.values() for name in seen))
    heights = {name: -float(k) for k, name in enumerate(inputs)}
    middle = -(len(inputs) - 1) / 2
    gap = max(len(inputs) / max(len(found.seen), 1), 1.0)
    sizes = found.path[found.chosen].sizes
    for n, (name, seen) in enumerate(found.seen.items()):
        height = middle - gap * (n - (len(found.seen) - 1) / 2)
        for one, size in zip(seen, sizes[n], strict=True):
            style = {"color": "#dddddd", "linewidth": 1.0, "zorder": 1}
            if size > 0:
                style = {"color": "#2f6db5", "linewidth": 1 + 4 * size / sizes[n].max(), "zorder": 2}
            axes.plot([0, 1], [heights[one], height], **style)
        axes.plot(1, height, "s", color="#222222", markersize=10, zorder=3)
        axes.text(1.05, height, name, va="center")
    for one, height in heights.items():
        axes.plot(0, height, "o", color="#222222", zorder=3)
        axes.text(-0.05, height, one, va="center", ha="right")
    axes.set(xlim=(-0.8, 1.7))
    axes.set_title("blue: inputs that matter; grey: weights that are exactly zero", loc="left", fontsize=11)
    axes.axis("off")
