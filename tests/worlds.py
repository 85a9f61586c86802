"""Worlds that between them have every kind of pair, law and tie, for tests that must leave none out."""

from __future__ import annotations

import itertools

import numpy as np

import jointgrad as jg
from jointgrad.model.arrays import PAIR_KINDS

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
    robot.constraints.append({"kind": "connect", "body1": ends[0], "body2": "link0", "anchor": (0.1, 0.2, 0.3)})
    robot.constraints.append({"kind": "weld", "body1": "link1", "body2": ends[1], "name": "weld"})
    world = jg.World(density=300.0, viscosity=0.4)
    world.add(robot).add_ground(height=0.3)
    plain, bouncy = dict(friction=0.6, torsion=0.05, rolling=0.03, push_limit=20.0), dict(friction=0.7, restitution=0.4)
    bodies = carriers(robot)
    for i, j in itertools.combinations(range(links), 2):
        if bodies[i] != bodies[j]:  # by name: neighbours too
            world.pair(f"shape{i}", f"shape{j}", **(plain if i % 2 and j % 2 else bouncy))
    world.pair("*", "ground", friction=0.5, push_limit=0.1)
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
