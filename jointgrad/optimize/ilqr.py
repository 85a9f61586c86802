"""iLQR with control limits: optimal controls of a motion from the exact Jacobians of every step.

Backwards in time, a quadratic model of the cost to come gives a change of the controls and a feedback on the state (Li and
Todorov 2004; Gauss-Newton: second derivatives of the dynamics are left out). Where controls have limits, the change is
found by projected Newton steps (Tassa, Mansard and Todorov 2014, "Control-limited differential dynamic programming"). The
line search rolls out all step sizes as one batch.

States are compared in tangent coordinates, as `linearize` has them: x = (tangent of q, qd), 2 nv numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..engine.gradients import Meaning
from ..engine.looks.linearize import linearize
from ..engine.run.rollout import rollout
from ..engine.run.single_steps import step
from ..engine.run.tangent_coordinates import difference
from ..engine.run.trajectory import EXACT
from ..model.arrays import Model, State
from ..model.errors import InputError, SimulationError
from .progress import Callback, Progress, Result, Stop, Stopped
from .solvers import Bounds, limits

# factor by which the regularisation grows and shrinks, its least value above zero, and where the search gives up
GROWTH, LEAST, MOST = 4.0, 1e-9, 1e12
# states that are linearised at a time: 2 nv rows each
CHUNK = 256


class Expansion(NamedTuple):
    """A cost to second order, by the state x (2 nv) and the controls: gradient and Hessian, leading axes as the states."""

    x: np.ndarray
    xx: np.ndarray
    u: np.ndarray | None = None
    uu: np.ndarray | None = None
    ux: np.ndarray | None = None


class Cost(Protocol):
    """What a motion costs: at every step, and at its end. Arrays have any leading axes."""

    def running(self, q: np.ndarray, qd: np.ndarray, u: np.ndarray) -> np.ndarray: ...

    def final(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray: ...

    def running_expansion(self, q: np.ndarray, qd: np.ndarray, u: np.ndarray) -> Expansion: ...

    def final_expansion(self, q: np.ndarray, qd: np.ndarray) -> Expansion: ...


@dataclass(frozen=True)
class Quadratic:
    """Half the weighted squares of (state - target), at every step and at the end, and of the controls.

    Weights: state and final (2 nv,), control (nu,). For a quaternion the difference is its turn from the target, and the
    derivative is that for small turns.
    """

    model: Model
    target: State
    state: Any = 0.0
    final_state: Any = 0.0
    control: Any = 1e-6

    def _off(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        return difference(self.model, State(q, qd), self.target)

    def _weight(self, value: Any, n: int) -> np.ndarray:
        return np.broadcast_to(np.asarray(value, float), (n,))

    def running(self, q: np.ndarray, qd: np.ndarray, u: np.ndarray) -> np.ndarray:
        wx, wu = self._weight(self.state, 2 * self.model.nv), self._weight(self.control, self.model.nu)
        of_state = (wx * self._off(q, qd) ** 2).sum(-1) if wx.any() else 0.0
        return 0.5 * (of_state + (wu * u**2).sum(-1))

    def final(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        return 0.5 * (self._weight(self.final_state, 2 * self.model.nv) * self._off(q, qd) ** 2).sum(-1)

    def running_expansion(self, q: np.ndarray, qd: np.ndarray, u: np.ndarray) -> Expansion:
        n, nu, lead = 2 * self.model.nv, self.model.nu, u.shape[:-1]
        wx, wu = self._weight(self.state, n), self._weight(self.control, nu)
        hessians = (np.broadcast_to(np.diag(w), (*lead, len(w), len(w))) for w in (wx, wu))
        return Expansion(wx * self._off(q, qd), next(hessians), wu * u, next(hessians), np.zeros((*lead, nu, n)))

    def final_expansion(self, q: np.ndarray, qd: np.ndarray) -> Expansion:
        w = self._weight(self.final_state, 2 * self.model.nv)
        return Expansion(w * self._off(q, qd), np.diag(w))


@dataclass(frozen=True)
class Plan:
    """Controls u (T, nu) with the states they lead through, the feedback that goes with them, and the cost."""

    q: np.ndarray
    qd: np.ndarray
    u: np.ndarray
    cost: float
    gains: np.ndarray | None = None  # (T, nu, 2 nv)


class _Backward(NamedTuple):
    """Change k (T, nu), feedback K (T, nu, 2 nv), and how the cost should fall: slope and curvature along k."""

    k: np.ndarray
    K: np.ndarray
    slope: float
    curvature: float


def ilqr(
    model: Model, start: State, cost: Cost, u0: Any, bounds: Bounds = None, stop: Stop | None = None,
    callback: Callback | None = None, step_sizes: int = 10, regularisation: float = 1e-6, tolerance: float = 1e-12,
    feedback: bool = True, gradient: Meaning = EXACT,
) -> Result:  # fmt: skip
    """Improve controls u0 (T, nu) until the expected gain is below `tolerance` of the cost. Bounds are those of the controls,
    numbers or arrays (nu,). The result's x is u, flattened; extra holds the Plan.

    regularisation is added to the curvature by the controls, relative to its size; it grows while no step helps.
    feedback: whether the gains act while a step is tried. Where bodies meet a little sooner or later than planned they would act
    on a difference that is due to that alone: without them, the linear model says how the controls change.
    gradient: what the Jacobians of steps mean, as in jg.rollout.
    """
    low, high = limits(bounds, model.nu)
    u = np.clip(_checked_controls(u0, model), low, high)
    progress = Progress(stop or Stop(), callback)
    sizes, weight = 2.0 ** -np.arange(step_sizes), regularisation
    plan = _rolled(model, start, cost, u)
    progress.count(1)
    with progress.running():
        _accept(progress, plan)
        while True:
            A, B = _jacobians(model, plan, gradient)
            progress.count(0, 1)
            running, final = (
                cost.running_expansion(plan.q[:-1], plan.qd[:-1], plan.u),
                cost.final_expansion(plan.q[-1], plan.qd[-1]),
            )
            while True:
                back = _backward(A, B, running, final, plan.u, low, high, weight)
                if back is None:
                    better = None
                elif feedback:
                    better = _better(cost, plan, back, sizes, _with_feedback(model, plan, back, sizes, low, high))
                else:
                    better = _better(cost, plan, back, sizes, _open_loop(model, plan, A, B, back, sizes, low, high))
                progress.count(0 if back is None else step_sizes)
                if back is not None and -back.slope < tolerance * max(abs(plan.cost), 1e-30):
                    raise Stopped("converged")
                if better is not None:
                    break
                weight = max(weight, LEAST) * GROWTH
                if weight > MOST:
                    raise Stopped("no step helps")
            plan, weight = better, max(weight / GROWTH, LEAST)
            _accept(progress, plan)
    return progress.result(plan=plan)


def _checked_controls(u0: Any, model: Model) -> np.ndarray:
    u = np.array(u0, dtype=float)
    if u.ndim != 2 or u.shape[1] != model.nu or not len(u):
        raise InputError(f"u0 must have shape (steps, {model.nu}), but has {u.shape}")
    return u


def _accept(progress: Progress, plan: Plan) -> None:
    progress.see(plan.u.reshape(1, -1), np.array([plan.cost]))
    progress.end_iteration(plan.cost)


def _rolled(model: Model, start: State, cost: Cost, u: np.ndarray) -> Plan:
    motion = rollout(model, start, u)
    total = cost.running(motion.q[:-1], motion.qd[:-1], u).sum() + cost.final(motion.q[-1], motion.qd[-1])
    return Plan(motion.q, motion.qd, u, float(total))


def _jacobians(model: Model, plan: Plan, gradient: Meaning) -> tuple[np.ndarray, np.ndarray]:
    """A (T, 2nv, 2nv) and B (T, 2nv, nu) of all steps."""
    parts: list[Sequence[np.ndarray]] = []
    for k in range(0, len(plan.u), CHUNK):
        at = slice(k, min(k + CHUNK, len(plan.u)))
        state = State(plan.q[at], plan.qd[at])
        parts.append(linearize(model, state, plan.u[at], gradient=gradient.of_steps))  # type: ignore[arg-type]
    A, B = (np.concatenate([p[i] for p in parts]) for i in range(2))
    return gradient.jacobians(model, A, plan.q, plan.qd, plan.u), B


def _backward(
    A: np.ndarray, B: np.ndarray, running: Expansion, final: Expansion, u: np.ndarray, low: np.ndarray, high: np.ndarray,
    weight: float,
) -> _Backward | None:  # fmt: skip
    """The sweep from the end to the start; None where the curvature by the controls is not positive."""
    T, n, nu = B.shape
    k, K = np.zeros((T, nu)), np.zeros((T, nu, n))
    V_x, V_xx, slope, curvature = final.x, final.xx, 0.0, 0.0
    assert running.u is not None and running.uu is not None and running.ux is not None
    free_all = np.isneginf(low).all() and np.isposinf(high).all()
    for t in reversed(range(T)):
        VB = V_xx @ B[t]
        Q_x, Q_u = running.x[t] + A[t].T @ V_x, running.u[t] + B[t].T @ V_x
        Q_xx = running.xx[t] + A[t].T @ V_xx @ A[t]
        Q_uu, Q_ux = running.uu[t] + B[t].T @ VB, running.ux[t] + VB.T @ A[t]
        firm = Q_uu + weight * max(float(np.trace(Q_uu)) / nu, 1e-12) * np.eye(nu)
        try:
            if free_all:
                both = np.linalg.solve(firm, np.column_stack([Q_u, Q_ux]))
                k[t], K[t] = -both[:, 0], -both[:, 1:]
            else:
                k[t], free = box_newton(firm, Q_u, low - u[t], high - u[t])
                if free.any():
                    K[t][free] = -np.linalg.solve(firm[np.ix_(free, free)], Q_ux[free])
        except np.linalg.LinAlgError:
            return None
        if not np.isfinite(k[t]).all() or k[t] @ Q_u > 0:
            return None
        slope += float(k[t] @ Q_u)
        curvature += float(k[t] @ Q_uu @ k[t])
        V_x = Q_x + K[t].T @ (Q_uu @ k[t] + Q_u) + Q_ux.T @ k[t]
        V_xx = Q_xx + K[t].T @ Q_uu @ K[t] + K[t].T @ Q_ux + Q_ux.T @ K[t]
        V_xx = 0.5 * (V_xx + V_xx.T)
    return _Backward(k, K, slope, curvature)


def box_newton(H: np.ndarray, g: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The minimum of d g + d H d / 2 between bounds, and which entries are free there (Tassa 2014: projected
    Newton). H must be positive definite."""
    d = np.clip(np.zeros(len(g)), low, high)
    free = np.ones(len(g), bool)
    for _ in range(4 * len(g) + 4):
        slope = g + H @ d
        free = ~(((d <= low) & (slope > 0)) | ((d >= high) & (slope < 0)) | (low == high))
        if not free.any() or np.abs(slope[free]).max() < 1e-12 * max(np.abs(g).max(), 1e-300):
            break
        aim = d.copy()
        aim[free] -= np.linalg.solve(H[np.ix_(free, free)], slope[free])
        moved = _projected_step(H, g, d, aim - d, slope, low, high)
        if np.array_equal(moved, d):
            break
        d = moved
    return d, free


