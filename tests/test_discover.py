"""Discovery: proximal steps are what they claim, zeros are zeros, and the friction of a joint is found to be its own velocity."""

import json

import numpy as np
import pytest

import jointgrad as jg
from jointgrad import cli
from jointgrad.grafts.blueprint import layers
from jointgrad.grafts.discover import Lasso, Prediction, Settings, discover, windows
from jointgrad.reproduce import friction_samples, pendulum_friction

QD0, QD1 = "joint.velocity[joint0]", "joint.velocity[joint1]"


@pytest.fixture(scope="module")
def lasso():
    return Lasso(pendulum_friction.undamped(0), pendulum_friction.recorded(0, runs=3), Settings())


def test_windows_are_pieces_of_the_runs():
    q = np.arange(11.0)[:, None, None] + np.array([0.0, 100.0])[:, None]
    cut = windows(q, 2 * q, q[:10], steps=3, every=4)
    assert cut.start.q[:, 0].tolist() == [0.0, 100.0, 4.0, 104.0]
    assert cut.q[:, 3, 0].tolist() == [105.0, 106.0, 107.0]
    assert cut.u[:, 2, 0].tolist() == [4.0, 5.0, 6.0]
    with pytest.raises(jg.InputError, match="from 1 to 10 steps"):
        windows(q, q, None, steps=11)


def test_a_network_may_see_all_joints():
    own = jg.graft(jg.zoo.double_pendulum().compile(dt=0.01), "joint.force", ["joint.velocity"])
    assert own.topology.grafts[0].seen == ((QD0,), (QD1,))
    everything = jg.graft(
        jg.zoo.double_pendulum().compile(dt=0.01), "joint.force", ["control", "joint.velocity"], sees="all"
    )
    assert everything.topology.grafts[0].seen == (("control[motor0]", "control[motor1]", QD0, QD1),) * 2
    assert everything.topology.grafts[0].sizes[0] == 4
    with pytest.raises(jg.InputError, match="none of own, all"):
        jg.graft(jg.zoo.double_pendulum().compile(dt=0.01), "joint.force", ["control"], sees="some")


def test_slopes_of_the_error_are_those_of_differences(lasso):
    rng = np.random.default_rng(1)
    z = lasso.prediction.model.params["graft.weight"] * lasso.unit
    z, d = z + 0.1 * rng.normal(size=z.shape), 1e-5 * rng.normal(size=z.shape)
    _, slope = lasso.gradient(z)
    assert slope @ d == pytest.approx((lasso.value(z + d) - lasso.value(z - d)) / 2, rel=1e-6)


def test_networks_that_say_nothing_have_error_one(lasso):
    assert lasso.prediction.value(np.zeros_like(lasso.unit)) == pytest.approx(1.0)


def test_the_proximal_step_minimises_what_it_should(lasso):
    rng, amount = np.random.default_rng(2), 0.3
    z = rng.normal(size=len(lasso.unit))
    best = lasso.shrunk(z, amount)
    cost = lambda x: 0.5 * ((x - z) ** 2).sum() + lasso.penalty(x, amount)  # noqa: E731
    for scale in (1e-4, 1e-2, 0.3):
        assert all(cost(best) <= cost(best + scale * rng.normal(size=z.shape)) for _ in range(50))
    assert np.array_equal(best[lasso.is_upper], z[lasso.is_upper])
    assert not any(sizes.any() for sizes in lasso.sizes(lasso.shrunk(z, 5.0)))


def test_discovery_needs_networks():
    data = pendulum_friction.recorded(0, runs=2)
    with pytest.raises(jg.InputError, match="no networks"):
        discover(jg.zoo.double_pendulum().compile(dt=0.01), data, data)


def test_the_friction_of_a_joint_is_its_own_velocity(tmp_path, capsys):
    assert cli.main(["reproduce", "pendulum-friction", "--quick", "--out", str(tmp_path)]) == 0
    one = json.loads((tmp_path / "results.json").read_text())["seeds"]["0"]
    assert one["inputs"] == {"joint.force[joint0]": [QD0], "joint.force[joint1]": [QD1]}
    assert one["held_out_error"] < 0.01
    assert np.allclose(one["slopes"], -np.array(pendulum_friction.DAMPING), atol=0.03)
    assert (tmp_path / "connections_0.png").stat().st_size > 5000
    assert "on 1 of 1 seeds" in capsys.readouterr().out
    before = (tmp_path / "results.json").read_bytes()
    assert cli.main(["reproduce", "pendulum-friction", "--quick", "--out", str(tmp_path)]) == 0
    assert "1 parts are finished already" in capsys.readouterr().out
    assert (tmp_path / "results.json").read_bytes() == before


def test_weights_of_other_inputs_are_exactly_zero():
    model = jg.graft(
        jg.zoo.double_pendulum().compile(dt=0.01), "joint.force", ["joint.position", "joint.velocity"],
        jg.MLP((4,), "tanh", scale=0.1), sees="all",
    )  # fmt: skip
    data = [pendulum_friction.recorded(s, runs=5) for s in (0, 1)]
    found = discover(model, *data, Settings(penalties=(0.1, 0.3, 10.0), iterations=40, first_iterations=40))
    assert found.path[-1 - found.left_out].count == 0
    for k, names in enumerate(found.inputs.values()):
        W = layers(found.model, 0, k)[0][0]
        for i, name in enumerate(found.seen[f"joint.force[joint{k}]"]):
            assert W[:, i].any() == (name in names)
    assert Prediction(found.model, data[1]).value(found.model.params["graft.weight"]) < 1.0


def test_a_hybrid_predicts_from_few_samples_and_a_network_alone_does_not():
    said = friction_samples.compared(lambda _, compute: compute(), lambda _: None, (0, 1), hybrids=(10,), mlps=(20,))
    errors = said["errors"]
    assert max(errors["hybrid, own velocity"]["10"]) < 0.2 < 1.0 < min(errors["MLP"]["20"])
    assert len(set(errors["MLP"]["20"])) == 2  # other data for each seed
    assert max(said["floor"]) < 0.01
    assert said["fewer_samples"]["hybrid, own velocity"] == 2.0


def test_fewer_samples_goes_by_medians():
    table = {
        "hybrid": {"3": [0.1, 0.1, 9.0], "10": [5.0, 5.0, 0.1], "30": [0.1, 0.1, 0.1]},
        "MLP": {"300": [1.0, 1.0, 9.0]},
    }
    assert friction_samples.fewer_samples(table) == {"hybrid": 10.0}  # at 3 it was luck: 10 are not enough


def test_slopes_of_the_network_alone_are_those_of_differences():
    net = friction_samples.Regression(friction_samples.samples(20, 0), 0)
    d = 1e-6 * np.random.default_rng(1).normal(size=net.x.shape)
    assert net.loss(net.x)[1] @ d == pytest.approx((net.loss(net.x + d)[0] - net.loss(net.x - d)[0]) / 2, rel=1e-6)
