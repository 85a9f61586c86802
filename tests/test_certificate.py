"""The certificate: margins are those of closed forms, modes are told apart, and what is not to be trusted is named."""

import json

import numpy as np
import pytest

import jointgrad as jg
from jointgrad.cli import main
from jointgrad.engine.kernels.margins import LOOK
from jointgrad.engine.looks import certificate as certificate_module
from jointgrad.engine.looks.certificate import step_records
from jointgrad.engine.looks.gradcheck import DIFFERS, spot_check
from jointgrad.engine.looks.probe import HOLDS
from jointgrad.engine.run.trajectory import Trajectory

G, DT, MASS, RADIUS, INERTIA, SOFT = 9.81, 1e-3, 2.0, 0.1, 0.008, 1e-5


def ball(friction=0.5, contact=None, height=RADIUS, **options):
    robot = jg.Description("ball", base="free")
    robot.add_link("ball", MASS, inertia=(INERTIA,) * 3).shapes.append(jg.Shape("sphere", (RADIUS,)))
    world = jg.World().add(robot, position=(0, 0, height)).add_ground(friction=friction)
    if options:
        world.pair("ball", "ground", **options)
    return world.compile(dt=DT, contact=contact or jg.Impulse(compliance=0.0, softness=SOFT))


def pushed(model, force, steps=1, distance=5e-3):
    """The certificate of a motion under a steady push along x."""
    push = np.zeros((model.n_links, 6))
    push[0, 0] = force
    return jg.rollout(model, model.initial_state(), steps=steps, force=push).certificate(distance)


# closed forms ------------------------------------------------------------------------------------------------------------

NORMAL = G * DT / (1 / MASS + SOFT)  # impulse that carries the ball for a step


def tangential(force):
    """Impulse that would keep the point under the ball from moving."""
    return DT * force / MASS / (1 / MASS + RADIUS**2 / INERTIA + SOFT)


@pytest.mark.parametrize("cone", [True, False])
@pytest.mark.parametrize("force", [2.0, 30.0, 200.0])
def test_margins_are_those_of_the_friction_cone(cone, force):
    cert = pushed(ball(0.2, jg.Impulse(compliance=0.0, softness=SOFT, cone=cone)), force)
    wanted = abs(tangential(force) - 0.2 * NORMAL)
    # of a pyramid, the tangent across the push is tried too, and is zero
    np.testing.assert_allclose(cert.mode_margin, min(wanted, NORMAL if cone else 0.2 * NORMAL), rtol=1e-6)
    sticks = tangential(force) < 0.2 * NORMAL
    assert (cert.sticking[0], cert.slipping[0], cert.open[0]) == (int(sticks), int(not sticks), 0)
    np.testing.assert_allclose(cert.impulse, max(NORMAL, 0), rtol=1e-9)
    assert cert.worst().names == ("ball", "ground")


def test_a_point_that_leaves_is_open_by_its_speed():
    model = ball(height=RADIUS + 5e-4)
    state = jg.State(model.initial_state().q, np.array([0, 0, 1.0, 0, 0, 0]))
    cert = jg.rollout(model, state, steps=1).certificate()
    # the trial impulse would have to pull: the parting speed, and what closes a fifth of the gap
    np.testing.assert_allclose(cert.margin, (1.0 - G * DT + 0.2 * 5e-4 / DT) / (1 / MASS + SOFT), rtol=1e-9)
    assert (cert.open[0], cert.sticking[0], cert.slipping[0]) == (1, 0, 0)


def test_a_limit_has_the_margin_of_what_it_carries():
    robot = jg.Description("arm", base="fixed")
    robot.add_link("base")
    robot.add_link("bob", 1.0, com=(0.5, 0, 0), inertia=(0.01, 0.02, 0.01))
    robot.add_joint("hinge", "revolute", "base", "bob", axis=(0, 1, 0), limit=(-1.0, 0.0))
    model = jg.World().add(robot).compile(dt=DT)
    cert = jg.rollout(model, model.initial_state(), steps=1).certificate()
    np.testing.assert_allclose(cert.margin, DT * G * 0.5 / (1 + model.params["world.compliance"]), rtol=1e-6)
    assert "hinge" in cert.worst().names[0]
    np.testing.assert_allclose(cert.gap, model.params["world.limit_margin"], rtol=1e-9)


