"""Fit the mass of a pole from watched motions, with PyTorch's own optimiser: the mass is a parameter like any other."""

import torch

import jointgrad as jg
from jointgrad.torch import Simulator

model = jg.zoo.cart_pole(pole_mass=0.4).compile(dt=0.02)
simulator = Simulator(model)
torch.manual_seed(0)

q = 0.5 * torch.randn(8, 2, dtype=torch.float64)  # eight starts
qd = torch.zeros_like(q)
u = 3.0 * torch.randn(50, 8, 1, dtype=torch.float64)
watched = simulator.rollout(q, qd, u).q  # with the true mass, 0.4 kg

cart = torch.tensor([1.0], dtype=torch.float64)
log_mass = torch.zeros(1, dtype=torch.float64, requires_grad=True)  # starts at 1 kg; its logarithm keeps it positive
optimiser = torch.optim.LBFGS([log_mass], line_search_fn="strong_wolfe", tolerance_grad=1e-14, tolerance_change=1e-14)


def loss() -> torch.Tensor:
    optimiser.zero_grad()
    mass = torch.cat([cart, log_mass.exp()])
    # a uniform pole: its inertia follows its mass
    pole = log_mass.exp() * torch.tensor([1 / 12, 0.0, 0.0, 1 / 12, 0.0, 4e-4], dtype=torch.float64)
    inertia = torch.stack([torch.tensor(model.params["link.inertia"][0]), pole])
    found = simulator.rollout(q, qd, u, params={"link.mass": mass, "link.inertia": inertia}).q
    value = ((found - watched) ** 2).mean()
    value.backward()
    return value


for _ in range(3):
    print(f"misfit {optimiser.step(loss).item():.3e}, pole {log_mass.exp().item():.6f} kg")

assert abs(log_mass.exp().item() - 0.4) < 1e-4
