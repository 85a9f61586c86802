"""What the scripts of all contestants share: a task comes in, results go out, times are fair.

Such a script runs in the contestant's own environment, so this file needs Python and NumPy alone. The task is one JSON
object on stdin. Each result is one JSON line on stdout, sent as soon as it is known, so that a crash loses only what was
still to come.
"""

import contextlib
import ctypes
import gc
import importlib.metadata
import json
import os
import statistics
import sys
import time
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

LEAST_REPEATS = 3


class Channel:
    """Results to whoever started the script; what libraries print goes to stderr instead."""

    def __init__(self):
        self._out = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)

    def say(self, **result):
        print(json.dumps(result, default=lambda number: number.item()), file=self._out, flush=True)


class Task:
    """What is asked for: suite, folder of the scene, number of cores, seconds, repeats, and whatever else a suite says."""

    def __init__(self, given, channel):
        self.given, self._channel, self._began = given, channel, time.perf_counter()
        self.cores, self.scene = given["cores"], Path(given["scene"])

    def __getitem__(self, name):
        return self.given[name]

    def get(self, name, otherwise=None):
        return self.given.get(name, otherwise)

    def say(self, **result):
        self._channel.say(**result)

    @property
    def seconds_left(self):
        return self["seconds"] - (time.perf_counter() - self._began)

    def start_clock(self):
        """Compiling and checking are not counted against the time for measuring."""
        self._began = time.perf_counter()

    @contextlib.contextmanager
    def outside(self):
        """What happens here is not counted against the time for measuring either: compiling for another length or batch."""
        start = time.perf_counter()
        yield
        self._began += time.perf_counter() - start

    def clock(self):
        """Processor time on one core, which neighbours on the machine do not change; wall time on several."""
        return time.process_time() if self.cores == 1 else time.perf_counter()

    def json(self, name):
        return json.loads((self.scene / name).read_text())

    def text(self, name):
        return (self.scene / name).read_text()

    def timed(self, *runs, repeats=None):
        """Seconds of each run, called one after the other, best and median; repeats end when the time is up."""
        found: list[list] = [[] for _ in runs]
        for k in range(repeats or self["repeats"]):
            if k >= LEAST_REPEATS and self.seconds_left < 0:
                break
            for run, seconds in zip(runs, found, strict=True):
                start = self.clock()
                run()
                seconds.append(self.clock() - start)
        return [{"best": min(s), "median": statistics.median(s), "repeats": len(s)} for s in found]


def received():
    """The task of this process, which is bound to its cores from here on."""
    channel = Channel()
    task = Task(json.load(sys.stdin), channel)
    allowed = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, set(allowed[-task.cores :]))
    os.environ["JOINTGRAD_THREADS"] = str(task.cores)
    return task


def version(*names):
    """Distribution names with versions, those that are installed."""
    found = []
    for name in names:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return ", ".join(found)


def status(key):
    line = next(x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith(key))
    return int(line.split()[1]) * 1024


def memory_growth(run):
    """Bytes by which the process grows at most while it runs."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what earlier runs gave back is no longer ours
    before = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    kept = run()
    grown = status("VmHWM") - before
    del kept
    return max(0, grown)


M_MMAP_THRESHOLD, LARGE = -3, 1 << 16  # of mallopt


def memory_alone(run, repeats=3):
    """The same, without what earlier runs left behind: each time in a new copy of this process, where large blocks come from the
    system and go back to it at once. The least of the repeats, and by how much the largest is above it."""
    grown = [_in_a_copy(run) for _ in range(repeats)]
    return min(grown), max(grown) - min(grown)


def _in_a_copy(run):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, LARGE)
            os.write(writer, str(memory_growth(run)).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader) as answer:
        said = answer.read()
    if os.waitpid(child, 0)[1]:
        raise RuntimeError("the copy of the process in which memory is measured did not come to its end")
    return int(said)


def relative_error(found, expected):
    """Largest difference over the largest expected magnitude."""
    import numpy as np

    found, expected = np.asarray(found, float), np.asarray(expected, float)
    scale = np.abs(expected).max()
    return float(np.abs(found - expected).max() / (scale if scale else 1.0))


def play(suites):
    """Do what the task says: `suites` has a function of the task for each suite that the contestant takes part in."""
    task = received()
    suite = suites.get(task["suite"])
    if suite is None:
        task.say(status="not offered", reason=f"has no part in the suite {task['suite']}")
        return
    suite(task)
