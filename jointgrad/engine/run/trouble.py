"""What to say where contacts were not solved, or a trajectory diverged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...model.arrays import State
from ...model.errors import InputError, SimulationError, UnsettledWarning, warn_caller
from .naming import source_names
from .run import Run

if TYPE_CHECKING:
    pass


# velocity that the last sweep still found, in what forces give in a step, smoothed over steps (settling.py). A stack of ten boxes
# leaves 1.1, of twenty 2.7, 100 kg on 1 kg 1.8, held by stabilisation at 0.1 mm; 300 kg on 1 kg 10, and fall through it
UNSETTLED = 4.0


def warn_of_sweeps(run: Run) -> None:
    """Say so where contacts were not solved: bodies sink into each other there."""
    found = run.settling
    if run.model.topology.tree["is_implicit"]:
        _warn_of_iterations(run)
        return
    if not len(found) or not found[:, 0].max() > UNSETTLED:
        return
    env, model = int(np.argmax(found[:, 0])), run.model
    a, b = source_names(model, found[env, 2])
    warn_caller(
        f'the contact of "{a}" and "{b}" is not solved by {model.topology.tree["sweeps"]} sweeps (environment {env}): they sink '
        "into each other; a heavy body on a light one, or a long chain of contacts, needs more: contact=jg.Impulse(sweeps=...)",
        UnsettledWarning,
    )


def _warn_of_iterations(run: Run) -> None:
    """Say so where Newton's method did not converge: there is no implicit gradient of such a step."""
    lost = run.settling[:, 0]
    if len(lost) and lost.max() > 0:
        env = int(np.argmax(lost))
        warn_caller(
            f"the contacts of {int(lost.sum())} steps were not solved in {run.model.topology.tree['iterations']} iterations "
            f"(most in environment {env}: {int(lost[env])}); the gradient of these steps is not exact: give contacts more "
            "compliance, or jg.Implicit(iterations=...) more",
            UnsettledWarning,
        )


def explanation(run: Run) -> str:
    """Which environment diverged, when, and where in the robot."""
    env = int(np.argmax(run.status >= 0))
    k = int(run.status[env])
    where = "; ".join(_culprits(run, env, k))
    return (
        f"environment {env} diverged at step {k}{f' ({where})' if where else ''}; try a smaller dt, "
        'or on_nan="freeze" to go on without it'
    )


def _culprits(run: Run, env: int, k: int) -> list[str]:
    """What was fastest, and what was pressed hardest, in the last good state: blow-ups start there."""
    from ..looks.inspect import inspect

    model, i, qd = run.model, run.inputs, run.qd_last[env]
    if not len(qd):
        return []
    worst = int(np.argmax(np.abs(qd)))
    found = [f'fastest joint before: "{model.topology.dof_names[worst]}" at {qd[worst]:.3g}']
    states = i if k == 0 else State(run.q_last, run.qd_last)
    if k and run.schedule is not None and run.schedule.interval == 1:
        states = State(run.q[k], run.qd[k])
    force = None if i.force is None else (i.force[env] if i.force.ndim == 3 else i.force[k, env])
    with np.errstate(all="ignore"):
        try:
            own = State(states.q[env], states.qd[env])
            info = inspect(model.environment(env), own, None if i.u is None else i.u[k, env], force)
            speed, contacts = np.linalg.norm(info.link_velocity[:, :3], axis=-1), info.contacts
        except (SimulationError, InputError):  # the last numbers may be finite and still no state
            return found
        fastest = int(np.argmax(speed))
        found.append(f'fastest link: "{model.link_names[fastest]}" at {speed[fastest]:.3g} m/s')
        if contacts:
            hardest = max(contacts, key=lambda c: np.nan_to_num(np.abs(c.force).max(), nan=np.inf))
            found.append(f"hardest contact: {hardest}")
    return found
