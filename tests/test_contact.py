"""Contact, limits, friction and loops against closed forms and conservation laws."""

from __future__ import annotations

import numpy as np
import pytest

import jointgrad as jg

G = 9.81
BALL = 0.4  # inertia of a solid ball, by m r^2


def body(kind: str, size, mass: float = 1.0, inertia=None, **options) -> jg.Description:
    """A free body of one shape; inertia is that of the solid, where none is given."""
    if inertia is None:
        x, y, z = (*size, *size, *size)[:3]
        inertia = (
            tuple(mass / 3 * (a * a + b * b) for a, b in ((y, z), (x, z), (x, y)))
            if kind == "box"
            else (BALL * mass * x * x,) * 3
        )
    robot = jg.Description("body", base="free")
    robot.add_link("body", mass, inertia=inertia).shapes.append(jg.Shape(kind, size, **options))
    return robot


def rolled(model: jg.Model, state: jg.State, time: float, u=None, **options) -> jg.Trajectory:
    steps = round(time / float(model.params["world.dt"]))
    controls = None if u is None else np.broadcast_to(np.asarray(u, dtype=float), (steps, model.nu)).copy()
    return jg.rollout(model, state, controls, steps=steps, **options)


def start(model: jg.Model, qd=None, q=None) -> jg.State:
    state = model.initial_state()
    return jg.State(state.q if q is None else np.array(q, float), state.qd if qd is None else np.array(qd, float))


def tilted(angle: float, direction: float) -> tuple[float, float, float]:
    """Gravity on a plane that falls by an angle towards a direction, seen from the plane."""
    s, c = np.sin(angle), np.cos(angle)
    return (G * s * np.cos(direction), G * s * np.sin(direction), -G * c)


def block_on_plane(angle, direction, friction, cone=True, dt=1e-3) -> jg.Model:
    world = jg.World(gravity=tilted(angle, direction))
    world.add(body("box", (0.1, 0.1, 0.05)), position=(0, 0, 0.05)).add_ground(friction=friction)
    return world.compile(dt=dt, contact=jg.Impulse(cone=cone))


# sliding ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", [0.0, 0.4, np.pi / 4, 2.0])
def test_incline_in_any_direction(direction):
    """A block slips where tan(angle) > mu, with a = g (sin(angle) - mu cos(angle)), downhill; else it stays."""
    angle = 0.4
    for friction, slips in ((np.tan(angle) * 1.01, False), (np.tan(angle) * 0.99, True), (0.2, True), (0.0, True)):
        model = block_on_plane(angle, direction, friction)
        motion = rolled(model, start(model), 0.5)
        velocity = motion.last.qd
        a = max(0.0, G * (np.sin(angle) - friction * np.cos(angle)))
        downhill = np.array([np.cos(direction), np.sin(direction)])
        assert (np.linalg.norm(velocity[:2]) > 1e-3) == slips
        np.testing.assert_allclose(velocity[:2], 0.5 * a * downhill, atol=2e-5 * G)
        np.testing.assert_allclose(velocity[3:], 0.0, atol=1e-4)


def test_incline_pyramid_along_its_axes_and_between():
    """The pyramid holds mu N along each of its axes: downhill along one, a = g (sin - mu cos); at 45 degrees it is
    sqrt(2) stronger."""
    angle, friction = 0.5, 0.3
    model = block_on_plane(angle, 0.0, friction, cone=False)
    a = G * (np.sin(angle) - friction * np.cos(angle))
    np.testing.assert_allclose(rolled(model, start(model), 0.3).last.qd[:2], (0.3 * a, 0), atol=1e-4)
    model = block_on_plane(angle, np.pi / 4, friction, cone=False)
    a = G * (np.sin(angle) - np.sqrt(2) * friction * np.cos(angle))
    np.testing.assert_allclose(rolled(model, start(model), 0.3).last.qd[:2], 0.3 * a / np.sqrt(2), atol=1e-4)


@pytest.mark.parametrize("direction", [0.0, 1.1])
def test_sliding_distance(direction):
    """A block thrown along the ground with v stops after v^2 / (2 mu g), in v / (mu g), and stays there."""
    v, friction, dt = 2.0, 0.5, 5e-4
    model = block_on_plane(0.0, 0.0, friction, dt=dt)
    along = np.array([np.cos(direction), np.sin(direction)])
    motion = rolled(model, start(model, (*(v * along), 0, 0, 0, 0)), 0.6)
    # semi-implicit Euler stops one half step short of the parabola
    np.testing.assert_allclose(motion.last.q[:2], v * v / (2 * friction * G) * along, atol=v * dt)
    stop = np.argmax(np.linalg.norm(motion.qd[:, :2], axis=1) < 1e-6) * dt
    assert abs(stop - v / (friction * G)) < 2 * dt
    assert np.abs(motion.last.qd).max() < 1e-7


def test_no_friction_without_normal_force():
    """A block that slides while something lifts it with its own weight is not braked (the seed's code brakes it)."""
    model = block_on_plane(0.0, 0.0, 1.0)
    lift = np.array([[0.0, 0.0, G + 1e-6, 0.0, 0.0, 0.0], [0.0] * 6])
    state = start(model, (1.0, 0.5, 0, 0, 0, 0))
    last = jg.rollout(model, state, steps=100, force=lift).last
    np.testing.assert_allclose(last.qd[:2], (1.0, 0.5), rtol=1e-9)


