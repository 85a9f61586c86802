"""A walk from its settings: with a result, or in the browser."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...engine.run.rollout import rollout
from ...model.arrays import Model, State
from ...model.errors import InputError
from ...model.world import World
from .controller import Command, Controller
from .courses import course
from .estimator import Estimated
from .gaits import GAITS
from .network import NetworkMPC, load_network
from .quadruped import ConvexMPC
from .robots import Quadruped, quadruped
from .walking import DT, HOLD, MujocoPlant, OwnPlant, Plant, Walk, has_fallen, walk

LIMITS = (1.0, 0.4, 1.0)  # of commands by hand
SHOVE = 0.5  # m/s


@dataclass(frozen=True)
class Settings:
    """As the options of `jointgrad walk`."""

    robot: str = "laikago"
    controller: str = "qp"
    gait: str = "trot"
    ground: str = "flat"
    friction: float = 0.8
    payload: float = 0.0
    push: float = 0.0
    estimate: bool = False
    engine: str = "jointgrad"
    seed: int = 0
    network: Path | None = None  # of the controller "network"

    def world(self) -> World:
        return course(self.ground, quadruped(self.robot).add_to(World(), self.payload), self.friction, self.seed)

    def mover(self, robot: Quadruped) -> Controller:
        options: dict[str, Any] = (
            {"solver": "osqp", "horizon": "frozen", "whole": True} if self.controller == "osqp" else {}
        )
        gait = GAITS[self.gait]
        if self.controller == "network":
            if self.network is None:
                raise InputError(
                    "the controller network needs a file: --network, as `jointgrad reproduce mpc-imitation` writes"
                )
            found: ConvexMPC = NetworkMPC(robot, gait, network=load_network(self.network))
        else:
            found = ConvexMPC(robot, gait, **options)
        return Estimated(found, robot, HOLD * DT, seed=self.seed) if self.estimate else found

    def plant(self, robot: Quadruped, world: World) -> Plant:
        return MujocoPlant(robot, world) if self.engine == "mujoco" else OwnPlant(robot, world.compile(dt=DT))

    def pushes(self, seconds: float) -> dict[float, np.ndarray]:
        if not self.push:
            return {}
        return {t: np.array([0.0, self.push * (-1) ** k, 0.0]) for k, t in enumerate(np.arange(2.0, seconds, 2.0))}


def walked(
    settings: Settings, command: tuple[float, float, float], seconds: float, replay: Path | None = None
) -> dict[str, Any]:
    """How a walk went: plain numbers; and a page that plays it, if one is asked for."""
    robot, world = quadruped(settings.robot), settings.world()
    result = walk(
        settings.mover(robot), settings.plant(robot, world), Command(*command), seconds, settings.pushes(seconds)
    )
    if replay is not None:
        _write(world.compile(dt=DT), result, replay)
    said = asdict(settings) | {"network": str(settings.network) if settings.network else None}
    return said | {"command": list(command)} | result.marks()


def _write(model: Model, result: Walk, path: Path) -> None:
    """The walk once more under the same controls, as a page."""
    start = State(result.q[0], result.qd[0])
    rollout(model, start, result.u, hold=HOLD, on_nan="freeze").save(path)


class Live:
    """A robot that walks on as the page asks."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.robot = settings, quadruped(settings.robot)
        self.model = settings.world().compile(dt=DT)
        self.controller = settings.mover(self.robot)
        self.reset()

    def reset(self) -> None:
        self.plant = OwnPlant(self.robot, self.model)
        self.controller.reset()
        self.is_down = False

    def push(self) -> None:
        self.plant.push(np.array([0.0, max(self.settings.push, SHOVE), 0.0]))

    def advance(self, seconds: float, command: np.ndarray) -> Any:
        from ...viewer.steered import Shown

        for _ in range(max(1, round(seconds / (HOLD * DT)))):
            sensed = self.plant.sense()
            self.is_down = self.is_down or has_fallen(sensed)
            u = np.zeros(12) if self.is_down else self.controller(sensed, Command(*command))
            self.plant.move(u)
        planned = getattr(self.controller, "plan_seconds", [])[-50:]
        text = "it has fallen: press R" if self.is_down else f"plan: {1e3 * float(np.median(planned or [0.0])):.2f} ms"
        speed = float(np.linalg.norm(self.plant.state.qd[:2]))
        return Shown(self.plant.time, self.plant.state, self.plant.force, f"{speed:.2f} m/s, {text}")


def shown(settings: Settings, command: tuple[float, float, float], port: int, block: bool = True) -> Any:
    """The page; it begins under the command that is given."""
    from ...viewer.steered import SteeredView

    live = Live(settings)
    view = SteeredView(live.model, live, live.robot.places, LIMITS, f"{settings.robot} walks", port)
    for slider, value, limit in zip(view.sliders, command, LIMITS, strict=True):
        slider.value = float(np.clip(value, -limit, limit))
    view.announced(block)
    return 0 if block else view
