"""Rows of parameters by name."""

import numpy as np
import pytest

import jointgrad as jg
from jointgrad.model.parameters import Entry, Unknowns


@pytest.fixture(scope="module")
def model():
    return jg.World().add(jg.zoo.pendulum(2)).add_ground().compile(dt=0.01)


def test_rows_are_those_that_were_described(model):
    assert model.joint_names == ("joint0.base", "joint0", "joint1", "tip_joint", "ground.base")
    assert model.rows("joint.damping") == ("joint0", "joint1")
    assert model.rows("joint.placement") == ("joint0", "joint1", "tip_joint")
    assert model.rows("link.mass") == ("link0", "link1", "tip")
    assert model.rows("world.gravity") == model.rows("joint.rest") == ()
    assert Unknowns(model, [Entry("joint.damping")]).names == ["joint.damping[joint0]", "joint.damping[joint1]"]


def test_rows_are_set_by_name(model):
    other = model.replace({"joint.damping": {"joint1": 0.3}, "link.com": {"link?": (0.0, 0.0, -0.4)}})
    assert other.params["joint.damping"].tolist() == [0.0, 0.0, 0.3, 0.0, 0.0]
    assert other.params["link.com"][:2].tolist() == [[0.0, 0.0, -0.4]] * 2
    assert np.array_equal(other.params["link.com"][2:], model.params["link.com"][2:])


def test_rows_of_many_environments(model):
    masses, coms = np.array([1.0, 2.0, 3.0]), np.arange(9.0).reshape(3, 3)
    other = model.replace({"link.mass": {"link1": masses}, "link.com": {"link0": coms}})
    assert other.batch == 3
    assert other.params["link.mass"][:, 1].tolist() == [1.0, 2.0, 3.0]
    assert np.array_equal(other.params["link.com"][:, 0], coms)
    again = other.replace({"link.mass": {"link0": 7.0}})
    assert again.params["link.mass"][:, 0].tolist() == [7.0] * 3


@pytest.mark.parametrize(
    "values, said",
    [
        ({"joint.damping": {"jiont1": 0.1}}, 'did you mean "joint1"'),
        ({"joint.damping": {"elbow": 0.1}}, "the joints are joint0, joint1$"),
        ({"joint.damping": [0.1, 0.1]}, r"of joint0, joint1"),
        ({"joint.damping": {"joint1": "soft"}}, "not a number"),
        ({"joint.damping": {"joint1": [[0.1]]}}, r"must have shape \(\)"),
        ({"link.mass": {"link0": [1.0, 2.0], "link1": [1.0, 2.0, 3.0]}}, "3 environments"),
        ({"joint.rest": {"joint1": 0.1}}, "no names"),
        ({"world.dt": {"joint1": 0.1}}, "no names"),
        ({"joint.damping": {"joint1": -1.0}}, 'of joint "joint1" is negative'),
    ],
)
def test_what_cannot_be(model, values, said):
    with pytest.raises(jg.InputError, match=said):
        model.replace(values)
