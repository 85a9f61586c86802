"""How many samples a model needs to predict a damped double pendulum: networks inside the engine, a network alone, no network.

A sample is a window of `pendulum_friction`: a recorded state, torques, and where 5 steps lead. Compared on windows that no
training saw, by the mean squared error of the state at their ends, in units of that of the analytic model without damping:

- analytic: the model that knows no damping; it has nothing to learn here
- hybrid: the same with a network at each joint force that sees everything (122 weights), or the joint's own velocity alone
- MLP: a network alone (about 5,000 weights) that says how far the state moves, from sines and cosines of the angles, velocities and
  torques; a fifth of its samples tells it when to stop
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import jointgrad as jg

from ..grafts.discover import Lasso, Settings, Windows, proximal_descent
from .pendulum_friction import DT, recorded, undamped

HYBRID_COUNTS, MLP_COUNTS = (3, 10, 30, 100, 300), (10, 100, 1000, 5000)
WINDOWS_PER_RUN, TEST_RUNS = 10, 100
SEEDS = (0, 1, 2)
WIDTH, DECAY = 64, 1e-6


def samples(count: int, seed: int) -> Windows:
    """So many windows, of as many runs as they need."""
    found = recorded(seed, runs=-(-count // WINDOWS_PER_RUN))
    return _taken(found, np.random.default_rng(seed).permutation(found.q.shape[1])[:count])


def _taken(data: Windows, which: np.ndarray) -> Windows:
    u = None if data.u is None else data.u[:, which]
    return Windows(jg.State(data.start.q[which], data.start.qd[which]), u, data.q[:, which], data.qd[:, which])


class Judge:
    """Error at the ends of test windows, in units of that of the analytic model."""

    def __init__(self, test: Windows) -> None:
        self.test, self.ends = test, _ends(test)
        plain = jg.zoo.double_pendulum().compile(dt=DT)
        self.unit = ((self._ends_of(plain) - self.ends) ** 2).mean(0)

    def _ends_of(self, model: jg.Model) -> np.ndarray:
        last = jg.rollout(model, self.test.start, self.test.u, keep=False).last
        return np.concatenate([last.q, last.qd], -1)

    def of_ends(self, ends: np.ndarray) -> float:
        return float((((ends - self.ends) ** 2).mean(0) / self.unit).mean())

    def of_model(self, model: jg.Model) -> float:
        return self.of_ends(self._ends_of(model))


def _starts(data: Windows) -> np.ndarray:
    return np.concatenate([data.start.q, data.start.qd], -1)


def _ends(data: Windows) -> np.ndarray:
    return np.concatenate([data.q[-1], data.qd[-1]], -1)


# the hybrid -----------------------------------------------------------------------------------------------------------


def hybrid(count: int, seed: int, only_velocity: bool, iterations: int = 400) -> jg.Model:
    """Trained on so many samples, without any penalty on inputs."""
    model = _own_velocity(seed) if only_velocity else undamped(seed)
    lasso = Lasso(model, samples(count, seed), Settings())
    z = proximal_descent(lasso, model.params["graft.weight"] * lasso.unit, 0.0, iterations)
    return model.replace({"graft.weight": z / lasso.unit})


def _own_velocity(seed: int) -> jg.Model:
    plain = jg.zoo.double_pendulum().compile(dt=DT)
    return jg.graft(plain, "joint.force", ["joint.velocity"], jg.MLP((5, 5), "elu", scale=0.1, seed=seed))


# a network alone ------------------------------------------------------------------------------------------------------


class Regression:
    """Two hidden layers of tanh, from what was measured at the start to how far the state moves, both of unit variance."""

    def __init__(self, data: Windows, seed: int) -> None:
        X, Y = self._features(data), _ends(data) - _starts(data)
        self.centre, self.spread = X.mean(0), X.std(0) + 1e-9
        self.middle, self.reach = Y.mean(0), Y.std(0) + 1e-9
        self.X, self.Y = (X - self.centre) / self.spread, (Y - self.middle) / self.reach
        sizes = (X.shape[1], WIDTH, WIDTH, Y.shape[1])
        self.shapes = list(zip(sizes, sizes[1:], strict=False))
        rng = np.random.default_rng(seed)
        self.x = np.concatenate([np.append(rng.normal(size=a * b) / np.sqrt(a), np.zeros(b)) for a, b in self.shapes])
        self.is_training = rng.permutation(len(X)) >= len(X) // 5

    @staticmethod
    def _features(data: Windows) -> np.ndarray:
        q, qd = data.start
        assert data.u is not None
        return np.concatenate([np.sin(q), np.cos(q), qd, data.u.mean(0)], -1)

    def _layers(self, x: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        found, at = [], 0
        for a, b in self.shapes:
            found.append((x[at : at + a * b].reshape(a, b), x[at + a * b : at + (a + 1) * b]))
            at += (a + 1) * b
        return found

    def _said(self, x: np.ndarray, X: np.ndarray) -> list[np.ndarray]:
        values, layers = [X], self._layers(x)
        for k, (W, bias) in enumerate(layers):
            y = values[-1] @ W + bias
            values.append(np.tanh(y) if k < len(layers) - 1 else y)
        return values

    def loss(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Mean squared error over the training part, and its gradient."""
        values = self._said(x, self.X[self.is_training])
        off = values[-1] - self.Y[self.is_training]
        bar, parts = 2 * off / off.size, []
        for k, (W, _) in reversed(list(enumerate(self._layers(x)))):
            parts.append(np.append((values[k].T @ bar).ravel(), bar.sum(0)))
            bar = (bar @ W.T) * (1 - values[k] ** 2)
        return float((off**2).mean() + DECAY * x @ x), np.concatenate(parts[::-1]) + 2 * DECAY * x

    def train(self, iterations: int = 1000) -> None:
        """L-BFGS; the weights with the least error over the samples that were put aside."""
        from scipy.optimize import minimize

        best = [np.inf, self.x]

        def watch(x: np.ndarray) -> None:
            error = float(((self._said(x, self.X[~self.is_training])[-1] - self.Y[~self.is_training]) ** 2).mean())
            if error < best[0]:  # type: ignore[operator]
                best[:] = [error, x.copy()]

        minimize(self.loss, self.x, jac=True, method="L-BFGS-B", callback=watch,
                 options={"maxiter": iterations, "maxfun": 10**9, "ftol": 0.0, "gtol": 1e-9})  # fmt: skip
        self.x = np.asarray(best[1])

    def ends(self, data: Windows) -> np.ndarray:
        X = (self._features(data) - self.centre) / self.spread
        return _starts(data) + self.middle + self.reach * self._said(self.x, X)[-1]


