"""What is suspicious in the elements of an MJCF file, includes spliced in."""

from __future__ import annotations

from collections import Counter

from ..xml import Element
from .finding import Notebook, listed

TAGS = {"body": "body", "joint": "joint", "freejoint": "joint", "geom": "geom", "site": "site"}


def check_elements(root: Element, notes: Notebook) -> None:
    found: dict[tuple[str, str], Element] = {}
    unnamed: Counter[str] = Counter()
    for world in root.all("worldbody"):
        for element in world.walk():
            kind = TAGS.get(element.tag)
            if kind is None:
                continue
            name = element.get("name", "")
            if not name:
                unnamed[kind] += 1
            elif (kind, name) in found:
                message = f"there is another {kind} of this name in line {found[kind, name].line}"
                notes.add("duplicate-name", "error", element, f'{kind} "{name}"', message, "rename one")
            else:
                found[kind, name] = element
    notes.links = {name: e for (kind, name), e in found.items() if kind == "body"}
    notes.joints = {name: e for (kind, name), e in found.items() if kind == "joint"}
    for kind in ("body", "joint"):
        if unnamed[kind]:
            message = (
                f"{unnamed[kind]} <{kind}> without a name: they are called by their number, which changes with the file"
            )
            notes.add("missing-name", "note", None, "", message, "name what you want to refer to")
    _check_materials(root, notes)


def _check_materials(root: Element, notes: Notebook) -> None:
    used = {e.get("material") for e in root.walk()}
    unused = [m for a in root.all("asset") for m in a.all("material") if m.get("name", "") not in used]
    if unused:
        message = f"no shape uses the materials {listed(m.get('name', '') for m in unused)}"
        notes.add("unused-material", "note", unused[0], "asset", message, "remove them")
