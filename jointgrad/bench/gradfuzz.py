"""`jointgrad bench gradfuzz`: gradients of random worlds along random directions, against tangents and differences.

The exit code is 0 where no derivative disagrees outside kinks, and at kinks each is the slope of one side.
"""

from __future__ import annotations

import json
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from ..model.errors import SimulationError
from ..model.laws import SOLVERS
from .gradfuzz_check import AGREES, DIFFERS, KINK, NEITHER, UNSURE, Check, Direction, Outcome
from .gradfuzz_worlds import Subject, robot_files, shorter, subject
from .results import origin

DIRECTIONS = 400  # of one world
MOST_ASIDE = 0.1  # of directions outside worlds that were built at a kink


@dataclass
class Tally:
    """What came of all directions so far."""

    seed: int
    worlds: int = 0
    passed_over: Counter = field(default_factory=Counter)
    outside: Counter = field(default_factory=Counter)  # verdicts in worlds not built at a kink
    at_kinks: Counter = field(default_factory=Counter)
    by_name: Counter = field(default_factory=Counter)
    wrong: list[dict[str, Any]] = field(default_factory=list)
    allowed: int = 0  # directions where gradient and tangent agree within rounding that was measured alone
    least_digits: tuple[float, int, str] = (0.0, -1, "")  # of those, the largest difference, its world, its direction

    @property
    def directions(self) -> int:
        return sum(self.outside.values()) + sum(self.at_kinks.values())

    @property
    def aside(self) -> float:
        """Share of directions that could not be compared, outside worlds built at a kink."""
        return sum(self.outside[v] for v in (KINK, NEITHER, UNSURE)) / max(1, sum(self.outside.values()))

    @property
    def is_good(self) -> bool:
        return not self.wrong and self.aside <= MOST_ASIDE and self.directions > 0

    def add(self, number: int, world: Subject, outcomes: Sequence[Outcome]) -> None:
        self.worlds += 1
        allowed = [(o.lost, number, f"{world.name}: {o.direction}") for o in outcomes if o.needs_allowance]
        self.allowed += len(allowed)
        self.least_digits = max([self.least_digits, *allowed])
        verdicts = self.at_kinks if world.is_at_kink else self.outside
        verdicts.update(o.verdict for o in outcomes)
        self.by_name.update(o.direction.name for o in outcomes)

    def as_json(self) -> dict[str, Any]:
        return {
            "seed": self.seed, "worlds": self.worlds, "directions": self.directions, "outside": dict(self.outside),
            "at_kinks": dict(self.at_kinks), "aside": self.aside, "by_name": dict(sorted(self.by_name.items())),
            "allowed": self.allowed, "least_digits": self.least_digits,
            "passed_over": dict(self.passed_over), "wrong": self.wrong, "good": self.is_good, "origin": origin(),
        }  # fmt: skip


