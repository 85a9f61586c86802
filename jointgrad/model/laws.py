"""Laws of contact that a world, or one pair of shapes, may follow."""

from __future__ import annotations

from dataclasses import dataclass

from .arrays import ANDERSSON, BROWN, COULOMB, HOLLARS, IMPULSE
from .errors import ModelError

FRICTION_LAWS = {"coulomb": COULOMB, "andersson": ANDERSSON, "hollars": HOLLARS, "brown": BROWN}

# of joint limits, dry friction, mimic joints and loops. The compliance of pairs is 1e-5 / kg to a body of 1 kg; this is the same
# to a link of 0.1 kg m^2
TIE_COMPLIANCE = 1e-6


@dataclass(frozen=True)
class Impulse:
    """Hard contact: impulses that let nothing sink in, found by projected Gauss-Seidel (Qiao 2021, eq. 5).

    `sweeps` and `cone` (friction in every direction alike, or a pyramid along two tangents) are those of the world's own law, as
    is `form`: "matrix" writes out how every contact moves every other, "sums" keeps running sums over joints, which costs
    less from about a dozen contacts per robot on; "auto" decides by how many there is room for. Results differ by rounding.
    `stabilisation` is the share of a gap that is closed in a step, at most at `push_limit` (m/s). What gives way: a
    point gives `compliance` times the bodies' own response at it more (a pure number, the same for a mouse and an elephant), and
    `softness` (1/kg), which knows no masses. Points closer than `margin` (m) count as touching. With a margin a resting
    contact is smooth: its impulse depends on the gap in the same way on both sides of zero. What bounces falls through it.
    """

    sweeps: int = 50
    cone: bool = True
    stabilisation: float = 0.2
    compliance: float = 1e-5
    softness: float = 0.0
    margin: float = 1e-3
    push_limit: float = 2.0
    form: str = "auto"

    @property
    def code(self) -> int:
        return IMPULSE

    def check(self) -> None:
        if not isinstance(self.sweeps, int) or self.sweeps < 1:
            raise ModelError(f"sweeps of Impulse must be a whole number from 1 on, but is {self.sweeps!r}")
        if self.form not in ("auto", "matrix", "sums"):
            raise ModelError(f'form of Impulse must be "auto", "matrix" or "sums", but is {self.form!r}')
        _check_numbers(self, ("stabilisation", "compliance", "softness", "margin", "push_limit"))


@dataclass(frozen=True)
class Spring:
    """Compliant contact: a force k x^n + d x^n xd that grows with the depth x (Hunt and Crossley 1975), and friction by one of
    the laws "brown" (Brown 2018), "hollars", "andersson", "coulomb". Defaults are those of Tiny Differentiable Simulator."""

    stiffness: float = 5e4
    damping: float = 5e4
    exponent: float = 1.5
    friction_law: str = "brown"
    static_friction: float = 0.5
    transition: float = 0.01

    @property
    def code(self) -> int:
        return FRICTION_LAWS[self.friction_law]

    def check(self) -> None:
        if self.friction_law not in FRICTION_LAWS:
            names = ", ".join(FRICTION_LAWS)
            raise ModelError(f'Spring has friction_law "{self.friction_law}"; the names are {names}')
        _check_numbers(self, ("stiffness", "damping", "static_friction"))
        _check_numbers(self, ("exponent", "transition"), above=True)


Law = Impulse | Spring


def _check_numbers(law: Law, names: tuple[str, ...], above: bool = False) -> None:
    for name in names:
        value = getattr(law, name)
        is_number = isinstance(value, int | float) and value == value and abs(value) != float("inf")
        if not is_number or value < 0 or (above and value == 0):
            wanted = "more than zero" if above else "zero or more"
            raise ModelError(f"{name} of {type(law).__name__} must be {wanted}, but is {value!r}")
