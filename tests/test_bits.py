"""The same environment, the same bits: whatever its neighbours, its place, the threads, pack width, or schedule."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from oracles.differences import random_state

import jointgrad as jg
from jointgrad.engine.run import runtime
from jointgrad.engine.run.outputs import OUTPUTS

BATCH, STEPS = 37, 12  # more than two chunks, and a last pack that is not full


@dataclass
class Motion:
    """What rollouts are started from and pulled back with; the batch is the axis before the values."""

    model: jg.Model
    state: jg.State
    u: np.ndarray
    force: np.ndarray
    bars: dict[str, np.ndarray]
    masses: np.ndarray

    def part(self, envs, is_shared=True, **options) -> dict[str, np.ndarray]:
        """Everything that comes out for some environments, by name; axes (time, batch, ...) or (batch, ...)."""
        model = self.model if is_shared else self.model.replace({"link.mass": self.masses[envs]})
        state = jg.State(self.state.q[envs], self.state.qd[envs])
        options = {"outputs": tuple(OUTPUTS)} | options
        traj = jg.rollout(model, state, self.u[:, envs], force=self.force[:, envs], **options)
        bars = {name: bar[:, envs] for name, bar in self.bars.items()}
        grad = traj.backward(bars.pop("q"), bars.pop("qd"), bars)
        found = {"q": traj.q, "qd": traj.qd, **traj.outputs, "u_bar": grad.u, "force_bar": grad.force}
        found |= {"q_bar": grad.q[None], "qd_bar": grad.qd[None]}
        if not is_shared:
            found["mass_bar"] = grad.params["link.mass"][None]
        return found | {f"param {name}": bar for name, bar in grad.params.items() if is_shared}


def same(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> bool:
    """Bit by bit; NaN is not equal to itself and would be noticed."""
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


def taken(whole: dict[str, np.ndarray], envs) -> dict[str, np.ndarray]:
    """The same environments out of a larger batch; sums over the batch are left out."""
    return {name: array[:, envs] for name, array in whole.items() if not name.startswith("param")}


def own(part: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: array for name, array in part.items() if not name.startswith("param")}


@pytest.fixture(scope="module", params=["semi_implicit", "rk4"])
def motion(request) -> Motion:
    rng = np.random.default_rng(8)
    model = jg.zoo.random_tree(7, seed=8, trees=2, tendons=True).compile(dt=0.01, integrator=request.param)
    state = random_state(model, rng, BATCH)
    u, force = rng.normal(size=(STEPS, BATCH, model.nu)), rng.normal(size=(STEPS, BATCH, model.n_links, 6))
    shapes = {"q": (model.nq,), "qd": (model.nv,)} | {o: (model.n_links, *s) for o, s in OUTPUTS.items()}
    bars = {name: rng.normal(size=(STEPS + 1, BATCH, *shape)) for name, shape in shapes.items()}
    masses = model.params["link.mass"] * rng.uniform(0.9, 1.1, size=(BATCH, model.n_links))
    return Motion(model, state, u, force, bars, masses)


EVERYONE = np.arange(BATCH)


@pytest.mark.parametrize("is_shared", [True, False], ids=["shared", "per_environment"])
@pytest.mark.parametrize("envs", [[0], [36], [5, 6], [16], range(20, 37), range(3, 20)], ids=str)
def test_batch_size(motion, envs, is_shared):
    """Some environments alone, as in the whole batch."""
    envs = list(envs)
    whole = motion.part(EVERYONE, is_shared)
    assert same(own(motion.part(envs, is_shared)), taken(whole, envs))


def test_place_in_the_batch(motion):
    """The batch in another order, each environment as it was."""
    order = np.random.default_rng(0).permutation(BATCH)
    assert same(own(motion.part(order, False)), taken(motion.part(EVERYONE, False), order))


@pytest.mark.parametrize("threads", [2, 3, 7])
def test_threads(motion, threads):
    """Sums over the batch included."""
    assert same(motion.part(EVERYONE, threads=threads), motion.part(EVERYONE, threads=1))


@pytest.mark.slow  # each width is compiled on its own
@pytest.mark.parametrize("lanes", [1, 8])
def test_pack_width(motion, monkeypatch, lanes):
    """Sums over the batch included."""
    expected = motion.part(EVERYONE)
    monkeypatch.setenv("JOINTGRAD_LANES", str(lanes))
    assert same(motion.part(EVERYONE), expected)


@pytest.mark.parametrize("share", [0.25, 0.5, 0.8])
def test_checkpoint_schedule(motion, share):
    """States recomputed on the way back, sums over the batch included."""
    size = 8 * (motion.model.nq + motion.model.nv)
    state = motion.state
    options = {"threads": 1, "memory": int(share * (STEPS + 1) * BATCH * size)}
    traj = jg.rollout(motion.model, state, motion.u, force=motion.force, **options)
    assert traj.run.schedule.interval > 1  # not every state was kept
    assert same(motion.part(EVERYONE, **options), motion.part(EVERYONE))


def test_steps_one_by_one(motion):
    """jg.step again and again, as one rollout."""
    state = motion.state
    for k in range(STEPS):
        state = jg.step(motion.model, state, motion.u[k], motion.force[k])
    traj = jg.rollout(motion.model, motion.state, motion.u, force=motion.force)
    assert np.array_equal(state.q, traj.last.q) and np.array_equal(state.qd, traj.last.qd)


def test_shared_or_per_environment(motion):
    """Equal parameters given to each environment, as one value for all."""
    each = motion.model.replace({n: np.repeat(v[None], BATCH, 0) for n, v in motion.model.params.items()})
    a = jg.rollout(each, motion.state, motion.u, force=motion.force)
    b = jg.rollout(motion.model, motion.state, motion.u, force=motion.force)
    assert np.array_equal(a.q, b.q) and np.array_equal(a.qd, b.qd)


# an environment that leaves the finite numbers --------------------------------------------------------------------

SICK, WHEN = 18, 4
OTHERS = [env for env in range(BATCH) if env != SICK]


def sickened(motion: Motion, how: str) -> Motion:
    """One environment far too fast from the start, or hit by an absurd push at step WHEN."""
    state, force = motion.state, motion.force
    if how == "from the start":
        qd = state.qd.copy()
        qd[SICK] = 1e200
        state = jg.State(state.q, qd)
    else:
        force = force.copy()
        force[WHEN:, SICK] = 1e308
    return Motion(motion.model, state, motion.u, force, motion.bars, motion.masses)


@pytest.mark.parametrize("how", ["from the start", "on the way"])
def test_freeze_leaves_the_others_alone(motion, how):
    """on_nan="freeze": the others forward and backward as without it, sums over the batch included."""
    silent = {name: bar.copy() for name, bar in motion.bars.items()}
    for bar in silent.values():
        bar[:, SICK] = 0.0
    well = Motion(motion.model, motion.state, motion.u, motion.force, silent, motion.masses)
    ill = sickened(well, how)
    expected, found = well.part(EVERYONE), ill.part(EVERYONE, on_nan="freeze")
    assert same(taken(found, OTHERS), taken(expected, OTHERS))
    assert all(np.array_equal(found[name], expected[name]) for name in expected if name.startswith("param"))
    assert all(np.isfinite(array).all() for array in found.values())


def before(ill: Motion, first: int, bars: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Cotangents of the sick one's start by a motion that ends at its last good state, where all later ones act too."""
    own = {name: bar[:, [SICK]] for name, bar in bars.items()}
    own = {name: np.concatenate([bar[:first], bar[first:].sum(0, keepdims=True)]) for name, bar in own.items()}
    if not first:
        return {name: bar[0, 0] for name, bar in own.items()}
    state = jg.State(ill.state.q[[SICK]], ill.state.qd[[SICK]])
    traj = jg.rollout(ill.model, state, ill.u[:first, [SICK]], force=ill.force[:first, [SICK]])
    grad = traj.backward(own.pop("q", None), own.pop("qd", None), own)
    return {"q": grad.q[0], "qd": grad.qd[0]}


