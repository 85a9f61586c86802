"""A world as MJCF text, for MuJoCo and the tools around it: exactly what we simulate, or a refusal that says why not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from ..model.description import Actuator, Description, Joint, Link, Shape
from ..model.errors import ModelError
from ..model.world import World, plane_axes

INTEGRATORS = {"semi_implicit": "Euler", "implicit_damping": "Euler", "rk4": "RK4"}
JOINTS = {"revolute": "hinge", "continuous": "hinge", "prismatic": "slide", "spherical": "ball"}
GEOMS = ("plane", "sphere", "capsule", "ellipsoid", "cylinder", "box")
# attributes of contact that are whole numbers
WHOLE = ("contype", "conaffinity", "condim")
# MuJoCo refuses a moving body with less mass or inertia than this
LEAST = 1e-15


def to_mjcf(world: World | Description, dt: float = 1e-3, integrator: str = "semi_implicit") -> str:
    """MJCF in which MuJoCo computes the same motion, without contact; coordinates and actuators keep their order."""
    if isinstance(world, Description):
        world = World().add(world)
    if integrator not in INTEGRATORS:
        raise ModelError(f'MJCF has no integrator like "{integrator}"; it can say {", ".join(INTEGRATORS)}')
    if world.density or world.viscosity:
        raise ModelError("the world has a medium, whose drag is not written to MJCF yet")
    bodies, drives, start = [], [], []
    for placed in world.placed:
        robot = placed.robot
        if robot.constraints:
            raise ModelError(
                f'robot "{robot.name}" has a {robot.constraints[0]["kind"]}, which is not written to MJCF yet'
            )
        for link, joints in _roots(robot):
            bodies.append(_body(robot, link, joints, placed, start))
        drives += [_actuator(a, robot, placed.prefix) for a in robot.actuators.values()]
    flags = "" if integrator == "implicit_damping" else '<flag eulerdamp="disable"/>'
    option = f'<option timestep="{dt!r}" gravity="{_text(world.gravity)}" integrator="{INTEGRATORS[integrator]}">{flags}</option>'
    parts = [
        "<mujoco>",
        '<compiler angle="radian" autolimits="false" inertiafromgeom="false"/>',
        option,
        "<worldbody>",
        *bodies,
        "</worldbody>",
        "<actuator>",
        *drives,
        "</actuator>",
        f'<keyframe><key name="initial" qpos="{_text(start)}"/></keyframe>',
        "</mujoco>",
    ]
    return "\n".join(parts) + "\n"


def _text(values: Any) -> str:
    return " ".join(repr(float(x)) for x in np.atleast_1d(np.asarray(values, dtype=np.float64)))


def _joints_of(robot: Description) -> dict[str, list[Joint]]:
    found: dict[str, list[Joint]] = {name: [] for name in robot.links}
    for joint in robot.joints.values():
        found[joint.child].append(joint)
    return found


def _roots(robot: Description) -> Iterator[tuple[Link, list[Joint]]]:
    for name, joints in _joints_of(robot).items():
        if not joints or joints[0].parent is None:
            yield robot.links[name], joints


def _body(robot: Description, link: Link, joints: list[Joint], placed: Any, start: list[float]) -> str:
    """A body with all that hangs on it; appends the initial coordinates of its joints."""
    at_root = not joints or joints[0].parent is None
    position, orientation = _place(joints, placed) if at_root else (joints[0].position, joints[0].orientation)
    moves = [j for j in joints if j.kind != "fixed"] or (not joints and placed.base == "free")
    lines = [f'<body name={_name(placed, link.name)} pos="{_text(position)}" quat="{_text(orientation)}">']
    if not joints and placed.base == "free":
        lines.append(f"<freejoint name={_name(placed, link.name + '.base')}/>")
        start += [*position, *orientation]
    for number, joint in enumerate(joints):
        lines += _joint(joint, placed, number > 0, start, position, orientation)
    lines.append(_inertial(link, bool(moves)))
    lines += [_geom(shape, link) for shape in link.shapes]
    lines += [f'<site name={_name(placed, n)} pos="{_text(p)}" quat="{_text(q)}"/>' for n, p, q in link.sites]
    for child, child_joints in _joints_of(robot).items():
        if child_joints and child_joints[0].parent == link.name:
            lines.append(_body(robot, robot.links[child], child_joints, placed, start))
    return "\n".join(x for x in [*lines, "</body>"] if x)


def _name(placed: Any, name: str) -> str:
    return quoteattr(placed.prefix + name)


def _place(joints: list[Joint], placed: Any) -> tuple[Sequence[float], Sequence[float]]:
    """Pose in the world of a body that hangs on it."""
    if not joints:
        return placed.position, placed.orientation
    pose = placed.pose_of(joints[0])
    return pose[:3], pose[3:]


def _inertial(link: Link, moves: bool) -> str:
    if link.mass == 0 and not any(link.inertia) and not moves:
        return ""
    xx, xy, xz, yy, yz, zz = (float(x) for x in link.inertia)
    least = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])[0]
    if moves and (link.mass < LEAST or least < LEAST):
        raise ModelError(
            f'MJCF cannot say that link "{link.name}" moves with mass {link.mass:g} and least principal inertia {least:g}: '
            "MuJoCo wants both above 1e-15"
        )
    full = f"{xx!r} {yy!r} {zz!r} {xy!r} {xz!r} {yz!r}"
    return f'<inertial pos="{_text(link.com)}" mass="{float(link.mass)!r}" fullinertia="{full}"/>'


def _joint(joint: Joint, placed: Any, further: bool, start: list[float], position: Any, orientation: Any) -> list[str]:
    """The joints of MuJoCo that one of ours stands for."""
    owner = f'joint "{joint.name}"'
    identity = tuple(map(float, joint.position)) == (0, 0, 0) and tuple(map(float, joint.orientation)) == (1, 0, 0, 0)
    if further and not identity:
        raise ModelError(f"MJCF cannot place {owner} apart from the first joint of its link; put a link between them")
    if joint.mimic:
        raise ModelError(f"{owner} is a mimic, which is not written to MJCF yet")
    if joint.kind == "fixed":
        return []
    if joint.kind == "free":
        start += joint.initial if joint.initial is not None else (*position, *orientation)
        _refuse(owner, "armature, damping or a spring", joint.armature or joint.damping or joint.stiffness)
        return [f"<freejoint name={_name(placed, joint.name)}/>"]
    common = f'pos="{_text(joint.anchor)}" damping="{float(joint.damping)!r}" stiffness="{float(joint.stiffness)!r}" '
    common += f'armature="{float(joint.armature)!r}" frictionloss="{float(joint.friction)!r}"'
    if joint.kind == "spherical":
        start += joint.initial if joint.initial is not None else (1.0, 0.0, 0.0, 0.0)
        turned = joint.stiffness and joint.rest is not None and tuple(map(float, joint.rest)) != (1, 0, 0, 0)
        _refuse(owner, "a spring at rest in a turned orientation", turned)
        return [f'<joint name={_name(placed, joint.name)} type="ball" {common}/>']
    parts = _parts(joint)
    rests, starts = (_row(value, len(parts)) for value in (joint.rest, joint.initial))
    start += starts
    limit = f' limited="true" range="{_text(joint.limit)}"' if np.isfinite(joint.limit).all() else ""
    return [
        f'<joint name={_name(placed, joint.name + suffix)} type="{kind}" axis="{_text(axis)}" springref="{rest!r}" '
        f"{common}{limit}/>"
        for (suffix, kind, axis), rest in zip(parts, rests, strict=True)
    ]


def _refuse(owner: str, what: str, is_there: Any) -> None:
    if is_there:
        raise ModelError(f"MJCF cannot say that {owner} has {what}")


def _parts(joint: Joint) -> list[tuple[str, str, Any]]:
    if joint.kind == "planar":
        x, y, normal = plane_axes(joint.axis)
        return [(".x", "slide", x), (".y", "slide", y), (".turn", "hinge", normal)]
    if joint.kind == "universal":
        return [(".first", "hinge", joint.axis), (".second", "hinge", joint.second_axis)]
    return [("", JOINTS[joint.kind], joint.axis)]


def _row(value: Any, count: int) -> list[float]:
    return [0.0] * count if value is None else [float(x) for x in np.atleast_1d(value)]


def _geom(shape: Shape, link: Link) -> str:
    if shape.kind not in GEOMS:
        raise ModelError(f'link "{link.name}" has a {shape.kind} shape, which is not written to MJCF yet')
    size = (0.0, 0.0, 1.0) if shape.kind == "plane" else shape.size
    kept = {k: shape.contact[k] for k in (*WHOLE, "margin", "solref", "solimp") if k in shape.contact}
    if shape.role == "visual":
        kept |= {"contype": 0, "conaffinity": 0}
    extra = "".join(f' {k}="{int(v) if k in WHOLE else _text(v)}"' for k, v in kept.items())
    # of two shapes the one that says something counts, as with us; MuJoCo's own default of 1 must not win
    friction = f' friction="{_text(shape.friction)}" priority="1"' if len(shape.friction) else ""
    name = f" name={quoteattr(shape.name)}" if shape.name else ""
    return (
        f'<geom{name} type="{shape.kind}" size="{_text(size)}" pos="{_text(shape.position)}" quat="{_text(shape.orientation)}" '
        f'rgba="{_text(shape.color)}" mass="0"{friction}{extra}/>'
    )


def _actuator(actuator: Actuator, robot: Description, prefix: str) -> str:
    """force = gain u + bias + what the servo subtracts, all affine in position and speed."""
    joint = robot.joints[actuator.joint]
    suffixes = [suffix for suffix, _, _ in _parts(joint)] if joint.kind not in ("spherical", "free") else [""]
    gear = [actuator.gear]
    suffix = suffixes[actuator.component] if len(suffixes) > 1 else ""
    if joint.kind in ("spherical", "free"):
        gear = [0.0] * 6
        gear[actuator.component] = actuator.gear
        _refuse(
            f'actuator "{actuator.name}"', "speed or position terms on a joint with several", any(actuator.bias[1:])
        )
        _refuse(
            f'actuator "{actuator.name}"',
            "a servo on a joint with several",
            actuator.kind != "torque" or actuator.damping,
        )
    constant, per_position, per_speed = (float(x) for x in actuator.bias)
    per_position -= actuator.gain if actuator.kind == "position" else 0.0
    per_speed -= actuator.damping + (actuator.gain if actuator.kind == "velocity" else 0.0)
    limits = ""
    for what, limit in (("ctrl", actuator.control_limit), ("force", actuator.force_limit)):
        if np.isfinite(limit).all():
            limits += f' {what}limited="true" {what}range="{_text(limit)}"'
        else:
            _refuse(f'actuator "{actuator.name}"', f"a {what} limit on one side only", np.isfinite(limit).any())
    return (
        f"<general name={quoteattr(prefix + actuator.name)} joint={quoteattr(prefix + actuator.joint + suffix)} "
        f'gear="{_text(gear)}" gaintype="fixed" gainprm="{float(actuator.gain)!r}" biastype="affine" '
        f'biasprm="{_text((constant, per_position, per_speed))}"{limits}/>'
    )
