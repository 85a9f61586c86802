"""Contact solved to the end: against a dense solver of the dual problem, MuJoCo's solution of the same problem, the sweeps of
`Impulse`, and closed forms. Gradients are in test_implicit_gradients.py."""

from __future__ import annotations

import warnings

import mujoco
import numpy as np
import pytest
from oracles.convex_contact import DT, as_mujoco, equal_mujoco, solved
from test_contact import four_bar
from test_contact_gradients import standing
from test_contact_mujoco import solid

import jointgrad as jg

LEAST = 1e-6  # what everything gives at least, per kg


def box(height: float = 0.0499, friction: float = 0.5, **ground) -> jg.World:
    return jg.World().add(solid("box"), position=(0, 0, height)).add_ground(friction=friction, **ground)


MOTIONS = {
    "rests": np.zeros(6), "sticks": np.array([1e-3, 2e-3, -0.05, 0.0, 0.0, 0.01]),
    "slides": np.array([0.8, 0.3, -0.05, 0.1, 0.2, 0.3]), "lands on an edge": np.array([0.3, 0.0, -1.0, 3.0, 0.2, 0.0]),
    "parts": np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0]),
}  # fmt: skip


@pytest.mark.parametrize("motion", MOTIONS)
def test_mujoco_solves_the_same_problem(motion):
    """Next velocities of a box in every mode, with MuJoCo's own regulariser; and the force, which is unique in its sum."""
    world = box()
    m, d = equal_mujoco(world)
    d.qvel[:] = MOTIONS[motion]
    mujoco.mj_forward(m, d)
    model = as_mujoco(world, d, LEAST / m.body_mass.sum())
    ours = jg.rollout(model, jg.State(d.qpos.copy(), d.qvel.copy()), steps=1, outputs=("contact.force",))
    mujoco.mj_step(m, d)
    np.testing.assert_allclose(ours.qd[1], d.qvel, atol=1e-9)
    total = np.zeros(3)
    for k in range(d.ncon):
        force = np.zeros(6)
        mujoco.mj_contactForce(m, d, k, force)
        total += d.contact[k].frame.reshape(3, 3).T @ force[:3]
    np.testing.assert_allclose(ours.outputs["contact.force"][1, model.link("box")], total, atol=1e-5)


@pytest.mark.parametrize("level", [True, False])
def test_a_dense_solver_of_the_dual_problem(level):
    """Laikagos that stand, slide, are on two toes: masses and Jacobians are MuJoCo's, the solver works on impulses."""
    law = jg.Implicit(is_level=level, compliance=0.1)
    world = jg.World().add(jg.zoo.laikago(touch="feet"), position=(0, 0, 0.45)).add_ground(friction=0.7)
    _, q, qd = standing()
    model = world.compile(dt=DT, contact=law)
    m, d = equal_mujoco(world)
    ours = jg.rollout(model, jg.State(q, qd), steps=1)
    for env in range(3):
        d.qpos[:], d.qvel[:] = q[env], qd[env]
        mujoco.mj_forward(m, d)
        M = np.zeros((m.nv, m.nv))
        mujoco.mj_fullM(m, d, M)
        J = d.efc_J.reshape(-1, m.nv)
        free = qd[env] + DT * d.qacc_smooth
        gap = np.repeat([c.dist for c in d.contact], 3).reshape(-1, 3)[:, 0]
        b = (J @ free).reshape(-1, 3)
        b[:, 0] += 0.2 * gap / DT
        if level:
            left = np.hypot(b[:, 1], b[:, 2]) - 0.7 * np.maximum(-b[:, 0], 0)
            b[:, 0] += 0.7 * np.maximum(left, 0)
        A = J @ np.linalg.solve(M, J.T) + np.diag(
            (0.1 * np.tile([1.0, 0.2, 0.2], len(gap)) + LEAST) / m.body_mass.sum()
        )
        x = solved(A, b.ravel(), np.full(len(gap), 0.7), 10000)
        np.testing.assert_allclose(ours.qd[1, env], free + np.linalg.solve(M, J.T @ x), atol=1e-7)


