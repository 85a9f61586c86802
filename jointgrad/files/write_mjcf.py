"""A world as MJCF text, for MuJoCo and the tools around it: exactly what we simulate, or a refusal that says why not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from ..model.description import Actuator, Description, Joint, Link, Shape, Tendon
from ..model.errors import ModelError
from ..model.world import World, plane_axes
from .mjcf.geom import CONTACT_NUMBERS
from .mjcf.inertia import inertia_box
from .mjcf.pose import NO_TURN, Pose, about, compose, matrix

INTEGRATORS = {"semi_implicit": "Euler", "implicit_damping": "Euler", "rk4": "RK4"}
JOINTS = {"revolute": "hinge", "continuous": "hinge", "prismatic": "slide", "spherical": "ball"}
GEOMS = ("plane", "sphere", "capsule", "ellipsoid", "cylinder", "box")
MESHES = (".stl", ".obj", ".msh")
# attributes of contact that are whole numbers
WHOLE = ("contype", "conaffinity", "condim", "priority")
# our names of what is kept of <equality> and <contact>, and the attributes that name a part of the robot
KEPT = {
    "connect": "connect", "weld": "weld", "joint equality": "joint", "tendon equality": "tendon",
    "contact pair": "pair", "contact exclusion": "exclude",
}  # fmt: skip
NAMES = ("name", "body1", "body2", "site1", "site2", "joint1", "joint2", "tendon1", "tendon2", "geom1", "geom2")
# MuJoCo refuses a moving body with less mass or inertia than this
LEAST = 1e-15


def to_mjcf(world: World | Description, dt: float | None = None, integrator: str | None = None) -> str:
    """MJCF in which MuJoCo computes the same motion, without contact; coordinates and actuators keep their order.

    Time step and integrator are those of the world where none are given. The state that the world starts in is the keyframe
    "initial", and that of a link's only hinge or slide also its `ref`. What MJCF cannot say is refused by name.
    """
    if isinstance(world, Description):
        world = _alone(world)
    dt, integrator = world.dt if dt is None else dt, integrator or world.integrator
    if integrator not in INTEGRATORS:
        raise ModelError(f'MJCF has no integrator like "{integrator}"; it can say {", ".join(INTEGRATORS)}')
    bodies, start = [], []
    assets = _meshes(world)
    sections: dict[str, list[str]] = {"tendon": [], "equality": [], "contact": [], "actuator": []}
    for placed in world.placed:
        robot = placed.robot
        if world.density or world.viscosity:
            _refuse_other_boxes(robot)
        for link, joints in _roots(robot):
            bodies.append(_body(robot, link, joints, placed, start))
        for tendon in robot.tendons.values():
            sections["tendon"] += _tendon(tendon, robot, placed)
        for constraint in robot.constraints:
            _constraint(constraint, robot, placed, sections)
        sections["actuator"] += [_actuator(a, robot, placed) for a in robot.actuators.values()]
    flags = "" if integrator == "implicit_damping" else '<flag eulerdamp="disable"/>'
    medium = f' density="{float(world.density)!r}" viscosity="{float(world.viscosity)!r}"'
    option = f'<option timestep="{float(dt)!r}" gravity="{_text(world.gravity)}" integrator="{INTEGRATORS[integrator]}"{medium}>'
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
    keys = [f'<key name="initial" qpos="{_text(start)}"/>']
    for robot in (placed.robot for placed in world.placed):
        others = {name: key for name, key in robot.keyframes.items() if name != "initial"}
        if others and len(world.placed) > 1:
            raise ModelError(
                f'MJCF cannot say: a keyframe of robot "{robot.name}" alone, among several; clear its keyframes to leave them out'
            )
        for name, key in others.items():
            values = (("qpos", "q"), ("qvel", "qd"), ("ctrl", "u"))
            said = "".join(f' {theirs}="{_text(key[ours])}"' for theirs, ours in values if len(key[ours]))
            keys.append(f"<key name={quoteattr(name)}{said}/>")
    return keys


def _refuse_other_boxes(robot: Description) -> None:
    """MuJoCo works out the box that a medium feels from the inertia; another one has no word in MJCF."""
    for link in robot.links.values():
        if link.mass > 0:
            own, theirs = _box(link), _box(inertia_box(link))
            _refuse(
                f'link "{link.name}"',
                "a drag box other than that of its inertia",
                not np.allclose(own, theirs, 1e-9, 1e-12),
            )


def _box(link: Link) -> np.ndarray:
    """Extents and place of the drag box, whatever the order of its axes."""
    axes = np.array(matrix(link.drag_orientation))  # type: ignore[arg-type]
    extents = axes @ np.diag(np.square(np.asarray(link.drag_size, dtype=np.float64))) @ axes.T
    return np.concatenate([extents.ravel(), np.asarray(link.drag_position, dtype=np.float64)])


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
    if _is_the_world(link, joints, placed):
        return "\n".join([*_seen(link, placed), *_below(robot, link, placed, start)])
    position, orientation = _place(joints, placed) if at_root else (joints[0].position, joints[0].orientation)
    reference = _reference(joints)
    if reference:
        position, orientation = _at_start((position, orientation), joints[0], reference)
    moves = [j for j in joints if j.kind != "fixed"] or (not joints and placed.base == "free")
    lines = [f'<body name={_name(placed, link.name)} pos="{_text(position)}" quat="{_text(orientation)}">']
    if not joints and placed.base == "free":
        lines.append(f"<freejoint name={_name(placed, link.name + '.base')}/>")
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
    return _row(joints[0].initial, 1)[0]


def _at_start(place: Any, joint: Joint, reference: float) -> Pose:
    """The body's pose with its joint at the reference, as the reader takes it back by."""
    axis = np.asarray(joint.axis, dtype=np.float64) / np.linalg.norm(joint.axis)
    if joint.kind == "prismatic":
        return compose(place, (tuple(reference * axis), NO_TURN))  # type: ignore[arg-type]
    turn = about(tuple(axis), reference)  # type: ignore[arg-type]
    moved = np.asarray(joint.anchor) - np.asarray(matrix(turn)) @ np.asarray(joint.anchor)
    return compose(place, (tuple(float(x) for x in moved), turn))  # type: ignore[arg-type]


