"""A world as MJCF text, for MuJoCo and the tools around it: exactly what we simulate, or a refusal that says why not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from ...model.arguments import checked_kind
from ...model.description import Description, Joint, Link, Shape
from ...model.errors import ModelError
from ...model.ranges import check_form, check_word
from ...model.rotations import rotation
from ...model.world import World
from ..mjcf.geom import CONTACT_NUMBERS, WHOLE
from ..mjcf.inertia import inertia_box
from ..mjcf.pose import NO_TURN, Pose, about, compose
from .drives import actuator_line, add_constraint, tendon_lines
from .pairs import spelt_out
from .words import named, primitives, refuse, row, text

__all__ = ["to_mjcf"]

INTEGRATORS = {"semi_implicit": "Euler", "implicit_damping": "Euler", "rk4": "RK4"}
GEOMS = ("plane", "sphere", "capsule", "ellipsoid", "cylinder", "box")
MESHES = (".stl", ".obj", ".msh")
# MuJoCo refuses a moving body with less mass or inertia than this
LEAST = 1e-15


def to_mjcf(world: World | Description, dt: float | None = None, integrator: str | None = None) -> str:
    """MJCF in which MuJoCo computes the same motion, its own law of contact apart; coordinates and actuators keep their order.

    Time step and integrator are those of the world where none are given. The state that the world starts in is the keyframe
    "initial", and that of a link's only hinge or slide also its `ref`. What MJCF cannot say is refused by name.
    """
    if isinstance(world, Description):
        world = _alone(world)
    checked_kind("world", world, World, "or a Description")
    dt, integrator = world.dt if dt is None else dt, world.integrator if integrator is None else integrator
    check_form("world", "the world", vars(world) | {"dt": dt})
    check_word("MJCF", "integrator", integrator, INTEGRATORS)
    world, pairs = spelt_out(world) if world.rules else (world, None)
    bodies: list = []
    start: list[float] = []
    assets = _meshes(world)
    sections: dict[str, list[str]] = {"tendon": [], "equality": [], "contact": [], "actuator": []}
    for placed in world.placed:
        robot = placed.robot
        if world.density or world.viscosity:
            _refuse_other_boxes(robot)
        for link, joints in _roots(robot):
            bodies.append(_body(robot, link, joints, placed, start))
        for tendon in robot.tendons.values():
            sections["tendon"] += tendon_lines(tendon, robot, placed)
        for constraint in robot.constraints:
            add_constraint(constraint, robot, placed, sections)
        sections["actuator"] += [actuator_line(a, robot, placed) for a in robot.actuators.values()]
    if pairs is not None:
        sections["contact"] = pairs  # all there are: those that files name, or keep apart, have been counted in
    flags = "" if integrator == "implicit_damping" else '<flag eulerdamp="disable"/>'
    medium = f' density="{float(world.density)!r}" viscosity="{float(world.viscosity)!r}"'
    option = f'<option timestep="{float(dt)!r}" gravity="{text(world.gravity)}" integrator="{INTEGRATORS[integrator]}"{medium}>'
    parts = [
        "<mujoco>",
        '<compiler angle="radian" autolimits="false" inertiafromgeom="false"/>',
        f"{option}{flags}</option>",
        *(["<asset>", *assets, "</asset>"] if assets else []),
        "<worldbody>",
        *bodies,
        "</worldbody>",
        *(line for tag, lines in sections.items() for line in (f"<{tag}>", *lines, f"</{tag}>") if lines),
        "<keyframe>",
        *_keyframes(world, start),
        "</keyframe>",
        "</mujoco>",
    ]
    return "\n".join(parts) + "\n"


def _alone(robot: Description) -> World:
    """A world for one robot, with what the file it came from says of it."""
    given = {"gravity": "gravity", "dt": "timestep", "density": "density", "viscosity": "viscosity"}
    return World(**{ours: robot.options[k] for ours, k in given.items() if k in robot.options}).add(robot)


def _keyframes(world: World, start: list[float]) -> list[str]:
    keys = [f'<key name="initial" qpos="{text(start)}"/>']
    for robot in (placed.robot for placed in world.placed):
        others = {name: key for name, key in robot.keyframes.items() if name != "initial"}
        if others and len(world.placed) > 1:
            raise ModelError(
                f'MJCF cannot say: a keyframe of robot "{robot.name}" alone, among several; clear its keyframes to leave them out'
            )
        for name, key in others.items():
            values = (("qpos", "q"), ("qvel", "qd"), ("ctrl", "u"))
            said = "".join(f' {theirs}="{text(key[ours])}"' for theirs, ours in values if len(key[ours]))
            keys.append(f"<key name={quoteattr(name)}{said}/>")
    return keys


def _refuse_other_boxes(robot: Description) -> None:
    """MuJoCo works out the box that a medium feels from the inertia; another one has no word in MJCF."""
    for link in robot.links.values():
        if link.mass > 0:
            own, theirs = _box(link), _box(inertia_box(link))
            refuse(
                f'link "{link.name}"',
                "a drag box other than that of its inertia",
                not np.allclose(own, theirs, 1e-9, 1e-12),
            )


def _box(link: Link) -> np.ndarray:
    """Extents and place of the drag box, whatever the order of its axes."""
    axes = rotation(link.drag_orientation)
    extents = axes @ np.diag(np.square(np.asarray(link.drag_size, dtype=np.float64))) @ axes.T
    return np.concatenate([extents.ravel(), np.asarray(link.drag_position, dtype=np.float64)])


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
    if _is_the_world(link, joints, placed):
        return "\n".join([*_seen(link, placed), *_below(robot, link, placed, start)])
    position, orientation = _place(joints, placed) if at_root else (joints[0].position, joints[0].orientation)
    reference = _reference(joints)
    if reference:
        position, orientation = _at_start((position, orientation), joints[0], reference)
    moves = [j for j in joints if j.kind != "fixed"] or (not joints and placed.base == "free")
    lines = [f'<body name={named(placed, link.name)} pos="{text(position)}" quat="{text(orientation)}">']
    if not joints and placed.base == "free":
        lines.append(f"<freejoint name={named(placed, link.name + '.base')}/>")
        start += [*position, *orientation]
    for number, joint in enumerate(joints):
        lines += _joint(joint, placed, number > 0, start, position, orientation, reference)
    lines.append(_inertial(link, bool(moves)))
    lines += [*_seen(link, placed), *_below(robot, link, placed, start)]
    return "\n".join(x for x in [*lines, "</body>"] if x)


def _is_the_world(link: Link, joints: list[Joint], placed: Any) -> bool:
    """What files keep of the world's own shapes; MuJoCo has that name for itself."""
    if link.name != "world" or placed.prefix or not joints or joints[0].kind != "fixed" or joints[0].parent is not None:
        return False
    pose = placed.pose_of(joints[0])
    return link.mass == 0 and tuple(map(float, pose)) == (0, 0, 0, 1, 0, 0, 0)


