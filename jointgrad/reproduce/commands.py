"""`jointgrad reproduce NAME`: one function for each experiment, which imports what it needs when it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

from ..usage import require
from .meanings_command import meanings

Setting = Literal["released", "paper", "physical"]
# rates, steps and brakes of throw and golf were chosen on seeds 0 to 2, so they are judged on others
FRESH_SEEDS = (10, 11, 12, 13, 14)


def pendulum(
    n: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7),
    out: Path = Path("out/pendulum"),
    iterations: int = 300,
    starts: int = 32,
    attempts: int = 3,
    seed: int = 0,
    substeps: int = 5,
    integrator: str = "rk4",
) -> int:
    """Swing pendulums of 1 to 7 links to the top by gradient descent on their torques (Qiao 2021, table 4); about a minute.

    Args:
        n: Numbers of links, each from 1 to 7.
        out: Folder for the results.
        iterations: Gradient steps of one attempt.
        starts: Random torques that are improved together.
        attempts: How often to begin with other random torques while the top is not reached.
        seed: Of the random torques.
        substeps: Simulation steps per torque; a torque is held for 1/60 s.
        integrator: How to step: rk4, semi_implicit, explicit or implicit_damping.
    """
    require({"tyro": "tyro", "rich": "rich", "matplotlib": "matplotlib", "PIL": "pillow"}, "demo")
    from .pendulum import Settings
    from .report import demonstrate

    settings = Settings(iterations=iterations, starts=starts, attempts=attempts, seed=seed, substeps=substeps,
                        integrator=integrator)  # fmt: skip
    return demonstrate(n, out, settings)


def throw(
    setting: Setting = "released",
    out: Path | None = None,
    seeds: tuple[int, ...] = FRESH_SEEDS,
    seconds: float = 30.0,
    quick: bool = False,
) -> int:
    """An arm throws a ball onto a mark (Qiao 2021, figure 6), with and without gradients, all methods from the same start.

    Args:
        setting: As the released code has it, as the paper prints it, or with gravity, ground and rest.
        out: Folder for the results; unless said, out/throw_SETTING.
        seeds: Of the starts and of random searches; settings were chosen on 0 to 2.
        seconds: How long one search may take.
        quick: Only the quickest methods.
    """
    return _contest("throw", setting, out, seeds, seconds, quick)


def golf(
    setting: Setting = "released",
    out: Path | None = None,
    seeds: tuple[int, ...] = FRESH_SEEDS,
    seconds: float = 30.0,
    quick: bool = False,
) -> int:
    """A club drives a ball to a mark (Qiao 2021, figure 6), with and without gradients, all methods from the same start.

    Args:
        setting: As the released code has it, as the paper prints it, or with ground, rolling and rest.
        out: Folder for the results; unless said, out/golf_SETTING.
        seeds: Of the starts and of random searches; settings were chosen on 0 to 2.
        seconds: How long one search may take.
        quick: Only the quickest methods.
    """
    return _contest("golf", setting, out, seeds, seconds, quick)


def racecar(out: Path = Path("out/racecar"), seconds: float = 30.0, quick: bool = False) -> int:
    """Friction of a sliding car from where it ends (Qiao 2021, figure 7), against truths in closed form.

    Args:
        out: Folder for the results.
        seconds: How long one search may take.
        quick: Only the first two cases.
    """
    _require_rivals()
    from . import racecar

    racecar.reproduce(racecar.CASES[:2] if quick else racecar.CASES, out, seconds, print)
    print(f"Table, histories and landscape are in {out.resolve()}")
    return 0


def pendulum_search(out: Path = Path("out/pendulum_search"), seed: int = 0, quick: bool = False) -> int:
    """Lengths of a double pendulum from 400 starts, local fits against parallel basin hopping (NeuralSim, figure 4); half a
    minute on two cores. Stopped, it goes on where it was.

    Args:
        out: Folder for the results.
        seed: Of the hops.
        quick: Few starts.
    """
    require({"matplotlib": "matplotlib", "PIL": "pillow"}, "demo")
    from . import pendulum_search

    pendulum_search.reproduce(out, print, quick, seed)
    print(f"Figures and the map of successes are in {out.resolve()}")
    return 0


def pendulum_friction(
    out: Path = Path("out/pendulum_friction"), seeds: tuple[int, ...] | None = None, quick: bool = False
) -> int:
    """What the hidden friction of a double pendulum's joints depends on, by the lasso on networks inside the step, and how many
    samples that takes, on three seeds (NeuralSim, figure 10); about seven minutes (on a busy machine OPENBLAS_NUM_THREADS=1
    makes the MLP faster). Stopped, it goes on where it was.

    Args:
        out: Folder for the results.
        seeds: Of data and first weights; unless said, 0 to 9.
        quick: One seed, a coarser path.
    """
    require({"scipy": "scipy", "matplotlib": "matplotlib"}, "optimize")
    require({"PIL": "pillow"}, "demo")
    from . import pendulum_friction

    pendulum_friction.reproduce(seeds or tuple(range(1 if quick else 10)), out, print, quick)
    print(f"Figures and pictures of the connections are in {out.resolve()}")
    return 0


def swimmer(out: Path = Path("out/swimmer"), media: tuple[str, ...] = (), quick: bool = False) -> int:
    """What water and air do to a swimmer in MuJoCo, learned by a network on the links' forces from ten short motions; against an
    LSTM, an MLP, vacuum and the known law (NeuralSim, section IV-B); about eleven minutes.

    Args:
        out: Folder for the results.
        media: Of table II: vacuum, "water 5 C", "water 25 C", "air 25 C"; unless said, all.
        quick: One medium, short training.
    """
    require({"scipy": "scipy", "matplotlib": "matplotlib", "mujoco": "mujoco-core"}, "optimize")
    require({"torch": "torch"}, "torch")
    require({"PIL": "pillow"}, "demo")
    from . import swimmer

    chosen = media or (("water 25 C",) if quick else tuple(swimmer.MEDIA))
    return _kept_run(lambda: swimmer.reproduce(out, print, chosen, quick), out)


def real_pendulum(
    out: Path = Path("out/real_pendulum"), machines: tuple[str, ...] = (), data: Path | None = None, quick: bool = False
) -> int:
    """Recordings of four real pendulums, followed as published, fitted, and fitted with a network inside the step; a quarter of
    an hour of one core.

    Args:
        out: Folder for the results.
        machines: C1 and A0 (DFKI's double pendulum, two designs), simple (DFKI), ibm; unless said, all.
        data: Folder of the recordings; unless said, that of JOINTGRAD_DATA, or shared/data beside the project.
        quick: One machine, short runs.
    """
    require({"scipy": "scipy", "matplotlib": "matplotlib"}, "optimize")
    require({"PIL": "pillow"}, "demo")
    from . import real_pendulum
    from .real_machines import MACHINES

    chosen = machines or (("C1",) if quick else MACHINES)
    return _kept_run(lambda: real_pendulum.reproduce(out, print, chosen, data, quick), out)


def go2(
    out: Path = Path("out/go2"), data: Path | None = None, seeds: tuple[int, ...] | None = None, quick: bool = False
) -> int:
    """Armature, damping and friction of a real Go2's joints from a chirp, and networks for what is left: errors on the part of the
    run that was held out; about two minutes on two cores.

    Args:
        out: Folder for the results.
        data: Folder of the recordings; unless said, that of JOINTGRAD_DATA, or shared/data beside the project.
        seeds: Of the networks' first weights; unless said, 0 to 2.
        quick: One split and one seed, and far from the end of the search.
    """
    require({"scipy": "scipy", "matplotlib": "matplotlib"}, "optimize")
    require({"rich": "rich"}, "demo")
    from . import go2

    size = go2.QUICK if quick else go2.Size()
    return _kept_run(lambda: go2.reproduce(out, print, replace(size, seeds=seeds or size.seeds), data), out)


def toss(
    out: Path = Path("out/toss"), data: Path | None = None, seeds: tuple[int, ...] | None = None, draw: int = 0,
    quick: bool = False,
) -> int:  # fmt: skip
    """Friction, restitution, softness and rounding of a real cube from 50 of 300 tosses, and networks at its contacts: errors on
    the other 250; about two minutes on two cores.

    Args:
        out: Folder for the results.
        data: Folder of the recordings; unless said, that of JOINTGRAD_DATA, or shared/data beside the project.
        seeds: Of the networks' first weights and of what they see; unless said, 0 to 2.
        draw: Seed by which the 50 tosses are drawn.
        quick: Few tosses, one seed, and far from the end of the search.
    """
    require({"scipy": "scipy", "matplotlib": "matplotlib"}, "optimize")
    require({"rich": "rich"}, "demo")
    from . import toss_networks

    size = toss_networks.QUICK if quick else toss_networks.Size()
    return _kept_run(
        lambda: toss_networks.reproduce(out, print, replace(size, seeds=seeds or size.seeds, draw=draw), data), out
    )


def push(out: Path = Path("out/push"), quick: bool = False, data: Path | None = None) -> int:
    """A real block pushed by a finger (NeuralSim, section IV-A): where it comes to rest, by the simulator as it comes, fitted, and
    with a network for what is missing of the friction; about five minutes.

    Args:
        out: Folder for the results.
        quick: A tenth of the pushes, one step of each fit.
        data: Folder with the recordings; unless said, that of JOINTGRAD_DATA or shared/data beside the project.
    """
    require({"matplotlib": "matplotlib", "PIL": "pillow"}, "demo")
    from . import push

    return _kept_run(lambda: push.reproduce(out, print, quick, data), out)


def pendulum_rl(
    n: tuple[int, ...] | None = None,
    out: Path = Path("out/pendulum_rl"),
    seeds: tuple[int, ...] | None = None,
    epochs: int | None = None,
    methods: tuple[str, ...] | None = None,
    full: bool = False,
) -> int:
    """Policies that bring pendulums of n links to the top, learned with and without gradients (Qiao 2021, table 4), judged by a
    scorer of its own code. Reduced, under an hour on a quiet machine; --full takes a day. Stopped, it goes on where it was.

    Args:
        n: Numbers of links; unless said, 1, 3, 5 and 7, in full 1 to 7.
        out: Folder for the results.
        seeds: Unless said, 0; in full 0 to 4.
        epochs: Of 100 actions, per link; unless said, 20; in full 100, as in the paper.
        methods: Unless said, all: nothing, random, apg, sac, mbpo, mbpo-policy, sac-policy, mbpo-samples, "PPO (SB3)", "SAC (SB3)".
        full: All numbers of links, five seeds, as long as in the paper.
    """
    _require_learning()
    from . import pendulum_rl

    n, seeds = n or ((1, 2, 3, 4, 5, 6, 7) if full else (1, 3, 5, 7)), seeds or (tuple(range(5)) if full else (0,))
    plan = pendulum_rl.Plan(n, seeds, epochs or (100 if full else 20), methods or pendulum_rl.METHODS)
    return _kept_run(lambda: pendulum_rl.reproduce(plan, out, print), out)


def ant_rl(
    out: Path = Path("out/ant_rl"),
    seeds: tuple[int, ...] | None = None,
    steps: int | None = None,
    methods: tuple[str, ...] | None = None,
    full: bool = False,
) -> int:
    """An ant learns to walk with samples made by slopes beside those that were tried (Qiao 2021, figure 5): area under the curve,
    paired by seed. Reduced, under an hour on a quiet machine; --full runs overnight. Stopped, it goes on where it was.

    Args:
        out: Folder for the results.
        seeds: Unless said, 0; in full 0 to 4. Intervals are given from five seeds on.
        steps: Actions of a run; unless said 10000, in full 30000.
        methods: Unless said, all: nothing, random, sac, mbpo, mbpo-samples, mbpo-row, mbpo-policy, shac, "PPO (SB3)", "SAC (SB3)".
        full: Five seeds, 30000 actions.
    """
    _require_learning()
    from . import ant_rl

    seeds = seeds or (tuple(range(5)) if full else (0,))
    plan = ant_rl.Plan(seeds, steps or (30_000 if full else 10_000), methods or ant_rl.METHODS)
    return _kept_run(lambda: ant_rl.reproduce(plan, out, print), out)


def transplant(
    out: Path = Path("out/transplant"),
    seeds: tuple[int, ...] | None = None,
    steps: int = 400_000,
    rival_steps: int | None = None,
    full: bool = False,
) -> int:
    """An ant that learned here runs in MuJoCo, and one that learned in MuJoCo runs here (Qiao 2021, table 5), neither trained
    again; some ten minutes per seed. Stopped, it goes on where it was.

    Args:
        out: Folder for the results.
        seeds: Unless said, 0; in full 0 to 4.
        steps: Actions of learning here, with robots that differ and are pushed.
        rival_steps: Actions of learning in MuJoCo, by PPO of stable-baselines3; unless said 200000, in full 1000000; 0 for none.
        full: Five seeds.
    """
    _require_learning()
    require({"mujoco": "mujoco-core"}, "optimize")
    from . import transplant

    seeds, rival = seeds or (tuple(range(5)) if full else (0,)), 1_000_000 if full else 200_000
    plan = transplant.Plan(seeds, steps, rival if rival_steps is None else rival_steps)
    return _kept_run(lambda: transplant.reproduce(plan, out, print), out)


def mpc_imitation(
    robot: Literal["laikago", "a1", "go2"] = "laikago",
    out: Path | None = None,
    transitions: int = 10_000,
    hidden: tuple[int, ...] = (192, 192),
    rounds: int = 3,
    walks: int = 20,
    seed: int = 0,
) -> int:
    """A network imitates the walking controller, then learns from its own walks (NeuralSim, section V-E): falls, errors, power and
    latency of teacher and pupils, here and in MuJoCo; about half an hour of one core.

    Args:
        robot: Which one walks.
        out: Folder for the results; unless said, out/mpc_imitation_ROBOT.
        transitions: Moments that the solver labels; a third as many in each round of DAgger.
        hidden: Widths of the layers; NeuralSim's released network has 192 192 192.
        rounds: Of DAgger.
        walks: Of 20 s, that judge each controller.
        seed: Of commands, pushes and first weights.
    """
    require({"torch": "torch", "matplotlib": "matplotlib"}, "learn")
    require({"proxsuite": "proxsuite", "osqp": "osqp", "scipy": "scipy"}, "mpc")
    require({"mujoco": "mujoco-core"}, "optimize")
    from .mpc_imitation import Settings, run

    folder = out or Path(f"out/mpc_imitation_{robot}")
    settings = Settings(robot, transitions, hidden, rounds, walks=walks, seed=seed)
    return _kept_run(lambda: run(settings, folder), folder)


def walk(
    dogs: tuple[str, ...] = ("go2",),
    seeds: tuple[int, ...] = (0,),
    seconds: float = 170.0,
    out: Path = Path("out/walk"),
    full: bool = False,
) -> int:
    """Robot dogs learn to walk by command and are judged, here and in MuJoCo; about five minutes for each dog and seed.

    Args:
        dogs: Of go2, a1, laikago.
        seeds: Of everything random; settings were chosen on seeds from 100 on.
        seconds: How long each learns, in seconds of the processor; compiling apart.
        out: Folder for the results; what is finished there is kept.
        full: All three dogs, seeds 0 to 4.
    """
    require(
        {name: name for name in ("torch", "safetensors", "onnx", "matplotlib")} | {"mujoco": "mujoco-core"}, "learn"
    )
    from .walk import DOGS, run

    out.mkdir(parents=True, exist_ok=True)
    return _kept_run(lambda: run(DOGS if full else dogs, range(5) if full else seeds, seconds, out), out)


EXPERIMENTS: dict[str, Callable[..., int]] = {
    "pendulum": pendulum,
    "throw": throw,
    "golf": golf,
    "racecar": racecar,
    "pendulum-search": pendulum_search,
    "pendulum-friction": pendulum_friction,
    "swimmer": swimmer,
    "real-pendulum": real_pendulum,
    "go2": go2,
    "toss": toss,
    "push": push,
    "pendulum-rl": pendulum_rl,
    "ant-rl": ant_rl,
    "transplant": transplant,
    "meanings": meanings,
    "walk": walk,
    "mpc-imitation": mpc_imitation,
}


def _kept_run(run: Callable[[], object], out: Path) -> int:
    """An experiment that keeps its finished parts, and may be interrupted."""
    try:
        run()
    except KeyboardInterrupt:
        return 130
    print(f"Figures and pictures are in {out.resolve()}")
    return 0


def _require_learning() -> None:
    require(
        {"torch": "torch", "safetensors": "safetensors", "matplotlib": "matplotlib", "gymnasium": "gymnasium"}, "learn"
    )
    require({"stable_baselines3": "stable-baselines3"}, "rl")


def _require_rivals() -> None:
    require({"scipy": "scipy", "cma": "cma", "matplotlib": "matplotlib", "mujoco": "mujoco-core"}, "optimize")


def _contest(name: str, setting: str, out: Path | None, seeds: tuple[int, ...], seconds: float, quick: bool) -> int:
    _require_rivals()
    from . import contest, golf, throw
    from .second_opinion import in_words

    module, out = throw if name == "throw" else golf, out or Path(f"out/{name}_{setting}")
    task = module.task(setting)
    runs = contest.contest(task, module.methods(setting, quick), seeds, print, seconds)
    if not runs:
        return 130
    said = contest.keep(task, runs, out)
    best = said["best"]
    print(f"Best: {best['method']}, {best['distance']:.4f} m from the target at {best['speed_at_end']:.3f} m/s.")
    shares = said["comparison"]["gradient_over_gradient_free"].items()
    print("With gradients over without:", ", ".join(f"{k} {'-' if v is None else round(v, 3)}" for k, v in shares))
    if isinstance(said["mujoco"], dict):
        print(f"MuJoCo cannot say: {said['mujoco']['error']}")
    else:
        print("MuJoCo and ours, " + "\n".join(in_words(one) for one in said["mujoco"]))
    print(f"Results, curves and the best motion are in {out.resolve()}")
    return 130 if runs[-1].reason == "interrupted" else 0
