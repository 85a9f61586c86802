"""Marks of a dog that walks by command, measured by code that shares nothing with its reward.

Velocities are differences of where the base was, one stride (0.5 s) apart and one action (0.02 s) apart, in the axes of its heading
in the middle; feet stand where the engine says that a force of more than 1 N acts (in MuJoCo: mj_contactForce is not asked, and the
trot is not measured). Figures are of the time after the first second and before a fall.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import jointgrad as jg

from ..rl.batch import Batch

STRIDE, SECOND = 25, 50  # actions
PAIRS = ((0, 3), (1, 2))  # diagonal feet


class Walk(NamedTuple):
    """What happened: base and heading (actions + 1, episodes, ...), feet that stand, when it fell, what was asked."""

    place: np.ndarray
    heading: np.ndarray
    standing: np.ndarray | None
    end: np.ndarray
    command: np.ndarray


def heading(q: np.ndarray) -> np.ndarray:
    """Angle of the base about the vertical."""
    w, x, y, z = np.moveaxis(q[..., 3:7], -1, 0)
    return np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))


def fallen(q: np.ndarray, height: float) -> np.ndarray:
    """Lower than half of its stance, or tilted by more than 60 degrees."""
    x, y, n = q[..., 4], q[..., 5], np.linalg.norm(q[..., 3:7], axis=-1)
    return (q[..., 2] < 0.5 * height) | (1 - 2 * (x * x + y * y) / n**2 < 0.5)


def walked(policy: Any, batch: Batch, command: np.ndarray | None, seed: int, push: float = 0.0) -> Walk:
    """Episodes of 20 s under commands of the task's own drawing, or given ones."""
    task, n = policy.task, batch.count
    batch.generators = [np.random.default_rng([seed, k]) for k in range(n)]
    batch.reset(np.ones(n, dtype=bool))
    if command is not None:
        goal = batch.now.goal.copy()
        goal[:, :3] = command
        batch.now = batch.now._replace(goal=goal)
    asked, rng = batch.now.goal[:, :3].copy(), np.random.default_rng(seed)
    states, feet, end = [batch.now.q], [], np.full(n, task.limit)
    for k in range(task.limit):
        action = policy(batch.observe())
        before = jg.State(batch.now.q, batch.now.qd)
        batch.step(action)
        if type(batch) is Batch:
            feet.append(_standing(task, before, action))
        if push and k % 100 == SECOND:
            kick = np.zeros_like(batch.now.qd)
            kick[:, :2] = push * rng.uniform(-1, 1, (n, 2))
            batch.now = batch.now._replace(qd=batch.now.qd + kick)
        states.append(batch.now.q)
        end = np.where(fallen(batch.now.q, task.height) & (end == task.limit), k, end)
    q = np.array(states)
    return Walk(q[..., :2], np.unwrap(heading(q), axis=0), np.array(feet) if feet else None, end, asked)


def _standing(task, before: jg.State, action: np.ndarray) -> np.ndarray:
    """Which feet bear a force in the middle of an action, (episodes, 4)."""
    u = np.repeat(action[None], task.hold // 2, 0)
    force = jg.rollout(task.model, before, u, outputs=("contact.force",), threads=1, keep=False).outputs[
        "contact.force"
    ]
    rows = [task.model.link_names.index(f"dog/{foot}") for foot in task.feet]
    return force[-1][:, rows, 2] > 1.0


def marks(walk: Walk, dt: float) -> dict[str, Any]:
    said: dict[str, Any] = {"episodes": len(walk.end), "falls": int((walk.end < len(walk.place) - 1).sum())}
    for name, gap in (("stride", STRIDE), ("instant", 1)):
        speed, turn, is_good = _rates(walk, gap, dt)
        said[f"speed_error_{name}"] = float(np.linalg.norm(speed - walk.command[:, :2], axis=-1)[is_good].mean())
        said[f"turn_error_{name}"] = float(np.abs(turn - walk.command[:, 2])[is_good].mean())
    drift = walk.place[-1] - walk.place[SECOND]
    said["drift"] = float(np.linalg.norm(drift, axis=-1).mean() / (dt * (len(walk.place) - 1 - SECOND)))
    if walk.standing is not None:
        said["trot"] = float(np.mean(_trot(walk)))
    return said


def _rates(walk: Walk, gap: int, dt: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Velocity in the axes of the heading in the middle, turning, and where they count."""
    seconds = gap * dt
    v = (walk.place[gap:] - walk.place[:-gap]) / seconds
    turn = (walk.heading[gap:] - walk.heading[:-gap]) / seconds
    middle = 0.5 * (walk.heading[gap:] + walk.heading[:-gap])
    c, s = np.cos(middle), np.sin(middle)
    body = np.stack((c * v[..., 0] + s * v[..., 1], -s * v[..., 0] + c * v[..., 1]), -1)
    k = np.arange(len(v))[:, None]
    return body, turn, (k >= SECOND) & (k + gap <= walk.end)


def _trot(walk: Walk) -> np.ndarray:
    """Moments at which one diagonal pair stands and the other does not."""
    assert walk.standing is not None
    a, b = (walk.standing[..., list(pair)] for pair in PAIRS)
    alone = np.asarray((a.all(-1) & ~b.any(-1)) | (b.all(-1) & ~a.any(-1)))
    k = np.arange(len(alone))[:, None]
    return alone[(k >= SECOND) & (k <= walk.end)]


def corners(task) -> np.ndarray:
    """Commands at the ends of all ranges, eight of each."""
    ends = np.array(np.meshgrid(task.forward, task.sideways, task.turning)).reshape(3, -1).T
    return np.repeat(ends, 8, 0)


def ours(policy: Any, seed: int) -> dict[str, dict]:
    task = policy.task
    cases = {"drawn": None, "corners": corners(task), "zero": np.zeros((64, 3))}
    return {
        name: marks(walked(policy, Batch(task, 64, threads=1), given, seed), task.control_dt)
        for name, given in cases.items()
    }


def in_mujoco(policy: Any, seed: int) -> dict[str, dict]:
    """32 episodes each: as it is, pushed, loaded, and on slippery ground."""
    from ..rl.in_mujoco import MujocoBatch

    found = {}
    for name in ("default", "pushes 0.5 m/s", "+3 kg", "friction 0.4"):
        batch = MujocoBatch(policy.task, 32)
        if name == "+3 kg":
            batch.mujoco_model.body_mass[1] += 3.0
        if name == "friction 0.4":
            batch.mujoco_model.geom_friction[:, 0] = 0.4
            batch.mujoco_model.pair_friction[:, :2] = 0.4
        walk = walked(policy, batch, None, seed, 0.5 if name.startswith("push") else 0.0)
        found[name] = marks(walk, policy.task.control_dt)
    return found
