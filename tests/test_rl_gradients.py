"""Differentiable tasks: the motion of the gymnasium environment, and gradients through actions that are held."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import torch

import jointgrad as jg
import jointgrad.rl as rl
from jointgrad.rl import differentiable_jax

# actions after which those that can stand on the ground
LANDED = {
    "pendulum": 0,
    "cart-pole": 0,
    "reacher": 0,
    "hopper": 20,
    "half-cheetah": 20,
    "ant": 30,
    "humanoid": 10,
    "go2": 10,
    "reach": 0,
    "throw": 5,
}


@pytest.mark.parametrize("name", rl.TASKS)
def test_moves_as_the_environment_does(name):
    task = rl.make_task(name)
    batch, rng = rl.Batch(task, 2), np.random.default_rng(0)
    batch.generators = [np.random.default_rng(k) for k in range(2)]
    batch.reset(np.ones(2, dtype=bool))
    layer = rl.DifferentiableTask(task)
    now = layer.moment(*(torch.from_numpy(x) for x in (batch.now.q, batch.now.qd, batch.now.goal)))
    np.testing.assert_allclose(layer.observe(now).numpy(), batch.observe(), rtol=1e-12, atol=1e-12)
    for _ in range(5):
        action = 0.3 * rng.uniform(-1, 1, (2, task.model.nu))
        step, result = layer.step(now, torch.from_numpy(action)), batch.step(action)
        now = step.now
        np.testing.assert_allclose(step.observation.numpy(), batch.observe(), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(step.reward.numpy(), result.reward, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(step.terminated.numpy(), result.terminated)


def landed(task, count):
    """States after so many actions of zero."""
    batch = rl.Batch(task, 2)
    batch.generators = [np.random.default_rng(k) for k in range(2)]
    batch.reset(np.ones(2, dtype=bool))
    for _ in range(count):
        batch.step(np.zeros((2, task.model.nu)))
    touching = jg.inspect(task.model, jg.State(*batch.now[:2])).contacts
    assert count == 0 or all(any(c.mode != "open" for c in row) for row in touching)
    return [torch.tensor(x) for x in batch.now[:2]]


@pytest.mark.parametrize("name", LANDED)
def test_gradients_through_two_actions(name):
    task = rl.make_task(name)
    layer, rng = rl.DifferentiableTask(task), np.random.default_rng(2)
    state = landed(task, LANDED[name])
    direction = torch.from_numpy(rng.standard_normal(task.n_observations))

    def worth(q, qd, first, second):
        one = layer.step(layer.moment(q, qd), first)
        two = layer.step(one.now, second)
        return one.reward + two.reward + two.observation @ direction

    acts = [0.3 * torch.from_numpy(rng.uniform(-1, 1, (2, task.model.nu))) for _ in range(2)]
    inputs = [x.requires_grad_() for x in (*state, *acts)]
    assert torch.autograd.gradcheck(worth, inputs, fast_mode=True, eps=1e-6, atol=1e-3, rtol=1e-3)


def test_gradients_to_the_parameters_of_each_robot():
    task = rl.make_task("cart-pole")
    mass = torch.from_numpy(np.stack([f * task.model.params["link.mass"] for f in (0.9, 1.1)])).requires_grad_()
    begin = rl.DifferentiableTask(task).start(np.random.default_rng(0), 2)

    def worth(mass):
        layer = rl.DifferentiableTask(task, params={"link.mass": mass})
        return layer.step(begin, torch.ones(2, 1)).observation

    assert torch.autograd.gradcheck(worth, [mass])


def test_single_precision_actions_are_taken():
    layer = rl.DifferentiableTask(rl.make_task("hopper"))
    action = torch.zeros(3, 3, requires_grad=True)
    layer.step(layer.start(np.random.default_rng(0), 3), action).reward.sum().backward()
    assert action.grad is not None and action.grad.dtype is torch.float32 and action.grad.abs().max() > 0


@pytest.mark.parametrize("name", ["hopper", "reacher"])
def test_jax_says_what_torch_says_under_jit(name):
    task, rng = rl.make_task(name), np.random.default_rng(1)
    state, action = task.start(rng, 2), 0.3 * rng.uniform(-1, 1, (2, task.model.nu))
    layer = rl.DifferentiableTask(task)
    push = torch.from_numpy(action).requires_grad_()
    wanted = layer.step(layer.moment(torch.from_numpy(state.q), torch.from_numpy(state.qd)), push)
    wanted.reward.sum().backward()

    def worth(action, q, qd):
        found = differentiable_jax.step(task, differentiable_jax.moment(task, q, qd), action)
        return found.reward.sum(), found

    with jax.enable_x64(True):
        given = [jax.numpy.asarray(x) for x in (action, state.q, state.qd)]
        grad, found = jax.jit(jax.grad(worth, has_aux=True))(*given)
    np.testing.assert_allclose(grad, push.grad.numpy(), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.observation, wanted.observation.detach().numpy(), rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(found.terminated, wanted.terminated.numpy())
