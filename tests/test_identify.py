"""Identification: exact Jacobians, known parameters found again, and what the data cannot show is said."""

import json
import zipfile

import numpy as np
import pytest

import jointgrad as jg
from jointgrad import cli
from jointgrad.model.parameters import INERTIA, Entry, Inertia, Unknowns, from_log_cholesky, log_cholesky
from jointgrad.optimize.identify import Identification, Recording, Settings, identify
from jointgrad.optimize.identify_report import write_report
from jointgrad.optimize.progress import Stop

DAMPING, MASS = 0.35, 1.7


def pendulum(damping=0.05, mass=1.0):
    world = jg.World(gravity=(0, 0, -9.81))
    world.add(jg.zoo.double_pendulum(damping=(damping, 0.1)))
    model = world.compile(dt=0.01, contact=None)
    return model.replace({"link.mass": [1.0, mass]})


def recorded(model, steps=200, seed=0, noise=0.0, q0=(2.0, -1.0)):
    rng = np.random.default_rng(seed)
    u = np.repeat(rng.normal(size=(steps // 10, model.nu)), 10, axis=0)
    motion = jg.rollout(model, jg.State(np.array(q0), np.zeros(model.nv)), u)
    return Recording(
        motion.q + noise * rng.normal(size=motion.q.shape), motion.qd + noise * rng.normal(size=motion.qd.shape), u
    )


@pytest.fixture(scope="module")
def model():
    return pendulum()


@pytest.fixture(scope="module")
def data():
    return recorded(pendulum(DAMPING, MASS))


UNKNOWN = (Entry("joint.damping", "joint0", bounds=(0, 5)), Entry("link.mass", "link1", log=True))


def test_log_cholesky_there_and_back():
    rng = np.random.default_rng(0)
    for _ in range(20):
        points, weights = rng.normal(size=(6, 3)), rng.uniform(0.1, 1, 6)
        mass, com = weights.sum(), weights @ points / weights.sum()
        r = points - com
        I = (weights[:, None, None] * ((r**2).sum(-1)[:, None, None] * np.eye(3) - r[:, :, None] * r[:, None])).sum(0)
        six = I[(0, 0, 0, 1, 1, 2), (0, 1, 2, 1, 2, 2)]
        again = from_log_cholesky(log_cholesky(mass, com, six))
        assert again[0] == pytest.approx(mass)
        assert again[1] == pytest.approx(com)
        assert again[2] == pytest.approx(six)


def test_any_ten_numbers_are_a_body():
    for x in np.random.default_rng(1).normal(size=(50, 10)):
        mass, _, (xx, xy, xz, yy, yz, zz) = from_log_cholesky(x)
        moments = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        assert mass > 0 and moments[0] > 0 and moments[0] + moments[1] >= moments[2] * (1 - 1e-12)


def test_directions_are_those_of_differences(model):
    unknowns = Unknowns(model, [*UNKNOWN, Inertia("link0")])
    x, h = unknowns.start + 0.01, 1e-6
    directions = unknowns.directions(x)
    for k in range(unknowns.n):
        up, down = (unknowns.values((x + s * h * np.eye(unknowns.n)[k])[None]) for s in (1, -1))
        for name in INERTIA:
            assert directions[name][k] == pytest.approx((up[name][0] - down[name][0]) / (2 * h), abs=1e-7)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"mode": "reverse"},
        {"segment": 50, "starts": "measured"},
        {"segment": 70},
        {"segment": 70, "sigma_defect": 1e-4},
    ],
)
def test_jacobian_is_that_of_differences(model, data, settings):
    problem = Identification(model, [data], [*UNKNOWN, Inertia("link0")], Settings(**settings))
    x, rng = problem.start[None], np.random.default_rng(2)
    dx = rng.normal(size=x.shape) * 0.1
    _, J = problem.jacobian(x)
    numeric = (problem.residuals(x + 1e-5 * dx) - problem.residuals(x - 1e-5 * dx)) / 2e-5
    assert J[0] @ dx[0] == pytest.approx(numeric[0], rel=1e-5, abs=1e-5 * np.abs(numeric).max())
    losses, slope = problem.gradient(x)
    numeric = (problem.value(x + 1e-6 * dx) - problem.value(x - 1e-6 * dx)) / 2e-6
    assert slope[0] @ dx[0] == pytest.approx(numeric[0], rel=1e-4)


@pytest.mark.parametrize("method, most", [("lm", 12), ("lbfgs", 60)])
def test_finds_what_made_the_motion(model, data, method, most):
    settings = Settings(1.0, 1.0, segment=50, starts="exact")
    fit = identify(model, data, UNKNOWN, settings, method, Stop(iterations=most, target=1e-18))
    assert [e.value for e in fit.estimates] == pytest.approx([DAMPING, MASS], rel=1e-5)
    assert fit.estimates[0].start == pytest.approx(0.05)
    assert fit.model.params["link.mass"][1] == pytest.approx(MASS, rel=1e-5)
    assert not fit.unidentifiable


