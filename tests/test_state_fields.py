"""A field of the state is declared once: made-up ones, added to a copy of the package by lines in the table and in one stage, are
integrated, kept, differentiated, linearized, saved, and seen by every door."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import jointgrad

# a filter of every velocity, x' = (qd - x |x|) / TAU, and the velocity of the step before
TABLE = (
    "VELOCITIES)}",
    'VELOCITIES), "before": StateField("n_dofs", CARRIED), "filter": StateField("n_dofs", INTEGRATED)}',
)
OPERATOR = """
@traced
def lagging(rate, x):
    return (rate - x * x * x) * (1.0 / 0.05)


lagging_adjoint = adjoint(lagging, "rate x")


@kernel
def forces(frame):
    for d in range(frame.tree.n_dofs):
        frame.rate.filter[d] = lagging(frame.state.qd[d], frame.state.filter[d])
        frame.next.before[d] = frame.state.qd[d]
"""
REVERSE = """def forces_adjoint(frame, bar):
    for d in range(frame.tree.n_dofs):
        rate_bar, x_bar = lagging_adjoint(frame.state.qd[d], frame.state.filter[d], bar.rate.filter[d])
        accumulate(bar.state.qd, d, rate_bar)
        accumulate(bar.state.filter, d, x_bar)
        if frame.tree.integrator != 2:
            accumulate(bar.state.qd, d, bar.next.before[d])
"""
SCRIPT = Path(__file__).with_name("state_fields_script.py")


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What a process found that ran the changed copy."""
    folder = tmp_path_factory.mktemp("changed")
    package = folder / "jointgrad"
    shutil.copytree(Path(jointgrad.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    table = package / "model" / "state_fields.py"
    (stage,) = (package / "engine").rglob("stages/forces.py")
    text = stage.read_text()
    assert TABLE[0] in table.read_text() and "@kernel\ndef forces(frame):\n" in text
    table.write_text(table.read_text().replace(*TABLE))
    text = text.replace("@kernel\ndef forces(frame):\n", OPERATOR.lstrip())
    stage.write_text(text.replace("def forces_adjoint(frame, bar):\n", REVERSE))
    environment = os.environ | {"PYTHONPATH": str(folder)}
    command = [sys.executable, "-P", str(SCRIPT), str(folder / "run.npz")]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return {name: np.array(value) for name, value in json.loads(done.stdout).items()}


def test_the_field_is_integrated_and_the_other_carried(said):
    """Explicit Euler by hand, from the velocities of the motion."""
    dt, qd, more = float(said["dt"]), said["qd"], said["more"]
    assert said["places"].tolist() == [[2, 4], [0, 2]]  # what is integrated comes first
    x = more[0, :, :2]
    for k in range(len(qd) - 1):
        x = x + dt * (qd[k] - x**3) / 0.05
        np.testing.assert_allclose(more[k + 1, :, :2], x, rtol=1e-12)
        assert np.array_equal(more[k + 1, :, 2:], qd[k])


def test_runge_kutta_follows_it_to_fourth_order(said):
    a, b, c = said["rk4"]
    assert np.log2(np.abs(a - b).max() / np.abs(b - c).max()) == pytest.approx(4.0, abs=0.3)


@pytest.mark.parametrize("integrator", ["semi_implicit", "rk4"])
def test_derivatives(said, integrator):
    """Reverse and tangent against central differences of the start, of all its parts, and of parameters; any budget, same bits."""
    found, tangent, differences = (said[f"{integrator} {what}"] for what in ("gradient", "tangent", "differences"))
    np.testing.assert_allclose(found, differences, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(tangent, differences, rtol=1e-6, atol=1e-8)
    assert np.abs(differences).min() > 1e-6
    assert said[f"{integrator} budget"]


def test_linearized(said):
    np.testing.assert_allclose(said["A"], said["A by differences"], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("door", ["plain", "step", "saved", "torch", "jax", "casadi", "simulation", "certificate"])
def test_every_door_knows_it(said, door):
    assert said[door]