# bouncing ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("e", [0.3, 0.8, 1.0])
def test_bounce_height(e):
    """A ball dropped from h bounces to e^2 h; the error halves with dt. An elastic bounce has none: what the step conserves in
    flight, (v - g dt / 2)^2 / 2 + g z, it conserves in a bounce."""
    h, errors = 0.5, []
    for dt in (2e-3, 1e-3, 5e-4, 2.5e-4):
        world = jg.World().add(body("sphere", (0.1,)), position=(0, 0, 0.1 + h)).add_ground(restitution=e)
        model = world.compile(dt=dt, contact=jg.Impulse(compliance=0.0))
        # over many heights, so that where in a step the ball lands averages out
        heights = h + np.random.default_rng(0).uniform(0.0, 0.05, 200)
        q = np.repeat(model.initial_state().q[None], len(heights), 0)
        q[:, 2] = 0.1 + heights
        steps = round((np.sqrt(2 * 0.56 / G) * (1 + e) + 0.02) / dt)
        height = jg.rollout(model, jg.State(q, np.zeros((len(q), 6))), steps=steps).q[..., 2] - 0.1
        landed = np.argmax(height <= 0, axis=0)
        after = np.array([height[k + 2 :, i].max() for i, k in enumerate(landed)])
        errors.append(np.abs(after - e * e * heights).mean() / h)
    print(errors)
    if e == 1:
        assert max(errors) < 1e-9
        return
    assert errors[-1] < 2e-3
    rates = np.array(errors[:-1]) / errors[1:]
    assert ((1.7 < rates) & (rates < 2.4)).all(), rates


def two_balls(e: float, masses=(1.0, 1.0)) -> jg.Model:
    world = jg.World(gravity=(0, 0, 0))
    for k, mass in enumerate(masses):
        world.add(body("sphere", (0.1,), mass), name=f"ball{k}", position=(0.19999 * k, 0, 0))
    return world.pair("ball0/body", "ball1/body", restitution=e, friction=0.0, compliance=0.0).compile(dt=1e-4)


@pytest.mark.parametrize("e", [1.0, 0.5])
def test_two_equal_balls(e):
    """v1' = ((1-e) v1 + (1+e) v2) / 2 and the other way round: with e = 1 they exchange velocities. The Jacobian of the
    velocities is this matrix, and v' along e is half the closing speed."""
    model, v = two_balls(e), np.array([1.5, -0.5])
    qd = np.zeros(12)
    qd[[0, 6]] = v
    matrix = 0.5 * np.array([[1 - e, 1 + e], [1 + e, 1 - e]])
    motion = jg.rollout(model, start(model, qd), steps=1)
    np.testing.assert_allclose(motion.last.qd[[0, 6]], matrix @ v, rtol=1e-12)
    for k in range(2):
        bar = np.zeros(12)
        bar[6 * k] = 1.0
        gradient = motion.backward(qd_bar=bar)
        np.testing.assert_allclose(gradient.qd[[0, 6]], matrix[k], rtol=1e-9)
        by_e = (-1) ** (k + 1) * 0.5 * (v[0] - v[1])
        np.testing.assert_allclose(gradient.params["pair.restitution"], [by_e], rtol=1e-9)


def test_two_unequal_balls():
    """v1' = v1 - (1+e) m2 / (m1+m2) (v1 - v2); by m1 its derivative is (1+e) m2 / (m1+m2)^2 (v1 - v2)."""
    m1, m2, e, v = 1.0, 3.0, 0.7, 2.0
    model = two_balls(e, (m1, m2))
    qd = np.zeros(12)
    qd[0] = v
    motion = jg.rollout(model, start(model, qd), steps=1)
    np.testing.assert_allclose(motion.last.qd[0], v - (1 + e) * m2 / (m1 + m2) * v, rtol=1e-12)
    bar = np.zeros(12)
    bar[0] = 1.0
    masses = motion.backward(qd_bar=bar).params["link.mass"]
    np.testing.assert_allclose(masses[0], (1 + e) * m2 / (m1 + m2) ** 2 * v, rtol=1e-9)
    np.testing.assert_allclose(masses[1], -(1 + e) * m1 / (m1 + m2) ** 2 * v, rtol=1e-9)


# rolling ----------------------------------------------------------------------------------------------------------------


def ball_on_ground(friction=0.4, dt=5e-4, r=0.1, **pair) -> jg.Model:
    world = jg.World().add(body("sphere", (r,)), position=(0, 0, r)).add_ground(friction=friction)
    return world.pair("body", "ground", friction=friction, **pair).compile(dt=dt)


