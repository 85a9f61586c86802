"""Quantities of a state by request, each by a kernel of its own: one state in microseconds, or a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...compiler.cache import one_at_a_time
from ...compiler.field import Frame
from ...compiler.kernel import Library
from ...model.arguments import default_threads
from ...model.arrays import Model, State, checked_model
from ...model.errors import InputError
from ..kernels.quantities import ASKED, LOOK, LOOKS, LOOKS_SCHEMA, N_BASIS
from ..kernels.workspace import PARAMS, WHOLE, rows_of
from ..run.runtime import (
    CHUNK,
    Borrowed,
    Worker,
    address,
    check_finite,
    check_quaternions,
    checked,
    checked_state,
    lanes_for,
)
from ..run.sharing import in_parallel

NOTHING = {f"look_{name}": 0 for name in ASKED}
_libraries: dict[tuple[int, int], Library] = {}


def library(n_lanes: int, parts: int) -> Library:
    with one_at_a_time:
        if (n_lanes, parts) not in _libraries:
            _libraries[n_lanes, parts] = Library(LOOKS_SCHEMA, LOOKS, n_lanes, parts, (__name__, library.__name__))
        return _libraries[n_lanes, parts]


class Looker(Worker):
    """A frame for these kernels: what they share with the step, and nothing of contact."""

    def __init__(self, model: Model, n_lanes: int) -> None:
        tree = model.topology.tree
        rows = {name: n for name, n in rows_of(tree).items() if name in LOOKS_SCHEMA.slots}
        per_dof, per_body = ("S", "qdd", "tau"), ("I", "a", "f")
        look = (
            dict.fromkeys(LOOK, 1)
            | dict.fromkeys(per_dof, tree["n_dofs"])
            | dict.fromkeys(per_body, tree["n_bodies"] + 1)
        )
        rows |= {f"look.{name}": n for name, n in (look | {"basis": N_BASIS}).items()}
        integers = {f"tree.{k}": v for k, v in tree.items()} | {
            "call.param_size": [rows[f"params.{f}"] * w for f, w in PARAMS.items()],
            **{f"call.{name}": [0] * len(PARAMS) for name in ("param", "param_dot", "param_stride")},
        }
        self.model, self.library = model, library(n_lanes, 1)
        aliases = {name: place for name, place in WHOLE.items() if name in LOOKS_SCHEMA.slots}
        self.frame = Frame(LOOKS_SCHEMA, rows, integers, n_lanes, 1, aliases)
        self.frame.set(call__n_fields=len(PARAMS))
        self._slots = {f: LOOKS_SCHEMA.slots[f"call.{f}"] for f in LOOKS_SCHEMA.tables["call"]}
        self._stopped = LOOKS_SCHEMA.slots["at.is_stopped"]
        self._runs: dict[tuple[str, bool], Callable[[], None]] = {}
        self._without = ()

    def conclude(self) -> None:
        if self.assembled_for is None:
            self.assembled_for = self._to_assemble


class _State:
    """A checked state, or coordinates alone, with a batch axis."""

    q: np.ndarray
    qd: np.ndarray | None
    is_batched: bool

    def __init__(self, model: Model, state: Any) -> None:
        checked_model(model)
        if isinstance(state, State):
            self.q, self.qd, self.is_batched = checked_state(model, state)
            return
        self.qd, self.is_batched = None, np.ndim(state) == 2
        batch: tuple = (model.batch or "batch",) if self.is_batched else ()
        q = checked("q", state, (*batch, model.nq))
        if model.batch is not None and not self.is_batched:
            raise InputError(f"the model has parameters for {model.batch} environments, but q has no batch axis")
        self.q = q if self.is_batched else q[None]


@dataclass(frozen=True)
class Quantity:
    """What one kernel hands out: which of its arrays, of which shape, and whether it looks at rates and accelerations."""

    name: str
    kernel: str
    array: str
    shape: Callable[[Model], tuple[int, ...]]
    rates: bool = False
    qdd: bool = False

    @property
    def has_masses(self) -> bool:
        return self.kernel != "site"


MASS_MATRIX = Quantity("the mass matrix", "mass_matrix", "matrix", lambda m: (m.nv, m.nv))
INVERSE_DYNAMICS = Quantity("inverse dynamics", "inverse_dynamics", "vector", lambda m: (m.nv,), True, True)
BIAS = Quantity("the bias force", "inverse_dynamics", "vector", lambda m: (m.nv,), True)
GRAVITY = Quantity("the force of gravity", "inverse_dynamics", "vector", lambda m: (m.nv,))
POSE = Quantity("a pose", "site", "pose", lambda m: (12,))
JACOBIAN = Quantity("a Jacobian", "site", "matrix", lambda m: (6, m.nv))
JACOBIAN_RATE = Quantity("dJ/dt qd", "site", "vector", lambda m: (6,), True)
VELOCITY = Quantity("a velocity", "site", "velocity", lambda m: (6,), True)
CENTRE = Quantity("the centre of mass", "centroidal", "centre", lambda m: (3,))
MOMENTUM = Quantity("momentum", "centroidal", "vector", lambda m: (6,), True)
MOMENTUM_MATRIX = Quantity("the momentum matrix", "centroidal", "matrix", lambda m: (6, m.nv))
REGRESSOR = Quantity("the regressor", "regressor", "matrix", lambda m: (m.nv, N_BASIS * m.n_links), True, True)

Site = tuple[int, np.ndarray]


class _Single:
    """One quantity of one state, in arrays of fixed address: most of what a call costs is finding addresses."""

    def __init__(self, model: Model, quantity: Quantity) -> None:
        self.one, self.kernel = Looker(model, lanes_for(model, 1)), quantity.kernel
        self.q, self.qd, self.qdd, self.point = (np.zeros(n) for n in (model.nq, model.nv, model.nv, 3))
        self.found = np.zeros(quantity.shape(model))
        self.flat, self.quantity = self.found.reshape(-1), quantity
        self.one.set(
            first=0, last=1, batch=1, q0=address(self.q), qd0=address(self.qd) if quantity.rates else 0,
            look_point=address(self.point), **{f"look_{quantity.array}": address(self.found)},
            look_qdd=address(self.qdd) if quantity.qdd else 0,
        )  # fmt: skip

    def run(self, model: Model, q: np.ndarray, qd: Any, qdd: Any, site: Site | None) -> np.ndarray | None:
        """None where something is not finite."""
        self.q[:] = q
        if self.quantity.rates:
            self.qd[:] = qd
        if self.quantity.qdd:
            self.qdd[:] = qdd
        if site is not None:
            self.found.fill(0.0)
            self.point[:] = site[1]
            self.one.set(look_link=site[0])
        self.one.take_params(model)
        self.one.run(self.kernel)
        return self.found.copy() if self.flat.dot(self.flat) < np.inf else None


def _is_plain(model: Model, quantity: Quantity, q: Any, qd: Any, qdd: Any, site: Site | None) -> bool:
    """Whether this is one state with nothing about it that needs a closer look."""
    if (
        type(model) is not Model
        or model.batch is not None
        or (model.topology.tree["n_mass_aims"] and quantity.has_masses)
    ):
        return False
    asked = [
        (q, model.nq),
        (qd, model.nv) if quantity.rates else (q, model.nq),
        (qdd, model.nv) if quantity.qdd else (q, model.nq),
    ]
    if any(type(x) is not np.ndarray or x.dtype != np.float64 or x.shape != (n,) for x, n in asked):
        return False
    return site is None or site[1].ndim == 1


def _found(model: Model, quantity: Quantity, state: Any, qdd: Any = None, site: Site | None = None) -> np.ndarray:
    q, qd = (state.q, state.qd) if type(state) is State else (state, None)
    if _is_plain(model, quantity, q, qd, qdd, site):
        with Borrowed(model.workers.setdefault(("look", quantity.name), []), lambda: _Single(model, quantity)) as one:
            found = one.run(model, q, qd, qdd, site)
        if found is not None:
            return found
    return _of_batch(model, quantity, _State(model, state), qdd, site)


def _of_batch(model: Model, quantity: Quantity, at: _State, qdd: Any, site: Site | None) -> np.ndarray:
    batch = len(at.q)
    if model.topology.tree["n_mass_aims"] and quantity.has_masses:
        raise InputError(
            "networks change masses of this model: ask jg.inspect(model, state) for what they make of them"
        )
    if quantity.rates and at.qd is None:
        raise InputError(f"{quantity.name} needs rates: give a State(q, qd) in place of q alone")
    arrays: dict[str, Any] = {quantity.array: np.zeros((batch, *quantity.shape(model)))}
    if quantity.qdd:
        arrays["qdd"] = checked("qdd", qdd, (batch, model.nv) if at.is_batched else (model.nv,)).reshape(-1, model.nv)
        check_finite("qdd", arrays["qdd"])
    if site is not None:
        arrays |= {"link": site[0], "point": _points(site[1], batch), "point_stride": 24 if site[1].ndim == 2 else 0}
    _run(model, quantity, at, arrays)
    found = arrays[quantity.array]
    if not np.isfinite(found.sum()):  # what is not finite came in so
        check_finite("q", at.q)
        check_finite("qd", at.qd)
        check_quaternions(model, at.q)
    return found if at.is_batched else found[0]


def _points(place: np.ndarray, batch: int) -> np.ndarray:
    if place.ndim == 2 and len(place) != batch:
        raise InputError(f"point has {len(place)} rows, but there are {batch} environments")
    return np.ascontiguousarray(place)


def _run(model: Model, quantity: Quantity, at: _State, arrays: Mapping[str, Any]) -> None:
    # what is not asked for is written nowhere, whatever was asked for before
    given = NOTHING | {f"look_{name}": x if type(x) is int else address(x) for name, x in arrays.items()}
    batch, rates = len(at.q), at.qd if quantity.rates else None
    n_lanes = lanes_for(model, batch)

    def lend() -> Borrowed:
        return Borrowed(model.workers.setdefault(("look", n_lanes), []), lambda: Looker(model, n_lanes))

    def describe(one: Worker, first: int, last: int) -> None:
        one.take_params(model)
        one.set(first=first, last=last, batch=batch, q0=address(at.q), qd0=address(rates), **given)

    in_parallel(quantity.kernel, model, batch, 1, default_threads() if batch > CHUNK else 1, lend, describe)


# of bodies ----------------------------------------------------------------------------------------------------------------


def mass_matrix(model: Model, state: Any) -> np.ndarray:
    """(batch, nv, nv), rotors (armature) included. state: a State, or coordinates q (batch, nq)."""
    return _found(model, MASS_MATRIX, state)


def inverse_dynamics(model: Model, state: State, qdd: Any) -> np.ndarray:
    """Generalised forces (batch, nv) that give accelerations qdd (batch, nv): M qdd + bias. Dampers, springs, actuators and
    contacts are not part of it."""
    return _found(model, INVERSE_DYNAMICS, state, qdd)


def bias_force(model: Model, state: State) -> np.ndarray:
    """Coriolis, centrifugal and gravity forces, (batch, nv): M qdd + bias = all other forces."""
    return _found(model, BIAS, state)


def gravity_force(model: Model, state: Any) -> np.ndarray:
    """What joints must hold against gravity at rest, (batch, nv). state: a State, or coordinates q (batch, nq)."""
    return _found(model, GRAVITY, state)


def centre_of_mass(model: Model, state: Any) -> np.ndarray:
    """Of all that moves, (batch, 3), m. state: a State, or coordinates q (batch, nq)."""
    return _found(model, CENTRE, state)


def centroidal_momentum(model: Model, state: State) -> np.ndarray:
    """(batch, 6): linear momentum (kg m/s), and angular momentum about the centre of mass, in world axes."""
    return _found(model, MOMENTUM, state)


def centroidal_momentum_matrix(model: Model, state: Any) -> np.ndarray:
    """(batch, 6, nv): centroidal momentum is this times qd; rotors (armature) are not in it."""
    return _found(model, MOMENTUM_MATRIX, state)


def torque_regressor(model: Model, state: State, qdd: Any) -> np.ndarray:
    """Y (batch, nv, 10 n_links): Y times ten numbers of every link is inverse dynamics, less rotors. The ten: mass, mass times
    centre (3), inertia about the link's own origin (xx xy xz yy yz zz), in its axes; `regressor_numbers` gives them."""
    return _found(model, REGRESSOR, state, qdd)


