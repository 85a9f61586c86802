"""A robot in human form: links, joints, actuators, by name, in SI units, editable until it is compiled."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .arguments import shown
from .constraints import Constraint
from .errors import ModelError
from .laws import Impulse, Law
from .names import unknown
from .ranges import ACTUATORS, BASES, ROLES, SHAPES, check_word
from .ranges import JOINTS as KINDS

if TYPE_CHECKING:
    from .arrays import Model

INFINITE = (-float("inf"), float("inf"))


@dataclass
class Shape:
    """What a link looks like or touches with. Sizes (m) by kind: sphere (radius), capsule and cylinder (radius, half
    length along z), box (half extents), ellipsoid (half axes), plane (none; z is its normal), points (radius, which may be
    zero), mesh (scale x, y, z), hfield (half extents x, y, height, depth below)."""

    kind: str
    size: Sequence[float] = ()
    position: Sequence[float] = (0.0, 0.0, 0.0)
    orientation: Sequence[float] = (1.0, 0.0, 0.0, 0.0)
    name: str = ""
    role: str = "both"  # "collision", "visual" or "both"
    mesh: str = ""
    color: Sequence[float] = (0.5, 0.5, 0.5, 1.0)
    friction: Sequence[float] = ()
    # what a file says of contact: dimensions, bits that tell who touches whom; some only for the way back out
    contact: dict = field(default_factory=dict)
    # of a set of points (kind "points", size: their common radius), in the shape's frame
    points: Sequence[Sequence[float]] = ()
    # of a mesh: corners (n, 3) of its convex pieces, before the scale. Those of a file are read when a world is compiled
    pieces: list = field(default_factory=list)
    # of a height field: heights (rows along y, columns along x), in parts of the third size
    heights: Any = ()
    # what a file calls its mesh where `mesh` is empty, for the way back out: it is never opened
    reference: str = ""

    def __post_init__(self) -> None:
        owner = f'shape "{self.name}"' if self.name else "a shape"
        check_word(owner, "kind", self.kind, SHAPES)
        check_word(owner, "role", self.role, ROLES)


@dataclass
class Link:
    """A rigid piece: mass (kg), centre of mass (m) and inertia about it (kg m^2, xx xy xz yy yz zz), in the link's frame."""

    name: str
    mass: float = 0.0
    com: Sequence[float] = (0.0, 0.0, 0.0)
    inertia: Sequence[float] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    shapes: list[Shape] = field(default_factory=list)
    # the box that a medium feels, for drag: full extents, and its place in the link's frame
    drag_size: Sequence[float] = (0.0, 0.0, 0.0)
    drag_position: Sequence[float] = (0.0, 0.0, 0.0)
    drag_orientation: Sequence[float] = (1.0, 0.0, 0.0, 0.0)
    # named points: (name, position, orientation)
    sites: list[tuple[str, Sequence[float], Sequence[float]]] = field(default_factory=list)


@dataclass
class Joint:
    """How a link moves against its parent (None: the world).

    `position` and `orientation` (quaternion w x y z) place the joint in the parent's frame; where a link has several
    joints, each further one is placed in the frame the one before it leaves. `axis` is in the joint's own frame: the axis of a
    revolute, prismatic or the first axis of a universal joint, the normal of a planar one. damping (N m s), stiffness (N m),
    armature (kg m^2) act on every degree of freedom; `rest` is where the spring is at rest, `initial` where the joint starts:
    a number, a tuple for a planar (x, y, turn) or universal joint, a quaternion for a spherical one. `anchor` is the point of
    the child's frame that the joint turns about. `mimic` is (joint, multiplier, offset).
    """

    name: str
    kind: str
    parent: str | None
    child: str
    position: Sequence[float] = (0.0, 0.0, 0.0)
    orientation: Sequence[float] = (1.0, 0.0, 0.0, 0.0)
    axis: Sequence[float] = (0.0, 0.0, 1.0)
    second_axis: Sequence[float] = (0.0, 1.0, 0.0)
    damping: float = 0.0
    stiffness: float = 0.0
    armature: float = 0.0
    rest: float | Sequence[float] | None = None
    initial: float | Sequence[float] | None = None
    friction: float = 0.0
    limit: Sequence[float] = INFINITE
    anchor: Sequence[float] = (0.0, 0.0, 0.0)
    mimic: tuple[str, float, float] | None = None
    effort_limit: float = float("inf")
    velocity_limit: float = float("inf")


