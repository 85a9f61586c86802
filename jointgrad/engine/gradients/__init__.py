"""What a gradient means: `rollout(..., gradient=...)` takes one of these, and every derivative of the motion is in its sense.

A meaning is a frozen dataclass with `pulled_back` (Trajectory.backward) and `pushed_forward` (Trajectory.tangent); linearize and
iLQR ask it for Jacobians (meaning.py). Another one is another file here, and a name in MEANINGS.
"""

from .exact import Exact
from .meaning import Meaning
from .moving_impacts import MovingImpacts
from .randomised import Randomised
from .smoothed import Smoothed
from .truncated import Truncated

MEANINGS = (Exact, MovingImpacts, Smoothed, Randomised, Truncated)

__all__ = ["MEANINGS", "Exact", "Meaning", "MovingImpacts", "Randomised", "Smoothed", "Truncated"]
