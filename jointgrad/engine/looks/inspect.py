"""Everything about a state: poses, velocities, energies, momentum, mass matrix, Jacobians, inverse dynamics, contacts."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ...model.arrays import FREE, SPHERICAL, Model, State
from ...model.errors import InputError
from ...model.tables import table
from ..run.inputs import check_values, checked_inputs
from ..run.runtime import address, as_array, lanes, worker
from . import quantities
from .contact_records import Contact, ContactTable, Problem, problem_of

_KEPT = {
    "pose": "work.pose", "arm": "work.arm", "S": "work.S", "v": "work.v", "c": "work.c", "tau": "work.tau", "I": "work.I",
    "qdd": "work.qdd", "position": "output.position", "rotation": "output.rotation",
    "velocity": "output.velocity",
}  # fmt: skip


def inspect(model: Model, state: State, u: Any = None, force: Any = None) -> Inspection:
    """Look into one state (or a batch of them) under controls u and outside forces. What is asked of it is worked out when it is
    asked for."""
    controls = None if u is None else as_array("u", u)[None]
    inputs = checked_inputs(model, state, controls, 1, force)
    check_values(model, inputs)
    return Inspection(model, inputs.guarded(None, u))


def _evaluated(model: Model, inputs: Any) -> tuple[dict[str, np.ndarray], list[Problem]]:
    """All tables of a step's evaluation, (batch, rows, ...), and its contacts."""
    tables: dict[str, list[np.ndarray]] = {name: [] for name in _KEPT}
    problems: list[Problem] = []
    with worker(model) as one:
        # of no environment the tables have their shapes all the same
        for first in range(0, max(inputs.batch, 1), lanes()):
            one.assembled_for = None
            one.take_params(model)
            last = min(first + lanes(), inputs.batch)
            one.set(
                first=first, last=last, batch=inputs.batch, steps=1, q0=address(inputs.q), qd0=address(inputs.qd),
                more0=address(inputs.more), u=address(inputs.u), force=address(inputs.force), force_step=0,
            )  # fmt: skip
            one.run("evaluation")
            for name, field in _KEPT.items():
                table = one.frame.table(field)[:, :, 0, : last - first]
                tables[name].append(np.moveaxis(table, -1, 0).copy())
            problems.append(problem_of(model, one.frame, first, last))
        one.assembled_for = None
    return {name: np.concatenate(parts) for name, parts in tables.items()}, problems


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.cross(a, b, axis=-1)


def _spatial_matrix(I: np.ndarray) -> np.ndarray:
    """(..., 6, 6) from ten numbers."""
    xx, xy, xz, yy, yz, zz, hx, hy, hz, m = np.moveaxis(I, -1, 0)
    o = np.zeros_like(m)
    rows = (
        (xx, xy, xz, o, -hz, hy), (xy, yy, yz, hz, o, -hx), (xz, yz, zz, -hy, hx, o),
        (o, hz, -hy, m, o, o), (-hz, o, hx, o, m, o), (hy, -hx, o, o, o, m),
    )  # fmt: skip
    return np.stack([np.stack(row, -1) for row in rows], -2)


