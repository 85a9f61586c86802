"""What an action leads to and how that depends on it: exact Jacobians of observation, reward and state over one action."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .differentiable import DifferentiableTask
from .task import Moment


class Slopes(NamedTuple):
    """Rows are the next observation, the reward and, where asked for, the next state (q, qd); columns are the state before,
    in the coordinates of q and qd, or the action: (batch, rows, nq + nv) and (batch, rows, nu)."""

    by_state: Tensor
    by_action: Tensor


def slopes(layer: DifferentiableTask, before: Moment, action: Tensor, with_state: bool = False) -> Slopes:
    """Every row is one cotangent pulled back; all rows of all environments go through the engine together."""
    batch, n = len(action), layer.task.n_observations + 1
    rows = n + (before.q.shape[-1] + before.qd.shape[-1] if with_state else 0)
    wide, copies = layer.repeated(rows), repeated(before, rows)
    leaves = [
        x.requires_grad_() for x in (copies.q, copies.qd, action.detach().to(copies.q.dtype).repeat_interleave(rows, 0))
    ]
    with torch.enable_grad():
        found = wide.step(copies._replace(q=leaves[0], qd=leaves[1]), leaves[2])
        parts = (found.observation, found.reward[:, None], *((found.now.q, found.now.qd) if with_state else ()))
        picked = torch.cat(parts, -1).reshape(batch, rows, rows).diagonal(dim1=1, dim2=2)
        q, qd, u = torch.autograd.grad(picked.sum(), leaves)
    return Slopes(torch.cat((q, qd), -1).reshape(batch, rows, -1), u.reshape(batch, rows, -1))


def repeated(now: Moment, times: int) -> Moment:
    """Every environment so many times, one after the other, without gradients."""
    parts = {
        name: getattr(now, name).detach().repeat_interleave(times, 0) for name in ("q", "qd", "action", "age", "goal")
    }
    return Moment(**parts, outputs={name: x.detach().repeat_interleave(times, 0) for name, x in now.outputs.items()})
