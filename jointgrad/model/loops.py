"""Closed loops, mimic joints and pairs of shapes that a description names: from names to bodies, marks and frames."""

from __future__ import annotations

from typing import Any

import numpy as np

from .arrays import MARK, PRISMATIC, REVOLUTE
from .constraint_rows import loop_blocks
from .constraints import (
    WORLD,
    Connect,
    ContactExclusion,
    ContactPair,
    JointCoupling,
    SpatialTendon,
    TendonBounds,
    Weld,
    checked_constraint,
)
from .contact_pairs import Rule
from .contact_shapes import ContactShape
from .contacts import Contacts
from .errors import ModelError, UnsupportedWarning, warn_caller
from .ranges import unit
from .rotations import rotation


def quaternion(R: np.ndarray) -> np.ndarray:
    """Of a rotation matrix: the row of the largest of the four squares."""
    xx, yy, zz = np.diag(R)
    squares = np.array([
        [1 + xx + yy + zz, R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]],
        [R[2, 1] - R[1, 2], 1 + xx - yy - zz, R[0, 1] + R[1, 0], R[0, 2] + R[2, 0]],
        [R[0, 2] - R[2, 0], R[0, 1] + R[1, 0], 1 - xx + yy - zz, R[1, 2] + R[2, 1]],
        [R[1, 0] - R[0, 1], R[0, 2] + R[2, 0], R[1, 2] + R[2, 1], 1 - xx - yy + zz],
    ])  # fmt: skip
    row = squares[np.argmax(np.diag(squares))]
    return row / np.linalg.norm(row)


def pairs_of_files(placed: list, shapes: list[ContactShape]) -> tuple[list[Rule], dict[frozenset, dict[str, float]]]:
    """Rules for bodies that a file keeps apart, and options of pairs that it names."""
    rules: list[Rule] = []
    explicit: dict[frozenset, dict[str, float]] = {}
    known = {s.name for s in shapes}
    for one in placed:
        for c in one.robot.constraints:
            checked_constraint(c)
            if isinstance(c, ContactExclusion):
                rules.append(Rule(one.prefix + c.link1, one.prefix + c.link2, None, {}, is_literal=True))
            elif isinstance(c, ContactPair):
                names = frozenset(_shape_name(one.prefix + shape, known) for shape in (c.shape1, c.shape2))
                explicit[names] = dict(zip(("friction",), np.atleast_1d(c.friction).tolist(), strict=False))
    return rules, explicit


def _shape_name(name: str, known: set[str]) -> str:
    return name if name in known else name.rsplit("/", 1)[-1]


def list_loops(parts: Any, frame_body: list[int], tree: dict, contacts: Contacts, placed: list) -> dict[int, int]:
    """Marks and ties of closed loops; and for every frame that follows another, that one."""
    mimics: dict[int, int] = {}
    left_out: dict[str, int] = {}
    for one in placed:
        sites = {
            site: (link.name, *place)
            for link in reversed(one.robot.links.values())
            for site, *place in link.sites[::-1]
        }
        for joint in one.robot.joints.values():
            if joint.mimic:
                leader, ratio, offset = joint.mimic
                _follow(parts, mimics, one.prefix + joint.name, one.prefix + leader, ratio, offset)
            if joint.kind in ("spherical", "planar", "universal", "free") and np.isfinite(joint.limit).any():
                left_out[f"limit of a {joint.kind} joint"] = left_out.get(f"limit of a {joint.kind} joint", 0) + 1
        for c in one.robot.constraints:
            if not c.is_active or isinstance(c, ContactExclusion | ContactPair):
                continue
            if isinstance(c, Connect | Weld):
                _close(c, one, parts, frame_body, contacts, sites, tree["n_bodies"])
            elif isinstance(c, JointCoupling) and _is_linear(c):
                _couple(c, one, parts, mimics)
            elif not isinstance(c, TendonBounds | SpatialTendon) or c.limit or c.friction:
                left_out[c.kind] = left_out.get(c.kind, 0) + 1
    if left_out:
        listed = ", ".join(f"{what} ({n})" for what, n in left_out.items())
        warn_caller(f"not simulated yet, and left out: {listed}", UnsupportedWarning)
    return mimics


