"""Swing an n-link pendulum to its highest point, by gradient descent on its torques through the simulator.

The task is that of Qiao 2021, table 4: links of 0.5 m, horizontal and at rest at the start; 100 torques per joint, each
held for 1/60 s, none above 10 N m. The return is d_0 - d_T, where d is the squared distance from the tip to the point
straight above the pivot, so that n^2/2 is the most there is.

Each torque is held over several Runge-Kutta steps. With the single Euler step per torque that the paper takes, descent
finds motions that live on the error of the integrator: they gain several times the energy that their motors deliver. So
every motion found here must also balance its energy, and arrive when it is replayed with finer steps.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import jointgrad as jg

from ..optimize.solvers import Adam

LENGTH = 0.5  # of a link, m
GRAVITY = 9.8  # m/s^2
TORQUE_LIMIT = 10.0  # N m
CONTROL_STEPS = 100
CONTROL_DT = 1 / 60  # s
# Qiao 2021, table 4, "Ours": a learned policy, mean of ten seeds, for n = 1..7
PAPER = (0.49, 1.93, 4.28, 7.81, 12.31, 17.78, 24.34)

# how much finer the steps of the replay are
REPLAY = 8
# torque noise of the random starts, before the squashing to the limit
NOISE = 0.3
# iterations after which the worse half of the starts is given up, and how many stay to the end: a pack or two
HALVE_EVERY, STAY = 40, 4
# a chaotic start may have a huge gradient: one element counts no more than this (typical elements are below 1)
LARGEST_GRADIENT = 10.0
MEMORY = (0.9, 0.95)  # of Adam: shares of the last mean and mean square

Watch = Callable[[int, float], None]


@dataclass(frozen=True)
class Settings:
    """What may be changed about the search and the simulation; n is the number of links."""

    iterations: int = 300  # gradient steps of one attempt
    starts: int = 32  # random torques that are improved together, as one batch
    attempts: int = 3  # with other random torques, while the goal is not reached
    tolerance: float = 1e-3  # tip error at which the search ends, m
    learning_rate: float = 0.07
    seed: int = 0
    substeps: int = 5  # simulation steps per torque
    integrator: str = "rk4"

    def __post_init__(self) -> None:
        for name in ("iterations", "starts", "attempts", "substeps"):
            if getattr(self, name) < 1:
                raise jg.InputError(f"{name} must be 1 or more, but is {getattr(self, name)}")
        for name in ("tolerance", "learning_rate"):
            if not getattr(self, name) > 0:
                raise jg.InputError(f"{name} must be more than zero, but is {getattr(self, name)}")

    @property
    def steps(self) -> int:
        return CONTROL_STEPS * self.substeps

    def finer(self) -> Settings:
        """The same task on a finer grid of time, where every integrator comes closer to the true motion."""
        return dataclasses.replace(self, substeps=REPLAY * self.substeps, integrator="rk4")


@dataclass(frozen=True)
class Search:
    """What gradient descent found: torques (100, n), their tip error (m), and the least one after each iteration."""

    torques: np.ndarray
    tip_error: float
    curve: np.ndarray
    attempts: int


@dataclass(frozen=True)
class Swing:
    """A motion to the top and how good it is. joints (101, n+1, 3): pivot to tip at the control steps, world, m."""

    n: int
    torques: np.ndarray
    joints: np.ndarray
    curve: np.ndarray
    tip_error: float  # m
    replay_tip_error: float  # m, with finer steps
    work: float  # J, of all torques
    energy_gained: float  # J
    energy_error: float  # largest imbalance on the way, as a part of the energy gained or the work
    attempts: int
    seconds: float

    @property
    def maximum(self) -> float:
        return self.n**2 / 2

    @property
    def reward(self) -> float:
        """d_0 - d_T, the return of the paper's equation 15 with the sign that its code has."""
        return self.maximum - self.tip_error**2

    @property
    def ratio(self) -> float:
        return self.reward / self.maximum

    @property
    def paper(self) -> float:
        return PAPER[self.n - 1]

    @property
    def iterations(self) -> int:
        return len(self.curve)


