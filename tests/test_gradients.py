"""The reverse of rollouts against central differences: every input, every parameter, every integrator."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field

import numpy as np
import pytest
from oracles.differences import central, random_state, worst_error

import jointgrad as jg
from jointgrad.compiler.kernel import called
from jointgrad.compiler.trace import Traced
from jointgrad.engine.kernels import operators
from jointgrad.engine.kernels.stages.assembly import assembly_stage_adjoint
from jointgrad.engine.kernels.step import step, step_adjoint
from jointgrad.engine.run import plain
from jointgrad.engine.run.outputs import OUTPUTS
from jointgrad.engine.run.schedule import steps_repeated
from jointgrad.model.arrays import INTEGRATORS, PARAMS
from jointgrad.model.description import ACTUATORS

TOLERANCE = 1e-6
INPUTS = ("q", "qd", "u", "force")
# its random tree has every kind of joint
EVERY_KIND = 0


# what these robots have none of: dry friction (nor a row for it), networks, contact, ties
ABSENT = ("joint.friction", "graft.weight", "world.compliance", "world.softness", "world.limit_margin")


@dataclass
class Case:
    """A rollout and a loss: the sum of all its states and outputs, weighted at random.

    `inputs` holds everything the motion depends on, environments first; a difference is then taken by running many
    environments that differ in one number each.
    """

    model: jg.Model
    inputs: dict[str, np.ndarray]
    is_shared: bool
    steps: int
    batch: int
    bars: dict[str, np.ndarray] = field(default_factory=dict)

    def rollout(self, inputs=None, is_shared=None, **options) -> jg.Trajectory:
        inputs = inputs or self.inputs
        model = self.model
        if not (self.is_shared if is_shared is None else is_shared):
            model = model._moved({name: inputs[name] for name in PARAMS})
        u, force = np.moveaxis(inputs["u"], 0, 1), np.moveaxis(inputs["force"], 0, 1)
        state = jg.State(inputs["q"], inputs["qd"])
        return jg.rollout(model, state, u, force=force, outputs=tuple(OUTPUTS), **options)

    def backward(self, trajectory: jg.Trajectory) -> dict[str, np.ndarray]:
        """Cotangents, environments first; of a shared parameter, the sum over environments."""
        bars = {o: self.bars[o] for o in OUTPUTS}
        grad = trajectory.backward(self.bars["q"], self.bars["qd"], bars)
        u, force = np.moveaxis(grad.u, 1, 0), np.moveaxis(grad.force, 1, 0)
        return {"q": grad.q, "qd": grad.qd, "u": u, "force": force, **grad.params}

    def losses(self, env: int, changed: dict[str, np.ndarray]) -> np.ndarray:
        """Loss of copies of one environment in which some inputs differ, less its own loss."""
        n = len(next(iter(changed.values())))
        inputs = {name: np.repeat(x[env : env + 1], n, 0) for name, x in self.inputs.items()} | changed
        found = self.rollout(inputs, is_shared=False)
        own = self.rollout({name: x[env : env + 1] for name, x in self.inputs.items()}, is_shared=False)
        parts = {"q": (found.q, own.q), "qd": (found.qd, own.qd)}
        parts |= {o: (found.outputs[o], own.outputs[o]) for o in OUTPUTS}
        weighted = [(a - b) * self.bars[o][:, env : env + 1] for o, (a, b) in parts.items()]
        return sum(np.moveaxis(x, 1, 0).reshape(n, -1).sum(1) for x in weighted)

    def differences(self, name: str, entries=None) -> np.ndarray:
        """(batch, entries): by central differences, each environment's loss by its own copy of an input."""
        h = {"world.dt": 5e-4 * self.model.params["world.dt"], "force": 0.05, "world.density": 0.02,
             "link.drag_size": 2e-3}.get(name, 5e-4)  # fmt: skip
        return np.stack([
            central(lambda points, env=env: self.losses(env, {name: points}), self.inputs[name][env], h, entries)
            for env in range(self.batch)
        ])  # fmt: skip

    def error(self, name: str, found: np.ndarray, rng: np.random.Generator, most: int = 1000) -> float:
        if name in ABSENT:
            return float(np.abs(found).max(initial=0.0))
        size = self.inputs[name][0].size
        entries = np.arange(size) if size <= most else np.sort(rng.choice(size, most, replace=False))
        expected = self.differences(name, entries)
        if name in PARAMS and self.is_shared:
            return worst_error(found.reshape(size)[entries], expected.sum(0))
        return worst_error(found.reshape(self.batch, size)[:, entries], expected)


