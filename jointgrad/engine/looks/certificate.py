"""How far a gradient may be trusted: how near every step was to one with other contacts, and what its contacts did.

A gradient is that of the step that was computed, in the contact mode it was in. It says nothing about the other side of
a clamp. It is trusted where, over a distance that one would step, the motion does what it says: copies that start that far away on
either side end within half of the change it predicts. docs/gradients.md explains every figure in plain words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...model.arrays import Model, State
from ...model.errors import InputError
from ..kernels.workspace import RECORD
from ..run.naming import source_names
from ..run.runtime import Worker, address, worker
from .inspect import inspect
from .probe import DISTANCE, Probe, probed

if TYPE_CHECKING:
    from ..run.trajectory import Trajectory

# a motion is trusted while all of these hold in every step
EDGE = 1e-6  # margin of the outcome, as a share of the motion's largest impulse: nearer, and rounding decides the mode
SETTLED = (
    1e-2  # change of the last sweep, as a share of the largest impulse: more, and the contact problem is not solved
)
CONDITION = 1e8  # largest over smallest eigenvalue of the contact matrix: beyond, impulses have few digits left
MISMATCH = 0.5  # copies that start a little elsewhere end that much elsewhere than the gradient says; benchmarks/certificate.py
IMPACT = 0.1  # m/s: a faster landing is mentioned
# conditioning is looked at in so many steps of so many environments at most
SAMPLES, SAMPLED_STATES = 16, 512


class Worst(NamedTuple):
    """The clamp that was nearest to changing: when, where, between what, and how far it was (N s)."""

    step: int
    env: int
    names: tuple[str, str]
    margin: float

    def __str__(self) -> str:
        return f'{self.margin:.3g} N s at step {self.step}, environment {self.env}, "{self.names[0]}" and "{self.names[1]}"'


@dataclass(frozen=True, eq=False)
class Certificate:
    """Figures per step and environment, (T, batch), or (T,) where the state had no batch axis.

    margin: of all clamps of all sweeps, the distance from changing (N s; N m s where a row turns), infinite where nothing
    touches. mode_margin: the same of the last sweep alone, that is of the outcome: open, sticking or slipping. gap: how far
    the nearest candidate is from being switched on or off (m; rad for a joint near its limit). open, sticking, slipping:
    how many points. impulse: the largest (N s). change: what the last sweep changed (N s). impact, bounce: the fastest
    approach of a point that was pressed, and of one that bounces (m/s). limit: how far the nearest actuator is from a limit of
    its control or force, or a tendon from an end of its slack, as a share of its range. signature: equal where every clamp
    acted alike.
    condition, per environment: the contact matrix's largest eigenvalue over its smallest, worst of the steps looked at.
    mismatch, per environment: how far the last states of copies that start `distance` away are from what the gradient says, as
    a share of their change.
    """

    model: Model
    margin: np.ndarray
    mode_margin: np.ndarray
    gap: np.ndarray
    open: np.ndarray
    sticking: np.ndarray
    slipping: np.ndarray
    impulse: np.ndarray
    change: np.ndarray
    impact: np.ndarray
    bounce: np.ndarray
    limit: np.ndarray
    signature: np.ndarray
    condition: np.ndarray
    mismatch: np.ndarray
    distance: float
    _probe: Probe
    _names: dict[str, np.ndarray]
    _is_lost: np.ndarray

    # every figure with a batch axis
    def _wide(self, name: str) -> np.ndarray:
        array = getattr(self, name)
        return array.reshape(len(array), -1)

    @property
    def steps(self) -> int:
        return len(self.margin)

    @property
    def batch(self) -> int:
        return len(self._is_lost)

    @property
    def trusted(self) -> np.ndarray:
        """Whether the gradient is worth following, per environment."""
        found = np.array([not reasons for reasons in self.reasons])
        return found if self.margin.ndim == 2 else found[0]

    def trusted_for(self, q_bar: Any = None, qd_bar: Any = None) -> np.ndarray:
        """Whether the gradient of one loss of the last state, given by its cotangents (batch, nq) and (batch, nv), is worth
        following, per environment: coordinates that the loss does not look at do not count."""
        widths = self._probe.nq, self._probe.said.shape[-1] - self._probe.nq
        bars = [
            np.zeros((self.batch, n)) if bar is None else np.broadcast_to(np.asarray(bar, dtype=float), (self.batch, n))
            for bar, n in zip((q_bar, qd_bar), widths, strict=True)
        ]
        mismatch = self._probe.mismatch_along(np.concatenate(bars, axis=-1))
        found = np.array([not self._reasons(env, mismatch[env]) for env in range(self.batch)])
        return found if self.margin.ndim == 2 else found[0]

    @property
    def reasons(self) -> list[list[str]]:
        """What speaks against each environment's gradient."""
        return [self._reasons(env, self.mismatch[env]) for env in range(self.batch)]

    def _reasons(self, env: int, mismatch: float) -> list[str]:
        if self._is_lost[env]:
            return ["it diverged"]
        if not self.steps:
            return []
        mode, impulse, change = (self._wide(name)[:, env] for name in ("mode_margin", "impulse", "change"))
        found, largest = [], impulse.max()
        k = int(np.argmin(mode))
        if mode[k] < EDGE * largest:
            pair = self._pair("mode_margin", k, env)
            found.append(
                f"on an edge: at step {k} {pair} is {mode[k]:.2g} N s from another contact mode, with impulses of {largest:.2g} N s"
            )
        limit = self._wide("limit")[:, env]
        k = int(np.argmin(limit))
        if limit[k] < EDGE:
            found.append(f"on an edge: at step {k} {self._limited(k, env)}, {limit[k]:.2g} of its range from it")
        k = int(np.argmax(np.where(impulse > 0, change / np.where(impulse > 0, impulse, 1.0), 0.0)))
        if change[k] > SETTLED * impulse[k]:
            found.append(
                f"not settled: the last sweep of step {k} still changed impulses by {change[k] / impulse[k]:.1%}; take more sweeps"
            )
        if self.condition[env] > CONDITION:
            found.append(f"ill conditioned: the contact matrix has a condition number of {self.condition[env]:.2g}")
        if not mismatch < MISMATCH:
            found.append(
                f"does not hold: starts {self.distance * 1e3:.3g} mm (mrad, mm/s) away end elsewhere than it says, by "
                f"{mismatch:.0%} of the change{self._cause(env)}"
            )
        return found

    def _cause(self, env: int) -> str:
        """What such a mismatch most often comes from."""
        impact, bounce = self._wide("impact")[:, env], self._wide("bounce")[:, env]
        k = int(np.argmax(impact))
        if not impact[k] > 0:
            return ""
        what = "bounces" if bounce[k] > 0 else "lands"
        return f"; something {what}, at step {k} with {impact[k]:.2g} m/s, in an instant that is rounded to a step"

    def _pair(self, figure: str, step: int, env: int) -> str:
        a, b = source_names(self.model, self._names[figure][step, env])
        return f'"{a}" and "{b}"'

    def _limited(self, step: int, env: int) -> str:
        number, actuators = int(self._names["limit"][step, env]), self.model.actuator_names
        if number < len(actuators):
            return f'actuator "{actuators[number]}" is at a limit'
        return f'tendon "{self.model.tendon_names[number - len(actuators)]}" is where its slack ends'

    def worst(self, env: int | None = None) -> Worst | None:
        """The clamp nearest to changing, in all environments or in one; None where nothing touches."""
        margin = self._wide("margin")
        if env is not None and not 0 <= env < self.batch:
            raise InputError(f"env is {env}, but there are {self.batch} environments")
        columns = np.arange(self.batch) if env is None else np.array([env])
        if not margin[:, columns].size or not np.isfinite(margin[:, columns]).any():
            return None
        k, column = np.unravel_index(int(np.argmin(margin[:, columns])), (self.steps, len(columns)))
        e = int(columns[column])
        names = source_names(self.model, self._names["margin"][k, e])
        return Worst(int(k), e, names, float(margin[k, e]))

    def __str__(self) -> str:
        trusted, reasons = np.atleast_1d(self.trusted), self.reasons
        many = f"{self.batch} environments" if self.batch > 1 else "1 environment"
        verdict = "worth following" if trusted.all() else f"not to be followed in {(~trusted).sum()} of {many}"
        lines = [f"gradient of {self.steps} steps, {many}: {verdict}"]
        for env in np.flatnonzero(~trusted)[:5]:
            lines += [f"  environment {env}: {reason}" for reason in reasons[env]]
        if self.batch:
            reach = f"{self.distance * 1e3:.3g} mm (mrad, mm/s)"
            lines.append(f"  starts {reach} away end where it says within {self.mismatch.max():.2g} of the change")
        return "\n".join([*lines, *self._figures()])

    def _figures(self) -> list[str]:
        worst = self.worst()
        if worst is None and not sum(self._wide(what).sum() for what in ("open", "sticking", "slipping")):
            return ["  nothing touched" + self._nearest()]
        impulse, change = self._wide("impulse"), self._wide("change")
        share = np.where(impulse > 0, change / np.where(impulse > 0, impulse, 1.0), 0.0).max()
        counts = ", ".join(f"{self._wide(what).mean():.3g} {what}" for what in ("open", "sticking", "slipping"))
        lines = [f"  points per step: {counts}"]
        if worst is not None:
            lines = [
                f"  smallest clamp margin: {worst}",
                f"  of the outcome: {self.mode_margin.min():.3g} N s; largest impulse {impulse.max():.3g} N s" + self._nearest(),
                f"{lines[0]}; fastest impact {self.impact.max():.3g} m/s",
                f"  last sweep changed impulses by {share:.2g} of the largest; condition of the contact matrix "
                f"{self.condition.max():.3g}",
            ]  # fmt: skip
        if self.impact.max(initial=0.0) > IMPACT:
            lines.append("  note: something lands; do not follow the gradient of the force in that one step")
        return lines

    def _nearest(self) -> str:
        gap = self._wide("gap")
        if not gap.size or not np.isfinite(gap).any():
            return ""
        k, env = np.unravel_index(int(np.argmin(gap)), gap.shape)
        return f"\n  nearest to being switched: {self._pair('gap', int(k), int(env))}, {gap[k, env]:.3g} m from it, at step {k}"


