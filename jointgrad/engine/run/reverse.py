"""One pass back over what a run left: cotangents of everything that it started from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...model.arrays import PARAMS as NAMED_PARAMS
from ...model.renamed import ByName
from ..gradients.segments import Bars
from ..kernels.workspace import OUTPUT
from .outputs import OUTPUTS, wanted
from .run import Run
from .runtime import (
    CHUNK,
    Worker,
    address,
    lanes_for,
    worker,
)
from .schedule import every_step
from .trajectory import Gradient

if TYPE_CHECKING:
    pass


def exact_gradient(run: Run, bars: Bars, wrt: Sequence[str]) -> Gradient:
    """Of what was computed."""
    return _Reverse(run, bars, wrt).gradient()


class _Reverse:
    """One pass back: the arrays that it fills, and the work on a share of the batch."""

    def __init__(self, run: Run, bars: Bars, wrt: Sequence[str]) -> None:
        i, model = run.inputs, run.model
        self.run, self.inputs, self.model = run, i, model
        self.schedule = run.schedule or every_step()
        self.bars, self.wrt = bars, wrt
        self.q0_bar, self.qd0_bar = np.empty_like(i.q), np.empty_like(i.qd)
        self.more0_bar = None if i.more is None else np.empty_like(i.more)
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
        i, run = self.inputs, self.run
        n_lanes = lanes_for(self.model, i.batch)
        run.go_over(
            "rollout_adjoint", lambda: worker(self.model, schedule=self.schedule, n_lanes=n_lanes), self.describe
        )
        found: dict[str, Any] = {}
        if "state" in self.wrt:
            found["q"], found["qd"] = run.unbatched(self.q0_bar, 0), run.unbatched(self.qd0_bar, 0)
            if self.more0_bar is not None:
                found["more"] = run.unbatched(self.more0_bar, 0)
        if self.u_bar is not None:
            found["u"] = run.unbatched(self.u_bar)
        if self.force_bar is not None:
            total = self.force_bar if i.force_step else self.force_bar.sum(0)
            found["force"] = run.unbatched(total, 1 if i.force_step else 0)
        return Gradient(**found, params=ByName(self.params()))

    def params(self) -> dict[str, np.ndarray]:
        if self.sums is None:
            return {}
        total = self.sums[0] if len(self.sums) == 1 else self.sums.sum(0)
        found = {name: total[place].reshape(shape) for name, place, shape in self.model.topology.param_places}
        return found | self.params_bar

    def describe(self, one: Worker, first: int, last: int) -> None:
        run = self.run
        one.take_params(self.model)
        run.describe(one, first, last)
        one.integers("param_bar")[:] = [address(self.params_bar.get(n)) for n in NAMED_PARAMS] if self.params_bar else 0
        if self.bars.outputs:
            self.describe_outputs(one)
        one.set(
            q=address(run.q), qd=address(run.qd), more=address(run.more), interval=self.schedule.interval, status=0,
            **wanted(self.bars.outputs), wants_params=int(self.sums is not None),
            q_bar=address(self.bars.q), qd_bar=address(self.bars.qd), more_bar=address(self.bars.more),
            more0_bar=address(self.more0_bar), each=int(self.bars.each),
            u_bar=address(self.u_bar), force_bar=address(self.force_bar), q0_bar=address(self.q0_bar),
            qd0_bar=address(self.qd0_bar), params_sum=address(self.sums),
        )  # fmt: skip

    def describe_outputs(self, one: Worker) -> None:
        """Where the cotangents of named outputs are; of the others they are zero. Nothing reads them where none was named."""
        one.integers("output_bar")[:] = [address(self.bars.outputs.get(o)) for o in OUTPUTS]
        for field_, name in zip(OUTPUT, OUTPUTS, strict=True):
            if name not in self.bars.outputs:
                one.frame.table(f"output_bar.{field_}")[:] = 0.0
