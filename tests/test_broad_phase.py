"""No test for nearness may leave out what the exact one would find: contacts with the broad phase and without it are the same."""

from __future__ import annotations

import numpy as np
import pytest

import jointgrad as jg
from jointgrad.engine.kernels.stages import detection
from jointgrad.engine.kernels.stages.detection import pairs
from jointgrad.engine.run import plain

KINDS = ("plane", "sphere", "capsule", "box", "points")


def shaped(kind: str, rng: np.random.Generator) -> jg.Shape:
    sizes = {"plane": 0, "sphere": 1, "capsule": 2, "box": 3, "points": 1}[kind]
    size = tuple(np.exp(rng.normal(-2.0, 1.0, sizes)))
    points = rng.normal(size=(3, 3)) if kind == "points" else ()
    turn = rng.normal(size=4)
    return jg.Shape(kind, size, tuple(rng.normal(size=3)), tuple(turn / np.linalg.norm(turn)), points=points)


def crowd(seed: int) -> jg.Model:
    """Free bodies and an arm, each with shapes of all kinds somewhere about it, planes included; a margin for each pair."""
    rng = np.random.default_rng(seed)
    world = jg.World().add_ground()
    for k in range(3):
        body = jg.Description("body", base="free")
        body.add_link("body", 1.0, inertia=(0.1, 0, 0, 0.1, 0, 0.1))
        body.links["body"].shapes += [shaped(kind, rng) for kind in rng.choice(KINDS, 2, replace=False)]
        world.add(body, name=f"b{k}")
    arm = jg.Description("arm")
    arm.add_link("arm", 1.0, (0.1, 0, 0), (0.1, 0, 0, 0.1, 0, 0.1)).shapes.append(shaped("box", rng))
    arm.add_joint("hinge", "revolute", None, "arm", axis=(0, 0, 1))
    world.add(arm, name="arm")
    world.pair("b0/*", "b1/*", margin=float(rng.uniform(0, 2))).pair("b1/*", "b2/*", contact=jg.Spring())
    return world.compile(dt=1e-3)


def touching(model: jg.Model, state: jg.State, env: int) -> list[tuple]:
    z = plain.tables(model.environment(env))
    z.state.q[:], z.state.qd[:] = state.q[env].tolist(), state.qd[env].tolist()
    plain.kinematics(z)
    detection.detection(z)
    assert not z.touch.is_full
    return [(z.touch.pair[i], z.touch.part[i], z.touch.gap[i], *z.touch.point[i]) for i in range(z.touch.n)]


@pytest.mark.parametrize("seed", range(8))
def test_nothing_is_lost(seed, monkeypatch):
    """Random placements, sizes and margins, as compiled and as replaced, shared and for each environment."""
    rng, batch = np.random.default_rng(seed), 24
    model = crowd(seed)
    q = rng.normal(size=(batch, model.nq)) * np.repeat(np.exp(rng.uniform(-1, 3, (batch, 1))), model.nq, 1)
    state, n = jg.State(q, np.zeros((batch, model.nv))), len(model.pair_names)
    margins, sizes = rng.exponential(0.3, (batch, n)), rng.exponential(1.0, (batch, *model.params["shape.size"].shape))
    worlds = [model, model.replace({"pair.margin": margins[0]}),
              model.replace({"pair.margin": margins, "shape.size": sizes * model.params["shape.size"]})]  # fmt: skip
    found = [[touching(world, state, env) for env in range(batch)] for world in worlds]
    monkeypatch.setattr(detection, "trees_may_touch", lambda *_: True)
    monkeypatch.setattr(pairs, "may_touch", lambda *_: True)
    monkeypatch.setattr(pairs, "may_touch_plane", lambda *_: True)
    assert found == [[touching(world, state, env) for env in range(batch)] for world in worlds]
    assert sum(len(points) for one in found for points in one) > 50


@pytest.mark.parametrize("x", [0.15, 0.3, 3.0])
def test_a_plane_on_a_moving_body_has_no_end(x):
    """A ball far out on a heavy tray rests there, 1 m below what it would have fallen in half a second."""
    tray = jg.Description("tray", base="free")
    tray.add_link("tray", 1e4, inertia=(1e5, 0, 0, 1e5, 0, 1e5)).shapes += [
        jg.Shape("plane", ()), jg.Shape("box", (0.1, 0.1, 0.1), (0, 0, -0.1)),
    ]  # fmt: skip
    ball = jg.Description("ball", base="free")
    ball.add_link("ball", 1.0, inertia=(4e-3, 0, 0, 4e-3, 0, 4e-3)).shapes.append(jg.Shape("sphere", (0.1,)))
    world = jg.World().add(tray, position=(0, 0, 0.2)).add(ball, position=(x, 0, 0.3)).add_ground()
    model = world.pair("ball", "ground", contact=None).compile(dt=1e-3)
    motion = jg.rollout(model, model.initial_state(), steps=500)
    np.testing.assert_allclose(motion.last.q[9], 0.3, atol=2e-3)


@pytest.mark.parametrize("margin", [0.05, 0.5])
def test_wide_margins_between_robots(margin):
    """Balls are braked from where their margin begins: at most a fifth of the gap closes in a step."""
    world = jg.World(gravity=(0, 0, 0))
    for k in range(2):
        ball = jg.Description("ball", base="free")
        ball.add_link("ball", 1.0, inertia=(4e-3, 0, 0, 4e-3, 0, 4e-3)).shapes.append(jg.Shape("sphere", (0.1,)))
        world.add(ball, name=f"b{k}", position=(k * (0.2 + 0.9 * margin), 0, 0))
    model = world.pair("b0/*", "b1/*", margin=margin, compliance=0.0).compile(dt=1e-2)
    state = model.initial_state()
    state.qd[0] = 1e3
    closing = jg.step(model, state).qd
    np.testing.assert_allclose(closing[0] - closing[6], 0.2 * 0.9 * margin / 1e-2, rtol=1e-2)
