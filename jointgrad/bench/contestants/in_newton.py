"""Newton on Warp, compiled for the processor: Featherstone's dynamics, penalty contact, gradients by Warp's tape."""

import newton
import numpy as np
import warp as wp
from known import correctness
from newton_known import NewtonProblem
from protocol import play, version
from workload import WEIGHTS, laikago

wp.config.quiet = True
# penalty constants of contact: ours to choose, stiff enough to stand, soft enough for the step
STIFFNESS, DAMPING, SLIP = 2.0e4, 500.0, 500.0


@wp.kernel
def base_loss(body_q: wp.array(dtype=wp.transform), weights: wp.vec3, loss: wp.array(dtype=float)):  # type: ignore[valid-type]
    loss[0] = wp.dot(wp.transform_get_translation(body_q[0]), weights)


class Newton:
    notes = {
        "forward": "SolverFeatherstone, 32-bit, penalty contact with constants of our choice",
        "backward": "wp.Tape over all steps, to the servos' targets",
    }

    def __init__(self, task):
        self.version, self.scene = version("newton", "warp-lang"), task.json("laikago.json")
        self.model = self.built(task.text("laikago.urdf"))
        self.solver = newton.solvers.SolverFeatherstone(self.model, angular_damping=0.0)
        self.pipeline = newton.CollisionPipeline(self.model, requires_grad=True)

    def built(self, text):
        builder = newton.ModelBuilder()
        shape = builder.default_shape_cfg
        shape.mu, shape.ke, shape.kd, shape.kf = self.scene["friction"], STIFFNESS, DAMPING, SLIP
        place = wp.transform(self.scene["q"][:3], wp.quat_identity())
        builder.add_urdf(text, floating=True, enable_self_collisions=False, xform=place)
        labels = getattr(builder, "joint_label", None) or builder.joint_key
        for k, name in enumerate(self.scene["joints"]):
            joint = next(i for i, label in enumerate(labels) if label.split("/")[-1] == name)
            dof, coordinate = builder.joint_qd_start[joint], builder.joint_q_start[joint]
            builder.joint_q[coordinate] = self.scene["targets"][k]
            builder.joint_target_ke[dof], builder.joint_target_kd[dof] = self.scene["stiffness"], self.scene["damping"]
            if hasattr(builder, "joint_target_q"):
                builder.joint_target_q[coordinate] = self.scene["targets"][k]
            else:
                builder.joint_target_pos[dof] = self.scene["targets"][k]
            builder.joint_target_mode[dof] = int(newton.JointTargetMode.POSITION)
        builder.add_ground_plane()
        return builder.finalize(device="cpu", requires_grad=True)

    def room(self, steps):
        """States, contacts and controls for so many steps."""
        states = [self.model.state() for _ in range(steps + 1)]
        return states, [self.pipeline.contacts() for _ in range(steps)], self.model.control()

    def begin(self, states):
        newton.eval_fk(self.model, self.model.joint_q, self.model.joint_qd, states[0])
        wp.copy(states[0].joint_q, self.model.joint_q)
        wp.copy(states[0].joint_qd, self.model.joint_qd)

    def stepped(self, room, steps):
        """Two states and one list of contacts in turn, unless there is one for each step, as a gradient needs."""
        states, contacts, control = room
        for k in range(steps):
            here, there = states[k % len(states)], states[(k + 1) % len(states)]
            here.clear_forces()
            touching = contacts[k % len(contacts)]
            self.pipeline.collide(here, touching)
            self.solver.step(here, there, control, touching, self.scene["dt"])
        return there

    def run(self, steps, room):
        self.begin(room[0])
        return self.stepped(room, steps)

    def stand(self, steps):
        return float(self.run(steps, self.room(1)).body_q.numpy()[0, 2]), None

    def forward(self, steps, batch):
        room = self.room(1)
        return lambda: self.run(steps, room)

    def gradient(self, steps, batch):
        kept, loss = {}, wp.zeros(1, dtype=float, requires_grad=True)

        def there():
            # outside of the tape, or it would carry the gradients of the start and the controls on to the model
            kept["room"] = room = self.room(steps)
            self.begin(room[0])
            kept["tape"] = tape = wp.Tape()
            with tape:
                last = self.stepped(room, steps)
                wp.launch(base_loss, dim=1, inputs=[last.body_q, wp.vec3(*WEIGHTS), loss])

        def back():
            kept["tape"].zero()
            kept["tape"].backward(loss)
            return self.target_gradient(kept["room"][2])

        return there, back

    def target_gradient(self, control):
        target = getattr(control, "joint_target_q", None)
        return (target if target is not None else control.joint_target_pos).grad.numpy()

    def gradient_error(self):
        """Of the last height by all targets together, over the flight and the landing, in 32 bits."""
        steps, epsilon = 60, 1e-2
        there, back = self.gradient(steps, 1)
        there()
        found = back()
        turn = np.ones_like(found)
        turn[:7] = 0.0

        def height(offset):
            model = self.model
            targets = model.joint_target_q if hasattr(model, "joint_target_q") else model.joint_target_pos
            before = targets.numpy()
            targets.assign(before + offset * turn)
            last = self.run(steps, self.room(1))
            targets.assign(before)
            return float(np.dot(WEIGHTS, last.body_q.numpy()[0, :3]))

        expected = (height(epsilon) - height(-epsilon)) / (2 * epsilon)
        return abs(float((found * turn).sum()) - expected) / max(abs(expected), 1e-12)


if __name__ == "__main__":
    play({
        "laikago": lambda task: laikago(task, Newton(task)),
        "correctness": lambda task: correctness(task, NewtonProblem, version("newton", "warp-lang")),
    })  # fmt: skip
