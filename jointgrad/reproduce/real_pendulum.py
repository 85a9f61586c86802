"""Real pendulums, predicted: as published, fitted, and fitted with a network inside (the claim of NeuralSim 2021 on real data).

- untuned: numbers that the machine's authors have published (the best of theirs on the training runs), or uniform rods
- fitted: inertias, damping, dry friction and armature by Gauss-Newton through motions of the training runs, pulled towards the
  untuned numbers or towards a regression; folds of the training runs decide which, and how strongly
- augmented: the fitted model with a small network inside, trained through motions: one that says how much larger or smaller the
  dry friction of a joint is, from its velocity, or one that adds joint forces, from velocity and torque of the joint or from all
  positions and velocities. The same folds decide which, and decide for none where the gain on them is within its standard error
- regression: the usual fit, least squares of torques in the equations of motion; for torques alone

Judged on held-out runs, in two ways: windows that start at a recorded state and run on their own, and torques that the
recorded motion needs, against those measured (1 - SSE/SS).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import jointgrad as jg

from ..grafts.blueprint import layers
from ..grafts.discover import Windows, windows
from ..model.errors import ModelError
from ..optimize.identify import Fit, Identification, Recording, Settings, judged
from ..optimize.progress import Stop
from ..optimize.solvers import Tried, gauss_newton
from .graft_training import Plan, train, weight_units
from .kept import Kept
from .real_machines import (
    ATAN,
    BASE,
    GRAVITY,
    MACHINES,
    SPLITS,
    Machine,
    Run,
    Split,
    base_numbers,
    divided,
    inverse,
    machine,
    smooth,
    with_base_numbers,
)

# seconds: of windows that are judged, the longest of which trains too
AHEAD = (0.1, 0.2, 0.5)
FIT_WINDOW, JUDGED = 0.2, (0.2, 0.5)
TRAIN_WINDOWS = ((0.2, 60),)
# of the pull of a fit towards where it starts, and of squares of a network's weights
STRENGTHS = (0.0, 1e-3, 1e-2, 0.1)
DECAYS = (3e-5, 1e-3)
# what is tried: target, mode, what the network sees, hidden layers, whether each joint has its own
NETWORKS: dict[str, Any] = {
    "friction by velocity": ("joint.friction", "scale", ("joint.velocity",), (4,), True),
    "force by velocity and torque": ("joint.force", "residual", ("joint.velocity", "control"), (8,), True),
    "force by all": ("joint.force", "residual", ("joint.position", "joint.velocity"), (8,), False),
}
# most windows: of fits and of judging, and of training a network; more take longer and say little more
MOST, MOST_TRAIN = 250, 120
# seconds of smoothing for accelerations that are tried on the training runs
SMOOTHINGS = (0.06, 0.1, 0.14, 0.18, 0.24, 0.3)


# motions -----------------------------------------------------------------------------------------------------------------


def pieces(runs: list[Run], steps: int, most: int | None = None) -> Windows:
    """Windows of all runs side by side, without gaps or overlap; of too many, every second, third, ... one. Runs that are shorter
    than a window have none."""
    long = [r for r in runs if len(r.q) > steps]
    found = [windows(r.q[:, None], r.qd[:, None], r.u[:-1, None] if r.u.shape[1] else None, steps) for r in long]
    q0, qd0 = (np.concatenate([getattr(f.start, k) for f in found]) for k in ("q", "qd"))
    q, qd = (np.concatenate([getattr(f, k) for f in found], axis=1) for k in ("q", "qd"))
    u = None if found[0].u is None else np.concatenate([f.u for f in found], axis=1)  # type: ignore[misc]
    every = slice(None, None, 1 if most is None else -(-len(q0) // most))
    return Windows(jg.State(q0[every], qd0[every]), None if u is None else u[:, every], q[:, every], qd[:, every])


def scales(runs: list[Run]) -> tuple[np.ndarray, np.ndarray]:
    """Standard deviations of velocities, and of angles over a window of 0.2 s, which have no mean: what errors count in."""
    qd = np.concatenate([r.qd for r in runs]).std(0)
    return qd * AHEAD[1] / 2, qd


def ahead(model: jg.Model, m: Machine, runs: Sequence[Run]) -> dict[str, Any]:
    """Root mean square errors of angles (rad) and velocities over windows of different lengths, all joints together."""
    found: dict[str, Any] = {}
    for seconds in AHEAD:
        w = pieces(runs, round(seconds / m.dt))
        motion = jg.rollout(model, w.start, w.u, steps=len(w.q), on_nan="freeze")
        rms = lambda a, b: float(np.sqrt(((a[1:] - b) ** 2).mean()))  # noqa: E731
        found[f"{seconds:g} s"] = {"q": rms(motion.q, w.q), "qd": rms(motion.qd, w.qd), "windows": w.q.shape[1]}
    return found


# models ------------------------------------------------------------------------------------------------------------------


def window_error(model: jg.Model, m: Machine, split: Split, runs: Sequence[Run], seconds: float) -> float:
    """Mean square over windows, in units of `scales`."""
    data, units = pieces(runs, round(seconds / m.dt), MOST), scales(split.seen)
    motion = jg.rollout(model, data.start, data.u, steps=len(data.q), on_nan="freeze")
    off = [(a[1:] - b) / unit for a, b, unit in zip((motion.q, motion.qd), (data.q, data.qd), units, strict=True)]
    return float(sum((a**2).mean() for a in off))


def judged_by(models: Sequence[jg.Model], m: Machine, split: Split) -> np.ndarray:
    """(folds,): logarithms of errors on each fold, of the model that the others have taught; mean of two lengths of windows."""
    return np.array([np.mean([np.log(window_error(model, m, split, fold, s)) / 2 for s in JUDGED])
                     for model, fold in zip(models, split.folds, strict=True)])  # fmt: skip


def untuned(m: Machine, split: Split) -> tuple[str, jg.Model]:
    """Of the published models the one that predicts the training runs best."""
    name = min(m.untuned, key=lambda k: window_error(m.untuned[k], m, split, split.seen, FIT_WINDOW))
    return name, m.untuned[name]


class Pulled(Identification):
    """With residuals that pull the unknowns towards where they start: strength 1 counts a unit of x as all residuals of one."""

    strength: float = 0.0

    def tried(self, x: np.ndarray) -> Tried:
        own = super().tried(x)
        pull = np.sqrt(self.strength * own.residuals.shape[1])
        # a lost motion stays infinite: its own residuals are
        r = np.concatenate([own.residuals, pull * (x - self.start)], axis=1)

        def jacobians(rows: Sequence[int]) -> tuple[np.ndarray, int, int]:
            J, *counts = own.jacobians(rows)
            return np.concatenate(
                [J, np.broadcast_to(pull * np.eye(self.n), (len(J), self.n, self.n))], axis=1
            ), *counts

        return Tried(r, jacobians)


def fit_to(runs: Sequence[Run], m: Machine, split: Split, model: jg.Model, strength: float, iterations: int) -> Fit:
    """By Levenberg-Marquardt through windows, from the numbers of the model and pulled towards them."""
    units = scales(split.seen)
    data = pieces(runs, round(FIT_WINDOW / m.dt), MOST)
    every = 5 if len(data.q) % 5 == 0 else 1  # neighbouring samples say the same
    q, qd = (np.concatenate([s[None], a])[::every] for s, a in zip(data.start, (data.q, data.qd), strict=True))
    records = [Recording(q[:, i], qd[:, i], None if data.u is None else data.u[:, i], every) for i in range(q.shape[1])]
    problem = Pulled(model, records, m.unknowns, Settings(sigma_q=units[0], sigma_qd=units[1]))
    problem.strength = strength
    stop = Stop(iterations=iterations, patience=3, least=1e-4)
    return judged(problem, gauss_newton(problem, problem.start, stop, problem.bounds))


def centre(name: str, runs: Sequence[Run], m: Machine, model: jg.Model) -> jg.Model | None:
    """What a fit starts at and is pulled to: the untuned model, or the regression of the torques of the runs that teach."""
    if name == "untuned":
        return model
    base = regression(m, Split([list(runs)], list(runs)))["base"]
    try:
        return with_base_numbers(m, {k: np.array(v) for k, v in base.items()})
    except ModelError:
        return None  # too little data for a regression: its numbers are those of no pendulum, and no start


@dataclass(frozen=True)
class Fitted:
    """The model of all that is seen, those of all but one fold, what was chosen, and the errors of all choices on the folds."""

    model: jg.Model
    by_fold: list[jg.Model]
    chosen: str
    tried: dict[str, list[float]]
    numbers: dict[str, list[float]]


def fitted(
    m: Machine, split: Split, model: jg.Model, iterations: int = 10, strengths: Sequence[float] = STRENGTHS
) -> Fitted:
    """Through motions; where they are pulled to and how strongly is what does best on folds that a fit has not seen."""
    teach = [split.seen, *(split.without(k) for k in range(len(split.folds)))]
    found: dict[str, list[Any]] = {}
    models: dict[str, list[jg.Model]] = {}
    tried: dict[str, np.ndarray] = {}
    for start in ("untuned", "regression") if model.nu else ("untuned",):
        starts = [centre(start, runs, m, model) for runs in teach]
        if any(s is None for s in starts):
            continue
        found[start] = models[start] = starts
        tried[start], least = judged_by(starts[1:], m, split), np.inf
        for strength in strengths:
            name = f"from {start}, pulled by {strength:g}"
            found[name] = [fit_to(r, m, split, s, strength, iterations) for r, s in zip(teach, starts, strict=True)]
            models[name] = [f.model for f in found[name]]
            tried[name] = judged_by(models[name][1:], m, split)
            if tried[name].mean() > least:
                break  # a stronger pull will not help either
            least = tried[name].mean()
    chosen = min(tried, key=lambda k: tried[k].mean())
    first = found[chosen][0]
    numbers = {e.name: [e.value, e.deviation] for e in first.estimates} if isinstance(first, Fit) else {}
    errors = {k: np.exp(v).tolist() for k, v in tried.items()}
    return Fitted(models[chosen][0], models[chosen][1:], chosen, errors, numbers)


def augmented(m: Machine, split: Split, fit: Fitted, quick: bool = False) -> tuple[jg.Model, str, dict[str, Any]]:
    """The best network by folds that neither it nor its fit has seen, all gains less their standard errors; none where nothing is
    left of the gain. The model, its name, and of all networks the errors over those of the fit, fold by fold."""
    plain, tried = judged_by(fit.by_fold, m, split), {}
    for name in NETWORKS:
        if "control" in NETWORKS[name][2] and not fit.model.nu:
            continue
        for decay in DECAYS[:1] if quick else DECAYS:
            grown = [grown_on(split.without(k), m, split, one, name, decay, quick) for k, one in enumerate(fit.by_fold)]
            tried[name, decay] = judged_by(grown, m, split) - plain
    worst = {k: v.mean() + v.std(ddof=1) / np.sqrt(len(v)) for k, v in tried.items()}
    name, decay = min(worst, key=lambda k: worst[k])
    said = {f"{k}, {d:g}": np.exp(v).tolist() for (k, d), v in tried.items()}
    if worst[name, decay] >= 0:
        return fit.model, "none", said
    return grown_on(split.seen, m, split, fit.model, name, decay, quick), f"{name}, {decay:g}", said


def grown_on(
    runs: Sequence[Run], m: Machine, split: Split, model: jg.Model, name: str, decay: float, quick: bool
) -> jg.Model:
    """The model with a network that was trained through windows of these runs."""
    grafted, sizes = grafted_with(m, split, model, name)
    stages = [(pieces(runs, round(s / m.dt), MOST_TRAIN), 5 if quick else n) for s, n in TRAIN_WINDOWS]
    return train(grafted, sizes, Plan(stages, None, scales(split.seen), decay)).model


def grafted_with(m: Machine, split: Split, model: jg.Model, name: str) -> tuple[jg.Model, np.ndarray]:
    """A model with one of NETWORKS, silent at first, and the sizes of its weights."""
    target, mode, inputs, hidden, is_each = NETWORKS[name]
    network = jg.MLP(hidden, "tanh", scale=0.0)
    joints = [f"joint{i}" for i in range(model.nv)]
    grafted = jg.graft(model, target, inputs, network, rows=joints, per="each" if is_each else "whole", mode=mode)
    q, qd, u = (np.concatenate([getattr(r, k) for r in split.seen]).std(0) for k in ("q", "qd", "u"))
    of = {"joint.position": np.maximum(q, 0.3), "joint.velocity": qd, "control": u}
    sees = [of[k].mean() for k in inputs] if is_each else np.concatenate([of[k] for k in inputs])
    force = 0.1 * _weight(m, model)
    return grafted, weight_units(grafted, sees, [1.0] if mode == "scale" else [force.mean()] if is_each else force)


def _weight(m: Machine, model: jg.Model) -> np.ndarray:
    """Torques with which gravity can act at each joint: what forces of a network are in units of."""
    return GRAVITY * base_numbers(model, m.length)["moment"]


# torques -----------------------------------------------------------------------------------------------------------------


def said_by(model: jg.Model, network: int, x: np.ndarray) -> np.ndarray:
    """What one of a model's networks says to inputs (T, n), computed outside the engine."""
    net = layers(model, 0, network)
    for k, (W, bias) in enumerate(net):
        x = x @ W.T + bias
        x = np.tanh(x) if k < len(net) - 1 else x
    return x


