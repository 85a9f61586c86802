"""What a step hands to the next. A motor with a state, impulses to start the next solve from: a line here, and the stage that
is about it; memory, clearing, checkpoints, integrators, tangents, linearize, arrays and files follow from the table.

Coordinates and velocities have tables and arrays of their own (q, qd). All further fields are one vector, `more`, integrated ones
first: compiled code sees each under its own name as well (`frame.state.NAME`), users by `model.state_places`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

# coordinates and velocities of joints; a number with a time derivative, which a stage writes to `frame.rate.NAME` and every
# integrator follows; a number whose next value a stage writes itself, to `frame.next.NAME` (Runge-Kutta steps leave it as it is)
COORDINATES, VELOCITIES, INTEGRATED, CARRIED = range(4)


class StateField(NamedTuple):
    counted_by: str  # which count of the tree says how many numbers there are
    kind: int


STATE_FIELDS = {"q": StateField("n_q", COORDINATES), "qd": StateField("n_dofs", VELOCITIES)}
FURTHER = tuple(
    sorted(
        (name for name, field in STATE_FIELDS.items() if field.kind >= INTEGRATED), key=lambda n: STATE_FIELDS[n].kind
    )
)


def places(tree: Mapping[str, Any]) -> dict[str, slice]:
    """Where each further field is in `more`."""
    found, first = {}, 0
    for name in FURTHER:
        count = int(tree.get(STATE_FIELDS[name].counted_by, 0))
        found[name] = slice(first, first + count)
        first += count
    return found


def state_counts(tree: Mapping[str, Any]) -> dict[str, int]:
    """Numbers of the tree that follow: n_rates of `more` are integrated, n_state are in all."""
    sizes = {kind: 0 for kind in (INTEGRATED, CARRIED)}
    for name, place in places(tree).items():
        sizes[STATE_FIELDS[name].kind] += place.stop - place.start
    n_more = sum(sizes.values())
    return {"n_more": n_more, "n_rates": sizes[INTEGRATED], "n_state": tree["n_q"] + tree["n_dofs"] + n_more}
