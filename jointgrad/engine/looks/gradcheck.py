"""A spot check: the gradient of a motion against differences, along random directions, where no contact switches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...model.arrays import BOX, CAPSULE, PLANE, SPHERE, Model, State
from ...model.ranges import unit
from ...model.rotations import rotation
from ..run.rollout import rolled_out, rollout
from .certificate import Certificate, step_records
from .inspect import inspect

TOLERANCE = 1e-5  # of what a derivative may differ from its differences
# steps of differences, largest first; those that switch a contact do not count, and the best of the others does: curvature
# spoils the large ones, rounding the small ones
STEPS = (1e-6, 1e-7, 1e-8)
# how small a derivative may be, beside the gradient's length, before rounding is all there is to compare
SMALL = 1e-3
AGREES, DIFFERS, SWITCHES = "agrees", "differs", "switches"
# how long a robot may fall before something touches, s: twenty metres
FALL = 2.0


@dataclass(frozen=True)
class Line:
    """One direction: what it varies, the derivative by gradient and by differences, and what came of it."""

    wrt: str
    gradient: float
    difference: float
    error: float
    step: float
    verdict: str


@dataclass(frozen=True)
class Check:
    certificate: Certificate
    lines: list[Line]
    can_touch: bool = True  # whether there are pairs of shapes at all

    @property
    def is_exact(self) -> bool:
        """Whether every derivative that could be compared agrees, and some could."""
        verdicts = [line.verdict for line in self.lines]
        return DIFFERS not in verdicts and AGREES in verdicts

    @property
    def has_touched(self) -> bool:
        """Whether contact was exercised: some point pressed in some step."""
        return bool((self.certificate.sticking + self.certificate.slipping).any())

    @property
    def is_good(self) -> bool:
        """Exact and worth following, with contact where there can be any: without, nothing is said about contact."""
        return self.is_exact and bool(np.all(self.certificate.trusted)) and (self.has_touched or not self.can_touch)


def spot_check(model: Model, state: State, u: Any = None, steps: int = 50, seed: int = 0, directions: int = 2) -> Check:
    """Roll out from one state, certify, and compare derivatives of a random mean of the last state.

    Varied are q, qd, u, the masses and the frictions, each along some random directions.
    """
    rng = np.random.default_rng(seed)
    motion = rollout(model, state, u, steps=None if u is not None else steps)
    certificate = motion.certificate()
    weights = rng.normal(size=model.nq) / np.sqrt(model.nq), rng.normal(size=model.nv) / np.sqrt(model.nv)
    gradient = motion.backward(*weights, wrt=("state", "u", "params"))
    base = motion.run.inputs.u[:, 0] if motion.run.inputs.u is not None else None
    probe = _Probe(model, state, base, motion.steps, weights, certificate.signature)
    groups: list[tuple[str, np.ndarray, np.ndarray, Callable]] = [
        ("q", gradient.q, np.ones(model.nq), lambda d: probe.values(q=d)),
        ("qd", gradient.qd, np.ones(model.nv), lambda d: probe.values(qd=d)),
    ]
    if base is not None:
        groups.append(("u", gradient.u, np.ones_like(base), lambda d: probe.values(u=d)))
    for name in ("link.mass", "pair.friction"):
        scale = np.abs(model.params[name])
        if scale.size and scale.any():
            groups.append((name, gradient.params[name], scale, lambda d, name=name: probe.values(params={name: d})))
    lines = []
    for wrt, bar, scale, values in groups:
        for _ in range(directions):
            lines.append(_line(wrt, bar, scale * rng.normal(size=scale.shape), values))
    return Check(certificate, lines, bool(model.topology.tree["n_pairs"]))


def set_down(model: Model, state: State, u: Any = None) -> tuple[State, float] | None:
    """Where something first touches when all is let go, put there at rest, and when that is (s); None where nothing does.

    u (T, nu): the first controls are held."""
    dt = float(model.params["world.dt"])
    steps = max(1, min(round(FALL / dt), 5000))
    held = None if u is None else np.repeat(np.asarray(u)[:1], steps, axis=0)
    motion = rollout(model, state, held, steps=steps, outputs=("contact.force",), on_nan="freeze")
    pressed = np.abs(motion.outputs["contact.force"]).reshape(steps + 1, -1).any(-1)
    if not pressed.any():
        return None
    first = int(np.argmax(pressed))
    return State(motion.q[first].copy(), np.zeros(model.nv)), first * dt


def _line(wrt: str, bar: np.ndarray, direction: np.ndarray, values: Callable) -> Line:
    derivative = float((bar * direction).sum())
    # how large derivatives along such directions are, as a rule
    typical = float(np.sqrt(((bar * direction) ** 2).sum()))
    best = Line(wrt, derivative, np.nan, np.nan, STEPS[-1], SWITCHES)
    for step in STEPS:
        (up, down), is_same = values(np.stack([step * direction, -step * direction]))
        if is_same:
            difference = (up - down) / (2 * step)
            size = max(abs(difference), abs(derivative), SMALL * typical, np.finfo(float).tiny)
            # the sums that are subtracted have so many digits
            rounding = 1e-15 * max(abs(up), abs(down), 1.0) / step
            error = float(max(abs(difference - derivative) - rounding, 0.0) / size)
            verdict = AGREES if error <= TOLERANCE else DIFFERS
            if not error >= best.error:
                best = Line(wrt, derivative, float(difference), error, step, verdict)
            if error <= 0.1 * TOLERANCE:
                break
    return best


class _Probe:
    """The same motion from elsewhere: two environments at once, one on either side."""

    def __init__(
        self,
        model: Model,
        state: State,
        u: Any,
        steps: int,
        weights: tuple[np.ndarray, np.ndarray],
        signature: np.ndarray,
    ) -> None:
        self.model, self.state, self.u, self.steps = model, state, u, steps
        self.weights, self.signature = weights, signature

    def values(
        self, q: Any = 0.0, qd: Any = 0.0, u: Any = None, params: dict[str, np.ndarray] | None = None
    ) -> tuple[np.ndarray, bool]:
        """The mean at both displacements (their first axis), and whether every clamp acted as in the middle."""
        model = self.model
        if params:
            model = model._moved({name: model.params[name] + change for name, change in params.items()})
        pair = (2, 1)
        state = State(np.tile(self.state.q, pair) + q, np.tile(self.state.qd, pair) + qd)
        controls = None
        if self.u is not None:
            controls = np.repeat(self.u[:, None], 2, axis=1)
            controls = controls if u is None else controls + np.moveaxis(u, 0, 1)
        motion = rolled_out(model, state, controls, self.steps, None, warns=False)
        signature = step_records(motion)["signature"]
        last = motion.last
        return last.q @ self.weights[0] + last.qd @ self.weights[1], bool((signature == self.signature[:, None]).all())


def lowest_point(model: Model, state: State) -> float | None:
    """Height of the lowest point of all shapes that move, m; None where none do."""
    tree, info, found = model.topology.tree, inspect(model, state), []
    for i, kind in enumerate(tree["shape_kind"]):
        j = tree["shape_link"][i]
        if kind not in (SPHERE, CAPSULE, BOX) or kind == PLANE or tree["shape_body"][i] == tree["n_bodies"]:
            continue
        placement, size = model.params["shape.placement"][i], model.params["shape.size"][i]
        R = info.link_rotation[j]
        up = R[2] @ rotation(unit(placement[3:]))
        reach = size[0] if kind == SPHERE else size[0] + size[1] * abs(up[2]) if kind == CAPSULE else np.abs(up) @ size
        found.append(info.link_position[j, 2] + R[2] @ placement[:3] - reach)
    return float(min(found)) if found else None
