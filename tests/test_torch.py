"""The layer of PyTorch: its own checks pass, and it behaves as a layer does."""

from __future__ import annotations

import gc
import threading
from pathlib import Path

import numpy as np
import pytest
from layer_cases import BATCH, NAMES, STEPS, direction, everything, inputs, sliding_ball

import jointgrad as jg

torch = pytest.importorskip("torch", reason="the extra [torch] is not installed")

from torch.autograd import gradcheck  # noqa: E402
from torch.func import grad, jacrev, vmap  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from jointgrad.compiler.elementary import safe_div, safe_root  # noqa: E402
from jointgrad.engine.run.call import Call  # noqa: E402
from jointgrad.engine.run.outputs import OUTPUTS  # noqa: E402
from jointgrad.model.arrays import PARAMS  # noqa: E402
from jointgrad.torch import Simulator  # noqa: E402

CORE = ("q", "qd", "u", "force")


@pytest.fixture(scope="module")
def simulator():
    return Simulator(sliding_ball())


def tensors(model, batch=BATCH, steps=STEPS, dtype=torch.float64):
    given = inputs(model, batch, steps).items()
    return {name: torch.tensor(x, dtype=dtype, requires_grad=True) for name, x in given}


def stepped(simulator, names):
    def run(*given):
        named = dict(zip(names, given, strict=True))
        params = {name: x for name, x in named.items() if name not in CORE}
        return simulator(named["q"], named["qd"], named.get("u"), named.get("force"), params)

    return run


def rolled(simulator, names, outputs=(), **options):
    def run(*given):
        named = dict(zip(names, given, strict=True))
        params = {name: x for name, x in named.items() if name not in CORE}
        state = named["q"], named["qd"], named.get("u")
        motion = simulator.rollout(*state, force=named.get("force"), params=params, outputs=outputs, **options)
        return motion.q, motion.qd, *motion.outputs.values()

    return run


def loss_of(run):
    def loss(*given):
        return sum((k + 1.0) * (x**3).sum() for k, x in enumerate(run(*given)))

    return loss


@pytest.mark.parametrize("batch", [None, BATCH])
def test_gradcheck_of_a_step(simulator, batch):
    given = tensors(simulator.model, batch, None)
    assert gradcheck(stepped(simulator, given), tuple(given.values()), eps=1e-6, atol=1e-5)


@pytest.mark.parametrize("batch", [None, BATCH])
def test_gradcheck_of_a_rollout(simulator, batch):
    given = tensors(simulator.model, batch)
    run = rolled(simulator, given, tuple(OUTPUTS))
    assert gradcheck(run, tuple(given.values()), eps=1e-6, atol=2e-4, rtol=1e-3)


@pytest.fixture(scope="module")
def tangle():
    model, given = everything()
    return Simulator(model), {name: torch.tensor(x) for name, x in given.items()}


@pytest.mark.slow
@pytest.mark.parametrize("steps", [None, STEPS])
@pytest.mark.parametrize("name", [*CORE, *PARAMS])
def test_gradcheck_of_every_kind_of_input(tangle, name, steps):
    """Along one direction of each, where all laws of contact, ties, tendons and drag are at work.

    Loads of contact are left out: here they are so large that differences drown in their last digits.
    """
    simulator, given = tangle
    along = torch.tensor(direction(name, given[name].numpy()))
    names = (*CORE, name) if name in PARAMS else CORE
    run = stepped(simulator, names) if steps is None else rolled(simulator, names, ("link.position", "link.velocity"))

    def moved(far):
        x = given | {name: given[name] + torch.where(along == 0.0, 0.0, far * along)}
        if steps is not None:
            x["u"] = x["u"].expand(steps, -1)
        return run(*(x[n] for n in names))

    start = torch.zeros((), dtype=torch.float64, requires_grad=True)
    assert gradcheck(moved, (start,), eps=1e-6, atol=1e-6, rtol=1e-3, fast_mode=True)


def test_gradcheck_would_notice(simulator, monkeypatch):
    """A cotangent a hundredth too large does not pass."""
    whole = Call.backward
    monkeypatch.setattr(Call, "backward", lambda *a, **k: [np.asarray(1.01 * x) for x in whole(*a, **k)])
    given = tensors(simulator.model, None, None)
    assert not gradcheck(stepped(simulator, given), tuple(given.values()), eps=1e-6, atol=1e-5, raise_exception=False)


