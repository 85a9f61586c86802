"""What a medium does to a swimmer, learned from ten short motions (NeuralSim 2021, section IV-B and figure 9).

Truth is MuJoCo: a swimmer of two links under random torques in the media of table II. The hybrid is this engine in vacuum with one
network for all links, which sees the velocity of a link in its own axes and says what force and torque act on it. Rivals: an
LSTM and a residual MLP that know no physics, the engine in vacuum, and the engine with density and viscosity
identified, which knows the law.

Training sees the first 200 steps of ten motions (of these, two decide what is kept); judged are steps 200 to 900 of twenty
others, all predicted from their first state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import jointgrad as jg

from ..files.mjcf.inertia import inertia_box
from ..grafts.blueprint import save_weights
from ..grafts.discover import windows
from ..grafts.weights import weight_units
from ..optimize.graft_training import Plan, train
from .kept import Kept

# table II: density (kg/m^3), viscosity (Pa s)
MEDIA = {
    "vacuum": (0.0, 0.0),
    "water 5 C": (1000.0, 0.001518),
    "water 25 C": (997.0, 0.00089),
    "air 25 C": (1.184, 0.00001849),
}
DT, STEPS, CUT = 0.002, 900, 200
RUNS, DECIDE, TEST_RUNS = 10, 2, 20
# the same motions for all media up to what these do; test motions have nothing in common with them
TRAINING_SEED, TEST_SEED = 1, 2
# N m, Hz: three sines of random size, frequency and phase
TORQUE, TONES, RATES = 1.4e-3, 3, (1.0, 5.0)
# standard deviations of first velocities: m/s, m/s, rad/s, rad/s
FIRST = (0.2, 0.2, 3.0, 3.0)
MOST_WEIGHTS = 1637
# errors count in these units of q (m, m, rad, rad); those of qd are the standard deviations of the training motions
UNITS_Q = (0.05, 0.05, 1.0, 1.0)
# sizes of what the network sees (m/s, rad/s) and says (N, N m); along z, and about x and y, nothing moves
SEES, SAYS = (0.3, 0.3, 1.0, 1.0, 1.0, 8.0), (0.1, 0.1, 1.0, 1.0, 1.0, 1e-3)
# windows of training: steps, iterations
STAGES = ((5, 150), (20, 300), (60, 400), (200, 300))
NETWORKS = (("tanh", (32, 32)),)
ANGLES = (2, 3)


@dataclass(frozen=True)
class Motions:
    """q (T+1, runs, nq), qd (T+1, runs, nv), u (T, runs, nu)."""

    q: np.ndarray
    qd: np.ndarray
    u: np.ndarray

    def some(self, runs: slice, steps: int | None = None) -> Motions:
        end = len(self.u) if steps is None else steps
        return Motions(self.q[: end + 1, runs], self.qd[: end + 1, runs], self.u[:end, runs])


@dataclass(frozen=True)
class Data:
    """Training motions, those that decide, and held-out ones; units that errors of training count in."""

    training: Motions
    decide: Motions
    test: Motions
    scales: tuple[np.ndarray, np.ndarray]


# truth -------------------------------------------------------------------------------------------------------------------


def swimmer_world(links: int = 2, density: float = 0.0, viscosity: float = 0.0) -> jg.World:
    """A swimmer whose links feel the medium as MuJoCo's do: as the boxes of their inertias."""
    robot = jg.zoo.swimmer(links)
    robot.links.update({name: inertia_box(link) for name, link in robot.links.items()})
    world = jg.World(gravity=(0, 0, 0), density=density, viscosity=viscosity)
    world.add(robot)
    return world


def torques(rng: np.random.Generator, runs: int, joints: int, steps: int = STEPS) -> np.ndarray:
    """Random controls (T, runs, joints)."""
    time = DT * np.arange(steps)[:, None, None, None]
    size, rate, phase = (
        rng.uniform(*of, (TONES, runs, joints)) for of in ((0.0, TORQUE), RATES, (0.0, 2 * np.pi))
    )  # fmt: skip
    return (size * np.sin(2 * np.pi * rate * time + phase)).sum(1)


