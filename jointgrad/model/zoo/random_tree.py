"""Robots of any shape, for tests: every joint kind, any axes, any inertias a body can have."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..description import ACTUATORS, KINDS, Description


def random_tree(
    n: int,
    seed: int = 0,
    kinds: Sequence[str] = KINDS,
    base: str = "free",
    trees: int = 1,
    passive: bool = True,
    actuators: bool = True,
    several: bool = True,
    drag: bool = False,
    tendons: bool = False,
) -> Description:
    """n links in `trees` trees. passive: random damping, springs and armature; several: some links have two joints; drag:
    random boxes for a medium to act on; tendons: two over all joints of one coordinate, with a drive of each kind."""
    rng, shapes = np.random.default_rng(seed), np.random.default_rng(seed + 1_000_000)
    robot = Description(f"random{seed}", base=base)
    inner = [k for k in kinds if k != "free"]
    for i in range(n):
        link = robot.add_link(f"link{i}", rng.uniform(0.5, 2.0), tuple(rng.normal(size=3) * 0.1), _inertia(rng))
        if drag:
            link.drag_size, link.drag_position = tuple(shapes.uniform(0.1, 0.4, 3)), tuple(shapes.normal(size=3) * 0.1)
            link.drag_orientation = _unit(shapes, 4)
        if i < trees:
            if base == "fixed":
                _add_joint(robot, rng, f"joint{i}", rng.choice(inner), None, f"link{i}", passive)
            continue
        parent = f"link{rng.integers(0, i)}"
        _add_joint(robot, rng, f"joint{i}", rng.choice(inner), parent, f"link{i}", passive)
        if several and rng.random() < 0.2:
            _add_joint(robot, rng, f"joint{i}b", rng.choice(inner), parent, f"link{i}", passive)
    if actuators:
        _add_actuators(robot, rng)
    if tendons:
        _add_tendons(robot, shapes)
    return robot


def _inertia(rng: np.random.Generator) -> tuple[float, ...]:
    """Of a cloud of mass points, so that it satisfies the triangle inequality."""
    points = rng.normal(size=(6, 3)) * 0.2
    m = np.eye(3) * (points**2).sum() - points.T @ points
    return m[0, 0], m[0, 1], m[0, 2], m[1, 1], m[1, 2], m[2, 2]


def _unit(rng: np.random.Generator, n: int) -> tuple[float, ...]:
    v = rng.normal(size=n)
    return tuple(v / np.linalg.norm(v))


def _add_joint(robot, rng, name, kind, parent, child, passive) -> None:
    kind = str(kind)
    options = (
        dict(damping=rng.uniform(0.1, 1), stiffness=rng.uniform(0.1, 3), armature=rng.uniform(0.05, 0.3))
        if passive
        else {}
    )
    place = dict(position=tuple(rng.normal(size=3) * 0.3), orientation=_unit(rng, 4))
    axis = _unit(rng, 3)
    robot.add_joint(name, kind, parent, child, axis=axis, second_axis=_unit(rng, 3), **place, **options)


def _add_actuators(robot, rng) -> None:
    kinds = ("torque", "position", "velocity")
    for k, joint in enumerate(_drivable(robot)):
        robot.add_actuator(
            f"motor_{joint.name}", joint.name, kinds[k % 3], gain=rng.uniform(0.5, 3), damping=rng.uniform(0, 0.5),
            gear=rng.uniform(0.5, 2), bias=tuple(rng.normal(size=3) * 0.1),
        )  # fmt: skip


def _drivable(robot) -> list:
    return [j for j in robot.joints.values() if j.kind in ("revolute", "continuous", "prismatic")]


def _add_tendons(robot, rng) -> None:
    """One is at its rest in one point, the other is slack along a piece."""
    for name, rest in (("taut", (0.2, 0.2)), ("loose", (-0.1, 0.1))):
        terms = [(joint.name, float(rng.normal())) for joint in _drivable(robot)]
        robot.add_tendon(name, terms, stiffness=rng.uniform(0.5, 2), damping=rng.uniform(0.1, 0.5), rest=rest)
        for kind in ACTUATORS:
            robot.add_actuator(
                f"{kind}_{name}", tendon=name, kind=kind, gain=rng.uniform(0.5, 3), damping=rng.uniform(0, 0.5),
                gear=rng.uniform(0.5, 2), bias=tuple(rng.normal(size=3) * 0.1),
            )  # fmt: skip
