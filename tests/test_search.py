"""Parallel basin hopping: finds the deepest of many valleys, keeps what it saw, and does the same again for the same seed."""

import json

import numpy as np
import pytest

import jointgrad as jg
from jointgrad import cli
from jointgrad.optimize.populations import Ends, Local
from jointgrad.optimize.progress import Stop
from jointgrad.optimize.search import basin_hopping
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


def ends_of(starts, method="gauss_newton", objective=None, **stop):
    """Of local solves, all together."""
    objective = objective or Ripples()
    return Local.of(objective, method, Stop(**stop), (np.full(2, BOX[0]), np.full(2, BOX[1]))).solve(objective, starts)


@pytest.mark.parametrize("local", ["gauss_newton", "lbfgs"])
def test_hopping_finds_the_deepest_valley(local):
    assert np.abs(ends_of(np.array([[-8.0, 9.0]]), local).x - 3.0).max() > 1.0
    found = basin_hopping(Ripples(), [-8.0, 9.0], BOX, Stop(iterations=60, target=1e-12), local=local, spread=0.2)
    assert found.reason == "target"
    assert np.abs(found.x - 3.0).max() < 1e-5
    optima = found.extra["optima"]
    assert optima[0].loss == found.loss and len(optima) > 5
    assert [o.loss for o in optima] == sorted(o.loss for o in optima)
    assert sum(o.visits for o in optima) == found.extra["solves"]
    assert 8 * (len(found.history) - 1) < found.extra["solves"] <= 8 * len(found.history)


def test_the_same_seed_does_the_same():
    a, b, c = (basin_hopping(Ripples(), [0.0, 0.0], BOX, Stop(iterations=3), seed=s) for s in (1, 1, 2))
    assert a.history.best == b.history.best and a.history.evaluations == b.history.evaluations
    assert a.history.evaluations != c.history.evaluations


@pytest.mark.parametrize("method", ["gauss_newton", "lbfgs"])
def test_a_population_ends_where_its_members_would_alone(method):
    """To the last bit: an end must not depend on the company."""
    starts = np.random.default_rng(0).uniform(*BOX, size=(20, 2))
    together, alone = ends_of(starts, method), [ends_of(s[None], method) for s in starts]
    for name in ("x", "losses", "rounds"):
        assert np.array_equal(getattr(together, name), np.concatenate([getattr(a, name) for a in alone]))
    assert together.evaluations == sum(a.evaluations for a in alone)
    assert len(set(together.rounds)) > 3 and (together.rounds > 0).all()
    slopes = Ripples().gradient(together.x)[1]
    inside = (np.abs(together.x) < BOX[1]).all(-1)  # elsewhere a bound holds
    assert np.abs(slopes[inside]).max() < (1e-4 if method == "lbfgs" else 0.1)


@pytest.mark.parametrize("method", ["gauss_newton", "lbfgs"])
def test_what_counts_when_one_arrives_does_not_depend_on_the_company(method):
    """Some end before the first arrives, some would arrive later: those who were solved apart have gone further."""
    starts = np.concatenate([[[3.05, 2.97], [3.1, 3.1]], np.random.default_rng(1).uniform(*BOX, size=(10, 2))])
    together = ends_of(starts, method, target=1e-12)
    apart = Ends.together([ends_of(part, method, target=1e-12) for part in np.array_split(starts, 5)])
    assert apart.evaluations > together.evaluations and (together.rounds < 0).any()
    (x, losses), (x_apart, losses_apart) = together.settled(1e-12), apart.settled(1e-12)
    assert np.array_equal(x, x_apart) and np.array_equal(losses, losses_apart)
    assert losses.min() <= 1e-12 and 1 <= len(x) < len(starts)


def test_an_objective_that_fails_in_a_thread_says_so():
    class Broken(Ripples):
        def gradient(self, x):
            raise ZeroDivisionError("no such motion")

    with pytest.raises(ZeroDivisionError, match="no such motion"):
        ends_of(np.zeros((3, 2)), "lbfgs", Broken())


def test_bounds_are_kept_where_the_optimum_is_outside():
    found = basin_hopping(Ripples(), [-5.0, 0.0], ((-10.0, -10.0), (2.0, 2.9)), Stop(iterations=10))
    assert (found.x <= (2.0, 2.9)).all()
    assert found.x[1] == pytest.approx(2.9)