def certificate_of(trajectory: Trajectory, distance: float = DISTANCE) -> Certificate:
    if not 0 < distance < np.inf:
        raise InputError(f"distance must be a positive number of metres, but is {distance}")
    states, columns = trajectory.run.states(), step_records(trajectory)
    names = {what: columns.pop(f"{what}_of") for what in ("margin", "mode_margin", "gap", "limit")}
    for what in ("open", "sticking", "slipping"):
        columns[what] = columns[what].astype(int)
    probe = probed(trajectory, distance)
    public = {name: trajectory.run.unbatched(np.ascontiguousarray(column)) for name, column in columns.items()}
    return Certificate(
        model=trajectory.model, **public, condition=conditions(trajectory, *states), mismatch=probe.mismatch(),
        distance=distance, _probe=probe, _names=names, _is_lost=trajectory.status >= 0,
    )  # fmt: skip


def step_records(trajectory: Trajectory) -> dict[str, np.ndarray]:
    """Figures of every step by their names in RECORD, (T, batch): what the certificate costs least."""
    i, model = trajectory.run.inputs, trajectory.model
    q, qd = trajectory.run.states()
    record = np.zeros((i.steps, i.batch, len(RECORD)))

    def describe(one: Worker, first: int, last: int) -> None:
        one.take_params(model)
        trajectory.run.describe(one, first, last)
        one.set(q=address(q), qd=address(qd), interval=1, status=0, record=address(record))

    trajectory.run.go_over("certify", lambda: worker(model), describe)
    return dict(zip(RECORD, np.moveaxis(record, -1, 0), strict=True))


def conditions(trajectory: Trajectory, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """Condition of the contact matrix, worst of some steps evenly spread, per environment; 1 where nothing touches."""
    i, model = trajectory.run.inputs, trajectory.model
    worst = np.ones(i.batch)
    if not model.topology.tree["has_impulses"] or not i.steps:
        return worst
    count = max(1, min(SAMPLES, i.steps, SAMPLED_STATES // i.batch))
    for k in np.unique(np.linspace(0, i.steps - 1, count).round().astype(int)):
        info = inspect(model, State(q[k], qd[k]), *_inputs_of(i, k))
        for env in range(i.batch):
            A = info.contact_matrix(env)
            if len(A) and np.isfinite(A).all():
                values = np.linalg.eigvalsh(A)
                worst[env] = max(worst[env], values[-1] / values[0] if values[0] > 0 else np.inf)
    return worst


def _inputs_of(inputs: Any, k: int) -> tuple[Any, Any]:
    """Controls and outside forces of a step, for a state with a batch axis."""
    force = inputs.force if inputs.force is None or inputs.force.ndim == 3 else inputs.force[k]
    return None if inputs.u is None else inputs.u[k], force
