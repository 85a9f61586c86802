"""What README.md and docs/ print runs as printed: a reader may paste every snippet of a page, one after the other."""

import importlib.util
import re
from pathlib import Path

import pytest

import jointgrad as jg

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXTRAS = (
    "ray", "torch", "torchrl", "skrl", "jax", "casadi", "gymnasium", "stable_baselines3", "viser", "scipy", "matplotlib",
)  # fmt: skip


def snippets(page: Path) -> list[tuple[int, str]]:
    """Line and text of every piece of Python on a page."""
    text = page.read_text()
    found = re.finditer(r"^```python\n(.*?)^```$", text, re.M | re.S)
    return [(text[: one.start(1)].count("\n"), one[1]) for one in found]


def missing(text: str) -> list[str]:
    """Packages that a snippet needs and that are not installed."""
    asked = (e for e in EXTRAS if re.search(rf"^(import|from) (jointgrad\.)?{e}\b", text, re.M))
    return [e for e in asked if importlib.util.find_spec(e) is None]


CASES = [pytest.param(page, id=page.name) for page in PAGES if snippets(page)]


@pytest.mark.parametrize("page", CASES)
def test_every_snippet_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    opened = []
    monkeypatch.setattr(
        jg, "view", lambda *args, view=jg.view, **options: opened.append(view(*args, **options, port=0))
    )
    names: dict = {"__name__": page.stem}
    try:
        for line, text in snippets(page):
            if missing(text):
                continue
            exec(compile("\n" * line + text, str(page), "exec"), names)
    finally:
        for viewer in opened:
            viewer.stop()


def test_the_pages_have_snippets():
    assert sum(len(snippets(page)) for page in PAGES) >= 18
