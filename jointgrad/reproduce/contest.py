"""One task, many methods: all from the same start, counted and timed alike, and what came out, for machines and for eyes."""

from __future__ import annotations

import csv
import json
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import jointgrad as jg

from ..optimize.progress import History, Result, Stop
from ..optimize.shooting import Controls, Shooting, final_position, optimise
from .second_opinion import opinions

HISTORY = ("method", "seed", "iteration", "evaluations", "gradients", "seconds", "loss", "best")


def meaning(moving_impacts: bool) -> jg.Exact | jg.MovingImpacts:
    return jg.MovingImpacts() if moving_impacts else jg.Exact()


@dataclass(frozen=True)
class Task:
    """Bring coordinates `at` of the last state to a target by controls of some actuators."""

    name: str
    setting: str
    world: jg.World
    model: jg.Model
    start: jg.State
    steps: int
    at: tuple[int, ...]
    target: tuple[float, ...]
    accuracy: float  # loss at which a method has arrived: that of the seed
    actuators: tuple[int, ...]
    base: np.ndarray | None = None
    last: int | None = None
    noise: float = 0.0  # of the start, standard deviation
    kind: str = "rms"
    rest_speed: float | None = None  # the ball must be slower than this at the end, where it shall rest
    notes: tuple[str, ...] = ()

    def problem(self, knots: int | None = None, moving_impacts: bool = False, brake: float | None = None) -> Shooting:
        """brake: in seconds."""
        steps = None if brake is None else brake / float(self.model.params["world.dt"])
        controls = Controls(
            self.steps,
            self.model.nu,
            knots=knots,
            actuators=self.actuators,
            base=self.base,
            last=self.last,
            brake=steps,
        )
        loss = final_position(self.at, self.target, self.model, self.kind)
        return Shooting(self.model, self.start, controls, loss, gradient=meaning(moving_impacts))

    def start_controls(self, seed: int) -> np.ndarray:
        """(T, nu), the same for every method."""
        u = np.zeros((self.steps, self.model.nu)) if self.base is None else self.base.copy()
        rng = np.random.default_rng(seed)
        last = self.steps if self.last is None else self.last
        u[:last, list(self.actuators)] += self.noise * rng.normal(size=(last, len(self.actuators)))
        return u


@dataclass(frozen=True)
class Method:
    """A way to search: a method of optimise or "ilqr", with its settings, and how long it may take."""

    label: str
    method: str
    settings: dict[str, Any] = field(default_factory=dict)
    knots: int | None = None
    iterations: int = 60
    has_gradient: bool = True
    # random points about the start that are tried first, as one batch, with this spread; the best are the starts
    screened: int = 0
    spread: float = 0.0
    starts: int = 1
    moving_impacts: bool = False
    brake: float | None = None  # s, see Controls


@dataclass(frozen=True)
class Run:
    """What one method found from one start. to_target: iterations, evaluations, seconds until the accuracy, or None."""

    method: Method
    seed: int
    u: np.ndarray
    loss: float
    reason: str
    history: History
    to_target: tuple[int, int, float] | None

    @property
    def figures(self) -> dict[str, Any]:
        reached = dict(zip(("iterations", "evaluations", "seconds"), self.to_target or (None,) * 3, strict=True))
        return {"method": self.method.label, "seed": self.seed, "loss": self.loss, "reason": self.reason,
                "to_accuracy": reached, "settings": {**asdict(self.method)}}  # fmt: skip


def contest(
    task: Task, methods: Sequence[Method], seeds: Sequence[int], say: Callable[[str], None], seconds: float
) -> list[Run]:
    """Run every method from every start; Ctrl-C leaves those that are finished."""
    warmed_up(task)
    runs: list[Run] = []
    try:
        for seed in seeds:
            for method in methods:
                runs.append(run(task, method, seed, seconds))
                say(line(runs[-1]))
                if runs[-1].reason == "interrupted":
                    raise KeyboardInterrupt
    except KeyboardInterrupt:
        say(f"Interrupted: {len(runs)} runs are kept.")
    return runs


def warmed_up(task: Task) -> None:
    """Compile, so that no method is charged for it."""
    for moving_impacts in (False, True):
        problem = task.problem(4, moving_impacts)
        problem.gradient(np.zeros((1, problem.n)))
        problem.jacobian(np.zeros((1, problem.n)))
    jg.linearize(task.model, task.start, np.zeros(task.model.nu))
    jg.step(task.model, task.start, np.zeros(task.model.nu))


