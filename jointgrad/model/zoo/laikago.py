"""Laikago, the quadruped of Qiao 2021: 13 moving bodies, a toe welded to each lower leg. Figures: TDS's laikago_toes_zup."""

from __future__ import annotations

from typing import Any

from ..arguments import check_choice
from ..description import Description, Shape
from .primitives import combined, rod

# the hips' frames are turned so: roll 90 degrees, then yaw 90 degrees (the original writes 1.57079)
HIP_ORIENTATION = (0.5, 0.5, 0.5, 0.5)
# leg, hip at x, side, upper leg's inertia xx and zz
LEGS = (
    ("FR", 0.199095, -1, 0.015, 0.010),
    ("FL", 0.199095, 1, 0.016, 0.011),
    ("RR", -0.238195, -1, 0.016, 0.011),
    ("RL", -0.238195, 1, 0.016, 0.011),
)
# hip, upper leg, lower leg: puts every toe under its hip
STANCE = (0.0, 0.0, -0.5)
GREY, DARK, LIGHT = (0.55, 0.57, 0.60, 1.0), (0.2, 0.2, 0.22, 1.0), (0.85, 0.86, 0.88, 1.0)


def laikago(touch: str = "all") -> Description:
    """Free base; twelve torque actuators in the order hip, upper leg, lower leg of FR, FL, RR, RL; the joints start in a stance.

    25.567 kg. touch: "all", or "feet" alone, balls of radius 0.03 m, which is quicker. Chassis, hips and legs are a box, balls and
    capsules of ours, where the originals have meshes. Inertias are TDS's: diffarticulated's copy has only the toes'. Where legs
    touch, the lower ones have that of their capsules: TDS's is 0.002 about all axes, their own too.
    """
    check_choice("touch", touch, ("all", "feet"))
    robot = Description("laikago", base="free")
    robot.add_link("chassis", 13.715, inertia=(0.22, 0.431, 0.565))
    for leg, x, side, xx, zz in LEGS:
        hip, upper, lower, toe = f"{leg}_hip_motor", f"{leg}_upper_leg", f"{leg}_lower_leg", f"toe{leg}"
        robot.add_link(hip, 1.095, (-0.02 * side, 0.0, 0.0), (0.002, 0.002, 0.001))
        robot.add_link(upper, 1.527, (0.0, -0.04, -0.04), (xx, 0.007, zz))
        robot.add_link(lower, 0.241, (0.0, -0.16, -0.02), (0.002, 0.002, 0.002))
        robot.add_link(toe, 0.1, inertia=(2.5e-5, 2.5e-5, 2.5e-5)).shapes.append(Shape("sphere", (0.03,), color=DARK))
        effort: dict[str, Any] = dict(effort_limit=100.0, velocity_limit=100.0)
        robot.add_joint(
            f"{leg}_hip_joint", "continuous", "chassis", hip, position=(x, 0.0817145 * side, -0.03),
            orientation=HIP_ORIENTATION, axis=(0, 0, side), initial=STANCE[0], **effort,
        )  # fmt: skip
        robot.add_joint(
            f"{leg}_upper_joint", "continuous", hip, upper, position=(0.055855 if side > 0 else -0.053565, 0, 0),
            axis=(1, 0, 0), initial=STANCE[1], **effort,
        )  # fmt: skip
        robot.add_joint(
            f"{leg}_lower_joint", "continuous", upper, lower, position=(-0.02069 * side, -0.20833, -0.1422),
            axis=(1, 0, 0), initial=STANCE[2], **effort,
        )  # fmt: skip
        robot.add_joint(f"{leg}_toe_joint", "fixed", lower, toe, position=(0, -0.25, -0.022))
        for part in ("hip", "upper", "lower"):
            robot.add_actuator(f"{leg}_{part}", f"{leg}_{part}_joint", force_limit=(-100.0, 100.0))
    if touch == "all":
        _add_body_shapes(robot)
    return robot


def _add_body_shapes(robot: Description) -> None:
    """Primitives of about the extent of the robot. In a leg's frames x points left, y up, z forward."""
    robot.link("chassis").shapes.append(Shape("box", (0.28, 0.083, 0.075), (-0.02, 0.0, 0.02), color=GREY))
    for leg, _, side, _, _ in LEGS:
        hip = rod("cylinder", (0, 0, -0.05), (0, 0, 0.05), 0.045, color=DARK, role="visual")
        robot.link(f"{leg}_hip_motor").shapes += [hip, Shape("sphere", (0.045,), role="collision")]
        knee = (-0.02069 * side, -0.20833, -0.1422)
        upper = robot.link(f"{leg}_upper_leg")
        upper.shapes.append(rod("cylinder", (-0.03, 0, 0), (0.03, 0, 0), 0.055, color=DARK, role="visual"))
        upper.shapes.append(Shape("sphere", (0.05,), role="collision"))
        upper.shapes.append(rod("capsule", (-0.02069 * side, 0, 0), knee, 0.03, color=LIGHT))
        lower, shape = (
            robot.link(f"{leg}_lower_leg"),
            rod("capsule", (0, 0, 0), (0, -0.235, -0.0205), 0.016, color=DARK),
        )
        lower.shapes.append(shape)
        lower.inertia = combined([shape], mass=lower.mass)[2]
