"""Find the masses of a double pendulum from its motion alone, by Gauss-Newton on exact tangents."""

import numpy as np

import jointgrad as jg

truth = np.array([1.3, 0.7])
model = jg.zoo.double_pendulum().compile(dt=5e-3)
start = jg.State(np.array([2.0, -1.0]), np.zeros(2))
u = 0.5 * np.sin(np.linspace(0, 20, 200))[:, None] * np.ones(2)  # torques shake both joints, so that mass shows
watched = jg.rollout(model.replace({"link.mass": truth}), start, u).q

mass = np.array([1.0, 1.0])
for iteration in range(8):
    motion = jg.rollout(model.replace({"link.mass": mass}), start, u)
    residual = (motion.q - watched).ravel()
    columns = [motion.tangent(params={"link.mass": np.eye(2)[k]})[0].ravel() for k in range(2)]
    mass = mass - np.linalg.lstsq(np.stack(columns, axis=1), residual, rcond=None)[0]
    print(f"{iteration}: masses {mass.round(6)}, residual {np.abs(residual).max():.2e}")

assert np.abs(mass - truth).max() < 1e-6
