"""Drake: its discrete SAP contact, and the Jacobian of a step by forward-mode AutoDiffXd."""

import numpy as np
from known import correctness, start_of
from protocol import play, relative_error, version
from pydrake.all import (
    AddMultibodyPlant,
    ConstantVectorSource,
    CoulombFriction,
    DiagramBuilder,
    ExtractGradient,
    HalfSpace,
    InitializeAutoDiff,
    MultibodyPlantConfig,
    Parser,
    PdControllerGains,
    RigidTransform,
    SceneGraphConfig,
    Simulator,
)
from workload import STANDS_AFTER, WEIGHTS, laikago

VERSION = version("drake")
# of problems with known derivatives: hard contact (N/m, s/m), and what steps it takes to resolve it; the SAP approximation
# itself lets sliding bodies glide, which the lagged one does not
STIFFNESS, DISSIPATION, SUBSTEPS = 1e6, 50.0, 10
BOUNCY = 1e3  # a bounce must last for many steps, or its derivative depends on where in a step it begins


def contact_config(stiffness=1e5, dissipation=1.0):
    config = SceneGraphConfig()
    contact = config.default_proximity_properties
    contact.compliance_type, contact.point_stiffness = "undefined", stiffness
    contact.hunt_crossley_dissipation = dissipation
    return config


def add_ground(plant, friction):
    """Its parser gives every shape a friction of 1, and two shapes have the harmonic mean: this one makes it what it should be."""
    own = friction / (2.0 - friction)
    friction = CoulombFriction(own, own)
    plant.RegisterCollisionGeometry(plant.world_body(), RigidTransform(), HalfSpace(), "ground", friction)


class Drake:
    notes = {
        "forward": "Simulator.AdvanceTo, SAP, point contact",
        "backward": "AutoDiffXd step: Jacobian by state and servo targets (forward mode), then products; servos outside",
    }

    def __init__(self, task):
        self.version = VERSION
        self.scene, self.urdf = task.json("laikago.json"), task.text("laikago.urdf")
        self.diagram, self.plant = self.built(has_servos=True)
        # servos inside its contact solver have no part in its gradient (their stiffness is missing from the Jacobian), so
        # that for gradients the servos' torques come from outside
        self.bare, self.bare_plant = self.built(has_servos=False)
        self.twin = self.bare.ToAutoDiffXd()
        self.twin_plant = self.twin.GetSubsystemByName(self.bare_plant.get_name())

    def built(self, has_servos):
        scene, builder = self.scene, DiagramBuilder()
        config = MultibodyPlantConfig(
            time_step=scene["dt"], discrete_contact_approximation="sap", contact_model="point"
        )
        plant, _ = AddMultibodyPlant(config, contact_config(), builder)
        (robot,) = Parser(plant).AddModelsFromString(self.urdf, "urdf")
        add_ground(plant, scene["friction"])
        for name in scene["joints"]:
            actuator = plant.AddJointActuator(name, plant.GetJointByName(name))
            if has_servos:
                actuator.set_controller_gains(PdControllerGains(p=scene["stiffness"], d=scene["damping"]))
        plant.Finalize()
        if has_servos:
            wanted = builder.AddSystem(ConstantVectorSource(np.concatenate([scene["targets"], np.zeros(12)])))
            builder.Connect(wanted.get_output_port(), plant.get_desired_state_input_port(robot))
        return builder.Build(), plant

    def start(self):
        given = np.array(self.scene["q"])
        positions = self.plant.GetPositions(self.plant.CreateDefaultContext())
        positions[:7] = np.concatenate([given[3:7], given[:3]])
        for name, value in zip(self.scene["joints"], given[7:], strict=True):
            positions[self.plant.GetJointByName(name).position_start()] = value
        return np.concatenate([positions, np.zeros(self.plant.num_velocities())])

    def simulator(self):
        simulator = Simulator(self.diagram)
        context = self.plant.GetMyMutableContextFromRoot(simulator.get_mutable_context())
        self.plant.SetPositionsAndVelocities(context, self.start())
        return simulator, context

    def stand(self, steps):
        simulator, context = self.simulator()
        simulator.AdvanceTo(steps * self.scene["dt"])
        contacts = self.plant.get_contact_results_output_port().Eval(context)
        return self.plant.GetPositions(context)[6], contacts.num_point_pair_contacts()

    def forward(self, steps, batch):
        if batch > 1:
            return None

        def run():
            simulator, context = self.simulator()
            simulator.AdvanceTo(steps * self.scene["dt"])
            return context

        return run

    def gradient(self, steps, batch):
        if batch > 1:
            return None
        kept = {}

        def there():
            kept["states"] = states = [self.start()]
            for _ in range(steps):
                states.append(self.next_state(self.bare, self.bare_plant, states[-1], self.scene["targets"]))

        return there, lambda: self.pulled_back(kept["states"][:-1])

    def torques(self, plant, state, targets):
        """Of the servos, in the order of the actuators, of whatever kind of number."""
        found = []
        for name, target in zip(self.scene["joints"], targets, strict=True):
            joint = plant.GetJointByName(name)
            q, v = state[joint.position_start()], state[plant.num_positions() + joint.velocity_start()]
            found.append(self.scene["stiffness"] * (target - q) - self.scene["damping"] * v)
        return np.array(found)

    def next_state(self, diagram, plant, state, targets):
        context = diagram.CreateDefaultContext()
        inside = plant.GetMyMutableContextFromRoot(context)
        plant.SetPositionsAndVelocities(inside, state)
        plant.get_actuation_input_port().FixValue(inside, self.torques(plant, state, targets))
        diagram.ExecuteForcedEvents(context)
        return plant.GetPositionsAndVelocities(inside)

    def jacobian(self, state):
        """Of the next state by this one and the twelve targets."""
        seeds = InitializeAutoDiff(np.concatenate([state, self.scene["targets"]])).ravel()
        n = len(state)
        after = self.next_state(self.twin, self.twin_plant, seeds[:n], seeds[n:])
        return ExtractGradient(after.reshape(-1, 1))

    def pulled_back(self, states):
        n = len(states[0])
        bar, found = np.zeros(n), np.empty((len(states), 12))
        bar[4:7] = WEIGHTS
        for k in range(len(states) - 1, -1, -1):
            whole = bar @ self.jacobian(states[k])
            bar, found[k] = whole[:n], whole[n:]
        return found

    def gradient_error(self):
        """Of one step by joint positions and velocities before it, along one direction."""
        simulator, context = self.simulator()
        simulator.AdvanceTo(STANDS_AFTER * self.scene["dt"])
        state, step = self.plant.GetPositionsAndVelocities(context).copy(), 1e-6
        turn = np.zeros(len(state))
        turn[7:] = np.random.default_rng(0).normal(size=len(state) - 7)
        ahead, behind = (
            self.next_state(self.bare, self.bare_plant, state + s * turn, self.scene["targets"]) for s in (step, -step)
        )
        return relative_error(self.jacobian(state)[:, : len(state)] @ turn, (ahead - behind) / (2 * step))