@pytest.mark.parametrize("above", [-2e-4, 5e-4, 3e-3, 0.015, 0.05])
def test_the_gap_is_the_way_to_the_switch(above):
    model = ball(height=RADIUS + above)
    cert = jg.rollout(model, model.initial_state(), steps=1).certificate()
    margin = model.params["pair.margin"][0]
    np.testing.assert_allclose(cert.gap, abs(above - margin) if above < margin + LOOK else np.inf, rtol=1e-9)
    assert np.isfinite(cert.margin[0]) == (above < margin)


def test_looking_for_the_gap_leaves_the_model_as_it_was():
    model = ball(height=RADIUS + 3e-3)
    first = jg.rollout(model, model.initial_state(), steps=50)
    first.certificate()
    assert np.array_equal(first.q, jg.rollout(model, model.initial_state(), steps=50).q)


def test_condition_is_that_of_the_contact_matrix():
    cert = pushed(ball(), 1.0)
    np.testing.assert_allclose(cert.condition, (1 / MASS + RADIUS**2 / INERTIA + SOFT) / (1 / MASS + SOFT), rtol=1e-9)


def test_springs_are_counted():
    model = ball(contact=jg.Spring(), height=RADIUS - 1e-3)
    state = jg.State(model.initial_state().q, np.array([1.0, 0, 0, 0, 0, 0]))
    motion = jg.rollout(model, state, steps=1)
    cert = motion.certificate(distance=1e-5)
    assert (cert.open[0], cert.sticking[0], cert.slipping[0]) == (0, 0, 1)
    assert cert.trusted and "1 slipping" in str(cert)
    # it is pressed by a millimetre, and farther up not at all
    assert not motion.certificate(distance=5e-3).trusted


# limits of actuators, slack of tendons, corners of networks -----------------------------------------------------------------


def slide(integrator="semi_implicit", tendon=None, **actuator):
    """A mass on a rail, with an actuator or a tendon with slack between -0.1 and 0.1 m."""
    robot = jg.Description("cart", base="fixed")
    robot.add_link("rail")
    robot.add_link("cart", MASS, inertia=(INERTIA,) * 3)
    robot.add_joint("x", "prismatic", "rail", "cart", axis=(1, 0, 0))
    if actuator:
        robot.add_actuator("motor", "x", **actuator)
    if tendon is not None:
        robot.add_tendon("rope", [("x", 1.0)], stiffness=50.0, rest=tendon)
    return jg.World(gravity=(0, 0, 0)).add(robot).compile(dt=DT, integrator=integrator)


@pytest.mark.parametrize("integrator", ["semi_implicit", "rk4"])
def test_limits_of_actuators_are_in_the_certificate(integrator):
    model = slide(integrator, kind="position", gain=100.0, control_limit=(-1.0, 1.0), force_limit=(-20.0, 20.0))

    def looked_at(u):
        return jg.rollout(model, model.initial_state(), np.full((1, 1), u)).certificate()

    # the force, 100 u, is nearer to its limit than the control, as shares of 40 N and of 2
    np.testing.assert_allclose([looked_at(u).limit[0] for u in (0.1, 0.3, 0.96)], [0.25, 0.25, 0.02], rtol=1e-3)
    codes = [looked_at(u).signature[0] for u in (0.1, 0.11, 0.3, 0.31, 1.1, -0.3)]
    assert codes[0] == codes[1] and codes[2] == codes[3] and len(set(codes)) == 4
    assert looked_at(0.19).trusted and not looked_at(0.2 * (1 - 1e-9)).trusted
    assert 'actuator "motor" is at a limit' in str(looked_at(1.0))
    assert not np.isfinite(
        jg.rollout(slide(kind="torque"), model.initial_state(), np.ones((1, 1))).certificate().limit[0]
    )


def test_slack_of_a_tendon_is_in_the_certificate():
    model = slide(tendon=(-0.1, 0.1))

    def looked_at(x):
        return jg.rollout(model, jg.State(np.array([x]), np.zeros(1)), steps=1).certificate()

    np.testing.assert_allclose([looked_at(x).limit[0] for x in (0.05, -0.16)], [0.25, 0.3], rtol=1e-9)
    codes = [looked_at(x).signature[0] for x in (0.05, -0.02, 0.2, -0.2)]
    assert codes[0] == codes[1] and len(set(codes)) == 3
    assert looked_at(0.05).trusted and not looked_at(0.1 + 1e-9).trusted and 'tendon "rope"' in str(looked_at(0.1))
    # one rest length leaves no slack, and no corner
    one = slide(tendon=(0.1, 0.1))
    assert np.isinf(jg.rollout(one, jg.State(np.array([0.1]), np.zeros(1)), steps=1).certificate().limit[0])


