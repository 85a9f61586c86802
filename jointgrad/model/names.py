"""What to say of a name that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def unknown(kind: str, name: object, names: Iterable[str]) -> str:
    known = list(names)
    close = difflib.get_close_matches(str(name), known, n=1)
    listed = ", ".join(known[:8]) + (" ..." if len(known) > 8 else "")
    hint = f'did you mean "{close[0]}"?' if close else f"the {kind}s are {listed}"
    return f'there is no {kind} "{name}"; {hint}'
