"""`jointgrad reproduce meanings`, which imports what it needs when it runs."""

from __future__ import annotations

from pathlib import Path

from ..usage import require


def meanings(out: Path = Path("out/meanings"), seed: int = 7) -> int:
    """Three problems that the exact gradient cannot solve, by every meaning of the gradient (docs/gradients.md), and the pictures
    of that page; a few minutes. The exit code is 1 where the right meaning does not solve all starts.

    Args:
        out: Folder for the pictures.
        seed: Of the starts; settings were chosen with 1007.
    """
    require({"matplotlib": "matplotlib", "PIL": "pillow"}, "demo")
    from .meanings import reproduce

    return 0 if reproduce(out, lambda line: print(line, flush=True), seed) else 1
