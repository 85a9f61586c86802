"""Local solves on many machines: the workers of a Ray cluster (`pip install "jointgrad[scale]"`).

The population is cut into as many parts as there are workers, and each part is one batch of motions there. A part whose worker (or
whole machine) is lost is given to another, AGAIN times at most: what kills every worker is not to be tried for ever.
Ray carries objective and results between processes of one user by its own means (cloudpickle); jointgrad reads no pickle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..model.errors import InputError
from .populations import Ends, Local

AGAIN = 5


@contextmanager
def ray_solver(
    objective: Any, local: Local, address: str | None, workers: int | None
) -> Iterator[Callable[[np.ndarray], Ends]]:
    """From starts to their ends, by the cluster at an address; None: the one that this process is connected to already, otherwise
    one of our own here, which ends with the search."""
    try:
        import ray
    except ImportError:
        raise InputError('engine="ray" needs Ray: pip install "jointgrad[scale]"') from None
    if workers is not None and workers < 1:
        raise InputError(f"workers must be 1 or more, but is {workers}")
    is_ours = not ray.is_initialized()
    if is_ours:
        # an own cluster has as many workers as were asked for; that of others has those that it has
        own = {"num_cpus": workers} if address is None else {}
        ray.init(address=address, include_dashboard=False if address is None else None, log_to_driver=False, **own)
    try:
        count = workers or max(int(ray.cluster_resources().get("CPU", 1)), 1)
        task, sent = ray.remote(max_retries=AGAIN)(_solved), ray.put((objective, local))
        yield lambda x: _gathered(ray, [(part, task.remote(sent, part)) for part in _parts(x, count)])
    finally:
        if is_ours:
            ray.shutdown()


def _parts(x: np.ndarray, count: int) -> list[np.ndarray]:
    return np.array_split(x, min(count, len(x)))


def _solved(sent: tuple[Any, Local], x: np.ndarray) -> Ends:
    """By a worker. Arrays that Ray hands over cannot be written to."""
    objective, local = sent
    return local.solve(objective, np.array(x))


def _gathered(ray: Any, parts: list[tuple[np.ndarray, Any]]) -> Ends:
    """In the order of the parts. Ctrl-C: those that have ended; the others are where they started."""
    waiting, found = [task for _, task in parts], {}
    try:
        while waiting:
            (ended,), waiting = ray.wait(waiting)
            found[ended] = _taken(ray, ended)
    except KeyboardInterrupt:
        for task in waiting:
            ray.cancel(task, force=True)  # which may be anywhere in compiled code
        return Ends.together([found.get(task) or _unfinished(start) for start, task in parts])
    return Ends.together([found[task] for _, task in parts])


def _taken(ray: Any, task: Any) -> Ends:
    try:
        return ray.get(task)
    except ray.exceptions.RayTaskError as failure:
        raise failure.as_instanceof_cause() from None
    except ray.exceptions.WorkerCrashedError:
        raise RuntimeError(
            f"local solves were lost with their worker {AGAIN + 1} times: the objective kills it"
        ) from None


def _unfinished(x: np.ndarray) -> Ends:
    return Ends(x, np.full(len(x), np.inf), np.full(len(x), -1), 0, 0, True)
