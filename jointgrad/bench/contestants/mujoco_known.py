"""Problems with known derivatives in MuJoCo: its differences of a step, chained."""

import mujoco
import numpy as np
from known import start_of

# stiffness and damping, both negative in its notation
INELASTIC = (-1e5, -1e4)  # hard and dead
ELASTIC = (-1e5, 0.0)  # a spring without damping
# the force sets in smoothly: with a kink there, the derivative of an impact would depend on where in a step it begins
SMOOTH = (1e-4, 0.99, 0.01, 0.5, 2.0)
SUBSTEPS = 20  # such contact is stiff
DIFFERENCE = 1e-6  # of its Jacobians


def hard_model(task, problem):
    """The problem's model with contact as near to rigid as its steps allow."""
    model = mujoco.MjModel.from_xml_string(task.text(f"{problem['name']}.xml"))
    model.geom_solref[:] = ELASTIC if problem["restitution"] else INELASTIC
    model.jnt_solref[:] = INELASTIC
    model.geom_solimp[:] = model.jnt_solimp[:] = SMOOTH
    if not problem["friction"]:
        model.geom_condim[:] = 1
    model.opt.timestep = problem["dt"] / SUBSTEPS
    model.opt.tolerance, model.opt.iterations = 0.0, 50  # differences need all the digits there are
    return model


def indices(model, problem):
    """Where the joints of the problem are, in q and in the rates."""
    joints = {name: model.joint(name) for name in problem["start"]}
    return {n: int(j.qposadr[0]) for n, j in joints.items()}, {n: int(j.dofadr[0]) for n, j in joints.items()}


def start_state(model, problem, given, in_q, in_v):
    q, qd = model.qpos0.copy(), np.zeros(model.nv)
    if "floating" in problem["name"]:
        q[2] = 0.1  # the foot's balls touch the ground
    for name in problem["start"]:
        q[in_q[name]], qd[in_v[name]] = given["q"][name], given["qd"][name]
    return q, qd, np.array(list(given["u"].values()))


class MuJoCoProblem:
    step, note = 1e-5, f"mjd_transitionFD, centred, {SUBSTEPS} steps in one"

    def __init__(self, task, problem):
        self.problem, self.model = problem, hard_model(task, problem)
        self.data = mujoco.MjData(self.model)
        self.in_q, self.in_v = indices(self.model, problem)

    def reset(self, given):
        mujoco.mj_resetData(self.model, self.data)
        state = start_state(self.model, self.problem, given, self.in_q, self.in_v)
        self.data.qpos[:], self.data.qvel[:], self.data.ctrl[:] = state

    def outputs(self, given):
        self.reset(given)
        mujoco.mj_step(self.model, self.data, nstep=SUBSTEPS * self.problem["steps"])
        at = {"q": (self.data.qpos, self.in_q), "qd": (self.data.qvel, self.in_v)}
        return [at[kind][0][at[kind][1][name]] for kind, name in self.problem["outputs"]]

    def jacobian(self):
        m, d = self.model, self.data
        n = 2 * m.nv
        A, B = np.zeros((n, n)), np.zeros((n, m.nu))
        by_state, by_control = np.eye(n), np.zeros((n, m.nu))
        self.reset(start_of(self.problem))
        for _ in range(SUBSTEPS * self.problem["steps"]):
            mujoco.mjd_transitionFD(m, d, DIFFERENCE, True, A, B if m.nu else None, None, None)
            by_state, by_control = A @ by_state, A @ by_control + B
            mujoco.mj_step(m, d)
        rows = [self.in_v[name] + (m.nv if kind == "qd" else 0) for kind, name in self.problem["outputs"]]
        return [[self.entry(by_state, by_control, row, *given) for given in self.problem["inputs"]] for row in rows]

    def entry(self, by_state, by_control, row, kind, name):
        if kind == "u":
            return by_control[row, 0]
        return by_state[row, self.in_v[name] + (self.model.nv if kind == "qd" else 0)]
