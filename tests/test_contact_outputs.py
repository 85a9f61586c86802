"""Forces of contact as outputs: they are those of mechanics, and so are their derivatives; contacts by name."""

import numpy as np
import pytest

import jointgrad as jg

LOADS = ("contact.force", "contact.torque")
G, DT = 9.81, 1e-3


def box(contact=None, friction=0.6, integrator=None, height=0.199, com=(0.01, 0.02, -0.03), **options):
    robot = jg.Description("box", base="free")
    link = robot.add_link("box", 2.0, com=com, inertia=(0.02, 0.03, 0.04))
    link.shapes.append(jg.Shape("box", (0.1, 0.15, 0.2)))
    world = jg.World().add(robot, position=(0, 0, height)).add_ground(friction=friction)
    if options:
        world.pair("box", "ground", **options)
    return world.compile(dt=1e-3, integrator=integrator, contact=contact or jg.Impulse())


def balls(com=(0.01, 0.02, 0), **options):
    world = jg.World(gravity=(0, 0, 0))
    for k in range(2):
        robot = jg.Description("ball", base="free")
        shape = jg.Shape("sphere", (0.1,), friction=(0.4,))
        robot.add_link("ball", 1.0 + k, com=com, inertia=(0.02, 0.03, 0.04)).shapes.append(shape)
        world.add(robot, name=f"b{k}", position=(0.199 * k, 0.01 * k, 0))
    if options:
        world.pair("*", "*", **options)
    return world.compile(dt=1e-3)


def dog(friction=0.8, **options):
    model = jg.World().add(jg.zoo.laikago(touch="feet")).add_ground(friction=friction).compile(dt=1e-3, **options)
    q = model.initial_state().q
    toes = [model.link(name) for name in model.link_names if name.startswith("toe")]
    q[2] += 0.0299 - jg.inspect(model, jg.State(q, np.zeros(model.nv))).link_position[toes, 2].min()
    return model, jg.State(q, np.zeros(model.nv))


def held(model, state, steps):
    """A standing robot, its joints held by springs and dampers; the states and the controls that did it."""
    joints, controls = state.q[7:].copy(), []
    for _ in range(steps):
        controls.append(100.0 * (joints - state.q[7:]) - 3.0 * state.qd[6:])
        state = jg.step(model, state, controls[-1])
    return state, np.array(controls)


def cases():
    rng = np.random.default_rng(5)

    def moving(model, speed=0.1, **push):
        qd = speed * rng.normal(size=model.nv)
        for entry, value in push.items():
            qd["xyz".index(entry)] += value
        return model, jg.State(model.initial_state().q, qd), None

    yield "box sticks", moving(box(friction=2.0), 0.01)
    yield "box slips", moving(box(friction=0.1), x=0.5)
    yield "box turns", moving(box(torsion=0.02, rolling=0.01), 0.05)
    yield "box on a pyramid", moving(box(jg.Impulse(cone=False)))
    yield "balls", moving(balls(), x=1.0)
    yield "balls bounce", moving(balls(restitution=0.5, margin=2e-3), x=1.0)
    yield "springs", moving(box(jg.Spring()))
    yield "springs of Hollars", moving(box(jg.Spring(friction_law="hollars")))
    yield "springs, Runge-Kutta", moving(box(jg.Spring(), integrator="rk4"))
    for name, friction, speed in (("dog stands", 0.8, 0.0), ("dog slips", 0.2, 0.5)):
        model, state = dog(friction)
        qd = 0.02 * rng.normal(size=model.nv)
        qd[0] += speed
        yield name, (model, jg.State(state.q, qd), rng.normal(size=(20, model.nu)))


NAMES = (
    "box sticks", "box slips", "box turns", "box on a pyramid", "balls", "balls bounce", "springs", "springs of Hollars",
    "springs, Runge-Kutta", "dog stands", "dog slips",
)  # fmt: skip


@pytest.fixture(scope="module")
def made():
    found = dict(cases())
    assert tuple(found) == NAMES
    return found


@pytest.fixture(params=NAMES)
def case(request, made):
    return made[request.param]


# derivatives -------------------------------------------------------------------------------------------------------------

