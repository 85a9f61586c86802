"""Find the friction under a racecar from where it stops: Qiao 2021, figure 7.

The car starts with 1 m/s along x. Cases with a truth that does not come from this engine: "locked1" and "locked2", wheels that do
not turn, x = 0.8 m after 1 s (still sliding) or 2 s (at rest): x = v T - mu g T^2 / 2 while it slides. "damped": free
wheels with damped axles, friction and damping found together from places over time that a separate solver (scipy) made.
"paper": the released scene, a fall of half a metre onto a slab, and x = 0.8 m after 1 s: there is no truth, and perhaps no friction
that does it; its landscape shows.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import jointgrad as jg

from ..model.parameters import Entry
from ..optimize.identify import Identification, Recording, Settings
from ..optimize.progress import Result, Stop
from ..optimize.search import brent, cma_es, golden_section, nelder_mead
from ..optimize.solvers import gauss_newton, lbfgs

GRAVITY, SPEED, GOAL, GUESS = 9.8, 1.0, 0.8, 0.002
DT = 1e-3
WHEELS = tuple(f"{side}_{end}_wheel" for side in ("left", "right") for end in ("rear", "front"))
TOLERANCE = 1e-3  # of the friction
FRICTION, DAMPING = 0.05, 2e-4  # truths of the damped case; the latter in N m s, per axle
CASES = ("locked1", "locked2", "damped", "paper")


@dataclass(frozen=True)
class Case:
    """An identification, its truth by name (or None), and the parameters' start."""

    name: str
    problem: Identification
    truth: tuple[float, ...] | None
    note: str


@dataclass(frozen=True)
class Outcome:
    method: str
    found: tuple[float, ...]
    result: Result
    to_truth: tuple[int, int, float] | None  # iterations, evaluations, seconds
    has_gradient: bool


def car(locked: bool, height: float = 0.0, ground: float = 0.0) -> tuple[jg.Model, jg.State]:
    """The car on its ground, moving along x. height: of its start over its stand."""
    robot = jg.zoo.racecar()
    for side in ("left", "right"):
        robot.joint(f"{side}_steering_hinge_joint").kind = "fixed"
    robot.actuators.clear()
    for wheel in WHEELS:
        if locked:
            robot.joint(f"{wheel}_joint").kind = "fixed"
    world = jg.World(gravity=(0.0, 0.0, -GRAVITY)).add(robot).add_ground(height=ground)
    world.pair("*", "*", contact=None)
    world.pair("*wheel", "ground", contact=jg.Impulse(), friction=GUESS)
    model = world.compile(dt=DT)
    start = model.initial_state()
    start.q[2] = height
    start.qd[0] = SPEED
    return model, start


def last_place(model: jg.Model, start: jg.State, seconds: Sequence[float], places: Sequence[float]) -> Recording:
    """A recording of x alone at evenly spaced times, the first of which is the start."""
    q, qd = np.full((len(seconds), model.nq), np.nan), np.full((len(seconds), model.nv), np.nan)
    q[0], qd[0] = start
    q[1:, 0] = places[1:]
    return Recording(q, qd, None, every=round((seconds[1] - seconds[0]) / DT))


def case(name: str) -> Case:
    friction = Entry("pair.friction", bounds=(0.0, 1.0), tied=True, scale=0.05)
    if name in ("locked1", "locked2"):
        model, start = car(locked=True)
        T = 1.0 if name == "locked1" else 2.0
        # still sliding after T, or stopped on the way: the work of friction is the energy of the start
        slides = 2 * (SPEED * T - GOAL) / (GRAVITY * T**2)
        truth = slides if slides * GRAVITY * T <= SPEED else SPEED**2 / (2 * GRAVITY * GOAL)
        record = last_place(model, start, (0.0, T), (0.0, GOAL))
        return Case(
            name, Identification(model, [record], [friction], Settings()), (truth,), f"closed form, T = {T:g} s"
        )
    if name == "damped":
        model, start = car(locked=False)
        times, places = rolling_out(model)
        record = last_place(model, start, times, places)
        axle = Entry("joint.damping", [f"{w}_joint" for w in WHEELS], bounds=(0.0, 0.1), tied=True, scale=1e-3)
        problem = Identification(model, [record], [friction, axle], Settings(sigma_q=1e-3))
        return Case(name, problem, (FRICTION, DAMPING), "places by scipy, sliding then rolling with damped axles")
    if name != "paper":
        raise jg.InputError(f'there is no case "{name}"; the names are {", ".join(CASES)}')
    model, start = car(locked=False, height=0.6, ground=0.1)
    record = last_place(model, start, (0.0, 1.0), (0.0, GOAL))
    return Case(name, Identification(model, [record], [friction], Settings()), None, "the released scene, goal 0.8 m")


