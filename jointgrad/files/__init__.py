"""Robots from files and back: URDF, MJCF, meshes."""

from __future__ import annotations

from typing import Any

from ..model.description import Description
from ..model.world import World
from .urdf import load_urdf, to_urdf
from .xml import FileError, MissingFileError, parse, path_or_text

__all__ = ["FileError", "MissingFileError", "load", "load_urdf", "load_world", "to_urdf"]


def load(source: Any, **options: Any) -> Description:
    """A robot from a URDF or MJCF file: a path, an open file, or the text. Which it is, is asked of its outermost element.

    Options are those of `load_urdf` and `load_mjcf`.
    """
    if hasattr(source, "read"):
        source = path_or_text(source)
    root = parse(source)
    if root.tag == "robot":
        return load_urdf(source, **options)
    if root.tag == "mujoco":
        from .mjcf import load_mjcf

        return load_mjcf(source, **options)
    raise root.error(
        f"the outermost element is <{root.tag}>; a URDF file begins with <robot>, an MJCF file with <mujoco>"
    )


def load_world(source: Any, **options: Any) -> World:
    """A whole scene from an MJCF file, with its gravity, time step and integrator; options are those of `load_mjcf`."""
    from .mjcf import load_world as from_mjcf

    return from_mjcf(path_or_text(source) if hasattr(source, "read") else source, **options)
