"""Commands that look at a file: lint, and gradcheck of its motion."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from ..usage import UsageError, require
from .scene import placed


def lint(file: Path, /, json: bool = False, fix: Path | None = None, search_roots: tuple[Path, ...] = ()) -> int:
    """Look for everything suspicious in a URDF or MJCF file; the exit code is 0 for clean or notes only, 1 for warnings, 2 for
    errors.

    With --fix the exit code is that of the repaired file.

    Args:
        file: The robot.
        json: Print one JSON object for machines instead of text.
        fix: Write a copy of a URDF file with safe repairs there (zero inertias, exchanged limits, mimic chains) and say what
            was done. The input is overwritten only if this is its own path.
        search_roots: Folders for meshes and included files, beside that of the file.
    """
    from ..files import lint as linter

    findings = linter.lint(file, search_roots=search_roots)
    if not json:
        print(linter.report(file, findings))
    repairs: list[str] = []
    left = findings
    if fix is not None:
        repairs = linter.fix(file, fix)
        left = linter.lint(fix, search_roots=(*search_roots, file.parent))
    if json:
        print(_lint_json(file, findings, fix, repairs, left))
    elif fix is not None:
        print("\n".join([f"repaired: {what}" for what in repairs] or ["nothing that could be repaired safely"]))
        print(f"wrote {linter.report(fix, left).splitlines()[-1]}")
    return linter.exit_code(left)


def _lint_json(file: Path, findings: list, fix: Path | None, repairs: list[str], left: list) -> str:
    import json
    from dataclasses import asdict

    from ..files.lint.finding import counts

    said: dict = {"file": str(file), "findings": [asdict(f) for f in findings], "counts": counts(findings)}
    if fix is not None:
        said |= {"fixed": str(fix), "repairs": repairs, "left": [asdict(f) for f in left]}
    return json.dumps(said, indent=2)


def gradcheck(
    file: Path,
    /,
    ground: bool = True,
    height: float | None = None,
    base: Literal["free", "fixed"] | None = None,
    state: str | None = None,
    steps: int = 50,
    dt: float | None = None,
    seed: int = 0,
    json: bool = False,
    search_roots: tuple[Path, ...] = (),
) -> int:
    """Say whether the gradient of a robot's motion can be trusted: how near its contacts are to changing, and a spot check
    against differences. The exit code is 0 for a gradient that is exact and worth following, else 1. Where shapes could touch
    and none does, the robot is let fall until one does, and set down there.

    Args:
        file: The robot, URDF or MJCF.
        ground: Put a plane under a file that has none.
        height: Let it start with its lowest point so high above z = 0 (m). Unless said, a robot that got its ground here stands
            on it, and a scene starts as it is.
        base: Whether a URDF robot's base is free or fixed; unless said, fixed.
        state: A keyframe of the file to start from, with its controls.
        steps: How many steps to go.
        dt: Time step (s); unless said, the file's own, or 1 ms.
        seed: Of the random directions.
        json: Print one JSON object for machines instead of text.
        search_roots: Folders for meshes and included files, beside that of the file.
    """
    require({} if json else {"rich": "rich"}, "demo")
    import warnings

    from ..engine.looks.gradcheck import set_down, spot_check
    from ..model.errors import SimulationError

    if steps < 1:
        raise UsageError(f"--steps must be 1 or more, but is {steps}")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model, start, u = placed(file, ground, height, base, state, steps, dt, search_roots)
    notes = list(dict.fromkeys(str(w.message) for w in said))
    try:
        check = spot_check(model, start, u, steps, seed)
        # a start that was asked for is kept, whether anything touches there or not
        is_idle = check.can_touch and not check.has_touched and height is None and state is None
        found = set_down(model, start, u) if is_idle else None
        if found is not None:
            notes.append(f"nothing touches in the first {steps} steps: set down where it touches after {found[1]:g} s")
            check = spot_check(model, found[0], u, steps, seed)
    except SimulationError as error:
        print(f"{file}: NO GRADIENT: {error}")
        return 1
    print(_gradcheck_json(file, check, notes) if json else _gradcheck_text(file, check, notes))
    return 0 if check.is_good else 1


def _gradcheck_verdict(check: Any) -> str:
    from ..engine.looks.gradcheck import SWITCHES

    skipped = sum(line.verdict == SWITCHES for line in check.lines)
    of = f" ({skipped} of {len(check.lines)} directions switch a contact and were left out)" if skipped else ""
    if not check.is_exact:
        compared = skipped < len(check.lines)
        return (
            f"NOT EXACT: the gradient and differences disagree{of}" if compared else f"UNKNOWN: nothing to compare{of}"
        )
    if check.is_good and not check.has_touched:
        return f"GOOD: the gradient is exact and worth following; nothing in this model can touch, no contact was exercised{of}"
    if check.is_good:
        return f"GOOD: the gradient is exact and worth following{of}"
    if check.certificate.trusted and not check.has_touched:
        return (
            "NO CONTACT EXERCISED: the gradient is exact while nothing touches, which says nothing about contact; start where "
            f"something does (--height, --state, --steps), or leave the ground out (--no-ground){of}"
        )
    return f"EXACT, BUT NOT TO BE FOLLOWED: {check.certificate.reasons[0][0]}{of}"


def _gradcheck_text(file: Path, check: Any, notes: list[str]) -> str:
    import io

    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table("with respect to", "gradient", "differences", "error", "step", "", box=SIMPLE_HEAD)
    for line in check.lines:
        numbers = [f"{x:.8g}" for x in (line.gradient, line.difference)]
        table.add_row(line.wrt, *numbers, f"{line.error:.1e}", f"{line.step:.0e}", line.verdict)
    out = io.StringIO()
    Console(file=out, width=100).print(table)
    parts = [*(f"note: {note}" for note in notes), str(check.certificate), out.getvalue().rstrip(), ""]
    return "\n".join([*parts, f"{file}: {_gradcheck_verdict(check)}"])


def _gradcheck_json(file: Path, check: Any, notes: list[str]) -> str:
    import json
    from dataclasses import asdict

    cert = check.certificate
    worst = cert.worst()
    figures = {
        "worst": None if worst is None else worst._asdict(), "condition": float(cert.condition[0]),
        "smallest_mode_margin": float(cert.mode_margin.min()), "nearest_switch": float(cert.gap.min()),
        "largest_impulse": float(cert.impulse.max()), "fastest_impact": float(cert.impact.max()),
        "mismatch": float(cert.mismatch[0]), "distance": cert.distance,
        **{what: float(getattr(cert, what).mean()) for what in ("open", "sticking", "slipping")},
    }  # fmt: skip
    said = {
        "file": str(file), "good": check.is_good, "exact": check.is_exact, "trusted": bool(cert.trusted),
        "touched": check.has_touched, "can_touch": check.can_touch,
        "verdict": _gradcheck_verdict(check), "reasons": cert.reasons[0], "certificate": _finite(figures), "notes": notes,
        "lines": [_finite(asdict(line)) for line in check.lines],
    }  # fmt: skip
    return json.dumps(said, indent=2, allow_nan=False)


def _finite(values: dict) -> dict:
    """JSON knows no infinity."""
    return {k: None if isinstance(v, float) and not abs(v) < float("inf") else v for k, v in values.items()}
