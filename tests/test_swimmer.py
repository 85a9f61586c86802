"""The swimmer experiment: MuJoCo's drag is ours, gradients of the training are those of differences, and the network helps."""

import json

import numpy as np
import pytest

import jointgrad as jg
from jointgrad.grafts.discover import Prediction, windows
from jointgrad.grafts.weights import weight_units
from jointgrad.optimize.graft_training import Objective
from jointgrad.reproduce import swimmer

pytest.importorskip("mujoco")
pytest.importorskip("scipy")


@pytest.fixture(scope="module")
def water():
    return swimmer.data_of("water 25 C", test_runs=2)


@pytest.mark.parametrize(("links", "medium"), [(2, m) for m in swimmer.MEDIA] + [(5, "water 5 C"), (5, "vacuum")])
def test_the_known_law_is_mujocos(links, medium):
    truth = swimmer.recorded(medium, swimmer.TEST_SEED, 3, links)
    q, qd = swimmer.predicted(
        swimmer.swimmer_world(links, *swimmer.MEDIA[medium]).compile(dt=swimmer.DT, contact=None), truth
    )
    np.testing.assert_allclose(q, truth.q, atol=1e-6)
    np.testing.assert_allclose(qd, truth.qd, atol=1e-5)


def test_media_differ_and_runs_have_nothing_in_common(water):
    assert not np.isclose(water.training.q[0], water.test.q[0][:1]).all(-1).any()
    air = swimmer.recorded("air 25 C", swimmer.TEST_SEED, 2)
    np.testing.assert_array_equal(air.u, water.test.u)
    assert np.abs(air.q[-1] - water.test.q[-1]).max() > 0.5
    assert len(water.training.u) == swimmer.CUT and len(water.test.u) == swimmer.STEPS
    assert water.training.q.shape[1] + water.decide.q.shape[1] == swimmer.RUNS


def test_medium_is_identified(water):
    _, found = swimmer.identified(water)
    np.testing.assert_allclose(found["world.density"], 997.0, rtol=1e-6)
    np.testing.assert_allclose(found["world.viscosity"], 0.00089, rtol=1e-4)


def test_gradient_of_training_is_that_of_differences(water):
    model = swimmer.augmented((4,), "tanh")
    units = weight_units(model, swimmer.SEES, swimmer.SAYS)
    m = water.training
    prediction = Prediction(model, windows(m.q, m.qd, m.u, 10, 50), water.scales)
    problem = Objective(prediction, units, 1e-3)
    z = 0.3 * np.random.default_rng(0).normal(size=(1, problem.n))
    slope = problem.gradient(z)[1][0]
    for k in (0, 5, 25, 30, problem.n - 1):
        step = np.zeros_like(z)
        step[0, k] = 1e-5
        wanted = (problem.value(z + step) - problem.value(z - step))[0] / 2e-5
        np.testing.assert_allclose(slope[k], wanted, rtol=1e-5, atol=1e-7)


def test_error_is_of_steps_200_to_900_alone(water):
    t = water.test
    q = t.q.copy()
    q[: swimmer.CUT] += 1.0
    assert swimmer.figures(q, t.qd, t)["q"] == 0
    q = t.q.copy()
    q[swimmer.CUT :] += 0.5
    said = swimmer.figures(q, t.qd, t)
    assert np.isclose(said["q"], 0.5) and said["qd"] == 0


def test_weights_of_a_network_mean_the_same_on_more_links():
    """One network for all links: with the forces that it says to two links, five links feel as many."""
    weights = 1e-3 * np.random.default_rng(1).normal(size=swimmer.augmented((4,), "tanh").params["graft.weight"].size)
    short, long = (
        swimmer.augmented((4,), "tanh", links=n).replace({"graft.weight": weights}) for n in (2, 5)
    )  # fmt: skip
    assert short.params["graft.weight"].size == long.params["graft.weight"].size
    # at rest each link feels the same constant force: the whole swimmer's momentum grows in proportion to its links
    pushed = [jg.step(m, m.initial_state(), np.zeros(m.nu)) for m in (short, long)]
    assert all(np.abs(s.qd).max() > 0 for s in pushed)


def test_quick_run_beats_vacuum_and_lstm_and_resumes(tmp_path, capsys):
    pytest.importorskip("torch")
    from jointgrad.cli import main

    assert main(["reproduce", "swimmer", "--quick", "--out", str(tmp_path)]) == 0
    said = json.loads((tmp_path / "results.json").read_text())["parts"]
    errors = {k: said[f"water 25 C/{k}"]["q"] for k in ("vacuum", "identified", "hybrid", "LSTM", "MLP")}
    assert errors["identified"] < 1e-8 < errors["hybrid"] < errors["LSTM"] / 3
    assert errors["hybrid"] < errors["vacuum"] / 5
    assert said["water 25 C/hybrid"]["weights"] <= swimmer.MOST_WEIGHTS and said["water 25 C/LSTM"]["weights"] <= 1900
    assert (tmp_path / "errors.png").is_file() and (tmp_path / "media.png").is_file()
    capsys.readouterr()
    assert main(["reproduce", "swimmer", "--quick", "--out", str(tmp_path)]) == 0
    assert "parts are finished already" in capsys.readouterr().out


def test_rivals_count_their_weights_and_predict_what_they_are_told(water):
    pytest.importorskip("torch")
    from jointgrad.reproduce import swimmer_rivals as rivals

    m = water.training
    for kind in ("lstm", "mlp"):
        for choice in rivals.choices(kind):
            net = rivals.Predictor(choice, m.q, m.qd, m.u, swimmer.ANGLES, swimmer.DT)
            assert net.count <= rivals.MOST_WEIGHTS
    q, qd = rivals.predicted(net, m.q, m.qd, m.u, told=len(m.u))
    if choice.integrates:
        np.testing.assert_allclose(q[1:], m.q[:-1] + swimmer.DT * qd[1:], atol=1e-5)
    # an untrained network that is told the truth at every step cannot go far from it
    assert np.abs(q - m.q).max() < 0.5
    with pytest.raises(ValueError, match="weights"):
        rivals.Predictor(rivals.Choice("lstm", 20, 0.1, False), m.q, m.qd, m.u, swimmer.ANGLES, swimmer.DT)