@pytest.mark.parametrize(("spin", "direction"), [(-60.0, 0.0), (-10.0, 0.7), (30.0, 2.0)])
def test_sphere_with_spin(spin, direction):
    """A ball thrown with v and turning with w (against its way if w < 0) rolls at the end with (5 v + 2 w r) / 7: with
    enough backspin it comes back. It slides for |2 (v - w r)| / (7 mu g)."""
    v, r, mu = 1.0, 0.1, 0.4
    model = ball_on_ground(mu)
    along, axis = np.array([np.cos(direction), np.sin(direction)]), np.array([-np.sin(direction), np.cos(direction)])
    slides = abs(2 * (v - spin * r)) / (7 * mu * G)
    motion = rolled(model, start(model, (*(v * along), 0, *(spin * axis), 0)), slides + 0.1)
    final = (5 * v + 2 * spin * r) / 7
    last = motion.last.qd
    np.testing.assert_allclose(last[:2], final * along, atol=2e-3 * max(1, abs(final)))
    dt = float(model.params["world.dt"])
    speed = motion.qd[:, :2] @ along
    rolls = np.argmax(np.abs(speed - speed[-1]) < 1e-6 * abs(v - spin * r)) * dt
    assert abs(rolls - slides) < 0.02 * slides + 2 * dt


def test_rolling_wheel():
    """A wheel (hoop: I = m r^2) that rolls down a slope has a = g sin(angle) / (1 + I / (m r^2)), and does not slip."""
    angle, r = 0.3, 0.2
    wheel = body("sphere", (r,), 2.0, inertia=(2.0 * r * r,) * 3)
    world = jg.World(gravity=tilted(angle, 0.0)).add(wheel, position=(0, 0, r)).add_ground(friction=1.0)
    model = world.compile(dt=1e-3)
    last = rolled(model, start(model), 1.0).last
    np.testing.assert_allclose(last.qd[0], G * np.sin(angle) / 2, rtol=1e-4)
    np.testing.assert_allclose(last.qd[4] * r, last.qd[0], rtol=1e-4)


def test_ball_with_rolling_friction():
    """Rolling friction of arm b brakes a rolling ball with (b / r) g / (1 + 2/5): it stops after v^2 / (2 a)."""
    v, r, b = 0.5, 0.1, 0.002
    model = ball_on_ground(0.8, dt=1e-3, rolling=b)
    a = b / r * G / (1 + BALL)
    motion = rolled(model, start(model, (v, 0, 0, 0, v / r, 0)), v / a + 0.3)
    np.testing.assert_allclose(motion.last.q[0], v * v / (2 * a), rtol=5e-3)
    np.testing.assert_allclose(motion.last.qd, 0.0, atol=1e-6)


def test_spinning_disc_of_points():
    """A ring of n points of radius R that spins in place is braked by sliding friction mu m g R; torsional friction of
    arm b at each point adds b m g: it stops after I w / (m g (mu R + b))."""
    R, mu, b, spin, n = 0.2, 0.1, 0.03, 6.0, 6
    points = [(R * np.cos(t), R * np.sin(t), 0.0) for t in 2 * np.pi * np.arange(n) / n]
    disc = jg.Description("disc", base="free")
    inertia = 0.5 * R * R
    disc.add_link("disc", 1.0, inertia=(inertia / 2, inertia / 2, inertia)).shapes.append(
        jg.Shape("points", (0.0,), points=points)
    )
    for arm in (0.0, b):
        world = jg.World().add(disc, position=(0, 0, 0)).add_ground()
        model = world.pair("disc", "ground", friction=mu, torsion=arm).compile(dt=1e-3)
        expected = inertia * spin / (G * (mu * R + arm))
        motion = rolled(model, start(model, (0, 0, 0, 0, 0, spin)), expected + 0.1)
        stopped = np.argmax(np.abs(motion.qd[:, 5]) < 1e-6) * 1e-3
        assert abs(stopped - expected) < 5e-3
        np.testing.assert_allclose(motion.last.q[:2], 0.0, atol=1e-3)


# momentum ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cone", [True, False])
def test_momentum_is_conserved(cone):
    """Free bodies, some of them articulated, that collide without gravity: linear and angular momentum stay, to
    rounding, through every step of a pile-up with friction, spin rows and bounces."""
    world = jg.World(gravity=(0, 0, 0))
    kinds = (("sphere", (0.15,)), ("capsule", (0.1, 0.15)), ("box", (0.15, 0.1, 0.12)))
    rng = np.random.default_rng(4)
    for k in range(6):
        turn = rng.normal(size=4)
        kind, size = kinds[k % 3]
        place = 0.5 * np.array([np.cos(k), np.sin(k), 0.3 * rng.normal()])
        world.add(body(kind, size, 1.0 + k), f"free{k}", place, turn / np.linalg.norm(turn))
    arm = jg.zoo.random_tree(4, seed=3, kinds=("revolute", "spherical"), base="free", passive=False, actuators=False)
    for link in arm.links.values():
        link.shapes.append(jg.Shape("sphere", (0.12,)))
    world.add(arm, "arm", (0.0, 0.1, 0.0))
    world.pair("*", "*", friction=0.5, restitution=0.3, torsion=0.02, rolling=0.01)
    model = world.compile(dt=1e-3, contact=jg.Impulse(cone=cone))
    state = model.initial_state()
    qd = rng.normal(size=model.nv)
    for k in range(6):  # towards the middle
        qd[6 * k : 6 * k + 3] -= 4.0 * state.q[7 * k : 7 * k + 3]
    state, kicks = jg.State(state.q, qd), 0
    for _ in range(150):
        after = jg.step(model, state)
        before, with_jump = (jg.inspect(model, jg.State(state.q, qd)).momentum for qd in (state.qd, after.qd))
        # of the impulses alone: the free motion of an articulated body has a time-stepping error of its own
        free = jg.State(state.q, state.qd + 1e-3 * jg.inspect(model, state).qdd)
        expected = jg.inspect(model, free).momentum
        for a, b in zip(with_jump, expected, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-13 * np.abs(before[0]).max())
        kicks += np.abs(after.qd - free.qd).max() > 0.1
        state = after
    assert kicks > 5


