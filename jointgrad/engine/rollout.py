"""Step and rollout: many steps of many environments, and their exact derivatives both ways."""

from __future__ import annotations

import functools
import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..model.arguments import (
    byte_count,
    check_flag,
    checked_count,
    checked_mapping,
    checked_names,
    default_threads,
    shown,
)
from ..model.arrays import PARAMS as NAMED_PARAMS
from ..model.arrays import Compared, Model, State, checked_model
from ..model.errors import InputError, SimulationError, UnsettledWarning, warn_caller
from ..model.renamed import ByName
from ..model.tables import table
from .contact_records import source_names
from .gradients import MEANINGS, Exact, Meaning
from .gradients.segments import Bars
from .hints import hint
from .runtime import (
    CHUNK,
    Lent,
    Worker,
    address,
    as_array,
    check_finite,
    check_quaternions,
    checked,
    checked_state,
    controls_hint,
    lanes_for,
    worker,
)
from .schedule import Schedule, every_step, planned
from .sharing import Describe, Lend, in_parallel
from .workspace import OUTPUT

if TYPE_CHECKING:
    from .certificate import Certificate

OUTPUTS = {
    "link.position": (3,), "link.rotation": (3, 3), "link.velocity": (6,), "contact.force": (3,), "contact.torque": (3,),
}  # fmt: skip
# of these, what belongs to the step that led to a state
LOADS = ("contact.force", "contact.torque")
WRT = ("state", "u", "force", "params")
EXACT = Exact()


@dataclass(frozen=True, eq=False)
class Gradient(Compared):
    """Cotangents of everything a rollout started from; what was not asked for is None. report: what a meaning of the gradient has
    to say of how it came to it (docs/gradients.md), by name."""

    q: np.ndarray = None  # type: ignore[assignment]
    qd: np.ndarray = None  # type: ignore[assignment]
    u: np.ndarray = None  # type: ignore[assignment]
    force: np.ndarray = None  # type: ignore[assignment]
    params: Mapping[str, np.ndarray] = field(default_factory=dict)
    report: Mapping[str, Any] = field(default_factory=dict)

    def _rows(self) -> list[tuple[str, str]]:
        """Shape and largest number of every cotangent that is there and not zero."""
        found: dict[str, Any] = {name: getattr(self, name) for name in ("q", "qd", "u", "force")} | dict(self.params)
        sizes = {name: float(np.abs(x).max(initial=0.0)) for name, x in found.items() if x is not None}
        return [(name, f"{found[name].shape}, at most {size:.3g}") for name, size in sizes.items() if size]

    def __repr__(self) -> str:
        rows = self._rows()
        return f"Gradient({'; '.join(f'{name} {said}' for name, said in rows[:8])}{' ...' if len(rows) > 8 else ''})"

    def _repr_html_(self) -> str:
        return table("Gradient: shapes and largest numbers", self._rows())


NOTHING_TO_SETTLE = np.zeros((0, 3))
# bytes up to which an array is copied
SMALL = 1 << 17
# numbers in a row of a fingerprint
ROW = 509


def fingerprint(array: np.ndarray) -> tuple[int, ...]:
    """Of all bits of an array: sums of its columns as whole numbers. The width is prime, so that what moves to another place of a
    robot, an environment or a step is in another column."""
    bits = array.reshape(-1).view(np.uint64)
    whole = bits.size // ROW * ROW
    return tuple(zlib.crc32(part.data) for part in (bits[:whole].reshape(-1, ROW).sum(0), bits[whole:]))