PARAMS = (
    "link.mass", "link.com", "link.inertia", "shape.size", "shape.placement", "joint.placement", "world.dt", "world.gravity",
    "pair.friction", "pair.torsion", "pair.baumgarte", "pair.stiffness", "pair.damping", "pair.exponent",
)  # fmt: skip


def weighed(motion, bars):
    return sum((bars[name] * motion.outputs[name]).sum() for name in LOADS)


def along(model, state, u, steps, bars, change, signature, start):
    """Differences of the weighed forces by steps of several sizes, those left out that switch a contact: curvature spoils
    the large ones, and rounding, which the step size divides twice, the small ones."""
    found = []
    for h in start * np.array([100.0, 10.0, 1.0, 0.1]):
        values = []
        for sign in (1, -1):
            m, s, v = change(sign * h)
            motion = jg.rollout(m, s, v, steps=steps, outputs=LOADS)
            values.append(weighed(motion, bars))
            if not np.array_equal(motion.certificate().signature, signature):
                values.append(np.nan)
        if len(values) == 2:
            found.append((values[0] - values[1]) / (2 * h))
    # of two steps, the error that grows with the square of the step is known
    return found + [(100 * b - a) / 99 for a, b in zip(found, found[1:], strict=False)]


def compared(case, steps, wrt):
    """Errors of derivatives of random mixtures of the forces, relative to the size of the terms that make them up."""
    model, state, u = case
    rng = np.random.default_rng(7)
    u = None if u is None else u[:steps]
    motion = jg.rollout(model, state, u, steps=steps, outputs=LOADS)
    bars = {name: rng.normal(size=motion.outputs[name].shape) for name in LOADS}
    gradient = motion.backward(bars=bars)
    signature = motion.certificate().signature

    def changed(name, d):
        if name in ("q", "qd"):
            return lambda h: (
                model,
                jg.State(*(x + h * d if n == name else x for n, x in (("q", state.q), ("qd", state.qd)))),
                u,
            )
        if name == "u":
            return lambda h: (model, state, u + h * d)
        return lambda h: (model.replace({name: model.params[name] + h * d}), state, u)

    for name in wrt:
        value = {"q": state.q, "qd": state.qd, "u": u}.get(name) if name in ("q", "qd", "u") else model.params[name]
        bar = getattr(gradient, name) if name in ("q", "qd", "u") else gradient.params[name]
        if value is None or not value.size:
            continue
        scale = np.ones_like(value) if name in ("q", "qd", "u", "world.gravity", "link.com") else np.abs(value)
        d = scale * rng.normal(size=value.shape)
        start = {"q": 1e-7, "u": 1e-4}.get(name, 1e-6)
        differences = along(model, state, u, steps, bars, changed(name, d), signature, start)
        derivative = (bar * d).sum()
        size = np.sqrt(((bar * d) ** 2).sum())
        noise = 1e-14 * np.abs(np.concatenate([np.ravel(b * motion.outputs[n]) for n, b in bars.items()])).sum() / start
        yield name, derivative, differences, max(size, abs(derivative)), noise


@pytest.mark.parametrize("steps", [1, 20])
def test_gradients_of_forces_agree_with_differences(case, steps):
    compared_at_all = 0
    for name, derivative, differences, size, noise in compared(case, steps, ("q", "qd", "u", *PARAMS)):
        if differences:
            compared_at_all += 1
            error = min(abs(difference - derivative) for difference in differences)
            assert error <= 1e-6 * size + noise, (name, derivative, differences)
    assert compared_at_all >= 10


def test_tangents_of_forces_are_the_transpose_of_their_gradients(case):
    model, state, u = case
    rng = np.random.default_rng(3)
    motion = jg.rollout(model, state, u, steps=10 if u is None else None, outputs=LOADS)
    bars = {name: rng.normal(size=motion.outputs[name].shape) for name in LOADS}
    dq, dqd = rng.normal(size=model.nq), rng.normal(size=model.nv)
    params = {name: 0.1 * rng.normal(size=model.params[name].shape) for name in PARAMS}
    _, _, dots = motion.tangent(q=dq, qd=dqd, params=params, outputs=LOADS)
    gradient = motion.backward(bars=bars)
    left = sum((bars[name] * dots[name]).sum() for name in LOADS)
    terms = [gradient.q * dq, gradient.qd * dqd, *(gradient.params[n] * d for n, d in params.items())]
    right = sum(term.sum() for term in terms)
    size = sum(np.abs(term).sum() for term in terms)
    assert abs(left - right) <= 1e-10 * size


