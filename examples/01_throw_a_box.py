"""A first gradient: how must a box be thrown so that it lands on a spot one second later?

The gradient of the landing point by the initial rates turns the question into a few Newton steps.
"""

import numpy as np

import jointgrad as jg

box = jg.Description("box", base="free")
box.add_link("box", mass=1.0, com=(0.0, 0.02, 0.0), inertia=(0.01, 0.02, 0.03))
model = box.compile(dt=1e-2)

start = model.initial_state()
start.qd[:] = (1.0, 0.0, 4.0, 3.0, 1.0, 2.0)  # linear in world axes, angular in body axes
target = np.array([2.0, 1.0, 0.5])

for _ in range(5):
    motion = jg.rollout(model, start, steps=100)
    miss = motion.last.q[:3] - target
    # one row of the Jacobian per coordinate of the landing point
    rows = [motion.backward(q_bar=np.eye(model.nq)[k], wrt=("state",)).qd[:3] for k in range(3)]
    start.qd[:3] -= np.linalg.solve(np.array(rows), miss)

print("thrown with", start.qd[:3].round(4), "lands", np.abs(miss).max(), "m from the spot")
assert np.abs(miss).max() < 1e-9
