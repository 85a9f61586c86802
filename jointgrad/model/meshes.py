"""Corners of the meshes that a world touches with, read when it is compiled."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .description import Description, Shape
from .errors import ModelError, UnsupportedWarning, warn_caller


def with_pieces(robots: Iterable[Description], choice: str, wants: str = "collision") -> None:
    """Give every mesh that touches the corners of its convex pieces. What cannot be read is told and left out."""
    meshes = [s for robot in robots for link in robot.links.values() for s in link.shapes if _is_open(s, wants)]
    if not meshes:
        return
    from ..files.hull import Hulls  # a door upwards, opened where there is a file to read

    hulls = Hulls(choice)
    unread: dict[str, str] = {}
    for shape in meshes:
        try:
            shape.pieces = hulls.pieces(shape.mesh)
        except ModelError as reason:
            unread.setdefault(shape.mesh, str(reason))
    _tell(hulls.cuts, unread)


def _is_open(shape: Any, wants: str) -> bool:
    """Whether a mesh lacks corners; what is no shape is refused later."""
    return (
        isinstance(shape, Shape)
        and shape.kind == "mesh"
        and bool(shape.mesh)
        and not len(shape.pieces)
        and (shape.role != "visual" or wants == "all")
    )


def _tell(cuts: list[tuple[str, int, float]], unread: dict[str, str]) -> None:
    if unread:
        reason = next(iter(unread.values()))
        more = f" (and {len(unread) - 1} other meshes)" if len(unread) > 1 else ""
        warn_caller(f"meshes that touch nothing, for they cannot be read: {reason}{more}", UnsupportedWarning)
    if cuts:
        name, corners, error = max(cuts, key=lambda cut: cut[2])
        warn_caller(
            f"{len(cuts)} hulls were cut to fewer corners; the worst is {name}, {1e3 * error:.2g} mm off ({corners} corners)",
            UnsupportedWarning,
        )
