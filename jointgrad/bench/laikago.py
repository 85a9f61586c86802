"""Suite `laikago`: one robot, released above the ground, then standing on four feet (Qiao 2021, tables 1-3)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .peers import Record
from .printed import laikago_records
from .results import Table, Verdict, duration, size, times, where
from .scene import write_laikago
from .suite import Job, Plan, Suite

STEPS = (50, 100, 500, 1000, 5000)
# what a soft contact may sink in, and how far a gradient may be from its own differences (in 32 bits, for some)
HEIGHT_TOLERANCE, GRADIENT_TOLERANCE = 0.01, 0.02
BATCH = 256
# who can run many robots at once
BATCHED = ("ours", "mujoco", "mjx")
SINGLE = ("ours_air", "pinocchio", "nimble", "drake", "tinydiffsim", "newton", "genesis")
PLAIN = {"plain_torch": 2, "plain_jax": 1}
# seconds for measuring, after compiling and checks, and repeats at most: what would not end in this time is not begun, and the
# table says "too long". Those who take microseconds get more, since there a per cent counts
PACE = {"ours": (100, 7), "ours_air": (20, 7), "mujoco": (100, 7), "pinocchio": (20, 7), "plain_torch": (10, 3),
        "plain_jax": (10, 3), "others": (25, 5)}  # fmt: skip
# seconds after which a contestant is stopped, whatever it does; what it had said by then stays
MOST = {"mjx": 1200.0, "genesis": 600.0, "plain_jax": 60.0, "plain_torch": 90.0, "others": 300.0}
NO_CONTACT = ("ours_air", "pinocchio")
NOTE = (
    "Time per robot and step, best of repeats: processor time on one pinned core, wall time on two. Memory: growth of the process "
    "at its peak over a whole gradient. Ratios are theirs over ours at the same batch: above 1 we are ahead."
)


def jobs(plan: Plan) -> list[Job]:
    """Most of the time goes to Genesis and to MJX, which has to be compiled (what JAX compiled is kept for the next process)."""
    steps = [50, 100] if plan.is_quick else list(STEPS)
    task = {
        "suite": "laikago", "steps": steps, "height_tolerance": HEIGHT_TOLERANCE, "gradient_tolerance": GRADIENT_TOLERANCE,
        "scene": str(plan.scene),
    }  # fmt: skip
    batch = 16 if plan.is_quick else BATCH

    def job(peer: str, **more) -> Job:
        seconds, repeats = PACE.get(peer, PACE["others"])
        pace = {"seconds": 5, "repeats": 3} if plan.is_quick else {"seconds": seconds, "repeats": repeats}
        return Job(peer, task | pace | more, MOST[peer] if peer in MOST else MOST["others"])

    found = [job(peer, cores=1, batches=[1, batch]) for peer in BATCHED]
    found += [job(peer, cores=2, batches=[batch]) for peer in BATCHED]
    found += [job(peer, cores=1, batches=[1]) for peer in SINGLE]
    # one step takes seconds: a few are enough to know what one costs, and that fifty would take too long
    return found + [job(peer, cores=1, batches=[1], steps=[few, *steps]) for peer, few in PLAIN.items()]


# tables ---------------------------------------------------------------------------------------------------------------


def settings_in(records: Sequence[Record]) -> list[tuple[int, int]]:
    """(batch, cores) of what was measured, as we were."""
    return sorted({(r["batch"], r["cores"]) for r in where(records, peer="ours", status="measured")})


def tables(records: Sequence[Record]) -> list[Table]:
    found = [summary(records)]
    for what, words in (("forward", "Forward"), ("backward", "Backward")):
        found.append(
            by_steps(records, what, f"{words}: time per robot and step, by number of steps", "best_us", duration)
        )
    found.append(by_steps(records, "backward", "Memory of a whole gradient, by number of steps", "memory_bytes", size))
    return [*found, checks(records)]


def name_of(title: str, batch: int, cores: int) -> str:
    return title + (f", batch {batch}" if batch > 1 else "") + (f", {cores} cores" if cores > 1 else "")


def rows_of(records: Sequence[Record]) -> list[tuple[str, str, int, int]]:
    """(peer, title, batch, cores) in order: measured first, printed last."""
    known = [r for r in records if r["status"] in ("measured", "printed", "skipped")]
    found = dict.fromkeys((r["peer"], r["title"], r["batch"], r["cores"]) for r in known)
    return sorted(found, key=lambda row: row[0].startswith("printed"))


def by_steps(records: Sequence[Record], what: str, title: str, key: str, shown) -> Table:
    steps = sorted({r["steps"] for r in where(records, peer="ours", what=what)})
    rows = []
    for peer, name, batch, cores in rows_of(records):
        mine = where(records, peer=peer, what=what, batch=batch, cores=cores)
        cells = [_cell(where(mine, steps=n), key, shown) for n in steps]
        if any(cells):
            rows.append((name_of(name, batch, cores), *(c or "-" for c in cells)))
    return Table(title, ("", *(f"{n:,} steps" for n in steps)), rows)


def _cell(found: list[Record], key: str, shown) -> str:
    if not found:
        return ""
    last = found[-1]
    if last["status"] == "skipped":
        return "too long"
    return shown(last[key]) + ("" if last.get("ok", True) else " (wrong)") if key in last else ""


def reference_steps(records: Sequence[Record]) -> int:
    """The length at which ratios are formed: 1,000 steps, or the longest there is."""
    steps = {r["steps"] for r in where(records, peer="ours", status="measured")}
    return 1000 if 1000 in steps else max(steps)


def figure_of(records: Sequence[Record], key: str, **which) -> Record | None:
    """Of a contestant at the reference length, or at its own longest where it did not get so far."""
    steps = reference_steps(records)
    mine = [
        r
        for r in where(records, **which)
        if r["status"] in ("measured", "printed") and key in r and r["steps"] <= steps
    ]
    return max(mine, key=lambda r: r["steps"], default=None)


def rival_of(peer: str) -> str:
    """Who of us is compared: in the air, or on the ground."""
    return "ours_air" if peer in NO_CONTACT else "ours"


def ratio(records: Sequence[Record], peer: str, what: str, key: str, batch: int, cores: int) -> float | None:
    theirs = figure_of(records, key, peer=peer, what=what, batch=batch, cores=cores)
    ours = figure_of(records, key, peer=rival_of(peer), what=what, batch=batch, cores=cores)
    if theirs is None or ours is None:
        return None
    if key == "memory_bytes":  # of different lengths, in the worst case: per step
        return (theirs[key] / theirs["steps"]) / (max(ours[key], 4096) / ours["steps"])
    return theirs[key] / ours[key]


FIGURES = (("forward", "best_us", duration), ("backward", "best_us", duration), ("backward", "memory_bytes", size))


def summary(records: Sequence[Record]) -> Table:
    """Ratios first: everyone over us, at the same batch and number of cores."""
    rows = []
    for peer, title, batch, cores in rows_of(records):
        cells = []
        for what, key, shown in FIGURES:
            mine = figure_of(records, key, peer=peer, what=what, batch=batch, cores=cores)
            over = ratio(records, peer, what, key, batch, cores)
            cells.append("" if over is None or peer == rival_of(peer) else times(over))
            cells.append("-" if mine is None else shown(mine[key]) + ("" if mine.get("ok", True) else " (wrong)"))
        rows.append((name_of(title, batch, cores), *cells))
    head = ("", "forward", "per step", "backward", "per step", "memory", "in all")
    return Table(f"One Laikago, {reference_steps(records):,} steps: times as much as ours", head, rows, NOTE)


def checks(records: Sequence[Record]) -> Table:
    """What was found right before the clock started, and what a reader must know of each."""
    rows = {}
    for r in where(records, status="measured", cores=1):
        longest = max(x["steps"] for x in where(records, status="measured", peer=r["peer"], what=r["what"]))
        few = f"{longest} steps only" if longest < reference_steps(records) else ""
        rows[r["title"], r["what"]] = "; ".join(w for w in (r["check"], r["note"], few) if w)
    return Table("Checked before timing", ("", "", ""), [(title, what, words) for (title, what), words in rows.items()])


# verdicts and pictures ------------------------------------------------------------------------------------------------


def verdicts(records: Sequence[Record]) -> list[Verdict]:
    """Every live peer whose check was passed, forward, backward and memory."""
    found = []
    named = {
        "forward": ("best_us", "forward"),
        "backward": ("best_us", "backward"),
        "memory": ("memory_bytes", "backward"),
    }
    for peer, title, batch, cores in rows_of(records):
        mine = where(records, peer=peer, batch=batch, cores=cores, status="measured")
        if peer == rival_of(peer) or not mine:
            continue
        for words, (key, what) in named.items():
            over = ratio(records, peer, what, key, batch, cores)
            if over is not None and all(r["ok"] for r in where(mine, what=what)):
                found.append(Verdict(f"Laikago, {words}, beside {name_of(title, batch, cores)}", over))
    return found


def draw(records: Sequence[Record], folder: Path) -> list[Path]:
    from . import pictures

    def bars(what: str, key: str) -> list[tuple[str, float, str]]:
        found = []
        for peer, title, batch, cores in rows_of(records):
            mine = figure_of(records, key, peer=peer, what=what, batch=batch, cores=cores)
            if mine is not None:
                kind = "ours" if peer.startswith("ours") else "printed" if mine["status"] == "printed" else "peer"
                kind = kind if mine.get("ok", True) else "wrong"
                value = mine[key] / mine["steps"] / batch if key == "memory_bytes" else mine[key]
                found.append((name_of(title, batch, cores), max(value, 1e-3), kind))
        return found

    panels = [
        ("forward, per robot and step", bars("forward", "best_us"), duration),
        ("backward, per robot and step", bars("backward", "best_us"), duration),
        ("memory of the gradient, per robot and step", bars("backward", "memory_bytes"), size),
    ]
    return [pictures.draw_bars(panels, folder / "laikago.png", "One Laikago: less is better, one tick is tenfold")]


SUITE = Suite(
    "laikago", "one Laikago, 50 to 5,000 steps: time and memory beside all peers (Qiao 2021, tables 1-3)",
    jobs, tables, draw, verdicts, lambda plan: write_laikago(plan.scene), laikago_records(), NOTE,
)  # fmt: skip
