"""Robots that come with the package, written by us."""

from .arms import cart_pole, double_pendulum, golf, pendulum
from .car import racecar
from .franka import franka_arm
from .laikago import laikago
from .random_tree import random_tree
from .swimmers import swimmer
from .unitree import a1, go2
from .walkers import ant, humanoid

__all__ = [
    "a1",
    "ant",
    "cart_pole",
    "double_pendulum",
    "franka_arm",
    "go2",
    "golf",
    "humanoid",
    "laikago",
    "pendulum",
    "racecar",
    "random_tree",
    "swimmer",
]
