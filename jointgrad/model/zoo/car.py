"""A small car with steering and four driven wheels: Qiao 2021, friction estimation."""

from __future__ import annotations

from typing import Any

from ..description import Description, Shape
from .primitives import ALONG_Y, combined

RED, DARK, GREY = (0.8, 0.15, 0.15, 1.0), (0.15, 0.15, 0.16, 1.0), (0.55, 0.57, 0.60, 1.0)
AXLE = 0.05  # height of the wheels' axles over base_link, m
WHEEL_BASE = 0.325
EFFORT: dict[str, Any] = {"effort_limit": 10.0, "velocity_limit": 100.0}


def racecar() -> Description:
    """Free base on two steering hinges and four wheels, 5.892 kg, six torque actuators; at z = 0 it stands on a floor.

    Figures: racecar.urdf of diffarticulated (MIT). It gives the 4 kg chassis's inertia to two 0.1 kg links as well and
    4e-6 kg m^2 to the laser of 0.13 kg: here those two are point masses of base_link and the laser is a uniform box.
    The cameras' 30 mg are in base_link; both steering hinges have limits of 1 rad; a wheel touches as a ball of its
    radius, as there.
    """
    robot = Description("racecar", base="free")
    mass, com, inertia = _chassis()
    robot.add_link("base_link", mass, com, inertia).shapes += [
        Shape("box", (0.2, 0.07, 0.03), (0.16, 0.0, AXLE + 0.005), role="visual", color=RED),
        Shape("box", (0.09, 0.055, 0.025), (0.1, 0.0, AXLE + 0.06), role="visual", color=RED),
        Shape("box", (0.0165, 0.0875, 0.015), (0.39, 0.0, AXLE + 0.04), color=DARK),
    ]
    box = Shape("box", (0.05, 0.05, 0.05), color=GREY)
    robot.add_link("laser", *combined([box], mass=0.13)).shapes.append(box)
    robot.add_joint("laser_joint", "fixed", "base_link", "laser", position=(0.265, 0.0, AXLE + 0.075))
    sides = (("left", 1), ("right", -1))
    for side, s in sides:
        _add_wheel(robot, f"{side}_rear_wheel", "base_link", s, (0.0, 0.1 * s, AXLE))
    for side, s in sides:
        hinge = f"{side}_steering_hinge"
        robot.add_link(hinge, 0.1, inertia=(4e-6,) * 3)
        at = (WHEEL_BASE, 0.1 * s, AXLE)
        robot.add_joint(f"{hinge}_joint", "revolute", "base_link", hinge, position=at, limit=(-1.0, 1.0), **EFFORT)
        robot.add_actuator(f"{side}_steering", f"{hinge}_joint", force_limit=(-10.0, 10.0))
        _add_wheel(robot, f"{side}_front_wheel", hinge, s, (0.0, 0.0, 0.0))
    return robot


def _chassis() -> tuple[float, tuple[float, ...], tuple[float, ...]]:
    """Mass, centre of mass and inertia of what is welded to base_link, but for the laser."""
    # base_link, chassis, three cameras: points; then the chassis proper
    points = ((0.1, 0, 0), (0.1, 0, AXLE), (1e-5, 0.39, AXLE + 0.04), (2e-5, 0.39, AXLE + 0.04), (4.0, 0.1477, AXLE))
    mass = sum(m for m, _, _ in points)
    x, z = (sum(p[0] * p[k] for p in points) / mass for k in (1, 2))
    xx = sum(m * (c - z) ** 2 for m, _, c in points)
    zz = sum(m * (a - x) ** 2 for m, a, _ in points)
    xz = -sum(m * (a - x) * (c - z) for m, a, c in points)
    # the two side cameras sit 0.06 m off the middle
    side = 2e-5 * 0.06**2
    return mass, (x, 0.0, z), (0.010609 + xx + side, 0.0, xz, 0.050409 + xx + zz, 0.0, 0.05865 + zz + side)


def _add_wheel(robot: Description, name: str, carrier: str, s: int, position: tuple[float, float, float]) -> None:
    centre = (0.0, 0.0225 * s, 0.0)
    robot.add_link(name, 0.34055, centre, (0.00026046, 0.00041226, 0.00026046)).shapes += [
        Shape("sphere", (0.05,), centre, role="collision", color=DARK),
        Shape("cylinder", (0.05, 0.0225), centre, ALONG_Y, role="visual", color=DARK),
    ]
    robot.add_joint(f"{name}_joint", "continuous", carrier, name, position=position, axis=(0, 1, 0), **EFFORT)
    robot.add_actuator(name, f"{name}_joint", force_limit=(-10.0, 10.0))