def recorded(medium: str, seed: int, runs: int, links: int = 2) -> Motions:
    """Motions in MuJoCo (Euler's method, steps of 2 ms) from random states under random torques."""
    import mujoco

    rng, joints = np.random.default_rng(seed), links - 1
    q0 = np.concatenate(
        [np.zeros((runs, 2)), rng.uniform(-np.pi, np.pi, (runs, 1)), rng.uniform(-1, 1, (runs, joints))], 1
    )
    qd0 = rng.normal(size=q0.shape) * np.array([*FIRST[:3], *[FIRST[3]] * joints])
    u = torques(rng, runs, joints)
    twin = mujoco.MjModel.from_xml_string(jg.to_mjcf(swimmer_world(links, *MEDIA[medium]), dt=DT))
    twin.opt.disableflags |= (
        mujoco.mjtDisableBit.mjDSBL_CONTACT
    )  # links pass through each other, as in the original file
    q, qd = (np.zeros((len(u) + 1, *q0.shape)) for _ in range(2))
    for i in range(runs):
        data = mujoco.MjData(twin)
        data.qpos[:], data.qvel[:] = q[0, i], qd[0, i] = q0[i], qd0[i]
        for k in range(len(u)):
            data.ctrl[:] = u[k, i]
            mujoco.mj_step(twin, data)
            q[k + 1, i], qd[k + 1, i] = data.qpos, data.qvel
    return Motions(q, qd, u)


def data_of(medium: str, test_runs: int = TEST_RUNS) -> Data:
    first = recorded(medium, TRAINING_SEED, RUNS).some(slice(None), CUT)
    scales = np.array(UNITS_Q), first.qd.std((0, 1))
    held = recorded(medium, TEST_SEED, test_runs)
    return Data(first.some(slice(0, RUNS - DECIDE)), first.some(slice(RUNS - DECIDE, None)), held, scales)


# models ------------------------------------------------------------------------------------------------------------------


def augmented(hidden: tuple[int, ...], activation: str, links: int = 2, seed: int = 0) -> jg.Model:
    """The swimmer in vacuum with one network for all links, which says nothing at first."""
    plain = swimmer_world(links).compile(dt=DT, contact=None)
    network = jg.MLP(hidden, activation, scale=0.0, seed=seed)
    model = jg.graft(plain, "link.force", ["link.velocity"], network, shared=True)
    if model.params["graft.weight"].size > MOST_WEIGHTS:
        raise ValueError(f"{model.params['graft.weight'].size} weights are more than {MOST_WEIGHTS}")
    return model


