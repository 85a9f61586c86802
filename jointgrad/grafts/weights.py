"""Weights of a model's networks: the first ones, and those that come from elsewhere and go there."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..model.arrays import Model
from ..model.errors import InputError

if TYPE_CHECKING:
    from .blueprint import MLP, Blueprint


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
    blueprint, flat = _blueprint(model, graft, network), model.params["graft.weight"]
    at, found = blueprint.first_weights[network], []
    for a, b in itertools.pairwise(blueprint.sizes):
        W = flat[..., at : at + a * b].reshape(*flat.shape[:-1], a, b)
        found.append((np.swapaxes(W, -1, -2).copy(), flat[..., at + a * b : at + (a + 1) * b].copy()))
        at += (a + 1) * b
    return found


def with_layers(model: Model, values: Sequence[tuple[Any, Any]], graft: int = 0, network: int = 0) -> Model:
    """The same model with other weights in one network: pairs (weight, bias) as torch.nn.Linear keeps them."""
    blueprint = _blueprint(model, graft, network)
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


def _blueprint(model: Model, graft: int, network: int) -> Blueprint:
    grafts = model.topology.grafts
    if not 0 <= graft < len(grafts):
        raise InputError(f"graft is {graft}, but the model has {len(grafts)}")
    if not 0 <= network < len(grafts[graft].first_weights):
        raise InputError(f"network is {network}, but graft {graft} has {len(grafts[graft].first_weights)}")
    return grafts[graft]


def save_weights(model: Model, path: str | Path) -> None:
    """All networks, to an npz file."""
    arrays: dict[str, np.ndarray] = {}
    for g, blueprint in enumerate(model.topology.grafts):
        for n in range(len(blueprint.first_weights)):
            for k, (W, bias) in enumerate(layers(model, g, n)):
                arrays[f"{g}.{n}.{k}.weight"], arrays[f"{g}.{n}.{k}.bias"] = W, bias
    np.savez(path, **arrays)  # type: ignore[arg-type]


def load_weights(model: Model, path: str | Path) -> Model:
    """The same model with the weights of a file that `save_weights` wrote for one with the same grafts."""
    with np.load(path, allow_pickle=False) as file:
        arrays: Mapping[str, np.ndarray] = {name: file[name] for name in file.files}
    for g, blueprint in enumerate(model.topology.grafts):
        for n in range(len(blueprint.first_weights)):
            names = [f"{g}.{n}.{k}" for k in range(len(blueprint.sizes) - 1)]
            lost = next((x for x in names if f"{x}.weight" not in arrays or f"{x}.bias" not in arrays), None)
            if lost is not None:
                raise InputError(
                    f'{path} has no layer "{lost}" (graft.network.layer): it is of a model with other grafts'
                )
            model = with_layers(model, [(arrays[f"{x}.weight"], arrays[f"{x}.bias"]) for x in names], g, n)
    return model
