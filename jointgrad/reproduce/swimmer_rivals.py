"""Networks alone that predict a swimmer: an LSTM and a residual MLP of no more than 1,900 weights (torch).

Both see sines and cosines of the angles, velocities and the control, in units of their standard deviations, and say how far the
state moves in a step. Place does not matter to the laws of motion, and is not shown. First they are taught single steps from
recorded states with a little noise; then they are trained as they will be used: from a recorded state they run on their own
predictions, over windows of 50 and of all 200 steps. What is tried (widths, rates, whether places follow from velocities), and when
to stop, is decided by the error on motions that training does not see.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

MOST_WEIGHTS = 1900
# windows of training: steps, passes over the data; 1: single steps from recorded states, all in one batch
STAGES = ((1, 600), (50, 20), (200, 20))
BATCH = 64
NOISE = 0.01  # on what is seen when single steps are taught, in standard deviations


@dataclass(frozen=True)
class Choice:
    """kind: lstm or mlp. width: of the hidden layer(s). integrates: it says velocities alone, places follow from them."""

    kind: str
    width: int
    rate: float
    integrates: bool

    def __str__(self) -> str:
        return f"{self.kind} {self.width}, rate {self.rate:g}{', places from velocities' if self.integrates else ''}"


def choices(kind: str) -> list[Choice]:
    """What is tried: the widest that is allowed, two rates or two ways to get places, and for the LSTM a narrower one."""
    if kind == "mlp":
        return [Choice(kind, 34, 3e-3, True), Choice(kind, 34, 3e-3, False)]
    wide = [Choice(kind, 16, 1e-2, True), Choice(kind, 16, 3e-3, True), Choice(kind, 16, 3e-3, False)]
    return [*wide, Choice(kind, 10, 1e-2, True)]


class Predictor(torch.nn.Module):
    """The next state from this one, a control, and what an LSTM remembers."""

    def __init__(self, choice: Choice, q: np.ndarray, qd: np.ndarray, u: np.ndarray, angles: Sequence[int], dt: float):
        super().__init__()
        self.choice, self.nv, self.angles, self.dt = choice, qd.shape[-1], list(angles), dt
        self.spread_qd, self.spread_u = _tensor(qd.std((0, 1))), _tensor(u.std((0, 1)))
        n_in, n_out = 2 * len(self.angles) + self.nv + u.shape[-1], self.nv * (1 if choice.integrates else 2)
        h = choice.width
        if choice.kind == "lstm":
            self.body: torch.nn.Module = torch.nn.LSTM(n_in, h)
        else:
            self.body = torch.nn.Sequential(
                torch.nn.Linear(n_in, h), torch.nn.Tanh(), torch.nn.Linear(h, h), torch.nn.Tanh()
            )
        self.head = torch.nn.Linear(h, n_out)
        # of a step: how far velocities and places move
        self.reach_qd = _tensor(np.diff(qd, axis=0).std((0, 1)))
        self.reach_q = _tensor(np.diff(q, axis=0).std((0, 1)))
        count = sum(p.numel() for p in self.parameters())
        if count > MOST_WEIGHTS:
            raise ValueError(f"{choice} has {count} weights, more than {MOST_WEIGHTS}")
        self.count = count

    def steps(self, q: torch.Tensor, qd: torch.Tensor, u: torch.Tensor, memory: Any, noise: float = 0.0) -> tuple:
        """Where each of the states q (T, N, .) is one step later, the memory going from one to the next; and the memory."""
        turned = q[..., self.angles]
        x = torch.cat([torch.sin(turned), torch.cos(turned), qd / self.spread_qd, u / self.spread_u], -1)
        if noise:
            x = x + noise * torch.randn_like(x)
        if self.choice.kind == "lstm":
            x, memory = self.body(x, memory)
            said = self.head(x)
        else:
            said = self.head(self.body(x))
        new = qd + self.reach_qd * said[..., : self.nv]
        if self.choice.integrates:
            return q + self.dt * new, new, memory
        return q + self.reach_q * said[..., self.nv :], new, memory

    def forward(self, q: torch.Tensor, qd: torch.Tensor, u: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Motions (T, N, .) from states (N, .) under controls (T, N, nu)."""
        memory, found = None, []
        q, qd = q[None], qd[None]
        for control in u:
            q, qd, memory = self.steps(q, qd, control[None], memory)
            found.append((q, qd))
        return torch.cat([a for a, _ in found]), torch.cat([b for _, b in found])


