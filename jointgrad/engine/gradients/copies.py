"""A motion made wider: every environment many times, or every step as an environment of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...model.arrays import Model
from ..schedule import every_step

if TYPE_CHECKING:
    from ..rollout import Inputs, Trajectory


def unrun(model: Model, inputs: Inputs, threads: int) -> Trajectory:
    """A motion that is known by its start alone: for what runs it itself."""
    from ..rollout import Trajectory

    return Trajectory(model, inputs, every_step(), (), threads, known=(inputs.q[None], inputs.qd[None]))


def copies(motion: Trajectory, some: slice, many: int) -> Trajectory:
    """These environments, each `many` times, not run."""
    from ..linearize import per_row
    from ..rollout import Inputs

    i, model = motion._inputs, motion.model
    if model.batch is not None:
        own = {n: v if model.is_shared(n) else v[some] for n, v in model.params.items()}
        model = model.with_params(own, some.stop - some.start)
    q, qd = (np.repeat(x[some], many, axis=0) for x in (i.q, i.qd))
    u = None if i.u is None else np.repeat(i.u[:, some], many, axis=1)
    force = None if i.force is None else np.repeat(i.force[..., some, :, :], many, axis=-3)
    wide = Inputs(q, qd, u, force, i.steps, True)
    return unrun(per_row(model, some.stop - some.start, many, False), wide, motion._threads)


def all_steps(motion: Trajectory) -> Trajectory:
    """Every step of a motion of which all states are at hand as a motion of one step, (T batch) environments, not run."""
    from ..rollout import Inputs

    i, model, (q, qd) = motion._inputs, motion.model, motion._all_states()
    if model.batch is not None:
        own = {
            n: v if model.is_shared(n) else np.tile(v, (i.steps,) + (1,) * (v.ndim - 1))
            for n, v in model.params.items()
        }
        model = model.with_params(own, i.steps * i.batch)
    force = i.force
    if force is not None:
        force = (force if i.force_step else np.broadcast_to(force, (i.steps, *force.shape))).reshape(
            -1, *force.shape[-2:]
        )
    u = None if i.u is None else i.u.reshape(1, -1, model.nu)
    start = [np.ascontiguousarray(x[:-1].reshape(-1, x.shape[-1])) for x in (q, qd)]
    return unrun(model, Inputs(start[0], start[1], u, force, 1, True), motion._threads)
