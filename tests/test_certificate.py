"""The certificate: margins are those of closed forms, modes are told apart, and what is not to be trusted is named."""

import json

import numpy as np
import pytest

import jointgrad as jg
from jointgrad.cli import main
from jointgrad.engine.gradcheck import DIFFERS, spot_check
from jointgrad.engine.rollout import Trajectory
from jointgrad.engine.stages.contact.margins import LOOK

G, DT, MASS, RADIUS, INERTIA, SOFT = 9.81, 1e-3, 2.0, 0.1, 0.008, 1e-5


def ball(friction=0.5, contact=None, height=RADIUS, **options):
    robot = jg.Description("ball", base="free")
    robot.add_link("ball", MASS, inertia=(INERTIA,) * 3).shapes.append(jg.Shape("sphere", (RADIUS,)))
    world = jg.World().add(robot, position=(0, 0, height)).add_ground(friction=friction)
    if options:
        world.pair("ball", "ground", **options)
    return world.compile(dt=DT, contact=contact or jg.Impulse(compliance=0.0, softness=SOFT))


def pushed(model, force, steps=1):
    """A motion under a steady push along x, and its certificate."""
    push = np.zeros((model.n_links, 6))
    push[0, 0] = force
    return jg.rollout(model, model.initial_state(), steps=steps, force=push).certificate()


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
    cert = jg.rollout(model, state, steps=1).certificate()
    assert (cert.open[0], cert.sticking[0], cert.slipping[0]) == (0, 0, 1)
    assert cert.trusted and "1 slipping" in str(cert)


# batches -----------------------------------------------------------------------------------------------------------------


def test_an_environment_has_the_certificate_it_would_have_alone():
    model = jg.World().add(jg.zoo.laikago(), position=(0, 0, 0.5)).add_ground().compile(dt=DT)
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
    assert pushed(ball(0.2), force * 1.01).trusted and pushed(ball(0.2), force * 0.99).trusted


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
    model = jg.World().add(jg.zoo.laikago(), position=(0, 0, 2.0)).compile(dt=DT)
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
