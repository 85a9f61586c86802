"""Attacks on what strangers may send and callers may say: each prints ok or BAD, with what it took.

    python benchmarks/attack.py [NAME ...]

Every attack runs in a process of its own, so that its time and its memory are its own. It is ok where it returns, which it does
by what it asserts, within 10 s of processor time and 1 GB.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import resource
import struct
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import jointgrad as jg

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from worlds import chain, mjcf

SECONDS, MEGABYTES = 10.0, 1000.0
ATTACKS: dict[str, Callable[[], str]] = {}


def attack(what: Callable[[], str]) -> Callable[[], str]:
    """An attack by its name: it returns what became of it, and raises where we were wrong."""
    ATTACKS[what.__name__] = what
    return what


def refused(entry: str, call: Callable[[], object]) -> str:
    """The budget must refuse it, by an error of ours that names the entry that raises it."""
    try:
        call()
    except (jg.ModelError, jg.InputError, jg.SimulationError) as error:
        assert f"jg.budget({entry}=" in str(error), error
        return f"refused ({entry})"
    raise AssertionError("it was taken")


# files of robots ---------------------------------------------------------------------------------------------------------


@attack
def replicate_1e15() -> str:
    return refused("parts", lambda: jg.load(mjcf('<replicate count="1e15"/>')))


@attack
def replicate_nested() -> str:
    deep = '<replicate count="300">' * 3 + '<geom size="1"/>' + "</replicate>" * 3
    return refused("parts", lambda: jg.load(mjcf(deep)))


@attack
def spheres_30_000() -> str:
    text = mjcf('<replicate count="30000"><body><freejoint/><geom size=".1"/></body></replicate>')
    return refused("parts", lambda: jg.load(text).compile())


@attack
def spheres_14_000() -> str:
    text = mjcf('<replicate count="14000"><body><freejoint/><geom size=".1"/></body></replicate>')
    return refused("pairs", lambda: jg.load(text).compile())


@attack
def spheres_in_one_place() -> str:
    """Shapes of one body, and of the world, never touch each other, however many there are."""
    still = '<replicate count="20000"><geom size=".1"/></replicate>'
    model = jg.load(mjcf(still + f"<body><freejoint/>{still}</body>".replace("20000", "10"))).compile()
    return f"compiled, {model.topology.tree['n_pairs']} pairs"


@attack
def actuators_of_copies() -> str:
    body = '<replicate count="1000"><body><joint name="j"/><geom size=".1"/></body></replicate>'
    text = mjcf(body, "<actuator>" + '<motor joint="j"/>' * 1000 + "</actuator>")
    return refused("parts", lambda: jg.load(text))


@attack
def actuators_without_names() -> str:
    motors = '<motor joint="j"/>' * 20_000
    text = mjcf('<body><joint name="j"/><geom size=".1"/></body>', f"<actuator>{motors}</actuator>")
    return f"{len(jg.load(text).actuators)} actuators"


@attack
def default_classes_300_000() -> str:
    many = "".join(f'<default class="c{i}"/>' for i in range(300_000))
    return refused("classes", lambda: jg.load(mjcf("", f"<default>{many}</default>")))


@attack
def damping_ratio_of_5000_joints() -> str:
    body = '<replicate count="5000"><body><joint springdamper="1 1"/><geom size=".1"/></body></replicate>'
    return refused("rows", lambda: jg.load(mjcf(body)))


@attack
def chain_of_20_000() -> str:
    model = chain(20_000).compile()
    model.initial_state()
    return f"compiled, {len(model.topology.tree['path'])} steps of paths"


@attack
def damped_chain_of_20_000() -> str:
    model = chain(20_000, damping=0.1).compile()
    return f"compiled, nv={model.nv}"


@attack
def limited_chain_of_20_000() -> str:
    """It compiles; that a step takes the square of its length is said before the memory is taken."""
    from jointgrad.engine.run.runtime import worker

    model = chain(20_000, limit=(-1.0, 1.0)).compile()

    def borrow() -> None:
        with worker(model):
            pass

    return refused("working_bytes", borrow)


@attack
def comb_of_20_000() -> str:
    robot = chain(10_000)
    for i in range(10_000):
        robot.add_link(f"t{i}", 1.0, inertia=(1.0, 1.0, 1.0))
        robot.add_joint(f"u{i}", "revolute", f"l{i}", f"t{i}", axis=(0, 1, 0))
    return refused("path", robot.compile)


# meshes ------------------------------------------------------------------------------------------------------------------


def glb(said: dict) -> bytes:
    text = json.dumps(said).encode()
    text += b" " * (-len(text) % 4)
    return struct.pack("<III", 0x46546C67, 2, 20 + len(text)) + struct.pack("<I4s", len(text), b"JSON") + text


@attack
def glb_of_380_bytes() -> str:
    from jointgrad.files.mesh import load_mesh

    said = {
        "asset": {"version": "2.0"}, "bufferViews": [], "scenes": [{"nodes": [0]}], "scene": 0, "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
        "accessors": [{"componentType": 5126, "count": 200_000_000, "type": "VEC3"}],
    }  # fmt: skip
    Path("a.glb").write_bytes(glb(said))
    return refused("corners", lambda: load_mesh("a.glb"))


@attack
def obj_of_20_000_groups() -> str:
    from jointgrad.files.mesh import load_mesh

    corners = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\n"
    groups = "".join(f"g a{i}\nusemtl m{i}\nf 1 2 3\nf 1 2 4\nf 1 3 4\nf 2 3 4\n" for i in range(20_000))
    Path("a.obj").write_text(corners + groups)
    return f"{len(load_mesh('a.obj').faces)} triangles"


@attack
def stl_of_20_000_solids() -> str:
    from jointgrad.files.mesh import load_mesh

    facet = "facet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\nendloop\nendfacet\n"
    Path("a.stl").write_text("".join(f"solid s{i}\n{facet}endsolid s{i}\n" for i in range(20_000)))
    return f"{len(load_mesh('a.stl').faces)} triangles"


@attack
def one_stl_read_30_times() -> str:
    n = 100_000
    facet = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("rest", "<u2")])
    data = np.zeros(n, facet)
    data["corners"] = np.random.default_rng(0).normal(size=(n, 3, 3))
    Path("a.stl").write_bytes(bytes(80) + struct.pack("<I", n) + data.tobytes())
    asset = '<asset><mesh name="m" file="a.stl"/></asset>'
    Path("a.xml").write_text(mjcf("<body><joint/>" + '<geom type="mesh" mesh="m"/>' * 30 + "</body>", asset))
    opened, original = [], Path.read_bytes
    Path.read_bytes = lambda self: opened.append(self) or original(self)  # type: ignore[method-assign,func-returns-value]
    said = refused("corners", lambda: jg.load("a.xml"))
    assert len(opened) == 1, opened
    return f"read once, {said}"


# saved runs, recordings, films --------------------------------------------------------------------------------------------


def bomb(path: str, names: tuple[str, ...], megabytes: int) -> None:
    """An .npz file of zeros, a thousandth of what it unpacks to."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (megabytes * 125_000 // len(names), 1)}
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                file.write(header.getvalue())
                for _ in range(megabytes // len(names)):
                    file.write(bytes(1_000_000))


@attack
def run_that_unpacks_to_1_gb() -> str:
    from jointgrad.viewer.replay import load_run

    bomb("a.npz", ("q", "qd"), 1000)
    said = refused("unpacked_bytes", lambda: load_run("a.npz"))
    return f"{os.path.getsize('a.npz') / 1e6:.1f} MB, {said}"


@attack
def recording_that_unpacks_to_1_gb() -> str:
    from jointgrad.optimize.recording_file import read_recording

    bomb("a.npz", ("q", "qd"), 1000)
    return refused("unpacked_bytes", lambda: read_recording(Path("a.npz")))


@attack
def gif_of_1e9_seconds() -> str:
    from jointgrad.viewer import video
    from jointgrad.viewer.film import Contacts, Film
    from jointgrad.viewer.scene import Piece, Scene

    nothing = Contacts(*(np.zeros(0, int),) * 2, np.zeros((0, 2), int), *(np.zeros((0, 3)),) * 2)
    turn = np.tile((1.0, 0, 0, 0), (2, 1, 1, 1))
    scene = Scene(("a",), [Piece(0, "sphere", (0.1,))], (False,))
    film = Film(scene, np.array([0.0, 1e9]), np.zeros((2, 1, 1, 3)), turn, nothing)
    refused("video_seconds", lambda: video.mp4(film, "a.mp4"))
    return refused("video_seconds", lambda: video.gif(film, "a.gif"))


@attack
def cloud_of_1e6_points() -> str:
    from jointgrad.viewer.scene import scene_of

    robot = jg.Description()
    robot.add_link("a", 1.0).shapes.append(jg.Shape("points", (0.0,), points=np.zeros((1_000_000, 3)), role="visual"))
    return refused("corners", lambda: scene_of(robot.compile()))


# contact ------------------------------------------------------------------------------------------------------------------


def well(said: str, is_well: bool) -> str:
    """What became of it, if that is as it should be."""
    assert is_well, said
    return said


def body(kind: str, size: tuple[float, ...], mass: float = 1.0) -> jg.Description:
    robot = jg.Description("body", base="free")
    inertia = 0.4 * mass * 0.01
    robot.add_link("body", mass, inertia=(inertia, 0, 0, inertia, 0, inertia)).shapes.append(jg.Shape(kind, size))
    return robot


def row_of_balls(count: int) -> jg.Model:
    world = jg.World(gravity=(0, 0, 0))
    for k in range(count):
        world.add(body("sphere", (0.1,)), name=f"b{k}", position=(k * (0.2 - 1e-9), 0, 0))
    return world.pair("*", "*", restitution=1.0, friction=0.0).compile(dt=1e-3)


def gain_of(speeds: tuple[float, ...]) -> str:
    model = row_of_balls(len(speeds))
    state = model.initial_state()
    state.qd[::6] = speeds
    motion = jg.rollout(model, state, steps=50)
    energy = (motion.qd**2).sum(-1)
    gain = energy.max() / energy[0] - 1
    return well(f"{speeds} -> {motion.last.qd[::6].round(3).tolist()}, energy at most {gain:+.1e}", gain < 1e-6)


@attack
def three_balls_bounce() -> str:
    return gain_of((0.5, 1.0, 0.0))


@attack
def cradle_bounces() -> str:
    return gain_of((1.0, 0.0, 0.0, 0.0, 0.0))


@attack
def random_rows_bounce() -> str:
    rng = np.random.default_rng(0)
    found = [gain_of(tuple(rng.normal(size=5).round(2).tolist())) for _ in range(20)]
    return f"20 rows of five balls; the last {found[-1]}"


@attack
def one_ball_bounces_for_twenty_seconds() -> str:
    world = jg.World().add(body("sphere", (0.1,)), position=(0, 0, 0.6)).add_ground(restitution=1.0)
    model = world.compile(dt=1e-3)
    motion = jg.rollout(model, model.initial_state(), steps=20_000)
    gain = (motion.q[-2000:, 2].max() - 0.1) / 0.5 - 1
    return well(f"height of the last bounces {gain:+.2%}", -0.01 < gain < 1e-6)


@attack
def restitution_begins() -> str:
    model = jg.World().add(body("sphere", (0.1,)), position=(0, 0, 0.1009)).add_ground().compile(dt=1e-3)
    state = jg.State(model.initial_state().q, np.array([0, 0, -1.0, 0, 0, 0]))
    speeds = [jg.step(model.replace({"pair.restitution": [e]}), state).qd[2] for e in (0.0, 1e-12)]
    return well(f"next vz {speeds[0]:.3g} and {speeds[1]:.3g}", abs(speeds[0] - speeds[1]) < 1e-6)


@attack
def plane_on_a_moving_body() -> str:
    tray = jg.Description("tray", base="fixed")
    tray.add_link("tray", 1.0, inertia=(1, 0, 0, 1, 0, 1)).shapes.append(jg.Shape("plane", ()))
    tray.add_joint("lift", "prismatic", None, "tray", axis=(0, 0, 1), limit=(0.0, 1.0))
    heights = []
    for x in (0.15, 0.3, 30.0):
        model = jg.World().add(tray).add(body("sphere", (0.1,)), position=(x, 0, 0.1)).compile(dt=1e-3)
        heights.append(jg.rollout(model, model.initial_state(), steps=500).last.q[3])
    return well(f"balls at {np.round(heights, 4).tolist()}", min(heights) > 0.09)


@attack
def wide_margin_between_two_trees() -> str:
    world = jg.World(gravity=(0, 0, 0))
    for k in range(2):
        world.add(body("sphere", (0.1,)), name=f"b{k}", position=(0.6 * k, 0, 0))
    model = world.pair("*", "*", margin=0.5).compile(dt=1e-3)
    contacts = jg.inspect(model, model.initial_state()).contacts
    return well(f"{len(contacts)} contact 0.4 m apart with a margin of 0.5 m", len(contacts) == 1)


@attack
def heavy_bodies_rest() -> str:
    depths = []
    for mass in (1.0, 3e7, 1e8):
        model = jg.World().add(body("sphere", (0.1,), mass), position=(0, 0, 0.1)).add_ground().compile(dt=1e-3)
        depths.append(0.1 - jg.rollout(model, model.initial_state(), steps=1000).last.q[2])
    return well(f"1, 3e7 and 1e8 kg sink in by {', '.join(f'{d:.1e}' for d in depths)} m", max(depths) < 1e-6)


@attack
def a_tonne_on_a_kilogram() -> str:
    world = jg.World().add_ground()
    for k, mass in enumerate((1.0, 1000.0)):
        world.add(body("box", (0.1,) * 3, mass), name=f"b{k}", position=(0, 0, 0.1 + 0.2 * k))
    model = world.compile(dt=1e-3)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        jg.rollout(model, model.initial_state(), steps=300)
    return well(f"warned: {seen[0].message if seen else 'no'}", len(seen) == 1)


# running them ---------------------------------------------------------------------------------------------------------------


def run_one(name: str) -> dict:
    """In this process: what became of it, and what it took."""
    warnings.simplefilter("ignore")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            said, good = ATTACKS[name](), True
        except BaseException as error:
            traceback.print_exc(limit=-3)
            said, good = f"{type(error).__name__}: {error}", False
        os.chdir("/")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "said": said,
        "good": good,
        "seconds": time.process_time() - start,
        "peak": peak / 1024,
        "before": before / 1024,
    }


def run(name: str) -> bool:
    """In a process of its own; prints a line."""
    command = [sys.executable, __file__, "--here", name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=6 * SECONDS)
    except subprocess.TimeoutExpired:
        print(f"BAD  {name}: not done after {6 * SECONDS:g} s", flush=True)
        return False
    if done.returncode:
        print(f"BAD  {name}: the process ended with {done.returncode}\n{done.stderr[-2000:]}", flush=True)
        return False
    one = json.loads(done.stdout.splitlines()[-1])
    good = one["good"] and one["seconds"] < SECONDS and one["peak"] < MEGABYTES
    print(
        f"{'ok ' if good else 'BAD'}  {name}: {one['said']}; {one['seconds']:.1f} s, {one['peak']:.0f} MB", flush=True
    )
    if not one["good"]:
        print(done.stderr[-2000:])
    return good


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="only these")
    parser.add_argument("--here", metavar="NAME", help="one of them in this very process, as JSON")
    options = parser.parse_args()
    if options.here:
        print(json.dumps(run_one(options.here)))
        return
    good = [run(name) for name in options.names or ATTACKS]
    print(f"{sum(good)} of {len(good)} attacks ok")
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