@dataclass(slots=True)
class Inputs:
    """What a rollout starts from, all with a batch axis."""

    q: np.ndarray
    qd: np.ndarray
    u: np.ndarray | None
    force: np.ndarray | None
    steps: int
    is_batched: bool
    hold: int = 1  # steps over which a control that was given is held; u here has a row per step
    prints: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # of arrays that somebody else could write to

    @property
    def batch(self) -> int:
        return self.q.shape[0]

    def guarded(self, start: tuple[np.ndarray, np.ndarray] | None, u: Any) -> Inputs:
        """Safe from those who write to their arrays afterwards: small ones are copied, and a change of a large one will be noticed.
        (100 steps of 256 Laikagos, controls of 2.5 MB: to copy them costs 10 %, to notice a change 1 %.) start: q and qd where
        they are kept already; u: as given, or None."""
        kept: dict[str, Any] = {"q": self.q, "qd": self.qd, "u": self.u, "force": self.force}
        prints = {}
        names = ["force"] if u is None else ["u", "force"]
        if start is None:
            names += "q", "qd"
        else:
            kept["q"], kept["qd"] = start
        for name in names:
            array = kept[name]
            if array is None:
                continue
            if array.nbytes <= SMALL:
                kept[name] = array.copy()
            else:
                prints[name] = fingerprint(array)
        return Inputs(**kept, steps=self.steps, is_batched=self.is_batched, hold=self.hold, prints=prints)

    def check(self) -> None:
        for name, before in self.prints.items():
            if fingerprint(getattr(self, name)) != before:
                word = f"state.{name}" if name.startswith("q") else name
                raise InputError(
                    f"{word} was changed in place after the rollout, which needs it as it was for derivatives: roll out with "
                    f"{word}.copy()"
                )

    @property
    def force_step(self) -> int:
        """Bytes from one step's outside forces to the next; 0 where they stay the same."""
        return 0 if self.force is None or self.force.ndim == 3 else 8 * int(np.prod(self.force.shape[1:]))


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
    return State(*(motion._public(x, 0) for x in motion._last_state()))


def _is_plain(model: Model, state: State, u: Any) -> bool:
    """Whether this is a small batch with nothing about it that needs a closer look."""
    if type(state) is not State or type(state.q) is not np.ndarray or type(state.qd) is not np.ndarray:
        return False
    q, qd, batch = state.q, state.qd, state.q.shape[:-1]
    if len(batch) > 1 or (batch and (batch[0] > CHUNK or batch[0] == 0)) or model.batch is not None:
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


def _stepper(model: Model, batch: int | None) -> Lent:
    return Lent(model.workers.setdefault(("step", lanes_for(model, batch), batch), []), lambda: _Stepper(model, batch))


def step_adjoint(
    model: Model,
    state: State,
    u: Any,
    q_bar: Any,
    qd_bar: Any,
    force: Any = None,
    threads: int | None = None,
    wrt: Sequence[str] = WRT,
) -> Gradient:
    """The reverse of `step`: from cotangents of the next state, shaped like it, to those of all that the step had."""
    if force is None and not {"force", "params"} & set(wrt) and _is_plain(model, state, u):
        with _reverse_stepper(model, len(state.q) if state.q.ndim == 2 else None) as one:
            if one.run(model, state, u, q_bar, qd_bar):
                found = [x.copy() for x in (one.q0_bar, one.qd0_bar, one.u_bar)]
                return Gradient(*found) if u is not None else Gradient(*found[:2])
    # the way back reads the state before the step alone
    q, qd = (np.stack([x, x]) for x in (state.q, state.qd))
    motion = known_motion(model, (q, qd), None if u is None else np.asarray(u)[None], force=force, threads=threads)
    found_all = motion.backward(q_bar, qd_bar, wrt=wrt)
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


def _reverse_stepper(model: Model, batch: int | None) -> Lent:
    key = ("step back", lanes_for(model, batch), batch)
    return Lent(model.workers.setdefault(key, []), lambda: _ReverseStepper(model, batch))