def test_guards_hold_where_small_numbers_are_flushed():
    """JAX does it on all its threads, other libraries on being loaded."""
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor does not flush")
    try:
        assert 1e-310 * np.ones(1) == 0.0
        assert safe_div(1.0, 0.0) == 0.0 and safe_root(-0.0) == 0.0
    finally:
        torch.set_flush_denormal(False)


def test_same_bits_as_the_core(simulator):
    given = tensors(simulator.model)
    found = torch.autograd.grad(loss_of(rolled(simulator, given))(*given.values()), tuple(given.values()))
    arrays = {name: x.detach().numpy() for name, x in given.items()}
    model = simulator.model.replace({name: arrays[name] for name in NAMES})
    motion = jg.rollout(model, jg.State(arrays["q"], arrays["qd"]), arrays["u"], force=arrays["force"])
    gradient = motion.backward(3 * motion.q**2, 6 * motion.qd**2)
    for name, bar in zip(given, found, strict=True):
        expected = getattr(gradient, name) if name in CORE else gradient.params[name]
        assert np.allclose(bar.numpy(), expected, rtol=1e-12, atol=1e-12), name


def test_repeated_and_reentrant_backward(simulator):
    given = tensors(simulator.model)
    loss = loss_of(rolled(simulator, given))(*given.values())
    first = torch.autograd.grad(loss, tuple(given.values()), retain_graph=True)
    again = torch.autograd.grad(loss, tuple(given.values()), retain_graph=True)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))

    def inner(*x):  # runs a backward pass of its own while the outer one is under way
        return checkpoint(loss_of(rolled(simulator, given)), *x, use_reentrant=True)

    third = torch.autograd.grad(loss, tuple(given.values()))
    leaves = [x.detach().clone().requires_grad_() for x in given.values()]
    inner(*leaves).backward()
    assert all(torch.equal(a, b.grad) for a, b in zip(third, leaves, strict=True))


@pytest.mark.parametrize("kind", ["step", "rollout", "last"])
def test_vmap(simulator, kind):
    """vmap, its gradient and the gradient of each copy, parameters mapped and not, axes anywhere."""
    steps = None if kind == "step" else STEPS
    given = tensors(simulator.model, BATCH, steps)
    names, count = tuple(given), 3
    options = {"only_last": True} if kind == "last" else {}
    run = stepped(simulator, names) if kind == "step" else rolled(simulator, names, ("link.position",), **options)
    loss = loss_of(run)
    dims = {"q": 0, "qd": 1, "u": given["u"].ndim, "link.mass": 0, "pair.friction": 1}
    scale = torch.linspace(0.98, 1.02, count, dtype=torch.float64)
    mapped = {n: torch.stack([(s if n in dims else 1.0) * x for s in scale], dims.get(n, 0)) for n, x in given.items()}
    mapped = {n: (x if n in dims else given[n]).detach().requires_grad_() for n, x in mapped.items()}
    in_dims = tuple(dims.get(n) for n in names)
    own = [
        [x.select(d, k) if d is not None else x for d, x in zip(in_dims, mapped.values(), strict=True)]
        for k in range(count)
    ]
    outer = vmap(run, in_dims=in_dims)(*mapped.values())
    single = [run(*x) for x in own]
    assert all(torch.equal(outer[j][k], single[k][j]) for j in range(len(outer)) for k in range(count))
    each = vmap(grad(loss, argnums=tuple(range(len(names)))), in_dims=in_dims)(*mapped.values())
    for k in range(count):
        leaves = [x.detach().requires_grad_() for x in own[k]]
        expected = torch.autograd.grad(loss(*leaves), leaves)
        for name, a, b in zip(names, each, expected, strict=True):
            assert torch.allclose(a[k], b, rtol=1e-11, atol=1e-12), name
    total = torch.autograd.grad(vmap(loss, in_dims=in_dims)(*mapped.values()).sum(), mapped["link.com"])[0]
    assert torch.allclose(total, each[names.index("link.com")].sum(0), rtol=1e-11)


