"""A controller and a robot, step by step: in this engine or in MuJoCo, and how the walk went."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ...engine.run.rollout import rollout
from ...files.write_mjcf import to_mjcf
from ...model.arrays import Model, State
from ...model.errors import InputError
from ...model.world import World
from .controller import Command, Controller, Sensed, roll_pitch_yaw, rotation
from .robots import Quadruped

DT, HOLD = 1e-3, 2  # of the simulation (s), and over how many of its steps a controller's torques are held
TOUCH = 1.0  # N: a foot that bears more touches


class Plant(Protocol):
    """What a controller moves."""

    def sense(self) -> Sensed: ...

    def move(self, u: np.ndarray) -> None:
        """Hold the controls over the next steps."""

    def push(self, change: np.ndarray) -> None:
        """Change the velocity of the body, (3,) in world axes, at once."""


class OwnPlant:
    """A robot in this engine."""

    def __init__(self, robot: Quadruped, model: Model, state: State | None = None) -> None:
        self.model, self.time = model, 0.0
        self._rows = [model.link_names.index(name) for name in robot.feet]
        self.state = state or model.initial_state()
        self.force = np.zeros(4)

    def sense(self) -> Sensed:
        return Sensed(self.time, self.state.q[:19], self.state.qd[:18], self.force > TOUCH)

    def move(self, u: np.ndarray) -> None:
        moved = rollout(
            self.model,
            self.state,
            u[None],
            hold=HOLD,
            outputs=("contact.force",),
            threads=1,
            keep=False,
            on_nan="freeze",
        )
        self.state, self.time = moved.last, self.time + HOLD * DT
        self.force = np.linalg.norm(moved.outputs["contact.force"][-1, self._rows], axis=-1)

    def push(self, change: np.ndarray) -> None:
        qd = self.state.qd.copy()
        qd[:3] += change
        self.state = State(self.state.q, qd)


class MujocoPlant:
    """The same world, written out and moved by MuJoCo: an opinion from outside."""

    def __init__(self, robot: Quadruped, world: World) -> None:
        import mujoco

        self._mujoco, self.time = mujoco, 0.0
        self.model = mujoco.MjModel.from_xml_string(to_mjcf(world, dt=DT))
        self.data = mujoco.MjData(self.model)
        mujoco.mj_resetDataKeyframe(self.model, self.data, 0)
        name = mujoco.mjtObj.mjOBJ_BODY
        bodies = [mujoco.mj_name2id(self.model, name, foot) for foot in robot.feet]
        self._feet = {g: k for k, b in enumerate(bodies) for g in np.flatnonzero(self.model.geom_bodyid == b)}

    def sense(self) -> Sensed:
        contact = np.zeros(4, dtype=bool)
        for touch in self.data.contact:
            for geom in touch.geom:
                if geom in self._feet:
                    contact[self._feet[geom]] |= touch.dist < 0.0
        return Sensed(self.time, self.data.qpos[:19].copy(), self.data.qvel[:18].copy(), contact)

    def move(self, u: np.ndarray) -> None:
        self.data.ctrl[:] = u
        self._mujoco.mj_step(self.model, self.data, HOLD)
        self.time += HOLD * DT

    def push(self, change: np.ndarray) -> None:
        self.data.qvel[:3] += change


@dataclass(frozen=True)
class Walk:
    """What happened: times (n,), coordinates (n, nq), rates (n, nv), controls (n, nu), commands (n, 3), and seconds that each
    control took to compute (n,)."""

    time: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    u: np.ndarray
    command: np.ndarray
    seconds: np.ndarray
    fell: bool
    planned: np.ndarray  # seconds that plans took

    def marks(self) -> dict[str, Any]:
        """Plain numbers: errors are means after the first second, over strides of half a second; None for shorter walks."""
        speed, turn = self._rates()
        asked = self.command[-len(speed) :] if len(speed) else self.command[:0]
        tilt = np.array([roll_pitch_yaw(rotation(q[3:7]))[:2] for q in self.q[::25]])
        power = np.abs(self.u * self.qd[:, 6:18]).sum(1)
        far = np.linalg.norm(self.q[-1, :2] - self.q[0, :2])
        took = self.planned if len(self.planned) else self.seconds
        return {
            "fell": self.fell, "seconds": float(self.time[-1]), "distance": float(far),
            "velocity_error": float(np.linalg.norm(speed - asked[:, :2], axis=1).mean()) if len(speed) else None,
            "turn_error": float(np.abs(turn - asked[:, 2]).mean()) if len(speed) else None,
            "roll": float(np.abs(tilt[:, 0]).mean()), "pitch": float(np.abs(tilt[:, 1]).mean()),
            "power": float(power.mean()), "p50_ms": 1e3 * float(np.median(took)), "p99_ms": 1e3 * float(np.quantile(took, 0.99)),
        }  # fmt: skip

    def _rates(self) -> tuple[np.ndarray, np.ndarray]:
        """Velocity in the axes of the heading, and turning, as differences over half a second."""
        gap, first = round(0.5 / (HOLD * DT)), round(1.0 / (HOLD * DT))
        place = self.q[first:, :2]
        if len(place) <= gap:
            return np.zeros((0, 2)), np.zeros(0)
        w, x, y, z = self.q[first:, 3:7].T
        yaw = np.unwrap(np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)))
        v, turn = (place[gap:] - place[:-gap]) / 0.5, (yaw[gap:] - yaw[:-gap]) / 0.5
        middle = 0.5 * (yaw[gap:] + yaw[:-gap])
        c, s = np.cos(middle), np.sin(middle)
        return np.stack((c * v[:, 0] + s * v[:, 1], c * v[:, 1] - s * v[:, 0]), 1), turn


def has_fallen(sensed: Sensed) -> bool:
    """Tilted by more than 60 degrees, or no longer a number."""
    R = rotation(sensed.q[3:7])
    return not (np.isfinite(sensed.q).all() and R[2, 2] > 0.5)


Commands = Command | Callable[[float], Command]


def walk(
    controller: Controller, plant: Plant, command: Commands, seconds: float,
    pushes: dict[float, np.ndarray] | None = None, each: Callable[[Sensed], None] | None = None,
) -> Walk:  # fmt: skip
    """Walk for so long, or until it falls. command: one, or a function of time; pushes: changes of velocity (3,) by time."""
    if not seconds > 0:
        raise InputError(f"a walk lasts some seconds, but seconds is {seconds!r}")
    controller.reset()
    rows: list[tuple] = []
    waiting, fell = sorted((pushes or {}).items(), key=lambda p: p[0]), False
    while not fell and len(rows) * HOLD * DT < seconds:
        while waiting and waiting[0][0] <= len(rows) * HOLD * DT:
            plant.push(waiting.pop(0)[1])
        sensed = plant.sense()
        asked = command(sensed.time) if callable(command) else command
        began = time.perf_counter()
        u = controller(sensed, asked)
        rows.append((sensed.time, sensed.q, sensed.qd, u, asked, time.perf_counter() - began))
        if each is not None:
            each(sensed)
        plant.move(u)
        fell = has_fallen(plant.sense())
    at, q, qd, u, told, took = (np.array(c) for c in zip(*rows, strict=True))
    return Walk(at, q, qd, u, told, took, fell, np.array(getattr(controller, "plan_seconds", [])))