def _projected_step(H, g, d, direction, slope, low, high) -> np.ndarray:
    """The longest of the halved steps that lowers the quadratic enough (Armijo)."""
    before, size = d @ (g + 0.5 * H @ d), 1.0
    while size > 1e-10:
        trial = np.clip(d + size * direction, low, high)
        if trial @ (g + 0.5 * H @ trial) - before <= 0.1 * slope @ (trial - d):
            return trial
        size *= 0.5
    return d


# motions (T+1, sizes, ...) and their controls
_Motions = tuple[np.ndarray, np.ndarray, np.ndarray]


def _better(cost: Cost, plan: Plan, back: _Backward, sizes: np.ndarray, motions: _Motions | None) -> Plan | None:
    """The best of the motions with all step sizes, if it is better by a part of what was expected."""
    if motions is None:
        return None
    q, qd, u = motions
    with np.errstate(all="ignore"):
        costs = cost.running(q[:-1], qd[:-1], u).sum(0) + cost.final(q[-1], qd[-1])
    costs = np.where(np.isfinite(costs), costs, np.inf)
    lead = int(np.argmin(costs))
    expected = -(sizes[lead] * back.slope + 0.5 * sizes[lead] ** 2 * back.curvature)
    # near the minimum the gain drowns in rounding: then any that is not a loss will do
    if not plan.cost - costs[lead] > 1e-4 * min(expected, 0.5 * plan.cost) or not costs[lead] < plan.cost:
        return None
    return Plan(q[:, lead].copy(), qd[:, lead].copy(), u[:, lead].copy(), float(costs[lead]), back.K)


