"""The viewer: scenes, saved runs, replays in one file, films, plots, and the pages in a real browser."""

from __future__ import annotations

import io
import json
import re
import time
import warnings
import zipfile

import numpy as np
import pytest
from oracles.browser import Browser, chromium

import jointgrad as jg
from jointgrad.cli import main
from jointgrad.model.rotations import rotation
from jointgrad.model.solids import SOLIDS, volume
from jointgrad.viewer import plots, replay, video
from jointgrad.viewer.film import film_of
from jointgrad.viewer.scene import Piece, quaternion, scene_of

in_browser = pytest.mark.skipif(chromium() is None, reason="there is no chromium to open the page with")
ROBOTS = ("ant", "humanoid", "laikago", "a1", "franka_arm", "racecar", "swimmer", "cart_pole", "golf")


def compiled(robot, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jg.UnsupportedWarning)
        return robot.compile(**options)


@pytest.fixture(scope="module")
def drop():
    """Three balls that fall from different heights and come to rest: the model and its motion."""
    ball = jg.Description("ball", base="free")
    link = ball.add_link("ball", 2.0, inertia=(0.008, 0.008, 0.008))
    link.shapes += [
        jg.Shape("sphere", (0.1,), color=(0.9, 0.3, 0.1, 1.0)),
        jg.Shape("box", (0.12, 0.02, 0.02), role="visual"),
    ]
    model = jg.World().add(ball).add_ground(friction=0.5).compile(dt=2e-3)
    start = model.initial_state(batch=3)
    start.q[:, 2] = 0.3, 0.5, 0.7
    start.qd[:, 0] = 0.3
    return model, jg.rollout(model, start, steps=400, force=np.zeros((400, 3, 2, 6)), outputs=("link.position",))


# scenes ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ROBOTS)
def test_every_shape_of_a_robot_is_drawn(name):
    model = compiled(getattr(jg.zoo, name)())
    scene = scene_of(model)
    assert not scene.notes
    assert len(scene.pieces) == len(model.topology.looks) > 0
    for piece in scene.solids:
        vertices, faces = piece.triangles()
        assert np.isfinite(vertices).all() and faces.max() < len(vertices)


@pytest.mark.parametrize("kind", SOLIDS)
def test_surfaces_enclose_the_solid(kind):
    size = {"sphere": (0.3,), "box": (0.1, 0.2, 0.3), "ellipsoid": (0.1, 0.2, 0.3)}.get(kind, (0.1, 0.4))
    corners, faces = Piece(0, kind, size, (1.0, 2.0, 3.0), (0.5, 0.5, 0.5, 0.5)).triangles()
    a, b, c = np.moveaxis(corners[faces], 1, 0)
    enclosed = np.einsum("ij,ij->", a, np.cross(b, c)) / 6
    assert enclosed == pytest.approx(volume(kind, size), rel=0.03)  # positive: counter-clockwise from outside
    assert (corners.max(0) + corners.min(0)) / 2 == pytest.approx([1, 2, 3], abs=1e-9)


def test_turns_there_and_back():
    q = np.random.default_rng(0).normal(size=(200, 4))
    q /= np.linalg.norm(q, axis=-1, keepdims=True)
    found = quaternion(rotation(q))
    assert np.abs(np.abs((found * q).sum(-1)) - 1).max() < 1e-12


def test_a_film_has_the_poses_of_the_motion_and_the_weight_on_the_ground(drop):
    model, traj = drop
    film = film_of(model, traj, fps=500)
    assert film.n_frames == 401 and film.n_shown == 3
    assert np.abs(film.position - traj.outputs["link.position"]).max() < 1e-12
    last = film.contacts.at(400)
    assert sorted(film.contacts.env[last]) == [0, 1, 2]
    assert film.contacts.force[last, 2] == pytest.approx(np.full(3, 2.0 * 9.81), rel=1e-3)


def test_environments_stand_apart_and_the_others_are_named(drop):
    model, traj = drop
    film = film_of(model, traj, environments=2)
    assert film.note.startswith("the first 2 of 3 environments")
    offsets = film.offsets()
    low, high = film.extent()
    assert np.linalg.norm(offsets[1] - offsets[0]) > (high - low)[1]


