"""A model without contact as CasADi functions, for optimal control: the same stages, run on CasADi's symbols.

Functions are exported in SX, so that CasADi can differentiate them as often as it likes and generate C from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi

from .engine.run import plain
from .model.arrays import PARAMS, Model, known_parameter
from .model.errors import ModelError


def step(model: Model, params: Sequence[str] = (), name: str = "step") -> casadi.Function:
    """(q, qd, u, *params) -> (q_next, qd_next); a parameter's numbers are one column, row by row of its array. Where the model has
    further state: (q, qd, more, u, *params) -> (q_next, qd_next, more_next)."""
    symbols, values = _symbols(model, params)
    found = [casadi.vertcat(*x) for x in plain.step(model, *_state(model, symbols), None, values, _more(symbols))]
    names = ["q_next", "qd_next", "more_next"][: len(found)]
    return casadi.Function(name, list(symbols.values()), found, _labels(symbols), names)


def acceleration(model: Model, params: Sequence[str] = (), name: str = "acceleration") -> casadi.Function:
    """(q, qd, u, *params) -> qdd, for collocation."""
    symbols, values = _symbols(model, params)
    qdd = casadi.vertcat(*plain.acceleration(model, *_state(model, symbols), None, values, _more(symbols)))
    return casadi.Function(name, list(symbols.values()), [qdd], _labels(symbols), ["qdd"])


def link_positions(model: Model, params: Sequence[str] = (), name: str = "link_positions") -> casadi.Function:
    """(q, *params) -> (3, n_links): origins of the links' frames in the world, one column per link."""
    symbols, values = _symbols(model, params)
    symbols = {name: x for name, x in symbols.items() if name not in ("qd", "more", "u")}
    q = casadi.vertsplit(symbols["q"])
    columns = [casadi.vertcat(*p) for p in plain.link_positions(model, q, params=values)]
    return casadi.Function(name, list(symbols.values()), [casadi.horzcat(*columns)], _labels(symbols), ["position"])


def _symbols(model: Model, params: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Columns of symbols for all inputs, and the parameters among them by name, row by row as the stages read them."""
    _check(model)
    params = [known_parameter(name) for name in params]
    further = {"more": model.n_more} if model.n_more else {}
    sizes = {"q": model.nq, "qd": model.nv, **further, "u": model.nu}
    sizes |= {name: model.params[name].size for name in params}
    symbols = {name: casadi.SX.sym(name.replace(".", "_"), size) for name, size in sizes.items()}
    return symbols, {name: _rows(name, casadi.vertsplit(symbols[name])) for name in params}


def _rows(name: str, numbers: list) -> Any:
    width = PARAMS[name]
    if name.startswith("world."):  # these have no rows
        return numbers if width > 1 else numbers[0]
    if width == 1:
        return numbers
    return [tuple(numbers[i : i + width]) for i in range(0, len(numbers), width)]


def _state(model: Model, symbols: dict[str, Any]) -> tuple[list, list, list | None]:
    q, qd, u = (casadi.vertsplit(symbols[name]) for name in ("q", "qd", "u"))
    return q, qd, u if model.nu else None


def _more(symbols: dict[str, Any]) -> list | None:
    return casadi.vertsplit(symbols["more"]) if "more" in symbols else None


def _labels(symbols: dict[str, Any]) -> list[str]:
    return [name.replace(".", "_") for name in symbols]


def _check(model: Model) -> None:
    tree = model.topology.tree
    if tree["has_impulses"] or tree["has_soft_contact"]:
        raise ModelError(
            "contact, joint limits, dry friction and loops have no CasADi form: compile the world with contact=None, "
            "constraints=False, and give limits and contacts to the optimiser as constraints"
        )
    if model.batch is not None:
        raise ModelError(f"the model has parameters for {model.batch} environments; CasADi functions are of one")
