"""URDF in: one pass through the file, one warning for what it holds and we do not read."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from ...model.description import INFINITE, Description, Joint, Link, Shape
from ...model.errors import ModelError, UnsupportedWarning, warn_caller
from ..packages import found_mesh
from ..xml import Element, FileError, Folders, MissingFileError, parse, roots_of
from .quantities import (
    GREY,
    LARGEST,
    axis_of,
    force_limit,
    inertia_of,
    mass_of,
    pose_of,
    product,
    scale_of,
    size_of,
    turn_from_z,
    turned,
    unlimited,
)
from .srdf import disabled_pairs, srdf_beside
from .tree import KINDS, SCALAR, check_mimics, check_tree, elements_by_name, end_of, join_to_world

READ = {
    "robot": {"link", "joint", "material"},
    "link": {"inertial", "visual", "collision"},
    "joint": {"origin", "parent", "child", "axis", "limit", "dynamics", "mimic", "calibration"},
    "inertial": {"origin", "mass", "inertia"},
    "visual": {"origin", "geometry", "material"},
    "collision": {"origin", "geometry"},
    "geometry": {"box", "sphere", "cylinder", "capsule", "mesh", "plane"},
    "material": {"color"},
}
HARMLESS = {
    "transmission", "sensor", "texture", "safety_controller", "verbose", "self_collision_checking", "material", "visual",
    "hardwareInterface", "ros2_control", "xacro:include", "xacro:property", "xacro:macro", "origin", "drake:diffuse_map",
    "actuator", "group_state", "disable_collisions", "push_button", "hand", "group", "end_effector", "virtual_joint",
}  # fmt: skip
# words inside <gazebo> that change motion; plugins, sensors and colours do not
GAZEBO_PHYSICS = {
    "mu", "mu1", "mu2", "kp", "kd", "maxVel", "minDepth", "maxContacts", "fdir1", "dampingFactor", "turnGravityOff", "gravity",
    "static", "joint", "stopCfm", "stopErp", "springStiffness", "springReference", "implicitSpringDamper", "selfCollide", "bounce",
    "torsional", "slip1", "slip2", "cfmDamping", "fudgeFactor", "friction", "contact", "self_collide",
}  # fmt: skip
OTHER_PHYSICS = {"contact", "loop_joint", "closed_loop", "spring", "stiffness", "geometry"}


def load_urdf(
    source: Any,
    *,
    search_roots: Folders = (),
    missing_meshes: str = "error",
    base: str | None = None,
    actuators: bool = True,
    srdf: Any = None,
) -> Description:
    """The robot of a URDF file: a path, an open file, or the text itself.

    Meshes are looked for in the file's folder and in `search_roots` (a folder or several); package://name/file also in the folders
    above the file and in the packages of ROS (files/packages.py). A mesh that is there is named by its path, one that is not has
    none, and none is opened. A collision mesh that is nowhere is an error, or, with missing_meshes="skip", one line of the warning
    that tells what was not read. `base` is "fixed" (default) or "free". Every movable joint of one degree of freedom that mimics
    no other gets a torque actuator of its name. Links that an SRDF file keeps apart do not touch: `srdf` is its path or text;
    None takes the file of the same name beside the URDF, if there is one, and False none.
    """
    if missing_meshes not in ("error", "skip"):
        raise ModelError(f'missing_meshes is "error" or "skip", but got {missing_meshes!r}')
    if base not in (None, "fixed", "free"):
        raise ModelError(f'base is "fixed", "free" or None, but got {base!r}')
    root = parse(source)
    if root.tag != "robot":
        raise root.error(f"this is not URDF: the outermost element is <{root.tag}>, not <robot>")
    robot = _Reader(root, roots_of(source, search_roots), missing_meshes).robot(base, actuators)
    beside = srdf_beside(source) if srdf is None else srdf
    if beside:
        robot.constraints += disabled_pairs(beside, robot)
    return robot


class _Reader:
    """Goes through one file once; remembers what it did not read."""

    def __init__(self, root: Element, roots: list[Path], missing_meshes: str) -> None:
        self.root, self.roots, self.missing_meshes = root, roots, missing_meshes
        self.unread: Counter[str] = Counter()
        self.notes: Counter[str] = Counter()
        self.missing: list[str] = []
        self.colors: dict[str, tuple[float, ...]] = {}

    def robot(self, base: str | None, actuators: bool) -> Description:
        root = self.root
        robot = Description(root.get("name", "").strip() or "robot", base or "fixed")
        self._note_unread(root)
        for element in root.all("material"):
            self._material(element)
        links = elements_by_name(root.all("link"))
        joints = elements_by_name(root.all("joint"))
        if not links:
            if any(e.tag.startswith("xacro:") for e in root.children):
                raise root.error("this is a xacro file, not yet URDF: run `xacro FILE > robot.urdf` first")
            raise root.error("the robot has no <link>")
        if "world" not in links and any(end_of(joint, "parent") == "world" for joint in joints.values()):
            links = {"world": Element("link", {"name": "world"}, line=root.line, file=root.file), **links}
        top = check_tree(root, links, joints)
        for element in links.values():
            self._link(robot, element)
        for element in joints.values():
            self._joint(robot, element)
        check_mimics(robot, joints)
        join_to_world(robot, top, joints)
        if actuators:
            self._add_actuators(robot)
        self._warn()
        return robot

    # parts ---------------------------------------------------------------------------------------------------------------

    def _link(self, robot: Description, element: Element) -> None:
        self._note_unread(element)
        link = robot.add_link(element.require("name"))
        inertial = element.first("inertial")
        if inertial is not None:
            self._inertial(link, inertial)
        link.shapes = [s for e in element.all("visual") if (s := self._shape(e, "visual"))]
        seen = {_form(shape): shape for shape in reversed(link.shapes)}
        for e in element.all("collision"):
            if shape := self._shape(e, "collision"):
                if twin := seen.pop(_form(shape), None):
                    twin.role = "both"
                else:
                    link.shapes.append(shape)

    def _inertial(self, link: Link, element: Element) -> None:
        self._note_unread(element)
        if element.first("mass") is None:
            self.notes["<inertial> without <mass>, left out: its link has no mass"] += 1
            return
        link.com, turn = pose_of(element)
        link.mass = mass_of(element)
        if element.first("inertia") is None:
            self.notes["<inertial> without <inertia>, taken as a mass point"] += 1
            return
        link.inertia = turned(inertia_of(element), turn)

    def _shape(self, element: Element, role: str) -> Shape | None:
        self._note_unread(element)
        geometry = element.first("geometry")
        if geometry is None or not geometry.children:
            self.notes[f"<{element.tag}> without a shape, left out"] += 1
            return None
        self._note_unread(geometry)
        form = next((c for c in geometry.children if c.tag in READ["geometry"]), None)
        if form is None:
            return None
        position, orientation = pose_of(element)
        size: tuple[float, ...] = ()
        mesh = reference = ""
        if form.tag == "mesh":
            size, (mesh, reference) = scale_of(form), self._mesh(form, role)
        elif form.tag == "plane":
            orientation = product(orientation, turn_from_z(form.floats("normal", 3, (0.0, 0.0, 1.0)), form))
        else:
            size = size_of(form)
        color = self._color(element) if role == "visual" else GREY
        name = element.get("name", "")
        return Shape(form.tag, size, position, orientation, name, role, mesh, color, reference=reference)

    def _mesh(self, element: Element, role: str) -> tuple[str, str]:
        """The path of a mesh and nothing, or, where there is none, nothing and what the file calls it."""
        reference = element.require("filename").strip()
        try:
            return str(found_mesh(reference, self.roots)), ""
        except FileError as reason:
            if role == "collision" and self.missing_meshes == "error":
                message = f'{element.file}:{element.line}: {reason}; or load with missing_meshes="skip"'
                raise MissingFileError(message) from None
            self.missing.append(reference)
            return "", reference

    def _material(self, element: Element) -> tuple[float, ...] | None:
        self._note_unread(element)
        name, color = element.get("name", ""), element.first("color")
        if color is None:
            return self.colors.get(name)
        rgba = color.floats("rgba", (3, 4), GREY)
        self.colors[name] = (*rgba, 1.0)[:4]
        return self.colors[name]

    def _color(self, element: Element) -> tuple[float, ...]:
        material = element.first("material")
        return (None if material is None else self._material(material)) or GREY

    def _joint(self, robot: Description, element: Element) -> None:
        self._note_unread(element)
        name, kind = element.require("name"), KINDS[element.require("type")]
        position, orientation = pose_of(element)
        parent, child = end_of(element, "parent"), end_of(element, "child")
        joint = robot.add_joint(name, kind, parent, child, position=position, orientation=orientation)
        joint.axis = axis_of(element, kind)
        if kind == "fixed":
            return
        dynamics, mimic = element.first("dynamics"), element.first("mimic")
        if dynamics is not None:
            joint.damping = dynamics.number("damping", 0.0)
            joint.friction = dynamics.number("friction", 0.0)
        if mimic is not None:
            joint.mimic = (mimic.require("joint"), mimic.number("multiplier", 1.0), mimic.number("offset", 0.0))
        self._limits(joint, element.first("limit"))

    def _limits(self, joint: Joint, element: Element | None) -> None:
        if element is None:
            if joint.kind in ("revolute", "prismatic"):
                self.notes["joint without <limit>, taken as unlimited"] += 1
            return
        joint.effort_limit = unlimited(element.number("effort", LARGEST, finite=False))
        joint.velocity_limit = unlimited(element.number("velocity", LARGEST, finite=False))
        if joint.effort_limit <= 0:
            self.notes["effort limit of zero or less, taken as unlimited"] += 1
        if joint.kind not in ("revolute", "prismatic"):
            return
        low, high = (unlimited(element.number(end, 0.0, finite=False)) for end in ("lower", "upper"))
        if low > high:
            self.notes["lower joint limit above the upper, taken as unlimited"] += 1
            low, high = INFINITE
        joint.limit = (low, high)

    def _add_actuators(self, robot: Description) -> None:
        for joint in robot.joints.values():
            if joint.kind in SCALAR and joint.mimic is None:
                robot.add_actuator(joint.name, joint.name, force_limit=force_limit(joint))

    # what was not read ---------------------------------------------------------------------------------------------------

    def _note_unread(self, element: Element) -> None:
        for child in element.children:
            if child.tag in READ[element.tag]:
                continue
            if child.tag != "gazebo":
                self.unread[child.tag] += 1
                continue
            words = {e.tag for e in child.walk()} & GAZEBO_PHYSICS
            self.unread.update(f"gazebo/{word}" for word in sorted(words))
            self.unread["gazebo"] += not words

    def _warn(self) -> None:
        if not (self.unread or self.notes or self.missing):
            return
        acts = {t for t in self.unread if t.startswith(("gazebo/", "drake:")) or t in OTHER_PHYSICS}
        calm = {t for t in self.unread if t in HARMLESS or t == "gazebo" or t.startswith(("sensor", "hardware"))} - acts
        groups = (
            ("not read, and physics is affected where these matter", acts),
            ("not read, of unknown effect on physics", self.unread.keys() - acts - calm),
            ("not read, physics is not affected", calm),
        )
        said = [f"{what}: {_listed({t: self.unread[t] for t in tags})}" for what, tags in groups if tags]
        if self.notes:
            said.append(_listed(self.notes))
        if self.missing:
            where = ", ".join(f'"{r}"' for r in self.roots) or "no search roots"
            named = ", ".join(f'"{m}"' for m in sorted(set(self.missing))[:3]) + ", ..." * (len(set(self.missing)) > 3)
            said.append(
                f"{len(self.missing)} meshes not found in {where} ({named}), only contact and pictures need them"
            )
        warn_caller(f"{self.root.file}: {'; '.join(said)}", UnsupportedWarning)


def _form(s: Shape) -> tuple:
    """What a visual and a collision shape have in common where one body is both."""
    return s.kind, tuple(s.size), tuple(s.position), tuple(s.orientation), s.name, s.mesh, s.reference


def _listed(counts: Any) -> str:
    return ", ".join(f"{what} ({n})" for what, n in sorted(counts.items()))
