"""The reverse of steps with contact, limits, friction and loops against central differences.

A difference is compared wherever all its points have the clamp signature of the point itself; the share of others is
printed and must be small.
"""

from __future__ import annotations

import dis
import functools
import importlib
import sys
from types import CodeType

import numpy as np
import pytest
from oracles.differences import random_state, tangent_basis, worst_error
from oracles.signatures import gaps, signatures
from test_contact import four_bar
from test_gradients import Case, larger
from worlds import LAWS, cluster, tangled, thrown_together

import jointgrad as jg
from jointgrad.compiler.kernel import Sweep
from jointgrad.compiler.trace import Traced
from jointgrad.engine.kernels import operators
from jointgrad.engine.kernels.stages.assembly import assembly_stage_adjoint
from jointgrad.engine.kernels.step import step, step_adjoint
from jointgrad.engine.run import plain
from jointgrad.engine.run.outputs import OUTPUTS
from jointgrad.engine.run.runtime import worker
from jointgrad.model.arrays import NOT_NEGATIVE, PARAMS
from jointgrad.model.pair_table import PAIR_KINDS

TOLERANCE = 1e-6
# of entries whose signature is not the same on all points of the difference
MOST_SKIPPED = 0.1


# steps of differences, by the unit of what is moved; the shorter are for entries near a change of signature
STEPS = (3e-4, 3e-5, 3e-6, 3e-7)
UNITS = {"force": 10.0, "u": 10.0}


