"""Commands without tyro: what the core alone can do works after `pip install jointgrad`.

The same functions, signatures and docstrings, read by argparse. Positional-only parameters are arguments, all others options.
"""

from __future__ import annotations

import argparse
import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def run(commands: Mapping[str, Callable[..., int]], prog: str, description: str, arguments: Sequence[str]) -> int:
    """Parse the arguments and call the command that they name; returns its exit code."""
    parser = argparse.ArgumentParser(prog=prog, description=description)
    names = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in commands.items():
        about, helps = described(command)
        one = names.add_parser(name, help=about.split(". ")[0].replace("%", "%%"), description=about.replace("%", "%%"))
        for parameter in inspect.signature(command).parameters.values():
            _add(one, parameter, typing.get_type_hints(command).get(parameter.name, str), helps)
    given = vars(parser.parse_args(arguments))
    command = commands[given.pop("command")]
    kinds = inspect.signature(command).parameters
    first = [given.pop(name) for name, p in kinds.items() if p.kind is p.POSITIONAL_ONLY]
    return command(*first, **given)


def described(command: Callable[..., int]) -> tuple[str, dict[str, str]]:
    """What a docstring says of a command, and of its arguments."""
    text, _, arguments = (inspect.getdoc(command) or "").partition("Args:\n")
    helps = re.findall(r"^    (\w+): (.*(?:\n        .*)*)", arguments, re.M)
    return " ".join(text.split()), {name: " ".join(words.split()).replace("%", "%%") for name, words in helps}


def _add(parser: argparse.ArgumentParser, parameter: inspect.Parameter, hint: Any, helps: dict[str, str]) -> None:
    name, options = parameter.name, {"help": helps.get(parameter.name, "")}
    if parameter.kind is parameter.POSITIONAL_ONLY:
        parser.add_argument(name, **_taken(hint), **options)  # type: ignore[arg-type]
        return
    if parameter.default is inspect.Parameter.empty:
        options["required"] = True  # type: ignore[assignment]
    else:
        options["default"] = parameter.default
        options["help"] += f" (default: {parameter.default})".replace("%", "%%")
    parser.add_argument("--" + name.replace("_", "-"), dest=name, **_taken(hint), **options)  # type: ignore[arg-type]


def _taken(hint: Any) -> dict[str, Any]:
    """What argparse makes of a type."""
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _taken(next(kind for kind in inside if kind is not type(None)))
    if hint is bool:
        return {"action": argparse.BooleanOptionalAction}
    if origin is typing.Literal:
        return {"choices": inside, "type": type(inside[0])}
    if origin in (tuple, list):
        count = "*" if origin is list or inside[-1] is ... else len(inside)
        return {"nargs": count, **_taken(inside[0])}
    return {"type": hint if callable(hint) else str}