# resting ----------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_stack_of_five_boxes():
    """Ten seconds: it gains at most 1e-4 of its energy (over the ground) and no box drifts by a millimetre."""
    half, world = 0.1, jg.World()
    for k in range(5):
        world.add(body("box", (half, half, half)), f"box{k}", (0, 0, half + 2 * half * k))
    model = world.add_ground(friction=0.6).compile(dt=1e-3)
    motion = jg.rollout(model, model.initial_state(), steps=10000)
    states = jg.State(motion.q[::50], motion.qd[::50])
    info = jg.inspect(model, states)
    energy = info.kinetic_energy + info.potential_energy
    print(f"gain {(energy.max() - energy[0]) / energy[0]:.1e}, loss {(energy[0] - energy.min()) / energy[0]:.1e}")
    assert energy.max() - energy[0] < 1e-4 * energy[0]
    drift = np.abs(motion.q.reshape(-1, 5, 7)[:, :, :3] - motion.q[0].reshape(5, 7)[:, :3]).max()
    print(f"drift {1e3 * drift:.3f} mm")
    assert drift < 1e-3


# joints -----------------------------------------------------------------------------------------------------------------


def arm_of(lengths, limit=None, friction=0.0, gravity=(0.0, 0.0, -G), **joint) -> jg.Description:
    """Thin rods about y, one after the other, hanging along -z at rest."""
    robot = jg.Description("arm")
    for k, length in enumerate(lengths):
        inertia = length**2 / 12
        robot.add_link(f"rod{k}", 1.0, (0, 0, -length / 2), (inertia, inertia, 1e-6))
        options = dict(axis=(0, 1, 0), friction=friction, **joint)
        if limit:
            options["limit"] = limit
        parent = f"rod{k - 1}" if k else None
        place = (0, 0, -lengths[k - 1]) if k else (0, 0, 0)
        robot.add_joint(f"joint{k}", "revolute", parent, f"rod{k}", position=place, **options)
        robot.add_actuator(f"motor{k}", f"joint{k}")
    return robot


def test_joint_limit_stops_a_pendulum():
    """A rod let go at 1 rad hits its stop at -0.3 rad with the speed of energy conservation, w^2 = 3 g / l (cos 0.3 -
    cos 1), and loses it; pressed against the stop it rests there; with a torque away from the stop it leaves."""
    model = arm_of([1.0], limit=(-0.3, 2.0)).compile(dt=2.5e-4)
    motion = rolled(model, start(model, q=[1.0]), 1.0)
    q, qd = motion.q[:, 0], motion.qd[:, 0]
    hit = np.argmax(q < -0.2985)
    np.testing.assert_allclose(-qd[hit - 1], np.sqrt(3 * G * (np.cos(0.3) - np.cos(1.0))), rtol=2e-3)
    assert np.abs(qd[hit + 20]) < 0.05 * np.abs(qd[hit - 1])
    assert q.min() > -0.3 - 1e-4
    pressed = rolled(model, start(model, q=[-0.3]), 1.0, u=[-20.0]).last
    np.testing.assert_allclose(pressed.q, -0.3, atol=1e-4)
    np.testing.assert_allclose(pressed.qd, 0.0, atol=1e-4)
    # qdd = (tau - m g l/2 sin q) / I
    away = jg.step(model, start(model, q=[-0.3]), np.array([3.0]))
    np.testing.assert_allclose(away.qd, 2.5e-4 * 3 * (3.0 + G / 2 * np.sin(0.3)), rtol=1e-6)


@pytest.mark.parametrize("width", [0.0, 5e-4, 1.9e-3])
@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_a_narrow_range_holds_on_both_sides(width, side):
    """A joint whose range is a fraction of what it would move in a step: thrown or pressed, it leaves it to neither side."""
    model = arm_of([1.0], limit=(-width / 2, width / 2)).compile(dt=1e-2, gravity=(0, 0, 0))
    for place in (-width / 2, 0.0, width / 2):
        thrown = rolled(model, start(model, q=[place], qd=[5.0 * side]), 0.5)
        assert np.abs(thrown.q).max() < width / 2 + 1e-6
        pressed = rolled(model, start(model, q=[place]), 0.5, u=[20.0 * side])
        assert np.abs(pressed.q).max() < width / 2 + 1e-6
        np.testing.assert_allclose(pressed.last.q, side * width / 2, atol=1e-6)


