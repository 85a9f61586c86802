"""What networks inside the step cost: the same motions with and without them, one core.

    python benchmarks/grafts.py [--quick] [--out FOLDER]

A five-link swimmer in water and a Laikago that stands on four feet, batch 64, with one network of at most 1,637 weights on all
joint forces; and the Laikago with a small network at each point that touches. Silent networks must give the motion of the plain
model, bit for bit, before anything is timed. Times are processor time, best of interleaved repeats: read the ratios.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path

import numpy as np

import jointgrad as jg
from jointgrad.bench.timing import best, print_goals, write

BATCH, STEPS, MOST_WEIGHTS = 64, 50, 1637
SEEN = ("joint.position", "joint.velocity")
GOALS = (
    ("swimmer forward", "<=", 3.0, "step of a five-link swimmer with the network / without"),
    ("laikago forward", "<=", 1.3, "step of a standing Laikago with the network / without"),
)


def swimmer() -> tuple[jg.Model, np.ndarray]:
    model = jg.World(density=997.0, viscosity=0.00089, gravity=(0.0, 0.0, 0.0)).add(jg.zoo.swimmer(5)).compile(dt=2e-3)
    return model, model.initial_state().q


def laikago() -> tuple[jg.Model, np.ndarray]:
    robot = jg.zoo.laikago(touch="feet")
    for actuator in robot.actuators.values():
        actuator.kind, actuator.gain, actuator.damping = "position", 150.0, 3.0
    model = jg.World().add(robot).add_ground(friction=0.7).compile(dt=1e-3)
    start = model.initial_state()
    q, toes = start.q.copy(), [k for k, name in enumerate(model.link_names) if "toe" in name]
    q[2] += 0.03 - jg.inspect(model, start).link_position[toes, 2].min()
    return model, q


def with_network(model: jg.Model, scale: float) -> jg.Model:
    """Two equal hidden layers, as wide as the number of weights allows."""
    n_out = sum(1 for name in jg.graft(model, "joint.force", SEEN).topology.grafts[-1].rows)
    wide = next(
        h for h in range(60, 0, -1)
        if sum((a + 1) * b for a, b in itertools.pairwise((2 * n_out, h, h, n_out))) <= MOST_WEIGHTS
    )  # fmt: skip
    return jg.graft(model, "joint.force", SEEN, jg.MLP((wide, wide), scale=scale), per="whole")


def at_points(model: jg.Model, scale: float) -> jg.Model:
    seen = ("contact.depth", "contact.velocity")
    return jg.graft(model, "contact.friction", seen, jg.MLP((8, 8), scale=scale), mode="scale", shared=True)


def compared(name: str, model: jg.Model, q: np.ndarray, make, repeats: int) -> dict[str, float]:
    state = jg.State(np.tile(q, (BATCH, 1)), np.zeros((BATCH, model.nv)))
    hold = q[-model.nu :] if model.nu and "laikago" in name else np.zeros(model.nu)
    u = np.tile(hold, (STEPS, BATCH, 1))
    full = make(model, 0.01)
    plain, silent, grafted = (jg.rollout(m, state, u, threads=1) for m in (model, make(model, 0.0), full))
    if not (np.array_equal(plain.q, silent.q) and np.array_equal(plain.qd, silent.qd)):
        raise SystemExit(f"{name}: a silent network changes the motion")
    ones = np.ones_like(plain.last.q)
    times = best(
        {
            "plain": lambda: jg.rollout(model, state, u, threads=1),
            "grafted": lambda: jg.rollout(full, state, u, threads=1),
            "plain back": lambda: plain.backward(ones),
            "grafted back": lambda: grafted.backward(ones),
        },
        repeats,
    )
    found = {"forward": times["grafted"] / times["plain"], "backward": times["grafted back"] / times["plain back"]}
    weights = full.params["graft.weight"].size
    print(
        f"{name}, {weights} weights: forward {found['forward']:.2f} times the plain step, backward {found['backward']:.2f} times"
    )
    return {f"{name} {way}": ratio for way, ratio in found.items()} | {f"{name} weights": weights}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("out/benchmarks/grafts"))
    arguments = parser.parse_args()
    repeats = 3 if arguments.quick else 15
    found = compared("swimmer", *swimmer(), with_network, repeats)
    found |= compared("laikago", *laikago(), with_network, repeats)
    found |= compared("laikago at points", *laikago(), at_points, repeats)
    print_goals(found, GOALS)
    write(found, arguments.out)


if __name__ == "__main__":
    main()
