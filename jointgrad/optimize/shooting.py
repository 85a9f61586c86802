"""Shooting: a motion is rolled out under controls, and the loss is pulled back through the whole of it to the controls.

    controls = Controls(steps, model.nu, knots=8)                # or one value per step, or held over several
    problem = Shooting(model, model.initial_state(), controls, loss)
    found = optimise(problem, x0, method="adam", rate=0.1, stop=Stop(iterations=50, target=0.01), bounds=(-10, 10))
    motion = problem.motion(found.x)

A loss takes a Trajectory of a batch and gives a Loss: one value per environment, and the cotangents of what it looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from ..engine.gradients import Meaning
from ..engine.run.rollout import known_motion, rollout
from ..engine.run.trajectory import EXACT, Trajectory
from ..model.arrays import Model, State
from ..model.errors import InputError
from . import progress as _progress
from .progress import Callback, Result, Stop
from .solvers import SGD, Adam, Bounds, Tried, descend, gauss_newton, lbfgs

METHODS = ("sgd", "adam", "lbfgs", "gauss_newton", "cma", "cma_diagonal")


@dataclass(frozen=True)
class Loss:
    """Losses (batch,) of motions, and the cotangents of states, outputs and controls, as Trajectory.backward takes them.

    A loss that is half a sum of squares may also have residuals (batch, m): then Gauss-Newton can use it. `seeds(k)` are
    the cotangents of residual k alone, a Loss too, with one environment where they are the same for all.
    """

    value: np.ndarray
    q_bar: np.ndarray | None = None
    qd_bar: np.ndarray | None = None
    bars: Mapping[str, np.ndarray] = field(default_factory=dict)
    u_bar: np.ndarray | None = None
    residuals: np.ndarray | None = None
    seeds: Callable[[int], Loss] | None = None


LossOf = Callable[[Trajectory], Loss]


class Parametrisation(Protocol):
    """How numbers x (batch, n) become controls u (T, batch, nu), and the way back for cotangents."""

    n: int

    def expand(self, x: np.ndarray) -> np.ndarray: ...

    def pull(self, u_bar: np.ndarray) -> np.ndarray: ...


class Controls:
    """Controls that are a linear function of x: one value per step, values held over `hold` steps, or cubic splines
    through `knots` points in time. Actuators that are not named follow `base` (T, nu), by default zero.

    x is (time, actuator), flattened. `scale` multiplies it, so that x may be of order one.

    brake: every push is followed by a counterpush that fades over this many steps and, together, is as large. A push alone
    leaves a joint turning until the end; in units of x, what moves joints for a short time is then as near as what moves them
    on and on, and a step of the search along the gradient does not send an arm on a journey.
    """

    def __init__(
        self, steps: int, nu: int, knots: int | None = None, hold: int | None = None,
        actuators: Sequence[int] | None = None, base: np.ndarray | None = None, scale: Any = 1.0, last: int | None = None,
        brake: float | None = None,
    ) -> None:  # fmt: skip
        """last: controls end at this step and are those of `base` afterwards."""
        if knots is not None and hold is not None:
            raise InputError("controls have either knots or a hold, not both")
        if brake is not None and not brake > 0:
            raise InputError(f"brake must be a number of steps above zero, but is {brake:g}")
        self.steps, self.nu, self.last = steps, nu, steps if last is None else last
        self.columns = list(range(nu)) if actuators is None else [int(a) for a in actuators]
        self.base = np.zeros((steps, nu)) if base is None else np.asarray(base, float)
        if self.base.shape != (steps, nu):
            raise InputError(f"base must have shape {(steps, nu)}, but has {self.base.shape}")
        self.basis = None
        if knots is not None:
            self.basis = spline_basis(self.last, knots)
        elif hold is not None:
            self.basis = np.repeat(np.eye(-(-self.last // hold)), hold, axis=0)[: self.last]
        self.fade = None if brake is None else float(np.exp(-1.0 / brake))
        if self.basis is not None and self.fade is not None:
            self.basis = braked(self.basis, self.fade)
        self.rows = self.last if self.basis is None else self.basis.shape[1]
        self.scale = np.broadcast_to(np.asarray(scale, float), (len(self.columns),))
        self.n = self.rows * len(self.columns)

    def expand(self, x: np.ndarray) -> np.ndarray:
        """(batch, n) -> (T, batch, nu)."""
        values = x.reshape(len(x), self.rows, len(self.columns)) * self.scale
        values = np.moveaxis(values if self.basis is None else self.basis @ values, 0, 1)
        if self.basis is None and self.fade is not None:
            values = braked(values, self.fade)
        u = np.repeat(self.base[:, None], len(x), axis=1)
        u[: self.last, :, self.columns] += values
        return u

    def pull(self, u_bar: np.ndarray) -> np.ndarray:
        """(T, batch, nu) -> (batch, n)."""
        values = u_bar[: self.last, :, self.columns]
        if self.basis is None and self.fade is not None:
            values = braked(values[::-1], self.fade)[::-1]  # the transpose is the same filter, back in time
        values = np.moveaxis(values, 1, 0)
        values = values if self.basis is None else self.basis.T @ values
        return (values * self.scale).reshape(u_bar.shape[1], -1)

    def project(self, u: np.ndarray) -> np.ndarray:
        """The x (n,) whose controls are nearest to u (T, nu)."""
        values = (u - self.base)[: self.last, self.columns]
        if self.basis is not None:
            values = np.linalg.lstsq(self.basis, values, rcond=None)[0]
        elif self.fade is not None:
            values = braked(values, self.fade, inverse=True)
        return (values / self.scale).ravel()


def braked(pushes: np.ndarray, fade: float, inverse: bool = False) -> np.ndarray:
    """Pushes (T, ...) less the part of those before that is left to be taken back; `fade` of it is left after each step.
    inverse: the pushes of which this is what remains."""
    out, owed = np.empty_like(pushes), np.zeros_like(pushes[0])
    for t, push in enumerate(pushes):
        out[t] = push + owed if inverse else push - owed
        owed = fade * owed + (1.0 - fade) * (out[t] if inverse else push)
    return out


def spline_basis(steps: int, knots: int) -> np.ndarray:
    """(steps, knots): cubic splines through values at evenly spaced knots, evaluated at the middle of every step."""
    if knots < 1:
        raise InputError(f"knots must be 1 or more, but is {knots}")
    if knots == 1:
        return np.ones((steps, 1))
    at, knot = (np.arange(steps) + 0.5) / steps, np.linspace(0.0, 1.0, knots)
    if knots < 4:
        return np.stack([np.interp(at, knot, row) for row in np.eye(knots)], axis=-1)
    # natural splines: the second derivatives at the knots solve a tridiagonal system
    h = knot[1]
    inner = (
        (np.diag(np.full(knots - 2, 4.0)) + np.diag(np.ones(knots - 3), 1) + np.diag(np.ones(knots - 3), -1)) * h / 6
    )
    second = np.zeros((knots, knots))
    second[1:-1] = np.linalg.solve(inner, np.diff(np.eye(knots), n=2, axis=0) / h)
    k = np.minimum((at / h).astype(int), knots - 2)
    b = ((at - knot[k]) / h)[:, None]
    a, eye = 1 - b, np.eye(knots)
    bend = ((a**3 - a) * second[k] + (b**3 - b) * second[k + 1]) * h**2 / 6
    return a * eye[k] + b * eye[k + 1] + bend


class Shooting:
    """Losses of motions as a function of the numbers x that parametrise their controls, with exact gradients."""

    def __init__(
        self, model: Model, start: State, controls: Parametrisation, loss: LossOf, outputs: Sequence[str] = (),
        memory: str | int | None = None, threads: int | None = None, gradient: Meaning = EXACT,
    ) -> None:  # fmt: skip
        """gradient: what derivatives mean, as in jg.rollout."""
        if start.q.ndim != 1:
            raise InputError(f"start must be one state, without a batch axis, but q has shape {start.q.shape}")
        if model.batch is not None:
            raise InputError("shooting needs a model without parameters per environment")
        self.model, self.start, self.controls, self.loss = model, start, controls, loss
        self.options = {"outputs": tuple(outputs), "memory": memory, "threads": threads, "gradient": gradient}
        self.n = controls.n

    def motions(self, x: np.ndarray, keep: bool = True) -> Trajectory:
        """Motions of points x (batch, n); lost ones are frozen, see Trajectory.status."""
        q, qd = (np.repeat(a[None], len(x), axis=0) for a in self.start)
        options = dict(self.options, memory=self.options["memory"] if keep else None)
        return rollout(self.model, State(q, qd), self.controls.expand(x), on_nan="freeze", keep=keep, **options)  # type: ignore[arg-type]

    def motion(self, x: np.ndarray) -> Trajectory:
        """The motion of one point x (n,), without a batch axis."""
        u = self.controls.expand(np.asarray(x, float)[None])[:, 0]
        return rollout(self.model, self.start, u, outputs=self.options["outputs"])  # type: ignore[arg-type]

    def value(self, x: np.ndarray) -> np.ndarray:
        return self._losses(self.motions(x))[0]

    def gradient(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        motion = self.motions(x)
        losses, loss = self._losses(motion)
        return losses, self._pulled(motion, loss, ~np.isfinite(losses))

    def _losses(self, motion: Trajectory) -> tuple[np.ndarray, Loss]:
        """Losses, infinite where a motion was lost, and the whole Loss."""
        with np.errstate(all="ignore"):
            loss = self.loss(motion)
        return np.where((motion.status >= 0) | ~np.isfinite(loss.value), np.inf, loss.value), loss

    def _pulled(self, motion: Trajectory, loss: Loss, is_lost: np.ndarray) -> np.ndarray:
        """Cotangents of x; zero where a motion was lost."""
        keep = ~is_lost[:, None]
        q_bar, qd_bar = (None if b is None else np.where(keep, b, 0.0) for b in (loss.q_bar, loss.qd_bar))
        bars = {n: np.where(keep.reshape(-1, *(1,) * (b.ndim - 2)), b, 0.0) for n, b in loss.bars.items()}
        u_bar = motion.backward(q_bar, qd_bar, bars, wrt=("u",)).u
        x_bar = self.controls.pull(u_bar if loss.u_bar is None else u_bar + loss.u_bar)
        x_bar[is_lost] = 0.0
        return x_bar

    def residuals(self, x: np.ndarray) -> np.ndarray:
        return self.tried(x).residuals

    def jacobian(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Residuals (batch, m) and their Jacobians (batch, m, n): one pass back for each residual, all in one batch."""
        tried = self.tried(x)
        return tried.residuals, tried.jacobians(range(len(x)))[0]

    def tried(self, x: np.ndarray) -> Tried:
        """Residuals of points, and their Jacobians from the same motions."""
        motion = self.motions(x)
        losses, loss = self._losses(motion)
        if loss.residuals is None or loss.seeds is None:
            raise InputError("Gauss-Newton needs a loss with residuals and seeds; this one has a value only")
        r = np.array(loss.residuals)
        r[~np.isfinite(losses)] = np.inf
        return Tried(r, lambda rows: self._jacobians(x, motion, loss, r, list(rows)))

    def _jacobians(
        self, x: np.ndarray, motion: Trajectory, loss: Loss, r: np.ndarray, rows: list[int]
    ) -> tuple[np.ndarray, int, int]:
        """One pass back for each residual of each of these motions; one that is zero has nothing to say of where to go."""
        J = np.zeros((len(rows), r.shape[1], self.n))
        wanted = [(i, k) for i, row in enumerate(rows) for k in range(r.shape[1]) if r[row, k] != 0.0]
        if not wanted:
            return J, 0, 0
        envs = [rows[i] for i, _ in wanted]
        seeds = [_of(loss.seeds(k), env) for (_, k), env in zip(wanted, envs, strict=True)]  # type: ignore[misc]
        if self.options["outputs"]:  # which a motion that is known by its states does not have
            again, rolled = self.motions(x[envs]), len(envs)
        else:
            states = motion.q[:, envs], motion.qd[:, envs]
            again, rolled = known_motion(self.model, states, motion.u[:, envs]), 0  # type: ignore[index]
            again.gradient = motion.gradient
        is_lost = ~np.isfinite(r[envs]).all(-1)
        J[tuple(np.transpose(wanted))] = self._pulled(again, _side_by_side(seeds), is_lost)
        return J, rolled, len(wanted)


