"""A learner in the midst of its work as tensors and text, so that it can go on another day with the same bits.

A learner names its parts: NETWORKS and NUMBERS are attributes, `optimisers` and `pools` are found by name, and TENSORS are others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor


def state_of(learner: Any) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors by name, and what is text or a number."""
    batch, generator = learner.batch.state()
    found = {f"batch.{name}": x for name, x in batch.items()}
    for part in learner.NETWORKS:
        found |= {f"{part}.{name}": x for name, x in getattr(learner, part).state_dict().items()}
    found |= {name: getattr(learner, name).detach() for name in (*learner.NUMBERS, *learner.TENSORS)}
    for part, optimiser in _optimisers(learner):
        for k, kept in optimiser.state_dict()["state"].items():
            found |= {f"{part}.{k}.{name}": x for name, x in kept.items()}
    for part, pool in learner.pools.items():
        found |= {f"pool {part}.{name}": x for name, x in pool.state().items()}
    found |= {"generator": learner.generator.get_state()}
    return {name: x.contiguous().clone() for name, x in found.items()}, {"updates": learner.updates, "rng": generator}


def restore(learner: Any, tensors: Mapping[str, Tensor], said: Mapping[str, Any]) -> None:
    """Put a fresh learner of the same settings where another was."""
    learner.batch.restore(_under(tensors, "batch"), said["rng"])
    for part in learner.NETWORKS:
        getattr(learner, part).load_state_dict(_under(tensors, part))
    with torch.no_grad():
        for name in learner.NUMBERS:
            getattr(learner, name).copy_(tensors[name])
    for name in learner.TENSORS:
        setattr(learner, name, tensors[name].clone())
    for part, optimiser in _optimisers(learner):
        kept: dict[int, dict[str, Tensor]] = {}
        for name, x in _under(tensors, part).items():
            k, _, field = name.partition(".")
            kept.setdefault(int(k), {})[field] = x
        optimiser.load_state_dict({**optimiser.state_dict(), "state": kept})
    for part, pool in learner.pools.items():
        pool.restore(_under(tensors, f"pool {part}"))
    learner.updates = said["updates"]
    learner.generator.set_state(tensors["generator"])


def _optimisers(learner: Any) -> list[tuple[str, torch.optim.Optimizer]]:
    return [(f"adam {name}", one) for name, one in learner.optimisers.items() if one is not None]


def _under(tensors: Mapping[str, Tensor], part: str) -> dict[str, Tensor]:
    return {name.removeprefix(f"{part}."): x for name, x in tensors.items() if name.startswith(f"{part}.")}
