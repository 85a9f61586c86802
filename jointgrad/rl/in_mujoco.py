"""Environments whose robots MuJoCo moves: whether a policy walks in a simulator that it has not learned in."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

from ..engine.run.outputs import LOADS
from ..files.write_mjcf import to_mjcf
from ..model.arrays import State
from ..model.errors import InputError
from .batch import Batch


class MujocoBatch(Batch):
    """The same task, robot, starts and rewards; `mujoco_model` may be changed before the first step."""

    def __init__(self, task: Any, count: int, randomise: Any = None, threads: int | None = None) -> None:
        super().__init__(task, count, randomise, threads)
        felt = [name for name in task.outputs if name in LOADS]
        if felt or randomise is not None:
            raise InputError(f"in MuJoCo a task can have no {', '.join(felt) or 'randomised robots'}")
        self.mujoco_model = mujoco.MjModel.from_xml_string(to_mjcf(task.world(), dt=task.dt))
        self._data = [mujoco.MjData(self.mujoco_model) for _ in range(count)]

    def _moved(self, action: np.ndarray) -> tuple[State, dict[str, np.ndarray], np.ndarray]:
        now = self.now
        for data, q, qd, u in zip(self._data, now.q, now.qd, action, strict=True):
            data.qpos[:], data.qvel[:], data.ctrl[:] = q, qd, u
            mujoco.mj_step(self.mujoco_model, data, self.task.hold)
        q, qd = (np.array([getattr(data, name) for data in self._data]) for name in ("qpos", "qvel"))
        is_lost = ~(np.isfinite(q).all(1) & np.isfinite(qd).all(1))
        state = State(np.where(is_lost[:, None], now.q, q), np.where(is_lost[:, None], now.qd, qd))
        return state, self._outputs_at_start(state, np.arange(self.count)), is_lost
