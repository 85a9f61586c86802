"""Differentiate through a contact, and read how far the gradient may be trusted (PyTorch).

A puck is pushed over rough ground and slides to rest. How far it comes depends on the friction; so does the gradient.
"""

import torch

import jointgrad as jg
from jointgrad.torch import Simulator

puck = jg.Description("puck", base="free")
link = puck.add_link("puck", mass=1.0, inertia=(0.01, 0.01, 0.01))
link.shapes.append(jg.Shape("box", (0.1, 0.1, 0.05), name="box"))
world = jg.World().add(puck, position=(0.0, 0.0, 0.05)).add_ground(friction=0.4)
model = world.compile(dt=2e-3)
simulator = Simulator(model)

q, qd = (torch.from_numpy(x) for x in model.initial_state())
speed = torch.tensor(1.5, dtype=torch.float64, requires_grad=True)
friction = torch.tensor(model.params["pair.friction"], requires_grad=True)

start = torch.cat([speed[None], qd[1:]])
motion = simulator.rollout(q, start, steps=150, params={"pair.friction": friction}, outputs="contact.force")
distance = motion.q[-1, 0]
by_speed, by_friction = torch.autograd.grad(distance, (speed, friction))

# sliding under Coulomb friction for a time t: x = v t - mu g t^2 / 2
t = 150 * 2e-3
print(
    f"distance {distance.item():.4f} m, by speed {by_speed.item():.4f} s, by friction {by_friction.sum().item():.4f} m"
)
print("weight carried by the ground:", -motion.outputs["contact.force"][-1, model.link("ground"), 2].item(), "N")

# the same motion in the core, where it says how near its contacts were to acting otherwise
certificate = jg.rollout(model, jg.State(q.numpy(), start.detach().numpy()), steps=150).certificate()
print(certificate)
print(
    "slipping points in the last step:",
    certificate.slipping[-1],
    "nearest clamp:",
    certificate.mode_margin.min(),
    "N s",
)

assert abs(by_speed.item() - t) < 0.01 * t
assert abs(by_friction.sum().item() + 9.81 * t**2 / 2) < 0.02 * 9.81 * t**2 / 2
assert certificate.slipping[-1] == 4 and certificate.mode_margin.min() > 0