# the comparison -------------------------------------------------------------------------------------------------------


def compared(
    part: Callable[[str, Callable[[], Any]], Any], say: Callable[[str], None], seeds: Sequence[int] = SEEDS,
    hybrids: Sequence[int] = HYBRID_COUNTS, mlps: Sequence[int] = MLP_COUNTS,
) -> dict[str, Any]:  # fmt: skip
    """Errors by method, number of samples and seed, and how many fewer the hybrid needs for the best that the MLP reaches.

    A seed has training and test motions, noise and first weights of its own. part: `Kept.part`, or what computes at once.
    """
    methods: dict[str, tuple[Sequence[int], Callable[[int, int, Judge], float]]] = {
        "hybrid, own velocity": (hybrids, lambda count, seed, judge: judge.of_model(hybrid(count, seed, True))),
        "hybrid, all inputs": (hybrids, lambda count, seed, judge: judge.of_model(hybrid(count, seed, False))),
        "MLP": (mlps, _of_regression),
    }
    table: dict[str, dict[str, list[float]]] = {method: {} for method in methods}
    floors = []
    for seed in seeds:
        judge = Judge(recorded(seed + 10_000, runs=TEST_RUNS))
        floors.append(_noise_floor(judge))
        for method, (counts, error_of) in methods.items():
            for count in counts:
                name = f"samples: {method}, {count}, seed {seed}"
                error = part(name, partial(error_of, count, seed, judge))
                table[method].setdefault(str(count), []).append(error)
                say(f"seed {seed}  {method:22s} {count:6d} samples  error {error:.4g} of the analytic model's")
    return {"seeds": list(seeds), "errors": table, "floor": floors, "fewer_samples": fewer_samples(table)}


def _of_regression(count: int, seed: int, judge: Judge) -> float:
    regression = Regression(samples(count, seed), seed)
    regression.train()
    return judge.of_ends(regression.ends(judge.test))


def _noise_floor(judge: Judge) -> float:
    """The error of the true model: what the noise of the recording leaves to nobody."""
    from .pendulum_friction import DAMPING

    return judge.of_model(jg.zoo.double_pendulum(damping=DAMPING).compile(dt=DT))


def fewer_samples(table: dict[str, dict[str, list[float]]]) -> dict[str, float | None]:
    """Samples at which the MLP is best over those from which on a hybrid is as good, by medians over seeds: one lucky fit does not
    count."""
    medians = {method: {int(n): float(np.median(e)) for n, e in errors.items()} for method, errors in table.items()}
    at, best = min(medians["MLP"].items(), key=lambda item: item[1])
    found: dict[str, float | None] = {}
    for method, errors in medians.items():
        if method.startswith("hybrid"):
            enough = [n for n in errors if all(error <= best for count, error in errors.items() if count >= n)]
            found[method] = at / min(enough) if enough else None
    return found


def draw(said: dict[str, Any], path: Path) -> None:
    """Medians over seeds as lines, every seed as a dot, all seeds within the shade."""
    from .pictures import new_figure

    figure = new_figure(7, 4.6)
    axes = figure.subplots()
    axes.axhline(1.0, color="#999999", label="analytic, no damping")
    axes.axhline(np.median(said["floor"]), color="#bbbbbb", linestyle=":", label="true model (noise of the recording)")
    styles = {
        "hybrid, own velocity": ("#1a9641", "o-"),
        "hybrid, all inputs": ("#2f6db5", "s-"),
        "MLP": ("#e8710a", "^--"),
    }
    for method, (colour, mark) in styles.items():
        counts = [int(n) for n in said["errors"][method]]
        errors = np.array(list(said["errors"][method].values()))
        axes.fill_between(counts, errors.min(1), errors.max(1), color=colour, alpha=0.15, linewidth=0)
        axes.plot(np.repeat(counts, errors.shape[1]), errors.ravel(), ".", color=colour, alpha=0.5, markersize=4)
        axes.plot(counts, np.median(errors, 1), mark, color=colour, label=method)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="samples (windows of 5 steps)",
        ylabel="held-out MSE / that of the analytic model",
    )
    axes.set_title(f"median and range of {len(said['seeds'])} seeds", loc="left", fontsize=10)
    axes.legend(frameon=False, fontsize=9)
    figure.savefig(path, dpi=110)
