"""Several robots in one world; `compile` turns them into a Model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .arguments import shown
from .arrays import INTEGRATORS, Model
from .bodies import terrain_data
from .budget import excess
from .checks import check_link, check_names, warn_of_units
from .contact_pairs import Default, Rule
from .description import Description, Shape
from .errors import ModelError, UnsupportedWarning, warn_caller
from .inertias import check_inertias, check_moving_mass
from .laws import Impulse, Law
from .massless import with_mass
from .meshes import with_pieces
from .parts import PlacedRobot, WorldParts, add_robot
from .ranges import BASES, Number, check_form, check_word, numbers, unit_quaternion
from .recipe import Recipe
from .renamed import with_current_names
from .tables import table
from .topology import Plan, bodies_of, params_of, start_of, topology_of


class World:
    """Robots, gravity (m/s^2), the medium around them (kg/m^3, Pa s), and the time step (s) and integrator that `compile`
    takes where it is given none."""

    def __init__(
        self,
        gravity: Sequence[float] = (0.0, 0.0, -9.81),
        dt: float = 1e-3,
        integrator: str = "semi_implicit",
        density: float = 0.0,
        viscosity: float = 0.0,
    ) -> None:
        self.gravity, self.dt, self.integrator = gravity, dt, integrator
        self.density, self.viscosity = density, viscosity
        self.placed: list[PlacedRobot] = []
        self.rules: list[Rule] = []

    def __repr__(self) -> str:
        robots = ", ".join(f'"{p.prefix.rstrip("/") or p.robot.name}"' for p in self.placed[:6])
        more = f" and {len(self.placed) - 6} more" if len(self.placed) > 6 else ""
        links = sum(len(p.robot.links) for p in self.placed)
        return f"World({robots or 'empty'}{more}: {links} links, dt={self.dt:g} s)"

    def _repr_html_(self) -> str:
        names = [p.prefix.rstrip("/") or p.robot.name for p in self.placed]
        rows = [f"{p.robot!r} at {np.round(p.position, 6).tolist()}, {p.base}" for p in self.placed]
        return table(repr(self), zip(names, rows, strict=True))

    def add(
        self,
        robot: Description,
        name: str | None = None,
        position: Sequence[float] = (0.0, 0.0, 0.0),
        orientation: Sequence[float] = (1.0, 0.0, 0.0, 0.0),
        base: str | None = None,
    ) -> World:
        """Put a robot into the world. With a name, its parts are called "name/part". base is "free" or "fixed"."""
        if not isinstance(robot, Description):
            raise ModelError(f"robot must be a Description, as jg.load and jg.zoo give, but is {shown(robot)}")
        _check_name("robot", name)
        owner = f'robot "{name or robot.name}"'
        base = robot.base if base is None else base
        check_word(owner, "base", base, BASES)
        position = tuple(numbers(owner, "position", position, 3))
        orientation = unit_quaternion(owner, "orientation", orientation)
        self.placed.append(PlacedRobot(robot.copy(), f"{name}/" if name else "", position, orientation, base))
        return self

    def add_ground(
        self, friction: float | None = None, restitution: float = 0.0, height: float = 0.0, name: str = "ground"
    ) -> World:
        """A plane across z. Its friction is that of every pair it is in, where the other shape has no larger one."""
        _check_name("ground", name)
        check_form("ground", f'ground "{name}"', {"friction": friction, "restitution": restitution, "height": height})
        ground = Description(name, base="fixed")
        shape = Shape("plane", (), (0.0, 0.0, height), friction=() if friction is None else (friction,))
        ground.add_link(name).shapes.append(shape)
        self.add(ground)
        return self.pair(name, "*", restitution=restitution) if restitution else self

    def add_terrain(
        self,
        heights: Any,
        spacing: float,
        position: Sequence[float] = (0.0, 0.0, 0.0),
        friction: float | None = None,
        name: str = "terrain",
    ) -> World:
        """Uneven ground: heights (m), rows along y and columns along x, `spacing` m apart, its middle at `position`.

        Cells are two triangles each. Ready-made heights are in `jg.terrain`."""
        _check_name("terrain", name)
        owner = f'terrain "{name}"'
        field = np.array(heights, dtype=np.float64)
        Number(None, 0.0, is_above=True).check(owner, "spacing", spacing)
        terrain_data(owner, field)
        x, y = (0.5 * float(spacing) * (n - 1) for n in field.shape[::-1])
        shape = Shape("hfield", (x, y, 1.0, 1.0), friction=() if friction is None else (friction,), heights=field)
        ground = Description(name, base="fixed")
        ground.add_link(name).shapes.append(shape)
        return self.add(ground, position=position)

    def pair(
        self,
        first: str,
        second: str,
        contact: Any = Default,
        *,
        friction: float | None = None,
        torsion: float | None = None,
        rolling: float | None = None,
        restitution: float | None = None,
        baumgarte: float | None = None,
        compliance: float | None = None,
        softness: float | None = None,
        margin: float | None = None,
        max_push_out_speed: float | None = None,
        stiffness: float | None = None,
        damping: float | None = None,
        exponent: float | None = None,
        static_friction: float | None = None,
        transition: float | None = None,
        stabilisation: float | None = None,
        push_limit: float | None = None,
    ) -> World:
        """Say how two shapes touch, by the names of shapes or links (patterns such as "dog/*" allowed); the last word counts.

        contact: a law, or None for pairs that shall not touch. What is None stays as it is. friction, torsion and rolling (m),
        restitution (0 to 1), baumgarte, compliance (a pure number), softness (1/kg; compliance is to be preferred), margin (m),
        max_push_out_speed (m/s); of springs stiffness, damping, exponent, static_friction, transition (m/s). stabilisation and
        push_limit are old names of baumgarte and max_push_out_speed.
        """
        said = {k: v for k, v in locals().items() if k not in ("self", "first", "second", "contact")}
        options = {k: v for k, v in said.items() if v is not None}
        for which, name in (("first", first), ("second", second)):
            if not isinstance(name, str):
                raise ModelError(f"{which} of a pair is the name of a link or shape, but is {shown(name)}")
        options = with_current_names(options)
        check_form("pair", f'the pair "{first}", "{second}"', options)
        _check_law(contact)
        self.rules.append(Rule(first, second, contact, {k: float(v) for k, v in options.items()}))
        return self

    def compile(
        self,
        dt: float | None = None,
        integrator: str | None = None,
        unphysical: str = "error",
        contact: Law | None = Impulse(),  # noqa: B008, a frozen value
        constraints: bool = True,
        max_contacts: int | None = None,
        massless: str = "refuse",
        meshes: str = "hull",
    ) -> Model:
        """A model with time step dt (s). Integrators: semi_implicit, explicit, rk4, implicit_damping.

        unphysical="warn" simulates inertias that no body can have, as real files often hold, with a warning. contact is the
        law of all pairs without one of their own; with None no shapes touch. constraints=False leaves out joint limits,
        dry friction, mimic joints and loops. max_contacts: room for points that touch at once. massless: joints that move no
        mass are an error ("refuse"), fixed where they stand ("weld"), or their links get the mass of their shapes ("estimate").
        meshes: their convex "hull", or "decompose", which splits what is not convex (needs coacd).
        """
        given = {"dt": dt, "integrator": integrator, "contact": contact}
        is_asked, dt = integrator is not None, self.dt if dt is None else dt
        integrator = self.integrator if integrator is None else integrator
        asked = {"unphysical": unphysical, "constraints": constraints, "max_contacts": max_contacts}
        asked |= {"massless": massless, "meshes": meshes}
        check_form("compile", "the world", asked)
        check_word("the world", "integrator", integrator, INTEGRATORS)
        check_form("world", "the world", vars(self) | {"dt": dt})
        parts = WorldParts()
        placed = self._ready(massless, meshes, contact is not None)
        if why := excess("bodies", sum(len(placed.robot.links) for placed in self.placed)):
            raise ModelError(f"the world has {why}")
        for one in placed:
            for link in one.robot.links.values():
                check_link(link, unphysical)
            add_robot(one, parts)
        warn_of_units((one.robot for one in placed), dt)
        if not parts.links:
            raise ModelError("the world is empty: add a robot with at least one link before compiling")
        check_names("link", [name for name, _, _ in parts.links])
        check_names("joint", [f.name for f in parts.frames])
        check_names("actuator", [name for name, _, _ in parts.actuators])
        check_names("tendon", [name for name, _, _ in parts.tendons])
        _check_law(contact)
        bodies = bodies_of(parts)
        plan = Plan(contact, constraints, max_contacts, self.rules)
        topology, contacts = topology_of(parts, bodies, INTEGRATORS[integrator], plan, placed)
        if topology.tree["has_impulses"] and integrator == "rk4":
            _refuse_impulses(is_asked)
            topology = replace(topology, tree={**topology.tree, "integrator": INTEGRATORS["semi_implicit"]})
        params = params_of(parts, topology, self, dt, contacts)
        check_moving_mass(parts, topology, params)
        check_inertias(parts, topology, params, integrator)
        return Model(replace(topology, recipe=self._recipe(given | asked)), params, start_of(parts))

    def _ready(self, massless: str, meshes: str, touches: bool) -> list[PlacedRobot]:
        """Robots with the corners of their meshes, and with mass below every joint that moves."""
        if touches or massless == "estimate":
            with_pieces((one.robot for one in self.placed), meshes)
        return [replace(one, robot=with_mass(one.robot, massless)) for one in self.placed]

    def _recipe(self, asked: dict[str, Any]) -> Recipe:
        own = {name: getattr(self, name) for name in ("gravity", "dt", "integrator", "density", "viscosity")}
        return Recipe(own, tuple(self.placed), tuple(self.rules), asked)


def _refuse_impulses(is_asked: bool) -> None:
    """Runge-Kutta steps are for smooth forces. A file's wish for them gives way to contact; the caller's own does not."""
    why = "this world has contacts, limits or dry friction, which act by impulses, and rk4 is for smooth forces"
    if is_asked:
        raise ModelError(
            f'{why}; take integrator="semi_implicit", or contact=jg.Spring() or None with constraints=False'
        )
    warn_caller(f'{why}: integrator="semi_implicit" is taken', UnsupportedWarning)


def _check_name(kind: str, name: Any) -> None:
    if name is not None and (not isinstance(name, str) or not name):
        raise ModelError(f"the name of a {kind} is a text, but is {shown(name)}")


def _check_law(contact: Any) -> None:
    if contact is not None and contact is not Default:
        if not isinstance(contact, Law):
            raise ModelError(
                f"contact must be Implicit(...), Impulse(...), Spring(...) or None, but is {shown(contact)}"
            )
        contact.check()
