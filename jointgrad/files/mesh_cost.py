"""What a mesh file would unpack to, found out before a reader is let loose on it."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

from ..model.budget import excess
from .xml import FileError

# numbers per entry of a GLB accessor
WIDTHS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT2": 4, "MAT3": 9, "MAT4": 16}


def check_cost(path: Path, kind: str, data: bytes) -> None:
    """Refuse a file that would become much larger than it is. STL, OBJ and MSH cannot."""
    if kind == "glb":
        _check_glb(path, data)
    if kind == "ply":
        _check_ply(path, data)


def one_group(kind: str, data: bytes) -> bytes:
    """The same triangles in one group: all groups become one mesh in the end, and readers take long over many."""
    if kind == "obj":
        return b"\n".join(line for line in data.splitlines() if line.lstrip()[:1] in (b"v", b"f"))
    if kind == "stl" and not _is_binary_stl(data):
        kept = [line for line in data.splitlines() if not line.lstrip().lower().startswith((b"solid", b"endsolid"))]
        return b"\n".join([b"solid one", *kept, b"endsolid one", b""])
    return data


def _is_binary_stl(data: bytes) -> bool:
    return len(data) >= 84 and len(data) == 84 + 50 * struct.unpack_from("<I", data, 80)[0]


def _check_glb(path: Path, data: bytes) -> None:
    """Arrays may have more entries than there are bytes for, and a mesh may hang on many nodes."""
    length = struct.unpack_from("<I", data, 12)[0]
    said = json.loads(data[20 : 20 + length])
    accessors, meshes, nodes = (said.get(what, []) for what in ("accessors", "meshes", "nodes"))
    parts = [part for mesh in meshes for part in mesh.get("primitives", [])]
    if why := excess("nodes", len(accessors) + len(parts) + len(nodes)):
        raise FileError(f"{path}: it has {why}")
    numbers = sum(abs(int(a["count"])) * WIDTHS[a["type"]] for a in accessors)
    shown = [meshes[node["mesh"]] for node in nodes if "mesh" in node]
    corners = sum(_corners(part, accessors) for mesh in shown for part in mesh.get("primitives", []))
    if why := excess("corners", max(corners, -(-numbers // 3))):
        raise FileError(f"{path}: it asks for {why}")


def _check_ply(path: Path, data: bytes) -> None:
    """The header tells how many there are: no more than the file has bytes for."""
    head = data[: data.find(b"end_header") + 1].decode("ascii", "replace")
    counts = [
        int(words[2]) for words in map(str.split, head.splitlines()) if words[:1] == ["element"] and len(words) == 3
    ]
    if sum(counts) > len(data) or min(counts, default=0) < 0:
        raise FileError(f"{path}: its header speaks of more than the file holds")
    if why := excess("corners", sum(counts)):
        raise FileError(f"{path}: it has {why}")


def _corners(part: dict[str, Any], accessors: list[dict[str, Any]]) -> int:
    used = [part["attributes"]["POSITION"], *([part["indices"]] if "indices" in part else [])]
    return max(abs(int(accessors[k]["count"])) for k in used)
