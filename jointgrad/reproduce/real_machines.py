"""Recordings of real pendulums as motions of a model: what is known beforehand of each machine, and how its recordings are read.

| machine | recordings |
|---|---|
| C1, A0 | DFKI's double pendulum with two motors, two designs: excitation runs |
| simple | DFKI's simple pendulum: swing-ups by DDP and by direct collocation |
| ibm | IBM's passive double pendulum, tracked by a camera |

Two splits: "later" holds out the last two fifths of every run, "runs" those of odd number as a whole (the first has number 0). What
is left is in folds, each of which judges what the others have taught: every third run, in "runs" each run; where these are too
few, thirds of every run.

Of the simple pendulum's ten recordings these two are the only swing-ups whose torques a pendulum with any numbers explains
(1 - SSE/SS above 0.9); the others are commands at a low rate, saturated, or of a machine that stands still.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import jointgrad as jg

from ..model.description import Description
from ..model.parameters import Entry
from .recordings import cut, folder, recording

MACHINES = ("C1", "A0", "simple", "ibm")
GRAVITY = 9.81
SPLITS = ("later", "runs")
HELD_OUT, FOLDS = 0.4, 3  # share of a run; folds of what is left, see divided()
# seconds over which a polynomial of third order is fitted to angles, for velocities: of motors with encoders, and of the camera,
# whose pendulum turns at up to 30 rad/s
SMOOTH, SMOOTH_CAMERA = 0.12, 0.0225
# authors' friction is cf atan(100 qd): far from rest cf pi / 2
ATAN = np.pi / 2
BASE = ("inertia", "moment", "armature", "damping", "friction")
HEAVY = 5.0  # kg, see pendulum()


@dataclass(frozen=True)
class Run:
    """Even samples: q (T, n) as recorded, qd (T, n) by polynomials, u (T, nu) the torques at the joints."""

    name: str
    q: np.ndarray
    qd: np.ndarray
    u: np.ndarray

    def smoothed(self, dt: float, order: int, seconds: float) -> np.ndarray:
        """Angles, velocities or accelerations, smoothed twice: once is too little against the noise of accelerations."""
        return smooth(smooth(self.q, dt, 0, SMOOTH), dt, order, seconds)


@dataclass(frozen=True)
class Machine:
    """A pendulum with what is known of it beforehand (`untuned`: candidates by name), what is to be found, and its runs."""

    name: str
    dt: float
    untuned: dict[str, jg.Model]
    unknowns: list[Entry]
    runs: list[Run]
    length: float = 0.0  # of the first link, where there is a second


@dataclass(frozen=True)
class Split:
    """Folds of runs, or of parts of them, that train and choose; and what nothing has seen."""

    folds: list[list[Run]]
    held_out: list[Run]

    @property
    def seen(self) -> list[Run]:
        return [r for fold in self.folds for r in fold]

    def without(self, k: int) -> list[Run]:
        """All folds but one."""
        return [r for i, fold in enumerate(self.folds) if i != k for r in fold]


def part(run: Run, first: float, last: float) -> Run:
    """From one share of a run to another."""
    keep = slice(round(first * len(run.q)), round(last * len(run.q)))
    return Run(run.name, run.q[keep], run.qd[keep], run.u[keep])


def divided(m: Machine, split: str) -> Split:
    if split not in SPLITS:
        raise ValueError(f'there is no split "{split}"; the names are {", ".join(SPLITS)}')
    if split == "later":
        train, held_out = ([part(r, *ends) for r in m.runs] for ends in ((0, 1 - HELD_OUT), (1 - HELD_OUT, 1)))
        if len(train) >= FOLDS:
            return Split([train[k::FOLDS] for k in range(FOLDS)], held_out)
    else:
        train, held_out = m.runs[0::2], m.runs[1::2]
        if len(train) > 1:
            return Split([[r] for r in train], held_out)
    ends = pairwise(np.linspace(0, 1, FOLDS + 1))
    return Split([[part(r, *of) for r in train] for of in ends], held_out)


@dataclass(frozen=True)
class Body:
    """A link of a pendulum: mass, distance of its centre from the joint, inertia about the joint; and the joint."""

    mass: float
    centre: float
    inertia: float
    armature: float = 0.0
    damping: float = 0.0
    friction: float = 0.0


def pendulum(bodies: Sequence[Body], length: float, dt: float, driven: bool = True) -> jg.Model:
    """Hanging along -z at zero, turning about y; the second joint `length` below the first. One without motors is fast and has
    no dry friction: its steps are of fourth order, which would not do with that.

    Motions depend on inertias and moments of mass about the joints alone (`base_numbers`). Some that were published belong to no
    body with the published mass, so masses are chosen here: that of the second so that its own inertia is a sixth of that about
    its joint, that of the first as HEAVY.
    """
    last, above = bodies[-1], bodies[:-1]
    mass = 1.2 * (last.mass * last.centre) ** 2 / last.inertia
    links = [(mass, last.mass * last.centre / mass, last.inertia)]
    for b in above:
        moment = b.mass * b.centre + (last.mass - mass) * length
        links.insert(0, (HEAVY, moment / HEAVY, b.inertia + (last.mass - mass) * length**2))
    robot = Description("pendulum")
    for i, (b, (mass, centre, inertia)) in enumerate(zip(bodies, links, strict=True)):
        # the other two moments do not count, and leave that about y free
        robot.add_link(f"link{i}", mass, (0.0, 0.0, -centre), (1.0, inertia - mass * centre**2, 1.0))
        parent, at = (f"link{i - 1}", (0.0, 0.0, -length)) if i else (None, (0.0, 0.0, 0.0))
        robot.add_joint(f"joint{i}", "continuous", parent, f"link{i}", position=at, axis=(0, 1, 0), damping=b.damping,
                        armature=b.armature, friction=max(b.friction, 1e-6) if driven else 0.0)  # fmt: skip
        if driven:
            robot.add_actuator(f"motor{i}", f"joint{i}")
    return robot.compile(dt=dt, gravity=(0, 0, -GRAVITY), integrator="semi_implicit" if driven else "rk4")


def machine(name: str, data: Path | None = None) -> Machine:
    if name == "simple":
        return _simple(data)
    if name == "ibm":
        return _ibm(data)
    if name in ("C1", "A0"):
        return _double(name, data)
    raise ValueError(f'there is no machine "{name}"; the names are {", ".join(MACHINES)}')


def smooth(q: np.ndarray, dt: float, order: int, seconds: float = SMOOTH) -> np.ndarray:
    """Derivative of this order, by polynomials of third order over so many seconds around each sample."""
    from scipy.signal import savgol_filter

    width = 2 * round(seconds / dt / 2) + 1
    return savgol_filter(q, max(width, 5), 3, order, dt, axis=0)


def _even(time: np.ndarray, dt: float, *columns: np.ndarray) -> list[np.ndarray]:
    """The same signals at even times, between samples on straight lines."""
    grid = np.arange(time[0], time[-1], dt)
    return [np.stack([np.interp(grid, time, c) for c in a.T], -1) for a in columns]


def _run(name: str, dt: float, q: np.ndarray, u: np.ndarray) -> Run:
    return Run(name, q, smooth(q, dt, 1), u)


# DFKI's double pendulum --------------------------------------------------------------------------------------------------


def _double(design: str, data: Path | None) -> Machine:
    dt, file = 0.002, recording(f"dfki_double_pendulum_{design}.npz", data)
    runs = []
    for path, x in zip(file["paths"], cut(file, "x"), strict=True):
        if "sys_id" in str(path):
            x = x.astype(float)
            q, u = _even(x[:, 0], dt, x[:, 1:3], x[:, 7:9])
            runs.append(_run(str(path).split("sys_id/")[1], dt, q, u))
    untuned, length = _published(design, dt, data)
    unknowns = [
        Entry("link.com", "link0", 2, bounds=(-10, 10), scale=0.01), Entry("link.com", "link1", 2, bounds=(-10, 10), scale=0.1),
        Entry("link.inertia", None, 3, bounds=(1e-6, 1.0), scale=0.05),
        Entry("joint.armature", "joint1", bounds=(0, 0.1), scale=0.01), Entry("joint.damping", "joint?", bounds=(0, 1), scale=0.1),
        Entry("joint.friction", "joint?", bounds=(0, 1), scale=0.1),
    ]  # fmt: skip
    return Machine(design, dt, untuned, unknowns, runs, length)


def _published(design: str, dt: float, data: Path | None) -> tuple[dict[str, jg.Model], float]:
    """Models that the authors have identified with friction for this design, and the length of the first link."""
    said = json.loads((folder(data) / "dfki_double_pendulum_identified_parameters.json").read_text())
    found: dict[str, jg.Model] = {}
    length = 0.0
    for path, text in said.items():
        p = {k: float(v) for k, v in re.findall(r"^(\w+): ([-+.\deE]+)$", text, re.M)}
        if f"design_{design[0]}.{design[1]}/" in path and p["Ir"] > 0:
            rotor = p["gr"] ** 2 * p["Ir"]
            bodies = [Body(p[f"m{i}"], p[f"r{i}"], p[f"I{i}"], rotor, p[f"b{i}"], ATAN * p[f"cf{i}"]) for i in (1, 2)]
            found[path.split("/")[-2]], length = pendulum(bodies, p["l1"], dt), p["l1"]
    return found, length


# DFKI's simple pendulum --------------------------------------------------------------------------------------------------


def _simple(data: Path | None) -> Machine:
    dt, file = 0.002, recording("dfki_simple_pendulum.npz", data)
    runs = []
    for method in ("ddp", "direct_collocation"):
        x = file[f"control_method_{method}__data_measured"].astype(float)
        q, u = _even(x[:, 0], dt, x[:, 1:2], x[:, 3:4])
        runs.append(_run(method, dt, q, u))
    text = json.loads(str(file["meta"]))["identified"]
    p = {k.strip(): float(v) for k, v in re.findall(r"^([\w*]+) *= ([-+.\de]+)$", text, re.M)}
    # a body of 0.6 kg; what counts is the product with the distance of its centre
    mass = 0.6
    body = Body(mass, p["m*cx"] / mass, p["J"], 0.0, p["Fv"], ATAN * p["Fc"])
    unknowns = [
        Entry("link.com", None, 2, bounds=(-2.0, 0.0), scale=0.1), Entry("link.inertia", None, 3, bounds=(1e-6, 1), scale=0.05),
        Entry("joint.damping", "joint?", bounds=(0, 1), scale=0.1), Entry("joint.friction", "joint?", bounds=(0, 1), scale=0.1),
    ]  # fmt: skip
    return Machine("simple", dt, {"published": pendulum([body], 0.0, dt)}, unknowns, runs)


# IBM's passive double pendulum -------------------------------------------------------------------------------------------

ARMS = (0.091, 0.070)  # m
EVERY = 2  # frames per time step


def angles(pixels: np.ndarray) -> np.ndarray:
    """(T, 2): of the upper arm from straight down, and of the lower one from the upper.

    Markers are not on the axes, by one or two units of 600, which is more than the noise: a run's axes are the centres of the
    circles on which the middle marker runs in the picture, and the last one as seen from the upper arm.
    """
    middle, tip = (pixels[:, k : k + 2].astype(float) for k in (2, 4))
    pivot = _centre(middle)
    along = (middle - pivot) / np.linalg.norm(middle - pivot, axis=1)[:, None]
    across = np.stack([-along[:, 1], along[:, 0]], -1)
    seen = np.stack([((tip - pivot) * a).sum(1) for a in (along, across)], -1)
    hinge = np.einsum("k,ktx->tx", _centre(seen), np.stack([along, across]))
    upper, lower = (np.unwrap(np.arctan2(a[:, 1], a[:, 0])) for a in (hinge, tip - pivot - hinge))
    return np.stack([upper, lower - upper], -1)


def _centre(points: np.ndarray) -> np.ndarray:
    """Of a circle through points (T, 2), by least squares."""
    A = np.concatenate([2 * points, np.ones((len(points), 1))], axis=1)
    return np.linalg.lstsq(A, (points**2).sum(1), rcond=None)[0][:2]


def _ibm(data: Path | None) -> Machine:
    file = recording("ibm_double_pendulum.npz", data)
    frame = float(file["dt"])
    dt, runs = EVERY * frame, []
    for k, x in enumerate(cut(file, "pixels")):
        q = angles(x)
        qd = smooth(q, frame, 1, SMOOTH_CAMERA)[::EVERY]
        runs.append(Run(f"run {k}", q[::EVERY], qd, np.zeros((len(qd), 0))))
    # nobody has published masses: uniform arms of the known lengths, with masses in proportion
    rods = [Body(mass, a / 2, mass * a**2 / 3) for mass, a in zip(np.array(ARMS) / sum(ARMS), ARMS, strict=True)]
    # a passive machine does not tell its scale: masses and the first centre stay
    unknowns = [
        # a regression finds an upper arm of 0.14 m, not the 0.091 m that are stated: the length is unknown too
        Entry("joint.placement", "joint1", 2, bounds=(-0.3, -0.03), scale=0.03),
        Entry("link.com", "link1", 2, bounds=(-0.3, 0.0), scale=0.03),
        Entry("link.inertia", None, 3, bounds=(1e-8, 0.1), scale=1e-3),
        Entry("joint.damping", "joint?", bounds=(0, 1), scale=1e-3),
        # the camera need not be upright
        Entry("world.gravity", None, 0, bounds=(-3, 3), scale=0.1),
    ]
    return Machine("ibm", dt, {"uniform rods": pendulum(rods, ARMS[0], dt, driven=False)}, unknowns, runs, ARMS[0])


# torques -----------------------------------------------------------------------------------------------------------------


def base_numbers(model: jg.Model, length: float) -> dict[str, Any]:
    """What of a model its motions depend on: inertias and moments of mass about the joints, and the joints' own numbers."""
    n, p = model.nv, model.params
    mass, centre = p["link.mass"], -p["link.com"][:, 2]
    inertia = p["link.inertia"][:, 3] + mass * centre**2
    moment = mass * centre
    if n == 2:
        inertia = np.array([inertia[0] + mass[1] * length**2, inertia[1]])
        moment = np.array([moment[0] + mass[1] * length, moment[1]])
    of_joint = {k: p[f"joint.{k}"][[model.joint_names.index(f"joint{i}") for i in range(n)]]
                for k in ("armature", "damping", "friction")}  # fmt: skip
    return {"inertia": inertia, "moment": moment, **of_joint}


