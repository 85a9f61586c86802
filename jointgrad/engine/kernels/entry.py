"""The kernels that are called from outside; the others are called by these."""

from .certify import certify, evaluation
from .reverse_loop import rollout_adjoint
from .time_loop import rollout

KERNELS = (rollout, rollout_adjoint, evaluation, certify)
