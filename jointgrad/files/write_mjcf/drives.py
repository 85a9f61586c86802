"""Tendons, constraints and actuators."""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from ...model.constraints import Constraint, SpatialTendon, TendonBounds, checked_constraint
from ...model.description import Actuator, Description, Tendon
from ...model.errors import ModelError
from ..mjcf.constraint import written
from ..mjcf.geom import WHOLE
from .words import named, primitives, refuse, text

# attributes that name a part of the robot
NAMES = ("name", "body1", "body2", "site1", "site2", "joint1", "joint2", "tendon1", "tendon2", "geom1", "geom2")


def _turns(robot: Description, joint: str) -> bool:
    return robot.joints[joint].kind in ("spherical", "free")


def _part_name(robot: Description, joint: str, component: int, placed: Any) -> str:
    """The joint of MuJoCo that one degree of freedom of ours is."""
    suffixes = [suffix for suffix, _, _ in primitives(robot.joints[joint])] if not _turns(robot, joint) else [""]
    return named(placed, joint + (suffixes[component] if len(suffixes) > 1 else ""))


def tendon_lines(tendon: Tendon, robot: Description, placed: Any) -> list[str]:
    """As a fixed tendon; one that only joins directions of a ball or free joint is said by its actuators' gears."""
    terms, owner = tendon.full_terms(), f'tendon "{tendon.name}"'
    if any(_turns(robot, joint) for joint, _, _ in terms):
        refuse(owner, "a turn and other joints", len({joint for joint, _, _ in terms}) > 1)
        refuse(owner, "damping or stiffness of a turn", tendon.damping or tendon.stiffness)
        return []
    own = [c for c in robot.constraints if isinstance(c, TendonBounds) and c.tendon == tendon.name]
    bounds = own[0] if own else TendonBounds(tendon.name)
    passive = f'stiffness="{float(tendon.stiffness)!r}" damping="{float(tendon.damping)!r}" springlength="{text(tendon.rest)}"'
    return [
        f"<fixed name={named(placed, tendon.name)} {passive}{_bounds(bounds)}>",
        *(f'<joint joint={_part_name(robot, j, k, placed)} coef="{float(c)!r}"/>' for j, c, k in terms),
        "</fixed>",
    ]


def _bounds(of: TendonBounds | SpatialTendon) -> str:
    """Limit and dry friction of a tendon."""
    limit = "" if of.limit is None else f' limited="true" range="{text(of.limit)}"'
    return f'{limit} frictionloss="{float(of.friction)!r}"'


def add_constraint(constraint: Constraint, robot: Description, placed: Any, sections: dict[str, list[str]]) -> None:
    """Write a constraint into the section it belongs to."""
    if isinstance(constraint, TendonBounds):
        if constraint.tendon not in robot.tendons:
            raise ModelError(f'robot "{robot.name}" keeps limits of tendon "{constraint.tendon}", which does not exist')
    elif isinstance(constraint, SpatialTendon):
        sections["tendon"] += _path(constraint, placed)
    else:
        tag, attributes = written(checked_constraint(constraint))
        said = (_said(name, value, placed) for name, value in attributes.items())
        sections["contact" if tag in ("pair", "exclude") else "equality"].append(f"<{tag}{''.join(said)}/>")


def _said(name: str, value: Any, placed: Any) -> str:
    if isinstance(value, str):
        return f" {name}={named(placed, value) if name in NAMES and value != 'world' else quoteattr(value)}"
    return f' {name}="{int(value) if name in WHOLE else text(value)}"'


def _path(tendon: SpatialTendon, placed: Any) -> list[str]:
    def step(tag: str, attributes: dict[str, str]) -> str:
        names = ("site", "geom", "sidesite")
        said = (f" {k}={named(placed, v) if k in names else quoteattr(v)}" for k, v in attributes.items())
        return f"<{tag}{''.join(said)}/>"

    lines = [f"<spatial name={named(placed, tendon.name)}{_bounds(tendon)}>"]
    return [*lines, *(step(tag, attributes) for tag, attributes in tendon.path), "</spatial>"]


def actuator_line(actuator: Actuator, robot: Description, placed: Any) -> str:
    """force = gain u + bias + what the servo subtracts, all affine in position and speed."""
    constant, per_position, per_speed = (float(x) for x in actuator.bias)
    per_position -= actuator.gain if actuator.kind == "position" else 0.0
    per_speed -= actuator.damping + (actuator.gain if actuator.kind == "velocity" else 0.0)
    is_damper = actuator.kind == "damper"
    gains = (0.0, 0.0, -actuator.gain) if is_damper else actuator.gain
    gain = f'gaintype="{"affine" if is_damper else "fixed"}" gainprm="{text(gains)}"'
    limits = ""
    for what, limit in (("ctrl", actuator.control_limit), ("force", actuator.force_limit)):
        if np.isfinite(limit).all():
            limits += f' {what}limited="true" {what}range="{text(limit)}"'
        else:
            refuse(f'actuator "{actuator.name}"', f"a {what} limit on one side only", np.isfinite(limit).any())
    return (
        f"<general name={named(placed, actuator.name)} {_target(actuator, robot, placed)} {gain} "
        f'biastype="affine" biasprm="{text((constant, per_position, per_speed))}"{limits}/>'
    )


def _target(actuator: Actuator, robot: Description, placed: Any) -> str:
    """What it drives, and through which gears."""
    terms = [(actuator.joint, 1.0, actuator.component)]
    if actuator.tendon:
        terms = robot.tendon(actuator.tendon).full_terms()
    joint, _, component = terms[0]
    if not _turns(robot, joint):
        gear = f'gear="{float(actuator.gear)!r}"'
        if actuator.tendon:
            return f"tendon={named(placed, actuator.tendon)} {gear}"
        return f"joint={_part_name(robot, joint, component, placed)} {gear}"
    owner = f'actuator "{actuator.name}"'
    refuse(owner, "position terms on a joint with several", actuator.bias[1] or actuator.kind == "position")
    gears = [0.0] * 6
    for _, coefficient, k in terms:
        gears[k] += actuator.gear * coefficient
    return f'joint={named(placed, joint)} gear="{text(gears)}"'
