"""Robots that come with the package: `from jointgrad.zoo import a1`."""

from .model.zoo import *  # noqa: F403
from .model.zoo import __all__ as __all__
