"""What the layers of PyTorch and JAX cost over the core: one run, interleaved, results checked before anything is timed.

    python benchmarks/layers.py [--quick] [--out FOLDER]

Small calls are a step of a cart-pole at batch 1, against jg.rollout of one step and its backward (the core's public way to
a gradient), and against the short cuts for single steps that the layer itself takes, jg.step and its adjoint; large ones
are 100 steps of 256 Laikagos on the ground, on one thread. Beside each small call stands an empty one: an autograd
function, or a callback, that does nothing. Then the soaks: memory over many backward calls, a long rollout within 16 MB.
Needs torch and jax.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import jax
import jax.numpy as jnp
import numpy as np
import torch

import jointgrad as jg
import jointgrad.jax as in_jax
from jointgrad.bench.timing import best, print_goals, resident, write
from jointgrad.engine.run.single_steps import step_adjoint
from jointgrad.torch import Simulator

jax.config.update("jax_enable_x64", True)
torch.set_num_threads(1)
BATCH, STEPS = 256, 100


def quickest(runs: Mapping[str, Callable], repeats: int) -> dict[str, float]:
    """Least wall time of each in microseconds; callbacks work on other threads, so processor time will not do."""
    return {name: 1e6 * s for name, s in best(runs, repeats, time.perf_counter).items()}


class Empty(torch.autograd.Function):
    """What PyTorch itself takes for a function of three tensors."""

    @staticmethod
    def forward(ctx, q, qd, u):
        ctx.save_for_backward(q, qd, u)
        return q.clone(), qd.clone()

    @staticmethod
    def backward(ctx, q_bar, qd_bar):
        return q_bar, qd_bar, ctx.saved_tensors[2]


def small_torch(repeats: int) -> dict[str, float]:
    model = jg.zoo.cart_pole().compile(dt=0.02)
    simulator = Simulator(model)
    q, qd, u = (torch.full((n,), 0.3, dtype=torch.float64, requires_grad=True) for n in (2, 2, 1))
    state, controls = jg.State(q.detach().numpy(), qd.detach().numpy()), u.detach().numpy()
    bar, bars = np.ones(2), (torch.ones(2, dtype=torch.float64),) * 2
    motion, found, empty = jg.rollout(model, state, controls[None]), simulator(q, qd, u), Empty.apply(q, qd, u)
    expected = motion.backward(bar, bar)
    assert torch.autograd.grad(found, q, bars, retain_graph=True)[0].numpy().tobytes() == expected.q.tobytes()

    def without_gradient():
        with torch.no_grad():
            simulator(q, qd, u)

    t = quickest(
        {
            "core": lambda: jg.rollout(model, state, controls[None]),
            "step": lambda: jg.step(model, state, controls),
            "layer": lambda: simulator(q, qd, u),
            "no_grad": without_gradient,
            "empty": lambda: Empty.apply(q, qd, u),
            "core_back": lambda: motion.backward(bar, bar, wrt=("state", "u")),
            "adjoint": lambda: step_adjoint(model, state, controls, bar, bar, wrt=("state", "u")),
            "layer_back": lambda: torch.autograd.grad(found, (q, qd, u), bars, retain_graph=True),
            "empty_back": lambda: torch.autograd.grad(empty, (q, qd, u), bars, retain_graph=True),
        },
        repeats,
    )
    return {f"torch_{name}_us": us for name, us in t.items()} | {
        "torch_forward_over_core_us": t["layer"] - t["core"],
        "torch_no_grad_over_step_us": t["no_grad"] - t["step"],
        "torch_backward_over_core_us": t["layer_back"] - t["core_back"],
        "torch_forward_over_step_us": t["layer"] - t["step"],
        "torch_backward_over_adjoint_us": t["layer_back"] - t["adjoint"],
    }


def small_jax(repeats: int) -> dict[str, float]:
    model = jg.zoo.cart_pole().compile(dt=0.02)
    q, qd, u = jnp.full(2, 0.3), jnp.full(2, 0.3), jnp.full(1, 0.3)
    step = jax.jit(lambda q, qd, u: in_jax.step(model, q, qd, u))
    gradient = jax.jit(jax.grad(lambda q, qd, u: sum(x.sum() for x in in_jax.step(model, q, qd, u)), argnums=(0, 1, 2)))

    def nothing(q, qd, u):
        return jax.pure_callback(lambda q, qd, u: (np.asarray(q), np.asarray(qd)), (q, qd), q, qd, u)

    empty = jax.jit(nothing)
    state, bar = jg.State(np.asarray(q), np.asarray(qd)), np.ones(2)
    motion = jg.rollout(model, state, np.asarray(u)[None])
    assert np.array_equal(gradient(q, qd, u)[0], motion.backward(bar, bar).q)
    t = quickest(
        {
            "layer": lambda: jax.block_until_ready(step(q, qd, u)),
            "empty": lambda: jax.block_until_ready(empty(q, qd, u)),
            "core": lambda: jg.step(model, state, np.asarray(u)),
            "gradient": lambda: jax.block_until_ready(gradient(q, qd, u)),
            "core_both": lambda: jg.rollout(model, state, np.asarray(u)[None]).backward(bar, bar, wrt=("state", "u")),
        },
        repeats,
    )
    return {f"jax_{name}_us": us for name, us in t.items()} | {
        "jax_over_empty_callback_us": t["layer"] - t["empty"] - t["core"],
        "jax_gradient_over_two_callbacks_us": t["gradient"] - 2 * t["empty"] - t["core_both"],
    }


def laikagos() -> tuple[jg.Model, jg.State, np.ndarray]:
    model = jg.World().add(jg.zoo.laikago(touch="feet")).add_ground().compile(dt=1e-3)
    return model, model.initial_state(BATCH), np.zeros((STEPS, BATCH, model.nu))


def large(repeats: int) -> dict[str, float]:
    model, start, us = laikagos()
    simulator = Simulator(model, threads=1)
    q, qd, u = (torch.from_numpy(x.copy()).requires_grad_() for x in (*start, us))
    qj, qdj, uj = (jnp.asarray(x) for x in (*start, us))
    motion, found = jg.rollout(model, start, us, threads=1), simulator.rollout(q, qd, u)
    bars = np.ones_like(motion.q), np.ones_like(motion.qd)
    torch_bars = tuple(map(torch.from_numpy, bars))
    wrt = ("state", "u")
    back = torch.autograd.grad(found[:2], (q, qd, u), torch_bars, retain_graph=True)
    assert np.array_equal(back[2].numpy(), motion.backward(*bars, wrt=wrt).u)
    forward = jax.jit(lambda q, qd, u: in_jax.rollout(model, q, qd, u, threads=1)[:2])
    assert np.array_equal(forward(qj, qdj, uj)[0], motion.q)
    t = best(
        {
            "core": lambda: jg.rollout(model, start, us, threads=1),
            "torch": lambda: simulator.rollout(q, qd, u),
            "jax": lambda: jax.block_until_ready(forward(qj, qdj, uj)),
            "core_back": lambda: motion.backward(*bars, wrt=wrt),
            "torch_back": lambda: torch.autograd.grad(found[:2], (q, qd, u), torch_bars, retain_graph=True),
        },
        repeats,
    )
    return {
        "large_core_ms": 1e3 * t["core"],
        "large_core_back_ms": 1e3 * t["core_back"],
        "torch_large_forward_percent": 100 * (t["torch"] / t["core"] - 1),
        "torch_large_backward_percent": 100 * (t["torch_back"] / t["core_back"] - 1),
        "jax_large_forward_percent": 100 * (t["jax"] / t["core"] - 1),
    }


def soak(calls: int) -> dict[str, float]:
    """Growth of memory over many calls of backward, after a first tenth."""
    model = jg.zoo.cart_pole().compile(dt=0.02)
    simulator = Simulator(model)
    q, qd, u = (torch.full((*s,), 0.3, dtype=torch.float64, requires_grad=True) for s in ((2,), (2,), (5, 1)))
    mass = torch.tensor(model.params["link.mass"], requires_grad=True)
    for k in range(calls):
        if k == calls // 10:
            gc.collect()
            before = resident()
        motion = simulator.rollout(q, qd, u, params={"link.mass": mass}, outputs="link.position")
        (motion.q.sum() + motion.outputs["link.position"].sum()).backward()
    return {"soak_calls": calls, "soak_growth_MB": (resident() - before) / 1e6}


def long_rollout(steps: int) -> dict[str, float]:
    """A Laikago on the ground for very long, within 16 MB: peak growth beyond inputs and gradients, and the same bits."""
    model = jg.World().add(jg.zoo.laikago(touch="feet")).add_ground().compile(dt=1e-3)
    start, u, bar = model.initial_state(), np.zeros((steps, model.nu)), np.ones(model.nq)
    jg.rollout(model, start, u[:50], memory="20 kB").backward(bar, wrt=("state", "u"))
    gc.collect()
    before = resident()
    Path("/proc/self/clear_refs").write_text("5")
    limited = jg.rollout(model, start, u, memory="16 MB").backward(bar, wrt=("state", "u"))
    growth = resident("VmHWM") - before - limited.u.nbytes
    whole = jg.rollout(model, start, u).backward(bar, wrt=("state", "u"))
    is_equal = all(np.array_equal(getattr(limited, n), getattr(whole, n)) for n in ("q", "qd", "u"))
    assert is_equal, "the limited gradient has other bits"
    return {"long_steps": steps, "long_growth_MB": growth / 1e6, "long_states_MB": steps * 37 * 8 / 1e6}


GOALS = (
    ("torch_forward_over_core_us", "<=", 25, "torch: a step at batch 1, beyond the core, us"),
    ("torch_backward_over_core_us", "<=", 40, "torch: its backward, beyond the core, us"),
    ("torch_large_forward_percent", "<=", 5, "torch: 100 steps of 256 Laikagos, beyond the core, %"),
    ("torch_large_backward_percent", "<=", 5, "torch: their backward, beyond the core, %"),
    ("soak_growth_MB", "<=", 1, "growth of memory over the backward calls, MB"),
    ("long_growth_MB", "<=", 20, "peak growth of the long rollout within 16 MB, MB"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repeats, shorter soaks")
    parser.add_argument("--out", type=Path, default=Path("out/bench/layers"))
    options = parser.parse_args()
    print("python", *sys.argv)
    many, few = (500, 2) if options.quick else (5000, 7)
    found = small_torch(many) | small_jax(many // 5) | large(few)
    found |= soak(1000 if options.quick else 10_000) | long_rollout(10_000 if options.quick else 100_000)
    for key, value in found.items():
        print(f"{key:38s} {value:10.2f}")
    print_goals(found, GOALS)
    write(found, options.out)


if __name__ == "__main__":
    main()
