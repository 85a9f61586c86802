"""Model-predictive control: quadrupeds by a convex problem of foot forces, any robot by planning through the simulator itself."""

from .controller import Command, Controller, Sensed
from .convex import ConvexProblem, Weights
from .gaits import GAITS, Gait
from .legs import Legs
from .planning import IlqrMPC, SamplingMPC
from .quadruped import ConvexMPC
from .robots import ROBOTS, Quadruped, quadruped

__all__ = [
    "GAITS",
    "ROBOTS",
    "Command",
    "Controller",
    "ConvexMPC",
    "ConvexProblem",
    "Gait",
    "IlqrMPC",
    "Legs",
    "Quadruped",
    "SamplingMPC",
    "Sensed",
    "Weights",
    "quadruped",
]
