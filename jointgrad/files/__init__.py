"""Robots from files and back: URDF, MJCF, meshes."""

from __future__ import annotations

from typing import Any

from ..model.description import Description
from ..model.world import World
from .urdf import load_urdf, to_urdf
from .xml import FileError, Folders, MissingFileError, parse, path_or_text

__all__ = ["FileError", "MissingFileError", "load", "load_urdf", "load_world", "to_urdf"]


def load(
    source: Any,
    *,
    search_roots: Folders = (),
    missing_meshes: str = "error",
    base: str | None = None,
    actuators: bool | None = None,
    allow_unsupported: bool | None = None,
    srdf: Any = None,
) -> Description:
    """A robot from a URDF or MJCF file: a path, an open file, or the text. Which it is, is asked of its outermost element.

    search_roots: a folder, or several, in which meshes and included files are looked for besides the file's own (`package://` also
    above it and by ROS's paths). missing_meshes: "error" or "skip". Of URDF alone: base, "fixed" or "free"; actuators, whether
    every movable joint gets a torque actuator (True unless said); srdf, the path or text of an SRDF file whose links do not touch
    (None: the one of the same name beside it, if there is one; False: none). Of MJCF alone: allow_unsupported loads a file that
    would move otherwise here than in MuJoCo.
    """
    if hasattr(source, "read"):
        source = path_or_text(source)
    root = parse(source)
    folders: dict[str, Any] = {"search_roots": search_roots, "missing_meshes": missing_meshes}
    if root.tag == "robot":
        _refuse("a URDF file", allow_unsupported=allow_unsupported)
        return load_urdf(source, **folders, base=base, actuators=True if actuators is None else actuators, srdf=srdf)
    if root.tag == "mujoco":
        from .mjcf import load_mjcf

        _refuse("an MJCF file", base=base, actuators=actuators, srdf=srdf)
        return load_mjcf(source, **folders, allow_unsupported=bool(allow_unsupported))
    raise root.error(
        f"the outermost element is <{root.tag}>; a URDF file begins with <robot>, an MJCF file with <mujoco>"
    )


def _refuse(kind: str, **given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise FileError(f"{name} is not for {kind}, which says so itself")


def load_world(
    source: Any,
    *,
    search_roots: Folders = (),
    missing_meshes: str = "error",
    allow_unsupported: bool = False,
) -> World:
    """A whole scene from an MJCF file (a path, an open file, or the text), with its gravity, time step and integrator; options as
    in `jg.load`."""
    from .mjcf import load_world as from_mjcf

    given = path_or_text(source) if hasattr(source, "read") else source
    return from_mjcf(
        given, search_roots=search_roots, missing_meshes=missing_meshes, allow_unsupported=allow_unsupported
    )
