"""From robots to lists: every joint as a chain of primitive ones, every link on the frame that carries it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .arrays import FIXED, FREE, N_Q, PRISMATIC, REVOLUTE, SPHERICAL
from .checks import check_actuator, check_joint, check_tendon
from .description import Actuator, Description, Joint, Link, Tendon
from .errors import ModelError
from .initial import initial_poses
from .ranges import unit, unit_quaternion
from .rotations import rotation, turned_quaternion


@dataclass
class Frame:
    """One primitive joint and the frame it carries."""

    name: str
    kind: int
    parent: int | None
    joint: Joint | None = None
    position: Any = (0.0, 0.0, 0.0)
    orientation: Any = (1.0, 0.0, 0.0, 0.0)
    axis: Any = (0.0, 0.0, 1.0)
    initial: Any = 0.0
    rest: Any = 0.0
    mimic: tuple[float, float] = (0.0, 0.0)


@dataclass
class PlacedRobot:
    """A robot and where it stands in its world."""

    robot: Description
    prefix: str
    position: Sequence[float]
    orientation: Sequence[float]
    base: str

    def pose_of(self, joint: Joint) -> tuple[float, ...]:
        """Position and quaternion in the world of a joint that hangs on it."""
        return _pose_in_world(self, joint)


@dataclass
class WorldParts:
    """The world as flat lists, in the order in which the engine will know them."""

    frames: list[Frame] = field(default_factory=list)
    links: list[tuple[str, Link, int]] = field(default_factory=list)
    frame_of_joint: dict[str, list[int]] = field(default_factory=dict)
    actuators: list[tuple[str, str, Actuator]] = field(default_factory=list)
    tendons: list[tuple[str, str, Tendon]] = field(default_factory=list)  # with the prefix of their robot

    @functools.cached_property
    def poses(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Rotation and position of every frame where the world starts; ask when all frames are listed."""
        return initial_poses(self.frames)

    @functools.cached_property
    def frame_of_link(self) -> dict[str, int]:
        return {name: frame for name, _, frame in self.links}


def add_robot(placed: PlacedRobot, parts: WorldParts) -> None:
    robot, prefix = placed.robot, placed.prefix
    for joint in robot.joints.values():
        check_joint(joint, robot)
    joints_of: dict[str, list[Joint]] = {name: [] for name in robot.links}
    for joint in robot.joints.values():
        joints_of[joint.child].append(joint)
    children: dict[str | None, list[str]] = {name: [] for name in (*robot.links, None)}
    for child, joints in joints_of.items():
        parents = {j.parent for j in joints}
        if len(parents) > 1:
            named = ", ".join(f'"{p}"' for p in sorted(map(str, parents)))
            raise ModelError(f'link "{child}" has joints to several parents ({named}); a tree has one parent per link')
        children[parents.pop() if parents else None].append(child)
    seen: dict[str, int] = {}
    stack = list(reversed(children[None]))
    while stack:
        name = stack.pop()
        seen[name] = _add_link(placed, robot.links[name], joints_of[name], seen, parts)
        stack += reversed(children[name])
    lost = [name for name in robot.links if name not in seen]
    if lost:
        raise ModelError(
            f'robot "{robot.name}" has a cycle: link "{lost[0]}" is reached from no root; remove one joint of the loop'
        )
    for actuator in robot.actuators.values():
        check_actuator(actuator, robot)
        parts.actuators.append((prefix + actuator.name, prefix + (actuator.tendon or actuator.joint), actuator))
    for tendon in robot.tendons.values():
        check_tendon(tendon, robot)
        parts.tendons.append((prefix + tendon.name, prefix, tendon))


def _add_link(placed: PlacedRobot, link: Link, joints: list[Joint], seen: dict[str, int], parts: WorldParts) -> int:
    """Frames of a link's joints, then the link; returns the frame that carries it."""
    prefix = placed.prefix
    if not joints:
        kind = FREE if placed.base == "free" else FIXED
        base = Frame(f"{prefix}{link.name}.base", kind, None, None, placed.position, placed.orientation)
        if kind == FREE:
            base.initial = base.rest = (*placed.position, *placed.orientation)
        parts.frames.append(base)
    for number, joint in enumerate(joints):
        parent = seen[joint.parent] if joint.parent is not None else None
        if number:
            parent = len(parts.frames) - 1
        elif joint.parent is None and joint.kind != "free":
            parts.frames.append(
                Frame(f"{prefix}{joint.name}.base", FIXED, None, None, placed.position, placed.orientation)
            )
            parent = len(parts.frames) - 1
        first = len(parts.frames)
        parts.frames += _primitives(joint, prefix, parent, first, placed)
        if any(joint.anchor) and joint.kind != "free":
            back = _back_from_anchor(joint, prefix, parts.frames[first], len(parts.frames) - 1)
            parts.frames.append(back)
        parts.frame_of_joint[prefix + joint.name] = list(range(first, len(parts.frames)))
    parts.links.append((prefix + link.name, link, len(parts.frames) - 1))
    return len(parts.frames) - 1


