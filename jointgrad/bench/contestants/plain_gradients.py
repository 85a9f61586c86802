"""The three workloads in PyTorch and JAX: the network as they would have it, the motions in our no-compiler mode."""

import numpy as np
from protocol import relative_error

import jointgrad as jg
from jointgrad.bench.workloads import LAYERS, WORKLOADS, network_inputs, split, start_of

FEW = 3  # steps of the motion with contact: one takes long


def network_loss(weights, x, tanh):
    for (matrix, bias), m, n in zip(split(weights), LAYERS, LAYERS[1:], strict=False):
        x = tanh(matrix.reshape(n, m) @ x + bias)
    return 0.5 * (x * x).sum()


def network_error(found):
    """Of a gradient, against central differences in NumPy."""
    weights, x = network_inputs()
    turns = 1e-6 * np.eye(len(weights))
    slopes = [(network_loss(weights + d, x, np.tanh) - network_loss(weights - d, x, np.tanh)) / 2e-6 for d in turns]
    return relative_error(found, slopes)


def say_network(task, version, found, gradient):
    error = network_error(gradient)
    say(task, version, "network", found, None, error < 1e-6, f"against differences: {error:.0e}")


def motion_loss(model, q, qd, mass, steps):
    for _ in range(steps):
        q, qd = jg.plain.step(model, q, qd, params={"link.mass": mass})
    return q.sum()


def say(task, version, workload, found, steps, is_right, words):
    task.say(
        status="measured", workload=workload, method="autodiff", cores=1, version=version, steps=steps,
        best_us=1e6 * found["best"], median_us=1e6 * found["median"], repeats=found["repeats"], check=words, ok=is_right,
    )  # fmt: skip


def expected_of(model, steps):
    return jg.rollout(model, start_of(model), steps=steps).backward(np.ones(model.nq), wrt=("state",)).q


def in_torch(task, version):
    import torch

    torch.set_num_threads(1)

    def leaf(x):
        return torch.tensor(x, dtype=torch.float64, requires_grad=True)

    weights, x = network_inputs()
    weights, x = leaf(weights), torch.tensor(x)  # type: ignore[assignment]

    def network():
        return torch.autograd.grad(network_loss(weights, x, torch.tanh), weights)[0]

    network()
    (found,) = task.timed(network)
    say_network(task, version, found, network().numpy())
    for name, (make, steps) in WORKLOADS.items():
        model = make()
        steps = FEW if model.topology.tree["n_pairs"] else min(steps, task["most_steps"])
        start = start_of(model)
        given = leaf(start.q), leaf(start.qd), leaf(model.params["link.mass"])

        def gradient(model=model, given=given, steps=steps):
            return torch.autograd.grad(motion_loss(model, *given, steps), given)[0].numpy()  # type: ignore[call-arg]

        report(task, version, name, gradient, model, steps)


def in_jax(task, version):
    import jax

    jax.config.update("jax_enable_x64", True)
    weights, x = map(jax.numpy.asarray, network_inputs())
    pull = jax.jit(jax.grad(lambda w: network_loss(w, x, jax.numpy.tanh)))
    pull(weights)
    (found,) = task.timed(lambda: pull(weights).block_until_ready())
    say_network(task, version, found, np.asarray(pull(weights)))
    model, steps = WORKLOADS["double pendulum"][0](), min(WORKLOADS["double pendulum"][1], task["most_steps"])
    start = start_of(model)

    def loss(q, qd, mass):
        def step(state, _):
            return jg.plain.step(model, *state, params={"link.mass": mass}), None  # type: ignore[misc]

        return jax.lax.scan(step, (q, qd), None, steps)[0][0].sum()

    given = tuple(map(jax.numpy.asarray, (start.q, start.qd, model.params["link.mass"])))
    compiled = jax.jit(jax.grad(loss, argnums=(0, 1, 2)))

    report(task, version, "double pendulum", lambda: np.asarray(compiled(*given)[0]), model, steps)
    task.say(
        status="skipped", workload="pendulum", method="autodiff", version=version,
        reason="a step with contact is more than XLA compiles in reasonable time",
    )  # fmt: skip


def report(task, version, name, gradient, model, steps):
    expected = expected_of(model, steps)
    error = float(np.abs(gradient() - expected).max() / np.abs(expected).max())
    (found,) = task.timed(gradient, repeats=3)
    say(task, version, name, found, steps, error < 1e-6, f"against ours: {error:.0e}")
