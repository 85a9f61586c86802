"""Train a small policy to swing up a cart-pole, by gradients through windows of 200 steps of simulation (PyTorch).

A second network learns what will come after a window (Xu et al. 2022, arXiv:2204.07137). The next example is this in JAX.
"""

import torch
from torch.nn import Linear, Sequential, Tanh

import jointgrad as jg
from jointgrad.torch import Simulator

HELD, WINDOW, BATCH, ITERATIONS = 10, 20, 64, 800  # a push is held for 10 steps of 5 ms; a window is 20 pushes
FORCE, NOISE, DISCOUNT, RATE, FITS = 20.0, 0.2, 0.97, 0.02, 4
torch.set_num_threads(1)  # networks this small: PyTorch's threads would only wait for each other, and for ours
simulator = Simulator(jg.zoo.cart_pole().compile(dt=0.005), threads=1)


def network():
    return Sequential(Linear(5, 32), Tanh(), Linear(32, 32), Tanh(), Linear(32, 1)).double()


def seen(x):
    return torch.cat((x[..., :1], x[..., 1:2].cos(), x[..., 1:2].sin(), 0.3 * x[..., 2:]), -1)


def moved(policy, x, noise=0.0):  # to where the policy is asked again
    push = FORCE * torch.tanh(policy(seen(x)) + noise * torch.randn(len(x), 1))
    return torch.cat(simulator.rollout(x[:, :2], x[:, 2:], push.expand(HELD, -1, -1), only_last=True)[:2], -1)


def starts(batch, anywhere=0.5):
    """Nearly at rest with the pole down; a share of them anywhere."""
    x = 0.05 * torch.randn(batch, 4, dtype=torch.float64) + torch.tensor([0.0, torch.pi, 0.0, 0.0])
    return x + (torch.rand(batch, 1) < anywhere) * torch.randn(batch, 4) * torch.tensor([0.5, 2.0, 1.0, 3.0])


@torch.no_grad()
def worst_end(policy, batch=32):
    """Of so many hanging starts, the lowest that a pole is in the last half second of four; 1 is upright."""
    states = [starts(batch, anywhere=0.0)]
    for _ in range(80):
        states.append(moved(policy, states[-1]))
    return torch.stack(states[-10:])[..., 1].cos().min().item()


def improve(optimiser, loss):
    optimiser.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(optimiser.param_groups[0]["params"], 1.0)
    optimiser.step()


def trained(seed):
    torch.manual_seed(seed)
    policy, critic = network(), network()
    of_policy, of_critic = (torch.optim.Adam(net.parameters(), RATE, (0.7, 0.95)) for net in (policy, critic))
    x = starts(BATCH)
    for k in range(ITERATIONS):
        if k % 50 == 0 and worst_end(policy, 256) > 0.99:
            break
        of_policy.param_groups[0]["lr"] = of_critic.param_groups[0]["lr"] = RATE / (1 + k / 200)
        x = torch.where((torch.rand(BATCH, 1) < 0.2) | (x[:, :1].abs() > 4), starts(BATCH), x.detach())
        states = [x]
        for _ in range(WINDOW):
            states.append(x := moved(policy, x, NOISE))
        to_come = [critic(seen(x))[:, 0]]  # from each state on, the last one first
        for x_next in reversed(states[1:]):
            cost = 1 - x_next[:, 1].cos() + 0.05 * x_next[:, 0] ** 2 + 0.005 * (x_next[:, 2:] ** 2).sum(-1)
            to_come.append(cost + DISCOUNT * to_come[-1])
        improve(of_policy, (1 - DISCOUNT) * to_come[-1].mean())
        known, goal = seen(torch.stack(states[:-1])).detach(), torch.stack(to_come[:0:-1]).detach()
        for _ in range(FITS):
            improve(of_critic, ((critic(known)[..., 0] - goal) ** 2).mean())
    return policy


if __name__ != "swing_up":  # benchmarks/swing_up.py imports it under that name
    print("pole at least", round(worst := worst_end(trained(seed=0)), 4))
    assert worst > 0.95
