"""Actions that were tried, and what they led to, for methods that learn from them more than once."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor


class Pool:
    """Rows of named numbers in single precision; the oldest make room for new ones. columns: their shapes by name."""

    def __init__(self, size: int, columns: Mapping[str, tuple[int, ...]]) -> None:
        self.size, self.columns, self.added = size, dict(columns), 0
        # memory is taken as it fills: most runs end long before
        self._rows = {name: torch.zeros(0, *shape) for name, shape in columns.items()}

    def __len__(self) -> int:
        return min(self.added, self.size)

    def add(self, **rows: Tensor) -> None:
        """Rows (n, ...) of every column."""
        n = len(next(iter(rows.values())))
        places = torch.arange(self.added, self.added + n) % self.size
        self._reserve(min(self.added + n, self.size))
        for name, kept in self._rows.items():
            # where more come than there is room for, the last stay
            kept[places[-self.size :]] = rows[name].detach().float()[-self.size :]
        self.added += n

    def draw(self, generator: torch.Generator, n: int) -> dict[str, Tensor]:
        """So many rows, each as likely as any other."""
        return self.at(torch.randint(len(self), (n,), generator=generator))

    def at(self, places: Tensor) -> dict[str, Tensor]:
        return {name: rows[places] for name, rows in self._rows.items()}

    def all(self) -> dict[str, Tensor]:
        return {name: rows[: len(self)] for name, rows in self._rows.items()}

    def clear(self) -> None:
        self.added = 0

    def state(self) -> dict[str, Tensor]:
        """All that another pool of the same columns needs to go on from here."""
        return {"added": torch.tensor(self.added), **{name: rows[: len(self)] for name, rows in self._rows.items()}}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        self.added = int(tensors["added"])
        self._rows = {name: tensors[name].clone() for name in self.columns}

    def _reserve(self, n: int) -> None:
        for name, rows in self._rows.items():
            if len(rows) < n:
                more = min(self.size, max(n, 2 * len(rows), 1024)) - len(rows)
                self._rows[name] = torch.cat((rows, torch.zeros(more, *rows.shape[1:])))
