"""A real cube, thrown 300 times: how well do we foresee its motion, with either law of contact, and next to MuJoCo?

    python benchmarks/cube_toss.py [--data ../shared/data] [--train 50] [--starts 64] [--iterations 40] [--out /tmp/cube_toss]

Data, errors, the procedure that identifies parameters of contact on 50 tosses, and our cube are those of
`jointgrad/reproduce/toss.py`; reported are errors on the other 250. Our gradients are exact, by one pass back; MuJoCo's are central
differences, two roll-outs for each parameter.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from jointgrad.reproduce import toss
from jointgrad.reproduce.toss import (
    GRAVITY,
    INERTIA,
    MASS,
    RATE,
    WIDTH,
    Ours,
    Tosses,
    errors,
    identified,
    load,
    loss_and_slope,
    start_velocity,
    summary,
)

ROOT = Path(__file__).resolve().parents[1]
DIFFERENCE = 0.02  # of central differences, in logarithms

# solref (time constant, damping ratio), 1 - solimp (at the surface, deep), width over which it changes, impratio
RANGES = {
    "friction": (0.05, 0.5), "time": (1e-3, 0.1), "ratio": (0.05, 2.0), "shy": (1e-3, 0.7), "deep": (1e-3, 0.7),
    "width": (1e-4, 1e-2), "impratio": (1.0, 100.0),
}  # fmt: skip
# what each does when nobody has identified anything but the authors' friction
DEFAULTS = toss.DEFAULTS | {
    "mujoco": {"friction": 0.15, "time": 0.02, "ratio": 1.0, "shy": 0.1, "deep": 0.05, "width": 1e-3, "impratio": 1.0},
}


# simulators -------------------------------------------------------------------------------------------------------------


class MuJoCo:
    """The same cube for MuJoCo: elliptic cones, Newton."""

    law, ranges = "mujoco", RANGES

    def __init__(self, steps: int) -> None:
        import mujoco
        import mujoco.rollout

        self.mujoco, self.steps, self.calls = mujoco, steps, 0
        half = WIDTH / 2
        self.model = mujoco.MjModel.from_xml_string(
            f'<mujoco><option timestep="{1.0 / RATE / steps!r}" gravity="0 0 -{GRAVITY}" cone="elliptic" tolerance="1e-10" '
            f'integrator="Euler"/><worldbody><geom type="plane" size="0 0 1" condim="3"/><body><freejoint/>'
            f'<inertial pos="0 0 0" mass="{MASS}" diaginertia="{INERTIA} {INERTIA} {INERTIA}"/>'
            f'<geom type="box" size="{half} {half} {half}" condim="3"/></body></worldbody></mujoco>'
        )
        self.data = mujoco.MjData(self.model)

    def poses(self, tosses: Tosses, params: dict[str, float]) -> np.ndarray:
        m, n = self.model, tosses.pose.shape[1]
        m.geom_friction[:, 0] = params["friction"]
        m.geom_solref[:] = params["time"], params["ratio"]
        m.geom_solimp[:, :3] = 1.0 - params["shy"], 1.0 - params["deep"], params["width"]
        m.opt.impratio = params["impratio"]
        states = np.concatenate([np.zeros((n, 1)), tosses.pose[0], start_velocity(tosses, self.steps)], 1)
        found, _ = self.mujoco.rollout.rollout(m, [self.data], states, nstep=tosses.frames * self.steps)
        self.calls += n
        q = np.concatenate([states[:, None], found], 1)[:, :: self.steps, 1:8]
        return np.swapaxes(q, 0, 1)

    def gradient(self, tosses: Tosses, params: dict[str, float]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        found = {}
        for name, value in params.items():
            sides = [value * np.exp(DIFFERENCE), value * np.exp(-DIFFERENCE)]
            up, down = (loss_and_slope(tosses, self.poses(tosses, params | {name: v}))[0] for v in sides)
            found[name] = (up - down) / (sides[0] - sides[1])
        return loss_and_slope(tosses, self.poses(tosses, params))[0], found


Simulator = Ours | MuJoCo


# report -----------------------------------------------------------------------------------------------------------------


def case(sim: Simulator, train: Tosses, test: Tosses, starts: int, iterations: int) -> dict[str, Any]:
    """Identify on some tosses, report on others."""
    before = summary(test, sim.poses(test, DEFAULTS[sim.law]))
    sim.gradient(train[np.arange(1)], DEFAULTS[sim.law])  # compiles
    sim.calls, began = 0, time.process_time()
    params = identified(sim, train, starts, iterations)
    spent, calls = time.process_time() - began, sim.calls
    return {
        "params": params, "test": summary(test, sim.poses(test, params)), "train": summary(train, sim.poses(train, params)),
        "test_with_defaults": before, "roll_outs": calls, "cpu_seconds": spent,
    }  # fmt: skip


def plot(curves: dict[str, tuple[np.ndarray, np.ndarray]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for name, (distance, angle) in curves.items():
        t = np.arange(len(distance)) / RATE
        for axis, y in zip(axes, (100 * distance, np.degrees(angle)), strict=True):
            axis.plot(t, y, label=name)
    for axis, what in zip(axes, ("position error, % of the cube's width", "rotation error, degrees"), strict=True):
        axis.set(xlabel="time since the first frame, s", ylabel=what, xlim=(0, None), ylim=(0, None))
        axis.grid(alpha=0.3)
    axes[0].legend()
    figure.suptitle("Mean over the tosses that were not used for identification, as long as half of them last")
    figure.savefig(path, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--train", type=int, default=50)
    parser.add_argument("--starts", type=int, default=64)
    parser.add_argument("--iterations", type=int, default=40)
    parser.add_argument("--out", type=Path, default=Path("/tmp/cube_toss"))
    parser.add_argument("--only", default="", help="identify again only cases whose name holds this")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    train, test = toss.split(load(options.data), options.train)
    cases: dict[str, Callable[[], Simulator]] = {
        "impulse, 1 step per frame": lambda: Ours("impulse", 1),
        "impulse, 4 steps per frame": lambda: Ours("impulse", 4),
        "spring, 8 steps per frame": lambda: Ours("spring", 8),
        "MuJoCo, 1 step per frame": lambda: MuJoCo(1),
        "MuJoCo, 4 steps per frame": lambda: MuJoCo(4),
    }
    known = options.out / "cube_toss.json"
    results = json.loads(known.read_text()) if options.only and known.is_file() else {}
    curves = {}
    lasts = (~np.isnan(test.pose[..., 0])).mean(1) >= 0.5
    for name, make in cases.items():
        sim = make()
        if options.only in name or name not in results:
            print(name, flush=True)
            results[name] = case(sim, train, test, options.starts, options.iterations)
            print(f"    {results[name]['params']}\n    {results[name]['test']}", flush=True)
            known.write_text(json.dumps(results, indent=1))
        q = sim.poses(test, results[name]["params"])
        curves[name] = tuple(np.nanmean(x[lasts], axis=1) for x in errors(test, q))
    plot(curves, options.out / "cube_toss.png")
    print(
        "\n| | position, % of width (mm) | rotation, degrees | training: %, degrees | not identified: %, degrees | CPU s |"
    )
    print("|---|---|---|---|---|---|")
    for name, r in results.items():
        t, s, d = r["test"], r["train"], r["test_with_defaults"]
        print(
            f"| {name} | {t['position_percent']:.1f} ({t['position_mm']:.1f}) | {t['rotation_deg']:.1f} "
            f"| {s['position_percent']:.1f}, {s['rotation_deg']:.1f} | {d['position_percent']:.1f}, {d['rotation_deg']:.1f} "
            f"| {r['cpu_seconds']:.0f} |"
        )
    print(
        f"\npython benchmarks/cube_toss.py --train {options.train} --starts {options.starts} --iterations {options.iterations}"
    )
    print(f"results in {options.out}")


if __name__ == "__main__":
    main()