class Inspection:
    """Arrays have the batch axis first where the state had one. Spatial results are in the world frame."""

    def __init__(self, model: Model, inputs: Any) -> None:
        self.model, self._inputs = model, inputs
        self._has_plain_masses = not model.topology.tree["n_mass_aims"]  # no network changes them

    @functools.cached_property
    def _evaluation(self) -> tuple[dict[str, np.ndarray], list[Problem]]:
        self._inputs.check()
        return _evaluated(self.model, self._inputs)

    _t = property(lambda self: self._evaluation[0])
    _problems = property(lambda self: self._evaluation[1])

    @property
    def _state(self) -> State:
        self._inputs.check()
        return State(self._inputs.q, self._inputs.qd)

    def __repr__(self) -> str:
        many = f"{self._inputs.batch} states" if self._inputs.is_batched else "one state"
        return f"Inspection({many} of {self.model!r}; ask for mass_matrix, bias, contacts, momentum, ...)"

    def _repr_html_(self) -> str:
        if self._inputs.is_batched:
            return table(repr(self), [])
        linear, angular = self.momentum
        return table(repr(self), (
            ("kinetic, potential energy (J)", f"{float(self.kinetic_energy):.6g}, {float(self.potential_energy):.6g}"),
            ("centre of mass (m)", np.round(self.centre_of_mass, 6).tolist()),
            ("momentum (kg m/s; kg m^2/s about the origin)", [np.round(x, 6).tolist() for x in (linear, angular)]),
            ("contacts", "; ".join(f"{c.links[0]} on {c.links[1]}, {c.mode}" for c in self.contacts) or "none"),
        ))  # fmt: skip

    def _public(self, array: np.ndarray) -> np.ndarray:
        return array if self._inputs.is_batched else array[0]

    @property
    def link_position(self) -> np.ndarray:
        """Origins of the links' frames, (batch, n_links, 3)."""
        return self._public(self._t["position"])

    @property
    def link_rotation(self) -> np.ndarray:
        """Axes of the links' frames as columns, (batch, n_links, 3, 3)."""
        return self._public(self._t["rotation"].reshape(-1, self.model.n_links, 3, 3))

    @property
    def link_velocity(self) -> np.ndarray:
        """Of the links' origins: linear, angular, (batch, n_links, 6)."""
        return self._public(self._t["velocity"])

    @property
    def qdd(self) -> np.ndarray:
        """Accelerations (batch, nv) that the step uses: with implicit damping, those at the end of the step."""
        return self._public(self._t["qdd"][..., 0])

    @property
    def joint_force(self) -> np.ndarray:
        """What actuators, dampers and springs apply, (batch, nv)."""
        return self._public(self._t["tau"][..., 0])

    # contact --------------------------------------------------------------------------------------------------------------

    def _problem(self, env: int) -> tuple[Problem, int]:
        """The contact problem of an environment's pack, and its lane there."""
        if not 0 <= env < self._inputs.batch:
            raise InputError(f"env is {env}, but there are {self._inputs.batch} environments")
        problem = next(p for p in self._problems if p.first <= env < p.last)
        return problem, env - problem.first

    @property
    def contacts(self) -> Any:
        """Points that touch, a list of Contact (with a batch axis: one such list per environment)."""
        found = [self._contacts(env) for env in range(self._inputs.batch)]
        return found if self._inputs.is_batched else found[0]

    def _contacts(self, env: int) -> list[Contact]:
        problem, lane = self._problem(env)
        return problem.contacts(lane)

    def contact_table(self, env: int = 0) -> ContactTable:
        """The same of one environment as arrays, a row per point."""
        problem, lane = self._problem(env)
        return ContactTable.of(problem.contacts(lane))

    @property
    def ties(self) -> Any:
        """Limits that are near, dry friction, mimic joints and loops, a list of Tie (or one list per environment)."""
        found = [p.ties(env - p.first) for p in self._problems for env in range(p.first, p.last)]
        return found if self._inputs.is_batched else found[0]

    def contact_matrix(self, env: int = 0) -> np.ndarray:
        """A = J M^-1 J^T and what rows give (1/kg), of the rows that take part: those of points, then of ties, by threes."""
        problem, lane = self._problem(env)
        return problem.matrix(lane)

    # the tree in NumPy ----------------------------------------------------------------------------------------------------

    @functools.cached_property
    def _axes(self) -> np.ndarray:
        """Motion axes of all degrees of freedom, (batch, nv, 6), about each tree's reference point."""
        S, tree = self._t["S"].copy(), self.model.topology.tree
        for b, kind in enumerate(tree["kind"]):
            if kind == FREE:
                d = tree["dof"][b]
                R = self._t["pose"][:, b, :9].reshape(-1, 3, 3)
                S[:, d : d + 3] = np.concatenate([np.zeros((3, 3)), np.eye(3)], 1)
                S[:, d + 3 : d + 6, :3] = np.swapaxes(R, 1, 2)
                S[:, d + 3 : d + 6, 3:] = _cross(self._t["arm"][:, b, None], np.swapaxes(R, 1, 2))
        return S

    @functools.cached_property
    def _inertia(self) -> np.ndarray:
        """(batch, n_bodies, 6, 6)"""
        return _spatial_matrix(self._t["I"][:, : self.model.topology.tree["n_bodies"]])

    @property
    def _armature(self) -> np.ndarray:
        """Per degree of freedom, (batch or 1, nv); what an implicit integrator adds for damping is not inertia."""
        tree = self.model.topology.tree
        frames = np.zeros(self.model.nv, dtype=int)
        for frame, dof, n_dof in zip(tree["frame"], tree["dof"], tree["n_dof"], strict=True):
            frames[dof : dof + n_dof] = frame
        return np.atleast_2d(self.model.params["joint.armature"])[:, frames]

    def _bodies(self, outward: bool = True):
        """(body, parent, its dofs), parents first or last."""
        tree = self.model.topology.tree
        order = range(tree["n_bodies"])
        for b in order if outward else reversed(order):
            yield b, tree["parent"][b], slice(tree["dof"][b], tree["dof"][b] + tree["n_dof"][b])

    @property
    def mass_matrix(self) -> np.ndarray:
        """(batch, nv, nv), by composite inertias (Featherstone 2008, sec. 6.2)."""
        if self._has_plain_masses:
            return self._public(quantities.mass_matrix(self.model, self._state))
        S, composite, n = self._axes, self._inertia.copy(), self.model.topology.tree["n_bodies"]
        parents, dofs = {}, {}
        for b, parent, d in self._bodies(outward=False):
            parents[b], dofs[b] = parent, d
            if parent < n:
                composite[:, parent] += composite[:, b]
        M = np.zeros((S.shape[0], self.model.nv, self.model.nv))
        for b in range(n):
            force = S[:, dofs[b]] @ composite[:, b]
            at = b
            while at < n:
                block = force @ np.swapaxes(S[:, dofs[at]], 1, 2)
                M[:, dofs[b], dofs[at]] = block
                M[:, dofs[at], dofs[b]] = np.swapaxes(block, 1, 2)
                at = parents[at]
        armature = self._armature
        M[:, np.arange(self.model.nv), np.arange(self.model.nv)] += armature
        return self._public(M)

    def _inverse_dynamics(self, qdd: np.ndarray) -> np.ndarray:
        """Generalised forces that give accelerations qdd (batch, nv), by recursion (Featherstone 2008, sec. 5.3)."""
        n = self.model.topology.tree["n_bodies"]
        S, I, v, c = self._axes, self._inertia, self._t["v"][:, :n], self._t["c"][:, :n]
        rise = np.zeros((S.shape[0], n + 1, 6))
        for b, parent, d in self._bodies():
            rise[:, b] = rise[:, parent] + np.einsum("bk,bks->bs", qdd[:, d], S[:, d])
        h = np.einsum("bnij,bnj->bni", I, v)
        f = np.einsum("bnij,bnj->bni", I, c + rise[:, :n])
        f[..., :3] += _cross(v[..., :3], h[..., :3]) + _cross(v[..., 3:], h[..., 3:])
        f[..., 3:] += _cross(v[..., :3], h[..., 3:])
        tau = self._armature * qdd
        for b, parent, d in self._bodies(outward=False):
            tau[:, d] += np.einsum("bks,bs->bk", S[:, d], f[:, b])
            if parent < n:
                f[:, parent] += f[:, b]
        return tau

    @property
    def bias(self) -> np.ndarray:
        """Coriolis, centrifugal and gravity forces, (batch, nv): M qdd + bias = all other forces."""
        if self._has_plain_masses:
            return self._public(quantities.bias_force(self.model, self._state))
        return self._public(self._inverse_dynamics(np.zeros((self._axes.shape[0], self.model.nv))))

    def inverse_dynamics(self, qdd: Any) -> np.ndarray:
        """Generalised forces (batch, nv) that give accelerations qdd (batch, nv)."""
        wanted = np.asarray(qdd, dtype=np.float64).reshape(-1, self.model.nv)
        if self._has_plain_masses:
            return self._public(quantities.inverse_dynamics(self.model, self._state, wanted))
        return self._public(self._inverse_dynamics(wanted))

    # sums over bodies -----------------------------------------------------------------------------------------------------

    def _references(self) -> np.ndarray:
        """Reference point of each body's tree, (batch, n_bodies, 3)."""
        tree = self.model.topology.tree
        return self._t["pose"][:, tree["reference"][: tree["n_bodies"]], 9:]

    @property
    def momentum(self) -> tuple[np.ndarray, np.ndarray]:
        """Linear (batch, 3), and angular about the world's origin."""
        n = self.model.topology.tree["n_bodies"]
        h = np.einsum("bnij,bnj->bni", self._inertia, self._t["v"][:, :n])
        angular = h[..., :3] + _cross(self._references(), h[..., 3:])
        return self._public(h[..., 3:].sum(1)), self._public(angular.sum(1))

    @property
    def centre_of_mass(self) -> np.ndarray:
        """Of all that moves, (batch, 3)."""
        return self._public(self._moment() / self._moving_mass()[:, None])

    def _moment(self) -> np.ndarray:
        I = self._t["I"][:, : self.model.topology.tree["n_bodies"]]
        return (I[..., 6:9] + I[..., 9:] * self._references()).sum(1)

    def _moving_mass(self) -> np.ndarray:
        return self._t["I"][:, : self.model.topology.tree["n_bodies"], 9].sum(1)

    @property
    def kinetic_energy(self) -> np.ndarray:
        """(batch,), rotors (armature) included."""
        n = self.model.topology.tree["n_bodies"]
        v = self._t["v"][:, :n]
        own = 0.5 * np.einsum("bni,bnij,bnj->b", v, self._inertia, v)
        return self._public(own + 0.5 * (self._armature * self._inputs.qd**2).sum(-1))

    @property
    def potential_energy(self) -> np.ndarray:
        """Of gravity and joint springs, (batch,)."""
        gravity = np.broadcast_to(self.model.params["world.gravity"], (self._axes.shape[0], 3))
        return self._public(-(gravity * self._moment()).sum(-1) + self._spring_energy())

    def _spring_energy(self) -> np.ndarray:
        tree, q, params = self.model.topology.tree, self._inputs.q, self.model.params
        rest, stiffness = params["joint.rest"], params["joint.stiffness"]
        total = np.zeros(q.shape[0])
        for kind, i, frame in zip(tree["kind"], tree["q"], tree["frame"], strict=True):
            straight = {SPHERICAL: 0, FREE: 3}.get(kind, 1)
            stretch = q[:, i : i + straight] - rest[..., i : i + straight]
            squared = (stretch**2).sum(-1)
            if kind in (SPHERICAL, FREE):
                turn = slice(i + straight, i + straight + 4)
                squared = squared + _turn_between(q[:, turn], rest[..., turn]) ** 2
            total += 0.5 * stiffness[..., frame] * squared
        return total

    def point_jacobian(self, link: str, point: Any = (0.0, 0.0, 0.0)) -> tuple[np.ndarray, np.ndarray]:
        """Jacobians (batch, 3, nv) of the velocity of a point fixed in a link's frame, and of its angular velocity."""
        self.model.link(link)
        found = self._public(quantities.jacobian(self.model, self._state, link, point))
        return found[..., :3, :], found[..., 3:, :]


def _turn_between(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Angle between orientations."""
    dot = np.abs((a * b).sum(-1)) / np.sqrt((a * a).sum(-1) * (b * b).sum(-1))
    return 2.0 * np.arccos(np.minimum(dot, 1.0))
