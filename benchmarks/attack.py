"""What once broke, once more: each attack prints what came of it and whether that is as it should be.

    python benchmarks/attack.py            # all of them
    python benchmarks/attack.py bounce     # those whose name holds a word

An attack is a function that returns the sentence to print and whether all is well; `@attack` lists it.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable

import numpy as np

import jointgrad as jg

Attack = Callable[[], tuple[str, bool]]
ATTACKS: dict[str, Attack] = {}


def attack(function: Attack) -> Attack:
    ATTACKS[function.__name__] = function
    return function


def body(kind: str, size: tuple[float, ...], mass: float = 1.0) -> jg.Description:
    robot = jg.Description("body", base="free")
    inertia = 0.4 * mass * 0.01
    robot.add_link("body", mass, inertia=(inertia, 0, 0, inertia, 0, inertia)).shapes.append(jg.Shape(kind, size))
    return robot


# contact ------------------------------------------------------------------------------------------------------------------


def row_of_balls(count: int) -> jg.Model:
    world = jg.World(gravity=(0, 0, 0))
    for k in range(count):
        world.add(body("sphere", (0.1,)), name=f"b{k}", position=(k * (0.2 - 1e-9), 0, 0))
    return world.pair("*", "*", restitution=1.0, friction=0.0).compile(dt=1e-3)


def gain_of(speeds: tuple[float, ...]) -> tuple[str, bool]:
    model = row_of_balls(len(speeds))
    state = model.initial_state()
    state.qd[::6] = speeds
    motion = jg.rollout(model, state, steps=50)
    energy = (motion.qd**2).sum(-1)
    gain = energy.max() / energy[0] - 1
    return f"{speeds} -> {motion.last.qd[::6].round(3).tolist()}, energy at most {gain:+.1e}", gain < 1e-6


@attack
def three_balls_bounce() -> tuple[str, bool]:
    return gain_of((0.5, 1.0, 0.0))


@attack
def cradle_bounces() -> tuple[str, bool]:
    return gain_of((1.0, 0.0, 0.0, 0.0, 0.0))


@attack
def random_rows_bounce() -> tuple[str, bool]:
    rng = np.random.default_rng(0)
    found = [gain_of(tuple(rng.normal(size=5).round(2).tolist())) for _ in range(20)]
    return f"20 rows of five balls; the last {found[-1][0]}", all(is_well for _, is_well in found)


@attack
def one_ball_bounces_for_twenty_seconds() -> tuple[str, bool]:
    world = jg.World().add(body("sphere", (0.1,)), position=(0, 0, 0.6)).add_ground(restitution=1.0)
    model = world.compile(dt=1e-3)
    motion = jg.rollout(model, model.initial_state(), steps=20_000)
    gain = (motion.q[-2000:, 2].max() - 0.1) / 0.5 - 1
    return f"height of the last bounces {gain:+.2%}", -0.01 < gain < 1e-6


@attack
def restitution_begins() -> tuple[str, bool]:
    model = jg.World().add(body("sphere", (0.1,)), position=(0, 0, 0.1009)).add_ground().compile(dt=1e-3)
    state = jg.State(model.initial_state().q, np.array([0, 0, -1.0, 0, 0, 0]))
    speeds = [jg.step(model.replace({"pair.restitution": [e]}), state).qd[2] for e in (0.0, 1e-12)]
    return f"next vz {speeds[0]:.3g} and {speeds[1]:.3g}", abs(speeds[0] - speeds[1]) < 1e-6


@attack
def plane_on_a_moving_body() -> tuple[str, bool]:
    tray = jg.Description("tray", base="fixed")
    tray.add_link("tray", 1.0, inertia=(1, 0, 0, 1, 0, 1)).shapes.append(jg.Shape("plane", ()))
    tray.add_joint("lift", "prismatic", None, "tray", axis=(0, 0, 1), limit=(0.0, 1.0))
    heights = []
    for x in (0.15, 0.3, 30.0):
        model = jg.World().add(tray).add(body("sphere", (0.1,)), position=(x, 0, 0.1)).compile(dt=1e-3)
        heights.append(jg.rollout(model, model.initial_state(), steps=500).last.q[3])
    return f"balls at {np.round(heights, 4).tolist()}", min(heights) > 0.09


@attack
def wide_margin_between_two_trees() -> tuple[str, bool]:
    world = jg.World(gravity=(0, 0, 0))
    for k in range(2):
        world.add(body("sphere", (0.1,)), name=f"b{k}", position=(0.6 * k, 0, 0))
    model = world.pair("*", "*", margin=0.5).compile(dt=1e-3)
    contacts = jg.inspect(model, model.initial_state()).contacts
    return f"{len(contacts)} contact 0.4 m apart with a margin of 0.5 m", len(contacts) == 1


@attack
def heavy_bodies_rest() -> tuple[str, bool]:
    depths = []
    for mass in (1.0, 3e7, 1e8):
        model = jg.World().add(body("sphere", (0.1,), mass), position=(0, 0, 0.1)).add_ground().compile(dt=1e-3)
        depths.append(0.1 - jg.rollout(model, model.initial_state(), steps=1000).last.q[2])
    return f"1, 3e7 and 1e8 kg sink in by {', '.join(f'{d:.1e}' for d in depths)} m", max(depths) < 1e-6


@attack
def a_tonne_on_a_kilogram() -> tuple[str, bool]:
    world = jg.World().add_ground()
    for k, mass in enumerate((1.0, 1000.0)):
        world.add(body("box", (0.1,) * 3, mass), name=f"b{k}", position=(0, 0, 0.1 + 0.2 * k))
    model = world.compile(dt=1e-3)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        jg.rollout(model, model.initial_state(), steps=300)
    return f"warned: {seen[0].message if seen else 'no'}", len(seen) == 1


def main() -> int:
    words = sys.argv[1:]
    bad = 0
    for name, function in ATTACKS.items():
        if words and not any(word in name for word in words):
            continue
        said, is_well = function()
        bad += not is_well
        print(f"{'ok ' if is_well else 'BAD'} {name}: {said}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
