"""The command line: parses and delegates. Every command is a function here that imports what it needs when it runs."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from . import __version__
from .usage import UsageError, require

STALLED = 3  # the exit code of a search that has ended before it should


def demo(out: Path = Path("out/demo"), seed: int = 0, iterations: int = 25) -> int:
    """Teach a robot arm to throw a ball onto a mark, and write a page on which to watch it; takes about a minute.

    Args:
        out: Folder for the results.
        seed: Of the random swings that it begins with.
        iterations: At most so many improvements.
    """
    require({"tyro": "tyro", "rich": "rich"}, "demo")
    from .reproduce.demo import demonstrate

    return demonstrate(out, seed, iterations)


def lint(file: Path, /, json: bool = False, fix: Path | None = None, search_roots: tuple[Path, ...] = ()) -> int:
    """Look for everything suspicious in a URDF or MJCF file; the exit code is 0 for clean or notes only, 1 for warnings, 2 for
    errors.

    With --fix the exit code is that of the repaired file.

    Args:
        file: The robot.
        json: Print one JSON object for machines instead of text.
        fix: Write a copy of a URDF file with safe repairs there (zero inertias, exchanged limits, mimic chains) and say what
            was done. The input is overwritten only if this is its own path.
        search_roots: Folders for meshes and included files, beside that of the file.
    """
    from .files import lint as linter

    findings = linter.lint(file, search_roots=search_roots)
    if not json:
        print(linter.report(file, findings))
    repairs: list[str] = []
    left = findings
    if fix is not None:
        repairs = linter.fix(file, fix)
        left = linter.lint(fix, search_roots=(*search_roots, file.parent))
    if json:
        print(_lint_json(file, findings, fix, repairs, left))
    elif fix is not None:
        print("\n".join([f"repaired: {what}" for what in repairs] or ["nothing that could be repaired safely"]))
        print(f"wrote {linter.report(fix, left).splitlines()[-1]}")
    return linter.exit_code(left)


def _lint_json(file: Path, findings: list, fix: Path | None, repairs: list[str], left: list) -> str:
    import json
    from dataclasses import asdict

    from .files.lint.finding import counts

    said: dict = {"file": str(file), "findings": [asdict(f) for f in findings], "counts": counts(findings)}
    if fix is not None:
        said |= {"fixed": str(fix), "repairs": repairs, "left": [asdict(f) for f in left]}
    return json.dumps(said, indent=2)


def gradcheck(
    file: Path,
    /,
    ground: bool = True,
    height: float | None = None,
    base: Literal["free", "fixed"] | None = None,
    state: str | None = None,
    steps: int = 50,
    dt: float | None = None,
    seed: int = 0,
    json: bool = False,
    search_roots: tuple[Path, ...] = (),
) -> int:
    """Say whether the gradient of a robot's motion can be trusted: how near its contacts are to changing, and a spot check
    against differences. The exit code is 0 for a gradient that is exact and worth following, else 1. Where shapes could touch
    and none does, the robot is let fall until one does, and set down there.

    Args:
        file: The robot, URDF or MJCF.
        ground: Put a plane under a file that has none.
        height: Let it start with its lowest point so high above z = 0 (m). Unless said, a robot that got its ground here stands
            on it, and a scene starts as it is.
        base: Whether a URDF robot's base is free or fixed; unless said, fixed.
        state: A keyframe of the file to start from, with its controls.
        steps: How many steps to go.
        dt: Time step (s); unless said, the file's own, or 1 ms.
        seed: Of the random directions.
        json: Print one JSON object for machines instead of text.
        search_roots: Folders for meshes and included files, beside that of the file.
    """
    require({} if json else {"rich": "rich"}, "demo")
    import warnings

    from .engine.gradcheck import set_down, spot_check
    from .model.errors import SimulationError

    if steps < 1:
        raise UsageError(f"--steps must be 1 or more, but is {steps}")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model, start, u = _placed(file, ground, height, base, state, steps, dt, search_roots)
    notes = list(dict.fromkeys(str(w.message) for w in said))
    try:
        check = spot_check(model, start, u, steps, seed)
        # a start that was asked for is kept, whether anything touches there or not
        is_idle = check.can_touch and not check.has_touched and height is None and state is None
        found = set_down(model, start, u) if is_idle else None
        if found is not None:
            notes.append(f"nothing touches in the first {steps} steps: set down where it touches after {found[1]:g} s")
            check = spot_check(model, found[0], u, steps, seed)
    except SimulationError as error:
        print(f"{file}: NO GRADIENT: {error}")
        return 1
    print(_gradcheck_json(file, check, notes) if json else _gradcheck_text(file, check, notes))
    return 0 if check.is_good else 1


def _placed(
    file: Path, ground: bool, height: float | None, base: str | None, keyframe: str | None, steps: int, dt: float | None,
    search_roots: tuple[Path, ...],
) -> Any:  # fmt: skip
    """The model of a file, the state it starts in, and its controls."""
    import numpy as np

    from .engine.gradcheck import lowest_point
    from .files import load, load_world
    from .files.xml import parse
    from .model.arguments import checked_number
    from .model.arrays import State
    from .model.world import World

    if not file.is_file():
        raise UsageError(f"there is no file {file}")
    if height is not None:
        checked_number("--height", height)
    if parse(file).tag == "mujoco":
        if base is not None:
            raise UsageError("--base is for URDF files; an MJCF file says itself which of its bodies are free")
        world = load_world(file, search_roots=search_roots, missing_meshes="skip")
    else:
        robot = load(file, search_roots=search_roots, missing_meshes="skip")
        world = World().add(robot, base=base)
    shapes = [s for p in world.placed for link in p.robot.links.values() for s in link.shapes]
    is_bare = ground and not any(s.kind in ("plane", "heightfield", "hfield") for s in shapes)
    if is_bare:
        free, lowest = _free_and_lowest(world)
        # what cannot be lifted has its ground beneath it
        world.add_ground(height=0.0 if free or lowest is None else min(0.0, lowest))
    model = world.compile(dt=dt, unphysical="warn")
    start, u = model.initial_state(), np.zeros((steps, model.nu))
    frames = {name: key for p in world.placed for name, key in p.robot.keyframes.items()}
    if keyframe is not None:
        if keyframe not in frames:
            known = f"it has {', '.join(frames)}" if frames else "it has none"
            raise UsageError(f'{file} has no keyframe "{keyframe}"; {known}')
        key = frames[keyframe]
        if len(key["q"]) != model.nq:
            raise UsageError(f'keyframe "{keyframe}" has {len(key["q"])} coordinates, but the model has {model.nq}')
        start, u = State(np.array(key["q"]), np.array(key["qd"])), u + np.array(key["u"])
    if height is not None or (is_bare and keyframe is None):
        free, lowest = _free_bases(model), lowest_point(model, start)
        if height is not None and (not free or lowest is None):
            raise UsageError("--height needs a robot with a free base and shapes that touch: try --base free")
        if lowest is not None:
            start.q[[q + 2 for q in free]] += (height or 0.0) - lowest
    return model, start, u if model.nu else None


def _free_bases(model: Any) -> list[int]:
    """Where the coordinates of free joints begin."""
    from .model.arrays import FREE

    tree = model.topology.tree
    return [q for kind, q in zip(tree["kind"], tree["q"], strict=True) if kind == FREE]


def _free_and_lowest(world: Any) -> tuple[list[int], float | None]:
    from .engine.gradcheck import lowest_point

    model = world.compile(unphysical="warn")
    return _free_bases(model), lowest_point(model, model.initial_state())


def _gradcheck_verdict(check: Any) -> str:
    from .engine.gradcheck import SWITCHES

    skipped = sum(line.verdict == SWITCHES for line in check.lines)
    of = f" ({skipped} of {len(check.lines)} directions switch a contact and were left out)" if skipped else ""
    if not check.is_exact:
        compared = skipped < len(check.lines)
        return (
            f"NOT EXACT: the gradient and differences disagree{of}" if compared else f"UNKNOWN: nothing to compare{of}"
        )
    if check.is_good and not check.has_touched:
        return f"GOOD: the gradient is exact and worth following; nothing in this model can touch, no contact was exercised{of}"
    if check.is_good:
        return f"GOOD: the gradient is exact and worth following{of}"
    if check.certificate.trusted and not check.has_touched:
        return (
            "NO CONTACT EXERCISED: the gradient is exact while nothing touches, which says nothing about contact; start where "
            f"something does (--height, --state, --steps), or leave the ground out (--no-ground){of}"
        )
    return f"EXACT, BUT NOT TO BE FOLLOWED: {check.certificate.reasons[0][0]}{of}"


def _gradcheck_text(file: Path, check: Any, notes: list[str]) -> str:
    import io

    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table("with respect to", "gradient", "differences", "error", "step", "", box=SIMPLE_HEAD)
    for line in check.lines:
        numbers = [f"{x:.8g}" for x in (line.gradient, line.difference)]
        table.add_row(line.wrt, *numbers, f"{line.error:.1e}", f"{line.step:.0e}", line.verdict)
    out = io.StringIO()
    Console(file=out, width=100).print(table)
    parts = [*(f"note: {note}" for note in notes), str(check.certificate), out.getvalue().rstrip(), ""]
    return "\n".join([*parts, f"{file}: {_gradcheck_verdict(check)}"])


def _gradcheck_json(file: Path, check: Any, notes: list[str]) -> str:
    import json
    from dataclasses import asdict

    cert = check.certificate
    worst = cert.worst()
    figures = {
        "worst": None if worst is None else worst._asdict(), "condition": float(cert.condition[0]),
        "smallest_mode_margin": float(cert.mode_margin.min()), "nearest_switch": float(cert.gap.min()),
        "largest_impulse": float(cert.impulse.max()), "fastest_impact": float(cert.impact.max()),
        "mismatch": float(cert.mismatch[0]), "distance": cert.distance,
        **{what: float(getattr(cert, what).mean()) for what in ("open", "sticking", "slipping")},
    }  # fmt: skip
    said = {
        "file": str(file), "good": check.is_good, "exact": check.is_exact, "trusted": bool(cert.trusted),
        "touched": check.has_touched, "can_touch": check.can_touch,
        "verdict": _gradcheck_verdict(check), "reasons": cert.reasons[0], "certificate": _finite(figures), "notes": notes,
        "lines": [_finite(asdict(line)) for line in check.lines],
    }  # fmt: skip
    return json.dumps(said, indent=2, allow_nan=False)


def _finite(values: dict) -> dict:
    """JSON knows no infinity."""
    return {k: None if isinstance(v, float) and not abs(v) < float("inf") else v for k, v in values.items()}


def view(
    file: Path,
    /,
    ground: bool = True,
    height: float | None = None,
    base: Literal["free", "fixed"] | None = None,
    state: str | None = None,
    dt: float | None = None,
    port: int = 8080,
    host: str = "127.0.0.1",
    html: Path | None = None,
    search_roots: tuple[Path, ...] = (),
) -> int:
    """Look at a robot in the browser: drag its joints, let physics run, see contacts and frames. Ctrl-C ends it.

    Args:
        file: The robot, URDF or MJCF.
        ground: Put a plane under a file that has none.
        height: Let it start with its lowest point so high above z = 0 (m).
        base: Whether a URDF robot's base is free or fixed; unless said, fixed.
        state: A keyframe of the file to start from.
        dt: Time step (s); unless said, the file's own, or 1 ms.
        port: Where the page is served; another is taken if it is not free.
        host: Who may look: 127.0.0.1 is this machine alone, 0.0.0.0 is everyone on the network.
        html: Write a still scene as one HTML file instead.
        search_roots: Folders for meshes and included files, beside that of the file.
    """
    require({} if html else {"viser": "viser"}, "view")
    import warnings

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model, start, _ = _placed(file, ground, height, base, state, 1, dt, search_roots)
    for note in dict.fromkeys(str(w.message) for w in said):
        print(f"note: {note}")
    if html is not None:
        from .viewer.replay import html as write

        print(write(model, start, html, title=file.name))
        return 0
    from .viewer.browser import view as look

    look(model, start, port=port, host=host, title=file.name)
    return 0


def replay(
    run: Path,
    /,
    html: Path | None = None,
    gif: Path | None = None,
    mp4: Path | None = None,
    png: Path | None = None,
    time: float = 0.0,
    speed: float = 1.0,
    size: tuple[int, int] | None = None,
    forces: bool = True,
    port: int = 8080,
    host: str = "127.0.0.1",
) -> int:
    """See a run again that `traj.save("run.npz")` wrote: in the browser, or as a file. Ctrl-C ends it.

    Args:
        run: The saved run.
        html: Write one HTML file that opens anywhere, offline.
        gif: Write a moving picture.
        mp4: Write a video; needs ffmpeg.
        png: Write one picture, of the moment --time.
        time: Of --png (s).
        speed: Of --gif and --mp4: 0.5 is half as fast as it was.
        size: Width and height of pictures and videos, in pixels.
        forces: Draw the forces of contact.
        port: Where the page is served; another is taken if it is not free.
        host: Who may look: 127.0.0.1 is this machine alone, 0.0.0.0 is everyone on the network.
    """
    require({"PIL": "pillow"} if gif or png else {} if html or mp4 else {"viser": "viser"}, "view")
    from .viewer.replay import load_run, write_html

    film = load_run(run).film if forces else load_run(run).film.without_forces()
    if html is not None:
        print(write_html(film, html))
    if gif or mp4 or png:
        from .viewer import video

        wide: dict[str, Any] = {} if size is None else {"width": size[0], "height": size[1]}
        if gif is not None:
            print(video.gif(film, gif, speed=speed, **wide))
        if mp4 is not None:
            print(video.mp4(film, mp4, speed=speed, **wide))
        if png is not None:
            print(video.picture(film, png, time, **wide))
    if not (html or gif or mp4 or png):
        from .viewer.browser import view_film

        view_film(film, port=port, host=host)
    return 0


def identify(
    file: Path,
    recording: Path,
    /,
    unknowns: tuple[str, ...],
    out: Path = Path("out/identify"),
    ground: bool = True,
    base: Literal["free", "fixed"] | None = None,
    dt: float | None = None,
    segments: str = "auto",
    method: Literal["lm", "lbfgs"] = "lm",
    iterations: int = 50,
    search_roots: tuple[Path, ...] = (),
) -> int:
    """Find parameters of a robot with which it moves as recorded; writes a report. Ctrl-C keeps the best so far.

    The exit code is 0 for a fit that has converged, 3 for one that has stalled or used up its iterations (its numbers are
    not those that fit best), 2 for input that cannot be used, 130 after Ctrl-C.

    Args:
        file: The robot, URDF or MJCF.
        recording: An .npz file with q (samples, nq) and qd (samples, nv), NaN where nothing was measured, and if wanted u, the
            controls of every time step, and every, the time steps from one sample to the next.
        unknowns: What to find: joint.damping for all rows of a parameter, joint.damping=elbow for one,
            joint.damping=elbow:0:5 within bounds, inertia=hand for mass, centre and inertia of a link.
        out: Folder for the report.
        ground: Put a plane under a file that has none.
        base: Whether a URDF robot's base is free or fixed; unless said, fixed.
        dt: Time step (s); unless said, the file's own, or 1 ms.
        segments: none: the recording is one motion from its measured start. SECONDS: it is cut into pieces so long, whose
            starting states are found too, so that noise in them does no harm. auto: whichever predicts held-out windows best.
        method: lm (Levenberg-Marquardt) or lbfgs.
        iterations: At most so many.
        search_roots: Folders for meshes and included files, beside that of the file.
    """
    require({"rich": "rich", **({"scipy": "scipy"} if method == "lbfgs" else {})}, "optimize")
    from .optimize.identify import identify as fitted
    from .optimize.identify_report import as_text, write_report
    from .optimize.progress import Stop, bar
    from .optimize.recording_file import read_recording, segments_of, unknown_of

    model = _placed(file, ground, None, base, None, 1, dt, search_roots)[0]
    record, entries = read_recording(recording), [unknown_of(text) for text in unknowns]
    stop = Stop(iterations=iterations, patience=3, least=1e-7)
    settings = segments_of(segments, model, record.every)
    with bar("Identifying", iterations) as shown:
        fit = fitted(model, record, entries, settings, method, stop, callback=shown)
    print(as_text(fit))
    print(f"the report is {write_report(fit, out).resolve()}")
    if fit.result.is_interrupted:
        return 130
    return 0 if fit.is_converged else STALLED


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

    from .bench import catalogue, run
    from .bench.page import write_page

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

    from .bench.gradfuzz import fuzz

    if len(suites) > 1:
        raise UsageError("gradfuzz is run on its own: jointgrad bench gradfuzz")
    if models is not None and not models.is_dir():
        raise UsageError(f"there is no folder {models}")
    return fuzz(models, seconds, directions, seed, world, out / "gradfuzz", Console())


def train(
    task: str,
    /,
    out: Path,
    method: Literal["shac", "apg"] = "shac",
    seconds: float | None = None,
    steps: int | None = None,
    seed: int = 0,
    set: tuple[str, ...] = (),
    options: tuple[str, ...] = (),
    threads: int = 1,
    json: bool = False,
) -> int:
    """Learn a task by gradients through the simulation; writes the policy, its curve and a summary. A folder that holds a run of
    the same settings is gone on with; the same seed and --steps give the same bits, also so.

    Args:
        task: ant, go2, a1, laikago, half-cheetah, hopper, walker, humanoid, reacher, pendulum, cart-pole.
        out: Folder for the results.
        method: shac (short-horizon actor-critic) or apg (whole episodes, no critic).
        seconds: End after the first update past so many seconds of processor time; compiling apart.
        steps: End after so many actions of all environments together.
        seed: Of everything random.
        set: Settings of the method, such as horizon=16 rate=1e-3 (their names: docs/rl.md).
        options: Options of the task, such as limit=500 friction=0.6.
        threads: That the simulation may use.
        json: Print the summary as one JSON object.
    """
    packages = {name: name for name in ("torch", "safetensors", "matplotlib")}
    require(packages, "learn")
    from json import dumps

    from .rl.train import train as learn

    changes, chosen = _assignments("--set", set), _assignments("--options", options)
    say = functools.partial(print, file=sys.stderr if json else sys.stdout, flush=True)
    said = learn(task, method, seconds, steps, seed, out, changes, chosen, threads, say=say)
    print(dumps(said, indent=2) if json else f"{_played(said)}\nthe policy is in {out.resolve()}")
    return 130 if said["interrupted"] else 0


def play(
    folder: Path,
    /,
    episodes: int = 64,
    seed: int = 0,
    engine: Literal["jointgrad", "mujoco"] = "jointgrad",
    replay: Path | None = None,
    json: bool = False,
) -> int:
    """Let a learned policy play episodes: how they went, and a run of the first nine for `jointgrad replay`.

    Args:
        folder: That `jointgrad train` wrote.
        episodes: How many.
        seed: Of their starts.
        engine: Which simulator moves the robot: our own, or MuJoCo with the same robot.
        replay: Where to write the run; unless said, replay.npz in the folder (of our own simulator alone).
        json: Print one JSON object.
    """
    require({"safetensors": "safetensors", **({"mujoco": "mujoco-core"} if engine == "mujoco" else {})}, "learn")
    from json import dumps

    from .rl.play import episodes as played
    from .rl.policy_file import check_folder, load_policy

    check_folder(folder)
    policy = load_policy(folder)
    found = played(policy.task, policy, episodes, seed, engine=engine)
    said = {"task": policy.task.name, "engine": engine, "seed": seed, **found.summary()}
    said |= {"differences": list(policy.differences), "replay": None}
    if engine == "jointgrad":
        path = folder / "replay.npz" if replay is None else replay
        found.motion().save(path)
        said["replay"] = str(path)
    print(dumps(said, indent=2) if json else "\n".join([*_differences(said), _played(said), *_replay_hint(said)]))
    return 0


def _assignments(name: str, given: tuple[str, ...]) -> dict[str, Any]:
    """From NAME=VALUE to values: numbers, true, false, null and lists (as tuples) as in JSON, all else a word."""
    import json

    found: dict[str, Any] = {}
    for text in given:
        key, sign, value = text.partition("=")
        if not sign:
            raise UsageError(f'{name} takes NAME=VALUE, but "{text}" has no "="')
        try:
            read = json.loads(value)
        except ValueError:
            read = value
        found[key] = tuple(read) if isinstance(read, list) else read
    return found


def _played(said: dict) -> str:
    means = "".join(f", {name} {value:.3f}" for name, value in said["measures"].items() if name.endswith("_error"))
    return (
        f"{said['task']}: {said['episodes']} episodes of {said['length_mean']:.1f} s, return {said['return_mean']:.1f}, "
        f"{said['distance_mean']:.1f} m along x, {said['falls']} failed{means}"
    )


def _differences(said: dict) -> list[str]:
    return [f"note: this is not what the policy learned with: {text}" for text in said["differences"]]


def _replay_hint(said: dict) -> list[str]:
    return [f"see it by: jointgrad replay {said['replay']}"] if said["replay"] else []


def reproduce() -> int:
    """Do a published experiment again: jointgrad reproduce --help lists them."""
    return _run(["reproduce", "--help"])


COMMANDS: dict[str, Callable[..., int]] = {
    "demo": demo, "view": view, "replay": replay, "lint": lint, "gradcheck": gradcheck, "reproduce": reproduce,
    "identify": identify, "bench": bench, "train": train, "play": play,
}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that the arguments name (by default those of the process); returns the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        try:
            return _answered(given or ["--help"])
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # who was reading has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141  # as of a process that the signal ended


def _answered(given: list[str]) -> int:
    """The exit code; what is wrong with the input is one line."""
    try:
        require({"tyro": "tyro"}, "demo")
        return _run(given)
    except BrokenPipeError:
        raise
    except (UsageError, ValueError, ArithmeticError, OSError) as error:
        print(f"jointgrad: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _run(arguments: list[str]) -> int:
    import tyro

    if arguments[0] == "reproduce":
        from .reproduce.commands import EXPERIMENTS

        about = "Published experiments, done again. `jointgrad reproduce NAME --help` says how long one takes."
        return tyro.extras.subcommand_cli_from_dict(
            EXPERIMENTS, prog="jointgrad reproduce", description=about, args=arguments[1:] or ["--help"]
        )
    description = (
        f"jointgrad {__version__}: articulated robots in motion, with exact gradients through the whole of it."
    )
    return tyro.extras.subcommand_cli_from_dict(COMMANDS, prog="jointgrad", description=description, args=arguments)
