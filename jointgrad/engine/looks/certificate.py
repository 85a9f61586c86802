"""How far a gradient may be trusted: how near every step was to one with other contacts, and what its contacts did.

A gradient is that of the step that was computed, in the contact mode it was in. It says nothing about the other side of
a clamp. It is trusted where, over a distance that one would step, the motion does what it says: copies that start that far away on
either side end within 40 % of the change it predicts. docs/gradients.md explains every figure in plain words.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...model.arrays import Model, State
from ...model.errors import InputError
from ..gradients import Exact, Meaning, MovingImpacts, Randomised, Smoothed
from ..gradients.copies import all_steps
from ..gradients.moving_impacts import can_meet
from ..gradients.segments import with_all_states
from ..kernels.workspace import RECORD
from ..run.naming import source_names
from ..run.runtime import Worker, address, worker
from .inspect import inspect
from .probe import DISTANCE, HOLDS, Probe, probed, probed_along

if TYPE_CHECKING:
    from ..run.trajectory import Gradient, Trajectory

# a motion is trusted while all of these hold, the first two in every step that is looked at
EDGE = 1e-6  # margin of the outcome, as a share of the motion's largest impulse: nearer, and rounding decides the mode
SETTLED = (
    1e-2  # change of the last sweep, as a share of the largest impulse: more, and the contact problem is not solved
)
IMPACT = 0.1  # m/s: a faster landing is mentioned
# for the verdict every twentieth step is looked at, of a short motion all; conditioning in so many steps of so many environments
EVERY, AT_LEAST = 20, 8
SAMPLES, SAMPLED_STATES = 16, 512
# for its reach a gradient is tried at these multiples of the distance, one after the other
FARTHER, NEARER = (4.0, 16.0), (1 / 4, 1 / 16)
# steps from their own states, (T, batch); names of those nearest to a switch come with some of them
FIGURES = tuple(name for name in RECORD if not name.endswith("_of"))
COUNTS = ("open", "sticking", "slipping")


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
    """Whether the gradient of a motion holds: asked of copies, which costs less than three rollouts.

    mismatch, per environment: how far the last states of copies that start `distance` away are from what the gradient says, as a
    share of their change.

    What follows is worked out when it is asked for. Per step and environment, (T, batch), or (T,) where the state had no batch
    axis: margin: of all clamps of all sweeps, the distance from changing (N s; N m s where a row turns), infinite where nothing
    touches. mode_margin: the same of the last sweep alone, that is of the outcome: open, sticking or slipping. gap: how far
    the nearest candidate is from being switched on or off (m; rad for a joint near its limit). open, sticking, slipping:
    how many points. impulse: the largest (N s). change: what the last sweep changed (N s). impact, bounce: the fastest
    approach of a point that was pressed, and of one that bounces (m/s). limit: how far the nearest actuator is from a limit of
    its control or force, or a tendon from an end of its slack, as a share of its range. signature: equal where every clamp
    acted alike.
    condition, per environment: the contact matrix's largest eigenvalue over its smallest, worst of the steps looked at.
    reach, per environment: the distance over which the gradient holds.
    """

    mismatch: np.ndarray
    distance: float
    _trajectory: Trajectory
    _probe: Probe
    _looked_at: tuple[np.ndarray, dict[str, np.ndarray]]
    _is_zero: np.ndarray
    _probe_at: Callable[[float], Probe]

    def __getattr__(self, name: str) -> np.ndarray:
        """Figures of every step."""
        if name not in FIGURES:
            raise AttributeError(f"a certificate has no {name}")
        figure = self._records[name]
        return self._trajectory.run.unbatched(np.ascontiguousarray(figure.astype(int) if name in COUNTS else figure))

    @functools.cached_property
    def _records(self) -> dict[str, np.ndarray]:
        return step_records(self._trajectory)

    @functools.cached_property
    def condition(self) -> np.ndarray:
        """Condition of the contact matrix, worst of some steps evenly spread, per environment; 1 where nothing touches."""
        return conditions(self._trajectory, *self._trajectory.run.states()[:2])

    @functools.cached_property
    def reach(self) -> np.ndarray:
        """Of the distances tried, the largest over which the gradient holds, per environment (m, rad; m/s, rad/s): that of the
        certificate, then 4 and 16 times as far where it holds, a quarter and a sixteenth where not; zero where it never does."""
        holds, found = self.mismatch < HOLDS, np.where(self.mismatch < HOLDS, self.distance, 0.0)
        for shares, is_asked in ((FARTHER, holds), (NEARER, ~holds)):
            for share in shares:
                if is_asked.any():
                    here = is_asked & (self._probe_at(share * self.distance).mismatch() < HOLDS)
                    found = np.where(here, share * self.distance, found)
                    is_asked = here if share > 1 else is_asked & ~here
        return found

    @property
    def model(self) -> Model:
        """Of the motion."""
        return self._trajectory.model

    # every figure with a batch axis
    def _wide(self, name: str) -> np.ndarray:
        return self._records[name]

    @property
    def steps(self) -> int:
        """Time steps T."""
        return self._trajectory.steps

    @property
    def batch(self) -> int:
        """Environments."""
        return self._trajectory.run.inputs.batch

    @property
    def trusted(self) -> np.ndarray:
        """Whether the gradient is worth following, per environment."""
        return self._shown(self._is_trusted(self.mismatch))

    def trusted_for(self, q_bar: Any = None, qd_bar: Any = None) -> np.ndarray:
        """Whether the gradient of one loss of the last state, given by its cotangents (batch, nq) and (batch, nv), is worth
        following, per environment: coordinates that the loss does not look at do not count. To step along its own gradient, ask
        for a certificate of that loss."""
        if self._probe.said.shape[-1] == 1:
            raise InputError("this certificate is of one loss; ask traj.certificate() without cotangents for any")
        return self._shown(
            self._is_trusted(self._probe.mismatch_along(np.concatenate(bars_of(self._trajectory, q_bar, qd_bar), -1)))
        )

    def _shown(self, per_environment: np.ndarray) -> np.ndarray:
        return self._trajectory.run.unbatched(per_environment, 0)

    def _is_trusted(self, mismatch: np.ndarray) -> np.ndarray:
        return np.array([not self._flaws(env, mismatch[env]) for env in range(self.batch)], bool)

    @property
    def meanings(self) -> list[Meaning | None]:
        """The meaning of the gradient that is likely to help, per environment: Exact where it is trusted; None where only a shorter
        step (`reach`), a shorter motion or a smaller dt helps: springs that steps do not resolve, stops, motions that curve."""
        is_trusted = self._is_trusted(self.mismatch)
        return [
            Exact() if is_trusted[env] and not self._is_zero[env] else self._meaning(env) for env in range(self.batch)
        ]

    def _meaning(self, env: int) -> Meaning | None:
        if self._trajectory.status[env] >= 0 or not self.steps or not can_meet(self.model):
            return None
        pressed, gap = (self._wide("sticking") + self._wide("slipping"))[:, env], self._wide("gap")[:, env].min()
        if self._is_zero[env]:
            near = min(gap, self.distance) if pressed.any() else gap
            return Smoothed(float(max(2.0 * near, 4.0 * self.distance))) if np.isfinite(near) else None
        if self._wide("impact")[:, env].max() > IMPACT:
            return MovingImpacts()
        return Randomised(self.distance) if self._probe.is_jump()[env] else None

    @property
    def reasons(self) -> list[list[str]]:
        """What speaks against each environment's gradient."""
        return [self._reasons(env) for env in range(self.batch)]

    def _flaws(self, env: int, mismatch: float) -> list[str]:
        """What is wrong, without causes."""
        if self._trajectory.status[env] >= 0:
            return ["it diverged"]
        if not self.steps:
            return []
        steps, seen = self._looked_at
        mode, impulse, change, limit = (seen[name][:, env] for name in ("mode_margin", "impulse", "change", "limit"))
        found, largest = [], impulse.max()
        k = int(np.argmin(mode))
        if mode[k] < EDGE * largest:
            pair = self._pair(seen["mode_margin_of"][k, env])
            found.append(
                f"on an edge: at step {steps[k]} {pair} is {mode[k]:.2g} N s from another contact mode, with impulses of "
                f"{largest:.2g} N s"
            )
        k = int(np.argmin(limit))
        if limit[k] < EDGE:
            found.append(
                f"on an edge: at step {steps[k]} {self._limited(seen['limit_of'][k, env])}, {limit[k]:.2g} of its range from it"
            )
        k = int(np.argmax(np.where(impulse > 0, change / np.where(impulse > 0, impulse, 1.0), 0.0)))
        if change[k] > SETTLED * impulse[k]:
            found.append(
                f"not settled: the last sweep of step {steps[k]} still changed impulses by {change[k] / impulse[k]:.1%}; take more "
                "sweeps"
            )
        if not mismatch < HOLDS:
            found.append(
                f"does not hold: starts {self.distance * 1e3:.3g} mm (mrad, mm/s) away end elsewhere than it says, by "
                f"{mismatch:.0%} of the change"
            )
        return found

    def _reasons(self, env: int) -> list[str]:
        found = self._flaws(env, self.mismatch[env])
        if found and found[-1].startswith("does not hold"):
            found[-1] += self._cause(env)
        return found

    def _cause(self, env: int) -> str:
        """What such a mismatch most often comes from."""
        impact, bounce = self._wide("impact")[:, env], self._wide("bounce")[:, env]
        k = int(np.argmax(impact))
        if not impact[k] > 0:
            return ""
        what = "bounces" if bounce[k] > 0 else "lands"
        return f"; something {what}, at step {k} with {impact[k]:.2g} m/s, in an instant that is rounded to a step"

    def _pair(self, source: float) -> str:
        a, b = source_names(self.model, source)
        return f'"{a}" and "{b}"'

    def _limited(self, source: float) -> str:
        number, actuators = int(source), self.model.actuator_names
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
        names = source_names(self.model, self._records["margin_of"][k, e])
        return Worst(int(k), e, names, float(margin[k, e]))

    def __str__(self) -> str:
        trusted, reasons = np.atleast_1d(self.trusted), self.reasons
        many = f"{self.batch} environments" if self.batch > 1 else "1 environment"
        verdict = "worth following" if trusted.all() else f"not to be followed in {(~trusted).sum()} of {many}"
        lines = [f"gradient of {self.steps} steps, {many}: {verdict}"]
        for env in np.flatnonzero(~trusted)[:5]:
            lines += [f"  environment {env}: {reason}" for reason in reasons[env]]
            meaning = self._meaning(int(env))
            if meaning is not None:
                lines.append(f"  environment {env}: may help: gradient=jg.{meaning}")
        if self.batch:
            away = f"{self.distance * 1e3:.3g} mm (mrad, mm/s)"
            lines.append(f"  starts {away} away end where it says within {self.mismatch.max():.2g} of the change")
            lines.append(
                f"  it holds over {1e3 * self.reach.min():.3g} mm (mrad, mm/s), the largest distance of those tried"
            )
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
                f"  last sweep changed impulses by {share:.2g} of the largest",
            ]  # fmt: skip
        if self.impact.max(initial=0.0) > IMPACT:
            lines.append("  note: something lands; do not follow the gradient of the force in that one step")
        return lines

    def _nearest(self) -> str:
        gap = self._wide("gap")
        if not gap.size or not np.isfinite(gap).any():
            return ""
        k, env = np.unravel_index(int(np.argmin(gap)), gap.shape)
        pair = self._pair(self._records["gap_of"][k, env])
        return f"\n  nearest to being switched: {pair}, {gap[k, env]:.3g} m from it, at step {k}"


