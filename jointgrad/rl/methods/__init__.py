"""Ways of learning a task, one file each, by the name that the command line knows."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from ...model.errors import InputError
from ...model.names import unknown
from ..task import Task


class Method(NamedTuple):
    """Where a method lives, what its class of settings is called, and settings that make it a special case."""

    module: str
    settings: str
    special: Mapping[str, Any] = MappingProxyType({})
    whole: bool = False  # goes through whole episodes

    def settings_class(self) -> Any:
        return getattr(self._home(), self.settings)

    def learner_class(self) -> Any:
        return self._home().Learner

    def _home(self) -> Any:
        return importlib.import_module(f".{self.module}", __name__)

    def made(self, task: Task, settings: Mapping[str, Any], changes: Mapping[str, Any]) -> Any:
        """Settings: those that a recipe has, the method's own, and changes, in this order."""
        kind = self.settings_class()
        known = [field.name for field in dataclasses.fields(kind)]
        for change in changes:
            if change not in known:
                raise InputError(unknown(f"setting of {self.settings}", change, known))
        horizon = {"horizon": task.limit} if self.whole else {}
        return kind(**{**settings, **self.special, **horizon, **changes})


_WHOLE = {"critics": 0, "environments": 16, "whole": True, "discount": 1.0}
METHODS: Mapping[str, Method] = MappingProxyType(
    {
        "shac": Method("shac", "Shac"),
        # analytic policy gradients: whole episodes, and no critic
        "apg": Method("shac", "Shac", _WHOLE, whole=True),
        # the same with actions that are bettered first and learned then (Mora et al. 2021)
        "pods": Method("shac", "Shac", {**_WHOLE, "regress": 4, "noise": 0.05}, whole=True),
        "sac": Method("sac", "Sac"),
        "mbpo": Method("mbpo", "Mbpo"),
        # Qiao 2021: policy enhancement as the paper and as the released code have it, sample enhancement likewise
        "mbpo-policy": Method("mbpo", "Mbpo", {"gradient": "simulation"}),
        "sac-policy": Method("sac", "Sac", {"gradient": "simulation", "nearness": 0.0, "kept_noise": False}),
        "mbpo-samples": Method("mbpo", "Mbpo", {"extra": 9}),
        "mbpo-row": Method("mbpo", "Mbpo", {"extra": 9, "extra_kind": "row", "tolerance": None}),
    }
)


def method_named(name: str) -> Method:
    if name not in METHODS:
        raise InputError(unknown("method", name, tuple(METHODS)))
    return METHODS[name]
