"""The page of results for docs: written from what a run left behind, so that no figure is typed by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..model.errors import InputError
from .catalogue import SUITES
from .results import Results, Table, Verdict, load_results, times, troubles
from .suite import Suite

INTRODUCTION = """# Benchmarks

Written by `jointgrad bench`; every figure is from the run named below. To repeat it:

    pip install "jointgrad[bench]" torch jax
    jointgrad bench --install                            # the peers, each in an environment of its own
    jointgrad bench all --page docs/benchmarks.md        # a line for each contestant says who runs
"""
METHOD = """## How it is measured

- **The same robot for all.** Our Laikago is written out as MJCF and URDF, and all peers read it: 25.6 kg, 12 hinges held by
  servos (150 N m/rad, 3 N m s/rad), four balls as feet on a plane, friction 0.7, steps of 2 ms, released 3 cm above the
  ground. Only feet touch.
- **Checked before timed.** Each must stand as high as we do (within 1 cm: soft contact sinks in), and its gradient must agree
  with differences of its own motion. What fails is marked *wrong*, shown, and left out of the comparison.
- **One core** is processor time in a process bound to it, so that neighbours do not count; **two cores** is wall time. Best of
  repeats; medians are in the CSV.
- **Contact models differ**: MuJoCo and MJX soft and convex, Nimble an LCP, Drake compliant, Newton penalties, ours 50 sweeps
  of projected Gauss-Seidel. Equal time is not equal physics. Pinocchio does not step and has no contact here, so it is
  compared with ours in the air.
- **Memory** is growth of the process at its peak, over forward and backward together; for checkpoints, which differ by little, in
  a new copy of the process each time, least of three.
- **Time given**: 20 to 30 s for measuring after compiling and checks, 3 to 7 repeats; what would not end in it is not begun ("too
  long"). Nothing is scaled up but the rows that say so.
- A peer that cannot be installed, crashes or takes too long is listed with the reason.
"""


def write_page(out: Path, page: Path) -> Path:
    """Markdown with pictures beside it; says first where we are behind."""
    found = {name: load_results(out / name) for name in SUITES if (out / name / "results.json").exists()}
    if not found:
        raise InputError(f"there are no results in {out}: run jointgrad bench first")
    verdicts = [v for name, results in found.items() for v in SUITES[name].verdicts(results.records)]
    parts = [INTRODUCTION, standing(verdicts), origin_words(found)]
    for name, results in found.items():
        parts.append(section(SUITES[name], results, page))
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n".join([*parts, METHOD]))
    return page


def standing(verdicts: Sequence[Verdict]) -> str:
    """Behind first, then level, then how many are ahead and who is nearest."""
    behind, level = [v for v in verdicts if v.is_behind], [v for v in verdicts if v.is_level and not v.why]
    ahead = sorted((v for v in verdicts if v.ratio > 1.05), key=lambda v: v.ratio)
    lines = ["## Where we are behind", ""]
    lines += [f"- {v}" for v in behind] or ["Nowhere in this run."]
    if level:
        lines += ["", "Level, within a twentieth: " + "; ".join(v.words for v in level) + "."]
    lines += [
        "",
        f"Ahead in {len(ahead)} of {len(verdicts)} comparisons, level in {len(verdicts) - len(ahead) - len(behind)}.",
    ]
    measured = [v for v in ahead if not v.why]
    if measured:
        nearest = "; ".join(f"{v.words}: {times(v.ratio)}" for v in measured[:5])
        lines.append(f"The nearest behind us: {nearest}.")
    return "\n".join([*lines, ""])


def origin_words(found: dict[str, Results]) -> str:
    lines = ["## The run", ""]
    first = next(iter(found.values())).origin
    machine, versions = first["machine"], first["versions"]
    lines.append(
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_GB']} GB, {machine['system']}. "
        + ", ".join(f"{name} {version}" for name, version in versions.items())
        + "."
    )
    peers = dict.fromkeys(r["version"] for results in found.values() for r in results.records if r.get("version"))
    lines += ["", "Took part: " + "; ".join(peers) + ".", ""]
    for name, results in found.items():
        whole = "" if results.is_complete else ", INTERRUPTED"
        said = f"{results.origin.get('seconds', 0):.0f} s, load {results.origin['machine']['load_at_start']}"
        lines.append(f"- {name}: `{results.origin['command']}`, {results.origin['date']}, {said}{whole}")
    return "\n".join([*lines, ""])


def section(suite: Suite, results: Results, page: Path) -> str:
    pictures = suite.draw(results.records, page.parent / "pictures")
    lines = [f"## {suite.name}", "", f"{suite.about[0].upper()}{suite.about[1:]}.", ""]
    lines += [f"![{suite.name}](pictures/{picture.name})" for picture in pictures]
    said: set[str] = set()
    for table in [*suite.tables(results.records), *(t for t in [troubles(results.records)] if t)]:
        lines += ["", markdown(table)]
        if table.note and table.note not in said:
            lines += ["", table.note]
        said.add(table.note)
    return "\n".join([*lines, ""])


def markdown(table: Table) -> str:
    rule = ["---", *("--:" for _ in table.head[1:])]
    rows = [table.head, tuple(rule), *table.rows]
    return "\n".join([f"**{table.title}**", "", *("| " + " | ".join(row) + " |" for row in rows)])
