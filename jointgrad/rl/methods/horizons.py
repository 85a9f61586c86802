"""Through how many actions a gradient is worth following, measured on a learner's own data.

Two measures. Signs: the exact slope along a random change of one action, against what a change of finite size does to what is
earned; the longest horizon at which signs agree often enough. Stiffness, as in AHAC (Georgiev et al. 2024): the horizon grows
while the Jacobian of a step stays below a bound, and shrinks above it; here the Jacobian is the exact one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from ..differentiable import DifferentiableTask
from ..slopes import slopes
from ..task import Moment

SHORTEST = 2


def right_signs(
    layer: DifferentiableTask, start: Moment, act: Callable[[Tensor], Tensor], horizons: Sequence[int], change: Tensor
) -> dict[int, float]:
    """Share of environments in which slope and finite change of what so many actions earn have the same sign. change: of the first
    action, (batch, nu), added and taken away. What is earned after a fall does not count."""
    size = torch.zeros(len(change), dtype=torch.float64, requires_grad=True)
    ahead = _earned(layer, start, act, max(horizons), change * size[:, None])
    with torch.no_grad():
        apart = _earned(layer, start, act, max(horizons), change) - _earned(layer, start, act, max(horizons), -change)
    found = {}
    for h in horizons:
        (slope,) = torch.autograd.grad(ahead[h - 1].sum(), size, retain_graph=True)
        found[h] = float((slope * apart[h - 1] > 0).double().mean())
    return found


def _earned(
    layer: DifferentiableTask, now: Moment, act: Callable[[Tensor], Tensor], horizon: int, change: Tensor
) -> Tensor:
    """What 1, 2, ... actions earn, (horizon, batch)."""
    is_on, total, found = torch.ones(len(change)), torch.zeros(len(change), dtype=torch.float64), []
    for k in range(horizon):
        action = act(layer.observe(now)).double()
        now, _, reward, terminated = layer.step(now, action + change if k == 0 else action)
        total = total + torch.where(is_on > 0, reward, 0.0)
        is_on = is_on * ~terminated
        found.append(total)
    return torch.stack(found)


def longest(shares: dict[int, float], least: float) -> int:
    """The longest horizon up to which signs are right often enough; the shortest measured where none is."""
    good = [h for h in sorted(shares) if shares[h] >= least]
    return good[-1] if good else min(shares)


def stiffness(layer: DifferentiableTask, before: Moment, action: Tensor) -> float:
    """The mean, over environments, of the largest factor by which a step can stretch a deviation of the state (q, qd)."""
    rows = layer.task.n_observations + 1
    J = slopes(layer, before, action, with_state=True).by_state[:, rows:]
    return float(torch.linalg.matrix_norm(J, 2).mean())
