"""How often the certificate trusts a gradient that misleads, and how often it warns of one that does not.

    python benchmarks/certificate.py [--motions 60] [--fit] [--seed 1]

A gradient is that of one random coordinate of the last state, by the start's positions or its velocities. It misleads where a step
along it, over DISTANCE and to either side, changes the coordinate by something else than it says: by less than half, by more than
one and a half times as much, or the other way (changes below FLOOR of the distance count for nothing). Steps keep to what
the contacts of the start leave free. Every motion has one such gradient. Intervals are binomial, as if motions were independent;
those of a world share its friction, stiffness, length and the like in four groups, so that true intervals are somewhat wider.

With --fit the motions are those of FITTING with seed 0, and the rates are printed for a row of thresholds; the certificate's own
is chosen there. Without, motions are those of JUDGING (which has worlds that FITTING has not) with another seed, and rates are
those of `Certificate.trusted`, which speaks for every coordinate at once, judged by this coordinate and (--all) by whether any
misleads; of `Certificate.trusted_for` this one; and of the certificate of this loss, `traj.certificate(q_bar=..., ...)`, which
steps along the gradient by the whole start, not by positions or velocities alone as the judge does.

Then, of the same motions: whether the gradient holds at half and at four times the distance that the certificate of the loss says
(`reach`), whether the meaning that it names does better than the exact gradient where that misleads, and what it costs.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import jointgrad as jg
from jointgrad.engine.gradients.copies import copies
from jointgrad.engine.looks.probe import DISTANCE, RATE, free_directions, last_states
from jointgrad.engine.run.tangent_coordinates import displaced, to_tangent

FLOOR = 0.1
AGREES = 0.5  # of what a gradient says, how far the change may be from it
FIT_SEED = 0
THRESHOLDS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


class Motions(NamedTuple):
    model: jg.Model
    q: np.ndarray
    qd: np.ndarray
    steps: int


# worlds -----------------------------------------------------------------------------------------------------------------


def body(shape: jg.Shape, mass: float = 1.0, name: str = "body") -> jg.Description:
    robot = jg.Description(name, base="free")
    robot.add_link(name, mass, inertia=(4e-3 * mass, 5e-3 * mass, 6e-3 * mass)).shapes.append(shape)
    return robot


def alone(shape: jg.Shape, dt: float = 1e-3, contact=None, **pair) -> jg.Model:
    world = jg.World().add(body(shape), position=(0, 0, 0.2)).add_ground(friction=0.5)
    if pair:
        world.pair("body", "ground", **pair)
    return world.compile(dt=dt, contact=contact or jg.Impulse())


def starts(model: jg.Model, rng, n: int, spin: float, speed: float, height: tuple[float, float], tilt: float = 0.0):
    """Bodies with a free base, thrown at random from some heights."""
    q, qd = np.repeat(model.initial_state().q[None], n, 0), np.zeros((n, model.nv))
    for b in range(model.nv // 6):
        q[:, 7 * b : 7 * b + 2] += 0.02 * rng.normal(size=(n, 2))
        q[:, 7 * b + 2] += rng.uniform(*height, size=n)
        turn = np.concatenate([np.ones((n, 1)), tilt * rng.normal(size=(n, 3))], 1)
        q[:, 7 * b + 3 : 7 * b + 7] = turn / np.linalg.norm(turn, axis=1, keepdims=True)
        qd[:, 6 * b : 6 * b + 3] = speed * rng.normal(size=(n, 3))
        qd[:, 6 * b + 3 : 6 * b + 6] = spin * rng.normal(size=(n, 3))
    return q, qd


def landing_ball(rng, n):
    model = alone(jg.Shape("sphere", (0.1,)))
    model = model.replace({"pair.friction": np.full_like(model.params["pair.friction"], rng.uniform(0.05, 1.0))})
    return Motions(model, *starts(model, rng, n, 3.0, 1.0, (-0.1, 0.2)), int(rng.integers(100, 400)))


def bouncing_ball(rng, n):
    model = alone(jg.Shape("sphere", (0.1,)), restitution=float(rng.uniform(0.2, 1.0)))
    return Motions(model, *starts(model, rng, n, 3.0, 0.5, (-0.1, 0.3)), int(rng.integers(100, 400)))


def sliding_box(rng, n):
    model = alone(jg.Shape("box", (0.1, 0.08, 0.06)))
    q, qd = starts(model, rng, n, 0.0, 1.0, (-0.14, -0.14))
    qd[:, 2] = 0.0
    qd[:, 5] = rng.normal(size=n)
    return Motions(model, q, qd, int(rng.integers(50, 300)))


def dropped_box(rng, n):
    model = alone(jg.Shape("box", (0.1, 0.08, 0.06)))
    return Motions(model, *starts(model, rng, n, 2.0, 0.5, (0.0, 0.2), 0.3), int(rng.integers(100, 500)))


def ball_on_a_spring(rng, n):
    damping, dt = float(rng.choice([0.0, 0.5])), float(rng.choice([1e-4, 1e-3, 1e-2]))
    spring = jg.Spring(stiffness=float(10 ** rng.uniform(4, 6)), damping=damping * 1e4)
    model = alone(jg.Shape("sphere", (0.1,)), dt, spring)
    return Motions(model, *starts(model, rng, n, 3.0, 0.5, (-0.1, 0.1)), int(0.3 / dt))


def pendulum_with_stops(rng, n):
    robot = jg.zoo.pendulum(2)
    for joint in list(robot.joints.values()):
        if joint.kind in ("revolute", "continuous"):
            joint.kind, joint.limit = "revolute", (-1.0, 1.0)
    model = robot.compile(dt=1e-3)
    q = rng.uniform(-0.9, 0.9, size=(n, model.nq))
    return Motions(model, q, rng.normal(size=(n, model.nv)), int(rng.integers(50, 400)))


def two_boxes(rng, n):
    world = jg.World()
    for k in range(2):
        world.add(body(jg.Shape("box", (0.1, 0.08, 0.06)), 1.0, f"box{k}"), position=(0.25 * k, 0, 0.2))
    model = world.add_ground(friction=0.5).compile(dt=1e-3)
    return Motions(model, *starts(model, rng, n, 2.0, 0.5, (0.0, 0.2), 0.3), 500)


def rolling_capsule(rng, n):
    model = alone(jg.Shape("capsule", (0.08, 0.1)))
    return Motions(model, *starts(model, rng, n, 2.0, 0.5, (-0.02, 0.15), 0.3), int(rng.integers(100, 400)))


def box_on_springs(rng, n):
    model = alone(jg.Shape("box", (0.1, 0.08, 0.06)), 1e-3, jg.Spring(stiffness=1e5, damping=1e4))
    return Motions(model, *starts(model, rng, n, 1.0, 0.5, (-0.1, 0.1), 0.2), int(rng.integers(50, 300)))


def free_pendulum(rng, n):
    model = jg.zoo.pendulum(3).compile(dt=2e-3)
    return Motions(
        model, rng.uniform(-2, 2, size=(n, model.nq)), 3 * rng.normal(size=(n, model.nv)), int(rng.integers(50, 1500))
    )


def quadruped(rng, n):
    model = jg.World().add(jg.zoo.laikago(touch="feet"), position=(0, 0, 0.5)).add_ground().compile(dt=1e-3)
    q = np.repeat(model.initial_state().q[None], n, 0)
    q[:, 2] += rng.uniform(-0.02, 0.05, size=n)
    return Motions(model, q, 0.2 * rng.normal(size=(n, model.nv)), int(rng.integers(50, 200)))


World = Callable[[np.random.Generator, int], Motions]
FITTING: tuple[World, ...] = (
    landing_ball,
    bouncing_ball,
    sliding_box,
    dropped_box,
    ball_on_a_spring,
    pendulum_with_stops,
)
JUDGING: tuple[World, ...] = (*FITTING, two_boxes, rolling_capsule, box_on_springs, free_pendulum, quadruped)


# the judge --------------------------------------------------------------------------------------------------------------


def misleads(
    motion: jg.Trajectory, coordinate: np.ndarray, by_speed: np.ndarray, rng: np.random.Generator, distance=DISTANCE
) -> np.ndarray:
    """Whether the gradient of one coordinate each misleads over a distance (of all, or (batch,)), (batch,): 1 where a step along it
    does not do what it says, 0 where it does, NaN where nothing can step."""
    model, batch = motion.model, motion.run.inputs.batch
    distance = np.broadcast_to(distance, (batch,))
    bars = np.eye(model.nq + model.nv)[coordinate]
    gradient = motion.backward(bars[:, : model.nq], bars[:, model.nq :], wrt=("state",))
    by_q, by_qd = to_tangent(model, motion.run.inputs.q, gradient.q), gradient.qd
    slope = np.where(by_speed[:, None], RATE * by_qd, by_q)
    # of a gradient of zero a step in any direction will do
    slope = np.where(np.abs(slope).max(1, keepdims=True) > 1e-9, slope, 1e-9 * rng.normal(size=slope.shape))
    same = copies(motion, slice(0, batch), 1)
    with np.errstate(all="ignore"):
        way = distance[:, None] * free_directions(same, slope / np.abs(slope).max(1, keepdims=True))
        dq = np.where(by_speed[:, None], 0.0, displaced(model, motion.run.inputs.q, way))
        dqd = np.where(by_speed[:, None], RATE * way, 0.0)
        said = (by_q * way * ~by_speed[:, None]).sum(1) + (by_qd * dqd).sum(1)
        middle, rows = last_states(same, 0 * dq, 0 * dqd), np.arange(batch)
        changes = [sign * (last_states(same, sign * dq, sign * dqd) - middle)[rows, coordinate] for sign in (1.0, -1.0)]
        error = np.max([np.abs(c - said) for c in changes], axis=0)
        wrong = ~(error <= AGREES * np.maximum(np.abs(said), FLOOR * distance / AGREES))
    return np.where(np.abs(way).max(1) > 0, wrong * 1.0, np.nan)


def by_its_meaning(motion: jg.Trajectory, cert, coordinate: np.ndarray, by_speed: np.ndarray, rng) -> np.ndarray:
    """Whether the gradient by the meaning that the certificate names misleads, NaN where it names none but the exact one."""
    found = np.full(len(coordinate), np.nan)
    named = cert.meanings
    for env, meaning in enumerate(named):
        if meaning is None or meaning == jg.Exact():
            continue
        i = motion.run.inputs
        one = jg.rollout(
            motion.model, jg.State(i.q[env : env + 1], i.qd[env : env + 1]), steps=i.steps, gradient=meaning
        )
        found[env] = misleads(one, coordinate[env : env + 1], by_speed[env : env + 1], rng)[0]
    return found


def any_misleads(motion: jg.Trajectory, rng: np.random.Generator) -> np.ndarray:
    """Whether the gradient of some coordinate misleads, by positions or by velocities, (batch,)."""
    count, batch = motion.model.nq + motion.model.nv, motion.run.inputs.batch
    every = [(np.full(batch, c), np.full(batch, by_speed)) for c in range(count) for by_speed in (False, True)]
    return np.nanmax([misleads(motion, *one, rng) for one in every] + [np.zeros(batch)], axis=0)


def judged(worlds: tuple[World, ...], n: int, seed: int, wants_all: bool, parts: int = 4):
    """Per motion: world; whether its gradient misleads; mismatch for all coordinates, for this one along any direction, and for
    this one along its gradient; the same as verdicts; whether the gradient of any coordinate misleads (if that is wanted); whether
    this one misleads at half and four times the distance it is said to hold over, and by the meaning that is named. A world that is
    about contact and in which nothing touches would judge nothing: it is refused."""
    found = []
    for number, world in enumerate(worlds):
        touched = 0
        for part in range(parts):
            rng = np.random.default_rng((seed, number, part))
            m = world(rng, -(-n // parts))
            motion = jg.rollout(m.model, jg.State(m.q, m.qd), steps=m.steps, on_nan="freeze")
            coordinate, by_speed = rng.integers(m.model.nq + m.model.nv, size=len(m.q)), rng.random(len(m.q)) < 0.5
            truth, cert = misleads(motion, coordinate, by_speed, rng), motion.certificate()
            bars = np.eye(m.model.nq + m.model.nv)[coordinate]
            split = bars[:, : m.model.nq], bars[:, m.model.nq :]
            own = motion.certificate(q_bar=split[0], qd_bar=split[1])
            reach = own.reach
            columns = (
                truth, cert.mismatch, cert._probe.mismatch_along(bars), own.mismatch, cert.trusted, cert.trusted_for(*split),
                own.trusted, any_misleads(motion, rng) if wants_all else truth,
                misleads(motion, coordinate, by_speed, rng, reach / 2), misleads(motion, coordinate, by_speed, rng, 4 * reach),
                reach > 0, by_its_meaning(motion, own, coordinate, by_speed, rng),
            )  # fmt: skip
            touched += int(((cert.impulse > 0) | (cert.sticking + cert.slipping > 0)).any(0).sum())
            found += [(world.__name__, *row) for row in zip(*columns, strict=True) if row[0] == row[0]]
        if world is not free_pendulum and touched < 0.25 * n:
            raise SystemExit(f"{world.__name__}: only {touched} of {n} motions touch anything")
    return found


# printed ----------------------------------------------------------------------------------------------------------------


def interval(k: int, n: int) -> str:
    """Wilson's interval of 95 %."""
    if not n:
        return "none"
    z, p = 1.96, k / n
    middle, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    low, high = (max(0.0, (middle + sign * half) / (1 + z * z / n)) for sign in (-1, 1))
    return f"{k} of {n}, {p:.1%} ({low:.1%} to {high:.1%})"


