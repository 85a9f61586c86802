"""The machine form of a world: Topology (integers), Params (every float a gradient may be asked for), State, Model."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any

import numpy as np

from .arguments import checked_count, checked_kind, shown
from .errors import InputError
from .names import unknown
from .ranges import LONGEST, SHORTEST, highest_values, parameters_with, unit
from .renamed import ByName, current, with_current_names
from .rotations import rotation
from .rows import own_names, row_name, with_rows
from .state_fields import places, state_counts
from .tables import listed, table

# joint kinds as the engine knows them; planar and universal joints are chains of these
FIXED, REVOLUTE, PRISMATIC, SPHERICAL, FREE = range(5)
# actuator kinds
TORQUE, POSITION, VELOCITY, DAMPER = range(4)
# kinds of shapes that touch, in the order in which pairs name them; a mark only says where something is
PLANE, SPHERE, CAPSULE, BOX, CYLINDER, ELLIPSOID, MESH, TERRAIN, MARK = range(9)
# laws of contact: impulses, or springs with one of four laws of friction
IMPULSE, COULOMB, ANDERSSON, HOLLARS, BROWN = range(5)
# ties: three rows of joints, or what closes a loop; and what a row of joints is: a stop is the nearer end of a range, or one
# end of a range so narrow that both are at work at once
JOINT_CONSTRAINT, CONNECT, WELD = range(3)
NO_ROW, STOP_ROW, FRICTION_ROW, MIMIC_ROW, LOW_ROW, HIGH_ROW = range(6)
STOPS = (STOP_ROW, LOW_ROW, HIGH_ROW)
INTEGRATORS = {"semi_implicit": 0, "explicit": 1, "rk4": 2, "implicit_damping": 3}

N_Q = {FIXED: 0, REVOLUTE: 1, PRISMATIC: 1, SPHERICAL: 4, FREE: 7}
N_DOF = {FIXED: 0, REVOLUTE: 1, PRISMATIC: 1, SPHERICAL: 3, FREE: 6}

# parameters by public name, with the numbers per row; joint.rest has a row per coordinate, tendon.coefficient per term
PARAMS = MappingProxyType({
    "link.mass": 1, "link.com": 3, "link.inertia": 6, "link.drag_size": 3, "link.drag_placement": 7,
    "joint.placement": 7, "joint.axis": 3, "joint.damping": 1, "joint.stiffness": 1, "joint.armature": 1, "joint.rest": 1,
    "joint.limit": 2, "joint.friction": 1, "joint.mimic": 2,
    "shape.size": 3, "shape.placement": 7,
    "pair.friction": 1, "pair.torsion": 1, "pair.rolling": 1, "pair.restitution": 1, "pair.baumgarte": 1,
    "pair.compliance": 1, "pair.softness": 1, "pair.margin": 1, "pair.max_push_out_speed": 1,
    "pair.stiffness": 1, "pair.damping": 1, "pair.exponent": 1, "pair.static_friction": 1, "pair.transition": 1,
    "actuator.gain": 1, "actuator.damping": 1, "actuator.bias": 3, "actuator.gear": 1,
    "actuator.control_limit": 2, "actuator.force_limit": 2,
    "tendon.stiffness": 1, "tendon.damping": 1, "tendon.rest": 2, "tendon.coefficient": 1,
    "world.gravity": 3, "world.dt": 1, "world.density": 1, "world.viscosity": 1,
    "world.baumgarte": 1, "world.compliance": 1, "world.softness": 1, "world.limit_margin": 1,
    "graft.weight": 1,
})  # fmt: skip


def known_parameter(name: Any) -> str:
    """The name of a parameter; old ones are told what they are called."""
    name = current(name)
    if not isinstance(name, str) or name not in PARAMS:
        said = name if isinstance(name, str) else shown(name)
        raise InputError(f'there is no parameter "{said}"; the names are {", ".join(PARAMS)}')
    return name


def known_parameters(values: Mapping[str, Any]) -> dict[str, Any]:
    """The same values by names of parameters."""
    return {known_parameter(name): value for name, value in values.items()}


class Compared:
    """Equality of records that hold arrays: the same kind, and every field alike, number by number. They have no hash."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and _is_alike(vars(self), vars(other))

    __hash__ = None  # type: ignore[assignment]


def _is_alike(a: Any, b: Any) -> bool:
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(_is_alike(a[name], b[name]) for name in a)
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    return bool(a == b)


