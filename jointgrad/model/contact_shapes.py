"""Shapes that take part in contact, as the engine knows them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from .arrays import BOX, CAPSULE, CYLINDER, ELLIPSOID, MESH, PLANE, SPHERE, TERRAIN
from .bodies import Data, mesh_data, terrain_data
from .description import Shape
from .errors import UnsupportedWarning, warn_caller
from .ranges import numbers, unit_quaternion

KINDS = {
    "plane": PLANE, "sphere": SPHERE, "capsule": CAPSULE, "box": BOX, "cylinder": CYLINDER, "ellipsoid": ELLIPSOID,
    "points": SPHERE, "mesh": MESH, "hfield": TERRAIN,
}  # fmt: skip
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
    data: Data | None = None

    @property
    def robot(self) -> str:
        """The name that the robot was given in its world."""
        return self.link.rpartition("/")[0]

    def said(self, what: str) -> float:
        return self.shape.contact.get(what, SAME_FOR_ALL[what]) if self.shape else SAME_FOR_ALL[what]


@dataclass
class Left:
    """Shapes that cannot touch: by kind, or for what a mesh lacks."""

    shapes: dict[str, list[str]] = field(default_factory=dict)

    def note(self, why: str, name: str) -> None:
        self.shapes.setdefault(why, []).append(name)


def shapes_of(links: list, frame_body: list[int], wanted: bool) -> tuple[list[ContactShape], dict[str, list[str]]]:
    """Shapes that take part in contact, and those that cannot, by kind."""
    found: list[ContactShape] = []
    known: dict[tuple, Data] = {}
    left = Left()
    for name, link, frame in links if wanted else ():
        for number, shape in enumerate(s for s in link.shapes if s.role != "visual"):
            own = shape.name or f"{name}.{number}" if number or shape.name else name
            why = _lacks(shape)
            if why:
                left.note(why, own)
                continue
            found += _touching(own, name, shape, frame, frame_body[frame], known)
    return found, left.shapes


def _lacks(shape: Shape) -> str:
    """Why a shape cannot touch."""
    if shape.kind not in KINDS:
        return shape.kind
    if shape.kind == "mesh" and not len(shape.pieces):
        return "mesh without corners"
    return "height field without heights" if shape.kind == "hfield" and not np.size(shape.heights) else ""


def _touching(
    name: str, link: str, shape: Shape, frame: int, body: int, known: dict[tuple, Data]
) -> Iterator[ContactShape]:
    owner = f'{shape.kind} "{name}"'
    size = () if shape.kind == "plane" else shape.size
    turn = unit_quaternion(owner, "orientation", shape.orientation)
    place = numbers(owner, "position", shape.position, 3)
    three = (*size, 0.0, 0.0, 0.0)[:3]
    if shape.kind == "mesh":
        yield from _pieces(owner, name, link, shape, (frame, body, (*place, *turn)), known)
        return
    data = None
    if shape.kind == "hfield":
        key = (id(shape.heights),)
        data = known.setdefault(key, known[key] if key in known else terrain_data(owner, shape.heights))
    if shape.kind != "points":
        yield ContactShape(name, link, KINDS[shape.kind], frame, body, three, (*place, *turn), shape, data)
        return
    w, xyz = turn[0], np.array(turn[1:])
    for k, point in enumerate(np.asarray(shape.points, dtype=np.float64).reshape(-1, 3)):
        at = place + point + 2.0 * np.cross(xyz, np.cross(xyz, point) + w * point)
        yield ContactShape(f"{name}[{k}]", link, SPHERE, frame, body, three, (*at, *turn), shape)


def _pieces(
    owner: str, name: str, link: str, shape: Shape, where: tuple, known: dict[tuple, Data]
) -> Iterator[ContactShape]:
    """The convex pieces of a mesh. Its scale is their size; what mirrors it goes into the corners."""
    scale = numbers(owner, "size", shape.size if len(shape.size) else (1.0, 1.0, 1.0), 3)
    frame, body, placement = where
    for k, corners in enumerate(shape.pieces):
        key = (id(corners), *np.sign(scale))
        if key not in known:
            known[key] = mesh_data(owner, np.asarray(corners) * np.sign(scale))
        own = name if len(shape.pieces) == 1 else f"{name}[{k}]"
        yield ContactShape(own, link, MESH, frame, body, tuple(np.abs(scale)), placement, shape, known[key])


def warn_of_shapes(left_out: dict[str, list[str]]) -> None:
    if left_out:
        listed = "; ".join(
            f"{kind}: {', '.join(names[:4])}{' ...' if len(names) > 4 else ''}" for kind, names in left_out.items()
        )
        warn_caller(f"these shapes do not touch anything: {listed}", UnsupportedWarning)
