"""CasADi functions of a model: the same numbers as ours, and derivatives that agree with our reverse."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.differences import random_state

import jointgrad as jg

casadi = pytest.importorskip("casadi", reason="the extra [casadi] is not installed")

from jointgrad import casadi as exported  # noqa: E402

ROBOTS = {"cart_pole": jg.zoo.cart_pole, "ant": jg.zoo.ant, "tree": lambda: jg.zoo.random_tree(5, seed=0, drag=True)}


@pytest.fixture(scope="module", params=ROBOTS)
def case(request):
    model = ROBOTS[request.param]().compile(dt=0.01, contact=None, constraints=False, viscosity=0.1)
    rng = np.random.default_rng(1)
    return model, random_state(model, rng), rng.normal(size=model.nu)


def column(x) -> np.ndarray:
    return np.asarray(x).ravel()


def test_step(case):
    model, state, u = case
    function = exported.step(model, params=("link.mass", "link.com", "world.gravity"))
    values = [1.1 * model.params[name] for name in ("link.mass", "link.com", "world.gravity")]
    found = function(state.q, state.qd, u, *(x.ravel() for x in values))
    own = model.replace(dict(zip(("link.mass", "link.com", "world.gravity"), values, strict=True)))
    expected = jg.step(own, state, u)
    assert np.abs(column(found[0]) - expected.q).max() < 1e-10
    assert np.abs(column(found[1]) - expected.qd).max() < 1e-10


def test_acceleration_and_positions(case):
    model, state, u = case
    info = jg.inspect(model, state, u)
    assert np.allclose(column(exported.acceleration(model)(state.q, state.qd, u)), info.qdd, rtol=1e-10, atol=1e-10)
    position = np.asarray(exported.link_positions(model)(state.q)).T
    assert np.abs(position - info.link_position).max() < 1e-10


def test_derivatives_agree(case):
    """CasADi's Jacobian of the exported step, against our reverse of ours."""
    model, state, u = case
    J = np.asarray(exported.step(model).jacobian()(state.q, state.qd, u, 0, 0)[4])  # qd_next by qd
    motion = jg.rollout(model, state, u[None])
    rows = [motion.backward(qd_bar=row, wrt=("state",)).qd for row in np.eye(model.nv)]
    assert np.allclose(J, rows, rtol=1e-10, atol=1e-10)


def test_contact_is_refused():
    model = jg.World().add(jg.zoo.ant()).add_ground().compile()
    with pytest.raises(jg.ModelError, match="contact=None"):
        exported.step(model)


def test_unknown_parameter(case):
    with pytest.raises(jg.InputError, match="link.mas"):
        exported.step(case[0], params=("link.mas",))
