"""Short-horizon actor-critic (SHAC, Xu et al. 2022): a policy learns by the exact gradient of what some actions earn.

Beyond the horizon a critic says what is to come, and gradients pass through it as well. Options: the entropy bonus and twin
critics of SAPO (Xing et al. 2025); each environment with a share of its own of the noise, from none to all, so that the mean
of the policy, which is what will be played, is tried out too.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from ...model.errors import InputError
from ..differentiable_batch import DifferentiableBatch, together
from ..randomise import Randomisation
from ..slopes import repeated
from ..task import Task
from .horizons import SHORTEST, longest, right_signs, stiffness
from .networks import Policy, perceptron
from .pool import Pool


@dataclass(frozen=True)
class Shac:
    """Settings. Rates fall over updates, never with the clock: the same seed and steps give the same bits."""

    environments: int = 128
    horizon: int = 8  # actions through which gradients pass
    rate: float = 2e-3  # of learning, falls in a straight line...
    decay: int = 500  # ...over so many updates to...
    floor: float = 0.05  # ...this share
    discount: float = 0.99
    blend: float = 0.95  # lambda of TD(lambda)
    noise: float = 0.37  # deviation of actions at first
    fade: bool = False  # noise falls to nothing while the rate falls to its floor
    spread: bool = True  # environments have shares of the noise, from none to all
    clip: float = 1.0  # norm of a gradient
    actor: tuple[int, ...] = (128, 64)
    critic: tuple[int, ...] = (128, 64)
    critics: int = 1  # 2: targets take the lower of two, the actor their mean; 0: nothing counts beyond the horizon
    fits: int = 4  # passes of the critics over the data of an update...
    parts: int = 4  # ...each in so many parts
    follow: float = 0.8  # share by which the critics that are asked follow those that learn
    average: float = 0.95  # of the policy that is played, over updates
    entropy: float | None = None  # wanted, per part of an action; the price of falling short of it is learned
    ease: int = 150  # updates over which goals grow from the easiest to all
    carry: float = 0.5  # share of episodes ended by time that go on with another goal
    cut_back: float | None = (
        None  # the most that one unit of q or qd may count for, in return, on the way back: chaos ends there
    )
    measured: tuple[int, ...] = ()  # horizons to choose from by how often signs of slopes are right over...
    change: float = 0.1  # ...changes of an action by this share of its limits...
    least: float = 0.9  # ...which must be this often, and is measured...
    again: int = 100  # ...after so many updates
    stiffest: float | None = (
        None  # the horizon shrinks where a step stretches states by more, and grows where by less (AHAC)
    )
    mixed: bool = False  # slopes are mixed with what noise and returns say, by their variances; needs spread=False
    regress: int = (
        0  # passes in which the actor learns actions bettered by their slopes (PODS); 0: slopes go into its weights
    )
    better: float = 0.1  # by how much they are bettered, root mean square, in shares of the limits
    every: int = 50  # updates from one look at the policy to the next...
    tried: int = 32  # ...and the episodes of a look
    whole: bool = False  # every update begins all episodes anew: with horizon = limit, gradients of whole episodes

    def __post_init__(self) -> None:
        if self.mixed and (self.spread or self.entropy is not None):
            raise InputError("mixed=true needs noise in every environment and no price of entropy: set spread=false")
        if any(not 1 <= h <= self.horizon for h in self.measured):
            raise InputError(f"measured must be horizons from 1 to horizon={self.horizon}, but is {self.measured}")

    def steps(self) -> int:
        """Actions of all environments in an update."""
        return self.environments * self.horizon


class Horizon(NamedTuple):
    """What happened in an update, (horizon, environments, ...) each, without gradients."""

    seen: Tensor  # before the actions
    last: Tensor  # after them, before any reset
    reward: Tensor
    terminated: Tensor
    over: Tensor


class Trace(NamedTuple):
    """Of one action: what was seen, the action before its tanh, the noise in it as it was drawn and its deviation."""

    seen: Tensor
    raw: Tensor
    drawn: Tensor
    deviation: Tensor


class Learner:
    """A policy that learns a task. `policy` is the average that is to be played; `actor` is the one that learns."""

    NETWORKS = ("actor", "policy", "critics", "asked")
    NUMBERS = ("log_noise", "log_price")
    TENSORS = ("shares", "reach")

    def __init__(
        self, task: Task, settings: Shac, seed: int, randomise: Randomisation | None = None, threads: int = 1
    ) -> None:
        self.task, self.settings, self.updates = task, settings, 0
        self.generator = torch.Generator().manual_seed(seed)
        self.batch = DifferentiableBatch(
            task, settings.environments, np.random.default_rng(seed), randomise, threads, settings.carry, 1.0
        )
        low, high = (torch.tensor(x) for x in task.action_limits)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.actor = Policy(task.n_observations, settings.actor, low, high)
            critics = [perceptron(task.n_observations, settings.critic, 1) for _ in range(settings.critics)]
        self.critics = nn.ModuleList(critics)
        self.asked, self.policy = copy.deepcopy(self.critics), copy.deepcopy(self.actor)
        self.log_noise = nn.Parameter(torch.full((len(low),), float(np.log(settings.noise))))
        self.log_price = nn.Parameter(torch.tensor(float(np.log(0.1))))
        self.shares = self._shares()
        # through how many actions gradients pass; real numbers, so that it can grow slowly
        self.reach = torch.tensor(float(settings.horizon))
        self._traces: list[Trace] = []
        self.pools: dict[str, Pool] = {}
        self.optimisers: dict[str, Any] = {
            "actor": _adam([*self.actor.parameters(), self.log_noise], settings.rate),
            "critics": _adam(self.critics.parameters(), settings.rate) if critics else None,
            "price": _adam([self.log_price], settings.rate),
        }

    def _shares(self) -> Tensor:
        n = self.settings.environments
        order = torch.randperm(n, generator=self.generator)
        return torch.linspace(0.0, 1.0, n)[order][:, None] if self.settings.spread else torch.ones(n, 1)

    # one update ---------------------------------------------------------------------------------------------------------

    def update(self) -> dict[str, float]:
        """Try the actor out over a horizon, better it, and let the critics learn from what happened."""
        for optimiser in filter(None, self.optimisers.values()):
            optimiser.param_groups[0]["lr"] = self._rate()
        self.batch.ease = max(0.0, 1.0 - self.updates / max(self.settings.ease, 1))
        if self.settings.whole:
            self.batch.begin()
        self.batch.cut()
        self._choose_reach()
        loss, horizon, surprise = self._tried()
        norm = self._regress(loss) if self.settings.regress else self._improve(loss, surprise)
        if self.settings.critics:
            self._fit(horizon)
        self.actor.statistics.take(horizon.seen.flatten(0, 1))
        self._average()
        self.updates += 1
        falls = float(horizon.terminated.sum())
        return {
            "reward": float(horizon.reward.mean()),
            "falls": falls,
            "norm": norm,
            "noise": self._noise().mean().item(),
            "horizon": float(int(self.reach)),
        }

    def _rate(self) -> float:
        s = self.settings
        return s.rate * max(1.0 - self.updates / s.decay, s.floor)

    def _noise(self) -> Tensor:
        share = max(1.0 - self.updates / self.settings.decay, 0.0) if self.settings.fade else 1.0
        return share * self.log_noise.exp()

    def _tried(self) -> tuple[Tensor, Horizon, Tensor]:
        """The actor's loss, what happened, and the entropy of its actions."""
        s, batch = self.settings, self.batch
        seen, entropies, passages = [], [], []
        self._traces = []
        for k in range(s.horizon):
            seen.append(batch.seen.float())
            action, entropy = self._act(seen[-1])
            entropies.append(entropy)
            passages.append(batch.advance(action))
            self._keep_bounded()
            if self._is_cut(k):
                batch.cut()
        # rewards, observations and the critic of all actions at once: most of what they cost is a price per operation
        before, now = together([one.before for one in passages]), together([one.now for one in passages])
        terminated = torch.stack([one.terminated for one in passages])
        over = torch.stack([one.over for one in passages])
        entropy, last = torch.stack(entropies), self.task.observe(now).float()
        reward = self.task.reward(before, now).float() + self._bonus(entropy)
        loss = -self._earned(reward, torch.where(terminated, 0.0, self._value(last)), over) / s.steps()
        horizon = Horizon(torch.stack(seen).detach(), last.detach(), reward.detach(), terminated, over)
        if s.mixed:
            self._mix(horizon)
        return loss, horizon, entropy.mean()

    def _is_cut(self, k: int) -> bool:
        """Whether gradients of what comes after action k do not go back through it."""
        return k == self.settings.horizon - 1 or (k + 1) % int(self.reach) == 0

    def _earned(self, reward: Tensor, to_come: Tensor, over: Tensor) -> Tensor:
        """What all environments earned, each episode discounted from where it began in this horizon; (horizon, environments)."""
        s, factor, earned = self.settings, torch.ones(self.settings.environments), torch.zeros(())
        for k in range(s.horizon):
            ends = over[k] | self._is_cut(k)
            earned = earned + (factor * (reward[k] + torch.where(ends, s.discount * to_come[k], 0.0))).sum()
            factor = torch.where(ends, 1.0, s.discount * factor)
        return earned

    def _act(self, seen: Tensor) -> tuple[Tensor, Tensor]:
        """Actions with noise, and what one draw says of their entropy, per part of an action."""
        raw, deviation = self.actor.layers(self.actor.statistics(seen)), self._noise()
        drawn = torch.randn(raw.shape, generator=self.generator)
        raw = raw + deviation * self.shares * drawn
        if self.settings.regress:
            # actions of their own: later ones do not answer to changes of this one
            raw = raw.detach().requires_grad_()
        if self.settings.regress or self.settings.mixed:
            self._traces.append(Trace(seen.detach(), raw, drawn, deviation.detach()))
        share = torch.tanh(raw)
        if self.settings.entropy is None:
            return self.actor.within(share), torch.zeros(len(seen))
        # of a normal distribution, and of what the tanh does to it
        squeezed = torch.log1p(-share * share + 1e-6)
        return self.actor.within(share), (0.5 * drawn * drawn + self.log_noise + 0.92 + squeezed).mean(1)

    def _keep_bounded(self) -> None:
        """Cut what comes back through states, environment by environment: one that is chaotic does not drown the others."""
        if self.settings.cut_back is None:
            return
        most = self.settings.cut_back / self.settings.steps()
        for x in (self.batch.now.q, self.batch.now.qd):
            if x.requires_grad:
                x.register_hook(
                    lambda bar: bar * (most / torch.linalg.vector_norm(bar, dim=-1, keepdim=True)).clamp(max=1.0)
                )

    def _bonus(self, entropy: Tensor) -> Tensor:
        return entropy if self.settings.entropy is None else self.log_price.exp().detach() * entropy

    def _value(self, seen: Tensor) -> Tensor:
        """What is to come, (n,), as the actor takes it."""
        if not self.settings.critics:
            return torch.zeros(seen.shape[:-1])
        scaled = self.actor.statistics(seen)
        return torch.stack([critic(scaled)[..., 0] for critic in self.asked]).mean(0)

    def _improve(self, loss: Tensor, entropy: Tensor) -> float:
        """One step of the actor; where its gradient is not finite, none. The gradient's norm."""
        optimiser = self.optimisers["actor"]
        optimiser.zero_grad()
        loss.backward()
        norm = clip_grad_norm_([*self.actor.parameters(), self.log_noise], self.settings.clip).item()
        if np.isfinite(norm):
            optimiser.step()
        if self.settings.entropy is not None:
            self.optimisers["price"].zero_grad()
            (self.log_price * (entropy.detach() - self.settings.entropy)).backward()
            self.optimisers["price"].step()
        return norm

    # options of the actor -----------------------------------------------------------------------------------------------

    def _choose_reach(self) -> None:
        """Through how many actions gradients pass, by measurement."""
        s, batch = self.settings, self.batch
        if s.measured and self.updates % s.again == 0:
            low, high = self.actor.low, self.actor.high
            way = torch.randn(s.environments, len(low), generator=self.generator)
            change = (s.change * torch.nn.functional.normalize(way, dim=-1) * 0.5 * (high - low)).double()
            with torch.no_grad():
                start = repeated(batch.now, 1)
            shares = right_signs(batch.layer, start, self.actor, s.measured, change)
            self.reach = torch.tensor(float(longest(shares, s.least)))
        if s.stiffest is not None:
            with torch.no_grad():
                action = self.actor(batch.seen.float())
            over = stiffness(batch.layer, batch.now, action) / s.stiffest
            self.reach = (self.reach + 1.0 - over).clamp(min(SHORTEST, s.horizon), s.horizon)

    def _mix(self, horizon: Horizon) -> None:
        """Let cotangents of actions be mixed on the way back: slopes, and returns times noise, each the less the more it varies
        from environment to environment. Both are of the same mean."""
        s, worth = self.settings, self._worth(horizon)
        scale = 1.0 / s.steps()
        for trace, ahead in zip(self._traces, worth, strict=True):
            by_noise = -scale * (ahead - ahead.mean())[:, None] * trace.drawn / trace.deviation

            def mixed(bar: Tensor, other: Tensor = by_noise) -> Tensor:
                own, others = bar.var(0), other.var(0)
                share = torch.where(torch.isfinite(own), others / (own + others).clamp_min(1e-30), 0.0)
                return torch.where(share > 0.0, share * bar, 0.0) + (1.0 - share) * other

            trace.raw.register_hook(mixed)

    def _regress(self, loss: Tensor) -> float:
        """Better actions along their slopes, and let the actor learn them. The norm of all slopes."""
        loss.backward()
        seen = torch.cat([trace.seen for trace in self._traces])
        slope = torch.cat([trace.raw.grad for trace in self._traces if trace.raw.grad is not None])
        raw, norm = torch.cat([trace.raw.detach() for trace in self._traces]), float(slope.norm())
        # where one environment is chaotic its slopes are cut, not all others made small
        size = slope.abs().median().clamp_min(1e-30)
        wanted = torch.tanh(raw) - self.settings.better * (slope / size).clamp(-3.0, 3.0) / 3.0
        wanted = torch.where(torch.isfinite(wanted), wanted, torch.tanh(raw)).clamp(-1.0, 1.0)
        for _ in range(self.settings.regress):
            for rows in torch.randperm(len(seen), generator=self.generator).chunk(4):
                self.optimisers["actor"].zero_grad()
                said = torch.tanh(self.actor.layers(self.actor.statistics(seen[rows])))
                ((said - wanted[rows]) ** 2).mean().backward()
                self.optimisers["actor"].step()
        return norm

    @torch.no_grad()
    def _average(self) -> None:
        share = 1.0 - min(self.settings.average, self.updates / (self.updates + 10.0))
        for mean, new in zip(self.policy.parameters(), self.actor.parameters(), strict=True):
            mean.lerp_(new, share)
        for mine, new in zip(self.policy.buffers(), self.actor.buffers(), strict=True):  # type: ignore[assignment]
            mine.copy_(new)

    # critics ------------------------------------------------------------------------------------------------------------

    def _fit(self, horizon: Horizon) -> None:
        """Let the critics learn what observations were worth."""
        optimiser, worth = self.optimisers["critics"], self._worth(horizon).flatten()
        scaled = self.actor.statistics(horizon.seen.flatten(0, 1))
        for _ in range(self.settings.fits):
            for rows in torch.randperm(len(worth), generator=self.generator).chunk(self.settings.parts):
                optimiser.zero_grad()
                x, y = scaled[rows], worth[rows]
                torch.stack([((critic(x)[:, 0] - y) ** 2).mean() for critic in self.critics]).sum().backward()
                clip_grad_norm_(self.critics.parameters(), 1.0)
                optimiser.step()
        with torch.no_grad():
            for asked, new in zip(self.asked.parameters(), self.critics.parameters(), strict=True):
                asked.lerp_(new, self.settings.follow)

    @torch.no_grad()
    def _worth(self, horizon: Horizon) -> Tensor:
        """TD(lambda) of every observation, (horizon, environments)."""
        s, scaled = self.settings, self.actor.statistics(horizon.last)
        said = [critic(scaled)[..., 0] for critic in self.asked]
        to_come = torch.stack(said).amin(0) if said else torch.zeros_like(horizon.reward)
        to_come = torch.where(horizon.terminated, 0.0, to_come)
        found, ahead = [], to_come[-1]
        for k in reversed(range(s.horizon)):
            mixed = torch.where(horizon.over[k], to_come[k], (1.0 - s.blend) * to_come[k] + s.blend * ahead)
            ahead = horizon.reward[k] + s.discount * mixed
            found.append(ahead)
        return torch.stack(found[::-1])


def _adam(parameters: Iterable[Any], rate: float) -> torch.optim.Adam:
    return torch.optim.Adam(parameters, rate, (0.7, 0.95), fused=True)
