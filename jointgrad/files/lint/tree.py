"""Which links move together, what hangs on what, and where everything is at the start."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...model.arrays import SPHERICAL
from ...model.description import Description, Joint
from ...model.initial import KINDS, WORLD, Place, moved, placed
from ...model.ranges import unit
from .solids import tensor


@dataclass
class Group:
    """Links that fixed joints weld together. `top` is None for what is welded to the world."""

    top: str | None
    parent: str | None
    links: list[str]
    joints: list[Joint]  # that move it; none: the world, or a root of which the file does not say whether it floats


class Tree:
    """Groups by their top link, in an order in which parents come first."""

    def __init__(self, robot: Description) -> None:
        self.robot = robot
        self.joints: dict[str, list[Joint]] = {name: [] for name in robot.links}
        for joint in robot.joints.values():
            self.joints[joint.child].append(joint)
        self.groups: dict[str | None, Group] = {None: Group(None, None, [], [])}
        self.group_of: dict[str | None, str | None] = {None: None}
        self.places: dict[str | None, Place] = {None: WORLD}
        self.axes: dict[str, Place] = {}  # of joints: the frame the axis is given in, and a point of it
        for name in self._parents_first():
            self._add(name)

    def _parents_first(self) -> list[str]:
        below: dict[str | None, list[str]] = {}
        for name, joints in self.joints.items():
            below.setdefault(joints[0].parent if joints else None, []).append(name)
        order: list[str] = []
        stack = list(reversed(below.get(None, [])))
        while stack:
            order.append(stack.pop())
            stack += reversed(below.get(order[-1], []))
        return order

    def _add(self, name: str) -> None:
        joints = self.joints[name]
        parent = joints[0].parent if joints else None
        place = self.places[parent]
        for joint in joints:
            place = self._moved(place, joint)
        self.places[name] = place
        moving = [joint for joint in joints if joint.kind != "fixed"]
        if joints and not moving:
            self.group_of[name] = self.group_of[parent]
            self.groups[self.group_of[parent]].links.append(name)
        else:
            self.group_of[name] = name
            self.groups[name] = Group(name, self.group_of[parent], [name], moving)

    def _moved(self, place: Place, joint: Joint) -> Place:
        """The frame after a joint at its initial position; planar and universal joints are taken at zero."""
        place = R, p = placed(place, joint.position, joint.orientation)
        anchor = np.asarray(joint.anchor, dtype=np.float64)
        self.axes[joint.name] = R, p + R @ anchor
        if joint.kind in ("revolute", "continuous", "prismatic"):
            start = 0.0 if joint.initial is None else float(np.ravel(joint.initial)[0])
            if not np.any(joint.axis) or not math.isfinite(start):
                return place
            return moved(place, KINDS[joint.kind], unit(joint.axis), start, anchor)
        if joint.kind == "spherical" and joint.initial is not None and np.size(joint.initial) == 4:
            return moved(place, SPHERICAL, None, np.ravel(joint.initial), anchor)
        return place

    def mass(self, group: Group) -> float:
        return sum(float(self.robot.links[name].mass) for name in group.links)

    def carried_mass(self) -> dict[str | None, float]:
        """Mass of each group and of all that hangs on it."""
        total = {top: self.mass(group) for top, group in self.groups.items()}
        for top, group in reversed(list(self.groups.items())):
            if top is not None:
                total[group.parent] += total[top]
        return total

    def inertia_about(self, joint: Joint) -> float:
        """What a scalar joint feels of its own group: kg m^2 about the axis, or kg along it."""
        group = self.groups[self.group_of[joint.child]]
        if joint.kind == "prismatic":
            return self.mass(group)
        R, point = self.axes[joint.name]
        axis = R @ np.asarray(joint.axis, dtype=np.float64)
        axis = axis / np.linalg.norm(axis)
        total = 0.0
        for name in group.links:
            link, (turn, p) = self.robot.links[name], self.places[name]
            arm = np.cross(axis, p + turn @ np.asarray(link.com, dtype=np.float64) - point)
            total += float(axis @ turn @ tensor(link.inertia) @ turn.T @ axis + link.mass * arm @ arm)
        return total