def rolling_out(model: jg.Model) -> tuple[np.ndarray, np.ndarray]:
    """x at eleven times over one second: a body of mass M on four wheels that slide until they roll, axles damped.

    M v' = -F, I w' = F r / 4 - b w per wheel, with F = mu M g while the wheel slips; once it rolls,
    (M + 4 I / r^2) v' = -4 b v / r^2.
    """
    from scipy.integrate import solve_ivp

    radius, spin, mass = 0.05, 0.00041226, float(model.params["link.mass"].sum())
    rolled_mass = mass + 4 * spin / radius**2

    def rates(t: float, y: np.ndarray) -> list[float]:
        _, v, w = y
        force = FRICTION * mass * GRAVITY
        if v - w * radius > 1e-6:
            return [v, -force / mass, (force * radius / 4 - DAMPING * w) / spin]
        slowing = -4 * DAMPING * v / radius**2 / rolled_mass
        return [v, slowing, slowing / radius]

    times = np.linspace(0.0, 1.0, 11)
    found = solve_ivp(rates, (0.0, 1.0), [0.0, SPEED, 0.0], t_eval=times, max_step=1e-4, rtol=1e-9)
    return times, found.y[0]


def solved(one: Case, seconds: float, seed: int = 0) -> list[Outcome]:
    """Every method from the same start; a method has arrived when all its unknowns are within the tolerance of the truth."""
    problem = one.problem
    low, high = problem.bounds
    stop = Stop(iterations=200, seconds=seconds, target=1e-16)
    start, bounds = problem.start, problem.bounds
    plan: list[tuple[str, bool, Callable[..., Result]]] = [
        (
            "Gauss-Newton",
            True,
            lambda c: gauss_newton(problem, start, stop, bounds, c, damping=1e-8, trials=1, secant=0.9),
        ),
        ("L-BFGS", True, lambda c: lbfgs(problem, start, stop, bounds, c, first_step=0.2)),
        ("Nelder-Mead", False, lambda c: nelder_mead(problem, start, stop, bounds, c)),
        ("CMA-ES", False, lambda c: cma_es(problem, start, 0.3, stop, bounds, c, seed=seed)),
    ]
    if problem.n == 1:
        plan.append(("golden section", False, lambda c: golden_section(problem, low[0], high[0], stop, c)))
        plan.append(("Brent", False, lambda c: brent(problem, low[0], high[0], stop, c)))
    problem.jacobian(problem.start[None])
    problem.gradient(problem.start[None])
    return [_watched(one, name, has_gradient, solve) for name, has_gradient, solve in plan]


def _watched(one: Case, name: str, has_gradient: bool, solve: Callable[..., Result]) -> Outcome:
    arrived: list[tuple[int, int, float]] = []

    def watch(progress: Any) -> bool:
        if one.truth is None or not is_close(one, progress.x):
            return False
        h = progress.history
        arrived.append((progress.iteration, progress.evaluations + progress.gradients, h.seconds[-1]))
        return True

    result = solve(watch)
    found = tuple(float(v) for v in one.problem.unknowns.physical(result.x))
    return Outcome(name, found, result, arrived[0] if arrived else None, has_gradient)


