"""Controls that are held over several steps: the motion and all derivatives of the same controls written out."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import torch

import jointgrad as jg
from jointgrad.jax import rollout as jax_rollout
from jointgrad.model.errors import InputError
from jointgrad.torch import Simulator

HOLD, ROWS, BATCH = 3, 4, 2


@pytest.fixture(scope="module")
def model():
    return jg.World().add(jg.zoo.pendulum(2)).compile(dt=0.01, contact=None)


def controls(model, is_batched):
    rng = np.random.default_rng(0)
    shape = (BATCH,) if is_batched else ()
    return model.initial_state(*shape), rng.standard_normal((ROWS, *shape, model.nu)), rng


@pytest.mark.parametrize("is_batched", [True, False])
@pytest.mark.parametrize("memory", [None, "1 kB"])
def test_the_same_motion_and_derivatives_as_written_out(model, is_batched, memory):
    state, u, rng = controls(model, is_batched)
    short = jg.rollout(model, state, u, hold=HOLD, memory=memory)
    whole = jg.rollout(model, state, np.repeat(u, HOLD, 0))
    np.testing.assert_array_equal(short.q, whole.q)
    np.testing.assert_array_equal(short.u, whole.u)
    bar = rng.standard_normal(whole.q.shape)
    found, wanted = short.backward(q_bar=bar), whole.backward(q_bar=bar)
    assert found.u.shape == u.shape
    np.testing.assert_allclose(found.u, wanted.u.reshape(ROWS, HOLD, *u.shape[1:]).sum(1), rtol=1e-12)
    np.testing.assert_allclose(found.q, wanted.q, rtol=1e-12)
    du = rng.standard_normal(u.shape)
    for a, b in zip(short.tangent(u=du), whole.tangent(u=np.repeat(du, HOLD, 0)), strict=True):
        np.testing.assert_array_equal(a, b)
    # both ways say the same
    dq, _ = short.tangent(u=du)
    np.testing.assert_allclose((dq * bar).sum(), (found.u * du).sum(), rtol=1e-9)


def test_frameworks_hold_too(model):
    state, u, _ = controls(model, True)
    wanted = jg.rollout(model, state, u, hold=HOLD)
    gradient = wanted.backward(q_bar=np.ones_like(wanted.last.q)).u
    push = torch.from_numpy(u).requires_grad_()
    q, qd = (torch.from_numpy(x) for x in (state.q, state.qd))
    motion = Simulator(model).rollout(q, qd, push, hold=HOLD, only_last=True)
    motion.q.sum().backward()
    np.testing.assert_array_equal(motion.q.detach().numpy(), wanted.last.q)
    np.testing.assert_allclose(push.grad.numpy(), gradient, rtol=1e-12)
    with jax.enable_x64(True):
        given = [jax.numpy.asarray(x) for x in (u, state.q, state.qd)]
        found = jax.grad(lambda u, q, qd: jax_rollout(model, q, qd, u, hold=HOLD, only_last=True).q.sum())(*given)
    np.testing.assert_allclose(found, gradient, rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "said"),
    [({"hold": 0}, "hold"), ({"hold": 1.5}, "hold"), ({"hold": 3, "steps": 10}, "no multiple of hold=3"),
     ({"hold": 3, "steps": 9}, "u has shape")],
    ids=str,
)  # fmt: skip
def test_holding_that_makes_no_sense_is_refused(model, options, said):
    state, u, _ = controls(model, True)
    with pytest.raises(InputError, match=said):
        jg.rollout(model, state, u, **options)
    with pytest.raises(InputError, match="hold is for controls"):
        jg.rollout(model, state, steps=6, hold=3)