def test_gradients_become_arrows(drop):
    model, traj = drop
    q_bar = np.zeros((3, model.nq))
    q_bar[:, 0] = 1.0
    gradient = traj.backward(q_bar=q_bar)
    film = film_of(model, traj, gradient)
    assert [a.label for a in film.arrows] == ["dL/d start position", "dL/d force"]
    assert film.arrows[0].vector[0, :, 0] == pytest.approx(gradient.q[:, :3])
    env, at, vector, which = film.gradient_arrows(0)
    assert at[which == 0] == pytest.approx(film.position[0, :, 0][env[which == 0]])
    assert (vector[:, 0] > 0).all()


def test_a_mesh_is_drawn_and_a_missing_one_is_named(tmp_path):
    trimesh = pytest.importorskip("trimesh")
    trimesh.creation.box((1, 1, 1)).export(tmp_path / "box.stl")
    robot = jg.Description()
    link = robot.add_link("base", 1.0)
    for name in ("box.stl", "lost.stl"):
        link.shapes.append(jg.Shape("mesh", (0.2, 0.4, 0.6), mesh=str(tmp_path / name), role="visual"))
    scene = scene_of(compiled(robot))
    assert len(scene.pieces) == 1 and "lost.stl" in scene.notes[0]
    assert np.ptp(scene.pieces[0].triangles()[0], axis=0) == pytest.approx([0.2, 0.4, 0.6])


# saved runs -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def saved(drop, tmp_path):
    drop[1].save(tmp_path / "run.npz", gradient=drop[1].backward(qd_bar=np.ones((3, drop[0].nv))))
    return tmp_path / "run.npz"


def test_a_run_comes_back_exactly(drop, saved):
    model, traj = drop
    run = replay.load_run(saved)
    film = film_of(model, traj, traj.backward(qd_bar=np.ones((3, model.nv))))
    assert np.array_equal(run.q, traj.q) and np.array_equal(run.qd, traj.qd)
    for name in ("time", "position", "orientation"):
        assert np.array_equal(getattr(run.film, name), getattr(film, name))
    for name in replay.TABLE:
        assert np.array_equal(getattr(run.film.contacts, name), getattr(film.contacts, name))
    assert [p.kind for p in run.film.scene.pieces] == [p.kind for p in film.scene.pieces]
    assert np.array_equal(run.film.arrows[1].vector, film.arrows[1].vector)


def edited(saved, **changes):
    """The same file with other arrays."""
    with np.load(saved) as whole:
        arrays = dict(whole) | changes
    np.savez(saved, **arrays)
    return saved


def scene_with(saved, **changes):
    with np.load(saved) as whole:
        scene = json.loads(whole["scene"].tobytes()) | changes
    return edited(saved, scene=np.frombuffer(json.dumps(scene).encode(), np.uint8))


