"""Outputs of some links, and of the last state alone: the same numbers and gradients as the whole, without its price."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import jointgrad as jg
from jointgrad.rl import make_task
from jointgrad.torch import Simulator

NAMES = ("link.position", "link.velocity", "contact.force")


@pytest.fixture(scope="module")
def model():
    return make_task("hopper").model


def chosen(model):
    return [model.link_names[k] for k in (-1, 1)]  # not in their order


def results(model, only_last, links, outputs_at, batch=3):
    """Outputs of the chosen links at the last state, and gradients of a function of them and of the states."""
    rng, start = np.random.default_rng(0), model.initial_state()
    q, qd, u, mass = (
        torch.tensor(np.repeat(x[None], batch, 0) + 0.01 * rng.random((batch, *x.shape)), requires_grad=True)
        for x in (start.q, start.qd, np.zeros(model.nu), model.params["link.mass"])
    )
    motion = Simulator(model).rollout(
        q, qd, u[None], hold=4, params={"link.mass": mass}, outputs=NAMES, links=links, outputs_at=outputs_at,
        only_last=only_last,
    )  # fmt: skip
    found = [x if outputs_at == "last" else x[-1] for x in motion.outputs.values()]
    if links is None:
        found = [x[:, [model.link_names.index(name) for name in chosen(model)]] for x in found]
    weigh = torch.Generator().manual_seed(1)
    parts = [*found, motion.q, motion.qd]
    worth = sum((torch.rand(x.shape, generator=weigh, dtype=x.dtype) * x).sum() for x in parts)
    return found, torch.autograd.grad(worth, (q, qd, u, mass))


@pytest.mark.parametrize("only_last", [True, False])
def test_the_last_outputs_of_some_links_are_those_of_the_whole(model, only_last):
    whole, slopes = results(model, only_last, None, "every")
    for links, at in ((chosen(model), "last"), (chosen(model), "every"), (None, "last")):
        found, gradient = results(model, only_last, links, at)
        assert all(torch.equal(a, b) for a, b in zip(found, whole, strict=True))
        for a, b in zip(gradient, slopes, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9 * float(b.abs().max()))
            assert b.abs().max() > 0


def test_a_link_may_be_asked_for_twice(model):
    q, qd = (torch.tensor(x, requires_grad=True) for x in model.initial_state())
    once, twice = (
        Simulator(model).rollout(
            q, qd, steps=2, outputs="link.position", links=n * (model.link_names[-1],), outputs_at="last"
        )
        for n in (1, 2)
    )
    assert twice.outputs["link.position"].shape == (2, 3)
    single, double = (torch.autograd.grad(m.outputs["link.position"].sum(), q)[0] for m in (once, twice))
    np.testing.assert_allclose(double, 2 * single, rtol=1e-12)


def test_what_there_is_not_is_said(model):
    q, qd = map(torch.tensor, model.initial_state())
    simulator = Simulator(model)
    with pytest.raises(jg.InputError, match='there is no link "wheel"'):
        simulator.rollout(q, qd, steps=1, outputs="link.position", links=["wheel"])
    with pytest.raises(jg.InputError, match='outputs_at must be "every" or "last"'):
        simulator.rollout(q, qd, steps=1, outputs="link.position", outputs_at="first")
