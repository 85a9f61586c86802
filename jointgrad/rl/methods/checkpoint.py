"""A learner in the midst of its work as tensors and text, so that it can go on another day with the same bits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from .shac import Learner

NETWORKS = ("actor", "policy", "critics", "asked")
NUMBERS = ("log_noise", "log_price")


def state_of(learner: Learner) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors by name, and what is text or a number."""
    batch, generator = learner.batch.state()
    found = {f"batch.{name}": x for name, x in batch.items()}
    for part in NETWORKS:
        found |= {f"{part}.{name}": x for name, x in getattr(learner, part).state_dict().items()}
    found |= {name: getattr(learner, name).detach() for name in NUMBERS}
    for part, optimiser in _optimisers(learner):
        for k, kept in optimiser.state_dict()["state"].items():
            found |= {f"{part}.{k}.{name}": x for name, x in kept.items()}
    found |= {"shares": learner.shares, "generator": learner.generator.get_state()}
    return {name: x.contiguous().clone() for name, x in found.items()}, {"updates": learner.updates, "rng": generator}


def restore(learner: Learner, tensors: Mapping[str, Tensor], said: Mapping[str, Any]) -> None:
    """Put a fresh learner of the same settings where another was."""
    learner.batch.restore(_under(tensors, "batch"), said["rng"])
    for part in NETWORKS:
        getattr(learner, part).load_state_dict(_under(tensors, part))
    with torch.no_grad():
        for name in NUMBERS:
            getattr(learner, name).copy_(tensors[name])
    for part, optimiser in _optimisers(learner):
        kept: dict[int, dict[str, Tensor]] = {}
        for name, x in _under(tensors, part).items():
            k, _, field = name.partition(".")
            kept.setdefault(int(k), {})[field] = x
        optimiser.load_state_dict({**optimiser.state_dict(), "state": kept})
    learner.shares, learner.updates = tensors["shares"], said["updates"]
    learner.generator.set_state(tensors["generator"])


def _optimisers(learner: Learner) -> list[tuple[str, torch.optim.Optimizer]]:
    return [(f"adam {name}", one) for name, one in learner.optimisers.items() if one is not None]


def _under(tensors: Mapping[str, Tensor], part: str) -> dict[str, Tensor]:
    return {name.removeprefix(f"{part}."): x for name, x in tensors.items() if name.startswith(f"{part}.")}
