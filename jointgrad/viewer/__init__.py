"""Seeing what the simulator does: a viewer in the browser, replays in one file, films, plots."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_HOME = {
    "Film": "film",
    "film_of": "film",
    "view": "browser",
    "html": "replay",
    "save": "replay",
    "load_run": "replay",
    "gif": "video",
    "mp4": "video",
    "picture": "video",
}
__all__ = [*_HOME, "plots"]

if TYPE_CHECKING:
    from . import plots as plots
    from .browser import view as view
    from .film import Film as Film
    from .film import film_of as film_of
    from .replay import html as html
    from .replay import load_run as load_run
    from .replay import save as save
    from .video import gif as gif
    from .video import mp4 as mp4
    from .video import picture as picture


def __getattr__(name: str) -> Any:
    if name == "plots":
        return importlib.import_module(".plots", __name__)
    if name not in _HOME:
        raise AttributeError(f"module 'jointgrad.viewer' has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