def test_free_starts_forgive_noise(model):
    noisy = recorded(pendulum(DAMPING, MASS), steps=300, noise=0.02)
    settings = Settings(0.02, 0.02, segment=50, starts="free", sigma_defect=1e-3)
    fit = identify(model, noisy, UNKNOWN, settings, stop=Stop(iterations=20, patience=3))
    for estimate, truth in zip(fit.estimates, (DAMPING, MASS), strict=True):
        assert abs(estimate.value - truth) < 5 * estimate.deviation
        assert 0 < estimate.deviation < 0.05
    assert fit.residual_rms == pytest.approx(1.0, abs=0.2)


def test_deviation_is_the_scatter_of_repeated_fits(model):
    """Covariance against the truth: the same experiment with other noise."""
    noisy = [recorded(pendulum(DAMPING, MASS), 100, 0, 0.0) for _ in range(24)]
    found, said = [], []
    for k, clean in enumerate(noisy):
        rng = np.random.default_rng(k)
        q, qd = (a + 0.01 * rng.normal(size=a.shape) for a in (clean.q, clean.qd))
        q[0], qd[0] = clean.q[0], clean.qd[0]
        fit = identify(  # fmt: skip
            model,
            Recording(q, qd, clean.u),
            UNKNOWN,
            Settings(0.01, 0.01, segment=None, starts="exact"),
            stop=Stop(iterations=8, patience=2),
        )
        found.append([e.value for e in fit.estimates])
        said.append([e.deviation for e in fit.estimates])
    scatter = np.std(found, axis=0, ddof=1)
    assert np.all(np.mean(said, axis=0) / scatter < 1.8) and np.all(np.mean(said, axis=0) / scatter > 0.55)


def test_says_what_the_data_do_not_show(model, data):
    # a hinge about y under gravity shows nothing of a moment of inertia about x
    entries = [Entry("link.inertia", "link1", columns=[0, 3], scale=0.01), Entry("joint.damping", "joint0")]
    fit = identify(model, data, entries, Settings(segment=50), stop=Stop(iterations=3))
    assert [set(d) for d in fit.unidentifiable] == [{"link.inertia[link1][0]"}]
    assert np.isnan(fit.estimates[0].deviation) and np.isfinite(fit.estimates[2].deviation)


def test_inertia_stays_physical(model, data):
    fit = identify(
        model,
        data,
        [Inertia("link1"), Entry("joint.damping", "joint[01]")],
        Settings(1.0, 1.0, segment=40, starts="exact"),
        stop=Stop(iterations=15),
    )
    assert fit.result.loss < 1e-3 * fit.result.history.best[0]
    # of a planar motion only some combinations can be seen
    assert len(fit.unidentifiable) >= 3
    assert len(fit.estimates) == len(fit.unknowns.physical_names) == 12


# segments, starts and honest intervals ------------------------------------------------------------------------------------

TRUTH = (0.35, 0.15)


def two_joints(damping=(0.0, 0.0)):
    robot = jg.zoo.pendulum(2)
    for name, value in zip(("joint0", "joint1"), damping, strict=True):
        robot.joints[name].damping = value
    return robot


def swinging(seed, noise, samples=200, differences=False, start=None):
    """A noisy recording of a pendulum with the true dampings, from a start of its own."""
    model, rng = two_joints(TRUTH).compile(dt=5e-3), np.random.default_rng(seed)
    start = (
        jg.State(rng.uniform(-2, 2, 2), rng.normal(size=2)) if start is None else jg.State(np.array(start), np.zeros(2))
    )
    motion = jg.rollout(model, start, np.zeros((samples, model.nu)))
    q = motion.q + noise * rng.normal(size=motion.q.shape)
    rates = motion.qd + 5 * noise * rng.normal(size=motion.qd.shape)
    return Recording(q, np.gradient(q, 5e-3, axis=0) if differences else rates)


DAMPINGS = [Entry("joint.damping", ["joint0", "joint1"], bounds=(0, 5))]


def off(fit):
    """Errors of the dampings, in standard deviations as said."""
    return np.array([(e.value - t) / e.deviation for e, t in zip(fit.estimates, TRUTH, strict=True)])