def made_robot(seed: int, base: str) -> jg.Description:
    """A damped random tree; every joint is driven, one of them also by servos and by a motor always at its limit.

    No drive and no spring comes near a kink, so that differences see a smooth motion.
    """
    robot = jg.zoo.random_tree(6, seed=seed, base=base, trees=2 if base == "fixed" else 1, actuators=False, drag=True)
    if base == "free":  # something that hangs on the world, too
        robot.add_link("anchored", 0.7, (0.1, 0.2, 0.1), (0.1, 0.02, 0.01, 0.2, 0.03, 0.15))
        robot.add_joint("anchor", "revolute", None, "anchored", axis=(0.6, 0.0, 0.8), damping=0.2)
    limits = {"control_limit": (-0.8, 0.9), "force_limit": (-90.0, 80.0)}
    driven = [j for j in robot.joints.values() if j.kind != "fixed"]
    for k, joint in enumerate(driven):
        bias = (0.2, 0.0 if joint.kind == "spherical" else 0.3, -0.1)
        robot.add_actuator(f"motor{k}", joint.name, gain=1.5, damping=0.1, gear=0.8 + 0.1 * k, bias=bias, **limits)
    scalar = next(j.name for j in driven if j.kind in ("revolute", "continuous", "prismatic"))
    for k in range(2):  # of two neighbours one has its control clamped
        robot.add_actuator(f"served{k}", scalar, "position", gain=2.0, damping=0.3, bias=(0.1, 0.2, 0.1), **limits)
        robot.add_actuator(f"paced{k}", scalar, "velocity", gain=0.7, damping=0.1, bias=(-0.1, 0.1, 0.1), **limits)
        robot.add_actuator(f"braked{k}", scalar, "damper", gain=0.6, damping=0.1, bias=(-0.1, 0.2, 0.1), **limits)
        for kind in ("torque", "position", "velocity", "damper"):
            name = f"strained_{kind}{k}"
            constant = 60.0 if kind == "damper" else 0.0  # its own force is none where nothing moves
            robot.add_actuator(
                name, scalar, kind, gain=50.0, gear=0.1, bias=(constant, 0.1, 0.1), force_limit=(-0.7, 0.9)
            )
    add_tendons(robot, [j.name for j in driven if j.kind in ("revolute", "continuous", "prismatic")], limits)
    return robot


def add_tendons(robot: jg.Description, joints: list[str], limits: dict) -> None:
    """A tendon that is stretched far and one that is slack, over the same joints; one more drives turns."""
    terms = [(name, 0.5 + 0.3 * k) for k, name in enumerate(joints)]
    robot.add_tendon("taut", terms, stiffness=0.7, damping=0.2, rest=(-9.0, -8.0))
    robot.add_tendon("pressed", terms[::-1], stiffness=0.6, damping=0.3, rest=(8.0, 9.0))
    robot.add_tendon("loose", terms[:1], stiffness=0.5, damping=0.1, rest=(-9.0, 9.0))
    for kind in ACTUATORS:
        robot.add_actuator(
            f"pulled_{kind}", "", kind, tendon="taut", gain=0.7, gear=1.2, bias=(0.1, 0.2, 0.1), **limits
        )
    balls = [j.name for j in robot.joints.values() if j.kind == "spherical"]
    if balls:
        robot.add_tendon("twist", [(balls[0], 0.4, k) for k in range(3)], damping=0.2)
        robot.add_actuator("twisted", tendon="twist", gain=1.3, gear=0.9, bias=(0.1, 0.0, -0.1), **limits)


