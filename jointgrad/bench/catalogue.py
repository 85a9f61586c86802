"""All suites by name."""

from __future__ import annotations

from . import checkpoint, correctness, gradients, laikago, robots
from .suite import Suite

SUITES: dict[str, Suite] = {
    s.name: s for s in (laikago.SUITE, robots.SUITE, checkpoint.SUITE, gradients.SUITE, correctness.SUITE)
}
