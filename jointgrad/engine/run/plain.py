"""The no-compiler mode: the very same stages, run as Python on any kind of number.

Floats to debug, NumPy, torch and JAX arrays to be differentiated by their own tools, mpmath for more digits. Nothing
is compiled, nothing is fast. It is the oracle that compiled code is held against, and shows what plain automatic
differentiation costs.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from ...compiler.field import plain_tables
from ...model.arrays import Model
from ...model.errors import SimulationError
from ...model.state_fields import state_counts
from ..kernels.dynamics import dynamics
from ..kernels.stages.assembly import assembly_stage
from ..kernels.stages.grafts import grafted_rates
from ..kernels.stages.kinematics import kinematics
from ..kernels.stages.outputs import outputs
from ..kernels.step import step as step_kernel
from ..kernels.workspace import PARAMS, SCHEMA, aliases_of, lists_of, rows_of
from .axis_references import axis_references_of


def _numbers(values: Any) -> list:
    """The numbers along the last axis, each of whatever type or batch they are."""
    if hasattr(values, "shape"):
        return [values[..., i] for i in range(values.shape[-1])]
    return list(values)


def _joined(numbers: list, like: Any) -> Any:
    """The converse: numbers as one object of the kind that came in."""
    home = type(like).__module__.partition(".")[0]
    if home == "numpy":
        return np.stack(np.broadcast_arrays(*numbers), axis=-1)
    if home in ("torch", "jax", "jaxlib"):
        module = sys.modules["torch"] if home == "torch" else sys.modules["jax"].numpy
        shape = max((tuple(getattr(x, "shape", ())) for x in numbers), key=len)
        return module.stack(
            [module.broadcast_to(x if hasattr(x, "shape") else module.asarray(x), shape) for x in numbers], -1
        )
    return list(numbers)


def tables(model: Model, params: Mapping[str, Any] | None = None) -> SimpleNamespace:
    """All tables of a model, its parameters filled in and assembled; values in `params` stand in for the model's own."""
    tree = model.topology.tree
    lists = {name: [0] * count for name, count in lists_of(tree).items()}
    z = plain_tables(
        SCHEMA,
        rows_of(tree),
        {f"tree.{k}": v for k, v in {**tree, **state_counts(tree)}.items()} | lists,
        aliases_of(tree),
    )
    given = {**model.params, **(params or {})}
    for name, width in PARAMS.items():
        value = given[name.replace("_", ".", 1)]
        rows = _rows(value, len(getattr(z.params, name)), width)
        for i, row in enumerate(rows):
            getattr(z.params, name)[i] = row
    rotation, axis = axis_references_of(model.params["joint.axis"])
    for i in range(tree["n_frames"]):
        z.axis_reference.rotation[i], z.axis_reference.axis[i] = (
            tuple(map(float, rotation[i])),
            tuple(map(float, axis[i])),
        )
    z.tree.has_tangents = 1
    z.call.has_springs = z.call.has_drag = 1
    assembly_stage(z)
    return z


def _rows(value: Any, rows: int, width: int) -> list:
    if isinstance(value, np.ndarray):
        flat = value.reshape(rows, width).tolist()
        return [row[0] if width == 1 else tuple(row) for row in flat]
    if rows == 1 and (width > 1 or not hasattr(value, "__len__") or getattr(value, "shape", None) == ()):
        value = [value]
    return [row if width == 1 else tuple(row[k] for k in range(width)) for row in value]


def _with_state(model: Model, q: Any, qd: Any, u: Any, force: Any, params: Any, more: Any) -> SimpleNamespace:
    z = tables(model, params)
    z.state.q[:], z.state.qd[:] = _numbers(q), _numbers(qd)
    if more is not None:
        z.state.more[:] = _numbers(more)
    if u is not None:
        z.state.u[:] = _numbers(u)
    if force is not None:
        z.call.force = 1
        z.state.force[:] = [x for link in range(model.n_links) for x in _numbers(force[..., link, :])]
    return z


def _check_room(z: SimpleNamespace) -> None:
    """Numbers that are only traced cannot say whether they touch, so that every candidate needs room."""
    if z.touch.is_full:
        raise SimulationError(
            f"there is room for {z.tree.most_blocks} points that touch; compile the world with a larger max_contacts"
        )


def step(
    model: Model,
    q: Any,
    qd: Any,
    u: Any = None,
    force: Any = None,
    params: Mapping[str, Any] | None = None,
    more: Any = None,
) -> tuple[Any, ...]:
    """Next q and qd (and further state where the model has any), as numbers of the same kind; arrays have the values on their last
    axis."""
    z = _with_state(model, q, qd, u, force, params, more)
    step_kernel(z)
    _check_room(z)
    further = (_joined(z.next.more, q),) if model.n_more else ()
    return _joined(z.next.q, q), _joined(z.next.qd, qd), *further


def acceleration(
    model: Model,
    q: Any,
    qd: Any,
    u: Any = None,
    force: Any = None,
    params: Mapping[str, Any] | None = None,
    more: Any = None,
) -> Any:
    """qdd of the state, with what networks and springs do; impulses of contact are no acceleration, and change the next rates."""
    z = _with_state(model, q, qd, u, force, params, more)
    dynamics(z, z.tree.has_soft_contact)
    grafted_rates(z)
    _check_room(z)
    return _joined(z.work.qdd, qd)


def link_positions(model: Model, q: Any, params: Mapping[str, Any] | None = None) -> list:
    """Origins of the links' frames in the world: three numbers per link, of the kind of q."""
    z = tables(model, params)
    z.state.q[:] = _numbers(q)
    z.state.qd[:] = [0.0] * model.nv
    kinematics(z)
    outputs(z)
    return list(z.output.position)