def _with_feedback(
    model: Model, plan: Plan, back: _Backward, sizes: np.ndarray, low: np.ndarray, high: np.ndarray
) -> _Motions | None:
    """Motions (T+1, sizes, ...) under u + size k + K (x - x_old), kept inside the bounds."""
    T, count = len(plan.u), len(sizes)
    q, qd = np.empty((T + 1, count, model.nq)), np.empty((T + 1, count, model.nv))
    u = np.empty((T, count, model.nu))
    state = State(np.repeat(plan.q[:1], count, axis=0), np.repeat(plan.qd[:1], count, axis=0))
    q[0], qd[0] = state
    for t in range(T):
        off = difference(model, state, State(plan.q[t], plan.qd[t]))
        u[t] = np.clip(plan.u[t] + sizes[:, None] * back.k[t] + off @ back.K[t].T, low, high)
        try:
            state = step(model, state, u[t], on_nan="freeze")
        except (SimulationError, InputError):
            return None
        q[t + 1], qd[t + 1] = state
    # an environment that was frozen stands still with finite numbers: its cost speaks for itself
    return q, qd, u


def _open_loop(
    model: Model, plan: Plan, A: np.ndarray, B: np.ndarray, back: _Backward, sizes: np.ndarray, low: np.ndarray,
    high: np.ndarray,
) -> _Motions | None:  # fmt: skip
    """Motions under u + size du, kept inside the bounds, with du and dx by the linear model: du = k + K dx, dx' = A dx + B du."""
    change, off = np.empty_like(plan.u), np.zeros(2 * model.nv)
    for t in range(len(plan.u)):
        change[t] = back.k[t] + back.K[t] @ off
        off = A[t] @ off + B[t] @ change[t]
    u = np.clip(plan.u[:, None] + sizes[:, None] * change[:, None], low, high)
    start = State(*(np.repeat(a[:1], len(sizes), axis=0) for a in (plan.q, plan.qd)))
    motion = rollout(model, start, u, on_nan="freeze")
    return motion.q, motion.qd, u
