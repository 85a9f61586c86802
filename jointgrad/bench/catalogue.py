"""All suites by name."""

from __future__ import annotations

from . import laikago
from .suite import Suite

SUITES: dict[str, Suite] = {s.name: s for s in (laikago.SUITE,)}
