"""Every example runs, and asserts what it shows."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
SLOW = ("05_swing_up_torch", "06_swing_up_jax")
CASES = [pytest.param(p, id=p.stem, marks=[pytest.mark.slow] if p.stem in SLOW else []) for p in EXAMPLES]


@pytest.mark.parametrize("path", CASES)
def test_example(path):
    lines = path.read_text().splitlines()
    assert len(lines) < 80
    assert any(line.lstrip().startswith("assert ") for line in lines)
    runpy.run_path(str(path))
