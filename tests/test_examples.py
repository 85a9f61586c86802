"""Every example runs, and asserts what it shows."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").rglob("*.py"))
SLOW = ("05_swing_up_torch", "06_swing_up_jax")
CASES = [pytest.param(p, id=p.stem, marks=[pytest.mark.slow] if p.stem in SLOW else []) for p in EXAMPLES]


@pytest.mark.parametrize("path", CASES)
def test_example(path):
    lines = path.read_text().splitlines()
    assert len(lines) < 80
    assert any(line.lstrip().startswith("assert ") for line in lines)
    if "torch" in path.stem:  # its threads and those of the other tests would wait for each other
        pytest.importorskip("torch", reason="the extra [torch] is not installed").set_num_threads(1)
    runpy.run_path(str(path))
