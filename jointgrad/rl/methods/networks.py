"""Networks that methods of learning share, in single precision: layers, statistics of observations, a policy."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

MOST_SEEN, LEAST_VARIANCE = 10.0, 1e-4  # of observations, in deviations
LOG_2, LOG_2_PI = math.log(2.0), math.log(2.0 * math.pi)


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
        return ((seen - self.mean) / torch.sqrt(self.variance + LEAST_VARIANCE)).clamp(-MOST_SEEN, MOST_SEEN)

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


class Stacked(nn.Module):
    """Several perceptrons of the same size as one: (n, a) or (count, n, a) to (count, n, b). Weights begin as PyTorch's do."""

    def __init__(self, count: int, sizes: Sequence[int], bend: Callable[[Tensor], Tensor] = torch.relu) -> None:
        super().__init__()
        self.count, self.bend = count, bend
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        for a, b in itertools.pairwise(sizes):
            most = a**-0.5
            self.weights.append(nn.Parameter(torch.empty(count, a, b).uniform_(-most, most)))
            self.biases.append(nn.Parameter(torch.empty(count, 1, b).uniform_(-most, most)))

    def forward(self, x: Tensor) -> Tensor:
        x = x.expand(self.count, *x.shape) if x.dim() == 2 else x
        last = len(self.weights) - 1
        for k, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = torch.baddbmm(bias, x, weight)
            x = x if k == last else self.bend(x)
        return x


class Drawn(NamedTuple):
    """Actions from -1 to 1 in every part, (n, nu), and the logarithm of how likely they were, (n,)."""

    share: Tensor
    log_likelihood: Tensor


class GaussianPolicy(nn.Module):
    """A policy that draws: a normal distribution for each part of an action, squeezed into -1..1 by a tanh."""

    def __init__(self, n_seen: int, hidden: Sequence[int], low: Tensor, high: Tensor) -> None:
        super().__init__()
        self.low, self.high, self.n_seen = low, high, n_seen
        self.layers = perceptron(n_seen, hidden, 2 * len(low))

    def forward(self, seen: Tensor, drawn: Tensor) -> Drawn:
        """drawn: standard normal numbers, (n, nu)."""
        # cut as `Statistics` cuts in the policy that is played
        mean, log_deviation = self.layers(seen.clamp(-MOST_SEEN, MOST_SEEN)).chunk(2, -1)
        log_deviation = log_deviation.clamp(-5.0, 2.0)
        raw = mean + log_deviation.exp() * drawn
        # log(1 - tanh(x)^2), in a form that does not overflow
        squeezed = 2.0 * (LOG_2 - raw - nn.functional.softplus(-2.0 * raw))
        likely = -0.5 * drawn * drawn - log_deviation - 0.5 * LOG_2_PI - squeezed
        return Drawn(torch.tanh(raw), likely.sum(-1))

    def played(self, hidden: Sequence[int]) -> Policy:
        """The middle of the distribution, as a policy that can be saved."""
        policy = Policy(self.n_seen, hidden, self.low, self.high)
        # observations as they are
        policy.statistics.variance.fill_(1.0 - LEAST_VARIANCE)
        last = f"{len(self.layers) - 1}."
        own = {k: x[: len(self.low)] if k.startswith(last) else x for k, x in self.layers.state_dict().items()}
        policy.layers.load_state_dict(own)
        return policy
