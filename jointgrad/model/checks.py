"""Is this robot one that can be simulated? One clear sentence for everything that is not right with a description."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .arguments import shown
from .description import Actuator, Description, Joint, Link, Shape, Tendon
from .errors import ModelError, UnphysicalWarning, UnstableWarning, warn_caller
from .ranges import SIZES, Direction, Number, check_form, numbers, quoted, unit_quaternion

# steps above this are told: free fall crosses 10 cm within one, more than most of what a robot stands on or holds is thick
LONG_STEP = 0.1


def check_link(link: Link, unphysical: str = "error") -> None:
    """unphysical="warn" lets an inertia pass that no body can have, as real files often hold."""
    owner = f'link "{link.name}"'
    check_form("link", owner, link)
    for shape in link.shapes:
        check_shape(shape, owner)
    for name, position, orientation in link.sites:
        numbers(f'site "{name}" of {owner}', "position", position, 3)
        unit_quaternion(f'site "{name}" of {owner}', "orientation", orientation)
    inertia = numbers(owner, "inertia", link.inertia, 6)
    if triangle_violation(inertia) > 0:
        if unphysical == "error":
            raise ModelError(
                inertia_message(link.name, inertia) + '; compile(unphysical="warn") simulates it all the same'
            )
        warn_caller(inertia_message(link.name, inertia), UnphysicalWarning)


def check_shape(shape: Shape, where: str) -> None:
    if not isinstance(shape, Shape):
        raise ModelError(
            f"{where} has the shape {shown(shape)}, which is a {type(shape).__name__}; shapes are jg.Shape(...)"
        )
    owner = f'shape "{shape.name}" of {where}' if shape.name else f"a shape of {where}"
    check_form("shape", owner, shape)
    if shape.kind in SIZES:
        Number(SIZES[shape.kind], low=0.0).check(f"{owner} ({shape.kind})", "size", shape.size)
    check_form("what a file says of contact", owner, shape.contact)


def check_joint(joint: Joint, robot: Description) -> None:
    owner = f'joint "{joint.name}"'
    for end, link in (("parent", joint.parent), ("child", joint.child)):
        is_world = link is None and end == "parent"
        if not is_world and (not isinstance(link, str) or link not in robot.links):
            raise ModelError(f"{owner} has {end} {quoted(link)}, but there is no such link")
    check_form("joint", owner, joint)
    if joint.kind == "free" and joint.parent is not None:
        raise ModelError(
            f'free {owner} hangs on link "{joint.parent}"; only the world can be the parent of a free joint'
        )
    axes = {"spherical": (), "free": (), "fixed": (), "universal": ("axis", "second_axis")}.get(joint.kind, ("axis",))
    for what in axes:
        Direction().check(owner, what, getattr(joint, what))
    for what in ("initial", "rest"):
        if getattr(joint, what) is not None:
            flat = np.atleast_1d(np.asarray(getattr(joint, what), dtype=object))
            numbers(owner, what, list(flat), len(flat))
    if joint.mimic is not None:
        if not isinstance(joint.mimic, Sequence) or len(joint.mimic) != 3:
            raise ModelError(f"mimic of {owner} is {shown(joint.mimic)}; it is (joint, multiplier, offset)")
        numbers(owner, "the multiplier and offset of mimic", joint.mimic[1:], 2)


def looks_like_degrees(angle: float) -> bool:
    """Beyond a full turn, up to two turns in degrees, a whole number; 10, 20 and 100 are how people write "no limit"."""
    a = abs(angle)
    return 2 * math.pi + 0.01 < a <= 720 and abs(a - round(a)) < 1e-9 and round(a) not in (10, 20, 100)


def warn_of_units(robots: Iterable[Description], dt: float) -> None:
    """Numbers that are possible, but more probably meant in another unit."""
    if dt > LONG_STEP:
        warn_caller(
            f"dt is {dt:g} s, in which a body falls {9.81 * dt * dt:.2g} m: contacts are passed through, servos and springs "
            f"blow up; take dt of 0.01 s or less{f', or {dt / 1000:g} if milliseconds were meant' if dt >= 1 else ''}",
            UnstableWarning,
        )
    joints = [j for robot in robots for j in robot.joints.values() if j.kind == "revolute"]
    # a hinge may turn a little more than once: two turns are beyond those that do
    turned = [
        j for j in joints if any(looks_like_degrees(end) and abs(end) > 4 * math.pi for end in map(float, j.limit))
    ]
    if turned:
        low, high = turned[0].limit
        more = f" and of {len(turned) - 1} other joints" if len(turned) > 1 else ""
        warn_caller(
            f'the limit of joint "{turned[0].name}"{more} is ({low:g}, {high:g}) rad, several turns in whole numbers: '
            "are these degrees? multiply by pi/180, or make the joint continuous",
            UnphysicalWarning,
        )


def check_actuator(actuator: Actuator, robot: Description) -> None:
    owner = f'actuator "{actuator.name}"'
    if actuator.joint and actuator.tendon:
        raise ModelError(
            f'{owner} drives joint "{actuator.joint}" and tendon "{actuator.tendon}"; it must be one of them'
        )
    if actuator.tendon and actuator.tendon not in robot.tendons:
        raise ModelError(f'{owner} drives tendon "{actuator.tendon}", which does not exist')
    if not actuator.tendon and actuator.joint not in robot.joints:
        raise ModelError(f'{owner} drives joint "{actuator.joint}", which does not exist')
    check_form("actuator", owner, actuator)


def check_tendon(tendon: Tendon, robot: Description) -> None:
    owner = f'tendon "{tendon.name}"'
    if not isinstance(tendon.terms, Sequence) or not len(tendon.terms):
        raise ModelError(f"{owner} has no terms; it needs at least one (joint, coefficient)")
    for term in tendon.terms:
        if not isinstance(term, Sequence) or len(term) not in (2, 3):
            raise ModelError(
                f"{owner} has a term {term!r}; a term is (joint, coefficient) or (joint, coefficient, component)"
            )
        if term[0] not in robot.joints:
            raise ModelError(f'{owner} runs over joint "{term[0]}", which does not exist')
        numbers(owner, f'the coefficient of joint "{term[0]}"', term[1], None)
    check_form("tendon", owner, tendon)


def check_names(kind: str, names: Sequence[str]) -> None:
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise ModelError(
            f'two {kind}s of the world are called "{twice[0]}"; add robots with name=... to tell them apart'
        )


def triangle_violation(inertia: np.ndarray) -> np.ndarray:
    """By how much the largest principal moment exceeds the sum of the others (or one is negative), beyond rounding."""
    xx, xy, xz, yy, yz, zz = np.moveaxis(np.asarray(inertia, dtype=np.float64), -1, 0)
    matrix = np.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz], -1).reshape(*xx.shape, 3, 3)
    moments = np.linalg.eigvalsh(matrix)
    scale = np.abs(moments).max(-1)
    # halves, so that the largest doubles do not overflow
    excess = np.maximum(0.5 * moments[..., 2] - 0.5 * moments[..., 0] - 0.5 * moments[..., 1], -moments[..., 0])
    return np.where(excess > 1e-6 * scale + 1e-300, excess, 0.0)


def inertia_message(link: str, inertia: Any) -> str:
    xx, xy, xz, yy, yz, zz = inertia
    moments = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    listed = ", ".join(f"{m:.4g}" for m in moments)
    return (
        f'the inertia of link "{link}" is not that of any body: its principal moments {listed} must be '
        "positive and none larger than the sum of the other two; check order (xx xy xz yy yz zz) and units"
    )
