"""Losses as a function of one number, and their slopes by every meaning of the gradient: pictures of docs/gradients.md."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import jointgrad as jg

DT = 2e-3


@dataclass(frozen=True)
class Scene:
    """A motion that one number p decides: `run` gives the loss of every p (n,) and its slope by a meaning of the gradient."""

    name: str
    words: str
    label: str
    low: float
    high: float
    run: Callable[[np.ndarray, jg.Meaning], tuple[np.ndarray, np.ndarray]]
    width: float
    sigma: dict[str, float]
    bound: float

    def meanings(self) -> dict[str, jg.Meaning]:
        return {
            "exact": jg.Exact(), "moving impacts": jg.MovingImpacts(), "smoothed": jg.Smoothed(self.width),
            "randomised": jg.Randomised(self.sigma, 32, hold=1000), "truncated": jg.Truncated(self.bound),
        }  # fmt: skip

    def line(self, n: int = 161) -> tuple[np.ndarray, np.ndarray]:
        p = np.linspace(self.low, self.high, n)
        return p, self.run(p, jg.Exact())[0]

    def slopes(self, meaning: jg.Meaning, n: int = 13) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """At points between, which lie on no mark of the line."""
        p = np.linspace(self.low, self.high, 2 * n + 1)[1::2] + 1.3e-4
        return (p, *self.run(p, meaning))


def sled(motor: bool = True) -> jg.Model:
    """A ball that slides along a floor, held upright by rails."""
    robot = jg.Description("sled")
    robot.add_link("cart", 0.1, inertia=(1e-3,) * 3)
    robot.add_joint("x", "prismatic", None, "cart", position=(0, 0, 0.1), axis=(1, 0, 0))
    robot.add_link("sled", 1.0, inertia=(1e-2,) * 3).shapes.append(jg.Shape("sphere", (0.1,)))
    robot.add_joint("z", "prismatic", "cart", "sled", axis=(0, 0, 1))
    if motor:
        robot.add_actuator("motor", "x")
    return jg.World().add(robot).add_ground(friction=0.5).compile(dt=DT)


def slide() -> Scene:
    model = sled(motor=False)

    def run(p: np.ndarray, meaning: jg.Meaning) -> tuple[np.ndarray, np.ndarray]:
        start = model.initial_state(len(p))
        start.qd[:, 0] = p
        motion = jg.rollout(model, start, steps=150, gradient=meaning)
        return motion.last.q[:, 0], motion.backward(np.tile([1.0, 0.0], (len(p), 1)), wrt=("state",)).qd[:, 0]

    return Scene(
        "slide",
        "a sled slides over a floor",
        "start's speed (m/s); loss: where it is (m)",
        1.0,
        3.0,
        run,
        0.02,
        {"qd": 0.2},
        20.0,
    )


def stick() -> Scene:
    model = sled()

    def run(p: np.ndarray, meaning: jg.Meaning) -> tuple[np.ndarray, np.ndarray]:
        motion = jg.rollout(
            model, model.initial_state(len(p)), np.tile(p[None, :, None], (150, 1, 1)), gradient=meaning
        )
        return motion.last.q[:, 0], motion.backward(np.tile([1.0, 0.0], (len(p), 1)), wrt=("u",)).u.sum((0, 2))

    return Scene(
        "stick",
        "a sled sticks until it is pushed hard enough",
        "push (N); loss: where it is (m)",
        0.0,
        10.0,
        run,
        0.02,
        {"u": 2.0},
        20.0,
    )


def bounce() -> Scene:
    robot = jg.Description("ball")
    robot.add_link("ball", 1.0, inertia=(1e-2,) * 3).shapes.append(jg.Shape("sphere", (0.1,)))
    robot.add_joint("z", "prismatic", None, "ball", axis=(0, 0, 1))
    model = jg.World(gravity=(0, 0, 0)).add(robot).add_ground(restitution=0.9).compile(dt=DT)

    def run(p: np.ndarray, meaning: jg.Meaning) -> tuple[np.ndarray, np.ndarray]:
        motion = jg.rollout(model, jg.State(p[:, None].copy(), np.full((len(p), 1), -1.0)), steps=200, gradient=meaning)
        return motion.last.q[:, 0], motion.backward(np.ones((len(p), 1)), wrt=("state",)).q[:, 0]

    return Scene(
        "bounce",
        "a ball thrown at the ground comes back",
        "start's height (m); loss: its height at the end (m)",
        0.2,
        0.4,
        run,
        0.02,
        {"q": 0.02},
        20.0,
    )


def reach() -> Scene:
    """A hand on a rail, a puck on the same rail ahead of it."""
    world = jg.World(gravity=(0, 0, 0))
    for name, at, mass in (("hand", -0.25, 1.0), ("puck", 0.0, 0.3)):
        robot = jg.Description(name)
        robot.add_link(name, mass, inertia=(1e-2,) * 3).shapes.append(jg.Shape("sphere", (0.1,)))
        robot.add_joint(f"{name}_x", "prismatic", None, name, position=(at, 0, 0), axis=(1, 0, 0), damping=2.0)
        if name == "hand":
            robot.add_actuator("motor", "hand_x")
        world.add(robot)
    model = world.compile(dt=DT)

    def run(p: np.ndarray, meaning: jg.Meaning) -> tuple[np.ndarray, np.ndarray]:
        motion = jg.rollout(
            model, model.initial_state(len(p)), np.tile(p[None, :, None], (200, 1, 1)), gradient=meaning
        )
        return motion.last.q[:, 1], motion.backward(np.tile([0.0, 1.0], (len(p), 1)), wrt=("u",)).u.sum((0, 2))

    return Scene(
        "reach",
        "a hand moves towards a puck, and pushes it",
        "push (N); loss: where the puck is (m)",
        -0.5,
        3.0,
        run,
        0.1,
        {"u": 0.5},
        20.0,
    )


def pegs() -> Scene:
    """A ball falls among round pegs; the loss is how far it is from the middle, over all of its way."""
    world = jg.World()
    pins = jg.Description("pegs", base="fixed")
    link = pins.add_link("pegs", 1.0, inertia=(1e-2,) * 3)
    for row in range(4):
        link.shapes += [
            jg.Shape("sphere", (0.05,), position=(0.3 * k + 0.15 * (row % 2), 0, 0.3 * row)) for k in range(-4, 5)
        ]
    ball = jg.Description("ball")
    ball.add_link("cart", 0.1, inertia=(1e-3,) * 3)
    ball.add_joint("x", "prismatic", None, "cart", position=(0, 0, 1.4), axis=(1, 0, 0))
    ball.add_link("ball", 1.0, inertia=(1e-2,) * 3).shapes.append(jg.Shape("sphere", (0.05,)))
    ball.add_joint("z", "prismatic", "cart", "ball", axis=(0, 0, 1))
    world.add(pins).add(ball)
    world.pair("pegs", "ball", restitution=0.7)
    model = world.compile(dt=DT)

    def run(p: np.ndarray, meaning: jg.Meaning) -> tuple[np.ndarray, np.ndarray]:
        start = model.initial_state(len(p))
        start.q[:, 0] = p
        motion = jg.rollout(model, start, steps=400, gradient=meaning)
        x = motion.q[..., 0]
        bars = np.zeros(motion.q.shape)
        bars[..., 0] = 2 * x / len(x)
        return (x**2).mean(0), motion.backward(bars, wrt=("state",)).q[:, 0]

    return Scene(
        "pegs",
        "a ball falls among pegs",
        "start's place (m); loss: mean square of its place (m^2)",
        0.02,
        0.42,
        run,
        0.02,
        {"q": 0.02},
        8.0,
    )


SCENES = {"slide": slide, "bounce": bounce, "stick": stick, "reach": reach, "pegs": pegs}
# of every meaning, a scene where it does well and one where it does not
WINS = {
    "exact": ("slide", "bounce"), "moving impacts": ("bounce", "stick"), "smoothed": ("reach", "bounce"),
    "randomised": ("stick", "reach"), "truncated": ("pegs", "reach"),
}  # fmt: skip
