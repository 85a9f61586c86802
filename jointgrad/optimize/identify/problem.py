"""Differences between motions and recordings as residuals, with their exact derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...engine.run.rollout import known_motion, rollout
from ...engine.run.tangent_coordinates import coordinates, difference, rows_of, turn_basis
from ...engine.run.trajectory import Trajectory
from ...model.arrays import Model, State
from ...model.errors import InputError
from ...model.parameters import Entry, Inertia, Unknowns
from ..solvers import Tried, half_squares
from .arrow import Arrow
from .data import Pieces, Recording, Settings, check, cut
from .starts import smoothed_starts


class Identification:
    """Differences between motions and recordings as residuals of x: the unknown parameters, then free starts."""

    def __init__(
        self, model: Model, recordings: Sequence[Recording], entries: Sequence[Entry | Inertia], settings: Settings
    ) -> None:
        check(model, recordings, settings)
        self.model, self.settings, self.unknowns = model, settings, Unknowns(model, entries)
        self.recordings, self.entries = recordings, entries
        self.pieces = cut(model, recordings, settings.samples)
        self.nx = 2 * model.nv
        self.is_free = settings.start_kind == "free"
        self.is_linked = self.is_free and np.isfinite(settings.sigma_defect) and bool(self.pieces.follows)
        self.n = self.unknowns.n + (self.pieces.count * self.nx if self.is_free else 0)
        self.weight = 1.0 / deviations(model, settings)
        if self.is_free:
            _fill_starts(self.pieces, *smoothed_starts(model, self.pieces, self.weight))
        _check_starts(self.pieces)
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

    def look_at(self, first: int, last: int) -> None:
        """Only samples first to last of every segment count."""
        self.mask[:first] = self.mask[last + 1 :] = False

    def laid_out(self, rows: np.ndarray) -> np.ndarray:
        """(K, S, 2 nv, ...): what belongs to the residuals (m, ...), by sample, segment and channel; zero between."""
        out = np.zeros((*self.mask.shape, *rows.shape[1:]))
        out[self.mask] = rows
        return out

    def by_samples(self, rows: np.ndarray) -> np.ndarray:
        """(K, S, 2 nv, n) of (S, K * 2 nv, n)."""
        K, S, C = self.mask.shape
        return np.swapaxes(rows.reshape(S, K, C, -1), 0, 1)

    # starts -------------------------------------------------------------------------------------------------------------

    def starts_at(self, x: np.ndarray) -> State:
        """(S, ...): where segments start at one point x (n,)."""
        q0, qd0 = self.pieces.q0[None], self.pieces.qd0[None]
        if self.is_free:
            q0, qd0 = self._moved(x[None], q0, qd0)
        return _unit(self.model, State(q0[0], qd0[0]))

    def begin_at(self, starts: State) -> None:
        """Free starts are sought from these."""
        self.pieces.q0, self.pieces.qd0 = np.array(starts.q), np.array(starts.qd)

    def losses_by_segment(self, x: np.ndarray) -> np.ndarray:
        """(S,) at one point x (n,): half the sums of squares; infinite where a motion is lost."""
        motion = self._motion(x[None])
        r = self.laid_out(self._seen(motion.q, motion.qd, True)[0])
        return np.where(motion.status >= 0, np.inf, half_squares(by_segments(r)))

    def choose_starts(self, x: np.ndarray) -> None:
        """Free starts are sought from the recorded states or from what a smooth curve through the first samples has, whichever
        the model follows better: a recorded velocity may be little else than noise."""
        p = self.pieces
        both = [State(p.q0, p.qd0), smoothed_starts(self.model, p, self.weight)]
        losses = []
        for starts in both:
            self.begin_at(starts)
            losses.append(self.losses_by_segment(x))
        is_smooth = (losses[1] < losses[0])[:, None]
        self.begin_at(State(*(np.where(is_smooth, b, a) for a, b in zip(*both, strict=True))))

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
        return Tried(r, lambda rows: self._jacobians(x, motion, r, list(rows)))

    def _residuals(self, x: np.ndarray, motion: Trajectory, is_body: np.ndarray) -> np.ndarray:
        r = self._seen(motion.q, motion.qd, True)
        if self.is_linked:
            r = np.concatenate([r, self._defects(motion, x)], axis=1)
        lost = (motion.status >= 0).reshape(len(x), -1).any(-1)
        r[lost | ~is_body] = np.inf
        return r

    def _defects(self, motion: Trajectory, x: np.ndarray) -> np.ndarray:
        """(B, joints * 2 nv): the end of a segment less the start of the next, in tangent coordinates of the latter."""
        B, count = len(x), self.pieces.count
        ends = [a.reshape(B, count, -1) for a in motion.last]
        starts = [a.reshape(B, count, -1) for a in (motion.run.inputs.q, motion.run.inputs.qd)]
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
        found = tried.jacobians(range(len(x)))[0]
        return tried.residuals, np.stack([J.dense() if isinstance(J, Arrow) else J for J in found])

    def _jacobians(self, x: np.ndarray, motion: Trajectory, r: np.ndarray, rows: list[int]) -> tuple[Any, int, int]:
        """By tangents or passes back, whichever are fewer."""
        m = r.shape[1]
        is_reverse = self.settings.mode == "reverse" or (
            self.settings.mode == "auto" and not self.is_free and m < self.pieces.count * self.unknowns.n
        )
        if is_reverse and self.is_free:
            raise InputError('the Jacobian of free starts is by tangents: use mode="forward" or "auto"')
        copies = int(np.bincount(np.argwhere(self.mask)[:, 1]).max()) if is_reverse else self._forward_count()
        again = (self._again(x, motion, row, copies) for row in rows)
        if is_reverse:
            found = [self._pulled_back(x[[row]], own) for row, own in zip(rows, again, strict=True)]
        else:
            found = [self._pushed_forward(x[[row]], own, r[row]) for row, own in zip(rows, again, strict=True)]  # type: ignore[misc]
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

    def _pushed_forward(self, x: np.ndarray, motion: Trajectory, r: np.ndarray) -> np.ndarray | Arrow:
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
        dq, dqd = motion.tangent(params=params, **starts)[:2]  # type: ignore[arg-type]
        by_direction = [a.reshape(len(a), p.count, D, -1) for a in (dq, dqd)]
        columns = [np.swapaxes(a, 1, 2).reshape(len(a), D * p.count, -1) for a in by_direction]
        seen = self._seen(*columns, False)  # type: ignore[call-arg]
        if not self.is_free:
            return np.ascontiguousarray(seen.T)
        arrow = self._arrow(seen, r[: seen.shape[1]])
        if not self.is_linked:
            return arrow
        return np.concatenate([arrow.dense(), self._defect_rows(by_direction, motion, D)])

    def _arrow(self, seen: np.ndarray, r: np.ndarray) -> Arrow:
        """Derivatives (D, residuals) by parameters and starts, segment by segment."""
        wide = np.zeros((*self.mask.shape, len(seen)))
        wide[self.mask] = seen.T
        places = np.full(self.mask.shape, -1)
        places[self.mask] = np.arange(len(r))
        by_segment, places = (by_segments(a) for a in (wide, places))
        mask, P = places >= 0, self.unknowns.n
        return Arrow(by_segment[..., :P], by_segment[..., P:], mask, places[mask], r)

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
            tried = self.tried(x)
            pairs = zip(tried.residuals, tried.jacobians(range(len(x)))[0], strict=True)
            slopes = [J.pull(r) if isinstance(J, Arrow) else r @ J for r, J in pairs]
            return half_squares(tried.residuals), np.array(slopes)
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


def deviations(model: Model, settings: Settings) -> np.ndarray:
    """(2 nv,): of q and qd; one where nothing is said."""
    given = (1.0 if s is None else s for s in (settings.sigma_q, settings.sigma_qd))
    sigmas = np.concatenate([np.broadcast_to(np.asarray(s, float), (model.nv,)) for s in given])
    if not (sigmas > 0).all():
        raise InputError(f"standard deviations of measurements must be above zero, but there is {sigmas.min():g}")
    return sigmas


def by_segments(a: np.ndarray) -> np.ndarray:
    """(K, S, C, ...) as (S, K * C, ...)."""
    a = np.swapaxes(a, 0, 1)
    return a.reshape(len(a), -1, *a.shape[3:])


def _fill_starts(p: Pieces, q: np.ndarray, qd: np.ndarray) -> None:
    """What was not measured of a start is what the next samples make likely."""
    p.q0, p.qd0 = np.where(np.isfinite(p.q0), p.q0, q), np.where(np.isfinite(p.qd0), p.qd0, qd)


def _check_starts(p: Pieces) -> None:
    if not (np.isfinite(p.q0).all() and np.isfinite(p.qd0).all()):
        raise InputError(
            "a segment starts where the state was not measured fully; fill in a guess, or choose another length"
        )


def _start_basis(model: Model, q: np.ndarray) -> np.ndarray:
    """(..., nq, nv): how coordinates change with tangent coordinates. A quaternion may leave unit length."""
    plain_q, plain_dof, turns = coordinates(model)
    basis = np.zeros((*q.shape[:-1], model.nq, model.nv))
    basis[..., plain_q, plain_dof] = 1.0
    for i, d in turns:
        basis[..., i : i + 4, d : d + 3] = 0.5 * np.swapaxes(turn_basis(q[..., i : i + 4]), -1, -2)
    return basis


def _unit(model: Model, state: State) -> State:
    q = state.q.copy()
    for i in model.topology.quaternions:
        q[..., i : i + 4] /= np.linalg.norm(q[..., i : i + 4], axis=-1, keepdims=True)
    return State(q, state.qd)