def _reference(joints: list[Joint]) -> float:
    """Where a lone hinge or slide starts: MuJoCo draws the body there, and counts q from there by `ref`."""
    if len(joints) != 1 or joints[0].kind not in ("revolute", "continuous", "prismatic"):
        return 0.0
    return row(joints[0].initial, 1)[0]


def _at_start(place: Any, joint: Joint, reference: float) -> Pose:
    """The body's pose with its joint at the reference, as the reader takes it back by."""
    axis = np.asarray(joint.axis, dtype=np.float64) / np.linalg.norm(joint.axis)
    if joint.kind == "prismatic":
        return compose(place, (tuple(reference * axis), NO_TURN))
    turn = about(tuple(axis), reference)
    moved = np.asarray(joint.anchor) - rotation(turn) @ np.asarray(joint.anchor)
    return compose(place, (tuple(float(x) for x in moved), turn))  # type: ignore[arg-type]


def _seen(link: Link, placed: Any) -> list[str]:
    sites = [f'<site name={named(placed, n)} pos="{text(p)}" quat="{text(q)}"/>' for n, p, q in link.sites]
    return [_geom(shape, link, placed) for shape in link.shapes] + sites


def _below(robot: Description, link: Link, placed: Any, start: list[float]) -> list[str]:
    return [
        _body(robot, robot.links[child], joints, placed, start)
        for child, joints in _joints_of(robot).items()
        if joints and joints[0].parent == link.name
    ]


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
    return f'<inertial pos="{text(link.com)}" mass="{float(link.mass)!r}" fullinertia="{full}"/>'