@dataclass
class Actuator:
    """What a control moves: "torque" pushes with gain*u, "position" and "velocity" serve u with gain (and damping), and
    "damper" brakes with gain*u*speed.

    Force and position are seen through the gear. `component` picks one degree of freedom of a joint with several. Where a
    `tendon` is named, the actuator drives that, and no joint.
    """

    name: str
    joint: str = ""
    kind: str = "torque"
    gain: float = 1.0
    damping: float = 0.0
    bias: Sequence[float] = (0.0, 0.0, 0.0)
    gear: float = 1.0
    control_limit: Sequence[float] = INFINITE
    force_limit: Sequence[float] = INFINITE
    component: int = 0
    tendon: str = ""


@dataclass
class Tendon:
    """A sum of joint coordinates that is pulled at as one: `terms` are (joint, coefficient), or (joint, coefficient,
    component) for one degree of freedom of a joint with several.

    Its length is the sum of coefficients times positions, its speed that of their rates, and each joint feels its
    coefficient times the pull: that of actuators, of damping, and of a spring that is slack while the length is within `rest`.
    """

    name: str
    terms: Sequence[tuple]
    stiffness: float = 0.0
    damping: float = 0.0
    rest: Sequence[float] = (0.0, 0.0)

    def full_terms(self) -> list[tuple[str, float, int]]:
        """Joint, coefficient and component of every term."""
        return [(term[0], float(term[1]), int(term[2]) if len(term) > 2 else 0) for term in self.terms]


