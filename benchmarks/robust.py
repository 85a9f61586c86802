"""Robots from files dropped on the ground with random controls: do numbers stay finite, and does energy come only from controls?

    python benchmarks/robust.py [--models 200] [--seconds 10] [--seed 0] [--restitution 0] [--folder ../shared/models]
        [--out /tmp/robust]

Takes every robot of the zoo, then URDF and MJCF files of the collection in an order drawn by the seed, as long as they have at
least one shape that can touch (sphere, capsule, box; a plane alone does not count). What else a file holds (cylinders, meshes) is
counted and left out. A URDF robot is given a free base; every robot with a free base starts 0.1 m above the ground, and each
runs at its own time step. Controls are drawn anew every 0.1 s from the actuators' own ranges, up to 300 rad/s^2.

Energy: kinetic and that of gravity, after each step, against the start and the work of all joint forces (actuators, springs,
dampers: force times mean rate). What exceeds both is energy from nowhere; `excess` is its largest value. It may reach
TOLERANCE of what went through the robot until then: energy that was ever kinetic, work with either sign, and the weight times 1 cm.
The reason for a tolerance: a step of first order errs by a share dt of the rate at which energy changes form, and
stabilisation lifts what has sunk in. Where the tolerance is not met, the motion is run again with half the step: an excess that
then falls below two thirds is the step's own first-order error (verdict `coarse`), not energy that contact makes. A world that
starts with a loop that is open, or with shapes in each other, is put right at up to 2 m/s or rad/s (the law's limit): each such row
may give the mass that it feels (1 / A_rr) that speed, and lift it by the depth that it lies inside something.
"""

from __future__ import annotations

import argparse
import collections
import csv
import json
import random
import time
import traceback
import warnings
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

import jointgrad as jg
from jointgrad.engine.kernels.stages.contact.paths import BOUNDED, POINT
from jointgrad.model.arrays import BOX, JOINT_CONSTRAINT, MIMIC_ROW, PLANE, TORQUE
from jointgrad.model.rotations import rotation

ROOT = Path(__file__).resolve().parents[1]
TOLERANCE = 0.05
DROP = 0.1  # m
FAR = 100.0  # m
HOLD = 0.1  # s that a control is held
HARDEST = 300.0  # rad/s^2 or m/s^2
CHUNK = 1000  # steps that are looked at together
SOLID = ("sphere", "capsule", "box", "points")
# what cannot be the engine's fault: the file is refused for a reason that it names
REFUSALS = (jg.ModelError,)


@dataclass
class Outcome:
    """What became of one robot. verdict: fine, coarse, energy, not finite, refused, too full, crash."""

    name: str
    verdict: str = "fine"
    reason: str = ""
    nv: int = 0
    shapes: int = 0
    pairs: int = 0
    dt: float = 0.0
    steps: int = 0
    excess: float = 0.0  # share of what went through, largest over time
    fastest: float = 0.0
    left_out: list[str] = field(default_factory=list)
    overlaps: bool = False
    unsettled: list[str] = field(default_factory=list)
    stiff: bool = False
    pushed: bool = False
    seconds: float = 0.0


# worlds -----------------------------------------------------------------------------------------------------------------


def world_of(source: Path | str) -> jg.World:
    """A zoo robot or a file, with a ground under it."""
    if isinstance(source, str):
        world = jg.World().add(getattr(jg.zoo, source)(), base="free")
    elif source.suffix == ".xml":
        world = jg.load_world(source, missing_meshes="skip")
    else:
        world = jg.World()
        world.add(jg.load(source, missing_meshes="skip"), base="free")
    has_ground = any(
        s.kind == "plane" and s.role != "visual" for p in world.placed for k in p.robot.links.values() for s in k.shapes
    )
    if has_ground:
        return world
    # the ground is below what is fixed, which cannot be raised
    model = world.compile(unphysical="warn")
    heights = [h for number, h in lowest(model, inside(model)).items() if model.topology.tree["tree_root"][number] < 0]
    return world.add_ground(height=min([0.0, *(h - DROP for h in heights)]))


def has_solids(world: jg.World) -> bool:
    links = [k for p in world.placed for k in p.robot.links.values()]
    return any(s.kind in SOLID and s.role != "visual" for k in links for s in k.shapes)


