"""One model in several processes, threads and hands: pickled, copied, saved, forked, interrupted, and its arrays written to."""

import copy
import json
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import jointgrad as jg
from jointgrad.compiler.cache import one_at_a_time
from jointgrad.engine.kernels.workspace import SCHEMA
from jointgrad.engine.run import inputs, sharing

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def model():
    """A ball with a joint limit beside it, on the ground, after use."""
    world = jg.World()
    world.add(jg.zoo.cart_pole())
    ball = jg.Description("ball", base="free")
    ball.add_link("ball", 1.0, inertia=(0.1, 0.1, 0.1)).shapes.append(jg.Shape("sphere", (0.1,)))
    world.add(ball, position=(3.0, 0.0, 0.1))
    world.add_ground()
    model = world.compile(dt=1e-2)
    motion(model).backward(np.ones((24, model.nq)))
    return model


def motion(model, batch=24, steps=8, **options):
    rng = np.random.default_rng(0)
    state = model.initial_state(batch)
    start = jg.State(state.q, state.qd + rng.normal(size=state.qd.shape))
    return jg.rollout(model, start, rng.normal(size=(steps, batch, model.nu)), threads=2, **options)


def same_bits(a, b):
    return a.q.tobytes() == b.q.tobytes() and a.qd.tobytes() == b.qd.tobytes()


# what a worker keeps ----------------------------------------------------------------------------------------------------


def test_a_call_that_did_not_happen_leaves_no_parameters_behind(model, monkeypatch):
    """Parameters count as assembled when the kernel has assembled them, not when it was about to."""
    heavy = model.replace({"link.mass": 3.0 * model.params["link.mass"]})
    truth = motion(heavy)
    motion(model)

    def interrupted(self, kernel):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("jointgrad.engine.run.runtime.Worker.ready", interrupted)
        with pytest.raises(KeyboardInterrupt):
            motion(heavy)
        with pytest.raises(KeyboardInterrupt):
            jg.step(heavy, heavy.initial_state())
    assert same_bits(motion(heavy), truth)


def test_a_worker_that_had_no_environment_has_assembled_nothing(model):
    from jointgrad.engine.run.runtime import worker

    heavy = model.replace({"link.mass": 3.0 * model.params["link.mass"]})
    model.workers.clear()
    truth = motion(heavy, batch=2)
    model.workers.clear()
    motion(model, batch=2)
    with worker(model) as one:
        one.take_params(heavy)
        one.set(first=0, last=0, steps=1, wants_wrenches=0)
        one.run("rollout")
    assert same_bits(motion(heavy, batch=2), truth)


# arrays -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("memory", [None, "8 kB"])
def test_what_the_way_back_needs_cannot_be_written_to(model, memory):
    m = motion(model, memory=memory, outputs=("link.position",))
    shown = [m.q, m.qd, *m.last, m.u, m.outputs["link.position"]]
    for array in shown:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0.0


@pytest.mark.parametrize("keep", [True, False])
def test_what_was_given_may_be_changed_afterwards(model, keep):
    state = model.initial_state(3)
    u, force = np.ones((5, 3, model.nu)), np.ones((3, model.n_links, 6))
    m, other = (jg.rollout(model, state, u.copy(), force=force.copy(), keep=keep) for _ in range(2))
    m = jg.rollout(model, state, u, force=force, keep=keep)
    for array in (u, force, *state):
        array[...] = 7.0
    assert same_bits(m, other)
    assert np.array_equal(m.tangent(qd=np.ones((3, model.nv)))[0], other.tangent(qd=np.ones((3, model.nv)))[0])
    if keep:
        assert m.backward(np.ones((3, model.nq))) == other.backward(np.ones((3, model.nq)))


@pytest.mark.parametrize("name", ["u", "force"])
@pytest.mark.parametrize("memory", [None, "8 kB"])
def test_a_change_of_a_large_array_is_noticed(model, name, memory, monkeypatch):
    """Those are not copied."""
    monkeypatch.setattr(inputs, "SMALL", 0)
    state = model.initial_state(24)
    given = {"u": np.ones((8, 24, model.nu)), "force": np.ones((24, model.n_links, 6))}
    m = jg.rollout(model, state, **given, memory=memory)
    m.backward(np.ones((24, model.nq)))
    given[name][-1, -1] += 1e-9
    passes = [lambda: m.backward(np.ones((24, model.nq))), lambda: m.tangent(q=np.ones((24, model.nq))), m.certificate]
    for derivative in [*passes, lambda: m.q] if memory else passes:
        with pytest.raises(jg.InputError, match=f"{name} was changed in place"):
            derivative()


