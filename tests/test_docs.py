"""Pages that say what the code says: the reference, the table of parameters, the index."""

import inspect
import re
import sys
from pathlib import Path

import numpy as np
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


@pytest.mark.parametrize("name", sorted(jg.__all__))
def test_no_public_function_hides_its_options(name):
    thing = getattr(jg, name)
    if isinstance(thing, type) and issubclass(thing, Exception):
        return
    for called in (thing, *(member for _, member in reference.methods(thing))):
        found = inspect.signature(called).parameters.values() if callable(called) else ()
        assert not [p for p in found if p.kind is p.VAR_KEYWORD], called


def test_help_names_and_version_are_useful(capsys):
    from jointgrad import cli, zoo

    assert "jg.rollout" in jg.__doc__ and set(dir(jg)) - set(jg.__all__) == {"__doc__", "__version__"}
    assert zoo.a1().name == "a1" and jg.zoo is zoo
    assert cli.main(["--version"]) == 0 and capsys.readouterr().out == f"jointgrad {jg.__version__}\n"


def test_things_show_themselves():
    world = jg.World().add(jg.zoo.laikago(touch="feet"), name="<b>dog", position=(0, 0, 0.46)).add_ground()
    model = world.compile()
    motion = jg.rollout(model, model.initial_state(batch=3), steps=5)
    gradient, seen = motion.backward(q_bar=np.ones((3, model.nq))), jg.inspect(model, model.initial_state())
    for thing, words in (
        (world, '"<b>dog"'), (model, "nq=19"), (motion, "5 steps, 0.005 s, 3 environments"), (gradient, "q (3, 19)"),
        (seen, "mass_matrix"),
    ):  # fmt: skip
        assert words in repr(thing) and len(repr(thing)) < 700
        assert "<table>" in thing._repr_html_() and "<b>" not in thing._repr_html_()


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