def is_close(one: Case, x: np.ndarray) -> bool:
    assert one.truth is not None
    off = np.abs(one.problem.unknowns.physical(x) - one.truth)
    # the friction to 1e-3; damping has other units: to one part in twenty
    return bool(off[0] < TOLERANCE and all(off[1:] < 0.05 * np.array(one.truth[1:])))


def landscape(one: Case, count: int = 81) -> np.ndarray:
    """(count, 2): frictions and the place at the end."""
    frictions = np.linspace(0.0, 0.3, count)
    problem = one.problem
    x = np.repeat(problem.start[None], count, axis=0)
    x[:, 0] = frictions / 0.05
    motion = problem._motion(x)
    return np.stack([frictions, motion.last.q[:, 0]], axis=-1)


def reproduce(names: Sequence[str], out: Path, seconds: float, say: Callable[[str], None]) -> dict[str, Any]:
    """All cases, their table, files and landscape; Ctrl-C leaves those that are finished."""
    out.mkdir(parents=True, exist_ok=True)
    said: dict[str, Any] = {"experiment": "racecar", "command": " ".join(["jointgrad", *sys.argv[1:]]), "cases": {}}
    maps: dict[str, np.ndarray] = {}
    try:
        for name in names:
            one = case(name)
            outcomes = solved(one, seconds)
            maps[name] = landscape(one)
            said["cases"][name] = _figures(one, outcomes, maps[name])
            _keep(out, name, one, outcomes, maps[name])
            for o in outcomes:
                at = "-" if o.to_truth is None else "{} iterations, {} evaluations, {:.3f} s".format(*o.to_truth)
                truth = "" if one.truth is None else f"  truth {np.round(one.truth, 6)}"
                say(f"{name:8s} {o.method:15s} found {np.round(o.found, 6)}{truth}  within 1e-3: {at}")
            (out / "results.json").write_text(json.dumps(said, indent=2) + "\n")
    except KeyboardInterrupt:
        say(f"Interrupted: {len(said['cases'])} cases are kept.")
    if maps:
        _draw(maps, out / "landscape.png")
    return said


def _figures(one: Case, outcomes: Sequence[Outcome], places: np.ndarray) -> dict[str, Any]:
    times = {g: [o.to_truth[2] for o in outcomes if o.has_gradient is g and o.to_truth] for g in (True, False)}
    ratio = min(times[False]) / min(times[True]) if times[True] and times[False] else None
    return {
        "truth": one.truth, "note": one.note, "unknowns": one.problem.unknowns.physical_names,
        "gradient_free_over_gradient_seconds": ratio,
        "methods": {
            o.method: {"found": o.found, "to_truth": o.to_truth, "loss": o.result.loss, "reason": o.result.reason}
            for o in outcomes
        },
        "places": {"least": float(places[:, 1].min()), "at_friction": float(places[places[:, 1].argmin(), 0])},
    }  # fmt: skip


def _keep(out: Path, name: str, one: Case, outcomes: Sequence[Outcome], places: np.ndarray) -> None:
    with (out / f"history_{name}.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("method", "iteration", "evaluations", "gradients", "seconds", "loss", "best"))
        writer.writerows((o.method, *row) for o in outcomes for row in o.result.history.rows())
    best = min(outcomes, key=lambda o: o.result.loss)
    motion = one.problem._motion(best.result.x[None])
    np.savez(
        out / f"motion_{name}.npz",
        q=motion.q[:, 0],
        qd=motion.qd[:, 0],
        u=np.zeros((motion.steps, 0)),
        dt=DT,
        landscape=places,
    )


def _draw(maps: dict[str, np.ndarray], path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    for name, points in maps.items():
        left.plot(points[:, 0], points[:, 1], label=name)
        right.plot(points[:, 0], (points[:, 1] - GOAL) ** 2, label=name)
    left.axhline(GOAL, color="#999999", linewidth=1)
    left.set(xlabel="friction", ylabel="x at the end (m)")
    right.set(xlabel="friction", ylabel="(x - 0.8)^2 (m^2)", yscale="log")
    left.legend(fontsize=8)
    figure.savefig(path, dpi=110)
