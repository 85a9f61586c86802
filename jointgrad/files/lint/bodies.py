"""What is suspicious about a robot that has been read: masses, inertias, units, limits, drives."""

from __future__ import annotations

import itertools
import math

import numpy as np

from ...model.checks import (
    check_actuator,
    check_joint,
    check_link,
    check_tendon,
    inertia_message,
    looks_like_degrees,
    triangle_violation,
)
from ...model.contact_shapes import KINDS as TOUCHING
from ...model.description import Description, Joint, Link
from ...model.errors import ModelError
from .finding import Notebook, listed
from .solids import Solid, solid_of, tensor
from .tree import Group, Tree

FAR_OFF = 10.0  # inertia over that of the shape: hollow or unevenly filled bodies stay below
SWAPPED = 3.0  # moments that differ less than this are too alike to tell which is which
LARGE = 50.0  # m; no robot is so large
GYRATION = (1e-4, 10.0)  # m; sqrt(inertia / mass) of anything between a screw and a crane
ARMATURE = 10.0  # over the link's own inertia about the joint
# sqrt(inertia / mass) below a micrometre is zero that went through a computation
POINT = 1e-12


def check_bodies(robot: Description, tree: Tree, notes: Notebook) -> None:
    for link in robot.links.values():
        _check_link(link, tree, notes)
    carried = tree.carried_mass()
    for group in tree.groups.values():
        _check_massless(group, tree, carried, notes)
    for joint in robot.joints.values():
        _check_joint(joint, robot, tree, notes)
    for what, table, check in (("actuator", robot.actuators, check_actuator), ("tendon", robot.tendons, check_tendon)):
        for item in table.values():
            try:
                check(item, robot)  # type: ignore[arg-type]
            except ModelError as reason:
                notes.add("not-simulable", "error", None, f'{what} "{item.name}"', str(reason), f"correct the {what}")
    _check_looks_like_radians(robot, notes)
    _check_contact(robot, notes)


def _check_contact(robot: Description, notes: Notebook) -> None:
    """Shapes for contact that the engine leaves out of it."""
    left_out: dict[str, list[str]] = {}
    for link in robot.links.values():
        for shape in link.shapes:
            if shape.role != "visual" and shape.kind not in TOUCHING:
                left_out.setdefault(shape.kind, []).append(shape.name or link.name)
    for kind, names in left_out.items():
        message = f"shapes of kind {kind} do not touch anything yet: {listed(dict.fromkeys(names), 12)}"
        remedy = (
            f"stand for them with {', '.join(k for k in TOUCHING if k != 'plane')}, or they pass through all there is"
        )
        notes.add("no-contact", "note", None, "", message, remedy)


# links -------------------------------------------------------------------------------------------------------------------


def _check_link(link: Link, tree: Tree, notes: Notebook) -> None:
    try:
        check_link(link)
    except ModelError as reason:
        inertia = np.asarray(link.inertia, dtype=np.float64)
        if inertia.shape == (6,) and np.isfinite(inertia).all() and triangle_violation(inertia) > 0:
            message = inertia_message(link.name, link.inertia)
            remedy = "take the inertia from CAD anew: about the centre of mass, in kg m^2, products with their signs"
            notes.link("inertia-unphysical", "error", link.name, message, remedy)
        else:
            notes.link("not-simulable", "error", link.name, str(reason), "correct the number")
        return
    _check_lengths(link, tree, notes)
    group = tree.group_of.get(link.name)
    if group is None or link.mass <= 0:
        return  # the world does not move
    largest = float(np.linalg.eigvalsh(tensor(link.inertia))[2])
    if largest <= POINT * link.mass:
        _add_point(link, tree.groups[group], tree, notes)
    elif (solid := solid_of(link, notes.meshes)) is not None:
        _compare(link, solid, notes)
    elif not GYRATION[0] < (radius := math.sqrt(largest / link.mass)) < GYRATION[1]:
        message = (
            f"mass {link.mass:.4g} kg and inertia {largest:.4g} kg m^2 mean a radius of gyration of {radius:.3g} m"
        )
        remedy = "check the units (kg, kg m^2; 1 g mm^2 is 1e-9 kg m^2), or whether the inertia is a placeholder"
        notes.link("units-inertia", "warning", link.name, message, remedy)


