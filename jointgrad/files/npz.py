"""Arrays from .npz files of strangers: plain numbers, no pickle, and no more than the budget when they are unpacked."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Container
from typing import Any

import numpy as np

from ..model.arguments import checked_path, reading
from ..model.budget import excess


def read_npz(path: Any, what: str, names: Container[str] | None = None) -> dict[str, np.ndarray]:
    """All arrays of a file, or those of these names; `what` says what the file should have been, as in "a recording"."""
    with reading(path, what), zipfile.ZipFile(checked_path(path)) as archive:
        members = [m for m in archive.infolist() if names is None or _name(m) in names]
        _check_members(members)
        return {_name(member): _array(archive, member) for member in members}


def _name(member: zipfile.ZipInfo) -> str:
    return member.filename.removesuffix(".npy")


def _check_members(members: list[zipfile.ZipInfo]) -> None:
    if why := excess("arrays", len(members)):
        raise ValueError(f"it holds {why}")
    if len({m.filename for m in members}) < len(members):
        raise ValueError("it holds two arrays of the same name")
    if why := excess("unpacked_bytes", sum(m.file_size for m in members)):
        raise ValueError(f"it has {why}")


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    """One array, unpacked into its own memory; how large it will be is read from its header first."""
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        if version != (1, 0):
            raise ValueError(f'array "{member.filename}" is of a version that is not read')
        shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(file)
        if dtype.kind not in "fiubU" or dtype.itemsize > member.file_size:
            raise ValueError(f'array "{member.filename}" holds {dtype}, not plain numbers or text')
        if any(n < 0 for n in shape) or dtype.itemsize * math.prod(shape) > member.file_size:
            raise ValueError(f'array "{member.filename}" says it has shape {shape}, but is shorter')
        out = np.empty(shape, dtype, order="F" if is_fortran else "C")
        _fill(memoryview(out.reshape(-1, order="A").view(np.uint8)) if out.size else memoryview(b""), file, member)  # type: ignore[arg-type]
        return out


def _fill(room: memoryview, file: Any, member: zipfile.ZipInfo) -> None:
    at = 0
    while at < len(room):
        piece = file.read(min(1 << 20, len(room) - at))
        if not piece:
            raise ValueError(f'array "{member.filename}" ends early')
        room[at : at + len(piece)] = piece
        at += len(piece)
