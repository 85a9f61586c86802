"""Height fields: sizes and heights of <hfield> assets, inline, from PNG, or from MuJoCo's own binary file."""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from ...model.budget import excess
from ...model.description import Shape
from ..xml import Element, FileError, MissingFileError

PNG = b"\x89PNG\r\n\x1a\n"
CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}  # of the colour types of PNG; pictures with a palette have none


def field_asset(element: Element, scope: Any) -> Element:
    wanted = element.get("hfield", "")
    for asset in scope.source.items("asset"):
        name = asset.get("name", PurePosixPath(asset.get("file", "").replace("\\", "/")).stem)
        if asset.tag == "hfield" and name == wanted:
            return asset
    raise element.error(f'<geom> refers to the height field "{wanted}", which is not in <asset>')


def field_size(asset: Element) -> tuple[float, ...]:
    """Half extents x, y, height and depth."""
    size = asset.floats("size", 4)
    if any(not s > 0 for s in size):
        raise asset.error(f"<hfield> needs four sizes above zero, but has {size}")
    return size


def matter_box(asset: Element) -> tuple[float, ...]:
    """Half extents of the box that MuJoCo takes for the matter of a height field."""
    x, y, above, below = field_size(asset)
    return x, y, above / 4 + below / 2


def field_shape(builder: Any, element: Element, scope: Any, shape: Shape) -> tuple[Shape, bool]:
    """The shape of a geom that refers to a height field, and whether its file is missing, where that is allowed."""
    asset = field_asset(element, scope)
    if "file" in asset.attributes:
        try:
            path = scope.source.path(
                asset.attributes["file"].replace("\\", "/"), asset, scope.source.compiler.mesh_folder
            )
        except MissingFileError:
            if builder.missing_meshes == "error":
                raise
            builder.report.ignores("missing height field")
            return shape, True
        heights = read_heights(path)
    else:
        heights = _inline(asset)
    low, high = float(heights.min()), float(heights.max())
    # MuJoCo spreads heights over the whole range
    heights = (heights - low) / (high - low) if high > low else np.zeros_like(heights)
    return replace(shape, size=field_size(asset), heights=heights), False


def _inline(asset: Element) -> np.ndarray:
    rows, columns = (int(asset.number(what, 0.0)) for what in ("nrow", "ncol"))
    if min(rows, columns) < 2:
        raise asset.error("<hfield> needs nrow and ncol of two or more, or a file")
    values = asset.floats("elevation", None, ())
    if len(values) not in (0, rows * columns):
        raise asset.error(f"<hfield> has {len(values)} elevations for {rows} rows of {columns}")
    # the first row of the text is the farthest, as in a picture
    return np.array(values or (0.0,) * (rows * columns)).reshape(rows, columns)[::-1].copy()


def read_heights(path: Path) -> np.ndarray:
    """Heights (rows along y, columns along x) of a grey PNG, whose first row is the farthest, or of MuJoCo's binary format."""
    raw = path.read_bytes()
    if why := excess("mesh_bytes", len(raw)):
        raise FileError(f"{path}: it has {why}")
    try:
        return _png(raw)[::-1].copy() if raw.startswith(PNG) else _binary(raw)
    except (ValueError, struct.error, zlib.error, KeyError, IndexError) as reason:
        raise FileError(f"{path}: this is not a height field that can be read: {reason}") from None


def _binary(raw: bytes) -> np.ndarray:
    rows, columns = (int(n) for n in np.frombuffer(raw, "<i4", 2))
    if min(rows, columns) < 2 or len(raw) != 8 + 4 * rows * columns:
        raise ValueError("the counts at its beginning do not fit its length")
    return np.frombuffer(raw, "<f4", rows * columns, 8).astype(np.float64).reshape(rows, columns)


def _png(raw: bytes) -> np.ndarray:
    """The first channel of a picture with 8 or 16 bits, without interlacing."""
    at, data, head = len(PNG), [], b""
    while at + 12 <= len(raw):
        (length,), kind = struct.unpack_from(">I", raw, at), raw[at + 4 : at + 8]
        body = raw[at + 8 : at + 8 + length]
        head = body if kind == b"IHDR" else head
        if kind == b"IDAT":
            data.append(body)
        at += 12 + length
    columns, rows, bits, colour, _, _, interlaced = struct.unpack(">IIBBBBB", head)
    if bits not in (8, 16) or interlaced or colour not in CHANNELS:
        raise ValueError(
            f"PNG of {bits} bits, colour type {colour}{', interlaced' if interlaced else ''}; 8 or 16 bits are read"
        )
    if why := excess("heights", rows * columns):
        raise ValueError(f"it has {why}")
    step = CHANNELS[colour] * bits // 8
    wanted = rows * (1 + columns * step)
    flat = zlib.decompressobj().decompress(b"".join(data), wanted)
    if len(flat) != wanted:
        raise ValueError("it ends early")
    lines = _unfiltered(np.frombuffer(flat, np.uint8).reshape(rows, -1), step)
    pixels = lines.reshape(rows, columns, step)
    return pixels[..., 0] * 256.0 + pixels[..., 1] if bits == 16 else pixels[..., 0].astype(np.float64)


def _unfiltered(lines: np.ndarray, step: int) -> np.ndarray:
    """Undo the five filters of PNG, line by line."""
    out = np.zeros((len(lines), lines.shape[1] - 1), np.uint8)
    above = np.zeros(out.shape[1], np.uint8)
    for k, line in enumerate(lines):
        kind, row = int(line[0]), line[1:].copy()
        if kind == 2:
            row = row + above
        elif kind:
            _from_left(row, above, step, kind)
        out[k] = above = row
    return out


def _from_left(row: np.ndarray, above: np.ndarray, step: int, kind: int) -> None:
    """Filters that look to the left, which must be undone one after the other."""
    values, up = row.tolist(), above.tolist()
    for i in range(len(values)):
        a, b = (values[i - step] if i >= step else 0), up[i]
        c = up[i - step] if i >= step else 0
        values[i] = (values[i] + (a if kind == 1 else (a + b) // 2 if kind == 3 else _paeth(a, b, c))) & 255
    row[:] = values


def _paeth(a: int, b: int, c: int) -> int:
    p = a + b - c
    distances = abs(p - a), abs(p - b), abs(p - c)
    return a if distances[0] <= min(distances[1:]) else b if distances[1] <= distances[2] else c
