"""Rollout: many steps of many environments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...model.arguments import (
    byte_count,
    check_flag,
    checked_names,
    default_threads,
)
from ...model.arrays import Model, State
from ...model.errors import InputError, SimulationError
from ..gradients import Meaning
from .hints import hint
from .inputs import check_options, check_values, checked_inputs
from .outputs import OUTPUTS
from .run import Run, executed
from .runtime import (
    CHUNK,
    checked,
    lanes_for,
)
from .schedule import every_step, planned
from .trajectory import EXACT, Trajectory, check_meaning
from .trouble import explanation, warn_of_sweeps

if TYPE_CHECKING:
    pass


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
    inputs = checked_inputs(model, state, u, steps, force, hold)
    n_threads = threads or (default_threads() if inputs.batch > CHUNK else 1)
    outputs = checked_names("outputs", outputs, OUTPUTS, "output")
    schedule = every_step()
    if memory is not None and keep:
        packed = lanes_for(model, inputs.batch) * min(n_threads, -(-inputs.batch // CHUNK))
        schedule = planned(inputs.steps, inputs.batch, 8 * (model.nq + model.nv + model.n_more), packed, budget)
    run = executed(model, inputs, schedule if keep else None, tuple(outputs), n_threads)
    if run.status.max(initial=-1) >= 0:
        # something is not finite: either it came in so, or the motion blew up
        check_values(model, inputs)
        if on_nan == "raise":
            raise SimulationError(explanation(run))
    if warns:
        hint(model, inputs.q)
        warn_of_sweeps(run)
    if is_guarded:
        run.inputs = inputs.guarded((run.q[0], run.qd[0]) if keep else None, u)
    return Trajectory(run)


def known_motion(
    model: Model, states: Sequence[Any], u: Any = None, *, force: Any = None, threads: int | None = None
) -> Trajectory:
    """A motion that was rolled out before, from its states q (T+1, batch, nq) and qd: for going back, nothing is run."""
    q, qd = (np.asarray(x) for x in states[:2])
    start, given = State(q[0], qd[0]), [("q", q), ("qd", qd)]
    if model.n_more:
        if len(states) < 3 or states[2] is None:
            raise InputError("this model has further state, which a motion known by q and qd alone does not have")
        more = np.asarray(states[2])
        start, given = replace(start, more=more[0]), [*given, ("more", more)]
    inputs = checked_inputs(model, start, u, len(q) - 1, force)
    wide = [checked(name, x, (*x.shape[:-1], x.shape[-1])).copy() for name, x in given]
    found = tuple(x if inputs.is_batched else x[:, None] for x in wide)
    n_threads = threads or (default_threads() if inputs.batch > CHUNK else 1)
    guarded = inputs.guarded((found[0][0], found[1][0]), u)
    return Trajectory(Run(model, guarded, every_step(), n_threads, found))