def test_a_memory_budget_changes_no_bit_of_the_gradient(made):
    model, state, u = made["dog slips"]
    bars = {"contact.force": np.random.default_rng(1).normal(size=(21, model.n_links, 3))}
    whole = jg.rollout(model, state, u, outputs=LOADS).backward(bars=bars)
    tight = jg.rollout(model, state, u, outputs=LOADS, memory=6 * 8 * (model.nq + model.nv)).backward(bars=bars)
    assert np.array_equal(whole.q, tight.q) and np.array_equal(whole.u, tight.u)
    assert np.abs(whole.q).max() > 0


def test_bars_of_forces_and_of_states_add(made):
    model, state, u = made["dog stands"]
    rng = np.random.default_rng(2)
    motion = jg.rollout(model, state, u, outputs=("contact.force", "link.position"))
    bars = {name: rng.normal(size=motion.outputs[name].shape) for name in motion.outputs}
    qd_bar = rng.normal(size=model.nv)
    both = motion.backward(qd_bar=qd_bar, bars=bars)
    apart = [motion.backward(qd_bar=qd_bar), *(motion.backward(bars={name: bar}) for name, bar in bars.items())]
    np.testing.assert_allclose(both.q, sum(g.q for g in apart), rtol=1e-9, atol=1e-9 * np.abs(both.q).max())


# mechanics ---------------------------------------------------------------------------------------------------------------


def test_a_resting_robot_is_carried():
    model, state = dog()
    state, u = held(model, state, 2000)
    motion = jg.rollout(model, state, u[-1:], outputs=LOADS)
    force = motion.outputs["contact.force"][1]
    ground = model.link("ground")
    weight = G * model.params["link.mass"].sum()
    np.testing.assert_allclose(np.delete(force, ground, 0).sum(0), (0, 0, weight), atol=3e-3 * weight)
    np.testing.assert_allclose(force[ground], (0, 0, -weight), atol=3e-3 * weight)
    feet = {name for name, f in zip(model.link_names, force, strict=True) if np.abs(f).max() > 0} - {"ground"}
    assert feet == {"toeFR", "toeFL", "toeRR", "toeRL"}


def test_a_resting_box_is_carried_without_torque():
    robot = jg.Description("box", base="free")
    robot.add_link("box", 3.0, inertia=(0.02, 0.03, 0.04)).shapes.append(jg.Shape("box", (0.1, 0.15, 0.2)))
    model = jg.World().add(robot, position=(0, 0, 0.2)).add_ground().compile(dt=1e-3)
    motion = jg.rollout(model, model.initial_state(), steps=400, outputs=LOADS)
    np.testing.assert_allclose(motion.outputs["contact.force"][-1, 0], (0, 0, 3 * G), atol=1e-8)
    np.testing.assert_allclose(motion.outputs["contact.torque"][-1, 0], 0, atol=1e-8)


CENTRED = {
    "impulses": lambda: box(com=(0, 0, 0)),
    "slipping": lambda: box(friction=0.1, com=(0, 0, 0)),
    "springs": lambda: box(jg.Spring(), com=(0, 0, 0)),
    "springs, Runge-Kutta": lambda: box(jg.Spring(), integrator="rk4", com=(0, 0, 0)),
    "balls": lambda: balls(com=(0, 0, 0)),
    "balls that bounce": lambda: balls(com=(0, 0, 0), restitution=0.5, margin=2e-3),
}


