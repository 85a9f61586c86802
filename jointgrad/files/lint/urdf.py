"""What is suspicious in the elements of a URDF file, whether or not it can be read as a robot."""

from __future__ import annotations

from collections import Counter

from ...model.checks import looks_like_degrees
from ..urdf.reader import READ as TAGS
from ..xml import Element, FileError
from .finding import Notebook, listed

# known extensions: the motion does not depend on these ...
HARMLESS = {
    "transmission", "sensor", "texture", "safety_controller", "verbose", "self_collision_checking", "material", "visual",
    "hardwareInterface", "ros2_control", "origin", "drake:diffuse_map", "actuator", "group_state", "disable_collisions", "group",
    "end_effector", "virtual_joint", "collision_checking", "collision_checker", "mujoco",
}  # fmt: skip
# ... but may depend on these, and on these words inside <gazebo>
PHYSICS = {"contact", "loop_joint", "closed_loop", "spring", "stiffness"}
GAZEBO_PHYSICS = {
    "mu", "mu1", "mu2", "kp", "kd", "maxVel", "minDepth", "maxContacts", "fdir1", "dampingFactor", "turnGravityOff", "gravity",
    "static", "joint", "stopCfm", "stopErp", "springStiffness", "springReference", "implicitSpringDamper", "selfCollide", "bounce",
    "torsional", "slip1", "slip2", "cfmDamping", "fudgeFactor", "friction", "contact", "self_collide",
}  # fmt: skip
# where one of these is found, the loader's refusal says nothing new
STRUCTURE: tuple[str, ...] = (
    "missing-name",
    "duplicate-name",
    "unknown-link",
    "cycle",
    "several-roots",
    "unused-link",
    "two-parents",
)


def check_elements(root: Element, notes: Notebook) -> None:
    links, joints = root.all("link"), root.all("joint")
    if not root.get("name", "").strip():
        notes.add("missing-name", "note", root, "robot", "the robot has no name", 'write <robot name="...">')
    notes.links, notes.joints = (_by_name(elements, notes) for elements in (links, joints))
    if links:
        _check_tree(joints, notes)
    for link in links:
        _check_inertial(link, notes)
        _check_armature(link, notes)
    for joint in joints:
        _check_joint(joint, notes)
        _check_armature(joint, notes)
    for element in root.walk():
        if element.tag == "origin" and any(looks_like_degrees(v) for v in _floats(element, "rpy")):
            message = f'rpy="{element.get("rpy")}" is more than a full turn and whole numbers: it looks like degrees'
            notes.add("units-degrees", "warning", element, "origin", message, "write radians (multiply by pi/180)")
    _check_materials(root, notes)
    _check_unknown(root, notes)


def number(element: Element | None, name: str) -> float | None:
    """A number, or None where there is none or it cannot be read: that is for the loader to say."""
    values = _floats(element, name)
    return values[0] if len(values) == 1 else None


def _floats(element: Element | None, name: str) -> tuple[float, ...]:
    try:
        return () if element is None else element.floats(name, None, (), finite=False)
    except FileError:
        return ()


def _owner(element: Element) -> str:
    return f'{element.tag} "{element.get("name", "")}"'


# the tree ----------------------------------------------------------------------------------------------------------------


def _by_name(elements: list[Element], notes: Notebook) -> dict[str, Element]:
    found: dict[str, Element] = {}
    for element in elements:
        name = element.get("name", "")
        if not name.strip():
            message = f"this <{element.tag}> has no name"
            notes.add("missing-name", "error", element, element.tag, message, "give it a name of its own")
        elif name in found:
            message = f"there is another {element.tag} of this name in line {found[name].line}"
            notes.add("duplicate-name", "error", element, _owner(element), message, "rename one, and what refers to it")
        else:
            found[name] = element
    return found


def _check_tree(joints: list[Element], notes: Notebook) -> None:
    above: dict[str, str] = {}
    used: set[str] = set()
    for joint in joints:
        ends = [(which, e.get("link", "") if (e := joint.first(which)) else "") for which in ("parent", "child")]
        for which, link in ends:
            if link not in notes.links and not (which == "parent" and link == "world"):
                message = f'its {which} is link "{link}", which is not in the file' if link else f"it has no {which}"
                notes.add("unknown-link", "error", joint, _owner(joint), message, "name a link of this file")
        parent, child = ends[0][1], ends[1][1]
        used |= {parent, child}
        if child in above:
            message = f'its child "{child}" already hangs on link "{above[child]}": a tree has one parent per link'
            remedy = "remove one of the joints; URDF cannot say closed loops"
            notes.add("two-parents", "error", joint, _owner(joint), message, remedy)
        else:
            above[child] = parent
    _check_cycles(above, notes)
    _check_roots(above, used, notes)


def _check_cycles(above: dict[str, str], notes: Notebook) -> None:
    done: set[str] = set()
    for start in above:
        path: list[str] = []
        at = start
        while at in above and at not in done:
            done.add(at)
            path.append(at)
            at = above[at]
        if at in path:
            ring = path[path.index(at) :]
            message = f"the links {listed(reversed(ring))} hang on each other in a ring"
            notes.link("cycle", "error", at, message, "remove one joint of the ring")


