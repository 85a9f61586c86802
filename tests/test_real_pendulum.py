"""Real pendulums: the equations are the engine's, splits do not overlap, regression is exact on made-up data, and the quick run."""

import json

import numpy as np
import pytest

import jointgrad as jg
from jointgrad.grafts.weights import said_by
from jointgrad.optimize import windows
from jointgrad.reproduce import real_machines as machines
from jointgrad.reproduce import real_pendulum, real_torques
from jointgrad.reproduce.recordings import folder

pytest.importorskip("scipy")
needs_data = pytest.mark.skipif(not folder().is_dir(), reason="the recordings are not here")
LENGTH, DT = 0.2, 0.002
BODIES = [machines.Body(0.5, 0.2, 0.03, 0.002, 0.01, 0.0), machines.Body(0.6, 0.25, 0.05, 0.003, 0.02, 0.0)]


def made_up(model: jg.Model, count: int = 4) -> machines.Machine:
    """Motions of a model under sines, as a machine."""
    rng, runs = np.random.default_rng(0), []
    time = DT * np.arange(1500)[:, None]
    for k in range(count):
        u = 0.4 * np.sin(2 * np.pi * rng.uniform(0.3, 1.5, 2) * time + rng.uniform(0, 6, 2))
        motion = jg.rollout(model, jg.State(rng.normal(size=2), rng.normal(size=2)), u)
        runs.append(machines.Run(f"run {k}", motion.q[:-1], motion.qd[:-1], u))
    return machines.Machine("made up", DT, {"itself": model}, [], runs, LENGTH)


def test_published_numbers_are_kept_whatever_masses_are_chosen():
    base = machines.base_numbers(machines.pendulum(BODIES, LENGTH, DT), LENGTH)
    np.testing.assert_allclose(base["inertia"], [0.03 + 0.6 * 0.04, 0.05])
    np.testing.assert_allclose(base["moment"], [0.5 * 0.2 + 0.6 * 0.2, 0.6 * 0.25])
    np.testing.assert_allclose(base["armature"], [0.002, 0.003])
    np.testing.assert_allclose(base["damping"], [0.01, 0.02])


@pytest.mark.parametrize("links", [1, 2])
def test_equations_written_out_are_those_of_the_engine(links):
    dt, rng = 1e-6, np.random.default_rng(1)
    model = machines.pendulum(BODIES[:links], LENGTH, dt)
    model = model.replace({"joint.friction": 0 * model.params["joint.friction"]})
    q, qd, u = (s * rng.normal(size=(5, links)) for s in (1.0, 3.0, 1.0))
    qdd = (jg.step(model, jg.State(q, qd), u).qd - qd) / dt
    np.testing.assert_allclose(machines.inverse(machines.base_numbers(model, LENGTH), LENGTH, q, qd, qdd), u, atol=1e-8)


def test_splits_do_not_overlap():
    m = made_up(machines.pendulum(BODIES, LENGTH, DT))
    for split in (machines.divided(m, name) for name in machines.SPLITS):
        parts = [{tuple(row) for r in runs for row in r.q} for runs in (*split.folds, split.held_out)]
        assert all(parts)
        assert len(set.union(*parts)) == sum(len(p) for p in parts)
        assert [r.name for r in split.without(0)] == [r.name for fold in split.folds[1:] for r in fold]
    assert [r.name for r in machines.divided(m, "runs").held_out] == ["run 1", "run 3"]
    with pytest.raises(ValueError, match="there is no split"):
        machines.divided(m, "other")


def test_torques_of_made_up_motions_are_explained(monkeypatch):
    monkeypatch.setattr(machines, "SMOOTH", 0.0)  # there is no noise
    model = machines.pendulum(BODIES, LENGTH, DT)
    model = model.replace({"joint.friction": 0 * model.params["joint.friction"]})
    m = made_up(model)
    split = machines.divided(m, "runs")
    assert min(real_torques.of_torques(model, m, split)["explained"]) > 0.98  # smoothing takes the rest
    assert min(real_torques.regression(m, split)["explained"]) > 0.98  # smoothing takes the rest
    wrong = model.replace({"link.com": 0.5 * model.params["link.com"]})
    assert min(real_torques.of_torques(wrong, m, split)["explained"]) < 0.9


