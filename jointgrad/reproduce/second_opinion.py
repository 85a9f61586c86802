"""What MuJoCo says to a motion that was found here: the same world, written out, under the same controls.

Two things in which the laws differ are looked at apart. MuJoCo's contact is a spring and a damper, ours an impulse: what lasts
one of our steps takes time there, and less of it the harder and finer it is made. So both are run with finer and finer steps,
controls held. And MuJoCo has one cone for friction against sliding and rolling, so that a ball that slides meets little
resistance against rolling and one that rolls somewhat less than the coefficient says; ours are limits of their own. So MuJoCo
is also run with a torque of that size from without, the normal force being its own, in place of its rolling friction.

What is left is the law of a bounce with friction: ours gives back a share of the speed with which the points met (Newton), MuJoCo's
spring a share of what friction has left of it meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

import jointgrad as jg

# steps into which one of the task's is divided
SUBSTEPS = (1, 4, 16)
# natural frequency of MuJoCo's contact times its step: a strike of half a period then lasts some 30 steps
HARDNESS = 0.1
# time constant of its friction, in steps. Where something slides, MuJoCo's normal force grows with how fast friction would
# stop that: much shorter, and a ball that lands obliquely is thrown up. What is held, though, creeps through a long one
SLIDES, HOLDS = 30.0, 2.0
# damping ratio of pairs that do not bounce: critical damping would still give back exp(-2) of the speed
DEAD = 5.0
APART = 0.01  # m


@dataclass(frozen=True)
class Opinion:
    """Both engines with one step in `substeps` parts: where the ball ends, and when they part. own_rolling: with resistance
    against rolling as a limit of its own, None where there is none."""

    substeps: int
    end_ours: list[float]
    end_mujoco: list[float]
    speed_mujoco: float
    apart: float
    apart_by_1cm_at_s: float | None
    end_mujoco_own_rolling: list[float] | None = None
    apart_own_rolling: float | None = None


def in_words(said: dict[str, Any]) -> str:
    """One opinion as a line."""
    when = "never" if said["apart_by_1cm_at_s"] is None else f"at {said['apart_by_1cm_at_s']:.3f} s"
    rolling = said["apart_own_rolling"]
    own = "" if rolling is None else f"; with a limit of its own for rolling {rolling:.3f} m"
    return f"{said['substeps']:3d} substeps: {said['apart']:.3f} m apart at the end, 1 cm {when}{own}"


def opinions(world: jg.World, model: jg.Model, start: jg.State, u: np.ndarray, at: Sequence[int],
             substeps: Sequence[int] = SUBSTEPS) -> list[dict[str, Any]]:  # fmt: skip
    """One for each division of the steps. at: the coordinates that are looked at."""
    return [asdict(_opinion(world, model, start, u, list(at), n)) for n in substeps]


def _opinion(world: jg.World, model: jg.Model, start: jg.State, u: np.ndarray, at: list[int], n: int) -> Opinion:
    dt = float(model.params["world.dt"]) / n
    fine = model.replace({"world.dt": np.array(dt)})
    ours = jg.rollout(fine, start, np.repeat(u, n, axis=0)).q[::n, at]
    twin = hard_twin(world, dt)
    theirs, speed = replayed(twin, start, u, n)
    apart = np.linalg.norm(ours - theirs[:, at], axis=-1)
    parted = float(np.argmax(apart > APART) * dt * n) if (apart > APART).any() else None
    said = Opinion(n, ours[-1].tolist(), theirs[-1, at].tolist(), speed, float(apart[-1]), parted)
    if not (twin.pair_dim == 6).any():
        return said
    end = replayed(twin, start, u, n, own_rolling=True)[0][-1, at]
    off = float(np.linalg.norm(ours[-1] - end))
    return replace(said, end_mujoco_own_rolling=end.tolist(), apart_own_rolling=off)


def hard_twin(world: jg.World, dt: float) -> Any:
    """The world in MuJoCo (MjModel), contact as hard as its step allows; bounces keep their damping ratio."""
    import mujoco

    twin = mujoco.MjModel.from_xml_string(jg.to_mjcf(world, dt=dt))
    twin.opt.cone, twin.opt.impratio = mujoco.mjtCone.mjCONE_ELLIPTIC, 10.0
    twin.opt.iterations, twin.opt.tolerance = 200, 1e-12
    is_dead = twin.pair_solref[:, 1] == 1.0
    ratio = np.where(is_dead, DEAD, twin.pair_solref[:, 1])
    twin.pair_solref[:] = np.stack([np.maximum(2.0, 1.0 / (HARDNESS * ratio)) * dt, ratio], axis=-1)
    twin.pair_solreffriction[:, 0] = np.where(is_dead & (twin.pair_dim < 6), HOLDS, SLIDES) * dt
    twin.pair_solreffriction[:, 1] = 1.0
    for impedance in (twin.pair_solimp, twin.jnt_solimp):
        impedance[:, :2] = 0.999
    twin.jnt_solref[:] = 2.0 * dt, 1.0
    return twin


def replayed(twin: Any, start: jg.State, u: np.ndarray, n: int, own_rolling: bool = False) -> tuple[np.ndarray, float]:
    """q (T+1, nq) in MuJoCo, every control held for n of its steps; the speed of the last body, a ball, at the end."""
    import mujoco

    rolling = _Rolling(twin) if own_rolling else None
    data = mujoco.MjData(twin)
    data.qpos[:], data.qvel[:] = start
    q = [data.qpos.copy()]
    for control in u:
        data.ctrl[:] = control
        if rolling is None:
            mujoco.mj_step(twin, data, n)
        else:
            for _ in range(n):
                data.qfrc_applied[-3:] = rolling.torque(data)
                mujoco.mj_step(twin, data)
        q.append(data.qpos.copy())
    return np.array(q), float(np.linalg.norm(data.qvel[-6:-3]))


class _Rolling:
    """Resistance against rolling of the last body, a ball, in place of MuJoCo's, which is switched off."""

    def __init__(self, twin: Any) -> None:
        pair = int(np.flatnonzero(twin.pair_dim == 6)[0])
        twin.pair_dim[pair] = 3
        self.twin, self.arm = twin, float(twin.pair_friction[pair, 3])
        self.geoms = {int(twin.pair_geom1[pair]), int(twin.pair_geom2[pair])}
        self.inertia = float(twin.body_inertia[twin.dof_bodyid[-1]].min())

    def torque(self, data: Any) -> np.ndarray:
        """Against the spin, of the size arm times normal force, but never more than stops it within two steps."""
        import mujoco

        spin, normal, force = data.qvel[-3:], 0.0, np.zeros(6)
        for k in range(data.ncon):
            if {int(g) for g in data.contact[k].geom} == self.geoms:
                mujoco.mj_contactForce(self.twin, data, k, force)
                normal += force[0]
        speed = float(np.linalg.norm(spin))
        most = 0.5 * self.inertia * speed / self.twin.opt.timestep
        return -spin / max(speed, 1e-12) * min(self.arm * normal, most)