def _seen(link: Link, placed: Any) -> list[str]:
    sites = [f'<site name={_name(placed, n)} pos="{_text(p)}" quat="{_text(q)}"/>' for n, p, q in link.sites]
    return [_geom(shape, link, placed) for shape in link.shapes] + sites


def _below(robot: Description, link: Link, placed: Any, start: list[float]) -> list[str]:
    return [
        _body(robot, robot.links[child], joints, placed, start)
        for child, joints in _joints_of(robot).items()
        if joints and joints[0].parent == link.name
    ]


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
        start += joint.initial if joint.initial is not None else (*position, *orientation)
        moved = joint.rest is not None and not np.allclose(joint.rest, (*position, *orientation), 0, 1e-12)
        _refuse(owner, "a spring at rest away from its placement", joint.stiffness and moved)
        passive = {what: float(getattr(joint, what)) for what in ("damping", "stiffness", "armature")}
        words = "".join(
            f' {what}="{value!r}"' for what, value in {**passive, "frictionloss": float(joint.friction)}.items()
        )
        return [f'<joint name={_name(placed, joint.name)} type="free"{words}/>']
    common = f'pos="{_text(joint.anchor)}" damping="{float(joint.damping)!r}" stiffness="{float(joint.stiffness)!r}" '
    common += f'armature="{float(joint.armature)!r}" frictionloss="{float(joint.friction)!r}"'
    if joint.kind == "spherical":
        start += joint.initial if joint.initial is not None else (1.0, 0.0, 0.0, 0.0)
        turned = joint.stiffness and joint.rest is not None and tuple(map(float, joint.rest)) != (1, 0, 0, 0)
        _refuse(owner, "a spring at rest in a turned orientation", turned)
        return [f'<joint name={_name(placed, joint.name)} type="ball" {common}{_limit(joint)}/>']
    parts = _parts(joint)
    rests, starts = (_row(value, len(parts)) for value in (joint.rest, joint.initial))
    start += starts
    limit = _limit(joint)
    _refuse(owner, "a limit on each of several coordinates", limit and len(parts) > 1)
    return [
        f'<joint name={_name(placed, joint.name + suffix)} type="{kind}" axis="{_text(axis)}" springref="{rest!r}" '
        f'ref="{reference!r}" {common}{limit}/>'
        for (suffix, kind, axis), rest in zip(parts, rests, strict=True)
    ]


