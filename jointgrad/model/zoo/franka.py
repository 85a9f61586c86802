"""A Franka-like arm with a gripper and a ball to throw: Qiao 2021, ball throw."""

from __future__ import annotations

import math

from ..description import Description, Shape
from .primitives import add_solid_link, combined, rod

WHITE, DARK, BLUE = (0.92, 0.92, 0.93, 1.0), (0.25, 0.26, 0.28, 1.0), (0.15, 0.4, 0.85, 1.0)
BACK, FORTH = (math.sqrt(0.5), -math.sqrt(0.5), 0.0, 0.0), (math.sqrt(0.5), math.sqrt(0.5), 0.0, 0.0)
STRAIGHT = (1.0, 0.0, 0.0, 0.0)

# joint's place on the link before, its turn about x, limit, effort, speed; mass and centre of mass of the link it moves
JOINTS = (
    ((0, 0, 0.333), STRAIGHT, (-2.9671, 2.9671), 87.0, 2.175, 2.7, (0, -0.04, -0.05)),
    ((0, 0, 0), BACK, (-1.8326, 1.8326), 87.0, 2.175, 2.73, (0, -0.04, 0.06)),
    ((0, -0.316, 0), FORTH, (-2.9671, 2.9671), 87.0, 2.175, 2.04, (0.01, 0.01, -0.05)),
    ((0.0825, 0, 0), FORTH, (-3.1416, 0.0), 87.0, 2.175, 2.08, (-0.03, 0.03, 0.02)),
    ((-0.0825, 0.384, 0), BACK, (-2.9671, 2.9671), 12.0, 2.61, 3.0, (0, 0.04, -0.12)),
    ((0, 0, 0), FORTH, (-0.0873, 3.8223), 12.0, 2.61, 1.3, (0.04, 0, 0)),
    ((0.088, 0, 0), FORTH, (-2.9671, 2.9671), 12.0, 2.61, 0.2, (0, 0, 0.08)),
)


def franka_arm() -> Description:
    """Seven hinges and two finger slides on a fixed base, 23.76 kg, nine force actuators, and a free ball of 50 g.

    Figures: panda.urdf and sphere2.urdf of diffarticulated (Apache-2.0): places, masses, centres of mass, limits. Its
    inertias are 0.1 kg m^2 for every link and 1 kg m^2 for the ball, of no body of that size: here they follow from
    mass and shapes. The shapes are capsules and boxes of ours for its meshes; the fingers' box is taken as half
    extents as in that engine, for only so they hold the ball. Its massless links are left out; "grasp" is a site of
    the hand. Fingers start 2 cm out, the ball in the middle between them, where the experiment starts it 8 mm inside
    the left finger.
    """
    robot = Description("franka_arm")
    shapes = _arm_shapes()
    _add_link(robot, "link0", 2.9, (0.0, 0.0, 0.05), shapes[0])
    for k, (place, turn, limit, effort, speed, mass, com) in enumerate(JOINTS, start=1):
        _add_link(robot, f"link{k}", mass, com, shapes[k])
        _add_driven(robot, f"joint{k}", "revolute", f"link{k - 1}", f"link{k}", limit, effort, speed, place, turn)
    _add_link(robot, "hand", 0.81, (0.0, 0.0, 0.04), [Shape("box", (0.025, 0.1, 0.033), (0, 0, 0.033), color=WHITE)])
    eighth = (math.cos(math.pi / 8), 0.0, 0.0, -math.sin(math.pi / 8))
    robot.add_joint("hand_joint", "fixed", "link7", "hand", position=(0.0, 0.0, 0.107), orientation=eighth)
    robot.link("hand").sites.append(("grasp", (0.0, 0.0, 0.105), STRAIGHT))
    for number, (side, s) in enumerate((("left", 1), ("right", -1)), start=1):
        finger = f"{side}_finger"
        _add_link(robot, finger, 3.0, (0.0, 0.01 * s, 0.02), [Shape("box", (0.01, 0.01, 0.05), color=DARK)])
        _add_driven(robot, f"finger_joint{number}", "prismatic", "hand", finger, (0.0, 0.04), 20.0, 0.2, (0, 0, 0.0584))
        joint = robot.joint(f"finger_joint{number}")
        joint.axis, joint.initial = (0, s, 0), 0.02
    add_solid_link(robot, "ball", [Shape("sphere", (0.01,), color=BLUE)], mass=0.05)
    robot.add_joint("ball_joint", "free", None, "ball", position=(0.088, 0.0, 0.82423))
    return robot


def _add_link(robot: Description, name: str, mass: float, com: tuple[float, ...], shapes: list[Shape]) -> None:
    """Mass and centre of mass as given; the inertia of its shapes with that mass."""
    robot.add_link(name, mass, com, combined(shapes, mass=mass)[2]).shapes += shapes


def _add_driven(robot, name, kind, parent, child, limit, effort, speed, position, orientation=STRAIGHT) -> None:
    """A joint along z with its motor."""
    robot.add_joint(
        name, kind, parent, child, position=position, orientation=orientation, axis=(0, 0, 1), limit=limit, initial=0.0,
        effort_limit=effort, velocity_limit=speed,
    )  # fmt: skip
    robot.add_actuator(name, name, force_limit=(-effort, effort))


def _arm_shapes() -> list[list[Shape]]:
    """Of the base and the seven links, each in its frame."""

    def white(start, end, radius):
        return rod("capsule", start, end, radius, color=WHITE)

    def dark(start, end, radius):
        return rod("cylinder", start, end, radius, color=DARK)

    return [
        [rod("cylinder", (0, 0, 0), (0, 0, 0.14), 0.09, color=WHITE)],
        [white((0, 0, -0.15), (0, 0, -0.04), 0.06), dark((0, -0.065, 0), (0, 0.065, 0), 0.058)],
        [white((0, -0.06, 0), (0, -0.18, 0), 0.06)],
        [white((0, 0, -0.09), (0, 0, -0.04), 0.06), white((0, 0, -0.03), (0.0825, 0, 0), 0.05),
         dark((0.0825, -0.06, 0), (0.0825, 0.06, 0), 0.052)],
        [white((0, 0, 0), (-0.0825, 0.07, 0), 0.05), white((-0.0825, 0.07, 0), (-0.0825, 0.11, 0), 0.055)],
        # slim and straight: the hand hangs close beside it at the start, where all hinges are at zero
        [white((0, 0, -0.24), (0, 0, -0.05), 0.037), dark((0, -0.055, 0), (0, 0.07, 0), 0.045)],
        [white((0.01, 0, 0), (0.088, 0, 0), 0.045)],
        [dark((0, 0, 0.02), (0, 0, 0.107), 0.042)],
    ]  # fmt: skip
