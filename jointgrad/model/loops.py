"""Closed loops, mimic joints and pairs of shapes that a description names: from names to bodies, marks and frames."""

from __future__ import annotations

from typing import Any

import numpy as np

from .arrays import MARK, PRISMATIC, REVOLUTE
from .constraint_rows import loop_blocks
from .contact_pairs import Rule
from .contact_shapes import ContactShape
from .contacts import Contacts
from .errors import ModelError, UnsupportedWarning, warn_caller
from .ranges import check_form, unit
from .rotations import rotation

WORLD = "world"


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
            check_form("constraint", f'constraint "{c.get("name", c["kind"])}" ({c["kind"]})', c)
            if c["kind"] == "contact exclusion":
                rules.append(
                    Rule(one.prefix + str(c["body1"]), one.prefix + str(c["body2"]), None, {}, is_literal=True)
                )
            elif c["kind"] == "contact pair":
                names = frozenset(_shape_name(one.prefix + str(c[g]), known) for g in ("geom1", "geom2"))
                friction = np.atleast_1d(c["friction"]).tolist() if "friction" in c else []
                explicit[names] = dict(zip(("friction",), friction, strict=False))
    return rules, explicit


def _shape_name(name: str, known: set[str]) -> str:
    return name if name in known else name.rsplit("/", 1)[-1]


def list_loops(listing: Any, frame_body: list[int], tree: dict, contacts: Contacts, placed: list) -> dict[int, int]:
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
                _follow(listing, mimics, one.prefix + joint.name, one.prefix + leader, ratio, offset)
            if joint.kind in ("spherical", "planar", "universal", "free") and np.isfinite(joint.limit).any():
                left_out[f"limit of a {joint.kind} joint"] = left_out.get(f"limit of a {joint.kind} joint", 0) + 1
        for c in one.robot.constraints:
            if str(c.get("active", "true")) == "false" or c["kind"].startswith("contact"):
                continue
            if c["kind"] in ("connect", "weld"):
                _close(c, one, listing, frame_body, contacts, sites, tree["n_bodies"])
            elif c["kind"] == "joint equality" and _is_linear(c):
                _couple(c, one, listing, mimics)
            elif "tendon" not in c["kind"] or c.get("limit") or c.get("friction"):
                left_out[c["kind"]] = left_out.get(c["kind"], 0) + 1
    if left_out:
        listed = ", ".join(f"{what} ({n})" for what, n in left_out.items())
        warn_caller(f"not simulated yet, and left out: {listed}", UnsupportedWarning)
    return mimics


def _frame(listing: Any, name: str) -> int:
    frames = listing.frame_of_joint.get(name)
    moving = [i for i in frames or () if listing.frames[i].kind in (REVOLUTE, PRISMATIC)]
    if not moving:
        raise ModelError(
            f'joint "{name}", which another follows or is coupled to, does not exist or does not move in one way'
        )
    return moving[0]


def _follow(listing: Any, mimics: dict[int, int], name: str, leader: str, ratio: float, offset: float) -> None:
    i = _frame(listing, name)
    mimics[i] = _frame(listing, leader)
    listing.frames[i].mimic = (float(ratio), float(offset))


def _is_linear(c: dict) -> bool:
    return not any(np.atleast_1d(c.get("polycoef", (0.0, 1.0)))[2:])


def _couple(c: dict, one: Any, listing: Any, mimics: dict[int, int]) -> None:
    """q1 - start1 = c0 + c1 (q2 - start2), in MuJoCo's words; without a second joint the first is held."""
    coefficients = [*np.atleast_1d(c.get("polycoef", (0.0, 1.0))).tolist(), 0.0][:2]
    i = _frame(listing, one.prefix + str(c["joint1"]))
    start = float(listing.frames[i].initial)
    if "joint2" in c:
        j = _frame(listing, one.prefix + str(c["joint2"]))
        offset = start + coefficients[0] - coefficients[1] * float(listing.frames[j].initial)
        mimics[i], listing.frames[i].mimic = j, (coefficients[1], offset)
    else:
        mimics[i], listing.frames[i].mimic = i, (0.0, start + coefficients[0])


def _close(
    c: dict, one: Any, listing: Any, frame_body: list[int], contacts: Contacts, sites: dict, n_bodies: int
) -> None:
    """Marks on the two bodies of a loop, and its ties."""
    name = one.prefix + str(c.get("name", c["kind"]))
    has_sites = "site1" in c
    places = (
        [_site(one, listing, str(c[s]), sites) for s in ("site1", "site2")] if has_sites else _anchored(c, one, listing)
    )
    marks = []
    for k, (frame, R, p) in enumerate(places):
        marks.append(len(contacts.shapes))
        placement = (*p, *quaternion(R))
        frame_number = len(listing.frames) if frame is None else frame
        body = n_bodies if frame is None else frame_body[frame]
        contacts.shapes.append(ContactShape(f"{name}.{k}", "", MARK, frame_number, body, (0.0, 0.0, 0.0), placement))
    contacts.ties += loop_blocks(c["kind"] == "weld", marks[0], marks[1])


def _link_frame(one: Any, listing: Any, name: str) -> int | None:
    if name == WORLD:
        return None
    return listing.frame_of_link[one.prefix + name]


def _site(one: Any, listing: Any, name: str, sites: dict) -> tuple[int | None, np.ndarray, np.ndarray]:
    if name not in sites:
        raise ModelError(f'a loop refers to the site "{name}", which no link has')
    link, position, orientation = sites[name]
    return _link_frame(one, listing, link), rotation(unit(orientation)), np.asarray(position, dtype=np.float64)


def _anchored(c: dict, one: Any, listing: Any) -> list[tuple[int | None, np.ndarray, np.ndarray]]:
    """Both marks where the anchor is at the start; a weld may say how body 2 stands in body 1."""
    frames = [_link_frame(one, listing, str(c.get(b, WORLD))) for b in ("body1", "body2")]
    (R1, p1), (R2, p2) = (listing.poses[f] if f is not None else (np.eye(3), np.zeros(3)) for f in frames)
    # a weld's anchor is given in the second body, a connect's in the first
    anchor = np.asarray(c.get("anchor", (0.0, 0.0, 0.0)), dtype=np.float64)
    relative = np.atleast_1d(c.get("relpose", (0.0,) * 7))
    if c["kind"] == "weld":
        if len(relative) == 7 and np.any(relative[3:]):
            R2, p2 = R1 @ rotation(unit(relative[3:])), p1 + R1 @ relative[:3]
        at = p2 + R2 @ anchor
    else:
        at = p1 + R1 @ anchor
    return [(frames[0], R1.T, R1.T @ (at - p1)), (frames[1], R2.T, R2.T @ (at - p2))]
