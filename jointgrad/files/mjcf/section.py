"""What is around the bodies in MJCF: options, actuators, damping ratios, keyframes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...model.budget import excess
from ...model.constraints import Connect, JointCoupling, TendonCoupling, Weld
from ...model.description import INFINITE, Actuator, Description
from ...model.errors import ModelError
from ...model.initial import initial_mass_matrix
from ..xml import Element
from .body import Builder, Scope, scopes_of
from .drive import Drive, taught
from .source import DRIVES, Source
from .words import checked, is_limited

LOOKS = ("visual", "statistic", "custom", "size")


# options ---------------------------------------------------------------------------------------------------------------


def options(source: Source, report: Any) -> dict[str, Any]:
    """Gravity, time step, integrator and flags of all <option> elements."""
    found: dict[str, Any] = {
        "timestep": 0.002,
        "gravity": (0.0, 0.0, -9.81),
        "integrator": "Euler",
        "density": 0.0,
        "viscosity": 0.0,
        "wind": (0.0, 0.0, 0.0),
        "disabled_groups": (),
        "flags": {},
    }
    for section in source.sections("option"):
        checked(section)
        for name in ("timestep", "density", "viscosity"):
            found[name] = section.number(name, found[name])
        for name in ("gravity", "wind"):
            found[name] = section.floats(name, 3, found[name])
        found["integrator"] = section.get("integrator", found["integrator"])
        groups = section.floats("actuatorgroupdisable", None, ())
        found["disabled_groups"] = (*found["disabled_groups"], *(int(g) for g in groups))
        for flag in section.all("flag"):
            found["flags"].update(flag.attributes)
    if found["integrator"] not in ("Euler", "RK4", "implicit", "implicitfast"):
        raise section.error(
            f'<option integrator="{found["integrator"]}">: the names are Euler, RK4, implicit, implicitfast'
        )
    if not found["timestep"] > 0:
        raise section.error(f'<option timestep="{found["timestep"]:g}"> must be above zero')
    if any(found["wind"]) and (found["density"] > 0 or found["viscosity"] > 0):
        report.changes("wind")
    if found["integrator"].startswith("implicit"):
        report.ignores(f'integrator "{found["integrator"]}" for all but joint damping')
    if found["flags"].get("sleep") == "enable":
        report.ignores("sleep (nothing is put to sleep)")
    return found


def integrator(settings: dict[str, Any]) -> str:
    """Ours for MuJoCo's: its Euler takes joint damping at the end of the step unless eulerdamp is off."""
    if settings["integrator"] == "RK4":
        return "rk4"
    if settings["integrator"] == "Euler" and settings["flags"].get("eulerdamp") == "disable":
        return "semi_implicit"
    return "implicit_damping"


def apply_flags(builder: Builder, settings: dict[str, Any]) -> None:
    """What <flag> turns off."""
    off = {name for name, word in settings["flags"].items() if word == "disable"}
    if "gravity" in off:
        settings["gravity"] = (0.0, 0.0, 0.0)
    if {"spring", "damper"} <= off:  # MuJoCo then leaves out all passive forces
        settings["density"] = settings["viscosity"] = 0.0
    for joint in builder.robot.joints.values():
        joint.stiffness *= "spring" not in off
        joint.damping *= "damper" not in off
        if off & {"constraint", "frictionloss"}:
            joint.friction = 0.0
        if off & {"constraint", "limit"}:
            joint.limit = INFINITE
    for tendon in builder.robot.tendons.values():
        tendon.stiffness *= "spring" not in off
        tendon.damping *= "damper" not in off
    for actuator in builder.robot.actuators.values():
        if "clampctrl" in off:
            actuator.control_limit = INFINITE
        if "actuation" in off:
            _silence(actuator)
    if off & {"constraint", "equality"}:
        equalities = (Connect, Weld, JointCoupling, TendonCoupling)
        builder.robot.constraints = [c for c in builder.robot.constraints if not isinstance(c, equalities)]
    if off & {"constraint", "contact"}:
        for shape in (shape for link in builder.robot.links.values() for shape in link.shapes):
            shape.contact |= {"contype": 0, "conaffinity": 0}
            shape.role = "visual"


def _silence(actuator: Actuator) -> None:
    actuator.kind, actuator.gain, actuator.damping, actuator.bias = "torque", 0.0, 0.0, (0.0, 0.0, 0.0)


