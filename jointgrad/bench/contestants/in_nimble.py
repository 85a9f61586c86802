"""nimblephysics: contact as a linear complementarity problem, differentiated analytically, through PyTorch."""

import os
import tempfile

import nimblephysics as nimble
import numpy as np
import torch
from known import correctness, start_of
from protocol import play, version
from workload import CHECK_STEPS, WEIGHTS, direction, laikago, slope_error

torch.set_num_threads(1)
VERSION = version("nimblephysics", "torch")
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
        self.version = VERSION
        self.scene = task.json("laikago.json")
        self.world = world = nimble.simulation.World()
        world.setGravity([0, -9.81, 0])
        world.setTimeStep(self.scene["dt"])
        self.robot = loaded(world, task.text("laikago.urdf"))
        for skeleton in (self.robot, loaded(world, GROUND)):
            set_friction(skeleton, self.scene["friction"])
        self.index = {self.robot.getDofByIndex(i).getName(): i for i in range(self.robot.getNumDofs())}
        for name, target in zip(self.scene["joints"], self.scene["targets"], strict=True):
            dof = self.robot.getDofByIndex(self.index[name])
            dof.setSpringStiffness(self.scene["stiffness"])
            dof.setRestPosition(target)
            dof.setDampingCoefficient(self.scene["damping"])

    def start(self, q="q"):
        state = np.zeros(2 * self.world.getNumDofs())
        given = self.scene[q]
        state[0], state[4] = -np.pi / 2, given[2]  # turned from z up to y up
        for name, value in zip(self.scene["joints"], given[7:], strict=True):
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


class NimbleProblem:
    step, note = 1e-5, "through PyTorch"

    def __init__(self, task, problem):
        self.problem, self.world = problem, nimble.simulation.World()
        self.world.setGravity([0, -problem["gravity"], 0])
        self.world.setTimeStep(problem["dt"])
        skeletons = [loaded(self.world, task.text(f"{problem['name']}.{robot}.y.urdf")) for robot in problem["robots"]]
        if problem["has_ground"]:
            skeletons.append(loaded(self.world, GROUND))
        for skeleton in skeletons:
            set_friction(skeleton, problem["friction"])
            for i in range(skeleton.getNumBodyNodes()):
                skeleton.getBodyNode(i).setRestitutionCoeff(problem["restitution"])
            for i in range(skeleton.getNumJoints()):
                skeleton.getJoint(i).setPositionLimitEnforced(True)
        self.index: dict = {}
        for skeleton in skeletons:
            for i in range(skeleton.getNumDofs()):
                self.index[skeleton.getDofByIndex(i).getName()] = len(self.index)

    def start(self, given):
        n = self.world.getNumDofs()
        state = np.zeros(2 * n)
        if "floating" in self.problem["name"]:
            state[4] = 0.1  # the foot's balls touch the ground
        for name in self.problem["start"]:
            state[self.index[name]], state[n + self.index[name]] = given["q"][name], given["qd"][name]
        action = np.zeros(self.world.getActionSize())
        for name, force in given["u"].items():
            action[self.index[name]] = force
        return torch.tensor(state), torch.tensor(action)

    def rolled(self, state, action):
        for _ in range(self.problem["steps"]):
            state = nimble.timestep(self.world, state, action)
        return [state[self.place(kind, name)] for kind, name in self.problem["outputs"]]

    def place(self, kind, name):
        return self.index[name] + (self.world.getNumDofs() if kind == "qd" else 0)

    def outputs(self, given):
        with torch.no_grad():
            return [float(x) for x in self.rolled(*self.start(given))]

    def jacobian(self):
        state, action = (x.requires_grad_() for x in self.start(start_of(self.problem)))
        rows = []
        for output in self.rolled(state, action):
            by_state, by_action = torch.autograd.grad(output, (state, action), retain_graph=True)
            rows.append([
                float(by_action[self.index[name]] if kind == "u" else by_state[self.place(kind, name)])
                for kind, name in self.problem["inputs"]
            ])  # fmt: skip
        return rows


if __name__ == "__main__":
    play({
        "laikago": lambda task: laikago(task, Nimble(task)),
        "correctness": lambda task: correctness(task, NimbleProblem, VERSION),
    })  # fmt: skip