def test_fit_finds_the_numbers_of_made_up_motions():
    model = machines.pendulum(BODIES, LENGTH, DT)
    model = model.replace({"joint.friction": 0 * model.params["joint.friction"]})
    m = made_up(model)
    from dataclasses import replace

    from jointgrad.model.parameters import Entry

    m = replace(m, unknowns=[Entry("joint.damping", "joint?", bounds=(0, 1), scale=0.1)])
    start = model.replace({"joint.damping": 0 * model.params["joint.damping"]})
    split = machines.divided(m, "later")
    fit = real_pendulum.fit_to(split.seen, m, split, start, 0.0, 10)
    np.testing.assert_allclose(machines.base_numbers(fit, LENGTH)["damping"], [0.01, 0.02], rtol=1e-4)
    # a pull holds the numbers back, and where it counts more than all motions they stay
    pulled = [real_pendulum.fit_to(split.seen, m, split, start, s, 10) for s in (1e-3, 1e6)]
    some, none = (machines.base_numbers(p, LENGTH)["damping"] for p in pulled)
    assert (some < [0.0099, 0.0199]).all() and (some > 1e-3).all() and (none < 1e-6).all()


@pytest.mark.parametrize("name", real_pendulum.NETWORKS)
def test_networks_outside_say_what_they_say_inside(name):
    """Acceleration of the grafted engine, put into the equations with the network, gives the torque back."""
    dt, rng = 1e-6, np.random.default_rng(2)
    bodies = [machines.Body(0.5, 0.2, 0.03, 0.002, 0.01, 0.1), machines.Body(0.6, 0.25, 0.05, 0.003, 0.02, 0.2)]
    model = machines.pendulum(bodies, LENGTH, dt)
    m = made_up(machines.pendulum(BODIES, LENGTH, DT))
    grafted, _ = real_pendulum.grafted_with(m, machines.divided(m, "runs"), model, name)
    grafted = grafted.replace({"graft.weight": 0.3 * rng.normal(size=grafted.params["graft.weight"].shape)})
    q, u = rng.normal(size=(6, 2)), rng.normal(size=(6, 2))
    qd = rng.choice([-1, 1], (6, 2)) * rng.uniform(1, 3, (6, 2))  # far from rest, where dry friction is what it is
    qdd = (jg.step(grafted, jg.State(q, qd), u).qd - qd) / dt
    # the authors' arctangent is 1 % short of dry friction at 1 rad/s
    np.testing.assert_allclose(real_torques.needed(grafted, m, q, qd, qdd), u, atol=6e-3)


def made_up_windows(count: int = 3) -> tuple[jg.Model, machines.Machine, windows.RecordedWindows, np.ndarray]:
    model = machines.pendulum(BODIES, LENGTH, DT)
    m = made_up(model.replace({"joint.friction": 0 * model.params["joint.friction"]}))
    return m.untuned["itself"], m, real_pendulum.pieces(m.runs, 100, count), real_pendulum.scales(m.runs)


def test_starts_are_found():
    """From a guess that is off, by all samples and by the first ones; those after these cannot count."""
    model, _, data, units = made_up_windows()
    wrong = windows.RecordedWindows(
        data.q, data.u, data.start + np.random.default_rng(0).normal(size=data.start.shape) * 0.05
    )
    assert np.abs(windows.moved(model, wrong.start, data.u, data.steps).q - data.q).max() > 0.02
    np.testing.assert_allclose(windows.found_starts(model, wrong, units), data.start, atol=1e-5)
    later = data.q.copy()
    later[51:] += 1.0
    later = windows.RecordedWindows(later, data.u, wrong.start)
    np.testing.assert_allclose(windows.found_starts(model, later, units, samples=51), data.start, atol=1e-5)


def test_slopes_with_starts_found_are_those_of_differences():
    """The gradient of half the squares of what is left when starts are best, by the projected Jacobian and by differences."""
    from jointgrad.model.parameters import Entry, Unknowns

    model, _, data, units = made_up_windows()
    off = model.replace({"link.com": 0.9 * model.params["link.com"]})
    unknowns = Unknowns(off, [Entry("joint.damping", "joint?", scale=0.1), Entry("link.inertia", None, 3, scale=0.05)])
    sought = windows.FittedParameters(unknowns.start, unknowns.bounds, unknowns.values, unknowns.directions)
    problem = windows.WindowFit(off, data, sought, units, strength=0.01, every=1)

    def half_squares(x):
        starts = windows.found_starts(unknowns.model_at(x), data, units)
        e = (windows.moved(unknowns.model_at(x), starts, data.u, data.steps).q - data.q) / units
        return 0.5 * (e**2).sum() + 0.5 * (problem.pull * (x - sought.start)) @ (problem.pull * (x - sought.start))

    x = sought.start + 0.01
    problem.starts = windows.found_starts(unknowns.model_at(x), data, units)
    tried = problem.tried(x[None])
    J = tried.jacobians([0])[0][0]
    steps = 1e-5 * np.eye(len(x))
    by_differences = [(half_squares(x + d) - half_squares(x - d)) / 2e-5 for d in steps]
    assert half_squares(x) == pytest.approx(0.5 * (tried.residuals[0] ** 2).sum(), rel=1e-6)
    np.testing.assert_allclose(J.T @ tried.residuals[0], by_differences, rtol=1e-3, atol=1e-5)