def hybrid(data: Data, say: Callable[[str], None], quick: bool = False) -> tuple[jg.Model, list[tuple[str, float]]]:
    """The best of NETWORKS by the motions that decide, and the errors of all on these."""
    best, found = None, []
    stages = ((5, 20), (50, 20)) if quick else STAGES
    for activation, hidden in NETWORKS[:1] if quick else NETWORKS:
        model = augmented(hidden, activation)
        units = weight_units(model, SEES, SAYS)
        cut = lambda m, steps: windows(m.q, m.qd, m.u, steps, max(1, steps // 2))  # noqa: E731
        plan = Plan([(cut(data.training, s), n) for s, n in stages], cut(data.decide, CUT), data.scales)
        one = train(model, units, plan)
        name = f"{activation} {hidden}, {units.size} weights"
        say(f"  hybrid, {name}: {one.error:.3g}")
        if best is None or one.error < best.error:
            best = one
        found.append((name, one.error))
    assert best is not None
    return best.model, found


def identified(data: Data) -> tuple[jg.Model, dict[str, float]]:
    """The engine with its own law of drag; density and viscosity from the same motions, by Gauss-Newton."""
    from ..model.parameters import Entry
    from ..optimize.identify import Recording, Settings, identify
    from ..optimize.progress import Stop

    model = swimmer_world(2, 10.0, 0.01).compile(dt=DT, contact=None)
    m = data.training
    records = [Recording(m.q[:, i], m.qd[:, i], m.u[:, i]) for i in range(m.q.shape[1])]
    unknowns = [
        Entry("world.density", bounds=(0, 1e4), scale=100.0),
        Entry("world.viscosity", bounds=(0, 1), scale=0.01),
    ]
    # these motions come from a simulator: their states have no noise
    settings = Settings(sigma_q=data.scales[0], sigma_qd=data.scales[1], segment=CUT // 4, starts="exact")
    fit = identify(model, records, unknowns, settings, stop=Stop(iterations=50, patience=8))
    return fit.model, {e.name: e.value for e in fit.estimates}


def predicted(model: jg.Model, m: Motions) -> tuple[np.ndarray, np.ndarray]:
    motion = jg.rollout(model, jg.State(m.q[0], m.qd[0]), m.u, on_nan="freeze")
    return motion.q, motion.qd


# errors ------------------------------------------------------------------------------------------------------------------


def figures(q: np.ndarray, qd: np.ndarray, truth: Motions) -> dict[str, Any]:
    """Root mean squares over steps 200 to 900 of all runs: of q, of qd, by coordinate, and in units of how much each coordinate
    of the truth spreads (`relative`); the last also step by step, and the first run as an example."""
    off_q, off_qd = q - truth.q, qd - truth.qd
    rms = lambda a, axis=None: np.sqrt((a[CUT:] ** 2).mean(axis))  # noqa: E731
    spread = [a[CUT:].std((0, 1)) for a in (truth.q, truth.qd)]
    relative = np.concatenate([off_q / spread[0], off_qd / spread[1]], -1)
    return {
        "q": float(rms(off_q)), "qd": float(rms(off_qd)), "relative": float(rms(relative)),
        "by_coordinate": {"q": rms(off_q, (0, 1)).tolist(), "qd": rms(off_qd, (0, 1)).tolist()},
        "curve": [float(f"{x:.4g}") for x in np.sqrt((relative**2).mean((1, 2)))[::10]],
        "example": np.round(np.concatenate([q[::10, 0], qd[::10, 0]], -1), 5).tolist(),
    }  # fmt: skip


# the experiment ----------------------------------------------------------------------------------------------------------


def _rival(kind: str, data: Data, say: Callable[[str], None], quick: bool) -> dict[str, Any]:
    """A network alone, chosen by the motions that decide; also when it is shown the true states until step 200; and what
    all that were tried do on held-out motions."""
    from . import swimmer_rivals as rivals

    training, decide = (rivals.Data(m.q, m.qd, m.u) for m in (data.training, data.decide))
    stages, t = ((1, 50), (50, 2)) if quick else rivals.STAGES, data.test
    tried, best, error = [], None, np.inf
    for choice in rivals.choices(kind)[: 1 if quick else None]:
        net, deciding = rivals.trained(choice, training, decide, data.scales, ANGLES, DT, stages=stages)
        held = _brief(figures(*rivals.predicted(net, t.q, t.qd, t.u), t))
        tried.append({"choice": str(choice), "weights": net.count, "deciding_error": deciding, **held})
        say(f"  {choice}: {deciding:.3g}")
        if best is None or deciding < error:
            best, error = net, deciding
    assert best is not None
    said = figures(*rivals.predicted(best, t.q, t.qd, t.u), t)
    told = _brief(figures(*rivals.predicted(best, t.q, t.qd, t.u, told=CUT), t))
    return {**said, "told": told, "weights": best.count, "chosen": str(best.choice), "tried": tried}


def _brief(said: dict[str, Any]) -> dict[str, float]:
    return {k: said[k] for k in ("q", "qd", "relative")}


def _hybrid(medium: str, data: Data, out: Path, say: Callable[[str], None], quick: bool) -> dict[str, Any]:
    """Also the same weights on swimmers of five links, which they have never seen."""
    model, found = hybrid(data, say, quick)
    save_weights(model, out / f"hybrid {medium}.npz".replace(" ", "_"))
    said = {
        **figures(*predicted(model, data.test), data.test),
        "tried": found,
        "weights": model.params["graft.weight"].size,
    }
    if not quick:
        said["five links"] = five_links(medium, model)
    return said


def five_links(medium: str, model: jg.Model) -> dict[str, Any]:
    """Errors for swimmers of five links, with the weights of a model of two; and in vacuum."""
    blueprint = model.topology.grafts[0]
    longer = augmented(blueprint.sizes[1:-1], blueprint.activation, links=5)
    longer = longer.replace({"graft.weight": model.params["graft.weight"]})
    truth = recorded(medium, TEST_SEED, TEST_RUNS, links=5)
    plain = swimmer_world(5).compile(dt=DT, contact=None)
    return {name: _brief(figures(*predicted(m, truth), truth)) for name, m in (("hybrid", longer), ("vacuum", plain))}


def _identified(data: Data) -> dict[str, Any]:
    model, found = identified(data)
    return {**figures(*predicted(model, data.test), data.test), "found": found}


def reproduce(
    out: Path, say: Callable[[str], None], media: tuple[str, ...] = tuple(MEDIA), quick: bool = False
) -> dict[str, Any]:
    """All models in all media; a line for each. Ctrl-C leaves the finished ones."""
    for medium in media:
        if medium not in MEDIA:
            raise ValueError(f'there is no medium "{medium}"; the names are {", ".join(MEDIA)}')
    kept = Kept(out, "swimmer", {"quick": quick, "stages": STAGES, "networks": NETWORKS, "media": MEDIA}, say)
    plain = swimmer_world().compile(dt=DT, contact=None)
    try:
        for medium in media:
            data = data_of(medium, 3 if quick else TEST_RUNS)
            makers: dict[str, Callable[[], Any]] = {
                "vacuum": partial(_predicted_figures, plain, data.test),
                "identified": partial(_identified, data),
                "hybrid": partial(_hybrid, medium, data, out, say, quick),
                "LSTM": partial(_rival, "lstm", data, say, quick),
                "MLP": partial(_rival, "mlp", data, say, quick),
            }  # fmt: skip
            for name, make in makers.items():
                one = kept.part(f"{medium}/{name}", make)
                say(
                    f"{medium:10s} {name:10s} error of q {one['q']:.3g}, qd {one['qd']:.3g}, relative {one['relative']:.3g}"
                )
            kept.part(f"{medium}/truth", partial(_example, data.test))
    except KeyboardInterrupt:
        say(f"Interrupted: {len(kept.parts)} parts are kept.")
        raise
    kept.write(hybrid_over_lstm=compared(kept.parts))
    for medium, ratios in kept.said["hybrid_over_lstm"].items():
        say(f"{medium:10s} hybrid over LSTM: " + ", ".join(f"{k} {v:.2g}" for k, v in ratios.items()))
    from .swimmer_pictures import draw

    draw(kept.parts, out)
    return kept.said


def _predicted_figures(model: jg.Model, runs: Any) -> dict:
    return figures(*predicted(model, runs), runs)


def _example(test: Motions) -> dict[str, Any]:
    return {"example": np.round(np.concatenate([test.q[::10, 0], test.qd[::10, 0]], -1), 5).tolist()}


def compared(parts: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Errors of the hybrid in units of the LSTM's, by medium. told: of an LSTM that is shown the true states until step 200;
    of_best: of the one that is best on the held-out motions, which nobody could have known."""
    found: dict[str, dict[str, float]] = {}
    for medium in MEDIA:
        if f"{medium}/hybrid" in parts and f"{medium}/LSTM" in parts:
            ours, theirs = parts[f"{medium}/hybrid"], parts[f"{medium}/LSTM"]
            found[medium] = {k: ours[k] / theirs[k] for k in ("q", "qd", "relative")}
            found[medium]["told"] = ours["relative"] / theirs["told"]["relative"]
            found[medium]["of_best"] = ours["relative"] / min(one["relative"] for one in theirs["tried"])
    return found
