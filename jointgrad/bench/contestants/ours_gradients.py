"""Our part in the suite `gradients`: exact, by differences of our own forward runs, and the network by our compiler."""

import numpy as np
from protocol import relative_error

import jointgrad as jg
from jointgrad.bench.workloads import LAYERS, WORKLOADS, network_inputs, start_of
from jointgrad.compiler import elementary as el
from jointgrad.compiler.field import SCALAR, Frame, Schema
from jointgrad.compiler.kernel import Library, kernel
from jointgrad.compiler.reverse import adjoint
from jointgrad.compiler.trace import traced

CALLS = 1000  # of the network in one measurement, each from Python
STEP = 1e-6  # of differences


@traced
def network(weights, x):
    """Half the square of the outputs of a small network."""
    first = 0
    for m, n in zip(LAYERS, LAYERS[1:], strict=False):
        matrix, bias = weights[first : first + m * n], weights[first + m * n : first + m * n + n]
        first += m * n + n
        x = tuple(el.tanh(bias[j] + sum((matrix[j * m + i] * x[i] for i in range(m)), 0.0)) for j in range(n))
    return (0.5 * sum((y * y for y in x), 0.0),)


network_adjoint = adjoint(network, "weights")


@kernel
def evaluate(frame):
    net = frame.net
    for i in range(frame.tree.n):
        net.loss[i] = network(net.weights[i], net.x[i])[0]


@kernel
def pull_back(frame):
    net = frame.net
    for i in range(frame.tree.n):
        net.weights_bar[i] = network_adjoint(net.weights[i], net.x[i], (net.one[i],))


N_WEIGHTS = sum(m * n + n for m, n in zip(LAYERS, LAYERS[1:], strict=False))
SCHEMA = Schema(
    "bench_network",
    dict(tree=dict(n=SCALAR), net=dict(weights=N_WEIGHTS, x=LAYERS[0], loss=1, weights_bar=N_WEIGHTS, one=1)),
    ("evaluate", "pull_back"),
)


class Network:
    """The network for one environment, in compiled code."""

    def __init__(self, lanes=1):
        library = Library(SCHEMA, (evaluate, pull_back), lanes, 1)
        rows = {field: 1 for field in SCHEMA.slots if SCHEMA.is_pack(field)}
        self.frame = Frame(SCHEMA, rows, {"tree.n": 1}, lanes, 1)
        weights, x = network_inputs()
        self.set("weights", weights)
        self.set("x", x)
        self.set("one", [1.0])
        self.forward, self.backward = (library.attach(self.frame, name) for name in ("evaluate", "pull_back"))

    def set(self, name, values):
        self.frame.table(f"net.{name}")[:] = np.reshape(values, (1, -1, 1, 1))

    def loss(self, weights):
        self.set("weights", weights)
        self.forward()
        return float(self.frame.table("net.loss").ravel()[0])

    def gradient(self):
        self.backward()
        return self.frame.table("net.weights_bar")[0, :, 0, 0].copy()


def gradients(task, version):
    by_network(task, version)
    for name in WORKLOADS:
        by_motion(task, version, name)


def say(task, version, workload, method, found, work, check, ok, **extra):
    task.say(
        status="measured", workload=workload, method=method, cores=1, version=version, best_us=1e6 * found["best"] / work,
        median_us=1e6 * found["median"] / work, repeats=found["repeats"], check=check, ok=ok, **extra,
    )  # fmt: skip


def by_network(task, version):
    net, (weights, _) = Network(), network_inputs()
    exact = net.gradient()
    difference = np.array([
        (net.loss(weights + STEP * e) - net.loss(weights - STEP * e)) / (2 * STEP) for e in np.eye(len(weights))
    ])  # fmt: skip
    net.set("weights", weights)
    error = relative_error(exact, difference)
    forward, backward = task.timed(
        *(lambda run=run: [run() for _ in range(CALLS)] for run in (net.forward, net.backward))
    )
    words = f"against differences: {error:.0e}"
    say(task, version, "network", "exact", backward, CALLS, words, error < 1e-6, parameters=len(weights))
    twice = {k: 2 * len(weights) * forward[k] for k in ("best", "median")} | {"repeats": forward["repeats"]}
    say(task, version, "network", "differences", twice, CALLS, "350 evaluations", True, parameters=len(weights))


def by_motion(task, version, name):
    """Of the last angles, by start and masses."""
    make, steps = WORKLOADS[name]
    steps = min(steps, task["most_steps"])
    model = make()
    start, moving = start_of(model), np.flatnonzero(model.params["link.mass"])  # the ground has no mass to vary
    bar = np.ones(model.nq)
    wrt = ("state", "params")
    motion = {}

    def exact():
        motion["one"] = jg.rollout(model, start, steps=steps)
        return motion["one"].backward(bar, wrt=wrt)

    n = model.nq + model.nv + len(moving)
    turns = np.concatenate([np.eye(n), -np.eye(n)]) * STEP
    at_q, at_v = model.nq, model.nq + model.nv

    def differences():
        """All at once, as a batch: the best that differences can do."""
        mass = np.tile(model.params["link.mass"], (2 * n, 1))
        mass[:, moving] += turns[:, at_v:]
        many = model.replace({"link.mass": mass})
        q, qd = start.q + turns[:, :at_q], start.qd + turns[:, at_q:at_v]
        last = jg.rollout(many, jg.State(q, qd), steps=steps, threads=1, keep=False).last.q.sum(axis=1)
        return (last[:n] - last[n:]) / (2 * STEP)

    short = min(steps, task["check_steps"])
    error = checked(model, start, bar, short, wrt)
    found, apart = task.timed(exact, differences)
    words = f"against differences over {short} steps: {error:.0e}"
    extra = {"steps": steps, "parameters": n}
    say(task, version, name, "exact", found, 1, words, error < 1e-4, **extra)
    say(task, version, name, "differences", apart, 1, "", True, **extra)


def checked(model, start, bar, steps, wrt):
    """Along one direction of start and masses, over fewer steps: over many, differences lose their digits."""
    rng = np.random.default_rng(0)
    mass = model.params["link.mass"]
    dq, dv, dm = (rng.normal(size=k) for k in (model.nq, model.nv, len(mass)))
    dm = mass * dm

    def last(s):
        moved = model.replace({"link.mass": mass + s * dm})
        return jg.rollout(moved, jg.State(start.q + s * dq, start.qd + s * dv), steps=steps).last.q @ bar

    found = jg.rollout(model, start, steps=steps).backward(bar, wrt=wrt)
    slope = found.q @ dq + found.qd @ dv + found.params["link.mass"] @ dm
    expected = (last(STEP) - last(-STEP)) / (2 * STEP)
    return abs(slope - expected) / abs(expected)
