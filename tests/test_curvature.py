"""Products with the Hessian, against a closed form, and against themselves turned round."""

import numpy as np
import pytest
from layer_cases import inputs, sliding_ball

import jointgrad as jg


def falling(model):
    return jg.State(np.zeros(model.nq), np.zeros(model.nv))


def test_closed_form():
    """A mass m on a slider under a force: x_T = c F / m, so the loss x_T^2 has second derivatives one can write down."""
    robot = jg.Description("block")
    robot.add_link("block", 2.0, inertia=(1.0, 1.0, 1.0))
    robot.add_joint("slider", "prismatic", None, "block", axis=(1, 0, 0))
    robot.add_actuator("push", "slider")
    model = robot.compile(dt=0.01)
    T, m = 50, 2.0
    u = np.full((T, 1), 3.0)

    def bars(motion):
        return 2 * motion.last.q, None

    c = 1e-4 * np.arange(T, 0, -1)  # x_T = sum of c_k u_k / m
    x = c @ u[:, 0] / m
    product = jg.hessian_product(model, falling(model), u, bars, {"u": np.ones((T, 1))})
    assert np.allclose(product.along["u"][:, 0], 2 * c * c.sum() / m**2, rtol=1e-9, atol=1e-13)
    mass = jg.hessian_product(model, falling(model), u, bars, {"link.mass": np.ones(1)}, wrt=("link.mass", "u"))
    assert np.allclose(mass.along["link.mass"], 6 * x**2 / m**2, rtol=1e-8)
    assert np.allclose(mass.along["u"][:, 0], -4 * x * c / m**2, rtol=1e-8)
    assert mass.error < 1e-5 * abs(mass.along["link.mass"]).max()


def test_symmetry_in_contact():
    """v' H w = w' H v, for directions of different inputs of a motion in contact."""
    model = sliding_ball()
    given = inputs(model, None, 5)
    state, rng = jg.State(given["q"], given["qd"]), np.random.default_rng(0)
    v = {"qd": rng.normal(size=model.nv), "link.com": 0.1 * rng.normal(size=(3, 3))}
    w = {"u": rng.normal(size=given["u"].shape), "qd": rng.normal(size=model.nv)}

    def bars(motion):
        return motion.last.q, motion.last.qd

    names = ("qd", "link.com", "u")
    Hv = jg.hessian_product(model, state, given["u"], bars, v, wrt=names, force=given["force"]).along
    Hw = jg.hessian_product(model, state, given["u"], bars, w, wrt=names, force=given["force"]).along
    assert (
        jg.rollout(model, state, given["u"], force=given["force"]).certificate().mode_margin.min() > 0.05
    )  # no kink near
    one, other = sum((w[n] * Hv[n]).sum() for n in w), sum((v[n] * Hw[n]).sum() for n in v)
    assert abs(one - other) < 1e-6 * abs(one)


def test_bad_directions():
    model = sliding_ball()
    state, u = model.initial_state(), np.zeros((2, 1))
    with pytest.raises(jg.InputError, match='no input "force"'):
        jg.hessian_product(model, state, u, lambda m: (m.last.q, None), {"force": np.zeros((3, 6))})
    with pytest.raises(jg.InputError, match="along is zero"):
        jg.hessian_product(model, state, u, lambda m: (m.last.q, None), {"u": np.zeros((2, 1))})
    with pytest.raises(jg.InputError, match=r'along\["u"\] has shape'):
        jg.hessian_product(model, state, u, lambda m: (m.last.q, None), {"u": np.zeros(3)})


def test_batched_linearisation():
    """A and B of a batch, for iLQR, are those of each environment alone, in contact too."""
    model = sliding_ball()
    given = inputs(model, 5, None)
    A, B = jg.linearize(model, jg.State(given["q"], given["qd"]), given["u"])
    assert A.shape == (5, 14, 14) and B.shape == (5, 14, 1)
    for k in range(5):
        a, b = jg.linearize(model, jg.State(given["q"][k], given["qd"][k]), given["u"][k])
        assert np.array_equal(A[k], a) and np.array_equal(B[k], b)