def test_a_range_of_nothing_is_a_fixed_joint():
    """The second rod of an arm whose first joint has the range (0, 0) swings as if that joint were fixed: what the swing
    pulls at it changes sides."""
    held, fixed = arm_of([1.0, 0.7]), arm_of([1.0, 0.7])
    held.joint("joint0").limit = (0.0, 0.0)
    fixed.joint("joint0").kind = "fixed"
    del fixed.actuators["motor0"]
    model, truth = held.compile(), fixed.compile()
    motion = rolled(model, start(model, q=[0.0, 1.0], qd=[0.0, 6.0]), 1.0)
    np.testing.assert_allclose(motion.q[:, 0], 0.0, atol=1e-7)
    np.testing.assert_allclose(motion.q[:, 1], rolled(truth, start(truth, q=[1.0], qd=[6.0]), 1.0).q[:, 0], atol=1e-3)


def test_a_range_becomes_narrow_only_by_description():
    """A joint with one row for both limits is refused a range in which both act at once, by either parameter."""
    model = arm_of([1.0], limit=(-1.0, 1.0)).compile()
    frame = model.joint("joint0")
    narrow = model.params["joint.limit"].copy()
    narrow[frame] = 0.0
    for values in ({"joint.limit": narrow}, {"world.limit_margin": 1.1}):
        with pytest.raises(jg.InputError, match='"joint0" is narrower than twice world.limit_margin'):
            model.replace(values)


def test_dry_friction_of_a_joint():
    """Below its breakaway torque the joint does not move; above, qdd = (tau - friction) / I; let go, it stops after
    I w / friction."""
    inertia = 1 / 3
    model = arm_of([1.0], friction=2.0).compile(dt=1e-3, gravity=(0, 0, 0))
    held = rolled(model, start(model), 0.5, u=[1.99]).last
    np.testing.assert_allclose(held.q, 0.0, atol=1e-5)
    np.testing.assert_allclose(held.qd, 0.0, atol=1e-4)
    for torque in (2.5, -3.0):
        last = rolled(model, start(model), 0.5, u=[torque]).last
        a = (abs(torque) - 2.0) / inertia * np.sign(torque)
        np.testing.assert_allclose(last.qd, 0.5 * a, rtol=1e-6)
    coasting = rolled(model, start(model, [3.0]), 1.0, u=[0.0]).qd[:, 0]
    stopped = np.argmax(np.abs(coasting) < 1e-5) * 1e-3
    assert abs(stopped - inertia * 3.0 / 2.0) < 2e-3


def test_dry_friction_between_links():
    """Two rods in line without gravity, dry friction only between them: their angular momenta add up, and they end as
    one: the outer is dragged along."""
    robot = arm_of([1.0, 1.0])
    robot.joints["joint1"].friction = 0.4
    model = robot.compile(dt=1e-3, gravity=(0, 0, 0))
    motion = rolled(model, start(model, [2.0, 0.0]), 3.0)
    assert np.abs(motion.qd[-200:, 1]).max() < 1e-3
    info = [
        jg.inspect(model, jg.State(q, qd)) for q, qd in ((motion.q[0], motion.qd[0]), (motion.last.q, motion.last.qd))
    ]
    np.testing.assert_allclose(info[1].momentum[1][1], info[0].momentum[1][1], rtol=2e-3)


def test_mimic_joints_follow():
    """A finger whose second joint follows the first by q1 = -0.5 q0 + 0.2: it is a mechanism of one degree of freedom,
    whose inertia is J^T M J with J = (1, -0.5)."""
    robot = arm_of([1.0, 0.6])
    robot.joints["joint1"].mimic = ("joint0", -0.5, 0.2)
    robot.joints["joint1"].initial = 0.2
    model = robot.compile(dt=5e-4, gravity=(0, 0, 0))
    state, torque = start(model), 1.3
    M, J = jg.inspect(model, state).mass_matrix, np.array([1.0, -0.5])
    one = jg.step(model, state, np.array([torque, 0.0]))
    np.testing.assert_allclose(one.qd, J * torque / (J @ M @ J) * 5e-4, rtol=1e-4)
    motion = rolled(model, state, 1.0, u=[torque, 0.4])
    assert np.abs(motion.q[:, 0]).max() > 0.3
    np.testing.assert_allclose(motion.q[:, 1], -0.5 * motion.q[:, 0] + 0.2, atol=1e-4)


def four_bar() -> jg.Description:
    """A crank, a coupler, and a rocker of lengths 0.5, 0.8, 0.6; pivots 0.9 apart; closed at the rocker's end."""
    robot = jg.Description("four_bar")
    for name, length in (("crank", 0.5), ("coupler", 0.8), ("rocker", 0.6)):
        robot.add_link(name, length, (length / 2, 0, 0), (1e-4, length**3 / 12, length**3 / 12))
    robot.add_joint("a", "revolute", None, "crank", axis=(0, -1, 0), initial=1.0)
    # closed where circles about the crank's end and the other pivot meet
    end = 0.5 * np.array([np.cos(1.0), np.sin(1.0)])
    way = np.array([0.9, 0.0]) - end
    d = np.linalg.norm(way)
    along = (0.8**2 - 0.6**2 + d**2) / (2 * d)
    across = np.sqrt(0.8**2 - along**2)
    tip = end + along * way / d + across * np.array([-way[1], way[0]]) / d
    coupler = np.arctan2(*(tip - end)[::-1])
    rocker = np.arctan2(*(tip - (0.9, 0.0))[::-1])
    robot.add_joint("b", "revolute", "crank", "coupler", position=(0.5, 0, 0), axis=(0, -1, 0), initial=coupler - 1.0)
    robot.add_joint("d", "revolute", None, "rocker", position=(0.9, 0, 0), axis=(0, -1, 0), initial=rocker)
    robot.constraints.append(jg.Connect("coupler", "rocker", (0.8, 0, 0)))
    return robot


