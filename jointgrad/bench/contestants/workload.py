"""The Laikago workload, the same for every contestant: check that it stands and that its gradient is true, then time.

A contestant is an object with
    version                     words: distributions and their versions
    stand(steps)                releases the robot; (height of the base in m, points that touch or None)
    forward(steps, batch)       a function that runs so many steps from the release
    gradient(steps, batch)      two functions: the forward run as its gradient needs it, then the backward one alone, or None
                                where the first does both; None in all where there is no gradient
    gradient_error()            (gradient against the contestant's own central differences, along one direction; or None)
    notes                       {"forward" or "backward": what a reader must know}
"""

from protocol import memory_growth

STANDS_AFTER = 500  # steps


def laikago(task, contestant):
    check = checked(task, contestant)
    task.start_clock()
    for batch in task["batches"]:
        for direction in (forward, backward):
            per_step = None
            for steps in task["steps"]:
                if is_too_long(task, per_step, steps, batch):
                    skip(task, contestant, direction.__name__, steps, batch, per_step)
                    continue
                found = direction(task, contestant, steps, batch)
                if found is None:
                    break
                per_step = found["spent"] / (steps * batch)
                report(task, contestant, direction.__name__, steps, batch, found, check)


def checked(task, contestant):
    """What was found before the clock starts: height, contacts, and the error of the gradient."""
    contacts = None
    has_ground = getattr(contestant, "has_ground", True)
    scene = task.json("laikago.json")
    result = {"ok": True, "words": "no ground, so it cannot stand"}
    if has_ground:
        height, contacts = contestant.stand(STANDS_AFTER)
        off = abs(height - scene["standing_height"])
        result["ok"] = bool(off < task["height_tolerance"])
        result["words"] = f"base {1e3 * off:.1f} mm from our height" + (
            "" if contacts is None else f", {contacts} contacts"
        )
    error = contestant.gradient_error()
    result["gradient_ok"] = result["ok"] and (error is None or error < task["gradient_tolerance"])
    result["gradient_words"] = "" if error is None else f"gradient against own differences: {error:.0e}"
    return result


def is_too_long(task, per_step, steps, batch):
    return per_step is not None and per_step * steps * batch > max(task.seconds_left, 0)


def skip(task, contestant, what, steps, batch, per_step):
    reason = f"would take about {per_step * steps * batch:.0f} s, beyond the time given to one contestant"
    task.say(
        status="skipped",
        what=what,
        steps=steps,
        batch=batch,
        cores=task.cores,
        reason=reason,
        version=contestant.version,
    )


def forward(task, contestant, steps, batch):
    with task.outside():
        run = contestant.forward(steps, batch)
        if run is None:
            return None
        run()  # warm up
    (found,) = task.timed(run)
    return found | {"spent": found["best"] * found["repeats"]}


def backward(task, contestant, steps, batch):
    """Time of going back alone. Where it cannot be had alone, it is the time of both less that of the plain forward run."""
    with task.outside():
        runs = contestant.gradient(steps, batch)
        if runs is None:
            return None
        there, back = runs
        plain = contestant.forward(steps, batch) if back is None else None
        for run in (there, back, plain):
            if run is not None:
                run()  # warm up
    if back is None:
        both, alone = task.timed(there, plain)
        found = {k: max(both[k] - alone[k], 0.0) for k in ("best", "median")} | {"repeats": both["repeats"]}
        found |= {"spent": (both["best"] + alone["best"]) * both["repeats"], "gradient": both["best"]}
    else:
        first, second = task.timed(there, back)
        found = second | {
            "spent": (first["best"] + second["best"]) * second["repeats"],
            "gradient": first["best"] + second["best"],
        }
    there, back = contestant.gradient(steps, batch)  # new ones: those before may hold what they recorded
    found["memory"] = memory_growth(lambda: [there(), back and back()])
    return found


def report(task, contestant, what, steps, batch, found, check):
    work = steps * batch
    is_back = what == "backward"
    words = "; ".join(w for w in (check["words"], is_back and check["gradient_words"]) if w)
    extra = {}
    if is_back:
        extra = {"memory_bytes": found["memory"], "gradient_us": 1e6 * found["gradient"] / work}
    task.say(
        status="measured", what=what, steps=steps, batch=batch, cores=task.cores, version=contestant.version,
        best_us=1e6 * found["best"] / work, median_us=1e6 * found["median"] / work, repeats=found["repeats"],
        check=words, ok=check["gradient_ok" if is_back else "ok"], note=contestant.notes.get(what, ""), **extra,
    )  # fmt: skip


# the gradient's own check ---------------------------------------------------------------------------------------------

WEIGHTS = (0.3, 0.5, 1.0)  # of the base's final x, y, z in the loss
CHECK_STEPS = 20


def direction(steps, n):
    import numpy as np

    return np.random.default_rng(0).normal(size=(steps, n))


def slope_error(loss, gradient, u, du, epsilon):
    """|gradient . du - central difference| over the difference."""
    difference = (loss(u + epsilon * du) - loss(u - epsilon * du)) / (2 * epsilon)
    return abs(float((gradient * du).sum()) - difference) / max(abs(difference), 1e-300)
