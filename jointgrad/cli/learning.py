"""Commands that learn and use what was learned: train, play."""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import Any, Literal

from ..usage import UsageError, require

LEARN = ("torch", "safetensors", "onnx", "matplotlib")  # packages that learning needs


def train(
    task: str,
    /,
    out: Path,
    method: str = "shac",
    seconds: float | None = None,
    steps: int | None = None,
    seed: int = 0,
    set: tuple[str, ...] = (),
    options: tuple[str, ...] = (),
    threads: int = 1,
    live: bool = False,
    json: bool = False,
) -> int:
    """Learn a task by gradients through the simulation; writes the policy, its curve and a summary. A folder that holds a run of
    the same settings is gone on with; the same seed and --steps give the same bits, also so.

    Args:
        task: ant, go2, a1, laikago, half-cheetah, hopper, walker, humanoid, reacher, pendulum, cart-pole, reach, throw,
            released-ant.
        out: Folder for the results.
        method: shac (short-horizon actor-critic), apg (whole episodes, no critic), pods (the same by regression), sac (soft
            actor-critic), mbpo (the same on a model that is learned), mbpo-policy and sac-policy (policy enhancement as in Qiao
            2021 and as released), mbpo-samples and mbpo-row (sample enhancement likewise).
        seconds: End after the first update past so many seconds of processor time; compiling apart.
        steps: End after so many actions of all environments together.
        seed: Of everything random.
        set: Settings of the method, such as horizon=16 rate=1e-3 (their names: docs/rl.md).
        options: Options of the task, such as limit=500 friction=0.6.
        threads: That the simulation may use.
        live: Serve a page while it learns: the robot as it moves by now, the curve, buttons to pause, save and end.
        json: Print the summary as one JSON object.
    """
    require({name: name for name in LEARN}, "learn")
    from json import dumps

    from ..rl.train import train as learn

    changes, chosen = _assignments("--set", set), _assignments("--options", options)
    say = functools.partial(print, file=sys.stderr if json else sys.stdout, flush=True)
    page = _page(task, chosen, seed) if live else None
    try:
        said = learn(task, method, seconds, steps, seed, out, changes, chosen, threads, say=say, page=page)
    finally:
        if page is not None:
            page.stop()
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

    from ..rl.play import episodes as played
    from ..rl.policy_file import check_folder, load_policy

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


def demo_dog(out: Path, seed: int, seconds: float) -> int:
    require({name: name for name in LEARN}, "learn")
    require({"viser": "viser"}, "view")
    from ..rl.demo import demonstrate

    return demonstrate(out, seed, seconds)


def _page(task: str, options: dict[str, Any], seed: int) -> Any:
    """A page on which to watch a task being learned."""
    require({"viser": "viser"}, "view")
    from ..rl.catalogue import make_task
    from ..rl.live import LivePage
    from ..rl.recipes import recipe

    return LivePage(make_task(task, **{**recipe(task).options, **options}), seed=seed)


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
