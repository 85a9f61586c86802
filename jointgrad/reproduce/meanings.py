"""Three problems that the exact gradient cannot solve, each with every meaning of the gradient: `jointgrad reproduce meanings`.

    throw    an arm must knock a ball onto a mark, and starts where it does not touch it: exactly, nothing it does moves the ball
    push     a hand must push a box to a mark, and starts too weak to move it: exactly, a little more force does nothing
    bounce   a ball that is thrown at the ground must come back to a height: exactly, the slope has the wrong sign

The loss is the distance from the mark and a little effort. Ten starts each, Adam, the same rate and number of steps for every
meaning. Rates, widths and sigmas were chosen on starts of another seed (DEVELOPMENT).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

import jointgrad as jg

from ..engine.run.trajectory import Trajectory
from ..optimize.progress import Stop
from ..optimize.shooting import Controls, Loss, LossOf, Shooting, final_position
from ..optimize.solvers import Adam, descend

STARTS = 10
SEED, DEVELOPMENT = 7, 1007
DT = 4e-3


@dataclass(frozen=True)
class Task:
    """A problem, how it starts, when it is solved (distance from the mark, m), and which meaning is to solve it."""

    name: str
    words: str
    model: jg.Model
    controls: Controls
    coordinates: tuple[int, ...]
    mark: tuple[float, ...]
    start_of: Callable[[np.random.Generator], np.ndarray]
    rate: float
    solved: float
    right: str
    meanings: dict[str, jg.Meaning] = field(default_factory=dict)
    iterations: int = 150
    effort: float = 1e-4
    bound: float = 10.0  # of every control

    def problem(self, meaning: jg.Meaning) -> Shooting:
        return Shooting(self.model, self.model.initial_state(), self.controls, self.loss(), gradient=meaning)

    def loss(self) -> LossOf:
        """Distance, and the mean square of controls."""
        distance = final_position(self.coordinates, self.mark, self.model, "distance")

        def of(motion: Trajectory) -> Loss:
            found, u = distance(motion), motion.u
            weight = self.effort / len(u)  # type: ignore[arg-type]
            return replace(found, value=found.value + weight * (u**2).sum((0, 2)), u_bar=2 * weight * u)  # type: ignore[operator]

        return of

    def distances(self, motion: Trajectory) -> np.ndarray:
        return np.linalg.norm(motion.last.q[:, list(self.coordinates)] - self.mark, axis=-1)

    def starts(self, seed: int, count: int = STARTS) -> np.ndarray:
        return np.stack([self.start_of(np.random.default_rng((seed, k))) for k in range(count)])


@dataclass(frozen=True)
class Curve:
    """Distances (iterations, starts) along the way of one meaning, and what it took."""

    task: str
    meaning: str
    distances: np.ndarray
    seconds: float

    def best(self) -> np.ndarray:
        return np.minimum.accumulate(self.distances)

    def solved(self, distance: float) -> int:
        return int((self.best()[-1] < distance).sum())


class Recorded:
    """An objective that keeps the distances of all starts."""

    def __init__(self, task: Task, meaning: jg.Meaning) -> None:
        self.task, self.problem = task, task.problem(meaning)
        self.n, self.distances = self.problem.n, list[np.ndarray]()

    def value(self, x: np.ndarray) -> np.ndarray:
        return self.problem.value(x)

    def gradient(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        motion = self.problem.motions(x)
        self.distances.append(self.task.distances(motion))
        losses, loss = self.problem._losses(motion)
        return losses, self.problem._pulled(motion, loss, ~np.isfinite(losses))


def follow(task: Task, name: str, seed: int = SEED, starts: int = STARTS) -> Curve:
    """All starts at once, by one meaning."""
    objective, begun = Recorded(task, task.meanings[name]), time.process_time()
    descend(
        objective,
        task.starts(seed, starts),
        Adam(task.rate),
        Stop(iterations=task.iterations),
        (-task.bound, task.bound),
    )
    return Curve(task.name, name, np.array(objective.distances), time.process_time() - begun)


# the problems ------------------------------------------------------------------------------------------------------------


def every_meaning(width: float, sigma: float, hold: int) -> dict[str, jg.Meaning]:
    return {
        "exact": jg.Exact(), "moving impacts": jg.MovingImpacts(), "smoothed": jg.Smoothed(width),
        "randomised": jg.Randomised({"u": sigma}, 16, hold=hold), "truncated": jg.Truncated(20.0),
    }  # fmt: skip


def throw() -> Task:
    """An arm of two links that turns about the vertical, above a floor on which a ball lies."""
    arm = jg.Description("arm")
    parent, at = None, (0.0, 0.0, 0.06)
    for name in ("upper", "lower"):
        arm.add_link(name, 1.0, com=(0.2, 0.0, 0.0), inertia=(0.002, 0.015, 0.015))
        arm.add_joint(
            f"{name}_joint", "revolute", parent, name, position=at, axis=(0, 0, 1), damping=0.5, limit=(-3, 3)
        )
        arm.add_actuator(name, f"{name}_joint")
        parent, at = name, (0.4, 0.0, 0.0)
    arm.links["lower"].shapes.append(jg.Shape("sphere", (0.05,), position=(0.4, 0.0, 0.0)))
    ball = jg.Description("ball", base="free")
    ball.add_link("ball", 0.2, inertia=(2e-4,) * 3).shapes.append(jg.Shape("sphere", (0.05,)))
    world = jg.World().add(arm).add(ball, position=(0.7, 0.35, 0.05)).add_ground(friction=0.5)
    model = world.compile(dt=DT)
    controls = Controls(200, model.nu, knots=4)
    return Task(
        "throw", "an arm knocks a ball onto a mark", model, controls, (2, 3), (0.5, 0.8),
        lambda rng: rng.normal(scale=0.2, size=controls.n), 0.1, 0.05, "smoothed", every_meaning(0.3, 1.0, 50),
    )  # fmt: skip


def push() -> Task:
    """A hand on a rail beside a box that sticks to the floor."""
    pusher = jg.Description("hand")
    pusher.add_link("hand", 0.5, inertia=(1e-3,) * 3).shapes.append(jg.Shape("sphere", (0.05,)))
    pusher.add_joint("rail", "prismatic", None, "hand", position=(-0.15, 0.0, 0.1), axis=(1, 0, 0), damping=1.0)
    pusher.add_actuator("motor", "rail")
    box = jg.Description("box", base="free")
    box.add_link("box", 1.0, inertia=(7e-3,) * 3).shapes.append(jg.Shape("box", (0.1, 0.1, 0.1)))
    world = jg.World().add(pusher).add(box, position=(0.0, 0.0, 0.1)).add_ground(friction=0.5)
    model = world.compile(dt=DT)
    controls = Controls(200, model.nu, knots=4)
    return Task(
        "push", "a hand pushes a box to a mark", model, controls, (1,), (0.5,),
        lambda rng: rng.uniform(0.5, 3.5, size=controls.n), 0.1, 0.02, "smoothed", every_meaning(0.02, 2.0, 50),
    )  # fmt: skip


def bounce() -> Task:
    """A ball on a rail falls, pushed by a motor at first, bounces, and must be at a height at the end."""
    ball = jg.Description("ball")
    ball.add_link("ball", 1.0, inertia=(1e-3,) * 3).shapes.append(jg.Shape("sphere", (0.05,)))
    ball.add_joint("rail", "prismatic", None, "ball", axis=(0, 0, 1), initial=1.0)
    ball.add_actuator("motor", "rail")
    model = jg.World().add(ball).add_ground(restitution=0.9).compile(dt=DT)
    controls = Controls(150, model.nu, knots=2, last=50)
    return Task(
        "bounce", "a ball bounces to a height", model, controls, (0,), (0.65,),
        lambda rng: rng.uniform(-3.0, 3.0, size=controls.n), 0.1, 0.01, "moving impacts", every_meaning(0.05, 1.0, 50), bound=5.0,
    )  # fmt: skip


TASKS = {"throw": throw, "push": push, "bounce": bounce}


HEAD = ("problem", "meaning", f"solved, of {STARTS}", "distance in the end, median (m)", "CPU s")


def row(task: Task, curve: Curve) -> tuple[str, ...]:
    """Of a table: the right meaning has a star."""
    name = f"{curve.meaning} *" if curve.meaning == task.right else curve.meaning
    middle = float(np.median(curve.best()[-1]))
    return task.name, name, str(curve.solved(task.solved)), f"{middle:.3g}", f"{curve.seconds:.1f}"


def reproduce(folder: Path, say: Callable[[str], object], seed: int = SEED) -> bool:
    """All problems by all meanings, as a table and pictures; whether the right meanings solved all starts."""
    from .meanings_pictures import draw_all, draw_curves

    tasks, curves, is_good = [make() for make in TASKS.values()], list[Curve](), True
    say(" | ".join(HEAD))
    for task in tasks:
        for name in task.meanings:
            curves.append(follow(task, name, seed))
            say(" | ".join(row(task, curves[-1])))
            is_good &= name != task.right or curves[-1].solved(task.solved) == STARTS
    draw_all(folder)
    draw_curves(tasks, curves, folder / "meanings.png")
    say(f"* the meaning that is to solve it; pictures are in {folder}")
    return is_good