@dataclass(frozen=True, eq=False)
class State(Compared):
    """Coordinates q (..., nq) and rates qd (..., nv). A free joint has position, quaternion w x y z; its rates are linear
    in world axes, angular in body axes, as in MuJoCo."""

    q: np.ndarray
    qd: np.ndarray
    more: np.ndarray | None = None  # (..., n_more): further state, by name in model.state_places; None: all zero

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter((self.q, self.qd))


@dataclass(frozen=True, eq=False)
class Topology:
    """How a world hangs together: integers and names, nothing a gradient could be asked for."""

    tree: Mapping[str, Any]
    link_names: tuple[str, ...]
    joint_names: tuple[str, ...]
    actuator_names: tuple[str, ...]
    dof_names: tuple[str, ...]
    shape_names: tuple[str, ...] = ()
    # rows of pair.* parameters: which shapes share them
    pair_names: tuple[str, ...] = ()
    tendon_names: tuple[str, ...] = ()
    # for the eye alone: (link, Shape) of all that was described, whether it touches or not
    looks: tuple[tuple[int, Any], ...] = ()
    # networks inside the step: see grafts/blueprint.py
    grafts: tuple[Any, ...] = ()
    # from what the world was compiled, to compile it again: see model/recipe.py
    recipe: Any = None

    def __getstate__(self) -> dict[str, Any]:
        """What a copy or another process gets: not what has been worked out from it."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @functools.cached_property
    def param_shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Shape of every parameter that all environments share."""
        return MappingProxyType({name: self._shape_of(name) for name in PARAMS})

    @functools.cached_property
    def param_places(self) -> tuple[tuple[str, slice, tuple[int, ...]], ...]:
        """Where every parameter lies, and its shape, where the numbers of all that are shared follow each other in one row."""
        ends = itertools.accumulate(math.prod(shape) for shape in self.param_shapes.values())
        items = zip(self.param_shapes.items(), ends, strict=True)
        return tuple((name, slice(end - math.prod(shape), end), shape) for (name, shape), end in items)

    @functools.cached_property
    def n_params(self) -> int:
        """Numbers in that row."""
        return sum(math.prod(shape) for shape in self.param_shapes.values())

    def shape_of(self, name: str) -> tuple[int, ...]:
        return self.param_shapes[name]

    def _shape_of(self, name: str) -> tuple[int, ...]:
        rows = {
            "link": self.tree["n_links"], "joint": self.tree["n_frames"], "actuator": self.tree["n_actuators"],
            "shape": self.tree["n_shapes"], "pair": self.tree["n_pair_rows"],
            "tendon": self.tree["n_tendons"], "graft": self.tree["n_weights"],
        }.get(name.split(".")[0])  # fmt: skip
        if name == "joint.rest":
            return (self.tree["n_q"],)
        if name == "tendon.coefficient":
            return (self.tree["tendon_first"][-1],)
        width = () if PARAMS[name] == 1 else (PARAMS[name],)
        return width if rows is None else (rows, *width)

    @functools.cached_property
    def link_rows(self) -> Mapping[str, int]:
        return {name: row for row, name in enumerate(self.link_names)}

    @functools.cached_property
    def sites(self) -> Mapping[str, tuple[int, np.ndarray, np.ndarray]]:
        """Places that were marked in the description: link, position, rotation. The first of a name counts."""
        found: dict[str, tuple[int, np.ndarray, np.ndarray]] = {}
        for placed in self.recipe.placed if self.recipe is not None else ():
            for link in placed.robot.links.values():
                row = self.link_names.index(placed.prefix + link.name) if link.sites else 0
                for name, position, orientation in link.sites:
                    place = np.array(position, dtype=np.float64), rotation(unit(orientation))
                    found.setdefault(placed.prefix + name, (row, *place))
        return found

    def frames_with(self, *rows: int) -> set[int]:
        """Joints that have a row of one of these kinds in the contact problem."""
        ties = zip(self.tree["constraint_frame"], self.tree["constraint_row"], strict=True)
        return {frame for frame, kind in ties if kind in rows}

    @property
    def quaternions(self) -> list[int]:
        """Where quaternions begin in q."""
        kinds, starts = self.tree["kind"], self.tree["q"]
        return [q + 3 * (k == FREE) for k, q in zip(kinds, starts, strict=True) if k in (SPHERICAL, FREE)]


