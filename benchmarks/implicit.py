"""Contact solved to the end (jg.Implicit) beside jg.Impulse and MuJoCo: speed, stability and convergence, in one run on one core.

    python benchmarks/implicit.py [speed] [stability] [convergence] [--quick] [--out FOLDER]

Times are processor time, best of interleaved repeats; the machine may be busy, so read the ratios. MuJoCo runs the same worlds,
written by `jg.to_mjcf`, collision included on both sides. Needs the extra [bench].
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("JOINTGRAD_THREADS", "1")

import mujoco
import numpy as np

import jointgrad as jg
from jointgrad.bench.scene import released, world_of
from jointgrad.bench.timing import best, write

DT = 1e-3
LAWS = {"implicit": jg.Implicit(), "impulse": jg.Impulse()}


def box(name: str, mass: float = 1.0, half: float = 0.1) -> jg.Description:
    robot = jg.Description(name, base="free")
    inertia = mass * (2 * half) ** 2 / 6
    robot.add_link("box", mass, inertia=(inertia,) * 3).shapes.append(jg.Shape("box", (half,) * 3))
    return robot


def stack(masses: list[float], friction: float = 0.8) -> jg.World:
    world = jg.World()
    for k, mass in enumerate(masses):
        world.add(box(f"box{k}", mass), name=f"box{k}", position=(0, 0, 0.1 + 0.2 * k))
    return world.add_ground(friction=friction)


def twin(world: jg.World, hard: bool = False) -> tuple[mujoco.MjModel, mujoco.MjData]:
    m = mujoco.MjModel.from_xml_string(jg.to_mjcf(world, dt=DT))
    m.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    if hard:
        m.geom_solref[:], m.geom_solimp[:, :2] = (2 * DT, 1.0), 0.999
        m.opt.impratio, m.opt.noslip_iterations = 100.0, 50
    d = mujoco.MjData(m)
    mujoco.mj_resetDataKeyframe(m, d, 0)
    return m, d


# speed ------------------------------------------------------------------------------------------------------------------


def scattered(q: np.ndarray, batch: int, spread: float, seed: int) -> np.ndarray:
    """Copies of the coordinates of free bodies, their places apart by a spread (m)."""
    rng, found = np.random.default_rng(seed), np.repeat(q[None], batch, 0)
    found.reshape(batch, -1, 7)[..., :3] += spread * rng.normal(size=(batch, len(q) // 7, 3))
    return found


def mujoco_steps(m: mujoco.MjModel, d: mujoco.MjData, q: np.ndarray, qd: np.ndarray, u: np.ndarray | None, steps: int):
    """The same steps of every environment, one after the other, each from its own start."""

    def run() -> None:
        for k in range(len(q)):
            mujoco.mj_resetData(m, d)
            d.qpos[:], d.qvel[:] = q[k], qd[k]
            if u is not None:
                d.ctrl[:] = u
            mujoco.mj_step(m, d, nstep=steps)

    return run


def speed_of(world: jg.World, q: np.ndarray, qd: np.ndarray, u: np.ndarray | None, steps: int, repeats: int) -> dict:
    """us per environment and step: forward of both laws and MuJoCo, backward of both laws."""
    batch, runs = len(q), {}
    m, d = twin(world)
    for name, law in LAWS.items():
        model = world.compile(dt=DT, contact=law)
        controls = None if u is None else np.broadcast_to(u, (steps, batch, model.nu)).copy()
        state = jg.State(q, qd)
        motion = jg.rollout(model, state, controls, steps=steps)
        bar = np.ones((batch, model.nv))
        runs[name] = lambda model=model, state=state, controls=controls: jg.rollout(
            model, state, controls, steps=steps, keep=False
        )
        runs[f"{name} backward"] = lambda motion=motion, bar=bar: motion.backward(qd_bar=bar)
    runs["mujoco"] = mujoco_steps(m, d, q, qd, u, steps)
    return {name: 1e6 * seconds / batch / steps for name, seconds in best(runs, repeats).items()}


def speed(repeats: int) -> dict:
    cases = {}
    world = world_of()
    model = world.compile(dt=DT, contact=jg.Implicit())
    q, u = released(model, clearance=0.0)
    settled = jg.rollout(model, jg.State(q, np.zeros(model.nv)), np.repeat(u[None], 300, 0), keep=False).last
    for batch in (256, 64, 1):
        rows = np.repeat(settled.q[None], batch, 0), np.repeat(settled.qd[None], batch, 0)
        cases[f"laikago on four feet, batch {batch}"] = (world, *rows, u, 100 if batch > 1 else 2000)
    rng = np.random.default_rng(0)
    for batch in (64, 1):
        tumbling = np.repeat(q[None], batch, 0)
        tumbling[:, 2] += 0.2
        tumbling[:, 3:7] = rng.normal(size=(batch, 4))
        tumbling[:, 3:7] /= np.linalg.norm(tumbling[:, 3:7], axis=1, keepdims=True)
        whole = jg.World().add(jg.zoo.laikago(), position=(0, 0, 0.5)).add_ground(friction=0.8)
        cases[f"laikago dropped askew, batch {batch}"] = (
            whole, tumbling, rng.normal(size=(batch, model.nv)), np.zeros(model.nu), 600,
        )  # fmt: skip
    boxes = stack([1.0] * 10)
    start = boxes.compile().initial_state().q
    for batch in (64, 1):
        q = scattered(start, batch, 1e-4, 1)
        cases[f"ten boxes at rest, apart by 0.1 mm, batch {batch}"] = (boxes, q, np.zeros((batch, 60)), None, 200)
        leaning = scattered(start, batch, 1e-3, 2)
        leaning.reshape(batch, 10, 7)[..., 0] += 0.06 * np.arange(10)
        cases[f"ten boxes toppling, batch {batch}"] = (boxes, leaning, np.zeros((batch, 60)), None, 800)
    found = {}
    columns = " ".join(f"{law:>9s}" for law in ("implicit", "impulse", "mujoco"))
    print(f"{'us per environment and step':50s} {columns}  ratio   backward: implicit, impulse")
    for name, case in cases.items():
        t = found[name] = speed_of(*case, repeats=repeats)
        print(
            f"{name:50s} {t['implicit']:9.2f} {t['impulse']:9.2f} {t['mujoco']:9.2f} {t['mujoco'] / t['implicit']:6.1f}"
            f"   {t['implicit backward']:8.2f} ({t['implicit backward'] / t['implicit']:.1f}x) {t['impulse backward']:8.2f}",
            flush=True,
        )
    return found


# stability --------------------------------------------------------------------------------------------------------------


def gripper() -> jg.World:
    """Two fingers that press a box of 0.2 kg from both sides, at three times the force that friction needs."""
    hand = jg.Description("hand")
    for k, side in enumerate((-1.0, 1.0)):
        hand.add_link(f"finger{k}", 0.1, inertia=(1e-4,) * 3).shapes.append(jg.Shape("box", (0.01, 0.02, 0.03)))
        hand.add_joint(f"slide{k}", "prismatic", None, f"finger{k}", position=(0.06 * side, 0, 0.5), axis=(-side, 0, 0))
        hand.add_actuator(f"press{k}", f"slide{k}")
    world = jg.World().add(hand).add(box("held", 0.2, 0.05), name="held", position=(0, 0, 0.5))
    return world.pair("*", "*", friction=0.8)


def ours_last(world: jg.World, law, steps: int, u: np.ndarray | None = None) -> np.ndarray:
    model = world.compile(dt=DT, contact=law)
    controls = None if u is None else np.broadcast_to(u, (steps, len(u))).copy()
    return jg.rollout(model, model.initial_state(), controls, steps=steps, keep=False).last.q


def mujoco_last(world: jg.World, hard: bool, steps: int, u: np.ndarray | None = None) -> np.ndarray:
    m, d = twin(world, hard)
    if u is not None:
        d.ctrl[:] = u
    mujoco.mj_step(m, d, nstep=steps)
    return d.qpos.copy()


def drift(world: jg.World, seconds: float, u: np.ndarray | None = None, of: slice = slice(None)) -> dict[str, float]:
    """How far coordinates are from where they began (mm, mrad) under every law."""
    start, steps = world.compile().initial_state().q, round(seconds / DT)
    last = {name: ours_last(world, law, steps, u) for name, law in LAWS.items()}
    last |= {"mujoco": mujoco_last(world, False, steps, u), "mujoco hard": mujoco_last(world, True, steps, u)}
    return {name: 1e3 * float(np.abs(q - start)[of].max()) for name, q in last.items()}


def slope() -> jg.World:
    angle = 0.5 * np.arctan(0.5)
    world = jg.World(gravity=(9.81 * np.sin(angle), 0.0, -9.81 * np.cos(angle)))
    return world.add(box("box"), position=(0, 0, 0.1)).add_ground(friction=0.5)


def stability(quick: bool) -> dict:
    share = 0.1 if quick else 1.0
    press = np.full(2, 3 * 0.2 * 9.81 / 0.8 / 2)
    rows = {
        "ten boxes, 20 s": (stack([1.0] * 10), 20.0), "1000 kg on 1 kg, 20 s": (stack([1.0, 1000.0]), 20.0),
        "100 kg on 1 kg, 20 s": (stack([1.0, 100.0]), 20.0), "1 kg on 1000 kg, 20 s": (stack([1000.0, 1.0]), 20.0),
        "a box on a slope at half its friction angle, 20 s": (slope(), 20.0),
        "a box of 0.2 kg in a gripper, 60 s": (gripper(), 60.0, press, slice(2, 9)),
    }  # fmt: skip
    found = {}
    print(f"{'drift, mm':50s} {'implicit':>10s} {'impulse':>10s} {'mujoco':>10s} {'mujoco hard':>12s}")
    for name, (world, seconds, *rest) in rows.items():
        t = found[name] = drift(world, share * seconds, *rest)
        print(
            f"{name:50s} {t['implicit']:10.4f} {t['impulse']:10.4f} {t['mujoco']:10.4f} {t['mujoco hard']:12.4f}",
            flush=True,
        )
    return found


# convergence ------------------------------------------------------------------------------------------------------------


def convergence(quick: bool) -> dict:
    """Iterations of Newton's method, and steps that it did not solve: ten boxes dropped, knocked, toppling; robots thrown."""
    rng, batch, steps = np.random.default_rng(7), 16, 200 if quick else 1000
    world = stack([1.0] * 10)
    model = world.compile(dt=DT, contact=jg.Implicit())
    rest = np.repeat(model.initial_state().q[None], batch, 0)
    still = np.zeros((batch, 10, 6))
    dropped, leaning, knocked = rest.reshape(batch, 10, 7).copy(), rest.reshape(batch, 10, 7).copy(), still.copy()
    dropped[..., 2] += 0.02 * np.arange(1, 11)
    dropped[..., :2] += 0.02 * rng.normal(size=(batch, 10, 2))
    leaning[..., 0] += 0.06 * np.arange(10) + 0.002 * rng.normal(size=(batch, 10))
    knocked[:, 4, 0] = 3 * rng.random(batch)
    cases = {
        "ten boxes dropped": (model, dropped, still), "ten boxes knocked": (model, rest, knocked),
        "ten boxes toppling": (model, leaning, still),
    }  # fmt: skip
    for name, robot in {"laikago": jg.zoo.laikago(), "ant": jg.zoo.ant(), "humanoid": jg.zoo.humanoid()}.items():
        whole = jg.World().add(robot, position=(0, 0, 1.2)).add_ground(friction=0.8)
        thrown = whole.compile(dt=DT, contact=jg.Implicit())
        q = np.repeat(thrown.initial_state().q[None], batch, 0)
        q[:, 3:7] = rng.normal(size=(batch, 4))
        q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
        cases[f"{name} thrown"] = (thrown, q, rng.normal(size=(batch, thrown.nv)))
    found = {}
    for name, (one, q, qd) in cases.items():
        motion = jg.rollout(one, jg.State(q.reshape(batch, -1), qd.reshape(batch, -1)), steps=steps, keep=False)
        mean, worst, unsolved = (
            motion.iterations[:, 0].sum() / batch / steps,
            motion.iterations[:, 1].max(),
            motion.unsolved.sum(),
        )
        found[name] = {"mean": float(mean), "worst": int(worst), "unsolved": int(unsolved), "steps": batch * steps}
        print(
            f"{name:30s} iterations {mean:.2f}, worst {worst}; unsolved {unsolved} of {batch * steps} steps", flush=True
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", default=[], help="speed, stability, convergence; all unless given")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    parts = {
        "convergence": lambda: convergence(asked.quick), "stability": lambda: stability(asked.quick),
        "speed": lambda: speed(2 if asked.quick else 5),
    }  # fmt: skip
    unknown = set(asked.what) - parts.keys()
    if unknown:
        parser.error(f"there is no part {sorted(unknown)[0]!r}; they are {', '.join(parts)}")
    found = {name: part() for name, part in parts.items() if not asked.what or name in asked.what}
    if asked.out:
        write(found, asked.out)


if __name__ == "__main__":
    main()