def four_bar_energy(crank: float) -> float:
    """Potential energy of the linkage, by geometry alone."""
    end = 0.5 * np.array([np.cos(crank), np.sin(crank)])
    way = np.array([0.9, 0.0]) - end
    d = np.linalg.norm(way)
    along = (0.8**2 - 0.6**2 + d**2) / (2 * d)
    across = np.sqrt(max(0.8**2 - along**2, 0.0))
    tip = end + along * way / d + across * np.array([-way[1], way[0]]) / d
    return G * (0.5 * end[1] / 2 + 0.8 * (end[1] + tip[1]) / 2 + 0.6 * tip[1] / 2)


def test_four_bar_linkage():
    """Closed by a connect it stays closed as it swings (to second order in dt), conserves energy, and with damping comes
    to rest where the potential energy of its one-parameter family of poses is least."""
    robot, openings = four_bar(), []
    for dt in (1e-3, 5e-4):
        model = robot.compile(dt=dt)
        motion = rolled(model, model.initial_state(), 2.0)
        info = jg.inspect(model, jg.State(motion.q, motion.qd))
        tip = info.link_position[:, 1] + info.link_rotation[:, 1] @ (0.8, 0, 0)
        other = info.link_position[:, 2] + info.link_rotation[:, 2] @ (0.6, 0, 0)
        openings.append(np.abs(tip - other).max())
        assert np.ptp(motion.q[:, 0]) > 0.5
        energy = info.kinetic_energy + info.potential_energy
        assert np.ptp(energy) < 30 * dt * np.ptp(info.kinetic_energy)
    assert openings[1] < 2e-4 and openings[0] > 3 * openings[1]
    for joint in robot.joints.values():
        joint.damping = 0.5
    model = robot.compile(dt=2e-3)
    last = rolled(model, model.initial_state(), 15.0).last
    cranks = np.linspace(last.q[0] - 0.3, last.q[0] + 0.3, 6001)
    best = cranks[np.argmin([four_bar_energy(c) for c in cranks])]
    assert np.abs(last.qd).max() < 1e-4
    assert abs(last.q[0] - best) < 1e-3


def test_weld_holds():
    """A free box welded to the end of an arm moves with it: no slip in place or orientation, and the static torque at
    the arm's joint is that of both weights."""
    robot = jg.Description("held")
    robot.add_link("arm", 1.0, (0.5, 0, 0), (0.01, 0.1, 0.1))
    robot.add_joint("j", "revolute", None, "arm", axis=(0, -1, 0))
    robot.add_actuator("motor", "j")
    robot.add_link("load", 2.0, inertia=(0.02, 0.03, 0.04))
    robot.add_joint("float", "free", None, "load", position=(1.0, 0, 0.1), orientation=(0.9, 0.1, 0.3, 0.2))
    robot.constraints.append(jg.Weld("arm", "load"))
    model = robot.compile(dt=1e-3)
    torque = G * (1.0 * 0.5 + 2.0 * 1.0)
    held = rolled(model, model.initial_state(), 1.0, u=[torque])
    np.testing.assert_allclose(held.last.q[0], 0.0, atol=2e-3)
    moving = rolled(model, model.initial_state(), 1.0, u=[torque + 5.0])
    info = jg.inspect(model, jg.State(moving.q, moving.qd))
    R = info.link_rotation
    assert np.ptp(moving.q[:, 0]) > 0.3
    relative = np.einsum("tji,tjk->tik", R[:, 0], R[:, 1])
    place = np.einsum("tji,tj->ti", R[:, 0], info.link_position[:, 1] - info.link_position[:, 0])
    np.testing.assert_allclose(relative, relative[:1].repeat(len(relative), 0), atol=1e-4)
    np.testing.assert_allclose(place, place[:1].repeat(len(place), 0), atol=1e-4)


# springs ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1.0, 1.5, 2.0])
def test_static_depth_of_a_spring(n):
    """A ball rests at the depth where k x^n = m g."""
    k, r = 2e4, 0.1
    world = jg.World().add(body("sphere", (r,)), position=(0, 0, r)).add_ground()
    model = world.compile(dt=1e-3, contact=jg.Spring(k, 2e4, n))
    last = rolled(model, model.initial_state(), 5.0).last
    np.testing.assert_allclose(r - last.q[2], (G / k) ** (1 / n), rtol=1e-3)
    np.testing.assert_allclose(last.qd, 0.0, atol=1e-5)


def brown(v, mu, mu_s, vt):
    r = v / vt
    return mu * np.tanh(4 * r) + (mu_s - mu) * r / (0.25 * r**2 + 0.75) ** 2