def _add_point(link: Link, group: Group, tree: Tree, notes: Notebook) -> None:
    mass, share = link.mass, link.mass / tree.mass(group)
    message = f"mass {mass:.4g} kg, but no rotational inertia: it is a mass point"
    severity = "warning" if share > 0.1 else "note"
    is_leaf = not any(other.parent == group.top for other in tree.groups.values())
    turning = [j for j in group.joints if j.kind in ("revolute", "continuous")]
    for joint in turning if is_leaf else ():
        if tree.inertia_about(joint) <= POINT * mass and not joint.armature:
            severity = "error"
            message += f', and none about joint "{joint.name}" either, whose acceleration would be infinite'
            break
    if not group.joints:
        message += ", if this root floats"
    remedy = "give it the inertia of its shape (`jointgrad lint FILE --fix OUT` does, for URDF)"
    notes.link("inertia-zero", severity, link.name, message, remedy)


def _compare(link: Link, solid: Solid, notes: Notebook) -> None:
    """The link's inertia against that of its shapes, filled evenly with its mass."""
    I, shape = tensor(link.inertia), link.mass * solid.inertia
    severity = "note" if solid.is_partial or notes.lacks_meshes else "warning"
    have, want = np.linalg.eigvalsh(I), np.linalg.eigvalsh(shape)
    ratio = float(I.trace() / shape.trace())
    power = round(math.log10(ratio) / 3) if 0 < ratio < math.inf else 0
    about = f"principal moments {_row(have)} kg m^2; solid shapes of {link.mass:.4g} kg would have {_row(want)}"
    if power and abs(math.log10(ratio) - 3 * power) < 0.5:
        remedy = "check the units of mass, inertia and shape: kg, kg m^2, m (1 kg mm^2 is 1e-6 kg m^2)"
        notes.link(
            "units-inertia", severity, link.name, f"{about}: about 1e{3 * power} times, as if units differed", remedy
        )
    elif _error(have, want) > math.log(FAR_OFF):
        factor = np.exp(_error(have, want))
        remedy = "take the inertia of the shape, or correct the shape or the mass"
        notes.link("inertia-shape", severity, link.name, f"{about}: off by a factor of {factor:.3g}", remedy)
    else:
        _check_swapped(link, solid, I, shape, severity, notes)


def _check_swapped(link: Link, solid: Solid, I: np.ndarray, shape: np.ndarray, severity: str, notes: Notebook) -> None:
    have, want = (np.diag(solid.axes.T @ m @ solid.axes) for m in (I, shape))
    if have.min() <= 0:
        return
    order = min(itertools.permutations(range(3)), key=lambda p: _error(have[list(p)], want))
    as_is, best = _error(have, want), _error(have[list(order)], want)
    if as_is > math.log(SWAPPED) and best < 0.5 * as_is:
        message = (
            f"moments {_row(have)} kg m^2 about the axes of its shape, which would have {_row(want)}: off by a factor of "
            f"{np.exp(as_is):.3g}, but only {np.exp(best):.3g} in the order {_row(have[list(order)])}: axes look swapped"
        )
        remedy = "exchange the moments (ixx, iyy, izz), or turn the shape; this is not repaired by --fix"
        notes.link("inertia-swapped", severity, link.name, message, remedy)


def _error(a: np.ndarray, b: np.ndarray) -> float:
    """The largest ratio, as a logarithm; a moment of a millionth of the largest is as good as none."""
    floor = 1e-6
    return float(np.abs(np.log(np.maximum(a, floor * a.max()) / np.maximum(b, floor * b.max()))).max())


def _row(values: np.ndarray) -> str:
    return "(" + ", ".join(f"{v:.3g}" for v in values) + ")"


def _check_lengths(link: Link, tree: Tree, notes: Notebook) -> None:
    group = tree.group_of.get(link.name)
    if group is None or not (tree.groups[group].joints or link.mass):
        return  # grounds and walls may be large
    lengths = [(f"the size of its {s.kind}", max(s.size)) for s in link.shapes if s.size and s.kind != "mesh"]
    lengths += [(f"the offset of its {s.kind}", float(np.linalg.norm(s.position))) for s in link.shapes]
    lengths.append(("its centre of mass", float(np.linalg.norm(link.com))))
    for joint in tree.joints[link.name]:
        if joint.parent is not None:
            lengths.append((f'the offset of joint "{joint.name}"', float(np.linalg.norm(joint.position))))
    what, length = max(lengths, key=lambda entry: entry[1])
    if length > LARGE:
        message = f"{what} is {length:.4g} m, which looks like millimetres"
        notes.link("units-millimetres", "warning", link.name, message, "divide lengths by 1000; URDF and MJCF are in m")