class Description:
    """A robot: any number of links held together by joints. `base` says how a link without a joint meets the world."""

    def __init__(self, name: str = "robot", base: str = "fixed") -> None:
        check_word(f'robot "{name}"', "base", base, BASES)
        self.name, self.base = name, base
        self.links: dict[str, Link] = {}
        self.joints: dict[str, Joint] = {}
        self.actuators: dict[str, Actuator] = {}
        self.tendons: dict[str, Tendon] = {}
        self.constraints: list[Constraint] = []
        # kept from files: named states {"q": ..., "qd": ..., "u": ...}
        self.keyframes: dict[str, dict] = {}
        # what a file says of the world around the robot: gravity, time step, ...
        self.options: dict = {}

    def __repr__(self) -> str:
        return f'Description("{self.name}": {len(self.links)} links, {len(self.joints)} joints, {len(self.actuators)} actuators)'

    def add_link(self, name: str, mass: float = 0.0, com=(0.0, 0.0, 0.0), inertia=(0.0,) * 6) -> Link:
        """Inertia is given about the centre of mass: six numbers xx xy xz yy yz zz, or three for a diagonal one."""
        if np.shape(inertia) == (3,):
            inertia = (inertia[0], 0.0, 0.0, inertia[1], 0.0, inertia[2])
        return self._add(self.links, "link", Link(name, mass, com, inertia))

    def add_joint(
        self,
        name: str,
        kind: str,
        parent: str | None,
        child: str,
        *,
        position: Sequence[float] = (0.0, 0.0, 0.0),
        orientation: Sequence[float] = (1.0, 0.0, 0.0, 0.0),
        axis: Sequence[float] = (0.0, 0.0, 1.0),
        second_axis: Sequence[float] = (0.0, 1.0, 0.0),
        damping: float = 0.0,
        stiffness: float = 0.0,
        armature: float = 0.0,
        rest: float | Sequence[float] | None = None,
        initial: float | Sequence[float] | None = None,
        friction: float = 0.0,
        limit: Sequence[float] = INFINITE,
        anchor: Sequence[float] = (0.0, 0.0, 0.0),
        mimic: tuple[str, float, float] | None = None,
        effort_limit: float = float("inf"),
        velocity_limit: float = float("inf"),
    ) -> Joint:
        """Hold a link to its parent (None: the world). kind: revolute, continuous, prismatic, spherical, universal, planar, free or
        fixed. Placed at position (m) and orientation (w x y z) of the parent's frame; axis in the joint's own. damping (N m s/rad,
        N s/m), stiffness (N m/rad, N/m), armature (kg m^2, kg), dry friction (N m, N), limit (low, high; rad, m); `help(Joint)`
        has the rest."""
        check_word(f'joint "{name}"', "kind", kind, KINDS)
        given = {k: v for k, v in locals().items() if k != "self"}
        return self._add(self.joints, "joint", Joint(**given))

    def add_tendon(
        self,
        name: str,
        terms: Sequence[tuple],
        *,
        stiffness: float = 0.0,
        damping: float = 0.0,
        rest: Sequence[float] = (0.0, 0.0),
    ) -> Tendon:
        """A sum of joint coordinates, as (joint, coefficient) pairs, that is pulled at as one: by a spring (stiffness N/m, slack
        while the length is within rest, m), damping (N s/m), and actuators."""
        return self._add(self.tendons, "tendon", Tendon(name, terms, stiffness, damping, rest))

    def add_actuator(
        self,
        name: str,
        joint: str = "",
        kind: str = "torque",
        *,
        gain: float = 1.0,
        damping: float = 0.0,
        bias: Sequence[float] = (0.0, 0.0, 0.0),
        gear: float = 1.0,
        control_limit: Sequence[float] = INFINITE,
        force_limit: Sequence[float] = INFINITE,
        component: int = 0,
        tendon: str = "",
    ) -> Actuator:
        """A control of a joint, or of a tendon. kind: "torque" pushes with gain u, "position" and "velocity" serve u (rad, rad/s;
        m, m/s) with gain and damping, "damper" brakes with gain u. force = ... + bias[0] + bias[1] position + bias[2] speed, within
        force_limit (N m, N), through the gear."""
        check_word(f'actuator "{name}"', "kind", kind, ACTUATORS)
        given = {k: v for k, v in locals().items() if k != "self"}
        return self._add(self.actuators, "actuator", Actuator(**given))

    def link(self, name: str) -> Link:
        """The link of this name, to read or to change."""
        return self._find(self.links, "link", name)

    def joint(self, name: str) -> Joint:
        """The joint of this name, to read or to change."""
        return self._find(self.joints, "joint", name)

    def actuator(self, name: str) -> Actuator:
        """The actuator of this name, to read or to change."""
        return self._find(self.actuators, "actuator", name)

    def tendon(self, name: str) -> Tendon:
        """The tendon of this name, to read or to change."""
        return self._find(self.tendons, "tendon", name)

    def copy(self) -> Description:
        """Another robot that is described alike."""
        return _copied(self)

    def compile(
        self,
        dt: float | None = None,
        gravity: Sequence[float] | None = None,
        density: float | None = None,
        viscosity: float | None = None,
        integrator: str | None = None,
        unphysical: str = "error",
        contact: Law | None = Impulse(),  # noqa: B008, a frozen value
        constraints: bool = True,
        max_contacts: int | None = None,
        massless: str = "refuse",
        meshes: str = "hull",
    ) -> Model:
        """This robot alone in a world, ready to run: time step dt (s), gravity (m/s^2), density (kg/m^3) and viscosity (Pa s) of
        what is around it, and the rest as in `World.compile`. What is not given comes from the file the robot came from, else it
        is that of a World."""
        from .world import World

        given: dict[str, Any] = {"dt": dt, "gravity": gravity, "density": density, "viscosity": viscosity}
        names = {"dt": "timestep"}
        chosen = {k: self.options.get(names.get(k, k)) if v is None else v for k, v in given.items()}
        world = World(**{k: v for k, v in chosen.items() if v is not None})
        world.add(self)
        return world.compile(
            integrator=integrator,
            unphysical=unphysical,
            contact=contact,
            constraints=constraints,
            max_contacts=max_contacts,
            massless=massless,
            meshes=meshes,
        )

    @staticmethod
    def _add(table, kind, item):
        if not isinstance(item.name, str) or not item.name:
            raise ModelError(f"a {kind} needs a name, but got {shown(item.name)}")
        if item.name in table:
            raise ModelError(f'there are two {kind}s called "{item.name}"; give one another name')
        table[item.name] = item
        return item

    @staticmethod
    def _find(table, kind, name):
        if not isinstance(name, str) or name not in table:
            raise ModelError(unknown(kind, name if isinstance(name, str) else shown(name), table))
        return table[name]


ATOMS = (str, float, int, bool, type(None))


def _copied(value: Any) -> Any:
    """What copy.deepcopy would give, several times as fast on the few types that descriptions are made of."""
    kind = type(value)
    if kind in ATOMS:
        return value
    if kind is tuple:
        return value if all(type(v) in ATOMS for v in value) else tuple(_copied(v) for v in value)
    if kind is list:
        return [_copied(v) for v in value]
    if kind is dict:
        return {k: _copied(v) for k, v in value.items()}
    if kind in (Shape, Link, Joint, Actuator, Tendon, Description) or isinstance(value, Constraint):
        new = object.__new__(kind)
        new.__dict__.update({k: _copied(v) for k, v in value.__dict__.items()})
        return new
    return copy.deepcopy(value)