def _tensor(a: np.ndarray) -> torch.Tensor:
    return torch.as_tensor(np.asarray(a), dtype=torch.float32)


class Data:
    """Recorded motions q (T+1, N, .), qd, u (T, N, .), cut into windows."""

    def __init__(self, q: np.ndarray, qd: np.ndarray, u: np.ndarray) -> None:
        self.q, self.qd, self.u = _tensor(q), _tensor(qd), _tensor(u)

    def windows(self, steps: int, every: int) -> list[torch.Tensor]:
        """Starts q, qd (N, .), controls (steps, N, .), then q, qd (steps, N, .)."""
        firsts = range(0, len(self.u) - steps + 1, every)
        cut = lambda a, shift: torch.cat([a[f + shift : f + shift + steps] for f in firsts], 1)  # noqa: E731
        q, qd = (torch.cat([a[f] for f in firsts]) for a in (self.q, self.qd))
        return [q, qd, cut(self.u, 0), cut(self.q, 1), cut(self.qd, 1)]


def loss(net: Predictor, data: list[torch.Tensor], scales: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """Mean squared error of motions in units of scales."""
    q, qd = net(*data[:3])
    return (((q - data[3]) / scales[0]) ** 2).mean() + (((qd - data[4]) / scales[1]) ** 2).mean()


def taught(net: Predictor, data: Data) -> torch.Tensor:
    """Mean squared error of single steps from recorded states, in units of how far the state moves in a step."""
    q, qd, _ = net.steps(data.q[:-1], data.qd[:-1], data.u, None, NOISE)
    error = (((qd - data.qd[1:]) / net.reach_qd) ** 2).mean()
    return error if net.choice.integrates else error + (((q - data.q[1:]) / net.reach_q) ** 2).mean()


def trained(
    choice: Choice, training: Data, held: Data, scales: tuple[np.ndarray, np.ndarray], angles: Sequence[int], dt: float,
    seed: int = 0, stages: Sequence[tuple[int, int]] = STAGES,
) -> tuple[Predictor, float]:  # fmt: skip
    """The network with the least error over whole motions put aside, and that error."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    net = Predictor(choice, training.q.numpy(), training.qd.numpy(), training.u.numpy(), angles, dt)
    units = _tensor(scales[0]), _tensor(scales[1])
    judge = held.windows(len(held.u), len(held.u))
    best, kept = np.inf, copy.deepcopy(net.state_dict())
    for k, (steps, passes) in enumerate(stages):
        data = training.windows(steps, max(1, steps // 4)) if steps > 1 else []
        optimiser = torch.optim.Adam(net.parameters(), lr=choice.rate * 0.5**k)
        plan = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, passes)
        for i in range(passes):
            if steps > 1:
                _one_pass(net, optimiser, data, units)
            else:
                _descend(net, optimiser, taught(net, training))
            plan.step()
            if (i + 1) % (25 if steps == 1 else 2):
                continue
            with torch.no_grad():
                error = float(loss(net, judge, units))
            if error < best:
                best, kept = error, copy.deepcopy(net.state_dict())
        net.load_state_dict(kept)
    return net, best


def _descend(net: Predictor, optimiser: Any, error: torch.Tensor) -> None:
    optimiser.zero_grad()
    error.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimiser.step()


def _one_pass(
    net: Predictor, optimiser: Any, data: list[torch.Tensor], units: tuple[torch.Tensor, torch.Tensor]
) -> None:
    order = torch.randperm(data[0].shape[0])
    # never fewer than some ten steps a pass: long windows are few
    size = max(1, min(BATCH, len(order) // 4))
    for rows in order.split(size):
        batch = [data[0][rows], data[1][rows], *(a[:, rows] for a in data[2:])]
        _descend(net, optimiser, loss(net, batch, units))


def predicted(
    net: Predictor, q: np.ndarray, qd: np.ndarray, u: np.ndarray, told: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Motions of the network, as long as u, from the first of the states q (T+1, N, .); told: true states it is shown first."""
    with torch.no_grad():
        memory, out = None, [(_tensor(q[:1]), _tensor(qd[:1]))]
        for k, control in enumerate(u):
            state = (_tensor(q[k : k + 1]), _tensor(qd[k : k + 1])) if k <= told else out[-1]
            new_q, new_qd, memory = net.steps(*state, _tensor(control)[None], memory)
            out.append((new_q, new_qd))
    return tuple(np.concatenate([o[i].numpy() for o in out]).astype(float) for i in range(2))  # type: ignore[return-value]
