"""Our part in the suite `robots`: many in one world, many steps, many worlds; time and memory per robot and step."""

import numpy as np
from protocol import memory_growth

import jointgrad as jg
from jointgrad.bench.scene import DT, released, world_of

WRT = ("state", "u")
HEIGHT_TOLERANCE = 1e-6  # robots that do not meet do not notice each other
CHECK_STEPS = 200


def robots(task, version):
    worlds = {}
    for part, sizes in task["parts"].items():
        for size in sizes:
            count, steps, batch = task["shape"][part]
            count, steps, batch = (size if x is None else x for x in (count, steps, batch))
            if count not in worlds:
                worlds[count] = world(count)
            measure(task, version, part, size, worlds[count], count, steps, batch)


def world(count):
    model = world_of(count).compile(dt=DT)
    q, targets = released(model)
    return model, q, targets, stands(model, q, targets)


def stands(model, q, targets):
    """How far apart in height the robots of one world come to be (m): they are alike, so not at all."""
    last = jg.rollout(model, jg.State(q, np.zeros(model.nv)), np.tile(targets, (CHECK_STEPS, 1)), keep=False).last
    tree = model.topology.tree
    bases = [i for i, kind in zip(tree["q"], tree["kind"], strict=True) if kind == 4]  # free joints
    return float(np.ptp(last.q[np.array(bases) + 2]))


def measure(task, version, part, size, world, count, steps, batch):
    model, q, targets, apart = world
    start = jg.State(np.tile(q, (batch, 1)), np.zeros((batch, model.nv)))
    u, bar = np.tile(targets, (steps, batch, 1)), np.zeros((batch, model.nq))
    bar[:, 2] = 1.0
    kept = {}

    def there():
        kept["motion"] = jg.rollout(model, start, u, threads=task.cores)

    def back():
        return kept["motion"].backward(bar, wrt=WRT)

    there()
    back()
    forward, backward = task.timed(there, back)
    kept.clear()
    grown = memory_growth(lambda: [there(), back()])
    work = count * steps * batch
    task.say(
        status="measured", part=part, size=size, robots=count, steps=steps, batch=batch, cores=task.cores,
        version=version, forward_us=1e6 * forward["best"] / work, backward_us=1e6 * backward["best"] / work,
        forward_median_us=1e6 * forward["median"] / work, backward_median_us=1e6 * backward["median"] / work,
        repeats=forward["repeats"], memory_bytes=grown, memory_per_robot_step=grown / work,
        check=f"heights of its robots differ by {apart:.0e} m", ok=apart < HEIGHT_TOLERANCE,
    )  # fmt: skip