def test_sweeps_come_to_the_same():
    """With the same softness, without sliding, Impulse ends where Implicit begins: at rest on four toes, and with limits, dry
    friction and a loop."""
    softness = 1e-3
    laws = (
        jg.Impulse(sweeps=4000, compliance=0.0, softness=softness),
        jg.Implicit(compliance=0.0, softness=softness - LEAST, is_level=False),
    )
    ends = []
    for law in laws:
        model, q, qd = standing(contact=law, friction=5.0)
        mass = model.params["link.mass"].sum()
        if isinstance(law, jg.Implicit):
            model = model.replace(
                {"pair.softness": np.full_like(model.params["pair.softness"], softness - LEAST / mass)}
            )
        ends.append(jg.rollout(model, jg.State(q[[0]], 0 * qd[[0]]), steps=1).qd[1])
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-6)
    loops = []
    for law in laws:
        model = four_bar().compile(dt=DT, contact=law)
        model = model.replace({"world.compliance": 0.0, "world.softness": 1e-3})
        loops.append(jg.rollout(model, model.initial_state(), steps=20).qd[-1])
    np.testing.assert_allclose(*loops, atol=2e-5)


def test_a_resting_body_sinks_little_and_a_slope_holds():
    """Default compliance, 1 ms: a box sinks less than 0.05 mm, and creeps less than 0.5 mm in 20 s at half its friction angle."""
    model = box(height=0.05).compile(dt=DT, contact=jg.Implicit())
    last = jg.rollout(model, model.initial_state(), steps=2000).last
    assert -5e-5 < last.q[2] - 0.05 < 1e-6
    angle = 0.5 * np.arctan(0.5)
    tilted = model.replace({"world.gravity": 9.81 * np.array([np.sin(angle), 0.0, -np.cos(angle)])})
    assert abs(jg.rollout(tilted, model.initial_state(), steps=20000, memory=10**6).last.q[0]) < 5e-4


@pytest.mark.parametrize("mass", [1e-3, 1.0, 1e8])
def test_light_and_heavy_rest_alike(mass):
    robot = jg.Description("box", base="free")
    robot.add_link("box", mass, inertia=(0.01 * mass,) * 3).shapes.append(jg.Shape("box", (0.1, 0.1, 0.1)))
    model = jg.World().add(robot, position=(0, 0, 0.1)).add_ground().compile(dt=DT, contact=jg.Implicit())
    depth = 0.1 - jg.rollout(model, model.initial_state(), steps=1000).last.q[2]
    assert depth == pytest.approx(0.01 * 9.81 * DT**2 / 0.2 / 4, rel=1e-3)


@pytest.mark.parametrize("friction", [0.1, 0.3, 0.8])
def test_a_sliding_body_stays_level_and_stops_where_coulomb_says(friction):
    """2 m/s on a plane: without the correction the convex cone lifts it; with it, it neither hops nor sinks by a tenth of a
    millimetre, and stops after v^2 / (2 mu g)."""
    height, reached = {}, {}
    for level in (True, False):
        model = box(0.05, friction).compile(dt=DT, contact=jg.Implicit(is_level=level))
        qd = np.array([2.0, 0, 0, 0, 0, 0])
        motion = jg.rollout(model, jg.State(model.initial_state().q, qd), steps=int(2.4 / friction / 9.81 / DT) + 100)
        height[level], reached[level] = motion.q[:, 2] - 0.05, motion.last.q[0]
    assert np.abs(height[True]).max() < 1e-4
    assert height[False].max() > 5e-4 * friction / 0.1
    assert reached[True] == pytest.approx(2.0**2 / (2 * friction * 9.81), rel=5e-3)