class ContactCase(Case):
    """Differences within one signature, of entries that may move both ways; every environment has its own parameters."""

    DIGITS = 4e-14  # what rounding leaves of a motion

    def movable(self, name: str) -> np.ndarray:
        """Entries that are not at the edge of what they may be, in no environment."""
        value = self.inputs[name].reshape(self.batch, -1)
        edge = ((value < 1e-9) if name in NOT_NEGATIVE else ~np.isfinite(value)).any(0)
        if name == "link.inertia":  # what has no mass has no inertia
            edge |= np.repeat(self.model.params["link.mass"] == 0, 6)
        return np.flatnonzero(~edge)

    def units(self, name: str, entries: np.ndarray) -> np.ndarray:
        """How far each entry may be moved, per environment: in proportion to what is physically small or large."""
        value = np.abs(self.inputs[name].reshape(self.batch, -1)[:, entries])
        if name in NOT_NEGATIVE or name == "world.dt":
            return value
        if name == "link.inertia":  # which must stay that of a body
            smallest = self.inputs[name][:, :, [0, 3, 5]].min(-1)
            return 10.0 * smallest[:, entries // 6]
        return np.full(value.shape, UNITS.get(name, 1.0))

    def parts(self, motion: jg.Trajectory) -> dict[str, np.ndarray]:
        return {"q": motion.q, "qd": motion.qd, **motion.outputs}

    def evaluate(self, inputs: dict[str, np.ndarray], envs: np.ndarray) -> tuple[np.ndarray, list]:
        """Loss of variants of the environments `envs`, less that of the environments themselves; their signatures."""
        motion = self.rollout(inputs, is_shared=False)
        losses = np.zeros(len(envs))
        for name, x in self.parts(motion).items():
            weighted = (x - self.own[name][:, envs]) * self.bars[name][:, envs]
            losses += np.moveaxis(weighted, 1, 0).reshape(len(envs), -1).sum(1)
        model = self.model._moved({name: inputs[name] for name in PARAMS})
        found = [
            signatures(model, motion.q[t], motion.qd[t], inputs["u"][:, t], inputs["force"][:, t])
            for t in range(self.steps)
        ]
        return losses, list(zip(*found, strict=True))

    @functools.cached_property
    def own(self) -> dict[str, np.ndarray]:
        return self.parts(self.rollout())

    @functools.cached_property
    def signatures(self) -> list:
        return self.evaluate(self.inputs, np.arange(self.batch))[1]

    @functools.cached_property
    def rounding(self) -> np.ndarray:
        """What the last digits of the motion amount to in the loss, per environment."""
        largest = [
            np.abs(np.moveaxis(self.bars[o] * x, 1, 0)).reshape(self.batch, -1).max(1) for o, x in self.own.items()
        ]
        return self.DIGITS * self.steps * sum(largest)

    def differences_at(self, places: list[tuple[str, int, int]], h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """d loss / d entry for places (name, environment, entry), by steps h; and whether the signature holds."""
        envs = np.tile([env for _, env, _ in places], 4)
        inputs = {name: value[envs].copy() for name, value in self.inputs.items()}
        n = len(places)
        for k, (name, _, entry) in enumerate(places):
            for j, side in enumerate((1, -1, 2, -2)):
                inputs[name].reshape(4 * n, -1)[j * n + k, entry] += side * h[k]
        losses, found = self.evaluate(inputs, envs)
        one, minus_one, two, minus_two = np.split(losses, 4)
        holds = np.array([s == self.signatures[env] for s, env in zip(found, envs, strict=True)]).reshape(4, n).all(0)
        return (8 * (one - minus_one) - (two - minus_two)) / (12 * h), holds

    def compare(self, gradient: dict[str, np.ndarray], most: int, seed: int = 0) -> tuple[dict, float]:
        """Where a cotangent is not what differences say, with both; and the share of entries that could not be compared.

        A relative error counts by the difference that agrees best; entries below a thousandth of the largest of their kind
        are measured against that.
        """
        rng, places, sizes, units, bars = np.random.default_rng(seed), [], [], [], []
        for name, bar in gradient.items():
            entries = self.movable(name)
            if len(entries) > most:
                entries = np.sort(rng.choice(entries, most, replace=False))
            bar = bar.reshape(self.batch, -1)
            for env, scales in enumerate(self.units(name, entries)):
                places += [(name, env, int(e)) for e in entries]
                bars += bar[env, entries].tolist()
                sizes += [1e-3 * np.abs(bar[env]).max(initial=0.1)] * len(entries)
                units += scales.tolist()
        bars, sizes, units, best = np.array(bars), np.array(sizes), np.array(units), np.full(len(places), np.nan)
        seen: dict[int, list] = {}
        for step_ in STEPS:
            left = np.flatnonzero(~(best < TOLERANCE))
            if not len(left):
                break
            h = step_ * units[left]
            slopes, holds = self.differences_at([places[k] for k in left], h)
            error = np.abs(bars[left] - slopes) - self.rounding[[places[k][1] for k in left]] / h
            error = np.maximum(error, 0.0) / np.maximum(np.abs(slopes), sizes[left])
            best[left] = np.fmin(best[left], np.where(holds, error, np.nan))
            for k, slope, ok in zip(left, slopes, holds, strict=True):
                seen.setdefault(k, []).append(float(slope) if ok else None)
        wrong = {places[k]: (bars[k], seen[k]) for k in np.flatnonzero(best >= TOLERANCE)}
        return wrong, float(np.isnan(best).mean())


def contact_case(model, q, qd, steps=1, seed=0, u=None, pushes=0.2) -> ContactCase:
    rng, batch = np.random.default_rng(seed), len(q)
    inputs = {"q": np.array(q), "qd": np.array(qd)}
    inputs["u"] = rng.normal(size=(batch, steps, model.nu)) if u is None else np.repeat(u[:, None], steps, 1)
    inputs["force"] = pushes * rng.normal(size=(batch, steps, model.n_links, 6))
    inputs |= {name: np.repeat(value[None], batch, 0) for name, value in model.params.items()}
    case = ContactCase(model, inputs, False, steps, batch)
    shapes = {"q": (model.nq,), "qd": (model.nv,)} | {o: (model.n_links, *s) for o, s in OUTPUTS.items()}
    case.bars = {o: rng.normal(size=(steps + 1, batch, *shape)) for o, shape in shapes.items()}
    return case


def check(case: ContactCase, most: int, most_skipped: float = MOST_SKIPPED) -> None:
    wrong, skipped = case.compare(case.backward(case.rollout()), most)
    print(f"skipped {100 * skipped:.1f} %")
    assert wrong == {}
    assert skipped <= most_skipped


# everything at once -------------------------------------------------------------------------------------------------------


@functools.cache
def tangle(base: str, cone: bool, sweeps: int = 6, form: str = "matrix") -> ContactCase:
    model = tangled(3 if base == "free" else 5, base, sweeps, cone, form=form).replace({"world.baumgarte": 0.02})
    rng = np.random.default_rng(1)
    state = random_state(model, rng, 4)
    return contact_case(model, state.q, state.qd)


@pytest.mark.parametrize("base", ["free", "fixed"])
@pytest.mark.parametrize("cone", [True, False], ids=["cone", "pyramid"])
@pytest.mark.parametrize("form", ["matrix", "sums"])
def test_tangle(base, cone, form):
    """Every kind of pair, law, tie and joint in one problem; lanes with other contact sets."""
    check(tangle(base, cone, form=form), most=3)


@pytest.mark.parametrize("which", ["free-cone", "fixed-pyramid", "laikago"])
def test_forms_agree(which):
    """The couplings written out, or running sums: the same motion and the same cotangents but for rounding."""
    if which == "laikago":
        states = [standing(contact=jg.Impulse(form=form)) for form in ("matrix", "sums")]
        cases = [contact_case(*state, 10) for state in states]
    else:
        base, _, kind = which.partition("-")
        cases = [tangle(base, kind == "cone", form=form) for form in ("matrix", "sums")]
    motions = [case.rollout() for case in cases]
    assert [case.model.topology.tree["solver"] for case in cases] == [0, 1]
    np.testing.assert_allclose(motions[0].qd, motions[1].qd, rtol=1e-9, atol=1e-10)
    one, other = (case.backward(motion) for case, motion in zip(cases, motions, strict=True))
    for name in one:
        np.testing.assert_allclose(
            one[name], other[name], atol=1e-9 * np.abs(one[name]).max(initial=1e-9), err_msg=name
        )


# pair by pair -------------------------------------------------------------------------------------------------------------

SIZES = {
    "plane": (), "sphere": (0.12,), "capsule": (0.08, 0.15), "box": (0.15, 0.12, 0.1), "points": (0.0,),
    "cylinder": (0.12, 0.1), "ellipsoid": (0.15, 0.1, 0.08), "mesh": (1.2, 0.9, 1.0), "hfield": (1.0, 0.8, 0.1, 1.0),
}  # fmt: skip
CORNERS = [(x, y, z) for x in (-0.07, 0.06) for y in (-0.05, 0.04) for z in (-0.09, 0.1)]
IMPULSES = {"cone": jg.Impulse(sweeps=10), "pyramid": jg.Impulse(sweeps=10, cone=False)}
IMPLICIT = {"implicit": jg.Implicit(), "implicit bounce": jg.Implicit(is_level=False)}
SPRINGS = {law: jg.Spring(3e3, 2e3, 1.3, law, 0.8, 0.5) for law in LAWS}
# kinds with functions of their own; those of the general search are tried with impulses only, and all of them in test_convex.py
OWN = [tuple(kind.split("_")) for kind in PAIR_KINDS if "_" in kind]
KINDS = [*OWN, ("points", "plane"), ("box", "points")]
SEARCHED = [
    ("mesh", "mesh"),
    ("cylinder", "sphere"),
    ("ellipsoid", "capsule"),
    ("mesh", "hfield"),
    ("capsule", "hfield"),
]
HEIGHTS = 0.5 + 0.5 * np.random.default_rng(3).uniform(-1.0, 1.0, size=(9, 11))


def shaped(kind: str) -> jg.Shape:
    corners = {"points": CORNERS if kind == "points" else (), "pieces": [np.array(CORNERS)] if kind == "mesh" else []}
    return jg.Shape(kind, SIZES[kind], (0.01, 0.02, -0.01), **corners, heights=HEIGHTS if kind == "hfield" else ())


def two_shapes(first: str, second: str, law: str) -> jg.Model:
    """A free body with a driven tail that touches by its first link, and what it touches: on the ground, or at the end of
    an arm with a turning and a sliding joint."""
    body = jg.Description("body", base="free")
    body.add_link("a", 1.3, (0.02, -0.01, 0.01), (0.02, 0.001, 0.002, 0.025, -0.001, 0.03)).shapes.append(shaped(first))
    body.add_link("tail", 0.4, (0.1, 0.02, 0.0), (0.004, 0.0, 0.001, 0.005, 0.0, 0.006))
    body.add_joint(
        "wag", "revolute", "a", "tail", position=(0.1, 0.0, 0.2), axis=(0.3, 0.8, 0.5), damping=0.1, armature=0.01
    )
    body.add_actuator("wag", "wag")
    world = jg.World().add(body, position=(0, 0, 1))
    held = jg.Description("held")
    if second == "hfield":
        held.add_link("b").shapes.append(shaped("hfield"))
    elif second == "plane":
        held.add_link("b").shapes.append(jg.Shape("plane", (), (0.0, 0.0, 0.1), (0.99, 0.05, -0.1, 0.02)))
    else:
        inertia = (0.03, 0.002, 0.001, 0.04, 0.003, 0.05)
        held.add_link("upper", 0.8, (0.1, 0.0, 0.1), inertia)
        held.add_joint("turn", "revolute", None, "upper", axis=(0.2, 1.0, 0.1), damping=0.2)
        held.add_link("b", 1.1, (0.0, 0.02, 0.01), inertia).shapes.append(shaped(second))
        held.add_joint("slide", "prismatic", "upper", "b", position=(0.3, 0.0, 0.1), axis=(0.1, 0.2, 1.0), armature=0.1)
        for joint in ("turn", "slide"):
            held.add_actuator(joint, joint)
    world.add(held)
    spin = {"torsion": 0.02, "rolling": 0.01} if law in ("cone", "implicit") else {}
    bounce = {"restitution": 0.6} if law in ("pyramid", "implicit bounce") else {}
    world.pair("a", "b", friction=0.4, margin=1e-3, **spin, **bounce)
    return world.compile(dt=2e-3, contact=(IMPULSES | SPRINGS | IMPLICIT)[law])


def brought_together(model: jg.Model, q: np.ndarray, depth: float) -> np.ndarray:
    """The body moved down until its nearest point is a depth inside what it touches."""
    place = q.copy()

    def nearest(z: float) -> float:
        place[2] = z
        return gaps(model, jg.State(place, np.zeros(model.nv))).min(initial=1.0)

    low, high = next(z for z in np.arange(1.2, -0.5, -0.02) if nearest(z) < -depth), 0.0
    high = low + 0.02
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if nearest(middle) < -depth else (low, middle)
    place[2] = low
    return place


def modes(model: jg.Model, first: str, second: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """States in contact: askew at rest, askew and sliding, flat at rest, flat and sliding, flat and turning; and one apart."""
    rng = np.random.default_rng(seed)
    askew = model.initial_state().q
    offset = 0.3 if second not in ("plane", "hfield") else 0.0
    askew[:2] = (offset + 0.02, 0.01)
    turn = np.array([1.0, 0.3, -0.5, 0.2])
    askew[3:7] = turn / np.linalg.norm(turn)
    flat = askew.copy()
    flat[3:7] = (0.99, 0.05, -0.1, 0.02) if second == "plane" else (1.0, 0.0, 0.0, 0.0)
    flat[3:7] += 3e-4 * rng.normal(size=4)
    if first == "capsule":  # lying
        w, x, y, z = flat[3:7]
        c = np.sqrt(0.5)
        flat[3:7] = c * np.array([w - x, w + x, y + z, z - y])
    depth = 2e-4
    askew, flat = (brought_together(model, q, depth) for q in (askew, flat))
    apart = askew + np.eye(model.nq)[2] * 0.05
    q = np.stack([askew, askew, flat, flat, flat, apart])
    qd = 0.02 * rng.normal(size=(6, model.nv))
    qd[:5, 2] -= 0.05
    qd[1, :3] += (0.9, -0.5, -0.6)  # fast enough to bounce
    qd[3, :2] += (-0.4, 0.8)
    qd[4, 3:6] += (1.0, -0.8, 2.0)
    return q, qd


PAIRS = [(kinds, law) for kinds in KINDS for law in (*IMPULSES, "brown")]
PAIRS += [(kinds, "cone") for kinds in SEARCHED]
PAIRS += [(("sphere", "sphere"), law) for law in LAWS if law != "brown"]


@pytest.mark.parametrize(("kinds", "law"), PAIRS, ids=lambda x: x if isinstance(x, str) else "-".join(x))
def test_pair(kinds, law):
    """One step, every input and parameter, in six modes at once: sticking, sliding, turning, resting on faces, open."""
    model = two_shapes(*kinds, law)
    q, qd = modes(model, *kinds, 0)
    case = contact_case(model, q, qd)
    assert len(set(case.signatures)) >= 2
    check(case, most=3)


# bounces that are restrained (test_bounces.py) ---------------------------------------------------------------------------


@functools.cache
def restrained_case(form: str, cone: bool) -> ContactCase:
    """States of a cluster whose bounces had to be restrained, and some whose had not."""
    model = cluster(3, form, cone, sweeps=12, arm=True)
    state = thrown_together(model, 400, 3)
    found = []
    for first in range(0, 400, 4):
        signatures(model, state.q[first : first + 4], state.qd[first : first + 4])
        with worker(model) as one:
            share = one.frame.table("block.share")[0, 0, 0]
            found += [first + k for k in range(4) if share[k] < 0.999]
    assert len(found) >= 3, len(found)
    rows = [*found[:3], next(k for k in range(400) if k not in found)]
    return contact_case(model, state.q[rows], state.qd[rows])


# ties ---------------------------------------------------------------------------------------------------------------------


def jointed(contact: jg.Impulse | jg.Implicit) -> jg.Model:
    """A chain on a free base, and an arm: limits, dry friction, mimic joints on one tree and between two."""
    robot = jg.Description("jointed", base="free")
    inertia = (0.02, 0.001, 0.002, 0.025, -0.001, 0.03)
    for k in range(7):
        robot.add_link(f"link{k}", 0.5 + 0.1 * k, (0.05, 0.02 * k, 0.1), inertia)
    options = [
        dict(limit=(-0.3, 0.4)), dict(friction=0.8), dict(limit=(-0.2, 0.2), friction=0.3), dict(mimic=("joint1", 0.6, 0.1)),
    ]  # fmt: skip
    for k, parent in enumerate((0, 1, 2, 1)):
        kind, axis = ("prismatic" if k == 2 else "revolute"), (0.2 * k, 1.0, 0.3)
        place = dict(position=(0.1, 0.0, 0.2), axis=axis, armature=0.02, damping=0.1)
        robot.add_joint(f"joint{k + 1}", kind, f"link{parent}", f"link{k + 1}", **place, **options[k])
    robot.add_joint("arm1", "revolute", None, "link5", axis=(0, 1, 0.2), limit=(-0.5, 0.5), friction=0.2)
    robot.add_joint(
        "arm2", "revolute", "link5", "link6", position=(0.2, 0, 0), axis=(0, 1, 0), mimic=("joint2", -0.4, 0.0)
    )
    for k, joint in enumerate(robot.joints):
        robot.add_actuator(f"motor{k}", joint)
    return robot.compile(dt=2e-3, contact=contact)


def looped(contact: jg.Impulse | jg.Implicit) -> jg.Model:
    """A four-bar linkage, and a free body welded to the end of its coupler."""
    robot = four_bar()
    robot.add_link("load", 0.7, (0.01, 0.02, 0.0), (0.02, 0.001, 0.002, 0.025, -0.001, 0.03))
    robot.add_joint("float", "free", None, "load", position=(0.6, 0.1, 0.7), orientation=(0.9, 0.1, 0.2, 0.3))
    robot.constraints.append(jg.Weld("coupler", "load"))
    for joint in ("a", "b", "d"):
        robot.add_actuator(f"motor_{joint}", joint)
    return robot.compile(dt=2e-3, contact=contact)


def narrow(contact: jg.Impulse | jg.Implicit) -> jg.Model:
    """An arm with ranges narrower than a step, thrown and pressed at both their ends."""
    robot = jg.Description("narrow")
    for k in range(3):
        robot.add_link(f"link{k}", 0.5 + 0.1 * k, (0.05, 0.02 * k, 0.1), (0.02, 0.001, 0.002, 0.025, -0.001, 0.03))
        options = [dict(limit=(-6e-4, 9e-4)), dict(friction=0.1), dict(limit=(-9e-4, 6e-4), kind="prismatic")][k]
        kind, axis = options.pop("kind", "revolute"), (0.2 * k, 1.0, 0.3)
        parent = f"link{k - 1}" if k else None
        robot.add_joint(f"joint{k}", kind, parent, f"link{k}", position=(0.1, 0.0, 0.2), axis=axis, **options)
        robot.add_actuator(f"motor{k}", f"joint{k}")
    return robot.compile(dt=2e-3, contact=contact)


def tie_case(which: str, steps: int, contact=jg.Impulse(sweeps=12)) -> ContactCase:  # noqa: B008, a frozen value
    rng = np.random.default_rng(2)
    if which == "joints":
        model = jointed(contact)
        q, qd = np.repeat(model.initial_state().q[None], 4, 0), 0.02 * rng.normal(size=(4, model.nv))
        first = model.nq - 6
        q[:, first:] += 0.05 * rng.normal(size=(4, 6))
        q[0, first] = 0.404  # beyond its limit
        q[1, first + 2], q[1, first] = -0.203, -0.304
        qd[2, -6:] += rng.choice((-1.0, 1.0), 6) * 1.5  # all slip
        q[3, first + 4] = 0.506
    elif which == "narrow":
        model = narrow(contact)
        q, qd = np.zeros((4, 3)), np.array([[3.0, 1.0, -2.0], [-3.0, -1.0, 2.0], [1e-3, 0.5, 2e-3], [0.1, -0.2, 0.3]])
        q[:, [0, 2]] = [[2e-4, 0.0], [1e-4, -1e-4], [1e-4, -2e-4], [1.1e-3, -1.1e-3]]
    else:
        model = looped(contact)
        q, qd = np.repeat(model.initial_state().q[None], 4, 0), 0.3 * rng.normal(size=(4, model.nv))
        q[1:] += 0.02 * rng.normal(size=(3, model.nq))  # loops that are a little open
    return contact_case(model, q, qd, steps)


@pytest.mark.parametrize("which", ["joints", "narrow", "loops"])
def test_ties(which):
    """Limits reached and not, ranges narrower than a step, dry friction that holds and slips, mimic joints, closed and open
    loops, a weld."""
    check(tie_case(which, 1), most=8)


# many steps ---------------------------------------------------------------------------------------------------------------


def standing(batch: int = 4, contact=None, friction: float = 0.7) -> tuple[jg.Model, np.ndarray, np.ndarray]:
    """Laikagos: standing, sliding, on two toes, in the air."""
    world = jg.World().add(jg.zoo.laikago(touch="feet"), position=(0, 0, 0.45)).add_ground(friction=friction)
    model = world.compile(dt=1e-3, contact=contact or jg.Impulse())
    state, rng = model.initial_state(), np.random.default_rng(1)
    q = np.repeat(state.q[None], batch, 0)
    low = jg.inspect(model, state).link_position[:, 2].min()
    q[:, 2] += 0.03 - low - 1e-4
    q[:, 7:] += 2e-4 * rng.normal(size=(batch, 12))
    qd = 0.01 * rng.normal(size=(batch, model.nv))
    qd[1::4, :3] += (0.8, 0.3, -0.02)
    q[2::4, 4] += 0.02
    q[3::4, 2] += 0.1
    return model, q, qd


def fifty(which: str) -> ContactCase:
    if which in ("joints", "loops"):
        return tie_case(which, 50)
    if which == "laikago":
        model, q, qd = standing()
        return contact_case(model, q, qd, 50)
    first, second, law = which.split("-")
    model = two_shapes(first, second, law)
    q, qd = modes(model, first, second, 0)
    return contact_case(model, q[[1, 3, 4]], qd[[1, 3, 4]], 50)


@pytest.mark.parametrize(
    "which", ["laikago", "joints", "loops", "box-box-cone", "capsule-plane-pyramid", "box-sphere-brown"]
)
def test_fifty_steps(which):
    """A sample of every input and parameter; and the same bits with states recomputed from checkpoints."""
    case = fifty(which)
    gradient = {name: bar for name, bar in case.backward(case.rollout()).items() if bar.any()}
    wrong, skipped = case.compare(gradient, most=1)
    print(f"skipped {100 * skipped:.1f} %")
    assert wrong == {} and skipped <= MOST_SKIPPED
    kept, restored = (
        case.rollout(threads=1),
        case.rollout(threads=1, memory=case.batch * 12 * (case.model.nq + case.model.nv) * 8),
    )
    assert restored.run.schedule.slots > 0
    a, b = case.backward(kept), case.backward(restored)
    assert all(np.array_equal(a[name], b[name]) for name in a)


LONG = ("q", "qd", "u", "pair.friction", "pair.restitution", "shape.size", "shape.placement", "link.inertia")


# corners of meshes, and of what the general search finds, change too often in fifty steps for differences to say much
LONG_PAIRS = [pair for pair in PAIRS if pair[0] not in SEARCHED and "mesh" not in pair[0]]


@pytest.mark.parametrize(("kinds", "law"), LONG_PAIRS, ids=lambda x: x if isinstance(x, str) else "-".join(x))
def test_pair_over_fifty_steps(kinds, law):
    """Sliding askew, sliding flat, turning: each pair and law, an entry of each kind of input."""
    case = fifty("-".join((*kinds, law)))
    gradient = case.backward(case.rollout())
    wrong, skipped = case.compare({name: gradient[name] for name in LONG if gradient[name].any()}, most=1)
    print(f"skipped {100 * skipped:.1f} %")
    assert wrong == {} and skipped <= MOST_SKIPPED


# the case that the seed's released code gets wrong ------------------------------------------------------------------------


@pytest.mark.parametrize("cone", [True, False], ids=["cone", "pyramid"])
def test_floating_base_in_contact(cone):
    """Laikago on its toes, one step: d/dq of all joints (the released code of Qiao 2021 loses dM/dq there, and has
    several of the wrong sign), of the base, d/dqd, d/du, against differences; in every lane its own contacts."""
    model, q, qd = standing(contact=jg.Impulse(cone=cone))
    case = contact_case(model, q, qd)
    gradient = case.backward(case.rollout())
    state = {name: gradient[name] for name in ("q", "qd", "u")}
    wrong, skipped = case.compare(state, most=100)
    assert wrong == {}
    print(f"skipped {100 * skipped:.1f} %")
    assert skipped < 0.05
    # not by chance: contact changes what the joints' own gradient is
    apart = standing()[0].topology.tree["n_dofs"]
    assert apart == model.nv and len(set(case.signatures)) == 4
    assert np.abs(gradient["q"][0, 7:]).min() > 0


# other ways to the same derivative ----------------------------------------------------------------------------------------


def test_tangent_is_the_transpose():
    """<bar, tangent> is the same both ways, over 20 steps in contact, for directions of everything."""
    for case in (
        contact_case(*standing(), 20),
        contact_case(*pair_states("box", "box", "cone"), 20),
        tie_case("loops", 20),
    ):
        rng = np.random.default_rng(5)
        model, steps, batch = case.model, case.steps, case.batch
        motion = case.rollout()
        dots = {name: rng.normal(size=value.shape) for name, value in case.inputs.items()}
        for name in PARAMS:
            dots[name] *= 1e-2 * np.abs(np.where(np.isfinite(case.inputs[name]), case.inputs[name], 0.0))
        params = {name: dots[name] for name in PARAMS}
        q_dot, qd_dot = motion.tangent(
            dots["q"], dots["qd"], np.moveaxis(dots["u"], 0, 1), np.moveaxis(dots["force"], 0, 1), params
        )
        left = (q_dot * case.bars["q"]).sum((0, 2)) + (qd_dot * case.bars["qd"]).sum((0, 2))
        gradient = motion.backward(case.bars["q"], case.bars["qd"])
        terms = {"q": gradient.q, "qd": gradient.qd, "u": np.moveaxis(gradient.u, 1, 0), **gradient.params}
        terms["force"] = np.moveaxis(gradient.force, 1, 0)
        right = sum((terms[name] * dots[name]).reshape(batch, -1).sum(1) for name in dots)
        np.testing.assert_allclose(left, right, rtol=1e-8)
        assert steps == 20 and model.nv


def pair_states(first: str, second: str, law: str):
    model = two_shapes(first, second, law)
    return model, *modes(model, first, second, 0)


def test_linearize():
    """A and B of one step in contact are the Jacobian by forward mode, column by column."""
    model, q, qd = standing()
    state, u = jg.State(q, qd), np.zeros((4, model.nu))
    A, B = jg.linearize(model, state, u)
    motion = jg.rollout(model, state, u[None])
    for env in range(4):
        basis, last = tangent_basis(model, q[env]), tangent_basis(model, motion.last.q[env])
        for column in (0, 2, 4, 7, 11, model.nv + 1, model.nv + 8, 2 * model.nv - 1):
            way = np.eye(2 * model.nv)[column]
            dots = np.zeros((4, model.nq)), np.zeros((4, model.nv))
            dots[0][env], dots[1][env] = basis @ way[: model.nv], way[model.nv :]
            q_dot, qd_dot = motion.tangent(*dots)
            found = np.r_[np.linalg.pinv(last) @ q_dot[-1, env], qd_dot[-1, env]]
            np.testing.assert_allclose(A[env][:, column], found, rtol=1e-8, atol=1e-8 * np.abs(A[env]).max())
        q_dot, qd_dot = motion.tangent(u=np.eye(model.nu)[None, [3] * 4])
        np.testing.assert_allclose(B[env][model.nv :, 3], qd_dot[-1, env], rtol=1e-8, atol=1e-10)


# bits ---------------------------------------------------------------------------------------------------------------------


def taken(case: ContactCase, envs, **options) -> dict[str, np.ndarray]:
    """Everything that comes out for some environments."""
    inputs = {name: value[envs] for name, value in case.inputs.items()}
    part = ContactCase(case.model, inputs, False, case.steps, len(envs))
    part.bars = {name: bar[:, envs] for name, bar in case.bars.items()}
    motion = part.rollout(**options)
    return {"end": motion.last.q, "rates": motion.last.qd, **{f"{k}_bar": v for k, v in part.backward(motion).items()}}


@functools.cache
def crowd(which: str) -> ContactCase:
    if which == "laikago":
        model, q, qd = standing(batch=12)
    elif which.startswith("tangle"):
        model = tangled(3, "free", sweeps=10, form="sums" if "sums" in which else "matrix")
        state = random_state(model, np.random.default_rng(3), 12)
        q, qd = state.q, state.qd
    else:
        model, q, qd = pair_states("box", "box", "pyramid")
        q, qd = np.concatenate([q, q[::-1]]), np.concatenate([qd, -qd])
    return contact_case(model, q, qd, 2 if which.startswith("tangle") else 6)


def same(a: dict, b: dict) -> bool:
    return all(np.array_equal(a[name], b[name]) for name in a)


CROWDS = ("laikago", "box-box", "tangle", "tangle-sums")


@pytest.mark.parametrize("which", CROWDS)
def test_bits(which):
    """Alone, in another order, among neighbours with other contacts, by several threads: the same bits both ways."""
    case = crowd(which)
    whole = taken(case, list(range(12)), threads=1)
    assert same(taken(case, list(range(12)), threads=2), whole)
    for envs in ([0], [5], [3, 2], [11, 0, 7, 3, 1]):
        assert same(taken(case, envs), {name: value[envs] for name, value in whole.items()})


@pytest.mark.slow  # each width is compiled on its own
@pytest.mark.parametrize("lanes", [1, 8])
def test_bits_of_pack_widths(monkeypatch, lanes):
    whole = {which: taken(crowd(which), list(range(12))) for which in CROWDS}
    monkeypatch.setenv("JOINTGRAD_LANES", str(lanes))
    for which, expected in whole.items():
        assert same(taken(crowd(which), list(range(12))), expected)


# the tests above are worth what they would notice: the same comparison with one operator slightly wrong -------------------

# operators that only clear or gather
WITHOUT_ARITHMETIC = {*(name for name in vars(operators) if name.startswith("zero")), "six"}
# reverses of the stages that contact added, and of those whose reverse it leans on
REVERSES = ("detection", "springs", "contact")


def globals_in(code) -> set[str]:
    inner = [c for c in code.co_consts if isinstance(c, CodeType)]
    own = {i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"}
    return own.union(*map(globals_in, inner))


def operators_below(fn, seen: set) -> dict[tuple[str, str], dict]:
    """Every traced operator that a kernel calls, by itself or through sweeps and other kernels: (whose, name), and the names that
    it is called by. Functions that the table of pairs makes have names of their own."""
    seen.add(fn)
    found = {}
    whose = fn.__module__ if vars(sys.modules[fn.__module__]) is fn.__globals__ else f"{fn.__module__}.{fn.__name__}"
    for name in globals_in(fn.__code__):
        value = fn.__globals__.get(name)
        if isinstance(value, Traced) or name == "accumulate":
            found[whose, name] = fn.__globals__
        elif isinstance(value, Sweep) and value.fn not in seen:
            found |= operators_below(value.fn, seen)
    return found


def mutations() -> dict[tuple[str, str], dict]:
    found: dict[tuple[str, str], dict] = {}
    for stage in REVERSES:
        module = importlib.import_module(f"jointgrad.engine.kernels.stages.{stage}")
        found |= operators_below(getattr(module, f"{stage}_adjoint").fn, set())
    # wrenches are called only where forces are asked for: test_contact_outputs.py holds them against differences
    # those of the convex law where that is asked for: test_implicit_gradients.py does; rims, ellipsoids: test_convex.py
    elsewhere = ("articulated", "wrenches", "contact.implicit", "contact.bounces", "joint_space", "newton")
    elsewhere += ("cylinder_plane", "ellipsoid_plane")
    convex = ("bouncing_compliance_adjoint", "turning_lightness")
    # and those of bounds that are zero only there: test_gradients_at_zero.py holds them against closed forms
    at_zero = ("closed_pyramid_reverse", "closed_rows_reverse", "closed_spin_reverse")
    # which end of a range is meant: the reverse of a stop only asks on which side of it the joint is
    ends = ("both_ends", "low_end", "high_end")
    without = (*WITHOUT_ARITHMETIC, *at_zero, *ends, *convex)
    wanted = sorted(k for k in found if k[1] not in without and not any(word in k[0] for word in elsewhere))
    return {k: found[k] for k in wanted}


MUTATIONS = mutations()


class PlainStep:
    """One step of one environment without the compiler, kept to be reversed again and again."""

    def __init__(self, case: ContactCase, env: int) -> None:
        self.case, self.env = case, env
        self.z = z = plain.tables(case.model)
        for name in ("q", "qd", "u", "force"):
            getattr(z.state, name)[:] = case.inputs[name][env].ravel().tolist()
        z.call.force = z.call.wants_params = z.call.wants_outputs = 1
        step(z)

    def gradient(self) -> dict[str, np.ndarray]:
        z, case, env = self.z, self.case, self.env
        for table in (z.params_bar, z.assembly_bar):
            for rows in vars(table).values():
                if isinstance(rows, list):
                    rows[:] = [tuple(0.0 for _ in r) if isinstance(r, tuple) else 0.0 for r in rows]
        for name in ("q", "qd"):
            getattr(z.next_bar, name)[:] = case.bars[name][1, env].tolist()
        for name in OUTPUTS:
            rows = case.bars[name][0, env].reshape(case.model.n_links, -1).tolist()
            getattr(z.output_bar, name.split(".")[1])[:] = [tuple(row) for row in rows]
        step_adjoint(z, z.bar)
        assembly_stage_adjoint(z, z.bar)
        found = {name: np.array(getattr(z.state_bar, name)) for name in ("q", "qd", "u", "force")}
        for name in ("q", "qd"):
            found[name] += case.bars[name][0, env]
        return found | {name: np.array(getattr(z.params_bar, name.replace(".", "_"))).ravel() for name in PARAMS}


@functools.cache
def plain_steps() -> list[tuple[PlainStep, dict[str, np.ndarray]]]:
    """Steps that between them call every operator, and their gradients by the compiled reverse, which the tests above
    hold against differences."""
    found = []
    laws = [*IMPULSES, *LAWS]
    cases = [pair_case(*kinds, laws[k % 2]) for k, kinds in enumerate([*OWN, SEARCHED[0]])]
    cases += [pair_case("sphere", "sphere", law) for law in LAWS]
    cases += [tie_case("joints", 1), tie_case("loops", 1), tangle("free", True, 3), tangle("fixed", False, 3)]
    cases += [tangle("free", True, 3, "sums"), tangle("fixed", False, 3, "sums")]
    cases += [restrained_case("matrix", True), restrained_case("sums", False)]
    for number, case in enumerate(cases):
        for name in OUTPUTS:  # the step's reverse sees the outputs of the state it starts from
            case.bars[name][1] = 0.0
        gradient = case.backward(case.rollout())
        for env in range(2 if number >= len(cases) - 8 else 1):
            found.append((PlainStep(case, env), {name: bar[env].ravel() for name, bar in gradient.items()}))
    return found


def pair_case(first: str, second: str, law: str) -> ContactCase:
    model = two_shapes(first, second, law)
    q, qd = modes(model, first, second, 0)
    return contact_case(model, q[[1, 3]], qd[[1, 3]])


def differs(found: dict[str, np.ndarray], expected: dict[str, np.ndarray], tolerance: float) -> bool:
    """Cotangents that are nothing but rounding are not compared."""
    names = [name for name in expected if max(np.abs(x).max(initial=0.0) for x in (found[name], expected[name])) > 1e-9]
    return any(not worst_error(found[name].ravel(), expected[name]) < tolerance for name in names)


def test_plain_reverse():
    """Without the compiler the same reverse, and the comparison that the mutations below must fail."""
    for one, expected in plain_steps():
        assert not differs(one.gradient(), expected, 1e-8)


class Mutant:
    """An operator with one of its results a tenth too large; of one that returns plain numbers, all of them. Notes how many
    results it has, and whether the error changed any."""

    def __init__(self, operator, part: int) -> None:
        self.operator, self.part, self.count, self.counts_for_something = operator, part, 1, False

    def __call__(self, *args):
        if self.operator.__name__ == "accumulate":
            self.counts_for_something |= larger(args[2]) != args[2]
            return self.operator(*args[:2], larger(args[2]))
        result = self.operator(*args)
        if not isinstance(result, tuple) or not any(isinstance(x, tuple) for x in result):
            self.counts_for_something |= larger(result) != result
            return larger(result)
        self.count = len(result)
        changed = larger(result[self.part])
        self.counts_for_something |= changed != result[self.part]
        return (*result[: self.part], changed, *result[self.part + 1 :])


@pytest.mark.parametrize(("whose", "name"), MUTATIONS, ids=lambda x: x.rpartition(".")[2])
def test_mutation_is_seen(monkeypatch, whose, name):
    """An error of a tenth in any result of any operator of the reverse does not go unnoticed. A result that is always
    zero, such as the cotangent of a plane's size, cannot be wrong by a tenth; but no operator has only such."""
    names, steps = MUTATIONS[whose, name], plain_steps()
    operator, part, count, seen = names[name], 0, 1, 0
    while part < count:
        mutant = Mutant(operator, part)
        monkeypatch.setitem(names, name, mutant)
        is_seen = any(differs(one.gradient(), expected, TOLERANCE) for one, expected in steps)
        assert is_seen or not mutant.counts_for_something, f"result {part}"
        count, part, seen = mutant.count, part + 1, seen + is_seen
    assert seen
