"""A motion made wider: every environment many times, or every step as an environment of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...model.arrays import Model
from ..run.schedule import every_step

if TYPE_CHECKING:
    from ..run.inputs import Inputs
    from ..run.trajectory import Trajectory


def unrun(model: Model, inputs: Inputs, threads: int) -> Trajectory:
    """A motion that is known by its start alone: for what runs it itself."""
    from ..run.run import Run
    from ..run.trajectory import Trajectory

    known = [x[None] for x in (inputs.q, inputs.qd, inputs.more) if x is not None]
    return Trajectory(Run(model, inputs, every_step(), threads, known))


def copies(motion: Trajectory, some: slice, many: int) -> Trajectory:
    """These environments, each `many` times one after the other, not run."""
    return _chosen(motion, np.repeat(np.arange(some.start, some.stop), many))


def rounds(motion: Trajectory, some: slice, many: int) -> Trajectory:
    """The same, all of them in turn, `many` times: neighbours are then alike in what is done to copies, and packs run faster."""
    return _chosen(motion, np.tile(np.arange(some.start, some.stop), many))


def _chosen(motion: Trajectory, which: np.ndarray) -> Trajectory:
    from ..run.inputs import Inputs

    i, model = motion.run.inputs, motion.model
    if model.batch is not None:
        own = {n: v if model.is_shared(n) else v[which] for n, v in model.params.items()}
        model = model.with_params(own, len(which))
    u = None if i.u is None else np.ascontiguousarray(i.u[:, which])
    force = None if i.force is None else np.ascontiguousarray(i.force[..., which, :, :])
    return unrun(
        model,
        Inputs(i.q[which], i.qd[which], u, force, i.steps, True, more=None if i.more is None else i.more[which]),
        motion.run.threads,
    )


def all_steps(motion: Trajectory, which: Sequence[int] | None = None) -> Trajectory:
    """Every step (or some) of a motion of which all states are at hand as a motion of one step, (T batch) environments, not run."""
    from ..run.inputs import Inputs

    i, model, (q, qd, *more) = motion.run.inputs, motion.model, motion.run.states()
    at = np.arange(i.steps) if which is None else np.asarray(which, int)
    if model.batch is not None:
        own = {
            n: v if model.is_shared(n) else np.tile(v, (len(at),) + (1,) * (v.ndim - 1))
            for n, v in model.params.items()
        }
        model = model.with_params(own, len(at) * i.batch)
    force = i.force
    if force is not None:
        force = force[at] if i.force_step else np.broadcast_to(force, (len(at), *force.shape))
        force = force.reshape(-1, *force.shape[-2:])
    u = None if i.u is None else np.ascontiguousarray(i.u[at]).reshape(1, -1, model.nu)
    start = [np.ascontiguousarray(x[at].reshape(-1, x.shape[-1])) for x in (q, qd, *more)]
    further = start[2] if more else None
    return unrun(model, Inputs(start[0], start[1], u, force, 1, True, more=further), motion.run.threads)