HOSTILE = {
    "pickle": lambda f: edited(f, q=np.array([{"a": 1}], dtype=object)),
    "text instead of numbers": lambda f: edited(f, q=np.array(["a"])),
    "wrong shape": lambda f: edited(f, position=np.zeros((3, 3, 3))),
    "not finite": lambda f: edited(f, orientation=np.full((49, 3, 2, 4), np.nan)),
    "link that is not there": lambda f: edited(f, **{"contact.links": np.full_like(np.load(f)["contact.links"], 9)}),
    "time backwards": lambda f: edited(f, time=-np.load(f)["time"]),
    "no scene": lambda f: edited(f, scene=np.zeros(0, np.uint8)),
    "not JSON": lambda f: edited(f, scene=np.frombuffer(b"{", np.uint8)),
    "deep JSON": lambda f: edited(f, scene=np.frombuffer(b"[" * 200_000, np.uint8)),
    "other format": lambda f: scene_with(f, format="other"),
    "links are a number": lambda f: scene_with(f, links=3),
    "strange piece": lambda f: scene_with(f, pieces=[{"link": 0, "kind": "portal", "role": "both", "size": []}]),
    "piece of a lost link": lambda f: scene_with(
        f, pieces=[{"link": 7, "kind": "sphere", "role": "both", "size": [1]}]
    ),
    "piece without numbers": lambda f: scene_with(
        f, pieces=[{"link": 0, "kind": "sphere", "role": "both", "size": ["x"], "orientation": [1, 0, 0, 0]}]
    ),
    "not a zip": lambda f: f.write_bytes(b"hello") and f,
    "empty": lambda f: (f.write_bytes(b""), f)[1],
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_runs_are_refused(what, saved):
    HOSTILE[what](saved)
    with pytest.raises(jg.InputError, match="is not a run that jointgrad saved"):
        replay.load_run(saved)


def test_a_header_that_promises_too_much_costs_no_memory(saved):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**12, 7)})
    with zipfile.ZipFile(saved, "a") as archive:
        archive.writestr("huge.npy", header.getvalue())
    with pytest.raises(jg.InputError, match="but is shorter"):
        replay.load_run(saved)


def test_a_file_that_unpacks_to_too_much_is_refused(saved):
    with pytest.raises(jg.InputError, match=r"jg.budget\(unpacked_bytes="), jg.budget(unpacked_bytes=10_000):
        replay.load_run(saved)


# files to look at -----------------------------------------------------------------------------------------------------


def test_the_replay_needs_nothing_else_and_no_name_breaks_out(drop, tmp_path):
    page = replay.html(*drop, tmp_path / "a.html", title="</title></script><script>alert(1)//").read_text()
    outside = re.sub(r'<script id="film".*?</script>', "", page, flags=re.S)
    assert not re.search(r"https?:|//cdn|\bsrc=|@import|url\(|fetch\(|<link", outside)
    assert "default-src 'none'" in page
    assert page.count("<script") == page.count("</script>") == 2 and page.count("</title>") == 1


def test_pictures_show_the_robot_and_move(drop, tmp_path):
    image = pytest.importorskip("PIL.Image")
    film = film_of(*drop)
    painter = video.Painter(film, 160, 100, contacts=False)
    first, last = painter.picture(0), painter.picture(film.n_frames - 1)
    film.scene.pieces = film.scene.planes
    empty = video.Painter(film, 160, 100, contacts=False)
    empty.camera = painter.camera
    assert (np.abs(first.astype(int) - empty.picture(0)).max(-1) > 20).sum() > 50
    assert (np.abs(first.astype(int) - last).max(-1) > 20).sum() > 50
    with image.open(video.gif(film_of(*drop), tmp_path / "a.gif", 120, 80, speed=2.0)) as moving:
        assert moving.n_frames == 11


def test_the_command_line_writes_replays(saved, tmp_path):
    assert main(["replay", str(saved), "--html", str(tmp_path / "a.html"), "--png", str(tmp_path / "a.png")]) == 0
    assert (tmp_path / "a.html").stat().st_size > 10_000 and (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"
    (tmp_path / "ball.urdf").write_text(
        '<robot name="b"><link name="l"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
        '</inertial><visual><geometry><sphere radius="0.1"/></geometry></visual></link></robot>'
    )
    assert main(["view", str(tmp_path / "ball.urdf"), "--html", str(tmp_path / "b.html")]) == 0
    assert main(["replay", str(tmp_path / "lost.npz"), "--html", str(tmp_path / "c.html")]) == 2


def test_plots(drop, tmp_path):
    model, traj = drop
    plots.loss_curves({"adam": [3, 2, 1], "sgd": np.ones((4, 3))}, tmp_path / "loss.png")
    figure = plots.contact_timeline(traj, tmp_path / "contacts.png", env=1)
    assert [t.get_text() for t in figure.axes[0].get_yticklabels()] == ["ball"]
    swing = compiled(jg.zoo.pendulum(2), dt=5e-3)
    plots.phase(jg.rollout(swing, swing.initial_state(), steps=50), path=tmp_path / "phase.png")
    figure = plots.loss_landscape(
        lambda x: ((x - 0.5) ** 2).sum(-1), np.zeros(2), ((1, 0), (0, 1)), path=tmp_path / "land.png"
    )
    lowest = figure.axes[0].lines[1].get_xydata()
    assert lowest == pytest.approx(np.array([[0.5, 0.5]]))
    assert len(list(tmp_path.glob("*.png"))) == 4
    with pytest.raises(jg.InputError, match="no joint"):
        plots.phase(traj, ["elbow"])


# in a real browser ----------------------------------------------------------------------------------------------------


def pixels(png: bytes) -> np.ndarray:
    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)