def run(task: Task, method: Method, seed: int, seconds: float) -> Run:
    u0 = task.start_controls(seed)
    stop = Stop(iterations=method.iterations, target=_target(task, method), seconds=seconds)
    if method.method == "ilqr":
        found, u = _by_ilqr(task, method, u0, stop)
    else:
        problem = task.problem(method.knots, method.moving_impacts, method.brake)
        more = {"seed": seed} if method.method.startswith("cma") else {}
        began, x0 = time.perf_counter(), screened(problem, problem.controls.project(u0), method, seed)  # type: ignore[attr-defined]
        lost = time.perf_counter() - began
        found = optimise(problem, x0, method.method, stop, **method.settings, **more)  # type: ignore[arg-type]
        # what the screening took counts too
        found.history.evaluations[:] = [e + method.screened for e in found.history.evaluations]
        found.history.seconds[:] = [s + lost for s in found.history.seconds]
        u = problem.controls.expand(found.x[None])[:, 0]
    history = _in_units_of_the_task(task, method, found.history)
    k = history.first_below(task.accuracy)
    reached = None if k is None else (k, history.evaluations[k] + history.gradients[k], history.seconds[k])
    return Run(method, seed, u, float(min(history.best)), found.reason, history, reached)


def screened(problem: Shooting, x0: np.ndarray, method: Method, seed: int) -> np.ndarray:
    """The best of random points about x0, or x0 itself."""
    if not method.screened:
        return x0
    points = x0 + method.spread * np.random.default_rng(seed + 1000).normal(size=(method.screened, problem.n))
    return points[np.argsort(problem.value(points))[: method.starts]]


def _target(task: Task, method: Method) -> float:
    """The accuracy in the units of what the method lowers."""
    squares = {"rms": len(task.at), "distance": 1, "squares": 1}[task.kind]
    if method.method == "gauss_newton" and task.kind != "squares":
        return 0.5 * squares * task.accuracy**2
    return task.accuracy


def _in_units_of_the_task(task: Task, method: Method, history: History) -> History:
    if method.method != "gauss_newton" or task.kind == "squares":
        return history
    count = len(task.at) if task.kind == "rms" else 1
    loss, best = ([float(np.sqrt(2 * v / count)) for v in values] for values in (history.loss, history.best))
    return History(history.evaluations, history.gradients, history.seconds, loss, best)


def _by_ilqr(task: Task, method: Method, u0: np.ndarray, stop: Stop) -> tuple[Result, np.ndarray]:
    """Half the squared distance at the end plus a small weight on the controls; ends at the accuracy of the task."""
    from ..optimize.ilqr import Quadratic, ilqr

    model, goal = task.model, task.start.q.copy()
    goal[list(task.at)] = task.target
    weight = np.zeros(2 * model.nv)
    first_dof = task.at[0] - (model.nq - model.nv - 1)  # the ball is the last body: its position comes before its turn
    weight[first_dof : first_dof + len(task.at)] = 1.0
    settings = dict(method.settings)
    # a small price of the arm's speed keeps motions calm on their way
    running = np.zeros(2 * model.nv)
    running[[model.nv + a for a in task.actuators]] = settings.pop("speed", 0.0)
    cost = Quadratic(model, jg.State(goal, np.zeros(model.nv)), running, weight, settings.pop("control", 1e-6))
    low, high = np.full(model.nu, -np.inf), np.full(model.nu, np.inf)
    fixed = [a for a in range(model.nu) if a not in task.actuators]
    low[fixed] = high[fixed] = 0.0
    losses: list[float] = []

    def rms(progress: Any) -> bool:
        q = _rolled(task, progress.x.reshape(u0.shape))
        losses.append(float(task_loss(task, q)))
        return losses[-1] <= task.accuracy

    long = Stop(iterations=stop.iterations, seconds=stop.seconds)
    found = ilqr(
        model, task.start, cost, u0, (low, high), long, rms, gradient=meaning(method.moving_impacts), **settings
    )
    history = found.history
    best = list(np.minimum.accumulate(losses))
    history = History(history.evaluations, history.gradients, history.seconds, losses, best)
    reason = "target" if found.reason == "callback" else found.reason
    return Result(found.x, losses[-1], reason, history), found.x.reshape(u0.shape)


def _rolled(task: Task, u: np.ndarray) -> np.ndarray:
    return jg.rollout(task.model, task.start, u, keep=False).last.q


def task_loss(task: Task, q: np.ndarray) -> np.ndarray:
    off = q[..., list(task.at)] - np.asarray(task.target)
    total = (off**2).sum(-1)
    return {"rms": np.sqrt(total / len(task.at)), "distance": np.sqrt(total), "squares": 0.5 * total}[task.kind]


def line(one: Run) -> str:
    at = "not reached" if one.to_target is None else "{} iterations, {} evaluations, {:.2f} s".format(*one.to_target)
    return f"{one.method.label:28s} seed {one.seed}  loss {one.loss:8.4f}  to the accuracy: {at}"


# comparison -----------------------------------------------------------------------------------------------------------


def compared(runs: Sequence[Run]) -> dict[str, Any]:
    """Medians over the seeds, and the best with gradients against the best without: ratios of evaluations and seconds."""
    table: dict[str, dict[str, Any]] = {}
    for label in dict.fromkeys(r.method.label for r in runs):
        own = [r for r in runs if r.method.label == label]
        reached = [r.to_target for r in own if r.to_target is not None]
        median = [float(np.median(c)) for c in zip(*reached, strict=True)] if 2 * len(reached) > len(own) else None
        table[label] = {"reached": len(reached), "of": len(own), "median": median,
                        "has_gradient": own[0].method.has_gradient}  # fmt: skip
    ratios = {}
    for k, what in ((1, "evaluations"), (2, "seconds")):
        with_, without = (
            [t["median"][k] for t in table.values() if t["median"] and t["has_gradient"] is g] for g in (True, False)
        )
        ratios[what] = min(with_) / max(min(without), 1e-9) if with_ and without else None
    return {"methods": table, "gradient_over_gradient_free": ratios}


