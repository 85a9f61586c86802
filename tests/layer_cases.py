"""What the tests of the layers share: a world in contact, away from its kinks, and inputs of every kind."""

from __future__ import annotations

import numpy as np
from oracles.differences import random_state
from worlds import tangled

import jointgrad as jg
from jointgrad.model.arrays import PARAMS

STEPS, BATCH = 3, 2
# an entry of each table of parameters, and what a contact depends on
NAMES = (
    "link.mass", "link.com", "link.inertia", "joint.damping", "shape.size", "pair.friction", "pair.baumgarte",
    "actuator.gain", "world.gravity", "world.dt",
)  # fmt: skip


def sliding_ball(sweeps: int = 20) -> jg.Model:
    """A ball that carries a driven pendulum and rests a little deep in the ground; it slides, so that no clamp is near."""
    robot = jg.Description("ball", base="free")
    ball = robot.add_link("ball", 1.0, (0.01, 0.0, -0.02), (0.01, 0.012, 0.014))
    ball.shapes.append(jg.Shape("sphere", (0.1,), name="skin"))
    robot.add_link("pole", 0.3, (0.0, 0.0, 0.2), (0.01, 0.01, 0.002))
    robot.add_joint("hinge", "revolute", "ball", "pole", axis=(0, 1, 0), damping=0.05)
    robot.add_actuator("motor", "hinge")
    world = jg.World().add(robot, position=(0.0, 0.0, 0.0999)).add_ground(friction=0.5)
    model = world.compile(dt=0.01, contact=jg.Impulse(sweeps=sweeps))
    # room for differences in what must not be negative: the ground never moves, and its size is not read
    ground, room = model.link("ground"), {"joint.damping": 0.05, "shape.size": 0.01}
    values = {name: model.params[name].copy() for name in ("link.mass", "link.inertia", *room)}
    values["link.mass"][ground], values["link.inertia"][ground] = 1.0, (1.0, 0.0, 0.0, 1.0, 0.0, 1.0)
    for name, more in room.items():
        values[name][values[name] == 0.0] = more
    return model.replace(values)


def inputs(model: jg.Model, batch: int | None = BATCH, steps: int | None = STEPS) -> dict[str, np.ndarray]:
    """Arrays by name, the parameters included; without steps for a single step."""
    rng = np.random.default_rng(3)
    rows, time = () if batch is None else (batch,), () if steps is None else (steps,)
    start = model.initial_state(batch)
    q = start.q + 1e-5 * rng.normal(size=start.q.shape)
    qd = start.qd + np.array([0.8, 0.3, -0.05, 0.2, -0.3, 0.1, 0.4]) + 0.01 * rng.normal(size=start.qd.shape)
    u, force = 0.3 * rng.normal(size=(*time, *rows, 1)), 0.2 * rng.normal(size=(*time, *rows, model.n_links, 6))
    force[..., model.link("ball"), 2] -= 2.0  # pressed on
    return {"q": q, "qd": qd, "u": u, "force": force} | {name: model.params[name] for name in NAMES}


def everything() -> tuple[jg.Model, dict[str, np.ndarray]]:
    """A step of two robots in which every parameter there is has entries: all laws of contact, ties, tendons, drag."""
    model = tangled(3, "free", 6).replace({"world.baumgarte": 0.02})
    rng = np.random.default_rng(1)
    state = random_state(model, rng)
    given = {"q": state.q, "qd": state.qd, "u": rng.normal(size=model.nu)}
    return model, given | {"force": 0.2 * rng.normal(size=(model.n_links, 6))} | dict(model.params)


def direction(name: str, value: np.ndarray) -> np.ndarray:
    """Somewhere an input may be moved both ways; what is at the edge of what it may be stays there."""
    found = np.random.default_rng(len(name)).normal(size=value.shape)
    if name not in PARAMS:
        return found
    is_movable = np.isfinite(value) & ((value != 0.0) | (name in ("joint.rest", "link.com", "actuator.bias")))
    size = np.abs(np.where(is_movable, value, 0.0))  # large entries by large steps
    return np.where(is_movable, found * np.where(size == 0.0, 1.0, size), 0.0)
