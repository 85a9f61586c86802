"""Suite `robots`: how time and memory grow with robots in a world, with steps, and with worlds (Qiao 2021, figure 3)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .fit import exponent
from .peers import Record
from .results import Table, Verdict, duration, size, times, where
from .scene import DT, released, world_of, write_laikago
from .suite import Job, Plan, Suite

ROBOTS, STEPS = (1, 2, 5, 10, 20, 50, 100), (1000, 2000, 3000, 4000, 5000)
BATCHES = (1, 4, 16, 64, 256, 1024, 4096)
# robots, steps, batch of each part; None is what varies
SHAPE = {"robots": (None, 100, 1), "steps": (10, None, 1), "batch": (1, 100, None)}
TITLES = {
    "robots": "Laikagos in one world, 100 steps",
    "steps": "ten Laikagos in one world, by number of steps",
    "batch": "one Laikago, 100 steps, by batch",
}
COLUMNS = ("forward_us", "backward_us", "memory_per_robot_step")
NOTE = (
    "Per robot and step. The exponent is the slope of the whole cost against size, both as logarithms: 1 is proportional. "
    "Qiao 2021 prints 5 kB per step for its ten robots, 0.5 kB per robot and step."
)


def counts_of(plan: Plan) -> tuple[int, ...]:
    return (1, 2, 5) if plan.is_quick else ROBOTS


def write_scene(plan: Plan) -> None:
    """One MJCF file for each number of robots, for MuJoCo."""
    import json

    import jointgrad as jg

    folder = plan.scene
    write_laikago(folder)
    for count in counts_of(plan):
        world = world_of(count)
        q, targets = released(world.compile(dt=DT))
        (folder / f"robots{count}.xml").write_text(jg.to_mjcf(world))
        (folder / f"robots{count}.json").write_text(json.dumps({"q": q.tolist(), "targets": targets.tolist()}))


def jobs(plan: Plan) -> list[Job]:
    parts = {"robots": list(counts_of(plan)), "steps": [50, 100], "batch": [1, 8, 16]} if plan.is_quick else {
        "robots": list(ROBOTS), "steps": list(STEPS), "batch": list(BATCHES),
    }  # fmt: skip
    shape = (
        dict(SHAPE) if not plan.is_quick else {"robots": (None, 20, 1), "steps": (2, None, 1), "batch": (1, 20, None)}
    )
    task = {
        "suite": "robots", "cores": 1, "parts": parts, "shape": shape, "scene": str(plan.scene),
        "repeats": 3 if plan.is_quick else 5, "seconds": 5 if plan.is_quick else 60,
    }  # fmt: skip
    return [Job(peer, task, 600.0) for peer in ("ours", "mujoco")]


def tables(records: Sequence[Record]) -> list[Table]:
    return [table(records, part) for part in SHAPE if where(records, peer="ours", part=part)]


def growth(records: Sequence[Record], key: str) -> str:
    """Exponent of the whole cost, from its share per robot and step."""
    mine = [r for r in records if r.get(key)]
    if len(mine) < 2:
        return "-"
    whole = [r[key] * r["robots"] * r["steps"] * r["batch"] for r in mine]
    return f"{exponent([r['size'] for r in mine], whole):.2f}"


def table(records: Sequence[Record], part: str) -> Table:
    ours = where(records, peer="ours", part=part, status="measured")
    theirs = {r["size"]: r for r in where(records, peer="mujoco", part=part, status="measured")}
    rows: list[tuple[str, ...]] = []
    for r in ours:
        rival = theirs.get(r["size"])
        compared = (
            ("-", "-")
            if rival is None
            else (duration(rival["forward_us"]), times(rival["forward_us"] / r["forward_us"]))
        )
        cells = duration(r["forward_us"]), duration(r["backward_us"]), size(r["memory_per_robot_step"])
        rows.append((f"{r['size']:,}", *cells, *compared))
    slopes = [growth(ours, key) for key in COLUMNS]
    rows.append(("exponent", *slopes, growth(list(theirs.values()), "forward_us"), ""))
    head = (part, "forward", "backward", "memory", "MuJoCo forward", "theirs / ours")
    return Table(f"Growth: {TITLES[part]}", head, rows, NOTE)


def verdicts(records: Sequence[Record]) -> list[Verdict]:
    found = []
    for r in where(records, peer="mujoco", status="measured"):
        for ours in where(records, peer="ours", status="measured", part=r["part"], size=r["size"]):
            words = f"robots, forward beside MuJoCo: {TITLES[r['part']]}, {r['size']:,}"
            found.append(Verdict(words, r["forward_us"] / ours["forward_us"]))
    return found


def draw(records: Sequence[Record], folder: Path) -> list[Path]:
    from . import pictures

    panels = []
    for part in SHAPE:
        lines: list[pictures.Line] = []
        for peer, key, label, style, colour in (
            ("ours", "forward_us", "jointgrad, forward", "o-", pictures.OURS),
            ("ours", "backward_us", "jointgrad, backward", "s--", pictures.SECOND),
            ("mujoco", "forward_us", "MuJoCo, forward", "^:", pictures.COLOURS["peer"]),
        ):  # fmt: skip
            mine = [r for r in where(records, peer=peer, part=part, status="measured") if key in r]
            if mine:
                lines.append((label, [r["size"] for r in mine], [r[key] for r in mine], style, colour))
        panels.append((TITLES[part], part, "µs per robot and step", lines))
    title = "Cost per robot and step: flat is proportional growth, lower is better"
    return [pictures.draw_lines(panels, folder / "robots.png", title)]


SUITE = Suite(
    "robots", "1 to 100 Laikagos in one world, 1,000 to 5,000 steps, batches to 4,096 (Qiao 2021, figure 3)",
    jobs, tables, draw, verdicts, write_scene, note=NOTE,
)  # fmt: skip
