"""The command bench."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from ..usage import UsageError, require


def bench(
    suites: tuple[Literal["laikago", "robots", "checkpoint", "gradients", "correctness", "gradfuzz", "all"], ...] = (),
    /,
    quick: bool = False,
    out: Path = Path("out/bench"),
    peers: tuple[str, ...] = (),
    install: bool = False,
    page: Path | None = None,
    models: Path | None = None,
    seconds: float = 300.0,
    directions: int = 100_000,
    seed: int = 0,
    world: int | None = None,
) -> int:
    """Time, memory and gradients beside what one would take instead, each result checked before it is timed. Ctrl-C keeps what
    was measured.

    `jointgrad bench --install`, once, makes the peers' virtual environments. `jointgrad bench all --page docs/benchmarks.md`
    then makes the whole page.

    Args:
        suites: laikago (one robot, 50 to 5,000 steps, all peers), robots (1 to 100 in one world, batches to 4,096),
            checkpoint (time against memory), gradients (three workloads of NeuralSim), correctness (derivatives with known
            answers), or all of these; gradfuzz (random worlds and directions against differences; on its own).
        quick: A small version of each, in a minute or so.
        out: Folder for the results.
        peers: Only these, beside ourselves: mujoco, mjx, pinocchio, nimble, drake, tinydiffsim, newton, genesis, plain_torch,
            plain_jax.
        install: Make the environments of the peers, each in its own folder under ~/.cache/jointgrad/peers.
        page: Write the results in the folder, of this run and earlier ones, as a page of Markdown with plots.
        models: A folder with robot files, for gradfuzz.
        seconds: gradfuzz ends after so many.
        directions: Or after so many directions.
        seed: Of gradfuzz's worlds.
        world: Only this one of gradfuzz's worlds.
    """
    if "gradfuzz" in suites:
        return _gradfuzz(suites, models, min(seconds, 20.0) if quick else seconds, directions, seed, world, out)
    require({"rich": "rich", "matplotlib": "matplotlib"}, "bench")
    from rich.console import Console

    from ..bench import catalogue, run
    from ..bench.page import write_page

    if not (suites or install or page):
        raise UsageError(f"say what to run: {', '.join(catalogue.SUITES)} or all (and see jointgrad bench --help)")
    console = Console()
    code = run.install(peers, console) if install else 0
    if suites:
        code = run.run(tuple(catalogue.SUITES) if "all" in suites else suites, quick, out, peers, console)
    if page is not None and code == 0:
        console.print(f"Wrote {write_page(out, page)}", highlight=False)
    return code


def _gradfuzz(
    suites: tuple[str, ...], models: Path | None, seconds: float, directions: int, seed: int, world: int | None, out: Path
) -> int:  # fmt: skip
    require({"rich": "rich"}, "bench")
    from rich.console import Console

    from ..bench.gradfuzz import fuzz

    if len(suites) > 1:
        raise UsageError("gradfuzz is run on its own: jointgrad bench gradfuzz")
    if models is not None and not models.is_dir():
        raise UsageError(f"there is no folder {models}")
    return fuzz(models, seconds, directions, seed, world, out / "gradfuzz", Console())
