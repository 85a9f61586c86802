"""Distances of shapes, near and far, against MuJoCo; gradients against differences."""

import mujoco
import numpy as np
import pytest
from oracles.differences import random_state, tangent_basis

import jointgrad as jg

SHAPES = {
    "sphere": (0.1,), "capsule": (0.05, 0.2), "box": (0.1, 0.2, 0.15), "cylinder": (0.1, 0.2), "ellipsoid": (0.1, 0.2, 0.15),
}  # fmt: skip
PAIRS = [(a, b) for a in SHAPES for b in (*SHAPES, "plane")]


def model_of(*kinds: str) -> jg.Model:
    world = jg.World(gravity=(0, 0, 0))
    for name, kind in zip("ab", kinds, strict=True):
        robot = jg.Description(name, base="free")
        robot.add_link(name, 1.0, inertia=(0.1, 0.1, 0.1)).shapes.append(jg.Shape(kind, SHAPES.get(kind, ())))
        world.add(robot)
    return world.compile(contact=None)


def in_mujoco(kinds: tuple[str, ...], q: np.ndarray) -> tuple[float, np.ndarray]:
    geoms = [f'type="{k}" size="{" ".join(map(str, SHAPES.get(k, (1, 1, 1))))}"' for k in kinds]
    bodies = "".join(f'<body mocap="true"><geom {g}/></body>' for g in geoms)
    m = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{bodies}</worldbody></mujoco>")
    d, points = mujoco.MjData(m), np.zeros(6)
    for k in range(2):
        d.mocap_pos[k], d.mocap_quat[k] = q[7 * k : 7 * k + 3], q[7 * k + 3 : 7 * k + 7]
    mujoco.mj_forward(m, d)
    return mujoco.mj_geomDistance(m, d, 0, 1, 100.0, points), points.reshape(2, 3)


@pytest.mark.parametrize("kinds", PAIRS, ids="-".join)
def test_distance_and_gradient(kinds):
    model, rng = model_of(*kinds), np.random.default_rng(3)
    states = random_state(model, rng, batch=6)
    states.q[-1, :3] += 50.0  # far apart
    found = jg.distance(model, states, "a", "b")
    assert found.distance.shape == (6,) and found.points.shape == (6, 2, 3) and found.gradient.shape == (6, 12)
    for k, q in enumerate(states.q):
        expected, points = in_mujoco(kinds, q)
        if expected < 1e-3:
            continue
        assert abs(found.distance[k] - expected) < 1e-9
        assert abs(np.linalg.norm(found.points[k, 0] - found.points[k, 1]) - expected) < 1e-9
        along, h = rng.normal(size=12), 1e-6
        ends = [jg.distance(model, q + s * h * tangent_basis(model, q) @ along, "a", "b").distance for s in (1, -1)]
        assert abs(found.gradient[k] @ along - (ends[0] - ends[1]) / (2 * h)) < 1e-6 * max(1.0, np.abs(along).sum())


def test_links_sites_and_what_has_no_shape():
    arm = jg.zoo.franka_arm().compile(contact=None)
    q = arm.initial_state().q
    found = jg.distance(arm, q, "link0", "ball")
    assert found.gradient.shape == (arm.nv,) and found.distance > 0.1
    robot = jg.Description("two")
    for name, x in (("a", 0.0), ("b", 3.0)):
        robot.add_link(name, 1.0, inertia=(1.0, 1.0, 1.0)).sites.append((f"mark_{name}", (0.0, 1.0, 0.0), (1, 0, 0, 0)))
        robot.add_joint(f"slide_{name}", "prismatic", None, name, position=(x, 0, 0), axis=(1, 0, 0))
    model = robot.compile(contact=None)
    found = jg.distance(model, np.zeros(2), "mark_a", "mark_b")
    assert found.distance == pytest.approx(3.0) and found.gradient.tolist() == pytest.approx([-1.0, 1.0])
    assert jg.distance(model, np.zeros(2), "a", "mark_b").distance == pytest.approx(np.sqrt(10.0))
    assert jg.distance(model, np.zeros((0, 2)), "a", "b").distance.shape == (0,)


def test_what_cannot_be():
    model = model_of("sphere", "sphere")
    with pytest.raises(jg.InputError, match="link, shape or site"):
        jg.distance(model, model.initial_state(), "a", "c")
    round_ones = jg.Description("r", base="free")
    round_ones.add_link("r", 1.0, inertia=(1, 1, 1)).shapes.append(jg.Shape("hfield", (1.0, 1.0, 0.1, 0.1)))
    model = jg.World().add(round_ones).add_ground().compile(contact=None)
    with pytest.raises(jg.InputError, match="hfield"):
        jg.distance(model, model.initial_state(), "r", "ground")
    overlapping = model_of("box", "box")
    found = jg.distance(overlapping, overlapping.initial_state(), "a", "b")
    assert found.distance == 0.0 and not found.gradient.any()
