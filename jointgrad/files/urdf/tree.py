"""Links and joints of a URDF file must be one tree; and how that tree meets the world."""

from __future__ import annotations

from ...model.description import Description
from ..xml import Element

# "spherical" and "ball" are what PyBullet and others add to URDF
KINDS = {kind: kind for kind in ("fixed", "revolute", "continuous", "prismatic", "planar", "spherical")}
KINDS |= {"floating": "free", "ball": "spherical"}
SCALAR = ("revolute", "continuous", "prismatic")


def elements_by_name(elements: list[Element]) -> dict[str, Element]:
    found: dict[str, Element] = {}
    for element in elements:
        name = element.require("name")
        if name in found:
            raise element.error(
                f'there are two {element.tag}s called "{name}", the first in line {found[name].line}; rename one'
            )
        found[name] = element
    return found


def end_of(joint: Element, which: str) -> str:
    element = joint.first(which)
    if element is None:
        raise joint.error(f'joint "{joint.get("name")}" has no <{which}>')
    return element.require("link")


def check_tree(root: Element, links: dict[str, Element], joints: dict[str, Element]) -> str:
    """One root, one joint per other link, no loop; returns the root's name."""
    above: dict[str, tuple[str, Element]] = {}
    for name, joint in joints.items():
        kind = joint.require("type")
        if kind not in KINDS:
            raise joint.error(f'joint "{name}" has type "{kind}"; the types are {", ".join(KINDS)}')
        parent, child = end_of(joint, "parent"), end_of(joint, "child")
        for which, link in (("parent", parent), ("child", child)):
            if link not in links:
                raise joint.error(f'the {which} of joint "{name}" is link "{link}", which is not in the file')
        if child in above:
            first = above[child][1]
            raise joint.error(
                f'link "{child}" is the child of joint "{first.get("name")}" and of joint "{name}"; a tree has one parent per link'
            )
        above[child] = parent, joint
    tops = [name for name in links if name not in above]
    if not tops:
        raise root.error("the joints form a cycle without a root; remove one joint of the loop")
    if len(tops) > 1:
        listed = ", ".join(f'"{t}"' for t in tops[:5]) + ", ..." * (len(tops) > 5)
        raise links[tops[1]].error(
            f"the robot has {len(tops)} roots ({listed}), but URDF is one tree; join them by joints"
        )
    _check_reached(tops[0], links, above)
    return tops[0]


def _check_reached(top: str, links: dict[str, Element], above: dict[str, tuple[str, Element]]) -> None:
    children: dict[str, list[str]] = {}
    for child, (parent, _) in above.items():
        children.setdefault(parent, []).append(child)
    reached, stack = {top}, [top]
    while stack:
        below = children.get(stack.pop(), [])
        reached.update(below)
        stack += below
    lost = next((name for name in links if name not in reached), None)
    if lost is not None:
        raise above[lost][1].error(f'link "{lost}" is in a cycle of joints; remove one joint of the loop')


def check_mimics(robot: Description, elements: dict[str, Element]) -> None:
    """Every chain of mimics ends at a joint that follows no other; each joint is looked at once."""
    settled: set[str] = set()
    for name in robot.joints:
        chain: set[str] = set()
        while name not in settled:
            if name in chain:
                raise elements[name].error(
                    f'joint "{name}" mimics itself, at last; give one joint of the ring its freedom'
                )
            chain.add(name)
            mimic = robot.joints[name].mimic
            if mimic is None:
                break
            if mimic[0] not in robot.joints:
                raise elements[name].error(f'joint "{name}" mimics joint "{mimic[0]}", which is not in the file')
            name = mimic[0]
        settled |= chain


def join_to_world(robot: Description, top: str, elements: dict[str, Element]) -> None:
    """Free joints hang on the world; a bare root called "world" is the world."""
    root = robot.links[top]
    below = [joint for joint in robot.joints.values() if joint.parent == top]
    for joint in robot.joints.values():
        if joint.kind == "free" and joint.parent != top:
            raise elements[joint.name].error(
                f'floating joint "{joint.name}" hangs on link "{joint.parent}"; only below the root can a link float: '
                "load the two parts as two robots"
            )
    is_world = top == "world" and below and not (root.mass or any(root.inertia) or root.shapes)
    for joint in below:
        if joint.kind == "free" or is_world:
            joint.parent = None  # the root does not move, so that a link that floats from it floats from the world
    if is_world:
        del robot.links[top]
