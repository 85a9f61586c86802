"""Soft actor-critic (Haarnoja et al. 2018), and policy enhancement on top of it (Qiao 2021, equations 12 to 14 and 16).

The actor follows what two critics say of its actions. Enhanced, it follows the simulation for one action and the critics from
there on: dQ/da = dr/da + discount J^T dV/ds', with J = ds'/da exact, kept beside every action that was tried.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...model.errors import InputError
from ..differentiable_batch import DifferentiableBatch
from ..randomise import Randomisation
from ..slopes import slopes
from ..task import Moment, Task
from .neighbours import Neighbours
from .networks import Drawn, GaussianPolicy, Policy, Stacked
from .pool import Pool

GRADIENTS = ("critic", "simulation")
EXTRAS = ("full", "row", "simulated")


@dataclass(frozen=True)
class Sac:
    """Settings."""

    environments: int = 1
    period: int = 250  # actions of an environment in an update, each followed by...
    repeats: int = 1  # ...so many steps of actor and critics
    first: int = 1000  # actions drawn evenly before anything is learned
    batch: int = 128
    pool: int = 100_000
    rate: float = 3e-4
    discount: float = 0.99
    follow: float = 0.005  # share by which the critics that are asked follow those that learn
    actor: tuple[int, ...] = (128, 128)
    critic: tuple[int, ...] = (128, 128)
    price: float = 1.0  # of entropy, at first
    entropy: float | None = None  # wanted, of a whole action; None: minus the number of its parts
    limit_ends: bool = False  # nothing counts beyond an episode that time has ended
    gradient: str = "critic"  # that the actor follows; "simulation": policy enhancement
    nearness: float = 1.0  # its weight is exp(-nearness |a - a0|); 0: all actions count alike, as in the released code
    kept_noise: bool = True  # actions are compared with the noise they were tried with; False: with another draw
    extra: int = 0  # samples made about every one that was tried: sample enhancement
    extra_kind: str = (
        "full"  # "row": one coordinate at a time, as released; "simulated": not by slopes but by the simulator
    )
    extra_steps: int = 1  # actions over which deviations are carried on
    extra_state: bool = False  # deviations begin in the state too
    radius: float = 0.01  # of the deviation of actions, at first...
    tolerance: float | None = 0.1  # ...and then so that slopes err by this share of what they say; None: it stays
    every: int = 4
    tried: int = 8

    def __post_init__(self) -> None:
        for name, known in (("gradient", GRADIENTS), ("extra_kind", EXTRAS)):
            if getattr(self, name) not in known:
                raise InputError(f"{name} must be one of {', '.join(known)}, but is {getattr(self, name)!r}")
        if self.gradient == "simulation" and self.extra:
            raise InputError(
                "gradient=simulation needs slopes at every sample, which extra samples do not have: choose one"
            )

    def steps(self) -> int:
        """Actions of all environments in an update."""
        return self.environments * self.period


class Learner:
    """A policy that learns a task from all that it has tried."""

    NETWORKS: tuple[str, ...] = ("actor", "critics", "asked")
    NUMBERS: tuple[str, ...] = ("log_price",)
    TENSORS: tuple[str, ...] = ("acted",)

    def __init__(
        self, task: Task, settings: Sac, seed: int, randomise: Randomisation | None = None, threads: int = 1
    ) -> None:
        self.task, self.settings, self.updates, self.acted = task, settings, 0, torch.tensor(0)
        self.generator = torch.Generator().manual_seed(seed)
        rng = np.random.default_rng(seed)
        self.batch = DifferentiableBatch(task, settings.environments, rng, randomise, threads, carry=0.0)
        self.batch.begin()
        low, high = (torch.tensor(x).float() for x in task.action_limits)
        n_seen, n_acts = task.n_observations, len(low)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.actor = GaussianPolicy(n_seen, settings.actor, low, high)
            self.critics = Stacked(2, (n_seen + n_acts, *settings.critic, 1))
            self._build()
        self.asked = copy.deepcopy(self.critics).requires_grad_(False)
        self.log_price = torch.nn.Parameter(torch.tensor(float(np.log(settings.price))))
        self.wanted = -float(n_acts) if settings.entropy is None else settings.entropy
        self.optimisers = {
            "actor": _adam([*self.actor.parameters(), self.log_price], settings.rate),
            "critics": _adam(list(self.critics.parameters()), settings.rate),
        }
        self.real = Pool(settings.pool, self._columns())
        self.neighbours = Neighbours(task, settings, self.batch.layer) if settings.extra else None
        self.pools: dict[str, Any] = {"real": self.real, **({"near": self.neighbours} if self.neighbours else {})}

    def _build(self) -> None:
        """Further networks, of methods that are made of this one."""

    def _columns(self) -> dict[str, tuple[int, ...]]:
        seen, acts = (self.task.n_observations,), (self.task.model.nu,)
        found = {"seen": seen, "share": acts, "reward": (), "after": seen, "ended": ()}
        if self.settings.gradient == "simulation":
            found |= {"noise": acts, "reward_by_action": acts, "after_by_action": (*seen, *acts)}
        return found

    @property
    def policy(self) -> Policy:
        return self.actor.played(self.settings.actor)

    # one update ---------------------------------------------------------------------------------------------------------

    def update(self) -> dict[str, float]:
        """Try actions, and learn after each of them."""
        s, rewards, falls, said = self.settings, 0.0, 0.0, []
        for _ in range(s.period):
            reward, terminated = self._try()
            rewards, falls = rewards + float(reward.mean()), falls + float(terminated.sum())
            if self.acted >= s.first:
                self._prepare()
                said += [self._learn() for _ in range(s.repeats * s.environments)]
        self.updates += 1
        names = ("critic_loss", "value", "entropy", "price")
        means = torch.tensor(said).mean(0).tolist() if said else [0.0] * len(names)
        return {"reward": rewards / s.period, "falls": falls, **dict(zip(names, means, strict=True)), **self._more()}

    def _prepare(self) -> None:
        """What is due after an action, before anything is learned from it."""

    def _more(self) -> dict[str, float]:
        """Further numbers for the curve."""
        return {} if self.neighbours is None else self.neighbours.numbers()

    @torch.no_grad()
    def _try(self) -> tuple[Tensor, Tensor]:
        """One action in every environment, into the pool."""
        before, seen = self.batch.now, self.batch.seen.float()
        share, noise = self._act(seen)
        action = self.actor.low + 0.5 * (share + 1.0) * (self.actor.high - self.actor.low)
        outcome = self.batch.step(action)
        ended = outcome.over if self.settings.limit_ends else outcome.terminated
        row = {"seen": seen, "share": share, "reward": outcome.reward, "after": outcome.observation, "ended": ended}
        if self.settings.gradient == "simulation":
            row |= {"noise": noise, **self._slopes(before, action)}
        self.real.add(**row)
        self.acted += len(seen)
        if self.neighbours is not None:
            self.real.add(**self.neighbours.made(before, outcome, share, action, ended, self.generator))
        return outcome.reward, outcome.terminated

    def _act(self, seen: Tensor) -> tuple[Tensor, Tensor]:
        """Actions from -1 to 1, and the noise in them; at first drawn evenly, with no noise that the actor would know."""
        shape = len(seen), self.task.model.nu
        if self.acted < self.settings.first:
            return 2.0 * torch.rand(shape, generator=self.generator) - 1.0, torch.full(shape, torch.nan)
        noise = self._noise(len(seen))
        return self.actor(seen, noise).share, noise

    def _slopes(self, before: Moment, action: Tensor) -> dict[str, Tensor]:
        """Of the next observation and the reward by an action from -1 to 1."""
        found = slopes(self.batch.layer, before, action).by_action * 0.5 * (self.actor.high - self.actor.low)
        return {"reward_by_action": found[:, -1], "after_by_action": found[:, :-1]}

    def _noise(self, n: int) -> Tensor:
        return torch.randn(n, self.task.model.nu, generator=self.generator)

    # learning -----------------------------------------------------------------------------------------------------------

    def _drawn(self) -> dict[str, Tensor]:
        """What critics and actor learn from."""
        return self.real.draw(self.generator, self.settings.batch)

    def _learn(self) -> tuple[float, float, float, float]:
        """A step of the critics, of the actor and of the price of entropy."""
        rows = self._drawn()
        loss, value = self.critic_loss(rows)
        self._step("critics", loss)
        if self.settings.gradient == "simulation":
            loss_of_actor, likely = self.enhanced_loss(self.real.draw(self.generator, self.settings.batch))
        else:
            loss_of_actor, likely = self.actor_loss(rows)
        # the actor takes the price as it is: neither loss knows the other's numbers
        self._step("actor", loss_of_actor - self.log_price * (likely.mean() + self.wanted))
        with torch.no_grad():
            for asked, new in zip(self.asked.parameters(), self.critics.parameters(), strict=True):
                asked.lerp_(new, self.settings.follow)
        return loss.item(), value.item(), -likely.mean().item(), self.log_price.exp().item()

    def critic_loss(self, rows: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Squared errors of both critics against what was earned and is to come; and the mean of that."""
        with torch.no_grad():
            ahead = self.to_come(rows["after"], self._noise(len(rows["after"])))
            worth = rows["reward"] + self.settings.discount * (1.0 - rows["ended"]) * ahead
        found = _asked(self.critics, rows["seen"], rows["share"])
        return 0.5 * ((found - worth) ** 2).mean(1).sum(), worth.mean()

    def to_come(self, seen: Tensor, noise: Tensor) -> Tensor:
        """What the lower of the critics that are asked expects, with the actor's entropy, (n,)."""
        share, likely = self.actor(seen, noise)
        return _asked(self.asked, seen, share).amin(0) - self.log_price.exp().detach() * likely

    def actor_loss(self, rows: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """As the critics have it; and how likely actions were."""
        drawn = self.actor(rows["seen"], self._noise(len(rows["seen"])))
        worth = _asked(self.critics, rows["seen"], drawn.share).amin(0)
        return (self.log_price.exp().detach() * drawn.log_likelihood - worth).mean(), drawn.log_likelihood.detach()

    def enhanced_loss(self, rows: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """As the simulation has it for one action and the critics from there on."""
        slope = self.slope(rows)
        drawn = self.actor(rows["seen"], self._same_noise(rows["noise"]))
        worth = self.weight(drawn, rows["share"]) * (slope * drawn.share).sum(-1)
        return (self.log_price.exp().detach() * drawn.log_likelihood - worth).mean(), drawn.log_likelihood.detach()

    def slope(self, rows: dict[str, Tensor]) -> Tensor:
        """dQ/da where actions were tried, (n, nu): equation 13, through the policy at the next observation too."""
        after = rows["after"].clone().requires_grad_()
        with torch.enable_grad():
            ahead = self.to_come(after, self._noise(len(after)))
            (by_after,) = torch.autograd.grad(ahead.sum(), after)
        by_after = by_after * (self.settings.discount * (1.0 - rows["ended"]))[:, None]
        return rows["reward_by_action"] + torch.einsum("nij,ni->nj", rows["after_by_action"], by_after)

    def weight(self, drawn: Drawn, share: Tensor) -> Tensor:
        """Equation 16: slopes count where the actor still acts as it did."""
        apart = torch.linalg.vector_norm(drawn.share.detach() - share, dim=-1)
        return torch.exp(-self.settings.nearness * apart)

    def _same_noise(self, kept: Tensor) -> Tensor:
        other = self._noise(len(kept))
        return torch.where(kept.isnan(), other, kept) if self.settings.kept_noise else other

    def _step(self, name: str, loss: Tensor) -> None:
        optimiser = self.optimisers[name]
        optimiser.zero_grad()
        loss.backward(inputs=optimiser.param_groups[0]["params"])
        optimiser.step()


def _asked(critics: Stacked, seen: Tensor, share: Tensor) -> Tensor:
    """What each critic says, (critics, n)."""
    return critics(torch.cat((seen, share), -1))[..., 0]


def _adam(parameters: list[Tensor], rate: float) -> torch.optim.Adam:
    return torch.optim.Adam(parameters, rate, fused=True)
