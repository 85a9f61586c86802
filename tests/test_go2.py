"""The real Go2: the robot is the one of the reference, slopes are right, and what is fitted foresees what was held out."""

import json

import numpy as np
import pytest

import jointgrad as jg
from jointgrad import cli
from jointgrad.reproduce import go2, go2_chirp
from jointgrad.reproduce.recordings import folder


@pytest.fixture(scope="module")
def chirp():
    if not (folder() / go2_chirp.FILE).is_file():
        pytest.skip(f"the recording is not here: {folder()}")
    return go2.load()


def test_splits_have_nothing_in_common():
    for split in go2.SPLITS:
        assert not set(split.teaching) & set(split.held_out)
        assert set(split.validation) < set(split.teaching)
        assert sorted(split.teaching + split.held_out) == list(range(16))


def test_pieces_are_pieces_of_the_run(chirp):
    (a, b), (c, d) = spans = go2.blocks(chirp, (3, 15))
    pieces = go2.cut(chirp, spans)
    assert (a, b, c, d) == (900, 1200, 4500, len(chirp.q) - 1)
    assert np.array_equal(pieces.start.qd, chirp.qd[[900, 4500]])
    assert np.array_equal(pieces.u[:: go2.SUBSTEPS, 0], chirp.target[900:1200])
    assert np.array_equal(pieces.q[: d - c + 1, 1], chirp.q[c:])
    assert np.isnan(pieces.q[d - c + 1 :, 1]).all()


def test_the_robot_is_the_one_of_the_reference(chirp):
    """Two figures that were measured elsewhere, with another engine: 0.029 rad untuned, 0.020 rad guessed by hand."""
    whole = go2.cut(chirp, [(0, len(chirp.q) - 1)])
    plain = go2.robot(chirp)
    assert go2.joint_errors(plain, whole).mean() == pytest.approx(0.029, abs=0.001)
    assert go2.joint_errors(go2.with_passive(plain, go2.BY_HAND), whole).mean() == pytest.approx(0.020, abs=0.0005)


def test_few_sweeps_are_enough(chirp):
    """With the base held, only joints of one leg push each other."""
    few = go2.with_passive(go2.robot(chirp), go2.FIRST)
    pieces = go2.cut(chirp, [(900, 1000)])
    slow = jg.zoo.go2()
    slow.base = "fixed"
    for k, motor in enumerate(slow.actuators.values()):
        joint = slow.joint(motor.joint)
        joint.limit, joint.friction = (-np.inf, np.inf), 1e-6
        motor.kind, motor.gain, motor.damping = "position", float(chirp.kp[k]), float(chirp.kd[k])
    for link in slow.links.values():
        link.shapes.clear()
    many = go2.with_passive(slow.compile(dt=1.0 / go2.RATE / go2.SUBSTEPS, contact=jg.Impulse(sweeps=50)), go2.FIRST)
    assert np.abs(go2.motion(few, pieces) - go2.motion(many, pieces)).max() < 1e-9


def test_weights_for_features_are_those_for_what_is_seen(chirp):
    """The first layer says the same of (angle, rate, target) as that in features says of these; slopes by differences."""
    model = go2.grafted(go2.with_passive(go2.robot(chirp), go2.FIRST), 0)
    spans = go2.blocks(chirp, (0, 2))
    weights = go2.Weights(model, chirp, spans)
    rng = np.random.default_rng(0)
    z = rng.normal(size=model.params["graft.weight"].shape)
    first, joint, n = model.topology.grafts[1].first_weights[4], 4, go2.HIDDEN[0]
    taught = np.concatenate([np.arange(a, b) for a, b in spans])
    features = np.stack([chirp.q, chirp.qd, chirp.target - chirp.q], -1)[taught, joint]
    standard = (features - features.mean(0)) / features.std(0)
    layer = lambda w: (w[first : first + 3 * n].reshape(3, n), w[first + 3 * n : first + 4 * n])  # noqa: E731
    (Wz, bz), (W, b) = layer(z), layer(weights.plain(z))
    seen = np.stack([chirp.q, chirp.qd, chirp.target], -1)[taught, joint]
    assert np.allclose(standard @ Wz + bz, seen @ W + b, atol=1e-10)

    training = go2.Training(weights, go2.cut(chirp, [(900, 930), (1500, 1530)]), np.full(12, 0.01))
    z0, d = model.params["graft.weight"], 1e-6 * rng.normal(size=z.shape)
    _, slope = training.gradient(z0)
    assert slope @ d == pytest.approx((training.value(z0 + d) - training.value(z0 - d)) / 2, rel=1e-4)


def test_fitted_beats_the_guess_and_networks_beat_the_fit(chirp, tmp_path, capsys):
    assert cli.main(["reproduce", "go2", "--quick", "--out", str(tmp_path)]) == 0
    parts = json.loads((tmp_path / "results.json").read_text())["parts"]
    error = {name.partition(": ")[2]: part["held_out"] for name, part in parts.items()}
    assert error["augmented 0"] < 0.8 * error["fitted"] < 0.4 * error["by hand"] < 0.4 * error["untuned"]
    friction = parts["blocks: fitted"]["values"]["friction"]
    # the calves, which are driven through a linkage, rub most
    assert min(friction[2::3]) > max(friction[0::3])
    assert (tmp_path / "go2.png").stat().st_size > 10_000
    assert "held out" in capsys.readouterr().out
    assert cli.main(["reproduce", "go2", "--quick", "--out", str(tmp_path)]) == 0
    assert "4 parts are finished already" in capsys.readouterr().out