class Model:
    """A compiled world: what it is made of never changes; `replace` gives a model with other numbers."""

    def __init__(
        self, topology: Topology, params: Mapping[str, np.ndarray], initial: np.ndarray, batch: int | None = None
    ):
        self.topology, self._initial, self.batch = topology, initial, batch
        # workers of the engine that are idle: they are kept while a model of this topology lives, and shared by all of them
        self.workers: dict[Any, list] = {}
        self.params: Mapping[str, np.ndarray] = MappingProxyType(ByName({k: _frozen(v) for k, v in params.items()}))

    nq = property(lambda self: self.topology.tree["n_q"], doc="Length of q.")
    nv = property(lambda self: self.topology.tree["n_dofs"], doc="Length of qd: degrees of freedom.")
    nu = property(lambda self: self.topology.tree["n_actuators"], doc="Length of u: actuators.")
    n_links = property(
        lambda self: self.topology.tree["n_links"], doc="Links, those that are welded together counted one by one."
    )
    link_names = property(lambda self: self.topology.link_names, doc="Rows of link.*, outputs and outside forces.")
    joint_names = property(
        lambda self: self.topology.joint_names, doc="Rows of joint.*, fixed joints and bases included."
    )
    actuator_names = property(lambda self: self.topology.actuator_names, doc="Entries of u, and rows of actuator.*.")
    shape_names = property(lambda self: self.topology.shape_names, doc="Rows of shape.*.")
    pair_names = property(lambda self: self.topology.pair_names, doc="Rows of pair.*: which shapes share them.")
    tendon_names = property(lambda self: self.topology.tendon_names, doc="Rows of tendon.*.")

    def __reduce__(self) -> tuple:
        """A copy, or a model in another process, is made anew."""
        return Model, (self.topology, dict(self.params), self._initial, self.batch)

    def save(self, path: Any) -> None:
        """Write the world and every parameter as an .npz file, which `jg.load_model` makes the same model of."""
        from ..grafts.model_file import save_model

        save_model(self, path)

    def __repr__(self) -> str:
        t = self.topology.tree
        dt = np.ravel(self.params["world.dt"])[0]
        own = "" if self.batch is None else f", parameters of {self.batch} environments"
        touch = f", {t['n_pairs']} pairs that touch" if t["n_pairs"] else ""
        return f"Model({t['n_links']} links, nq={self.nq}, nv={self.nv}, nu={self.nu}, dt={dt}{touch}{own})"

    def _repr_html_(self) -> str:
        return table(repr(self), (
            ("links", listed(self.link_names)), ("coordinates", listed(self.topology.dof_names)),
            ("actuators", listed(self.actuator_names)), ("pairs that touch", listed(self.pair_names)),
            ("sites", listed(self.topology.sites)), ("environments", self.batch or "any number"),
        ))  # fmt: skip

    def link(self, name: str) -> int:
        """Row of a link in link.* parameters, outputs and outside forces."""
        return _index("link", name, self.link_names)

    def site(self, name: str) -> tuple[int, np.ndarray, np.ndarray]:
        """A site by name: the row of its link, its position (3,) in the link's frame and its axes there, as columns (3, 3)."""
        if name not in self.topology.sites:
            raise InputError(unknown("link or site", shown(name) if not isinstance(name, str) else name,
                                     (*self.topology.sites, *self.link_names)))  # fmt: skip
        return self.topology.sites[name]

    def joint(self, name: str) -> int:
        """Row of a joint in joint.* parameters."""
        return _index("joint", name, self.joint_names)

    def shape(self, name: str) -> int:
        """Row of a shape in shape.* parameters."""
        return _index("shape", name, self.shape_names)

    def pair(self, name: str) -> int:
        """Row of pair.* parameters."""
        return _index("pair", name, self.pair_names)

    def rows(self, name: str) -> tuple[str, ...]:
        """Names of the rows of a parameter that were described: not the base of a robot, nor damping of what is welded. `replace`
        and `Entry` take them by name."""
        return tuple(own_names(self.topology, known_parameter(name)))

    def _said_of_rows(self, name: str) -> str:
        names = self.rows(name)
        if not names:
            return ""
        listed = ", ".join(names[:8]) + (" ..." if len(names) > 8 else "")
        return f'; or name rows, {{"{name}": {{"{names[0]}": ...}}}}, of {listed}'

    def initial_state(self, batch: int | None = None) -> State:
        """The state in which the world was described, at rest."""
        shape = () if batch is None else (checked_count("batch", batch),)
        q = np.broadcast_to(self._initial, (*shape, self.nq)).copy()
        return State(q, np.zeros((*shape, self.nv)), np.zeros((*shape, self.n_more)) if self.n_more else None)

    @functools.cached_property
    def state_places(self) -> dict[str, slice]:
        """Where the fields of a state beside q and qd are in `State.more`."""
        return places(self.topology.tree)

    @functools.cached_property
    def n_more(self) -> int:
        """Numbers of a state beside q and qd."""
        return state_counts(self.topology.tree)["n_more"]

    def replace(self, values: Mapping[str, Any]) -> Model:
        """The same world with other parameters; a leading axis gives one value per environment. A whole array, or rows by name
        (patterns allowed): {"joint.damping": {"elbow": 0.1}, "link.mass": {"hand": masses}}."""
        return self._replaced(values, may_be_beyond=())

    def _moved(self, values: Mapping[str, Any]) -> Model:
        """The same for points of differences, which may be a little below zero where everything is smooth there, and above what is
        highest."""
        return self._replaced(values, (*SMOOTH_AT_ZERO, *HIGHEST))

    def _replaced(self, values: Mapping[str, Any], may_be_beyond: tuple[str, ...]) -> Model:
        params, batch = dict(self.params), self.batch
        if not isinstance(values, Mapping):
            raise InputError(f"values must be a mapping from names of parameters to arrays, but is {shown(values)}")
        for name, value in with_current_names(values).items():
            array, leading = self._checked(name, value, name in may_be_beyond)
            if leading is not None:
                if batch not in (None, leading):
                    raise InputError(f'"{name}" has {leading} environments, but other parameters have {batch}')
                batch = leading
            params[name] = array
        self._check_narrow(values, params)
        return self.with_params(params, batch)

    def with_params(self, params: Mapping[str, np.ndarray], batch: int | None) -> Model:
        """The same world with other numbers, of so many environments, unchecked."""
        other = Model(self.topology, params, self._initial, batch)
        other.workers = self.workers
        return other

    def environment(self, env: int) -> Model:
        """The model of one environment alone."""
        env = checked_count("env", env)
        if self.batch is None:
            return self
        if env >= self.batch:
            raise InputError(f"env is {env}, but the model has parameters for {self.batch} environments")
        own = {name: p if self.is_shared(name) else p[env] for name, p in self.params.items()}
        return self.with_params(own, None)

    def is_shared(self, name: str) -> bool:
        """Whether all environments have the same value."""
        name = known_parameter(name)
        return self.params[name].shape == self.topology.shape_of(name)

    @functools.cached_property
    def own_params(self) -> tuple[str, ...]:
        """Parameters that have a value per environment."""
        return () if self.batch is None else tuple(name for name in PARAMS if not self.is_shared(name))

    def _checked(self, name: str, value: Any, may_be_beyond: bool) -> tuple[np.ndarray, int | None]:
        known_parameter(name)
        shape = self.topology.shape_of(name)
        if isinstance(value, Mapping):
            value = with_rows(self.topology, name, self.params[name], value)
        array = np.asarray(value)
        if not np.issubdtype(array.dtype, np.number) or np.issubdtype(array.dtype, np.complexfloating):
            raise InputError(f'"{name}" must hold real numbers, but has dtype {array.dtype}')
        array = np.array(array, dtype=np.float64)
        if array.shape != shape and array.shape[1:] != shape:
            raise InputError(
                f'"{name}" must have shape {shape}, or {("batch", *shape)} per environment, but has {array.shape}'
                f"{self._said_of_rows(name)}"
            )
        bad = np.isnan(array) if name in RANGES else ~np.isfinite(array)
        if bad.any():
            where = tuple(int(i) for i in np.argwhere(bad)[0])
            raise InputError(f'"{name}" is not finite: it contains {array[where]} at {where}')
        if not may_be_beyond:
            check_physical(name, array, self.topology)
        self._check_rows(name, array)
        return array, None if array.shape == shape else array.shape[0]

    def _check_rows(self, name: str, array: np.ndarray) -> None:
        """A joint compiled without limit or dry friction has no row for it in the contact problem."""
        kinds = {"joint.friction": (FRICTION_ROW,), "joint.limit": STOPS}.get(name)
        if kinds is None:
            return
        names, with_row = self.topology.joint_names, self.topology.frames_with(*kinds)
        asked = np.isfinite(array) & (array != self.params[name])
        rows = np.argwhere(asked.reshape(-1, len(names), PARAMS[name]))[:, 1]
        lost = next((names[row] for row in rows if row not in with_row), None)
        if lost is not None:
            what = "dry friction" if FRICTION_ROW in kinds else "limit"
            raise InputError(
                f'{name} of joint "{lost}" cannot be set: it was compiled without {what}; describe the joint with one, '
                "a very small or wide one if need be"
            )

    def _check_narrow(self, values: Mapping[str, Any], params: Mapping[str, np.ndarray]) -> None:
        """A joint compiled with one row for its limits cannot have both of them at work at once."""
        if not values.keys() & {"joint.limit", "world.limit_margin"}:
            return
        margin = params["world.limit_margin"].max()
        limits = params["joint.limit"].reshape(-1, *self.topology.shape_of("joint.limit"))
        narrow = is_narrow(limits, margin).any(0)
        lost = self.topology.frames_with(STOP_ROW) & {int(i) for i in np.flatnonzero(narrow)}
        if lost:
            raise InputError(
                f'joint.limit of joint "{self.topology.joint_names[min(lost)]}" is narrower than twice '
                f"world.limit_margin ({margin:g}), which it was not when it was compiled: describe the joint with its narrow limit"
            )


