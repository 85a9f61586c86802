"""The same physics on other kinds of numbers, contact included: torch tensors, JAX arrays, mpmath."""

from __future__ import annotations

import numpy as np
import pytest
from layer_cases import inputs, sliding_ball

import jointgrad as jg

NAMES = ("link.mass", "link.com", "pair.friction")


@pytest.fixture(scope="module")
def case():
    model = sliding_ball(sweeps=4)
    given = inputs(model, None, None)
    motion = jg.rollout(model, jg.State(given["q"], given["qd"]), given["u"][None], force=given["force"])
    rng = np.random.default_rng(0)
    bars = rng.normal(size=model.nq), rng.normal(size=model.nv)
    gradient = motion.backward(*bars)
    expected = {n: getattr(gradient, n) for n in ("q", "qd", "force")} | {n: gradient.params[n] for n in NAMES}
    expected["u"] = gradient.u[0]
    return model, given, motion.last, bars, expected


def test_torch(case):
    torch = pytest.importorskip("torch", reason="the extra [torch] is not installed")
    model, given, last, bars, expected = case
    leaves = {name: torch.tensor(given[name], requires_grad=True) for name in expected}
    params = {name: leaves[name] for name in NAMES}
    found = jg.plain.step(model, *(leaves[n] for n in ("q", "qd", "u", "force")), params=params)
    assert np.allclose(found[0].detach(), last.q, rtol=1e-12) and np.allclose(found[1].detach(), last.qd, rtol=1e-12)
    loss = sum((torch.tensor(bar) * x).sum() for bar, x in zip(bars, found, strict=True))
    loss.backward()
    for name, leaf in leaves.items():
        assert np.allclose(leaf.grad, expected[name], rtol=1e-10, atol=1e-10), name


def test_torch_batch(case):
    torch = pytest.importorskip("torch", reason="the extra [torch] is not installed")
    model = case[0]
    given = inputs(model, 3, None)
    found = jg.plain.step(model, *(torch.tensor(given[n]) for n in ("q", "qd", "u", "force")))
    expected = jg.step(model, jg.State(given["q"], given["qd"]), given["u"], force=given["force"])
    assert np.allclose(found[0], expected.q, rtol=1e-12) and np.allclose(found[1], expected.qd, rtol=1e-12)


@pytest.mark.slow
def test_jax(case):
    jax = pytest.importorskip("jax", reason="the extra [jax] is not installed")
    model, given, last, bars, expected = case
    with jax.enable_x64(True):
        arrays = {name: jax.numpy.asarray(given[name]) for name in expected}

        def run(a):
            return jg.plain.step(model, a["q"], a["qd"], a["u"], a["force"], {name: a[name] for name in NAMES})

        found, pull = jax.vjp(run, arrays)
        assert np.allclose(found[0], last.q, rtol=1e-12) and np.allclose(found[1], last.qd, rtol=1e-12)
        gradient = pull(tuple(map(jax.numpy.asarray, bars)))[0]
    for name, bar in gradient.items():
        assert np.allclose(bar, expected[name], rtol=1e-10, atol=1e-10), name


def test_mpmath(case):
    """Forty digits: what is left to the compiled step is its own rounding."""
    mpmath = pytest.importorskip("mpmath", reason="mpmath is not installed")
    model, given, last, _, _ = case
    with mpmath.workdps(40):
        q, qd, u = ([mpmath.mpf(x) for x in given[name].tolist()] for name in ("q", "qd", "u"))
        found = jg.plain.step(model, q, qd, u)
    expected = jg.step(model, jg.State(given["q"], given["qd"]), given["u"])
    assert type(found[1][2]) is mpmath.mpf
    assert np.allclose([float(x) for x in found[0]], expected.q, rtol=1e-13, atol=1e-15)
    assert np.allclose([float(x) for x in found[1]], expected.qd, rtol=1e-12, atol=1e-14)