def test_every_evaluation_of_a_step_is_looked_at():
    """The tendon comes taut within the step: its first evaluation is slack, its last is not."""
    model = slide("rk4", tendon=(-0.1, 0.1))
    codes = [
        jg.rollout(model, jg.State(np.array([0.0999]), np.array([v])), steps=1).certificate().signature[0]
        for v in (0.0, 0.01, 0.15, 1.0)
    ]
    assert codes[0] == codes[1] and len(set(codes)) == 3


def test_corners_of_networks_are_in_the_signature():
    model = jg.graft(slide(), "joint.force", ["joint.velocity"], jg.MLP((1,), "relu"))
    model = model.replace({"graft.weight": np.array([1.0, 0.0, 1.0, 0.0])})
    codes = [
        jg.rollout(model, jg.State(np.zeros(1), np.array([v])), steps=1).certificate().signature[0]
        for v in (0.5, 0.6, -0.5)
    ]
    assert codes[0] == codes[1] != codes[2]


def test_what_networks_change_is_what_is_judged():
    """A network that stands in for restitution makes the ball bounce as the number itself does, and is judged alike."""
    plain, grafted = ball(restitution=0.7), ball(restitution=0.0)
    grafted = jg.graft(grafted, "pair.restitution", ["link.velocity"], jg.MLP(()), sees="all", mode="replace")
    weights = np.zeros_like(grafted.params["graft.weight"])
    weights[-1] = 0.7
    grafted = grafted.replace({"graft.weight": weights, "pair.margin": plain.params["pair.margin"]})
    state = jg.State(np.array([0, 0, 0.15, 1, 0, 0, 0.0]), np.array([0, 0, -1.0, 0, 0, 0]))
    one, other = (jg.rollout(model, state, steps=100).certificate() for model in (plain, grafted))
    for figure in ("margin", "mode_margin", "gap", "impact", "bounce", "signature"):
        np.testing.assert_allclose(getattr(other, figure), getattr(one, figure), rtol=1e-9, err_msg=figure)
    assert other.bounce.max() > 1.0 and not other.trusted


# batches -----------------------------------------------------------------------------------------------------------------


def test_an_environment_has_the_certificate_it_would_have_alone():
    model = jg.World().add(jg.zoo.laikago(touch="feet"), position=(0, 0, 0.5)).add_ground().compile(dt=DT)
    rng = np.random.default_rng(0)
    batch, steps = 9, 30
    q = np.repeat(model.initial_state().q[None], batch, 0)
    q[:, 2] += np.linspace(-0.01, 0.01, batch)
    qd, u = 0.3 * rng.normal(size=(batch, model.nv)), rng.normal(size=(steps, batch, model.nu))
    many = jg.rollout(model, jg.State(q, qd), u, threads=2, memory="10 kB").certificate()
    assert many.margin.shape == (steps, batch) and many.trusted.shape == (batch,)
    for env in (0, 3, 8):
        one = jg.rollout(model, jg.State(q[env], qd[env]), np.ascontiguousarray(u[:, env])).certificate()
        for figure in (
            "margin",
            "mode_margin",
            "gap",
            "open",
            "sticking",
            "slipping",
            "impulse",
            "change",
            "impact",
            "signature",
        ):
            assert np.array_equal(getattr(one, figure), getattr(many, figure)[:, env]), figure
    worst = many.worst()
    assert many.margin[worst.step, worst.env] == worst.margin == many.margin.min()
    assert f"environment {worst.env}" in str(many)


# trust -------------------------------------------------------------------------------------------------------------------


def test_an_outcome_on_an_edge_is_not_trusted():
    # the push at which sticking ends: both impulses are known
    force = 0.2 * NORMAL / tangential(1.0)
    assert not pushed(ball(0.2), force * (1 + 1e-10)).trusted
    assert "on an edge" in str(pushed(ball(0.2), force * (1 + 1e-10)))
    assert all(pushed(ball(0.2), force * part, distance=1e-7).trusted for part in (0.99, 1.01))
    # a push that just suffices to slip: a little speed the other way, and it sticks
    assert not pushed(ball(0.2), force * 1.01).trusted