# actuators -------------------------------------------------------------------------------------------------------------


def actuators(builder: Builder, scope: Scope, settings: dict[str, Any], is_main: bool) -> None:
    """All actuators of a file; where copies were made of what they drive, they follow copy by copy."""
    made: list[tuple[int, Scope, Element, Drive]] = []
    for element in scope.source.items("actuator"):
        if element.tag not in DRIVES:
            raise element.error(f"<{element.tag}> is not an actuator")
        checked(element)
        defaults = scope.source.defaults
        drive = taught(defaults.drives[defaults.find(element.get("class", "main"), element)].copy(), element)
        reason = _not_ours(drive, element) or _not_a_sum(builder, scope, drive)
        if reason:
            builder.report.changes(reason)
            continue
        what = "tendon" if drive.transmission == "tendon" else "joint"
        found = scopes_of(builder, scope, what, drive.target)
        if not found and is_main and not builder.report.changed:
            raise element.error(f'<{element.tag}> drives {what} "{drive.target}", which does not exist')
        builder.grow(element, len(found))
        made += [(0 if s == scope else 1 + builder.order[s.prefix, s.suffix], s, element, drive) for s in found]
    for _, where, element, drive in sorted(made, key=lambda one: one[0]):
        _actuator(builder, where, element, drive, settings)


def _not_ours(drive: Drive, element: Element) -> str:
    """Why one of our actuators cannot do this; empty if it can."""
    if element.tag in ("muscle", "adhesion", "dcmotor", "orientation", "pid", "plugin", "cylinder", "intvelocity"):
        return f"{element.tag} actuator"
    if not drive.transmission:
        raise element.error(f"<{element.tag}> does not say what it drives: joint, tendon, site ...")
    if drive.transmission not in ("joint", "jointinparent", "tendon"):
        return f"actuator of a {drive.transmission.replace('crank', 'slider crank ')}"
    if drive.dynamics != "none":
        return f"actuator with dynamics ({drive.dynamics})"
    if drive.gain != "fixed" and not (drive.gain == "affine" and not any(drive.gains[:2])):
        return f"actuator with {drive.gain} gain"
    if drive.bias not in ("none", "affine"):
        return f"actuator with {drive.bias} bias"
    if drive.delay > 0:
        return "actuator with a delay"
    return "actuator damping that depends on the motion" if any(drive.damping[1:]) else ""


def _not_a_sum(builder: Builder, scope: Scope, drive: Drive) -> str:
    """A tendon that is no sum of joint coordinates has a length of its own law, which we do not have."""
    is_path = drive.transmission == "tendon" and scopes_of(builder, scope, "spatial tendon", drive.target)
    return "actuator of a spatial tendon" if is_path else ""


def _actuator(builder: Builder, scope: Scope, element: Element, drive: Drive, settings: dict[str, Any]) -> None:
    target = scope.named(drive.target)
    is_tendon = drive.transmission == "tendon"
    name = builder._name("actuator", element, scope, builder.robot.actuators, f"{target}.{element.tag}")
    made = Actuator(name, gear=drive.gear[0], tendon=target) if is_tendon else _on_joint(builder, name, target, drive)
    if made is None:
        return
    builder.robot.actuators[name] = made
    _set_law(builder, made, drive, "" if is_tendon else builder.types[target])
    _limit(builder, made, drive, element, scope)
    if made.joint and builder.types[target] not in ("ball", "free"):
        builder.robot.joints[target].damping += drive.damping[0] * made.gear**2
        builder.robot.joints[target].armature += drive.armature * made.gear**2
    elif drive.damping[0] or drive.armature:
        builder.report.changes("damping or armature of an actuator on a tendon, ball or free joint")
    if drive.group in settings["disabled_groups"]:
        _silence(made)


