"""A motion in segments: what stands between two of its states, and what the derivatives of the parts make together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...model.arrays import Model
from ..run.schedule import every_step
from .exact import Exact

if TYPE_CHECKING:
    from ..run.trajectory import Gradient, Trajectory

Tangents = tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]


@dataclass
class Bars:
    """Cotangents of the states, every one of them or (each = False) the last, and of outputs by name."""

    q: Any
    qd: Any
    each: bool
    outputs: Mapping[str, np.ndarray]
    more: Any = None

    def over_time(self, motion: Trajectory) -> Bars:
        """With time and batch axes, as arrays of their own."""
        found = []
        for bar, like in zip((self.q, self.qd), motion.run.states(), strict=True):
            wide = np.zeros_like(like)
            if bar is not None:
                wide[... if self.each else -1] = bar if motion.run.inputs.is_batched else np.expand_dims(bar, -2)
            found.append(wide)
        outputs = self.outputs
        if not motion.run.inputs.is_batched:
            outputs = {name: bar[:, None] for name, bar in outputs.items()}
        return Bars(*found, True, outputs)  # type: ignore[arg-type, call-arg]

    def between(self, first: int, last: int, is_start: bool, is_end: bool, seen_at_end: bool = False) -> Bars:
        """Of the states first to last. What is felt in the step that led to a state (and what is seen at the very end) belongs to
        the segment that it ends; what is seen at a state to the segment that it begins, or, with seen_at_end, to the other."""
        from ..run.outputs import LOADS

        outputs = {}
        for name, bar in self.outputs.items():
            outputs[name] = bar[first : last + 1].copy()
            if name in LOADS or (seen_at_end and not is_start):
                outputs[name][0] = 0.0
            if name not in LOADS and not seen_at_end and not is_end:
                outputs[name][-1] = 0.0
        return Bars(self.q[first : last + 1], self.qd[first : last + 1], True, outputs)


def with_all_states(motion: Trajectory) -> Trajectory:
    """The same motion with every state at hand: one that kept fewer would run again each time that it is asked for them."""
    from ..run.run import Run
    from ..run.trajectory import Trajectory

    states = motion.run.states()
    if states[0] is motion.run.q:
        return motion
    again = Trajectory(Run(motion.model, motion.run.inputs, every_step(), motion.run.threads, states))
    again.run.status, again.gradient = motion.run.status, motion.gradient
    return again


def between(motion: Trajectory, first: int, last: int) -> Trajectory:
    """The part of a motion between two of its states, on the same arrays, with a batch axis."""
    from ..run.inputs import Inputs
    from ..run.run import Run
    from ..run.trajectory import Trajectory

    i, (q, qd) = motion.run.inputs, motion.run.states()
    u = None if i.u is None else i.u[first:last]
    force = i.force[first:last] if i.force is not None and i.force_step else i.force
    inputs = Inputs(q[first], qd[first], u, force, last - first, True)
    known = q[first : last + 1], qd[first : last + 1]
    return Trajectory(Run(motion.model, inputs, every_step(), motion.run.threads, known))


Carry = Callable[[int, "Gradient", Bars], None]


def back_in_segments(
    motion: Trajectory, bars: Bars, wrt: Sequence[str], ends: Sequence[int], carry: Carry, seen_at_end: bool = False
) -> Gradient:
    """The exact way back, interrupted at some states (in the order of time). `carry` is given such a state, the cotangents there,
    and those of all states, and leaves in the latter what the segment before shall end with."""
    wide, parts, end = bars.over_time(motion), [], motion.steps
    for number, first in reversed(list(enumerate((0, *ends)))):
        own = wide.between(first, end, number == 0, number == len(ends), seen_at_end)
        back = Exact().pulled_back(between(motion, first, end), own, (*wrt, "state"))
        if number:
            carry(first, back, wide)
        parts.append(back)
        end = first
    return joined(motion, parts[::-1], wrt)


Enter = Callable[[int, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


def ahead_in_segments(
    motion: Trajectory, dots: Mapping[str, Any], params: Mapping[str, Any], outputs: tuple[str, ...], ends: Sequence[int],
    enter: Enter, seen_at_end: bool = False,
) -> Tangents:  # fmt: skip
    """Tangents, interrupted at some states. `enter` is given such a state and the tangents of the segment that ends there, which it
    may change, and says with which the next one begins."""
    from ..run.tangent import tangents

    wide, parts, first = with_batch(motion, dots), [], 0
    for number, end in enumerate((*ends, motion.steps)):
        part = tangents(between(motion, first, end), during(motion, wide, first, end), params, outputs)
        parts.append(part)
        if number < len(ends):
            q, qd = enter(end, part[0], part[1])
            wide, first = wide | {"q": q, "qd": qd}, end
    return joined_tangents(motion, parts, seen_at_end)


def joined(motion: Trajectory, parts: Sequence[Gradient], wrt: Sequence[str]) -> Gradient:
    """The gradient of a motion from those of its segments, in the order of time."""
    from ..run.trajectory import Gradient

    i, found = motion.run.inputs, {}
    if "state" in wrt:
        found["q"], found["qd"] = (motion.run.unbatched(x, 0) for x in (parts[0].q, parts[0].qd))
    if "u" in wrt and i.u is not None:
        found["u"] = motion.run.unbatched(np.concatenate([part.u for part in parts]))
    if "force" in wrt and i.force is not None:
        forces = [part.force for part in parts]
        over_time = bool(i.force_step)
        total = np.concatenate(forces) if over_time else np.sum(forces, axis=0)
        found["force"] = motion.run.unbatched(total, int(over_time))
    params = {name: sum(part.params[name] for part in parts) for name in parts[0].params}
    return Gradient(**found, params=params)  # type: ignore[arg-type]


def joined_tangents(motion: Trajectory, parts: Sequence[Tangents], seen_at_end: bool = False) -> Tangents:
    """The same of tangents: a state between two segments is that which the first of them ends with."""
    from ..run.outputs import LOADS

    q, qd = (np.concatenate([parts[0][k][:1], *(part[k][1:] for part in parts)]) for k in (0, 1))  # type: ignore[index]
    outputs = {}
    for name in parts[0][2]:
        rows = [part[2][name] for part in parts]
        # seen at the state that a segment begins with, felt in the step that a segment ends with
        seen, felt = [*(one[:-1] for one in rows[:-1]), rows[-1]], [rows[0], *(one[1:] for one in rows[1:])]
        outputs[name] = motion.run.unbatched(np.concatenate(felt if name in LOADS or seen_at_end else seen))
    return motion.run.unbatched(q), motion.run.unbatched(qd), outputs


def with_batch(motion: Trajectory, dots: Mapping[str, Any]) -> dict[str, np.ndarray | None]:
    """Directions with a batch axis; what changes over time has it second."""
    if motion.run.inputs.is_batched:
        return dict(dots)
    axis = {"q": 0, "qd": 0, "u": 1, "force": 1 if motion.run.inputs.force_step else 0}
    return {name: None if dot is None else np.expand_dims(dot, axis[name]) for name, dot in dots.items()}


def during(motion: Trajectory, dots: Mapping[str, Any], first: int, last: int) -> dict[str, Any]:
    """Directions of the segment between two states: the start is the caller's, the rest is cut."""
    found = dict(dots)
    for name in ("u", "force"):
        if found.get(name) is not None and (name == "u" or motion.run.inputs.force_step):
            found[name] = np.ascontiguousarray(found[name][first:last])
    return found


def of_environment(motion: Trajectory, env: int) -> tuple[Model, np.ndarray | None, np.ndarray | None]:
    """Its model, controls (T, nu) and outside forces (T, n_links, 6)."""
    i = motion.run.inputs
    model = motion.model if motion.model.batch is None else motion.model.environment(env)
    force = i.force
    if force is not None:
        force = force[:, env] if i.force_step else np.broadcast_to(force[env], (i.steps, *force[env].shape))
    return model, None if i.u is None else i.u[:, env], force


def is_like_the_one_before(motion: Trajectory, env: int) -> bool:
    """Whether two neighbours move alike."""
    i = motion.run.inputs
    given = [*motion.run.states(), i.u, i.force if i.force is None or i.force_step else i.force[None]]
    return all(x is None or np.array_equal(x[:, env], x[:, env - 1]) for x in given)