def test_a_problem_that_is_not_solved_is_not_trusted():
    world = jg.World()
    for k in range(5):
        robot = jg.Description("box", base="free")
        robot.add_link("box", 10.0**k, inertia=(0.1 * 10.0**k,) * 3).shapes.append(jg.Shape("box", (0.1, 0.1, 0.1)))
        world.add(robot, name=f"b{k}", position=(0, 0, 0.1 + 0.2 * k))
    world.add_ground()
    few, many = (world.compile(dt=DT, contact=jg.Impulse(sweeps=n)) for n in (3, 3000))
    cert = jg.rollout(few, few.initial_state(), steps=2).certificate()
    assert not cert.trusted and "not settled" in cert.reasons[0][0]
    assert not any("not settled" in r for r in jg.rollout(many, many.initial_state(), steps=2).certificate().reasons[0])


def test_a_bounce_is_not_trusted_and_rightly_so():
    """A ball bounces off the ground without loss. Thrown down from higher, it is lower at the end; the gradient, which cannot
    move the step of the bounce, says higher."""
    model = ball(restitution=1.0).replace({"world.gravity": np.zeros(3)})

    def last(height):
        state = jg.State(np.array([0, 0, height, 1, 0, 0, 0.0]), np.array([0, 0, -1.0, 0, 0, 0]))
        return jg.rollout(model, state, steps=100)

    motion = last(0.15005)
    q_bar = np.eye(model.nq)[2]
    slope = motion.backward(q_bar=q_bar).q[2]
    secant = (last(0.16005).last.q[2] - last(0.14005).last.q[2]) / 0.02
    np.testing.assert_allclose(secant, -1.0, rtol=1e-3)
    np.testing.assert_allclose(slope, 1.0, rtol=1e-3)
    assert not motion.certificate().trusted and "bounces" in str(motion.certificate())
    # without the bounce there is nothing to distrust
    assert last(0.3).certificate().trusted


def by_height(model, height, velocity, steps, coordinate, step):
    """Of the last state, one coordinate's derivative by the height of the start, its slope over a step, and the certificate."""

    def thrown(z):
        return jg.rollout(model, jg.State(np.array([0, 0, z, 1, 0, 0, 0.0]), np.array(velocity)), steps=steps)

    motion = thrown(height)
    ends = [thrown(height + h).last.q[coordinate] for h in (step, -step)]
    bar = np.eye(model.nq)[coordinate]
    return motion.backward(q_bar=bar).q[2], (ends[0] - ends[1]) / (2 * step), motion.certificate()


@pytest.mark.parametrize("height, wanted", [(0.3, 0.144), (0.2003, 0.204)])
def test_a_landing_that_sticks_is_not_trusted(height, wanted):
    """A ball lands while it moves along the ground at 1 m/s, and rolls on more slowly. The later it lands, the longer it flies at
    full speed; the gradient, which cannot move the step of the landing, has another slope."""
    # of the speed, friction takes I / (I + m r^2); flight is longer by 1 / v for every metre
    taken = INERTIA / (INERTIA + MASS * RADIUS**2)
    np.testing.assert_allclose(taken / np.sqrt(2 * G * (height - RADIUS)), wanted, rtol=5e-3)
    gradient, slope, cert = by_height(ball(1.0), height, [1.0, 0, 0, 0, 0, 0], 400, 0, 0.009)
    np.testing.assert_allclose(slope, wanted, rtol=0.02)
    assert gradient > 1.25 * slope
    assert not cert.trusted and "something lands" in str(cert)


def test_a_slow_bounce_is_not_trusted():
    model = ball(restitution=1.0).replace({"world.gravity": np.zeros(3)})
    gradient, slope, cert = by_height(model, 0.10405, [0, 0, -0.089, 0, 0, 0], 100, 2, 0.002)
    assert gradient > 0.99 and slope < -0.9 and not cert.trusted and "bounces" in str(cert)
    assert isinstance(cert.meanings[0], jg.Randomised)  # too slow for impacts that move


