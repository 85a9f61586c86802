"""Identification: find parameters of a model with which its motion is the recorded one.

    fit = identify(model, [Recording(q, qd, u)], [Entry("joint.damping", "elbow", bounds=(0, 10)), Inertia("hand")])
    fit.model, fit.estimates, fit.unidentifiable
    write_report(fit, "out/identify")

Residuals are differences to the recording, divided by their standard deviations. A long or chaotic recording is cut into
segments (multiple shooting): each starts at its recorded state, or at a state that is found too and must be where the segment
before ends. The Jacobian is exact: one tangent for each unknown, all segments and directions in one batch, or one pass back
for each residual where these are fewer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..engine.linearize import _coordinates, _turn_basis
from ..engine.rollout import Trajectory, known_motion, rollout
from ..model.arrays import Model, State
from ..model.errors import InputError
from ..model.parameters import Entry, Inertia, Unknowns
from .progress import Callback, Result, Stop
from .solvers import Tried, gauss_newton, half_squares, lbfgs
from .tangent import difference, rows_of

# a direction that the data determine this much less than the best one counts as not determined
BLIND = 1e-6


@dataclass(frozen=True)
class Recording:
    """Samples q (N+1, nq) and qd (N+1, nv), NaN where nothing was measured, and controls u (N * every, nu) of every time step.
    every: time steps from one sample to the next."""

    q: np.ndarray
    qd: np.ndarray
    u: np.ndarray | None = None
    every: int = 1

    @property
    def samples(self) -> int:
        return len(self.q)


@dataclass(frozen=True)
class Settings:
    """sigma_q, sigma_qd: standard deviations of the measurements, (nv,) or a number; infinite: do not use. segment: samples per
    segment, None for the whole recording. starts: "measured" or "free". sigma_defect: how well free segments must join."""

    sigma_q: Any = 1.0
    sigma_qd: Any = 1.0
    segment: int | None = None
    starts: str = "measured"
    sigma_defect: float = 1e-4
    mode: str = "auto"  # of the Jacobian: "forward" (tangents), "reverse" (one pass back per residual)


@dataclass(frozen=True)
class Estimate:
    """One number that was found, with its standard deviation; nan where the data do not determine it."""

    name: str
    start: float
    value: float
    deviation: float
    at_bound: bool = False


@dataclass(frozen=True)
class Fit:
    """What was found: the model, its numbers, how sure they are, and which mixtures of them the data do not show."""

    model: Model
    estimates: list[Estimate]
    covariance: np.ndarray  # (n, n), of the physical numbers, over the directions that are determined
    singular_values: np.ndarray  # of the Jacobian by x, largest first
    unidentifiable: list[dict[str, float]]  # unit directions of x: name -> share
    residual_rms: float  # in standard deviations
    result: Result
    unknowns: Unknowns

    @property
    def x(self) -> np.ndarray:
        return self.result.x[: self.unknowns.n]


@dataclass
class _Pieces:
    """Segments of all recordings, side by side: starts (S, ...), controls (L, S, nu), the data at the samples."""

    q0: np.ndarray
    qd0: np.ndarray
    u: np.ndarray | None
    steps: int
    samples: np.ndarray  # time steps of the samples in a segment
    q: np.ndarray  # (K, S, nq), NaN beyond the end
    qd: np.ndarray
    follows: list[tuple[int, int]] = field(default_factory=list)  # segment pairs that must join

    @property
    def count(self) -> int:
        return len(self.q0)


class Identification:
    """Differences between motions and recordings as residuals of x: the unknown parameters, then free starts."""

    def __init__(
        self, model: Model, recordings: Sequence[Recording], entries: Sequence[Entry | Inertia], settings: Settings
    ) -> None:
        _check(model, recordings, settings)
        self.model, self.settings, self.unknowns = model, settings, Unknowns(model, entries)
        self.pieces = _cut(model, recordings, settings.segment)
        self.nx = 2 * model.nv
        self.is_free = settings.starts == "free"
        self.n = self.unknowns.n + (self.pieces.count * self.nx if self.is_free else 0)
        self.weight = np.concatenate(
            [1.0 / np.broadcast_to(np.asarray(s, float), (model.nv,)) for s in (settings.sigma_q, settings.sigma_qd)]
        )
        # residuals are linear in q: rows (K, S, nv, nq)
        self.rows_q = rows_of(model, self.pieces.q)
        self.mask = self._measured()

    @property
    def start(self) -> np.ndarray:
        return np.concatenate([self.unknowns.start, np.zeros(self.n - self.unknowns.n)])

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        wide = np.full(self.n - self.unknowns.n, np.inf)
        return np.concatenate([self.unknowns.bounds[0], -wide]), np.concatenate([self.unknowns.bounds[1], wide])

    def _measured(self) -> np.ndarray:
        """(K, S, 2 nv): where there is a measurement that counts."""
        p = self.pieces
        # a row counts where every coordinate it looks at was measured
        is_hidden = (self.rows_q != 0) & ~np.isfinite(p.q)[:, :, None]
        of_q = np.isfinite(self.rows_q).all(-1) & ~is_hidden.any(-1)
        mask = np.concatenate([of_q, np.isfinite(p.qd)], axis=-1) & (self.weight > 0)
        if not self.is_free:
            mask[0] = False  # a segment starts at its measured state: nothing to learn from that
        return mask

    # motions ------------------------------------------------------------------------------------------------------------

    def _motion(self, x: np.ndarray) -> Trajectory:
        """Motions of points x (B, n), environments (B, S), the last index fastest."""
        p, B = self.pieces, len(x)
        q0, qd0 = np.repeat(p.q0[None], B, axis=0), np.repeat(p.qd0[None], B, axis=0)
        if self.is_free:
            q0, qd0 = self._moved(x, q0, qd0)
        q0, qd0 = (a.reshape(B * p.count, -1) for a in (q0, qd0))
        values = {k: np.repeat(v, p.count, axis=0) for k, v in self.unknowns.values(x[:, : self.unknowns.n]).items()}
        u = None if p.u is None else np.tile(p.u, (1, B, 1))
        model = self.model.replace(values)
        return rollout(model, State(q0, qd0), u, steps=p.steps, on_nan="freeze")

    def _moved(self, x: np.ndarray, q0: np.ndarray, qd0: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Free starts: the measured ones, changed by tangent coordinates."""
        off = x[:, self.unknowns.n :].reshape(len(x), self.pieces.count, self.nx)
        basis = _start_basis(self.model, self.pieces.q0)
        return q0 + np.einsum("sqv,bsv->bsq", basis, off[..., : self.model.nv]), qd0 + off[..., self.model.nv :]

    def _seen(self, q: np.ndarray, qd: np.ndarray, less_data: bool) -> np.ndarray:
        """Weighted residuals (B, K * S * 2 nv) of states (T+1, B * S, ...) or their tangents; unmeasured entries are zero."""
        p, B = self.pieces, q.shape[1] // self.pieces.count
        q, qd = (a[p.samples].reshape(len(p.samples), B, p.count, -1) for a in (q, qd))
        of_q = np.einsum("ksvq,kbsq->bksv", np.nan_to_num(self.rows_q), q)
        of_qd = np.moveaxis(qd, 1, 0)
        if less_data:
            of_q = of_q - np.nan_to_num(np.einsum("ksvq,ksq->ksv", np.nan_to_num(self.rows_q), np.nan_to_num(p.q)))
            of_qd = of_qd - np.nan_to_num(p.qd)
        both = np.concatenate([of_q, of_qd], axis=-1)
        return np.where(self.mask, both * self.weight, 0.0).reshape(B, -1)[:, self.mask.ravel()]

    def residuals(self, x: np.ndarray) -> np.ndarray:
        """(B, m); infinite where a motion is lost or no body has such an inertia."""
        return self.tried(x).residuals

    def tried(self, x: np.ndarray) -> Tried:
        """Residuals of points, and their Jacobians from the same motions."""
        is_body = self.unknowns.is_physical(x[:, : self.unknowns.n])
        x = np.where(is_body[:, None], x, self.start)
        motion = self._motion(x)
        r = self._residuals(x, motion, is_body)
        return Tried(r, lambda rows: self._jacobians(x, motion, r.shape[1], list(rows)))

    def _residuals(self, x: np.ndarray, motion: Trajectory, is_body: np.ndarray) -> np.ndarray:
        r = self._seen(motion.q, motion.qd, True)
        if self.is_free:
            r = np.concatenate([r, self._defects(motion, x)], axis=1)
        lost = (motion.status >= 0).reshape(len(x), -1).any(-1)
        r[lost | ~is_body] = np.inf
        return r

    def _defects(self, motion: Trajectory, x: np.ndarray) -> np.ndarray:
        """(B, joints * 2 nv): the end of a segment less the start of the next, in tangent coordinates of the latter."""
        B, count = len(x), self.pieces.count
        ends = [a.reshape(B, count, -1) for a in motion.last]
        starts = [a.reshape(B, count, -1) for a in (motion._inputs.q, motion._inputs.qd)]
        parts = [
            difference(
                self.model, State(*(e[:, i] for e in ends)), _unit(self.model, State(*(s[:, j] for s in starts)))
            )
            for i, j in self.pieces.follows
        ]
        return np.concatenate(parts, axis=-1) / self.settings.sigma_defect if parts else np.zeros((B, 0))

    # derivatives --------------------------------------------------------------------------------------------------------

    def jacobian(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Residuals (batch, m) and their Jacobian (batch, m, n) at points x (batch, n)."""
        tried = self.tried(x)
        return tried.residuals, tried.jacobians(range(len(x)))[0]

    def _jacobians(self, x: np.ndarray, motion: Trajectory, m: int, rows: list[int]) -> tuple[np.ndarray, int, int]:
        """By tangents or passes back, whichever are fewer."""
        is_reverse = self.settings.mode == "reverse" or (
            self.settings.mode == "auto" and not self.is_free and m < self.pieces.count * self.unknowns.n
        )
        if is_reverse and self.is_free:
            raise InputError('the Jacobian of free starts is by tangents: use mode="forward" or "auto"')
        copies = int(np.bincount(np.argwhere(self.mask)[:, 1]).max()) if is_reverse else self._forward_count()
        derive = self._pulled_back if is_reverse else self._pushed_forward
        found = np.stack([derive(x[[row]], self._again(x, motion, row, copies)) for row in rows])
        return found, 0, copies * len(rows)

    def _again(self, x: np.ndarray, motion: Trajectory, row: int, copies: int) -> Trajectory:
        """The motion of one of the points x, as often as is wanted, for derivatives: nothing is run."""
        p = self.pieces
        envs = np.repeat(np.arange(row * p.count, (row + 1) * p.count), copies)
        values = self.unknowns.values(x[[row], : self.unknowns.n])
        model = self.model.replace({k: np.repeat(v, len(envs), axis=0) for k, v in values.items()})
        u = None if p.u is None else np.repeat(p.u, copies, axis=1)
        return known_motion(model, (motion.q[:, envs], motion.qd[:, envs]), u)

    def _forward_count(self) -> int:
        """Directions in which every segment is pushed forward."""
        return self.unknowns.n + (self.nx if self.is_free else 0)

    def _pushed_forward(self, x: np.ndarray, motion: Trajectory) -> np.ndarray:
        """(m, n): one tangent for each segment and direction, in one batch."""
        p, P = self.pieces, self.unknowns.n
        D = self._forward_count()
        directions = self.unknowns.directions(x[0, :P])
        params = {}
        for name, rows in directions.items():
            wide = np.zeros((p.count, D, *rows.shape[1:]))
            wide[:, :P] = rows
            params[name] = wide.reshape(p.count * D, *rows.shape[1:])
        starts: dict[str, np.ndarray] = {}
        if self.is_free:
            q_dot, qd_dot = np.zeros((p.count, D, self.model.nq)), np.zeros((p.count, D, self.model.nv))
            q_dot[:, P : P + self.model.nv] = np.swapaxes(_start_basis(self.model, p.q0), -1, -2)
            qd_dot[:, P + self.model.nv :] = np.eye(self.model.nv)
            starts = {"q": q_dot.reshape(p.count * D, -1), "qd": qd_dot.reshape(p.count * D, -1)}
        dq, dqd = motion.tangent(params=params, **starts)
        by_direction = [a.reshape(len(a), p.count, D, -1) for a in (dq, dqd)]
        return self._assembled(by_direction, motion, D)

    def _assembled(self, by_direction: list[np.ndarray], motion: Trajectory, D: int) -> np.ndarray:
        """Tangents (T+1, S, D, ...) as columns: parameters move all segments, a start only its own."""
        p, P = self.pieces, self.unknowns.n
        columns = [np.swapaxes(a, 1, 2).reshape(len(a), D * p.count, -1) for a in by_direction]
        seen = np.zeros((D, *self.mask.shape))
        seen[:, self.mask] = self._seen(*columns, False)
        J = np.zeros((int(self.mask.sum()), self.n))
        J[:, :P] = seen[:P][:, self.mask].T
        if not self.is_free:
            return J
        for s in range(p.count):
            own = np.zeros((self.nx, *self.mask.shape))
            own[:, :, s] = seen[P:, :, s]
            J[:, P + s * self.nx : P + (s + 1) * self.nx] = own[:, self.mask].T
        return np.concatenate([J, self._defect_rows(by_direction, motion, D)])

    def _defect_rows(self, by_direction: list[np.ndarray], motion: Trajectory, D: int) -> np.ndarray:
        p, P, nx = self.pieces, self.unknowns.n, self.nx
        last_q = motion.last.q.reshape(p.count, D, -1)[:, 0]
        rows = np.zeros((len(p.follows) * nx, self.n))
        for k, (i, j) in enumerate(p.follows):
            to_tangent = rows_of(self.model, last_q[i][None, None])[0, 0]
            block = np.concatenate([by_direction[0][-1, i] @ to_tangent.T, by_direction[1][-1, i]], axis=-1).T
            at = slice(k * nx, (k + 1) * nx)
            rows[at, :P] = block[:, :P]
            rows[at, P + i * nx : P + (i + 1) * nx] = block[:, P:]
            # a small defect turns with the start that it is measured from
            rows[at, P + j * nx : P + (j + 1) * nx] = -np.eye(nx)
        return rows / self.settings.sigma_defect

    def _pulled_back(self, x: np.ndarray, motion: Trajectory) -> np.ndarray:
        """(m, n): one pass back for each residual, in one batch."""
        p, at = self.pieces, np.argwhere(self.mask)
        segments, counts = np.unique(at[:, 1], return_counts=True)
        copies = int(counts.max())
        q_bar, qd_bar = np.zeros_like(motion.q), np.zeros_like(motion.qd)
        taken, envs = dict.fromkeys(segments, 0), []
        for k, s, i in at:
            env = s * copies + taken[s]
            taken[s] += 1
            envs.append(env)
            if i < self.model.nv:
                q_bar[p.samples[k], env] = self.rows_q[k, s, i] * self.weight[i]
            else:
                qd_bar[p.samples[k], env, i - self.model.nv] = self.weight[i]
        gradient = motion.backward(q_bar, qd_bar, wrt=("params",))
        bars = {name: gradient.params[name][envs] for name in self.unknowns.touched}
        return self.unknowns.pull(x[0, : self.unknowns.n], bars)

    def value(self, x: np.ndarray) -> np.ndarray:
        return half_squares(self.residuals(x))

    def gradient(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Half the sum of squares and its gradient, by one pass back per segment; with free starts by tangents."""
        if self.is_free:
            r, J = self.jacobian(x)
            return half_squares(r), np.einsum("bm,bmn->bn", r, J)
        is_body = self.unknowns.is_physical(x)
        motion, p, B = self._motion(np.where(is_body[:, None], x, self.start)), self.pieces, len(x)
        r = np.zeros((B, *self.mask.shape))
        r[:, self.mask] = self._seen(motion.q, motion.qd, True)
        weighted = r * self.weight
        q_bar, qd_bar = np.zeros_like(motion.q), np.zeros_like(motion.qd)
        rows = np.nan_to_num(self.rows_q)
        nv = self.model.nv
        shape = (len(p.samples), B * p.count, -1)
        q_bar[p.samples] = np.einsum("ksvq,bksv->kbsq", rows, weighted[..., :nv]).reshape(shape)
        qd_bar[p.samples] = np.moveaxis(weighted[..., nv:], 1, 0).reshape(shape)
        bars = motion.backward(q_bar, qd_bar, wrt=("params",)).params
        summed = {n: bars[n].reshape(B, p.count, *bars[n].shape[1:]).sum(1) for n in self.unknowns.touched}
        slopes = [self.unknowns.pull(x[b], {n: v[b] for n, v in summed.items()}) for b in range(B)]
        losses = half_squares(r.reshape(B, -1))
        is_lost = (motion.status >= 0).reshape(B, -1).any(-1) | ~is_body
        return np.where(is_lost, np.inf, losses), np.array(slopes)


def identify(
    model: Model, recordings: Sequence[Recording] | Recording, entries: Sequence[Entry | Inertia],
    settings: Settings | None = None, method: str = "lm", stop: Stop | None = None, x0: Any = None,
    callback: Callback | None = None,
) -> Fit:  # fmt: skip
    """Fit the entries to the recordings with "lm" (Levenberg-Marquardt) or "lbfgs", from the model's own values or x0."""
    recordings = [recordings] if isinstance(recordings, Recording) else list(recordings)
    problem = Identification(model, recordings, entries, settings or Settings())
    if method not in ("lm", "lbfgs"):
        raise InputError(f'there is no method "{method}"; the names are lm, lbfgs')
    start = problem.start if x0 is None else np.concatenate([x0, problem.start[len(x0) :]])
    solver = gauss_newton if method == "lm" else lbfgs
    result = solver(problem, start, stop or Stop(iterations=50, patience=8), problem.bounds, callback)
    return judged(problem, result)


def judged(problem: Identification, result: Result) -> Fit:
    """Covariance, singular values and blind directions at the point that was found."""
    unknowns, x = problem.unknowns, result.x
    r, J = problem.jacobian(x[None])
    r, J, P = r[0], J[0], unknowns.n
    own, rest = J[:, :P], J[:, P:]
    if rest.shape[1]:
        # what the free starts can explain says nothing about the parameters
        basis = np.linalg.qr(rest)[0]
        own = own - basis @ (basis.T @ own)
    # the triangle has the same values and directions, and does not grow with the number of residuals
    _, values, directions = np.linalg.svd(np.linalg.qr(own, mode="r"), full_matrices=True)
    values = np.concatenate([values, np.zeros(P - len(values))])
    seen = values > BLIND * max(values.max(), 1e-300)
    noise = float(r @ r) / max(len(r) - J.shape[1], 1)
    inverse = np.where(seen, 1.0 / np.where(seen, values, 1.0) ** 2, 0.0)
    slope = unknowns.slope(x[:P])
    covariance = slope @ (directions.T * inverse * noise) @ directions @ slope.T
    blind = directions[~seen]
    return Fit(
        model=unknowns.model_at(x[:P]),
        estimates=_estimates(unknowns, x[:P], covariance, blind),
        covariance=covariance,
        singular_values=values,
        unidentifiable=[_shares(unknowns, row) for row in blind],
        residual_rms=float(np.sqrt(np.mean(r**2))) if len(r) else 0.0,
        result=result,
        unknowns=unknowns,
    )


def _shares(unknowns: Unknowns, direction: np.ndarray) -> dict[str, float]:
    """The larger parts of a unit direction, by name."""
    direction = direction * np.sign(direction[np.argmax(np.abs(direction))])
    order = np.argsort(-np.abs(direction))
    return {unknowns.names[i]: float(direction[i]) for i in order if abs(direction[i]) > 0.05}


def _estimates(unknowns: Unknowns, x: np.ndarray, covariance: np.ndarray, blind: np.ndarray) -> list[Estimate]:
    deviation = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    if len(blind):
        # a number that a blind direction moves is not determined, however small its part
        moved = np.abs(unknowns.slope(x) @ blind.T)
        size = np.abs(unknowns.slope(x)).max(1, initial=1e-300)
        deviation = np.where((moved.max(1) > 1e-3 * size), np.nan, deviation)
    before, after = unknowns.physical(unknowns.start), unknowns.physical(x)
    low, high = unknowns.bounds
    at_bound = (x <= low) | (x >= high)
    return [
        Estimate(name, float(b), float(a), float(d), bool(e))
        for name, b, a, d, e in zip(unknowns.physical_names, before, after, deviation, at_bound, strict=True)
    ]


# the data -------------------------------------------------------------------------------------------------------------


def _check(model: Model, recordings: Sequence[Recording], settings: Settings) -> None:
    if settings.starts not in ("measured", "free"):
        raise InputError(f'starts must be "measured" or "free", but is {settings.starts!r}')
    if settings.mode not in ("auto", "forward", "reverse"):
        raise InputError(f'mode must be "auto", "forward" or "reverse", but is {settings.mode!r}')
    if not recordings:
        raise InputError("there is no recording to fit to")
    for k, r in enumerate(recordings):
        if r.q.shape != (r.samples, model.nq) or r.qd.shape != (r.samples, model.nv) or r.samples < 2:
            raise InputError(
                f"recording {k} must have q (samples, {model.nq}) and qd (samples, {model.nv}), two samples or more, but has "
                f"{r.q.shape} and {r.qd.shape}"
            )
        steps = (r.samples - 1) * r.every
        if r.u is not None and r.u.shape != (steps, model.nu):
            raise InputError(f"recording {k} must have u {(steps, model.nu)}, but has {r.u.shape}")
        if r.every != recordings[0].every:
            raise InputError("recordings must have the same number of time steps between samples")


def _cut(model: Model, recordings: Sequence[Recording], segment: int | None) -> _Pieces:
    """Segments of equal length; beyond the end of a recording there is no data and no control."""
    length = min(segment or 10**9, max(r.samples for r in recordings) - 1)
    if length < 1:
        raise InputError(f"a segment needs 1 sample or more after its start, but has {length}")
    every, parts, follows = recordings[0].every, [], []
    for r in recordings:
        firsts = list(range(0, r.samples - 1, length))
        follows += [(len(parts) + i, len(parts) + i + 1) for i in range(len(firsts) - 1)]
        parts += [_one_piece(model, r, first, length) for first in firsts]
    q, qd, u = (None if parts[0][i] is None else np.stack([p[i] for p in parts], axis=1) for i in range(3))
    q0, qd0 = q[0].copy(), qd[0].copy()
    if not (np.isfinite(q0).all() and np.isfinite(qd0).all()):
        raise InputError(
            "a segment starts where the state was not measured fully; fill in a guess, or choose another length"
        )
    return _Pieces(q0, qd0, u, length * every, np.arange(length + 1) * every, q, qd, follows)


def _one_piece(model: Model, r: Recording, first: int, length: int) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    last = min(first + length, r.samples - 1)
    pad = first + length - last
    q, qd = (np.pad(a[first : last + 1].astype(float), ((0, pad), (0, 0)), constant_values=np.nan) for a in (r.q, r.qd))
    if not model.nu:
        return q, qd, None
    u = np.zeros((length * r.every, model.nu)) if r.u is None else r.u[first * r.every : last * r.every].astype(float)
    return q, qd, np.pad(u, ((0, length * r.every - len(u)), (0, 0)))


def _start_basis(model: Model, q: np.ndarray) -> np.ndarray:
    """(..., nq, nv): how coordinates change with tangent coordinates. A quaternion may leave unit length."""
    plain_q, plain_dof, turns = _coordinates(model)
    basis = np.zeros((*q.shape[:-1], model.nq, model.nv))
    basis[..., plain_q, plain_dof] = 1.0
    for i, d in turns:
        basis[..., i : i + 4, d : d + 3] = 0.5 * np.swapaxes(_turn_basis(q[..., i : i + 4]), -1, -2)
    return basis


def _unit(model: Model, state: State) -> State:
    q = state.q.copy()
    for i in model.topology.quaternions:
        q[..., i : i + 4] /= np.linalg.norm(q[..., i : i + 4], axis=-1, keepdims=True)
    return State(q, state.qd)