def _joint(
    joint: Joint, placed: Any, further: bool, start: list[float], position: Any, orientation: Any, reference: float
) -> list[str]:
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
        start += joint.initial if joint.initial is not None else (*position, *orientation)  # type: ignore[arg-type]
        moved = joint.rest is not None and not np.allclose(joint.rest, (*position, *orientation), 0, 1e-12)
        refuse(owner, "a spring at rest away from its placement", joint.stiffness and moved)
        passive = {what: float(getattr(joint, what)) for what in ("damping", "stiffness", "armature")}
        words = "".join(
            f' {what}="{value!r}"' for what, value in {**passive, "frictionloss": float(joint.friction)}.items()
        )
        return [f'<joint name={named(placed, joint.name)} type="free"{words}/>']
    common = f'pos="{text(joint.anchor)}" damping="{float(joint.damping)!r}" stiffness="{float(joint.stiffness)!r}" '
    common += f'armature="{float(joint.armature)!r}" frictionloss="{float(joint.friction)!r}"'
    if joint.kind == "spherical":
        start += joint.initial if joint.initial is not None else (1.0, 0.0, 0.0, 0.0)  # type: ignore[arg-type]
        turned = joint.stiffness and joint.rest is not None and tuple(map(float, joint.rest)) != (1, 0, 0, 0)  # type: ignore[arg-type]
        refuse(owner, "a spring at rest in a turned orientation", turned)
        return [f'<joint name={named(placed, joint.name)} type="ball" {common}{_limit(joint)}/>']
    parts = primitives(joint)
    rests, starts = (row(value, len(parts)) for value in (joint.rest, joint.initial))
    start += starts
    limit = _limit(joint)
    refuse(owner, "a limit on each of several coordinates", limit and len(parts) > 1)
    return [
        f'<joint name={named(placed, joint.name + suffix)} type="{kind}" axis="{text(axis)}" springref="{rest!r}" '
        f'ref="{reference!r}" {common}{limit}/>'
        for (suffix, kind, axis), rest in zip(parts, rests, strict=True)
    ]


def _limit(joint: Joint) -> str:
    is_there = np.isfinite(np.asarray(joint.limit, dtype=np.float64))
    refuse(f'joint "{joint.name}"', "a limit on one side only", is_there.any() and not is_there.all())
    return f' limited="true" range="{text(joint.limit)}"' if is_there.all() else ""


def _geom(shape: Shape, link: Link, placed: Any) -> str:
    if shape.kind not in (*GEOMS, "mesh"):
        raise ModelError(f'link "{link.name}" has a {shape.kind} shape, which is not written to MJCF yet')
    size = f'size="{text((0.0, 0.0, 1.0) if shape.kind == "plane" else shape.size)}"'
    if shape.kind == "mesh":
        size = f"mesh={quoteattr(_asset_name(shape))}"
    kept = {k: v for k, v in shape.contact.items() if k not in ("friction", "fluidshape")}
    for name in kept.keys() - set(CONTACT_NUMBERS):
        raise ModelError(f'MJCF cannot say: the contact setting "{name}" of a shape of link "{link.name}"')
    if shape.role == "visual":
        kept |= {"contype": 0, "conaffinity": 0}
    if not len(shape.friction) and shape.role != "visual":
        # a shape that says nothing leaves friction to its partner; MuJoCo's default of 1 must not win
        kept.setdefault("priority", -1)
    extra = "".join(f' {k}="{int(v) if k in WHOLE else text(v)}"' for k, v in kept.items())
    friction = f' friction="{text(shape.friction)}"' if len(shape.friction) else ""
    name = f" name={named(placed, shape.name)}" if shape.name else ""
    return (
        f'<geom{name} type="{shape.kind}" {size} pos="{text(shape.position)}" quat="{text(shape.orientation)}" '
        f'rgba="{text(shape.color)}" mass="0"{friction}{extra}/>'
    )


def _asset_name(shape: Shape) -> str:
    """Of a mesh file in one scale; the same file may be there in several."""
    return f"{shape.mesh} {text(shape.size if len(shape.size) else (1.0, 1.0, 1.0))}"


def _meshes(world: World) -> list[str]:
    """Files by their whole path, as the robot knows them; MuJoCo reads them where they are."""
    found: dict[str, str] = {}
    for link in (link for placed in world.placed for link in placed.robot.links.values()):
        for shape in (s for s in link.shapes if s.kind == "mesh"):
            if not shape.mesh.lower().endswith(MESHES):
                raise ModelError(
                    f'link "{link.name}" has the mesh "{shape.mesh or shape.reference}"; MuJoCo reads {", ".join(MESHES)} files '
                    "alone: convert it, or take the shape out"
                )
            scale = text(shape.size if len(shape.size) else (1.0, 1.0, 1.0))
            file = quoteattr(str(Path(shape.mesh).resolve()))
            found[_asset_name(shape)] = f'<mesh name={quoteattr(_asset_name(shape))} file={file} scale="{scale}"/>'
    return list(found.values())
