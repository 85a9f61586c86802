"""What a rollout starts from, checked, and guarded against those who write to their arrays afterwards."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...model.arguments import (
    checked_count,
    shown,
)
from ...model.arrays import Model, State, checked_model
from ...model.errors import InputError
from .runtime import (
    check_finite,
    check_quaternions,
    checked,
    checked_state,
    controls_hint,
)

if TYPE_CHECKING:
    pass


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
    more: np.ndarray | None = None  # where the model has further state

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
        more = None if self.more is None else self.more.copy()
        return Inputs(**kept, steps=self.steps, is_batched=self.is_batched, hold=self.hold, prints=prints, more=more)

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


def check_options(model: Model, threads: int | None, on_nan: str) -> None:
    if type(model) is not Model:
        checked_model(model)
    if threads is not None:
        checked_count("threads", threads, 1)
    if type(on_nan) is not str or on_nan not in ("raise", "freeze"):
        raise InputError(f'on_nan must be "raise" or "freeze", but is {shown(on_nan)}')


def check_values(model: Model, inputs: Inputs) -> None:
    for name in ("q", "qd", "u", "force"):
        check_finite(f"state.{name}" if name.startswith("q") else name, getattr(inputs, name))
    check_quaternions(model, inputs.q)


def checked_inputs(model: Model, state: State, u: Any, steps: int | None, force: Any, hold: int = 1) -> Inputs:
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
    return Inputs(q, qd, u, force, int(steps or 0), is_batched, hold, more=further_state(model, state, batch, len(q)))


def further_state(model: Model, state: State, batch: tuple[int, ...], rows: int) -> np.ndarray | None:
    """Of a state (rows, n_more), where the model has any; zero where it is not given."""
    if not model.n_more:
        if state.more is not None:
            raise InputError("state.more is given, but the model has no state beside q and qd")
        return None
    if state.more is None:
        return np.zeros((rows, model.n_more))
    return checked("state.more", state.more, (*batch, model.n_more)).reshape(rows, model.n_more)


def checked_hold(hold: Any, steps: int | None, has_controls: bool) -> int:
    """Steps over which controls are held."""
    hold = checked_count("hold", hold, 1)
    if hold > 1 and not has_controls:
        raise InputError("hold is for controls, but u is None")
    if steps is not None and checked_count("steps", steps) % hold:
        raise InputError(f"steps={steps} is no multiple of hold={hold}")
    return hold