def _on_joint(builder: Builder, name: str, joint: str, drive: Drive) -> Actuator | None:
    """An actuator of one joint; if it pushes in several directions at once, of a tendon of that joint's own."""
    kind = builder.types[joint]
    gears = {k: g for k, g in enumerate(drive.gear[: {"free": 6, "ball": 3}.get(kind, 1)]) if g}
    is_turn = kind == "ball" or (kind == "free" and max(gears, default=0) >= 3)
    if drive.transmission == "jointinparent" and is_turn:
        builder.report.changes("actuator of a joint in its parent's frame")
        return None
    if kind == "ball" and drive.bias == "affine" and drive.biases[1]:
        builder.report.changes("position actuator of a ball joint")
        return None
    if len(gears) < 2:
        component, gear = next(iter(gears.items()), (0, 0.0))
        return Actuator(name, joint, gear=gear, component=component)
    own = builder._free_name(name, builder.robot.tendons)
    builder.robot.add_tendon(own, [(joint, g, k) for k, g in gears.items()])
    return Actuator(name, tendon=own)


def _set_law(builder: Builder, made: Actuator, drive: Drive, joint_type: str) -> None:
    """Gain and bias of MuJoCo as one of our kinds."""
    b0, b1, b2 = drive.biases[:3] if drive.bias == "affine" else (0.0, 0.0, 0.0)
    if joint_type == "free":
        b1 = 0.0  # MuJoCo sees no length in a free joint
    made.gain = drive.gains[0]
    if drive.gain == "affine":
        made.kind, made.gain, made.bias = "damper", -drive.gains[2], (b0, b1, b2)
        return
    if drive.bias == "affine" and made.gain == -drive.biases[1] and b2 > 0:
        builder.damping_ratios[made.name], b2 = b2, 0.0
    if b1 and b1 == -made.gain:
        made.kind, b1 = "position", 0.0
    elif b2 and b2 == -made.gain and not b1:
        made.kind, b2 = "velocity", 0.0
    made.bias = (b0, b1, b2)


def _limit(builder: Builder, made: Actuator, drive: Drive, element: Element, scope: Scope) -> None:
    autolimits = scope.source.compiler.autolimits
    bounds = drive.ranges["ctrl"]
    if drive.inherit > 0 and made.kind == "position":
        ranges, target = (builder.tendon_ranges, made.tendon) if made.tendon else (builder.ranges, made.joint)
        low, high = ranges.get(target, (0.0, 0.0))
        if low == high:
            raise element.error(f'inheritrange needs a range of "{target}"')
        bounds = (
            (low + high) / 2 - (high - low) / 2 * drive.inherit,
            (low + high) / 2 + (high - low) / 2 * drive.inherit,
        )
    for what, limits in (("ctrl", bounds), ("force", drive.ranges["force"])):
        words = Element(element.tag, {f"{what}limited": drive.limited[what]}, line=element.line, file=element.file)
        if is_limited(words, f"{what}limited", limits, autolimits):
            if limits[0] >= limits[1]:
                raise element.error(f"{what}range of <{element.tag}> must go from a smaller to a larger number")
            setattr(made, "control_limit" if what == "ctrl" else "force_limit", limits)


def _moved(actuator: Actuator, robot: Description) -> list[tuple[str, float, int]]:
    """Joint, coefficient and component of all that an actuator moves."""
    if actuator.tendon:
        return robot.tendons[actuator.tendon].full_terms()
    return [(actuator.joint, 1.0, actuator.component)]


def _limit_effort(builder: Builder, joint: str, drives: list[Actuator]) -> None:
    """actuatorfrcrange clamps all that actuators do to a joint; with one actuator that is a limit of its force."""
    low, high = builder.effort[joint]
    builder.robot.joints[joint].effort_limit = max(abs(low), abs(high))
    if len(drives) > 1:
        builder.report.changes("actuatorfrcrange of a joint with several actuators")
    elif any(a.tendon for a in drives):
        builder.report.changes("actuatorfrcrange of a joint that a tendon pulls")
    elif drives and drives[0].gear:
        first, last = sorted((low / drives[0].gear, high / drives[0].gear))
        drives[0].force_limit = tuple(min(max(x, first), last) for x in drives[0].force_limit)


def _limit_pull(builder: Builder, tendon: str, drives: list[Actuator]) -> None:
    """actuatorfrcrange of a tendon clamps the forces of its actuators, without their gears."""
    if len(drives) > 1:
        builder.report.changes("actuatorfrcrange of a tendon with several actuators")
    elif drives:
        low, high = builder.pull_limits[tendon]
        drives[0].force_limit = tuple(min(max(x, low), high) for x in drives[0].force_limit)


