"""Stepping by hand and controllers in Python are `rollout`, to the last bit."""

import numpy as np
import pytest

import jointgrad as jg


def dog(**options) -> jg.Model:
    return jg.World().add(jg.zoo.laikago(touch="feet"), position=(0, 0, 0.46)).add_ground().compile(dt=1e-3, **options)


MODELS = {"cart_pole": lambda: jg.zoo.cart_pole().compile(dt=0.01), "dog": dog}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return MODELS[request.param]()


def controls(model, *shape):
    return 0.3 * np.random.default_rng(0).normal(size=(*shape, model.nu))


@pytest.mark.parametrize("batch", [None, 1, 3, 20])
def test_steps_by_hand_are_a_rollout(model, batch):
    shape = () if batch is None else (batch,)
    u = controls(model, 30, *shape)
    start = model.initial_state(batch)
    sim = jg.Simulation(model, start, record=True)
    for row in u:
        sim.u[:] = row
        sim.step()
    whole = jg.rollout(model, start, u)
    assert sim.q.tobytes() == whole.last.q.tobytes() and sim.qd.tobytes() == whole.last.qd.tobytes()
    by_hand = sim.trajectory()
    assert by_hand.q.tobytes() == whole.q.tobytes() and by_hand.u.tobytes() == whole.u.tobytes()
    bar = np.ones_like(start.q)
    assert by_hand.backward(q_bar=bar) == whole.backward(q_bar=bar)
    assert sim.steps == 30 and sim.time == pytest.approx(30 * model.params["world.dt"])


def test_several_steps_at_once_and_a_record_that_grows(model):
    u = controls(model, 4)
    sim = jg.Simulation(model, record=True)
    for row in u:
        sim.u = row
        sim.step(150)
    whole = jg.rollout(model, model.initial_state(), u, hold=150)
    assert sim.trajectory().q.tobytes() == whole.q.tobytes()


def test_outside_forces(model):
    sim, force = jg.Simulation(model, record=True), np.zeros((model.n_links, 6))
    force[0, 0] = 3.0
    sim.step(5)
    sim.force[:] = force
    sim.step(5)
    forces = np.concatenate([np.zeros((5, *force.shape)), np.tile(force, (5, 1, 1))])
    whole = jg.rollout(model, model.initial_state(), steps=10, force=forces)
    found = sim.trajectory()
    assert found.q.tobytes() == whole.q.tobytes()
    bar = np.ones(model.nv)
    assert found.backward(qd_bar=bar).force.tobytes() == whole.backward(qd_bar=bar).force.tobytes()


def test_own_parameters_and_reset():
    model = jg.zoo.cart_pole().compile(dt=0.01)
    mass = model.params["link.mass"] * np.array([[1.0], [2.0]])
    model = model.replace({"link.mass": mass})
    sim = jg.Simulation(model)
    start = jg.State(np.array([[0.0, 1.0], [0.0, 1.0]]), np.zeros((2, 2)))
    for _ in range(2):
        sim.reset(start)
        for _ in range(20):
            sim.step()
        assert sim.q.tobytes() == jg.rollout(model, start, steps=20).last.q.tobytes()


def test_a_state_set_by_hand_begins_a_motion(model):
    sim = jg.Simulation(model, record=True)
    sim.step(7)
    sim.qd[0] += 1.0
    begun = sim.state
    sim.step(5)
    found = sim.trajectory()
    assert found.steps == 5 and found.q.tobytes() == jg.rollout(model, begun, steps=5).q.tobytes()


def test_an_empty_batch_steps(model):
    sim = jg.Simulation(model, batch=0)
    sim.step(3)
    assert sim.q.shape == (0, model.nq)


def test_what_cannot_be(model):
    with pytest.raises(jg.InputError, match="record=True"):
        jg.Simulation(model).trajectory()
    with pytest.raises(jg.InputError, match="a state or a batch"):
        jg.Simulation(model, model.initial_state(), batch=3)
    sim = jg.Simulation(model)
    with pytest.raises(jg.InputError, match="u has shape"):
        sim.u = np.zeros(model.nu + 1)
    with pytest.raises(jg.InputError, match="steps must be"):
        sim.step(0)
    with pytest.raises(jg.InputError, match="environments"):
        sim.reset(model.initial_state(3))
    sim.u[0] = np.nan
    with pytest.raises(jg.InputError, match="sim.u contains nan"):
        sim.step()


def test_a_motion_that_diverges_says_where_it_was():
    model = jg.zoo.pendulum(2).compile(dt=0.01)
    sim = jg.Simulation(model, jg.State(np.zeros((3, 2)), np.zeros((3, 2))))
    sim.qd[1] = 1e300
    with pytest.raises(jg.SimulationError, match="environment 1 diverged"):
        for _ in range(20):
            sim.step()
    frozen = jg.Simulation(model, jg.State(np.zeros((3, 2)), np.zeros((3, 2))), on_nan="freeze")
    frozen.qd[1] = 1e300
    frozen.step(20)
    assert np.isfinite(frozen.q).all()


# controllers --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch, hold", [(None, 1), (20, 5)])
def test_a_controller_is_asked_on_the_way(model, batch, hold):
    asked = []

    def servo(state, time):
        asked.append(time)
        return -0.2 * state.qd[..., -model.nu :] + np.sin(time)

    start = model.initial_state(batch)
    motion = jg.rollout(model, start, servo, steps=40, hold=hold, outputs=("link.position",))
    dt = float(model.params["world.dt"])
    assert asked == pytest.approx([k * dt for k in range(0, 40, hold)])
    seen = motion.qd[:-1:hold][..., -model.nu :]
    times = np.reshape(asked, (-1,) + (1,) * (seen.ndim - 1))
    expected = -0.2 * seen + np.sin(times)
    assert np.array_equal(motion.u[::hold], expected)
    assert motion.q.tobytes() == jg.rollout(model, start, expected, hold=hold).q.tobytes()


def test_bad_controllers(model):
    start = model.initial_state()
    with pytest.raises(jg.InputError, match="give steps"):
        jg.rollout(model, start, lambda state, time: np.zeros(model.nu))
    with pytest.raises(jg.InputError, match="must return"):
        jg.rollout(model, start, lambda state, time: np.zeros(model.nu + 1), steps=3)
    with pytest.raises(jg.InputError, match="nan"):
        jg.rollout(model, start, lambda state, time: np.full(model.nu, np.nan), steps=3)
    with pytest.raises(jg.InputError, match="multiple of hold"):
        jg.rollout(model, start, lambda state, time: np.zeros(model.nu), steps=3, hold=2)
