"""Weights of grafts go to torch and to files and come back; torch's own network says what the engine's does."""

from __future__ import annotations

import json
import struct
import zipfile

import numpy as np
import pytest

import jointgrad as jg
from jointgrad.grafts.weights import layers, load_weights, save_weights
from jointgrad.model.grafts import ACTIVATIONS

SUFFIXES = ("npz", "safetensors")


def pendulum(mode="replace", **network) -> jg.Model:
    """One network for each joint of a double pendulum, whose force it is."""
    plain = jg.zoo.double_pendulum().compile(dt=1e-3)
    network = jg.MLP((5, 4), **{"scale": 3.0, **network})
    return jg.graft(plain, "joint.force", ["joint.position", "joint.velocity"], network, sees="all", mode=mode)


def needs(suffix: str) -> None:
    if suffix == "safetensors":
        pytest.importorskip("safetensors", reason="the extra [torch] is not installed: no safetensors")


# torch --------------------------------------------------------------------------------------------------------------------


def moved(model: jg.Model, seed: int) -> jg.Model:
    """Also biases are not zero."""
    rng = np.random.default_rng(seed)
    return model.replace({"graft.weight": rng.normal(size=model.params["graft.weight"].shape)})


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_torch_says_what_the_engine_says(activation):
    """Torques of torch's own forward, on the plain pendulum, must accelerate it as the grafted one: mode "replace"."""
    torch = pytest.importorskip("torch", reason="the extra [torch] is not installed")
    from jointgrad.torch import to_module

    model = moved(pendulum(activation=activation), 3)
    plain, rng = jg.zoo.double_pendulum().compile(dt=1e-3), np.random.default_rng(4)
    q, qd = rng.normal(size=(2, 6, 2))
    seen = torch.tensor(np.concatenate([q, qd], -1))
    assert model.topology.grafts[0].seen[0] == tuple(
        f"joint.{k}[joint{i}]" for k in ("position", "velocity") for i in (0, 1)
    )
    with torch.no_grad():
        torques = np.concatenate([to_module(model, 0, k)(seen).numpy() for k in range(2)], -1)
    assert np.abs(torques).min() > 1e-3
    state = jg.State(q, qd)
    by_network, by_hand = (jg.step(m, state, u).qd for m, u in ((model, None), (plain, torques)))
    assert np.abs(by_hand - jg.step(plain, state).qd).max() > 1e-3  # the torques matter
    np.testing.assert_allclose(by_network, by_hand, rtol=0, atol=1e-13)


def test_weights_go_to_torch_and_come_back():
    torch = pytest.importorskip("torch", reason="the extra [torch] is not installed")
    from jointgrad.torch import from_module, to_module, weights_of

    model, other = moved(pendulum(), 1), moved(pendulum(), 2)
    modules = [to_module(model, 0, k) for k in range(2)]
    again = other
    for k, module in enumerate(modules):
        again = from_module(again, module, 0, k)
    assert np.array_equal(again.params["graft.weight"], model.params["graft.weight"])
    assert np.array_equal(weights_of(other, modules).detach().numpy(), model.params["graft.weight"])
    half = from_module(other, modules[0].float(), 0, 0)  # float32 is taken as it is
    np.testing.assert_allclose(layers(half, 0, 0)[1][0], layers(model, 0, 0)[1][0], rtol=1e-6)
    assert np.array_equal(layers(half, 0, 1)[0][0], layers(other, 0, 1)[0][0])
    for wrong in (
        torch.nn.Sequential(torch.nn.Linear(4, 1)),
        torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.ReLU(), torch.nn.Linear(5, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1)),
        torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Tanh(), torch.nn.Linear(6, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)),
    ):  # fmt: skip
        with pytest.raises(jg.InputError, match=r"the network is Linear\(4, 5\), Tanh, Linear"):
            from_module(model, wrong)
    with pytest.raises(jg.InputError, match="2 networks"):
        weights_of(model, modules[:1])


def test_modules_are_trained_through_the_simulator():
    """The gradient of a motion's end by a weight of the module is that of differences."""
    torch = pytest.importorskip("torch", reason="the extra [torch] is not installed")
    from jointgrad.torch import Simulator, to_module, weights_of

    model = moved(pendulum("residual"), 5)
    modules, simulator = [to_module(model, 0, k) for k in range(2)], Simulator(model)

    def end() -> torch.Tensor:
        motion = simulator.rollout(torch.tensor([0.3, -0.2]).double(), torch.zeros(2).double(), steps=20,
                                   params={"graft.weight": weights_of(model, modules)})  # fmt: skip
        return motion.q[-1].sum()

    end().backward()
    for module, layer, at in ((modules[0], 0, (2, 1)), (modules[1], 4, (0, 3))):
        W, ends = module[layer].weight, []
        for d in (1e-5, -1e-5):
            with torch.no_grad():
                W[at] += d
                ends.append(end().item())
                W[at] -= d
        assert W.grad[at].item() == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-6)
        assert abs(W.grad[at].item()) > 1e-9


