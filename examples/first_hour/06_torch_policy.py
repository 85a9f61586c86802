"""A policy in PyTorch, trained by gradients through the simulation: a cart holds its pole. MuJoCo has no such gradients."""

import torch

import jointgrad as jg
from jointgrad.torch import Simulator


def ours():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    simulator = Simulator(jg.zoo.cart_pole().compile(dt=0.02))
    policy = torch.nn.Linear(4, 1).double()
    optimiser, losses = torch.optim.Adam(policy.parameters(), 0.3), []
    for _ in range(40):
        q, qd = 0.1 * torch.randn(32, 2, dtype=torch.float64), torch.zeros(32, 2, dtype=torch.float64)
        cost = 0.0
        for _ in range(50):
            q, qd = simulator(q, qd, policy(torch.cat((q, qd), -1)))
            cost = cost + (q**2).sum(-1).mean() / 50
        optimiser.zero_grad()
        cost.backward()
        optimiser.step()
        losses.append(cost.item())
    return losses


if __name__ != "counted":
    losses = ours()
    print("cost", losses[0], "->", losses[-1])
    assert losses[-1] < 0.2 * losses[0]