def made_case(
    seed: int, integrator: str, steps: int, is_shared: bool, base: str = "free", batch: int = 3, dt: float = 0.01
) -> Case:
    rng = np.random.default_rng(seed)
    model = made_robot(seed, base).compile(dt=dt, integrator=integrator, viscosity=0.05)
    more = {"joint.damping": 0.3, "joint.stiffness": 0.2, "joint.armature": 0.05}
    more["joint.rest"] = 0.1 * rng.normal(size=model.nq)
    model = model.replace({name: model.params[name] + x for name, x in more.items()})
    start, rates = model.initial_state(batch).q, random_state(model, rng, batch).qd
    inputs = {"q": start + 0.2 * rng.normal(size=start.shape), "qd": 0.5 * rates}
    # every other control is well inside its limits, every other well outside
    size = (batch, steps, model.nu)
    is_outside = np.add.outer(np.arange(steps), np.arange(model.nu)) % 2
    inputs["u"] = rng.choice((-1.0, 1.0), size) * (rng.uniform(0.2, 0.6, size) + 0.8 * is_outside)
    inputs["force"] = 0.3 * rng.normal(size=(batch, steps, model.n_links, 6))
    for name, value in model.params.items():
        inputs[name] = np.repeat(value[None], batch, 0)
        # nothing gives way here: no draws for that
        if not is_shared and name not in ("graft.weight", "pair.compliance", "world.compliance"):
            inputs[name] *= rng.uniform(0.97, 1.03, size=(batch,) + (1,) * value.ndim)
    case = Case(model, inputs, is_shared, steps, batch)
    shapes = {"q": (model.nq,), "qd": (model.nv,)} | {o: (model.n_links, *s) for o, s in OUTPUTS.items()}
    case.bars = {o: rng.normal(size=(steps + 1, batch, *shape)) for o, shape in shapes.items()}
    return case


CASES = [("free", EVERY_KIND), ("fixed", 2), ("fixed", 3)]


def errors(case: Case, gradient: dict[str, np.ndarray], most: int = 1000) -> dict[str, float]:
    """Inputs whose cotangent is not what differences say."""
    rng = np.random.default_rng(0)
    found = {name: case.error(name, bar, rng, most) for name, bar in gradient.items()}
    return {name: error for name, error in found.items() if not error < TOLERANCE}


@pytest.mark.parametrize("is_shared", [True, False], ids=["shared", "per_environment"])
@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize(("base", "seed"), CASES)
def test_one_step(base, seed, integrator, is_shared):
    """Every entry of every input and parameter, through one step and the outputs of both its states."""
    case = made_case(seed, integrator, 1, is_shared, base)
    assert errors(case, case.backward(case.rollout())) == {}


@pytest.mark.parametrize(("base", "seed", "is_shared"), [("free", 1, False), ("fixed", 2, True)])
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_hundred_steps(base, seed, is_shared, integrator):
    """A sample of every input and parameter, through a hundred steps; once more with states recomputed."""
    case = made_case(seed, integrator, 100, is_shared, base, batch=2)
    kept = case.backward(case.rollout())
    assert errors(case, kept, most=12) == {}
    restored = case.rollout(memory=case.batch * 16 * (case.model.nq + case.model.nv) * 8)
    assert restored.run.schedule.slots > 0  # states were not all kept
    again = case.backward(restored)
    assert all(np.array_equal(kept[name], again[name]) for name in kept)


@pytest.mark.parametrize(("states", "is_binomial"), [(5, True), (9, True), (21, True), (60, False), (80, False)])
def test_checkpoints_give_the_same_bits(states, is_binomial):
    """Room for few states (binomial programs) or for some (intervals): the unlimited gradient, bit by bit."""
    case = made_case(1, "semi_implicit", 83, True, batch=1)
    kept = case.rollout(threads=1)
    size = 8 * (case.model.nq + case.model.nv)
    restored = case.rollout(threads=1, memory=states * size)
    schedule = restored.run.schedule
    assert schedule.interval > 1
    assert (steps_repeated(schedule.program) >= schedule.interval) == is_binomial
    expected, found = case.backward(kept), case.backward(restored)
    assert all(np.array_equal(expected[name], found[name]) for name in expected)
    assert np.array_equal(kept.q, restored.q)