# files --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_files_keep_every_bit(tmp_path, suffix):
    needs(suffix)
    model = moved(jg.graft(pendulum(), "joint.damping", ["joint.velocity"], jg.MLP((3,))), 6)
    save_weights(model, tmp_path / f"weights.{suffix}")
    other = load_weights(moved(model, 7), tmp_path / f"weights.{suffix}")
    assert np.array_equal(other.params["graft.weight"], model.params["graft.weight"])
    with pytest.raises(jg.InputError, match="other grafts"):
        load_weights(jg.graft(model, "joint.stiffness", ["joint.position"]), tmp_path / f"weights.{suffix}")
    wider = jg.graft(jg.zoo.double_pendulum().compile(dt=1e-3), "joint.force", ["joint.position", "joint.velocity"],
                     jg.MLP((7, 4)), sees="all")  # fmt: skip
    with pytest.raises(jg.InputError, match=r"shape \(7, 4\)"):
        load_weights(wider, tmp_path / f"weights.{suffix}")
    with pytest.raises(jg.InputError, match="there is no file"):
        load_weights(model, tmp_path / f"nothing.{suffix}")


def test_torch_reads_what_we_write(tmp_path):
    """And by names that a state_dict has."""
    torch = pytest.importorskip("torch", reason="the extra [torch] is not installed")
    needs("safetensors")
    from safetensors.torch import load_file

    from jointgrad.torch import to_module

    model = moved(pendulum(), 8)
    save_weights(model, tmp_path / "weights.safetensors")
    found = load_file(tmp_path / "weights.safetensors")
    module = to_module(model, 0, 1)
    for layer, linear in enumerate(x for x in module if isinstance(x, torch.nn.Linear)):
        assert torch.equal(found[f"0.1.{layer}.weight"], linear.weight)
        assert torch.equal(found[f"0.1.{layer}.bias"], linear.bias)


def tensors(header: dict, data: bytes = b"") -> bytes:
    said = json.dumps(header).encode()
    return struct.pack("<Q", len(said)) + said + data


def layer(shape, first, last, dtype="F64") -> dict:
    return {"dtype": dtype, "shape": shape, "data_offsets": [first, last]}


WEIGHT = "0.0.0.weight"
HOSTILE = {
    "nothing": b"",
    "a header of a terabyte": struct.pack("<Q", 2**40) + b"{}",
    "a header beyond the file": struct.pack("<Q", 100) + b"{}",
    "no JSON": struct.pack("<Q", 4) + b"{[}]",
    "offsets beyond the file": tensors({WEIGHT: layer([5, 4], 0, 10**12)}),
    "offsets that go back": tensors({WEIGHT: layer([5, 4], 160, 0)}, b"\0" * 160),
    "a shape that overflows": tensors({WEIGHT: layer([2**62, 4], 0, 0)}),
    "fewer bytes than the shape": tensors({WEIGHT: layer([5, 4], 0, 8)}, b"\0" * 8),
    "a type that does not exist": tensors({WEIGHT: layer([5, 4], 0, 160, "PICKLE")}, b"\0" * 160),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_safetensors_are_refused(tmp_path, what):
    needs("safetensors")
    file = tmp_path / "weights.safetensors"
    file.write_bytes(HOSTILE[what])
    with pytest.raises(jg.InputError, match="no safetensors file"):
        load_weights(pendulum(), file)


def arrays_of(model: jg.Model) -> dict[str, np.ndarray]:
    return {f"0.{n}.{k}.{name}": x for n in range(2) for k, pair in enumerate(layers(model, 0, n))
            for name, x in zip(("weight", "bias"), pair, strict=True)}  # fmt: skip


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    "wrong, words",
    [(np.zeros((5, 4), int), "must be floats"), (np.zeros((4, 5)), "shape"), (np.full((5, 4), np.nan), "not finite")],
    ids=["integers", "transposed", "nan"],
)  # fmt: skip
def test_arrays_that_are_no_weights_are_refused(tmp_path, suffix, wrong, words):
    needs(suffix)
    arrays, file = arrays_of(pendulum()) | {WEIGHT: wrong}, tmp_path / f"weights.{suffix}"
    if suffix == "npz":
        np.savez(file, **arrays)
    else:
        from safetensors.numpy import save_file

        save_file({k: np.ascontiguousarray(v) for k, v in arrays.items()}, file)
    with pytest.raises(jg.InputError, match=words):
        load_weights(pendulum(), file)


def test_hostile_npz_are_refused(tmp_path):
    model, file = pendulum(), tmp_path / "weights.npz"
    file.write_bytes(b"PK not an archive")
    with pytest.raises(jg.InputError, match="not an npz file"):
        load_weights(model, file)
    np.savez(file, **(arrays_of(model) | {WEIGHT: np.array([{}], dtype=object)}))
    with pytest.raises(jg.InputError, match="not an npz file"):  # pickled objects are not read
        load_weights(model, file)
    np.savez_compressed(file, **(arrays_of(model) | {WEIGHT: np.zeros((3000, 3000))}))
    assert file.stat().st_size < 10**6 < zipfile.ZipFile(file).getinfo(f"{WEIGHT}.npy").file_size
    with pytest.raises(jg.InputError, match="larger than floats"):  # before it is unpacked
        load_weights(model, file)


def test_other_requests_are_refused(tmp_path):
    model = pendulum()
    with pytest.raises(jg.InputError, match=r"\*.npz or \*.safetensors"):
        save_weights(model, tmp_path / "weights.pt")
    many = model.replace({"graft.weight": np.zeros((3, *model.params["graft.weight"].shape))})
    with pytest.raises(jg.InputError, match="weights of its own"):
        save_weights(many, tmp_path / "weights.npz")
