"""The command line: parses and delegates. Every command is a function in a module of this folder, which imports what it
needs when it runs, and has its line in COMMANDS."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from .. import __version__
from ..usage import UsageError, require
from .checking import gradcheck, lint
from .fitting import STALLED, identify
from .learning import demo_dog, play, train
from .measuring import bench
from .viewing import replay, view
from .walking import walk

__all__ = ["COMMANDS", "STALLED", "main"]


def demo(
    what: Literal["throw", "dog"] = "throw",
    /,
    out: Path = Path("out/demo"),
    seed: int = 0,
    iterations: int = 25,
    seconds: float = 75.0,
) -> int:
    """Teach a robot arm to throw a ball onto a mark, and write a page on which to watch it; takes about a minute. Or watch a robot
    dog learn to walk in the browser, and then tell it where to go by the keyboard.

    Args:
        what: throw, or dog.
        out: Folder for the results.
        seed: Of the random swings that it begins with; of everything random.
        iterations: Of the throw: at most so many improvements.
        seconds: Of the dog: how long it learns, in seconds of the processor; compiling apart.
    """
    if what == "dog":
        return demo_dog(out / "dog", seed, seconds)
    require({"tyro": "tyro", "rich": "rich", "matplotlib": "matplotlib"}, "demo")
    from ..reproduce.demo import demonstrate

    return demonstrate(out, seed, iterations)


def reproduce() -> int:
    """Do a published experiment again: jointgrad reproduce --help lists them."""
    return _run(["reproduce", "--help"])


COMMANDS: dict[str, Callable[..., int]] = {
    "demo": demo, "view": view, "replay": replay, "lint": lint, "gradcheck": gradcheck, "reproduce": reproduce,
    "identify": identify, "bench": bench, "train": train, "play": play, "walk": walk,
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
    if given == ["--version"]:
        print(f"jointgrad {__version__}")
        return 0
    try:
        return _run(given)
    except BrokenPipeError:
        raise
    except (UsageError, ValueError, ArithmeticError, OSError) as error:
        print(f"jointgrad: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _run(arguments: list[str]) -> int:
    """By tyro, or, where that is not installed, by argparse."""
    if arguments[0] == "reproduce":
        from ..reproduce.commands import EXPERIMENTS

        about = "Published experiments, done again. `jointgrad reproduce NAME --help` says how long one takes."
        return _parsed(EXPERIMENTS, "jointgrad reproduce", about, arguments[1:] or ["--help"])
    about = f"jointgrad {__version__}: articulated robots in motion, with exact gradients through the whole of it."
    return _parsed(COMMANDS, "jointgrad", about, arguments)


def _parsed(commands: Any, prog: str, about: str, arguments: list[str]) -> int:
    if importlib.util.find_spec("tyro") is None:
        from .plain import run

        return run(commands, prog, about, arguments)
    import tyro

    return tyro.extras.subcommand_cli_from_dict(commands, prog=prog, description=about, args=arguments)
