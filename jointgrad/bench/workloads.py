"""The three workloads of NeuralSim's figure 5, and the numbers they start from."""

from __future__ import annotations

import numpy as np

import jointgrad as jg

LAYERS = (4, 9, 9, 4)  # 45 + 90 + 40 = 175 weights; the paper gives their number only
PENDULUM_STEPS, DOUBLE_STEPS = 5000, 500
LINK, BALL, HEIGHT = 0.2, 0.04, 0.6


def network_inputs() -> tuple[np.ndarray, np.ndarray]:
    """175 weights and one input."""
    count = sum(m * n + n for m, n in zip(LAYERS, LAYERS[1:], strict=False))
    rng = np.random.default_rng(0)
    return 0.5 * rng.normal(size=count), rng.normal(size=LAYERS[0])


def split(weights):
    """(matrix, bias) of each layer, from one long vector of any kind."""
    found, first = [], 0
    for m, n in zip(LAYERS, LAYERS[1:], strict=False):
        found.append((weights[first : first + m * n], weights[first + m * n : first + m * n + n]))
        first += m * n + n
    return found


def falling_pendulum() -> jg.Model:
    """Five links with a ball at the end of each, hung so low that it falls on the ground."""
    robot = jg.Description("pendulum", base="fixed")
    for i in range(5):
        link = robot.add_link(f"link{i}", 0.5, (0.0, 0.0, -LINK), (1e-3, 1e-3, 1e-3))
        link.shapes.append(jg.Shape("sphere", (BALL,), (0.0, 0.0, -LINK)))
        place = (0.0, 0.0, -LINK if i else HEIGHT)
        robot.add_joint(
            f"joint{i}", "continuous", f"link{i - 1}" if i else None, f"link{i}", position=place, axis=(0, 1, 0)
        )
    world = jg.World().add(robot).add_ground(friction=0.5)
    return world.compile(dt=1e-3)


def double_pendulum() -> jg.Model:
    return jg.zoo.double_pendulum().compile(dt=1e-3, contact=None, constraints=False)


def start_of(model: jg.Model) -> jg.State:
    """Stretched out to the side."""
    start = model.initial_state()
    start.q[0] = 1.3
    return start


WORKLOADS = {
    "pendulum": (falling_pendulum, PENDULUM_STEPS),
    "double pendulum": (double_pendulum, DOUBLE_STEPS),
}
