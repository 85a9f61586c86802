"""Bodies, joints, geoms and sites of MJCF become links, joints, shapes and sites."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from ...model.budget import excess, present
from ...model.description import Description, Joint, Link
from ..mesh import Meshes
from ..xml import Element
from .geom import Matter, matter_of, shape_of, weighed
from .inertia import TINY_MASS, align, set_inertia
from .pose import (
    IDENTITY,
    NO_TURN,
    ORIGIN,
    Pose,
    Quaternion,
    about,
    compose,
    direction,
    from_euler,
    orientation,
    pose,
    turned,
)
from .report import Report
from .source import Source
from .words import checked, is_limited

WORLD = "world"
DEPTH = 300  # bodies in bodies
JOINTS = {"hinge": "revolute", "slide": "prismatic", "ball": "spherical", "free": "free"}


@dataclass(frozen=True)
class Scope:
    """Which file an element is from, and what is added to the names in it."""

    source: Source
    prefix: str = ""
    suffix: str = ""

    def named(self, name: str) -> str:
        return f"{self.prefix}{name}{self.suffix}"


@dataclass
class Part:
    """An element of a body, out of all frames and copies around it."""

    element: Element
    scope: Scope
    frame: Pose
    default: str


@dataclass
class Builder:
    robot: Description
    report: Report
    missing_meshes: str = "error"
    grown: float = 0
    most_parts: float = field(default_factory=lambda: present().parts)
    # per kind and name in the file: the scopes under which it is there
    scopes: dict[tuple[int, str, str], list[Scope]] = field(default_factory=dict)
    found: dict[tuple, dict[Scope, None]] = field(default_factory=dict)  # answers of `scopes_of`
    numbers: dict[tuple[int, str], int] = field(default_factory=dict)  # that names without an own one have come to
    order: dict[tuple[str, str], int] = field(default_factory=dict)  # in which the scopes came, by prefix and suffix
    types: dict[str, str] = field(default_factory=dict)  # of joints
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)  # of joints, whether limited or not
    ratios: dict[str, tuple[float, float]] = field(default_factory=dict)  # springdamper of joints
    damping_ratios: dict[str, float] = field(default_factory=dict)  # of position actuators
    effort: dict[str, tuple[float, float]] = field(default_factory=dict)  # actuatorfrcrange of joints
    tendon_ranges: dict[str, tuple[float, float]] = field(default_factory=dict)  # whether limited or not
    pull_limits: dict[str, tuple[float, float]] = field(default_factory=dict)  # actuatorfrcrange of tendons
    attached: list[Scope] = field(default_factory=list)
    meshes: Meshes = field(default_factory=Meshes)

    def grow(self, element: Element, count: float = 1) -> None:
        """Count parts before they are made: copies, and what follows copies, grow faster than the file."""
        self.grown += count
        if self.grown > self.most_parts:
            raise element.error(f"the file grows to {excess('parts', self.grown)}")

    # what is inside a body ----------------------------------------------------------------------------------------------

    def parts(self, element: Element, scope: Scope, frame: Pose, default: str) -> Iterator[Part]:
        """The elements of a body with frames resolved and copies made."""
        c = scope.source.compiler
        for child in element.children:
            self.grow(child)
            checked(child)
            if child.tag == "frame":
                own = compose(frame, pose(child, c.degrees, c.sequence))
                yield from self.parts(child, scope, own, self.class_inside(child, scope, default))
            elif child.tag == "replicate":
                yield from self._copies(child, scope, frame, self.class_inside(child, scope, default))
            elif child.tag == "attach":
                yield from self.attach(child, scope, frame, default)
            else:
                yield Part(child, scope, frame, default)

    def class_inside(self, element: Element, scope: Scope, default: str) -> str:
        name = element.get("childclass", element.get("class", default))
        return scope.source.defaults.find(name, element)

    def _copies(self, element: Element, scope: Scope, frame: Pose, default: str) -> Iterator[Part]:
        count = element.number("count")
        if count is None or count < 1 or count != int(count):
            raise element.error("<replicate> needs a count of one or more")
        self.grow(element, count)
        c = scope.source.compiler
        step = element.floats("offset", 3, ORIGIN)
        angles = [a * (math.pi / 180 if c.degrees else 1.0) for a in element.floats("euler", 3, ORIGIN)]
        place = ORIGIN
        for i in range(int(count)):
            turn = from_euler([i * a for a in angles], c.sequence)
            number = str(i).zfill(len(str(int(count))))
            inner = replace(scope, suffix=f"{element.get('sep', '')}{number}{scope.suffix}")
            yield from self.parts(element, inner, compose(frame, (place, turn)), default)
            x, y, z = turned(turn, step)
            place = (place[0] + x, place[1] + y, place[2] + z)

    def attach(self, element: Element, scope: Scope, frame: Pose, default: str) -> Iterator[Part]:
        """A body of another file, or all that is in its world, with a prefix to its names."""
        other = scope.source.model(element)
        inner = Scope(other, scope.prefix + element.get("prefix", ""), scope.suffix)
        if other is not scope.source:
            yield Part(element, inner, frame, default)
        named = [tag for tag in ("body", "frame") if tag in element.attributes]
        for world in other.sections("worldbody"):
            if not named:
                yield from self.parts(world, inner, frame, "main")
        if named:
            found, kind = self._found(element, other, named[0])
            yield from self.parts(Element("attach", {}, [found]), inner, frame, kind)

    def _found(self, element: Element, other: Source, tag: str) -> tuple[Element, str]:
        """A body or frame by name, and the class that holds where it is."""
        wanted = element.attributes[tag]
        stack = [(world, "main") for world in reversed(other.sections("worldbody"))]
        while stack:
            at, kind = stack.pop()
            if at.tag == tag and at.get("name") == wanted:
                return at, kind
            inside = at.get("childclass", kind)
            stack += [(child, inside) for child in reversed(at.children)]
        raise element.error(f'<attach>: there is no {tag} "{wanted}" to attach')

    # bodies -------------------------------------------------------------------------------------------------------------

    def world(self, scope: Scope) -> None:
        """All that hangs in the world; its own shapes and sites are on a link of their own."""
        parts = [part for s in scope.source.sections("worldbody") for part in self.parts(s, scope, IDENTITY, "main")]
        link = Link(WORLD)
        for part in parts:
            if part.element.tag == "geom":
                self._geom(part, link, [], False)
            elif part.element.tag == "site":
                self._site(part, link)
            elif part.element.tag in ("joint", "freejoint", "inertial"):
                raise part.element.error(f"the world cannot have a <{part.element.tag}>")
        if link.shapes or link.sites:
            self.robot.links[WORLD] = link
            self.robot.add_joint(WORLD, "fixed", None, WORLD)
        self._children(parts, None)

    def _children(self, parts: list[Part], parent: str | None, depth: int = 0) -> None:
        for part in parts:
            if part.element.tag == "body":
                if depth >= DEPTH:
                    raise part.element.error(f"bodies are nested more than {DEPTH} deep, the most that is read")
                self._body(part, parent, depth)
            elif part.element.tag == "attach":
                self.attached.append(part.scope)  # here, for their actuators come in the order of the bodies
            elif part.element.tag in ("composite", "flexcomp"):
                self.report.changes(f"<{part.element.tag}>")
            elif part.element.tag == "plugin":
                self.report.changes("<plugin> of a body")
            elif part.element.tag in ("camera", "light"):
                self.report.ignores(f"<{part.element.tag}>")
            elif part.element.tag not in ("geom", "site", "joint", "freejoint", "inertial"):
                raise part.element.error(f"<{part.element.tag}> is not something that a body can have")

    def _body(self, part: Part, parent: str | None, depth: int) -> None:
        element, scope = part.element, part.scope
        c = scope.source.compiler
        name = self._name("body", element, scope, self.robot.links, f"body{len(self.robot.links)}")
        place = compose(part.frame, pose(element, c.degrees, c.sequence))
        inside = list(self.parts(element, scope, IDENTITY, self.class_inside(element, scope, part.default)))
        link = self.robot.add_link(name)
        explicit = [p.element for p in inside if p.element.tag == "inertial"]
        matter: list[Matter] = []
        wants_matter = not explicit or c.inertia_from_geoms is True
        for p in inside:
            if p.element.tag == "geom":
                self._geom(p, link, matter, wants_matter)
            elif p.element.tag == "site":
                self._site(p, link)
        written = explicit[-1] if explicit else None
        matter = [m for m in matter if m.mass > TINY_MASS]
        set_inertia(element, link, written, matter, c, place)
        self._describe(element)
        joints = [p for p in inside if p.element.tag in ("joint", "freejoint")]
        if self._is_aligned(joints, inside, c.align_free):
            aligned = align(link, place, written, matter, c)
            if aligned is None:
                self.report.changes("a free joint that is aligned with the principal axes of several geoms")
            place = aligned or place
        self._joints(joints, link, parent, place)
        self._children(inside, name, depth + 1)

    def _describe(self, element: Element) -> None:
        if element.number("gravcomp", 0.0):
            self.report.changes("gravcomp of a body")
        if element.flag("mocap"):
            self.report.ignores("mocap (the body stays where it is)")

    def _name(self, kind: str, element: Element, scope: Scope, taken: dict[str, Any], otherwise: str) -> str:
        given = element.get("name", "")
        if given:
            name = scope.named(given)
            self.order.setdefault((scope.prefix, scope.suffix), len(self.order))
            self.scopes.setdefault((id(scope.source), kind, given), []).append(scope)
            if name in taken or (kind == "body" and name == WORLD):
                raise element.error(f'two {kind} elements are called "{name}"; give one another name')
            return name
        return self._free_name(otherwise, taken)

    # geoms and sites ----------------------------------------------------------------------------------------------------

    def _geom(self, part: Part, link: Link, matter: list[Matter], wants_matter: bool) -> None:
        scope = part.scope
        element = scope.source.defaults.resolved(part.element, part.default)
        if element.first("plugin") is not None:
            self.report.ignores("<plugin> of a geom (contact)")
        shape = shape_of(element, part.frame, scope.source.compiler)
        if element.get("name"):
            shape.name = scope.named(element.attributes["name"])
            self.scopes.setdefault((id(scope.source), "geom", element.attributes["name"]), []).append(scope)
        low, high = scope.source.compiler.groups
        is_missing = False
        wants_matter = wants_matter and low <= element.number("group", 0.0) <= high
        if "mesh" in element.attributes:
            from .mesh import mesh_shape

            found = mesh_shape(self, element, scope, shape, wants_matter)
            if found is None:
                return
            shape, heavy = found
        elif shape.kind in ("mesh", "sdf"):
            raise element.error(f"a geom of type {shape.kind} needs a mesh")
        else:
            if shape.kind == "hfield":
                from .hfield import field_asset, field_shape, matter_box

                box = matter_box(field_asset(element, scope))
                heavy = weighed(element, shape, "box", box) if wants_matter else None
                shape, is_missing = field_shape(self, element, scope, shape)
            else:
                heavy = matter_of(element, shape) if wants_matter else None
        if heavy is not None:
            matter.append(heavy)
        if not is_missing and not (scope.source.compiler.discard_visual and shape.role == "visual"):
            link.shapes.append(shape)

    def _site(self, part: Part, link: Link) -> None:
        c = part.scope.source.compiler
        element = part.scope.source.defaults.resolved(part.element, part.default)
        given = element.get("name", "")
        if given:
            self.scopes.setdefault((id(part.scope.source), "site", given), []).append(part.scope)
        if "fromto" in element.attributes:
            ends = element.floats("fromto", 6)
            own = tuple((a + b) / 2 for a, b in zip(ends[:3], ends[3:], strict=True)), NO_TURN
        else:
            own = element.floats("pos", 3, ORIGIN), orientation(element, c.degrees, c.sequence)
        place, turn = compose(part.frame, own)
        link.sites.append((part.scope.named(given) if given else f"site{len(link.sites)}", place, turn))

    # joints -------------------------------------------------------------------------------------------------------------

    def _joints(self, parts: list[Part], link: Link, parent: str | None, place: Pose) -> None:
        if not parts:
            name = self._free_name(link.name)
            self.robot.add_joint(name, "fixed", parent, link.name, position=place[0], orientation=place[1])
            return
        for number, part in enumerate(parts):
            kind = (
                "free"
                if part.element.tag == "freejoint"
                else part.scope.source.defaults.resolved(part.element, part.default).get("type", "hinge")
            )
            if kind not in JOINTS:
                raise part.element.error(f'<joint type="{kind}">: the types are {", ".join(JOINTS)}')
            name = self._name(
                "joint",
                part.element,
                part.scope,
                self.robot.joints,
                self._free_name(link.name if len(parts) == 1 else f"{link.name}.{number}"),
            )
            joint = self.robot.add_joint(name, JOINTS[kind], parent, link.name, position=place[0], orientation=place[1])
            self.types[name] = kind
            if kind == "free" and parent is not None:
                raise part.element.error(
                    f'free joint "{name}" is on a body inside another; only the world can carry it'
                )
            if kind == "free" and len(parts) > 1:
                raise part.element.error(f'body "{link.name}" has a free joint and others; a free joint is alone')
            if part.element.tag == "joint":
                self._joint(part, joint, kind)
            place = IDENTITY

    def _free_name(self, name: str, taken: dict[str, Any] | None = None) -> str:
        taken = self.robot.joints if taken is None else taken
        number, wanted = self.numbers.get((id(taken), name), 1), name
        while wanted in taken:
            wanted, number = f"{name}_{number}", number + 1
        self.numbers[id(taken), name] = number  # the next of this name need not try them again
        return wanted

    def _is_aligned(self, joints: list[Part], inside: list[Part], everywhere: bool) -> bool:
        if len(joints) != 1 or any(p.element.tag == "body" for p in inside):
            return False
        element = joints[0].scope.source.defaults.resolved(joints[0].element, joints[0].default)
        if element.tag != "freejoint" and element.get("type", "hinge") != "free":
            return False
        return {"true": True, "false": False}.get(element.get("align", "auto"), everywhere)

    def _joint(self, part: Part, joint: Joint, kind: str) -> None:
        c = part.scope.source.compiler
        element = part.scope.source.defaults.resolved(part.element, part.default)
        angular = math.pi / 180 if c.degrees and kind in ("hinge", "ball") else 1.0
        joint.stiffness = self._polynomial(element, "stiffness")
        joint.damping = self._polynomial(element, "damping")
        joint.armature = element.number("armature", 0.0)
        joint.friction = element.number("frictionloss", 0.0)
        ratio = element.floats("springdamper", 2, (0.0, 0.0))
        if any(ratio):
            self.ratios[joint.name] = ratio
        if kind == "free":
            return
        if kind != "ball":
            axis = direction(element.floats("axis", 3, (0.0, 0.0, 1.0)), "the axis", element)
            joint.axis = turned(part.frame[1], axis)
        joint.anchor = compose(part.frame, (element.floats("pos", 3, ORIGIN), NO_TURN))[0]
        bounds = element.floats("range", 2, (0.0, 0.0), finite=False)
        bounds = (bounds[0] * angular, bounds[1] * angular)
        self.ranges[joint.name] = bounds
        if is_limited(element, "limited", bounds, c.autolimits):
            if bounds[0] >= bounds[1] and kind != "ball":
                raise element.error(f'the range of joint "{joint.name}" must go from a smaller to a larger number')
            joint.limit = bounds
        effort = element.floats("actuatorfrcrange", 2, (0.0, 0.0), finite=False)
        if kind != "ball":
            if is_limited(element, "actuatorfrclimited", effort, c.autolimits):
                self.effort[joint.name] = effort
            angle = math.pi / 180 if c.degrees and kind == "hinge" else 1.0
            self._reference(joint, element.number("ref", 0.0) * angle, element.number("springref", 0.0) * angle)

    def _polynomial(self, element: Element, name: str) -> float:
        first, *higher = element.floats(name, (1, 2, 3), (0.0,))
        if any(higher):
            self.report.changes(f"{element.tag} {name} that depends on the motion".replace("fixed", "tendon"))
        return first

    def _reference(self, joint: Joint, reference: float, rest: float) -> None:
        """MJCF's q counts from `ref`: the joint is placed back by it, so that q means the same here."""
        joint.initial, joint.rest = reference, rest
        if not reference:
            return
        if joint.kind == "prismatic":
            back = (tuple(-reference * a for a in joint.axis), NO_TURN)
        else:
            turn: Quaternion = about(joint.axis, -reference)
            moved = turned(turn, joint.anchor)
            back = (tuple(a - m for a, m in zip(joint.anchor, moved, strict=True)), turn)
        placed = (joint.position, joint.orientation)
        joint.position, joint.orientation = compose(placed, back)  # type: ignore[arg-type]


def scopes_of(builder: Builder, scope: Scope, kind: str, name: str) -> dict[Scope, None]:
    """Where a thing of this name is, in order, among what came in under this scope; copies make it several."""
    there = builder.scopes.get((id(scope.source), kind, name), [])
    key = scope, kind, name, len(there)
    if key not in builder.found:
        mine = (s for s in there if s.prefix.startswith(scope.prefix) and s.suffix.endswith(scope.suffix))
        builder.found[key] = dict.fromkeys(mine)
    return builder.found[key]


def nearest(scope: Scope, there: dict[Scope, None]) -> Scope:
    """The scope itself where a thing is there, else the first in which it is."""
    return scope if scope in there else next(iter(there))