def _limit(joint: Joint) -> str:
    is_there = np.isfinite(np.asarray(joint.limit, dtype=np.float64))
    _refuse(f'joint "{joint.name}"', "a limit on one side only", is_there.any() and not is_there.all())
    return f' limited="true" range="{_text(joint.limit)}"' if is_there.all() else ""


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


def _geom(shape: Shape, link: Link, placed: Any) -> str:
    if shape.kind not in (*GEOMS, "mesh"):
        raise ModelError(f'link "{link.name}" has a {shape.kind} shape, which is not written to MJCF yet')
    size = f'size="{_text((0.0, 0.0, 1.0) if shape.kind == "plane" else shape.size)}"'
    if shape.kind == "mesh":
        size = f"mesh={quoteattr(_asset_name(shape))}"
    kept = {k: v for k, v in shape.contact.items() if k not in ("friction", "fluidshape")}
    for name in kept.keys() - set(CONTACT_NUMBERS):
        raise ModelError(f'MJCF cannot say: the contact setting "{name}" of a shape of link "{link.name}"')
    if shape.role == "visual":
        kept |= {"contype": 0, "conaffinity": 0}
    extra = "".join(f' {k}="{int(v) if k in WHOLE else _text(v)}"' for k, v in kept.items())
    friction = f' friction="{_text(shape.friction)}"' if len(shape.friction) else ""
    name = f" name={_name(placed, shape.name)}" if shape.name else ""
    return (
        f'<geom{name} type="{shape.kind}" {size} pos="{_text(shape.position)}" quat="{_text(shape.orientation)}" '
        f'rgba="{_text(shape.color)}" mass="0"{friction}{extra}/>'
    )


def _asset_name(shape: Shape) -> str:
    """Of a mesh file in one scale; the same file may be there in several."""
    return f"{shape.mesh} {_text(shape.size if len(shape.size) else (1.0, 1.0, 1.0))}"


def _meshes(world: World) -> list[str]:
    """Files by their whole path, as the robot knows them; MuJoCo reads them where they are."""
    found: dict[str, str] = {}
    for link in (link for placed in world.placed for link in placed.robot.links.values()):
        for shape in (s for s in link.shapes if s.kind == "mesh"):
            if not shape.mesh.lower().endswith(MESHES):
                raise ModelError(
                    f'link "{link.name}" has the mesh "{shape.mesh}"; MuJoCo reads {", ".join(MESHES)} files alone: convert it, or '
                    "take the shape out"
                )
            scale = _text(shape.size if len(shape.size) else (1.0, 1.0, 1.0))
            file = quoteattr(str(Path(shape.mesh).resolve()))
            found[_asset_name(shape)] = f'<mesh name={quoteattr(_asset_name(shape))} file={file} scale="{scale}"/>'
    return list(found.values())


# tendons, constraints, actuators ---------------------------------------------------------------------------------------


def _turns(robot: Description, joint: str) -> bool:
    return robot.joints[joint].kind in ("spherical", "free")


def _part_name(robot: Description, joint: str, component: int, placed: Any) -> str:
    """The joint of MuJoCo that one degree of freedom of ours is."""
    suffixes = [suffix for suffix, _, _ in _parts(robot.joints[joint])] if not _turns(robot, joint) else [""]
    return _name(placed, joint + (suffixes[component] if len(suffixes) > 1 else ""))


def _tendon(tendon: Tendon, robot: Description, placed: Any) -> list[str]:
    """As a fixed tendon; one that only joins directions of a ball or free joint is said by its actuators' gears."""
    terms, owner = tendon.full_terms(), f'tendon "{tendon.name}"'
    if any(_turns(robot, joint) for joint, _, _ in terms):
        _refuse(owner, "a turn and other joints", len({joint for joint, _, _ in terms}) > 1)
        _refuse(owner, "damping or stiffness of a turn", tendon.damping or tendon.stiffness)
        return []
    kept = next((c for c in robot.constraints if c["kind"] == "fixed tendon" and c["name"] == tendon.name), {})
    passive = f'stiffness="{float(tendon.stiffness)!r}" damping="{float(tendon.damping)!r}" springlength="{_text(tendon.rest)}"'
    return [
        f"<fixed name={_name(placed, tendon.name)} {passive}{_bounds(kept)}>",
        *(f'<joint joint={_part_name(robot, j, k, placed)} coef="{float(c)!r}"/>' for j, c, k in terms),
        "</fixed>",
    ]


