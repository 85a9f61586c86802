"""The functions of JAX: its own checks pass, under jit, vmap, grad and scan."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from layer_cases import BATCH, NAMES, STEPS, direction, everything, inputs, sliding_ball

import jointgrad as jg

jax = pytest.importorskip("jax", reason="the extra [jax] is not installed")

import jax.numpy as jnp  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

from jointgrad.engine.run.call import Call  # noqa: E402
from jointgrad.engine.run.outputs import OUTPUTS  # noqa: E402
from jointgrad.jax import centre_of_mass, rollout, step  # noqa: E402
from jointgrad.model.arrays import PARAMS  # noqa: E402

CORE = ("q", "qd", "u", "force")


@pytest.fixture(scope="module", autouse=True)
def x64():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.fixture(scope="module")
def model():
    return sliding_ball()


def arrays(model, batch=BATCH, steps=STEPS):
    return {name: jnp.asarray(x) for name, x in inputs(model, batch, steps).items()}


def function(model, names, steps=STEPS, **options):
    def run(*given):
        named = dict(zip(names, given, strict=True))
        state = named["q"], named["qd"], named.get("u")
        params = {name: x for name, x in named.items() if name not in CORE}
        if steps is None:
            return step(model, *state, force=named.get("force"), params=params)
        motion = rollout(model, *state, force=named.get("force"), params=params, **options)
        return motion.q, motion.qd, *motion.outputs.values()

    return run


def loss_of(run):
    return lambda *given: sum((k + 1.0) * (x**3).sum() for k, x in enumerate(run(*given)))


@pytest.mark.parametrize("batch", [None, BATCH])
@pytest.mark.parametrize("steps", [None, STEPS])
def test_check_grads(model, batch, steps):
    given = arrays(model, batch, steps)
    options = {"outputs": tuple(OUTPUTS)} if steps else {}
    run = jax.jit(function(model, given, steps, **options))
    check_grads(run, tuple(given.values()), order=1, modes="rev", eps=1e-6, atol=1e-3, rtol=1e-3)


@pytest.fixture(scope="module")
def tangle():
    model, given = everything()
    return model, {name: jnp.asarray(x) for name, x in given.items()}


@pytest.mark.slow
@pytest.mark.parametrize("steps", [None, STEPS])
@pytest.mark.parametrize("name", [*CORE, *PARAMS])
def test_check_grads_of_every_kind_of_input(tangle, name, steps):
    """Along one direction of each, where all laws of contact, ties, tendons and drag are at work."""
    model, given = tangle
    along = direction(name, np.asarray(given[name]))
    names = (*CORE, name) if name in PARAMS else CORE
    run = function(model, names, steps)

    def moved(far):
        x = given | {name: given[name] + jnp.where(along == 0.0, 0.0, far * along)}
        if steps is not None:
            x["u"] = jnp.broadcast_to(x["u"], (steps, model.nu))
        return run(*(x[n] for n in names))

    check_grads(moved, (0.0,), order=1, modes="rev", eps=1e-6, atol=1e-5, rtol=1e-3)


def test_check_grads_would_notice(model, monkeypatch):
    whole = Call.backward
    monkeypatch.setattr(Call, "backward", lambda *a, **k: [np.asarray(1.01 * x) for x in whole(*a, **k)])
    given = arrays(model, None, None)
    with pytest.raises(AssertionError):
        check_grads(
            function(model, given, None), tuple(given.values()), order=1, modes="rev", eps=1e-6, atol=1e-3, rtol=1e-3
        )


def test_same_bits_as_the_core(model):
    given = arrays(model)
    found = jax.jit(jax.grad(loss_of(function(model, given)), argnums=tuple(range(len(given)))))(*given.values())
    plain = {name: np.asarray(x) for name, x in given.items()}
    own = model.replace({name: plain[name] for name in NAMES})
    motion = jg.rollout(own, jg.State(plain["q"], plain["qd"]), plain["u"], force=plain["force"])
    gradient = motion.backward(3 * motion.q**2, 6 * motion.qd**2)
    for name, bar in zip(given, found, strict=True):
        expected = getattr(gradient, name) if name in CORE else gradient.params[name]
        assert np.allclose(bar, expected, rtol=1e-12, atol=1e-12), name


def test_centre_of_mass(model):
    """Against a sum over links; differentiable, the masses' own share included."""
    given = arrays(model)

    def centre(qd, mass):
        params = {"link.mass": mass}
        outputs = ("link.position", "link.rotation")
        return centre_of_mass(model, rollout(model, given["q"], qd, given["u"], params=params, outputs=outputs), params)

    motion = rollout(model, given["q"], given["qd"], given["u"], outputs=("link.position", "link.rotation"))
    place = motion.outputs["link.position"] + jnp.einsum(
        "tbnij,nj->tbni", motion.outputs["link.rotation"], model.params["link.com"]
    )
    mass = given["link.mass"]
    assert np.allclose(centre(given["qd"], mass), jnp.average(place, axis=2, weights=mass), atol=1e-13)
    check_grads(centre, (given["qd"], mass), order=1, modes="rev", eps=1e-6, atol=1e-3, rtol=1e-3)
    with pytest.raises(jg.InputError, match="link.rotation"):
        centre_of_mass(model, rollout(model, given["q"], given["qd"], steps=1))


