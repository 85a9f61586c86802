"""Joints that move no mass: refused, welded where they stand, or given the mass of their links' shapes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .constraints import JointCoupling
from .description import Description, Joint
from .errors import UnphysicalWarning, warn_caller
from .parts import plane_axes
from .ranges import unit, unit_quaternion
from .rotations import rotation, turned_quaternion
from .solids import matter_of_shapes

DENSITY = 1000.0  # kg/m^3, that of water, as MuJoCo takes it


def with_mass(robot: Description, choice: str) -> Description:
    """The robot, its joints that carry no mass welded, or their links given one; the same robot where there are none."""
    if choice == "refuse" or not massless_joints(robot):
        return robot
    robot = robot.copy()
    light = massless_joints(robot)
    if choice == "estimate":
        _tell(f"given the mass of their shapes at {DENSITY:g} kg/m^3", given_mass(robot, light))
        light = massless_joints(robot)
    if light:
        why = "welded where they stand, for they carry no mass" + (" and no shape" if choice == "estimate" else "")
        _tell(why, (joint.name for joint in light))
        _weld(robot, light)
    return robot


def massless_joints(robot: Description) -> list[Joint]:
    """Moving joints that would be accelerated without limit: neither they nor what they carry has mass or armature."""
    heavy = {name for name, link in robot.links.items() if link.mass > 0 or any(link.inertia)}
    while new := {str(j.parent) for j in robot.joints.values() if j.parent is not None and j.child in heavy} - heavy:
        heavy |= new
    return [j for j in robot.joints.values() if j.kind != "fixed" and j.child not in heavy and not j.armature > 0]


def _tell(what: str, names: Iterable[str]) -> None:
    listed = sorted(names)
    if listed:
        shown = ", ".join(f'"{n}"' for n in listed[:6]) + (f" and {len(listed) - 6} more" if len(listed) > 6 else "")
        warn_caller(f"{what}: {shown}", UnphysicalWarning)


def given_mass(robot: Description, light: list[Joint]) -> list[str]:
    """Links below these joints get the mass of their shapes; the names of those that have some."""
    below = {joint.child for joint in light}
    while new := {j.child for j in robot.joints.values() if j.parent in below} - below:
        below |= new
    found = []
    for name in sorted(below):
        link = robot.links[name]
        mass, com, inertia = matter_of_shapes(link.shapes, DENSITY)
        if mass > 0:
            link.mass, link.com, link.inertia = mass, com, inertia
            found.append(name)
    return found


def _weld(robot: Description, light: list[Joint]) -> None:
    names = {joint.name for joint in light}
    for joint in light:
        position, orientation = _pose_at_start(joint)
        joint.kind, joint.position, joint.orientation = "fixed", position, orientation
        joint.mimic, joint.initial, joint.rest, joint.anchor = None, None, None, (0.0, 0.0, 0.0)
    for name in [a.name for a in robot.actuators.values() if a.joint in names]:
        del robot.actuators[name]
    for joint in robot.joints.values():
        if joint.mimic and joint.mimic[0] in names:
            joint.mimic = None
    robot.constraints = [
        c for c in robot.constraints if not (isinstance(c, JointCoupling) and {c.joint, c.leader} & names)
    ]
    for tendon in robot.tendons.values():
        tendon.terms = [term for term in tendon.terms if term[0] not in names]
    gone = {name for name, tendon in robot.tendons.items() if not tendon.terms}
    for name in gone:
        del robot.tendons[name]
    for name in [a.name for a in robot.actuators.values() if a.tendon in gone]:
        del robot.actuators[name]


def _pose_at_start(joint: Joint) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Position and quaternion of a joint's child where the joint starts."""
    owner = f'joint "{joint.name}"'
    place = unit_quaternion(owner, "orientation", joint.orientation)
    shift, turn = _motion_at_start(joint)
    anchor = np.asarray(joint.anchor, dtype=np.float64)
    shift = shift + anchor - rotation(turn) @ anchor
    position = np.asarray(joint.position, dtype=np.float64) + rotation(place) @ shift
    return tuple(map(float, position)), turned_quaternion(place, turn)


def _motion_at_start(joint: Joint) -> tuple[np.ndarray, tuple[float, ...]]:
    """How a joint has moved at its initial coordinates."""
    none: tuple[np.ndarray, tuple[float, ...]] = (np.zeros(3), (1.0, 0.0, 0.0, 0.0))
    if joint.initial is None:
        return none
    values: Any = np.atleast_1d(np.asarray(joint.initial, dtype=np.float64))
    if joint.kind == "spherical":
        return np.zeros(3), unit_quaternion(f'joint "{joint.name}"', "initial", values)
    if joint.kind == "prismatic":
        return unit(joint.axis) * values[0], none[1]
    if joint.kind == "planar":
        x, y, normal = plane_axes(joint.axis)
        return values[0] * x + values[1] * y, _about(normal, values[2])
    if joint.kind == "universal":
        return np.zeros(3), turned_quaternion(
            _about(unit(joint.axis), values[0]), _about(unit(joint.second_axis), values[1])
        )
    return (np.zeros(3), _about(unit(joint.axis), values[0])) if joint.kind != "free" else none


def _about(axis: np.ndarray, angle: float) -> tuple[float, ...]:
    return (float(np.cos(angle / 2)), *(float(x) for x in np.sin(angle / 2) * axis))
