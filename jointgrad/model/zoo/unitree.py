"""Unitree's A1 and Go2: four legs of three hinges (hip along x, thigh and calf along y), a foot welded to each calf."""

from __future__ import annotations

from ..description import Description, Shape
from .primitives import ALONG_Y, rod

# hip, thigh, calf: puts every foot under its hip
CROUCH = (0.0, 0.9, -1.8)
GREY, DARK, LIGHT = (0.55, 0.57, 0.60, 1.0), (0.2, 0.2, 0.22, 1.0), (0.85, 0.86, 0.88, 1.0)
PARTS = ("hip", "thigh", "calf")


def a1() -> Description:
    """Unitree A1: 13 moving bodies, 13.74 kg, twelve torque actuators of 33.5 N m; its trunk stands at z = 0.27 m.

    Figures: Unitree's a1_description (BSD-3), thigh and calf corrected (see below). Left out: the IMU's 1 g.
    """
    # That file gives the inertias of thigh and calf about their joint, and products with the other sign. For the calf this
    # is certain: no 0.166 kg within its 0.2 m can have more than 0.0017 kg m^2 about their centre (half at either end), and
    # 0.0030 are filed. For the thigh it follows from Go2's, of the same build and 1.14 times the mass: filed are products xz
    # of 0.34 and yz of 0.02 g m^2, there -0.29 and 0.81; moved to the centre of mass they are -0.25 and 0.60, and the calf
    # has Go2's 0.0011 kg m^2. The moments of trunk and hip would change by under 2 %; they are as filed.
    robot = Description("a1", base="free")
    trunk = robot.add_link(
        "trunk", 6.0, (0.0, 0.0041, -0.0005), (0.0158533, -3.66e-5, -6.11e-5, 0.0377999, -2.75e-5, 0.0456542)
    )
    trunk.shapes.append(Shape("box", (0.1335, 0.097, 0.057), color=GREY))
    trunk.shapes.append(Shape("box", (0.02, 0.06, 0.045), (0.235, 0.0, 0.0), role="visual", color=DARK))
    for leg, x, y in (("FR", 1, -1), ("FL", 1, 1), ("RR", -1, -1), ("RL", -1, 1)):
        hip = robot.add_link(
            f"{leg}_hip", 0.696, (-0.003311 * x, 0.000635 * y, 3.1e-5),
            (0.000469246, -9.409e-6 * x * y, -3.42e-7 * x, 0.00080749, -4.66e-7 * y, 0.000552929),
        )  # fmt: skip
        hip.shapes.append(Shape("cylinder", (0.046, 0.02), orientation=ALONG_Y, color=DARK))
        hip.shapes.append(Shape("cylinder", (0.041, 0.016), (0.0, 0.081 * y, 0.0), ALONG_Y, color=DARK))
        com = (-0.003237, -0.022327 * y, -0.027326)
        about_joint = (0.005529065, 4.825e-6 * y, 0.000343869, 0.005139339, 2.2448e-5 * y, 0.001367788)
        thigh = robot.add_link(f"{leg}_thigh", 1.013, com, _from_joint(1.013, com, about_joint))
        thigh.shapes.append(Shape("box", (0.017, 0.01225, 0.1), (0.0, 0.0, -0.1), color=LIGHT))
        com, about_joint = (0.006435, 0.0, -0.107388), (0.002997972, 0.0, -0.000141163, 0.003014022, 0.0, 3.2426e-5)
        calf = robot.add_link(f"{leg}_calf", 0.166, com, _from_joint(0.166, com, about_joint))
        calf.shapes.append(Shape("box", (0.008, 0.008, 0.1), (0.0, 0.0, -0.1), color=DARK))
        foot = robot.add_link(f"{leg}_foot", 0.06, inertia=(9.6e-6,) * 3)
        foot.shapes.append(Shape("sphere", (0.02,), color=DARK))
        places = (0.1805 * x, 0.047 * y, 0.0), (0.0, 0.0838 * y, 0.0), (0.0, 0.0, -0.2)
        limits = (-0.802851455917, 0.802851455917), (-1.0471975512, 4.18879020479), (-2.69653369433, -0.916297857297)
        _add_joints(robot, "trunk", leg, places, limits, (33.5,) * 3, (21.0,) * 3, damping=0.01, friction=0.2)
        robot.add_joint(f"{leg}_foot_joint", "fixed", f"{leg}_calf", f"{leg}_foot", position=(0.0, 0.0, -0.2))
    return robot


def _from_joint(mass: float, com: tuple[float, ...], figures: tuple[float, ...]) -> tuple[float, ...]:
    """Inertia about the centre of mass from moments about the joint and products that are integrals of xy, xz, yz."""
    x, y, z = com
    xx, xy, xz, yy, yz, zz = figures
    return (
        xx - mass * (y * y + z * z), mass * x * y - xy, mass * x * z - xz,
        yy - mass * (x * x + z * z), mass * y * z - yz, zz - mass * (x * x + y * y),
    )  # fmt: skip


