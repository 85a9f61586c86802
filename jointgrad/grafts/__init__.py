"""Networks grafted onto a model: described in blueprint.py, run by engine/stages/grafts/."""

from .blueprint import MLP, graft

__all__ = ["MLP", "graft"]