def test_a_bounce_gives_back_its_share():
    ball = jg.Description("ball", base="free")
    ball.add_link("ball", 1.0, inertia=(0.004,) * 3).shapes.append(jg.Shape("sphere", (0.1,)))
    world = jg.World().add(ball, position=(0, 0, 1.1)).add_ground(restitution=0.7)
    model = world.compile(dt=1e-4, contact=jg.Implicit())
    height = jg.rollout(model, model.initial_state(), steps=8000).q[:, 2] - 0.1
    after = height[int(np.argmin(height)) :]
    assert after.max() == pytest.approx(0.49, rel=0.01)


def stack(masses: list[float], friction: float = 0.8) -> jg.World:
    world = jg.World()
    for k, mass in enumerate(masses):
        robot = jg.Description(f"box{k}", base="free")
        robot.add_link("box", mass, inertia=(mass * 0.04 / 6,) * 3).shapes.append(jg.Shape("box", (0.1, 0.1, 0.1)))
        world.add(robot, name=f"box{k}", position=(0, 0, 0.1 + 0.2 * k))
    return world.add_ground(friction=friction)


def test_stacks_stand():
    """Ten boxes do not drift; 1000 kg on 1 kg stand, and sink by no more than their share."""
    model = stack([1.0] * 10).compile(dt=DT, contact=jg.Implicit())
    motion = jg.rollout(model, model.initial_state(), steps=2000, memory=10**6)
    assert motion.unsolved == 0
    assert np.abs(motion.last.q - model.initial_state().q).max() < 1e-4
    model = stack([1.0, 1000.0]).compile(dt=DT, contact=jg.Implicit())
    motion = jg.rollout(model, model.initial_state(), steps=2000, memory=10**6)
    assert np.abs(motion.last.q - model.initial_state().q).max() < 1e-3


def test_environments_do_not_know_each_other():
    """Same bits alone, in a batch of others, in another place, for several threads; whatever their neighbours touch."""
    model = stack([1.0] * 4).compile(dt=DT, contact=jg.Implicit())
    rng, batch = np.random.default_rng(0), 9
    q = np.repeat(model.initial_state().q[None], batch, 0).reshape(batch, 4, 7)
    q[..., :3] += rng.uniform(0, 1, (batch, 1, 1)) * 0.05 * rng.normal(size=(batch, 4, 3)) + [0, 0, 0.02]
    state = jg.State(q.reshape(batch, -1), 0.3 * rng.normal(size=(batch, model.nv)))
    whole = jg.rollout(model, state, steps=60)
    bars = rng.normal(size=whole.q.shape), rng.normal(size=whole.qd.shape)
    gradient = whole.backward(*bars)
    for rows, threads in (([3], 1), ([7, 3, 5, 0, 1], 1), (list(range(batch)), 2)):
        part = jg.rollout(model, jg.State(state.q[rows], state.qd[rows]), steps=60, threads=threads)
        assert np.array_equal(part.q, whole.q[:, rows]) and np.array_equal(part.qd, whole.qd[:, rows])
        back = part.backward(*(bar[:, rows] for bar in bars))
        assert np.array_equal(back.q, gradient.q[rows]) and np.array_equal(back.qd, gradient.qd[rows])


def test_what_is_not_solved_is_said():
    """One iteration does not solve a landing: the rollout warns, counts it, and the certificate does not trust it."""
    model = box(0.06).compile(dt=DT, contact=jg.Implicit(iterations=1))
    state = jg.State(model.initial_state().q, np.array([1.0, 0.3, -2.0, 1.0, 2.0, 0.5]))
    with pytest.warns(jg.UnsettledWarning, match="were not solved in 1 iterations"):
        motion = jg.rollout(model, state, steps=20)
    assert motion.unsolved > 0 and motion.iterations[1] == 1
    assert not motion.certificate().trusted
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        enough = jg.rollout(box(0.06).compile(dt=DT, contact=jg.Implicit()), state, steps=20)
    assert enough.unsolved == 0 and 1 < enough.iterations[1] < 20


def test_laws_of_one_world_must_agree():
    with pytest.raises(jg.ModelError, match="Impulse and Implicit contacts in one world"):
        box().pair("box", "ground", contact=jg.Impulse()).compile(contact=jg.Implicit())
