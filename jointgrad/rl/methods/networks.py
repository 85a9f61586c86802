"""Networks that methods of learning share, in single precision: layers, statistics of observations, a policy."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn


def perceptron(n_in: int, hidden: Sequence[int], n_out: int) -> nn.Sequential:
    """Layers with ELU, each followed by a LayerNorm, and a last one that is linear."""
    sizes = [n_in, *hidden]
    parts: list[nn.Module] = []
    for a, b in itertools.pairwise(sizes):
        parts += [nn.Linear(a, b), nn.ELU(), nn.LayerNorm(b)]
    return nn.Sequential(*parts, nn.Linear(sizes[-1], n_out))


class Statistics(nn.Module):
    """What observations have been like: brings them to mean zero and deviation one."""

    mean: Tensor
    variance: Tensor
    count: Tensor

    def __init__(self, n: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(n))
        self.register_buffer("variance", torch.ones(n))
        self.register_buffer("count", torch.tensor(1e-4, dtype=torch.float64))

    def forward(self, seen: Tensor) -> Tensor:
        return ((seen - self.mean) / torch.sqrt(self.variance + 1e-4)).clamp(-10.0, 10.0)

    def take(self, seen: Tensor) -> None:
        """Count observations (n, ...) in."""
        n, difference = len(seen), seen.mean(0) - self.mean
        total = self.count + n
        share, before = (n / total).float(), (self.count / total).float()
        between = difference * difference * before * share
        self.variance = self.variance * before + seen.var(0, unbiased=False) * share + between
        self.mean, self.count = self.mean + difference * share, total


class Policy(nn.Module):
    """From observations to actions: statistics, layers, and a tanh that keeps to the limits of an action."""

    low: Tensor
    high: Tensor

    def __init__(self, n_seen: int, hidden: Sequence[int], low: Tensor, high: Tensor) -> None:
        super().__init__()
        self.statistics, self.layers = Statistics(n_seen), perceptron(n_seen, hidden, len(low))
        with torch.no_grad():
            # near the middle of all actions at first
            last: Any = self.layers[-1]
            last.weight.mul_(0.1)
            last.bias.zero_()
        self.register_buffer("low", low.float())
        self.register_buffer("high", high.float())

    def forward(self, seen: Tensor) -> Tensor:
        return self.within(torch.tanh(self.layers(self.statistics(seen.float()))))

    def within(self, share: Tensor) -> Tensor:
        """From -1..1 to the limits of an action."""
        return self.low + 0.5 * (share + 1.0) * (self.high - self.low)