def rollout(
    model: Model,
    state: State,
    u: Any = None,
    *,
    steps: int | None = None,
    hold: int = 1,
    force: Any = None,
    outputs: Sequence[str] = (),
    threads: int | None = None,
    memory: int | str | None = None,
    on_nan: str = "raise",
    keep: bool = True,
    gradient: Meaning = EXACT,
) -> Trajectory:
    """T steps from a state under controls u (T, batch, nu), or uncontrolled for `steps` steps.

    u may be a controller in Python instead: a function of State and time (s) that returns controls (batch, nu); it is asked every
    `hold` steps, for all environments at once. Derivatives are those at the controls that it gave: `motion.u` is a given there.

    hold: each control is held over so many steps, so that there are hold T of them; cotangents and directions of u are
    (T, batch, nu) too. force: (steps, batch, n_links, 6), or without the time axis where it stays the same. outputs: names from
    OUTPUTS; contact.force and contact.torque (about the centre of mass) are those of the step that led to a state, zero for
    the first. memory: what may be kept for the way back, such as "64 MB". on_nan: "raise" names what went wrong; "freeze"
    keeps that environment's last good state, from which later steps try again. keep=False keeps the last state only.
    gradient: what derivatives of this motion mean, `jg.Exact()`, `jg.MovingImpacts()`, `jg.Smoothed(width)`,
    `jg.Randomised(sigma, samples)` or `jg.Truncated(bound)` (docs/gradients.md).

    What its derivatives need is safe: the arrays that a trajectory shows are read-only, and of those it was given (state, u,
    force) small ones are copied, while to change a large one in place before derivatives are taken is an error.
    """
    check_meaning(gradient)
    if callable(u):
        from .simulation import controlled

        u, steps = controlled(model, state, u, steps, hold, force, threads, on_nan), None
    motion = rolled_out(
        model, state, u, steps, force, outputs, threads, memory, on_nan, keep, is_guarded=True, hold=hold
    )
    motion.gradient = gradient
    return motion