def test_a_spring_is_trusted_where_steps_resolve_its_bounce():
    def looked_at(dt):
        model = ball(contact=jg.Spring(stiffness=1e5, damping=0.0), height=0.25).replace({"world.dt": np.array(dt)})
        return by_height(model, 0.2503, [0, 0, -1.0, 0, 0, 0], round(0.4 / dt), 2, 0.01)

    for dt, holds in ((1e-2, False), (1e-3, True)):
        gradient, slope, cert = looked_at(dt)
        assert (abs(gradient - slope) < 0.1 * abs(slope)) == holds
        assert cert._trajectory.certificate(q_bar=np.eye(7)[2]).trusted == holds


def test_tumbling_boxes_are_not_trusted_where_the_gradient_points_the_other_way():
    world = jg.World()
    for k in range(2):
        robot = jg.Description("box", base="free")
        robot.add_link("box", 1.0, inertia=(4e-3, 5e-3, 6e-3)).shapes.append(jg.Shape("box", (0.1, 0.08, 0.06)))
        world.add(robot, name=f"b{k}", position=(0.25 * k, 0, 0.3))
    model, rng, batch = world.add_ground(friction=0.5).compile(dt=DT), np.random.default_rng(4), 16
    q = np.repeat(model.initial_state().q[None], batch, 0)
    qd = rng.normal(size=(batch, model.nv))
    motion = jg.rollout(model, jg.State(q, qd), steps=500)
    slope = motion.backward(q_bar=np.tile(np.eye(model.nq)[0], (batch, 1))).qd
    way = 1e-3 * slope / np.linalg.norm(slope, axis=1, keepdims=True)
    ends = [jg.rollout(model, jg.State(q, qd + sign * way), steps=500).last.q[:, 0] for sign in (1, -1)]
    points_back = ends[0] < ends[1]
    assert points_back.sum() >= 2 and not motion.certificate().trusted[points_back].any()


def test_copies_start_where_the_contacts_of_the_start_let_them():
    """A box at rest on the ground has nowhere to go, one that slides goes along it: neither is lifted nor buried."""
    robot = jg.Description("box", base="free")
    robot.add_link("box", MASS, inertia=(INERTIA,) * 3).shapes.append(jg.Shape("box", (0.1, 0.1, 0.1)))
    model = jg.World().add(robot, position=(0, 0, 0.1)).add_ground(friction=0.5).compile(dt=DT)
    rest = jg.rollout(model, model.initial_state(), steps=50).certificate()
    assert rest.mismatch[0] < 0.1 and rest.trusted
    slides = jg.State(model.initial_state().q, np.array([1.0, 0, 0, 0, 0, 0]))
    assert jg.rollout(model, slides, steps=50).certificate().trusted


def test_an_environment_is_probed_as_it_would_be_alone():
    model, rng = ball(0.5), np.random.default_rng(1)
    friction = np.full((5, *model.params["pair.friction"].shape), 0.5) * rng.uniform(0.2, 2, size=(5, 1))
    q, qd = np.repeat(model.initial_state().q[None], 5, 0), rng.normal(size=(5, 6))
    q[:, 2] += rng.uniform(0, 0.1, size=5)
    many = jg.rollout(model.replace({"pair.friction": friction}), jg.State(q, qd), steps=120).certificate()
    for env in (0, 4):
        one = jg.rollout(model.replace({"pair.friction": friction[env]}), jg.State(q[env], qd[env]), steps=120)
        np.testing.assert_allclose(one.certificate().mismatch, many.mismatch[env], rtol=1e-9)


def test_the_certificate_names_the_meaning_that_helps():
    """A bounce: impacts that move, whose gradient by the height holds where the exact one does not."""
    model = ball(restitution=1.0, height=0.5).replace({"world.gravity": np.zeros(3)})
    start = jg.State(np.array([0, 0, 0.5003, 1, 0, 0, 0.0]), np.array([0, 0, -1.0, 0, 0, 0]))
    bar = np.eye(7)[2]
    exact = jg.rollout(model, start, steps=700).certificate(q_bar=bar)
    assert not exact.trusted and exact.meanings == [jg.MovingImpacts()]
    assert "may help: gradient=jg.MovingImpacts" in str(exact)
    moved = jg.rollout(model, start, steps=700, gradient=exact.meanings[0])
    found = moved.certificate(q_bar=bar)
    assert found.trusted and found.meanings == [jg.Exact()]
    assert moved.certificate(q_bar=bar, gradient=moved.backward(q_bar=bar)).mismatch == found.mismatch


