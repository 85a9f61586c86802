"""A batch shared among threads, and a caller that can be interrupted while they run.

A kernel runs without the GIL, and Python acts upon a signal only between two lines of the main thread. So the main thread runs
short calls itself, and of long ones it only waits: Ctrl-C, or whatever a signal handler raises, then stops them before their
next step.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from ...model.arrays import Model
from .runtime import CHUNK, Borrowed, Worker

# steps of work below which handing some to another thread costs more than it saves
WORTH_A_THREAD = 64
# seconds of work from which on the main thread can afford to wait for another thread, which has to be woken
WORTH_A_WATCH = 0.02

Lend = Callable[[], Borrowed]
Describe = Callable[[Worker, int, int], None]


def in_parallel(
    kernel: str, model: Model, batch: int, steps: int, threads: int, lend: Lend, describe: Describe
) -> None:
    """Run a kernel on shares of the batch that are whole chunks, each by a worker of its own that `lend` gives and that
    `describe` tells its environments [first, last)."""
    if batch == 0:
        return
    chunks = -(-batch // CHUNK)
    shares = max(1, min(threads, chunks, batch * max(steps, 1) // WORTH_A_THREAD))
    bounds = [min(batch, CHUNK * (chunks * k // shares)) for k in range(shares + 1)]
    is_long = batch * steps * seconds_per_step(model) >= WORTH_A_WATCH
    is_watched = is_long and threading.current_thread() is threading.main_thread()
    if shares == 1 and not is_watched:
        with lend() as one:
            describe(one, 0, batch)
            one.run(kernel)
        return
    with contextlib.ExitStack() as lent:
        team = lent.enter_context(Team(threads))
        for first, last in itertools.pairwise(bounds):
            one = lent.enter_context(lend())
            describe(one, first, last)
            # the caller has time for the last share, unless signals may come to it
            is_own = last == batch and not is_watched
            team.start(one, one.ready(kernel), is_own, describe)
        team.wait()


def seconds_per_step(model: Model) -> float:
    """Of one environment, roughly: robots in flight and on the ground, chains and 64 contacts on one body are within three times
    of it on a machine of 2025; going back takes three times as long."""
    tree = model.topology.tree
    blocks = tree["most_blocks"] * tree["sweeps"] if tree["has_impulses"] else 0
    return 5e-8 * tree["n_bodies"] + 5e-9 * blocks + 2.5e-10 * tree["n_weights"]


class Team:
    """Workers of one call, each on a thread of its own. Where the call fails, all of them are stopped."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.workers: list[Worker] = []
        self.shares: list[Future] = []

    def start(self, one: Worker, run: Callable[[], None], is_own: bool, *keep: Any) -> None:
        """On the caller's own thread, or on another. `keep`: what is written to, which must not go meanwhile."""
        self.workers.append(one)
        if is_own:
            run()
            return
        share: Future = Future()
        # in the list first: wherever an interruption comes, the share is known, and is waited for or cancelled
        self.shares.append(share)
        _executor(self.threads).submit(_carry_out, share, run, keep)

    def wait(self) -> None:
        for share in self.shares:
            share.result()
        for one in self.workers:
            one.conclude()

    def __enter__(self) -> Team:
        return self

    def __exit__(self, failure: Any, *_: Any) -> None:
        if failure is not None:
            for one in self.workers:
                one.stop()
            for share in self.shares:
                share.cancel()
            wait(self.shares)


def _carry_out(share: Future, run: Callable[[], None], keep: Any) -> None:
    """On the thread that does it."""
    if not share.set_running_or_notify_cancel():
        return
    try:
        run()
    except BaseException as failure:
        share.set_exception(failure)
    else:
        share.set_result(None)


@functools.cache
def _executor(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="jointgrad")


# a child process has none of the threads of its parent
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_executor.cache_clear)
