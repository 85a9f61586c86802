"""Random worlds for `jointgrad bench gradfuzz`: robots, piles and files under random laws, with parameters at and near zero."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import jointgrad as jg

from ..engine.looks.gradcheck import lowest_point
from ..model.arrays import BOX, FREE, FRICTION_ROW, NOT_NEGATIVE, PARAMS, PLANE

BATCH = 4  # environments of a world, each with its own state and its own parameters
LARGEST = 60  # links; larger robots cost more than they show
FRICTION_LAWS = ("coulomb", "andersson", "hollars", "brown")
SHAPES = (("sphere", (0.12,)), ("capsule", (0.07, 0.12)), ("box", (0.14, 0.11, 0.09)), ("points", (0.0,)))
ZOO = ("a1", "ant", "cart_pole", "double_pendulum", "franka_arm", "golf", "humanoid", "laikago", "pendulum", "swimmer")
# what may vanish without anything becoming singular
MAY_VANISH = tuple(
    name
    for name in (*NOT_NEGATIVE, "pair.damping", "pair.static_friction", "joint.stiffness", "actuator.gain", "actuator.damping",
                 "actuator.bias", "actuator.gear", "tendon.stiffness", "tendon.coefficient", "world.gravity", "world.density",
                 "world.viscosity", "world.baumgarte", "world.softness")
    if name not in ("link.mass", "shape.size", "joint.armature", "pair.baumgarte")
)  # fmt: skip


@dataclass(frozen=True)
class Subject:
    """A world to test: everything its motion depends on, environments first, and whether it was built at a kink."""

    name: str
    model: jg.Model
    inputs: dict[str, np.ndarray]
    steps: int
    is_at_kink: bool = False

    @property
    def own(self) -> tuple[str, ...]:
        """Parameters that differ between environments."""
        return tuple(n for n in PARAMS if self.inputs[n].size and (self.inputs[n] != self.model.params[n]).any())


Build = Callable[[np.random.Generator], tuple[str, jg.Model]]


def subject(seed: int, number: int, files: Sequence[Path]) -> Subject:
    """World `number` of a run: the same for the same seed, whatever was tested before it."""
    rng = np.random.default_rng([seed, number])
    builds: list[Build] = [of_zoo, of_tree, of_tree, of_pile, of_pile, at_kink]
    if files:
        builds += [lambda rng: of_file(rng, files)] * 3
    build = builds[int(rng.integers(len(builds)))]
    name, model = built(build, rng)
    found = (still if build is at_kink else moving)(name, model, rng)
    if build not in (of_zoo, of_tree, of_pile, at_kink) and has_one_in_another(found):
        raise ValueError("a shape of a file is in the middle of another")
    return found


def built(build: Build, rng: np.random.Generator) -> tuple[str, jg.Model]:
    """Chance may ask for what cannot be, such as a tendon over no joint: then it is asked again."""
    for _ in range(20):
        try:
            return build(rng)
        except jg.ModelError:
            continue
    raise ValueError("no world came of twenty attempts")


# worlds -------------------------------------------------------------------------------------------------------------------


def some_law(rng: np.random.Generator) -> Any:
    if rng.random() < 0.3:
        law = str(rng.choice(FRICTION_LAWS))
        return jg.Spring(float(10 ** rng.uniform(2, 4)), float(10 ** rng.uniform(1, 3)), 1.5, law, 0.7, 0.3)
    sweeps = int(rng.choice((1, 3, 10, 50)))
    return jg.Impulse(sweeps, bool(rng.integers(2)), form=str(rng.choice(("matrix", "sums"))))


def compiled(world: jg.World, rng: np.random.Generator) -> jg.Model:
    """Under a random law, by a random integrator that goes with it."""
    law, dt = some_law(rng), float(rng.choice((1e-3, 2e-3, 5e-3)))
    kinds = ["semi_implicit", "explicit", "implicit_damping"] + ["rk4"] * isinstance(law, jg.Spring)
    order = list(rng.permutation(kinds)) + ["semi_implicit"]
    for integrator in order:
        try:
            return world.compile(dt=dt, contact=law, integrator=str(integrator), unphysical="warn")
        except jg.ModelError:  # limits and dry friction are impulses, which not every integrator takes
            if integrator == order[-1]:
                raise
    raise AssertionError("unreachable")


def of_zoo(rng: np.random.Generator) -> tuple[str, jg.Model]:
    name = str(rng.choice(ZOO))
    world = jg.World().add(getattr(jg.zoo, name)())
    if rng.random() < 0.8:
        world.add_ground()
        pair_up(world, rng)
    return f"zoo.{name}", compiled(world, rng)


def pair_up(world: jg.World, rng: np.random.Generator) -> None:
    """Random coefficients against the ground: slippery or rough, with and without torsion, rolling and a bounce."""
    options: dict[str, float] = {"friction": float(rng.choice((0.0, 0.3, 1.0)))}
    if rng.random() < 0.4:
        options |= {"torsion": float(rng.choice((0.0, 0.02))), "rolling": float(rng.choice((0.01, 0.03)))}
    if rng.random() < 0.2:
        options |= {"restitution": 0.4}
    if any(link.shapes for placed in world.placed for link in placed.robot.links.values() if link.name != "ground"):
        world.pair("*", "ground", **options)


def some_shape(rng: np.random.Generator, name: str) -> jg.Shape:
    kind, size = SHAPES[int(rng.integers(len(SHAPES)))]
    turn = rng.normal(size=4)
    points = [tuple(p) for p in 0.1 * rng.normal(size=(5, 3))] if kind == "points" else ()
    place = tuple(0.03 * rng.normal(size=3)), tuple(turn / np.linalg.norm(turn))
    return jg.Shape(kind, size, *place, name=name, points=points)


def of_tree(rng: np.random.Generator) -> tuple[str, jg.Model]:
    """A random tree with shapes, limits, dry friction, tendons, servos and drag."""
    base, links = str(rng.choice(("free", "fixed"))), int(rng.integers(2, 8))
    has_drag, has_tendons, trees = bool(rng.integers(2)), bool(rng.integers(2)), int(rng.integers(1, 3))
    robot = jg.zoo.random_tree(
        links, seed=int(rng.integers(10**6)), base=base, drag=has_drag, tendons=has_tendons, trees=trees
    )
    for k, link in enumerate(robot.links.values()):
        if rng.random() < 0.7:
            link.shapes.append(some_shape(rng, f"shape{k}"))
    for joint in robot.joints.values():
        if joint.kind in ("revolute", "prismatic") and rng.random() < 0.5:
            joint.limit = (-0.3, 0.4)
        if joint.kind in ("revolute", "continuous", "prismatic") and rng.random() < 0.5:
            joint.friction = 0.3
    for k, joint in enumerate([j for j in robot.joints.values() if j.kind in ("revolute", "continuous", "prismatic")]):
        kind = str(rng.choice(("torque", "position", "velocity", "damper")))
        limits: dict[str, Any] = {"control_limit": (-0.8, 0.9), "force_limit": (-2.0, 2.5)} if rng.integers(2) else {}
        robot.add_actuator(
            f"more{k}", joint.name, kind, gain=1.5, damping=0.1, gear=0.8, bias=(0.1, 0.2, -0.1), **limits
        )
    density, viscosity = (300.0, 0.4) if rng.integers(2) else (0.0, 0.0)
    world = jg.World(density=density, viscosity=viscosity).add(robot).add_ground(height=float(rng.uniform(-0.5, 0.3)))
    pair_up(world, rng)
    return f"tree of {links} links, {base}", compiled(world, rng)


def of_pile(rng: np.random.Generator) -> tuple[str, jg.Model]:
    """Free bodies of every shape, close enough to touch each other and the ground."""
    world, count = jg.World(), int(rng.integers(1, 5))
    for k in range(count):
        body = jg.Description(f"body{k}", base="free")
        mass = float(10 ** rng.uniform(-1, 1))
        inertia = tuple(mass * x for x in (0.012, 0.001, 0.0, 0.015, 0.002, 0.01))
        body.add_link(f"link{k}", mass, tuple(0.02 * rng.normal(size=3)), inertia).shapes.append(
            some_shape(rng, f"shape{k}")
        )
        world.add(body, position=(*(0.05 * rng.normal(size=2)), 0.1 + 0.2 * k))
    world.add_ground()
    pair_up(world, rng)
    return f"pile of {count}", compiled(world, rng)


def robot_files(folder: Path) -> list[Path]:
    return sorted(f for f in folder.rglob("*") if f.suffix in (".urdf", ".xml", ".mjcf") and f.stat().st_size < 300_000)


def of_file(rng: np.random.Generator, files: Sequence[Path]) -> tuple[str, jg.Model]:
    """One of the files, on a ground of its own; those that cannot be read or are large are passed over."""
    for _ in range(50):
        file = files[int(rng.integers(len(files)))]
        try:
            if file.suffix == ".urdf":
                robot = jg.load(file, missing_meshes="skip")
                world = jg.World().add(robot, base=str(rng.choice(("free", "fixed"))))
            else:
                world = jg.load_world(file, missing_meshes="skip")
            if not 0 < sum(len(p.robot.links) for p in world.placed) <= LARGEST:
                continue
            shapes = [s for p in world.placed for link in p.robot.links.values() for s in link.shapes]
            if rng.random() < 0.5 and not any(s.kind == "plane" for s in shapes):  # two planes in one are a kink
                world.add_ground()
                pair_up(world, rng)
            model = compiled(world, rng)
        except (ValueError, OSError):
            continue
        if model.nv:
            return file.name, model
    raise ValueError("none of fifty files could be used")


def has_one_in_another(world: Subject) -> bool:
    """Whether a shape starts so deep in another that its middle is inside, as beads on a rod: which way it is pushed out is then
    a choice, in symmetrical robots between equals, that no signature tells."""
    model, least = world.model, {}
    for name, kind, size in zip(
        model.shape_names, model.topology.tree["shape_kind"], model.params["shape.size"], strict=True
    ):
        if kind != PLANE:
            least[name] = size[:3].min() if kind == BOX else size[0]
    states = (jg.State(world.inputs["q"][env], world.inputs["qd"][env]) for env in range(BATCH))
    contacts = [c for state in states for c in jg.inspect(model, state).contacts]
    return any(all(s in least for s in c.shapes) and c.gap < -0.99 * min(least[s] for s in c.shapes) for c in contacts)


KINKS = ("stop", "motor", "force", "tendon", "touch", "slip", "turn", "dry")


def at_kink(rng: np.random.Generator) -> tuple[str, jg.Model]:
    """A ball with an upright arm that rests with one thing exactly on an edge: the arm at its stop, its motor at a bound of
    control or force, a tendon at its rest; or nothing that presses the ball, no friction, or none in the joint. (Where two
    clamps may change at once no gradient can be the slope of a side: slopes do not add up there.)"""
    kind = str(rng.choice(KINKS))
    body = jg.Description("ball", base="free")
    body.add_link("ball", 1.0, (0, 0, 0), (0.01, 0, 0, 0.01, 0, 0.01)).shapes.append(jg.Shape("sphere", (0.1,)))
    body.add_link("arm", 0.3, (0, 0, 0.1), (0.002, 0, 0, 0.002, 0, 0.001))
    ties: Any = {"stop": {"limit": (0.0, 1.0)}, "dry": {"friction": 0.2}}.get(kind, {})
    body.add_joint("hinge", "revolute", "ball", "arm", axis=(0, 1, 0), damping=0.1, **ties)
    bounds: Any = {"motor": {"control_limit": (0.0, 1.0)}, "force": {"force_limit": (0.0, 1.0)}}.get(kind, {})
    body.add_actuator("motor", "hinge", **bounds)
    if kind == "tendon":
        body.add_tendon("cord", [("hinge", 0.5)], stiffness=2.0, rest=(-1.0, 0.0))
    gravity = 0.0 if kind == "touch" else -9.81
    world = jg.World(gravity=(0, 0, gravity)).add(body, position=(0, 0, 0.1)).add_ground()
    spin = {"torsion": 0.0, "rolling": 0.01} if kind == "turn" else {}
    world.pair("*", "ground", friction=0.0 if kind in ("touch", "slip") else 0.5, **spin)
    impulse = jg.Impulse(int(rng.choice((1, 10))), bool(rng.integers(2)), form=str(rng.choice(("matrix", "sums"))))
    model = world.compile(dt=2e-3, contact=impulse)
    if kind == "dry":
        model = model.replace({"joint.friction": np.zeros_like(model.params["joint.friction"])})
    return f"at a kink: {kind}", model


# states and parameters ----------------------------------------------------------------------------------------------------


def still(name: str, model: jg.Model, rng: np.random.Generator) -> Subject:
    """At rest, and in some environments sliding."""
    start, steps = model.initial_state(BATCH), 1
    if not name.endswith("touch"):
        start.qd[1, 0] = start.qd[2, 1] = 0.3
    found = inputs_of(model, start, np.zeros((BATCH, steps, model.nu)), np.zeros((BATCH, steps, model.n_links, 6)))
    return Subject(name, model, found, steps, is_at_kink=True)


def moving(name: str, model: jg.Model, rng: np.random.Generator) -> Subject:
    steps = int(rng.choice((1, 1, 2, 3, 5, 10, 20)))
    start = model.initial_state(BATCH)
    start.q[:] += rng.choice((0.02, 0.2)) * rng.normal(size=start.q.shape)
    start.qd[:] = rng.choice((0.01, 0.3, 1.0)) * rng.normal(size=start.qd.shape)
    for i in model.topology.quaternions:
        start.q[:, i : i + 4] /= np.linalg.norm(start.q[:, i : i + 4], axis=-1, keepdims=True)
    bring_down(model, start, rng)
    found = inputs_of(
        model, start, controls(model, steps, rng), 0.2 * rng.normal(size=(BATCH, steps, model.n_links, 6))
    )
    for env in range(BATCH):
        vanish(model, found, env, rng)
    return Subject(name, model, found, steps)


def inputs_of(model: jg.Model, start: jg.State, u: np.ndarray, force: np.ndarray) -> dict[str, np.ndarray]:
    params = {name: np.repeat(value[None], BATCH, 0) for name, value in model.params.items()}
    return {"q": start.q, "qd": start.qd, "u": u, "force": force, **params}


def bring_down(model: jg.Model, start: jg.State, rng: np.random.Generator) -> None:
    """What is free, as a whole, until its lowest point is a little above or below the ground."""
    free = [q for kind, q in zip(model.topology.tree["kind"], model.topology.tree["q"], strict=True) if kind == FREE]
    for env in range(BATCH):
        lowest = lowest_point(model, jg.State(start.q[env], start.qd[env])) if free else None
        if lowest is not None and rng.random() < 0.8:
            start.q[env, [q + 2 for q in free]] += rng.choice((-1e-2, -1e-3, -1e-4, 5e-4)) - lowest


def controls(model: jg.Model, steps: int, rng: np.random.Generator) -> np.ndarray:
    """Within the limits of each motor, or somewhat beyond."""
    low, high = np.clip(model.params["actuator.control_limit"], -1.0, 1.0).T
    return low + (high - low) * rng.uniform(-0.3, 1.3, size=(BATCH, steps, model.nu))


def vanish(model: jg.Model, inputs: dict[str, np.ndarray], env: int, rng: np.random.Generator) -> None:
    """Set some parameters of an environment, or some of their entries, to zero or almost."""
    with_row = model.topology.frames_with(FRICTION_ROW)
    for name in MAY_VANISH:
        value = inputs[name][env]
        if not value.size or rng.random() > 0.25:
            continue
        chosen = rng.random(value.shape) < rng.choice((0.5, 1.0))
        if name == "joint.friction":
            chosen &= np.isin(np.arange(len(value)), list(with_row))
        scale = 0.0 if rng.random() < 0.7 else 10 ** rng.uniform(-9, -3)
        inputs[name][env] = np.where(chosen, scale * value, value)
    if not inputs["pair.stiffness"][env].all():  # a spring with neither stiffness nor damping is on the edge of pulling
        inputs["pair.damping"][env] = model.params["pair.damping"]


def shorter(subject: Subject, steps: int) -> Subject:
    """The same world for its first steps alone."""
    cut = {name: subject.inputs[name][:, :steps] for name in ("u", "force")}
    return replace(subject, inputs=subject.inputs | cut, steps=steps)
