"""Long experiments go on where they were stopped."""

import pytest

from jointgrad.reproduce.kept import Kept
from jointgrad.reproduce.recordings import recording
from jointgrad.usage import UsageError


def test_finished_parts_are_not_computed_again(tmp_path):
    calls = []

    def compute(name):
        calls.append(name)
        if name == "c":
            raise KeyboardInterrupt
        return {"value": 1.5}

    first = Kept(tmp_path, "trial", {"seeds": (0, 1)})
    first.part("a", lambda: compute("a"))
    with pytest.raises(KeyboardInterrupt):
        first.part("c", lambda: compute("c"))
    second = Kept(tmp_path, "trial", {"seeds": [0, 1]})
    assert second.part("a", lambda: compute("a")) == {"value": 1.5}
    assert calls == ["a", "c"] and list(second.parts) == ["a"]


def test_other_settings_begin_again_and_lose_nothing(tmp_path):
    Kept(tmp_path, "trial", {"seed": 0}).part("a", lambda: 1)
    said = []
    assert Kept(tmp_path, "trial", {"seed": 1}, said.append).parts == {}
    assert (tmp_path / "results.old.json").is_file() and "other settings" in said[0]


def test_a_broken_file_is_named(tmp_path):
    (tmp_path / "results.json").write_text("{")
    with pytest.raises(ValueError, match=r"results\.json cannot be read"):
        Kept(tmp_path, "trial", {})


def test_a_missing_recording_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"no recording .*nothing\.npz.*--data"):
        recording("nothing.npz", tmp_path)