def checked(seed: int, number: int, files: Sequence[Path], count: int) -> tuple[Subject, Check, list[Outcome]]:
    """World `number` of a run, tested along so many directions."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one sweep does not settle a pile, and its derivatives are exact all the same
        world = subject(seed, number, files)
        rng = np.random.default_rng([seed, number, 1])
        check = Check(world, rng)
        if not check.is_sound:
            raise SimulationError("it moves too fast for differences")
        return world, check, check.outcomes(check.directions(count, rng))


def worlds(
    seed: int, files: Sequence[Path], count: int, tally: Tally
) -> Iterator[tuple[int, Subject, Check, list[Outcome]]]:
    number = 0
    while True:
        try:
            yield number, *checked(seed, number, files, count)
        except (ValueError, SimulationError) as error:  # a file that cannot be used, a motion that diverges
            tally.passed_over[f"{type(error).__name__}: {str(error)[:80]}"] += 1
        number += 1


def fewest_steps(world: Subject, seed: int, number: int, direction: Direction) -> int:
    """After how many steps a derivative is wrong for the first time."""
    for steps in range(1, world.steps):
        check = Check(shorter(world, steps), np.random.default_rng([seed, number, 1]))
        cut = direction.change
        if direction.name in ("u", "force"):  # which have a row per step
            cut = cut.reshape(world.steps, -1)[:steps].ravel()
        if check.outcomes([replace(direction, change=cut)])[0].verdict == DIFFERS:
            return steps
    return world.steps


def described(world: Subject, seed: int, number: int, o: Outcome) -> dict[str, Any]:
    """A wrong derivative, and how to see it again."""
    d, tree = o.direction, world.model.topology.tree
    value = world.inputs[d.name][d.env].ravel()
    return {
        "world": world.name, "number": number, "of": str(d), "value": None if d.entry is None else float(value[d.entry]),
        "gradient": o.gradient, "tangent": o.tangent, "slope": o.slope, "error": o.error, "at_kink": o.is_kink,
        "steps": fewest_steps(world, seed, number, d), "dt": float(world.model.params["world.dt"]),
        "integrator": tree["integrator"], "sweeps": tree["sweeps"], "cone": bool(tree["is_cone"]),
        "form": SOLVERS[tree["solver"]], "again": f"jointgrad bench gradfuzz --seed {seed} --world {number}",
    }  # fmt: skip


def said_of(wrong: dict[str, Any]) -> str:
    return (
        f"{wrong['world']}: {wrong['of']} (value {wrong['value']}) after {wrong['steps']} steps of {wrong['dt']:g} s: gradient "
        f"{wrong['gradient']:.9g}, tangent {wrong['tangent']:.9g}, differences {wrong['slope']:.9g}"
        f"{' (at a kink, neither side)' if wrong['at_kink'] else ''}\n  {wrong['again']}"
    )


def counts(verdicts: Counter) -> str:
    words = {
        AGREES: "agree", KINK: "at a kink with the slope of one side", NEITHER: "where several clamps change at once",
        UNSURE: "not comparable", DIFFERS: "disagree",
    }  # fmt: skip
    return ", ".join(f"{verdicts[v]:,} {word}" for v, word in words.items() if verdicts[v] or v == DIFFERS)


def said_of_rounding(tally: Tally) -> str:
    lost, number, what = tally.least_digits
    worst = f"; worst {lost:.1e} in world {number}, {what}" if tally.allowed else ""
    return f"gradient and tangent agree only within measured rounding in {tally.allowed:,} directions{worst}"


def fuzz(
    models: Path | None, seconds: float, directions: int, seed: int, world: int | None, out: Path, console: Console
) -> int:
    """Worlds until the time is up or the directions are enough; Ctrl-C ends with what was found. Returns the exit code."""
    files, tally, began = robot_files(models) if models else [], Tally(seed), time.perf_counter()
    columns = TextColumn("{task.description}"), BarColumn(bar_width=20), TimeElapsedColumn()
    with Progress(*columns, TextColumn("{task.fields[said]}", style="dim"), console=console) as bars:
        bar = bars.add_task("gradfuzz", total=directions if world is None else 1, said="")
        try:
            for number, one, found in one_by_one(seed, files, tally, world):
                tally.add(number, one, found)
                for o in [o for o in found if o.is_wrong][:3]:
                    tally.wrong.append(described(one, seed, number, o))
                    bars.console.print(said_of(tally.wrong[-1]), style="red", highlight=False, soft_wrap=True)
                done = tally.directions
                bars.update(bar, completed=done, said=f"{done:,} directions, world {number}: {one.name}")
                if done >= directions or time.perf_counter() - began > seconds:
                    break
        except KeyboardInterrupt:
            console.print("Interrupted: this is what was found.", style="yellow")
    return finish(tally, out, time.perf_counter() - began, console)


def one_by_one(
    seed: int, files: Sequence[Path], tally: Tally, world: int | None
) -> Iterator[tuple[int, Subject, list[Outcome]]]:
    """All worlds of a run, or the one that is asked for."""
    if world is not None:
        one, _, found = checked(seed, world, files, DIRECTIONS)
        yield world, one, found
        return
    for number, one, _, found in worlds(seed, files, DIRECTIONS, tally):
        yield number, one, found


def finish(tally: Tally, out: Path, seconds: float, console: Console) -> int:
    out.mkdir(parents=True, exist_ok=True)
    (out / "gradfuzz.json").write_text(json.dumps(tally.as_json() | {"seconds": round(seconds, 1)}, indent=2))
    wrong = tally.outside[DIFFERS] + tally.at_kinks[DIFFERS]
    for line in (
        f"{tally.directions:,} directions in {tally.worlds:,} worlds, seed {tally.seed}, {seconds:.0f} s",
        f"outside worlds built at a kink: {counts(tally.outside)}; set aside {tally.aside:.1%} (at most {MOST_ASIDE:.0%})",
        f"in worlds built at a kink: {counts(tally.at_kinks)}",
        said_of_rounding(tally),
        f"passed over: {sum(tally.passed_over.values())} worlds that could not be used",
        f"{'GOOD' if tally.is_good else 'NOT GOOD'}: {wrong:,} derivatives disagree; see {out / 'gradfuzz.json'}",
    ):
        console.print(line, highlight=False, soft_wrap=True)
    return 0 if tally.is_good else 1
