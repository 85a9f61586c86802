"""Parallel basin hopping: finds the deepest of many valleys, keeps what it saw, and does the same again for the same seed."""

import json

import numpy as np
import pytest

import jointgrad as jg
from jointgrad import cli
from jointgrad.optimize.progress import Stop
from jointgrad.optimize.search import basin_hopping, gauss_newton_population
from jointgrad.reproduce import pendulum_search

BOX = (-10.0, 10.0)


class Ripples:
    """Residuals x - 3 and waves about it: a local optimum in every wave, one global at 3."""

    n = 2

    def residuals(self, x):
        return np.concatenate([0.3 * (x - 3.0), 2.0 * np.sin(2.0 * (x - 3.0))], axis=-1)

    def jacobian(self, x):
        J = np.zeros((len(x), 4, 2))
        for i in range(2):
            J[:, i, i], J[:, 2 + i, i] = 0.3, 4.0 * np.cos(2.0 * (x[:, i] - 3.0))
        return self.residuals(x), J

    def value(self, x):
        return 0.5 * (self.residuals(x) ** 2).sum(-1)

    def gradient(self, x):
        r, J = self.jacobian(x)
        return 0.5 * (r**2).sum(-1), np.einsum("bm,bmn->bn", r, J)


@pytest.mark.parametrize("local", ["gauss_newton", "lbfgs"])
def test_hopping_finds_the_deepest_valley(local):
    alone, _ = gauss_newton_population(Ripples(), np.array([[-8.0, 9.0]]), Stop(), BOX)
    assert np.abs(alone - 3.0).max() > 1.0
    found = basin_hopping(Ripples(), [-8.0, 9.0], BOX, Stop(iterations=60, target=1e-12), local=local, spread=0.2)
    assert found.reason == "target"
    assert np.abs(found.x - 3.0).max() < 1e-5
    optima = found.extra["optima"]
    assert optima[0].loss == found.loss and len(optima) > 5
    assert [o.loss for o in optima] == sorted(o.loss for o in optima)
    assert sum(o.visits for o in optima) == found.extra["solves"] == 8 * len(found.history)


def test_the_same_seed_does_the_same():
    a, b, c = (basin_hopping(Ripples(), [0.0, 0.0], BOX, Stop(iterations=3), seed=s) for s in (1, 1, 2))
    assert a.history.best == b.history.best and a.history.evaluations == b.history.evaluations
    assert a.history.evaluations != c.history.evaluations


def test_a_population_ends_where_its_members_would_alone():
    starts = np.random.default_rng(0).uniform(*BOX, size=(20, 2))
    together, _ = gauss_newton_population(Ripples(), starts.copy(), Stop(), BOX)
    alone = np.concatenate([gauss_newton_population(Ripples(), s[None], Stop(), BOX)[0] for s in starts])
    assert np.allclose(together, alone, atol=1e-9)


def test_bounds_are_kept_where_the_optimum_is_outside():
    found = basin_hopping(Ripples(), [-5.0, 0.0], ((-10.0, -10.0), (2.0, 2.9)), Stop(iterations=10))
    assert (found.x <= (2.0, 2.9)).all()
    assert found.x[1] == pytest.approx(2.9)


def test_ctrl_c_keeps_the_best():
    class Interrupted(Ripples):
        calls = 0

        def residuals(self, x):
            self.calls += 1
            if self.calls > 40:
                raise KeyboardInterrupt
            return super().residuals(x)

    found = basin_hopping(Interrupted(), [-8.0, 9.0], BOX, Stop(iterations=1000))
    assert found.is_interrupted
    assert found.loss == pytest.approx(Ripples().value(found.x[None])[0])
    assert found.loss < Ripples().value(np.array([[-8.0, 9.0]]))[0]


def test_wrong_requests_are_refused():
    with pytest.raises(jg.InputError, match="finite bounds"):
        basin_hopping(Ripples(), [0.0, 0.0], None)
    with pytest.raises(jg.InputError, match="no local solver"):
        basin_hopping(Ripples(), [0.0, 0.0], BOX, local="newton")
    with pytest.raises(jg.InputError, match="population"):
        basin_hopping(Ripples(), [0.0, 0.0], BOX, population=0)


def test_slopes_of_the_lengths_are_those_of_differences():
    problem, x, e = pendulum_search.Lengths(2.0), np.array([[2.0, 5.0], [7.0, 3.0]]), 1e-6
    r, J = problem.jacobian(x)
    assert np.array_equal(r, problem.residuals(x))
    for i, d in enumerate(np.eye(2) * e):
        assert np.allclose((problem.residuals(x + d) - problem.residuals(x - d)) / (2 * e), J[:, :, i], atol=1e-7)


def test_hopping_finds_the_lengths_of_a_pendulum_where_local_fits_do_not(tmp_path, capsys):
    assert cli.main(["reproduce", "pendulum-search", "--quick", "--out", str(tmp_path)]) == 0
    said = json.loads((tmp_path / "results.json").read_text())
    assert said["basin_hopping"]["success"] == 16
    assert said["local"]["success"] < 16
    assert said["basin_hopping"]["largest_error"] < pendulum_search.SUCCESS
    assert (tmp_path / "success.png").stat().st_size > 5000
    assert str(tmp_path) in capsys.readouterr().out
