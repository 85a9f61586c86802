"""One thing that looks wrong in a robot file: where, how much, and what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from ..mesh import Meshes
from ..xml import Element

SEVERITIES = ("error", "warning", "note")


@dataclass(frozen=True)
class Finding:
    """`severity` is "error" (wrong, or cannot be simulated), "warning" (very likely wrong) or "note" (worth a look).
    `place` is file:line and the link or joint."""

    code: str
    severity: str
    place: str
    message: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.place}: {self.severity} [{self.code}] {self.message}"


@dataclass
class Notebook:
    """Gathers findings about one file; `links` and `joints` say in which element a name is from."""

    file: str
    links: dict[str, Element] = field(default_factory=dict)
    joints: dict[str, Element] = field(default_factory=dict)
    meshes: Meshes = field(default_factory=Meshes)  # those that were read
    lacks_meshes: bool = False  # so that masses and shapes may be incomplete
    entries: list[tuple[tuple, Finding]] = field(default_factory=list)

    def add(self, code: str, severity: str, where: Element | None, owner: str, message: str, remedy: str) -> None:
        file, line = (self.file, 0) if where is None else (where.file, where.line)
        place = f"{file}:{line} {owner}" if line else f"{file} {owner}"
        finding = Finding(code, severity, place.rstrip(), message, remedy)
        key = (file != self.file, file, line, SEVERITIES.index(severity))
        self.entries.append((key, finding))

    def link(self, code: str, severity: str, name: str, message: str, remedy: str) -> None:
        self.add(code, severity, self.links.get(name), f'link "{name}"', message, remedy)

    def joint(self, code: str, severity: str, name: str, message: str, remedy: str) -> None:
        self.add(code, severity, self.joints.get(name), f'joint "{name}"', message, remedy)

    def in_order(self) -> list[Finding]:
        """By place in the file; at one place the gravest first."""
        return [finding for _, finding in sorted(self.entries, key=lambda entry: entry[0])]


def counts(findings: Iterable[Finding]) -> dict[str, int]:
    found = Counter(finding.severity for finding in findings)
    return {severity: found[severity] for severity in SEVERITIES}


def listed(names: Iterable[str], most: int = 4) -> str:
    """The first few names, quoted, and how many more there are."""
    every = list(names)
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(f'"{name}"' for name in every[:most]) + more
