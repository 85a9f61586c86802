"""Suite `correctness`: derivatives through contact whose true values are known, asked of everyone who offers gradients."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .peers import Record
from .problems import MAKERS, all_problems, write_problems
from .results import Table, Verdict, peers_in, where
from .suite import Job, Plan, Suite

RIGHT, ROUGH = 0.02, 0.2
QUICK = ["bounce", "slide", "floating base"]
PEERS = (
    "ours",
    "ours_named",
    "ours_springs",
    "mujoco",
    "mjx",
    "nimble",
    "drake",
    "newton",
    "genesis",
    "plain_torch",
    "plain_jax",
)
# seconds after which a contestant is stopped; what it had said by then stays. PyTorch takes a tenth of a second for each step
MOST = {"mjx": 600.0, "newton": 600.0, "plain_torch": 100.0}
NOTE = (
    f"Error: largest difference from the true derivative over the largest true one. Right: below {RIGHT:.0%}; rough: below "
    f"{ROUGH:.0%}. Truth is that of the ideal problem: rigid bodies, Coulomb friction, exact impacts. Soft contact differs from "
    "it by design, so we looked for settings near to rigid, and kept those with the least error: 17 tried for MuJoCo (MJX has the "
    "same), 3 for Drake, 2 for our springs; Nimble and our impulses have their defaults, Newton penalties that its step bears. In "
    "brackets: the error against differences of its own motion, where above 1e-3: its derivative is not that of what it computed."
)
BOUNCE = (
    "The bounce is where hard contact in fixed steps fails by nature: its computed motion really has the slope +1 between jumps. "
    "Our impulses return that slope, and the certificate says not to follow it, and names the meaning of the gradient that helps; "
    'with that one ("named meaning") and by our springs it is the true one. Nimble corrects it analytically: true, though not '
    "that of its own steps."
)


def jobs(plan: Plan) -> list[Job]:
    names = QUICK if plan.is_quick else [p.name for p in all_problems()]
    task = {
        "suite": "correctness",
        "cores": 1,
        "seconds": 600,
        "repeats": 1,
        "scene": str(plan.scene),
        "problems": names,
    }
    return [Job(peer, task, MOST.get(peer, 300.0)) for peer in PEERS]


def verdict_of(error: float) -> str:
    return "right" if error < RIGHT else "rough" if error < ROUGH else "WRONG"


def cell(found: list[Record]) -> str:
    if not found:
        return "-"
    r = found[-1]
    if r["status"] != "measured":
        return r["status"]
    doubt = f" (own {r['own_error']:.0e})" if r["own_error"] > 1e-3 else ""
    return f"{verdict_of(r['error'])} {r['error']:.0e}{doubt}"


def names_in(records: Sequence[Record]) -> list[str]:
    asked = [p.name for p in all_problems()]
    return [name for name in asked if where(records, problem=name)]


def tables(records: Sequence[Record]) -> list[Table]:
    names = names_in(records)
    rows = []
    for peer, title in peers_in(r for r in records if "problem" in r):
        mine = where(records, peer=peer)
        right = sum(r["status"] == "measured" and r["error"] < RIGHT for r in mine)
        rows.append((title, f"{right} of {len(names)}", *(cell(where(mine, problem=name)) for name in names)))
    words = {p.name: p.words for p in all_problems()}
    asked = [(name, words[name], *expectation(name)) for name in names]
    return [
        Table("Derivatives with known answers", ("", "right", *names), rows, f"{NOTE} {BOUNCE}"),
        Table("The problems", ("", "", "derivative of", "by", "truth"), asked),
    ]


def expectation(name: str) -> tuple[str, str, str]:
    problem = next(p for p in all_problems() if p.name == name)
    said = [", ".join(f"{kind} {joint}" for kind, joint in entries) for entries in (problem.outputs, problem.inputs)]
    truth = "; ".join(", ".join(f"{x:.4g}" for x in row) for row in problem.expected)
    return said[0], said[1], truth


def verdicts(records: Sequence[Record]) -> list[Verdict]:
    """Behind wherever a peer is right and our default contact, by the meaning that its certificate names, is not."""
    found = []
    for r in where(records, status="measured"):
        asked = [where(records, peer=one, problem=r["problem"], status="measured") for one in ("ours_named", "ours")]
        ours = asked[0] or asked[1]
        if not r["peer"].startswith(("ours", "plain")) and ours:
            level = {"right": 2, "rough": 1, "WRONG": 0}
            mine, theirs = level[verdict_of(ours[-1]["error"])], level[verdict_of(r["error"])]
            ratio = 1.0 if mine == theirs else (mine + 0.5) / (theirs + 0.5)
            words = f"correctness, {r['problem']}, beside {r['title']}"
            springs = where(records, peer="ours_springs", problem=r["problem"], status="measured")
            also = f", exact {asked[1][-1]['error']:.0e}" if all(asked) else ""
            also += f", our springs' {springs[-1]['error']:.0e}" if springs else ""
            found.append(Verdict(words, ratio, f"its error is {r['error']:.0e}, ours {ours[-1]['error']:.0e}{also}"))
    return found


def draw(records: Sequence[Record], folder: Path) -> list[Path]:
    from . import pictures

    names = names_in(records)
    rows = []
    for peer, title in peers_in(r for r in records if "problem" in r):
        found = [where(records, peer=peer, problem=name, status="measured") for name in names]
        rows.append((title, [f[-1]["error"] if f else None for f in found]))
    return [pictures.draw_verdicts(names, rows, (RIGHT, ROUGH), folder / "correctness.png")]


SUITE = Suite(
    "correctness", f"{len(MAKERS)} problems of contact with known derivatives, asked of everyone with gradients",
    jobs, tables, draw, verdicts, lambda plan: write_problems(plan.scene), note=NOTE,
)  # fmt: skip
