"""What a suite is: jobs for contestants, and what to make of their answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .peers import Record
from .results import Table, Verdict


@dataclass(frozen=True)
class Job:
    """One process: a contestant, its task, and how long it may take in all (s), so that one who hangs does not keep the rest from
    running; on a quiet machine nobody needs as long."""

    peer: str
    task: dict[str, Any]
    seconds: float = 300.0

    @property
    def words(self) -> str:
        """What is particular to it, for the line that says what runs."""
        batches = [b for b in self.task.get("batches", ()) if b > 1]
        return (f", batch {batches[-1]}" if batches else "") + (
            f", {self.task['cores']} cores" if self.task["cores"] > 1 else ""
        )


@dataclass(frozen=True)
class Plan:
    """How much to do, and where what all contestants read is written: a quick run has the same parts, smaller."""

    is_quick: bool
    scene: Path


@dataclass(frozen=True)
class Suite:
    name: str
    about: str
    jobs: Callable[[Plan], list[Job]]
    tables: Callable[[Sequence[Record]], list[Table]]
    draw: Callable[[Sequence[Record], Path], list[Path]]
    verdicts: Callable[[Sequence[Record]], list[Verdict]]
    write_scene: Callable[[Plan], None]
    printed: list[Record] = field(default_factory=list)
    note: str = ""
