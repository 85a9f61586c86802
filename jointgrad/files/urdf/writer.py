"""URDF out: every bit, or a refusal that names what URDF cannot say."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from xml.sax.saxutils import quoteattr

from ...model.arguments import checked_kind
from ...model.description import INFINITE, Actuator, Description, Joint, Link, Shape
from ...model.errors import ModelError
from ...model.ranges import unit_quaternion
from .quantities import EXACT, GREY, LARGEST, force_limit, quaternion_from_rpy, rpy_from_quaternion
from .tree import SCALAR


def to_urdf(robot: Description) -> str:
    """The robot as URDF text that `load_urdf` reads back as it was, or an error that names what URDF cannot say.

    How the base meets the world is not in a URDF: it is said when the file is loaded. Shapes that are seen come first.
    """
    checked_kind("robot", robot, Description, "as jg.load and jg.zoo give")
    below_world = [j.name for j in robot.joints.values() if j.parent is None]
    _refuse_whole(robot, below_world)
    colors = {tuple(s.color): f"color_{k}" for k, s in enumerate(_seen_colors(robot))}
    lines = [f"<robot name={quoteattr(robot.name)}>"]
    lines += [f'  <material name="{n}"><color rgba="{_row(c)}"/></material>' for c, n in colors.items()]
    if below_world:
        lines.append('  <link name="world"/>')
    for link in robot.links.values():
        lines += _link_lines(link, colors)
    for joint in robot.joints.values():
        _refuse_joint(joint)
        lines += _joint_lines(joint)
    for actuator in robot.actuators.values():
        _refuse_actuator(actuator, robot)
    text = "\n".join([*lines, "</robot>", ""])
    bad = next((c for c in text if (ord(c) < 32 and c != "\n") or 0xD800 <= ord(c) < 0xE000 or ord(c) > 0xFFFD), None)
    if bad is not None:
        raise ModelError(f'robot "{robot.name}": a name holds the character {bad!r}, which XML cannot hold')
    return '<?xml version="1.0"?>\n' + text


def _refuse_whole(robot: Description, below_world: list[str]) -> None:
    if not robot.name.strip() or robot.name != robot.name.strip():
        raise ModelError(f"URDF cannot say: robot name {robot.name!r}, empty or with blanks around it")
    for what in ("keyframes", "constraints", "tendons"):
        if getattr(robot, what):
            raise ModelError(f'URDF cannot say: {what} of robot "{robot.name}"; clear robot.{what} to leave them out')
    count = Counter(joint.child for joint in robot.joints.values())
    for joint in robot.joints.values():
        if count[joint.child] > 1:
            raise ModelError(f'URDF cannot say: several joints of link "{joint.child}"; put a link between them')
        for link in (joint.parent, joint.child):
            if link is not None and link not in robot.links:
                raise ModelError(f'joint "{joint.name}" holds link "{link}", but there is no such link')
    tops = [name for name in robot.links if not count[name]]
    if len(tops) + bool(below_world) != 1:
        listed = ", ".join(f'"{t}"' for t in [*tops, *(["the world"] if below_world else [])])
        raise ModelError(f'URDF cannot say: several roots ({listed}) of robot "{robot.name}"; URDF is one tree')
    if below_world and "world" in robot.links:
        raise ModelError('URDF cannot say: joints to the world beside a link called "world"; rename the link')
    bare = robot.links.get("world") if tops == ["world"] else None
    if bare and len(robot.links) > 1 and not (bare.mass or any(bare.inertia) or bare.shapes):
        raise ModelError('URDF cannot say: a bare root link called "world", which is the world itself; rename the link')


def _refuse_joint(joint: Joint) -> None:
    def refuse(what: str) -> ModelError:
        return ModelError(f'URDF cannot say: {what} of joint "{joint.name}"')

    if joint.kind in ("spherical", "universal"):
        raise refuse(f"the kind {joint.kind}")
    if joint.kind == "free" and joint.parent is not None:
        raise refuse("a parent of the free kind")
    for what in ("armature", "stiffness"):
        if getattr(joint, what):
            raise refuse(what)
    for what in ("rest", "initial"):
        if getattr(joint, what) is not None:
            raise refuse(f"a value {what}=...")
    if any(joint.anchor):
        raise refuse("the anchor")
    if joint.kind not in ("revolute", "prismatic") and tuple(joint.limit) != INFINITE:
        raise refuse(f"the limit (the kind is {joint.kind})")
    if joint.kind in ("revolute", "prismatic") and joint.limit[0] > joint.limit[1]:
        raise refuse("a lower limit above the upper one")
    if joint.kind == "fixed" and (joint.damping or joint.friction or joint.mimic or _has_limits(joint)):
        raise refuse("damping, friction, mimic or limits (the kind is fixed)")


def _refuse_actuator(actuator: Actuator, robot: Description) -> None:
    joint = robot.joint(actuator.joint)
    plain = Actuator(joint.name, joint.name, force_limit=force_limit(joint))
    if joint.kind not in SCALAR or joint.mimic is not None:
        raise ModelError(
            f'URDF cannot say: actuator "{actuator.name}" on joint "{joint.name}", which is {joint.kind} or a mimic'
        )
    for what, value in vars(plain).items():
        given = getattr(actuator, what)
        if (tuple(given) if isinstance(value, tuple) else given) != value:
            raise ModelError(
                f'URDF cannot say: {what} = {given} of actuator "{actuator.name}"; its motors are torques named like the joint '
                f'"{joint.name}", within the joint\'s effort_limit'
            )


def _seen_colors(robot: Description) -> list[Shape]:
    seen = {tuple(s.color): s for k in robot.links.values() for s in k.shapes if s.role != "collision"}
    return [s for color, s in seen.items() if color != GREY]


def _link_lines(link: Link, colors: dict) -> list[str]:
    if link.sites:
        raise ModelError(f'URDF cannot say: the sites of link "{link.name}"; make them links on fixed joints')
    lines = [f"  <link name={quoteattr(link.name)}>"]
    if link.mass or any(link.inertia) or any(link.com):
        names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
        inertia = " ".join(f'{n}="{_row([v])}"' for n, v in zip(names, link.inertia, strict=True))
        origin = f'<origin xyz="{_row(link.com)}"/>'
        lines.append(f'    <inertial>{origin}<mass value="{_row([link.mass])}"/><inertia {inertia}/></inertial>')
    for role in ("visual", "collision"):
        for shape in (s for s in link.shapes if s.role in (role, "both")):
            lines.append(_shape_line(link, shape, role, colors))
    return [*lines, "  </link>"]


def _shape_line(link: Link, shape: Shape, role: str, colors: dict) -> str:
    owner = f'of a {shape.kind} on link "{link.name}"'
    if shape.kind not in ("box", "sphere", "cylinder", "capsule", "mesh"):
        raise ModelError(f'URDF cannot say: the shape {shape.kind} on link "{link.name}"')
    if len(shape.friction) or shape.contact:
        raise ModelError(f"URDF cannot say: friction or contact {owner}")
    if role == "collision" and shape.role == "collision" and tuple(shape.color) != GREY:
        raise ModelError(f"URDF cannot say: the color {owner}, which is a collision shape only")
    size = [float(v) for v in shape.size]
    form = {
        "box": lambda: f'size="{_row([2 * v for v in size])}"',
        "sphere": lambda: f'radius="{_row(size)}"',
        "mesh": lambda: f'filename={quoteattr(shape.mesh or shape.reference)} scale="{_row(size or (1, 1, 1))}"',
    }.get(shape.kind, lambda: f'radius="{_row(size[:1])}" length="{_row([2 * size[1]])}"')()
    name = f" name={quoteattr(shape.name)}" if shape.name else ""
    color = colors.get(tuple(shape.color)) if role == "visual" else None
    material = f'<material name="{color}"/>' if color else ""
    origin = _origin(shape.position, shape.orientation)
    return f"    <{role}{name}>{origin}<geometry><{shape.kind} {form}/></geometry>{material}</{role}>"


def _joint_lines(joint: Joint) -> list[str]:
    kind = "floating" if joint.kind == "free" else joint.kind
    lines = [
        f'  <joint name={quoteattr(joint.name)} type="{kind}">',
        "    " + _origin(joint.position, joint.orientation),
    ]
    parent = "world" if joint.parent is None else joint.parent
    lines.append(f"    <parent link={quoteattr(parent)}/><child link={quoteattr(joint.child)}/>")
    lines.append(f'    <axis xyz="{_row(joint.axis)}"/>')
    if joint.kind in ("revolute", "prismatic") or _has_limits(joint):
        ends = [("effort", joint.effort_limit), ("velocity", joint.velocity_limit)]
        if joint.kind in ("revolute", "prismatic"):
            ends = [("lower", joint.limit[0]), ("upper", joint.limit[1]), *ends]
        lines.append("    <limit " + " ".join(f'{n}="{_row([_bounded(v)])}"' for n, v in ends) + "/>")
    if joint.damping or joint.friction:
        lines.append(f'    <dynamics damping="{_row([joint.damping])}" friction="{_row([joint.friction])}"/>')
    if joint.mimic:
        leader, multiplier, offset = joint.mimic
        lines.append(
            f'    <mimic joint={quoteattr(leader)} multiplier="{_row([multiplier])}" offset="{_row([offset])}"/>'
        )
    return [*lines, "  </joint>"]


def _has_limits(joint: Joint) -> bool:
    return min(joint.effort_limit, joint.velocity_limit) < math.inf


def _bounded(value: float) -> float:
    return min(max(float(value), -LARGEST), LARGEST)


def _origin(position: Sequence[float], orientation: Sequence[float]) -> str:
    rpy = rpy_from_quaternion(unit_quaternion("a shape or joint", "orientation", orientation))
    given = tuple(float(c) for c in orientation)
    exact = "" if quaternion_from_rpy(*rpy) == given else f' {EXACT}="{_row(given)}"'
    return f'<origin xyz="{_row(position)}" rpy="{_row(rpy)}"{exact}/>'


def _row(values: Sequence[float]) -> str:
    """Numbers as text that gives back every bit."""
    row = [float(v) for v in values]
    if not all(map(math.isfinite, row)):
        raise ModelError(f"URDF cannot say: the numbers {row}, which are not finite")
    return " ".join(repr(v) for v in row)
