"""A car on two axles whose wheels slide until they roll, by scipy: a truth for the racecar that owes nothing to the engine."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import jointgrad as jg

RADIUS, SPIN = 0.05, 0.00041226  # of a wheel: m, kg m^2 about its axle


class Axle(NamedTuple):
    """Friction under its two wheels, and the damping of each, N m s."""

    friction: float
    damping: float


class _Car(NamedTuple):
    mass: float
    height: float  # of its centre of mass above ground
    before: float  # from the rear axle forward to the centre of mass
    base: float  # from the rear axle to the front axle


def driven(
    model: jg.Model, rear: Axle, front: Axle, speed: float, gravity: float, samples: int
) -> tuple[np.ndarray, np.ndarray]:
    """Times over one second, and x with the angles of rear and front wheels (samples, 3) there.

    The body neither pitches nor leaves its line: the axles share its weight so that friction's moment is balanced,
    less what spins up the wheels. A wheel that slides has F = mu N; one that rolls has w = v / r.
    """
    from scipy.integrate import solve_ivp

    car, ends = _measured(model), (rear, front)
    times = np.linspace(0.0, 1.0, samples)
    found = solve_ivp(
        lambda t, y: _rates(car, ends, gravity, y), (0.0, 1.0), [0.0, 0.0, 0.0, speed, 0.0, 0.0], t_eval=times,
        max_step=1e-3, rtol=1e-9,
    )  # fmt: skip
    return times, found.y[:3].T


def _measured(model: jg.Model) -> _Car:
    """Sizes and weight of the car, as its links stand at the start."""
    info, mass = jg.inspect(model, model.initial_state()), model.params["link.mass"]
    at = info.link_position + np.einsum("nij,nj->ni", info.link_rotation, model.params["link.com"])
    centre = mass @ at / mass.sum()
    rear, front = (info.link_position[model.link(f"left_{end}_wheel")] for end in ("rear", "front"))
    height = centre[2] - rear[2] + RADIUS
    return _Car(float(mass.sum()), float(height), float(centre[0] - rear[0]), float(front[0] - rear[0]))


def _rates(car: _Car, ends: tuple[Axle, Axle], gravity: float, y: np.ndarray) -> np.ndarray:
    """Unknowns of the linear system: v', then w', F, N of the rear axle and of the front one; F and N of both wheels together."""
    v, spins = y[3], y[4:]
    A, b = np.zeros((7, 7)), np.zeros(7)
    A[0, [0, 2, 5]] = car.mass, 1.0, 1.0
    A[1, [3, 6]], b[1] = 1.0, car.mass * gravity
    # moments about the centre of mass: of weight on the axles, of friction, and of the wheels' spin
    A[2, [6, 3]] = car.base - car.before, -car.before
    A[2, [2, 5]], A[2, [1, 4]] = -car.height, 2 * SPIN
    for k, (axle, w) in enumerate(zip(ends, spins, strict=True)):
        spin, force, weight = 1 + 3 * k, 2 + 3 * k, 3 + 3 * k
        A[3 + 2 * k, [spin, force]], b[3 + 2 * k] = (2 * SPIN, -RADIUS), -2 * axle.damping * w
        if v - w * RADIUS > 1e-6:
            A[4 + 2 * k, [force, weight]] = 1.0, -axle.friction
        else:
            A[4 + 2 * k, [spin, 0]] = RADIUS, -1.0
    rates = np.linalg.solve(A, b)
    return np.array([v, *spins, rates[0], rates[1], rates[4]])
