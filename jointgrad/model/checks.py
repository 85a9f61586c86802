"""Is this robot one that can be simulated? One clear sentence for everything that is not right with a description."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from .description import ACTUATORS, KINDS, Actuator, Description, Joint, Link, Tendon
from .errors import ModelError, UnphysicalWarning, warn_caller


def numbers(owner: str, what: str, value: Any, count: int | None, may_be_infinite: bool = False) -> np.ndarray:
    """A value as `count` floats (None: one number), else an error that names it."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"{what} of {owner} is {value!r}, which is not a number or a row of numbers") from None
    if array.shape != (() if count is None else (count,)):
        wanted = "one number" if count is None else f"{count} numbers"
        raise ModelError(f"{what} of {owner} is {value!r}, but must be {wanted}")
    if not np.isfinite(array).all() and (np.isnan(array).any() or not may_be_infinite):
        raise ModelError(f"{what} of {owner} is {value!r}; it must be finite")
    return array


def unit_quaternion(owner: str, what: str, value: Any) -> tuple[float, ...]:
    try:
        q = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        q = np.zeros(0)
    if q.shape != (4,) or not np.any(q):
        raise ModelError(
            f"{what} of {owner} is {value!r}, a quaternion of zero length or none: it needs four numbers of which not "
            "all are zero; (1, 0, 0, 0) is no turn"
        )
    q = numbers(owner, what, value, 4)
    return tuple(float(x) for x in q / np.linalg.norm(q))


def check_link(link: Link, unphysical: str = "error") -> None:
    """unphysical="warn" lets an inertia pass that no body can have, as real files often hold."""
    owner = f'link "{link.name}"'
    if numbers(owner, "mass", link.mass, None) < 0:
        raise ModelError(f"the mass of {owner} is negative ({link.mass}); it must be zero or more")
    numbers(owner, "com", link.com, 3)
    numbers(owner, "drag_position", link.drag_position, 3)
    unit_quaternion(owner, "drag_orientation", link.drag_orientation)
    if (numbers(owner, "drag_size", link.drag_size, 3) < 0).any():
        raise ModelError(f"drag_size of {owner} is {link.drag_size}; extents must be zero or more")
    inertia = numbers(owner, "inertia", link.inertia, 6)
    if triangle_violation(inertia) > 0:
        if unphysical == "error":
            raise ModelError(
                inertia_message(link.name, inertia) + '; compile(unphysical="warn") simulates it all the same'
            )
        warn_caller(inertia_message(link.name, inertia), UnphysicalWarning)


def check_joint(joint: Joint, robot: Description) -> None:
    owner = f'joint "{joint.name}"'
    for end, link in (("parent", joint.parent), ("child", joint.child)):
        if link is not None and link not in robot.links:
            raise ModelError(f'{owner} has {end} "{link}", but there is no such link')
    if joint.kind not in KINDS:
        raise ModelError(f'{owner} has kind "{joint.kind}"; the kinds are {", ".join(KINDS)}')
    if joint.kind == "free" and joint.parent is not None:
        raise ModelError(
            f'free {owner} hangs on link "{joint.parent}"; only the world can be the parent of a free joint'
        )
    numbers(owner, "position", joint.position, 3)
    numbers(owner, "anchor", joint.anchor, 3)
    unit_quaternion(owner, "orientation", joint.orientation)
    axes = {"spherical": (), "free": (), "fixed": (), "universal": ("axis", "second_axis")}.get(joint.kind, ("axis",))
    for what in axes:
        if not numbers(owner, what, getattr(joint, what), 3).any():
            raise ModelError(f"the {what} of {owner} has zero length")
    for what in ("damping", "armature", "stiffness"):
        if numbers(owner, what, getattr(joint, what), None) < 0 and what != "stiffness":
            raise ModelError(f"{what} of {owner} is negative ({getattr(joint, what)}); it must be zero or more")
    for what in ("initial", "rest"):
        if getattr(joint, what) is not None:
            flat = np.atleast_1d(np.asarray(getattr(joint, what), dtype=object))
            numbers(owner, what, list(flat), len(flat))


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
    if actuator.kind not in ACTUATORS:
        raise ModelError(f'{owner} has kind "{actuator.kind}"; the kinds are {", ".join(ACTUATORS)}')
    for what, count in (("gain", None), ("damping", None), ("gear", None), ("bias", 3)):
        numbers(owner, what, getattr(actuator, what), count)
    for what in ("control_limit", "force_limit"):
        low, high = numbers(owner, what, getattr(actuator, what), 2, may_be_infinite=True)
        if low > high:
            raise ModelError(f"{what} of {owner} is ({low:g}, {high:g}); the lower end must come first")


def check_tendon(tendon: Tendon, robot: Description) -> None:
    owner = f'tendon "{tendon.name}"'
    if not len(tendon.terms):
        raise ModelError(f"{owner} has no terms; it needs at least one (joint, coefficient)")
    for term in tendon.terms:
        if not isinstance(term, Sequence) or len(term) not in (2, 3):
            raise ModelError(
                f"{owner} has a term {term!r}; a term is (joint, coefficient) or (joint, coefficient, component)"
            )
        if term[0] not in robot.joints:
            raise ModelError(f'{owner} runs over joint "{term[0]}", which does not exist')
        numbers(owner, f'the coefficient of joint "{term[0]}"', term[1], None)
    for what in ("stiffness", "damping"):
        if numbers(owner, what, getattr(tendon, what), None) < 0 and what == "damping":
            raise ModelError(f"{what} of {owner} is negative ({tendon.damping}); it must be zero or more")
    low, high = numbers(owner, "rest", tendon.rest, 2)
    if low > high:
        raise ModelError(f"rest of {owner} is ({low:g}, {high:g}); the lower end must come first")


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
