"""What a user of the command line can put right."""

from __future__ import annotations

import importlib.util


class UsageError(Exception):
    """What the user can put right, in one sentence."""


def require(packages: dict[str, str], extra: str) -> None:
    """Say what to install before any work begins. packages: import name -> distribution."""
    missing = [name for module, name in packages.items() if importlib.util.find_spec(module) is None]
    if missing:
        raise UsageError(f'this command needs {", ".join(missing)}: pip install "jointgrad[{extra}]"')