def go2() -> Description:
    """Unitree Go2: 13 moving bodies, 16.085 kg, twelve torque actuators; its base stands at z = 0.29 m.

    Figures: Unitree's go2_description (BSD-3). The motors' rotors (89 g each) are welded to what carries them, as
    there. Left out: the head's 2 g, whose shapes belong to the base here, and massless frames; all calves have the
    right front one's shape.
    """
    robot = Description("go2", base="free")
    base = robot.add_link(
        "base", 6.921, (0.021112, 0.0, -0.005366), (0.02448, 0.00012166, 0.0014849, 0.098077, -3.12e-5, 0.107)
    )
    base.shapes += [
        Shape("box", (0.1881, 0.04675, 0.057), color=GREY),
        Shape("cylinder", (0.05, 0.045), (0.285, 0.0, 0.01), color=GREY),
        Shape("sphere", (0.047,), (0.293, 0.0, -0.06), color=DARK),
    ]
    for leg, x, y in (("FL", 1, 1), ("FR", 1, -1), ("RL", -1, 1), ("RR", -1, -1)):
        _add_go2_leg(robot, leg, x, y)
        places = (0.1934 * x, 0.0465 * y, 0.0), (0.0, 0.0955 * y, 0.0), (0.0, 0.0, -0.213)
        swing = (-1.5708, 3.4907) if x > 0 else (-0.5236, 4.5379)
        limits = (-1.0472, 1.0472), swing, (-2.7227, -0.83776)
        _add_joints(robot, "base", leg, places, limits, (23.7, 23.7, 45.43), (30.1, 30.1, 15.70))
        robot.add_joint(f"{leg}_foot_joint", "fixed", f"{leg}_calf", f"{leg}_foot", position=(0.0, 0.0, -0.213))
        rotors = (
            ("base", (0.11215 * x, 0.04675 * y, 0)),
            (f"{leg}_hip", (0, -0.00015 * y, 0)),
            (f"{leg}_thigh", (0, -0.03235 * y, 0)),
        )
        for part, (carrier, at) in zip(PARTS, rotors, strict=True):
            disc = (1.11842e-4, 5.9647e-5, 5.9647e-5) if part == "hip" else (5.9647e-5, 1.11842e-4, 5.9647e-5)
            robot.add_link(f"{leg}_{part}_rotor", 0.089, inertia=disc)
            robot.add_joint(f"{leg}_{part}_rotor_joint", "fixed", carrier, f"{leg}_{part}_rotor", position=at)
    return robot


def _add_go2_leg(robot: Description, leg: str, x: int, y: int) -> None:
    hip = robot.add_link(
        f"{leg}_hip", 0.678, (-0.0054 * x, 0.00194 * y, -0.000105),
        (0.00048, -3.01e-6 * x * y, 1.11e-6 * x, 0.000884, -1.42e-6 * y, 0.000596),
    )  # fmt: skip
    hip.shapes.append(Shape("cylinder", (0.046, 0.02), (0.0, 0.08 * y, 0.0), ALONG_Y, color=DARK))
    thigh = robot.add_link(
        f"{leg}_thigh", 1.152, (-0.00374, -0.0223 * y, -0.0327),
        (0.00584, 8.72e-5 * y, -0.000289, 0.0058, 0.000808 * y, 0.00103),
    )  # fmt: skip
    thigh.shapes.append(Shape("box", (0.017, 0.01225, 0.1065), (0.0, 0.0, -0.1065), color=LIGHT))
    calf = robot.add_link(
        f"{leg}_calf", 0.154, (0.00548, -0.000975 * y, -0.115),
        (0.00108, 3.4e-7 * y, 1.72e-5, 0.0011, 8.28e-6 * y, 3.29e-5),
    )  # fmt: skip
    calf.shapes += [
        rod("cylinder", (-0.0019, 0, -0.0012), (0.0219, 0, -0.1188), 0.013, color=DARK),
        rod("cylinder", (0.0216, 0, -0.1155), (0.0184, 0, -0.1805), 0.011, color=DARK),
        rod("cylinder", (0.0156, 0, -0.1745), (0.0004, 0, -0.2004), 0.0155, color=DARK),
    ]
    foot = robot.add_link(f"{leg}_foot", 0.04, inertia=(9.6e-6,) * 3)
    foot.shapes.append(Shape("sphere", (0.022,), (-0.002, 0.0, 0.0), color=DARK))


def _add_joints(robot, body, leg, places, limits, efforts, speeds, **passive) -> None:
    """Hip, thigh and calf of a leg, each with its motor."""
    parent = body
    for k, part in enumerate(PARTS):
        child, joint = f"{leg}_{part}", f"{leg}_{part}_joint"
        robot.add_joint(
            joint, "revolute", parent, child, position=places[k], axis=(1, 0, 0) if part == "hip" else (0, 1, 0),
            limit=limits[k], initial=CROUCH[k], effort_limit=efforts[k], velocity_limit=speeds[k], **passive,
        )  # fmt: skip
        robot.add_actuator(child, joint, force_limit=(-efforts[k], efforts[k]))
        parent = child
