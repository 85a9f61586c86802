"""The same robot for MuJoCo: MJCF text whose coordinates, bodies and actuators come in the order of ours."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator

import mujoco
import numpy as np

from jointgrad.model.description import Actuator, Description, Joint, Link
from jointgrad.model.parts import plane_axes

# a body between two joints of one link: MuJoCo refuses less, and no result sees so little in nine digits
SPECK = 2e-15
MUJOCO_KINDS = {"revolute": "hinge", "continuous": "hinge", "prismatic": "slide", "spherical": "ball", "free": "free"}


def links_in_order(robot: Description) -> Iterator[tuple[Link, list[Joint]]]:
    """Links depth first with the joints that carry them, as a model numbers them."""
    joints: dict[str, list[Joint]] = {name: [] for name in robot.links}
    for joint in robot.joints.values():
        joints[joint.child].append(joint)

    def below(parent: str | None) -> Iterator[tuple[Link, list[Joint]]]:
        for name, link in robot.links.items():
            if (joints[name][0].parent if joints[name] else None) == parent:
                yield link, joints[name]
                yield from below(name)

    return below(None)


def primitives(joint: Joint) -> list[tuple[str, str, np.ndarray]]:
    """Name, kind and unit axis of the simple joints that a joint stands for; a fixed joint has none."""
    axis = np.array(joint.axis, dtype=float) / np.linalg.norm(joint.axis)
    if joint.kind == "fixed":
        return []
    if joint.kind == "planar":
        x, y, normal = plane_axes(joint.axis)
        slides = [(f"{joint.name}.x", "prismatic", x), (f"{joint.name}.y", "prismatic", y)]
        return [*slides, (f"{joint.name}.turn", "revolute", normal)]
    if joint.kind == "universal":
        second = np.array(joint.second_axis, dtype=float) / np.linalg.norm(joint.second_axis)
        return [(f"{joint.name}.first", "revolute", axis), (f"{joint.name}.second", "revolute", second)]
    return [(joint.name, joint.kind, axis)]


def to_mjcf(
    robot: Description,
    gravity=(0.0, 0.0, -9.81),
    dt: float = 1e-3,
    integrator: str = "Euler",
    base: str | None = None,
    eulerdamp: bool = False,
) -> str:
    """MJCF without contact. `eulerdamp` takes joint damping at the end of the step, as our implicit_damping does."""
    root = ET.Element("mujoco")
    ET.SubElement(root, "compiler", angle="radian", autolimits="false")
    option = ET.SubElement(root, "option", timestep=repr(dt), integrator=integrator, gravity=_text(gravity))
    ET.SubElement(option, "flag", contact="disable", eulerdamp="enable" if eulerdamp else "disable")
    bodies = {None: ET.SubElement(root, "worldbody")}
    for link, joints in links_in_order(robot):
        parent = bodies[joints[0].parent if joints else None]
        bodies[link.name] = _body(parent, link, joints, base or robot.base)
    drives = ET.SubElement(root, "actuator")
    for actuator in robot.actuators.values():
        _drive(drives, actuator, robot.joints[actuator.joint])
    return ET.tostring(root, encoding="unicode")


def mujoco_model(robot: Description, **options) -> mujoco.MjModel:
    """The compiled twin; MJCF has no word for the rest orientation of a ball, so that it is set here."""
    m = mujoco.MjModel.from_xml_string(to_mjcf(robot, **options))
    for joint in robot.joints.values():
        if joint.kind in ("spherical", "free") and joint.rest is not None:
            start = m.jnt_qposadr[m.joint(joint.name).id]
            m.qpos_spring[start : start + len(joint.rest)] = joint.rest
    return m


def mujoco_data(m: mujoco.MjModel, q, qd, u=None, force=None, links=()) -> mujoco.MjData:
    """A state of the twin; force (n_links, 6) acts on the named links."""
    d = mujoco.MjData(m)
    d.qpos[:], d.qvel[:] = q, qd
    if u is not None:
        d.ctrl[:] = u
    if force is not None:
        for name, pushed in zip(links, force, strict=True):
            d.xfrc_applied[m.body(name).id] = pushed
    return d


def _text(values) -> str:
    return " ".join(repr(float(v)) for v in np.atleast_1d(values))


def _body(parent: ET.Element, link: Link, joints: list[Joint], base: str) -> ET.Element:
    """A body per joint of the link, one in the other; the innermost has the link's mass."""
    if not joints:
        body = ET.SubElement(parent, "body", name=link.name)
        if base == "free":
            ET.SubElement(body, "freejoint")
    for number, joint in enumerate(joints):
        is_last = number == len(joints) - 1
        name = link.name if is_last else f"{link.name}.{joint.name}"
        body = ET.SubElement(parent, "body", name=name, pos=_text(joint.position), quat=_text(joint.orientation))
        _add_joints(body, joint)
        if not is_last:
            ET.SubElement(body, "inertial", pos="0 0 0", mass=repr(SPECK), diaginertia=_text([SPECK] * 3))
        parent = body
    if link.mass:
        xx, xy, xz, yy, yz, zz = link.inertia
        full = _text((xx, yy, zz, xy, xz, yz))
        ET.SubElement(body, "inertial", pos=_text(link.com), mass=repr(float(link.mass)), fullinertia=full)
    return body


def _add_joints(body: ET.Element, joint: Joint) -> None:
    parts = primitives(joint)
    for k, (name, kind, axis) in enumerate(parts):
        made = ET.SubElement(body, "joint", name=name, type=MUJOCO_KINDS[kind], axis=_text(axis))
        for what in ("damping", "stiffness", "armature"):
            made.set(what, _text(getattr(joint, what)))
        if kind not in ("spherical", "free") and joint.rest is not None:
            made.set("springref", _text(np.atleast_1d(joint.rest)[k]))


def _drive(drives: ET.Element, actuator: Actuator, joint: Joint) -> None:
    parts = primitives(joint)
    name, gear = parts[0][0], [0.0] * 6
    if len(parts) > 1:
        name, gear[0] = parts[actuator.component][0], actuator.gear
    else:
        gear[actuator.component] = actuator.gear
    b0, b1, b2 = actuator.bias
    b1 -= actuator.gain if actuator.kind == "position" else 0.0
    b2 -= actuator.damping + (actuator.gain if actuator.kind == "velocity" else 0.0)
    made = ET.SubElement(
        drives,
        "general",
        name=actuator.name,
        joint=name,
        gear=_text(gear),
        gaintype="fixed",
        gainprm=_text(actuator.gain),
    )
    made.set("biastype", "affine")
    made.set("biasprm", _text((b0, b1, b2)))
    for what, limit in (("ctrl", actuator.control_limit), ("force", actuator.force_limit)):
        if np.isfinite(limit).all():
            made.set(f"{what}limited", "true")
            made.set(f"{what}range", _text(limit))
