"""What a run leaves behind: records with their origin, as JSON and CSV, and tables made from them."""

from __future__ import annotations

import csv
import importlib.metadata
import json
import os
import platform
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .peers import Record

PACKAGES = ("jointgrad", "numpy", "numba", "llvmlite", "mujoco-core", "pin", "torch", "jax", "matplotlib")


@dataclass(frozen=True)
class Table:
    """Rows of words, for the terminal and the page alike."""

    title: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    note: str = ""


@dataclass(frozen=True)
class Verdict:
    """One comparison: how many times better we are than a rival. Within a twentieth nobody is ahead: runs differ by that."""

    words: str
    ratio: float
    why: str = ""

    def __str__(self) -> str:
        return f"{self.words}: {self.why or f'it takes {times(self.ratio)} of what we take'}"

    @property
    def is_behind(self) -> bool:
        return self.ratio < 0.95

    @property
    def is_level(self) -> bool:
        return 0.95 <= self.ratio <= 1.05


@dataclass
class Results:
    """All records of one suite, and where they come from."""

    suite: str
    records: list[Record] = field(default_factory=list)
    origin: dict[str, Any] = field(default_factory=dict)
    is_complete: bool = False

    def save(self, folder: Path) -> None:
        """results.json and results.csv."""
        folder.mkdir(parents=True, exist_ok=True)
        said = {"suite": self.suite, "complete": self.is_complete, **self.origin, "records": self.records}
        (folder / "results.json").write_text(json.dumps(said, indent=1) + "\n")
        columns = list(dict.fromkeys(key for record in self.records for key in record))
        with (folder / "results.csv").open("w", newline="") as file:
            for key, value in self.origin.items():
                file.write(f"# {key}: {json.dumps(value)}\n")
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            writer.writerows(self.records)


def load_results(folder: Path) -> Results:
    said = json.loads((folder / "results.json").read_text())
    origin = {k: v for k, v in said.items() if k not in ("suite", "complete", "records")}
    return Results(said["suite"], said["records"], origin, said["complete"])


def origin() -> dict[str, Any]:
    """Command line, machine and versions: enough to run it again, and to know what it ran on."""
    return {
        "command": " ".join(["jointgrad", *sys.argv[1:]]),
        "date": time.strftime("%Y-%m-%d %H:%M"),
        "machine": {
            "processor": _processor(), "cores": os.cpu_count(), "memory_GB": _memory_gb(), "system": platform.platform(),
            "load_at_start": round(os.getloadavg()[0], 2),
        },
        "versions": {"python": platform.python_version()} | {p: v for p in PACKAGES if (v := _version(p))},
    }  # fmt: skip


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    lines = _lines("/proc/cpuinfo")
    return next((x.partition(":")[2].strip() for x in lines if x.startswith("model name")), platform.machine())


def _memory_gb() -> float | None:
    total = next((x for x in _lines("/proc/meminfo") if x.startswith("MemTotal")), None)
    return None if total is None else round(int(total.split()[1]) / 1e6, 1)


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []


# picking records ------------------------------------------------------------------------------------------------------


def where(records: Iterable[Record], **values: Any) -> list[Record]:
    """Records with these values; the last of several equal ones is the newest."""
    return [r for r in records if all(r.get(k) == v for k, v in values.items())]


def peers_in(records: Iterable[Record]) -> list[tuple[str, str]]:
    """Names and titles, in the order in which they came."""
    return list(dict.fromkeys((r["peer"], r["title"]) for r in records))


def troubles(records: Iterable[Record]) -> Table | None:
    """Contestants without figures, or with doubtful ones, and why."""
    rows = [
        (r["title"], r["status"], r.get("reason", "")) for r in records if r["status"] not in ("measured", "printed", "skipped")
    ]  # fmt: skip
    doubtful = {(r["title"], r["check"]) for r in where(records, status="measured") if not r.get("ok", True)}
    rows += [(title, "check failed", check) for title, check in sorted(doubtful)]
    rows = list(dict.fromkeys(rows))
    return Table("Not measured, or measured but wrong", ("contestant", "", "why"), rows) if rows else None


def in_unit(value: float, units: Sequence[tuple[float, str]]) -> str:
    """Three digits and a unit: the largest of which there is at least one."""
    scale, unit = next((u for u in units if abs(value) >= u[0]), units[-1])
    return f"{value / scale:.3g} {unit}"


def duration(us: float) -> str:
    return in_unit(us, ((1e6, "s"), (1e3, "ms"), (1.0, "µs")))


def size(count: float) -> str:
    return in_unit(count, ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")))


def times(ratio: float) -> str:
    return f"{ratio:.2g}x" if ratio < 10 else f"{ratio:,.0f}x"
