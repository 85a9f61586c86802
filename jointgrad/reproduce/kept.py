"""Finished parts of a long experiment: what is on disk already is not computed again."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

FILE = "results.json"


class Kept:
    """results.json of an experiment, written anew after each part. An interrupted run goes on where it was, unless its settings
    have changed: then it begins again, and the old file is kept aside."""

    def __init__(
        self, out: Path, experiment: str, settings: dict[str, Any], say: Callable[[str], None] = print
    ) -> None:
        self.out, self.path = out, out / FILE
        out.mkdir(parents=True, exist_ok=True)
        head = {"experiment": experiment, "settings": json.loads(json.dumps(settings))}
        found = self._read()
        if found is not None and {k: found.get(k) for k in head} != head:
            aside = self.path.with_suffix(".old.json")
            self.path.replace(aside)
            say(f"{self.path} is of other settings; it is now {aside.name}")
            found = None
        if found and found["parts"]:
            say(f"{len(found['parts'])} parts are finished already in {self.path}")
        self.said: dict[str, Any] = found or {**head, "command": " ".join(["jointgrad", *sys.argv[1:]]), "parts": {}}

    @property
    def parts(self) -> dict[str, Any]:
        return self.said["parts"]

    def part(self, name: str, compute: Callable[[], Any]) -> Any:
        """What `compute` says (plain numbers, lists, dictionaries), now or in an earlier run."""
        if name not in self.parts:
            self.parts[name] = json.loads(json.dumps(compute()))
            self.write()
        return self.parts[name]

    def write(self, **more: Any) -> None:
        """Also sums and conclusions that stand beside the parts."""
        self.said.update(more)
        new = self.path.with_suffix(".new")  # an interruption while writing leaves the old file whole
        new.write_text(json.dumps(self.said, indent=2) + "\n")
        new.replace(self.path)

    def _read(self) -> dict[str, Any] | None:
        try:
            return json.loads(self.path.read_text())
        except FileNotFoundError:
            return None
        except ValueError:
            raise ValueError(f"{self.path} cannot be read as JSON: remove it, or choose another --out") from None
