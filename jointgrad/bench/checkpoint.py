"""Suite `checkpoint`: fewer states kept, more steps repeated (Qiao 2021, figure 8 and eqs. 17-18)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .fit import backward_time, peak_memory
from .peers import Record
from .results import Table, Verdict, duration, size, where
from .suite import Job, Plan, Suite

INTERVALS = (1, 2, 5, 10, 20, 50, 100)
SLOTS = (5, 10, 20, 50)
TITLES = {
    "stored": "every k-th state kept, those between stored once when needed",
    "resumed": "every k-th state kept, each step resumed from there (as Qiao 2021)",
    "binomial": "k states in all, binomially placed (Griewank and Walther 2000)",
}
NOTE = (
    "Ten Laikagos, one core, time per step of all ten. Eqs. 17-18 take t_forward as measured, t_backward from k = 1, one "
    "checkpoint as the bytes of a state, and m_simulation from the largest k. They describe the way of Qiao 2021, `resumed`; "
    "ours, `stored`, repeats each step once whatever k. Memory: growth at the peak in a new copy of the process, least of three."
)


def jobs(plan: Plan) -> list[Job]:
    intervals = [1, 5, 10] if plan.is_quick else list(INTERVALS)
    task = {
        "suite": "checkpoint", "cores": 1, "steps": 100 if plan.is_quick else 5000, "scene": str(plan.scene),
        "ways": {"stored": intervals, "resumed": intervals, "binomial": [5, 10] if plan.is_quick else list(SLOTS)},
        "repeats": 3, "most_repeated": 10, "seconds": 5 if plan.is_quick else 120,
    }  # fmt: skip
    return [Job("ours", task, 900.0)]


def predicted(records: Sequence[Record], r: Record) -> tuple[float, float]:
    """Time (us) and memory (bytes) of eqs. 17 and 18."""
    all_kept = where(records, way="stored", size=1)[0]
    forward = all_kept["forward_us"]
    fewest = max(where(records, way="resumed") or where(records, way="stored"), key=lambda x: x["size"])
    simulation = max(0.0, fewest["memory_bytes"] - fewest["state_bytes"] * fewest["steps"] / fewest["size"])
    time = backward_time(r["size"], forward, all_kept["backward_us"] - forward)
    return time, peak_memory(r["size"], r["steps"], r["state_bytes"], simulation)


def tables(records: Sequence[Record]) -> list[Table]:
    return [table(records, way) for way in TITLES if where(records, way=way)]


def table(records: Sequence[Record], way: str) -> Table:
    rows, base = [], where(records, way="stored", size=1)[0]["backward_us"]
    for r in where(records, way=way, status="measured"):
        time, memory = predicted(records, r)
        theory = ("-", "-") if way == "binomial" else (duration(time), size(memory))
        slower = f"{r['backward_us'] / base:.2f}x"
        rows.append((str(r["size"]), duration(r["backward_us"]), slower, theory[0], size(r["memory_bytes"]), theory[1]))
    head = ("k", "backward", "over k = 1", "eq. 17", "memory", "eq. 18")
    return Table(f"Checkpoints, {base_words(records)}: {TITLES[way]}", head, rows, NOTE)


def base_words(records: Sequence[Record]) -> str:
    return f"{where(records, status='measured')[0]['steps']:,} steps"


def verdicts(records: Sequence[Record]) -> list[Verdict]:
    """Beside the way of the paper, at the same interval."""
    found = []
    for r in where(records, way="resumed", status="measured"):
        for ours in where(records, way="stored", size=r["size"]):
            if r["size"] > 1:
                words = f"checkpoints, backward beside the paper's way, interval {r['size']}"
                found.append(Verdict(words, r["backward_us"] / ours["backward_us"]))
    return found


def draw(records: Sequence[Record], folder: Path) -> list[Path]:
    from . import pictures

    resumed = where(records, way="resumed", status="measured")
    theory = [predicted(records, r) for r in resumed]
    k = [r["size"] for r in resumed]
    time: list[pictures.Line] = [("eq. 17", k, [t / 1e3 for t, _ in theory], ":", pictures.THEORY)]
    memory: list[pictures.Line] = [("eq. 18", k, [m / 1e6 for _, m in theory], ":", pictures.THEORY)]
    both: list[pictures.Line] = []
    looks = {
        "stored": ("o-", pictures.OURS),
        "resumed": ("s--", pictures.COLOURS["peer"]),
        "binomial": ("^-", pictures.THIRD),
    }
    for way, look in looks.items():
        mine = where(records, way=way, status="measured")
        sizes, times_ms = [r["size"] for r in mine], [r["backward_us"] / 1e3 for r in mine]
        grown = [max(r["memory_bytes"], 1) / 1e6 for r in mine]
        both.append((way, grown, times_ms, *look))
        if way != "binomial":
            time.append((way, sizes, times_ms, *look))
            memory.append((way, sizes, grown, *look))
    panels = [
        ("time of going back", "interval k", "ms per step", time),
        ("memory at its peak", "interval k", "MB", memory),
        ("what memory buys", "MB", "ms per step", both),
    ]
    title = "Ten Laikagos: keeping fewer states (left and middle: by interval; right: lower left is better)"
    return [pictures.draw_lines(panels, folder / "checkpoint.png", title)]


SUITE = Suite(
    "checkpoint", "ten Laikagos, 5,000 steps: time against memory (Qiao 2021, figure 8, eqs. 17-18)",
    jobs, tables, draw, verdicts, lambda plan: None, note=NOTE,
)  # fmt: skip
