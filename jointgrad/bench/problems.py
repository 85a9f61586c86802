"""Small problems of contact whose derivatives are known in closed form, written out for every contestant.

All but the last move on straight rails, so that every simulator has the same coordinates; the last stands on a free base. The
references are those of the ideal problem in continuous time: rigid bodies, Coulomb friction, exact impacts.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jointgrad as jg

DT, GRAVITY, RADIUS = 1e-3, 9.81, 0.1
Entry = tuple[str, str]  # "q", "qd" or "u", and the joint


@dataclass(frozen=True)
class Problem:
    """Robots and what is asked: expected[i][j] is the derivative of outputs[i] after the steps by inputs[j]."""

    name: str
    words: str
    robots: tuple[jg.Description, ...]
    steps: int
    start: dict[str, tuple[float, float]]  # joint -> (q, qd)
    inputs: tuple[Entry, ...]
    outputs: tuple[Entry, ...]
    expected: tuple[tuple[float, ...], ...]
    gravity: float = GRAVITY
    friction: float = 0.0
    restitution: float = 0.0
    has_ground: bool = True
    controls: tuple[tuple[str, float], ...] = ()

    @property
    def seconds(self) -> float:
        return self.steps * DT

    def world(self) -> jg.World:
        """All of it but the restitution, which MJCF cannot say."""
        world = jg.World(gravity=(0.0, 0.0, -self.gravity), dt=DT)
        for robot in self.robots:
            for link in robot.links.values():
                for shape in link.shapes:
                    shape.friction = (self.friction,)
            world.add(robot)
        return world.add_ground(friction=self.friction) if self.has_ground else world

    def bouncing_world(self) -> jg.World:
        return self.world().pair("*", "*", restitution=self.restitution) if self.restitution else self.world()

    def spec(self) -> dict[str, Any]:
        """All that a contestant must know beside the files."""
        names = (
            "name",
            "words",
            "steps",
            "start",
            "inputs",
            "outputs",
            "gravity",
            "friction",
            "restitution",
            "has_ground",
        )
        said = {name: getattr(self, name) for name in names}
        bases = {robot.name: robot.base for robot in self.robots}
        return said | {"dt": DT, "robots": bases, "controls": dict(self.controls), "expected": self.expected}


def turned(vector: tuple[float, ...], up: str) -> tuple[float, ...]:
    """Where y points up instead of z."""
    x, y, z = vector
    return vector if up == "z" else (x, z, -y)


def rail(
    robot: jg.Description, name: str, along: tuple[str, ...], masses: tuple[float, ...], up: str, at=(0.0, 0.0, 0.0)
) -> jg.Link:
    """A body on one rail after the other from the world on; joints are called name_x, name_z. Returns the last body."""
    axes = {"x": (1.0, 0.0, 0.0), "z": (0.0, 0.0, 1.0)}
    parent = None
    for axis, mass in zip(along, masses, strict=True):
        link = robot.add_link(f"{name}_{axis}_link", mass, inertia=(0.01 * mass,) * 3)
        place = turned(at, up) if parent is None else (0.0, 0.0, 0.0)
        limit: dict[str, Any] = dict(effort_limit=1e3, velocity_limit=1e3, limit=(-100.0, 100.0))
        robot.add_joint(
            f"{name}_{axis}", "prismatic", parent, link.name, position=place, axis=turned(axes[axis], up), **limit
        )
        parent = link.name
    return link


def ball_on_rail(name: str, along: tuple[str, ...], masses: tuple[float, ...], up: str, at) -> jg.Description:
    robot = jg.Description(name, base="fixed")
    rail(robot, name, along, masses, up, at).shapes.append(jg.Shape("sphere", (RADIUS,)))
    return robot


def bounce(up: str) -> Problem:
    """Thrown down without gravity, it comes back: one started higher meets the ground later and ends lower."""
    robot = ball_on_rail("ball", ("z",), (1.0,), up, (0.0, 0.0, RADIUS))
    steps = 1000
    return Problem(
        "bounce", "a ball thrown at the ground bounces without loss", (robot,), steps, {"ball_z": (0.5003, -1.0)},
        (("q", "ball_z"), ("qd", "ball_z")), (("q", "ball_z"),), ((-1.0, -steps * DT),), gravity=0.0, restitution=1.0,
    )  # fmt: skip


def slide(up: str) -> Problem:
    """Friction does not depend on speed, so that more speed is kept whole."""
    robot = ball_on_rail("sled", ("x", "z"), (0.1, 1.0), up, (0.0, 0.0, RADIUS))
    steps = 200
    return Problem(
        "slide", "a sled slides on", (robot,), steps, {"sled_x": (0.0, 2.0), "sled_z": (0.0, 0.0)},
        (("qd", "sled_x"),), (("q", "sled_x"), ("qd", "sled_x")), ((steps * DT,), (1.0,)), friction=0.5,
    )  # fmt: skip


def stick(up: str) -> Problem:
    """x = v^2 / 2a, at rest in the end."""
    robot = ball_on_rail("sled", ("x", "z"), (0.1, 1.0), up, (0.0, 0.0, RADIUS))
    deceleration = 0.5 * GRAVITY * 1.0 / 1.1
    return Problem(
        "stick", "a sled slides, stops and stays", (robot,), 500, {"sled_x": (0.0, 1.0), "sled_z": (0.0, 0.0)},
        (("qd", "sled_x"),), (("q", "sled_x"), ("qd", "sled_x")), ((1.0 / deceleration,), (0.0,)), friction=0.5,
    )  # fmt: skip


def two_balls(up: str) -> Problem:
    """Without restitution both go on together with the momentum of one."""
    gap, steps, share = 0.1003, 500, 1.0 / 3.0
    first = ball_on_rail("first", ("x",), (1.0,), up, (0.0, 0.0, 0.0))
    second = ball_on_rail("second", ("x",), (2.0,), up, (2 * RADIUS + gap, 0.0, 0.0))
    return Problem(
        "two balls", "one ball meets another and pushes it on", (first, second), steps,
        {"first_x": (0.0, 1.0), "second_x": (0.0, 0.0)},
        (("q", "first_x"), ("qd", "first_x")), (("q", "second_x"), ("qd", "second_x")),
        ((share, share * steps * DT), (0.0, share)), gravity=0.0, has_ground=False,
    )  # fmt: skip


def limit(up: str) -> Problem:
    """A slide reaches the end of its rail on a cart, and takes the cart along."""
    stop, steps = 0.1003, 500
    robot = jg.Description("cart", base="fixed")
    rail(robot, "cart", ("x",), (1.0,), up)
    robot.add_link("slide_link", 1.0, inertia=(0.01,) * 3)
    robot.add_joint(
        "slide", "prismatic", "cart_x_link", "slide_link", axis=(1.0, 0.0, 0.0), limit=(-1.0, stop),
        effort_limit=1e3, velocity_limit=1e3,
    )  # fmt: skip
    return Problem(
        "limit", "a slide meets the end of its rail", (robot,), steps, {"cart_x": (0.0, 0.0), "slide": (0.0, 1.0)},
        (("q", "slide"), ("qd", "slide")), (("q", "cart_x"), ("qd", "cart_x")),
        ((0.5, 0.5 * steps * DT), (0.0, 0.5)), gravity=0.0, has_ground=False,
    )  # fmt: skip


def stack(up: str) -> Problem:
    """Two bodies stick together and slide as one: momentum given to either is shared by both."""
    half, steps = 0.05, 200
    lower = ball_on_rail("lower", ("x", "z"), (0.5, 2.0), up, (0.0, 0.0, RADIUS))
    plate = (1.0, 0.5, half) if up == "z" else (1.0, half, 0.5)
    lower.links["lower_z_link"].shapes.append(jg.Shape("box", plate, turned((0.0, 0.0, 0.2), up)))
    upper = ball_on_rail("upper", ("x", "z"), (0.01, 1.0), up, (0.0, 0.0, 0.2 + half + 2 * RADIUS))
    of_lower, of_upper = 2.5 / 3.51, 1.01 / 3.51
    seconds = steps * DT
    return Problem(
        "stack", "a stack of two slides as one", (lower, upper), steps,
        {"lower_x": (0.0, 1.0), "lower_z": (0.0, 0.0), "upper_x": (0.0, 1.0), "upper_z": (0.0, 0.0)},
        (("qd", "lower_x"), ("qd", "upper_x")), (("q", "upper_x"), ("qd", "upper_x")),
        ((of_lower * seconds, of_upper * seconds), (of_lower, of_upper)), friction=0.5,
    )  # fmt: skip


def hover(up: str) -> Problem:
    """A weight held up by a force between it and a free foot that stands: z = z0 + v t + (u/m - g) t^2 / 2."""
    mass, steps = 2.0, 200
    robot = jg.Description("stand", base="free")
    foot = robot.add_link("foot", 1.0, inertia=(0.05, 0.05, 0.05))
    for x in (-0.3, 0.3):
        foot.shapes += [jg.Shape("sphere", (RADIUS,), turned((x, y, 0.0), up)) for y in (-0.3, 0.3)]
    robot.add_link("weight", mass, inertia=(0.02,) * 3)
    robot.add_joint(
        "lift", "prismatic", "foot", "weight", position=turned((0.0, 0.0, 0.3), up), axis=turned((0, 0, 1), up),
        limit=(-100.0, 100.0), effort_limit=1e3, velocity_limit=1e3,
    )  # fmt: skip
    robot.add_actuator("lift", "lift", force_limit=(-1e3, 1e3))
    seconds = steps * DT
    return Problem(
        "floating base", "a weight is lifted from a free foot that stands", (robot,), steps, {"lift": (0.0, 0.0)},
        (("u", "lift"), ("qd", "lift")), (("q", "lift"), ("qd", "lift")),
        ((seconds**2 / (2 * mass), seconds), (seconds / mass, 1.0)), friction=0.5, controls=(("lift", mass * GRAVITY),),
    )  # fmt: skip


MAKERS = (bounce, slide, stick, two_balls, limit, stack, hover)


def all_problems(up: str = "z") -> list[Problem]:
    return [make(up) for make in MAKERS]


def write_problems(folder: Path) -> None:
    """problems.json; for each problem an MJCF file, and for each of its robots URDF files with z and with y up."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "problems.json").write_text(json.dumps([p.spec() for p in all_problems()], indent=1))
    for problem in all_problems():
        (folder / f"{problem.name}.xml").write_text(jg.to_mjcf(problem.world()))
    for up in "zy":
        for problem in all_problems(up):
            for robot in problem.robots:
                (folder / f"{problem.name}.{robot.name}.{up}.urdf").write_text(jg.to_urdf(robot))