def test_nothing_touches_yet():
    """A loss that the start does not change, with something near: forces at a distance. With nothing near: nothing to name."""
    model = ball(height=0.12)
    for height, named in ((0.11, True), (5.0, False)):
        start = jg.State(np.array([0, 0, height, 1, 0, 0, 0.0]), np.zeros(6))
        (meaning,) = jg.rollout(model, start, steps=3).certificate(q_bar=np.zeros(7)).meanings
        assert isinstance(meaning, jg.Smoothed) == named
        assert not named or meaning.width > 2 * 0.009


def test_reach_is_the_largest_distance_over_which_it_holds():
    """A ball that meets the ground at the end, but not if it starts 2 cm higher: near, its gradient holds, farther it does not."""
    model = ball(height=0.3)
    start = model.initial_state(2)
    start.q[:, 2], start.qd[:, 2] = (0.26, 5.0), -1.0
    motion = jg.rollout(model, start, steps=100)
    cert = motion.certificate()
    assert 0 < cert.reach[0] < 16 * cert.distance and cert.reach[1] == 16 * cert.distance
    assert motion.certificate(distance=cert.reach[0]).mismatch[0] < HOLDS
    assert motion.certificate(distance=4 * cert.reach[0]).mismatch[0] >= HOLDS


def test_figures_are_worked_out_when_asked_for(monkeypatch):
    """The verdict looks at some steps alone."""
    seen = []
    monkeypatch.setattr(
        certificate_module, "step_records", lambda t, which=None: seen.append(which) or step_records(t, which)
    )
    cert = jg.rollout(ball(), ball().initial_state(), steps=400).certificate()
    assert cert.trusted.shape == () and len(seen) == 1 and len(seen[0]) == 20
    assert cert.margin.shape == (400,) and seen[1:] == [None] and cert.gap.shape == (400,) and len(seen) == 2
    with pytest.raises(jg.InputError, match="one loss"):
        jg.rollout(ball(), ball().initial_state(), steps=2).certificate(q_bar=np.ones(7)).trusted_for(q_bar=np.ones(7))
    with pytest.raises(jg.InputError, match="q_bar must have shape"):
        jg.rollout(ball(), ball().initial_state(), steps=2).certificate(q_bar=np.ones(3))


def test_a_distance_that_is_none():
    with pytest.raises(jg.InputError, match="distance must be"):
        pushed(ball(), 1.0, distance=0.0)


def test_what_left_the_finite_numbers_is_not_trusted():
    model = ball(contact=jg.Spring(stiffness=1e300, damping=0.0), height=RADIUS - 1e-3)
    state = jg.State(model.initial_state().q, np.array([1.0, 0, 0, 1, 2, 3]))
    motion = jg.rollout(model, state, steps=3, on_nan="freeze")
    assert motion.status[0] >= 0
    assert not motion.certificate().trusted


def test_signatures_tell_whether_a_clamp_acted_otherwise():
    force = 0.2 * NORMAL / tangential(1.0)
    model = ball(0.2)
    inside, near, outside = (pushed(model, f * force, 5).signature for f in (0.5, 0.6, 1.5))
    assert np.array_equal(inside, near) and not np.array_equal(inside, outside)
    # the sweeps of a margin away do not matter, those within do
    airborne = ball(height=1.0)
    assert not jg.rollout(airborne, airborne.initial_state(), steps=3).certificate().signature.any()


def test_nothing_touched():
    model = jg.World().add(jg.zoo.laikago(touch="feet"), position=(0, 0, 2.0)).compile(dt=DT)
    cert = jg.rollout(model, model.initial_state(), steps=3).certificate()
    assert cert.worst() is None and cert.trusted and "nothing touched" in str(cert)
    assert np.isinf(cert.margin).all() and np.isinf(cert.gap).all()


def test_an_environment_that_is_not_there():
    cert = pushed(ball(), 1.0)
    with pytest.raises(jg.InputError, match="1 environments"):
        cert.worst(3)


# gradcheck ---------------------------------------------------------------------------------------------------------------

