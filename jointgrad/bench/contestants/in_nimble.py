"""nimblephysics: contact as a linear complementarity problem, differentiated analytically, through PyTorch."""

import os
import tempfile

import nimblephysics as nimble
import numpy as np
import torch
from protocol import play, version
from workload import CHECK_STEPS, WEIGHTS, direction, laikago, slope_error

torch.set_num_threads(1)
GROUND = (
    '<?xml version="1.0"?><robot name="ground"><link name="slab"><inertial><mass value="1"/>'
    '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial><collision><origin xyz="0 -0.5 0"/>'
    '<geometry><box size="40 1 40"/></geometry></collision></link><link name="world"/><joint name="weld" type="fixed">'
    '<parent link="world"/><child link="slab"/></joint></robot>'
)


def loaded(world, text):
    with tempfile.NamedTemporaryFile("w", suffix=".urdf", delete=False) as file:
        file.write(text)
    skeleton = world.loadSkeleton(file.name)
    os.unlink(file.name)
    return skeleton


def set_friction(skeleton, friction):
    for i in range(skeleton.getNumBodyNodes()):
        skeleton.getBodyNode(i).setFrictionCoeff(friction)


class Nimble:
    """y points up: with contact normals along z its gradient warns at every step."""

    notes = {
        "forward": "world.step",
        "backward": "nimble.timestep through PyTorch",
    }

    def __init__(self, task):
        self.version = version("nimblephysics", "torch")
        self.scene = task.json("laikago.json")
        self.world = world = nimble.simulation.World()
        world.setGravity([0, -9.81, 0])
        world.setTimeStep(self.scene["dt"])
        self.robot = loaded(world, task.text("laikago.urdf"))
        for skeleton in (self.robot, loaded(world, GROUND)):
            set_friction(skeleton, self.scene["friction"])
        self.index = {self.robot.getDofByIndex(i).getName(): i for i in range(self.robot.getNumDofs())}
        for name, target in zip(self.scene["joints"], self.scene["targets"]):  # noqa: B905
            dof = self.robot.getDofByIndex(self.index[name])
            dof.setSpringStiffness(self.scene["stiffness"])
            dof.setRestPosition(target)
            dof.setDampingCoefficient(self.scene["damping"])

    def start(self, q="q"):
        state = np.zeros(2 * self.world.getNumDofs())
        given = self.scene[q]
        state[0], state[4] = -np.pi / 2, given[2]  # turned from z up to y up
        for name, value in zip(self.scene["joints"], given[7:]):  # noqa: B905
            state[self.index[name]] = value
        return state

    def stand(self, steps):
        self.world.setState(self.start())
        for _ in range(steps):
            self.world.step()
        return self.world.getPositions()[4], self.world.getLastCollisionResult().getNumContacts()

    def forward(self, steps, batch):
        return None if batch > 1 else lambda: self.stand(steps)

    def rolled(self, start, actions):
        state = torch.tensor(start)
        for action in actions:
            state = nimble.timestep(self.world, state, action)
        return state[4] * WEIGHTS[2] + state[3] * WEIGHTS[0] - state[5] * WEIGHTS[1]

    def actions(self, steps):
        n = self.world.getActionSize()
        return [torch.zeros(n, dtype=torch.float64, requires_grad=True) for _ in range(steps)]

    def gradient(self, steps, batch):
        if batch > 1:
            return None
        kept = {}

        def there():
            kept["loss"] = self.rolled(self.start(), self.actions(steps))

        return there, lambda: kept["loss"].backward(retain_graph=True)

    def gradient_error(self):
        start, actions = self.start("standing_q"), self.actions(CHECK_STEPS)
        self.rolled(start, actions).backward()
        gradient = np.array([a.grad.numpy() for a in actions])
        du = direction(*gradient.shape)
        du[:, :6] = 0.0  # forces on the base are no controls

        def loss(u):
            with torch.no_grad():
                return float(self.rolled(start, [torch.tensor(x) for x in u]))

        return slope_error(loss, gradient, np.zeros_like(du), du, 1e-3)


if __name__ == "__main__":
    play(Nimble, {"laikago": laikago})