class DrakeProblem:
    """A step after the other in AutoDiffXd, with one derivative for each input."""

    step, note = 1e-4, f"AutoDiffXd, lagged approximation, {SUBSTEPS} steps in one"

    def __init__(self, task, problem):
        self.problem, builder = problem, DiagramBuilder()
        config = MultibodyPlantConfig(
            time_step=problem["dt"] / SUBSTEPS, discrete_contact_approximation="lagged", contact_model="point"
        )
        contact = contact_config(*((BOUNCY, 0.0) if problem["restitution"] else (STIFFNESS, DISSIPATION)))
        plant, _ = AddMultibodyPlant(config, contact, builder)
        plant.mutable_gravity_field().set_gravity_vector([0, 0, -problem["gravity"]])
        for robot in problem["robots"]:
            Parser(plant).AddModelsFromString(task.text(f"{problem['name']}.{robot}.z.urdf"), "urdf")
        if problem["has_ground"]:
            add_ground(plant, problem["friction"])
        for name in problem["controls"]:
            if not plant.HasJointActuatorNamed(name):
                plant.AddJointActuator(name, plant.GetJointByName(name))
        plant.Finalize()
        self.plant, self.diagram = plant, builder.Build()
        self.twin = self.diagram.ToAutoDiffXd()

    def place(self, kind, name):
        joint = self.plant.GetJointByName(name)
        return joint.position_start() if kind == "q" else self.plant.num_positions() + joint.velocity_start()

    def start(self, given):
        state = self.plant.GetPositionsAndVelocities(self.plant.CreateDefaultContext())
        if "floating" in self.problem["name"]:
            state[6] = 0.1  # the foot's balls touch the ground
        for name in self.problem["start"]:
            state[self.place("q", name)], state[self.place("qd", name)] = given["q"][name], given["qd"][name]
        return state, np.array(list(given["u"].values()))

    def rolled(self, diagram, state, u):
        plant = diagram.GetSubsystemByName(self.plant.get_name())
        context = diagram.CreateDefaultContext()
        inside = plant.GetMyMutableContextFromRoot(context)
        plant.SetPositionsAndVelocities(inside, state)
        if len(u):
            plant.get_actuation_input_port().FixValue(inside, u)
        for _ in range(SUBSTEPS * self.problem["steps"]):
            diagram.ExecuteForcedEvents(context)
        last = plant.GetPositionsAndVelocities(inside)
        return np.array([last[self.place(kind, name)] for kind, name in self.problem["outputs"]])

    def outputs(self, given):
        return self.rolled(self.diagram, *self.start(given))

    def jacobian(self):
        state, u = self.start(start_of(self.problem))
        n, inputs = len(state), self.problem["inputs"]
        seeds = np.zeros((n + len(u), len(inputs)))
        for column, (kind, name) in enumerate(inputs):
            seeds[n if kind == "u" else self.place(kind, name), column] = 1.0
        given = InitializeAutoDiff(np.concatenate([state, u]), gradient=seeds).ravel()
        return ExtractGradient(self.rolled(self.twin, given[:n], given[n:]).reshape(-1, 1))


if __name__ == "__main__":
    play({
        "laikago": lambda task: laikago(task, Drake(task)),
        "correctness": lambda task: correctness(task, DrakeProblem, VERSION),
    })  # fmt: skip
