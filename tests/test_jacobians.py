"""Forward mode and full Jacobians: against the reverse, against MuJoCo's differences, against our own."""

import mujoco
import numpy as np
import pytest
from oracles.differences import random_state
from oracles.mujoco_model import mujoco_data, mujoco_model

import jointgrad as jg

INTEGRATORS = ("semi_implicit", "explicit", "rk4", "implicit_damping")
BATCH, STEPS = 5, 6


def motion_of(seed, integrator, memory=None):
    """A motion of every joint kind, two trees, pushed and driven, with a mass per environment."""
    rng = np.random.default_rng(seed)
    model = jg.zoo.random_tree(7, seed, base=("free", "fixed")[seed % 2], trees=2).compile(
        dt=0.01, integrator=integrator
    )
    model = model.replace({"link.mass": rng.uniform(0.5, 2.0, (BATCH, model.n_links))})
    u, force = rng.normal(size=(STEPS, BATCH, model.nu)), rng.normal(size=(BATCH, model.n_links, 6))
    return rng, model, jg.rollout(model, random_state(model, rng, BATCH), u, force=force, memory=memory)


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("seed", range(4))
def test_tangent_and_backward_agree(seed, integrator):
    """<bar, tangent> = <gradient, direction> to rounding, for every input at once."""
    rng, model, motion = motion_of(seed, integrator)
    shapes = dict(
        q=(BATCH, model.nq), qd=(BATCH, model.nv), u=(STEPS, BATCH, model.nu), force=(BATCH, model.n_links, 6)
    )
    directions = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    params = {name: rng.normal(size=value.shape) for name, value in model.params.items()}
    dq, dqd = motion.tangent(**directions, params=params)
    q_bar, qd_bar = rng.normal(size=dq.shape), rng.normal(size=dqd.shape)
    gradient = motion.backward(q_bar, qd_bar)
    parts = [(getattr(gradient, name) * d).sum() for name, d in directions.items()]
    parts += [(gradient.params[name] * d).sum() for name, d in params.items()]
    left = (q_bar * dq).sum() + (qd_bar * dqd).sum()
    scale = np.abs(q_bar * dq).sum() + np.abs(qd_bar * dqd).sum() + np.abs(parts).sum()
    assert abs(left - sum(parts)) < 1e-12 * scale


def test_tangent_is_the_directional_derivative():
    """Held against differences on its own, so that tangent and reverse cannot be wrong together."""
    rng, model, motion = motion_of(1, "semi_implicit")
    start = jg.State(motion.q[0], motion.qd[0])
    u, direction = motion.run.inputs.u, rng.normal(size=motion.run.inputs.u.shape)
    force = motion.run.inputs.force
    _, dqd = motion.tangent(u=direction)
    h = 1e-4
    ends = [jg.rollout(model, start, u + s * h * direction, force=force).qd for s in (1, -1)]
    np.testing.assert_allclose(dqd, (ends[0] - ends[1]) / (2 * h), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("robot", ["laikago", "cart_pole", "tree"])
def test_linearize_agrees_with_mujoco(robot):
    """A and B against mjd_transitionFD, centred; same coordinates, same order."""
    description = {
        "laikago": lambda: jg.zoo.laikago(touch="feet"),
        "cart_pole": jg.zoo.cart_pole,
        "tree": lambda: jg.zoo.random_tree(6, 11),
    }[robot]()
    rng = np.random.default_rng(0)
    model = description.compile(dt=2e-3)
    state, u = random_state(model, rng), 0.1 * rng.normal(size=model.nu)
    A, B = jg.linearize(model, state, u)
    m = mujoco_model(description, dt=2e-3)
    d = mujoco_data(m, state.q, state.qd, u)
    A_fd, B_fd = np.zeros((2 * m.nv, 2 * m.nv)), np.zeros((2 * m.nv, m.nu))
    mujoco.mjd_transitionFD(m, d, 1e-6, 1, A_fd, B_fd, None, None)
    assert np.abs(A - A_fd).max() < 1e-6 * np.abs(A_fd).max()
    assert np.abs(B - B_fd).max() < 1e-6 * max(np.abs(B_fd).max(), 1e-3)


def test_linearize_by_parameters_sums_to_the_gradient():
    """Rows of the parameter Jacobian, weighted, are the gradient of the weighted next state."""
    rng = np.random.default_rng(3)
    model = jg.zoo.random_tree(5, 4, base="fixed", kinds=("revolute", "prismatic", "fixed")).compile(dt=0.01)
    state, u = random_state(model, rng, 3), rng.normal(size=(3, model.nu))
    rows = jg.linearize(model, state, u, wrt="params")
    q_bar, qd_bar = rng.normal(size=(3, model.nq)), rng.normal(size=(3, model.nv))
    gradient = jg.rollout(model, state, u[None]).backward(q_bar, qd_bar)
    weights = np.concatenate([q_bar, qd_bar], axis=1)
    for name, jacobian in rows.items():
        expected = np.tensordot(weights, jacobian, axes=([0, 1], [0, 1]))
        np.testing.assert_allclose(gradient.params[name], expected, rtol=1e-9, atol=1e-12, err_msg=name)


def test_linearize_refuses_an_unknown_wrt():
    model = jg.zoo.cart_pole().compile()
    with pytest.raises(jg.InputError, match="state, params"):
        jg.linearize(model, model.initial_state(), wrt="mass")
