"""The command line: parses and delegates. Every command is a function here that imports what it needs when it runs."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from . import __version__

# what `pip install jointgrad[demo]` brings: import name -> distribution
_DEMO_PACKAGES = {"tyro": "tyro", "rich": "rich", "matplotlib": "matplotlib", "PIL": "pillow"}


class UsageError(Exception):
    """What the user can put right, in one sentence."""


def demo(
    n: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7),
    out: Path = Path("out/demo"),
    iterations: int = 300,
    starts: int = 32,
    attempts: int = 3,
    seed: int = 0,
    substeps: int = 5,
    integrator: str = "rk4",
) -> int:
    """Swing pendulums of 1 to 7 links to the top by gradient descent on their torques; takes about a minute.

    Args:
        n: Numbers of links, each from 1 to 7.
        out: Folder for the results.
        iterations: Gradient steps of one attempt.
        starts: Random torques that are improved together.
        attempts: How often to begin with other random torques while the top is not reached.
        seed: Of the random torques.
        substeps: Simulation steps per torque; a torque is held for 1/60 s.
        integrator: How to step: rk4, semi_implicit, explicit or implicit_damping.
    """
    _require(_DEMO_PACKAGES, "demo")
    from .reproduce.pendulum import Settings
    from .reproduce.report import demonstrate

    settings = Settings(iterations=iterations, starts=starts, attempts=attempts, seed=seed, substeps=substeps,
                        integrator=integrator)  # fmt: skip
    return demonstrate(n, out, settings)


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
    from .files import lint as linter

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

    from .files.lint.finding import counts

    said: dict = {"file": str(file), "findings": [asdict(f) for f in findings], "counts": counts(findings)}
    if fix is not None:
        said |= {"fixed": str(fix), "repairs": repairs, "left": [asdict(f) for f in left]}
    return json.dumps(said, indent=2)


COMMANDS: dict[str, Callable[..., int]] = {"demo": demo, "lint": lint}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that the arguments name (by default those of the process); returns the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        _require({"tyro": "tyro"}, "demo")
        return _run(given or ["--help"])
    except (UsageError, ValueError) as error:
        print(f"jointgrad: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _run(arguments: list[str]) -> int:
    import tyro

    description = (
        f"jointgrad {__version__}: articulated robots in motion, with exact gradients through the whole of it."
    )
    return tyro.extras.subcommand_cli_from_dict(COMMANDS, prog="jointgrad", description=description, args=arguments)


def _require(packages: dict[str, str], extra: str) -> None:
    """Say what to install before any work begins."""
    missing = [name for module, name in packages.items() if importlib.util.find_spec(module) is None]
    if missing:
        raise UsageError(f'this command needs {", ".join(missing)}: pip install "jointgrad[{extra}]"')