def with_base_numbers(m: Machine, base: dict[str, Any]) -> jg.Model:
    """A model of the machine with these; what cannot be negative ends at zero, inertias a little above. Raises ModelError where
    no body has them all the same."""
    b = {k: np.maximum(v, 1e-4 if k == "inertia" else 0.0) for k, v in base.items()}
    joint = [(b["armature"][i], b["damping"][i], b["friction"][i]) for i in range(len(b["inertia"]))]
    bodies = [Body(1.0, b["moment"][-1], b["inertia"][-1], *joint[-1])]
    if len(joint) == 2:
        bodies.insert(0, Body(1.0, b["moment"][0] - m.length, b["inertia"][0] - m.length**2, *joint[0]))
    return pendulum(bodies, m.length, m.dt)


def inverse(base: dict[str, Any], length: float, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
    """(T, n): torques that a motion needs by the equations of a pendulum of one or two links, written out; dry friction as
    the authors write it. Linear in the numbers of `base_numbers`."""
    b = base
    tau = b["armature"] * qdd + b["damping"] * qd + b["friction"] / ATAN * np.arctan(100 * qd)
    if q.shape[1] == 1:
        return tau + b["inertia"] * qdd + b["moment"] * GRAVITY * np.sin(q)
    coupling = b["moment"][1] * length
    c, s = np.cos(q[:, 1]), np.sin(q[:, 1])
    both = b["inertia"][1] * qdd.sum(1) + b["moment"][1] * GRAVITY * np.sin(q.sum(1))
    tau[:, 0] += b["inertia"][0] * qdd[:, 0] + both + b["moment"][0] * GRAVITY * np.sin(q[:, 0])
    tau[:, 0] += coupling * (c * (2 * qdd[:, 0] + qdd[:, 1]) - s * (qd[:, 1] ** 2 + 2 * qd[:, 0] * qd[:, 1]))
    tau[:, 1] += both + coupling * (c * qdd[:, 0] + s * qd[:, 0] ** 2)
    return tau
