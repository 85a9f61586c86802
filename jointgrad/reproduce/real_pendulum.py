"""Real pendulums, followed: as published, fitted, and fitted with a network inside (the claim of NeuralSim 2021 on real data).

- untuned: numbers that the machine's authors have published (the best of theirs on the training runs), or uniform rods
- fitted: inertias, damping, dry friction and armature by Gauss-Newton through motions of the training runs, pulled towards the
  untuned numbers or towards a regression; folds of the training runs decide which, and how strongly
- augmented: the fitted model with a small network for each joint inside, trained through motions: one that adds
  a force, from its velocity, or from velocity and torque. The same folds decide which, and decide for none where the gain on
  them is within its standard error
- regression: the usual fit, least squares of torques in the equations of motion; for torques alone

Every model finds the states at which windows of the recordings start itself (optimize/windows.py). Judged on held-out runs, in
three ways: how well it follows windows, how well it predicts what comes after 0.1 s from which it has found its state, and
torques that the recorded motion needs, against those measured (1 - SSE/SS).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import jointgrad as jg

from ..grafts.weights import weight_units
from ..model.errors import ModelError
from ..model.parameters import Unknowns
from ..optimize import windows
from ..optimize.progress import Stop
from ..optimize.solvers import gauss_newton
from ..optimize.windows import FittedParameters, RecordedWindows, WindowFit, found_starts, moved
from .kept import Kept
from .real_machines import (
    FOLDS,
    GRAVITY,
    MACHINES,
    SPLITS,
    Machine,
    Run,
    Split,
    base_numbers,
    divided,
    machine,
    with_base_numbers,
)
from .real_torques import of_torques, regression

# seconds: of windows that are followed, and by which folds judge; of predictions, and of what a state is found from before
FOLLOWED = (0.2, 0.5)
AHEAD, BEFORE = (0.2, 0.5), 0.1
# seconds of windows that teach, one length after the other: short ones bring far numbers near
FIT_WINDOWS, TRAIN_WINDOW = (0.1, 0.3), 0.3
# iterations of fits and of networks
ROUNDS, NETWORK_ROUNDS = 8, 8
# of the pull of a fit towards where it starts, and of squares of a network's weights
STRENGTHS = (0.0, 1e-3, 1e-2)
DECAYS = (1e-5, 1e-3)
# what is tried: target, what the network of a joint sees, hidden layers
NETWORKS: dict[str, Any] = {
    "force by velocity": ("joint.force", ("joint.velocity",), (4,)),
    "force by velocity and torque": ("joint.force", ("joint.velocity", "control"), (4,)),
}
# most windows: of fits, of training a network, and of judging; more take longer and say little more
MOST_FIT, MOST_TRAIN, MOST = 240, 160, 250


# motions -----------------------------------------------------------------------------------------------------------------


def pieces(runs: Sequence[Run], steps: int, most: int | None = None) -> RecordedWindows:
    """Windows of all runs side by side, without gaps or overlap; of too many, every second, third, ... one. Runs that are shorter
    than a window have none."""
    at = [(r, a) for r in runs for a in range(0, len(r.q) - steps, steps)]
    at = at[:: 1 if most is None else -(-len(at) // most)]
    q = np.stack([r.q[a : a + steps + 1] for r, a in at], axis=1)
    u = np.stack([r.u[a : a + steps] for r, a in at], axis=1)
    start = np.stack([np.concatenate([r.q[a], r.qd[a]]) for r, a in at])
    return RecordedWindows(q, u if u.shape[2] else None, start)


def scales(runs: Sequence[Run]) -> np.ndarray:
    """Standard deviations of velocities times 0.1 s: what errors of angles, which have no mean, count in."""
    return np.concatenate([r.qd for r in runs]).std(0) * 0.1


def off(model: jg.Model, data: RecordedWindows, units: np.ndarray, samples: int | None = None) -> np.ndarray:
    """(T+1, N, nv): angles less those recorded, from states that the model finds from the first samples, unless said from all."""
    return moved(model, found_starts(model, data, units, samples), data.u, data.steps).q - data.q


def followed(model: jg.Model, m: Machine, runs: Sequence[Run], units: np.ndarray) -> dict[str, Any]:
    """Root mean square errors of angles (rad) over windows of different lengths, all joints together."""
    found = {}
    for seconds in FOLLOWED:
        e = off(model, pieces(runs, round(seconds / m.dt)), units)
        found[f"{seconds:g} s"] = {"q": _rms(e), "windows": e.shape[1]}
    return found


def ahead(model: jg.Model, m: Machine, runs: Sequence[Run], units: np.ndarray) -> dict[str, Any]:
    """The same of what comes after BEFORE, which alone is seen."""
    found, before = {}, round(BEFORE / m.dt)
    for seconds in AHEAD:
        e = off(model, pieces(runs, before + round(seconds / m.dt)), units, before + 1)[before + 1 :]
        found[f"{seconds:g} s"] = {"q": _rms(e), "windows": e.shape[1]}
    return found


def _rms(a: np.ndarray) -> float:
    return float(np.sqrt((a**2).mean()))


# models ------------------------------------------------------------------------------------------------------------------


def window_error(model: jg.Model, m: Machine, split: Split, runs: Sequence[Run], seconds: float) -> float:
    """Root mean square over windows that are followed, in units of `scales`."""
    units = scales(split.seen)
    return _rms(off(model, pieces(runs, round(seconds / m.dt), MOST), units) / units)


def judged_by(models: Sequence[jg.Model], m: Machine, split: Split) -> np.ndarray:
    """(folds,): logarithms of errors on each fold, of the model that the others have taught; mean of two lengths of windows."""
    return np.array([np.mean([np.log(window_error(model, m, split, fold, s)) for s in FOLLOWED])
                     for model, fold in zip(models, split.folds, strict=True)])  # fmt: skip


def untuned(m: Machine, split: Split) -> tuple[str, jg.Model]:
    """Of the published models the one that follows the training runs best."""
    name = min(m.untuned, key=lambda k: window_error(m.untuned[k], m, split, split.seen, FOLLOWED[0]))
    return name, m.untuned[name]


def fit_to(
    runs: Sequence[Run], m: Machine, split: Split, model: jg.Model, strength: float, iterations: int
) -> jg.Model:
    """By Levenberg-Marquardt through windows, from the numbers of the model and pulled towards them."""
    unknowns = Unknowns(model, m.unknowns)
    sought = FittedParameters(
        unknowns.start, unknowns.bounds, unknowns.values, unknowns.directions, unknowns.is_physical
    )
    x = sought.start
    for seconds in FIT_WINDOWS:
        data = pieces(runs, round(seconds / m.dt), MOST_FIT)
        x = _solved(WindowFit(unknowns.model_at(x), data, sought, scales(split.seen), strength), x, iterations)
    return unknowns.model_at(x)


def _solved(problem: WindowFit, x: np.ndarray, iterations: int) -> np.ndarray:
    stop = Stop(iterations=iterations, patience=3, least=1e-4)
    result = gauss_newton(problem, x, stop, problem.bounds, trials=3)
    if result.is_interrupted:
        raise KeyboardInterrupt
    return result.x


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


def fitted(
    m: Machine, split: Split, model: jg.Model, iterations: int = ROUNDS, strengths: Sequence[float] = STRENGTHS
) -> Fitted:
    """Through motions, from the untuned numbers or a regression, whichever do better on folds; how strongly they are pulled there
    is what does best on folds that a fit has not seen."""
    teach = [split.seen, *(split.without(k) for k in range(len(split.folds)))]
    models: dict[str, list[jg.Model]] = {}
    for start in ("untuned", "regression") if model.nu else ("untuned",):
        found = [centre(start, runs, m, model) for runs in teach]
        if all(f is not None for f in found):
            models[start] = found  # type: ignore[assignment]
    tried = {name: judged_by(of[1:], m, split) for name, of in models.items()}
    start = min(tried, key=lambda k: tried[k].mean())
    for strength in strengths:
        name = f"from {start}, pulled by {strength:g}"
        models[name] = [fit_to(r, m, split, s, strength, iterations) for r, s in zip(teach, models[start], strict=True)]
        tried[name] = judged_by(models[name][1:], m, split)
    chosen = min(tried, key=lambda k: tried[k].mean())
    return Fitted(models[chosen][0], models[chosen][1:], chosen, {k: np.exp(v).tolist() for k, v in tried.items()})


def augmented(m: Machine, split: Split, fit: Fitted, quick: bool = False) -> tuple[jg.Model, str, dict[str, Any]]:
    """The best network by folds that neither it nor its fit has seen, all gains less their standard errors; none where nothing is
    left of the gain. The model, its name, and of all networks the errors over those of the fit, fold by fold."""
    plain, tried = judged_by(fit.by_fold, m, split), {}
    for name in NETWORKS:
        if "control" in NETWORKS[name][1] and not fit.model.nu:
            continue
        for decay in DECAYS[1:] if quick else DECAYS:
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
    """The model with a network that was trained through windows of these runs, as numbers of a model are fitted."""
    grafted, sizes = grafted_with(m, split, model, name)
    first = grafted.params["graft.weight"] / sizes
    sought = FittedParameters(
        first, None, lambda x: {"graft.weight": x * sizes}, lambda x: {"graft.weight": np.diag(sizes)}
    )
    data = pieces(runs, round(TRAIN_WINDOW / m.dt), MOST_TRAIN)
    problem = WindowFit(grafted, data, sought, scales(split.seen), decay)
    return grafted.replace({"graft.weight": _solved(problem, first, 2 if quick else NETWORK_ROUNDS) * sizes})


def grafted_with(m: Machine, split: Split, model: jg.Model, name: str) -> tuple[jg.Model, np.ndarray]:
    """A model with one of NETWORKS for each joint, silent at first, and the sizes of its weights."""
    target, inputs, hidden = NETWORKS[name]
    joints = [f"joint{i}" for i in range(model.nv)]
    grafted = jg.graft(model, target, inputs, jg.MLP(hidden, "tanh", scale=0.0), rows=joints, per="each")
    of = {k: np.concatenate([getattr(r, a) for r in split.seen]).std(0).mean()
          for k, a in (("joint.velocity", "qd"), ("control", "u")) if k in inputs}  # fmt: skip
    force = 0.1 * _weight(m, model).mean()
    return grafted, weight_units(grafted, [of[k] for k in inputs], [force])


def _weight(m: Machine, model: jg.Model) -> np.ndarray:
    """Torques with which gravity can act at each joint: what forces of a network are in units of."""
    return GRAVITY * base_numbers(model, m.length)["moment"]


# the experiment ----------------------------------------------------------------------------------------------------------


def _figures(model: jg.Model, m: Machine, split: Split) -> dict[str, Any]:
    units = scales(split.seen)
    said: dict[str, Any] = {
        k: f(model, m, split.held_out, units) for k, f in (("followed", followed), ("ahead", ahead))
    }
    if model.nu:
        said["torques"] = of_torques(model, m, split)
    return said


def compared(m: Machine, split: Split, quick: bool = False) -> dict[str, Any]:
    """All models of one machine, on one split."""
    chosen, first = untuned(m, split)
    found = {"untuned": {**_figures(first, m, split), "chosen": chosen}}
    fit = fitted(m, split, first, 3 if quick else ROUNDS, STRENGTHS[1:2] if quick else STRENGTHS)
    base = {k: v.tolist() for k, v in base_numbers(fit.model, m.length).items()}
    found["fitted"] = {
        **_figures(fit.model, m, split),
        "chosen": fit.chosen,
        "errors_of_folds": fit.tried,
        "base": base,
    }
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
        "quick": quick, "networks": NETWORKS, "windows": [FIT_WINDOWS, TRAIN_WINDOW, FOLLOWED, AHEAD, BEFORE], "pull": STRENGTHS,
        "most": [MOST_FIT, MOST_TRAIN, MOST], "rounds": [ROUNDS, NETWORK_ROUNDS], "decay": DECAYS,
        "folds": f"whole runs; thirds of runs where these are fewer than {FOLDS} (later) or 2 (runs)",
        "starts": [windows.SHARES, windows.ROUNDS, windows.TRIAL_ROUNDS],
    }  # fmt: skip
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
    for what, said in (("followed", "over"), ("ahead", "ahead")):
        words += [f"{said} {seconds}: {1e3 * e['q']:.2f} mrad" for seconds, e in one.get(what, {}).items()]
    if "torques" in one:
        shares = ", ".join(f"{x:.3f}" for x in one["torques"]["explained"])
        words.append(f"torques explained {shares} (smoothed over {one['torques']['smoothing_s']:g} s)")
    return "; ".join(words)
