"""Basin hopping on workers of Ray and on islands of pagmo: the same points as here, also when a worker is killed in the middle.

Both are the extra [scale], too large for every machine that runs the tests: they are skipped where they are not installed.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from test_search import BOX, Ripples, is_same

import jointgrad as jg
from jointgrad.optimize.progress import Stop
from jointgrad.optimize.search import basin_hopping
from jointgrad.reproduce import pendulum_search

# of what Ray and pagmo do inside themselves
pytestmark = pytest.mark.filterwarnings("ignore")
START, SHORT = [-8.0, 9.0], Stop(iterations=3)


@pytest.fixture(scope="module")
def cluster():
    """Two workers on this machine, which know the objectives of these tests by their code."""
    ray = pytest.importorskip("ray", reason="the extra [scale] is not installed: no Ray")
    for name in (__name__, "test_search"):
        ray.cloudpickle.register_pickle_by_value(sys.modules[name])
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield ray
    ray.shutdown()


class Watched(Ripples):
    """At its third evaluation waits to be killed from outside, the first time alone; its process is named in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.calls = folder, 0

    def residuals(self, x):
        self.calls += 1
        if self.calls == 3 and self.is_the_first():
            time.sleep(60)
            raise RuntimeError("nobody killed this worker")
        return super().residuals(x)

    def is_the_first(self) -> bool:
        """Both workers may come here at the same moment: a link is made once."""
        own = self.folder / str(os.getpid())
        own.write_text(own.name)
        try:
            (self.folder / "victim").hardlink_to(own)
        except FileExistsError:
            return False
        return True


class Deadly(Ripples):
    def residuals(self, x):
        os.kill(os.getpid(), signal.SIGKILL)


def kill_the_victim(folder: Path, killed: list[int]) -> None:
    while not (folder / "victim").exists():
        time.sleep(0.01)
    killed.append(int((folder / "victim").read_text()))
    os.kill(killed[0], signal.SIGKILL)


@pytest.mark.parametrize("stop", [SHORT, Stop(iterations=30, target=1e-12)], ids=["hops", "target"])
@pytest.mark.parametrize("local", ["gauss_newton", "lbfgs"])
def test_workers_come_to_the_same_points(cluster, stop, local):
    here, there = (
        basin_hopping(Ripples(), START, BOX, stop, local=local, spread=0.2, engine=engine)
        for engine in ("batch", "ray")
    )
    assert here.reason == there.reason and here.history.best == there.history.best
    assert np.array_equal(here.x, there.x)
    points = [[(o.x.tolist(), o.loss, o.visits) for o in found.extra["optima"]] for found in (here, there)]
    assert points[0] == points[1] and len(points[0]) > 3


def test_nothing_is_lost_with_a_worker_that_is_killed(cluster, tmp_path):
    killed: list[int] = []
    killer = threading.Thread(target=kill_the_victim, args=(tmp_path, killed))
    killer.start()
    found = basin_hopping(Watched(tmp_path), START, BOX, SHORT, engine="ray")
    killer.join()
    assert killed and killed[0] != os.getpid()
    with pytest.raises(ProcessLookupError):  # it is gone, and with it what it had begun
        for _ in range(500):
            os.kill(killed[0], 0)
            time.sleep(0.01)
    assert is_same(found, basin_hopping(Ripples(), START, BOX, SHORT))


def test_an_objective_that_kills_every_worker_is_not_tried_for_ever(cluster):
    with pytest.raises(RuntimeError, match="6 times"):
        basin_hopping(Deadly(), START, BOX, SHORT, population=1, engine="ray")


def test_an_error_of_the_objective_is_told(cluster):
    class Broken(Ripples):
        def residuals(self, x):
            raise ZeroDivisionError("no such motion")

    with pytest.raises(ZeroDivisionError, match="no such motion"):
        basin_hopping(Broken(), START, BOX, SHORT, engine="ray")


