"""Names that have changed work for one release, wherever a name is given, and say what they are called."""

import dataclasses

import numpy as np
import pytest

import jointgrad as jg
from jointgrad.model.parameters import Entry, Unknowns
from jointgrad.model.renamed import RENAMED

OLD = [("pair.stabilisation", "pair.baumgarte"), ("pair.push_limit", "pair.max_push_out_speed"),
       ("world.stabilisation", "world.baumgarte")]  # fmt: skip


@pytest.fixture(scope="module")
def model():
    robot = jg.Description("ball", base="free")
    robot.add_link("ball", 1.0, inertia=(0.01,) * 3).shapes.append(jg.Shape("sphere", (0.1,)))
    return jg.World().add(robot, position=(0, 0, 0.1)).add_ground().compile()


def told(new: str):
    return pytest.warns(DeprecationWarning, match=f'is called "{new}"')


@pytest.mark.parametrize(("old", "new"), OLD)
def test_parameters(model, old, new):
    with told(new):
        assert model.params[old] is model.params[new]
    with told(new):
        other = model.replace({old: 3.0 * model.params[new]})
    np.testing.assert_array_equal(other.params[new], 3.0 * model.params[new])
    motion = jg.rollout(model, model.initial_state(), steps=2)
    gradient = motion.backward(qd_bar=np.ones(model.nv))
    with told(new):
        assert gradient.params[old] is gradient.params[new]
    with told(new):
        dq, _ = motion.tangent(params={old: np.ones_like(model.params[new])})
    assert np.array_equal(dq, motion.tangent(params={new: np.ones_like(model.params[new])})[0])
    with told(new):
        assert Unknowns(model, [Entry(old)]).names == Unknowns(model, [Entry(new)]).names
    with told(new):
        assert model.is_shared(old)


@pytest.mark.parametrize("old", RENAMED)
def test_laws_and_pairs(old):
    new = RENAMED[old]
    with told(new):
        law = jg.Impulse(**{old: 0.7})
    assert law == jg.Impulse(**{new: 0.7})
    with told(new):
        assert getattr(law, old) == 0.7
    with told(new):
        assert dataclasses.replace(law, **{old: 0.5}) == jg.Impulse(**{new: 0.5})
    with told(new):
        world = jg.World().pair("a", "b", **{old: 0.5})
    assert world.rules[0].options == {new: 0.5}


def test_files_of_models(model, tmp_path):
    """A file with old names, as earlier versions wrote it, makes the same model, without a warning."""
    changed = model.replace({"pair.baumgarte": [0.3], "world.baumgarte": 0.1})
    changed.save(tmp_path / "new.npz")
    old_of = {new: old for old, new in OLD}
    with np.load(tmp_path / "new.npz") as file:
        arrays = {f"param.{old_of[n[6:]]}" if n[6:] in old_of else n: file[n] for n in file.files}
    for name, x in arrays.items():
        if x.dtype == np.uint8:
            text = x.tobytes()
            for old, new in RENAMED.items():
                text = text.replace(f'"{new}"'.encode(), f'"{old}"'.encode())
            arrays[name] = np.frombuffer(text, np.uint8)
    assert any(b"push_limit" in x.tobytes() for x in arrays.values() if x.dtype == np.uint8)
    np.savez(tmp_path / "old.npz", **arrays)
    read = jg.load_model(tmp_path / "old.npz")
    assert all(np.array_equal(read.params[n], x) for n, x in changed.params.items())


def test_a_name_that_never_was_is_an_error(model):
    with pytest.raises(KeyError, match="pair.bounce"):
        model.params["pair.bounce"]
    with pytest.raises(jg.InputError, match='there is no parameter "pair.bounce"'):
        model.replace({"pair.bounce": 1.0})
