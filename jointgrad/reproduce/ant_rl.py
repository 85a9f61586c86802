"""An ant that learns with samples made about those it tried: Qiao 2021, figure 5. Areas under curves, paired by seed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .kept import Kept
from .learned import IDLE, RIVALS, Run, area, at, interval, outcome

METHODS = (*IDLE, "sac", "mbpo", "mbpo-samples", "mbpo-row", "mbpo-policy", "shac", *RIVALS)
EPISODES, PARTS = 8, 3


@dataclass(frozen=True)
class Plan:
    seeds: tuple[int, ...]
    steps: int
    methods: tuple[str, ...] = METHODS

    def run(self, method: str, seed: int) -> Run:
        changes = {"every": max(1, self.steps // 12_800)} if method == "shac" else {}
        return Run("ant", method, seed, self.steps, changes=changes, episodes=EPISODES)


def reproduce(plan: Plan, out: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """All runs that are missing, the table and the picture."""
    kept = Kept(out, "ant-rl", {"steps": plan.steps}, say)
    for seed in plan.seeds:
        for method in plan.methods:
            run = plan.run(method, seed)
            kept.part(run.name, functools.partial(outcome, run, out, say))
    curves = {m: [kept.parts[plan.run(m, seed).name] for seed in plan.seeds] for m in plan.methods}
    kept.write(plan=asdict(plan), table=table(plan, curves), differences=differences(plan, curves))
    for line in (*lines(kept.said["table"]), *in_words(kept.said["differences"])):
        say(line)
    draw(curves, out / "curves.png")
    return kept.said


def marks(plan: Plan) -> list[float]:
    return [plan.steps * (k + 1) / PARTS for k in range(PARTS)]


def table(plan: Plan, curves: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    quickest = min((x["cpu_seconds"] for m, own in curves.items() for x in own if m not in IDLE), default=0.0)
    rows = []
    for method, own in curves.items():
        areas = [[area(x["curve"], most) for most in marks(plan)] for x in own]
        rows.append({
            "method": method, "areas": areas, "finals": [x["final"] for x in own], "distances": [x["distance"] for x in own],
            "falls": [x["falls"] for x in own], "same_time": [at(x["curve"], 1, quickest) for x in own], "quickest": quickest,
            "env_steps": own[0]["env_steps"], "cpu_seconds": float(np.mean([x["cpu_seconds"] for x in own])),
        })  # fmt: skip
    return rows


def differences(plan: Plan, curves: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Of areas up to the end, by seed, with intervals where there are seeds enough."""
    found = {}
    pairs = [(a, b) for a in ("mbpo-samples", "mbpo-row", "mbpo-policy") for b in ("mbpo", "sac")]
    for a, b in pairs:
        if a in curves and b in curves:
            ends = [[area(x["curve"], plan.steps) or 0.0 for x in curves[m]] for m in (a, b)]
            apart = [x - y for x, y in zip(*ends, strict=True)]
            found[f"{a} - {b}"] = {"by_seed": apart, "interval": interval(apart)}
    return found


def lines(rows: list[dict[str, Any]]) -> list[str]:
    def mean(values: list[Any]) -> str:
        known = [x for x in values if x is not None]
        return f"{np.mean(known):.1f}" if known else "-"

    found = [
        "| method | area to 1/3 | to 2/3 | to the end | final return | m | falls | at equal seconds | actions | CPU s |"
    ]
    found.append("|" + "---|" * 10)
    for r in rows:
        areas = " | ".join(mean([a[k] for a in r["areas"]]) for k in range(PARTS))
        found.append(
            f"| {r['method']} | {areas} | {mean(r['finals'])} | {mean(r['distances'])} | {sum(r['falls'])} | "
            f"{mean(r['same_time'])} | {r['env_steps']:,} | {r['cpu_seconds']:.0f} |"
        )
    return found


def in_words(apart: dict[str, Any]) -> list[str]:
    found = ["SQL, a reference curve of the paper's, is left out. Differences of areas to the end, by seed:"]
    for pair, said in apart.items():
        values = ", ".join(f"{x:+.1f}" for x in said["by_seed"])
        known = said["interval"]
        found.append(
            f"{pair}: {values}" + ("" if known is None else f"; 95 % of means {known[0]:+.1f} to {known[1]:+.1f}")
        )
    return found


def draw(curves: dict[str, list[dict[str, Any]]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for k, (method, own) in enumerate(curves.items()):
        for j, x in enumerate(own):
            if x["curve"]:
                label = method if j == 0 else None
                axes.plot([r[0] for r in x["curve"]], [r[2] for r in x["curve"]], color=f"C{k % 10}", label=label)
    axes.set(xlabel="actions", ylabel="return of an episode")
    axes.legend(fontsize=7)
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)
