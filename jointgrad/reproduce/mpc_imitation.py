"""A network that imitates the convex controller of a quadruped (NeuralSim, section V-E), then learns from its own mistakes.

Transitions under random commands and pushes are labelled by the accurate solver; a network 41-192-192-12 is fitted to them; in
rounds of DAgger (Ross et al. 2011) the network walks and the solver says what it should have done. Walks of 20 s on commands that
nobody trained on judge teacher and pupils, here and in MuJoCo.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..model.world import World
from ..optimize.mpc.controller import Command, Controller
from ..optimize.mpc.courses import course
from ..optimize.mpc.network import Network, NetworkMPC, Watched, load_network, scaling
from ..optimize.mpc.quadruped import ConvexMPC
from ..optimize.mpc.robots import Quadruped, quadruped
from ..optimize.mpc.walking import DT, MujocoPlant, OwnPlant, Plant, walk
from .kept import Kept

FORWARD, SIDEWAYS, TURNING = (-0.5, 1.0), (-0.3, 0.3), (-0.8, 0.8)
JUDGED = 2026  # seed of the commands that judge: never used in training


@dataclass(frozen=True)
class Settings:
    """transitions: labelled moments of the first data set, and of each round of DAgger a third of that."""

    robot: str = "laikago"
    transitions: int = 10_000
    hidden: tuple[int, ...] = (192, 192)
    rounds: int = 3
    epochs: int = 60
    walks: int = 20
    seconds: float = 20.0
    seed: int = 0


def command_of(rng: np.random.Generator) -> Command:
    return Command(*(float(rng.uniform(*ends)) for ends in (FORWARD, SIDEWAYS, TURNING)))


class Lessons:
    """Inputs and forces of everything that was labelled so far."""

    def __init__(self) -> None:
        self.seen: list[np.ndarray] = []
        self.taught: list[np.ndarray] = []

    def collect(self, robot: Quadruped, network: Network | None, count: int, seed: int) -> int:
        """So many more moments, from walks of 4 s with a command and a push each; returns how many walks ended in a fall."""
        rng, wanted, falls = np.random.default_rng([seed, count]), len(self.seen) + count, 0
        plant_model = course("flat", robot.add_to(World())).compile(dt=DT)
        walker = Watched(robot, network=network)
        while len(self.seen) < wanted:
            push = {float(rng.uniform(1.0, 3.0)): np.append(rng.uniform(-0.5, 0.5, 2), 0.0)}
            result = walk(walker, OwnPlant(robot, plant_model), command_of(rng), 4.0, push)
            falls += result.fell
            self.seen += walker.seen
            self.taught += walker.taught
        del self.seen[wanted:], self.taught[wanted:]
        return falls


def fit(lessons: Lessons, settings: Settings) -> tuple[Network, float]:
    """Adam on the squared miss of forces of standing feet; returns the network and its miss on a tenth that was held out, as a
    share of the weight."""
    import torch

    torch.manual_seed(settings.seed)
    torch.set_num_threads(1)
    x, y = np.array(lessons.seen), np.array(lessons.taught)
    mean, deviation = scaling(lessons.seen)
    order = np.random.default_rng(settings.seed).permutation(len(x))
    inputs, labels = (torch.tensor(a[order], dtype=torch.float32) for a in ((x - mean) / deviation, y))
    stands = torch.tensor(np.repeat(x[order][:, 9:13], 3, 1), dtype=torch.float32)
    held = len(x) // 10
    widths = (x.shape[1], *settings.hidden, y.shape[1])
    parts: list[torch.nn.Module] = []
    for n, m in zip(widths, widths[1:], strict=False):
        parts += [torch.nn.Linear(n, m), torch.nn.ELU()]
    net = torch.nn.Sequential(*parts[:-1])
    steps = settings.epochs * max(1, (len(x) - held) // 256)
    adam = torch.optim.Adam(net.parameters(), lr=2e-3)
    fade = torch.optim.lr_scheduler.LinearLR(adam, 1.0, 0.02, steps)
    draw = torch.Generator().manual_seed(settings.seed)
    for _ in range(steps):
        rows = held + torch.randint(len(x) - held, (256,), generator=draw)
        loss = (stands[rows] * (net(inputs[rows]) - labels[rows]) ** 2).mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
        fade.step()
    with torch.no_grad():
        missed = float((stands[:held] * (net(inputs[:held]) - labels[:held]) ** 2).mean().sqrt())
    linear = [m for m in net if isinstance(m, torch.nn.Linear)]
    layers = tuple((m.weight.detach().double().numpy(), m.bias.detach().double().numpy()) for m in linear)
    return Network(layers, mean, deviation), missed


def judged(make: Callable[[], Controller], robot: Quadruped, engine: str, settings: Settings) -> dict[str, Any]:
    """Walks on the judge's commands."""
    rng, rows = np.random.default_rng(JUDGED), []
    world = course("flat", robot.add_to(World()))
    model = world.compile(dt=DT)
    for _ in range(settings.walks):
        plant: Plant = MujocoPlant(robot, world) if engine == "mujoco" else OwnPlant(robot, model)
        rows.append(walk(make(), plant, command_of(rng), settings.seconds).marks())
    names = ("velocity_error", "turn_error", "roll", "pitch", "power", "p50_ms", "p99_ms")
    return {"falls": sum(r["fell"] for r in rows), "walks": rows} | {n: _mean(r[n] for r in rows) for n in names}


