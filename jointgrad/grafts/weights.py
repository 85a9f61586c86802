"""Weights of a model's networks: the first ones, those of each layer, and files of them.

`jointgrad.torch` makes a torch.nn.Sequential of a network, and takes the weights of one back (`to_module`, `from_module`).
"""

from __future__ import annotations

import errno
import itertools
import math
import os
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..files.npz import read_npz
from ..model.arguments import reading, writing
from ..model.arrays import Model, checked_model
from ..model.errors import InputError

if TYPE_CHECKING:
    from .blueprint import MLP, Blueprint

# what networks are made of, for answers that are computed outside the engine
ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "tanh": np.tanh,
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
}


def first_weights(blueprint: Blueprint, network: MLP, count: int) -> np.ndarray:
    """Of all networks of a graft, one after the other: variance 1 / inputs (2 / inputs for relu and its kin), biases zero; the last
    layer times `scale`."""
    rng = np.random.default_rng(network.seed)
    gain = 2.0 if network.activation in ("relu", "elu", "softplus") else 1.0
    found: list[np.ndarray] = []
    n_networks = count // blueprint.n_weights if blueprint.n_weights else 0
    for _ in range(n_networks):
        pairs = list(itertools.pairwise(blueprint.sizes))
        for k, (a, b) in enumerate(pairs):
            is_last = k == len(pairs) - 1
            spread = network.scale * np.sqrt(1.0 / a) if is_last else np.sqrt(gain / a)
            found += [(spread * rng.normal(size=(a, b))).ravel(), np.zeros(b)]
    return np.concatenate(found) if found else np.zeros(0)


def layers(model: Model, graft: int = 0, network: int = 0) -> list[tuple[np.ndarray, np.ndarray]]:
    """Weights (outputs, inputs) and biases of a network, layer by layer, as torch.nn.Linear keeps them."""
    blueprint, flat = blueprint_of(model, graft, network), model.params["graft.weight"]
    at, found = blueprint.first_weights[network], []
    for a, b in itertools.pairwise(blueprint.sizes):
        W = flat[..., at : at + a * b].reshape(*flat.shape[:-1], a, b)
        found.append((np.swapaxes(W, -1, -2).copy(), flat[..., at + a * b : at + (a + 1) * b].copy()))
        at += (a + 1) * b
    return found


def with_layers(model: Model, values: Sequence[tuple[Any, Any]], graft: int = 0, network: int = 0) -> Model:
    """The same model with other weights in one network: pairs (weight, bias) as torch.nn.Linear keeps them."""
    blueprint = blueprint_of(model, graft, network)
    expected = list(itertools.pairwise(blueprint.sizes))
    if len(values) != len(expected):
        raise InputError(f"the network has {len(expected)} layers, but {len(values)} were given")
    flat, at = np.array(model.params["graft.weight"]), blueprint.first_weights[network]
    for k, ((W, bias), (a, b)) in enumerate(zip(values, expected, strict=True)):
        W, bias = np.asarray(W, dtype=np.float64), np.asarray(bias, dtype=np.float64)
        if W.shape != (b, a) or bias.shape != (b,):
            raise InputError(
                f"layer {k} has weights {(b, a)} and biases {(b,)}, but {W.shape} and {bias.shape} were given"
            )
        flat[..., at : at + a * b], flat[..., at + a * b : at + (a + 1) * b] = W.T.ravel(), bias
        at += (a + 1) * b
    return model.replace({"graft.weight": flat})


def blueprint_of(model: Model, graft: int, network: int) -> Blueprint:
    """Of a graft that the model has, and that has such a network."""
    grafts = model.topology.grafts
    if not 0 <= graft < len(grafts):
        raise InputError(f"graft is {graft}, but the model has {len(grafts)}")
    if not 0 <= network < len(grafts[graft].first_weights):
        raise InputError(f"network is {network}, but graft {graft} has {len(grafts[graft].first_weights)}")
    return grafts[graft]


# sizes and answers -----------------------------------------------------------------------------------------------------


def weight_units(model: Model, sees: Sequence[float], says: Sequence[float], graft: int = 0) -> np.ndarray:
    """(n,): sizes of weights of a graft's first and last layers where inputs and outputs have these sizes; 1 for the others."""
    return by_layer(model, 1.0 / np.asarray(sees), says, graft)


def by_layer(model: Model, first: ArrayLike, last: ArrayLike, graft: int = 0) -> np.ndarray:
    """(n,): a number for every weight of a model. Of a graft's first layer `first`, by input; of its last one `last`, by output,
    biases as well; their product if that is the same layer; 1 for the others."""
    blueprint = model.topology.grafts[graft]
    found = np.ones_like(model.params["graft.weight"])
    n_layers = len(blueprint.sizes) - 1
    for start in dict.fromkeys(blueprint.first_weights):
        at = start
        for k, (a, b) in enumerate(itertools.pairwise(blueprint.sizes)):
            into = np.broadcast_to(first if k == 0 else 1.0, a)
            out = np.broadcast_to(last if k == n_layers - 1 else 1.0, b)
            found[at : at + a * b] = np.outer(into, out).ravel()
            found[at + a * b : at + (a + 1) * b] = out
            at += (a + 1) * b
    return found


def said_by(model: Model, network: int, x: np.ndarray) -> np.ndarray:
    """What a network of a model's first graft says to inputs (..., n), computed outside the engine."""
    net, activation = layers(model, 0, network), ACTIVATIONS[model.topology.grafts[0].activation]
    for k, (W, bias) in enumerate(net):
        x = x @ W.T + bias
        x = activation(x) if k < len(net) - 1 else x
    return x


