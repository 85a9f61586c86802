"""A model of a task that is learned: several networks, each saying what comes next and how sure it is (Chua et al. 2018)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from .networks import Stacked

WIDEST, NARROWEST = 0.5, -10.0  # of the logarithm of a variance, at first; both are learned
PRICE_OF_WIDTH = 0.01
HELD_OUT, MOST_HELD_OUT = 0.2, 5000  # share of the rows that networks are judged by
BETTER = 0.01  # share by which an error must fall to count as better


class Fitting(NamedTuple):
    """How a fit goes: rows at a time, passes without anything better, and passes at most."""

    batch: int = 256
    patience: int = 5
    passes: int = 100


class Ensemble(nn.Module):
    """From rows x (n, a) to normal distributions of y (n, b). `order` ranks the networks, the best first."""

    order: Tensor
    centre: Tensor
    scale: Tensor

    def __init__(self, count: int, n_in: int, hidden: Sequence[int], n_out: int) -> None:
        super().__init__()
        self.layers = Stacked(count, (n_in, *hidden, 2 * n_out), nn.functional.silu)
        self.widest, self.narrowest = (nn.Parameter(torch.full((n_out,), x)) for x in (WIDEST, NARROWEST))
        self.register_buffer("order", torch.arange(count))
        self.register_buffer("centre", torch.zeros(n_in))
        self.register_buffer("scale", torch.ones(n_in))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Means and logarithms of variances, (count, n, b); x as (n, a), or (count, n, a) with rows of their own."""
        mean, width = self.layers((x - self.centre) / self.scale).chunk(2, -1)
        width = self.widest - nn.functional.softplus(self.widest - width)
        return mean, self.narrowest + nn.functional.softplus(width - self.narrowest)

    @torch.no_grad()
    def drawn(self, x: Tensor, elites: int, generator: torch.Generator) -> Tensor:
        """What may come next, (n, b): every row from one of the best networks, chosen anew."""
        mean, width = self(x)
        chosen, rows = self.order[torch.randint(elites, (len(x),), generator=generator)], torch.arange(len(x))
        noise = torch.randn(len(x), mean.shape[-1], generator=generator)
        return mean[chosen, rows] + noise * (0.5 * width[chosen, rows]).exp()

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        """How unlikely y is, summed over networks, with prices of width and of large weights."""
        mean, width = self(x)
        unlikely = ((mean - y) ** 2 * (-width).exp() + width).mean((1, 2)).sum()
        return unlikely + PRICE_OF_WIDTH * (self.widest.sum() - self.narrowest.sum()) + self._size()

    def _size(self) -> Tensor:
        """Of weights: the later the layer, the dearer."""
        weights = list(self.layers.weights)
        prices = torch.linspace(2.5e-5, 1e-4, len(weights)).tolist()
        return torch.stack([0.5 * p * (w * w).sum() for p, w in zip(prices, weights, strict=True)]).sum()

    @torch.no_grad()
    def errors(self, x: Tensor, y: Tensor) -> Tensor:
        """Mean squared errors, (count,)."""
        return ((self(x)[0] - y) ** 2).mean((1, 2))

    def fit(
        self, x: Tensor, y: Tensor, optimiser: torch.optim.Optimizer, generator: torch.Generator, how: Fitting
    ) -> float:
        """Learn rows until no network gets better on those held out; each network ends as it was at its best. The mean error
        of the best half."""
        order = torch.randperm(len(x), generator=generator)
        n_held = min(max(1, int(HELD_OUT * len(x))), MOST_HELD_OUT)
        held, own = order[:n_held], order[n_held:]
        self._normalise(x[own])
        # every network has its own rows, drawn with repetition
        rows = own[torch.randint(len(own), (self.layers.count, len(own)), generator=generator)]
        best, kept, waited = self.errors(x[held], y[held]), self._weights(), 0
        for _ in range(how.passes):
            self._pass(x, y, rows, optimiser, generator, how.batch)
            now = self.errors(x[held], y[held])
            is_better = now < (1.0 - BETTER) * best
            best = torch.where(is_better, now, best)
            kept = [torch.where(is_better[:, None, None], w, old) for w, old in zip(self._weights(), kept, strict=True)]
            waited = 0 if is_better.any() else waited + 1
            if waited >= how.patience:
                break
        with torch.no_grad():
            for w, value in zip(self.layers.parameters(), kept, strict=True):
                w.copy_(value)
        self.order = best.argsort()
        return best.sort().values[: max(1, len(best) // 2)].mean().item()

    def _normalise(self, x: Tensor) -> None:
        self.centre = x.mean(0)
        deviation = x.std(0, unbiased=False)
        # what never changes is left as it is
        self.scale = torch.where(deviation < 1e-6, 1.0, deviation)

    def _weights(self) -> list[Tensor]:
        return [w.detach().clone() for w in self.layers.parameters()]

    def _pass(
        self,
        x: Tensor,
        y: Tensor,
        rows: Tensor,
        optimiser: torch.optim.Optimizer,
        generator: torch.Generator,
        batch: int,
    ) -> None:
        shuffled = rows[:, torch.randperm(rows.shape[1], generator=generator)]
        for some in shuffled.split(batch, 1):
            optimiser.zero_grad()
            self.loss(x[some], y[some]).backward()
            optimiser.step()
