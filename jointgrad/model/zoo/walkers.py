"""The two robots of gymnasium's MuJoCo tasks that walk in space: Ant and Humanoid, as bodies of uniform density."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..description import Description, Shape
from .primitives import add_solid_link, rod

SKIN = (0.8, 0.6, 0.4, 1.0)

# leg, signs of x and y, axis of the ankle, its range (degrees)
ANT_LEGS = (
    ("front_left", 1, 1, (-1, 1, 0), (30, 70)),
    ("front_right", -1, 1, (1, 1, 0), (-70, -30)),
    ("back", -1, -1, (-1, 1, 0), (-70, -30)),
    ("right_back", 1, -1, (1, 1, 0), (30, 70)),
)

# joint, link it moves, axis, range (degrees), stiffness, damping, armature, height of the joint in the link, gear
HUMANOID_JOINTS = (
    ("abdomen_z", "lwaist", (0, 0, 1), (-45, 45), 20, 5, 0.02, 0.065, 100),
    ("abdomen_y", "lwaist", (0, 1, 0), (-75, 30), 10, 5, 0.02, 0.065, 100),
    ("abdomen_x", "pelvis", (1, 0, 0), (-35, 35), 10, 5, 0.02, 0.1, 100),
    ("right_hip_x", "right_thigh", (1, 0, 0), (-25, 5), 10, 5, 0.01, 0, 100),
    ("right_hip_z", "right_thigh", (0, 0, 1), (-60, 35), 10, 5, 0.01, 0, 100),
    ("right_hip_y", "right_thigh", (0, 1, 0), (-110, 20), 20, 5, 0.008, 0, 300),
    ("right_knee", "right_shin", (0, -1, 0), (-160, -2), 0, 1, 0.006, 0.02, 200),
    ("left_hip_x", "left_thigh", (-1, 0, 0), (-25, 5), 10, 5, 0.01, 0, 100),
    ("left_hip_z", "left_thigh", (0, 0, -1), (-60, 35), 10, 5, 0.01, 0, 100),
    ("left_hip_y", "left_thigh", (0, 1, 0), (-110, 20), 20, 5, 0.01, 0, 300),
    ("left_knee", "left_shin", (0, -1, 0), (-160, -2), 1, 1, 0.006, 0.02, 200),
    ("right_shoulder1", "right_upper_arm", (2, 1, 1), (-85, 60), 1, 1, 0.0068, 0, 25),
    ("right_shoulder2", "right_upper_arm", (0, -1, 1), (-85, 60), 1, 1, 0.0051, 0, 25),
    ("right_elbow", "right_lower_arm", (0, -1, 1), (-90, 50), 0, 1, 0.0028, 0, 25),
    ("left_shoulder1", "left_upper_arm", (2, -1, 1), (-60, 85), 1, 1, 0.0068, 0, 25),
    ("left_shoulder2", "left_upper_arm", (0, 1, 1), (-60, 85), 1, 1, 0.0051, 0, 25),
    ("left_elbow", "left_lower_arm", (0, -1, -1), (-90, 50), 0, 1, 0.0028, 0, 25),
)
# the waist and the pelvis are tilted by this much against what they hang on
TILT = (1.0, 0.0, -0.002, 0.0)


def ant() -> Description:
    """Ant-v5: a ball of radius 0.25 m on four legs of two hinges each, 0.91088 kg.

    Figures: gymnasium's ant.xml: density 5 kg/m^3, armature 1 kg m^2, damping 1 N m s, gear 150, controls within 1.
    The armature is at the joints; diffarticulated adds it to mass and inertia of every leg's link. The ankles start
    bent by 1 rad as in that file's init_qpos, for its zero pose is beyond their limits. The foot links, nameless
    there, have names.
    """
    robot = Description("ant", base="free")
    add_solid_link(robot, "torso", [Shape("sphere", (0.25,), **_ant_surface())], density=5.0)
    robot.add_joint("root", "free", None, "torso", position=(0.0, 0.0, 0.75))
    for number, (leg, x, y, axis, bend) in enumerate(ANT_LEGS, start=1):
        hip = (0.2 * x, 0.2 * y, 0.0)
        for link, reach in ((f"{leg}_leg", 1), (f"aux_{number}", 1), (f"{leg}_foot", 2)):
            end = (reach * hip[0], reach * hip[1], 0.0)
            add_solid_link(robot, link, [rod("capsule", (0, 0, 0), end, 0.08, **_ant_surface())], density=5.0)
        robot.add_joint(f"{leg}_weld", "fixed", "torso", f"{leg}_leg")
        robot.add_joint(
            f"hip_{number}", "revolute", f"{leg}_leg", f"aux_{number}", position=hip, axis=(0, 0, 1),
            limit=_radians(-30, 30), damping=1.0, armature=1.0,
        )  # fmt: skip
        robot.add_joint(
            f"ankle_{number}", "revolute", f"aux_{number}", f"{leg}_foot", position=hip, axis=axis,
            limit=_radians(*bend), damping=1.0, armature=1.0, initial=math.copysign(1.0, sum(bend)),
        )  # fmt: skip
    for number in (4, 1, 2, 3):
        for joint in (f"hip_{number}", f"ankle_{number}"):
            robot.add_actuator(joint, joint, gear=150.0, control_limit=(-1.0, 1.0))
    return robot


def humanoid() -> Description:
    """Humanoid-v5: 13 bodies of capsules and balls, 17 hinges with springs, 42.116 kg.

    Figures: gymnasium's humanoid.xml, whose density is MuJoCo's 1000 kg/m^3 for want of another. Left out: its two
    tendons from hip to knee, which have neither spring nor damper nor limit. The knees start at the edge of their
    range, 2 degrees, for its zero pose is beyond it.
    """
    robot = Description("humanoid", base="free")
    for name, shapes in _humanoid_shapes().items():
        add_solid_link(robot, name, shapes, density=1000.0)
    robot.add_joint("root", "free", None, "torso", position=(0.0, 0.0, 1.4))
    placed: set[str] = set()
    for joint, link, axis, bounds, stiffness, damping, armature, height, gear in HUMANOID_JOINTS:
        parent, position, orientation = _humanoid_place(link)
        place: dict[str, Any] = {} if link in placed else {"position": position, "orientation": orientation}
        placed.add(link)
        robot.add_joint(
            joint, "revolute", parent, link, axis=axis, anchor=(0.0, 0.0, height), limit=_radians(*bounds),
            stiffness=stiffness, damping=damping, armature=armature, **place,
            initial=math.radians(-2) if "knee" in joint else 0.0,
        )  # fmt: skip
        robot.add_actuator(joint, joint, gear=gear, control_limit=(-0.4, 0.4))
    for side in ("right", "left"):
        robot.add_joint(f"{side}_ankle", "fixed", f"{side}_shin", f"{side}_foot", position=(0.0, 0.0, -0.45))
    # gymnasium's order of controls begins with abdomen_y
    robot.actuators = {name: robot.actuators[name] for name in ("abdomen_y", *robot.actuators)}
    return robot


def _humanoid_shapes() -> dict[str, list[Shape]]:
    """By link, in the order in which bodies are numbered."""
    shapes = {
        "torso": [
            _bone((0, -0.07, 0), (0, 0.07, 0), 0.07),
            _ball((0, 0, 0.19), 0.09),
            _bone((-0.01, -0.06, -0.12), (-0.01, 0.06, -0.12), 0.06),
        ],
        "lwaist": [_bone((0, -0.06, 0), (0, 0.06, 0), 0.06)],
        "pelvis": [_bone((-0.02, -0.07, 0), (-0.02, 0.07, 0), 0.09)],
    }
    for side, s in (("right", -1), ("left", 1)):
        shapes[f"{side}_thigh"] = [_bone((0, 0, 0), (0, -0.01 * s, -0.34), 0.06)]
        shapes[f"{side}_shin"] = [_bone((0, 0, 0), (0, 0, -0.3), 0.049)]
        shapes[f"{side}_foot"] = [_ball((0, 0, 0.1), 0.075)]
    for side, s in (("right", -1), ("left", 1)):
        shapes[f"{side}_upper_arm"] = [_bone((0, 0, 0), (0.16, 0.16 * s, -0.16), 0.04)]
        elbow_to_wrist = _bone((0.01, -0.01 * s, 0.01), (0.17, -0.17 * s, 0.17), 0.031)
        shapes[f"{side}_lower_arm"] = [elbow_to_wrist, _ball((0.18, -0.18 * s, 0.18), 0.04)]
    return shapes


def _humanoid_place(link: str) -> tuple[str, tuple[float, ...], tuple[float, ...]]:
    """What a link hangs on, where, and turned by how much."""
    s, straight = (-1 if link.startswith("right") else 1), (1.0, 0.0, 0.0, 0.0)
    if link == "lwaist":
        return "torso", (-0.01, 0.0, -0.26), TILT
    if link == "pelvis":
        return "lwaist", (0.0, 0.0, -0.165), TILT
    side, part = link.split("_", 1)
    parent, position = {
        "thigh": ("pelvis", (0.0, 0.1 * s, -0.04)),
        "shin": (f"{side}_thigh", (0.0, -0.01 * s, -0.403)),
        "upper_arm": ("torso", (0.0, 0.17 * s, 0.06)),
        "lower_arm": (f"{side}_upper_arm", (0.18, 0.18 * s, -0.18)),
    }[part]
    return parent, position, straight


def _bone(start: Sequence[float], end: Sequence[float], radius: float) -> Shape:
    return rod("capsule", start, end, radius, **_humanoid_surface())


def _ball(position: Sequence[float], radius: float) -> Shape:
    return Shape("sphere", (radius,), position, **_humanoid_surface())


def _ant_surface() -> dict[str, Any]:
    contact = {"conaffinity": 0.0, "condim": 3.0, "margin": 0.01}
    return {"color": SKIN, "friction": (1.0, 0.5, 0.5), "contact": contact}


def _humanoid_surface() -> dict[str, Any]:
    return {"color": SKIN, "friction": (1.0, 0.005, 0.0001), "contact": {"condim": 1.0, "margin": 0.001}}


def _radians(low: float, high: float) -> tuple[float, float]:
    return math.radians(low), math.radians(high)