# files -------------------------------------------------------------------------------------------------------------------


def save_weights(model: Model, path: str | Path) -> None:
    """All networks, to a file: *.npz, or *.safetensors with the package of that name.

    An array for each layer: "graft.network.layer.weight" (outputs, inputs) and "...bias", as torch.nn.Linear keeps them.
    """
    if checked_model(model).params["graft.weight"].ndim != 1:
        raise InputError("every environment of this model has weights of its own; save one, by model.environment(0)")
    arrays: dict[str, np.ndarray] = {}
    for g, blueprint in enumerate(model.topology.grafts):
        for n in range(len(blueprint.first_weights)):
            for k, (W, bias) in enumerate(layers(model, g, n)):
                arrays[f"{g}.{n}.{k}.weight"], arrays[f"{g}.{n}.{k}.bias"] = W, bias
    with writing(path):
        if _is_safetensors(path):
            if not Path(path).parent.is_dir():  # the package says it in an error of its own
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            _safetensors().save_file({k: np.ascontiguousarray(v) for k, v in arrays.items()}, str(path))
        else:
            np.savez(path, **arrays)  # type: ignore[arg-type]


def load_weights(model: Model, path: str | Path) -> Model:
    """The same model with the weights of a file that `save_weights` wrote for one with the same grafts.

    A file of strangers can do no harm: nothing in it is run, and arrays of another shape than the model's, or too many bytes for
    them, are refused before they are read.
    """
    checked_model(model)
    expected = _expected(model)
    arrays = read_safetensors(path, expected) if _is_safetensors(path) else _read_npz(path, expected)
    for g, blueprint in enumerate(model.topology.grafts):
        for n in range(len(blueprint.first_weights)):
            names = [f"{g}.{n}.{k}" for k in range(len(blueprint.sizes) - 1)]
            model = with_layers(model, [(arrays[f"{x}.weight"], arrays[f"{x}.bias"]) for x in names], g, n)
    return model


def _expected(model: Model) -> dict[str, tuple[int, ...]]:
    """Shapes of all arrays that a file must have."""
    found: dict[str, tuple[int, ...]] = {}
    for g, blueprint in enumerate(model.topology.grafts):
        for n in range(len(blueprint.first_weights)):
            for k, (a, b) in enumerate(itertools.pairwise(blueprint.sizes)):
                found[f"{g}.{n}.{k}.weight"], found[f"{g}.{n}.{k}.bias"] = (b, a), (b,)
    return found


def _check_names(path: str | Path, names: Iterable[str], expected: Mapping[str, tuple[int, ...]]) -> None:
    lost = next((name for name in expected if name not in names), None)
    if lost is not None:
        raise InputError(f'{path} has no "{lost}" (graft.network.layer): it is of a model with other grafts')


def _checked(path: str | Path, name: str, array: np.ndarray, expected: Mapping[str, tuple[int, ...]]) -> np.ndarray:
    if array.shape != expected[name] or array.dtype.kind != "f":
        raise InputError(
            f'"{name}" of {path} must be floats of shape {expected[name]}, but is {array.dtype} of shape {array.shape}'
        )
    if not np.isfinite(array).all():
        raise InputError(f'"{name}" of {path} has values that are not finite')
    return array


def _read_npz(path: str | Path, expected: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    with reading(path, "an npz file of weights"):
        with zipfile.ZipFile(path) as archive:  # sizes first: a small file can unpack to a huge one
            sizes = {info.filename: info.file_size for info in archive.infolist()}
        _check_names(path, [name.removesuffix(".npy") for name in sizes], expected)
        large = next((n for n, shape in expected.items() if sizes[f"{n}.npy"] > _room(shape)), None)
        if large is not None:
            raise InputError(f'"{large}" of {path} is larger than floats of shape {expected[large]}')
        arrays = read_npz(path, "an npz file of weights", expected)
        return {name: _checked(path, name, arrays[name], expected) for name in expected}


def _room(shape: tuple[int, ...]) -> int:
    """Bytes of an array of long doubles, with its header."""
    return 16 * math.prod(shape) + 4096


def _is_safetensors(path: str | Path) -> bool:
    suffix = Path(path).suffix if isinstance(path, str | os.PathLike) else ""
    if suffix not in (".npz", ".safetensors"):
        raise InputError(f'weights are kept in *.npz or *.safetensors, but the path is "{path}"')
    return suffix == ".safetensors"


def _safetensors() -> Any:
    try:
        import safetensors.numpy
    except ImportError:
        raise InputError('*.safetensors needs the package of that name: pip install "jointgrad[torch]"') from None
    return safetensors.numpy


def read_safetensors(path: str | Path, expected: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """The package checks header and offsets; shapes are compared before an array is read."""
    _safetensors()
    import safetensors

    if not Path(path).exists():
        raise InputError(f"there is no file {path}")
    try:
        with safetensors.safe_open(str(path), framework="numpy") as file:
            _check_names(path, file.keys(), expected)
            for name, shape in expected.items():
                found = file.get_slice(name)
                if tuple(found.get_shape()) != shape or found.get_dtype() not in ("F64", "F32", "F16"):
                    raise InputError(
                        f'"{name}" of {path} must be floats of shape {shape}, but is {found.get_dtype()} of shape '
                        f"{tuple(found.get_shape())}"
                    )
            return {name: _checked(path, name, file.get_tensor(name), expected) for name in expected}
    except safetensors.SafetensorError as failure:
        raise InputError(f"{path} is no safetensors file: {failure}") from None