def _bounds(kept: dict) -> str:
    """Limit and dry friction of a tendon."""
    limit = f' limited="true" range="{_text(kept["limit"])}"' if "limit" in kept else ""
    return f'{limit} frictionloss="{float(kept.get("friction", 0.0))!r}"'


def _constraint(kept: dict, robot: Description, placed: Any, sections: dict[str, list[str]]) -> None:
    kind = kept["kind"]
    if kind == "fixed tendon":
        if kept["name"] not in robot.tendons:
            raise ModelError(f'robot "{robot.name}" keeps limits of tendon "{kept["name"]}", which does not exist')
    elif kind == "spatial tendon":
        sections["tendon"] += _path(kept, placed)
    elif kind in KEPT:
        said = (_said(name, value, placed) for name, value in kept.items() if name not in ("kind", "class"))
        section = "contact" if kind.startswith("contact") else "equality"
        sections[section].append(f"<{KEPT[kind]}{''.join(said)}/>")
    else:
        raise ModelError(f'robot "{robot.name}" has a {kind}, which is not written to MJCF yet')


def _said(name: str, value: Any, placed: Any) -> str:
    if isinstance(value, str):
        return f" {name}={_name(placed, value) if name in NAMES and value != 'world' else quoteattr(value)}"
    return f' {name}="{int(value) if name in WHOLE else _text(value)}"'


def _path(kept: dict, placed: Any) -> list[str]:
    def step(tag: str, attributes: dict[str, str]) -> str:
        names = ("site", "geom", "sidesite")
        said = (f" {k}={_name(placed, v) if k in names else quoteattr(v)}" for k, v in attributes.items())
        return f"<{tag}{''.join(said)}/>"

    lines = [f"<spatial name={_name(placed, kept['name'])}{_bounds(kept)}>"]
    return [*lines, *(step(tag, attributes) for tag, attributes in kept["path"]), "</spatial>"]


def _actuator(actuator: Actuator, robot: Description, placed: Any) -> str:
    """force = gain u + bias + what the servo subtracts, all affine in position and speed."""
    constant, per_position, per_speed = (float(x) for x in actuator.bias)
    per_position -= actuator.gain if actuator.kind == "position" else 0.0
    per_speed -= actuator.damping + (actuator.gain if actuator.kind == "velocity" else 0.0)
    is_damper = actuator.kind == "damper"
    gains = (0.0, 0.0, -actuator.gain) if is_damper else actuator.gain
    gain = f'gaintype="{"affine" if is_damper else "fixed"}" gainprm="{_text(gains)}"'
    limits = ""
    for what, limit in (("ctrl", actuator.control_limit), ("force", actuator.force_limit)):
        if np.isfinite(limit).all():
            limits += f' {what}limited="true" {what}range="{_text(limit)}"'
        else:
            _refuse(f'actuator "{actuator.name}"', f"a {what} limit on one side only", np.isfinite(limit).any())
    return (
        f"<general name={_name(placed, actuator.name)} {_target(actuator, robot, placed)} {gain} "
        f'biastype="affine" biasprm="{_text((constant, per_position, per_speed))}"{limits}/>'
    )


def _target(actuator: Actuator, robot: Description, placed: Any) -> str:
    """What it drives, and through which gears."""
    terms = [(actuator.joint, 1.0, actuator.component)]
    if actuator.tendon:
        terms = robot.tendon(actuator.tendon).full_terms()
    joint, _, component = terms[0]
    if not _turns(robot, joint):
        gear = f'gear="{float(actuator.gear)!r}"'
        if actuator.tendon:
            return f"tendon={_name(placed, actuator.tendon)} {gear}"
        return f"joint={_part_name(robot, joint, component, placed)} {gear}"
    owner = f'actuator "{actuator.name}"'
    _refuse(owner, "position terms on a joint with several", actuator.bias[1] or actuator.kind == "position")
    gears = [0.0] * 6
    for _, coefficient, k in terms:
        gears[k] += actuator.gear * coefficient
    return f'joint={_name(placed, joint)} gear="{_text(gears)}"'