def rates(truth: np.ndarray, trusted: np.ndarray) -> str:
    bad = truth > 0.5
    false_trust, false_alarm = (bad & trusted).sum(), (~bad & ~trusted).sum()
    return (
        f"mislead though trusted: {interval(int(false_trust), int(trusted.sum()))}; "
        f"good but not trusted: {interval(int(false_alarm), int((~bad).sum()))}; "
        f"misleading ones noticed: {interval(int((bad & ~trusted).sum()), int(bad.sum()))}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--motions", type=int, default=60, help="per world")
    parser.add_argument("--seed", type=int, default=1, help="of the judging set; 0 is that of the fitting set")
    parser.add_argument("--fit", action="store_true")
    parser.add_argument(
        "--all", action="store_true", help="also judge by every coordinate, each with a step of its own (slow)"
    )
    given = parser.parse_args()
    if not given.fit and given.seed == FIT_SEED:
        parser.error(f"seed {FIT_SEED} is that of the fitting set")
    begun, worlds = time.perf_counter(), FITTING if given.fit else JUDGING
    found = judged(worlds, given.motions, FIT_SEED if given.fit else given.seed, given.all)
    names, truth, mismatch, along, own, trusted, for_one, of_own, of_any, near, far, is_inside, helped = (
        np.array(column) for column in zip(*found, strict=True)
    )
    print(f"{'fitting' if given.fit else 'judging'} set: {', '.join(w.__name__ for w in worlds)}")
    rows = [
        ("trusted, of a random coordinate", truth, trusted, mismatch),
        ("trusted, of all coordinates", of_any, trusted, mismatch),
        ("trusted_for a random coordinate, of that one", truth, for_one, along),
        ("the certificate of a random coordinate, of that one", truth, of_own, own),
    ]
    for what, wrong, verdict, figure in rows if given.all else [rows[0], *rows[2:]]:
        print(f"{what}:")
        for name in dict.fromkeys(names):
            print(f"  {name}: {rates(wrong[names == name], verdict[names == name])}")
        for threshold in THRESHOLDS if given.fit else ():
            print(f"  mismatch below {threshold}: {rates(wrong, figure < threshold)}")
        print(f"  all: {rates(wrong, verdict)}")
    inside = is_inside & (near == near) & (far == far)
    print("over the distance that the certificate of a coordinate says (0.3 to 80 mm)")
    print(f"  misleads at half of it: {interval(int((near[inside] > 0.5).sum()), int(inside.sum()))}")
    print(f"  misleads at four times of it: {interval(int((far[inside] > 0.5).sum()), int(inside.sum()))}")
    print("where the exact one misleads and another meaning is named, that one misleads too:")
    for name in dict.fromkeys(names):
        asked = (helped == helped) & (truth > 0.5) & (names == name)
        print(f"  {name}: {interval(int(helped[asked].sum()), int(asked.sum()))}")
    print(cost())
    print(f"{time.perf_counter() - begun:.0f} s")


