"""Identification: find parameters of a model with which its motion is the recorded one.

    fit = identify(model, [Recording(q, qd, u)], [Entry("joint.damping", "elbow", bounds=(0, 10)), Inertia("hand")])
    fit.model, fit.estimates, fit.unidentifiable
    write_report(fit, "out/identify")

Residuals are differences to the recording, divided by their standard deviations. A recording is cut into segments whose starting
states are found too, or is one motion from its measured start: whichever predicts held-out windows better (`choice`). The Jacobian
is exact: one tangent for each unknown, all segments and directions in one batch, or one pass back for each residual where these
are fewer (`problem`). How sure the numbers are is in `covariance`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...model.arrays import Model
from ...model.errors import InputError
from ...model.parameters import Entry, Inertia
from ..progress import Callback, Stop
from ..solvers import gauss_newton, lbfgs
from .choice import Candidate, choose
from .covariance import Estimate, Fit
from .data import Recording, Settings, check
from .fitting import Fitting
from .problem import Identification

__all__ = ["Candidate", "Estimate", "Fit", "Identification", "Recording", "Settings", "identify"]

SOLVERS = {"lm": gauss_newton, "lbfgs": lbfgs}


def identify(
    model: Model, recordings: Sequence[Recording] | Recording, entries: Sequence[Entry | Inertia],
    settings: Settings | None = None, method: str = "lm", stop: Stop | None = None, x0: Any = None,
    callback: Callback | None = None,
) -> Fit:  # fmt: skip
    """Fit the entries to the recordings with "lm" (Levenberg-Marquardt) or "lbfgs", from the model's own values or x0."""
    recordings = [recordings] if isinstance(recordings, Recording) else list(recordings)
    settings = settings or Settings()
    if method not in SOLVERS:
        raise InputError(f'there is no method "{method}"; the names are {", ".join(SOLVERS)}')
    check(model, recordings, settings)
    stop = stop or Stop(iterations=50, patience=3, least=1e-7)
    fitting = Fitting(model, recordings, entries, SOLVERS[method], stop, callback)  # type: ignore[arg-type]
    x = None if x0 is None else np.asarray(x0, float)
    if settings.is_chosen and settings.starts == "auto":
        return choose(fitting, settings, x)
    solved, notes = fitting.weighed(settings, x)
    return fitting.judged(solved, notes)
