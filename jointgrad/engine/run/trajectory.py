"""A trajectory: states over time, and its derivatives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...model.arguments import (
    checked_mapping,
    checked_names,
    shown,
)
from ...model.arrays import Compared, State
from ...model.errors import InputError
from ...model.tables import table
from ..gradients import MEANINGS, Exact, Meaning
from ..gradients.segments import Bars
from .outputs import OUTPUTS
from .run import Run
from .runtime import (
    check_finite,
    checked,
)

if TYPE_CHECKING:
    from ..looks.certificate import Certificate


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
    more: np.ndarray | None = None  # of the start's further state, where the model has any

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


def check_meaning(gradient: Any) -> None:
    if not isinstance(gradient, MEANINGS):
        known = ", ".join(f"jg.{one.__name__}" for one in MEANINGS)
        raise InputError(f"gradient must be one of {known}, called with its arguments, but is {shown(gradient)}")


class Trajectory:
    """States over time, axes (time, batch, value), and their derivatives."""

    def __init__(self, run: Run) -> None:
        self.run, self.model = run, run.model
        self.gradient: Meaning = EXACT

    def __repr__(self) -> str:
        i, lost = self.run.inputs, int((self.status >= 0).sum())
        many = f", {i.batch} environments" if i.is_batched else ""
        frozen = f", {lost} of them frozen" if lost else ""
        seconds = i.steps * float(np.ravel(self.model.params["world.dt"])[0])
        return f"Trajectory({i.steps} steps, {seconds:.4g} s{many}{frozen}, nq={self.model.nq}, nv={self.model.nv})"

    def _repr_html_(self) -> str:
        last = self.last
        return table(repr(self), (
            ("of", repr(self.model)), ("q", (self.steps + 1, *last.q.shape)), ("qd", (self.steps + 1, *last.qd.shape)),
            ("outputs", ", ".join(self.run.outputs) or "none asked for"),
            ("fastest at the end", f"{np.abs(last.qd).max(initial=0.0):.3g}"),
            ("to see it", "jg.view(model, motion), or motion.save('run.npz') and jointgrad replay"),
        ))  # fmt: skip

    @property
    def status(self) -> np.ndarray:
        """Of every environment the step at which it diverged, -1 where it did not."""
        return self.run.status

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
        run = self.run
        has = self.model.topology.tree["is_implicit"] and len(run.settling)
        found = (run.settling if has else np.zeros((run.inputs.batch, 3))).astype(int)
        return found if run.inputs.is_batched else found[0]

    def _shown(self, array: np.ndarray, axis: int = 1) -> np.ndarray:
        """What the way back needs, for all to read and nobody to write to."""
        view = self.run.unbatched(array, axis).view()
        view.flags.writeable = False
        return view

    @property
    def steps(self) -> int:
        """Time steps T."""
        return self.run.inputs.steps

    @property
    def last(self) -> State:
        """The state after the last step: q (batch, nq), qd (batch, nv)."""
        return State(*(self._shown(x, 0) for x in self.run.last))

    @property
    def q(self) -> np.ndarray:
        """(T+1, batch, nq); recomputed when a memory budget did not let every state be kept."""
        return self._shown(self.run.states()[0])

    @property
    def qd(self) -> np.ndarray:
        """Rates (T+1, batch, nv); without a batch axis in, without it out."""
        return self._shown(self.run.states()[1])

    @property
    def more(self) -> np.ndarray | None:
        """Further state (T+1, batch, n_more), by name in `model.state_places`; None where the model has none."""
        return self._shown(self.run.states()[2]) if self.model.n_more else None

    @property
    def u(self) -> np.ndarray | None:
        """The controls it ran under, (T, batch, nu); None where the model has none."""
        return None if self.run.inputs.u is None else self._shown(self.run.inputs.u)

    @property
    def force(self) -> np.ndarray | None:
        """The outside forces it ran under, (T, batch, n_links, 6), without the time axis where they stayed the same."""
        given = self.run.inputs.force
        return None if given is None else self._shown(given, 0 if given.ndim == 3 else 1)

    @property
    def outputs(self) -> Mapping[str, np.ndarray]:
        """Named outputs, each (T+1, batch, n_links, ...)."""
        return {name: self._shown(array) for name, array in self.run.outputs.items()}

    def save(self, path: Any, gradient: Gradient | None = None, environments: int = 16, fps: float = 60.0) -> None:
        """Write the motion, and what is needed to see it again, as an .npz file for `jointgrad replay`: every state of every
        environment, and pictures per second of the first few."""
        from ...viewer.replay import save

        save(self.model, self, path, gradient=gradient, environments=environments, fps=fps)

    # reverse ------------------------------------------------------------------------------------------------------------

    def backward(
        self,
        q_bar: Any = None,
        qd_bar: Any = None,
        bars: Mapping[str, Any] | None = None,
        wrt: Sequence[str] = WRT,
        more_bar: Any = None,
    ) -> Gradient:
        """Cotangents of the start, the controls, the outside forces and the parameters.

        q_bar (T+1, batch, nq) and qd_bar (of further state, more_bar) belong to every state, or without the time axis to the last
        one; bars holds cotangents of named outputs. A shared parameter's cotangent is summed over the batch.
        """
        self.run.inputs.check()
        if self.run.schedule is None:
            raise InputError("this trajectory kept no states to go back through: roll out with keep=True")
        wrt = checked_names("wrt", wrt, WRT)
        self._check_meaning()
        state_bars, each = self._state_bars(q_bar, qd_bar, more_bar)
        output_bars = self._output_bars(checked_mapping("bars", bars))
        found = self.gradient.pulled_back(
            self, Bars(state_bars[0], state_bars[1], each, output_bars, state_bars[2]), wrt
        )
        hold = self.run.inputs.hold
        if hold == 1 or found.u is None:
            return found
        # a control that was held has what all its steps say
        return replace(found, u=found.u.reshape(-1, hold, *found.u.shape[1:]).sum(1))

    def _state_bars(self, q_bar: Any, qd_bar: Any, more_bar: Any) -> tuple[list[np.ndarray | None], bool]:
        i, model = self.run.inputs, self.model
        batch = (i.batch,) if i.is_batched else ()
        given = [("q_bar", q_bar, model.nq), ("qd_bar", qd_bar, model.nv), ("more_bar", more_bar, model.n_more)]
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
        i = self.run.inputs
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
        more: Any = None,
    ) -> Any:
        """Directional derivatives of all states, (q, qd), for directions of the start, the controls, outside forces,
        parameters. With names of outputs, their derivatives come last, in a
        dict; where the model has further state, its derivatives come after those of qd."""
        self.run.inputs.check()
        names = checked_names("outputs", () if outputs is None else outputs, OUTPUTS, "output")
        self._check_meaning()
        dots = {"q": q, "qd": qd, "u": self._held(u), "force": force, "more": more}
        *states, found = self.gradient.pushed_forward(self, dots, checked_mapping("params", params), names)
        return tuple(states) if outputs is None else (*states, found)

    def _check_meaning(self) -> None:
        if self.model.n_more and not isinstance(self.gradient, Exact):
            raise InputError(f"{self.gradient} knows q and qd alone, but this model has further state: use jg.Exact()")

    def _held(self, u: Any) -> Any:
        """A direction of controls with a row for every step."""
        i = self.run.inputs
        if u is None or i.hold == 1:
            return u
        batch = (i.batch,) if i.is_batched else ()
        return np.repeat(checked("u", u, (i.steps // i.hold, *batch, self.model.nu)), i.hold, 0)

    # trust --------------------------------------------------------------------------------------------------------------

    def certificate(
        self, distance: float = 5e-3, q_bar: Any = None, qd_bar: Any = None, gradient: Gradient | None = None
    ) -> Certificate:
        """Whether the gradient of this motion is worth following over a distance of the start (m, rad; m/s and rad/s of its
        velocities), and over which; how far it was from a motion with other contacts is worked out on request.

        With q_bar (batch, nq) or qd_bar (batch, nv), cotangents of the last state, it is that of one loss, tried by steps along its
        own gradient; `gradient` saves the pass back where one has it."""
        from ..looks.certificate import certificate_of

        self.run.inputs.check()
        return certificate_of(self, distance, q_bar, qd_bar, gradient)
