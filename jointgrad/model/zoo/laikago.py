"""Laikago, the quadruped of Qiao 2021: 13 moving bodies, a toe welded to each lower leg. Figures: TDS's laikago_toes_zup."""

from __future__ import annotations

from ..description import Description

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


def laikago() -> Description:
    """Free base; twelve torque actuators in the order hip, upper leg, lower leg of FR, FL, RR, RL; the joints start in a stance."""
    robot = Description("laikago", base="free")
    robot.add_link("chassis", 13.715, inertia=(0.22, 0.431, 0.565))
    for leg, x, side, xx, zz in LEGS:
        hip, upper, lower, toe = f"{leg}_hip_motor", f"{leg}_upper_leg", f"{leg}_lower_leg", f"toe{leg}"
        robot.add_link(hip, 1.095, (-0.02 * side, 0.0, 0.0), (0.002, 0.002, 0.001))
        robot.add_link(upper, 1.527, (0.0, -0.04, -0.04), (xx, 0.007, zz))
        robot.add_link(lower, 0.241, (0.0, -0.16, -0.02), (0.002, 0.002, 0.002))
        robot.add_link(toe, 0.1, inertia=(2.5e-5, 2.5e-5, 2.5e-5))
        robot.add_joint(
            f"{leg}_hip_joint", "continuous", "chassis", hip, position=(x, 0.0817145 * side, -0.03),
            orientation=HIP_ORIENTATION, axis=(0, 0, side), initial=STANCE[0],
        )  # fmt: skip
        robot.add_joint(
            f"{leg}_upper_joint", "continuous", hip, upper, position=(0.055855 if side > 0 else -0.053565, 0, 0),
            axis=(1, 0, 0), initial=STANCE[1],
        )  # fmt: skip
        robot.add_joint(
            f"{leg}_lower_joint", "continuous", upper, lower, position=(-0.02069 * side, -0.20833, -0.1422),
            axis=(1, 0, 0), initial=STANCE[2],
        )  # fmt: skip
        robot.add_joint(f"{leg}_toe_joint", "fixed", lower, toe, position=(0, -0.25, -0.022))
        for part in ("hip", "upper", "lower"):
            robot.add_actuator(f"{leg}_{part}", f"{leg}_{part}_joint", force_limit=(-100.0, 100.0))
    return robot