def test_joint_without_spring():
    """The stiffness of a joint that has none still has a gradient, and nothing else changes."""
    case = made_case(1, "semi_implicit", 1, True, batch=2)
    case.inputs["joint.stiffness"] *= 0.0
    case.model = case.model.replace({"joint.stiffness": case.inputs["joint.stiffness"][0]})
    gradient = case.backward(case.rollout())
    assert np.abs(gradient["joint.stiffness"]).max() > 0
    assert errors(case, gradient) == {}


def test_cotangent_of_the_last_state():
    """A cotangent without time axis belongs to the last state."""
    case = made_case(2, "explicit", 7, True, "fixed")
    trajectory = case.rollout()
    wide = {name: np.zeros_like(case.bars[name]) for name in ("q", "qd")}
    for name in wide:
        wide[name][-1] = case.bars[name][-1]
    a = trajectory.backward(wide["q"], wide["qd"])
    b = trajectory.backward(case.bars["q"][-1], case.bars["qd"][-1])
    c = trajectory.backward(wide["q"], case.bars["qd"][-1])
    assert np.array_equal(a.q, b.q) and np.array_equal(a.q, c.q)
    assert np.array_equal(a.params["link.com"], b.params["link.com"])
    assert np.abs(a.u).max() > 0 and np.array_equal(a.u, b.u)


def test_force_that_stays():
    """A force without time axis has the summed cotangent of one that is given at every step."""
    case = made_case(2, "semi_implicit", 9, True, "fixed")
    force = case.inputs["force"][:, 0]
    case.inputs["force"] = np.repeat(force[:, None], case.steps, 1)
    each = case.backward(case.rollout())
    state = jg.State(case.inputs["q"], case.inputs["qd"])
    trajectory = jg.rollout(case.model, state, np.moveaxis(case.inputs["u"], 0, 1), force=force)
    grad = trajectory.backward(case.bars["q"], case.bars["qd"], {o: case.bars[o] for o in OUTPUTS})
    assert worst_error(grad.force, each["force"].sum(1)) < 1e-12
    assert np.array_equal(grad.q, each["q"])


def test_no_steps():
    """A motion without steps hands its cotangents back as they are."""
    case = made_case(2, "semi_implicit", 0, True, "fixed")
    gradient = case.backward(case.rollout())
    assert gradient["u"].shape == (case.batch, 0, case.model.nu)
    assert not gradient["link.mass"].any()
    assert errors(case, {name: gradient[name] for name in ("q", "qd")}) == {}


def test_only_what_was_asked_for():
    """wrt leaves the rest out and changes no bit of what stays."""
    case = made_case(3, "semi_implicit", 3, True, "fixed")
    trajectory = case.rollout()
    whole = trajectory.backward(case.bars["q"], case.bars["qd"])
    part = trajectory.backward(case.bars["q"], case.bars["qd"], wrt=("u",))
    assert part.q is None and part.force is None and not part.params
    assert np.array_equal(whole.u, part.u) and np.abs(whole.u).max() > 0


# the tests above are worth what they would notice: the same comparison with one operator slightly wrong -----------

STAGES = ["assembly", "kinematics", "tendons", "forces", "articulated", "integration", "outputs"]
REVERSES = {f"stages.{stage}": f"{stage}_adjoint" for stage in STAGES} | {"runge_kutta": "runge_kutta_adjoint"}
REVERSES |= {"stages.assembly": "assembly_stage_adjoint", "drive": "drive_adjoint"}
# operators that only clear or only gather numbers, not all of which are used
WITHOUT_ARITHMETIC = (*(name for name in vars(operators) if name.startswith("zero")), "six")
INTEGRATOR_OF = {"with_damping_adjoint": "implicit_damping"}


# called only where contact forces are asked for: test_contact_outputs.py holds them against differences
OF_LOADS = ("share", "shared_back")