def _of(loss: Loss, env: int) -> Loss:
    """The cotangents of one motion of a batch; those that are the same for all have one environment."""

    def own(bar: np.ndarray | None, axis: int) -> np.ndarray | None:
        return bar if bar is None or bar.shape[axis] == 1 else np.take(bar, [env], axis)

    bars = {name: own(bar, 1) for name, bar in loss.bars.items()}
    return Loss(loss.value, own(loss.q_bar, -2), own(loss.qd_bar, -2), bars, own(loss.u_bar, 1))  # type: ignore[arg-type]


def _side_by_side(seeds: Sequence[Loss]) -> Loss:
    """Cotangents of several losses of one motion, each as its own environment."""

    def joined(parts: list) -> Any:
        return None if parts[0] is None else np.concatenate(parts, axis=-2)

    bars = {name: np.concatenate([s.bars[name] for s in seeds], axis=1) for name in seeds[0].bars}
    own = [joined([getattr(s, name) for s in seeds]) for name in ("q_bar", "qd_bar")]
    return Loss(np.zeros(len(seeds)), *own, bars, joined([s.u_bar for s in seeds]))  # type: ignore[call-arg]


def final_position(coordinates: Sequence[int], target: Sequence[float], model: Model, kind: str = "rms") -> LossOf:
    """How far coordinates of the last state are from a target: "rms" over the coordinates, their "distance", or half the
    sum of "squares". Residuals for Gauss-Newton are the differences."""
    at, goal = list(coordinates), np.asarray(target, float)

    def q_bar_of(values: np.ndarray) -> np.ndarray:
        q_bar = np.zeros((len(values), model.nq))
        q_bar[:, at] = values
        return q_bar

    def loss(motion: Trajectory) -> Loss:
        off = motion.last.q[:, at] - goal
        if kind == "squares":
            value, bar = 0.5 * (off**2).sum(-1), off
        else:
            count = len(at) if kind == "rms" else 1
            value = np.sqrt((off**2).sum(-1) / count)
            bar = off / (count * np.maximum(value, 1e-12)[:, None])

        def seed(k: int) -> Loss:
            return Loss(np.zeros(1), q_bar=q_bar_of(np.eye(len(at))[k : k + 1]))

        return Loss(value, q_bar=q_bar_of(bar), residuals=off, seeds=seed)

    return loss


