"""Where frames are at the start of a world, and the mass matrix of a robot there: plain NumPy, before anything is compiled.

A place is a rotation (3, 3) and a position (3,) (m), in the world.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .arrays import FIXED, FREE, PRISMATIC, REVOLUTE, SPHERICAL
from .description import Description, Joint, Link
from .ranges import unit
from .rotations import rotation

Place = tuple[np.ndarray, np.ndarray]
Column = tuple[
    int, np.ndarray, np.ndarray
]  # a degree of freedom: its number, angular and linear axis about the world's origin

# of joints of a description that move in one way; planar and universal ones are chains of these
KINDS = {"revolute": REVOLUTE, "continuous": REVOLUTE, "prismatic": PRISMATIC, "spherical": SPHERICAL, "free": FREE}
WORLD: Place = (np.eye(3), np.zeros(3))


def placed(place: Place, position: Any, orientation: Any) -> Place:
    """A frame that is given in another."""
    R, p = place
    return R @ rotation(unit(orientation)), p + R @ np.asarray(position, dtype=np.float64)


def moved(place: Place, kind: int, axis: Any, start: Any, anchor: np.ndarray | None = None) -> Place:
    """The frame after a joint at its start: a number along a unit axis, or a quaternion. anchor: the point that it turns about."""
    R, p = place
    if kind == PRISMATIC:
        return R, p + R @ axis * start
    turn = rotation(unit(start if kind == SPHERICAL else (np.cos(start / 2), *(np.sin(start / 2) * axis))))
    return R @ turn, p if anchor is None else p + R @ (anchor - turn @ anchor)


def initial_poses(frames: list) -> list[Place]:
    """Of every frame, parents first."""
    found: list[Place] = []
    for f in frames:
        if f.kind == FREE:
            found.append((rotation(unit(f.initial[3:])), np.asarray(f.initial[:3], dtype=np.float64)))
            continue
        place = placed(found[f.parent] if f.parent is not None else WORLD, f.position, f.orientation)
        if f.kind != FIXED:
            place = moved(place, f.kind, None if f.kind == SPHERICAL else unit(f.axis), f.initial)
        found.append(place)
    return found


def initial_mass_matrix(robot: Description) -> tuple[np.ndarray, dict[str, int]]:
    """(nv, nv), and the first degree of freedom of each joint. Links come parents first."""
    joints: dict[str, list[Joint]] = {name: [] for name in robot.links}
    for joint in robot.joints.values():
        joints[joint.child].append(joint)
    counts = {"spherical": 3, "free": 6, "fixed": 0}
    first, n = {}, 0
    for name in robot.links:
        for joint in joints[name]:
            first[joint.name], n = n, n + counts.get(joint.kind, 1)
    M = np.zeros((n, n))
    places: dict[str | None, Place] = {None: WORLD}
    columns: dict[str | None, list[Column]] = {None: []}
    for name, link in robot.links.items():
        parent = joints[name][0].parent
        place, axes = places[parent], list(columns[parent])
        for joint in joints[name]:
            place, own = _after(place, joint)
            rows = [first[joint.name] + k for k in range(len(own))]
            axes += [(row, w, v) for row, (w, v) in zip(rows, own, strict=True)]
            M[rows, rows] += joint.armature
        places[name], columns[name] = place, axes
        if axes and (link.mass or any(link.inertia)):
            _add(M, link, place, axes)
    return M, first


def _after(place: Place, joint: Joint) -> tuple[Place, list[tuple[np.ndarray, np.ndarray]]]:
    """The frame after a joint at its initial position, and its axes: angular, and linear at the world's origin."""
    place = R, p = placed(place, joint.position, joint.orientation)
    anchor, axis, zero = np.array(joint.anchor), R @ np.array(joint.axis), np.zeros(3)
    at = p + R @ anchor
    if joint.kind in ("prismatic", "revolute"):
        after = moved(place, KINDS[joint.kind], np.array(joint.axis), joint.initial or 0.0, anchor)
        return after, [(zero, axis) if joint.kind == "prismatic" else (axis, np.cross(at, axis))]
    turns = [(w, np.cross(at, w)) for w in R.T]
    slides = [(zero, e) for e in np.eye(3)]
    return place, {"spherical": turns, "free": slides + turns}.get(joint.kind, [])


def _add(M: np.ndarray, link: Link, place: Place, axes: list[Column]) -> None:
    """What a link adds to the mass matrix."""
    R, p = place
    xx, xy, xz, yy, yz, zz = link.inertia
    I = R @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R.T
    rows = [k for k, _, _ in axes]
    W = np.array([w for _, w, _ in axes])
    V = np.array([v for _, _, v in axes]) + np.cross(W, p + R @ np.array(link.com))
    M[np.ix_(rows, rows)] += W @ I @ W.T + link.mass * V @ V.T
