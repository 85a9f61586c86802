"""URDF in and out.

What URDF says and we keep in other words: a box has full extents there and half extents here, a cylinder its length and half of
it; an inertia frame may be turned against its link, here it is not; `effort` limits the torque actuator that each movable
joint is given. A root link "world" without mass and shapes is the world itself: its joints have no parent here. The largest double
stands for "no limit", for readers of URDF do not know infinity.
"""

from __future__ import annotations

from .reader import load_urdf
from .writer import to_urdf

__all__ = ["load_urdf", "to_urdf"]
