"""Train a small policy to swing up a cart-pole, by gradients through windows of 200 steps of simulation (JAX).

The simulator is a function under jit, grad and scan; a second network learns what will come after a window, as before.
"""

import jax
import jax.numpy as jnp
from jax.example_libraries.optimizers import adam, clip_grads
from jax.example_libraries.stax import Dense, Tanh, serial

import jointgrad as jg
from jointgrad.jax import rollout

jax.config.update("jax_enable_x64", True)
HELD, WINDOW, BATCH, ITERATIONS = 10, 20, 64, 800  # a push is held for 10 steps of 5 ms; a window is 20 pushes
FORCE, NOISE, DISCOUNT, RATE, FITS = 20.0, 0.2, 0.97, 0.02, 4
model = jg.zoo.cart_pole().compile(dt=0.005)
new_network, network = serial(Dense(32), Tanh, Dense(32), Tanh, Dense(1))
new_optimiser, update, weights = adam(lambda k: RATE / (1 + k / 200), b1=0.7, b2=0.95)


def asked(net, x):
    return network(net, jnp.concatenate([x[..., :1], jnp.cos(x[..., 1:2]), jnp.sin(x[..., 1:2]), 0.3 * x[..., 2:]], -1))


def motion(policy, x, key, pushes, noise=0.0):
    def moved(x, key):
        push = FORCE * jnp.tanh(asked(policy, x) + noise * jax.random.normal(key, (len(x), 1)))
        held = jnp.broadcast_to(push, (HELD, len(x), 1))
        x = jnp.concatenate(rollout(model, x[:, :2], x[:, 2:], held, only_last=True, threads=1)[:2], -1)
        return x, x

    return jax.lax.scan(moved, x, jax.random.split(key, pushes))[1]


def starts(key, batch, anywhere=0.5):
    """Nearly at rest with the pole down; a share of them anywhere."""
    near, far = jax.random.normal(key, (2, batch, 4)) * jnp.array([[[0.05] * 4], [[0.5, 2.0, 1.0, 3.0]]])
    is_far = jax.random.uniform(jax.random.fold_in(key, 1), (batch, 1)) < anywhere
    return jnp.array([0.0, jnp.pi, 0.0, 0.0]) + near + is_far * far


def to_come(policy, critic, x, key):
    """Cost from the first state on, for the policy; the same from each state, and the states after them."""
    states = motion(policy, x, key, WINDOW, NOISE)
    costs = 1 - jnp.cos(states[..., 1]) + 0.05 * states[..., 0] ** 2 + 0.005 * (states[..., 2:] ** 2).sum(-1)
    last = asked(critic, states[-1])[..., 0]
    each = jax.lax.scan(lambda later, now: (now + DISCOUNT * later,) * 2, last, costs, reverse=True)[1]
    return (1 - DISCOUNT) * each[0].mean(), (each, states)


@jax.jit
def improved(k, key, x, policy, critic):
    keys = jax.random.split(key, 3)
    is_new = (jax.random.uniform(keys[0], (BATCH, 1)) < 0.2) | (abs(x[:, :1]) > 4)
    x = jnp.where(is_new, starts(keys[1], BATCH), x)
    bar, (goal, states) = jax.grad(to_come, has_aux=True)(weights(policy), weights(critic), x, keys[2])
    known = jnp.concatenate([x[None], states[:-1]])
    for _ in range(FITS):
        error = jax.grad(lambda net: ((asked(net, known)[..., 0] - goal) ** 2).mean())(weights(critic))
        critic = update(k, clip_grads(error, 1.0), critic)
    return states[-1], update(k, clip_grads(bar, 1.0), policy), critic


@jax.jit
def worst_end(policy, key):
    """Of 256 hanging starts, the lowest that a pole is in the last half second of four; 1 is upright."""
    return jnp.cos(motion(weights(policy), starts(key, 256, anywhere=0.0), key, 80)[-10:, :, 1]).min()


key = jax.random.key(0)
policy, critic = (new_optimiser(new_network(jax.random.fold_in(key, k), (-1, 5))[1]) for k in (0, 1))
x, k = starts(key, BATCH), 0
while k < ITERATIONS and (k % 50 or worst_end(policy, jax.random.fold_in(key, 2)) < 0.99):
    k += 1
    x, policy, critic = improved(k, jax.random.fold_in(key, 2 + k), x, policy, critic)
worst = worst_end(policy, jax.random.key(1))
print(f"pole at least {worst:.4f} after {k} iterations")
assert worst > 0.95