SCENE = """<mujoco><option timestep="0.002"/><worldbody><geom name="floor" type="plane" size="1 1 1"/>
<body name="ball" pos="0 0 0.3"><freejoint/><geom type="sphere" size="0.1" mass="1"/></body></worldbody>
<keyframe><key name="down" qpos="0 0 0.1 1 0 0 0" qvel="1 0 0 0 0 0"/></keyframe></mujoco>"""
URDF = """<robot name="r"><link name="r"><inertial><mass value="1"/><inertia ixx=".01" iyy=".01" izz=".01" ixy="0" ixz="0" iyz="0"/>
</inertial><collision><geometry><box size=".2 .2 .2"/></geometry></collision></link></robot>"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "scene.xml").write_text(SCENE)
    (tmp_path / "box.urdf").write_text(URDF)
    (tmp_path / "bad.urdf").write_text("<robot><link></robot>")
    return tmp_path


def checked(capsys, *arguments):
    code = main(["gradcheck", *map(str, arguments)])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_gradcheck_of_a_scene(files, capsys):
    code, out, _ = checked(capsys, files / "scene.xml", "--state", "down", "--json")
    said = json.loads(out)
    assert code == 0 and said["good"] and said["certificate"]["slipping"] > 0
    assert {line["wrt"] for line in said["lines"]} == {"q", "qd", "link.mass", "pair.friction"}
    assert all(line["error"] < 1e-5 for line in said["lines"])
    assert any(abs(line["gradient"]) > 1e-3 for line in said["lines"] if line["wrt"] == "pair.friction")


def test_gradcheck_stands_a_robot_on_the_ground(files, capsys):
    code, out, _ = checked(capsys, files / "box.urdf", "--base", "free", "--steps", 20)
    assert code == 0 and out.rstrip().endswith("GOOD: the gradient is exact and worth following")
    assert "4 sticking" in out
    code, out, _ = checked(capsys, files / "box.urdf", "--base", "free", "--height", 0.5, "--steps", 20, "--json")
    assert json.loads(out)["certificate"]["sticking"] == 0 and json.loads(out)["certificate"]["worst"] is None
    # in the air nothing is tried, and that is said
    assert code == 1 and not json.loads(out)["touched"] and "NO CONTACT EXERCISED" in json.loads(out)["verdict"]


def test_gradcheck_lets_fall_what_does_not_touch(files, capsys):
    """A ball 0.2 m above the floor touches it after sqrt(2 h / g) = 0.2 s; it is checked there, at rest."""
    code, out, _ = checked(capsys, files / "scene.xml", "--json")
    said = json.loads(out)
    assert code == 0 and said["touched"] and said["certificate"]["sticking"] + said["certificate"]["slipping"] > 0
    assert any("set down where it touches after 0.2" in note for note in said["notes"])


def test_gradcheck_of_what_cannot_touch(files, capsys):
    (files / "bare.urdf").write_text(URDF.replace("collision>", "visual>"))
    code, out, _ = checked(capsys, files / "bare.urdf", "--base", "free")
    assert code == 0 and "no contact was exercised" in out.splitlines()[-1]


def test_gradcheck_notices_a_wrong_gradient(files, capsys, monkeypatch):
    right = Trajectory.backward

    def wrong(self, *args, **options):
        gradient = right(self, *args, **options)
        return jg.Gradient(gradient.q, 1.001 * gradient.qd, gradient.u, gradient.force, gradient.params)

    monkeypatch.setattr(Trajectory, "backward", wrong)
    code, out, _ = checked(capsys, files / "scene.xml", "--state", "down")
    assert code == 1 and "NOT EXACT" in out.splitlines()[-1]


def test_gradcheck_leaves_out_what_switches():
    force = 0.2 * NORMAL / tangential(1.0)
    model = ball(0.2)
    tilted = model.replace({"world.gravity": np.array([force / MASS, 0, -G])})
    check = spot_check(tilted, model.initial_state(), steps=1)
    verdicts = [line.verdict for line in check.lines]
    assert "switches" in verdicts and DIFFERS not in verdicts and not check.is_good


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("none.urdf",), "there is no file"),
        (("bad.urdf",), "not XML"),
        (("scene.xml", "--state", "up"), "it has down"),
        (("scene.xml", "--base", "free"), "--base is for URDF"),
        (("box.urdf", "--height", "1"), "--base free"),
        (("box.urdf", "--steps", "0"), "--steps must be 1 or more"),
    ],
)
def test_gradcheck_of_bad_input_is_one_clear_error(files, capsys, arguments, message):
    code, out, err = checked(capsys, files / arguments[0], *arguments[1:])
    assert code == 2 and message in err and len(err.splitlines()) == 1 and not out