def test_jacobian_by_mapping_the_reverse(simulator):
    given = tensors(simulator.model, None, None)
    J = jacrev(lambda q: simulator(q, given["qd"], given["u"])[1])(given["q"])
    rows = [torch.autograd.grad(simulator(given["q"], given["qd"], given["u"])[1][k], given["q"])[0] for k in range(7)]
    assert torch.allclose(J, torch.stack(rows), rtol=1e-12, atol=1e-14)


# the compiler of PyTorch looks at the .grad of every tensor it meets
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
def test_across_graph_breaks(simulator):
    given = tensors(simulator.model, BATCH, None)

    def loss(q, qd, u):
        q, qd = simulator(q.sin(), qd, u)
        return (2 * q).sum() + simulator.rollout(q, qd, u[None]).q.sum()

    plain = loss(given["q"], given["qd"], given["u"])
    compiled = torch.compile(loss, backend="eager")(given["q"], given["qd"], given["u"])
    assert torch.equal(plain, compiled)
    a, b = (torch.autograd.grad(x, given["q"])[0] for x in (plain, compiled))
    assert torch.equal(a, b)


def test_float32_is_computed_in_double(simulator):
    double, single = tensors(simulator.model), tensors(simulator.model, dtype=torch.float32)
    run = rolled(simulator, double, ("link.position",))
    found, expected = run(*single.values()), run(*(x.detach().double() for x in single.values()))
    assert all(a.dtype is torch.float32 and torch.equal(a, b.float()) for a, b in zip(found, expected, strict=True))
    sum(x.sum() for x in found).backward()
    assert all(x.grad.dtype is torch.float32 for x in single.values())


def test_without_gradient_nothing_is_kept(simulator):
    given = tensors(simulator.model)
    with torch.no_grad():
        found = rolled(simulator, given)(*given.values())
    assert all(x.grad_fn is None and not x.requires_grad for x in found)
    assert not simulator(given["q"].detach(), given["qd"].detach())[0].requires_grad


def test_centre_of_mass(simulator):
    """Against a sum over the links that jg.inspect sees; differentiable, the own share of the parameters included."""
    given = tensors(simulator.model)
    params = {"link.mass": given["link.mass"], "link.com": given["link.com"]}
    motion = simulator.rollout(
        given["q"], given["qd"], given["u"], params=params, outputs=("link.position", "link.rotation")
    )
    centre = simulator.centre_of_mass(motion, params)
    model = simulator.model.replace({name: x.detach().numpy() for name, x in params.items()})
    mass, expected = model.params["link.mass"], np.zeros((STEPS + 1, BATCH, 3))
    for t, b, j in np.ndindex(STEPS + 1, BATCH, model.n_links):
        info = jg.inspect(model, jg.State(motion.q[t, b].detach().numpy(), motion.qd[t, b].detach().numpy()))
        turned = info.link_rotation[j] @ model.params["link.com"][j]
        expected[t, b] += mass[j] / mass.sum() * (info.link_position[j] + turned)
    assert np.allclose(centre.detach(), expected, atol=1e-12)
    names = ("q", "qd", "link.mass", "link.com")

    def run(q, qd, mass, com):
        own = {"link.mass": mass, "link.com": com}
        moved = simulator.rollout(q, qd, given["u"], params=own, outputs=("link.position", "link.rotation"))
        return simulator.centre_of_mass(moved, own)

    assert gradcheck(run, tuple(given[n] for n in names), eps=1e-6, atol=2e-4, rtol=1e-3)
    with pytest.raises(jg.InputError, match="link.rotation"):
        simulator.centre_of_mass(simulator.rollout(given["q"], given["qd"], steps=1))


def test_no_copies(simulator):
    """The core reads the tensor's own memory, and a result is the core's own array."""
    u = torch.zeros(STEPS, BATCH, 1, dtype=torch.float64, requires_grad=True)
    given = tensors(simulator.model)
    motion = simulator.rollout(given["q"], given["qd"], u)
    kept = motion.q.grad_fn.motion.motion
    assert kept.run.inputs.u.ctypes.data == u.data_ptr() and kept.run.q.ctypes.data == motion.q.data_ptr()


def test_changes_in_place_are_noticed(simulator):
    given = tensors(simulator.model)
    u = given["u"].detach().clone()
    motion = simulator.rollout(given["q"], given["qd"], u)
    u += 1.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        motion.q.sum().backward()


