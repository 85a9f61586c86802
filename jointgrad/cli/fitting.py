"""The command identify."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from ..usage import require
from .scene import placed

STALLED = 3  # the exit code of a search that has ended before it should


def identify(
    file: Path,
    recording: Path,
    /,
    unknowns: tuple[str, ...],
    out: Path = Path("out/identify"),
    ground: bool = True,
    base: Literal["free", "fixed"] | None = None,
    dt: float | None = None,
    segments: str = "auto",
    method: Literal["lm", "lbfgs"] = "lm",
    iterations: int = 50,
    search_roots: tuple[Path, ...] = (),
) -> int:
    """Find parameters of a robot with which it moves as recorded; writes a report. Ctrl-C keeps the best so far.

    The exit code is 0 for a fit that has converged, 3 for one that has stalled or used up its iterations (its numbers are
    not those that fit best), 2 for input that cannot be used, 130 after Ctrl-C.

    Args:
        file: The robot, URDF or MJCF.
        recording: An .npz file with q (samples, nq) and qd (samples, nv), NaN where nothing was measured, and if wanted u, the
            controls of every time step, and every, the time steps from one sample to the next.
        unknowns: What to find: joint.damping for all rows of a parameter, joint.damping=elbow for one,
            joint.damping=elbow:0:5 within bounds, inertia=hand for mass, centre and inertia of a link.
        out: Folder for the report.
        ground: Put a plane under a file that has none.
        base: Whether a URDF robot's base is free or fixed; unless said, fixed.
        dt: Time step (s); unless said, the file's own, or 1 ms.
        segments: none: the recording is one motion from its measured start. SECONDS: it is cut into pieces so long, whose
            starting states are found too, so that noise in them does no harm. auto: whichever predicts held-out windows best.
        method: lm (Levenberg-Marquardt) or lbfgs.
        iterations: At most so many.
        search_roots: Folders for meshes and included files, beside that of the file.
    """
    require({"rich": "rich", **({"scipy": "scipy"} if method == "lbfgs" else {})}, "optimize")
    from ..optimize.identify import identify as fitted
    from ..optimize.identify_report import as_text, write_report
    from ..optimize.progress import Stop, bar
    from ..optimize.recording_file import read_recording, segments_of, unknown_of

    model = placed(file, ground, None, base, None, 1, dt, search_roots)[0]
    record, entries = read_recording(recording), [unknown_of(text) for text in unknowns]
    stop = Stop(iterations=iterations, patience=3, least=1e-7)
    settings = segments_of(segments, model, record.every)
    with bar("Identifying", iterations) as shown:
        fit = fitted(model, record, entries, settings, method, stop, callback=shown)
    print(as_text(fit))
    print(f"the report is {write_report(fit, out).resolve()}")
    if fit.result.is_interrupted:
        return 130
    return 0 if fit.is_converged else STALLED