def limit_efforts(builder: Builder) -> None:
    of_joint: dict[str, list[Actuator]] = {}
    of_tendon: dict[str, list[Actuator]] = {}
    for actuator in builder.robot.actuators.values():
        of_tendon.setdefault(actuator.tendon, []).append(actuator)
        for joint in {moved for moved, c, _ in _moved(actuator, builder.robot) if c}:
            of_joint.setdefault(joint, []).append(actuator)
    for joint in builder.effort:
        _limit_effort(builder, joint, of_joint.get(joint, []))
    for tendon in builder.pull_limits:
        _limit_pull(builder, tendon, of_tendon.get(tendon, []))


def dampings(builder: Builder) -> None:
    """What is given as a damping ratio, by the masses at the initial pose: of position actuators, and springdamper,
    which is the time constant and the ratio that a joint is to have."""
    if not builder.ratios and not builder.damping_ratios:
        return
    count = sum({"fixed": 0, "spherical": 3, "free": 6}.get(j.kind, 1) for j in builder.robot.joints.values())
    if why := excess("rows", count):
        raise ModelError(f"a damping ratio needs the robot's mass matrix, which has {why}")
    M, first = initial_mass_matrix(builder.robot)
    try:
        inverse = np.linalg.inv(M)
    except np.linalg.LinAlgError:
        return builder.report.changes("damping ratio of a joint without inertia")
    for name, ratio in builder.damping_ratios.items():
        actuator = builder.robot.actuators[name]
        arms = np.zeros(len(M))
        for joint, coefficient, component in _moved(actuator, builder.robot):
            arms[first[joint] + component] += actuator.gear * coefficient
        mass = 1.0 / max(float(arms @ inverse @ arms), 1e-15) if arms.any() else 0.0
        b0, b1, _ = actuator.bias
        actuator.bias = (b0, b1, -2.0 * ratio * float(np.sqrt(max(actuator.gain * mass, 0.0))))
    for name, (time, ratio) in builder.ratios.items():
        held = builder.robot.joints[name]
        count = {"spherical": 3, "free": 6}.get(held.kind, 1)
        weights = np.diag(inverse)[first[name] : first[name] + count]
        inertia = count / max(weights.sum(), 1e-15)
        held.stiffness, held.damping = float(inertia / (time * ratio) ** 2), float(2 * inertia / time)


# keyframes and what is only looked at --------------------------------------------------------------------------------


def keyframes(builder: Builder, source: Source) -> None:
    """Named states; what a key leaves out is the initial one."""
    robot = builder.robot
    lengths = {"free": 7, "ball": 4}
    start: list[float] = []
    for name, kind in builder.types.items():
        joint = robot.joints[name]
        start += {
            "free": [*joint.position, *joint.orientation],
            "ball": [1.0, 0.0, 0.0, 0.0],
        }.get(kind, [float(joint.initial or 0.0)])  # type: ignore[arg-type]
    nv = sum({7: 6, 4: 3}.get(lengths.get(k, 1), 1) for k in builder.types.values())
    initial = {"q": tuple(start), "qd": (0.0,) * nv, "u": (0.0,) * len(robot.actuators)}
    for number, element in enumerate(source.items("keyframe")):
        state = dict(initial)
        for ours, theirs in (("q", "qpos"), ("qd", "qvel"), ("u", "ctrl")):
            values = element.floats(theirs, None, None)
            if values is None:
                continue
            if len(values) > len(state[ours]):
                if builder.report.changed:
                    builder.report.ignores("keyframe entries of what is left out")
                    continue
                raise element.error(
                    f"{theirs} of a key has {len(values)} numbers, but the model has {len(state[ours])}"
                )
            builder.grow(element, len(state[ours]) - len(values))
            state[ours] = (*values, *state[ours][len(values) :])
        robot.keyframes[element.get("name", f"key{number}")] = state


def looks(builder: Builder, source: Source) -> None:
    """Sections and assets that are only for the eye, or for sensors."""
    for element in source.items("sensor"):
        builder.report.ignores(f"<sensor> {element.tag}")
    for element in source.items("asset"):
        if element.tag not in ("mesh", "model", "hfield"):
            builder.report.ignores(f"<{element.tag}>")
    for tag in LOOKS:
        if source.sections(tag):
            builder.report.ignores(f"<{tag}>", len(source.sections(tag)))
    if any(e.tag == "skin" for e in source.items("deformable")):
        builder.report.ignores("<skin>")
