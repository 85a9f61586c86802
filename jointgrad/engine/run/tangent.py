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
) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Tangents of all states, (T+1, batch, nq) and (T+1, batch, nv), and of named outputs, for directions of q, qd, u and force
    (those that are not there are zero) and of parameters."""
    from .outputs import OUTPUTS, empty_outputs, wanted

    i, model = trajectory.run.inputs, trajectory.model
    batch = (i.batch,) if i.is_batched else ()
    q, qd, u, force = (dots.get(name) for name in ("q", "qd", "u", "force"))
    given = {
        "q0_dot": _direction("q", q, (*batch, model.nq)),
        "qd0_dot": _direction("qd", qd, (*batch, model.nv)),
        "u_dot": _direction("u", u, (i.steps, *batch, model.nu)),
        "force_dot": None if force is None else _direction("force", force, _force_shape(trajectory, batch)),
    }
    param_dots = {name: _param_direction(model, name, value) for name, value in known_parameters(params).items()}
    shape = (i.steps + 1, i.batch)
    values = np.empty((*shape, model.nq)), np.empty((*shape, model.nv))
    found = np.empty((*shape, model.nq)), np.empty((*shape, model.nv))
    output_values, output_dots = (empty_outputs(model, i, outputs) for _ in range(2))

    def describe(one: Worker, first: int, last: int) -> None:
        one.take_params(model, param_dots)  # type: ignore[arg-type]
        trajectory.run.describe(one, first, last)
        one.integers("output")[:] = [address(output_values.get(o)) for o in OUTPUTS]
        one.integers("output_dot")[:] = [address(output_dots.get(o)) for o in OUTPUTS]
        one.set(
            q=address(values[0]), qd=address(values[1]), q_dot=address(found[0]), qd_dot=address(found[1]),
            q_last=address(values[0][-1]), qd_last=address(values[1][-1]),
            q_last_dot=address(found[0][-1]), qd_last_dot=address(found[1][-1]),
            interval=1, status=0, **wanted(outputs), **{name: address(dot) for name, dot in given.items()},
        )  # fmt: skip

    trajectory.run.go_over("rollout", lambda: worker(model, parts=2), describe)
    dots_of = {name: trajectory.run.unbatched(dot) for name, dot in output_dots.items()}
    return trajectory.run.unbatched(found[0]), trajectory.run.unbatched(found[1]), dots_of


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
