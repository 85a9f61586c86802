"""Our answers to problems with known derivatives: with impulses, with springs, and in the no-compiler mode."""

from typing import Any

import numpy as np
from known import start_of

import jointgrad as jg
from jointgrad.bench.problems import all_problems

# springs that sink in by millimetres, and whose force sets in smoothly: with a kink there, the derivative of a bounce would
# depend on where in a step it begins. They bounce without loss where they have no damping
SPRING: dict[str, Any] = dict(stiffness=1e7, exponent=2.0, transition=1e-3, static_friction=0.0)
DAMPING = 50.0  # s/m, over the stiffness: hardly anything comes back
SUBSTEPS = 100  # such springs are stiff


class OurProblem:
    step, note, meaning = 1e-6, "impulses", jg.Exact()

    def __init__(self, task, problem):
        self.problem = problem
        self.given = next(p for p in all_problems() if p.name == problem["name"])
        self.model, self.steps = self.compiled()
        names = [name for name in self.model.joint_names if name in problem["start"]]
        # a free base comes first
        self.in_q = {name: k + self.model.nq - len(names) for k, name in enumerate(names)}
        self.in_v = {name: k + self.model.nv - len(names) for k, name in enumerate(names)}

    def compiled(self):
        return self.given.bouncing_world().compile(contact=jg.Impulse()), self.problem["steps"]

    def state(self, given):
        start = self.model.initial_state()
        if "floating" in self.problem["name"]:
            start.q[2] = 0.1  # the foot's balls touch the ground
        for name in self.problem["start"]:
            start.q[self.in_q[name]], start.qd[self.in_v[name]] = given["q"][name], given["qd"][name]
        return start, np.array(list(given["u"].values()))

    def motion(self, given):
        start, u = self.state(given)
        if not self.model.nu:
            return jg.rollout(self.model, start, steps=self.steps, gradient=self.meaning)
        return jg.rollout(self.model, start, np.tile(u, (self.steps, 1)), gradient=self.meaning)

    def seeds(self):
        """Cotangents of the last state that single out each output."""
        for kind, name in self.problem["outputs"]:
            q_bar, qd_bar = np.zeros(self.model.nq), np.zeros(self.model.nv)
            (q_bar if kind == "q" else qd_bar)[(self.in_q if kind == "q" else self.in_v)[name]] = 1.0
            yield q_bar, qd_bar

    def outputs(self, given):
        last = self.motion(given).last
        return [last.q[self.in_q[n]] if kind == "q" else last.qd[self.in_v[n]] for kind, n in self.problem["outputs"]]

    def jacobian(self):
        motion, rows = self.motion(start_of(self.problem)), []
        for q_bar, qd_bar in self.seeds():
            found = motion.backward(q_bar, qd_bar, wrt=("state", "u") if self.model.nu else ("state",))
            rows.append([self.entry(found, kind, name) for kind, name in self.problem["inputs"]])
        return rows

    def entry(self, found, kind, name):
        if kind == "u":
            return found.u.sum()
        return found.q[self.in_q[name]] if kind == "q" else found.qd[self.in_v[name]]


class WithMeaning(OurProblem):
    """Where the certificate of an output does not trust the exact gradient, by the meaning that it names."""

    def __init__(self, task, problem):
        super().__init__(task, problem)
        motion = self.motion(start_of(problem))
        certificates = [motion.certificate(q_bar=q, qd_bar=qd) for q, qd in self.seeds()]
        named = [cert.meanings[0] for cert in certificates if not cert.trusted]
        self.meaning = next((one for one in named if one is not None), jg.Exact())
        self.note = f"impulses, jg.{self.meaning}"


class WithSprings(OurProblem):
    note = f"springs, {SUBSTEPS} steps in one"

    def compiled(self):
        if self.problem["name"] == "limit":
            raise NotImplementedError("joint limits act by impulses")
        damping = 0.0 if self.problem["restitution"] else DAMPING * SPRING["stiffness"]
        law = jg.Spring(damping=damping, **SPRING)
        dt = self.problem["dt"] / SUBSTEPS
        return self.given.bouncing_world().compile(
            dt=dt, integrator="rk4", contact=law, constraints=False
        ), self.problem["steps"] * SUBSTEPS