def rolled_out(
    model: Model, state: State, u: Any, steps: int | None, force: Any, outputs: Sequence[str] = (), threads: int | None = None,
    memory: int | str | None = None, on_nan: str = "raise", keep: bool = True, is_guarded: bool = False, warns: bool = True,
    hold: int = 1,
) -> Trajectory:  # fmt: skip
    """The same on the caller's own arrays, for those who see to it that nobody writes to them. Copies that we make of a user's
    motion do not warn: that one did, and environments of copies have other numbers."""
    check_options(model, threads, on_nan)
    check_flag("keep", keep)
    budget = byte_count(memory)
    inputs = _checked_inputs(model, state, u, steps, force, hold)
    n_threads = threads or (default_threads() if inputs.batch > CHUNK else 1)
    outputs = checked_names("outputs", outputs, OUTPUTS, "output")
    schedule = every_step()
    if memory is not None and keep:
        packed = lanes_for(model, inputs.batch) * min(n_threads, -(-inputs.batch // CHUNK))
        schedule = planned(inputs.steps, inputs.batch, 8 * (model.nq + model.nv), packed, budget)
    trajectory = Trajectory(model, inputs, schedule if keep else None, tuple(outputs), n_threads)
    if trajectory.status.max(initial=-1) >= 0:
        # something is not finite: either it came in so, or the motion blew up
        _check_values(model, inputs)
        if on_nan == "raise":
            raise SimulationError(_explanation(trajectory))
    if warns:
        hint(model, inputs.q)
        _warn_of_sweeps(trajectory)
    if is_guarded:
        trajectory._inputs = inputs.guarded((trajectory._q[0], trajectory._qd[0]) if keep else None, u)
    return trajectory


def known_motion(
    model: Model, states: tuple[Any, Any], u: Any = None, *, force: Any = None, threads: int | None = None
) -> Trajectory:
    """A motion that was rolled out before, from its states q (T+1, batch, nq) and qd: for going back, nothing is run."""
    q, qd = (np.asarray(x) for x in states)
    inputs = _checked_inputs(model, State(q[0], qd[0]), u, len(q) - 1, force)
    wide = [checked(name, x, (*x.shape[:-1], x.shape[-1])).copy() for name, x in (("q", q), ("qd", qd))]
    found = tuple(x if inputs.is_batched else x[:, None] for x in wide)
    n_threads = threads or (default_threads() if inputs.batch > CHUNK else 1)
    return Trajectory(
        model, inputs.guarded((found[0][0], found[1][0]), u), every_step(), (), n_threads, known=(found[0], found[1])
    )


def check_meaning(gradient: Any) -> None:
    if not isinstance(gradient, MEANINGS):
        known = ", ".join(f"jg.{one.__name__}" for one in MEANINGS)
        raise InputError(f"gradient must be one of {known}, called with its arguments, but is {shown(gradient)}")


def check_options(model: Model, threads: int | None, on_nan: str) -> None:
    if type(model) is not Model:
        checked_model(model)
    if threads is not None:
        checked_count("threads", threads, 1)
    if type(on_nan) is not str or on_nan not in ("raise", "freeze"):
        raise InputError(f'on_nan must be "raise" or "freeze", but is {shown(on_nan)}')


def _check_values(model: Model, inputs: Inputs) -> None:
    for name in ("q", "qd", "u", "force"):
        check_finite(f"state.{name}" if name.startswith("q") else name, getattr(inputs, name))
    check_quaternions(model, inputs.q)


def _checked_inputs(model: Model, state: State, u: Any, steps: int | None, force: Any, hold: int = 1) -> Inputs:
    q, qd, is_batched = checked_state(model, state)
    batch = (q.shape[0],) if is_batched else ()
    if steps is not None:
        steps = checked_count("steps", steps)
    hold = checked_hold(hold, steps, u is not None)
    if u is None:
        if steps is None:
            raise InputError("rollout needs controls u, or steps=... to run without")
        if model.nu:
            u = np.zeros((steps, *batch, model.nu))
    if u is not None:
        rows = "steps" if steps is None else steps // hold
        u = checked("u", u, (rows, *batch, model.nu), functools.partial(controls_hint, model))
        steps = hold * u.shape[0]
        u = np.repeat(u.reshape(-1, q.shape[0], model.nu), hold, 0) if model.nu and hold > 1 else u
        u = u.reshape(steps, q.shape[0], model.nu) if model.nu else None
    if force is not None:
        ndim = len(batch) + 2
        shape: tuple = (*batch, model.n_links, 6) if np.ndim(force) == ndim else (steps, *batch, model.n_links, 6)
        force = checked("force", force, shape)
        force = force.reshape(*force.shape[: force.ndim - ndim], q.shape[0], model.n_links, 6)
    return Inputs(q, qd, u, force, int(steps or 0), is_batched, hold)


def checked_hold(hold: Any, steps: int | None, has_controls: bool) -> int:
    """Steps over which controls are held."""
    hold = checked_count("hold", hold, 1)
    if hold > 1 and not has_controls:
        raise InputError("hold is for controls, but u is None")
    if steps is not None and checked_count("steps", steps) % hold:
        raise InputError(f"steps={steps} is no multiple of hold={hold}")
    return hold


def empty_outputs(model: Model, inputs: Inputs, names: Iterable[str]) -> dict[str, np.ndarray]:
    """Room for named outputs; nothing has touched before the first step."""
    shape = (inputs.steps + 1, inputs.batch, model.n_links)
    found = {o: np.empty((*shape, *OUTPUTS[o])) for o in names}
    for name in LOADS:
        if name in found:
            found[name][0] = 0.0
    return found


def wanted(names: Iterable[str]) -> dict[str, int]:
    """Which outputs a call is about: of states, and of steps."""
    names = tuple(names)
    is_load = [name in LOADS for name in names]
    return {"wants_outputs": int(not all(is_load)), "wants_loads": int(any(is_load))}


class Trajectory:
    """A motion: states over time, axes (time, batch, value), and its derivatives."""

    def __init__(
        self,
        model: Model,
        inputs: Inputs,
        schedule: Schedule | None,
        outputs: tuple[str, ...],
        threads: int,
        known: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        """Runs the motion, unless all its states are `known`."""
        self.model, self._inputs, self._schedule, self._threads = model, inputs, schedule, threads
        self.gradient: Meaning = EXACT
        shape = (inputs.batch,)
        self.status = np.empty(shape, dtype=np.int64)
        self.status.fill(-1)
        self._settling = np.zeros((*shape, 3)) if model.topology.tree["has_impulses"] else NOTHING_TO_SETTLE
        if known is not None:
            self._q, self._qd = known
            self._q_last, self._qd_last, self._outputs = self._q[-1], self._qd[-1], {}
            return
        rows = schedule.rows(inputs.steps) if schedule is not None else 0
        self._q, self._qd = np.empty((rows, *shape, model.nq)), np.empty((rows, *shape, model.nv))
        if schedule is not None and schedule.interval == 1:
            self._q_last, self._qd_last = self._q[-1], self._qd[-1]
        else:
            self._q_last, self._qd_last = np.empty((*shape, model.nq)), np.empty((*shape, model.nv))
        self._outputs = empty_outputs(model, inputs, outputs)
        n_lanes = lanes_for(model, inputs.batch)
        self._pass("rollout", lambda: worker(model, n_lanes=n_lanes), self._describe_run)

    def __repr__(self) -> str:
        i, lost = self._inputs, int((self.status >= 0).sum())
        many = f", {i.batch} environments" if i.is_batched else ""
        frozen = f", {lost} of them frozen" if lost else ""
        seconds = i.steps * float(np.ravel(self.model.params["world.dt"])[0])
        return f"Trajectory({i.steps} steps, {seconds:.4g} s{many}{frozen}, nq={self.model.nq}, nv={self.model.nv})"

    def _repr_html_(self) -> str:
        last = self.last
        return table(repr(self), (
            ("of", repr(self.model)), ("q", (self.steps + 1, *last.q.shape)), ("qd", (self.steps + 1, *last.qd.shape)),
            ("outputs", ", ".join(self._outputs) or "none asked for"),
            ("fastest at the end", f"{np.abs(last.qd).max(initial=0.0):.3g}"),
            ("to see it", "jg.view(model, motion), or motion.save('run.npz') and jointgrad replay"),
        ))  # fmt: skip

    def _pass(self, kernel: str, lend: Lend, describe: Describe) -> None:
        """Run a kernel over this motion."""
        in_parallel(kernel, self.model, self._inputs.batch, self._inputs.steps, self._threads, lend, describe)

    def _describe_run(self, one: Worker, first: int, last: int) -> None:
        one.take_params(self.model)
        self._describe(one, first, last)
        one.integers("output")[:] = [address(self._outputs.get(o)) for o in OUTPUTS] if self._outputs else 0
        one.set(
            q=address(self._q) if len(self._q) else 0, qd=address(self._qd), status=address(self.status),
            settling=address(self._settling) if len(self._settling) else 0,
            **wanted(self._outputs), interval=self._schedule.interval if self._schedule else 1,
        )  # fmt: skip

    @property
    def unsolved(self) -> np.ndarray:
        """Per environment, steps whose contact problem Newton's method did not solve (of contact=Implicit; else none): their
        gradient is not exact."""
        return self._newton()[..., 0]

    @property
    def iterations(self) -> np.ndarray:
        """Per environment, iterations of Newton's method (of contact=Implicit; else none): in all steps, and in the worst."""
        return self._newton()[..., 1:]

    def _newton(self) -> np.ndarray:
        has = self.model.topology.tree["is_implicit"] and len(self._settling)
        found = (self._settling if has else np.zeros((self._inputs.batch, 3))).astype(int)
        return found if self._inputs.is_batched else found[0]

    def _describe(self, one: Worker, first: int, last: int) -> None:
        """What every pass over this motion has in common."""
        i = self._inputs
        one.set(
            first=first, last=last, batch=i.batch, steps=i.steps, q0=address(i.q), qd0=address(i.qd), u=address(i.u),
            force=address(i.force), force_step=i.force_step, q_last=address(self._q_last), qd_last=address(self._qd_last),
            wants_outputs=0, wants_loads=0, settling=0,
        )  # fmt: skip

    def _public(self, array: np.ndarray, axis: int = 1) -> np.ndarray:
        """Without the batch axis where the caller had none."""
        return array if self._inputs.is_batched else np.squeeze(array, axis)

    def _shown(self, array: np.ndarray, axis: int = 1) -> np.ndarray:
        """What the way back needs, for all to read and nobody to write to."""
        view = self._public(array, axis).view()
        view.flags.writeable = False
        return view

    @property
    def steps(self) -> int:
        """Time steps T."""
        return self._inputs.steps

    @property
    def last(self) -> State:
        """The state after the last step: q (batch, nq), qd (batch, nv)."""
        return State(*(self._shown(x, 0) for x in self._last_state()))

    def _last_state(self) -> tuple[np.ndarray, np.ndarray]:
        return self._q_last, self._qd_last

    @property
    def q(self) -> np.ndarray:
        """(T+1, batch, nq); recomputed when a memory budget did not let every state be kept."""
        return self._shown(self._all_states()[0])

    @property
    def qd(self) -> np.ndarray:
        """Rates (T+1, batch, nv); without a batch axis in, without it out."""
        return self._shown(self._all_states()[1])

    @property
    def u(self) -> np.ndarray | None:
        """The controls it ran under, (T, batch, nu); None where the model has none."""
        return None if self._inputs.u is None else self._shown(self._inputs.u)

    @property
    def force(self) -> np.ndarray | None:
        """The outside forces it ran under, (T, batch, n_links, 6), without the time axis where they stayed the same."""
        given = self._inputs.force
        return None if given is None else self._shown(given, 0 if given.ndim == 3 else 1)

    def _all_states(self) -> tuple[np.ndarray, np.ndarray]:
        if self._schedule is not None and self._schedule.interval == 1:
            return self._q, self._qd
        self._inputs.check()
        whole = Trajectory(self.model, self._inputs, every_step(), (), self._threads)
        return whole._q, whole._qd

    @property
    def outputs(self) -> Mapping[str, np.ndarray]:
        """Named outputs, each (T+1, batch, n_links, ...)."""
        return {name: self._shown(array) for name, array in self._outputs.items()}

    def save(self, path: Any, gradient: Gradient | None = None, environments: int = 16, fps: float = 60.0) -> None:
        """Write the motion, and what is needed to see it again, as an .npz file for `jointgrad replay`: every state of every
        environment, and pictures per second of the first few."""
        from ..viewer.replay import save

        save(self.model, self, path, gradient=gradient, environments=environments, fps=fps)

    # reverse ------------------------------------------------------------------------------------------------------------

    def backward(
        self,
        q_bar: Any = None,
        qd_bar: Any = None,
        bars: Mapping[str, Any] | None = None,
        wrt: Sequence[str] = WRT,
    ) -> Gradient:
        """Cotangents of the start, the controls, the outside forces and the parameters.

        q_bar (T+1, batch, nq) and qd_bar belong to every state, or without the time axis to the last one; bars holds
        cotangents of named outputs. A shared parameter's cotangent is summed over the batch.
        """
        self._inputs.check()
        if self._schedule is None:
            raise InputError("this trajectory kept no states to go back through: roll out with keep=True")
        wrt = checked_names("wrt", wrt, WRT)
        state_bars, each = self._state_bars(q_bar, qd_bar)
        output_bars = self._output_bars(checked_mapping("bars", bars))
        found = self.gradient.pulled_back(self, Bars(state_bars[0], state_bars[1], each, output_bars), wrt)
        hold = self._inputs.hold
        if hold == 1 or found.u is None:
            return found
        # a control that was held has what all its steps say
        return replace(found, u=found.u.reshape(-1, hold, *found.u.shape[1:]).sum(1))

    def _state_bars(self, q_bar: Any, qd_bar: Any) -> tuple[list[np.ndarray | None], bool]:
        i, model = self._inputs, self.model
        batch = (i.batch,) if i.is_batched else ()
        given = [("q_bar", q_bar, model.nq), ("qd_bar", qd_bar, model.nv)]
        each = any(np.ndim(x) == len(batch) + 2 for _, x, _ in given if x is not None)
        found: list[np.ndarray | None] = []
        for name, value, n in given:
            if value is None:
                found.append(None)
                continue
            whole = np.ndim(value) == len(batch) + 2
            array = checked(name, value, ((i.steps + 1,) if whole else ()) + (*batch, n))
            check_finite(name, array)
            if each and not whole:
                wide = np.zeros((i.steps + 1, *array.shape))
                wide[-1] = array
                array = wide
            found.append(array)
        return found, each

    def _output_bars(self, bars: Mapping[str, Any]) -> dict[str, np.ndarray]:
        i = self._inputs
        batch = (i.batch,) if i.is_batched else ()
        checked_names("bars", tuple(bars), OUTPUTS, "output")
        found = {}
        for name, bar in bars.items():
            shape = (i.steps + 1, *batch, self.model.n_links, *OUTPUTS[name])
            found[name] = checked(f'bars["{name}"]', bar, shape)
            check_finite(f'bars["{name}"]', found[name])
        return found

    # forward mode -------------------------------------------------------------------------------------------------------

    def tangent(
        self,
        q: Any = None,
        qd: Any = None,
        u: Any = None,
        force: Any = None,
        params: Mapping[str, Any] | None = None,
        outputs: Sequence[str] | None = None,
    ) -> Any:
        """Directional derivatives of all states, (q, qd), for directions of the start, the controls, outside forces,
        parameters. With names of outputs, their derivatives come third, in a dict."""
        self._inputs.check()
        names = checked_names("outputs", () if outputs is None else outputs, OUTPUTS, "output")
        dots = {"q": q, "qd": qd, "u": self._held(u), "force": force}
        dq, dqd, found = self.gradient.pushed_forward(self, dots, checked_mapping("params", params), names)
        return (dq, dqd) if outputs is None else (dq, dqd, found)

    def _held(self, u: Any) -> Any:
        """A direction of controls with a row for every step."""
        i = self._inputs
        if u is None or i.hold == 1:
            return u
        batch = (i.batch,) if i.is_batched else ()
        return np.repeat(checked("u", u, (i.steps // i.hold, *batch, self.model.nu)), i.hold, 0)

    # trust --------------------------------------------------------------------------------------------------------------

    def certificate(self, distance: float = 5e-3) -> Certificate:
        """How far this motion was from one with other contacts, and whether its gradient is worth following over a distance of
        the start (m, rad; m/s and rad/s of its velocities)."""
        from .certificate import certificate_of

        self._inputs.check()
        return certificate_of(self, distance)


def exact_gradient(trajectory: Trajectory, bars: Bars, wrt: Sequence[str]) -> Gradient:
    """Of what was computed."""
    return _Reverse(trajectory, bars, wrt).gradient()


class _Reverse:
    """One pass back: the arrays that it fills, and the work on a share of the batch."""

    def __init__(self, trajectory: Trajectory, bars: Bars, wrt: Sequence[str]) -> None:
        i, model = trajectory._inputs, trajectory.model
        self.trajectory, self.inputs, self.model = trajectory, i, model
        self.schedule = trajectory._schedule or every_step()
        self.bars, self.wrt = bars, wrt
        self.q0_bar, self.qd0_bar = np.empty_like(i.q), np.empty_like(i.qd)
        self.u_bar = np.empty_like(i.u) if "u" in wrt and i.u is not None else None
        self.force_bar = (
            np.empty((i.steps, i.batch, model.n_links, 6)) if "force" in wrt and i.force is not None else None
        )
        self.params_bar: dict[str, np.ndarray] = {}
        self.sums = None
        if "params" in wrt:
            self.sums = np.zeros((-(-i.batch // CHUNK), model.topology.n_params))
            self.params_bar = {n: np.empty_like(model.params[n]) for n in model.own_params}

    def gradient(self) -> Gradient:
        i, t = self.inputs, self.trajectory
        n_lanes = lanes_for(self.model, i.batch)
        t._pass("rollout_adjoint", lambda: worker(self.model, schedule=self.schedule, n_lanes=n_lanes), self.describe)
        found: dict[str, Any] = {}
        if "state" in self.wrt:
            found["q"], found["qd"] = t._public(self.q0_bar, 0), t._public(self.qd0_bar, 0)
        if self.u_bar is not None:
            found["u"] = t._public(self.u_bar)
        if self.force_bar is not None:
            total = self.force_bar if i.force_step else self.force_bar.sum(0)
            found["force"] = t._public(total, 1 if i.force_step else 0)
        return Gradient(**found, params=ByName(self.params()))

    def params(self) -> dict[str, np.ndarray]:
        if self.sums is None:
            return {}
        total = self.sums[0] if len(self.sums) == 1 else self.sums.sum(0)
        found = {name: total[place].reshape(shape) for name, place, shape in self.model.topology.param_places}
        return found | self.params_bar

    def describe(self, one: Worker, first: int, last: int) -> None:
        t = self.trajectory
        one.take_params(self.model)
        t._describe(one, first, last)
        one.integers("param_bar")[:] = [address(self.params_bar.get(n)) for n in NAMED_PARAMS] if self.params_bar else 0
        if self.bars.outputs:
            self.describe_outputs(one)
        one.set(
            q=address(t._q), qd=address(t._qd), interval=self.schedule.interval, status=0,
            **wanted(self.bars.outputs), wants_params=int(self.sums is not None),
            q_bar=address(self.bars.q), qd_bar=address(self.bars.qd), each=int(self.bars.each),
            u_bar=address(self.u_bar), force_bar=address(self.force_bar), q0_bar=address(self.q0_bar),
            qd0_bar=address(self.qd0_bar), params_sum=address(self.sums),
        )  # fmt: skip

    def describe_outputs(self, one: Worker) -> None:
        """Where the cotangents of named outputs are; of the others they are zero. Nothing reads them where none was named."""
        one.integers("output_bar")[:] = [address(self.bars.outputs.get(o)) for o in OUTPUTS]
        for field_, name in zip(OUTPUT, OUTPUTS, strict=True):
            if name not in self.bars.outputs:
                one.frame.table(f"output_bar.{field_}")[:] = 0.0


# velocity that the last sweep still found, in what forces give in a step, smoothed over steps (settling.py). A stack of ten boxes
# leaves 1.1, of twenty 2.7, 100 kg on 1 kg 1.8, held by stabilisation at 0.1 mm; 300 kg on 1 kg 10, and fall through it
UNSETTLED = 4.0


def _warn_of_sweeps(trajectory: Trajectory) -> None:
    """Say so where contacts were not solved: bodies sink into each other there."""
    found = trajectory._settling
    if trajectory.model.topology.tree["is_implicit"]:
        _warn_of_iterations(trajectory)
        return
    if not len(found) or not found[:, 0].max() > UNSETTLED:
        return
    env, model = int(np.argmax(found[:, 0])), trajectory.model
    a, b = source_names(model, found[env, 2])
    warn_caller(
        f'the contact of "{a}" and "{b}" is not solved by {model.topology.tree["sweeps"]} sweeps (environment {env}): they sink '
        "into each other; a heavy body on a light one, or a long chain of contacts, needs more: contact=jg.Impulse(sweeps=...)",
        UnsettledWarning,
    )


def _warn_of_iterations(trajectory: Trajectory) -> None:
    """Say so where Newton's method did not converge: there is no implicit gradient of such a step."""
    lost = trajectory._settling[:, 0]
    if len(lost) and lost.max() > 0:
        env = int(np.argmax(lost))
        warn_caller(
            f"the contacts of {int(lost.sum())} steps were not solved in {trajectory.model.topology.tree['iterations']} iterations "
            f"(most in environment {env}: {int(lost[env])}); the gradient of these steps is not exact: give contacts more "
            "compliance, or jg.Implicit(iterations=...) more",
            UnsettledWarning,
        )


def _explanation(trajectory: Trajectory) -> str:
    """Which environment diverged, when, and where in the robot."""
    env = int(np.argmax(trajectory.status >= 0))
    k = int(trajectory.status[env])
    where = "; ".join(_culprits(trajectory, env, k))
    return (
        f"environment {env} diverged at step {k}{f' ({where})' if where else ''}; try a smaller dt, "
        'or on_nan="freeze" to go on without it'
    )


def _culprits(trajectory: Trajectory, env: int, k: int) -> list[str]:
    """What was fastest, and what was pressed hardest, in the last good state: blow-ups start there."""
    from .inspect import inspect

    model, i, qd = trajectory.model, trajectory._inputs, trajectory._qd_last[env]
    if not len(qd):
        return []
    worst = int(np.argmax(np.abs(qd)))
    found = [f'fastest joint before: "{model.topology.dof_names[worst]}" at {qd[worst]:.3g}']
    states = i if k == 0 else State(trajectory._q_last, trajectory._qd_last)
    if k and trajectory._schedule is not None and trajectory._schedule.interval == 1:
        states = State(trajectory._q[k], trajectory._qd[k])
    force = None if i.force is None else (i.force[env] if i.force.ndim == 3 else i.force[k, env])
    with np.errstate(all="ignore"):
        try:
            own = State(states.q[env], states.qd[env])
            info = inspect(model.environment(env), own, None if i.u is None else i.u[k, env], force)
            speed, contacts = np.linalg.norm(info.link_velocity[:, :3], axis=-1), info.contacts
        except (SimulationError, InputError):  # the last numbers may be finite and still no state
            return found
        fastest = int(np.argmax(speed))
        found.append(f'fastest link: "{model.link_names[fastest]}" at {speed[fastest]:.3g} m/s')
        if contacts:
            hardest = max(contacts, key=lambda c: np.nan_to_num(np.abs(c.force).max(), nan=np.inf))
            found.append(f"hardest contact: {hardest}")
    return found