@pytest.mark.parametrize("name", CENTRED)
def test_forces_are_what_changes_momentum(name):
    model = CENTRED[name]()
    qd = 0.1 * np.random.default_rng(4).normal(size=model.nv)
    qd[0] += 0.5
    motion = jg.rollout(model, jg.State(model.initial_state().q, qd), steps=20, outputs=LOADS)
    force = motion.outputs["contact.force"]
    assert not force[0].any() and np.abs(force).max() > 0
    # what one link gets, another gives
    np.testing.assert_allclose(force.sum(1), 0, atol=1e-12 * np.abs(force).max())
    for j in range(model.nv // 6):
        change = model.params["link.mass"][j] * np.diff(motion.qd[:, 6 * j : 6 * j + 3], axis=0) / DT
        weight = model.params["link.mass"][j] * model.params["world.gravity"]
        np.testing.assert_allclose(force[1:, j], change - weight, atol=1e-9 * np.abs(force).max())


def test_torque_is_what_changes_spin():
    """A ball's angular momentum about its own centre: no other torque acts on it."""
    model = balls()
    qd = np.zeros(model.nv)
    qd[0], qd[1], qd[5] = 1.0, 0.3, 4.0
    state = jg.State(model.initial_state().q, qd)
    motion = jg.rollout(model, state, steps=1, outputs=LOADS)
    angular = []
    for s in (state, motion.last):
        one = jg.inspect(model, s)
        R, w, v = one.link_rotation, one.link_velocity[:, 3:], one.link_velocity[:, :3]
        I = np.diag((0.02, 0.03, 0.04))
        angular.append([R[j] @ I @ R[j].T @ w[j] for j in range(2)])
        assert np.isfinite(v).all()
    change = np.array(angular[1]) - np.array(angular[0])
    # a body spinning about no principal axis changes by itself only to second order of the step
    np.testing.assert_allclose(motion.outputs["contact.torque"][1] * 1e-3, change, atol=1e-4 * np.abs(change).max())
    assert np.abs(change).max() > 1e-4


def test_asking_for_forces_changes_no_bit_of_the_motion(case):
    model, state, u = case
    plain = jg.rollout(model, state, u, steps=20)
    asked = jg.rollout(model, state, u, steps=20, outputs=LOADS)
    assert np.array_equal(plain.q, asked.q) and np.array_equal(plain.qd, asked.qd)


def test_environments_with_other_contacts_do_not_mix(made):
    model, state, u = made["dog slips"]
    heights = (0.0, 0.05, -0.0005, 0.0009, 0.2)
    q = np.stack([state.q + np.eye(model.nq)[2] * h for h in heights])
    q[3, 3:7] = (np.cos(0.05), np.sin(0.05), 0, 0)
    qd, controls = np.repeat(state.qd[None], len(q), 0), np.repeat(u[:, None], len(q), 1)
    many = jg.rollout(model, jg.State(q, qd), controls, outputs=LOADS)
    bars = {"contact.force": np.random.default_rng(3).normal(size=many.outputs["contact.force"].shape)}
    gradient = many.backward(bars=bars)
    for env in range(len(q)):
        one = jg.rollout(model, jg.State(q[env], qd[env]), u, outputs=LOADS)
        assert np.array_equal(one.outputs["contact.force"], many.outputs["contact.force"][:, env])
        alone = one.backward(bars={"contact.force": np.ascontiguousarray(bars["contact.force"][:, env])})
        assert np.array_equal(alone.q, gradient.q[env])
    assert not many.outputs["contact.force"][:, 4].any()


def test_an_environment_that_is_lost_feels_nothing():
    model = box(jg.Spring(stiffness=1e300, damping=0.0))
    q = np.stack([model.initial_state().q] * 2)
    q[0, 2] = 0.5
    motion = jg.rollout(model, jg.State(q, np.zeros((2, model.nv))), steps=4, outputs=LOADS, on_nan="freeze")
    assert motion.status[0] == -1 and motion.status[1] >= 0
    assert np.isfinite(motion.outputs["contact.force"]).all()
    gradient = motion.backward(bars={"contact.force": np.ones_like(motion.outputs["contact.force"])})
    assert np.isfinite(gradient.q).all()


# by name -----------------------------------------------------------------------------------------------------------------


def test_inspect_names_contacts_and_their_forces():
    model, state = dog()
    state, u = held(model, state, 300)
    info = jg.inspect(model, state, u[-1])
    after = jg.rollout(model, state, u[-1:], outputs=LOADS).outputs["contact.force"][1]
    assert sorted(c.links for c in info.contacts) == [(f"toe{leg}", "ground") for leg in ("FL", "FR", "RL", "RR")]
    for c in info.contacts:
        assert c.law == "impulse" and c.mode == "stick" and c.shapes == (c.links[0], "ground")
        np.testing.assert_allclose(c.force, after[model.link(c.links[0])], rtol=1e-10)
        np.testing.assert_allclose(c.normal, (0, 0, 1))
        centre = info.link_position[model.link(c.links[0])]
        # halfway between the toe's lowest point and the ground
        np.testing.assert_allclose(c.gap, centre[2] - 0.03, atol=1e-12)
        np.testing.assert_allclose(c.point, (centre[0], centre[1], c.gap / 2), atol=1e-12)
    table = info.contact_table()
    assert len(table) == 4 and table.force.shape == (4, 3) and table.mode == ["stick"] * 4


def test_inspect_tells_modes_apart_in_a_batch():
    model = box(friction=0.3)
    q = np.stack([model.initial_state().q] * 4)
    q[:, 2] = (0.1999, 0.1999, 0.2005, 0.5)
    qd = np.zeros((4, model.nv))
    qd[1, 0] = 1.0
    qd[2, 2] = 3.0
    contacts = jg.inspect(model, jg.State(q, qd)).contacts
    assert [sorted({c.mode for c in found}) for found in contacts] == [["stick"], ["slip"], ["open"], []]
    assert [len(found) for found in contacts] == [4, 4, 4, 0]
    for c in contacts[1]:
        np.testing.assert_allclose(c.force, c.force[2] * np.array((-0.3, 0, 1)), atol=0.05 * c.force[2])
    assert not any(c.force.any() for c in contacts[2])


def test_inspect_shows_springs_too():
    model = box(jg.Spring())
    state = jg.State(model.initial_state().q, np.array([0.5, 0, 0, 0, 0, 0]))
    info = jg.inspect(model, state)
    force = jg.rollout(model, state, steps=1, outputs=LOADS).outputs["contact.force"][1, 0]
    np.testing.assert_allclose(sum(c.force for c in info.contacts), force, rtol=1e-12)
    assert {(c.law, c.mode) for c in info.contacts} == {("spring (brown)", "slip")}


def test_inspect_shows_limits_and_friction():
    robot = jg.Description("arm", base="fixed")
    robot.add_link("base")
    robot.add_link("bob", 1.0, com=(0.5, 0, 0), inertia=(0.01, 0.01, 0.01))
    robot.add_joint("hinge", "revolute", "base", "bob", axis=(0, 1, 0), limit=(-1.0, 0.0))
    robot.add_link("tip", 0.5, com=(0, 0, -0.2), inertia=(0.01, 0.01, 0.01))
    robot.add_joint("dry", "continuous", "bob", "tip", position=(1, 0, 0), axis=(0, 1, 0), friction=5.0)
    model = jg.World().add(robot).compile(dt=1e-3)
    ties = {(t.kind, t.name): t for t in jg.inspect(model, model.initial_state()).ties}
    limit, dry = ties["limit", "hinge"], ties["friction", "dry"]
    # gravity turns the arm to positive angles; the stop holds all of it: 1 kg at 0.5 m, 0.5 kg at 1 m
    np.testing.assert_allclose(limit.force, -G * (0.5 + 0.5), rtol=1e-3)
    assert limit.mode == "stick" and dry.mode == "stick"
    assert abs(dry.force) < 1e-2


def test_a_blow_up_names_link_and_contact():
    model = box(jg.Spring(stiffness=1e12, damping=1e12), height=0.15)
    with pytest.raises(jg.SimulationError) as error:
        jg.rollout(model, model.initial_state(), steps=500)
    assert (
        '"box" on "ground"' in str(error.value)
        and "step" in str(error.value)
        and 'fastest link: "box"' in str(error.value)
    )


def test_too_many_contacts_are_named():
    robot = jg.Description("box", base="free")
    robot.add_link("box", 1.0, inertia=(1, 1, 1)).shapes.append(jg.Shape("box", (0.1, 0.1, 0.1)))
    model = jg.World().add(robot, position=(0, 0, 0.1)).add_ground().compile(max_contacts=2)
    with pytest.raises(jg.SimulationError, match='between "box" and "ground"'):
        jg.rollout(model, model.initial_state(), steps=1)
