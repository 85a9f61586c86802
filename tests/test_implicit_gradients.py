"""The reverse of steps with the convex law against central differences, and other ways to the same derivative."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from oracles.differences import random_state
from oracles.signatures import signatures
from test_contact_gradients import (
    KINDS,
    LONG,
    MOST_SKIPPED,
    ContactCase,
    check,
    contact_case,
    fifty,
    pair_states,
    standing,
    tie_case,
)
from worlds import cluster, tangled, thrown_together

import jointgrad as jg
from jointgrad.engine.run.runtime import worker
from jointgrad.model.arrays import PARAMS

LAWS = ("implicit", "implicit bounce")


# a velocity of 1 m/s is known to 1e-16; impulses are velocities divided by a compliance of 1e-2, and of 1e-4 where points
# resist turning
DIGITS = 4e-11


def check_implicit(case: ContactCase, most: int) -> None:
    case.DIGITS = DIGITS
    assert case.rollout().unsolved.sum() == 0
    check(case, most)


@functools.cache
def tangle(base: str) -> ContactCase:
    model = tangled(3 if base == "free" else 5, base, contact=jg.Implicit()).replace({"world.baumgarte": 0.02})
    state = random_state(model, np.random.default_rng(1), 4)
    return contact_case(model, state.q, state.qd)


@pytest.mark.parametrize("base", ["free", "fixed"])
def test_tangle(base):
    """Every kind of pair, tie and joint in one problem, springs beside; lanes with other contact sets."""
    check_implicit(tangle(base), most=3)


@pytest.mark.parametrize("kinds", KINDS, ids="-".join)
@pytest.mark.parametrize("law", LAWS)
def test_pair(kinds, law):
    """One step, every input and parameter: sticking, sliding, turning, resting on faces, open; with torsion and rolling, and with
    restitution."""
    model, q, qd = pair_states(*kinds, law)
    case = contact_case(model, q, qd)
    assert len(set(case.signatures)) >= 2
    check_implicit(case, most=3)


@pytest.mark.parametrize("which", ["joints", "narrow", "loops"])
def test_ties(which):
    check_implicit(tie_case(which, 1, jg.Implicit()), most=8)


def test_restrained_bounces():
    """States of a cluster whose bounces had to be restrained, and one whose had not."""
    model = cluster(3, arm=True, contact=jg.Implicit())
    model = model.replace({"pair.compliance": np.full_like(model.params["pair.compliance"], 0.01)})
    state, found = thrown_together(model, 400, 3), []
    for first in range(0, 400, 4):
        signatures(model, state.q[first : first + 4], state.qd[first : first + 4])
        with worker(model) as one:
            share = one.frame.table("block.share")[0, 0, 0]
            found += [first + k for k in range(4) if share[k] < 0.999]
    assert len(found) >= 3, len(found)
    rows = [*found[:3], next(k for k in range(400) if k not in found)]
    check_implicit(contact_case(model, state.q[rows], state.qd[rows]), most=3)


@pytest.mark.parametrize("which", ["laikago", "loops", "box-box-implicit", "capsule-plane-implicit bounce"])
def test_fifty_steps(which):
    """A sample of every input and parameter; and the same bits with states recomputed from checkpoints."""
    if which == "laikago":
        case = contact_case(*standing(contact=jg.Implicit()), 50)
    elif which == "loops":
        case = tie_case(which, 50, jg.Implicit())
    else:
        case = fifty(which)
    case.DIGITS = DIGITS
    gradient = case.backward(case.rollout())
    wrong, skipped = case.compare({name: gradient[name] for name in LONG if gradient[name].any()}, most=1)
    print(f"skipped {100 * skipped:.1f} %")
    assert wrong == {} and skipped <= MOST_SKIPPED
    memory = case.batch * 12 * (case.model.nq + case.model.nv) * 8
    kept, restored = case.rollout(threads=1), case.rollout(threads=1, memory=memory)
    assert restored.run.schedule.slots > 0
    a, b = case.backward(kept), case.backward(restored)
    assert all(np.array_equal(a[name], b[name]) for name in a)


def test_tangent_is_the_transpose():
    """<bar, tangent> is the same both ways, over 20 steps in contact, for directions of everything."""
    cases = (
        contact_case(*standing(contact=jg.Implicit()), 20), contact_case(*pair_states("box", "box", "implicit"), 20),
        tie_case("loops", 20, jg.Implicit()),
    )  # fmt: skip
    for case in cases:
        rng = np.random.default_rng(5)
        motion = case.rollout()
        dots = {name: rng.normal(size=value.shape) for name, value in case.inputs.items()}
        for name in PARAMS:
            dots[name] *= 1e-2 * np.abs(np.where(np.isfinite(case.inputs[name]), case.inputs[name], 0.0))
        q_dot, qd_dot = motion.tangent(
            dots["q"], dots["qd"], np.moveaxis(dots["u"], 0, 1), np.moveaxis(dots["force"], 0, 1),
            {name: dots[name] for name in PARAMS},
        )  # fmt: skip
        left = (q_dot * case.bars["q"]).sum((0, 2)) + (qd_dot * case.bars["qd"]).sum((0, 2))
        gradient = motion.backward(case.bars["q"], case.bars["qd"])
        terms = {"q": gradient.q, "qd": gradient.qd, "u": np.moveaxis(gradient.u, 1, 0), **gradient.params}
        terms["force"] = np.moveaxis(gradient.force, 1, 0)
        right = sum((terms[name] * dots[name]).reshape(case.batch, -1).sum(1) for name in dots)
        np.testing.assert_allclose(left, right, rtol=1e-7)


def test_frameworks_and_linearize():
    """PyTorch and JAX hand on the same numbers; A and B of one step are its Jacobian by reverse mode, row by row."""
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    import jointgrad.jax
    import jointgrad.torch

    jax.config.update("jax_enable_x64", True)
    model, q, qd = standing(contact=jg.Implicit())
    bar, u = np.random.default_rng(0).normal(size=qd.shape), np.zeros((3, 4, model.nu))
    gradient = jg.rollout(model, jg.State(q, qd), u).backward(qd_bar=bar)
    tensors = [torch.tensor(x, requires_grad=True) for x in (q, qd, u)]
    (jointgrad.torch.Simulator(model).rollout(*tensors)[1][-1] * torch.tensor(bar)).sum().backward()

    def loss(*inputs):
        return (jointgrad.jax.rollout(model, *inputs)[1][-1] * bar).sum()

    arrays = jax.grad(loss, argnums=(0, 1, 2))(*map(jax.numpy.asarray, (q, qd, u)))
    for own, tensor, array in zip((gradient.q, gradient.qd, gradient.u), tensors, arrays, strict=True):
        assert np.array_equal(own, tensor.grad.numpy()) and np.array_equal(own, np.asarray(array))
    A, B = jg.linearize(model, jg.State(q, qd), u[0])
    step = jg.rollout(model, jg.State(q, qd), u[:1]).backward(qd_bar=bar)
    np.testing.assert_allclose(np.einsum("bi,bij->bj", bar, B[:, model.nv :]), step.u[0], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(
        np.einsum("bi,bij->bj", bar, A[:, model.nv :, model.nv :]), step.qd, rtol=1e-7, atol=1e-9
    )
