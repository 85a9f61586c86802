"""Compiled code kept on disk, keyed by everything that made it: what goes into the kernel, the compiler, the processor.

Loading a kernel from here needs llvmlite only; numba is not imported. The files are machine code, so the folder belongs
to the user alone and is never shared (see SECURITY.md).
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

_MAGIC = b"jointgrad-code-1\n"
# seconds after which one that waits for another process compiles by itself: that one may be stopped
PATIENCE = 60.0


class Code(NamedTuple):
    """Relocatable machine code and the symbol to call in it."""

    symbol: str
    machine: bytes


class CannotCompile(RuntimeError):
    """Something outside the package keeps code from being made or kept."""


def folder() -> Path:
    given = os.environ.get("JOINTGRAD_CACHE")
    if given:
        return Path(given)
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:
        raise CannotCompile(
            "there is no home folder to keep compiled code in: set JOINTGRAD_CACHE to a folder"
        ) from None
    return Path(base) / "jointgrad"


@functools.cache
def _machine_digest() -> bytes:
    import llvmlite.binding as llvm

    versions = [importlib.metadata.version(p) for p in ("numba", "llvmlite")]
    features = llvm.get_host_cpu_features().flatten()
    return "\n".join([*versions, llvm.get_host_cpu_name(), features]).encode()


def _path(label: str, ingredients: bytes) -> Path:
    digest = hashlib.sha256(ingredients + _machine_digest()).hexdigest()
    return folder() / f"{label}-{digest[:32]}.code"


def has(label: str, ingredients: bytes) -> bool:
    return _path(label, ingredients).is_file()


def load(label: str, ingredients: bytes) -> Code | None:
    try:
        data = _path(label, ingredients).read_bytes()
    except OSError:
        return None
    if not data.startswith(_MAGIC):
        return None
    checksum, _, content = data[len(_MAGIC) :].partition(b"\n")
    # a file cut short by a full disk must not be run
    if hashlib.sha256(content).hexdigest().encode() != checksum:
        return None
    symbol, _, machine = content.partition(b"\n")
    return Code(symbol.decode(), machine)


def save(label: str, ingredients: bytes, code: Code) -> None:
    """Write whole or not at all; a cache that cannot be written costs time, never the result."""
    path = _path(label, ingredients)
    content = code.symbol.encode() + b"\n" + code.machine
    checksum = hashlib.sha256(content).hexdigest().encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder_:
            draft = Path(folder_) / "draft"
            draft.write_bytes(_MAGIC + checksum + b"\n" + content)
            os.replace(draft, path)
    except OSError:
        return


@contextlib.contextmanager
def alone(label: str, ingredients: bytes) -> Iterator[None]:
    """Of several processes that need a kernel one compiles it, and the others wait. Without locks, or when the wait is long,
    they compile it each: that costs time alone."""
    path = _path(label, ingredients).with_suffix(".lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = path.open("wb")
    except OSError:
        yield
        return
    with lock:  # closing it, or the end of the process, sets it free
        last = time.monotonic() + PATIENCE
        while not _is_free(lock) and time.monotonic() < last:
            time.sleep(0.02)
        yield


def _is_free(lock: BinaryIO) -> bool:
    """Whether the lock is ours now, or cannot be had at all."""
    try:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


@functools.cache
def _engine():
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), jit=True
    )
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)


# one thread loads at a time: another could find the address of code whose constants and calls are not yet linked
_loading = threading.Lock()


def address_of(code: Code) -> int:
    """Load machine code into this process; it stays until the process ends."""
    import llvmlite.binding as llvm

    with _loading:
        engine = _engine()
        engine.add_object_file(llvm.ObjectFileRef.from_data(code.machine))
        engine.finalize_object()
        address = engine.get_function_address(code.symbol)
    if not address:
        raise RuntimeError(f"the compiled kernel has no symbol {code.symbol!r}; empty the cache folder {folder()}")
    return address
