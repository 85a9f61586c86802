"""What to say of a name that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def close_to(name: object, names: Iterable[str]) -> str | None:
    """The name that was probably meant."""
    return next(iter(difflib.get_close_matches(str(name), list(names), n=1)), None)


def unknown(kind: str, name: object, names: Iterable[str]) -> str:
    known = list(names)
    close = close_to(name, known)
    listed = ", ".join(known[:8]) + (" ..." if len(known) > 8 else "")
    hint = f'did you mean "{close}"?' if close else f"the {kind}s are {listed}"
    return f'there is no {kind} "{name}"; {hint}'