def _check_roots(above: dict[str, str], used: set[str], notes: Notebook) -> None:
    tops = [name for name in notes.links if name not in above]
    if "world" in above.values() and "world" not in notes.links:
        tops.insert(0, "world")
    main = next((top for top in tops if top in used), tops[0] if tops else None)
    for top in tops:
        if top == main:
            continue
        if top not in used:
            message = f'no joint holds this link, but the tree of the robot begins at "{main}"'
            notes.link("unused-link", "error", top, message, "join it by a joint, or remove it")
        else:
            message = f'this is a second root beside "{main}", but URDF is one tree'
            notes.link(
                "several-roots", "error", top, message, f'join it to the tree of "{main}", or make it a file of its own'
            )


# parts -------------------------------------------------------------------------------------------------------------------


def _check_inertial(link: Element, notes: Notebook) -> None:
    inertial = link.first("inertial")
    if inertial is None:
        return
    for part in ("mass", "inertia"):
        if inertial.first(part) is None:
            what = {"mass": "its link is read as massless", "inertia": "its link is read as a mass point"}[part]
            message = f"<inertial> has no <{part}>: {what}"
            notes.add("inertial-incomplete", "warning", inertial, _owner(link), message, f"add <{part}>")


def _check_armature(owner: Element, notes: Notebook) -> None:
    for element in owner.walk():
        if element.tag == "armature":
            value = str(element.get("value", element.text))[:40]
            message = (
                f"<armature> of {value} is no part of URDF and is not read here; where it is read, it is added to mass and "
                "inertia of the whole link, which is not what a rotor does"
            )
            remedy = 'remove it, and give armature to the joint after loading: robot.joint("...").armature = ...'
            notes.add("armature", "warning", element, _owner(owner), message, remedy)


def _check_joint(joint: Element, notes: Notebook) -> None:
    kind, limit = joint.get("type", ""), joint.first("limit")
    owner = _owner(joint)
    if kind not in ("revolute", "prismatic"):
        return
    if limit is None:
        message = f"a {kind} joint without <limit> is read as unlimited; others refuse it"
        notes.add("limit-missing", "warning", joint, owner, message, "add <limit>, or make the joint continuous")
        return
    low, high = number(limit, "lower") or 0.0, number(limit, "upper") or 0.0
    if low > high:
        message = f"lower limit {low:g} is above the upper, {high:g}; it is read as unlimited"
        notes.add("limit-order", "error", limit, owner, message, "exchange them (--fix does)")
    effort = number(limit, "effort")
    if joint.first("mimic") is None and (effort is None or effort <= 0):
        message = "it has no effort limit" if effort is None else f"its effort limit is {effort:g}"
        message += ": its motor is read as unlimited"
        notes.add("effort-missing", "note", limit, owner, message, 'write effort="..." in N m (or N)')


def _check_materials(root: Element, notes: Notebook) -> None:
    used = {m.get("name", "") for e in root.walk() if e.tag == "visual" for m in e.all("material")}
    for material in root.all("material"):
        if material.get("name", "") not in used:
            message = "no shape uses this material"
            notes.add("unused-material", "note", material, _owner(material), message, "remove it")


def _check_unknown(root: Element, notes: Notebook) -> None:
    """Each tag that is not read, once per kind of parent, where it is first found."""
    first: dict[tuple[str, str], Element] = {}
    count: Counter[tuple[str, str]] = Counter()
    stack = [root]
    while stack:
        parent = stack.pop()
        for child in parent.children:
            if child.tag in TAGS.get(parent.tag, ()):
                stack.append(child)
                continue
            if parent.tag not in TAGS or child.tag == "armature":
                continue  # inside an element without parts of its own, such as <origin>; armature has its own finding
            key = (parent.tag, child.tag)
            count[key] += 1
            if key not in first or child.line < first[key].line:
                first[key] = child
    for (above, tag), element in first.items():
        _add_unknown(above, tag, element, count[above, tag], root, notes)


def _add_unknown(parent: str, tag: str, element: Element, times: int, root: Element, notes: Notebook) -> None:
    often = f" ({times} times)" if times > 1 else ""
    owner = f"<{tag}> in <{parent}>"
    words: set[str] = set()
    if tag == "gazebo":
        gazebos = [g for e in root.walk() if e.tag == parent for g in e.all("gazebo")]
        words = {e.tag for g in gazebos for e in g.walk()} & GAZEBO_PHYSICS
    if words or tag in PHYSICS or tag.startswith("drake:"):
        within = f", with {listed(sorted(words))}" if words else ""
        message = f"not read{often}{within}; the motion may depend on it"
        notes.add("unread-tag", "note", element, owner, message, "say the same by parameters after loading")
    elif tag in HARMLESS or tag == "gazebo" or tag.startswith(("sensor", "hardware")):
        message = f"not read{often}; the motion does not depend on it"
        notes.add("unread-tag", "note", element, owner, message, "none needed")
    else:
        known = ", ".join(sorted(TAGS[parent]))
        message = f"this is not a tag of URDF, and is not read{often}"
        notes.add("unknown-tag", "warning", element, owner, message, f"correct or remove it; <{parent}> holds {known}")
