"""Find out what a joint's friction depends on: a double pendulum whose damping the model does not know (NeuralSim 2021, figure 10).

One network for each joint force sees the positions and velocities of both joints. Trained through motions of a few steps from
recorded states, with the sparse-group lasso of `grafts/discover.py`, it must be left with the joint's own velocity.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import jointgrad as jg

from ..grafts.discover import Discovery, Settings, Windows, discover, draw, windows
from ..grafts.weights import said_by
from .kept import Kept

DAMPING = (0.2, 0.1)  # N m s, hidden
DT, STEPS, WINDOW = 0.01, 100, 5
RUNS = 20
# of the recording: rad and rad/s, standard deviations
NOISE_Q, NOISE_QD = 1e-4, 1e-3
# of the excitation: N m, held for this many steps
TORQUE, HOLD = 3.0, 20
# a coarser path and shorter training
QUICK = Settings(penalties=tuple(np.geomspace(0.05, 0.5, 6)), iterations=80, first_iterations=200)
TRUTH = {f"joint.force[joint{i}]": (f"joint.velocity[joint{i}]",) for i in range(2)}


def recorded(seed: int, runs: int = RUNS, every: int = 2 * WINDOW) -> Windows:
    """Motions with damping from random states under random torques, as noisy as sensors are, cut into windows."""
    rng = np.random.default_rng(seed)
    model = jg.zoo.double_pendulum(damping=DAMPING).compile(dt=DT)
    start = jg.State(rng.uniform(-np.pi, np.pi, (runs, 2)), 3.0 * rng.normal(size=(runs, 2)))
    u = np.repeat(TORQUE * rng.normal(size=(-(-STEPS // HOLD), runs, 2)), HOLD, axis=0)[:STEPS]
    motion = jg.rollout(model, start, u)
    q, qd = (a + noise * rng.normal(size=a.shape) for a, noise in ((motion.q, NOISE_Q), (motion.qd, NOISE_QD)))
    return windows(q, qd, u, WINDOW, every)


def undamped(seed: int) -> jg.Model:
    """The model that knows no damping, with a network at each joint force that sees everything."""
    network = jg.MLP((5, 5), "elu", scale=0.1, seed=seed)
    plain = jg.zoo.double_pendulum().compile(dt=DT)
    return jg.graft(plain, "joint.force", ["joint.position", "joint.velocity"], network, sees="all")


def discovered(seed: int, settings: Settings | None = None) -> Discovery:
    """New motions, new noise, new first weights for each seed; training and held-out motions have nothing in common."""
    data = [recorded(s) for s in np.random.SeedSequence(seed).generate_state(2)]
    return discover(undamped(seed), *data, settings)  # type: ignore[arg-type, call-arg]


def reproduce(
    seeds: Sequence[int],
    out: Path,
    say: Callable[[str], None],
    quick: bool = False,
    sample_seeds: Sequence[int] = (0, 1, 2),
) -> dict[str, Any]:
    """What survives for each seed; figures and pictures. Ctrl-C leaves those that are finished, and the next run goes on."""
    kept = Kept(out, "pendulum-friction", {"quick": quick}, say)
    found: dict[str, Any] = {}
    try:
        for seed in seeds:
            found[str(seed)] = kept.part(f"seed {seed}", partial(_one, seed, out, quick))
            say(_line(seed, found[str(seed)]))
        right = sum(one["is_right"] for one in found.values())
        say(f"Exactly the joint's own velocity is left on {right} of {len(found)} seeds.")
        kept.write(hidden_damping=DAMPING, truth=TRUTH, seeds=found)
        if not quick:
            kept.write(samples=_compared(kept, sample_seeds, say))
    except KeyboardInterrupt:
        say(f"Interrupted: {len(kept.parts)} parts are kept; the same command goes on from there.")
    return kept.said


def _one(seed: int, out: Path, quick: bool) -> dict[str, Any]:
    began = time.perf_counter()
    found = discovered(seed, QUICK if quick else None)
    draw(found, out / f"connections_{seed}.png")
    return _figures(found, time.perf_counter() - began)


def _compared(kept: Kept, seeds: Sequence[int], say: Callable[[str], None]) -> dict[str, Any]:
    """Errors against numbers of samples, and their picture."""
    from . import friction_samples

    found = friction_samples.compared(kept.part, say, seeds)
    friction_samples.draw(found, kept.out / "samples.png")
    fewer = "; ".join(
        f"{name}: {ratio:g}" if ratio else f"{name}: never" for name, ratio in found["fewer_samples"].items()
    )
    say(f"Times fewer samples than the MLP for the best that it reaches: {fewer}.")
    return found


def _figures(found: Discovery, seconds: float) -> dict[str, Any]:
    point = found.path[found.chosen]
    return {
        "inputs": found.inputs, "is_right": found.inputs == TRUTH, "left_out_after_the_path": found.left_out,
        "held_out_error": point.held_out,
        "error_with_all_inputs": found.path[0].held_out, "slopes": slopes(found.model).tolist(), "seconds": seconds,
        "path": [{"penalty": p.penalty, "inputs": p.count, "training": p.training, "held_out": p.held_out} for p in found.path],
    }  # fmt: skip


def slopes(model: jg.Model, rate: float = 3.0) -> np.ndarray:
    """(2,): force of each network per velocity of its joint, between -rate and rate; with the hidden damping d it is -d."""
    found = []
    for k in range(2):
        x = np.zeros((2, 4))
        x[:, 2 + k] = rate, -rate
        ends = said_by(model, k, x)[:, 0]
        found.append((ends[0] - ends[1]) / (2 * rate))
    return np.array(found)


def _line(seed: int, one: dict[str, Any]) -> str:
    left = "; ".join(f"{k}: {', '.join(v) or 'nothing'}" for k, v in one["inputs"].items())
    error, whole = one["held_out_error"], one["error_with_all_inputs"]
    return (f"seed {seed}: {left}; held-out error {error:.2g} of the model without networks (all inputs: {whole:.2g}); "
            f"slopes {np.round(one['slopes'], 3)}; {one['seconds']:.0f} s")  # fmt: skip
