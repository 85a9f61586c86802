"""Worlds that between them have every kind of pair, law and tie, for tests that must leave none out."""

from __future__ import annotations

import itertools

import numpy as np

import jointgrad as jg
from jointgrad.model.pair_table import PAIR_KINDS

LAWS = ("coulomb", "andersson", "hollars", "brown")
SHAPES = (("sphere", (0.3,)), ("capsule", (0.15, 0.3)), ("box", (0.3, 0.25, 0.2)))


def tangled(
    seed: int, base: str, sweeps: int = 50, cone: bool = True, links: int = 9, form: str = "matrix", **options
) -> jg.Model:
    """Two random trees whose shapes overlap in most states, above and below the ground: by springs of every law and by
    impulses with every row; joints with limits, dry friction, a mimic joint; a loop and a weld."""
    robot = jg.zoo.random_tree(links, seed=seed, base=base, trees=2, drag=True, tendons=True)
    rng = np.random.default_rng(seed)
    for i, link in enumerate(robot.links.values()):
        kind, size = SHAPES[i % 3]
        turn = rng.normal(size=4)
        link.shapes.append(
            jg.Shape(kind, size, tuple(0.1 * rng.normal(size=3)), tuple(turn / np.linalg.norm(turn)), name=f"shape{i}")
        )
    scalar = [j for j in robot.joints.values() if j.kind in ("revolute", "continuous", "prismatic")]
    for k, joint in enumerate(scalar):
        joint.friction = 0.3 * (k % 2)
        if joint.kind != "continuous":
            joint.limit = (-0.4, 0.5)
    scalar[-1].mimic = (scalar[0].name, 0.7, 0.1)
    ends = list(robot.links)[-2:]
    robot.constraints.append(jg.Connect(ends[0], "link0", (0.1, 0.2, 0.3)))
    robot.constraints.append(jg.Weld("link1", ends[1], name="weld"))
    world = jg.World(density=300.0, viscosity=0.4)
    world.add(robot).add_ground(height=0.3)
    plain, bouncy = (
        dict(friction=0.6, torsion=0.05, rolling=0.03, max_push_out_speed=20.0),
        dict(friction=0.7, restitution=0.4),
    )
    bodies = carriers(robot)
    for i, j in itertools.combinations(range(links), 2):
        if bodies[i] != bodies[j]:  # by name: neighbours too
            world.pair(f"shape{i}", f"shape{j}", **(plain if i % 2 and j % 2 else bouncy))
    world.pair("*", "ground", friction=0.5, max_push_out_speed=0.1)
    soft = dict(stiffness=60.0, damping=30.0, transition=0.7, static_friction=0.9)
    for i, law in enumerate(LAWS):
        world.pair(f"shape{i}", "ground", friction=0.5, contact=jg.Spring(friction_law=law, **soft))
        if bodies[i] != bodies[(i + 4) % links]:
            world.pair(
                f"shape{i}", f"shape{(i + 4) % links}", friction=0.5, contact=jg.Spring(friction_law=law, **soft)
            )
    # some rows of random trees hardly move: derivatives keep their digits where these give a little
    law = jg.Impulse(sweeps, cone, form=form, softness=1e-5)
    options = {"dt": 0.02, "integrator": "implicit_damping", "contact": law} | options
    return world.compile(**options).replace({"world.softness": 1e-5})


def carriers(robot: jg.Description) -> list[str]:
    """Per link, the link whose joint moves it; "" for what does not move."""
    found: dict[str | None, str] = {None: ""}
    joints = {joint.child: joint for joint in robot.joints.values()}
    for name in robot.links:
        joint = joints.get(name)
        if joint is None:
            found[name] = "" if robot.base == "fixed" else name
        else:
            found[name] = found[joint.parent] if joint.kind == "fixed" else name
    return [found[name] for name in robot.links]


def kinds_in(one) -> set[str]:
    """Kinds of pairs that touch in a worker's tables."""
    frame = one.frame
    slot = frame.schema.slots
    n, start = frame.integers[slot["touch.n"]], frame.integers[slot["touch.pair"]]
    kind = one.model.topology.tree["pair_kind"]
    return {PAIR_KINDS[kind[p]] for p in frame.integers[start : start + n]}


