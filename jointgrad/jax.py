"""The simulator as functions of JAX: step and rollout under jit, vmap, grad and lax.scan, with exact gradients.

The core is called back on the host, in float64. Where jax_enable_x64 is off JAX hands over float32: it is converted on
the way in and results are rounded on the way out, with a warning. Axes mapped by vmap are folded into the batch.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .engine.gradients import Meaning
from .engine.run.call import Call, checked_call
from .engine.run.inputs import checked_hold
from .engine.run.trajectory import EXACT
from .model.arrays import PARAMS, Model, known_parameters
from .model.errors import InputError


class Motion(NamedTuple):
    """q (T+1, batch, nq), qd (T+1, batch, nv) and named outputs (T+1, batch, n_links, ...) of a rollout; further state
    (T+1, batch, n_more) where the model has any."""

    q: jax.Array
    qd: jax.Array
    outputs: Mapping[str, jax.Array]
    more: jax.Array | None = None


def step(
    model: Model,
    q: Any,
    qd: Any,
    u: Any = None,
    *,
    force: Any = None,
    params: Mapping[str, Any] | None = None,
    threads: int | None = None,
    on_nan: str = "raise",
    more: Any = None,
) -> tuple[jax.Array, ...]:
    """q and qd one time step on; and more, further state (batch, n_more), where the model has any.

    q (batch, nq), qd (batch, nv), u (batch, nu), force (batch, n_links, 6) as MuJoCo's xfrc_applied; or all without batch.
    params maps names of the model's parameters to arrays, with a leading batch axis for a value per environment.
    """
    given = _given(model, q, qd, u, force, params, more)
    call = checked_call(model, _shapes(given), is_step=True, threads=threads, on_nan=on_nan)
    return tuple(_motion(call, tuple(given.values())))


def rollout(
    model: Model,
    q: Any,
    qd: Any,
    u: Any = None,
    *,
    force: Any = None,
    params: Mapping[str, Any] | None = None,
    steps: int | None = None,
    hold: int = 1,
    outputs: Sequence[str] = (),
    links: Sequence[str] | None = None,
    outputs_at: str = "every",
    only_last: bool = False,
    memory: int | str | None = None,
    threads: int | None = None,
    on_nan: str = "raise",
    gradient: Meaning = EXACT,
    more: Any = None,
) -> Motion:
    """Many steps under controls u (T, batch, nu), each held over `hold` steps, or without for `steps` steps.

    force (T, batch, n_links, 6), or without time axis where it stays the same. outputs of these links, or of all of them; at
    every state, or at the "last" alone, then without time axis, which costs less. only_last returns the last state alone: the
    way back then runs the motion once more, and memory, such as "16 MB", may bound what that keeps.
    gradient: what derivatives mean, as in jg.rollout.
    """
    if checked_hold(hold, steps, u is not None) > 1:
        u = jnp.repeat(u, hold, axis=0)
    given = _given(model, q, qd, u, force, params, more)
    call = checked_call(
        model, _shapes(given), steps=steps, outputs=outputs, links=links, outputs_at=outputs_at, only_last=only_last,
        memory=memory, threads=threads, on_nan=on_nan, gradient=gradient,
    )  # fmt: skip
    found = _motion(call, tuple(given.values()))
    named = dict(zip(call.outputs, found[len(call.state) :], strict=True))
    return Motion(found[0], found[1], named, found[2] if model.n_more else None)


def centre_of_mass(model: Model, motion: Motion, params: Mapping[str, Any] | None = None) -> jax.Array:
    """Of all links together, (T+1, batch, 3), from a motion with the outputs link.position and link.rotation.

    params as they were given to the rollout.
    """
    if not {"link.position", "link.rotation"} <= set(motion.outputs):
        raise InputError('the centre of mass needs a rollout with outputs=("link.position", "link.rotation")')
    place, turn = motion.outputs["link.position"], motion.outputs["link.rotation"]
    known = {name: model.params[name] for name in ("link.mass", "link.com")} | dict(params or {})
    mass, com = (jnp.asarray(known[name], place.dtype)[..., None] for name in ("link.mass", "link.com"))
    return (mass * (place + (turn @ com)[..., 0])).sum(-2) / mass.sum(-2)


def _given(model: Model, q: Any, qd: Any, u: Any, force: Any, params: Any, more: Any) -> dict[str, jax.Array]:
    if not isinstance(model, Model):
        raise InputError(f"model must be what World.compile gives, but is {type(model).__name__}")
    if params is not None and not isinstance(params, Mapping):
        raise InputError(f"params must map names to arrays, but is {type(params).__name__}")
    params = known_parameters(params or {})
    if not jax.config.read("jax_enable_x64"):
        warnings.warn(
            "jax_enable_x64 is off: arrays come as float32 and states are rounded to float32 after every call; "
            'for float64 call jax.config.update("jax_enable_x64", True) first',
            stacklevel=4,
        )
    if more is None and model.n_more:
        more = jnp.zeros((*jnp.shape(q)[:-1], model.n_more), jnp.asarray(q).dtype)
    named = {"q": q, "qd": qd, "more": more, "u": u, "force": force}
    given = {name: x for name, x in named.items() if x is not None or name in ("q", "qd")} | params
    return {name: _array(f'params["{name}"]' if name in PARAMS else name, x) for name, x in given.items()}


def _array(name: str, x: Any) -> jax.Array:
    try:
        array = jnp.asarray(x)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be an array of numbers, but is {type(x).__name__}") from None
    if array.dtype not in (jnp.float64, jnp.float32):
        raise InputError(f"{name} has dtype {array.dtype}, but must be float64 or float32")
    return array


def _shapes(given: Mapping[str, jax.Array]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(x.shape) for name, x in given.items()}


# the function, its reverse, and the error where someone asks for more -----------------------------------------------------


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _motion(call: Call, arrays: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
    q = arrays[0]
    batch = q.shape[0] if call.is_batched else None
    shapes = tuple(jax.ShapeDtypeStruct(shape, q.dtype) for shape in call.result_shapes(batch))
    return jax.pure_callback(functools.partial(_forward, call), shapes, *arrays, vmap_method="expand_dims")


def _motion_and_residuals(call: Call, arrays: tuple[jax.Array, ...]) -> tuple:
    found = _motion(call, arrays)
    return found, (arrays, found if call.returns_states else ())


def _motion_adjoint(call: Call, residuals: tuple, bars: tuple[jax.Array, ...]) -> tuple:
    arrays, states = residuals
    return (_pulled_back(call, arrays, states[: len(call.state)], bars),)


_motion.defvjp(_motion_and_residuals, _motion_adjoint)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _pulled_back(call: Call, arrays: tuple, states: tuple, bars: tuple) -> tuple[jax.Array, ...]:
    shapes = tuple(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in arrays)
    back = functools.partial(_backward, call)
    return jax.pure_callback(back, shapes, arrays, states, bars, vmap_method="expand_dims")


def _no_second_derivative(*_: Any) -> Any:
    raise NotImplementedError(
        "gradients of the simulator have no derivative of their own; for second derivatives use jg.hessian_product, "
        "or jax.lax.stop_gradient on what you differentiate twice"
    )


_pulled_back.defvjp(_no_second_derivative, _no_second_derivative)


# on the host ---------------------------------------------------------------------------------------------------------------


def _forward(call: Call, *arrays: Any) -> tuple[np.ndarray, ...]:
    dtype, lead = arrays[0].dtype, _lead(call, arrays)
    if not lead:
        found = call.forward(_doubles(arrays), keep=False)[0]
    else:
        count = math.prod(lead)
        folded = _folded(call, call.inputs, arrays, lead, False, _batch(call, arrays))
        mapped = call.mapped(count).forward(folded, keep=False)[0]
        parts = [call.unfolded(name, x, count, True) for name, x in zip(call.results, mapped, strict=True)]
        found = [x.reshape(*lead, *x.shape[1:]) for x in parts]
    return tuple(np.asarray(x, dtype=dtype) for x in found)


def _backward(call: Call, arrays: tuple, states: tuple, bars: tuple) -> tuple[np.ndarray, ...]:
    lead, dtypes = _lead(call, arrays), [x.dtype for x in arrays]
    if not lead:
        found = call.backward(_doubles(arrays), _doubles(states), _doubles(bars), call.inputs)
    else:
        batch = _batch(call, arrays)
        # an array that is not mapped over comes with axes of size one, and all of them together tell the sizes
        lead = np.broadcast_shapes(lead, *(x.shape[: len(lead)] for x in (*states, *bars)))
        count = math.prod(lead)
        folded = _folded(call, call.inputs, arrays, lead, False, batch)
        known = _folded(call, call.state, states, lead, True, batch) if states else []
        pulls = _folded(call, call.results, bars, lead, True, batch)
        mapped = call.mapped(count).backward(folded, known, pulls, call.inputs)
        parts = [call.unfolded(name, x, count) for name, x in zip(call.inputs, mapped, strict=True)]
        found = [x.reshape(*lead, *x.shape[1:]) for x in parts]
    return tuple(np.asarray(x, dtype=dtype) for x, dtype in zip(found, dtypes, strict=True))


def _doubles(arrays: Sequence[Any]) -> list[np.ndarray]:
    return [np.asarray(x, dtype=np.float64) for x in arrays]


def _lead(call: Call, arrays: Sequence[Any]) -> tuple[int, ...]:
    """Axes that vmap put in front, the largest size of each."""
    n = arrays[0].ndim - 1 - call.is_batched
    return np.broadcast_shapes(*(x.shape[:n] for x in arrays))


def _batch(call: Call, arrays: Sequence[Any]) -> int:
    return arrays[0].shape[-2] if call.is_batched else 1


def _folded(
    call: Call, names: Sequence[str], arrays: Sequence[Any], lead: tuple[int, ...], is_result: bool, batch: int
) -> list[np.ndarray]:
    """Arrays for the mapped call; one value serves all environments along an axis that was not mapped."""
    found = []
    for name, x in zip(names, _doubles(arrays), strict=True):
        own = x.shape[len(lead) :]
        wide = np.broadcast_to(x, (*lead, *own)).reshape(-1, *own)
        found.append(call.folded(np, name, wide, batch, is_result))
    return found