def optimise(
    problem: Any, x0: Any, method: str = "adam", stop: Stop | None = None, bounds: Bounds = None,
    callback: Callback | None = None, show: str | None = None, **settings: Any,
) -> Result:  # fmt: skip
    """Search with one of METHODS. x0 (n,) or several starts (starts, n); settings are those of the method (rate, momentum,
    memory, damping, step, population, seed ...). show: the title of a progress bar. Ctrl-C gives the best so far."""
    if method not in METHODS:
        raise InputError(f'there is no method "{method}"; the names are {", ".join(METHODS)}')
    stop = stop or Stop()
    if show is None:
        return _solved(problem, x0, method, stop, bounds, callback, settings)
    with _progress.bar(show, stop.iterations) as shown:
        both = shown if callback is None else (lambda p: (shown(p), callback(p))[1])
        return _solved(problem, x0, method, stop, bounds, both, settings)


def _solved(problem: Any, x0: Any, method: str, stop: Stop, bounds: Bounds, callback: Any, settings: dict) -> Result:
    if method in ("sgd", "adam"):
        rule = (SGD if method == "sgd" else Adam)(**settings)
        return descend(problem, x0, rule, stop, bounds, callback)
    if method == "lbfgs":
        return lbfgs(problem, x0, stop, bounds, callback, **settings)
    if method == "gauss_newton":
        return gauss_newton(problem, x0, stop, bounds, callback, **settings)
    from .search import cma_es

    return cma_es(
        problem, x0, stop=stop, bounds=bounds, callback=callback, diagonal=method == "cma_diagonal", **settings
    )
