"""Find the friction under a racecar from where it stops: Qiao 2021, figure 7.

The car starts with 1 m/s along x. Cases with a truth that does not come from this engine: "locked1" and "locked2", wheels that do
not turn, x = 0.8 m after 1 s (still sliding) or 2 s (at rest): x = v T - mu g T^2 / 2 while it slides. "damped": free
wheels with damped axles, friction and damping found together from places over time that a separate solver (scipy) made.
"axles": the ground under the rear wheels and the dampers of the rear axle are not those of the front: four unknowns, from
places and angles of the wheels that the same solver made (racecar_truth.py). "paper": the released scene, a fall of half a
metre onto a slab, and x = 0.8 m after 1 s: there is no truth, and perhaps no friction that does it; its landscape shows.
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
from ..optimize.solvers import Tried, gauss_newton, lbfgs
from .racecar_truth import Axle, driven

GRAVITY, SPEED, GOAL, GUESS = 9.8, 1.0, 0.8, 0.002
DT = 1e-3
WHEELS = tuple(f"{side}_{end}_wheel" for side in ("left", "right") for end in ("rear", "front"))
TOLERANCE = 1e-3  # of the friction
FRICTION, DAMPING = 0.05, 2e-4  # truths of the damped case; the latter in N m s, per wheel
REAR, FRONT = (
    Axle(0.04, 1e-3),
    Axle(0.06, 3e-3),
)  # of the case with two axles: the rear wheels come to roll, the front ones slide
# of its contacts, 1/kg. How the four wheels share the weight of a rigid car is not determined: without some give our solver
# favours a diagonal, by some per cent. They sink in by less than 1e-5 m
GIVE = 0.05
CASES = ("locked1", "locked2", "damped", "axles", "paper")


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
    kind: str  # "gradient", "differences" (the same method, its Jacobian by differences) or "free"


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


def last_place(
    model: jg.Model, start: jg.State, seconds: Sequence[float] | np.ndarray, places: Sequence[float] | np.ndarray
) -> Recording:
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
        same = Axle(FRICTION, DAMPING)
        times, found = driven(model, same, same, SPEED, GRAVITY, 11)
        record = last_place(model, start, times, found[:, 0])
        axle = Entry("joint.damping", [f"{w}_joint" for w in WHEELS], bounds=(0.0, 0.1), tied=True, scale=1e-3)
        problem = Identification(model, [record], [friction, axle], Settings(sigma_q=1e-3))
        return Case(name, problem, (FRICTION, DAMPING), "places by scipy, sliding then rolling with damped axles")
    if name == "axles":
        model, start = car(locked=False)
        model = model.replace({"pair.softness": np.full(len(WHEELS), GIVE)})
        wide = [dict[str, Any](tied=True, bounds=(0.0, b), scale=s) for b, s in ((1.0, 0.05), (0.1, 1e-3))]
        ends = [[w for w in WHEELS if end in w] for end in ("rear", "front")]
        unknowns = [Entry("pair.friction", [f"{w}:ground" for w in end], **wide[0]) for end in ends]
        unknowns += [Entry("joint.damping", [f"{w}_joint" for w in end], **wide[1]) for end in ends]
        # 1 mm, and what a wheel turns on that way
        sigma = np.where(np.arange(model.nv) < 6, 1e-3, 0.02)
        problem = Identification(model, [both_axles(model, start)], unknowns, Settings(sigma_q=sigma))
        truths = (REAR.friction, FRONT.friction, REAR.damping, FRONT.damping)
        return Case(name, problem, truths, "places and angles of wheels by scipy, axles that differ")
    if name != "paper":
        raise jg.InputError(f'there is no case "{name}"; the names are {", ".join(CASES)}')
    model, start = car(locked=False, height=0.6, ground=0.1)
    record = last_place(model, start, (0.0, 1.0), (0.0, GOAL))
    return Case(name, Identification(model, [record], [friction], Settings()), None, "the released scene, goal 0.8 m")


def both_axles(model: jg.Model, start: jg.State) -> Recording:
    """A recording of x and the angles of all wheels, every 50 ms for a second."""
    times, found = driven(model, REAR, FRONT, SPEED, GRAVITY, 21)
    record = last_place(model, start, times, found[:, 0])
    for k, wheel in enumerate(name for name in model.joint_names if "wheel_joint" in name):
        # a wheel that rolls along x turns about y; after the seven numbers of the car come the wheels
        sign = np.sign(model.params["joint.axis"][model.joint(wheel)][1])
        record.q[1:, 7 + k] = sign * found[1:, 1 if "rear" in wheel else 2]
    return record


class Differences:
    """A sum of squares whose Jacobians are forward differences, all points of one as a batch: no derivative is asked for."""

    def __init__(self, problem: Identification, step: float = 1e-4) -> None:
        self.problem, self.step, self.n = problem, step, problem.n

    def tried(self, x: np.ndarray) -> Tried:
        r = self.problem.residuals(x)
        return Tried(r, lambda rows: self._jacobians(x[list(rows)], r[list(rows)]))

    def _jacobians(self, x: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, int, int]:
        points = (x[:, None] + self.step * np.eye(self.n)).reshape(-1, self.n)
        moved = self.problem.residuals(points).reshape(len(x), self.n, -1)
        return np.swapaxes(moved - r[:, None], 1, 2) / self.step, len(points), 0


def solved(one: Case, seconds: float, seed: int = 0) -> list[Outcome]:
    """Every method from the same start; a method has arrived when all its unknowns are within the tolerance of the truth."""
    problem = one.problem
    low, high = problem.bounds
    stop = Stop(iterations=200, seconds=seconds, target=1e-16)
    start, bounds = problem.start, problem.bounds
    exact: dict[str, Any] = {"damping": 1e-8, "trials": 1}
    secants: dict[str, Any] = {"damping": 1e-4, "trials": 1, "secant": 0.5}
    plan: list[tuple[str, str, Callable[..., Result]]] = [
        ("Gauss-Newton", "gradient", lambda c: gauss_newton(problem, start, stop, bounds, c, **exact)),
        ("Gauss-Newton, secants", "gradient", lambda c: gauss_newton(problem, start, stop, bounds, c, **secants)),
        ("L-BFGS", "gradient", lambda c: lbfgs(problem, start, stop, bounds, c, first_step=0.2)),
        ("Gauss-Newton, differences", "differences",
         lambda c: gauss_newton(Differences(problem), start, stop, bounds, c, **exact)),
    ]  # fmt: skip
    # first steps are scanned: in units of the unknowns' scales
    plan += [
        (
            f"Nelder-Mead {step or 'scipy'}",
            "free",
            lambda c, s=step: nelder_mead(problem, start, stop, bounds, c, step=s),
        )
        for step in (None, 0.3, 1.0)
    ]
    plan += [
        (f"CMA-ES {step:g}", "free", lambda c, s=step: cma_es(problem, start, s, stop, bounds, c, seed=seed))
        for step in (0.1, 0.3, 1.0)
    ]
    if problem.n == 1:
        plan.append(("golden section", "free", lambda c: golden_section(problem, low[0], high[0], stop, c)))
        plan.append(("Brent", "free", lambda c: brent(problem, low[0], high[0], stop, c)))
    problem.jacobian(problem.start[None])
    problem.gradient(problem.start[None])
    return [_watched(one, name, kind, solve) for name, kind, solve in plan]


def _watched(one: Case, name: str, kind: str, solve: Callable[..., Result]) -> Outcome:
    arrived: list[tuple[int, int, float]] = []

    def watch(progress: Any) -> bool:
        if one.truth is None or not is_close(one, progress.x):
            return False
        h = progress.history
        arrived.append((progress.iteration, progress.evaluations + progress.gradients, h.seconds[-1]))
        return True

    result = solve(watch)
    found = tuple(float(v) for v in one.problem.unknowns.physical(result.x))
    return Outcome(name, found, result, arrived[0] if arrived else None, kind)


def is_close(one: Case, x: np.ndarray) -> bool:
    assert one.truth is not None
    off, is_friction = np.abs(one.problem.unknowns.physical(x) - one.truth), np.array(one.truth) > 1e-2
    # the friction to 1e-3; damping has other units: to one part in twenty
    return bool(np.all(off < np.where(is_friction, TOLERANCE, 0.05 * np.array(one.truth))))


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
                say(f"{name:8s} {o.method:25s} found {np.round(o.found, 6)}{truth}  within 1e-3: {at}")
            times = said["cases"][name]["gradient_free_over_gradient_seconds"]
            say(f"{name:8s} seconds without gradients over with: {'-' if times is None else round(times, 2)}")
            (out / "results.json").write_text(json.dumps(said, indent=2) + "\n")
    except KeyboardInterrupt:
        say(f"Interrupted: {len(said['cases'])} cases are kept.")
    if maps:
        _draw(maps, out / "landscape.png")
    return said


def _figures(one: Case, outcomes: Sequence[Outcome], places: np.ndarray) -> dict[str, Any]:
    times = {
        k: [o.to_truth[2] for o in outcomes if o.kind == k and o.to_truth] for k in ("gradient", "differences", "free")
    }

    def ratio(kind: str) -> float | None:
        return min(times[kind]) / min(times["gradient"]) if times["gradient"] and times[kind] else None

    return {
        "truth": one.truth, "note": one.note, "unknowns": one.problem.unknowns.physical_names,
        "gradient_free_over_gradient_seconds": ratio("free"), "differences_over_gradient_seconds": ratio("differences"),
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
