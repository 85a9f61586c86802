"""A folder that only this user can write to: what lies there may be run. Anything else is left alone."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import stat
import tempfile
import warnings
from pathlib import Path

OTHERS = stat.S_IWGRP | stat.S_IWOTH


def own_folder(wanted: Path | None) -> Path:
    """The folder, made where it is missing, if nobody else can write to it; otherwise a private one for this process."""
    try:
        reason = _refusal(wanted)
    except OSError as failure:
        reason = f"{wanted} cannot be used: {failure.strerror}"
    return wanted.resolve() if wanted is not None and reason is None else _private(reason or "")


def _refusal(wanted: Path | None) -> str | None:
    """Why a folder is not to be trusted with code."""
    if wanted is None:
        return "there is no home folder to keep it in"
    if not wanted.is_absolute():
        return f"{wanted} is not an absolute path, so it may be anybody's folder"
    if not wanted.is_dir():
        wanted.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        wanted.mkdir(mode=0o700)
        wanted.chmod(0o700)
    place = wanted.resolve()
    if not is_ours(place.stat()):
        return f"{place} belongs to, or can be written by, somebody else (chown it, chmod 700)"
    loose = next((p for p in place.parents if not _is_safe_above(p.stat())), None)
    return None if loose is None else f"{loose}, which {place} is in, can be written by somebody else"


def is_ours(found: os.stat_result) -> bool:
    """Whether a file or folder belongs to this user, and nobody else can write to it. Windows tells neither."""
    return not hasattr(os, "getuid") or (found.st_uid == os.geteuid() and not found.st_mode & OTHERS)


def _is_safe_above(found: os.stat_result) -> bool:
    """Whether nobody else could put another folder in the place of one that is in this one."""
    if not hasattr(os, "getuid"):
        return True
    is_sticky = bool(found.st_mode & stat.S_ISVTX)
    # a group of the user's own, by its number, as many systems give everyone
    loose = stat.S_IWOTH if found.st_gid == os.geteuid() else OTHERS
    return found.st_uid in (0, os.geteuid()) and (is_sticky or not found.st_mode & loose)


@functools.cache
def _private(reason: str) -> Path:
    """A folder that ends with this process."""
    warnings.warn(
        f"jointgrad: compiled code is kept for this process alone: {reason}; JOINTGRAD_CACHE sets another folder",
        RuntimeWarning,
        stacklevel=2,
    )
    folder, owner = tempfile.mkdtemp(prefix="jointgrad-"), os.getpid()
    # not by a child of this process, which has the same path in mind
    atexit.register(lambda: shutil.rmtree(folder, ignore_errors=True) if os.getpid() == owner else None)
    return Path(folder)
