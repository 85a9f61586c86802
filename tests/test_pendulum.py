"""`jointgrad reproduce pendulum`: a small version of it improves, leaves files that can be read, and is believed by MuJoCo."""

import csv
import json
import sys

import mujoco
import numpy as np
import pytest
from PIL import Image

import jointgrad as jg
from jointgrad import cli
from jointgrad.reproduce import pendulum, report

N, TOLERANCE = 2, 0.02


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What a small demonstration leaves behind."""
    out = tmp_path_factory.mktemp("demo") / "new" / "folder"
    assert (
        cli.main(["reproduce", "pendulum", "--n", str(N), "--iterations", "100", "--starts", "8", "--out", str(out)])
        == 0
    )
    return out


@pytest.fixture(scope="module")
def row(folder):
    return json.loads((folder / "results.json").read_text())["results"][0]


def test_reaches_the_top(row):
    assert row["ratio"] > 0.999
    assert row["tip_error"] < TOLERANCE
    assert row["return"] == pytest.approx(row["maximum"] - row["tip_error"] ** 2)
    assert row["maximum"] == N**2 / 2


def test_motion_obeys_mechanics(row):
    assert row["energy_error"] < 0.01
    assert row["work"] == pytest.approx(row["energy_gained"], rel=0.01)
    assert row["replay_tip_error"] < TOLERANCE


def test_learning_improves(folder, row):
    with (folder / "learning_curves.csv").open() as file:
        curve = [float(line["best_tip_error"]) for line in csv.DictReader(file)]
    assert curve[-1] < 0.02 * curve[0]
    assert curve[-1] == pytest.approx(row["tip_error"])


def test_files_can_be_read(folder, row):
    with (folder / "results.csv").open() as file:
        (line,) = csv.DictReader(file)
    assert float(line["return"]) == row["return"]
    everything = json.loads((folder / "results.json").read_text())
    assert everything["complete"] and everything["settings"]["starts"] == 8
    assert everything["versions"]["jointgrad"] == jg.__version__
    with Image.open(folder / "learning_curves.png") as picture:
        assert picture.width > 500
    with Image.open(folder / "swing.gif") as picture:
        assert picture.n_frames == 51


def test_torques_keep_the_limit(folder, row):
    kept = np.load(folder / row["torques"])
    assert kept["torques"].shape == (100, N)
    assert np.abs(kept["torques"]).max() <= 10
    assert kept["joints"].shape == (101, N + 1, 3)


def mujoco_pendulum(n: int, dt: float) -> mujoco.MjModel:
    """The paper's pendulum, written for MuJoCo from its table of masses, not from our model."""
    light = '<inertial pos="0 0 0" mass="0.01" diaginertia="1e-4 1e-4 1e-4"/>'
    body = f'<site name="tip" pos="0 0.5 0"/><body pos="0 0.5 0">{light}</body>'
    for i in reversed(range(n)):
        mass, moments = (1.0, "0.00494875 0.00494174 0.002219") if i == 0 else (2.16, "0.00539427 0.0048979 0.00311573")
        body = (
            f'<body pos="0 {0.5 if i else 0} 0"><joint name="j{i}" type="hinge" axis="1 0 0"/>'
            f'<inertial pos="0 0.5 0" mass="{mass}" diaginertia="{moments}"/>{body}</body>'
        )
    motors = "".join(f'<motor joint="j{i}" ctrllimited="true" ctrlrange="-10 10"/>' for i in range(n))
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="{dt}" gravity="0 0 -9.8" integrator="RK4"/>'
        f"<worldbody>{body}</worldbody><actuator>{motors}</actuator></mujoco>"
    )


@pytest.mark.parametrize(("substeps", "closeness"), [(5, 1e-6), (40, 5e-3)])
def test_mujoco_arrives_too(folder, row, substeps, closeness):
    """With our steps MuJoCo ends where we do; with finer ones it comes to the top all the same."""
    kept = np.load(folder / row["torques"])
    model = mujoco_pendulum(N, pendulum.CONTROL_DT / substeps)
    data = mujoco.MjData(model)
    for torque in kept["torques"]:
        data.ctrl[:] = torque
        for _ in range(substeps):
            mujoco.mj_step(model, data)
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(data.site("tip").xpos, kept["joints"][-1, -1], atol=closeness)
    assert np.linalg.norm(data.site("tip").xpos - [0, 0, 0.5 * N]) < TOLERANCE


def test_gradient_is_that_of_the_objective():
    settings = pendulum.Settings(substeps=2)
    model, rng, h = pendulum.pendulum(3, settings), np.random.default_rng(1), 1e-5
    torques, towards = rng.normal(size=(2, 100, 1, 3))
    _, _, torques_bar = pendulum.objective(model, torques, settings)
    ahead, behind = (pendulum.objective(model, torques + s * h * towards, settings)[0][0] for s in (1, -1))
    assert (torques_bar * towards).sum() == pytest.approx((ahead - behind) / (2 * h), rel=1e-6)


def test_coarse_steps_are_found_out():
    """One Euler step per torque lets a long pendulum gain energy from nothing, and the checks say so."""
    swing = pendulum.swing(5, pendulum.Settings(substeps=1, integrator="semi_implicit"))
    assert swing.ratio > 0.999
    assert not report.is_good(swing)
    assert swing.energy_error > 0.1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--n", "9"], "from 1 to 7, but is 9"),
        (["--n", "2", "0"], "from 1 to 7, but is 0"),
        (["--n"], "n is empty"),
        (["--iterations", "0"], "iterations must be 1 or more"),
        (["--integrator", "magic"], 'integrator "magic"'),
    ],
)
def test_bad_arguments_get_one_clear_line(arguments, said, capsys, tmp_path):
    assert cli.main(["reproduce", "pendulum", "--out", str(tmp_path / "never"), *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("jointgrad: ") and said in line
    assert not (tmp_path / "never").exists()


@pytest.mark.parametrize("module", ["tyro", "rich", "matplotlib"])
def test_missing_package_is_named(module, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    assert cli.main(["reproduce", "pendulum", "--n", "1"]) == 2
    assert f'needs {module}: pip install "jointgrad[demo]"' in capsys.readouterr().err


def test_interruption_leaves_what_was_finished(monkeypatch, tmp_path, capsys):
    def interrupted(n, settings, watch, swing=pendulum.swing):
        if n == 2:
            raise KeyboardInterrupt
        return swing(n, settings, watch)

    monkeypatch.setattr(pendulum, "swing", interrupted)
    assert cli.main(["reproduce", "pendulum", "--n", "1", "2", "--out", str(tmp_path)]) == 130
    kept = json.loads((tmp_path / "results.json").read_text())
    assert [r["n"] for r in kept["results"]] == [1] and not kept["complete"]
    assert (tmp_path / "swing.gif").exists()
    shown = capsys.readouterr().out
    assert "1 of 2 pendulums are finished" in shown
    assert shown.splitlines()[-1].endswith(str(tmp_path))


def test_help_is_the_map(capsys):
    with pytest.raises(SystemExit) as left:
        cli.main([])
    assert left.value.code == 0
    shown = capsys.readouterr().out
    assert all(command in shown for command in cli.COMMANDS)