def certificate_of(
    trajectory: Trajectory,
    distance: float = DISTANCE,
    q_bar: Any = None,
    qd_bar: Any = None,
    gradient: Gradient | None = None,
) -> Certificate:
    if not 0 < distance < np.inf:
        raise InputError(f"distance must be a positive number of metres, but is {distance}")
    trajectory = with_all_states(trajectory)
    if q_bar is None and qd_bar is None:
        probe_at, is_zero = functools.partial(probed, trajectory), np.zeros(trajectory.run.inputs.batch, bool)
    else:
        bars = bars_of(trajectory, q_bar, qd_bar)
        gradient = _by_the_start(trajectory, bars, gradient)
        probe_at = functools.partial(probed_along, trajectory, bars, gradient)
        is_zero = (np.abs(gradient.q).max(-1, initial=0.0) <= 1e-9) & (np.abs(gradient.qd).max(-1, initial=0.0) <= 1e-9)
    probe = probe_at(distance)
    steps = np.unique(
        np.linspace(0, trajectory.steps - 1, max(AT_LEAST, trajectory.steps // EVERY)).round().astype(int)
    )
    looked_at = (steps, step_records(trajectory, steps)) if trajectory.steps else (steps, {})
    return Certificate(probe.mismatch(), distance, trajectory, probe, looked_at, is_zero, probe_at)


def bars_of(trajectory: Trajectory, q_bar: Any, qd_bar: Any) -> tuple[np.ndarray, np.ndarray]:
    """Cotangents of the last state, (batch, nq) and (batch, nv)."""
    widths, batch = (trajectory.model.nq, trajectory.model.nv), trajectory.run.inputs.batch
    found = []
    for name, bar, n in zip(("q_bar", "qd_bar"), (q_bar, qd_bar), widths, strict=True):
        wide = np.zeros((batch, n)) if bar is None else np.asarray(bar, dtype=float)
        if wide.shape not in ((n,), (batch, n)):
            raise InputError(
                f"{name} must have shape {(batch, n)}, a row for every environment's last state, but has {wide.shape}"
            )
        found.append(np.broadcast_to(wide, (batch, n)))
    return found[0], found[1]


def _by_the_start(trajectory: Trajectory, bars: tuple[np.ndarray, np.ndarray], gradient: Gradient | None) -> Gradient:
    """The gradient by the start, with a batch axis; worked out unless it is given."""
    from ..run.trajectory import Gradient

    if gradient is None:
        q_bar, qd_bar = (trajectory.run.unbatched(bar, 0) for bar in bars)
        gradient = trajectory.backward(q_bar, qd_bar, wrt=("state",))
    if gradient.q is None or gradient.qd is None:
        raise InputError('the certificate of a loss needs its gradient by the start: backward(..., wrt=("state", ...))')
    return Gradient(np.reshape(gradient.q, bars[0].shape), np.reshape(gradient.qd, bars[1].shape))


def step_records(trajectory: Trajectory, which: Sequence[int] | np.ndarray | None = None) -> dict[str, np.ndarray]:
    """Figures of every step (or of some) by their names in RECORD, (T, batch)."""
    motion = trajectory if which is None else all_steps(trajectory, which)  # type: ignore[arg-type]
    i, model = motion.run.inputs, motion.model
    q, qd, *more = motion.run.states()
    record = np.zeros((i.steps, i.batch, len(RECORD)))

    def describe(one: Worker, first: int, last: int) -> None:
        one.take_params(model)
        motion.run.describe(one, first, last)
        one.set(q=address(q), qd=address(qd), interval=1, status=0, record=address(record))
        one.set(more=address(more[0]) if more else 0)

    motion.run.go_over("certify", lambda: worker(model), describe)
    rows = record.reshape(-1, trajectory.run.inputs.batch, len(RECORD))
    return dict(zip(RECORD, np.moveaxis(rows, -1, 0), strict=True))


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