@pytest.mark.parametrize("differences", [False, True])
def test_intervals_of_noisy_recordings_hold_the_truth(differences):
    """12 recordings: of 24 95 % intervals 19 or more hold the truth (fewer in 1 of 1,000 honest runs), and errors are as large as
    deviations say."""
    model, errors = two_joints().compile(dt=5e-3), []
    for seed in range(100, 112):
        fit = identify(model, swinging(seed, 0.01, differences=differences), DAMPINGS)
        errors.append(off(fit))
    errors = np.array(errors)
    assert (np.abs(errors) < 1.96).sum() >= 19
    assert 0.6 < np.sqrt((errors**2).mean()) < 1.5


def test_starts_are_found_where_that_predicts_better():
    fit = identify(two_joints().compile(dt=5e-3), swinging(0, 0.02, samples=600), DAMPINGS)
    assert fit.starts == "free" and fit.is_converged and np.abs(off(fit)).max() < 4
    measured = [c for c in fit.choice if c.starts == "measured"]
    chosen = [c for c in fit.choice if c.is_chosen]
    assert len(measured) == len(chosen) == 1 and chosen[0].error < measured[0].error
    assert fit.noise.sigma_q == pytest.approx(0.02, rel=0.15) and fit.noise.sigma_qd == pytest.approx(0.1, rel=0.15)


def test_rates_made_of_angles_are_not_counted_twice():
    fit = identify(two_joints().compile(dt=5e-3), swinging(1, 0.01, differences=True), DAMPINGS)
    assert np.isnan(fit.noise.sigma_qd).all() and any("q alone is fitted" in note for note in fit.notes)


def test_noise_of_a_measured_start_widens_the_intervals():
    model, record = two_joints().compile(dt=5e-3), swinging(2, 0.002, samples=100)
    by = {
        kind: identify(model, record, DAMPINGS, Settings(segment=None, starts=kind)) for kind in ("measured", "exact")
    }
    for wide, narrow in zip(by["measured"].estimates, by["exact"].estimates, strict=True):
        assert wide.value == pytest.approx(narrow.value, abs=1e-9) and wide.deviation > 1.2 * narrow.deviation


