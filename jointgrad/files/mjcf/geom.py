"""Geoms of MJCF: their shape, where it is, and the mass it gives to its body."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ...model.description import Shape
from ...model.solids import moments_per_mass, volume
from ..xml import Element
from .pose import Pose, Vector, compose, direction, from_z, norm, orientation
from .source import Compiler

SIZES = {"plane": 0, "sphere": 1, "capsule": 2, "cylinder": 2, "box": 3, "ellipsoid": 3}
KINDS = (*SIZES, "mesh", "hfield", "sdf")
CONTACT_NUMBERS = (
    "contype", "conaffinity", "condim", "priority", "solmix", "solref",
    "solimp", "margin", "gap", "friction", "surfacevel", "adhesion",
)  # fmt: skip
WHOLE = ("contype", "conaffinity", "condim", "priority")  # of them, those that are one whole number
SLIDING_TURNING_ROLLING = (1.0, 0.005, 0.0001)
GREY = (0.5, 0.5, 0.5, 1.0)


@dataclass
class Matter:
    """Mass (kg) at a pose of the body's frame, and moments (kg m^2) about its axes."""

    mass: float
    moments: Vector
    pose: Pose


def shape_of(element: Element, frame: Pose, compiler: Compiler) -> Shape:
    """A primitive or mesh geom, in its body's frame."""
    kind = element.get("type", "sphere")
    if kind not in KINDS:
        raise element.error(f'<geom type="{kind}">: the types are {", ".join(KINDS)}')
    size = [*element.floats("size", (1, 2, 3), ()), 0.0, 0.0, 0.0][:3]
    place = element.floats("pos", 3, (0.0, 0.0, 0.0))
    if "fromto" in element.attributes:
        own = _between(element, kind, size)
    else:
        own = place, orientation(element, compiler.degrees, compiler.sequence)
    if "mesh" not in element.attributes and any(not s > 0 for s in size[: SIZES.get(kind, 0)]):
        raise element.error(f"a {kind} geom needs {SIZES[kind]} sizes above zero, but has {_text(size)}")
    position, turn = compose(frame, own)
    touches = element.number("contype", 1.0) or element.number("conaffinity", 1.0)
    friction = [*element.floats("friction", (1, 2, 3), ()), *SLIDING_TURNING_ROLLING]
    given = len(element.floats("friction", (1, 2, 3), ()))
    return Shape(
        kind,
        tuple(size[: SIZES.get(kind, 0)]),
        position,
        turn,
        role="both" if touches else "visual",
        color=element.floats("rgba", 4, GREY),
        friction=tuple(friction[:given]) + SLIDING_TURNING_ROLLING[given:],
        contact=_contact(element),
    )


def _contact(element: Element) -> dict:
    kept = {}
    for name in CONTACT_NUMBERS:
        values = element.floats(name, None, None, finite=False)
        if values and name in WHOLE and not (len(values) == 1 and abs(values[0]) < 2**31 and values[0] % 1 == 0):
            raise element.error(f'<{element.tag} {name}="{_text(values)}">: expected one whole number')
        if values:
            kept[name] = values[0] if len(values) == 1 else values
    if "fluidshape" in element.attributes:
        kept["fluidshape"] = element.attributes["fluidshape"]
    return kept


def _text(values: Sequence[float]) -> str:
    return " ".join(f"{v:g}" for v in values)


def _between(element: Element, kind: str, size: list[float]) -> Pose:
    """A geom along a line; its length goes into the sizes. Its own z axis points from the second end to the first."""
    if kind not in ("capsule", "cylinder", "box", "ellipsoid"):
        raise element.error(f"fromto is for a capsule, cylinder, box or ellipsoid, but this geom is a {kind}")
    if any(element.floats("pos", 3, (0.0,) * 3)):
        raise element.error("<geom> has both pos and fromto; keep one")
    ends = element.floats("fromto", 6)
    line = [a - b for a, b in zip(ends[:3], ends[3:], strict=True)]
    half = norm(line) / 2
    size[1:] = (half, 0.0) if kind in ("capsule", "cylinder") else (size[0], half)
    middle = ((ends[0] + ends[3]) / 2, (ends[1] + ends[4]) / 2, (ends[2] + ends[5]) / 2)
    return middle, from_z(direction(line, "the line from fromto", element))


