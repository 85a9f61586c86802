"""Genesis on the processor: forward with servos, gradients with constant torques (only forces are differentiable there)."""

import tempfile

import genesis as gs
import numpy as np
import torch
from known import not_asked
from protocol import play, version
from workload import CHECK_STEPS, WEIGHTS, laikago

torch.set_num_threads(1)


class Genesis:
    notes = {
        "forward": "32-bit",
        "backward": "32-bit, constant torques from where it stands, steps recomputed",
    }

    def __init__(self, task):
        self.version, self.scene = version("genesis-world", "torch"), task.json("laikago.json")
        with tempfile.NamedTemporaryFile("w", suffix=".urdf", delete=False) as file:
            file.write(task.text("laikago.urdf"))
        self.file = file.name
        gs.init(backend=gs.cpu, logging_level="error", precision="32")
        self.stage, self.robot = self.built(has_gradient=False)
        self.twin = None

    def built(self, has_gradient):
        options = {"enable_self_collision": False}
        if has_gradient:
            options["integrator"] = gs.integrator.approximate_implicitfast
        stage = gs.Scene(
            sim_options=gs.options.SimOptions(dt=self.scene["dt"], substeps=1, requires_grad=has_gradient),
            rigid_options=gs.options.RigidOptions(**options), show_viewer=False,
        )  # fmt: skip
        ground = gs.materials.Rigid(friction=self.scene["friction"])
        stage.add_entity(gs.morphs.Plane(), material=ground)
        body = gs.materials.Rigid(friction=self.scene["friction"])
        robot = stage.add_entity(gs.morphs.URDF(file=self.file, pos=self.scene["q"][:3], fixed=False), material=body)
        stage.build()
        return stage, robot

    def dofs(self, robot):
        return [int(np.ravel(robot.get_joint(name).dofs_idx_local)[0]) for name in self.scene["joints"]]

    def place(self, robot, q):
        given = self.scene[q]
        values = np.zeros(19)
        values[:7] = given[:7]
        for name, value in zip(self.scene["joints"], given[7:], strict=True):
            values[int(np.ravel(robot.get_joint(name).qs_idx_local)[0])] = value
        robot.set_qpos(torch.tensor(values, dtype=gs.tc_float))

    def run(self, steps):
        self.stage.reset()
        dofs = self.dofs(self.robot)
        self.robot.set_dofs_kp(np.full(12, self.scene["stiffness"]), dofs)
        self.robot.set_dofs_kv(np.full(12, self.scene["damping"]), dofs)
        self.place(self.robot, "q")
        self.robot.control_dofs_position(np.array(self.scene["targets"]), dofs)
        for _ in range(steps):
            self.stage.step()

    def stand(self, steps):
        self.run(steps)
        return float(self.robot.get_pos()[2]), None

    def forward(self, steps, batch):
        return lambda: self.run(steps)

    def pushed(self, torques):
        """The loss after so many steps under torques; needs the stage that is built for gradients."""
        if self.twin is None:
            self.twin = self.built(has_gradient=True)
        stage, robot = self.twin
        stage.reset()
        self.place(robot, "standing_q")
        dofs = self.dofs(robot)
        for torque in torques:
            robot.control_dofs_force(torque, dofs)
            stage.step()
        return (robot.get_state().pos.reshape(3) * torch.tensor(WEIGHTS, dtype=gs.tc_float)).sum()

    def torques(self, steps):
        given = torch.tensor(self.scene["torques"], dtype=gs.tc_float)
        return [given.clone().requires_grad_() for _ in range(steps)]

    def gradient(self, steps, batch):
        kept = {}

        def there():
            kept["loss"] = self.pushed(self.torques(steps))

        return there, lambda: kept["loss"].backward()

    def gradient_error(self):
        torques = self.torques(CHECK_STEPS)
        self.pushed(torques).backward()
        found = float(sum(t.grad.sum() for t in torques))
        step = 0.05
        ahead, behind = (float(self.pushed([t.detach() + s for t in torques])) for s in (step, -step))
        expected = (ahead - behind) / (2 * step)
        return abs(found - expected) / max(abs(expected), 1e-12)


def why_not(problem):
    """From its rigid_entity.py (process_input_grad): what is taken back are poses of bases, velocities and forces of joints."""
    if any(kind == "q" for kind, _ in problem["inputs"]):
        return "not offered", "it has no gradient by the positions of joints"
    return (
        "not asked",
        "it has gradients by velocities and forces of joints, but nobody has written these problems for it here",
    )


if __name__ == "__main__":
    play({
        "laikago": lambda task: laikago(task, Genesis(task)),
        "correctness": lambda task: not_asked(task, version("genesis-world", "torch"), why_not),
    })  # fmt: skip