def test_second_derivatives_are_refused(simulator):
    given = tensors(simulator.model, BATCH, None)
    first = torch.autograd.grad(simulator(given["q"], given["qd"])[0].sum(), given["q"], create_graph=True)[0]
    with pytest.raises(NotImplementedError, match="jg.hessian_product"):
        first.sum().backward()


def test_two_simulators_in_two_threads():
    simulators = [Simulator(sliding_ball()), Simulator(jg.zoo.cart_pole().compile())]
    cases = [tensors(simulators[0].model), None]
    model = simulators[1].model
    one = torch.ones(4, 2, dtype=torch.float64, requires_grad=True)
    cases[1] = {"q": one, "qd": one, "u": torch.ones(50, 4, model.nu, dtype=torch.float64, requires_grad=True)}

    def gradient(k):
        loss = loss_of(rolled(simulators[k], cases[k]))(*cases[k].values())
        return torch.autograd.grad(loss, cases[k]["u"])[0]

    expected, wrong = [gradient(k) for k in range(2)], []

    def work(k):
        wrong.extend(k for _ in range(50) if not torch.equal(gradient(k), expected[k]))

    threads = [threading.Thread(target=work, args=(k,)) for k in (0, 1, 0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_memory_budget_gives_the_same_bits(simulator):
    given = tensors(simulator.model, BATCH, 300)
    found = []
    for memory in (None, 4000):
        run = rolled(simulator, given, only_last=True, memory=memory)
        found.append(torch.autograd.grad(loss_of(run)(*given.values()), tuple(given.values())))
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_memory_does_not_grow(simulator):
    """The long form, 10,000 calls, is benchmarks/layers.py."""
    given = tensors(simulator.model)

    def once():
        loss_of(rolled(simulator, given, ("link.position",)))(*given.values()).backward()

    for _ in range(100):
        once()
    gc.collect()
    before = resident()
    for _ in range(500):
        once()
    assert resident() - before < 2e6


BAD = {
    "q": (lambda q: q[:, :3], r"q has shape \(2, 3\), but must have \(8,\) or \(batch, 8\)"),
    "qd": (lambda x: x[:1], r"qd has shape \(1, 7\), but must have \(2, 7\)"),
    "u": (lambda x: x[..., :0], r'u has shape .*first missing: "motor"'),
    "force": (lambda x: x[..., :5], r"force has shape .*\(3, 2, 3, 6\), or \(2, 3, 6\)"),
    "link.mass": (lambda x: x[:1], r'params\["link.mass"\] has shape \(1,\), but must have \(3,\)'),
    "link.com": (lambda x: x.detach().numpy(), r'params\["link.com"\] must be a torch.Tensor, but is ndarray'),
    "joint.damping": (lambda x: x.long(), r'params\["joint.damping"\] has dtype torch.int64'),
    "world.gravity": (lambda x: x * float("nan"), r'"world.gravity" is not finite'),
    "shape.size": (lambda x: x.to("meta"), r"meta device"),
}


@pytest.mark.parametrize("name", BAD)
def test_errors_name_the_tensor(simulator, name):
    given, (spoil, message) = tensors(simulator.model), BAD[name]
    given[name] = spoil(given[name])
    with pytest.raises(jg.InputError, match=message):
        rolled(simulator, given)(*given.values())


def test_errors_of_values(simulator):
    given = tensors(simulator.model, BATCH, None)
    with pytest.raises(jg.InputError, match=r"^q contains nan at \(0, 0\)"):
        simulator(given["q"] * float("nan"), given["qd"])
    with pytest.raises(jg.InputError, match='there is no parameter "mass"'):
        simulator(given["q"], given["qd"], params={"mass": given["link.mass"]})
    with pytest.raises(jg.InputError, match='there is no output "height"'):
        simulator.rollout(given["q"], given["qd"], steps=2, outputs=("height",))
    with pytest.raises(jg.InputError, match="only_last=True"):
        simulator.rollout(given["q"], given["qd"], steps=2, memory="1 MB")
    with pytest.raises(jg.InputError, match="the gradient that the loss hands back for q contains nan"):
        (simulator(given["q"], given["qd"])[0] * float("nan")).sum().backward()
