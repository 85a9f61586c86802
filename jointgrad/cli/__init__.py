"""The command line: parses and delegates. Every command is a function in a module of this folder, which imports what it
needs when it runs, and has its line in COMMANDS."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from .. import __version__
from ..usage import UsageError, require
from .checking import gradcheck, lint
from .fitting import STALLED, identify
from .learning import play, train
from .measuring import bench
from .viewing import replay, view

__all__ = ["COMMANDS", "STALLED", "main"]


def demo(out: Path = Path("out/demo"), seed: int = 0, iterations: int = 25) -> int:
    """Teach a robot arm to throw a ball onto a mark, and write a page on which to watch it; takes about a minute.

    Args:
        out: Folder for the results.
        seed: Of the random swings that it begins with.
        iterations: At most so many improvements.
    """
    require({"tyro": "tyro", "rich": "rich"}, "demo")
    from ..reproduce.demo import demonstrate

    return demonstrate(out, seed, iterations)


def reproduce() -> int:
    """Do a published experiment again: jointgrad reproduce --help lists them."""
    return _run(["reproduce", "--help"])


COMMANDS: dict[str, Callable[..., int]] = {
    "demo": demo, "view": view, "replay": replay, "lint": lint, "gradcheck": gradcheck, "reproduce": reproduce,
    "identify": identify, "bench": bench, "train": train, "play": play,
}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that the arguments name (by default those of the process); returns the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        try:
            return _answered(given or ["--help"])
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # who was reading has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141  # as of a process that the signal ended


def _answered(given: list[str]) -> int:
    """The exit code; what is wrong with the input is one line."""
    try:
        require({"tyro": "tyro"}, "demo")
        return _run(given)
    except BrokenPipeError:
        raise
    except (UsageError, ValueError, ArithmeticError, OSError) as error:
        print(f"jointgrad: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _run(arguments: list[str]) -> int:
    import tyro

    if arguments[0] == "reproduce":
        from ..reproduce.commands import EXPERIMENTS

        about = "Published experiments, done again. `jointgrad reproduce NAME --help` says how long one takes."
        return tyro.extras.subcommand_cli_from_dict(
            EXPERIMENTS, prog="jointgrad reproduce", description=about, args=arguments[1:] or ["--help"]
        )
    description = (
        f"jointgrad {__version__}: articulated robots in motion, with exact gradients through the whole of it."
    )
    return tyro.extras.subcommand_cli_from_dict(COMMANDS, prog="jointgrad", description=description, args=arguments)