def _check_massless(group: Group, tree: Tree, carried: dict, notes: Notebook) -> None:
    if not group.joints or tree.mass(group) > 0:
        return
    top = str(group.top)
    has_armature = all(joint.armature > 0 for joint in group.joints)
    named = "" if len(group.links) == 1 else f" (with {listed(group.links[1:])} welded to it)"
    moved = f'joint "{group.joints[0].name}" moves it{named}, but it has no mass'
    if notes.lacks_meshes:
        notes.link("massless", "note", top, f"{moved}, or that of meshes that are missing", "lint it beside its meshes")
    elif has_armature:
        notes.link("massless", "note", top, f"{moved}, only armature", "give it its mass and inertia")
    elif carried[group.top] > 0:
        message = f"{moved}; only the {carried[group.top]:.3g} kg that hang on it resist"
        remedy = (
            "give it its mass and inertia, or its joint an armature: hinges with nothing between them lock where their axes meet, "
            "and MuJoCo and others refuse moving bodies without mass"
        )
        notes.link("massless", "warning", top, message, remedy)
    else:
        message = f"{moved} and carries none: it would be accelerated without limit"
        notes.link(
            "massless", "error", top, message, "give it a mass and inertia, or make the joint fixed (--fix does either)"
        )


# joints ------------------------------------------------------------------------------------------------------------------


def _check_joint(joint: Joint, robot: Description, tree: Tree, notes: Notebook) -> None:
    negative = [what for what in ("damping", "friction", "armature") if getattr(joint, what) < 0]
    for what in negative:
        message = f"{what} is {getattr(joint, what):g}: it would feed energy into the motion"
        notes.joint(f"negative-{what}", "error", joint.name, message, "make it zero or positive")
    try:
        if not negative:
            check_joint(joint, robot)
    except ModelError as reason:
        notes.joint("not-simulable", "error", joint.name, str(reason), "correct the joint")
        return
    if joint.kind in ("revolute", "prismatic"):
        _check_limits(joint, notes)
    if joint.kind in ("revolute", "continuous", "prismatic") and joint.armature > 0:
        _check_armature(joint, tree, notes)
    if joint.mimic is not None and (leader := robot.joints.get(joint.mimic[0])) and leader.mimic is not None:
        _, multiplier, offset = joint.mimic
        first, factor, shift = leader.mimic
        message = (
            f'it mimics joint "{leader.name}", which itself mimics joint "{first}": not every reader follows a chain'
        )
        remedy = f'mimic "{first}" itself: multiplier {multiplier * factor:g}, offset {multiplier * shift + offset:g}'
        notes.joint("mimic-chain", "warning", joint.name, message, remedy)


def _check_limits(joint: Joint, notes: Notebook) -> None:
    low, high = (float(v) for v in joint.limit)
    unit = "m" if joint.kind == "prismatic" else "rad"
    if low > high:
        message = f"lower limit {low:g} {unit} is above the upper, {high:g} {unit}"
        notes.joint("limit-order", "error", joint.name, message, "exchange them")
        return
    if low == high:
        message = f"lower and upper limit are both {low:g} {unit}: it cannot move"
        notes.joint("limit-empty", "warning", joint.name, message, "give the range of motion, or make the joint fixed")
        return
    start = 0.0 if joint.initial is None else float(np.ravel(joint.initial)[0])
    if not low - 1e-9 <= start <= high + 1e-9:
        what = "zero" if start == 0 else f"the initial position {start:.4g}"
        message = f"its limits {low:.4g} to {high:.4g} {unit} exclude {what}, where it starts"
        notes.joint("limit-zero", "note", joint.name, message, "start from a position within the limits")
    if joint.kind == "revolute" and any(looks_like_degrees(v) for v in (low, high)):
        message = f"limits {low:g} to {high:g} rad are more than a full turn and whole numbers: they look like degrees"
        remedy = "write radians (multiply by pi/180), or make the joint continuous"
        notes.joint("units-degrees", "warning", joint.name, message, remedy)


def _check_armature(joint: Joint, tree: Tree, notes: Notebook) -> None:
    own = tree.inertia_about(joint)
    if own > 0 and joint.armature > ARMATURE * own:
        factor = joint.armature / own
        message = f"armature {joint.armature:.4g} is {factor:.3g} times the inertia of its own link about the joint, {own:.3g}"
        remedy = "armature is rotor inertia times gear ratio squared; check that it is not there to calm the simulation"
        notes.joint("armature", "note", joint.name, message, remedy)


def _check_looks_like_radians(robot: Description, notes: Notebook) -> None:
    """All ranges below 3.2 degrees: radians that were read as degrees."""
    ends = [abs(v) for j in robot.joints.values() if j.kind == "revolute" for v in j.limit if math.isfinite(v) and v]
    if len(ends) >= 4 and max(ends) < math.radians(2 * math.pi) / 2 + 1e-3:
        message = (
            f"no hinge moves more than {math.degrees(max(ends)):.3g} degrees: ranges look like radians read as degrees"
        )
        remedy = 'for MJCF set <compiler angle="radian"/>; for URDF check the limits'
        notes.add("units-radians", "warning", None, "", message, remedy)