CURVES = {
    "coulomb": lambda v, mu, mu_s, vt: mu + 0 * v,
    "andersson": lambda v, mu, mu_s, vt: (mu + (mu_s - mu) * np.exp(-v / vt)) * np.tanh(v / vt),
    "hollars": lambda v, mu, mu_s, vt: np.minimum(v / vt, 1) * (mu + 2 * (mu_s - mu) / (1 + (v / vt) ** 2)),
    "brown": brown,
}


@pytest.mark.parametrize("law", CURVES)
def test_friction_law(law):
    """Deceleration of a ball without rotation over the slip speed: mu(v) times the normal force, against the slip."""
    mu, mu_s, vt, depth, k = 0.4, 0.7, 0.1, 0.001, 1e4
    world = jg.World(gravity=(0, 0, 0)).add(body("sphere", (0.1,), inertia=(1e9,) * 3), position=(0, 0, 0.1 - depth))
    world.add_ground()
    world.pair("body", "ground", friction=mu)
    model = world.compile(dt=1e-3, contact=jg.Spring(k, 0.0, 1.0, law, mu_s, vt))
    v = np.r_[np.geomspace(1e-3, 0.099, 20), np.linspace(0.11, 2.0, 20)]
    q = np.repeat(model.initial_state().q[None], len(v), 0)
    for turn in (0.0, 2.3):
        along = np.array([np.cos(turn), np.sin(turn)])
        qd = np.zeros((len(v), 6))
        qd[:, :2] = v[:, None] * along
        qdd = jg.inspect(model, jg.State(q, qd)).qdd
        np.testing.assert_allclose(qdd[:, 2], k * depth, rtol=1e-9)
        expected = -(CURVES[law](v, mu, mu_s, vt) * k * depth)[:, None] * along
        np.testing.assert_allclose(qdd[:, :2], expected, rtol=1e-9, atol=1e-12)


def test_hunt_crossley_damping():
    """The force is (k + d xd) x^n, never an attraction."""
    world = jg.World(gravity=(0, 0, 0)).add(body("sphere", (0.1,)), position=(0, 0, 0.098)).add_ground()
    model = world.compile(dt=1e-3, contact=jg.Spring(1e4, 2e4, 1.5))
    down = np.array([-1.0, 0.0, 0.2, 0.5, 0.7])
    q, qd = np.repeat(model.initial_state().q[None], 5, 0), np.zeros((5, 6))
    qd[:, 2] = down
    expected = np.maximum((1e4 - 2e4 * down) * 0.002**1.5, 0.0)
    np.testing.assert_allclose(jg.inspect(model, jg.State(q, qd)).qdd[:, 2], expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("contact", "dt"), [(jg.Impulse(), 1e-3), (jg.Spring(5e4, 5e4, transition=0.1), 2e-4)], ids=["impulse", "spring"]
)
def test_laikago_stands(contact, dt):
    """Held in its stance by servos it stands still. Friction by a spring law is viscous at low speed, here 4 mu N / 0.1
    m/s on a toe of 0.1 kg: the step must be short enough for it."""
    robot = jg.zoo.laikago(touch="feet")
    for name in list(robot.actuators):
        joint = robot.actuators.pop(name).joint
        robot.add_actuator(name, joint, "position", gain=300.0, damping=5.0)
    world = jg.World().add(robot, position=(0, 0, 0.46)).add_ground(friction=0.8)
    model = world.compile(dt=dt, contact=contact)
    state = model.initial_state()
    low = jg.inspect(model, state).link_position[..., 2].min()
    state.q[2] -= low - 0.03
    motion = rolled(model, state, 2.0, u=state.q[7:])
    last = motion.last
    assert np.abs(last.qd).max() < 2e-2
    assert abs(last.q[2] - state.q[2]) < 0.05
    assert np.abs(last.q[:2] - state.q[:2]).max() < 0.02


# two laws in one world --------------------------------------------------------------------------------------------------


def test_a_law_per_pair():
    """Of two balls, one rests on the ground by a spring, at its static depth, the other by impulses, at none."""
    world = jg.World()
    for k in range(2):
        world.add(body("sphere", (0.1,)), f"ball{k}", (k, 0, 0.1))
    world.add_ground()
    world.pair("ball0/*", "ground", contact=jg.Spring(1e4, 1e4, 1.0))
    model = world.compile(dt=1e-3)
    last = rolled(model, model.initial_state(), 3.0).last
    np.testing.assert_allclose(0.1 - last.q[[2, 9]], (G / 1e4, 0.0), atol=1e-4)


def test_pack_mates_may_stand_on_other_corners():
    """A box on its four lower corners, one turned over, one flying: each as alone."""
    model = block_on_plane(0.0, 0.0, 0.5)
    q = np.repeat(model.initial_state().q[None], 4, 0)
    q[1, 3:] = (0, 1, 0, 0)
    q[2, 2] = 1.0
    q[3, 3:] = (0.5, 0.5, 0.5, 0.5)
    q[3, 2] = 0.1
    together = jg.step(model, jg.State(q, np.zeros((4, 6))))
    alone = [jg.step(model, jg.State(q[k], np.zeros(6))) for k in range(4)]
    assert np.array_equal(together.qd, np.stack([s.qd for s in alone]))


