"""Stepping by hand: a simulation that keeps its arrays, and a controller in Python that is asked while a motion runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...model.arguments import check_flag, checked_count, default_threads, shown
from ...model.arrays import Model, State, checked_model
from ...model.errors import InputError
from .hints import hint
from .inputs import check_options, further_state
from .rollout import known_motion, rolled_out
from .runtime import (
    CHUNK,
    Borrowed,
    Worker,
    address,
    as_array,
    check_finite,
    check_quaternions,
    checked_state,
    lanes_for,
    worker,
)
from .schedule import every_step
from .sharing import WORTH_A_WATCH, in_parallel, seconds_per_step
from .trajectory import Trajectory

# states that a recording has room for at first; it doubles
ROOM = 256


class Simulation:
    """A world that is stepped by hand: `sim.u[:] = ...; sim.step()`. What it needs is made once, and checked once.

    q (batch, nq), qd (batch, nv), u (batch, nu) and force (batch, n_links, 6; as in `jg.rollout`) are arrays of its own, which may
    be written to between steps; without a batch axis in the state they have none. record=True keeps every state, for
    `trajectory()`. on_nan: as in `jg.rollout`.
    """

    def __init__(
        self,
        model: Model,
        state: State | None = None,
        *,
        batch: int | None = None,
        record: bool = False,
        threads: int | None = None,
        on_nan: str = "raise",
    ) -> None:
        check_options(checked_model(model), threads, on_nan)
        check_flag("record", record)
        if state is not None and batch is not None:
            raise InputError("give a state or a batch, not both: a state has its own")
        self.model, self._raises, self._threads = model, on_nan == "raise", threads or default_threads()
        self._start = model.initial_state(model.batch if batch is None else batch) if state is None else state
        q, qd, self._is_batched = checked_state(model, self._start)
        n = len(q)
        self._q, self._qd, self._u = q.copy(), qd.copy(), np.zeros((n, model.nu))
        more = further_state(model, self._start, q.shape[:1] if self._is_batched else (), n)
        self._more = None if more is None else more.copy()
        if record and model.n_more:
            raise InputError("record=True keeps q and qd alone, but this model has further state: use jg.rollout")
        self._force: np.ndarray | None = None
        self._public = [x if self._is_batched else x[0] for x in (self._q, self._qd, self._u)]
        self._status = np.full(n, -1, dtype=np.int64)
        self._fine = self._status.tobytes()
        self._dt = float(np.ravel(model.params["world.dt"])[0])
        self._record = _Record(model, n) if record else None
        self._one = Worker(model, lanes_for(model, n), 1, every_step())
        self._one.take_params(model)
        self._describe(self._one, 0, n)
        self._is_small, self._is_new = 0 < n <= CHUNK, True
        self.reset()

    q = property(
        lambda self: self._public[0], lambda self, new: self._put(0, "q", new), doc="Coordinates, (batch, nq)."
    )
    qd = property(lambda self: self._public[1], lambda self, new: self._put(1, "qd", new), doc="Rates, (batch, nv).")
    u = property(lambda self: self._public[2], lambda self, new: self._put(2, "u", new), doc="Controls, (batch, nu).")

    def _put(self, which: int, name: str, new: Any) -> None:
        array = as_array(name, new)
        if array.shape not in ((), self._public[which].shape):
            raise InputError(f"{name} has shape {array.shape}, but must have {self._public[which].shape}")
        self._public[which][...] = array

    @property
    def force(self) -> np.ndarray:
        """Outside forces (batch, n_links, 6): force, torque, world axes, at the centre of mass; zero unless written to."""
        if self._force is None:
            self._force = np.zeros((len(self._q), self.model.n_links, 6))
            self._one.set(force=address(self._force))
        return self._force if self._is_batched else self._force[0]

    @property
    def time(self) -> float:
        """Seconds since the last reset (of the first environment, where time steps differ)."""
        return self.steps * self._dt

    @property
    def state(self) -> State:
        """The present state, a copy."""
        return State(self.q.copy(), self.qd.copy())

    def __repr__(self) -> str:
        batch = f", {len(self._q)} environments" if self._is_batched else ""
        return f"Simulation({self.model!r}{batch}, {self.steps} steps, t={self.time:.6g} s)"

    def reset(self, state: State | None = None) -> None:
        """Back to the state in which it began, or to another; time and what was recorded begin anew."""
        q, qd, _ = checked_state(self.model, self._start if state is None else state)
        if q.shape != self._q.shape:
            raise InputError(f"the state has {len(q)} environments, but the simulation has {len(self._q)}")
        for name, array in (("state.q", q), ("state.qd", qd)):
            check_finite(name, array)
        check_quaternions(self.model, q)
        self._q[...], self._qd[...] = q, qd
        if self._more is not None:
            start = self._start if state is None else state
            self._more[...] = further_state(self.model, start, q.shape[:1] if self._is_batched else (), len(q))
        self.steps = 0
        hint(self.model, self._q)
        if self._record is not None:
            self._record.forget()

    def step(self, steps: int = 1) -> None:
        """So many time steps under the controls and forces as they are; q and qd are the new state."""
        if steps != 1:
            checked_count("steps", steps, 1)
        keep = None if self._record is None else self._record.room_for(self._q, self._qd, self._u, self._force, steps)
        if steps == 1 and self._is_small:
            if keep is not None:
                self._one.set(q=keep[0], qd=keep[1])
            self._one.run("rollout")
            if self._is_new:
                self._one.take_params(self.model)  # they are assembled now
                self._is_new = False
        else:
            self._run(steps, keep)
        if self._status.tobytes() != self._fine:
            self._diverged(steps)
        self.steps += steps
        if self._record is not None:
            self._record.left(self._q, self._qd)

    def _run(self, steps: int, keep: tuple[int, int] | None) -> None:
        """Many steps, or with what is kept, or on several threads."""
        n = len(self._q)
        u = self._u if steps == 1 else np.repeat(self._u[None], steps, 0)
        row = {} if keep is None else {"q": keep[0], "qd": keep[1]}

        def describe(one: Worker, first: int, last: int) -> None:
            one.take_params(self.model)
            self._describe(one, first, last)
            one.set(steps=steps, u=address(u), **row)

        is_long = n * steps * seconds_per_step(self.model) >= WORTH_A_WATCH
        if self._is_small and not is_long:
            describe(self._one, 0, n)
            self._one.run("rollout")
        else:
            in_parallel("rollout", self.model, n, steps, self._threads, self._lend, describe)
        self._describe(self._one, 0, n)

    def _lend(self) -> Borrowed:
        return worker(self.model, n_lanes=lanes_for(self.model, len(self._q)))

    def _describe(self, one: Worker, first: int, last: int) -> None:
        """In place: the next state goes where the present one is."""
        one.integers("output")[:] = 0
        one.set(
            first=first, last=last, batch=len(self._q), steps=1, interval=1, status=address(self._status), q=0, qd=0,
            q0=address(self._q), qd0=address(self._qd), q_last=address(self._q), qd_last=address(self._qd),
            more0=address(self._more), more_last=address(self._more),
            u=address(self._u) if self.model.nu else 0, force=address(self._force), force_step=0,
            wants_outputs=0, wants_wrenches=0, settling=0,
        )  # fmt: skip

    def _diverged(self, steps: int) -> None:
        """Environments that left the finite numbers stay where they were."""
        self._status[:] = -1
        if not self._raises:
            return
        for name in ("q", "qd", "u", "force"):
            check_finite(f"sim.{name}", getattr(self, f"_{name}"))
        check_quaternions(self.model, self._q)
        # from where they are, the same step says what went wrong
        u = np.repeat(self._u[None], steps, 0) if self.model.nu else None
        rolled_out(self.model, State(self._q, self._qd, self._more), u, steps, self._force, keep=False)

    def trajectory(self) -> Trajectory:
        """What was stepped since the last reset, as a motion like those of `jg.rollout`: to be saved, seen, differentiated. A state
        that was written to by hand begins a motion."""
        if self._record is None:
            raise InputError("nothing was recorded: make it with record=True")
        found = self._record.motion(self._q, self._qd)
        q, qd, u, force = (x if x is None or self._is_batched else x[:, 0] for x in found)
        controls = u if self.model.nu else None
        return known_motion(self.model, (q, qd), controls, force=force, threads=self._threads)


class _Record:
    """States and controls of a motion so far, in arrays that grow. The last state is not in it: it is where the simulation is."""

    def __init__(self, model: Model, batch: int) -> None:
        self.arrays = {n: np.empty((ROOM, batch, w)) for n, w in (("q", model.nq), ("qd", model.nv), ("u", model.nu))}
        self.force: np.ndarray | None = None
        self._find()
        self.forget()

    def _find(self) -> None:
        """Where the states are, and how far from one to the next."""
        self.places = [(address(a), a[0].nbytes) for a in (self.arrays["q"], self.arrays["qd"])]

    def forget(self) -> None:
        self.count, self.force, self.seen = 0, None, b""

    def left(self, q: np.ndarray, qd: np.ndarray) -> None:
        """Where a step ended."""
        self.seen = q.tobytes() + qd.tobytes()

    def room_for(
        self, q: np.ndarray, qd: np.ndarray, u: np.ndarray, force: np.ndarray | None, steps: int
    ) -> tuple[int, int]:
        """Keeps the controls of the next steps; returns where the engine shall write their first states."""
        if self.count and q.tobytes() + qd.tobytes() != self.seen:
            self.forget()  # somebody has set the state
        first, self.count = self.count, self.count + steps
        if self.count > len(self.arrays["q"]):
            for name, array in self.arrays.items():
                self.arrays[name] = np.empty((2 * self.count, *array.shape[1:]))
                self.arrays[name][:first] = array[:first]
            self._find()
        self.arrays["u"][first : self.count] = u
        self._keep_force(force, first)
        (of_q, q_row), (of_qd, qd_row) = self.places
        return of_q + first * q_row, of_qd + first * qd_row

    def _keep_force(self, force: np.ndarray | None, first: int) -> None:
        if force is None:
            return
        if self.force is None or len(self.force) < self.count:
            grown = np.zeros((len(self.arrays["q"]), *force.shape))
            if self.force is not None:
                grown[:first] = self.force[:first]
            self.force = grown
        self.force[first : self.count] = force

    def motion(self, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
        """States (T+1, ...), controls and forces (T, ...)."""
        states = [
            np.concatenate([self.arrays[name][: self.count], last[None]]) for name, last in (("q", q), ("qd", qd))
        ]
        force = None if self.force is None else self.force[: self.count]
        return states[0], states[1], self.arrays["u"][: self.count], force


Controller = Callable[[State, float], Any]


def controlled(
    model: Model, state: State, controller: Controller, steps: int | None, hold: int, force: Any, threads: int | None,
    on_nan: str,
) -> np.ndarray:  # fmt: skip
    """Controls (T, batch, nu) that a function of state and time gives, asked every `hold` steps while the motion runs."""
    if steps is None:
        raise InputError("a controller has no end of its own: give steps=...")
    steps, hold = checked_count("steps", steps), checked_count("hold", hold, 1)
    if steps % hold:
        raise InputError(f"steps={steps} is no multiple of hold={hold}")
    sim = Simulation(model, state, threads=threads, on_nan=on_nan)
    pushes = None if force is None else np.asarray(force, dtype=np.float64)
    if pushes is not None and pushes.ndim > sim.force.ndim:
        raise InputError("with a controller, outside forces stay the same: force has a time axis")
    if pushes is not None:
        sim.force[...] = pushes
    found = np.empty((steps // hold, *sim.u.shape))
    for row in found:
        row[...] = _asked(controller, sim)
        sim.u[...] = row
        sim.step(hold)
    return found


def _asked(controller: Controller, sim: Simulation) -> np.ndarray:
    array = as_array("what the controller returns", controller(sim.state, sim.time))
    if array.shape != sim.u.shape:
        raise InputError(f"the controller returned shape {array.shape}, but must return {sim.u.shape}: {shown(array)}")
    check_finite("what the controller returned", array)
    return array