# what is kept ---------------------------------------------------------------------------------------------------------


def keep(task: Task, runs: Sequence[Run], out: Path) -> dict[str, Any]:
    """results.json, history.csv, curves.png and motion.npz (q, qd, u of the best run) in a folder."""
    out.mkdir(parents=True, exist_ok=True)
    rests = at_rest(task, runs)
    best = min(runs, key=lambda r: (not rests[id(r)], r.loss))
    motion = jg.rollout(task.model, task.start, best.u)
    dt = float(task.model.params["world.dt"])
    np.savez(out / "motion.npz", q=motion.q, qd=motion.qd, u=best.u, dt=dt, links=np.array(task.model.link_names))
    (out / "world.xml").write_text(_mjcf(task))
    said = {
        "experiment": task.name, "setting": task.setting, "command": " ".join(["jointgrad", *sys.argv[1:]]),
        "notes": task.notes, "target": task.target, "accuracy": task.accuracy, "loss": task.kind,
        "start_loss": runs[0].history.loss[0], "comparison": compared(runs),
        "runs": [r.figures | {"is_at_rest": rests[id(r)]} for r in runs],
        "best": {"method": best.method.label, "loss": best.loss, "is_at_rest": rests[id(best)],
                 "distance": float(np.linalg.norm(motion.q[-1, list(task.at)] - task.target)),
                 "speed_at_end": float(np.linalg.norm(motion.qd[-1, -6:-3])),
                 "largest_speed": float(np.linalg.norm(motion.qd[:, -6:-3], axis=-1).max())},
        "mujoco": second_opinion(task, best.u), "versions": {"jointgrad": jg.__version__, "python": platform.python_version()},
        "written": time.strftime("%Y-%m-%d %H:%M"),
    }  # fmt: skip
    (out / "results.json").write_text(json.dumps(said, indent=2, default=str) + "\n")
    with (out / "history.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(HISTORY)
        writer.writerows((r.method.label, r.seed, *row) for r in runs for row in r.history.rows())
    draw(task, runs, out / "curves.png")
    return said


def at_rest(task: Task, runs: Sequence[Run]) -> dict[int, bool]:
    """Whether the ball, the last body, has come to rest where it shall, by the id of the run."""
    if task.rest_speed is None:
        return {id(r): True for r in runs}
    start = jg.State(*(np.repeat(a[None], len(runs), axis=0) for a in task.start))
    last = jg.rollout(task.model, start, np.stack([r.u for r in runs], axis=1), keep=False).last
    speeds = np.linalg.norm(last.qd[:, -6:-3], axis=-1)
    return {id(r): bool(speed <= task.rest_speed) for r, speed in zip(runs, speeds, strict=True)}


def second_opinion(task: Task, u: np.ndarray) -> list[dict[str, Any]] | dict[str, str]:
    """Where the ball ends in MuJoCo, with ever finer steps; or why it cannot be said."""
    try:
        return opinions(task.world, task.model, task.start, u, task.at)
    except (ValueError, jg.ModelError) as error:
        return {"error": str(error)}


def _mjcf(task: Task) -> str:
    try:
        return jg.to_mjcf(task.world)
    except (ValueError, jg.ModelError) as error:
        return f"<!-- {error} -->\n"


def draw(task: Task, runs: Sequence[Run], path: Path) -> None:
    """The best loss against iterations, evaluations and seconds."""
    from matplotlib import colormaps
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    labels = list(dict.fromkeys(r.method.label for r in runs))
    for axes, what in zip(figure.subplots(1, 3, sharey=True), ("iterations", "evaluations", "seconds"), strict=True):
        for r in runs:
            h = r.history
            at = {"iterations": range(len(h)), "seconds": h.seconds,
                  "evaluations": np.add(h.evaluations, h.gradients)}[what]  # fmt: skip
            style = {
                "color": colormaps["tab20"](labels.index(r.method.label) % 20),
                "linestyle": "-" if r.method.has_gradient else "--",
                # one seed to follow by eye, the others behind it
                **({} if r.seed == runs[0].seed else {"linewidth": 0.5, "alpha": 0.4}),
            }
            axes.plot(at, h.best, label=r.method.label if r.seed == runs[0].seed else None, **style)
        axes.axhline(task.accuracy, color="#999999", linewidth=1)
        axes.set(xlabel=what, yscale="log", xscale="symlog" if what != "seconds" else "linear")
        axes.set_xlim(left=0)
    figure.axes[0].set_ylabel(f"best loss ({task.kind}, m)")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), fontsize=7, loc="outside right center")
    figure.suptitle(f"{task.name}, {task.setting} (thick lines: seed {runs[0].seed})")
    figure.savefig(path, dpi=110)