def is_narrow(limit: Any, margin: float) -> Any:
    """Whether both ends of a range (..., 2) may be within their margin at once."""
    low, high = np.moveaxis(np.asarray(limit, dtype=np.float64), -1, 0)
    return high - low < 2.0 * margin


NOT_NEGATIVE = (*(name for name in parameters_with(0.0, is_above=False) if name in PARAMS), "shape.size")
# zero for most worlds, and smooth there: central differences may ask for a little less
SMOOTH_AT_ZERO = ("link.drag_size", "world.density", "world.viscosity")
HIGHEST = {name: most for name, most in highest_values().items() if name in PARAMS}
POSITIVE = tuple(name for name in parameters_with(0.0, is_above=True) if name in PARAMS)
# a range whose ends are exchanged leaves no place; that of a tendon may be a point, of which derivatives are asked
RANGES = ("joint.limit", "actuator.control_limit", "actuator.force_limit")


def check_physical(name: str, array: np.ndarray, topology: Topology) -> None:
    """Values that no body or joint can have."""
    from .checks import inertia_message, triangle_violation

    shape = topology.shape_of(name)
    if not math.prod(shape):
        return
    flat = array.reshape(-1, *(shape or (1,)))

    def refuse(bad: np.ndarray, reason: str) -> None:
        """bad: (environments, rows, ...)"""
        if bad.any():
            at = tuple(int(i) for i in np.argwhere(bad)[0])
            raise InputError(f"{name}{row_name(topology, name, at[1])} {reason.format(flat[at])}")

    if name in NOT_NEGATIVE:
        refuse(flat < 0, "is negative ({:g}); it must be zero or more")
    if name in HIGHEST:
        refuse(flat > HIGHEST[name], f"is {{:g}}; it must be {HIGHEST[name]:g} or less")
    if name in POSITIVE:
        refuse(flat <= 0, "is {:g}; it must be more than zero")
    if name in RANGES:
        low, high = flat[..., 0], flat[..., 1]
        refuse((low > high) | (low == np.inf) | (high == -np.inf), "is {}; the lower end must come first")
    if name == "link.inertia":
        bad = np.argwhere(triangle_violation(flat) > 0)
        if len(bad):
            raise InputError(inertia_message(topology.link_names[bad[0][1]], flat[tuple(bad[0])]))
    if name.endswith("placement"):
        refuse(has_no_direction(flat[..., 3:]), f"is {{}}, which holds {NO_TURN}")
    if name == "joint.axis":
        refuse(has_no_direction(flat), "is {}, an axis of zero length, or of one whose square is not a number")
    if name == "joint.rest":
        for start in topology.quaternions:
            if has_no_direction(flat[:, start : start + 4]).any():
                raise InputError(f"joint.rest holds {NO_TURN} (entries {start} to {start + 3})")


NO_TURN = f"a quaternion of zero length, or not within {SHORTEST:g} to {LONGEST:g}; (1, 0, 0, 0) is no turn"


def has_no_direction(vectors: np.ndarray) -> np.ndarray:
    """Whether vectors (..., n) are zero, or of a length whose square the engine cannot hold."""
    largest = np.abs(vectors).max(-1, initial=0.0)
    return ~((largest > SHORTEST) & (largest < LONGEST))


def _index(kind: str, name: str, names: tuple[str, ...]) -> int:
    if not isinstance(name, str) or name not in names:
        raise InputError(unknown(kind, shown(name) if not isinstance(name, str) else name, names))
    return names.index(name)


def _frozen(array: np.ndarray) -> np.ndarray:
    is_ours = type(array) is np.ndarray and array.flags.owndata and not array.flags.writeable
    if is_ours and array.dtype == np.float64 and array.flags.c_contiguous:
        return array
    array = np.array(array, dtype=np.float64, order="C")
    array.setflags(write=False)
    return array


def checked_model(model: Any) -> Model:
    return checked_kind("model", model, Model, "as World.compile() and Description.compile() give")