def rounded(kind: str, mass: float, size: float) -> jg.Description:
    """A body whose inertia is the same about every axis, so that it turns freely at a constant rate."""
    robot = jg.Description(kind, base="free")
    inertia = 0.4 * mass * size**2
    sizes = {"sphere": (size,), "box": (size,) * 3, "capsule": (0.6 * size, 0.5 * size)}
    robot.add_link("body", mass, (0, 0, 0), (inertia, 0, 0, inertia, 0, inertia)).shapes.append(
        jg.Shape(kind, sizes[kind])
    )
    return robot


def cluster(
    seed: int, form: str = "auto", cone: bool = True, sweeps: int = 50, arm: bool = False, contact=None
) -> jg.Model:
    """Balls and cubes, each pair with a friction and a restitution of its own; a wall, and an arm with limits."""
    rng = np.random.default_rng(seed)
    world = jg.World(gravity=(0, 0, 0))
    if seed % 2:
        world.add_ground()
    count = 3 + seed % 3
    for k in range(count):
        world.add(
            rounded(("sphere", "box")[rng.integers(2)], np.exp(rng.normal()), rng.uniform(0.1, 0.2)), name=f"b{k}"
        )
    if arm:
        held = jg.Description("held")
        for k, parent in enumerate((None, "l0")):
            held.add_link(f"l{k}", 0.7, (0.1, 0.02, 0.01), (0.01, 0.001, 0.0, 0.02, 0.0, 0.015))
            held.add_joint(
                f"j{k}",
                "revolute",
                parent,
                f"l{k}",
                position=(0.1 * k, 0, 0),
                axis=(0.2, k, 1.0),
                limit=(-0.1, 2.0),
                friction=0.1,
            )
            held.add_actuator(f"m{k}", f"j{k}")
        held.links["l1"].shapes.append(jg.Shape("sphere", (0.1,)))
        world.add(held, name="held")
        world.pair("held/l1", "*", friction=0.5, restitution=1.0, compliance=0.0, baumgarte=0.0)
    names = [f"b{k}/body" for k in range(count)] + ["ground"] * (seed % 2)
    for i in range(len(names)):
        for j in range(i):
            friction, e = rng.uniform(0, 1) * rng.integers(2), rng.choice([0.0, 0.5, 0.9, 1.0])
            world.pair(names[j], names[i], friction=friction, restitution=e, baumgarte=0.0, compliance=0.0)
    law = contact or jg.Impulse(sweeps, cone, form=form)
    return world.compile(dt=1e-3, contact=law).replace({"world.baumgarte": 1e-4})


def thrown_together(model: jg.Model, batch: int, seed: int) -> jg.State:
    rng, count, more = np.random.default_rng(seed), model.nv // 6, model.nv % 6
    q, qd = np.zeros((batch, count, 7)), rng.normal(size=(batch, count, 6))
    q[..., :3], q[..., 3:] = 0.15 * rng.normal(size=(batch, count, 3)), rng.normal(size=(batch, count, 4))
    q[..., 3:] /= np.linalg.norm(q[..., 3:], axis=-1, keepdims=True)
    joints = -np.abs(rng.normal(size=(2, batch, more))) * [[[0.1]], [[1.0]]] - 0.1
    joints[0, :, 1:] = -0.0995  # one joint beyond its limit, one just before it
    return jg.State(*(np.hstack([x.reshape(batch, -1), j]) for x, j in zip((q, qd), joints, strict=True)))


def chain(n: int, **options) -> jg.Description:
    """Links that hang on each other by hinges, each with a motor."""
    robot, parent = jg.Description("chain"), None
    for i in range(n):
        robot.add_link(f"l{i}", 1.0, inertia=(1.0, 1.0, 1.0))
        robot.add_joint(f"j{i}", "revolute", parent, f"l{i}", axis=(0, 1, 0), position=(0, 0, 0.1), **options)
        robot.add_actuator(f"j{i}", f"j{i}")
        parent = f"l{i}"
    return robot


def mjcf(inside: str, around: str = "") -> str:
    """A file with these bodies."""
    return f"<mujoco>{around}<worldbody>{inside}</worldbody></mujoco>"
