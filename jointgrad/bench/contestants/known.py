"""The suite `correctness`, the same for every contestant: derivatives whose true values are known.

A solver of one problem has
    outputs(given)      the outputs after all steps; `given` holds q, qd and u by the names of joints
    jacobian()          the derivative of the outputs by the inputs, as the contestant finds it
    step                of central differences of its own outputs, to see whether the jacobian is its own simulation's
"""

import copy
import traceback

import numpy as np
from protocol import relative_error


def start_of(problem):
    """q, qd and u by joint."""
    return {
        "q": {name: q for name, (q, _) in problem["start"].items()},
        "qd": {name: qd for name, (_, qd) in problem["start"].items()},
        "u": dict(problem["controls"]),
    }


def correctness(task, solver_of, version):
    """All problems, unless the task names some."""
    for problem in task.json("problems.json"):
        if problem["name"] not in task.get("problems", [problem["name"]]):
            continue
        said = {"problem": problem["name"], "cores": task.cores, "version": version}
        try:
            solver = solver_of(task, problem)
            found = np.array(solver.jacobian(), float)
            own = differences(solver, problem)
            task.say(
                status="measured", ok=True, **said, jacobian=found.tolist(), own=own.tolist(), note=solver.note,
                error=relative_error(found, problem["expected"]), own_error=relative_error(found, own),
                slope_error=relative_error(own, problem["expected"]),
            )  # fmt: skip
        except NotImplementedError as reason:
            task.say(status="not offered", **said, reason=str(reason))
        except Exception as error:
            traceback.print_exc()
            task.say(status="failed", **said, reason=f"{type(error).__name__}: {error}"[:200])


def not_asked(task, version, reason_of):
    """Who is not asked, and why: `reason_of` gives a status and words for each problem."""
    for problem in task.json("problems.json"):
        if problem["name"] in task.get("problems", [problem["name"]]):
            status, words = reason_of(problem)
            task.say(status=status, problem=problem["name"], cores=task.cores, version=version, reason=words)


def differences(solver, problem):
    """Central differences of the contestant's own outputs, one column for each input."""
    columns = []
    for kind, name in problem["inputs"]:
        ends = []
        for sign in (1.0, -1.0):
            given = copy.deepcopy(start_of(problem))
            given[kind][name] += sign * solver.step
            ends.append(np.asarray(solver.outputs(given), float))
        columns.append((ends[0] - ends[1]) / (2 * solver.step))
    return np.array(columns).T