def pendulum(n: int, settings: Settings) -> jg.Model:
    """The pendulum of the paper, with the time step that fits the settings."""
    if not 1 <= n <= len(PAPER):
        raise jg.InputError(f"n, the number of links, must be from 1 to {len(PAPER)}, but is {n}")
    world = jg.World(gravity=(0.0, 0.0, -GRAVITY))
    world.add(jg.zoo.pendulum(n, torque_limit=TORQUE_LIMIT))
    return world.compile(dt=CONTROL_DT / settings.substeps, integrator=settings.integrator, contact=None)


def swing(n: int, settings: Settings, watch: Watch = lambda iteration, tip_error: None) -> Swing:
    """Find torques that bring the tip to the top, then check the motion; watch is called after every iteration."""
    began = time.perf_counter()
    found = search(n, settings, watch)
    seconds = time.perf_counter() - began
    model = pendulum(n, settings)
    motion = replayed(model, found.torques, settings)
    work, gained, error = energy_balance(model, motion, found.torques)
    finer = settings.finer()
    replay = replayed(pendulum(n, finer), found.torques, finer)
    return Swing(
        n=n,
        torques=found.torques,
        joints=motion.outputs["link.position"][:: settings.substeps],
        curve=found.curve,
        tip_error=float(tip_errors(motion.outputs["link.position"][-1])),
        replay_tip_error=float(tip_errors(replay.outputs["link.position"][-1])),
        work=work,
        energy_gained=gained,
        energy_error=error,
        attempts=found.attempts,
        seconds=seconds,
    )


# the search -----------------------------------------------------------------------------------------------------------


def search(n: int, settings: Settings, watch: Watch) -> Search:
    """Descend from random torques, and from others if those did not lead to the goal."""
    best, curve, attempt = Search(np.zeros((CONTROL_STEPS, n)), np.inf, np.empty(0), 0), [], 0
    while attempt < settings.attempts and best.tip_error > settings.tolerance:
        rng = np.random.default_rng((settings.seed, n, attempt))
        attempt += 1
        for torques, tip_error in descent(n, settings, rng):
            if tip_error < best.tip_error:
                best = dataclasses.replace(best, torques=torques, tip_error=tip_error)
            curve.append(best.tip_error)
            watch(len(curve), best.tip_error)
            if best.tip_error <= settings.tolerance:
                break
    return dataclasses.replace(best, curve=np.array(curve), attempts=attempt)


