"""Policies for the n-link pendulum: Qiao 2021, table 4. Final returns and the best ones, judged by a scorer of its own code."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .chain_scorer import score
from .kept import Kept
from .learned import IDLE, RIVALS, Run, at, outcome
from .pendulum import PAPER, TORQUE_LIMIT

METHODS = (*IDLE, "apg", "sac", "mbpo", "mbpo-policy", "sac-policy", "mbpo-samples", *RIVALS)
# table 4: mean of the best returns of ten seeds
PAPER_MBPO = (0.49, 1.90, 4.28, 7.50, 11.13, 15.02, 19.97)
APG_UPDATES, APG_STEPS = (100, 50), 3200  # of whole episodes: at least, more for every link; and actions of one
EPOCH = 100


@dataclass(frozen=True)
class Plan:
    n: tuple[int, ...]
    seeds: tuple[int, ...]
    epochs: int  # per link
    methods: tuple[str, ...] = METHODS

    def run(self, n: int, method: str, seed: int) -> Run:
        if method == "apg":
            updates = APG_UPDATES[0] + n * APG_UPDATES[1]
            return Run("pendulum", method, seed, updates * APG_STEPS, {"links": n}, {"decay": updates})
        return Run("pendulum", method, seed, self.epochs * EPOCH * n, {"links": n})


def reproduce(plan: Plan, out: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """All runs that are missing, and the table. The shortest come first, so that what is finished can be compared."""
    kept = Kept(out, "pendulum-rl", {"epochs": plan.epochs}, say)
    for n in sorted(plan.n):
        for seed in plan.seeds:
            for method in plan.methods:
                run = plan.run(n, method, seed)
                kept.part(run.name, functools.partial(judged, run, out, say))
    rows = table(plan, kept.parts)
    kept.write(plan=asdict(plan), table=rows)
    for line in lines(rows):
        say(line)
    return kept.said


def judged(run: Run, out: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """What a run came to, with what the scorer says of the final policy's torques."""
    found = outcome(run, out, say)
    told = score(TORQUE_LIMIT * np.clip(np.array(found.pop("actions")), -1.0, 1.0))
    return found | {"scored": told._asdict()}


def table(plan: Plan, parts: dict[str, Any]) -> list[dict[str, Any]]:
    """One row per number of links and method: means over seeds, and all of them."""
    rows = []
    for n in sorted(plan.n):
        quickest = _quickest(plan, parts, n)
        for method in plan.methods:
            own = [parts[plan.run(n, method, seed).name] for seed in plan.seeds]
            rows.append(_row(n, method, own, quickest))
    return rows


def _quickest(plan: Plan, parts: dict[str, Any], n: int) -> float:
    """Seconds of processor that the quickest method took: at which all can be compared."""
    some = [
        parts[plan.run(n, m, seed).name]["cpu_seconds"] for m in plan.methods for seed in plan.seeds if m not in IDLE
    ]
    return min(some, default=0.0)


def _row(n: int, method: str, own: Sequence[dict[str, Any]], quickest: float) -> dict[str, Any]:
    finals, best = [x["final"] for x in own], [x["best"] for x in own]
    same_time = [at(x["curve"], 1, quickest) for x in own]
    return {
        "n": n, "method": method, "maximum": n * n / 2, "final": float(np.mean(finals)), "finals": finals,
        "best": float(np.mean(best)), "deviation": float(np.std(best)), "bests": best,
        "same_time": [x for x in same_time if x is not None], "quickest": quickest,
        "scored": float(np.mean([x["scored"]["returned"] for x in own])),
        "tip_error": float(np.mean([x["scored"]["tip_error"] for x in own])),
        "energy_error": float(np.max([x["scored"]["energy_error"] for x in own])),
        "env_steps": own[0]["env_steps"], "cpu_seconds": float(np.mean([x["cpu_seconds"] for x in own])),
        "paper": PAPER[n - 1] if method.endswith("-policy") else PAPER_MBPO[n - 1] if method == "mbpo" else None,
    }  # fmt: skip


def lines(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The table as Markdown; paired differences below it."""
    head = "| n | method | final | best | by the scorer | tip, m | at equal seconds | most | paper (best) | actions | CPU s |"
    found = [head, "|" + "---|" * 11]
    for r in rows:
        paper = "" if r["paper"] is None else f"{r['paper']:.2f}"
        same = f"{np.mean(r['same_time']):.3f}" if r["same_time"] else "-"
        found.append(
            f"| {r['n']} | {r['method']} | {r['final']:.3f} | {r['best']:.3f} | {r['scored']:.3f} | {r['tip_error']:.3f} | "
            f"{same} | "
            f"{r['maximum']:g} | {paper} | {r['env_steps']:,} | {r['cpu_seconds']:.0f} |"
        )
    found.append("SQL, a reference curve of the paper's, is left out. Paired differences of best returns, by seed:")
    for n in dict.fromkeys(r["n"] for r in rows):
        own = {r["method"]: r["bests"] for r in rows if r["n"] == n}
        for a in ("mbpo-policy", "sac-policy", "mbpo-samples"):
            if a in own and "mbpo" in own:
                apart = ", ".join(f"{x - y:+.3f}" for x, y in zip(own[a], own["mbpo"], strict=True))
                found.append(f"n = {n}, {a} - mbpo: {apart}")
    return found
