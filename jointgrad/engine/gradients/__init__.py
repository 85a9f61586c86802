"""What a gradient means: `rollout(..., gradient=...)` takes one of these, and every derivative of the motion is in its sense.

A meaning is a frozen dataclass with `pulled_back` (Trajectory.backward), `pushed_forward` (Trajectory.tangent) and `jacobian`
(linearize). Another one is another file here.
"""

from .exact import Exact
from .moving_impacts import MovingImpacts

__all__ = ["Exact", "MovingImpacts"]