@pytest.mark.parametrize("memory", [None, "8 kB"])
def test_the_start_is_kept_with_the_states(model, memory, monkeypatch):
    """However large it is."""
    monkeypatch.setattr(inputs, "SMALL", 0)
    state = model.initial_state(24)
    m = jg.rollout(model, state, np.ones((8, 24, model.nu)), memory=memory)
    before = m.backward(np.ones((24, model.nq)))
    state.q[...] = state.qd[...] = 7.0
    assert m.backward(np.ones((24, model.nq))) == before


def test_fingerprints_see_every_number_and_its_place():
    rng = np.random.default_rng(1)
    for n in (1, inputs.ROW - 1, inputs.ROW, 3 * inputs.ROW + 5):
        x = rng.normal(size=n)
        before = inputs.fingerprint(x)
        for k in rng.integers(n, size=20):
            y = x.copy()
            y[k] = np.nextafter(y[k], np.inf)
            assert inputs.fingerprint(y) != before
        for y in (x[::-1], np.roll(x, 1), rng.permutation(x)):
            assert n == 1 or inputs.fingerprint(np.ascontiguousarray(y)) != before
        assert inputs.fingerprint(x.copy()) == before


def test_a_step_gives_a_state_of_ones_own(model):
    for batch in (None, 2, 24):
        for force in (None, np.zeros((*(() if batch is None else (batch,)), model.n_links, 6))):
            found = jg.step(model, model.initial_state(batch), force=force)
            found.q[...] = 0.0


def test_known_states_may_be_changed_afterwards(model):
    from jointgrad.engine.run.rollout import known_motion

    m = motion(model)
    q, qd = m.q.copy(), m.qd.copy()
    again = known_motion(model, (q, qd), m.u)
    q[...], qd[...] = 0.0, 0.0
    assert again.backward(np.ones((24, model.nq))) == m.backward(np.ones((24, model.nq)))


def test_equality_of_what_holds_arrays(model):
    state = model.initial_state(2)
    assert state == model.initial_state(2) and state != model.initial_state(3) and state != (state.q, state.qd)
    assert state != jg.State(state.q + 1.0, state.qd)
    m = motion(model)
    one, two = (m.backward(np.ones((24, model.nq))) for _ in range(2))
    assert one == two and one != m.backward(2.0 * np.ones((24, model.nq)))
    with pytest.raises(TypeError, match="unhashable"):
        hash(state)


# copies -----------------------------------------------------------------------------------------------------------------


def pickled(x):
    return pickle.loads(pickle.dumps(x))


def cloudpickled(x):
    cloudpickle = pytest.importorskip("cloudpickle")
    return pickle.loads(cloudpickle.dumps(x))


@pytest.mark.parametrize("way", [pickled, cloudpickled, copy.deepcopy, copy.copy])
def test_a_model_and_its_motion_are_copied_after_use(model, way):
    m = motion(model)
    assert same_bits(motion(way(model)), m)
    own = model.replace({"link.mass": np.stack([model.params["link.mass"] * k for k in (1.0, 2.0)])})
    assert same_bits(motion(way(own), batch=2), motion(own, batch=2))
    twin = way(m)
    assert same_bits(twin, m)
    assert twin.backward(np.ones((24, model.nq))) == m.backward(np.ones((24, model.nq)))


def _bits(model):
    return motion(model).q.tobytes()


def test_a_model_goes_to_another_process(model):
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        assert pool.submit(_bits, model).result(120) == _bits(model)


def test_a_simulator_is_copied_after_use(model):
    torch = pytest.importorskip("torch")
    from jointgrad.torch import Simulator

    layer = Simulator(model, threads=1)
    q, qd = (torch.tensor(x) for x in model.initial_state(2))
    truth = layer(q, qd + 1.0)[0]
    for way in (pickled, cloudpickled, copy.deepcopy):
        assert torch.equal(way(layer)(q, qd + 1.0)[0], truth)