def _frame(parts: Any, name: str) -> int:
    frames = parts.frame_of_joint.get(name)
    moving = [i for i in frames or () if parts.frames[i].kind in (REVOLUTE, PRISMATIC)]
    if not moving:
        raise ModelError(
            f'joint "{name}", which another follows or is coupled to, does not exist or does not move in one way'
        )
    return moving[0]


def _follow(parts: Any, mimics: dict[int, int], name: str, leader: str, ratio: float, offset: float) -> None:
    i = _frame(parts, name)
    mimics[i] = _frame(parts, leader)
    parts.frames[i].mimic = (float(ratio), float(offset))


def _is_linear(c: JointCoupling) -> bool:
    return not any(np.atleast_1d(c.polynomial)[2:])


def _couple(c: JointCoupling, one: Any, parts: Any, mimics: dict[int, int]) -> None:
    """q1 - start1 = c0 + c1 (q2 - start2), in MuJoCo's words; without a second joint the first is held."""
    constant, ratio = [*np.atleast_1d(c.polynomial).tolist(), 0.0][:2]
    i = _frame(parts, one.prefix + c.joint)
    start = float(parts.frames[i].initial)
    if c.leader is not None:
        j = _frame(parts, one.prefix + c.leader)
        offset = start + constant - ratio * float(parts.frames[j].initial)
        mimics[i], parts.frames[i].mimic = j, (ratio, offset)
    else:
        mimics[i], parts.frames[i].mimic = i, (0.0, start + constant)


def _close(
    c: Connect | Weld, one: Any, parts: Any, frame_body: list[int], contacts: Contacts, sites: dict, n_bodies: int
) -> None:
    """Marks on the two bodies of a loop, and its ties."""
    name = one.prefix + (c.name or c.kind)
    places = [_site(one, parts, s, sites) for s in c.sites] if c.sites else _anchored(c, one, parts)
    marks = []
    for k, (frame, R, p) in enumerate(places):
        marks.append(len(contacts.shapes))
        placement = (*p, *quaternion(R))
        frame_number = len(parts.frames) if frame is None else frame
        body = n_bodies if frame is None else frame_body[frame]
        contacts.shapes.append(ContactShape(f"{name}.{k}", "", MARK, frame_number, body, (0.0, 0.0, 0.0), placement))
    contacts.ties += loop_blocks(isinstance(c, Weld), marks[0], marks[1])


def _link_frame(one: Any, parts: Any, name: str) -> int | None:
    if name == WORLD:
        return None
    return parts.frame_of_link[one.prefix + name]


def _site(one: Any, parts: Any, name: str, sites: dict) -> tuple[int | None, np.ndarray, np.ndarray]:
    if name not in sites:
        raise ModelError(f'a loop refers to the site "{name}", which no link has')
    link, position, orientation = sites[name]
    return _link_frame(one, parts, link), rotation(unit(orientation)), np.asarray(position, dtype=np.float64)


def _anchored(c: Connect | Weld, one: Any, parts: Any) -> list[tuple[int | None, np.ndarray, np.ndarray]]:
    """Both marks where the anchor is at the start; a weld may say how link 2 stands in link 1."""
    frames = [_link_frame(one, parts, link) for link in (c.link1, c.link2)]
    (R1, p1), (R2, p2) = (parts.poses[f] if f is not None else (np.eye(3), np.zeros(3)) for f in frames)
    anchor = np.asarray(c.anchor, dtype=np.float64)
    # a weld's anchor is given in the second link, a connect's in the first
    if isinstance(c, Weld):
        if c.pose is not None:
            R2, p2 = R1 @ rotation(unit(c.pose[3:])), p1 + R1 @ np.asarray(c.pose[:3])
        at = p2 + R2 @ anchor
    else:
        at = p1 + R1 @ anchor
    return [(frames[0], R1.T, R1.T @ (at - p1)), (frames[1], R2.T, R2.T @ (at - p2))]
