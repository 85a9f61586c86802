"""How things show themselves in a notebook: small tables."""

from __future__ import annotations

import html
from collections.abc import Iterable

SHOWN = 12  # names in a row, before the rest is counted


def listed(names: Iterable[str]) -> str:
    every = list(names)
    more = f" and {len(every) - SHOWN} more" if len(every) > SHOWN else ""
    return ", ".join(every[:SHOWN]) + more


def table(title: str, rows: Iterable[tuple[str, object]]) -> str:
    """As HTML. All of it is escaped: names come from files of strangers."""
    lines = "".join(
        f'<tr><th style="text-align:left">{html.escape(name)}</th><td style="text-align:left">{html.escape(str(value))}</td></tr>'
        for name, value in rows
    )
    return f"<table><caption>{html.escape(title)}</caption>{lines}</table>"
