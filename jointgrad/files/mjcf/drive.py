"""Actuators of MJCF: what each shorthand sets, and which of them our actuators can say."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

from ..xml import Element

TRANSMISSIONS = ("joint", "jointinparent", "tendon", "cranksite", "site", "body")
STATEFUL = {"intvelocity": "integrator", "cylinder": "filter", "muscle": "muscle", "dcmotor": "dcmotor"}


def _ten(first: float = 0.0) -> list[float]:
    return [first] + [0.0] * 9


@dataclass
class Drive:
    """An actuator as MuJoCo keeps it, before it is known what it drives."""

    tag: str = "general"
    transmission: str = ""
    target: str = ""
    gear: list[float] = field(default_factory=lambda: [1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    dynamics: str = "none"
    gain: str = "fixed"
    bias: str = "none"
    gains: list[float] = field(default_factory=lambda: _ten(1.0))
    biases: list[float] = field(default_factory=_ten)
    limited: dict[str, str] = field(default_factory=lambda: {"ctrl": "auto", "force": "auto"})
    ranges: dict[str, tuple[float, float]] = field(default_factory=lambda: {"ctrl": (0.0, 0.0), "force": (0.0, 0.0)})
    inherit: float = 0.0
    group: int = 0
    damping: tuple[float, ...] = (0.0,)
    armature: float = 0.0
    delay: float = 0.0

    def copy(self) -> Drive:
        return copy.deepcopy(self)


def taught(drive: Drive, element: Element) -> Drive:
    """Apply what an element (of a class, or the actuator itself) says, in the order of MuJoCo's reader."""
    drive.tag = element.tag
    _common(drive, element)
    shorthand = {
        "motor": _motor,
        "position": _position,
        "intvelocity": _position,
        "velocity": _velocity,
        "damper": _damper,
    }.get(element.tag)
    if shorthand is not None:
        shorthand(drive, element)
    if element.tag in STATEFUL:
        drive.dynamics = STATEFUL[element.tag]
    return drive


def _common(drive: Drive, element: Element) -> None:
    for name in TRANSMISSIONS:
        if name in element.attributes:
            drive.transmission, drive.target = name, element.attributes[name]
    _overwrite(drive.gear, element, "gear")
    _overwrite(drive.gains, element, "gainprm")
    _overwrite(drive.biases, element, "biasprm")
    drive.dynamics = element.get("dyntype", drive.dynamics)
    drive.gain = element.get("gaintype", drive.gain)
    drive.bias = element.get("biastype", drive.bias)
    for what in ("ctrl", "force"):
        drive.limited[what] = element.get(f"{what}limited", drive.limited[what])
        drive.ranges[what] = element.floats(f"{what}range", 2, drive.ranges[what], finite=False)
    drive.inherit = element.number("inheritrange", drive.inherit)
    drive.group = int(element.number("group", drive.group))
    drive.damping = element.floats("damping", (1, 2, 3), drive.damping)
    drive.armature = element.number("armature", drive.armature)
    drive.delay = element.number("delay", drive.delay)


def _overwrite(values: list[float], element: Element, name: str) -> None:
    given = element.floats(name, range(1, len(values) + 1), ())
    values[: len(given)] = given


def _motor(drive: Drive, element: Element) -> None:
    drive.gains[0], drive.dynamics, drive.gain, drive.bias = 1.0, "none", "fixed", "none"


def _position(drive: Drive, element: Element) -> None:
    """A damping that is positive in the bias is a ratio, to be turned into a damping once the mass is known."""
    drive.gains[0] = element.number("kp", drive.gains[0])
    drive.biases[1] = -drive.gains[0]
    if "kv" in element.attributes and "dampratio" in element.attributes:
        raise element.error(f"<{element.tag}> has both kv and dampratio; keep one")
    for name, sign in (("kv", -1.0), ("dampratio", 1.0)):
        if name in element.attributes:
            value = element.number(name)
            if value < 0:
                raise element.error(f'<{element.tag} {name}="{value:g}"> must not be negative')
            drive.biases[2] = sign * value
    if "timeconst" in element.attributes:
        drive.dynamics = "filterexact" if element.number("timeconst") else "none"
    drive.gain, drive.bias = "fixed", "affine"


def _velocity(drive: Drive, element: Element) -> None:
    gain = element.number("kv", drive.gains[0])
    drive.gains[0], drive.biases = gain, [0.0, 0.0, -gain, *[0.0] * 7]
    drive.dynamics, drive.gain, drive.bias = "none", "fixed", "affine"


def _damper(drive: Drive, element: Element) -> None:
    kv = element.number("kv", -drive.gains[2] if drive.gain == "affine" else 0.0)
    drive.gains = [0.0, 0.0, -kv, *[0.0] * 7]
    drive.limited["ctrl"] = "true"
    drive.dynamics, drive.gain, drive.bias = "none", "affine", "none"