# of sites -----------------------------------------------------------------------------------------------------------------

ORIGIN = np.zeros(3)


def _site(model: Model, site: str, point: Any) -> tuple[Site, np.ndarray | None]:
    """A link and the point in its frame, and how the site's own axes are turned there, if they are."""
    if point is None and (row := checked_model(model).topology.link_rows.get(site)) is not None:
        return (row, ORIGIN), None
    own = ORIGIN if point is None else np.asarray(point, dtype=np.float64)
    if own.shape[-1:] != (3,) or own.ndim > 2:
        raise InputError(f"point must have shape (3,) or (batch, 3), but has {own.shape}")
    check_finite("point", own)
    if site in model.topology.link_rows:
        return (model.topology.link_rows[site], own), None
    row, offset, turn = model.site(site)
    return (row, offset + own @ turn.T), turn


def site_link(model: Model, site: str) -> int:
    """Row of the link that a link or site is on."""
    rows = model.topology.link_rows
    return rows[site] if site in rows else model.site(site)[0]


def site_pose(model: Model, state: Any, site: str, point: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Position (batch, 3) and rotation (batch, 3, 3; axes as columns) of a link or a site, in the world; with a point (3,) or
    (batch, 3) of its frame (m), that point's."""
    place, turn = _site(model, site, point)
    found = _found(model, POSE, state, site=place)
    rotation = found[..., 3:].reshape(*found.shape[:-1], 3, 3)
    return found[..., :3], rotation if turn is None else rotation @ turn


def jacobian(model: Model, state: Any, site: str, point: Any = None) -> np.ndarray:
    """(batch, 6, nv): velocity of a link, a site or a point of its frame, linear above and angular below, in world axes, is this
    times qd."""
    return _found(model, JACOBIAN, state, site=_site(model, site, point)[0])


def jacobian_rate(model: Model, state: State, site: str, point: Any = None) -> np.ndarray:
    """dJ/dt qd, (batch, 6): the acceleration of a link, a site or a point of its frame that is there without qdd."""
    return _found(model, JACOBIAN_RATE, state, site=_site(model, site, point)[0])


def site_velocity(model: Model, state: State, site: str, point: Any = None) -> np.ndarray:
    """(batch, 6): velocity of a link, a site or a point of its frame: linear (m/s), angular (rad/s), in world axes."""
    return _found(model, VELOCITY, state, site=_site(model, site, point)[0])


def regressor_numbers(model: Model) -> np.ndarray:
    """What a regressor is multiplied with, (10 n_links,) or (batch, 10 n_links), of the model as it is."""
    mass, com, inertia = (model.params[f"link.{name}"] for name in ("mass", "com", "inertia"))
    square = (com**2).sum(-1)
    moved = [square * (i == j) - com[..., i] * com[..., j] for i, j in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))]
    about_origin = inertia + mass[..., None] * np.stack(moved, -1)
    parts = (mass[..., None], mass[..., None] * com, about_origin)
    shape = np.broadcast_shapes(*(part.shape[:-1] for part in parts))
    whole = [np.broadcast_to(part, (*shape, part.shape[-1])) for part in parts]
    return np.concatenate(whole, -1).reshape(*shape[:-1], -1)