def test_elimination_of_starts_is_the_dense_step(model, data):
    problem = Identification(model, [data], UNKNOWN, Settings(0.1, 1.0, segment=30))
    x = problem.start + 0.1 * np.random.default_rng(4).uniform(size=problem.n)
    tried = problem.tried(x[None])
    r, arrow = tried.residuals[0], tried.jacobians([0])[0][0]
    J, free, scale, damping = arrow.dense(), np.arange(problem.n) != 1, np.linspace(0.5, 2, problem.n), 1e-3
    A = J[:, free] * scale[free]
    weight = damping * (A**2).sum() / min(A.shape)
    expected = np.zeros(problem.n)
    expected[free] = -scale[free] * np.linalg.solve(A.T @ A + weight * np.eye(free.sum()), A.T @ r)
    np.testing.assert_allclose(arrow.damped_step(free, scale, damping), expected, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(arrow.pull(r), J.T @ r, rtol=1e-9, atol=1e-9)


@pytest.fixture(scope="module")
def on_disk(tmp_path_factory):
    """A robot without dampings, and a noisy recording of one with."""
    folder = tmp_path_factory.mktemp("identify")
    (folder / "robot.xml").write_text(jg.to_mjcf(jg.World(dt=5e-3).add(two_joints())))
    record = swinging(3, 0.01, samples=1000, start=(1.8, -0.9))
    np.savez(folder / "run.npz", q=record.q, qd=record.qd)
    return folder


def identified(folder, *options, run="run.npz"):
    files = [str(folder / "robot.xml"), str(folder / run), "--out", str(folder / "out"), "--no-ground"]
    return cli.main(["identify", *files, "--unknowns", "joint.damping=joint[01]:0:5", *options])


def test_a_fit_that_stalls_has_its_own_exit_code(on_disk, capsys):
    assert identified(on_disk) == 0
    said = capsys.readouterr().out
    assert ": chosen" in said and "measured start" in said and "noise of q: 0.0" in said and "Identifying" in said
    assert identified(on_disk, "--segments", "1", "--iterations", "1") == cli.STALLED
    assert "NOT CONVERGED" in capsys.readouterr().out
    assert not json.loads((on_disk / "out" / "fit.json").read_text())["converged"]
    assert identified(on_disk, "--segments", "0.5") == 0
    assert json.loads((on_disk / "out" / "fit.json").read_text())["segment"] == 100
    assert identified(on_disk, "--segments", "often") == 2 == identified(on_disk, "--segments", "-1")


def test_broken_recordings_are_refused(on_disk, capsys):
    q = np.zeros((50, 2))
    (on_disk / "text.npz").write_text("time,q0,q1\n0,1,2\n")
    np.save(on_disk / "one.npy", q)
    np.savez(on_disk / "words.npz", q=np.full((50, 2), "a"), qd=q)
    np.savez(on_disk / "flat.npz", q=q[:, 0], qd=q)
    np.savez(on_disk / "wide.npz", q=np.zeros((50, 3)), qd=q)
    np.savez(on_disk / "infinite.npz", q=q + np.inf, qd=q)
    np.savez(on_disk / "unseen.npz", q=q * np.nan, qd=q * np.nan)
    np.savez(on_disk / "half.npz", q=q, qd=q, every=0.5)
    np.savez(on_disk / "few.npz", q=q)
    whole = (on_disk / "run.npz").read_bytes()
    (on_disk / "cut.npz").write_bytes(whole[: len(whole) // 2])
    spoilt = bytearray(whole)
    spoilt[300:400] = bytes(100)
    (on_disk / "spoilt.npz").write_bytes(bytes(spoilt))
    with zipfile.ZipFile(on_disk / "other.npz", "w") as archive:
        archive.writestr("q.npy", b"not an array")
    names = ("text", "words", "flat", "wide", "infinite", "unseen", "half", "few", "cut", "spoilt", "other", "absent")
    for name in [*(f"{n}.npz" for n in names), "one.npy"]:
        assert identified(on_disk, run=name) == 2, name
        assert "Traceback" not in capsys.readouterr().err


def test_report_can_be_read(model, data, tmp_path):
    fit = identify(model, data, UNKNOWN, Settings(segment=50), stop=Stop(iterations=6))
    page = write_report(fit, tmp_path / "new")
    kept = json.loads((tmp_path / "new" / "fit.json").read_text())
    assert kept["estimates"][0]["name"] == "joint.damping[joint0]"
    assert kept["estimates"][0]["value"] == pytest.approx(DAMPING, rel=1e-3)
    assert "joint.damping[joint0]" in page.read_text() and "<svg" in page.read_text()


def test_wrong_input_is_named(model, data):
    with pytest.raises(jg.InputError, match='did you mean "joint0"'):
        Unknowns(model, [Entry("joint.damping", "joint_0")])
    with pytest.raises(jg.InputError, match="twice"):
        Unknowns(model, [Entry("link.mass", "link1"), Inertia("link1")])
    with pytest.raises(jg.InputError, match="outside its bounds"):
        Unknowns(model, [Entry("joint.damping", "joint0", bounds=(1, 2))])
    with pytest.raises(jg.InputError, match="recording 0 must have u"):
        identify(model, Recording(data.q, data.qd, data.u[:-1]), UNKNOWN)


def test_command_line(tmp_path, capsys):
    """A file, a recording in another, and words for the unknowns."""
    robot = jg.zoo.pendulum(2)
    (tmp_path / "robot.xml").write_text(jg.to_mjcf(jg.World(dt=2e-3).add(robot)))
    joint = list(robot.joints)[0]
    for j in robot.joints.values():
        j.damping = 0.3
    true = robot.compile(dt=2e-3)
    start = jg.State(np.array([0.4, -0.2]), np.zeros(2))
    motion = jg.rollout(true, start, np.zeros((200, true.nu)))
    np.savez(tmp_path / "run.npz", q=motion.q, qd=motion.qd, u=np.zeros((200, true.nu)))
    given = [
        "identify",
        str(tmp_path / "robot.xml"),
        str(tmp_path / "run.npz"),
        "--out",
        str(tmp_path / "out"),
        "--no-ground",
    ]
    assert cli.main([*given, "--unknowns", f"joint.damping={joint}:0:2", "joint.damping=*:0:2"]) == 2  # twice the same
    assert cli.main([*given, "--unknowns", "joint.damping=joint?:0:2"]) == 0
    said = json.loads((tmp_path / "out" / "fit.json").read_text())
    np.testing.assert_allclose([e["value"] for e in said["estimates"]], 0.3, rtol=1e-4)
    assert "report.html" in capsys.readouterr().out
    assert said["converged"] and said["estimates"][0]["interval"][0] < 0.3 < said["estimates"][0]["interval"][1]
    assert cli.main([*given, "--unknowns", "joint.damping=*:0"]) == 2
    assert "PARAMETER=ROW:LOW:HIGH" in capsys.readouterr().err


def test_a_parameter_of_the_world_may_have_several_numbers():
    model = jg.World(gravity=(0.1, 0.2, -9.81)).add(jg.zoo.pendulum(1)).compile()
    whole = Unknowns(model, [Entry("world.gravity")])
    np.testing.assert_allclose(whole.physical(whole.start[None])[0], (0.1, 0.2, -9.81))
    down = Unknowns(model, [Entry("world.gravity", columns=2), Entry("world.dt")])
    assert len(down.start) == 2
    moved = down.model_at(down.start * 1.1).params["world.gravity"]
    np.testing.assert_allclose(np.ravel(moved), (0.1, 0.2, -9.81 * 1.1))
