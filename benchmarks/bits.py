"""Whether two commits compute the same bits: digests of everything the engine returns, over robots, laws, integrators, networks.

    python benchmarks/bits.py --write FILE.json          (at one commit)
    python benchmarks/bits.py --against FILE.json        (at the other; exits 1 where an array differs, and names it)

Arrays are trajectories, gradients, tangents, linearizations, certificates and inspections. Only public names are used, so that the
script of one commit runs on the package of another (set PYTHONPATH).
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import jointgrad as jg
from jointgrad.engine.looks.certificate import FIGURES

ROBOTS = {
    "laikago": jg.zoo.laikago, "a1": jg.zoo.a1, "ant": jg.zoo.ant, "humanoid": jg.zoo.humanoid, "go2": jg.zoo.go2,
    "cart pole": jg.zoo.cart_pole, "double pendulum": jg.zoo.double_pendulum, "franka": jg.zoo.franka_arm,
    "racecar": jg.zoo.racecar, "golf": jg.zoo.golf, "swimmer": jg.zoo.swimmer, "tree": lambda: jg.zoo.random_tree(6, seed=4),
}  # fmt: skip
LAWS = {
    "cone": lambda: jg.Impulse(sweeps=10),
    "pyramid": lambda: jg.Impulse(sweeps=10, cone=False),
    "sums": lambda: jg.Impulse(sweeps=10, form="sums"),
    "spring": lambda: jg.Spring(stiffness=3e3, damping=2e3),
    "none": lambda: None,
}
INTEGRATORS = ("semi_implicit", "explicit", "rk4", "implicit_damping")
# networks: target, what they see, and with which laws
GRAFTS = {
    "force": ("joint.force", ["joint.position", "joint.velocity"], LAWS),
    "damping": ("joint.damping", ["joint.velocity"], LAWS),
    "mass": ("link.mass", ["link.velocity"], ("cone", "none")),
    "friction": ("pair.friction", ["joint.velocity"], ("cone", "pyramid", "spring")),
    "depth": ("contact.depth", ["contact.velocity"], ("cone", "spring")),
    "acceleration": ("joint.acceleration", ["joint.velocity"], ("cone", "none")),
}
GRAFTED = ("laikago", "ant", "cart pole", "double pendulum")
TOUCHING = ("laikago", "ant")
BATCH, STEPS = 5, 8


def models() -> Iterator[tuple[str, jg.Model]]:
    for robot, law in itertools.product(ROBOTS, LAWS):
        for integrator in INTEGRATORS if robot in GRAFTED else INTEGRATORS[:1]:
            if integrator == "rk4" and (law not in ("spring", "none") or robot == "ant"):
                continue  # impulses, and the limits of the ant, belong to a whole step
            model = compiled(robot, law, integrator)
            yield f"{robot}, {law}, {integrator}", model
            for graft, (target, sees, laws) in GRAFTS.items():
                is_there = robot in (TOUCHING if target.startswith(("pair", "contact")) else GRAFTED)
                if is_there and law in laws and integrator == INTEGRATORS[0]:
                    network = jg.MLP((4,), "tanh", scale=0.1)
                    yield f"{robot}, {law}, {integrator}, {graft}", jg.graft(model, target, sees, network)


def compiled(robot: str, law: str, integrator: str) -> jg.Model:
    world = jg.World()
    world.add(ROBOTS[robot]())
    if law != "none":
        world.add_ground(height=-0.02, friction=0.7)
    return world.compile(dt=2e-3, contact=LAWS[law](), integrator=integrator)


def start_of(model: jg.Model) -> tuple[jg.State, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    state = model.initial_state(batch=BATCH)
    q = state.q + 0.02 * rng.normal(size=state.q.shape)
    force = rng.normal(size=(STEPS, BATCH, model.n_links, 6))
    return jg.State(q, 0.5 * rng.normal(size=state.qd.shape)), rng.normal(size=(STEPS, BATCH, model.nu)), force


def arrays_of(model: jg.Model) -> Iterator[tuple[str, np.ndarray]]:
    state, u, force = start_of(model)
    motion = jg.rollout(model, state, u, force=force, outputs=("link.position", "link.velocity", "contact.force"))
    yield from (("q", motion.q), ("qd", motion.qd), *motion.outputs.items())
    rng = np.random.default_rng(8)
    q_bar, qd_bar = rng.normal(size=motion.q.shape), rng.normal(size=motion.qd.shape)
    bars = {"link.position": rng.normal(size=motion.outputs["link.position"].shape)}
    yield from gradient_arrays("backward", motion.backward(q_bar, qd_bar, bars))
    budget = jg.rollout(model, state, u, memory=4 * 8 * BATCH * (model.nq + model.nv))
    yield from gradient_arrays("budget", budget.backward(q_bar[-1], qd_bar[-1]))
    masses = model.params["link.mass"] * (1.0 + 0.1 * rng.random((BATCH, *model.params["link.mass"].shape)))
    own = jg.rollout(model.replace({"link.mass": masses}), state, u)
    yield from gradient_arrays("own masses", own.backward(q_bar[-1], qd_bar[-1]))
    yield from zip(("tangent q", "tangent qd"), motion.tangent(u=rng.normal(size=u.shape)), strict=True)
    yield from zip("AB", jg.linearize(model, state, u[0]), strict=True)
    certificate = motion.certificate()
    yield from (
        (f"certificate {name}", getattr(certificate, name)) for name in (*FIGURES, "condition", "mismatch", "reach")
    )
    yield from inspection_arrays(jg.inspect(model, state, u[0]))


def gradient_arrays(what: str, gradient: jg.Gradient) -> Iterator[tuple[str, np.ndarray]]:
    yield from ((f"{what} {name}", getattr(gradient, name)) for name in ("q", "qd", "u", "force"))
    yield from ((f"{what} {name}", value) for name, value in gradient.params.items())


def inspection_arrays(found) -> Iterator[tuple[str, np.ndarray]]:
    for name in (
        "link_position", "link_rotation", "link_velocity", "qdd", "joint_force", "mass_matrix", "bias", "momentum",
        "centre_of_mass", "kinetic_energy", "potential_energy",
    ):  # fmt: skip
        value = getattr(found, name)
        yield f"inspect {name}", np.concatenate([x.ravel() for x in value]) if isinstance(value, tuple) else value
    table = found.contact_table(0)
    yield from ((f"contact {name}", getattr(table, name)) for name in ("point", "normal", "gap", "force", "torque"))


def digests() -> dict[str, str]:
    found = {}
    for name, model in models():
        for what, array in arrays_of(model):
            if isinstance(array, np.ndarray):
                found[f"{name}: {what}"] = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]
        print(f"\r{len(found)} arrays; {name}".ljust(100), end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path)
    parser.add_argument("--against", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found = digests()
    if options.write:
        options.write.write_text(json.dumps(found, indent=1))
    known = json.loads(options.against.read_text()) if options.against else found
    shared = found.keys() & known.keys()
    others = sorted(name for name in shared if found[name] != known[name])
    alone = f"{len(found) - len(shared)} only here, {len(known) - len(shared)} only there"
    print(f"{len(shared)} arrays compared, {len(others)} differ; {alone}")
    print(*others[:50], sep="\n")
    return 1 if others else 0


if __name__ == "__main__":
    sys.exit(main())
