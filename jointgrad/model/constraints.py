"""What a description says beyond its tree: closed loops, coupled joints, pairs of bodies and shapes, bounds of tendons.

Append them to `robot.constraints`. Links, joints, tendons and shapes are given by name; "world" is what does not move.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from .arguments import shown
from .errors import ModelError
from .ranges import check_form

WORLD = "world"


@dataclass(kw_only=True)
class Constraint:
    """What all have: a name, and whether the simulation takes it into account."""

    kind: ClassVar[str]

    name: str = ""
    is_active: bool = True
    # what a file says to another solver, by that one's names: nothing is made of it, it is kept for the way back out
    file_settings: dict[str, Any] = field(default_factory=dict)

    @property
    def _owner(self) -> str:
        """For messages."""
        return f'constraint "{self.name or self.kind}" ({self.kind})'


@dataclass
class Connect(Constraint):
    """A point of two links is the same: `anchor` (m, in the frame of link1) where the robot starts, or two sites."""

    kind = "connect"

    link1: str = WORLD
    link2: str = WORLD
    anchor: Sequence[float] = (0.0, 0.0, 0.0)
    sites: tuple[str, str] | None = None


@dataclass
class Weld(Constraint):
    """Two links move as one: as they stand where the robot starts, or with link2 at `pose` (m, quaternion) in link1, or with
    one site on the other. `anchor` (m, in the frame of link2) is the point that is held."""

    kind = "weld"

    link1: str = WORLD
    link2: str = WORLD
    anchor: Sequence[float] = (0.0, 0.0, 0.0)
    pose: Sequence[float] | None = None
    sites: tuple[str, str] | None = None


@dataclass
class JointCoupling(Constraint):
    """A joint follows another: its way from the start is a polynomial of the other's; without another it is held.

    Only polynomials of first degree are simulated. Coefficients are in rad or m, constant first.
    """

    kind = "joint equality"

    joint: str
    leader: str | None = None
    polynomial: Sequence[float] | float = (0.0, 1.0)


@dataclass
class TendonCoupling(Constraint):
    """A tendon follows another, as joints do. Not simulated yet."""

    kind = "tendon equality"

    tendon: str
    leader: str | None = None
    polynomial: Sequence[float] | float = (0.0, 1.0)


@dataclass
class ContactExclusion(Constraint):
    """Shapes of two links do not touch each other."""

    kind = "contact exclusion"

    link1: str
    link2: str


@dataclass
class ContactPair(Constraint):
    """Two shapes touch, whatever else is said of their links; with this friction (sliding first), or that of the shapes."""

    kind = "contact pair"

    shape1: str
    shape2: str
    friction: Sequence[float] | float = ()


@dataclass
class TendonBounds(Constraint):
    """Limits of the length (rad or m) and dry friction (N m or N) of a tendon of the description. Not simulated yet."""

    kind = "fixed tendon"

    tendon: str
    limit: Sequence[float] | None = None
    friction: float = 0.0


@dataclass
class SpatialTendon(Constraint):
    """A tendon on a path over sites and shapes: what each step of it is, and what its file says of it. Not simulated yet."""

    kind = "spatial tendon"

    path: Sequence[tuple[str, dict[str, str]]] = ()
    limit: Sequence[float] | None = None
    friction: float = 0.0


def checked_constraint(value: Any) -> Constraint:
    """What stands in `robot.constraints`, with numbers that can be."""
    if not isinstance(value, Constraint):
        kinds = ", ".join(kind.__name__ for kind in Constraint.__subclasses__())
        raise ModelError(f"a constraint must be one of {kinds} (jointgrad.model.constraints), but is {shown(value)}")
    check_form("constraint", value._owner, vars(value))
    return value
