"""Train a small policy through 200 steps of a cart-pole in JAX: the simulator is a function under jit, grad and scan."""

import jax
import jax.numpy as jnp

import jointgrad as jg
from jointgrad.jax import step

jax.config.update("jax_enable_x64", True)
STEPS, BATCH, ITERATIONS, FORCE, RATE = 200, 8, 60, 20.0, 0.02
model = jg.zoo.cart_pole().compile(dt=0.02)


def new_policy(key):
    first, second = jax.random.split(key)
    return {"hidden": jax.random.normal(first, (5, 16)) / 2, "out": jax.random.normal(second, (16, 1)) / 8}


def push(policy, q, qd):
    seen = jnp.concatenate([q[:, :1], jnp.cos(q[:, 1:]), jnp.sin(q[:, 1:]), 0.3 * qd], -1)
    return FORCE * jnp.tanh(jnp.tanh(seen @ policy["hidden"]) @ policy["out"])


def rollout(policy, start):
    def one(state, _):
        state = step(model, *state, push(policy, *state))
        return state, state

    return jax.lax.scan(one, start, length=STEPS)[1]


def loss(policy, start, horizon):
    """What is unstable takes gradients far: the policy learns the first second before the last."""
    qs, qds = rollout(policy, start)
    cost = 1 - jnp.cos(qs[..., 1]) + 0.1 * qs[..., 0] ** 2 + 0.01 * (qds**2).sum(-1)
    return jnp.where(jnp.arange(STEPS)[:, None] < horizon, cost, 0.0).mean() * STEPS / horizon


def starts(key, batch):
    """Leaning by up to 0.4 rad, to be brought upright and held there."""
    return jnp.stack([jnp.zeros(batch), jax.random.uniform(key, (batch,), minval=-0.4, maxval=0.4)], -1), jnp.zeros(
        (batch, 2)
    )


@jax.jit
def improved(policy, means, squares, k, key):
    """One step of Adam."""
    value, gradient = jax.value_and_grad(loss)(policy, starts(key, BATCH), jnp.minimum(STEPS, 30 + 4 * k))
    norm = jnp.sqrt(sum((g**2).sum() for g in gradient.values()))
    gradient = {n: g / jnp.maximum(1.0, norm) for n, g in gradient.items()}
    means = {n: 0.9 * means[n] + 0.1 * g for n, g in gradient.items()}
    squares = {n: 0.99 * squares[n] + 0.01 * g**2 for n, g in gradient.items()}
    rate = RATE * jnp.sqrt(1 - 0.99**k) / (1 - 0.9**k)
    policy = {n: w - rate * means[n] / (jnp.sqrt(squares[n]) + 1e-8) for n, w in policy.items()}
    return policy, means, squares, value


key = jax.random.key(0)
policy = new_policy(key)
means = squares = {n: jnp.zeros_like(w) for n, w in policy.items()}
for k in range(1, ITERATIONS + 1):
    policy, means, squares, value = improved(policy, means, squares, k, jax.random.fold_in(key, k))
    if k % 10 == 0:
        print(f"{k}: loss {value:.4f}")

qs, _ = rollout(policy, starts(jax.random.key(1), 32))
worst = jnp.cos(qs[-25:, :, 1]).min()  # of 32 starts, in the last half second; 1 is upright
print("pole at least", worst)
assert worst > 0.95