# files ------------------------------------------------------------------------------------------------------------------


def grafted(model):
    network = jg.MLP((3,), seed=2)
    return jg.graft(model, "joint.force", ["joint.velocity"], network, rows=["*"], mode="dissipate")


def per_environment(model):
    return model.replace({"link.mass": np.stack([model.params["link.mass"] * k for k in (1.0, 2.0)])})


@pytest.mark.parametrize("made", [lambda m: m, grafted, per_environment, lambda m: per_environment(grafted(m))])
def test_a_saved_model_moves_with_the_same_bits(model, tmp_path, made):
    ours = made(model).replace({"pair.friction": model.params["pair.friction"] + 0.125})
    ours.save(tmp_path / "model.npz")
    loaded = jg.load_model(tmp_path / "model.npz")
    assert same_bits(motion(loaded, batch=2), motion(ours, batch=2))
    assert loaded.pair_names == ours.pair_names and loaded.topology.grafts == ours.topology.grafts
    loaded.save(tmp_path / "again.npz")


@pytest.mark.filterwarnings("ignore")  # of shapes that touch nothing
def test_robots_of_the_zoo_are_saved(tmp_path):
    for make in (jg.zoo.laikago, jg.zoo.ant, jg.zoo.humanoid, jg.zoo.swimmer, jg.zoo.franka_arm, jg.zoo.racecar):
        world = jg.World()
        world.add(make())
        world.add_ground(friction=0.3)
        world.compile(dt=2e-3, contact=jg.Spring()).save(tmp_path / "model.npz")
        assert jg.load_model(tmp_path / "model.npz").params["world.dt"] == 2e-3


def test_a_world_that_was_changed_since_is_not_saved_as_another(tmp_path):
    world = jg.World()
    world.add(jg.zoo.pendulum())
    model = world.compile()
    world.add(jg.zoo.pendulum(), name="second")
    model.save(tmp_path / "model.npz")  # what was added later is not in it
    world.placed[0].robot.links.popitem()
    with pytest.raises((jg.InputError, jg.ModelError)):
        model.save(tmp_path / "model.npz")


def edited(said, **changed):
    return json.dumps(said | changed).encode()


def test_a_hostile_model_file_is_refused(model, tmp_path):
    path = tmp_path / "model.npz"
    model.save(path)
    with np.load(path) as file:
        arrays = dict(file)
    said = json.loads(arrays["model"].tobytes())
    texts = [
        b"", b"{", b"[" * 100_000, b"null", edited(said, format="other"), edited(said, recipe=None),
        edited(said, recipe={"kind": "os.system", "fields": {}}), edited(said, recipe={"array": "param.link.mass"}),
        edited(said, recipe={"kind": "Recipe", "fields": {"world": {"dict": []}}}),
        edited(said, recipe={"kind": "MLP", "fields": {}}), json.dumps(said).replace('"name"', '"pool"').encode(),
        json.dumps(said).replace("sphere", "mesh").encode(), json.dumps(said).replace("0.1", '"0.1"').encode(),
    ]  # fmt: skip
    for text in texts:
        np.savez(path, **arrays | {"model": np.frombuffer(text, np.uint8)})
        with pytest.raises(jg.InputError):
            jg.load_model(path)
    for name, array in (
        ("param.link.mass", -arrays["param.link.mass"]), ("param.world.dt", np.array(np.nan)),
        ("param.joint.axis", np.zeros(3)), ("param.link.com", np.array([{"a": 1}], dtype=object)),
    ):  # fmt: skip
        np.savez(path, **arrays | {name: array})
        with pytest.raises(jg.InputError):
            jg.load_model(path)


def test_a_model_file_that_unpacks_to_too_much_is_refused(tmp_path):
    np.savez_compressed(tmp_path / "model.npz", model=np.zeros(1_000_001, np.uint8))
    with jg.budget(unpacked_bytes=1e6), pytest.raises(jg.InputError, match="unpacked_bytes"):
        jg.load_model(tmp_path / "model.npz")
    with pytest.raises(jg.InputError, match="there is no file"):
        jg.load_model(tmp_path / "absent.npz")


