"""SRDF beside URDF: which links do not touch each other."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ...model.constraints import Constraint, ContactExclusion
from ...model.description import Description
from ...model.names import unknown
from ..xml import parse


def srdf_beside(source: Any) -> Path | None:
    """The file of the same name beside a URDF file."""
    text = source if isinstance(source, str | os.PathLike) else getattr(source, "name", "")
    if isinstance(text, str) and "<" in text:
        return None
    place = Path(text).with_suffix(".srdf") if str(text) else None
    return place if place is not None and place.is_file() else None


def disabled_pairs(source: Any, robot: Description) -> list[Constraint]:
    """Exclusions of <disable_collisions>; its reasons are for people."""
    root = parse(source)
    if root.tag != "robot":
        raise root.error(f"this is not SRDF: the outermost element is <{root.tag}>, not <robot>")
    found: list[Constraint] = []
    for element in root.all("disable_collisions"):
        links = element.require("link1"), element.require("link2")
        for link in links:
            if link not in robot.links:
                raise element.error(f"<disable_collisions>: {unknown('link', link, robot.links)}")
        found.append(ContactExclusion(link1=links[0], link2=links[1]))
    return found
