"""Pendulums and the cart-pole: fixed to the world, a torque at every joint."""

from __future__ import annotations

from ..description import Description


def pendulum(n: int = 1, damping: float = 0.0, torque_limit: float = float("inf")) -> Description:
    """The n-link pendulum of Qiao 2021: links of 0.5 m along y, horizontal at the start, turning about x; a light tip."""
    robot = Description(f"pendulum{n}")
    for i in range(n):
        heavy = (2.16, (0.00539427, 0.0048979, 0.00311573)) if i else (1.0, (0.00494875, 0.00494174, 0.002219))
        robot.add_link(f"link{i}", heavy[0], (0.0, 0.5, 0.0), heavy[1])
        parent = f"link{i - 1}" if i else None
        at = (0.0, 0.5, 0.0) if i else (0.0, 0.0, 0.0)
        robot.add_joint(f"joint{i}", "continuous", parent, f"link{i}", position=at, axis=(1, 0, 0), damping=damping)
        robot.add_actuator(f"motor{i}", f"joint{i}", control_limit=(-torque_limit, torque_limit))
    robot.add_link("tip", 0.01, inertia=(1e-4, 1e-4, 1e-4))
    robot.add_joint("tip_joint", "fixed", f"link{n - 1}", "tip", position=(0.0, 0.5, 0.0))
    return robot


def double_pendulum(
    lengths: tuple[float, float] = (0.5, 0.5),
    masses: tuple[float, float] = (1.0, 1.0),
    damping: tuple[float, float] = (0.0, 0.0),
) -> Description:
    """Two point masses on massless rods, hanging along -z, turning about y; both joints driven."""
    robot = Description("double_pendulum")
    for i, (length, mass) in enumerate(zip(lengths, masses, strict=True)):
        robot.add_link(f"link{i}", mass, (0.0, 0.0, -length))
        parent, at = (f"link{i - 1}", (0.0, 0.0, -lengths[0])) if i else (None, (0.0, 0.0, 0.0))
        robot.add_joint(f"joint{i}", "continuous", parent, f"link{i}", position=at, axis=(0, 1, 0), damping=damping[i])
        robot.add_actuator(f"motor{i}", f"joint{i}")
    return robot


def cart_pole(cart_mass: float = 1.0, pole_mass: float = 0.1, pole_length: float = 1.0) -> Description:
    """A cart that slides along x, pushed by its only actuator, and a uniform pole on it, upright at zero."""
    robot = Description("cart_pole")
    robot.add_link("cart", cart_mass, inertia=(0.02417, 0.02417, 0.04167))
    slim = pole_mass * pole_length**2 / 12
    robot.add_link("pole", pole_mass, (0.0, 0.0, pole_length / 2), (slim, slim, 4e-5))
    robot.add_joint("slider", "prismatic", None, "cart", axis=(1, 0, 0))
    robot.add_joint("hinge", "continuous", "cart", "pole", axis=(0, 1, 0))
    robot.add_actuator("push", "slider")
    return robot