def descent(n: int, settings: Settings, rng: np.random.Generator):
    """Yields the best torques of every iteration and their tip error."""
    model = pendulum(n, settings)
    x, rule = NOISE * rng.normal(size=(CONTROL_STEPS, settings.starts, n)), Adam(settings.learning_rate, MEMORY)
    losses = np.zeros(settings.starts)
    for k in range(settings.iterations):
        if k and k % HALVE_EVERY == 0:
            stay = np.argsort(losses)[: max(STAY, len(losses) // 2)]
            x, rule.mean, rule.square = (a[:, stay] for a in (x, rule.mean, rule.square))
        torques = TORQUE_LIMIT * np.tanh(x)
        losses, errors, torques_bar = objective(model, torques, settings)
        lead = int(np.argmin(errors))
        yield torques[:, lead].copy(), float(errors[lead])
        # the slope of tanh: where a motor is at its limit, more is no use
        x_bar = torques_bar * (TORQUE_LIMIT - torques**2 / TORQUE_LIMIT)
        x_bar *= LARGEST_GRADIENT / np.maximum(np.abs(x_bar).max((0, 2), keepdims=True), LARGEST_GRADIENT)
        rule.rate = settings.learning_rate * (1 + np.cos(np.pi * k / settings.iterations)) / 2
        x = rule.step(x, x_bar)


def objective(model: jg.Model, torques: np.ndarray, settings: Settings) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Losses and tip errors (batch,) of torques (100, batch, n), and the exact gradient of the losses."""
    n_control, batch, n = torques.shape
    u = np.repeat(torques, settings.substeps, axis=0)
    motion = jg.rollout(model, model.initial_state(batch), u, outputs=("link.position",), on_nan="freeze")
    joints = motion.outputs["link.position"]
    bar = np.zeros_like(joints)
    losses, bar[-1] = away_from_upright(joints[-1])
    errors = tip_errors(joints[-1])
    u_bar = motion.backward(bars={"link.position": bar}, wrt=("u",)).u
    # a torque held over several steps acts in each of them
    torques_bar = u_bar.reshape(n_control, settings.substeps, batch, n).sum(1)
    lost = motion.status >= 0
    losses[lost], errors[lost], torques_bar[:, lost] = np.inf, np.inf, 0.0
    return losses, errors, torques_bar


def away_from_upright(joints: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How far the links (..., n+1, 3) are from pointing up: sum of |direction - up|^2, and its cotangent.

    The tip is at the top exactly when every link points up. Near there the height of the tip hardly depends on a single
    link, so the tip's distance is a poor guide; the directions tell every joint what it has to do.
    """
    off = np.diff(joints, axis=-2) / LENGTH - (0.0, 0.0, 1.0)
    off_bar = 2 * off / LENGTH
    joints_bar = np.zeros_like(joints)
    joints_bar[..., 1:, :] += off_bar
    joints_bar[..., :-1, :] -= off_bar
    return (off**2).sum((-1, -2)), joints_bar


def tip_errors(joints: np.ndarray) -> np.ndarray:
    """Distance of the tip from the top, of joints (..., n+1, 3)."""
    top = (0.0, 0.0, LENGTH * (joints.shape[-2] - 1))
    return np.linalg.norm(joints[..., -1, :] - top, axis=-1)


# the checks -----------------------------------------------------------------------------------------------------------


def replayed(model: jg.Model, torques: np.ndarray, settings: Settings) -> jg.Trajectory:
    """The motion under torques (100, n), with all that an energy balance needs."""
    u = np.repeat(torques, settings.substeps, axis=0)
    return jg.rollout(model, model.initial_state(), u, outputs=("link.position", "link.rotation", "link.velocity"))


def energy_balance(model: jg.Model, motion: jg.Trajectory, torques: np.ndarray) -> tuple[float, float, float]:
    """Work of the torques (J), energy gained (J), and the largest difference on the way as a part of the larger."""
    u = np.repeat(torques, motion.steps // len(torques), axis=0)
    # a torque that stays the same during a step does work torque times angle
    work = np.cumsum((u * np.diff(motion.q, axis=0)).sum(-1))
    energy = mechanical_energy(model, motion)
    gained = energy[1:] - energy[0]
    error = np.abs(gained - work).max() / max(abs(gained[-1]), abs(work[-1]), 1e-9)  # 0, not 0/0, where nothing moved
    return float(work[-1]), float(gained[-1]), float(error)


def mechanical_energy(model: jg.Model, motion: jg.Trajectory) -> np.ndarray:
    """Kinetic plus potential energy (T+1,) in J, from masses, poses and velocities of the links alone."""
    mass = model.params["link.mass"]
    xx, xy, xz, yy, yz, zz = np.moveaxis(model.params["link.inertia"], -1, 0)
    inertia = np.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz], -1).reshape(-1, 3, 3)
    position, rotation, velocity = (motion.outputs[f"link.{o}"] for o in ("position", "rotation", "velocity"))
    arm = np.einsum("klij,lj->kli", rotation, model.params["link.com"])
    spin = velocity[..., 3:]
    speed = velocity[..., :3] + np.cross(spin, arm)
    body_spin = np.einsum("klji,klj->kli", rotation, spin)
    turning = np.einsum("kli,lij,klj->k", body_spin, inertia, body_spin)
    height = (position + arm)[..., 2]
    return (mass * (speed**2).sum(-1)).sum(-1) / 2 + turning / 2 + GRAVITY * (mass * height).sum(-1)
