"""gymnasium's own MuJoCo environments, version 5, and what MuJoCo knew when they computed a reward.

They import a window system on the way, which tests have no use for: a renderer that draws nothing stands in its place.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

import mujoco
import numpy as np

from jointgrad.rl import Moment

RENDERING = "gymnasium.envs.mujoco.mujoco_rendering"


class NoRenderer:
    def __init__(self, *given: Any, **options: Any) -> None:
        pass

    def close(self) -> None:
        pass


def environment(monkeypatch: Any, module: str, kind: str, **options: Any) -> Any:
    stand_in = ModuleType(RENDERING)
    stand_in.MujocoRenderer = NoRenderer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, RENDERING, stand_in)
    return getattr(importlib.import_module(f"gymnasium.envs.mujoco.{module}"), kind)(**options)


def moment(env: Any, action: np.ndarray, age: int, places: int) -> Moment:
    """What MuJoCo has after a step. Its body positions are those of the last evaluation, an instant before the state: where a
    free body is (`places` coordinates), which those tasks ask of the body, is told from there."""
    m, d = env.model, env.data
    q = d.qpos.copy()
    if m.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE:
        q[:places] = d.xpos[1][:places]
    outputs = {
        "link.position": d.xpos, "link.rotation": d.xmat.reshape(-1, 3, 3), "link.velocity": _velocities(m, d),
        "contact.force": d.cfrc_ext[:, 3:], "contact.torque": _torques(m, d),
    }  # fmt: skip
    rows = {name: value.copy()[None] for name, value in outputs.items()}
    return Moment(q[None], d.qvel.copy()[None], action[None].copy(), np.array([age]), rows, np.zeros((1, 0)))


def _velocities(m: Any, d: Any) -> np.ndarray:
    """Of the bodies' origins, linear and angular, in world axes, from cvel, which is about the centre of the tree."""
    angular, linear = d.cvel[:, :3], d.cvel[:, 3:]
    return np.hstack([linear + np.cross(angular, d.xpos - d.subtree_com[m.body_rootid]), angular])


def _torques(m: Any, d: Any) -> np.ndarray:
    """Of contacts about the bodies' own centres of mass."""
    arm = d.xipos - d.subtree_com[m.body_rootid]
    return d.cfrc_ext[:, :3] - np.cross(arm, d.cfrc_ext[:, 3:])
