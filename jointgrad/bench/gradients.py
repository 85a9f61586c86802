"""Suite `gradients`: three workloads (NeuralSim, figure 5) by exact gradients, by differences, by autodiff frameworks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .peers import Record
from .results import Table, Verdict, duration, times, where
from .suite import Job, Plan, Suite

WORKLOADS = {
    "network": "network of 175 weights, one evaluation",
    "pendulum": "five-link pendulum falls on the ground, 5,000 steps",
    "double pendulum": "double pendulum, 500 steps",
}
NOTE = (
    "Time of one whole gradient, called from Python. Differences are central, of our own compiled forward run, all parameters of "
    'a motion in one batch. The network is written in each framework as one would write it there. "Our physics in" PyTorch and JAX '
    "is our own step without our compiler, differentiated by them; JAX is compiled where XLA can. The paper's "
    "figure is not printed in numbers. Where fewer steps were run, the time is scaled up in proportion."
)


def jobs(plan: Plan) -> list[Job]:
    task = {
        "suite": "gradients", "cores": 1, "scene": str(plan.scene), "repeats": 3 if plan.is_quick else 7,
        "seconds": 10 if plan.is_quick else 30, "most_steps": 20 if plan.is_quick else 5000, "check_steps": 100,
    }  # fmt: skip
    return [Job(peer, task) for peer in ("ours", "plain_torch", "plain_jax")]


def whole(records: Sequence[Record], r: Record) -> float:
    """Microseconds of the whole gradient, from those of fewer steps."""
    return r["best_us"] * share(records, r)


def share(records: Sequence[Record], r: Record) -> float:
    """How many times more steps the whole has than what was run."""
    longest = max(
        (x["steps"] for x in where(records, peer="ours", workload=r["workload"]) if x.get("steps")), default=None
    )
    return longest / r["steps"] if longest and r.get("steps") else 1.0


def exact_of(records: Sequence[Record], workload: str) -> Record | None:
    return next(iter(where(records, peer="ours", workload=workload, method="exact", status="measured")), None)


# the network has no physics: there they are themselves
NETWORK_LABELS = {"plain_torch": "PyTorch, autograd", "plain_jax": "JAX, jit of grad", "ours": "jointgrad's compiler"}


def label(r: Record) -> str:
    title: str = NETWORK_LABELS.get(r["peer"]) or r["title"] if r["workload"] == "network" else r["title"]
    return f"{title}, {r['method']}" if r["peer"] == "ours" else title


def tables(records: Sequence[Record]) -> list[Table]:
    rows = []
    for workload, words in WORKLOADS.items():
        ours = exact_of(records, workload)
        for r in where(records, workload=workload):
            if r["status"] == "skipped":
                rows.append((words, label(r), "-", "-", r["reason"]))
                continue
            scaled = " (scaled)" if share(records, r) != 1.0 else ""
            over = times(whole(records, r) / whole(records, ours)) if ours and r is not ours else ""
            rows.append((words, label(r), over, duration(whole(records, r)) + scaled, r["check"]))
    return [Table("Gradients three ways", ("", "", "times ours", "one gradient", "checked"), rows, NOTE)]


def verdicts(records: Sequence[Record]) -> list[Verdict]:
    found = []
    for r in where(records, status="measured"):
        ours = exact_of(records, r["workload"])
        if ours and r is not ours:
            words = f"gradients, {WORKLOADS[r['workload']]}, beside {label(r)}"
            found.append(Verdict(words, whole(records, r) / whole(records, ours)))
    return found


def draw(records: Sequence[Record], folder: Path) -> list[Path]:
    from . import pictures

    panels = []
    for workload, words in WORKLOADS.items():
        bars = [
            (label(r), whole(records, r), "ours" if r.get("method") == "exact" else "peer")
            for r in where(records, workload=workload, status="measured")
        ]
        if bars:
            panels.append((words, bars, duration))
    return [pictures.draw_bars(panels, folder / "gradients.png", "One gradient: less is better, one tick is tenfold")]


SUITE = Suite(
    "gradients", "a network and two pendulums, by exact gradients, differences and autodiff (NeuralSim, figure 5)",
    jobs, tables, draw, verdicts, lambda plan: None, note=NOTE,
)  # fmt: skip
