"""Second derivatives: products of a loss's Hessian with a direction, by differences of exact gradients.

The gradient is exact, so that one difference is all that is lost. The stencil has four points: its error falls with the
fourth power of the step, and the same four gradients give the product once more with second order. How far the two are
apart is returned as the error; it is large where the direction crosses a change of contacts, and there the Hessian of
either side says nothing about the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ...model.arguments import checked_names, checked_number, shown
from ...model.arrays import PARAMS, Model, State
from ...model.errors import InputError
from ...model.renamed import with_current_names
from ..run.rollout import rollout
from ..run.runtime import checked, checked_state
from ..run.trajectory import Gradient, Trajectory

# cotangents of a loss: q_bar, qd_bar and those of named outputs, as Trajectory.backward takes them
Cotangents = Callable[[Trajectory], tuple[Any, Any] | tuple[Any, Any, Mapping[str, Any]]]
# rounding over the step and the fourth power of the step are equal here
STEP = np.finfo(float).eps ** 0.2


class Product(NamedTuple):
    """H v by input name, and the largest difference to the same product by second order."""

    along: dict[str, np.ndarray]
    error: float


def hessian_product(
    model: Model,
    state: State,
    u: Any,
    loss_bars: Cotangents,
    along: Mapping[str, Any],
    *,
    wrt: tuple[str, ...] = (),
    force: Any = None,
    step: float | None = None,
    hold: int = 1,
    threads: int | None = None,
    memory: int | str | None = None,
    outputs: tuple[str, ...] = (),
) -> Product:
    """Hessian of a loss of a rollout times a direction; differences of exact gradients, not a second reverse.

    loss_bars gives the cotangents of the loss at a motion. along maps inputs (q, qd, u, force or names of parameters) to
    directions of their shape. wrt: inputs whose rows are wanted, by default those of `along`. step: how far to move along
    the direction; by default eps^(1/5) of the size of what moves. hold, threads, memory and outputs as in rollout.
    """
    options = {"hold": hold, "threads": threads, "memory": memory, "outputs": outputs}
    checked_state(model, state)
    if not isinstance(along, Mapping):
        raise InputError(f"along must be a mapping from names of inputs to directions, but is {shown(along)}")
    step = None if step is None else checked_number("step", step, 0.0, is_above=True)
    at = {"q": state.q, "qd": state.qd, "u": u, "force": force, **model.params}
    ways = {name: _direction(name, way, at) for name, way in with_current_names(along).items()}
    h = step or _sound_step(at, ways)
    names = checked_names("wrt", wrt, [n for n, x in at.items() if x is not None], "input") or tuple(ways)
    g = {k: _gradient(model, at, ways, k * h, names, loss_bars, options) for k in (1, -1, 2, -2)}
    found, error = {}, 0.0
    for name in names:
        near, far = g[1][name] - g[-1][name], g[2][name] - g[-2][name]
        found[name] = (8 * near - far) / (12 * h)
        error = max(error, float(np.abs(found[name] - near / (2 * h)).max(initial=0.0)))
    return Product(found, error)


def _direction(name: str, way: Any, at: Mapping[str, Any]) -> np.ndarray:
    if name not in at or at[name] is None:
        given = [n for n in ("q", "qd", "u", "force") if at[n] is not None]
        raise InputError(f'there is no input "{name}" to move along; there are {", ".join(given)} and the parameters')
    return checked(f'along["{name}"]', way, np.shape(at[name]))


def _sound_step(at: Mapping[str, Any], ways: Mapping[str, np.ndarray]) -> float:
    """Each input moves by STEP of its own size (of one, where it is smaller), the farthest of them by exactly that."""
    shares = [np.abs(way).max(initial=0.0) / max(1.0, np.abs(at[name]).max(initial=0.0)) for name, way in ways.items()]
    if not max(shares, default=0.0):
        raise InputError("along is zero: there is no direction to differentiate in")
    return STEP / max(shares)


def _gradient(
    model: Model, at: Mapping, ways: Mapping, h: float, names: tuple[str, ...], loss_bars: Cotangents, options: Mapping
) -> dict[str, np.ndarray]:
    moved = {name: at[name] + h * way for name, way in ways.items()}
    there = {**at, **moved}
    values = {name: x for name, x in moved.items() if name in PARAMS}
    motion = rollout(
        model._moved(values) if values else model,
        State(there["q"], there["qd"]),
        there["u"],
        force=there["force"],
        **options,
    )
    gradient = motion.backward(*loss_bars(motion))
    return {name: _part(gradient, name) for name in names}


def _part(gradient: Gradient, name: str) -> np.ndarray:
    return gradient.params[name] if name in PARAMS else getattr(gradient, name)
