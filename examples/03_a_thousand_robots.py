"""A thousand Laikagos in free fall, each with its own chassis mass; the gradient of every one, on all cores."""

import numpy as np

import jointgrad as jg

BATCH = 1000
model = jg.zoo.laikago().compile(dt=2e-3)
mass = np.tile(model.params["link.mass"], (BATCH, 1))
mass[:, model.link("chassis")] *= np.random.default_rng(0).uniform(0.5, 2.0, BATCH)
model = model.replace({"link.mass": mass})

u = np.zeros((50, BATCH, model.nu))
u[:, :, ::3] = 5.0  # all hip motors push
motion = jg.rollout(model, model.initial_state(BATCH), u, outputs=("link.position",))

# loss: height of the front left toe at the end, summed over robots
bar = np.zeros_like(motion.outputs["link.position"])
bar[-1, :, model.link("toeFL"), 2] = 1.0
gradient = motion.backward(bars={"link.position": bar})

# one robot checked by differences in its own mass
k, h = 7, 1e-4
ends = []
for sign in (1, -1):
    moved = mass.copy()
    moved[k, 0] += sign * h
    end = jg.rollout(model.replace({"link.mass": moved}), model.initial_state(BATCH), u, outputs=("link.position",))
    ends.append(end.outputs["link.position"][-1, k, model.link("toeFL"), 2])
difference = (ends[0] - ends[1]) / (2 * h)
print("d(toe height)/d(chassis mass) of robot 7:", gradient.params["link.mass"][k, 0], "by differences:", difference)
assert abs(gradient.params["link.mass"][k, 0] - difference) < 1e-6 * abs(difference) + 1e-10