def test_repeated_and_threaded_backward(model):
    """The same bits again, and from several threads at once."""
    given = arrays(model)
    gradient = jax.jit(jax.grad(loss_of(function(model, given)), argnums=tuple(range(len(given)))))
    expected = [np.asarray(x).tobytes() for x in gradient(*given.values())]

    def again(_):
        return [np.asarray(x).tobytes() for x in gradient(*given.values())]

    with ThreadPoolExecutor(2) as pool:
        assert all(found == expected for found in pool.map(again, range(40)))


@pytest.mark.parametrize(
    ("steps", "options"), [(None, {}), (STEPS, {"outputs": "link.position"}), (STEPS, {"only_last": True})]
)
def test_vmap(model, steps, options):
    given = arrays(model, BATCH, steps)
    names = tuple(given)
    axes = {"q": 0, "qd": 1, "u": 0, "link.mass": 0}
    mapped = [jnp.stack([0.99 * x, x, 1.01 * x], axes[n]) if n in axes else x for n, x in given.items()]
    in_axes = tuple(axes.get(n) for n in names)
    loss = loss_of(function(model, names, steps, **options))
    of_all = tuple(range(len(names)))
    each = jax.jit(jax.vmap(jax.value_and_grad(loss, argnums=of_all), in_axes=in_axes))(*mapped)
    for k in range(3):
        own = [x if a is None else jnp.take(x, k, axis=a) for x, a in zip(mapped, in_axes, strict=True)]
        value, expected = jax.value_and_grad(loss, argnums=of_all)(*own)
        assert np.allclose(each[0][k], value, rtol=1e-13)
        for name, a, b in zip(names, each[1], expected, strict=True):
            assert np.allclose(a[k], b, rtol=1e-10, atol=1e-12), name


def test_scan_is_a_rollout(model):
    given = arrays(model, None, 20)

    def scanned(us):
        def body(state, u):
            state = step(model, *state, u)
            return state, state[0]

        return jax.lax.scan(body, (given["q"], given["qd"]), us)[1].sum()

    whole = jax.grad(lambda us: rollout(model, given["q"], given["qd"], us).q[1:].sum())(given["u"])
    assert np.allclose(jax.jit(jax.grad(scanned))(given["u"]), whole, rtol=1e-10, atol=1e-13)


def test_jacobian(model):
    given = arrays(model, None, None)
    J = jax.jacrev(lambda q: step(model, q, given["qd"], given["u"])[1])(given["q"])
    row = jax.grad(lambda q: step(model, q, given["qd"], given["u"])[1][2])(given["q"])
    assert np.allclose(J[2], row, rtol=1e-12, atol=1e-14)


def test_float32_is_said(model):
    given = inputs(model, None, None)
    jax.config.update("jax_enable_x64", False)
    try:
        with pytest.warns(UserWarning, match="jax_enable_x64 is off"):
            q, _ = step(model, given["q"], given["qd"], given["u"])
    finally:
        jax.config.update("jax_enable_x64", True)
    assert q.dtype == jnp.float32
    rounded = jg.State(*(given[n].astype(np.float32).astype(float) for n in ("q", "qd")))
    expected = jg.step(model, rounded, given["u"].astype(np.float32).astype(float)).q
    assert np.array_equal(np.asarray(q), expected.astype(np.float32))


def test_second_derivatives_are_refused(model):
    given = arrays(model, None, None)
    first = jax.grad(lambda q: step(model, q, given["qd"])[0].sum())
    with pytest.raises(NotImplementedError, match="jg.hessian_product"):
        jax.grad(lambda q: first(q).sum())(given["q"])


BAD = {
    "q": (lambda x: x[:, :3], r"q has shape \(2, 3\), but must have \(8,\) or \(batch, 8\)"),
    "qd": (lambda x: x[:1], r"qd has shape \(1, 7\), but must have \(2, 7\)"),
    "u": (lambda x: x[..., :0], r'u has shape .*first missing: "motor"'),
    "force": (lambda x: x[..., :5], r"force has shape .*\(3, 2, 3, 6\), or \(2, 3, 6\)"),
    "link.mass": (lambda x: x[:1], r'params\["link.mass"\] has shape \(1,\), but must have \(3,\)'),
    "link.com": (lambda x: "heavy", r'params\["link.com"\] must be an array of numbers, but is str'),
    "joint.damping": (lambda x: x.astype(int), r'params\["joint.damping"\] has dtype int'),
}


@pytest.mark.parametrize("name", BAD)
def test_errors_name_the_array(model, name):
    given, (spoil, message) = arrays(model), BAD[name]
    given[name] = spoil(given[name])
    with pytest.raises(jg.InputError, match=message):
        function(model, given)(*given.values())


def test_errors_of_values(model):
    given = arrays(model, None, None)
    with pytest.raises(Exception, match=r"q contains nan at \(0, 0\)"):
        jax.block_until_ready(jax.jit(lambda q: step(model, q, given["qd"]))(given["q"] * jnp.nan))
