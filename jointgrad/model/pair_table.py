"""Which function finds the contacts of which pair of shapes: the one table that kernels, dispatch, room and documents follow.

A shape says what it has; two shapes meet by the function of their own if there is one, else by what they have. To add a shape,
give it a line here, a support point in engine/kernels/stages/detection/cores.py, and functions of its own where that is faster.
"""

from __future__ import annotations

from dataclasses import dataclass

from .arrays import BOX, CAPSULE, CYLINDER, ELLIPSOID, MESH, PLANE, SPHERE, TERRAIN

NAMES = {
    PLANE: "plane", SPHERE: "sphere", CAPSULE: "capsule", BOX: "box", CYLINDER: "cylinder", ELLIPSOID: "ellipsoid",
    MESH: "mesh", TERRAIN: "terrain",
}  # fmt: skip


@dataclass(frozen=True)
class Has:
    """What a kind of shape has: a point that lies farthest in a direction, faces, a radius about its corners or lines."""

    support: bool = True
    faces: bool = False
    radius: bool = False


SHAPES = {
    "plane": Has(support=False, faces=True), "sphere": Has(radius=True), "capsule": Has(radius=True), "box": Has(faces=True),
    "cylinder": Has(faces=True, radius=True), "ellipsoid": Has(), "mesh": Has(faces=True),
    "terrain": Has(support=False, faces=True),
}  # fmt: skip

# functions of their own, of the later kind and the earlier one, and how many points each may give
OWN = {
    ("sphere", "plane"): 1, ("capsule", "plane"): 2, ("box", "plane"): 8, ("sphere", "sphere"): 1, ("capsule", "sphere"): 1,
    ("capsule", "capsule"): 2, ("box", "sphere"): 1, ("cylinder", "plane"): 5, ("ellipsoid", "plane"): 1,
    # from here on with features that a search found
    ("box", "capsule"): 2, ("box", "box"): 13, ("mesh", "plane"): 5,
}  # fmt: skip
# functions for all others that have what these need
CONVEX, TERRAIN_PIECES = "convex", "terrain"
POINTS = {f"{a}_{b}": n for (a, b), n in OWN.items()} | {CONVEX: 4, TERRAIN_PIECES: 8}
PAIR_KINDS = tuple(POINTS)
FIRST_WITH_FEATURES = PAIR_KINDS.index("box_capsule")


def is_searched(function: str) -> bool:
    """Whether a function keeps a row of geometry for every point."""
    return function in (CONVEX, TERRAIN_PIECES, "mesh_plane")


def function_of(a: str, b: str) -> str | None:
    """The function that serves two kinds of shapes, the later first; None where they never touch."""
    if (a, b) in OWN:
        return f"{a}_{b}"
    if SHAPES[a].support and SHAPES[b].support:
        return CONVEX
    return TERRAIN_PIECES if a == "terrain" and SHAPES[b].support else None


def pair_kind(a: int, b: int) -> int | None:
    """The same by the numbers of kinds, as an index into PAIR_KINDS."""
    found = function_of(NAMES[a], NAMES[b])
    return None if found is None else PAIR_KINDS.index(found)


def matrix() -> str:
    """The table as Markdown: by which function the shapes of a row and a column touch, and by how many points at most."""
    rows = [f"| | {' | '.join(SHAPES)} |", "|---" * (len(SHAPES) + 1) + "|"]
    for k, a in enumerate(SHAPES):
        found = [function_of(a, b) if j <= k else None for j, b in enumerate(SHAPES)]
        cells = [f"{f} ({POINTS[f]})" if f else "" if j > k else "-" for j, f in enumerate(found)]
        rows.append(f"| {a} | {' | '.join(cells)} |")
    return "\n".join(rows)
