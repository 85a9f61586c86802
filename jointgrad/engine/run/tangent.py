"""Forward mode: the same kernels, compiled for numbers that carry their tangent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...model.arrays import known_parameters
from ...model.errors import InputError
from .runtime import Worker, address, check_finite, checked, worker

if TYPE_CHECKING:
    from .trajectory import Trajectory


def tangents(
    trajectory: Trajectory, dots: Mapping[str, Any], params: Mapping[str, Any], outputs: tuple[str, ...] = ()
) -> tuple[Any, ...]:
    """Tangents of all states, (T+1, batch, nq) and (T+1, batch, nv), of further state where there is any, and of named outputs,
    for directions of q, qd, more, u and force (those that are not there are zero) and of parameters."""
    from .outputs import OUTPUTS, empty_outputs, wanted

    i, model = trajectory.run.inputs, trajectory.model
    batch = (i.batch,) if i.is_batched else ()
    sizes = {"q": model.nq, "qd": model.nv} | ({"more": model.n_more} if model.n_more else {})
    u, force = (dots.get(name) for name in ("u", "force"))
    given = {
        **{f"{name}0_dot": _direction(name, dots.get(name), (*batch, n)) for name, n in sizes.items()},
        "u_dot": _direction("u", u, (i.steps, *batch, model.nu)),
        "force_dot": None if force is None else _direction("force", force, _force_shape(trajectory, batch)),
    }
    param_dots = {name: _param_direction(model, name, value) for name, value in known_parameters(params).items()}
    shape = (i.steps + 1, i.batch)
    values = {name: np.empty((*shape, n)) for name, n in sizes.items()}
    found = {name: np.empty((*shape, n)) for name, n in sizes.items()}
    places = {name: address(x) for name, x in values.items()} | {f"{name}_dot": address(x) for name, x in found.items()}
    places |= {f"{name}_last": address(x[-1]) for name, x in values.items()}
    places |= {f"{name}_last_dot": address(x[-1]) for name, x in found.items()}
    output_values, output_dots = (empty_outputs(model, i, outputs) for _ in range(2))

    def describe(one: Worker, first: int, last: int) -> None:
        one.take_params(model, param_dots)  # type: ignore[arg-type]
        trajectory.run.describe(one, first, last)
        one.integers("output")[:] = [address(output_values.get(o)) for o in OUTPUTS]
        one.integers("output_dot")[:] = [address(output_dots.get(o)) for o in OUTPUTS]
        one.set(
            **places, interval=1, status=0, **wanted(outputs), **{name: address(dot) for name, dot in given.items()},
        )  # fmt: skip

    trajectory.run.go_over("rollout", lambda: worker(model, parts=2), describe)
    dots_of = {name: trajectory.run.unbatched(dot) for name, dot in output_dots.items()}
    return (*(trajectory.run.unbatched(x) for x in found.values()), dots_of)


def _direction(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray | None:
    if value is None:
        return None
    direction = checked(name, value, shape)
    check_finite(name, direction)
    return direction


def _force_shape(trajectory: Trajectory, batch: tuple[int, ...]) -> tuple[int, ...]:
    i = trajectory.run.inputs
    if i.force is None:
        raise InputError("this motion had no outside force to vary: roll out with force=np.zeros(...)")
    time = (i.steps,) if i.force_step else ()
    return (*time, *batch, trajectory.model.n_links, 6)


def _param_direction(model: Any, name: str, value: Any) -> np.ndarray | None:
    return _direction(f'params["{name}"]', value, model.params[name].shape)