def cost(repeats: int = 9) -> str:
    """Of certificates, in rollouts of the same motion, on one core."""
    model, said = jg.World().add(jg.zoo.laikago(), position=(0, 0, 0.5)).add_ground().compile(dt=1e-3), []
    for batch in (1, 64):
        start = model.initial_state(batch)
        start.q[:, 2] += np.linspace(-1e-4, 1e-4, batch)  # environments that differ, as copies do
        motion = jg.rollout(model, start, steps=100, threads=1)
        bar, back = np.ones((batch, model.nq)), motion.backward(np.ones((batch, model.nq)), wrt=("state",))
        tasks = {
            "rollout": lambda s=start: jg.rollout(model, s, steps=100, threads=1),
            "verdict": lambda m=motion: m.certificate().trusted,
            "of a loss": lambda m=motion, q=bar: m.certificate(q_bar=q).trusted,
            "of a loss whose gradient is there": lambda m=motion, q=bar, g=back: (
                m.certificate(q_bar=q, gradient=g).trusted
            ),
            "with all figures": lambda m=motion: str(m.certificate()),
        }
        times = {name: [] for name in tasks}
        for _ in range(repeats):
            for name, run in tasks.items():
                start = time.process_time()
                run()
                times[name].append(time.process_time() - start)
        unit = min(times.pop("rollout"))
        said.append(f"batch {batch}: " + ", ".join(f"{name} {min(t) / unit:.1f}" for name, t in times.items()))
    return "cost in rollouts, 100 steps of a Laikago that stands: " + "; ".join(said)


if __name__ == "__main__":
    main()
