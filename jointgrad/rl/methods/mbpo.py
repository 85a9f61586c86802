"""Model-based policy optimisation (Janner et al. 2019): soft actor-critic on short motions of a model that is learned.

The two enhancements of Qiao 2021 are the settings `gradient` and `extra` of soft actor-critic. Enhanced, the critics learn from the
model as before, while the actor learns where the simulator's slopes are known: at actions that were really tried.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from . import sac
from .ensemble import Ensemble, Fitting
from .pool import Pool


@dataclass(frozen=True)
class Mbpo(sac.Sac):
    """Settings. Those of the paper are members=7, model=(200, 200, 200, 200), refit=250, starts=100000."""

    repeats: int = 5
    members: int = 5  # networks of the model...
    elites: int = 3  # ...of which the best are asked
    model: tuple[int, ...] = (128, 128, 128)
    model_rate: float = 1e-3
    refit: int = 250  # actions from one fit of the model to the next
    model_batch: int = 256
    patience: int = 5  # passes of a fit without anything better
    passes: int = 30  # of a fit, at most
    starts: int = 10_000  # motions of the model after a fit
    lengths: tuple[int, int, int, int] = (
        20_000,
        100_000,
        1,
        5,
    )  # from which action to which they grow, from how long to how long
    real_share: float = 0.05  # of what critics learn from


class Learner(sac.Learner):
    """A policy that learns from a model of the task."""

    NETWORKS = (*sac.Learner.NETWORKS, "model")
    TENSORS = (*sac.Learner.TENSORS, "fitted")
    settings: Mbpo

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        columns = {name: self.real.columns[name] for name in ("seen", "share", "reward", "after", "ended")}
        s = self.settings
        self.imagined = Pool(s.starts * max(s.lengths[2:]), columns)
        self.pools["imagined"] = self.imagined
        self.optimisers["model"] = torch.optim.Adam(self.model.parameters(), s.model_rate, fused=True)
        self.fitted = torch.tensor(-1)  # after which action the model was fitted last
        self._errors: list[float] = []

    def _build(self) -> None:
        n_seen, n_acts, s = self.task.n_observations, self.task.model.nu, self.settings
        self.model = Ensemble(s.members, n_seen + n_acts, s.model, n_seen + 1)

    def _more(self) -> dict[str, float]:
        errors, self._errors = self._errors, []
        return {**super()._more(), "model_error": sum(errors) / max(len(errors), 1)}

    def _prepare(self) -> None:
        s = self.settings
        if self.fitted < 0 or self.acted - self.fitted >= s.refit:
            self.fitted = self.acted.clone()
            self._errors.append(self._fit())
            self._imagine()

    def _fit(self) -> float:
        """Let the model learn all that was tried: rewards and changes of observations."""
        rows, s = self.real.all(), self.settings
        x = torch.cat((rows["seen"], rows["share"]), -1)
        y = torch.cat((rows["after"] - rows["seen"], rows["reward"][:, None]), -1)
        return self.model.fit(
            x, y, self.optimisers["model"], self.generator, Fitting(s.model_batch, s.patience, s.passes)
        )

    @torch.no_grad()
    def _imagine(self) -> None:
        """Short motions of the model from observations that were really made, under the actor."""
        s, length = self.settings, self.length()
        self.imagined.clear()
        seen = self.real.draw(self.generator, s.starts)["seen"]
        for _ in range(length):
            share = self.actor(seen, self._noise(len(seen))).share
            found = self.model.drawn(torch.cat((seen, share), -1), s.elites, self.generator)
            after, reward = seen + found[:, :-1], found[:, -1]
            ended = torch.as_tensor(self.task.over_as_seen(after))
            self.imagined.add(seen=seen, share=share, reward=reward, after=after, ended=ended)
            seen = after[~ended]
            if not len(seen):
                break

    def length(self) -> int:
        """Of the model's motions: it grows with the actions that were tried."""
        begin, end, least, most = self.settings.lengths
        share = min(max((int(self.acted) - begin) / max(end - begin, 1), 0.0), 1.0)
        return int(least + share * (most - least))

    def _drawn(self) -> dict[str, Tensor]:
        """A few rows that happened, and more that the model made up."""
        s = self.settings
        n_real = max(1, round(s.real_share * s.batch))
        real, other = self.real.draw(self.generator, n_real), self.imagined.draw(self.generator, s.batch - n_real)
        return {name: torch.cat((real[name], other[name])) for name in other}
