"""Problems with known derivatives in Newton: penalty contact, one tape over all steps."""

import newton
import numpy as np
import warp as wp
from known import start_of

# penalties as hard as the step allows, which is a part of the problem's own: the tape keeps every step
STIFFNESS, DAMPING, SLIP, SUBSTEPS = 1.0e5, 1.0e3, 1.0e3, 2

# problems that begin to slide: the joint, and the share of the mass that presses on the ground
SLIDING, CHECK_STEPS = (
    {"slide": {"sled_x": 1.0 / 1.1}, "stick": {"sled_x": 1.0 / 1.1}, "stack": {"lower_x": 3.0 / 3.51}},
    50,
)


@wp.kernel
def picked(values: wp.array(dtype=float), index: int, loss: wp.array(dtype=float)):  # type: ignore[valid-type]
    loss[0] = values[index]


class NewtonProblem:
    step, note = 2e-3, f"wp.Tape, 32-bit, penalty contact, {SUBSTEPS} steps in one"

    def __init__(self, task, problem):
        self.problem, self.dt = problem, problem["dt"] / SUBSTEPS
        builder = newton.ModelBuilder(gravity=(0.0, 0.0, -problem["gravity"]))
        shape = builder.default_shape_cfg
        shape.mu, shape.ke, shape.kf = problem["friction"], STIFFNESS, SLIP
        shape.kd = 0.0 if problem["restitution"] else DAMPING
        if problem["name"] == "limit":
            builder.default_joint_cfg.limit_ke, builder.default_joint_cfg.limit_kd = STIFFNESS, DAMPING
        for robot, base in problem["robots"].items():
            place = wp.transform((0.0, 0.0, 0.1 if base == "free" else 0.0), wp.quat_identity())
            builder.add_urdf(task.text(f"{problem['name']}.{robot}.z.urdf"), floating=base == "free", xform=place)
        labels = [label.split("/")[-1] for label in (getattr(builder, "joint_label", None) or builder.joint_key)]
        self.in_q = {name: builder.joint_q_start[labels.index(name)] for name in problem["start"]}
        self.in_v = {name: builder.joint_qd_start[labels.index(name)] for name in problem["start"]}
        if problem["has_ground"]:
            builder.add_ground_plane()
        self.model = builder.finalize(device="cpu", requires_grad=True)
        self.solver = newton.solvers.SolverFeatherstone(self.model, angular_damping=0.0)
        self.pipeline = newton.CollisionPipeline(self.model, requires_grad=True)
        self.rest = self.model.joint_q.numpy().copy()
        if problem["name"] in SLIDING:
            self.check_friction()

    def check_friction(self):
        """A derivative says nothing where the motion is another: all slide at first, and slow down by mu g m / M."""
        moving, start = next(iter(SLIDING[self.problem["name"]])), start_of(self.problem)
        last = self.rolled(*self.room(start, 1), SUBSTEPS * CHECK_STEPS).joint_qd.numpy()[self.in_v[moving]]  # type: ignore[call-arg]
        found = (start["qd"][moving] - float(last)) / (CHECK_STEPS * self.problem["dt"])
        expected = self.problem["friction"] * self.problem["gravity"] * SLIDING[self.problem["name"]][moving]
        if abs(found - expected) > 0.1 * expected:
            words = f"its SolverFeatherstone slows a sled on rails by {found:.1f} m/s2, Coulomb's friction by {expected:.1f}"
            raise NotImplementedError(f"{words}; we found no cause, and compare no derivative of another motion")

    def room(self, given, steps):
        """States, contacts and controls for so many steps, the first as given: outside of the tape, or it would carry the gradients
        of the start on to where it was copied from."""
        states, control = [self.model.state() for _ in range(steps + 1)], self.model.control()
        q, qd, force = self.rest.copy(), np.zeros(self.model.joint_dof_count), np.zeros(self.model.joint_dof_count)
        for name in self.problem["start"]:
            q[self.in_q[name]], qd[self.in_v[name]] = given["q"][name], given["qd"][name]
        for name, value in given["u"].items():
            force[self.in_v[name]] = value
        for array, values in ((states[0].joint_q, q), (states[0].joint_qd, qd), (control.joint_f, force)):
            array.assign(values)
        return states, [self.pipeline.contacts() for _ in range(steps)], control

    def rolled(self, states, contacts, control, steps=None):
        """The last state; two states and one list of contacts in turn, or one for each step, as a gradient needs."""
        newton.eval_fk(self.model, states[0].joint_q, states[0].joint_qd, states[0])
        for k in range(steps or SUBSTEPS * self.problem["steps"]):
            here, there, touching = states[k % len(states)], states[(k + 1) % len(states)], contacts[k % len(contacts)]
            here.clear_forces()
            self.pipeline.collide(here, touching)
            self.solver.step(here, there, control, touching, self.dt)
        return there

    def place(self, kind, name):
        return (self.in_q if kind == "q" else self.in_v)[name]

    def outputs(self, given):
        last = self.rolled(*self.room(given, 1))
        found = {"q": last.joint_q.numpy(), "qd": last.joint_qd.numpy()}
        return [float(found[kind][self.place(kind, name)]) for kind, name in self.problem["outputs"]]

    def jacobian(self):
        tape, rows = wp.Tape(), []
        losses = [wp.zeros(1, dtype=float, requires_grad=True) for _ in self.problem["outputs"]]
        states, contacts, control = self.room(start_of(self.problem), SUBSTEPS * self.problem["steps"])
        with tape:
            last = self.rolled(states, contacts, control)
            for (kind, name), loss in zip(self.problem["outputs"], losses, strict=True):
                values = last.joint_q if kind == "q" else last.joint_qd
                wp.launch(picked, dim=1, inputs=[values, int(self.place(kind, name)), loss])
        for loss in losses:
            tape.zero()
            tape.backward(loss)
            bars = {"q": states[0].joint_q.grad, "qd": states[0].joint_qd.grad, "u": control.joint_f.grad}
            rows.append([float(bars[kind].numpy()[self.place(kind, name)]) for kind, name in self.problem["inputs"]])
        return rows
