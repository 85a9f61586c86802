"""What MuJoCo says to a motion that was found here: the same world, written out, under the same controls.

MuJoCo's contact is a spring and a damper, ours an impulse: what lasts one of our steps takes time there, and less of it the harder
and finer it is made. So both are run with finer and finer steps, controls held: what is left of the difference is that of
the laws, and what each differs from itself is that of its steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import jointgrad as jg

# steps into which one of the task's is divided
SUBSTEPS = (1, 4, 16)
# natural frequency of MuJoCo's contact times its step: a strike of half a period then lasts some 30 steps
HARDNESS = 0.1
# damping ratio of pairs that do not bounce: critical damping would still give back exp(-2) of the speed
DEAD = 5.0
APART = 0.01  # m


@dataclass(frozen=True)
class Opinion:
    """Both engines with one step in `substeps` parts: where the ball ends, and when they part."""

    substeps: int
    end_ours: list[float]
    end_mujoco: list[float]
    speed_mujoco: float
    apart: float
    apart_by_1cm_at_s: float | None


def opinions(world: jg.World, model: jg.Model, start: jg.State, u: np.ndarray, at: Sequence[int],
             substeps: Sequence[int] = SUBSTEPS) -> list[dict[str, Any]]:  # fmt: skip
    """One for each division of the steps. at: the coordinates that are looked at."""
    return [asdict(_opinion(world, model, start, u, list(at), n)) for n in substeps]


def _opinion(world: jg.World, model: jg.Model, start: jg.State, u: np.ndarray, at: list[int], n: int) -> Opinion:
    dt = float(model.params["world.dt"]) / n
    fine = model.replace({"world.dt": np.array(dt)})
    ours = jg.rollout(fine, start, np.repeat(u, n, axis=0)).q[::n]
    theirs, speed = replayed(hard_twin(world, dt), start, u, n)
    apart = np.linalg.norm((ours - theirs)[:, at], axis=-1)
    parted = float(np.argmax(apart > APART) * dt * n) if (apart > APART).any() else None
    return Opinion(n, ours[-1, at].tolist(), theirs[-1, at].tolist(), speed, float(apart[-1]), parted)


def hard_twin(world: jg.World, dt: float) -> Any:
    """The world in MuJoCo (MjModel), contact as hard as its step allows; bounces keep their damping ratio."""
    import mujoco

    twin = mujoco.MjModel.from_xml_string(jg.to_mjcf(world, dt=dt))
    twin.opt.cone, twin.opt.impratio = mujoco.mjtCone.mjCONE_ELLIPTIC, 100.0
    twin.opt.iterations, twin.opt.tolerance = 200, 1e-12
    is_dead = twin.pair_solref[:, 1] == 1.0
    ratio = np.where(is_dead, DEAD, twin.pair_solref[:, 1])
    twin.pair_solref[:] = np.stack([np.maximum(2.0, 1.0 / (HARDNESS * ratio)) * dt, ratio], axis=-1)
    # friction has a spring of its own, or it would be as slow as the bounce
    twin.pair_solreffriction[:] = 2.0 * dt, 1.0
    for impedance in (twin.pair_solimp, twin.jnt_solimp):
        impedance[:, :2] = 0.999
    twin.jnt_solref[:] = 2.0 * dt, 1.0
    return twin


def replayed(twin: Any, start: jg.State, u: np.ndarray, n: int) -> tuple[np.ndarray, float]:
    """q (T+1, nq) in MuJoCo, every control held for n of its steps; the speed of the last body at the end."""
    import mujoco

    data = mujoco.MjData(twin)
    data.qpos[:], data.qvel[:] = start
    q = [data.qpos.copy()]
    for control in u:
        data.ctrl[:] = control
        mujoco.mj_step(twin, data, n)
        q.append(data.qpos.copy())
    return np.array(q), float(np.linalg.norm(data.qvel[-6:-3]))
