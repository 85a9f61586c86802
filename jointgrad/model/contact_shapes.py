"""Shapes that take part in contact, as the engine knows them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .arrays import BOX, CAPSULE, PLANE, SPHERE
from .description import Shape
from .errors import UnsupportedWarning, warn_caller
from .ranges import numbers, unit_quaternion

KINDS = {"plane": PLANE, "sphere": SPHERE, "capsule": CAPSULE, "box": BOX, "points": SPHERE}
SAME_FOR_ALL = {"condim": 3, "contype": 1, "conaffinity": 1, "priority": 0}


@dataclass
class ContactShape:
    """A shape as the engine knows it."""

    name: str
    link: str
    kind: int
    frame: int
    body: int
    size: tuple[float, ...]
    placement: tuple[float, ...]
    shape: Shape | None = None

    @property
    def robot(self) -> str:
        """The name that the robot was given in its world."""
        return self.link.rpartition("/")[0]

    def said(self, what: str) -> float:
        return self.shape.contact.get(what, SAME_FOR_ALL[what]) if self.shape else SAME_FOR_ALL[what]


def shapes_of(links: list, frame_body: list[int], wanted: bool) -> tuple[list[ContactShape], dict[str, list[str]]]:
    """Shapes that take part in contact, and those of kinds that cannot yet, by kind."""
    found: list[ContactShape] = []
    left_out: dict[str, list[str]] = {}
    for name, link, frame in links if wanted else ():
        for number, shape in enumerate(s for s in link.shapes if s.role != "visual"):
            own = shape.name or f"{name}.{number}" if number or shape.name else name
            if shape.kind not in KINDS:
                left_out.setdefault(shape.kind, []).append(own)
                continue
            found += _touching(own, name, shape, frame, frame_body[frame])
    return found, left_out


def _touching(name: str, link: str, shape: Shape, frame: int, body: int) -> Iterator[ContactShape]:
    owner = f'{shape.kind} "{name}"'
    size = () if shape.kind == "plane" else shape.size
    turn = unit_quaternion(owner, "orientation", shape.orientation)
    place = numbers(owner, "position", shape.position, 3)
    three = (*size, 0.0, 0.0, 0.0)[:3]
    if shape.kind != "points":
        yield ContactShape(name, link, KINDS[shape.kind], frame, body, three, (*place, *turn), shape)
        return
    w, xyz = turn[0], np.array(turn[1:])
    for k, point in enumerate(np.asarray(shape.points, dtype=np.float64).reshape(-1, 3)):
        at = place + point + 2.0 * np.cross(xyz, np.cross(xyz, point) + w * point)
        yield ContactShape(f"{name}[{k}]", link, SPHERE, frame, body, three, (*at, *turn), shape)


def warn_of_shapes(left_out: dict[str, list[str]]) -> None:
    if left_out:
        listed = "; ".join(
            f"{kind}: {', '.join(names[:4])}{' ...' if len(names) > 4 else ''}" for kind, names in left_out.items()
        )
        warn_caller(f"shapes of these kinds do not touch anything yet: {listed}", UnsupportedWarning)
