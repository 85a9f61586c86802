"""Compiled code kept on disk, keyed by everything that made it: what goes into the kernel, the compiler, the processor.

Loading a kernel from here needs llvmlite only; numba is not imported. The files are machine code, so the folder belongs
to the user alone and is never shared: whose it is, and who can write to it, is looked at before anything is run (see SECURITY.md).
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import os
import stat
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .own_folder import is_ours, own_folder

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
    """Where code is kept: a folder of this user alone."""
    return own_folder(_wanted_folder())


def _wanted_folder() -> Path | None:
    given, base = os.environ.get("JOINTGRAD_CACHE"), os.environ.get("XDG_CACHE_HOME", "")
    if given:
        return Path(given)
    if os.path.isabs(base):  # a relative one is invalid, and to be ignored: XDG Base Directory Specification
        return Path(base) / "jointgrad"
    try:
        return Path.home() / ".cache" / "jointgrad"
    except RuntimeError:
        return None


@functools.cache
def _machine_digest() -> bytes:
    import llvmlite.binding as llvm

    versions = [importlib.metadata.version(p) for p in ("numba", "llvmlite")]
    features = llvm.get_host_cpu_features().flatten()
    return "\n".join([*versions, llvm.get_default_triple(), llvm.get_host_cpu_name(), features]).encode()


def _options_digest() -> bytes:
    """What Numba is told from outside: its variables, and its file in the current folder."""
    said = sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith("NUMBA_"))
    try:
        text = Path(".numba_config.yaml").read_bytes()
    except OSError:
        text = b""
    return hashlib.sha256("\n".join(said).encode() + b"\0" + text).digest()


def _path(label: str, ingredients: bytes) -> Path:
    digest = hashlib.sha256(ingredients + _machine_digest() + _options_digest()).hexdigest()
    return folder() / f"{label}-{digest[:32]}.code"


def has(label: str, ingredients: bytes) -> bool:
    return _path(label, ingredients).is_file()


# never through a link, and never handed to a process that this one starts
_OPEN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def _content(path: Path) -> bytes:
    """Of a file that is ours; nothing of any other."""
    with open(os.open(path, os.O_RDONLY | _OPEN), "rb") as file:
        found = os.fstat(file.fileno())
        return file.read() if stat.S_ISREG(found.st_mode) and is_ours(found) else b""


def load(label: str, ingredients: bytes) -> Code | None:
    try:
        data = _content(_path(label, ingredients))
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
        with tempfile.TemporaryDirectory(dir=path.parent) as folder_:
            draft = Path(folder_) / "draft"
            draft.write_bytes(_MAGIC + checksum + b"\n" + content)
            draft.chmod(0o600)
            os.replace(draft, path)
    except OSError:
        return


@contextlib.contextmanager
def alone(label: str, ingredients: bytes) -> Iterator[None]:
    """Of several processes that need a kernel one compiles it, and the others wait. Without locks, or when the wait is long,
    they compile it each: that costs time alone."""
    path = _path(label, ingredients).with_suffix(".lock")
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | _OPEN, 0o600)
    except OSError:
        yield
        return
    with open(lock, "rb"):  # closing it, or the end of the process, sets it free
        last = time.monotonic() + PATIENCE
        while not _is_free(lock) and time.monotonic() < last:
            time.sleep(0.02)
        yield


def _is_free(lock: int) -> bool:
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


# one thread compiles or loads at a time: another could find the address of code whose constants and calls are not yet linked
one_at_a_time = threading.RLock()
if hasattr(os, "register_at_fork"):
    # a child has the thread that forked alone: what the others were at must be whole, and not locked for ever
    os.register_at_fork(
        before=one_at_a_time.acquire, after_in_parent=one_at_a_time.release, after_in_child=one_at_a_time.release
    )


def address_of(code: Code) -> int:
    """Load machine code into this process; it stays until the process ends."""
    import llvmlite.binding as llvm

    with one_at_a_time:
        engine = _engine()
        engine.add_object_file(llvm.ObjectFileRef.from_data(code.machine))
        engine.finalize_object()
        address = engine.get_function_address(code.symbol)
    if not address:
        raise RuntimeError(f"the compiled kernel has no symbol {code.symbol!r}; empty the cache folder {folder()}")
    return address
