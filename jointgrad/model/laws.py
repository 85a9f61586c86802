"""Laws of contact that a world, or one pair of shapes, may follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .arrays import ANDERSSON, BROWN, COULOMB, HOLLARS, IMPULSE
from .ranges import check_form
from .renamed import accepts_old_names

STILL = 1e-12  # m/s: what slips more slowly is at rest
# who finds the impulses of a step, as the engine numbers them (engine/kernels/stages/contact/solvers.py)
SOLVERS = ("matrix", "sums", "implicit")
# laws whose points are rows of the contact problem; those of the others are pushed by springs
HAVE_ROWS = (IMPULSE,)
FRICTION_LAWS = {"coulomb": COULOMB, "andersson": ANDERSSON, "hollars": HOLLARS, "brown": BROWN}

# of joint limits, dry friction, mimic joints and loops. The compliance of pairs is 1e-5 / kg to a body of 1 kg; this is the same
# to a link of 0.1 kg m^2
TIE_COMPLIANCE = 1e-6


@accepts_old_names
@dataclass(frozen=True)
class Impulse:
    """Hard contact: impulses that let nothing sink in, found by projected Gauss-Seidel (Qiao 2021, eq. 5).

    `sweeps` and `cone` (friction in every direction alike, or a pyramid along two tangents) are those of the world's own law, as
    is `form`: "matrix" writes out how every contact moves every other, "sums" keeps running sums over joints, which costs
    less from about a dozen contacts per robot on; "auto" decides by how many there is room for. Results differ by rounding.
    `baumgarte` is the share of a gap that is closed in a step, at most at `max_push_out_speed` (m/s). What gives way: a
    point gives `compliance` times the bodies' own response at it more (a pure number, the same for a mouse and an elephant), and
    `softness` (1/kg), which knows no masses and is to give way to compliance. Points closer than `margin` (m) count as touching.
    With a margin a resting contact is smooth: its impulse depends on the gap in the same way on both sides of zero. What bounces
    falls through it.
    """

    sweeps: int = 50
    cone: bool = True
    baumgarte: float = 0.2
    softness: float = 0.0
    margin: float = 1e-3
    max_push_out_speed: float = 2.0
    form: str = "auto"
    compliance: float = 1e-5

    # what all laws of a world must agree on
    SOLVER: ClassVar[str] = "(sweeps, cone, form)"

    @property
    def solver(self) -> tuple:
        """How the world's contacts are solved together."""
        return self.sweeps, self.cone, self.form

    @property
    def code(self) -> int:
        """The law's number in the engine."""
        return IMPULSE

    def check(self) -> None:
        """Raise ModelError where a number cannot be."""
        check_form("impulse", "Impulse", self)


@dataclass(frozen=True)
class Implicit:
    """Contact solved to the end: a regularised convex problem with friction cones, solved by Newton's method in joint space and
    differentiated by the implicit function theorem (docs/contact.md).

    A point gives `compliance` times what its bodies would answer if nothing held them (a pure number, the same for a mouse and
    an elephant), and `softness` (1/kg), which knows no masses; rows of joints give the same share of what each would answer alone.
    `baumgarte`, `margin` and `max_push_out_speed` are those of `Impulse`. `iterations` is how many steps of Newton's
    method an environment may take; one that needs more is reported. `is_level` takes off what a convex cone adds to the normal
    velocity of a sliding body, which else hops; without it, the law is MuJoCo's.
    """

    baumgarte: float = 0.2
    compliance: float = 0.01
    softness: float = 0.0
    margin: float = 1e-3
    max_push_out_speed: float = 2.0
    iterations: int = 50
    is_level: bool = True

    SOLVER: ClassVar[str] = "(iterations, is_level)"

    @property
    def solver(self) -> tuple:
        """How the world's contacts are solved together."""
        return self.iterations, self.is_level

    @property
    def code(self) -> int:
        """The law's number in the engine."""
        return IMPULSE

    def check(self) -> None:
        """Raise ModelError where a number cannot be."""
        check_form("implicit", "Implicit", self)


@dataclass(frozen=True)
class Spring:
    """Compliant contact: a force k x^n + d x^n xd that grows with the depth x (Hunt and Crossley 1975), and friction by one of
    the laws "brown" (Brown 2018), "hollars", "andersson", "coulomb". Defaults are those of Tiny Differentiable Simulator.

    margin (m): the force begins at this distance, as a parabola, and is the straight law from the same depth on; zero: at touch."""

    stiffness: float = 5e4
    damping: float = 5e4
    exponent: float = 1.5
    friction_law: str = "brown"
    static_friction: float = 0.5
    transition: float = 0.01
    margin: float = 0.0

    @property
    def code(self) -> int:
        """The law's number in the engine."""
        return FRICTION_LAWS[self.friction_law]

    def check(self) -> None:
        """Raise ModelError where a number cannot be."""
        check_form("spring", "Spring", self)


# laws whose contacts are rows of one problem
ROWS = (Impulse, Implicit)
Law = Impulse | Implicit | Spring
