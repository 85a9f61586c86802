"""Text of strangers on its way to a page: names of links, notes of files, messages of errors."""

from __future__ import annotations


def plain(text: object) -> str:
    """Text that a page shows as it is, in HTML and in Markdown alike: every sign that either could read is written as its
    number, and what cannot be seen is a blank."""
    return "".join(c if c.isalnum() or c in " ," else _numbered(c) for c in str(text))


def _numbered(c: str) -> str:
    return f"&#{ord(c)};" if c.isprintable() else " "


def untyped(text: object) -> str:
    """Text for matplotlib, which would read formulas between dollars."""
    return str(text).replace("$", r"\$")
