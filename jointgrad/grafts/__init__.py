"""Networks grafted onto a model: described in blueprint.py, run by engine/kernels/stages/grafts/."""

from .blueprint import MLP, graft

__all__ = ["MLP", "graft"]