def lowest(model: jg.Model, state: jg.State) -> dict[int, float]:
    """Height of the lowest point of each tree's shapes."""
    tree, q = model.topology.tree, state.q.copy()
    # far above the ground, where nothing touches yet
    for root in tree["tree_root"]:
        if root >= 0:
            q[tree["q"][root] + 2] += FAR
    info = jg.inspect(model, jg.State(q, state.qd))
    link_of_frame = {frame: j for j, frame in enumerate(tree["link_frame"])}
    found: dict[int, float] = {}
    for k in range(tree["n_shapes"]):
        kind, body, frame = (tree[f"shape_{what}"][k] for what in ("kind", "body", "frame"))
        if kind == PLANE or body == tree["n_bodies"] or frame not in link_of_frame:
            continue
        R, p = (x[link_of_frame[frame]] for x in (info.link_rotation, info.link_position))
        place, size = model.params["shape.placement"][k], model.params["shape.size"][k]
        axes = R @ rotation(place[3:])
        below = np.abs(axes[2]) @ size if kind == BOX else size[0] + abs(axes[2, 2]) * size[1]
        height = (p + R @ place[:3])[2] - below - (FAR if tree["tree_root"][tree["body_tree"][body]] >= 0 else 0.0)
        found[tree["body_tree"][body]] = min(found.get(tree["body_tree"][body], np.inf), height)
    return found


def inside(model: jg.Model) -> jg.State:
    """The initial state with every joint within its limits: many a URDF starts, with zeros, outside them."""
    state, tree = model.initial_state(), model.topology.tree
    q = state.q.copy()
    for at, n_dof, frame in zip(tree["q"], tree["n_dof"], tree["frame"], strict=True):
        if n_dof == 1:
            q[at] = np.clip(q[at], *model.params["joint.limit"][frame])
    for kind, frame, at, leader in zip(*(tree[f"constraint_{w}"] for w in ("row", "frame", "q", "q2")), strict=True):
        if kind == MIMIC_ROW:
            ratio, offset = model.params["joint.mimic"][frame]
            q[at] = ratio * q[leader] + offset
    return jg.State(q, state.qd)


def raised(model: jg.Model) -> jg.State:
    """The same with all free robots moved up together, the lowest to DROP above the ground, unless loops tie them."""
    state, tree = inside(model), model.topology.tree
    if any(kind != JOINT_CONSTRAINT for kind in tree["constraint_kind"]):
        return model.initial_state()
    q, heights = state.q.copy(), lowest(model, state)
    free = [number for number, root in enumerate(tree["tree_root"]) if root >= 0 and number in heights]
    # never down, where something fixed may be
    rise = max(0.0, DROP - min((heights[number] for number in free), default=DROP))
    for number in free:
        q[tree["q"][tree["tree_root"][number]] + 2] += rise
    return jg.State(q, state.qd)


def pushed_energy(model: jg.Model, state: jg.State) -> float:
    """What it may take to part points that start inside something, and to close loops, which may be open."""
    problem, gravity = jg.inspect(model, state)._problem(0)[0], float(np.linalg.norm(model.params["world.gravity"]))
    constraint_kind, push = model.topology.tree["constraint_kind"], 0.5 * jg.Impulse.max_push_out_speed**2
    found = 0.0
    for kind, source, mass in zip(problem.kind, problem.source, problem.D[:, :, 0], strict=True):
        if kind == POINT:
            depth = -min(0.0, float(problem.gap[source, 0]))
            found += mass[0] * (push + gravity * depth) if depth > 0 else 0.0
        elif kind == BOUNDED and constraint_kind[source] != JOINT_CONSTRAINT:
            found += mass.sum() * push
    return float(found)