def matter_of(element: Element, shape: Shape) -> Matter | None:
    """What a primitive geom weighs: its mass if given, else its density times its volume (or area, for a shell)."""
    if shape.kind not in SIZES or shape.kind == "plane":
        return None
    return weighed(element, shape, shape.kind, tuple(shape.size))


def weighed(element: Element, shape: Shape, kind: str, size: tuple[float, ...]) -> Matter:
    is_shell = element.flag("shellinertia")
    extent, moments = (_shell if is_shell else _solid)(kind, size)
    density = element.number("density", 1000.0)
    mass = element.number("mass", density * extent)
    if mass < 0 or density < 0:
        raise element.error(f"a geom has a negative {'mass' if mass < 0 else 'density'}")
    if "mass" in element.attributes and extent <= 1e-14:
        mass = 0.0
    x, y, z = moments
    return Matter(mass, (mass * x, mass * y, mass * z), (shape.position, shape.orientation))  # type: ignore[arg-type]


def _solid(kind: str, size: tuple[float, ...]) -> tuple[float, Vector]:
    """Volume (m^3) and moments per mass (m^2) of a solid of uniform density."""
    return volume(kind, size), moments_per_mass(kind, size)


def _shell(kind: str, size: tuple[float, ...]) -> tuple[float, Vector]:
    """Area (m^2) and moments per mass (m^2) of a thin shell, with MuJoCo's approximations for the ellipsoid."""
    if kind == "ellipsoid":
        return _ellipsoid_shell(*size)
    if kind == "box":
        return _box_shell(*size)
    r, h = size[0], 2 * size[1] if len(size) == 2 else 0.0
    if kind == "sphere":
        return 4 * math.pi * r * r, (2 * r * r / 3,) * 3
    ends, side = (4 if kind == "capsule" else 2) * math.pi * r * r, 2 * math.pi * r * h
    cap, rod = ends / (ends + side), side / (ends + side)
    across, along = rod * (6 * r * r + h * h) / 12, rod * r * r
    if kind == "capsule":
        centre = h / 2 + r / 2  # of a half sphere
        across += cap * (2 * r * r / 3 + centre**2 - r * r / 4)
        along += cap * 2 * r * r / 3
    else:
        across += cap * (r * r / 4 + h * h / 4)
        along += cap * r * r / 2
    return ends + side, (across, across, along)


def _ellipsoid_shell(a: float, b: float, c: float) -> tuple[float, Vector]:
    """Area by Thomsen's formula; moments of the difference to an ellipsoid a micrometre larger."""
    p, more = 1.6075, 1e-6
    area = 4 * math.pi * (((a * b) ** p + (b * c) ** p + (c * a) ** p) / 3) ** (1 / p)
    inner, outer = a * b * c, (a + more) * (b + more) * (c + more)
    squares = [(outer * (s + more) ** 2 - inner * s * s) / (outer - inner) / 5 for s in (a, b, c)]
    return area, (squares[1] + squares[2], squares[0] + squares[2], squares[0] + squares[1])


def _box_shell(a: float, b: float, c: float) -> tuple[float, Vector]:
    faces = (b * c, c * a, a * b)
    total = sum(faces)
    half = (a, b, c)
    # mean square of each coordinate over the surface: s^2 on the two faces it is normal to, s^2/3 on the others
    x, y, z = (half[k] ** 2 * (faces[k] + (total - faces[k]) / 3) / total for k in range(3))
    return 8 * total, (y + z, x + z, x + y)
