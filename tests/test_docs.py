"""Pages that say what the code says: the reference, the table of parameters, the index."""

import re
import sys
from pathlib import Path

import pytest

import jointgrad as jg
from jointgrad.model.arrays import PARAMS

DOCS = Path(__file__).resolve().parents[1] / "docs"
sys.path.insert(0, str(DOCS))

import reference  # noqa: E402

ROWS = {"link": "n", "joint": "m", "shape": "s", "pair": "p", "actuator": "nu", "tendon": "nt"}
OF_THEIR_OWN = {"joint.rest": "(nq,)", "tendon.coefficient": "(terms,)", "graft.weight": "(weights,)"}


def test_the_reference_is_what_the_docstrings_say():
    """python docs/reference.py > docs/reference.md"""
    assert (DOCS / "reference.md").read_text() == reference.text()


@pytest.mark.parametrize("name", sorted(jg.__all__))
def test_every_public_name_is_described(name):
    thing = getattr(jg, name)
    assert reference.described(thing)
    assert not [n for n, member in reference.methods(thing) if not reference.described(member)]
    assert f"## `jg.{name}" in (DOCS / "reference.md").read_text()


def shape(name: str) -> str:
    """As the page writes it."""
    rows, width = ROWS.get(name.split(".")[0], ""), PARAMS[name]
    if name in OF_THEIR_OWN:
        return OF_THEIR_OWN[name]
    inner = [x for x in (rows, str(width) if width > 1 else "") if x]
    return f"({inner[0]},)" if len(inner) == 1 else f"({', '.join(inner)})"


def test_the_table_of_parameters_is_that_of_the_code():
    page = (DOCS / "conventions.md").read_text()
    rows = re.findall(r"^\| `(\w+\.\w+)` \| (\([^|]*\)) \| (.+) \|$", page.split("## Parameters")[1], re.M)
    assert {name: text for name, text, _ in rows} == {name: shape(name) for name in PARAMS}
    assert len(rows) == len(PARAMS) and all(unit.strip() for *_, unit in rows)


def test_the_index_leads_to_every_page():
    linked = set(re.findall(r"\]\(([^)]+)\)", (DOCS / "README.md").read_text()))
    pages = {p.name for p in DOCS.glob("*.md")} - {"README.md"}
    assert linked == pages | {"decisions", "meanings"}
