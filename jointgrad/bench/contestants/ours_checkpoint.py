"""Our part in the suite `checkpoint`: ten Laikagos, and what it costs to keep fewer states."""

import statistics

import numpy as np
from protocol import memory_alone

import jointgrad as jg
from jointgrad.bench.scene import DT, released, world_of
from jointgrad.engine.run.inputs import checked_inputs
from jointgrad.engine.run.run import executed
from jointgrad.engine.run.schedule import Schedule, binomial_program, every_step, interval_program
from jointgrad.engine.run.trajectory import Trajectory

WRT = ("state", "u")
ROBOTS = 10


def schedule(way, steps, size):
    """`stored`: every `size`-th state is kept, those between are stored once when needed. `resumed`: they are computed again
    from the kept one for every step (Qiao 2021, eq. 17). `binomial`: so many states for the whole motion."""
    if way == "binomial":
        return Schedule(steps, size, *(binomial_program(steps, size),) * 2)
    if size == 1:
        return every_step()
    program = {"stored": interval_program, "resumed": lambda length: binomial_program(length, 1)}[way]
    tail = steps - (-(-steps // size) - 1) * size
    return Schedule(size, size - 1 if way == "stored" else 1, program(size), program(tail))


def checkpoint(task, version):
    model = world_of(ROBOTS).compile(dt=DT)
    q, targets = released(model)
    steps = task["steps"]
    start, u, bar = jg.State(q, np.zeros(model.nv)), np.tile(targets, (steps, 1)), np.zeros(model.nq)
    bar[2] = 1.0
    inputs = checked_inputs(model, start, u, None, None)
    expected = jg.rollout(model, start, u).backward(bar, wrt=WRT)
    task.start_clock()
    for way, sizes in task["ways"].items():
        for size in sizes:
            measure(task, version, (way, size), model, inputs, bar, expected)


def measure(task, version, kind, model, inputs, bar, expected):
    way, size = kind
    plan, kept = schedule(way, inputs.steps, size), {}

    def there():
        kept["motion"] = Trajectory(executed(model, inputs, plan, (), 1))

    def back():
        kept["found"] = kept["motion"].backward(bar, wrt=WRT)  # type: ignore[assignment]

    # where every step is repeated many times, one run must do for time and check, and another for memory
    is_slow = way == "resumed" and size > task["most_repeated"]
    repeats = 1 if is_slow else task["repeats"]
    seconds = []

    def once():
        there()
        start = task.clock()
        back()
        seconds.append(task.clock() - start)

    for _ in range(repeats):
        once()
    is_right = kept["found"].u.tobytes() == expected.u.tobytes()  # type: ignore[union-attr]
    kept.clear()
    model.workers.clear()  # so that the room for one step is counted in every way of doing it
    grown, spread = memory_alone(once, 1 if is_slow else 3)
    (forward,) = task.timed(there)
    task.say(
        status="measured", way=way, size=size, steps=inputs.steps, robots=ROBOTS, cores=1, version=version,
        forward_us=1e6 * forward["best"] / inputs.steps, backward_us=1e6 * min(seconds) / inputs.steps,
        backward_median_us=1e6 * statistics.median(seconds) / inputs.steps, repeats=repeats, memory_bytes=grown,
        memory_spread=spread, state_bytes=8 * (model.nq + model.nv), check="the same bits as with every state kept", ok=is_right,
    )  # fmt: skip
