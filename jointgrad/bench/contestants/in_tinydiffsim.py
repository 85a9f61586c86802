"""pytinydiffsim: Tiny Differentiable Simulator's wheel, which steps but offers no gradients."""

import tempfile
from pathlib import Path

import numpy as np
import pytinydiffsim as tds
from protocol import play, version
from workload import laikago

PLANE = """<?xml version="1.0"?><robot name="plane"><link name="planeLink"><inertial><mass value="0"/>
<inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/></inertial><collision><geometry><plane normal="0 0 1"/></geometry>
</collision></link></robot>"""


class TinyDiffSim:
    notes = {"forward": "50 sweeps; servos computed in Python"}

    def __init__(self, task):
        self.version, self.scene = version("pytinydiffsim"), task.json("laikago.json")
        self.folder = Path(tempfile.mkdtemp())
        (self.folder / "plane.urdf").write_text(PLANE)
        (self.folder / "laikago.urdf").write_text(task.text("laikago.urdf"))
        self.targets = np.array(self.scene["targets"])

    def made(self):
        world = tds.TinyWorld()
        world.gravity, world.friction = tds.Vector3(0, 0, -9.81), self.scene["friction"]
        parser = tds.TinyUrdfParser()
        plane, robot = tds.TinyMultiBody(False), tds.TinyMultiBody(True)
        convert = tds.UrdfToMultiBody2()
        for name, body in (("plane", plane), ("laikago", robot)):
            convert.convert2(parser.load_urdf(str(self.folder / f"{name}.urdf"), False), world, body)
        solver = tds.TinyMultiBodyConstraintSolver()
        solver.pgs_iterations_ = 50
        order = self.order()
        for i, value in enumerate(self.start(order)):
            robot.q[i] = value
        return world, solver, plane, robot, order

    def order(self):
        """Actuated joints in the order of the file, in which the wheel keeps them."""
        text = (self.folder / "laikago.urdf").read_text()
        return sorted(range(12), key=lambda k: text.index(f'<joint name="{self.scene["joints"][k]}"'))

    def start(self, order):
        q = self.scene["q"]
        return [*q[4:7], q[3], *q[:3], *(q[7 + k] for k in order)]

    def stand(self, steps):
        robot = self.run(steps)
        return robot.q[6], None

    def run(self, steps):
        world, solver, plane, robot, order = self.made()
        dt, targets = self.scene["dt"], self.targets[order]
        for _ in range(steps):
            q = np.array([robot.q[i] for i in range(7, 19)])
            qd = np.array([robot.qd[i] for i in range(6, 18)])
            tau = self.scene["stiffness"] * (targets - q) - self.scene["damping"] * qd
            for i in range(12):
                robot.tau[i] = tau[i]
            tds.forward_dynamics(robot, world.gravity)
            tds.integrate_euler_qdd(robot, dt)
            contacts = world.compute_contacts_multi_body([plane, robot], world.get_collision_dispatcher())
            for pair in contacts:
                solver.resolve_collision(pair, dt)
            tds.integrate_euler(robot, dt)
        return robot

    def forward(self, steps, batch):
        return lambda: self.run(steps)

    def gradient(self, steps, batch):
        return None

    def gradient_error(self):
        return None


if __name__ == "__main__":
    play({"laikago": lambda task: laikago(task, TinyDiffSim(task))})
