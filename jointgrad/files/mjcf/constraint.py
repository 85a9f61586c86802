"""<equality> and <contact> of MJCF: what each element is called here, and the same the other way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...model.constraints import (
    Connect,
    Constraint,
    ContactExclusion,
    ContactPair,
    JointCoupling,
    TendonCoupling,
    Weld,
)
from ..xml import Element
from .body import WORLD, Builder, Scope, nearest, scopes_of

LINKS = {"body1": "link1", "body2": "link2"}
SITES = ("site1", "site2")
# of each element: what it is here, and its attributes by their names here
TABLE: dict[str, tuple[type[Constraint], dict[str, str]]] = {
    "connect": (Connect, LINKS | {"anchor": "anchor"}),
    "weld": (Weld, LINKS | {"anchor": "anchor", "relpose": "pose"}),
    "joint": (JointCoupling, {"joint1": "joint", "joint2": "leader", "polycoef": "polynomial"}),
    "tendon": (TendonCoupling, {"tendon1": "tendon", "tendon2": "leader", "polycoef": "polynomial"}),
    "pair": (ContactPair, {"geom1": "shape1", "geom2": "shape2", "friction": "friction"}),
    "exclude": (ContactExclusion, LINKS),
}
# the attributes that name a part of the robot, and what kind of part
REFERENCES = {
    tag: tuple((a, a[:-1]) for a in (*names, *(SITES if tag in ("connect", "weld") else ())) if a[-1] in "12")
    for tag, (_, names) in TABLE.items()
}
REQUIRED = {"joint": ("joint1",), "tendon": ("tendon1",), "pair": ("geom1", "geom2"), "exclude": ("body1", "body2")}


def constraints(builder: Builder, scope: Scope, is_main: bool) -> None:
    """All of a file; where copies were made of what they name, they follow copy by copy."""
    for section in ("equality", "contact"):
        for element in scope.source.items(section):
            _add(builder, scope, element, section, is_main)
    if any(e.tag == "flex" for e in scope.source.items("deformable")):
        builder.report.changes("<flex>")


def _add(builder: Builder, scope: Scope, element: Element, section: str, is_main: bool) -> None:
    tag = element.tag
    if tag not in TABLE:
        if not tag.startswith("flex"):
            raise element.error(f"<{tag}> is not something that <{section}> can have")
        builder.report.changes(f"<{tag}> of <{section}>")
        return
    resolved = scope.source.defaults.resolved(element, "main", "pair" if section == "contact" else "equality")
    for attribute in REQUIRED.get(tag, ()):
        resolved.require(attribute)
    references = [(a, k, resolved.attributes[a]) for a, k in REFERENCES[tag] if a in resolved.attributes]
    found = [scopes_of(builder, scope, kind, name) for _, kind, name in references]
    for (_, kind, name), there in zip(references, found, strict=True):
        if not there and name != WORLD:
            if is_main and not builder.report.changed:  # else it may be in what is left out
                raise element.error(f'<{tag}> refers to the {kind} "{name}", which does not exist')
            return
    places = next((there for there in found if there), {scope: None})
    builder.grow(element, len(places))
    for where in places:
        said = {name: value if name == "name" else _value(value) for name, value in resolved.attributes.items()}
        for (attribute, _, name), there in zip(references, found, strict=True):
            said[attribute] = nearest(where, there).named(name) if there else name
        builder.robot.constraints.append(read(tag, said))


def _value(text: str) -> Any:
    """Numbers where there are numbers, else the words."""
    try:
        numbers = tuple(float(word) for word in text.split())
    except ValueError:
        return text
    return numbers[0] if len(numbers) == 1 else numbers


def read(tag: str, said: Mapping[str, Any]) -> Constraint:
    """What an element says, as a constraint."""
    kind, names = TABLE[tag]
    fields: dict[str, Any] = {names[a]: value for a, value in said.items() if a in names}
    if SITES[0] in said:
        fields["sites"] = tuple(str(said.get(site, "")) for site in SITES)
    if _is_at_start(fields.get("pose")):
        del fields["pose"]
    known = {*names, *SITES, "name", "active", "class"}
    return kind(
        **fields,
        name=said.get("name", ""),
        is_active=said.get("active") != "false",
        file_settings={a: value for a, value in said.items() if a not in known},
    )


def _is_at_start(pose: Any) -> bool:
    """A quaternion of zeros stands for the pose at the start."""
    return isinstance(pose, tuple) and len(pose) == 7 and not any(pose[3:])


def written(constraint: Constraint) -> tuple[str, dict[str, Any]]:
    """The element and its attributes."""
    tag, names = next((tag, entry[1]) for tag, entry in TABLE.items() if entry[0] is type(constraint))
    sites = getattr(constraint, "sites", None)
    said: dict[str, Any] = {"name": constraint.name} if constraint.name else {}
    said |= dict(zip(SITES, sites, strict=True)) if sites else {}
    for attribute, name in names.items():
        value = getattr(constraint, name)
        if value is not None and value != () and not (sites and attribute in (*LINKS, "anchor")):
            said[attribute] = value
    return tag, said | ({} if constraint.is_active else {"active": "false"}) | constraint.file_settings