# forks ------------------------------------------------------------------------------------------------------------------

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
# said by JAX, which other tests of the process may have started
warned_of_forks = pytest.mark.filterwarnings("ignore:os.fork")


@needs_fork
@warned_of_forks
def test_a_fork_after_use(model):
    """The threads of the parent are not in the child, which waits for them for ever if it thinks that they are."""
    truth = _bits(model)
    context = multiprocessing.get_context("fork")
    answer, question = context.Pipe(False)
    child = context.Process(target=lambda: question.send(_bits(model)))
    child.start()
    try:
        assert answer.poll(60), "the child hangs"
        assert answer.recv() == truth
    finally:
        child.kill()
        child.join()


@needs_fork
@warned_of_forks
def test_a_fork_while_another_thread_compiles():
    """The lock that it holds is set free for the child."""
    held = threading.Event()

    def compiling():
        with one_at_a_time:
            held.set()
            time.sleep(0.2)

    thread = threading.Thread(target=compiling)
    thread.start()
    held.wait()
    pid = os.fork()
    if pid == 0:
        os._exit(0 if one_at_a_time.acquire(timeout=10) else 1)
    thread.join()
    assert os.waitpid(pid, 0)[1] == 0


@needs_fork
@warned_of_forks
def test_workers_of_a_data_loader(model):
    torch = pytest.importorskip("torch")

    class Motions(torch.utils.data.Dataset):
        def __len__(self):
            return 1

        def __getitem__(self, index):
            return torch.tensor(motion(model).q)

    loader = torch.utils.data.DataLoader(Motions(), num_workers=1, timeout=60, multiprocessing_context="fork")
    assert torch.equal(next(iter(loader))[0], torch.tensor(motion(model).q))


# Ctrl-C -----------------------------------------------------------------------------------------------------------------

LONG = """
import os, signal, sys, threading, time
import numpy as np
import jointgrad as jg
ball = jg.Description("ball", base="free")
ball.add_link("ball", 1.0, inertia=(0.1, 0.1, 0.1))
model = ball.compile(dt=1e-6)
start = model.initial_state(16)
short = jg.rollout(model, start, steps=300)
truth = short.backward(np.ones((16, model.nq)))
short.tangent(q=np.ones((16, model.nq)))
what, steps = sys.argv[1], 150_000_000
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
if what != "rollout":
    # few states are kept, so that the way back repeats many steps
    motion = jg.rollout(model, start, steps=300_000, memory="8 kB", threads=1)
calls = {
    "rollout": lambda: jg.rollout(model, start, steps=steps, keep=False),
    "backward": lambda: motion.backward(np.ones((16, model.nq))),
}
sent = []
def kick():
    time.sleep(0.3)
    sent.append(time.perf_counter())
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=kick, daemon=True).start()
try:
    calls[what]()
    print("finished")
except KeyboardInterrupt:
    print(time.perf_counter() - sent[0])
again = jg.rollout(model, start, steps=300)
assert again.q.tobytes() == short.q.tobytes()
assert again.backward(np.ones((16, model.nq))) == truth
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("what", ["rollout", "backward"])
def test_ctrl_c_ends_a_call_that_would_take_minutes(what):
    found = subprocess.run(
        [sys.executable, "-P", "-c", LONG, what], env=os.environ | {"PYTHONPATH": str(ROOT)}, timeout=120,
        capture_output=True, text=True,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    print(f"Ctrl-C acted after {float(found.stdout) * 1e3:.1f} ms")
    assert float(found.stdout) < 5.0


def test_who_is_interrupted_waits_for_those_at_work(model, monkeypatch):
    """Nothing that a worker writes to is given back while it runs; and none of them is used again."""
    monkeypatch.setattr(sharing, "WORTH_A_WATCH", 0)
    model.workers.clear()

    def raised(*_):
        raise InterruptedError("from a signal handler")

    before = signal.signal(signal.SIGALRM, raised)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(InterruptedError, match="handler"):
            while True:
                motion(model, batch=64, steps=20_000, keep=False)
    finally:
        signal.signal(signal.SIGALRM, before)
    stopped = SCHEMA.slots["at.is_stopped"]
    assert not any(one.frame.integers[stopped] for idle in model.workers.values() for one in idle)
    assert same_bits(motion(model), motion(copy.deepcopy(model)))
