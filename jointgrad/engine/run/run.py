"""What a rollout started from and what it left, for all who go over it once more: gradients, tangents, certificates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...model.arrays import Model
from .inputs import Inputs
from .outputs import OUTPUTS, empty_outputs, wanted
from .runtime import (
    Worker,
    address,
    lanes_for,
    worker,
)
from .schedule import Schedule, every_step
from .sharing import Describe, Lend, in_parallel

if TYPE_CHECKING:
    pass


NOTHING_TO_SETTLE = np.zeros((0, 3))


class Run:
    """All arrays have a batch axis. q and qd hold the states that the schedule keeps, none without a schedule."""

    def __init__(
        self, model: Model, inputs: Inputs, schedule: Schedule | None, threads: int, states: Sequence[np.ndarray],
        outputs: dict[str, np.ndarray] | None = None,
    ) -> None:  # fmt: skip
        self.model, self.inputs, self.schedule, self.threads = model, inputs, schedule, threads
        self.outputs = {} if outputs is None else outputs
        self.status = np.full(inputs.batch, -1, dtype=np.int64)
        self.settling = np.zeros((inputs.batch, 3)) if model.topology.tree["has_impulses"] else NOTHING_TO_SETTLE
        if model.n_more and inputs.more is None:
            inputs.more = np.zeros((inputs.batch, model.n_more))
        self.q, self.qd = states[:2]
        self.more = states[2] if len(states) > 2 else None
        self.last: tuple[np.ndarray, ...] = tuple(np.empty((inputs.batch, x.shape[-1])) for x in states)
        if schedule is not None and schedule.interval == 1:
            self.last = tuple(x[-1] for x in states)
        self.q_last, self.qd_last = self.last[:2]

    def states(self) -> tuple[np.ndarray, ...]:
        """q, qd and, where the model has any, further state: all of them, computed once more where not all were kept."""
        if self.schedule is not None and self.schedule.interval == 1:
            return (self.q, self.qd, *(() if self.more is None else (self.more,)))
        self.inputs.check()
        return executed(self.model, self.inputs, every_step(), (), self.threads).states()

    def unbatched(self, array: np.ndarray, axis: int = 1) -> np.ndarray:
        """Without the batch axis where the caller had none."""
        return array if self.inputs.is_batched else np.squeeze(array, axis)

    def go_over(self, kernel: str, lend: Lend, describe: Describe) -> None:
        """Run a kernel over its environments, on its threads."""
        in_parallel(kernel, self.model, self.inputs.batch, self.inputs.steps, self.threads, lend, describe)

    def describe(self, one: Worker, first: int, last: int) -> None:
        """Tell a worker what every pass over this run has in common."""
        i = self.inputs
        one.set(
            first=first, last=last, batch=i.batch, steps=i.steps, q0=address(i.q), qd0=address(i.qd), u=address(i.u),
            force=address(i.force), force_step=i.force_step, q_last=address(self.q_last), qd_last=address(self.qd_last),
            more0=address(i.more), more_last=address(self.last[2]) if self.model.n_more else 0,
            wants_outputs=0, wants_wrenches=0, settling=0,
        )  # fmt: skip

    def describe_forwards(self, one: Worker, first: int, last: int) -> None:
        one.take_params(self.model)
        self.describe(one, first, last)
        one.integers("output")[:] = [address(self.outputs.get(o)) for o in OUTPUTS] if self.outputs else 0
        one.set(
            q=address(self.q) if len(self.q) else 0, qd=address(self.qd), more=address(self.more), status=address(self.status),
            settling=address(self.settling) if len(self.settling) else 0,
            **wanted(self.outputs), interval=self.schedule.interval if self.schedule else 1,
        )  # fmt: skip


def executed(model: Model, inputs: Inputs, schedule: Schedule | None, outputs: tuple[str, ...], threads: int) -> Run:
    """The rollout itself."""
    rows = schedule.rows(inputs.steps) if schedule is not None else 0
    sizes = (model.nq, model.nv, model.n_more) if model.n_more else (model.nq, model.nv)
    states = [np.empty((rows, inputs.batch, n)) for n in sizes]
    run = Run(model, inputs, schedule, threads, states, empty_outputs(model, inputs, outputs))
    n_lanes = lanes_for(model, inputs.batch)
    run.go_over("rollout", lambda: worker(model, n_lanes=n_lanes), run.describe_forwards)
    return run