def needed(model: jg.Model, m: Machine, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
    """Torques that a motion needs, with what networks do. Where these see the torque, it is found by repetition."""
    base = base_numbers(model, m.length)
    tau = inverse(base, m.length, q, qd, qdd)
    if not model.topology.grafts:
        return tau
    blueprint, found = model.topology.grafts[0], tau
    dry = base["friction"] / ATAN * np.arctan(100 * qd)
    sees_torque = "control" in blueprint.inputs
    for _ in range(20 if sees_torque else 1):
        seen = [{"joint.position": q, "joint.velocity": qd, "control": found}[k] for k in blueprint.inputs]
        if len(blueprint.first_weights) == 1 < model.nv:
            said = said_by(model, 0, np.concatenate(seen, -1))
        else:
            own = [np.stack([a[:, i] for a in seen], -1) for i in range(model.nv)]
            said = np.concatenate([said_by(model, i, x) for i, x in enumerate(own)], -1)
        now = tau - said if blueprint.target == "joint.force" else tau + dry * np.maximum(said, -1.0)
        found = 0.5 * (found + now) if sees_torque else now
    return found


def torques(model: jg.Model, m: Machine, runs: Sequence[Run], seconds: float) -> tuple[np.ndarray, np.ndarray]:
    """Predicted and measured (T, n), of motions smoothed over so many seconds."""
    said, measured = [], []
    for r in runs:
        q, qd, qdd = (smooth(r.q, m.dt, k, seconds) for k in range(3))
        said.append(needed(model, m, q, qd, qdd))
        measured.append(r.u)
    return np.concatenate(said), np.concatenate(measured)


def explained(said: np.ndarray, measured: np.ndarray) -> np.ndarray:
    """1 - SSE/SS, by joint."""
    return 1 - ((said - measured) ** 2).sum(0) / (measured**2).sum(0)


def of_torques(model: jg.Model, m: Machine, split: Split) -> dict[str, Any]:
    """Of held-out motions, smoothed so that the model explains the torques that it may see best."""
    seconds = max(SMOOTHINGS, key=lambda s: explained(*torques(model, m, split.seen, s)).sum())
    return {"smoothing_s": seconds, "explained": explained(*torques(model, m, split.held_out, seconds)).tolist()}


def regression(m: Machine, split: Split) -> dict[str, Any]:
    """Least squares of the measured torques in the numbers of the equations of motion (`base`); smoothing as above."""
    best: dict[str, Any] = {}
    for seconds in SMOOTHINGS:
        A, B = (np.concatenate([_columns(m, r, seconds) for r in runs]) for runs in (split.seen, split.held_out))
        a, b = (np.concatenate([r.u for r in runs]) for runs in (split.seen, split.held_out))
        x = np.linalg.lstsq(A.reshape(-1, A.shape[-1]), a.ravel(), rcond=None)[0]
        seen = float(explained(A @ x, a).sum())
        if not best or seen > best["seen"]:
            best = {
                "smoothing_s": seconds,
                "seen": seen,
                "explained": explained(B @ x, b).tolist(),
                "base": _named(x, m),
            }
    return best


def _named(x: np.ndarray, m: Machine) -> dict[str, list[float]]:
    """Numbers of a regression by name; the first armature is part of the first inertia."""
    n = m.runs[0].q.shape[1]
    return {name: [0.0] * (name == "armature") + x[at : at + n - (name == "armature")].tolist()
            for name, at in zip(BASE, (0, n, 2 * n, 3 * n - 1, 4 * n - 1), strict=True)}  # fmt: skip


def _columns(m: Machine, run: Run, seconds: float) -> np.ndarray:
    """(T, n, numbers): torques per unit of each base number; the first armature acts as the first inertia does."""
    q, qd, qdd = (smooth(run.q, m.dt, k, seconds) for k in range(3))
    n, found = q.shape[1], []
    for name in BASE:
        for i in range(1 if name == "armature" else 0, n):
            unit = {k: np.zeros(n) for k in BASE}
            unit[name][i] = 1.0
            found.append(inverse(unit, m.length, q, qd, qdd))
    return np.stack(found, -1)


# the experiment ----------------------------------------------------------------------------------------------------------


def _figures(model: jg.Model, m: Machine, split: Split) -> dict[str, Any]:
    said: dict[str, Any] = {"ahead": ahead(model, m, split.held_out)}
    if model.nu:
        said["torques"] = of_torques(model, m, split)
    return said


def compared(m: Machine, split: Split, quick: bool = False) -> dict[str, Any]:
    """All models of one machine, on one split."""
    chosen, first = untuned(m, split)
    found = {"untuned": {**_figures(first, m, split), "chosen": chosen}}
    fit = fitted(m, split, first, 4 if quick else 10, STRENGTHS[:1] if quick else STRENGTHS)
    base = {k: v.tolist() for k, v in base_numbers(fit.model, m.length).items()}
    found["fitted"] = {**_figures(fit.model, m, split), "chosen": fit.chosen, "errors_of_folds": fit.tried,
                       "numbers": fit.numbers, "base": base}  # fmt: skip
    model, chosen, tried = augmented(m, split, fit, quick)
    found["augmented"] = {**_figures(model, m, split), "chosen": chosen, "errors_of_folds_over_fitted": tried}
    if first.nu:
        found["regression"] = {"torques": regression(m, split)}
    return found


def _shortened(m: Machine, samples: int = 2500) -> Machine:
    return replace(m, runs=[Run(r.name, r.q[:samples], r.qd[:samples], r.u[:samples]) for r in m.runs[:2]])


def reproduce(
    out: Path,
    say: Callable[[str], None],
    machines: Sequence[str] = MACHINES,
    data: Path | None = None,
    quick: bool = False,
) -> dict[str, Any]:
    """All machines, both splits; a line for each model. Ctrl-C leaves what is finished."""
    settings = {
        "quick": quick,
        "networks": NETWORKS,
        "windows": TRAIN_WINDOWS,
        "most": MOST,
        "pull": STRENGTHS,
        "decay": DECAYS,
    }
    kept = Kept(out, "real-pendulum", settings, say)
    try:
        for name in machines:
            m = machine(name, data)
            for split in SPLITS[:1] if quick else SPLITS:
                short = _shortened(m) if quick else m
                make = lambda m=short, split=split: compared(m, divided(m, split), quick)  # noqa: E731
                for model, one in kept.part(f"{name}/{split}", make).items():
                    say(f"{name:6s} {split:5s} {model:10s} {_line(one)}")
    except KeyboardInterrupt:
        say(f"Interrupted: {len(kept.parts)} parts are kept.")
        raise
    from .real_pendulum_pictures import draw

    draw(kept.parts, out / "errors.png")
    return kept.said


def _line(one: dict[str, Any]) -> str:
    words = [one["chosen"]] if "chosen" in one else []
    words += [f"{ahead}: {e['q']:.4f} rad, {e['qd']:.3f} rad/s" for ahead, e in one.get("ahead", {}).items()]
    if "torques" in one:
        shares = ", ".join(f"{x:.3f}" for x in one["torques"]["explained"])
        words.append(f"torques explained {shares} (smoothed over {one['torques']['smoothing_s']:g} s)")
    return "; ".join(words)