@pytest.mark.parametrize("how", ["from the start", "on the way"])
@pytest.mark.parametrize("share", [1.0, 0.4])
def test_frozen_environment(motion, how, share):
    """It stays in its last good state; what pushes it no further has no cotangent, and cotangents pass through."""
    ill = sickened(motion, how)
    first = WHEN if how == "on the way" else 0
    memory = int(share * (STEPS + 1) * BATCH * 8 * (motion.model.nq + motion.model.nv))
    traj = jg.rollout(ill.model, ill.state, ill.u, force=ill.force, on_nan="freeze", memory=memory, threads=1)
    assert np.array_equal(np.flatnonzero(traj.status >= 0), [SICK]) and traj.status[SICK] == first
    assert all(np.array_equal(traj.q[k, SICK], traj.q[first, SICK]) for k in range(first, STEPS + 1))
    whole = traj.backward(ill.bars["q"], ill.bars["qd"])
    assert not whole.u[first:, SICK].any() and not whole.force[first:, SICK].any()
    expected = before(ill, first, {name: ill.bars[name] for name in ("q", "qd")})
    assert np.allclose(whole.q[SICK], expected["q"], rtol=1e-12, atol=1e-12)
    assert np.allclose(whole.qd[SICK], expected["qd"], rtol=1e-12, atol=1e-12)


def test_outputs_of_a_frozen_environment(motion):
    """Outputs of the state it stays in still answer to where it came from."""
    ill = sickened(motion, "on the way")
    traj = jg.rollout(ill.model, ill.state, ill.u, force=ill.force, on_nan="freeze", outputs=("link.position",))
    bar = ill.bars["link.position"]
    whole = traj.backward(bars={"link.position": bar})
    expected = before(ill, WHEN, {"link.position": bar})
    assert np.allclose(whole.q[SICK], expected["q"], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("how", ["from the start", "on the way"])
def test_raise_names_environment_and_step(motion, how):
    """on_nan="raise", the default: an error that says who, when, and what to do."""
    ill, step = sickened(motion, how), 0 if how == "from the start" else WHEN
    with pytest.raises(jg.SimulationError, match=f'environment {SICK} .* step {step}.*smaller dt.*"freeze"'):
        jg.rollout(ill.model, ill.state, ill.u, force=ill.force)


def test_one_environment_of_a_large_world(monkeypatch):
    """It runs without packs, and has the bits of the same environment among others; so has its gradient."""
    monkeypatch.setattr(runtime, "LARGE_WORLD", 3)
    model = jg.zoo.pendulum(3).compile(dt=1e-2)
    rng = np.random.default_rng(0)
    q, qd, u = rng.normal(size=(5, 3)), rng.normal(size=(5, 3)), rng.normal(size=(20, 5, 3))
    q_bar = rng.normal(size=(5, 3))
    assert (runtime.lanes_for(model, 1), runtime.lanes_for(model, 5)) == (1, runtime.lanes())
    many, one = jg.rollout(model, jg.State(q, qd), u), jg.rollout(model, jg.State(q[2], qd[2]), u[:, 2])
    assert np.array_equal(one.q, many.q[:, 2]) and np.array_equal(one.qd, many.qd[:, 2])
    assert np.array_equal(one.backward(q_bar[2]).qd, many.backward(q_bar).qd[2])