def _mean(values: Iterable[float | None]) -> float | None:
    """Of walks that were long enough to be measured."""
    known = [v for v in values if v is not None]
    return float(np.mean(known)) if known else None


def run(settings: Settings, out: Path, say: Callable[[str], None] = print) -> dict[str, Any]:
    """The whole experiment; what is finished in the folder is not done again."""
    robot, kept = quadruped(settings.robot), Kept(out, "mpc-imitation", asdict(settings), say)
    names = ["imitation", *(f"dagger {k + 1}" for k in range(settings.rounds))]
    _learn(robot, names, settings, out, kept, say)
    pupils = {"imitation": names[0], "DAgger": names[-1]}
    makers: dict[str, Callable[[], Controller]] = {
        "QP (proxsuite)": partial(ConvexMPC, robot),
        "QP (OSQP, released)": partial(ConvexMPC, robot, solver="osqp", horizon="frozen", whole=True),
    }
    for label, name in pupils.items():
        makers[label] = partial(NetworkMPC, robot, network=load_network(_file(out, name)))
    for engine in ("jointgrad", "mujoco"):
        for label, make in makers.items():
            found = kept.part(f"{label}, {engine}", partial(judged, make, robot, engine, settings))
            say(_row(f"{label}, {engine}", found, settings.walks))
    _draw({k: v for k, v in kept.parts.items() if "falls" in v and "walks" in v}, out)
    return kept.said


def _draw(rows: dict[str, dict[str, Any]], out: Path) -> None:
    """Error of every walk, and how long a plan takes, one line per controller and engine."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 1.2 + 0.45 * len(rows)), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for k, (name, row) in enumerate(rows.items()):
        color = "tab:orange" if name.endswith("mujoco") else "tab:blue"
        errors = [w["velocity_error"] for w in row["walks"] if w["velocity_error"] is not None]
        left.plot(errors, len(errors) * [k], "o", color=color, alpha=0.4)
        if errors:
            left.plot(row["velocity_error"], k, "|", color="black", markersize=14)
        right.barh(k, row["p50_ms"], color=color)
    left.set_yticks(range(len(rows)), [f"{name} ({row['falls']} falls)" for name, row in rows.items()])
    left.invert_yaxis()
    left.set_xlabel("error in speed of each walk, m/s")
    right.set_xlabel("a plan takes, ms (median)")
    figure.savefig(out / "walks.png", dpi=120)


def _learn(
    robot: Quadruped, names: list[str], settings: Settings, out: Path, kept: Kept, say: Callable[[str], None]
) -> None:
    """One network after the other; lessons of a round that was finished are in its file."""
    lessons = Lessons()
    for k, name in enumerate(names):
        data = out / f"{name.replace(' ', '_')}_lessons.npz"
        if name in kept.parts and data.exists() and _file(out, name).exists():
            with np.load(data, allow_pickle=False) as file:
                lessons.seen, lessons.taught = list(file["seen"]), list(file["taught"])
            continue
        teacher = None if k == 0 else load_network(_file(out, names[k - 1]))
        falls = lessons.collect(robot, teacher, settings.transitions // (3 if k else 1), 1000 * settings.seed + k)
        network, missed = fit(lessons, settings)
        network.save(_file(out, name))
        np.savez(data, seen=np.array(lessons.seen), taught=np.array(lessons.taught))
        kept.parts.pop(name, None)
        kept.part(name, partial(dict, lessons=len(lessons.seen), falls=falls, missed=missed))
        say(
            f"{name}: {len(lessons.seen)} lessons, forces off by {100 * missed:.2f} % of the weight; {falls} falls while collecting"
        )


def _file(out: Path, name: str) -> Path:
    return out / f"{name.replace(' ', '_')}.npz"


def _row(label: str, found: dict[str, Any], walks: int) -> str:
    said = {k: f"{v:.3f}" if isinstance(v, float) else "-" for k, v in found.items()}
    return (
        f"{label}: {found['falls']} falls of {walks}, off by {said['velocity_error']} m/s and {said['turn_error']} rad/s,"
        f" {said['power']} W, a plan takes {said['p50_ms']} ms (99 %: {said['p99_ms']})"
    )
