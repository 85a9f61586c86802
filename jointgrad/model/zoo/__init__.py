"""Robots that come with the package, written by us."""

from .arms import cart_pole, double_pendulum, pendulum
from .laikago import laikago
from .random_tree import random_tree

__all__ = ["cart_pole", "double_pendulum", "laikago", "pendulum", "random_tree"]
