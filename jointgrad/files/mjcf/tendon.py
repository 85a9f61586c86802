"""Tendons of MJCF: fixed ones are sums of joint coordinates and are simulated; spatial ones are kept as data."""

from __future__ import annotations

from ...model.constraints import SpatialTendon, TendonBounds
from ...model.description import Tendon
from ..xml import Element
from .body import Builder, Scope, nearest, scopes_of
from .words import is_limited

# of a spatial tendon these act through its path, which is not simulated; the inertia of any tendon couples joints
PASSIVE = ("stiffness", "damping")


def tendons(builder: Builder, scope: Scope, is_main: bool) -> None:
    """All tendons of a file; where copies were made of what they run over, they follow copy by copy."""
    for element in scope.source.items("tendon"):
        if element.tag not in ("fixed", "spatial"):
            raise element.error(f"<{element.tag}> is not a tendon")
        resolved = scope.source.defaults.resolved(element, "main", "tendon")
        for where in _places(builder, scope, element, is_main):
            builder.grow(element, 1 + len(element.children))
            _tendon(builder, where, resolved)


def _places(builder: Builder, scope: Scope, element: Element, is_main: bool) -> list[Scope]:
    """The scopes in which all is there that the tendon runs over."""
    places: list[Scope] = []
    for part in element.children:
        if part.tag in ("joint", "site", "geom"):
            name = part.require(part.tag)
            there = scopes_of(builder, scope, part.tag, name)
            if not there and is_main and not builder.report.changed:
                raise part.error(f'a tendon refers to the {part.tag} "{name}", which does not exist')
            if not there:
                return []
            places = places or list(there)
    return places


def _tendon(builder: Builder, scope: Scope, element: Element) -> None:
    given, kind, robot = element.get("name", ""), f"{element.tag} tendon", builder.robot
    if given and scope.named(given) in builder.tendon_ranges:
        raise element.error(f'two tendons are called "{scope.named(given)}"; give one another name')
    name = scope.named(given) if given else builder._free_name("tendon", builder.tendon_ranges)
    bounds = element.floats("range", 2, (0.0, 0.0), finite=False)
    builder.tendon_ranges[name] = bounds
    friction = element.number("frictionloss", 0.0)
    limit = bounds if is_limited(element, "limited", bounds, scope.source.compiler.autolimits) else None
    if any(element.floats("armature", None, (0.0,))):
        builder.report.changes(f"armature of a {kind}")
    if element.tag == "fixed":
        _sum_of_joints(builder, scope, element, name)
        if limit or friction:
            robot.constraints.append(TendonBounds(name, limit, friction))
    else:
        for what in PASSIVE:
            if any(element.floats(what, None, (0.0,))):
                builder.report.changes(f"{what} of a {kind}")
        path = [(part.tag, _scoped(builder, scope, part)) for part in element.children]
        robot.constraints.append(SpatialTendon(path, limit, friction, name=name))
    if given:
        builder.scopes.setdefault((id(scope.source), kind, given), []).append(scope)
        builder.scopes.setdefault((id(scope.source), "tendon", given), []).append(scope)


def _scoped(builder: Builder, scope: Scope, part: Element) -> dict[str, str]:
    """What a step of the path says, the names as they are in the robot."""
    said = dict(part.attributes)
    for attribute, kind in (("site", "site"), ("geom", "geom"), ("sidesite", "site")):
        if attribute in said:
            there = scopes_of(builder, scope, kind, said[attribute]) or {scope: None}
            said[attribute] = nearest(scope, there).named(said[attribute])
    return said


def _sum_of_joints(builder: Builder, scope: Scope, element: Element, name: str) -> None:
    terms = []
    for part in element.all("joint"):
        there = scopes_of(builder, scope, "joint", part.require("joint")) or {scope: None}
        joint = nearest(scope, there).named(part.require("joint"))
        if builder.types[joint] not in ("hinge", "slide"):
            builder.report.changes(f"fixed tendon over a {builder.types[joint]} joint")
        terms.append((joint, part.number("coef", 1.0)))
    made = builder.robot.add_tendon(name, terms)
    made.stiffness, made.damping = builder._polynomial(element, "stiffness"), builder._polynomial(element, "damping")
    made.rest = _rest(builder, element, made)
    effort = element.floats("actuatorfrcrange", 2, (0.0, 0.0), finite=False)
    if is_limited(element, "actuatorfrclimited", effort, scope.source.compiler.autolimits):
        builder.pull_limits[name] = effort


def _rest(builder: Builder, element: Element, tendon: Tendon) -> tuple[float, float]:
    """Where the spring is slack; -1 stands for the length where the joints' own springs are at rest."""
    first, *second = element.floats("springlength", (1, 2), (-1.0,))
    if first == -1 and second in ([], [-1.0]):
        joints = builder.robot.joints
        first = sum(c * float(joints[name].rest or 0.0) for name, c, _ in tendon.full_terms())  # type: ignore[arg-type, misc]
        second = []
    return first, second[0] if second else first
