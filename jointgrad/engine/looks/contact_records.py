"""What touches what in a state, by name: read off the tables that a step leaves behind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ...compiler.field import Frame
from ...model.arrays import CONNECT, FRICTION_ROW, IMPULSE, JOINT_CONSTRAINT, MIMIC_ROW, NO_ROW, STOPS, Compared, Model
from ...model.laws import FRICTION_LAWS
from ..kernels.stages.contact.paths import BOUNDED, POINT
from ..run.naming import link_of_shape

LAWS = {IMPULSE: "impulse"} | {code: f"spring ({name})" for name, code in FRICTION_LAWS.items()}
TIE_ROWS = {FRICTION_ROW: "friction", MIMIC_ROW: "mimic"} | dict.fromkeys(STOPS, "limit")


@dataclass(frozen=True, eq=False)
class Contact(Compared):
    """A point where two shapes touch. Force (N) and torque (N m, of torsional and rolling friction) act on the first of the two;
    the normal points from the second to the first; all in world axes. mode is open (near, but nothing presses), stick or slip."""

    links: tuple[str, str]
    shapes: tuple[str, str]
    point: np.ndarray
    normal: np.ndarray
    gap: float
    force: np.ndarray
    torque: np.ndarray
    law: str
    mode: str

    def __str__(self) -> str:
        pressed = f"{self.normal @ self.force:.4g} N, {self.mode}" if self.mode != "open" else "open"
        return f'"{self.links[0]}" on "{self.links[1]}", gap {self.gap:.3g} m, {pressed}'


@dataclass(frozen=True, eq=False)
class ContactTable(Compared):
    """Contacts of one environment, a row per point."""

    links: list[tuple[str, str]]
    shapes: list[tuple[str, str]]
    point: np.ndarray
    normal: np.ndarray
    gap: np.ndarray
    force: np.ndarray
    torque: np.ndarray
    law: list[str]
    mode: list[str]

    @classmethod
    def of(cls, contacts: list[Contact]) -> ContactTable:
        columns: dict[str, Any] = {f.name: [getattr(c, f.name) for c in contacts] for f in fields(cls)}
        for name in ("point", "normal", "force", "torque"):
            columns[name] = np.array(columns[name]).reshape(-1, 3)
        columns["gap"] = np.array(columns["gap"], dtype=float)
        return cls(**columns)

    def __len__(self) -> int:
        return len(self.links)


@dataclass(frozen=True, eq=False)
class Tie(Compared):
    """A row that does not come from shapes. kind: limit, friction or mimic of a joint (force along it, N or N m), or a loop's
    connect (force, N) or weld (torque, N m) on the first of its two bodies, world axes. mode: open (nothing presses), stick
    (the row holds), slip (dry friction gives way)."""

    kind: str
    name: str
    force: Any
    mode: str


@dataclass(frozen=True, eq=False)
class Problem:
    """The contact problem of one pack of environments, first to last, with the lanes on the last axis."""

    model: Model
    first: int
    last: int
    pair: list[int]
    point: np.ndarray
    normal: np.ndarray
    gap: np.ndarray
    force: np.ndarray
    speed: np.ndarray
    kind: list[int]
    source: list[int]
    impulse: np.ndarray
    sticks: np.ndarray
    D: np.ndarray
    low: np.ndarray
    high: np.ndarray
    weight: np.ndarray
    friction: np.ndarray
    soft: np.ndarray
    # what rows leave at the joints of their paths and at roots, and how these answer: see stages/contact/paths.py
    sides: list[tuple[int, int, int]]  # body, fork, root
    effort: np.ndarray
    at_root: np.ndarray
    answer: np.ndarray
    D_inv: np.ndarray
    # the same of the convex law: columns of J and their degrees of freedom, masses
    first_column: list[int]
    column_dof: list[int]
    column: np.ndarray
    mass: np.ndarray
    own_mass: np.ndarray

    def _value(self, name: str, row: int | None, lane: int) -> float:
        """A parameter of this lane's environment."""
        array = self.model.params[name]
        own = array if self.model.is_shared(name) else array[self.first + lane]
        return float(own if row is None else own[row])

    def contacts(self, lane: int) -> list[Contact]:
        dt = self._value("world.dt", None, lane)
        blocks = {
            (s, k == POINT): n for n, (k, s) in enumerate(zip(self.kind, self.source, strict=True)) if k != BOUNDED
        }
        return [self._contact(i, lane, dt, blocks) for i in range(len(self.pair)) if self._is_near(i, lane)]

    def _is_near(self, i: int, lane: int) -> bool:
        tree, p = self.model.topology.tree, self.pair[i]
        # what is not a number is not hidden
        return not self.gap[i, lane] >= self._value("pair.margin", tree["pair_row"][p], lane)

    def _contact(self, i: int, lane: int, dt: float, blocks: dict) -> Contact:
        tree, t, p = self.model.topology.tree, self.model.topology, self.pair[i]
        a, b, row, law = tree["pair_a"][p], tree["pair_b"][p], tree["pair_row"][p], tree["pair_law"][p]
        normal, torque = self.normal[i, :, lane].copy(), np.zeros(3)
        has_rows = tree["pair_has_rows"][p]
        if has_rows and (i, True) in blocks:
            k = blocks[i, True]
            axes = np.array([normal, *across(normal)])
            force, mode = self.impulse[k, :, lane] @ axes / dt, self._mode(k, lane)
            if (i, False) in blocks:
                torque = self.impulse[blocks[i, False], :, lane] @ axes / dt
        else:
            force = np.zeros(3) if has_rows else self.force[i, :, lane].copy()
            slips = self.speed[i, lane] > self._value("pair.transition", row, lane)
            mode = "open" if not normal @ force > 0 else "slip" if slips else "stick"
        return Contact(
            (link_of_shape(self.model, a), link_of_shape(self.model, b)), (t.shape_names[a], t.shape_names[b]),
            self.point[i, :, lane].copy(), normal, float(self.gap[i, lane]), force, torque, LAWS[law], mode,
        )  # fmt: skip

    def _mode(self, k: int, lane: int) -> str:
        if not self.impulse[k, 0, lane] > 0:
            return "open"
        return "stick" if self.friction[k, 0, lane] > 0 and self.sticks[k, 0, lane] > 0 else "slip"

    def ties(self, lane: int) -> list[Tie]:
        dt, found = self._value("world.dt", None, lane), []
        for k, (kind, t) in enumerate(zip(self.kind, self.source, strict=True)):
            if kind == BOUNDED:
                found += self._tie(k, t, lane, dt)
        return found

    def _tie(self, k: int, t: int, lane: int, dt: float) -> list[Tie]:
        tree, x = self.model.topology.tree, self.impulse[k, :, lane]
        if tree["constraint_kind"][t] != JOINT_CONSTRAINT:
            name = self.model.topology.shape_names[tree["constraint_a"][t]].rpartition(".")[0]
            return [Tie("connect" if tree["constraint_kind"][t] == CONNECT else "weld", name, x / dt, "stick")]
        found = []
        for j in range(3):
            row = tree["constraint_row"][3 * t + j]
            if row == NO_ROW or not self.D[k, j, lane] > 0:
                continue
            low, high = self.low[k, j, lane], self.high[k, j, lane]
            modes = ("open", "stick") if row in STOPS else ("slip", "stick")
            mode = modes[bool(low < x[j] < high)]
            name = self.model.joint_names[tree["constraint_frame"][3 * t + j]]
            found.append(Tie(TIE_ROWS[row], name, float(self.weight[k, j, lane] * x[j] / dt), mode))
        return found

    def matrix(self, lane: int) -> np.ndarray:
        """A on the rows that take part."""
        rows = np.flatnonzero(self.D[..., lane].reshape(-1) > 0)
        if not len(rows):
            return np.zeros((0, 0))
        E, F = self._joint_space(lane) if self.model.topology.tree["is_implicit"] else self._factors(lane)
        return E[rows] @ F[rows].T + np.diag(self.soft[..., lane].reshape(-1)[rows])

    def _joint_space(self, lane: int) -> tuple[np.ndarray, np.ndarray]:
        """A = J (M^-1 J^T), from columns and masses as the convex law has them (stages/contact/joint_space.py)."""
        tree, dofs = self.model.topology.tree, self.model.nv
        J, M = np.zeros((len(self.kind), 3, dofs)), np.diag(self.own_mass[:, 0, lane])
        for k in range(len(self.kind)):
            for c in range(self.first_column[k], self.first_column[k + 1]):
                J[k, :, self.column_dof[c]] += self.column[c, :, lane]
        for d in range(dofs):
            for p in range(tree["chain_first"][d], tree["chain_first"][d + 1]):
                M[d, tree["chain"][p]] = M[tree["chain"][p], d] = self.mass[p, 0, lane]
        J = J.reshape(-1, dofs)
        return J, np.linalg.solve(M, J.T).T

    def _factors(self, lane: int) -> tuple[np.ndarray, np.ndarray]:
        """A = E F^T: a column per joint, six per free root."""
        tree, n = self.model.topology.tree, len(self.kind)
        L, dofs = tree["most_path"], tree["n_dofs"]
        E = np.zeros((n, 3, dofs + 6 * tree["n_bodies"]))
        F = np.zeros_like(E)
        for side, (body, fork, root) in enumerate(self.sides):
            for j in range(fork, tree["path_length"][body]):
                d = tree["path"][tree["path_first"][body] + j]
                E[side // 2, :, d] += self.effort[side * L + j, :, lane]
                F[side // 2, :, d] += self.effort[side * L + j, :, lane] * self.D_inv[d, 0, lane]
            if root >= 0:
                six = slice(dofs + 6 * root, dofs + 6 * root + 6)
                E[side // 2, :, six] += self.at_root[side, :, lane].reshape(3, 6)
                F[side // 2, :, six] += self.answer[side, :, lane].reshape(3, 6)
        return E.reshape(3 * n, E.shape[2]), F.reshape(3 * n, E.shape[2])


def across(n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The tangents of a normal, as rows.py takes them (Duff et al. 2017)."""
    sign = -1.0 if n[2] < 0 else 1.0
    a = -1.0 / (sign + n[2])
    b = n[0] * n[1] * a
    return np.array([1 + sign * n[0] * n[0] * a, sign * b, -sign * n[0]]), np.array([b, sign + n[1] * n[1] * a, -n[1]])


def _slip_speeds(model: Model, frame: Frame, pair: list[int]) -> np.ndarray:
    """How fast the two sides of each point slide on each other, (points, lanes)."""
    tree = model.topology.tree
    v, pose = frame.table("work.v")[:, :, 0], frame.table("work.pose")[:, :, 0]
    point, normal = frame.table("touch.point")[:, :, 0], frame.table("touch.normal")[:, :, 0]

    def velocity(i: int, shape: int) -> np.ndarray:
        b = tree["shape_body"][shape]
        arm = point[i] - pose[tree["reference"][b], 9:]
        return v[b, 3:] + np.cross(v[b, :3], arm, axis=0)

    found = np.zeros((len(pair), frame.lanes))
    for i, p in enumerate(pair):
        relative = velocity(i, tree["pair_a"][p]) - velocity(i, tree["pair_b"][p])
        slip = relative - normal[i] * (relative * normal[i]).sum(0)
        found[i] = np.sqrt((slip**2).sum(0))
    return found


def problem_of(model: Model, frame: Frame, first: int, last: int) -> Problem:
    """What the evaluation of a pack left in its tables."""
    tree = model.topology.tree
    slots, integers = frame.schema.slots, frame.integers

    def whole(name: str, count: int) -> list[int]:
        start = integers[slots[name]]
        return integers[start : start + count].tolist()

    def numbers(name: str, start: int, count: int) -> np.ndarray:
        return frame.table(name)[start : start + count, :, 0].copy()

    points = int(integers[slots["touch.n"]]) if tree["n_shapes"] else 0
    n = int(integers[slots["block.n"]]) if tree["has_impulses"] else 0
    pair = whole("touch.pair", points)
    sides = list(zip(*(whole(f"block.{what}", 2 * n) for what in ("body", "fork", "root")), strict=True)) if n else []
    return Problem(
        model, first, last, pair, numbers("touch.point", 0, points), numbers("touch.normal", 0, points),
        numbers("touch.gap", 0, points)[:, 0], numbers("touch.force", 0, points), _slip_speeds(model, frame, pair),
        whole("block.kind", n), whole("block.source", n), numbers("block.impulse", 0, n), numbers("block.sticks", 0, n),
        numbers("block.D", 0, n), numbers("block.low", 0, n), numbers("block.high", 0, n),
        numbers("block.weight", 0, n), numbers("block.friction", 0, n), numbers("block.soft", 0, n),
        sides, numbers("block.effort", 0, 2 * n * tree["most_path"]), numbers("block.at_root", 0, 2 * n),
        numbers("block.answer", 0, 2 * n), numbers("work.D_inv", 0, tree["n_dofs"]), *_joint_space_of(tree, whole, numbers, n),
    )  # fmt: skip


def _joint_space_of(tree: Mapping[str, Any], whole: Callable, numbers: Callable, n: int) -> tuple:
    """Columns and masses of the convex law; nothing of another."""
    if not (tree["is_implicit"] and n):
        return [0] * (n + 1), [], np.zeros((0, 3, 1)), np.zeros((0, 1, 1)), np.zeros((0, 1, 1))
    first = whole("block.first", n + 1)
    return (
        first, whole("block.column_dof", first[-1]), numbers("block.column", 0, first[-1]),
        numbers("block.mass", 0, len(tree["chain"])), numbers("block.own_mass", 0, tree["n_dofs"]),
    )  # fmt: skip
