"""The contestants: who they are, how their environments are made, and how one of them is asked to run.

Each runs as a process of its own that gets a task as JSON on stdin and answers in JSON lines on stdout
(contestants/protocol.py). Whatever goes wrong becomes an answer too: nothing is dropped in silence.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
Record = dict[str, Any]
# torch is large, and other versions of it pull in gigabytes: a peer that insists on one is given up
CONSTRAINTS = "torch==2.13.0\n"
INSTALL_SECONDS = 1800.0


@dataclass(frozen=True)
class Peer:
    name: str
    title: str
    script: str
    needs: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def is_ours(self) -> bool:
        return "jointgrad" in self.needs


def load_peers(file: Path = HERE / "peers.toml") -> dict[str, Peer]:
    """All contestants by name, in the order of the tables."""
    found = {}
    for name, entry in tomllib.loads(file.read_text()).items():
        lists = {key: tuple(entry.get(key, ())) for key in ("needs", "packages")}
        found[name] = Peer(name, entry["title"], entry["script"], options=entry.get("options", {}), **lists)
    return found


def environments() -> Path:
    """Where the peers' virtual environments are; JOINTGRAD_PEERS says otherwise."""
    return Path(os.environ.get("JOINTGRAD_PEERS") or Path.home() / ".cache" / "jointgrad" / "peers")


def python_of(peer: Peer) -> Path | None:
    """The interpreter that has what the peer needs: ours, or that of its own environment; None if there is none yet."""
    if peer.needs and all(importlib.util.find_spec(module) for module in peer.needs):
        return Path(sys.executable)
    own = environments() / peer.name / "bin" / "python"
    return own if (environments() / peer.name / "complete").exists() else None


# installing -----------------------------------------------------------------------------------------------------------


def install(peer: Peer, tell: Callable[[str], None]) -> str | None:
    """Make the peer's environment; returns why it could not be made, or None."""
    if python_of(peer) is not None:
        return None
    if not peer.packages:
        return missing(peer)
    folder = environments() / peer.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "constraints.txt").write_text(CONSTRAINTS)
    tell(f"{peer.title}: installing {', '.join(peer.packages)} into {folder}")
    reason = _called([sys.executable, "-P", "-m", "venv", str(folder)])
    pip = [str(folder / "bin" / "python"), "-P", "-m", "pip", "install", "--no-input", "-q"]
    reason = reason or _called([*pip, "-c", str(folder / "constraints.txt"), *peer.packages])
    (folder / ("failed" if reason else "complete")).write_text(reason or "")
    return reason


def _called(command: list[str]) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    except subprocess.TimeoutExpired:
        return f"did not install within {INSTALL_SECONDS / 60:.0f} minutes"
    return None if done.returncode == 0 else f"would not install: {last_words(done.stderr)}"


def missing(peer: Peer) -> str:
    """Why there is nothing to run."""
    failed = environments() / peer.name / "failed"
    if failed.exists():
        return failed.read_text()
    if peer.packages:
        return f"not installed: jointgrad bench --install --peers {peer.name}"
    absent = [module for module in peer.needs if importlib.util.find_spec(module) is None]
    return f"needs {', '.join(absent)} beside jointgrad"


def last_words(text: str) -> str:
    """The line of a complaint that says most: the last that is an error, or simply the last."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "rror" in line.split(":")[0]]
    return ([*lines, *errors] or ["no word of why"])[-1][:200]


# running --------------------------------------------------------------------------------------------------------------


def run(peer: Peer, task: Record, seconds: float, folder: Path = HERE / "contestants") -> Iterator[Record]:
    """Ask a contestant to do a task; its records as they come, and one about the reason if it does not come to its end."""
    python = python_of(peer)
    if python is None:
        yield failure(peer, "absent", missing(peer))
        return
    with tempfile.TemporaryFile("w+") as complaints:
        process = subprocess.Popen(
            [str(python), str(folder / peer.script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complaints,
            text=True, env=environment(peer),
        )  # fmt: skip
        clock = threading.Timer(seconds, process.kill)
        clock.start()
        try:
            yield from _spoken(peer, process, json.dumps(task | peer.options))
            is_late = not clock.is_alive()
        finally:
            clock.cancel()
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
        if process.returncode:
            complaints.seek(0)
            yield failure(peer, "failed", _reason(process.returncode, is_late, seconds, complaints.read()))


def _spoken(peer: Peer, process: subprocess.Popen, task: str) -> Iterator[Record]:
    assert process.stdin is not None and process.stdout is not None
    try:
        process.stdin.write(task)
        process.stdin.close()
    except BrokenPipeError:
        return  # it died before it listened; its exit code says so
    for line in process.stdout:
        # libraries print as they are imported, before the channel is ours alone
        if line.startswith("{"):
            yield {"peer": peer.name, "title": peer.title} | json.loads(line)
    process.wait()


def _reason(code: int, is_late: bool, seconds: float, complaints: str) -> str:
    if is_late:
        return f"stopped after {seconds / 60:.0f} minutes"
    if code < 0:
        return f"crashed with signal {-code}"
    return last_words(complaints)


def failure(peer: Peer, status: str, reason: str) -> Record:
    return {"peer": peer.name, "title": peer.title, "status": status, "reason": reason}


def environment(peer: Peer) -> dict[str, str]:
    """Ours may import jointgrad from wherever we did; peers see nothing of our paths."""
    given = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    given |= {"PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    # what JAX has compiled, for the next process that asks for the same: it takes minutes, and is outside of all times
    given.setdefault("JAX_COMPILATION_CACHE_DIR", str(environments() / "compiled"))
    if peer.is_ours:
        given["PYTHONPATH"] = str(HERE.parents[1])
    return given