def mutations() -> list[tuple[str, str, str]]:
    """Module, operator and integrator, of every operator that the reverse of a stage or of a Runge-Kutta step calls."""
    found = []
    for place, kernel in REVERSES.items():
        module = importlib.import_module(f"jointgrad.engine.kernels.{place}")
        used = {id(operator) for operator in called(getattr(module, kernel).fn, Traced)}
        spared = WITHOUT_ARITHMETIC if place != "runge_kutta" else (*WITHOUT_ARITHMETIC, *OF_LOADS)
        names = [name for name, value in vars(module).items() if id(value) in used and name not in spared]
        integrator = "rk4" if place == "runge_kutta" else "semi_implicit"
        found += [(place, name, INTEGRATOR_OF.get(name, integrator)) for name in (*names, "accumulate")]
    return found


def plain_gradient(case: Case) -> dict[str, np.ndarray]:
    """The reverse of one step without the compiler, for the first environment."""
    z = plain.tables(case.model)
    for name in INPUTS:
        getattr(z.state, name)[:] = case.inputs[name][0].ravel().tolist()
    z.call.force = z.call.wants_params = z.call.wants_outputs = 1
    step(z)
    for name in ("q", "qd"):
        getattr(z.next_bar, name)[:] = case.bars[name][1, 0].tolist()
    for name in OUTPUTS:
        rows = case.bars[name][0, 0].reshape(case.model.n_links, -1).tolist()
        getattr(z.output_bar, name.split(".")[1])[:] = [tuple(row) for row in rows]
    step_adjoint(z, z.bar)
    assembly_stage_adjoint(z, z.bar)
    found = {name: np.array(getattr(z.state_bar, name)) for name in INPUTS}
    for name in ("q", "qd"):
        found[name] += case.bars[name][0, 0]
    return found | {name: np.array(getattr(z.params_bar, name.replace(".", "_"))) for name in PARAMS}


@pytest.fixture(scope="module")
def expected():
    """Per integrator: a case of one step and what differences say of it."""
    found = {}
    for integrator in ("semi_implicit", "implicit_damping", "rk4"):
        # a long step at high rates, so that terms of high order count
        case = made_case(EVERY_KIND, integrator, 1, True, batch=1, dt=0.05)
        case.inputs["qd"] *= 6.0
        for name in OUTPUTS:
            case.bars[name][1] = 0.0  # the step's reverse sees the outputs of the state it starts from
        found[integrator] = case, {name: case.differences(name)[0] for name in case.inputs if name not in ABSENT}
    return found


def wrong(expected: dict[str, np.ndarray], found: dict[str, np.ndarray]) -> list[str]:
    return [name for name in expected if not worst_error(found[name].ravel(), expected[name]) < TOLERANCE]


def larger(x):
    """A tenth too large."""
    return tuple(map(larger, x)) if isinstance(x, tuple) else 1.1 * x


def mutated(operator, part: int, counts: set[int]):
    """The operator with one of its results slightly wrong; of `accumulate`, what it adds. Notes how many it has."""

    def wrong(*args):
        if operator.__name__ == "accumulate":
            counts.add(1)
            return operator(*args[:2], larger(args[2]))
        result = operator(*args)
        counts.add(len(result) if isinstance(result, tuple) else 1)
        return (
            (*result[:part], larger(result[part]), *result[part + 1 :]) if isinstance(result, tuple) else larger(result)
        )

    return wrong


@pytest.mark.parametrize("integrator", ["semi_implicit", "implicit_damping", "rk4"])
def test_plain_reverse(expected, integrator):
    """Without the compiler the same reverse, and the comparison that the mutations below must fail."""
    case, differences = expected[integrator]
    assert wrong(differences, plain_gradient(case)) == []


@pytest.mark.parametrize(("place", "name", "integrator"), mutations())
def test_mutation_is_seen(expected, monkeypatch, place, name, integrator):
    """An error of a tenth in any result of any operator of the reverse does not go unnoticed."""
    case, differences = expected[integrator]
    module = importlib.import_module(f"jointgrad.engine.kernels.{place}")
    operator, part, counts = getattr(module, name), 0, {1}
    while part < max(counts):
        monkeypatch.setattr(module, name, mutated(operator, part, counts))
        assert wrong(differences, plain_gradient(case)) != [], f"result {part} of {name}"
        part += 1
