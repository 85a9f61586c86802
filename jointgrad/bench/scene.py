"""The robot that all contestants simulate: our Laikago, written out as MJCF and URDF, held by servos above the ground."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import jointgrad as jg

DT = 2e-3
FRICTION = 0.7
STIFFNESS, DAMPING = 150.0, 3.0  # of the servos: N m/rad, N m s/rad
RELEASE = 0.03  # m under the toes; they land after 39 steps, so that even 50 steps hold contact
TOE = 0.03
SETTLED = 1500  # steps


def servo_laikago() -> jg.Description:
    robot = jg.zoo.laikago(touch="feet")
    for actuator in robot.actuators.values():
        actuator.kind, actuator.gain, actuator.damping = "position", STIFFNESS, DAMPING
        actuator.force_limit = (-np.inf, np.inf)  # some peers have servos without limits, and these never reach theirs
    return robot


def bare_laikago() -> jg.Description:
    """What a URDF can say: no servos, no stance."""
    robot = jg.zoo.laikago(touch="feet")
    robot.actuators.clear()
    for joint in robot.joints.values():
        joint.initial = None
    return robot


def world_of(count: int = 1) -> jg.World:
    """So many Laikagos side by side on one ground."""
    world = jg.World(dt=DT)
    for k in range(count):
        world.add(servo_laikago(), name=f"dog{k}" if count > 1 else None, position=(0.0, 1.5 * k, 0.0))
    return world.add_ground(friction=FRICTION)


def released(model: jg.Model, clearance: float = RELEASE) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates with all toes so far above the ground (m), and the servos' targets that keep the stance."""
    q = model.initial_state().q.copy()
    free = [i for i, kind in zip(model.topology.tree["q"], model.topology.tree["kind"], strict=True) if kind == 4]
    heights = jg.inspect(model, model.initial_state()).link_position[:, 2]
    toes = [k for k, name in enumerate(model.link_names) if "toe" in name]
    for i in free:
        q[i + 2] += TOE + clearance - heights[toes].min()
    return q, np.delete(q, np.concatenate([np.arange(i, i + 7) for i in free]))


def write_laikago(folder: Path) -> None:
    """laikago.xml, laikago.urdf, and laikago.json with states, targets, gains and the height at which it stands."""
    folder.mkdir(parents=True, exist_ok=True)
    world = world_of()
    model = world.compile(dt=DT)
    q, targets = released(model)
    last = jg.rollout(model, jg.State(q, np.zeros(model.nv)), np.tile(targets, (SETTLED, 1)), keep=False).last
    (folder / "laikago.xml").write_text(jg.to_mjcf(world))
    (folder / "laikago.urdf").write_text(jg.to_urdf(bare_laikago()))
    actuated = [a.joint for a in servo_laikago().actuators.values()]
    said = {
        "dt": DT, "friction": FRICTION, "stiffness": STIFFNESS, "damping": DAMPING, "toe": TOE, "joints": actuated,
        "toes": [n for n in model.link_names if "toe" in n],
        "q": q.tolist(), "targets": targets.tolist(),
        "standing_q": last.q.tolist(), "standing_height": float(last.q[2]),
        "torques": (STIFFNESS * (targets - last.q[7:])).tolist(),
    }  # fmt: skip
    (folder / "laikago.json").write_text(json.dumps(said, indent=1))