def differing(a: bytes, b: bytes) -> int:
    """How many pixels of the picture, not of the controls on its edges, differ clearly."""
    middle = slice(100, 360), slice(100, 600)
    return int((np.abs(pixels(a)[middle] - pixels(b)[middle]).max(-1) > 25).sum())


@in_browser
def test_the_replay_plays_in_a_browser(drop, tmp_path):
    film = film_of(*drop)
    whole = replay.write_html(film, tmp_path / "whole.html")
    film.scene.pieces = film.scene.planes
    text = replay.write_html(film, tmp_path / "empty.html")
    with Browser() as browser:
        shots = {}
        for name, path in (("whole", whole), ("empty", text)):
            browser.open(path.as_uri())
            browser.wait_for("!!document.getElementById('clock').textContent")
            browser.evaluate("shown.contacts = false; camera.range = 2; camera.at = [0, 0, .3]; go(0)")
            time.sleep(1.5)
            shots[name] = browser.screenshot()
        assert differing(shots["whole"], shots["empty"]) > 300
        browser.open(whole.as_uri())
        browser.evaluate("shown.contacts = false; camera.range = 2; camera.at = [0, 0, .3]; go(0)")
        time.sleep(1.0)
        still, again = browser.screenshot(), browser.screenshot()
        assert differing(still, again) == 0
        browser.evaluate("document.getElementById('play').click()")
        browser.wait_for("clock > 0.3")
        browser.evaluate("document.getElementById('play').click()")
        time.sleep(1.0)
        assert differing(still, browser.screenshot()) > 300


@in_browser
def test_the_viewer_opens_in_a_browser_and_plays(drop):
    pytest.importorskip("viser")
    viewer = jg.view(*drop, block=False, port=8271)
    try:
        with Browser() as browser:
            browser.open(viewer.address)
            browser.wait_for("document.body.innerText.includes('Motion') && !!document.querySelector('canvas')")
            time.sleep(9.0)  # the page fades in
            first = browser.screenshot()
            viewer.show(viewer.film.n_frames - 1)
            time.sleep(3.0)
            moved = browser.screenshot()
            assert differing(first, moved) > 100
            for skin in viewer.skins:
                skin.visible = False
            time.sleep(3.0)
            assert differing(moved, browser.screenshot()) > 100
            button = "[...document.querySelectorAll('button')].find(b => b.innerText === 'Play')"
            browser.evaluate(f"{button}.click()")
            browser.wait_for("document.body.innerText.includes('Pause')")
            frames = set()
            for _ in range(30):
                frames.add(viewer.frame)
                time.sleep(0.05)
            assert len(frames) > 3
    finally:
        viewer.stop()


def test_joints_are_dragged_and_physics_runs():
    pytest.importorskip("viser")
    model = compiled(jg.zoo.cart_pole(), dt=5e-3)
    viewer = jg.view(model, block=False, port=8272)
    try:
        pose = viewer.pose
        before = viewer.links[0][-1].position.copy()
        pose.set_state(jg.State(pose.state.q + 0.4, pose.state.qd))
        assert np.abs(viewer.links[0][-1].position - before).max() > 0.1
        assert pose.sliders[0][0].value == pytest.approx(pose.state.q[pose.sliders[0][1]], abs=1e-9)
        start = pose.state.q.copy()
        pose.advance_steps(20)
        assert np.abs(pose.state.q - start).max() > 1e-4
    finally:
        viewer.stop()
