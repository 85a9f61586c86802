"""Shapes of links that are not neighbours and yet overlap at the start.

Approximate, on the side of silence: cylinders and ellipsoids are taken as bodies inside them, meshes and planes left out.
Spheres, capsules and boxes are exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...model.constraints import ContactExclusion
from ...model.description import Description, Shape
from ...model.overlap import Solid, is_deep
from ...model.ranges import unit
from ...model.rotations import rotation
from .finding import Notebook
from .tree import Tree

MOST_SHAPES = 1500  # pairs grow with the square
MOST_FINDINGS = 20


@dataclass
class Body:
    """A shape of a link, as the solid that stands for it."""

    link: str
    group: str | None
    shape: Shape
    solid: Solid


def check_overlaps(robot: Description, tree: Tree, notes: Notebook) -> None:
    bodies = [b for name in robot.links for s in robot.links[name].shapes if (b := _body(tree, name, s)) is not None]
    if len(bodies) > MOST_SHAPES:
        message = f"{len(bodies)} shapes are more than the {MOST_SHAPES} that are compared for overlap"
        notes.add("overlap-unchecked", "note", None, "", message, "look at the initial pose in a viewer")
        return
    deepest: dict[tuple[str, str], tuple[float, Body, Body]] = {}
    for a, b in _near(bodies, _neighbours(tree, bodies), _excluded(robot, tree)):
        depth = is_deep(a.solid, b.solid)
        if depth:
            pair = (a.link, b.link)
            if pair not in deepest or depth > deepest[pair][0]:
                deepest[pair] = depth, a, b
    found = sorted(deepest.values(), key=lambda entry: -entry[0])
    for depth, a, b in found[:MOST_FINDINGS]:
        more = f"; {len(found) - MOST_FINDINGS} more pairs overlap less" if len(found) > MOST_FINDINGS else ""
        message = (
            f'its {a.shape.kind} and the {b.shape.kind} of link "{b.link}", no neighbour, overlap by about {depth:.3g} m '
            f"at the initial pose (approximate){more}"
        )
        remedy = "move or shrink one shape, choose another initial pose, or exclude this pair from contact"
        notes.link("overlap", "warning", a.link, message, remedy)


def _body(tree: Tree, link: str, shape: Shape) -> Body | None:
    if shape.role == "visual" or shape.kind not in ("sphere", "capsule", "cylinder", "box", "ellipsoid"):
        return None
    if link not in tree.places:
        return None
    turn, p = tree.places[link]
    size = np.array([float(v) for v in shape.size])
    half, radius = np.zeros(3), 0.0
    if shape.kind == "box":
        half = size
    elif shape.kind in ("sphere", "ellipsoid"):
        radius = float(size.min())
    elif shape.kind == "capsule":
        radius, half[2] = float(size[0]), size[1]
    else:  # the capsule inside a cylinder, or the ball inside a disc
        radius = float(min(size))
        half[2] = max(size[1] - radius, 0.0)
    place = p + turn @ np.array([float(c) for c in shape.position])
    R = turn @ rotation(unit(shape.orientation))
    return Body(link, tree.group_of[link], shape, Solid(shape.kind == "box", place, R, half, radius))


def _neighbours(tree: Tree, bodies: list[Body]) -> dict[str | None, str | None]:
    """The next group above that has shapes, or the world."""
    shaped = {b.group for b in bodies} | {None}
    above: dict[str | None, str | None] = {None: None}
    for top, group in tree.groups.items():
        if top is not None:
            above[top] = group.parent if group.parent in shaped else above[group.parent]
    return above


def _excluded(robot: Description, tree: Tree) -> set[frozenset]:
    ends = [(c.link1, c.link2) for c in robot.constraints if isinstance(c, ContactExclusion)]
    return {frozenset((tree.group_of.get(a, a), tree.group_of.get(b, b))) for a, b in ends}


def _near(bodies: list[Body], above: dict, excluded: set[frozenset]):
    """Pairs whose bounding balls meet, of groups that are neither the same nor neighbours nor excluded."""
    if not bodies:
        return
    centres, reach = np.array([b.solid.centre for b in bodies]), np.array([b.solid.reach for b in bodies])
    for i, a in enumerate(bodies):
        gap = np.linalg.norm(centres[i + 1 :] - centres[i], axis=1) - reach[i + 1 :] - reach[i]
        for j in np.flatnonzero(gap < 0) + i + 1:
            b = bodies[j]
            if a.group == b.group or above[a.group] == b.group or above[b.group] == a.group:
                continue
            if frozenset((a.group, b.group)) not in excluded and _may_touch(a.shape, b.shape):
                yield a, b


def _may_touch(a: Shape, b: Shape) -> bool:
    """MuJoCo's rule of contype and conaffinity; both are 1 where a file says nothing."""
    masks = [[int(s.contact.get(name, 1)) for name in ("contype", "conaffinity")] for s in (a, b)]
    return bool(masks[0][0] & masks[1][1] or masks[1][0] & masks[0][1])