def test_room_for_contacts_is_said_by_name():
    """Too little room is an error that says what to do; ties do not take the room of points."""
    robot = body("box", (0.1, 0.1, 0.1))
    robot.add_link("tail", 0.1, inertia=(1e-3,) * 3)
    robot.add_joint("wag", "revolute", "body", "tail", position=(0, 0, 0.2), limit=(-1, 1), friction=0.1)
    world = jg.World().add(robot, position=(0, 0, 0.1)).add_ground()
    small, enough = world.compile(max_contacts=2), world.compile(max_contacts=4)
    with pytest.raises(jg.SimulationError, match="max_contacts"):
        jg.step(small, small.initial_state())
    assert abs(jg.step(enough, enough.initial_state()).qd[2]) < 1e-6


# masses -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mass", [1e-3, 1.0, 3e7, 1e8])
def test_light_and_heavy_rest_alike(mass):
    """What contacts give is a share of the bodies' own answer: a mouse and a mountain sink in alike."""
    world = jg.World().add(body("box", (0.1,) * 3, mass), position=(0, 0, 0.1)).add_ground()
    model = world.compile(dt=1e-3)
    depth = 0.1 - jg.rollout(model, model.initial_state(), steps=400).last.q[2]
    assert 0 < depth < 10 * model.params["pair.compliance"][0] * G * 1e-6 / 0.2


@pytest.mark.parametrize("form", ["matrix", "sums"])
def test_softness_keeps_its_unit(form):
    """A weight m on a soft point falls to where stabilisation, a fifth of the depth in a step, balances softness times m g dt."""
    mass, softness, dt = 3.0, 1e-2, 1e-3
    world = jg.World().add(body("sphere", (0.1,), mass), position=(0, 0, 0.1)).add_ground()
    model = world.compile(dt=dt, contact=jg.Impulse(compliance=0.0, softness=softness, form=form))
    depth = 0.1 - jg.rollout(model, model.initial_state(), steps=400).last.q[2]
    np.testing.assert_allclose(depth, softness * mass * G * dt * dt / 0.2, rtol=1e-6)


def stacked(masses: list[float], sweeps: int = 50) -> jg.Trajectory:
    world = jg.World().add_ground()
    for k, mass in enumerate(masses):
        world.add(body("box", (0.1,) * 3, mass), name=f"box{k}", position=(0, 0, 0.1 + 0.2 * k))
    model = world.compile(dt=1e-3, contact=jg.Impulse(sweeps))
    return jg.rollout(model, model.initial_state(), steps=200)


def test_sweeps_that_do_not_settle_are_named():
    """A tonne on a kilogram: it sinks, and is told."""
    with pytest.warns(
        jg.UnsettledWarning, match=r'"box[01]/body" and ("ground"|"box[01]/body").*50 sweeps.*sweeps='
    ) as seen:
        motion = stacked([1.0, 1000.0])
    assert len(seen) == 1
    assert motion.last.q[9] < 0.3 - 5e-4
    # copies of it say nothing, as their numbers are not the user's (warnings are errors here)
    motion.certificate()
    jg.linearize(motion.model, jg.State(motion.q[-2], motion.qd[-2]))


def test_stacks_settle():
    """Ten boxes on each other, a tonne below a kilogram, ten kilograms on one: not a word (warnings are errors here)."""
    for masses in ([1.0] * 10, [1000.0, 1.0], [1.0, 10.0]):
        heights = stacked(masses).last.q[2::7]
        np.testing.assert_allclose(heights, 0.1 + 0.2 * np.arange(len(masses)), atol=1e-4)
    assert stacked([1.0, 1000.0], sweeps=5000).last.q[9] > 0.3 - 1e-4


def test_a_contact_on_the_axis_of_a_joint():
    """Nothing can move there. What it is pressed with stays within what the mass would need, and derivatives keep their digits."""
    robot = jg.Description("arm")
    link = robot.add_link("arm", 1.0, (0.3, 0.0, 0.0), (0.01, 0.0, 0.0, 0.05, 0.0, 0.05))
    robot.add_joint("hinge", "revolute", None, "arm", axis=(0, 1, 0))
    link.shapes.append(jg.Shape("sphere", (0.1,), (1e-9, 0.0, 0.0), name="hub"))
    model = jg.World().add(robot).add_ground(height=-0.0995).compile(dt=1e-3)
    motion = jg.rollout(model, jg.State(np.array([0.001]), np.array([0.3])), steps=5, outputs=("contact.force",))
    # 0.1 m/s of stabilisation against a millionth of 1 / mass
    assert np.abs(motion.outputs["contact.force"]).max() < 1.1 * 0.1 * 1e6 / 1e-3
    dots = {"link.mass": np.ones_like(model.params["link.mass"])}
    (dq, dqd), back = motion.tangent(q=np.ones(1), params=dots), motion.backward(np.ones(1), np.ones(1))
    left, right = dq[-1, 0] + dqd[-1, 0], back.q[0] + back.params["link.mass"].sum()
    np.testing.assert_allclose(left, right, rtol=1e-9)
