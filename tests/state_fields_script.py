"""Run by test_state_fields.py on a package whose state has two fields more; prints what it found as JSON."""

import json
import sys

import numpy as np

import jointgrad as jg
from jointgrad.viewer.replay import load_run

STEPS, BATCH = 6, 3
found = {}


def compiled(integrator="semi_implicit", dt=1e-2):
    return jg.World().add(jg.zoo.pendulum(2, damping=0.1)).compile(dt=dt, integrator=integrator)


def start(model, batch=BATCH):
    rng = np.random.default_rng(1)
    parts = [rng.normal(size=(batch, n)) for n in (model.nq, model.nv, model.n_more)]
    return jg.State(*parts)


def loss_of(model, state, mass, dt, weights):
    changed = model.replace({"link.mass": mass, "world.dt": dt})
    motion = jg.rollout(changed, state, steps=STEPS)
    return sum((w * x).sum() for w, x in zip(weights, (motion.q, motion.qd, motion.more), strict=True))


def derivatives(model):
    """Of a weighted sum of all states, along random directions of the start, one part at a time, and of two parameters."""
    rng, state = np.random.default_rng(2), start(model)
    motion = jg.rollout(model, state, steps=STEPS)
    arrays = motion.q, motion.qd, motion.more
    weights = [rng.normal(size=x.shape) for x in arrays]
    back = motion.backward(weights[0], weights[1], more_bar=weights[2])
    kept = jg.rollout(model, state, steps=STEPS, memory=3 * BATCH * 8 * (model.nq + model.nv + model.n_more))
    again = kept.backward(weights[0], weights[1], more_bar=weights[2])
    parts = {name: getattr(state, name) for name in ("q", "qd", "more")}
    mass, dt, e = model.params["link.mass"], model.params["world.dt"], 1e-6
    lines = []
    for name in (*parts, "link.mass", "world.dt"):
        value = parts.get(name, model.params.get(name))
        direction = rng.normal(size=np.shape(value))

        def along(t, name=name, direction=direction):
            moved = {n: x + t * direction if n == name else x for n, x in parts.items()}
            own = [x + t * direction if n == name else x for n, x in (("link.mass", mass), ("world.dt", dt))]
            return loss_of(model, jg.State(**moved), *own, weights)

        is_part = name in parts
        gradient = ((getattr(back, name) if is_part else back.params[name]) * direction).sum()
        dots = motion.tangent(**({name: direction} if is_part else {"params": {name: direction}}))
        tangent = sum((w * d).sum() for w, d in zip(weights, dots, strict=True))
        lines.append((gradient, tangent, (along(e) - along(-e)) / (2 * e)))
    is_same = all(np.array_equal(getattr(back, n), getattr(again, n)) for n in parts)
    return [list(map(float, line)) for line in zip(*lines, strict=True)], is_same


def jacobian_by_differences(model, state):
    x = np.concatenate([state.q, state.qd, state.more])
    split = np.cumsum([model.nq, model.nv])

    def after(x):
        return np.concatenate([getattr(jg.step(model, jg.State(*np.split(x, split))), n) for n in ("q", "qd", "more")])

    e = 1e-6 * np.eye(len(x))
    return np.stack([(after(x + d) - after(x - d)) / 2e-6 for d in e], axis=-1)


model = compiled()
state = start(model)
motion = jg.rollout(model, state, steps=STEPS)
found |= {"dt": 1e-2, "qd": motion.qd.tolist(), "more": motion.more.tolist()}
found["places"] = [[model.state_places[n].start, model.state_places[n].stop] for n in ("before", "filter")]
fine = [jg.rollout(compiled("rk4", 0.01 / 2**k), state, steps=8 * 2**k).last.more[:, :2].tolist() for k in (1, 2, 3)]
found["rk4"] = fine
for integrator in ("semi_implicit", "rk4"):
    (gradient, tangent, differences), is_same = derivatives(compiled(integrator))
    found |= {f"{integrator} gradient": gradient, f"{integrator} tangent": tangent, f"{integrator} budget": is_same}
    found[f"{integrator} differences"] = differences

one = jg.State(state.q[0], state.qd[0], state.more[0])
found["A"] = jg.linearize(model, one)[0].tolist()
found["A by differences"] = jacobian_by_differences(model, one).tolist()

# the doors --------------------------------------------------------------------------------------------------------------------

following = jg.step(model, state)
found["step"] = np.array_equal(following.more, motion.more[1])
plain = jg.plain.step(model, state.q, state.qd, more=state.more)
found["plain"] = all(np.allclose(a, b, atol=1e-13) for a, b in zip(plain, (*following, following.more), strict=True))
motion.save(sys.argv[1])
found["saved"] = np.array_equal(load_run(sys.argv[1]).more, motion.more)
found["certificate"] = bool(np.all(motion.certificate().trusted))
simulation = jg.Simulation(model, state)
simulation.step(STEPS)
found["simulation"] = np.array_equal(simulation.q, motion.q[-1]) and np.array_equal(simulation._more, motion.more[-1])

import torch  # noqa: E402

from jointgrad.torch import Simulator  # noqa: E402

tensors = [torch.tensor(x, requires_grad=True) for x in (state.q, state.qd, state.more)]
rolled = Simulator(model).rollout(tensors[0], tensors[1], steps=STEPS, more=tensors[2])
(rolled.more[-1] ** 2).sum().backward()
own = motion.backward(more_bar=2 * motion.last.more)
found["torch"] = np.allclose(tensors[2].grad, own.more) and np.allclose(tensors[1].grad, own.qd)

import jax  # noqa: E402

import jointgrad.jax as in_jax  # noqa: E402

jax.config.update("jax_enable_x64", True)


def jax_loss(q, qd, more):
    return (in_jax.rollout(model, q, qd, steps=STEPS, more=more).more[-1] ** 2).sum()


slopes = jax.grad(jax_loss, argnums=(1, 2))(*(jax.numpy.asarray(x) for x in (state.q, state.qd, state.more)))
found["jax"] = np.allclose(slopes[1], own.more) and np.allclose(slopes[0], own.qd)

import jointgrad.casadi as in_casadi  # noqa: E402

exported = in_casadi.step(model)(q=state.q[0], qd=state.qd[0], more=state.more[0], u=np.zeros(model.nu))
found["casadi"] = np.allclose(exported["more_next"].full()[:, 0], following.more[0])
print(json.dumps({name: value.item() if hasattr(value, "item") else value for name, value in found.items()}))
