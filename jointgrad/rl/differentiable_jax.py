"""Tasks as differentiable steps of JAX: pure functions of moments, for jit, grad and scan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..engine.run.outputs import LOADS
from ..jax import rollout
from .task import Moment, Step, Task


def start(task: Task, rng: np.random.Generator, batch: int, params: Mapping[str, Any] | None = None) -> Moment:
    """Where episodes begin."""
    state = task.start(rng, batch)
    goal = jnp.asarray(task.goals(rng, batch))
    return moment(task, jnp.asarray(state.q), jnp.asarray(state.qd), params, goal)


def moment(
    task: Task, q: jax.Array, qd: jax.Array, params: Mapping[str, Any] | None = None, goal: jax.Array | None = None
) -> Moment:
    """An episode that begins in a given state, (batch, nq) and (batch, nv), with a goal (batch, n_goals), else zero."""
    blank = task.blank(len(q))
    placed = tuple(name for name in task.outputs if name not in LOADS)
    outputs = {name: jnp.asarray(blank.outputs[name]) for name in task.outputs}
    if placed:
        found = rollout(task.model, q, qd, params=params, steps=0, outputs=placed).outputs
        outputs |= {name: value[0] for name, value in found.items()}
    goal = jnp.asarray(blank.goal) if goal is None else goal
    return Moment(q, qd, jnp.asarray(blank.action), jnp.asarray(blank.age), outputs, goal)


def step(task: Task, before: Moment, action: jax.Array, params: Mapping[str, Any] | None = None) -> Step:
    """Hold actions (batch, nu) until the next are due. params as those of `jointgrad.jax.rollout`."""
    action = action.astype(before.q.dtype)
    motion = rollout(
        task.model,
        before.q,
        before.qd,
        action[None],
        hold=task.hold,
        params=params,
        outputs=task.outputs,
        only_last=True,
        outputs_at="last",
    )
    now = Moment(motion.q, motion.qd, action, before.age + 1, motion.outputs, before.goal)
    return Step(now, task.observe(now), task.reward(before, now), task.fallen(now))