class Hanging(Ripples):
    """Does not answer from the time on when a folder says so; says there that it is asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def residuals(self, x):
        if (self.folder / "hang").exists():
            (self.folder / "stuck").touch()
            time.sleep(120)
        return super().residuals(x)


def interrupt_when(file: Path) -> None:
    while not file.exists():
        time.sleep(0.01)
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


def test_ctrl_c_keeps_the_best(cluster, tmp_path):
    """The first hop ends; in the second both workers hang."""
    interrupt = threading.Thread(target=interrupt_when, args=(tmp_path / "stuck",))
    interrupt.start()
    found = basin_hopping(
        Hanging(tmp_path), START, BOX, SHORT, engine="ray", callback=lambda _: (tmp_path / "hang").touch()
    )
    interrupt.join()
    assert found.is_interrupted and len(found.history) == 1
    assert found.loss == basin_hopping(Ripples(), START, BOX, SHORT).history.best[0]


def test_a_model_travels(cluster):
    """Real motions: the same bits from a worker of its own as from a batch here."""
    problem = pendulum_search.Lengths(1.0)
    here, there = (
        basin_hopping(problem, [9.0, 1.0], (0.1, 10.1), Stop(iterations=1), population=4, engine=e)
        for e in ("batch", "ray")
    )
    assert is_same(here, there)


SCRIPT = """
import sys
from jointgrad.optimize.progress import Stop
from jointgrad.optimize.search import basin_hopping
from jointgrad.reproduce.pendulum_search import Lengths
found = basin_hopping(Lengths(1.0), [9.0, 1.0], (0.1, 10.1), Stop(iterations=1), population=4, engine="ray", address=sys.argv[1])
print("found", *(float(v).hex() for v in found.x))
"""


def test_a_cluster_is_reached_by_its_address(cluster):
    address = cluster.get_runtime_context().gcs_address
    said = subprocess.run([sys.executable, "-c", SCRIPT, address], capture_output=True, text=True, timeout=120)
    assert said.returncode == 0, said.stderr[-2000:]
    here = basin_hopping(pendulum_search.Lengths(1.0), [9.0, 1.0], (0.1, 10.1), Stop(iterations=1), population=4)
    assert f"found {' '.join(v.hex() for v in here.x.tolist())}" in said.stdout


# pagmo ----------------------------------------------------------------------------------------------------------------


def test_islands_find_the_deepest_valley_and_do_the_same_again():
    pytest.importorskip("pygmo", reason="the extra [scale] is not installed: no pygmo")
    a, b = (
        basin_hopping(
            Ripples(), START, BOX, Stop(iterations=30, target=1e-12), spread=0.2, engine="pygmo", workers=2, seed=3
        )
        for _ in range(2)
    )
    assert a.reason == "target" and np.abs(a.x - 3.0).max() < 1e-5
    assert is_same(a, b)
    optima = a.extra["optima"]
    assert len(optima) > 3 and optima[0].loss == a.loss == Ripples().value(a.x[None])[0]


def test_pagmo_knows_the_exact_gradient():
    pygmo = pytest.importorskip("pygmo", reason="the extra [scale] is not installed: no pygmo")
    from jointgrad.optimize.islands import Problem
    from jointgrad.optimize.populations import Local

    box = np.full(2, BOX[0]), np.full(2, BOX[1])
    problem = pygmo.problem(Problem(Ripples(), Local.of(Ripples(), "auto", SHORT, box)))
    x = np.array([1.3, -4.2])
    assert problem.has_gradient()
    assert np.allclose(problem.gradient(x), pygmo.estimate_gradient_h(problem.fitness, x), rtol=1e-6)


def test_wrong_requests_are_refused(monkeypatch):
    with pytest.raises(jg.InputError, match="neither"):
        basin_hopping(Ripples(), START, BOX, engine="pygmo", file="search.npz")
    for engine in ("ray", "pygmo"):
        monkeypatch.setitem(sys.modules, engine, None)  # as if it were not installed
        with pytest.raises(jg.InputError, match=r"jointgrad\[scale\]"):
            basin_hopping(Ripples(), START, BOX, engine=engine)