def _primitives(joint: Joint, prefix: str, parent: int | None, first: int, placed: PlacedRobot) -> list[Frame]:
    """The chain of primitive joints that a joint stands for."""
    name = prefix + joint.name
    if joint.kind in ("spherical", "free"):
        return [_turning(joint, name, parent, placed)]
    parts = _scalar_parts(joint)
    start, rest = _numbers(joint, len(parts))
    chain = []
    for k, (suffix, kind, axis) in enumerate(parts):
        frame = Frame(name + suffix, kind, parent if k == 0 else first + k - 1, joint, axis=axis)
        frame.initial, frame.rest = start[k], rest[k]
        chain.append(frame)
    chain[0].position, chain[0].orientation = joint.position, joint.orientation
    return chain


def _back_from_anchor(joint: Joint, prefix: str, first: Frame, parent: int) -> Frame:
    """A joint that turns about a point of the child's frame: it is placed there, and the child's frame back from it."""
    anchor = np.asarray(joint.anchor, dtype=np.float64)
    turn = rotation(unit_quaternion(f'joint "{joint.name}"', "orientation", joint.orientation))
    first.position = tuple(np.asarray(joint.position, dtype=np.float64) + turn @ anchor)
    return Frame(f"{prefix}{joint.name}.anchor", FIXED, parent, None, tuple(-anchor))


def _scalar_parts(joint: Joint) -> list[tuple[str, int, Any]]:
    """What to append to the name, kind and axis of each primitive."""
    if joint.kind == "planar":
        x, y, normal = plane_axes(joint.axis)
        return [(".x", PRISMATIC, x), (".y", PRISMATIC, y), (".turn", REVOLUTE, normal)]
    if joint.kind == "universal":
        return [(".first", REVOLUTE, joint.axis), (".second", REVOLUTE, joint.second_axis)]
    kind = {"fixed": FIXED, "prismatic": PRISMATIC}.get(joint.kind, REVOLUTE)
    return [("", kind, joint.axis)]


def _turning(joint: Joint, name: str, parent: int | None, placed: PlacedRobot) -> Frame:
    """A spherical or free joint; a free one starts, and rests, where the joint was placed."""
    start: tuple[float, ...]
    if joint.kind == "spherical":
        frame, start = Frame(name, SPHERICAL, parent, joint, joint.position, joint.orientation), (1.0, 0.0, 0.0, 0.0)
    else:
        frame, start = Frame(name, FREE, None, joint, joint.position, joint.orientation), _pose_in_world(placed, joint)
    for what, default in (("initial", start), ("rest", start)):
        given: Any = getattr(joint, what)
        value = default if given is None else tuple(given)
        if len(value) != N_Q[frame.kind]:
            raise ModelError(
                f'{what} of joint "{name}" has {len(value)} numbers, but a {joint.kind} joint has {N_Q[frame.kind]}'
            )
        setattr(frame, what, (*value[:-4], *unit_quaternion(f'joint "{name}"', what, value[-4:])))
    return frame


def _numbers(joint: Joint, count: int) -> tuple[list[float], list[float]]:
    """Initial and rest values of a joint with `count` coordinates."""
    out = []
    for what in ("initial", "rest"):
        value = getattr(joint, what)
        values = [0.0] * count if value is None else list(np.atleast_1d(np.asarray(value, dtype=np.float64)))
        if len(values) != count:
            raise ModelError(
                f'{what} of joint "{joint.name}" has {len(values)} numbers, but a {joint.kind} joint has {count}'
            )
        out.append([float(v) for v in values])
    return out[0], out[1]


def _pose_in_world(placed: PlacedRobot, joint: Joint) -> tuple[float, ...]:
    position = np.asarray(placed.position) + rotation(placed.orientation) @ np.asarray(joint.position, dtype=np.float64)
    own = unit_quaternion(f'joint "{joint.name}"', "orientation", joint.orientation)
    return (*position, *turned_quaternion(placed.orientation, own))


def plane_axes(normal: Sequence[float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two directions of a plane and its normal; x, y, z for the normal z."""
    n = unit(normal)
    x = np.array([1.0, 0, 0]) if abs(n[0]) < 0.9 else np.array([0, 1.0, 0])
    x = x - n * (n @ x)
    x /= np.linalg.norm(x)
    return x, np.cross(n, x), n