class Interrupted(Ripples):
    """Ctrl-C while it is asked for the 41st time."""

    calls = 0

    def residuals(self, x):
        self.calls += 1
        if self.calls == 41:
            raise KeyboardInterrupt
        return super().residuals(x)


@pytest.mark.parametrize("local", ["gauss_newton", "lbfgs"])
def test_ctrl_c_keeps_the_best(local):
    found = basin_hopping(Interrupted(), [-8.0, 9.0], BOX, Stop(iterations=1000), local=local)
    assert found.is_interrupted
    assert found.loss == pytest.approx(Ripples().value(found.x[None])[0])
    assert found.loss < Ripples().value(np.array([[-8.0, 9.0]]))[0]


# a search that was stopped --------------------------------------------------------------------------------------------


def is_same(a, b):
    """Same points, losses and counts; not the same seconds."""
    ends = [[(o.x.tolist(), o.loss, o.visits) for o in found.extra["optima"]] for found in (a, b)]
    counts = [(f.history.evaluations, f.history.gradients, f.history.loss, f.history.best, f.loss) for f in (a, b)]
    return ends[0] == ends[1] and counts[0] == counts[1] and np.array_equal(a.x, b.x)


@pytest.mark.parametrize("shrink", [False, True])
def test_a_stopped_search_goes_on_with_the_same_bits(tmp_path, shrink):
    def search(iterations, objective=None, **more):
        return basin_hopping(
            objective or Ripples(), [-8.0, 9.0], BOX, Stop(iterations=iterations), shrink=shrink, **more
        )

    whole, file = search(9), tmp_path / "search.npz"
    assert len(search(4, file=file).history) == 5
    interrupted = search(9, Interrupted(), file=file)
    assert interrupted.is_interrupted and len(interrupted.history) < 10
    again = search(9, file=file)
    assert is_same(whole, again)
    assert is_same(again, search(9, file=file))  # over already: nothing is computed again
    assert not is_same(whole, search(9, seed=1))
    assert not list(tmp_path.glob("*.new"))


def test_a_file_of_another_search_is_refused(tmp_path):
    file = tmp_path / "search.npz"
    basin_hopping(Ripples(), [0.0, 0.0], BOX, Stop(iterations=1), file=file)
    with pytest.raises(jg.InputError, match="other seed, starts"):
        basin_hopping(Ripples(), [0.0, 0.0], BOX, Stop(iterations=1), file=file, seed=3)
    with pytest.raises(jg.InputError, match="other spread"):
        basin_hopping(Ripples(), [0.0, 0.0], BOX, Stop(iterations=1), file=file, spread=0.5)
    file.write_bytes(b"PK not a search")
    with pytest.raises(jg.InputError, match="not a search that was kept"):
        basin_hopping(Ripples(), [0.0, 0.0], BOX, Stop(iterations=1), file=file)


def test_wrong_requests_are_refused():
    with pytest.raises(jg.InputError, match="finite bounds"):
        basin_hopping(Ripples(), [0.0, 0.0], None)
    with pytest.raises(jg.InputError, match="no local solver"):
        basin_hopping(Ripples(), [0.0, 0.0], BOX, local="newton")
    with pytest.raises(jg.InputError, match="population"):
        basin_hopping(Ripples(), [0.0, 0.0], BOX, population=0)
    with pytest.raises(jg.InputError, match='no engine "cloud"'):
        basin_hopping(Ripples(), [0.0, 0.0], BOX, engine="cloud")
    with pytest.raises(jg.InputError, match="no address"):
        basin_hopping(Ripples(), [0.0, 0.0], BOX, workers=3)
    with pytest.raises(jg.InputError, match="neither"):
        basin_hopping(Ripples(), [0.0, 0.0], BOX, engine="pygmo", shrink=True)


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
    assert cli.main(["reproduce", "pendulum-search", "--quick", "--out", str(tmp_path)]) == 0
    assert "5 parts are finished already" in capsys.readouterr().out
    assert json.loads((tmp_path / "results.json").read_text()) == said
