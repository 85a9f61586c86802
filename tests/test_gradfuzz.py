"""The fuzzing of gradients itself: it finds nothing where nothing is wrong, and what was broken on purpose."""

from __future__ import annotations

import io
import itertools
import json

import numpy as np
import pytest
from rich.console import Console

import jointgrad as jg
from jointgrad.bench import gradfuzz
from jointgrad.bench.gradfuzz_check import AGREES, DIFFERS, KINK, Check
from jointgrad.bench.gradfuzz_worlds import KINKS, at_kink, still, subject

DIRECTIONS = 60


def test_worlds_are_the_same_for_the_same_seed():
    one, two = subject(3, 1, ()), subject(3, 1, ())
    assert one.name == two.name and all(np.array_equal(one.inputs[n], two.inputs[n]) for n in one.inputs)


def test_random_worlds():
    """A few of the worlds that `jointgrad bench gradfuzz` goes through."""
    tally = gradfuzz.Tally(0)
    for number, one, _, found in gradfuzz.worlds(0, (), DIRECTIONS, tally):
        tally.add(number, one, found)
        assert [gradfuzz.described(one, 0, number, o) for o in found if o.is_wrong] == []
        if number > 12:
            break
    assert tally.directions > 500 and tally.aside <= gradfuzz.MOST_ASIDE


@pytest.mark.parametrize("kind", KINKS)
def test_at_kinks_the_gradient_is_the_slope_of_one_side(kind):
    """And the tangent is that of the same side."""
    made = (at_kink(np.random.default_rng(seed)) for seed in range(200))
    verdicts = []
    for name, model in list(itertools.islice((one for one in made if one[0].endswith(kind)), 3)):
        rng = np.random.default_rng(0)
        check = Check(still(name, model, rng), rng)
        verdicts += [o.verdict for o in check.outcomes(check.directions(100, rng))]
    assert DIFFERS not in verdicts and AGREES in verdicts
    if kind in ("stop", "motor", "force", "tendon", "touch"):
        assert KINK in verdicts


def test_a_reverse_broken_on_purpose_is_found(monkeypatch, tmp_path):
    """The derivative by a friction of zero with its sign turned, as a reverse had it that guessed the side from the impulse."""
    right = jg.Trajectory.backward

    def wrong(self, *bars, **options):
        found = right(self, *bars, **options)
        turned = found.params["pair.friction"]
        turned[self.model.params["pair.friction"] == 0] *= -1
        return found

    monkeypatch.setattr(jg.Trajectory, "backward", wrong)
    said = io.StringIO()
    numbers = (n for n in range(100) if _slides_without_friction(n))
    code = gradfuzz.fuzz(None, 60.0, 10**6, 0, next(numbers), tmp_path, Console(file=said, width=200))
    assert code == 1
    result = json.loads((tmp_path / "gradfuzz.json").read_text())
    assert {w["of"].split("[")[0] for w in result["wrong"]} == {"pair.friction"}
    assert "jointgrad bench gradfuzz --seed 0 --world" in said.getvalue() and "NOT GOOD" in said.getvalue()


def _slides_without_friction(number: int) -> bool:
    one = subject(0, number, ())
    has_impulses = one.model.topology.tree["has_impulses"] and one.name.startswith("pile")
    return bool(has_impulses and not one.inputs["pair.friction"].all() and not one.is_at_kink)
