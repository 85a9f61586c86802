"""What of a file is left out: by name, and whether the motion is another without it."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...model.errors import UnsupportedWarning, warn_caller
from ..xml import FileError


class UnsupportedError(FileError):
    """A file that would move otherwise here than its author meant."""


@dataclass
class Report:
    ignored: dict[str, int] = field(default_factory=dict)
    changed: dict[str, int] = field(default_factory=dict)

    def ignores(self, what: str, count: int = 1) -> None:
        """Left out, and nothing moves otherwise for it."""
        self.ignored[what] = self.ignored.get(what, 0) + count

    def changes(self, what: str, count: int = 1) -> None:
        """Left out, and the motion is another without it."""
        self.changed[what] = self.changed.get(what, 0) + count

    def deliver(self, file: str, allow_unsupported: bool) -> None:
        if self.changed and not allow_unsupported:
            raise UnsupportedError(
                f"{file}: the motion would not be the one that the file means, for these are not supported yet: "
                f"{_listed(self.changed)}; to load it without them pass allow_unsupported=True"
            )
        if self.changed or self.ignored:
            said = []
            if self.changed:
                said.append(f"left out, and physics IS affected: {_listed(self.changed)}")
            if self.ignored:
                said.append(f"left out, physics is not affected: {_listed(self.ignored)}")
            warn_caller(f"{file}: {'; '.join(said)}", UnsupportedWarning)


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{what} ({n})" if n > 1 else what for what, n in counts.items())
