"""Pendulums, the cart-pole and the golf club: fixed to the world, moved by forces at their joints."""

from __future__ import annotations

from ..description import Description, Shape
from .primitives import add_solid_link

STEEL, ORANGE, GREEN, WHITE = (
    (0.5, 0.55, 0.62, 1.0),
    (0.9, 0.5, 0.15, 1.0),
    (0.3, 0.55, 0.3, 1.0),
    (0.95, 0.95, 0.95, 1.0),
)
LINK = 0.5  # length of a pendulum's and a club's link, m
BALL = 0.04  # radius of a double pendulum's masses, m
# mass and inertia of the first link and of those behind it
FIRST, BEHIND = (1.0, (0.00494875, 0.00494174, 0.002219)), (2.16, (0.00539427, 0.0048979, 0.00311573))


def pendulum(n: int = 1, damping: float = 0.0, torque_limit: float = float("inf")) -> Description:
    """The n-link pendulum of Qiao 2021: links of 0.5 m along y, horizontal at the start, turning about x; a light tip."""
    robot = Description(f"pendulum{n}")
    for i in range(n):
        mass, inertia = BEHIND if i else FIRST
        link = robot.add_link(f"link{i}", mass, (0.0, LINK, 0.0), inertia)
        link.shapes.append(Shape("sphere", (0.05,), (0.0, LINK, 0.0), color=ORANGE))
        parent = f"link{i - 1}" if i else None
        at = (0.0, LINK, 0.0) if i else (0.0, 0.0, 0.0)
        robot.add_joint(f"joint{i}", "continuous", parent, f"link{i}", position=at, axis=(1, 0, 0), damping=damping)
        robot.add_actuator(f"motor{i}", f"joint{i}", control_limit=(-torque_limit, torque_limit))
    robot.add_link("tip", 0.01, inertia=(1e-4, 1e-4, 1e-4))
    robot.add_joint("tip_joint", "fixed", f"link{n - 1}", "tip", position=(0.0, LINK, 0.0))
    return robot


def double_pendulum(
    lengths: tuple[float, float] = (0.5, 0.5),
    masses: tuple[float, float] = (1.0, 1.0),
    damping: tuple[float, float] = (0.0, 0.0),
) -> Description:
    """Two balls of 4 cm on massless rods, hanging along -z, turning about y; both joints driven."""
    robot = Description("double_pendulum")
    for i, (length, mass) in enumerate(zip(lengths, masses, strict=True)):
        # mass points would feel 0.3 % less inertia at the default lengths, but other tools refuse bodies without any
        link = robot.add_link(f"link{i}", mass, (0.0, 0.0, -length), (0.4 * mass * BALL**2,) * 3)
        link.shapes.append(Shape("sphere", (BALL,), (0.0, 0.0, -length), role="visual", color=ORANGE))
        parent, at = (f"link{i - 1}", (0.0, 0.0, -lengths[0])) if i else (None, (0.0, 0.0, 0.0))
        robot.add_joint(f"joint{i}", "continuous", parent, f"link{i}", position=at, axis=(0, 1, 0), damping=damping[i])
        robot.add_actuator(f"motor{i}", f"joint{i}")
    return robot


def cart_pole(cart_mass: float = 1.0, pole_mass: float = 0.1, pole_length: float = 1.0) -> Description:
    """A cart that slides along x, pushed by its only actuator, and a uniform pole on it, upright at zero."""
    robot = Description("cart_pole")
    cart = robot.add_link("cart", cart_mass, inertia=(0.02417, 0.02417, 0.04167))
    cart.shapes.append(Shape("box", (0.25, 0.25, 0.1), role="visual", color=STEEL))
    slim = pole_mass * pole_length**2 / 12
    pole = robot.add_link("pole", pole_mass, (0.0, 0.0, pole_length / 2), (slim, slim, 4e-5))
    half = (0.025, 0.025, pole_length / 2)
    pole.shapes.append(Shape("box", half, (0.0, 0.0, pole_length / 2), role="visual", color=ORANGE))
    robot.add_joint("slider", "prismatic", None, "cart", axis=(1, 0, 0))
    robot.add_joint("hinge", "continuous", "cart", "pole", axis=(0, 1, 0))
    robot.add_actuator("push", "slider")
    return robot


def golf(damping: float = 0.0) -> Description:
    """The golf club of Qiao 2021: two links of 0.5 m that turn about x, horizontal at first; a tee, a ball of 0.5 kg.

    Figures: p2.urdf and sphere.urdf of diffarticulated (Apache-2.0). The ball's inertia is that of a ball, there 1 kg
    m^2, and the tee's that of its box. Boxes are taken as half extents as in that engine, for only so the club spans
    its link. Joint damping and friction are 1 in the file and unread by that engine: damping is an argument here. The
    ball starts 2.5 cm over its rest on the tee, as there. Both links have their mass at their end. The first has no
    shape there and is drawn as thick as the club.
    """
    robot = Description("golf")
    for i, (mass, inertia) in enumerate((FIRST, BEHIND)):
        robot.add_link(f"link{i}", mass, (0.0, LINK, 0.0), inertia)
        parent, at = (f"link{i - 1}", (0.0, LINK, 0.0)) if i else (None, (0.0, 0.0, 0.0))
        robot.add_joint(f"joint{i}", "continuous", parent, f"link{i}", position=at, axis=(1, 0, 0), damping=damping)
        robot.add_actuator(f"motor{i}", f"joint{i}")
    along = (0.0, LINK / 2, 0.0)
    robot.link("link0").shapes.append(Shape("box", (0.025, LINK / 2, 0.025), along, role="visual", color=STEEL))
    robot.link("link1").shapes.append(Shape("box", (0.025, LINK / 2, 0.025), along, color=ORANGE))
    add_solid_link(robot, "tee", [Shape("box", (0.025, 0.025, 0.025), color=GREEN)], mass=1.0)
    robot.add_joint("tee_joint", "fixed", None, "tee", position=(0.0, -0.1, -0.925))
    add_solid_link(robot, "ball", [Shape("sphere", (0.025,), color=WHITE)], mass=0.5)
    robot.add_joint("ball_joint", "free", None, "ball", position=(0.0, -0.1, -0.85))
    return robot
