"""One step, forwards and backwards, without the cost of a rollout where a batch is small."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...model.arrays import Model, State
from .inputs import check_options
from .rollout import known_motion, rolled_out
from .runtime import (
    CHUNK,
    Borrowed,
    Worker,
    address,
    as_array,
    lanes_for,
)
from .schedule import every_step
from .trajectory import WRT, Gradient

if TYPE_CHECKING:
    pass


def step(
    model: Model, state: State, u: Any = None, force: Any = None, threads: int | None = None, on_nan: str = "raise"
) -> State:
    """The state one time step on. u (batch, nu); force (batch, n_links, 6) as MuJoCo's xfrc_applied: force, torque, world
    axes, at the centre of mass."""
    check_options(model, threads, on_nan)
    if force is None and _is_plain(model, state, u):
        with _stepper(model, len(state.q) if state.q.ndim == 2 else None) as one:
            if one.run(model, state, u):
                return State(one.q_last.copy(), one.qd_last.copy())
    controls = None if u is None else as_array("u", u)[None]
    motion = rolled_out(model, state, controls, force=force, steps=1, threads=threads, on_nan=on_nan, keep=False)
    run = motion.run
    return State(*(run.unbatched(x, 0) for x in run.last))


def _is_plain(model: Model, state: State, u: Any) -> bool:
    """Whether this is a small batch with nothing about it that needs a closer look."""
    if type(state) is not State or type(state.q) is not np.ndarray or type(state.qd) is not np.ndarray:
        return False
    q, qd, batch = state.q, state.qd, state.q.shape[:-1]
    if len(batch) > 1 or (batch and (batch[0] > CHUNK or batch[0] == 0)) or model.batch is not None or model.n_more:
        return False
    is_fit = q.shape == (*batch, model.nq) and qd.shape == (*batch, model.nv) and q.dtype == qd.dtype == np.float64
    return is_fit and (u is None or (type(u) is np.ndarray and u.shape == (*batch, model.nu) and u.dtype == np.float64))


class _Stepper:
    """Arrays of fixed address for single steps of a small batch: most of what a call costs is finding addresses."""

    def __init__(self, model: Model, batch: int | None) -> None:
        shape = () if batch is None else (batch,)
        self.q, self.qd, self.u = (np.zeros((*shape, n)) for n in (model.nq, model.nv, model.nu))
        self.q_last, self.qd_last = np.zeros_like(self.q), np.zeros_like(self.qd)
        self.status = np.full(batch or 1, -1, dtype=np.int64)
        self.worker = Worker(model, lanes_for(model, batch), 1, every_step())
        self.worker.set(
            first=0, last=batch or 1, batch=batch or 1, steps=1, interval=1, status=address(self.status),
            q0=address(self.q), qd0=address(self.qd), u=address(self.u), q_last=address(self.q_last),
            qd_last=address(self.qd_last),
        )  # fmt: skip

    def run(self, model: Model, state: State, u: np.ndarray | None) -> bool:
        """One step; False where the result is not finite."""
        self.q[...], self.qd[...] = state.q, state.qd
        self.u[...] = 0.0 if u is None else u
        self.worker.take_params(model)
        self.worker.run("rollout")
        if self.status.max() < 0:
            return True
        self.status[:] = -1
        return False


def _stepper(model: Model, batch: int | None) -> Borrowed:
    return Borrowed(
        model.workers.setdefault(("step", lanes_for(model, batch), batch), []), lambda: _Stepper(model, batch)
    )


def step_adjoint(
    model: Model,
    state: State,
    u: Any,
    q_bar: Any,
    qd_bar: Any,
    force: Any = None,
    threads: int | None = None,
    wrt: Sequence[str] = WRT,
    more_bar: Any = None,
) -> Gradient:
    """The reverse of `step`: from cotangents of the next state, shaped like it, to those of all that the step had."""
    if force is None and not {"force", "params"} & set(wrt) and _is_plain(model, state, u):
        with _reverse_stepper(model, len(state.q) if state.q.ndim == 2 else None) as one:
            if one.run(model, state, u, q_bar, qd_bar):
                found = [x.copy() for x in (one.q0_bar, one.qd0_bar, one.u_bar)]
                return Gradient(*found) if u is not None else Gradient(*found[:2])
    # the way back reads the state before the step alone
    q, qd = (np.stack([x, x]) for x in (state.q, state.qd))
    more = None if state.more is None else np.stack([state.more] * 2)
    controls = None if u is None else np.asarray(u)[None]
    motion = known_motion(model, (q, qd, more), controls, force=force, threads=threads)
    found_all = motion.backward(q_bar, qd_bar, wrt=wrt, more_bar=more_bar)
    return found_all if found_all.u is None else replace(found_all, u=found_all.u[0])


class _ReverseStepper:
    """The same for the way back through a single step, to the state and the controls."""

    def __init__(self, model: Model, batch: int | None) -> None:
        shape = () if batch is None else (batch,)
        self.q, self.qd, self.u = (np.zeros((*shape, n)) for n in (model.nq, model.nv, model.nu))
        self.q_bar, self.qd_bar = np.zeros_like(self.q), np.zeros_like(self.qd)
        self.q0_bar, self.qd0_bar, self.u_bar = (np.zeros_like(x) for x in (self.q, self.qd, self.u))
        self.worker = Worker(model, lanes_for(model, batch), 1, every_step())
        self.worker.set(
            first=0, last=batch or 1, batch=batch or 1, steps=1, interval=1, q0=address(self.q), qd0=address(self.qd),
            q=address(self.q), qd=address(self.qd), u=address(self.u), q_bar=address(self.q_bar),
            qd_bar=address(self.qd_bar), q0_bar=address(self.q0_bar), qd0_bar=address(self.qd0_bar),
            u_bar=address(self.u_bar),
        )  # fmt: skip

    def run(self, model: Model, state: State, u: np.ndarray | None, q_bar: Any, qd_bar: Any) -> bool:
        """Fills q0_bar, qd0_bar and u_bar; False where something does not fit or is not finite."""
        for bar, room in ((q_bar, self.q_bar), (qd_bar, self.qd_bar)):
            if bar is None:
                room[...] = 0.0
            elif type(bar) is np.ndarray and bar.shape == room.shape and bar.dtype == np.float64:
                room[...] = bar
            else:
                return False
        self.q[...], self.qd[...] = state.q, state.qd
        self.u[...] = 0.0 if u is None else u
        self.worker.take_params(model)
        self.worker.run("rollout_adjoint")
        # a cotangent that is not finite reaches the state before: q_bar through its sum, qd_bar through the mass matrix
        return math.isfinite(self.q0_bar.sum() + self.qd0_bar.sum())


def _reverse_stepper(model: Model, batch: int | None) -> Borrowed:
    key = ("step back", lanes_for(model, batch), batch)
    return Borrowed(model.workers.setdefault(key, []), lambda: _ReverseStepper(model, batch))
