"""`jointgrad bench`: runs suites, shows what comes in, keeps everything, and stops cleanly when asked to."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as RichTable

from ..model.errors import InputError
from . import peers as contestants
from .catalogue import SUITES
from .peers import Peer, Record
from .results import Results, Table, duration, origin, troubles
from .suite import Plan, Suite


def chosen_peers(names: Sequence[str]) -> dict[str, Peer]:
    """Those that are named, and always ourselves; all of them where none is named."""
    known = contestants.load_peers()
    for name in names:
        if name not in known:
            raise InputError(f'there is no peer "{name}"; the names are {", ".join(known)}')
    return {k: v for k, v in known.items() if not names or k in names or k.startswith("ours")}


def install(names: Sequence[str], console: Console) -> int:
    """Make the environments of peers; the exit code is 1 if one would not be made."""
    failed = 0
    for peer in chosen_peers(names).values():
        reason = contestants.install(peer, lambda words: console.print(words, style="dim", highlight=False))
        where = contestants.python_of(peer)
        console.print(f"{peer.title}: {reason or where}", style="yellow" if reason else "", highlight=False)
        failed += bool(reason and peer.packages)
    return 1 if failed else 0


def run(names: Sequence[str], is_quick: bool, out: Path, peer_names: Sequence[str], console: Console) -> int:
    """Run suites one after the other; Ctrl-C ends with what was measured. Returns the exit code."""
    chosen = chosen_peers(peer_names)
    for name in names:
        results = Results(name, origin=origin())
        try:
            run_suite(SUITES[name], Plan(is_quick, out / "scene"), chosen, results, out / name, console)
            results.is_complete = True
        except KeyboardInterrupt:
            console.print(f"Interrupted: {len(results.records)} results of {name} are kept.", style="yellow")
        finish(SUITES[name], results, out / name, console)
        if not results.is_complete:
            return 130
    console.print(f"Tables, JSON, CSV and plots are in {out.resolve()}", soft_wrap=True, highlight=False)
    return 0


def run_suite(
    suite: Suite, plan: Plan, chosen: dict[str, Peer], results: Results, folder: Path, console: Console
) -> None:
    console.print(f"{suite.name}: {suite.about}", style="bold", highlight=False)
    began = time.perf_counter()
    plan.scene.mkdir(parents=True, exist_ok=True)
    suite.write_scene(plan)
    results.records += suite.printed
    jobs = [job for job in suite.jobs(plan) if job.peer in chosen]
    columns = TextColumn("{task.description}"), BarColumn(bar_width=20), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, TextColumn("{task.fields[last]}", style="dim"), console=console) as bars:
        bar = bars.add_task(suite.name, total=len(jobs), last="")
        for k, job in enumerate(jobs):
            said = f"{suite.name} {k + 1}/{len(jobs)}: {chosen[job.peer].title}{job.words}"
            # a line for each, which a log has too, where bars are not drawn
            bars.console.print(
                f"{said} (after {(time.perf_counter() - began) / 60:.1f} min)", style="dim", highlight=False
            )
            bars.update(bar, description=said)
            for record in contestants.run(chosen[job.peer], job.task, job.seconds):
                results.records.append(record)
                bars.update(bar, last=brief(record))
            results.origin["seconds"] = round(time.perf_counter() - began, 1)
            results.save(folder)
            bars.advance(bar)


def brief(record: Record) -> str:
    """One record in a few words."""
    if record["status"] != "measured":
        return f"{record['status']}: {record.get('reason', '')}"[:60]
    figure = duration(record["best_us"]) if "best_us" in record else ""
    return " ".join(str(x) for x in (record.get("what", ""), figure) if x)


def finish(suite: Suite, results: Results, folder: Path, console: Console) -> None:
    """Tables and plots of what there is, which may be only a part."""
    results.save(folder)
    if not any(r["peer"] == "ours" and r["status"] == "measured" for r in results.records):
        console.print(f"{suite.name}: nothing of ours was measured, so there is nothing to compare", style="yellow")
        print_tables([t for t in [troubles(results.records)] if t], console)
        return
    print_tables(all_tables(suite, results.records), console)
    for verdict in suite.verdicts(results.records):
        if verdict.is_behind:
            console.print(f"BEHIND: {verdict}", style="bold red", highlight=False)
    suite.draw(results.records, folder)


def all_tables(suite: Suite, records: Sequence[Record]) -> list[Table]:
    return [*suite.tables(records), *(t for t in [troubles(records)] if t)]


def print_tables(tables: Sequence[Table], console: Console) -> None:
    for table in tables:
        shown = RichTable(title=table.title, box=SIMPLE_HEAD, pad_edge=False, caption=table.note, title_justify="left")
        shown.caption_justify = "left"
        for k, head in enumerate(table.head):
            shown.add_column(head, justify="left" if k == 0 or k == len(table.head) - 1 else "right", overflow="fold")
        for row in table.rows:
            shown.add_row(*(escape(word) for word in row))
        console.print(shown, highlight=False)
