"""A chain of flat boxes that swims in the plane: NeuralSim's swimmer, dm_control's before it."""

from __future__ import annotations

from ..description import Description, Shape
from .primitives import ALONG_Y, combined

GREEN = (0.2, 0.55, 0.4, 1.0)
HALF_LENGTH = 0.05


def swimmer(n: int = 5) -> Description:
    """A head and n - 1 segments of 10 g and 0.1 m along y, on a planar root; torques within 1 N m at joints between.

    Figures: TDS's swimmer05 (MJCF; dm_control's swimmer, Apache-2.0). Inertias are those of the boxes, 8.337e-6 kg m^2
    about the axis of motion: the URDF beside that file has y and z exchanged. As there, the joints' range of 72 degrees
    for n = 5 is not enforced; the medium is not part of the robot.
    """
    if n < 1:
        raise ValueError(f"a swimmer has a head at least, but n is {n}")
    robot = Description(f"swimmer{n}")
    names = ["head", *(f"segment_{k}" for k in range(n - 1))]
    for k, name in enumerate(names):
        box = Shape("box", (0.001, HALF_LENGTH, 0.01), color=GREEN)
        skin = Shape("capsule", (0.01, HALF_LENGTH), orientation=ALONG_Y, role="visual", color=GREEN)
        robot.add_link(name, *combined([box], mass=0.01)).shapes += [box, skin]
        if k == 0:
            robot.add_joint("root", "planar", None, name, position=(0.0, 0.0, 0.05), anchor=(0.0, -HALF_LENGTH, 0.0))
            continue
        robot.add_joint(
            f"joint_{k - 1}", "continuous", names[k - 1], name, position=(0.0, 2 * HALF_LENGTH, 0.0), axis=(0, 0, 1),
            anchor=(0.0, -HALF_LENGTH, 0.0), armature=1e-6,
        )  # fmt: skip
        robot.add_actuator(f"motor_{k - 1}", f"joint_{k - 1}", control_limit=(-1.0, 1.0))
    brow = Shape("ellipsoid", (0.02, 0.04, 0.017), (0.0, -0.022, 0.0), role="visual", color=GREEN)
    robot.link("head").shapes.append(brow)
    return robot