def test_what_starts_make_up_for_is_no_slope():
    """The gradient does not see the projection, as residuals are across it at the best starts. Where these are zero, the projected
    Jacobian is the derivative of the residuals themselves."""
    from jointgrad.model.parameters import Entry, Unknowns

    model, _, data, units = made_up_windows()
    unknowns = Unknowns(
        model, [Entry("joint.damping", "joint?", scale=0.1), Entry("link.inertia", None, 3, scale=0.05)]
    )
    sought = windows.FittedParameters(unknowns.start, unknowns.bounds, unknowns.values, unknowns.directions)
    problem = windows.WindowFit(model, data, sought, units, every=1)

    def residuals(x):
        starts = windows.found_starts(unknowns.model_at(x), data, units)
        e = windows.moved(unknowns.model_at(x), starts, data.u, data.steps).q - data.q
        return problem._seen(e[:, None]).ravel()

    tried = problem.tried(sought.start[None])
    assert np.abs(tried.residuals).max() < 1e-9
    J = tried.jacobians([0])[0][0][: data.q.size]
    by_differences = [
        (residuals(sought.start + d) - residuals(sought.start - d)) / 2e-4 for d in 1e-4 * np.eye(len(J.T))
    ]
    np.testing.assert_allclose(J.T, by_differences, atol=1e-5 * np.abs(J).max())


def test_a_force_that_is_missing_is_learnt():
    """Motions with damping, a model without: the network for each joint says what the damper does."""
    model, m, _, _ = made_up_windows()
    split = machines.divided(m, "runs")
    none = model.replace({"joint.damping": 0 * model.params["joint.damping"]})
    grown = real_pendulum.grown_on(split.seen, m, split, none, "force by velocity", 1e-8, False)
    units = real_pendulum.scales(split.seen)
    errors = [real_pendulum.followed(one, m, split.held_out, units)["0.5 s"]["q"] for one in (none, grown)]
    assert errors[1] < 0.2 * errors[0]
    speeds = np.linspace(-2, 2, 5)[:, None]
    for i, damping in enumerate((0.01, 0.02)):
        np.testing.assert_allclose(said_by(grown, i, speeds), -damping * speeds, atol=0.006)


def test_angles_of_a_camera():
    """Markers off the axes: angles are those about the axes, but for one number of each marker."""
    rng = np.random.default_rng(0)
    q = np.cumsum(rng.normal(size=(400, 2)), axis=0)
    turned = lambda a: np.stack([np.cos(a), np.sin(a)], -1)  # noqa: E731
    hinge = 590 * turned(q[:, 0])
    markers = [
        [1203.0, 1181.0],
        hinge + 2 * turned(q[:, 0] + 0.5) + [1200, 1184],
        hinge + 450 * turned(q.sum(1)) + [1200, 1184],
    ]
    found = machines.angles(np.concatenate([np.broadcast_to(a, (400, 2)) for a in markers], axis=1))
    np.testing.assert_allclose(np.exp(1j * found), np.exp(1j * q), atol=1e-9)


@needs_data
@pytest.mark.parametrize("name", machines.MACHINES)
def test_recordings_are_read(name):
    m = machines.machine(name)
    assert len(m.runs) >= 2 and m.untuned
    for r in m.runs:
        assert np.isfinite(r.q).all() and np.isfinite(r.qd).all() and len(r.q) == len(r.u) > 1000
        # velocities are those of the angles
        moved = np.diff(r.q, axis=0) / m.dt
        assert np.sqrt(((moved - r.qd[:-1]) ** 2).mean()) < 0.2 * r.qd.std()


@needs_data
def test_quick_run(tmp_path):
    from jointgrad.cli import main

    assert main(["reproduce", "real-pendulum", "--quick", "--out", str(tmp_path)]) == 0
    said = json.loads((tmp_path / "results.json").read_text())["parts"]["C1/later"]
    errors = {k: said[k]["followed"]["0.2 s"]["q"] for k in ("untuned", "fitted", "augmented")}
    # that the network is better than the fit is not so on all recordings (docs/real_machines.md), and not asserted
    assert errors["fitted"] < 0.7 * errors["untuned"] and errors["augmented"] < errors["untuned"]
    assert (tmp_path / "errors.png").is_file()
