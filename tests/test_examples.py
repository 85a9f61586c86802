"""Every example runs, and asserts what it shows."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_example(path):
    lines = path.read_text().splitlines()
    assert len(lines) <= 80
    assert any(line.startswith("assert ") for line in lines)
    runpy.run_path(str(path))
