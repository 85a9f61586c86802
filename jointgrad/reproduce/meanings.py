"""Three problems that the exact gradient cannot solve, each with every meaning of the gradient: `jointgrad reproduce meanings`.

    throw    an arm must knock a ball onto a mark, and starts where it does not touch it: the exact gradient is zero
    push     a hand must push a box to a mark, and starts too weak to move it: the exact gradient is zero
    bounce   a ball thrown at the ground must come back to a height: the exact gradient has the wrong sign

Ten starts each, Adam, the same rate and number of steps for every meaning. Rates, widths and sigmas were chosen on starts of other
seeds (DEVELOPMENT).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

import jointgrad as jg

from ..optimize.progress import Stop
from ..optimize.shooting import Controls, Shooting, final_position
from ..optimize.solvers import Adam, descend

STARTS = 10
SEED, DEVELOPMENT = 7, 1007


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
    iterations: int = 200

    def problem(self, meaning: jg.Meaning) -> Shooting:
        loss = final_position(self.coordinates, self.mark, self.model, "distance")
        return Shooting(self.model, self.model.initial_state(), self.controls, loss, gradient=meaning)

    def starts(self, seed: int) -> np.ndarray:
        """The first that qualify: in throw and push, those that leave the ball and the box where they are."""
        return np.stack([self.start_of(np.random.default_rng((seed, k))) for k in range(STARTS)])


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
    """An objective that keeps the losses of all starts."""

    def __init__(self, problem: Shooting) -> None:
        self.problem, self.n, self.losses = problem, problem.n, []

    def gradient(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        losses, x_bar = self.problem.gradient(x)
        self.losses.append(losses)
        return losses, x_bar


def follow(task: Task, name: str, seed: int = SEED) -> Curve:
    """All starts at once, by one meaning."""
    objective, begun = Recorded(task.problem(task.meanings[name])), time.process_time()
    descend(objective, task.starts(seed), Adam(task.rate), Stop(iterations=task.iterations))
    return Curve(task.name, name, np.array(objective.losses), time.process_time() - begun)


# the problems ------------------------------------------------------------------------------------------------------------


def hand(robot: jg.Description, parent: str, radius: float) -> None:
    robot.links[parent].shapes.append(jg.Shape("sphere", (radius,)))


def throw() -> Task:
    """An arm of two links that turns about the vertical, above a floor on which a ball lies."""
    arm = jg.Description("arm")
    parent, at = None, (0.0, 0.0, 0.06)
    for k, name in enumerate(("upper", "lower")):
        arm.add_link(name, 1.0, com=(0.2, 0.0, 0.0), inertia=(0.002, 0.015, 0.015))
        arm.add_joint(f"{name}_joint", "revolute", parent, name, position=at, axis=(0, 0, 1), damping=0.5, limit=(-3.0, 3.0))
        arm.add_actuator(name, f"{name}_joint")
        parent, at = name, (0.4, 0.0, 0.0)
        del k
    arm.links["lower"].shapes.append(jg.Shape("sphere", (0.05,), position=(0.4, 0.0, 0.0)))
    ball = jg.Description("ball", base="free")
    ball.add_link("ball", 0.2, inertia=(2e-4,) * 3).shapes.append(jg.Shape("sphere", (0.05,)))
    world = jg.World().add(arm).add(ball, position=(0.7, 0.35, 0.05)).add_ground(friction=0.5)
    model = world.compile(dt=2e-3)
    steps = 400
    controls = Controls(steps, model.nu, knots=6)
    return Task(
        "throw", "an arm knocks a ball onto a mark", model, controls, (2, 3), (1.0, 1.0),
        lambda rng: rng.normal(scale=0.3, size=controls.n), 0.1, 0.05, "smoothed",
        {"exact": jg.Exact(), "moving impacts": jg.MovingImpacts(), "smoothed": jg.Smoothed(0.3),
         "randomised": jg.Randomised({"u": 1.0}, 32, hold=80), "truncated": jg.Truncated(50.0)},
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
    model = world.compile(dt=2e-3)
    controls = Controls(400, model.nu, knots=5)
    return Task(
        "push", "a hand pushes a box to a mark", model, controls, (1,), (0.5,),
        lambda rng: rng.uniform(0.5, 3.5, size=controls.n), 0.2, 0.02, "smoothed",
        {"exact": jg.Exact(), "moving impacts": jg.MovingImpacts(), "smoothed": jg.Smoothed(0.02),
         "randomised": jg.Randomised({"u": 2.0}, 32, hold=80), "truncated": jg.Truncated(50.0)},
    )  # fmt: skip


def bounce() -> Task:
    """A ball on two rails, pushed by motors for a tenth of a second, bounces and must be at a mark at the end."""
    ball = jg.Description("ball")
    ball.add_link("cart", 0.1, inertia=(1e-3,) * 3)
    ball.add_joint("along", "prismatic", None, "cart", axis=(1, 0, 0))
    ball.add_link("ball", 1.0, inertia=(1e-3,) * 3).shapes.append(jg.Shape("sphere", (0.05,)))
    ball.add_joint("up", "prismatic", "cart", "ball", axis=(0, 0, 1), initial=1.0)
    ball.add_actuator("along_motor", "along")
    ball.add_actuator("up_motor", "up")
    world = jg.World().add(ball).add_ground(friction=0.0)
    world.pair("ball", "ground", restitution=0.9)
    model = world.compile(dt=2e-3)
    controls = Controls(300, model.nu, knots=1, last=50, scale=10.0)
    return Task(
        "bounce", "a ball bounces to a mark", model, controls, (0, 1), (1.0, 0.9),
        lambda rng: np.array([rng.uniform(-1, 1), rng.uniform(-3.0, -1.0)]), 0.03, 0.02, "moving impacts",
        {"exact": jg.Exact(), "moving impacts": jg.MovingImpacts(), "smoothed": jg.Smoothed(0.02),
         "randomised": jg.Randomised({"u": 1.0}, 32, hold=300), "truncated": jg.Truncated(50.0)},
    )  # fmt: skip


TASKS = {"throw": throw, "push": push, "bounce": bounce}


def all_curves(seed: int = SEED, names: Sequence[str] = tuple(TASKS)) -> list[Curve]:
    found = []
    for name in names:
        task = TASKS[name]()
        found += [follow(task, meaning, seed) for meaning in task.meanings]
    return found