def controls(model: jg.Model, state: jg.State, steps: int, rng: np.random.Generator) -> np.ndarray | None:
    """Held for HOLD each, from the range of each actuator (+-1 where a servo has none), but no motor pushes harder than
    gives its joint the acceleration HARDEST: a URDF has no rotors, and full effort on a bare finger is 1e7 rad/s^2."""
    if not model.nu:
        return None
    tree = model.topology.tree
    low, high = model.params["actuator.control_limit"].T.copy()
    felt = 1.0 / np.diag(np.linalg.inv(jg.inspect(model, state).mass_matrix))[tree["actuator_dof"]]
    gain = np.maximum(np.abs(model.params["actuator.gain"] * model.params["actuator.gear"]), 1e-9)
    most = np.where(np.array(tree["actuator_kind"]) == TORQUE, HARDEST * felt / gain, np.inf)
    low, high = (np.where(np.isfinite(x), x, sign) for x, sign in ((low, -1.0), (high, 1.0)))
    low, high = np.clip(low, -most, most), np.clip(high, -most, most)
    held = max(1, round(HOLD / float(model.params["world.dt"])))
    drawn = rng.uniform(low, high, (-(-steps // held), model.nu))
    return np.repeat(drawn, held, axis=0)[:steps]


# energy -----------------------------------------------------------------------------------------------------------------


class Account:
    """Energy that came from nowhere, followed over chunks of a motion."""

    def __init__(self, model: jg.Model, start: jg.State) -> None:
        self.model = model
        self.start: float | None = None
        self.work = self.through = self.worst = self.most_kinetic = 0.0
        self.worst_step, self.steps = 0, 0
        self.scale = 0.01 * 9.81 * float(model.params["link.mass"].sum())
        self.allowance = pushed_energy(model, start)

    def add(self, q: np.ndarray, qd: np.ndarray, u: np.ndarray | None) -> None:
        """States (T+1, n), the first of them the last of the chunk before; controls (T, nu)."""
        held = None if u is None else np.concatenate([u, u[-1:]])
        info = jg.inspect(self.model, jg.State(q, qd), held)
        kinetic, energy = info.kinetic_energy, info.kinetic_energy + info.potential_energy - info._spring_energy()
        power = np.einsum("tn,tn->t", info.joint_force[:-1], (qd[1:] + qd[:-1]) / 2)
        change = power * float(self.model.params["world.dt"])
        if self.start is None:
            self.start = float(energy[0])
        work = self.work + np.cumsum(change)
        through = self.through + np.cumsum(np.abs(change))
        most = np.maximum(np.maximum.accumulate(kinetic[1:]), self.most_kinetic)
        excess = (energy[1:] - self.start - work - self.allowance) / (through + most + self.scale)
        k = int(np.argmax(excess))
        if excess[k] > self.worst:
            self.worst, self.worst_step = float(excess[k]), self.steps + k + 1
        self.work, self.through, self.most_kinetic = float(work[-1]), float(through[-1]), float(most[-1])
        self.steps += len(change)


# one robot --------------------------------------------------------------------------------------------------------------


def dropped(source: Path | str, seconds: float, seed: int, restitution: float = 0.0) -> Outcome:
    name = source if isinstance(source, str) else "/".join(source.parts[-3:])
    out, began = Outcome(name), time.process_time()
    try:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            world = world_of(source)
            if not has_solids(world):
                return Outcome(name, "no shapes", "has no sphere, capsule or box")
            model = world.compile(unphysical="warn")
            out.stiff = any(issubclass(w.category, jg.UnstableWarning) for w in heard)
            if out.stiff:  # as the warning advises
                model = world.compile(unphysical="warn", integrator="implicit_damping")
        said = [str(w.message) for w in heard if issubclass(w.category, jg.UnsupportedWarning)]
        out.left_out = sorted({k.split(":")[0].strip() for s in said if "do not touch" in s and "yet: " in s
                               for k in s.split("yet: ")[1].split("; ")})  # fmt: skip
        out.overlaps = any("overlap where" in s for s in said)
        if restitution:
            model = model.replace({"pair.restitution": np.full(len(model.pair_names), restitution)})
        _run(model, out, seconds, seed)
    except REFUSALS as error:
        out.verdict, out.reason = "refused", str(error)
    except jg.SimulationError as error:
        out.verdict, out.reason = "not finite" if "finite" in str(error) else "too full", str(error)
    except Exception as error:  # to find these is the point of the run
        out.verdict, out.reason = (
            "crash",
            f"{type(error).__name__}: {error} at {traceback.format_exc().splitlines()[-3]}",
        )
    out.seconds = time.process_time() - began
    return out


def _run(model: jg.Model, out: Outcome, seconds: float, seed: int) -> None:
    tree, dt = model.topology.tree, float(model.params["world.dt"])
    out.nv, out.shapes, out.pairs, out.dt = model.nv, tree["n_shapes"], tree["n_pairs"], dt
    if not tree["n_pairs"]:
        out.verdict, out.reason = "no shapes", "no two shapes may touch"
        return
    state, steps = raised(model), round(seconds / dt)
    u = controls(model, state, steps, np.random.default_rng(seed))
    account = followed(model, state, u, steps, out)
    out.pushed, out.excess = account.allowance > 0, account.worst
    if account.worst > TOLERANCE:
        out.verdict = "energy"
        out.reason = f"{100 * account.worst:.1f} % of what went through came from nowhere by step {account.worst_step}"
        finer = model.replace({"world.dt": dt / 2})
        again = followed(finer, state, None if u is None else np.repeat(u, 2, axis=0), 2 * steps, Outcome(out.name))
        if again.worst < 2 / 3 * account.worst:
            out.verdict, out.reason = "coarse", f"{out.reason}; {100 * again.worst:.1f} % with half the step"


def followed(model: jg.Model, state: jg.State, u: np.ndarray | None, steps: int, out: Outcome) -> Account:
    account = Account(model, state)
    for first in range(0, steps, CHUNK):
        held = None if u is None else u[first : first + CHUNK]
        length = min(CHUNK, steps - first)
        try:
            with warnings.catch_warnings(record=True) as heard:
                warnings.simplefilter("always")
                motion = jg.rollout(model, state, held, steps=length)
            out.unsettled += [str(w.message) for w in heard if issubclass(w.category, jg.UnsettledWarning)]
        except jg.SimulationError as error:
            error.add_note(f"in the chunk from step {first}")
            out.steps = first
            raise
        account.add(motion.q, motion.qd, held)
        state, out.steps = motion.last, first + length
        out.fastest = max(out.fastest, float(np.abs(motion.qd).max(initial=0.0)))
    return account


# all robots -------------------------------------------------------------------------------------------------------------


def sources(folder: Path, seed: int) -> list[Path | str]:
    found: list[Path | str] = [n for n in jg.zoo.__all__ if n != "random_tree"]
    manifest = folder / "manifest.csv"
    if manifest.is_file():
        with manifest.open() as file:
            rows = [r for r in csv.DictReader(file) if r["ref_ok"] == "1" and not r["dup_of"]]
        files = [folder / r["file"] for r in rows]
        random.Random(seed).shuffle(files)
        found += files
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--restitution", type=float, default=0.0, help="of every pair of impulses")
    parser.add_argument("--folder", type=Path, default=ROOT.parent / "shared" / "models")
    parser.add_argument("--out", type=Path, default=Path("/tmp/robust"))
    parser.add_argument("--skip", type=int, default=0, help="begin at this place of the list")
    parser.add_argument("--only", default="", help="files whose name holds this")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    outcomes: list[Outcome] = []
    passed_over: collections.Counter = collections.Counter()
    for source in sources(options.folder, options.seed)[options.skip :]:
        if options.only and options.only not in str(source):
            continue
        out = dropped(source, options.seconds, options.seed, options.restitution)
        if out.verdict in ("no shapes", "refused"):
            passed_over[f"{out.verdict}: {out.reason[:90]}" if out.verdict == "refused" else out.verdict] += 1
            continue
        outcomes.append(out)
        print(
            f"{len(outcomes):3d} {out.verdict:10s} nv {out.nv:3d} pairs {out.pairs:5d} dt {out.dt:<7g} excess {out.excess:7.4f} "
            f"fastest {out.fastest:8.1f} {out.seconds:6.1f} s {out.name} {out.reason[:200]}",
            flush=True,
        )
        (options.out / "robust.json").write_text(json.dumps([asdict(o) for o in outcomes], indent=1))
        if len(outcomes) >= options.models:
            break
    report(outcomes, passed_over)
    print(
        f"python benchmarks/robust.py --models {options.models} --seconds {options.seconds:g} --seed {options.seed} "
        f"--restitution {options.restitution:g}"
    )
    print(f"results in {options.out}")


def report(outcomes: list[Outcome], passed_over: collections.Counter) -> None:
    print("\n| outcome | robots |\n|---|---|")
    for verdict, count in collections.Counter(o.verdict for o in outcomes).most_common():
        print(f"| {verdict} | {count} |")
    kinds = collections.Counter(k for o in outcomes for k in o.left_out)
    unsettled = [o for o in outcomes if o.unsettled]
    print(f"\nsweeps did not settle for {len(unsettled)}: {', '.join(o.name for o in unsettled[:8])}")
    print(f"\nshapes left out, by kind and number of robots: {dict(kinds)}")
    print(f"robots with pairs that overlap at the start: {sum(o.overlaps for o in outcomes)}")
    print(
        f"robots whose damping is too stiff for their step, run with implicit damping: {sum(o.stiff for o in outcomes)}"
    )
    print(
        f"worlds that start with loops or in contact, and are put right at up to 2 m/s: {sum(o.pushed for o in outcomes)}"
    )
    print(f"not run: {dict(passed_over.most_common(12))}")
    for o in outcomes:
        if o.verdict != "fine":
            print(f"- {o.name}: {o.verdict} after {o.steps} steps of {o.dt:g} s: {o.reason}")


if __name__ == "__main__":
    main()
