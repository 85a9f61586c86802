"""Hit a golf ball with a two-link club: Qiao 2021, figure 6 (b).

Settings: "released", as the released code has it: no ground, the ball's place after one second of flight, 1 kg m^2 for its
inertia; "paper": torques zero at first, the distance as the loss. "physical": a ball with the inertia of a ball, ground,
rolling friction; it bounces, rolls and must come to rest at the target.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import jointgrad as jg

from .contest import Method, Task

TARGET = (0.0, -3.0, -1.0)
# the released code stops here (rms over the coordinates, m)
SEED_ACCURACY = 0.05
BALL = (2, 3, 4)
GROUND = -0.95  # height of the ground in the physical setting: the foot of the tee, m
DT, SWING, END = 1e-3, 1.0, 4.0  # s
ROLLING = 0.01  # m: short grass


def task(setting: str) -> Task:
    if setting == "physical":
        return _physical()
    if setting not in ("paper", "released"):
        raise jg.InputError(f'setting must be "paper", "released" or "physical", but is {setting!r}')
    club = jg.zoo.golf()
    club.link("ball").inertia = (1.0, 0.0, 0.0, 1.0, 0.0, 1.0)
    world = jg.World(gravity=(0.0, 0.0, -9.8), dt=1e-3).add(club)
    # only the ball touches anything: club and tee are one multibody in the released code
    world.pair("*", "*", contact=None).pair("ball", "*", contact=jg.Impulse(), friction=2.0, restitution=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = world.compile(dt=1e-3, unphysical="warn")
    is_paper = setting == "paper"
    return Task(
        "golf", setting, world, model, model.initial_state(), 1000, BALL, TARGET,
        SEED_ACCURACY * np.sqrt(3) if is_paper else SEED_ACCURACY, (0, 1), noise=0.0 if is_paper else 1.0,
        kind="distance" if is_paper else "rms",
        notes=("no ground: the ball is in free flight at the end", "the club passes through the tee, as in the released code"),
    )  # fmt: skip


def _physical() -> Task:
    world = jg.World(gravity=(0.0, 0.0, -9.81), dt=DT).add(jg.zoo.golf(damping=0.05)).add_ground(height=GROUND)
    world.pair("*", "*", contact=None)
    world.pair("ball", "link1", contact=jg.Impulse(), friction=0.3, restitution=0.5)
    # a ball that trembled on a springy tee would leave it to the step in which it is struck where it goes
    world.pair("ball", "tee", contact=jg.Impulse(), friction=0.05)
    world.pair("ball", "ground", contact=jg.Impulse(), friction=0.6, restitution=0.3, rolling=ROLLING)
    model = world.compile(dt=DT)
    start, steps = model.initial_state(), round(END / DT)
    start.q[BALL[2]] = -0.9 + 0.025  # at rest on the tee
    return Task(
        "golf", "physical", world, model, start, steps, BALL[:2], TARGET[:2], 0.02, (0, 1), None, round(SWING / DT),
        kind="distance", rest_speed=0.01, notes=("the ball must rest on the ground at the end",),
    )  # fmt: skip


# every second trial step about half as long, and the Jacobian asked for only where secants do not do
SECANTS: dict[str, Any] = {"damping": 1.0, "trials": 2, "secant": 0.8}


def methods(setting: str, quick: bool = False) -> list[Method]:
    """Rates and step sizes are scanned, so that no method is judged by a bad one. "Moving": derivatives through the strike
    know that it moves in time; the others are exact derivatives of the steps."""
    return _physical_methods(quick) if setting == "physical" else _released_methods(quick)


def _physical_methods(quick: bool) -> list[Method]:
    found = [
        Method("Gauss-Newton, moving", "gauss_newton", SECANTS, 8, 30, moving_impacts=True),
        Method("L-BFGS, moving", "lbfgs", {"first_step": 0.3}, 8, 60, moving_impacts=True),
        Method("Gauss-Newton", "gauss_newton", SECANTS, 8, 30),
        Method("L-BFGS", "lbfgs", {"first_step": 0.3}, 8, 60),
        Method("Adam 0.1", "adam", {"rate": 0.1}, 8, 100),
    ]
    found += [Method(f"CMA-ES knots {step:g}", "cma", {"step": step}, 8, 150, False) for step in (0.3, 1.0, 3.0)]
    return found[:1] if quick else found


def _released_methods(quick: bool) -> list[Method]:
    found = [Method(f"SGD {rate:g}", "sgd", {"rate": rate}, iterations=100) for rate in (300.0, 1000.0, 3000.0)]
    found += [Method(f"Adam {rate:g}", "adam", {"rate": rate}, iterations=100) for rate in (0.1, 0.3, 1.0)]
    found += [
        Method("L-BFGS", "lbfgs", {"first_step": 5.0}, iterations=60),
        Method("L-BFGS, moving", "lbfgs", {"first_step": 5.0}, iterations=60, moving_impacts=True),
        Method("SGD 300, moving", "sgd", {"rate": 300.0}, iterations=100, moving_impacts=True),
        Method("Adam 0.3, moving", "adam", {"rate": 0.3}, iterations=100, moving_impacts=True),
        Method("Gauss-Newton", "gauss_newton", iterations=20),
        Method("Gauss-Newton, moving", "gauss_newton", SECANTS, iterations=40, moving_impacts=True),
        Method("iLQR, moving", "ilqr", {"control": 1e-5, "regularisation": 1.0, "feedback": False}, iterations=30,
               moving_impacts=True),
    ]  # fmt: skip
    found += [Method(f"CMA-ES knots {s:g}", "cma", {"step": s}, 8, 300, False) for s in (0.3, 1.0, 3.0)]
    found += [Method(f"CMA-ES diagonal {s:g}", "cma_diagonal", {"step": s}, None, 300, False) for s in (0.3, 1.0, 3.0)]
    found += [Method("CMA-ES full", "cma", {"step": 1.0}, None, 15, False)]
    return [m for m in found if m.label in ("L-BFGS", "Gauss-Newton, moving")] if quick else found
