"""What strangers may cost and reach: one budget for files, worlds and films; names that stay names; pages that stay apart."""

from __future__ import annotations

import cProfile
import http.server
import io
import re
import struct
import threading
import time
import tracemalloc
import warnings
import zipfile

import numpy as np
import pytest
from oracles.browser import Browser, chromium
from worlds import chain, mjcf

import jointgrad as jg
from jointgrad.files import load, load_world
from jointgrad.files.lint import lint
from jointgrad.files.mesh import load_mesh
from jointgrad.files.mjcf import load_mjcf
from jointgrad.files.npz import read_npz
from jointgrad.files.xml import FileError, confined
from jointgrad.model import budget as budgets
from jointgrad.model.candidates import candidate_pairs
from jointgrad.model.trees import visits
from jointgrad.optimize.recording_file import read_recording
from jointgrad.viewer import plots, replay, video
from jointgrad.viewer.film import film_of
from jointgrad.viewer.guard import is_ours
from jointgrad.viewer.markup import plain
from jointgrad.viewer.scene import scene_of

in_browser = pytest.mark.skipif(chromium() is None, reason="there is no chromium to open the page with")


def quiet(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call()


# the budget --------------------------------------------------------------------------------------------------------------


def test_a_budget_holds_inside_its_block_and_for_its_process(monkeypatch):
    world = jg.World().add(chain(3))
    with jg.budget(bodies=2):
        with pytest.raises(jg.ModelError, match=r"3 links of one world, more than the 2 .* jg.budget\(bodies=3.03\)"):
            world.compile()
        with jg.budget(bodies=3):
            assert world.compile().n_links == 3
    assert world.compile().n_links == 3
    monkeypatch.setenv("JOINTGRAD_BUDGET", "pairs=5, bodies=2")
    with pytest.raises(jg.ModelError, match="JOINTGRAD_BUDGET=bodies=3.03"):
        world.compile()


@pytest.mark.parametrize("text", ("bodies", "bodies=x", "bodies=-1", "bodies=nan", "boddies=3"))
def test_a_budget_that_means_nothing_is_refused(text, monkeypatch):
    monkeypatch.setenv("JOINTGRAD_BUDGET", text)
    with pytest.raises(jg.InputError, match="JOINTGRAD_BUDGET"):
        budgets.present()


def test_what_a_refusal_asks_for_is_enough():
    for amount in (1_000_000_001, 500_001, 999_999):
        asked = float(re.search(r"parts=([\d.e+]+)", budgets.excess("parts", amount))[1])
        with jg.budget(parts=asked):
            assert budgets.excess("parts", amount) == ""


# files of robots ---------------------------------------------------------------------------------------------------------

COPIES = '<replicate count="30"><body><joint name="j"/><geom size=".1"/></body></replicate>'
COSTLY = {
    "empty copies": ("parts", mjcf('<replicate count="1e15"/>')),
    "copies in copies": ("parts", mjcf('<replicate count="1e5">' * 2 + "</replicate>" * 2)),
    "what drives copies": ("parts", mjcf(COPIES, "<actuator>" + '<motor joint="j"/>' * 9000 + "</actuator>")),
    "what holds copies": (
        "parts", mjcf(COPIES, "<equality>" + '<joint joint1="j"/>' * 9000 + "</equality>"),
    ),
    "tendons over copies": (
        "parts", mjcf(COPIES, "<tendon>" + '<fixed><joint joint="j" coef="1"/></fixed>' * 9000 + "</tendon>"),
    ),
    "keys": (
        "parts",
        mjcf(
            '<replicate count="3000"><body><joint/><geom size=".1"/></body></replicate>',
            "<keyframe>" + '<key qpos="1"/>' * 100 + "</keyframe>",
        ),
    ),
    "classes": (
        "classes", mjcf("", "<default>" + "".join(f'<default class="c{i}"/>' for i in range(10_001)) + "</default>"),
    ),
    "damping ratios": (
        "rows",
        mjcf('<replicate count="2100"><body><joint springdamper="1 1"/><geom size=".1"/></body></replicate>'),
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", COSTLY)
def test_files_that_grow_are_refused(what):
    entry, text = COSTLY[what]
    with pytest.raises(jg.ModelError, match=rf"jg.budget\({entry}="):
        quiet(lambda: load_mjcf(text))


def test_default_classes_share_what_they_do_not_change():
    from jointgrad.files.mjcf.source import read

    items = "".join(f'<geom rgba="{i} 0 0 1"/><joint damping="{i}"/><site rgba="{i} 0 0 1"/>' for i in range(3))
    inner = '<default class="a"/><default class="b"><geom margin="1"/></default>'
    d = read(mjcf("", f"<default>{items}{inner}</default>"), ()).defaults.attributes
    assert d["a"]["geom"] is d["main"]["geom"] and d["b"]["joint"] is d["main"]["joint"]
    assert d["b"]["geom"] == {"rgba": "2 0 0 1", "margin": "1"} and "margin" not in d["main"]["geom"]


@pytest.mark.parametrize("name", ("contype", "conaffinity", "condim", "priority"))
@pytest.mark.parametrize("value", ("1 2", "inf", "1.5", "1e300"))
def test_bits_and_ranks_of_shapes_are_whole_numbers(name, value):
    with pytest.raises(FileError, match=rf"<geom {name}="):
        load_mjcf(mjcf(f'<body><joint/><geom size=".1" {name}="{value}"/></body>'))


@pytest.mark.parametrize(
    "text", ('<exclude body1="b"/>', '<exclude body2="b"/>', '<pair geom1="g"/>', '<pair geom2="g"/>')
)
def test_what_contact_speaks_of_is_named(text):
    with pytest.raises(FileError, match="needs the attribute"):
        load_mjcf(mjcf('<body name="b"><joint/><geom name="g" size=".1"/></body>', f"<contact>{text}</contact>"))


# worlds ------------------------------------------------------------------------------------------------------------------


def cost(call):
    """Calls of functions, and bytes at the worst moment."""
    profile = cProfile.Profile()
    tracemalloc.start()
    profile.enable()
    quiet(call)
    profile.disable()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return sum(entry.callcount for entry in profile.getstats()), peak


@pytest.mark.parametrize(
    "options", ({}, {"damping": 0.1, "limit": (-1.0, 1.0), "anchor": (0.0, 0.0, 0.1)}), ids=("bare", "full")
)
def test_compile_grows_with_the_links(options):
    robots = [chain(n, **options) for n in (400, 800)]  # where an eigenvalue takes as many visits for both
    quiet(lambda: chain(5, **options).compile())  # what is imported and cached counts for neither
    (calls, bytes_), (more_calls, more_bytes) = (cost(robot.compile) for robot in robots)
    # tables of Python grow by powers of two; what grows with the square would be four times as much
    assert more_calls < 2.5 * calls and more_bytes < 2.5 * bytes_


def test_a_chain_writes_its_paths_once():
    tree = chain(50).compile().topology.tree
    assert len(tree["path"]) == 50
    for b in range(50):
        assert tree["path"][tree["path_first"][b] : tree["path_first"][b] + tree["path_length"][b]] == [*range(b + 1)]


def test_paths_of_random_trees_lead_from_root_to_body():
    for seed in range(20):
        tree = quiet(lambda seed=seed: jg.zoo.random_tree(12, seed).compile().topology.tree)
        n = tree["n_bodies"]
        for b in range(n):
            way, at = [], b
            while at < n:
                if tree["n_dof"][at] < 6:
                    way = [*range(tree["dof"][at], tree["dof"][at] + tree["n_dof"][at]), *way]
                at = tree["parent"][at]
            first = tree["path_first"][b]
            assert tree["path"][first : first + tree["path_length"][b]] == way
            assert all(tree["place"][d] == k for k, d in enumerate(way))


def test_visits_tell_who_carries_whom():
    rng = np.random.default_rng(0)
    n = 60
    parent = [n if b == 0 or rng.random() < 0.1 else int(rng.integers(b)) for b in range(n)]
    enter, leave = visits(parent)
    for b in range(n):
        above = {b}
        while parent[b] < n:
            b = parent[b]
            above.add(b)
        first = max(above)
        assert {a for a in range(n) if enter[a] <= enter[first] < leave[a]} == above


def test_pairs_are_those_of_different_bodies():
    """Against all pairs asked one by one."""
    rng = np.random.default_rng(1)
    world = jg.World().add_ground()
    for k in range(6):
        robot = jg.Description(f"r{k}", base="free")
        for i in range(3):
            link = robot.add_link(f"l{i}", 1.0, inertia=(1.0, 1.0, 1.0))
            if i:
                robot.add_joint(f"j{i}", "revolute", f"l{i - 1}", f"l{i}", axis=(1, 0, 0))
            for _ in range(rng.integers(3)):
                cloud = jg.Shape("points", (0.0,), points=rng.normal(size=(2, 3)))
                others = jg.Shape("plane"), jg.Shape("sphere", (0.1,)), jg.Shape("box", (0.1, 0.1, 0.1))
                link.shapes.append((cloud, *others)[rng.integers(4)])
        world.add(robot, name=f"r{k}")
    from jointgrad.model.contact_shapes import shapes_of
    from jointgrad.model.parts import WorldParts, add_robot
    from jointgrad.model.topology import bodies_of

    parts = WorldParts()
    for placed in world.placed:
        add_robot(placed, parts)
    shapes, _ = shapes_of(parts.links, bodies_of(parts), True)

    def can_touch(a, b):
        are_points = a.shape.kind == b.shape.kind == "points"
        return a.body != b.body and not are_points and not (a.shape.kind == b.shape.kind == "plane")

    expected = [[i, j] for j in range(len(shapes)) for i in range(j) if can_touch(shapes[i], shapes[j])]
    assert candidate_pairs(shapes).tolist() == expected and len(expected) > 50


def test_worlds_that_cost_too_much_are_refused():
    many = jg.load(mjcf('<replicate count="800"><body><freejoint/><geom size=".1"/></body></replicate>'))
    with pytest.raises(jg.ModelError, match=r"319,600 pairs of shapes .* jg.budget\(pairs="):
        many.compile()
    with pytest.raises(jg.ModelError, match=r"jg.budget\(path="), jg.budget(path=40):
        chain(50).compile()
    near = '<body><joint axis="1 0 0"/><geom size=".1"/>' * 40 + "</body>" * 40
    with pytest.raises(jg.ModelError, match=r"jg.budget\(overlaps="), jg.budget(overlaps=100):
        jg.load(mjcf(near)).compile()
    still = '<replicate count="3000"><geom size=".1"/></replicate>'
    assert jg.load(mjcf(f"{still}<body><joint/><geom size='1'/></body>")).compile().topology.tree["n_pairs"] == 3000


def test_a_world_that_needs_too_much_memory_says_so_before_it_is_taken():
    model = quiet(chain(300, limit=(-1.0, 1.0)).compile)
    with pytest.raises(jg.SimulationError, match=r"jg.budget\(working_bytes="), jg.budget(working_bytes=1e6):
        jg.step(model, model.initial_state(), np.zeros(model.nu))


def test_rules_of_files_mean_what_they_say():
    """A star in the name of a body is a star."""
    bodies = "".join(
        f'<body name="{n}" pos="{i} 0 0"><freejoint/><geom size=".1"/></body>' for i, n in enumerate(("a*", "ab", "c"))
    )
    robot = jg.load(mjcf(bodies, '<contact><exclude body1="a*" body2="c"/></contact>'))
    assert robot.compile().topology.tree["n_pairs"] == 2


# meshes ------------------------------------------------------------------------------------------------------------------


def glb(accessors, nodes=({"mesh": 0},)):
    import json

    text = json.dumps({
        "asset": {"version": "2.0"}, "bufferViews": [], "scenes": [{"nodes": [*range(len(nodes))]}], "scene": 0,
        "nodes": list(nodes), "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}], "accessors": accessors,
    }).encode()  # fmt: skip
    text += b" " * (-len(text) % 4)
    return struct.pack("<III", 0x46546C67, 2, 20 + len(text)) + struct.pack("<I4s", len(text), b"JSON") + text


def test_a_glb_that_asks_for_more_than_it_holds_is_refused(tmp_path):
    pytest.importorskip("trimesh")
    many = {"componentType": 5126, "count": 10**8, "type": "VEC3"}
    less = many | {"count": -(10**8)}
    few = many | {"count": 300}
    for entry, data in (
        ("corners", glb([many])), ("corners", glb([many, less])), ("corners", glb([few, many])),
        ("nodes", glb([few], [{"mesh": 0}] * 3000)), ("nodes", glb([few] * 3000)),
    ):  # fmt: skip
        (tmp_path / "a.glb").write_bytes(data)
        tracemalloc.start()
        with pytest.raises(FileError, match=rf"jg.budget\({entry}="):
            load_mesh(tmp_path / "a.glb")
        assert tracemalloc.get_traced_memory()[1] < 20e6
        tracemalloc.stop()
    for broken in (b"", b"glTF", glb([{}]), glb([few], [{"mesh": 7}])):
        (tmp_path / "a.glb").write_bytes(broken)
        with pytest.raises(FileError, match="not a mesh that can be read"):
            load_mesh(tmp_path / "a.glb")


def test_groups_are_one_mesh(tmp_path):
    trimesh = pytest.importorskip("trimesh")
    box = trimesh.creation.box((1, 2, 3))
    plain_obj = box.export(file_type="obj")
    lines = plain_obj.splitlines()
    faces = [k for k, line in enumerate(lines) if line.startswith("f")]
    for k in reversed(faces):
        lines[k:k] = [f"g group{k}", f"o object{k}", f"usemtl material{k}"]
    (tmp_path / "a.obj").write_text("\n".join(["mtllib none.mtl", *lines]))
    facets = ""
    for corners in box.triangles:
        loop = "".join(f"vertex {x} {y} {z}\n" for x, y, z in corners)
        facets += f"solid s\nfacet normal 0 0 0\nouter loop\n{loop}endloop\nendfacet\nendsolid s\n"
    (tmp_path / "a.stl").write_text(facets)
    for name in ("a.obj", "a.stl"):
        mesh = load_mesh(tmp_path / name)
        assert trimesh.Trimesh(mesh.vertices, mesh.faces).volume == pytest.approx(6.0) and len(mesh.faces) == 12


def test_a_mesh_is_read_once_for_all_that_show_it(tmp_path, monkeypatch):
    trimesh = pytest.importorskip("trimesh")
    trimesh.creation.box((1, 1, 1)).export(tmp_path / "box.stl")
    geoms = '<geom type="mesh" mesh="m"/>' * 5
    (tmp_path / "a.xml").write_text(
        mjcf(f"<body><joint/>{geoms}</body>", '<asset><mesh name="m" file="box.stl"/></asset>')
    )
    read, original = [], type(tmp_path).read_bytes
    monkeypatch.setattr(type(tmp_path), "read_bytes", lambda path: read.append(path) or original(path))

    def times():
        return sum(path.name == "box.stl" for path in read)

    robot = load(tmp_path / "a.xml")
    assert times() == 1
    model = quiet(robot.compile)  # for its hull
    assert times() == 2
    scene_of(model)
    assert times() == 3
    lint(robot)
    assert times() == 4


# references --------------------------------------------------------------------------------------------------------------

URDF = """<robot name="r"><link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>
<visual><geometry><mesh filename="{0}"/></geometry></visual></link></robot>"""


def test_a_mesh_that_was_not_found_is_not_opened_later(tmp_path, monkeypatch):
    """Not by the viewer, not by lint, not by a writer: the folder we happen to be in is no folder of the robot."""
    trimesh = pytest.importorskip("trimesh")
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
    trimesh.creation.box((1, 1, 1)).export(here / "secret.stl")
    monkeypatch.chdir(here)
    inline = mjcf(
        '<body><joint/><inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/><geom type="mesh" mesh="secret.stl"/></body>',
        '<asset><mesh name="secret.stl" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>',
    )
    for name, text in (
        ("a.urdf", URDF.format("secret.stl")),
        ("b.urdf", URDF.format("../here/secret.stl")),
        ("c.xml", inline),
    ):
        (there / name).write_text(text)
        opened: list = []
        monkeypatch.setattr("jointgrad.files.mesh._read", lambda path, opened=opened: opened.append(path))
        robot = quiet(lambda name=name: load(there / name, missing_meshes="skip"))
        scene = scene_of(quiet(robot.compile))
        lint(there / name)
        assert not opened
        if name.endswith("urdf"):
            assert "not found when the file was read" in scene.notes[0]
            assert "secret.stl" in jg.to_urdf(robot)
        with pytest.raises(jg.ModelError):
            jg.to_mjcf(robot)


def test_one_folder_is_one_folder(tmp_path):
    folder, meshes = tmp_path / "robot", tmp_path / "meshes"
    for one in (folder, meshes):
        one.mkdir()
    (meshes / "m.stl").write_bytes(b"")
    (meshes / "part.xml").write_text(mjcf('<body><joint/><geom size=".1"/></body>'))
    (folder / "a.urdf").write_text(URDF.format("m.stl"))
    (folder / "b.xml").write_text('<mujoco><include file="part.xml"/></mujoco>')
    for roots in (str(meshes), meshes, [str(meshes)], (meshes,)):
        assert load(folder / "a.urdf", search_roots=roots).link("a").shapes[0].mesh == str(meshes / "m.stl")
        assert len(load(folder / "b.xml", search_roots=roots).links) == 1
        assert len(load_world(folder / "b.xml", search_roots=roots).placed) == 1
        assert not [f for f in lint(folder / "a.urdf", search_roots=roots) if f.code == "mesh-missing"]
        assert not [f for f in lint(folder / "b.xml", search_roots=roots) if f.code == "not-readable"]
        assert confined("m.stl", roots) == meshes / "m.stl"
    with pytest.raises(FileError, match="search_roots must be a folder"):
        load(folder / "a.urdf", search_roots=3)


# arrays and films ----------------------------------------------------------------------------------------------------------


def packed(path, **arrays):
    """An .npz file that is much smaller than what is in it."""
    with path.open("wb") as file:
        np.savez_compressed(file, **arrays)
    return path


def test_arrays_that_unpack_to_too_much_are_refused(tmp_path):
    path = packed(tmp_path / "a.npz", q=np.zeros((1000, 1000)), qd=np.zeros((1000, 1000)))
    for read in (read_recording, replay.load_run, lambda p: read_npz(p, "a file")):
        tracemalloc.start()
        with pytest.raises(jg.InputError, match=r"jg.budget\(unpacked_bytes="), jg.budget(unpacked_bytes=15e6):
            read(path)
        assert tracemalloc.get_traced_memory()[1] < 1e6
        tracemalloc.stop()
    with pytest.raises(jg.InputError, match=r"jg.budget\(arrays="), jg.budget(arrays=1):
        read_npz(path, "a file")


def test_arrays_are_unpacked_into_their_own_memory(tmp_path):
    rng = np.random.default_rng(0)
    arrays = {
        "a": rng.normal(size=(1000, 1000)), "f": np.asfortranarray(rng.normal(size=(30, 40))), "s": np.array("text"),
        "n": np.array(3), "e": np.zeros((0, 4)), "b": np.array([True, False]), "i": np.arange(5, dtype=np.int32),
    }  # fmt: skip
    path = packed(tmp_path / "a.npz", **arrays)
    tracemalloc.start()
    found = read_npz(path, "a file")
    assert tracemalloc.get_traced_memory()[1] < 14e6  # its own 8 MB, and a few pieces on the way
    tracemalloc.stop()
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype and np.array_equal(found[name], array)


@pytest.mark.parametrize("header", ({"shape": (-1, -1)}, {"shape": (10**9,)}, {"descr": "|O"}, {"descr": "|V8"}))
def test_headers_that_lie_are_refused(tmp_path, header):
    text = io.BytesIO()
    np.lib.format.write_array_header_1_0(text, {"descr": "<f8", "fortran_order": False, "shape": (1,)} | header)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("q.npy", text.getvalue() + bytes(8))
    with pytest.raises(jg.InputError, match="is not a file"):
        read_npz(tmp_path / "a.npz", "a file")


def still_film():
    robot = jg.Description("r")
    robot.add_link("a", 1.0).shapes.append(jg.Shape("sphere", (0.1,)))
    return film_of(quiet(robot.compile))


def test_films_that_last_for_ever_are_refused(tmp_path):
    film = still_film()
    film.time = np.array([1e9])
    for write, name in ((video.gif, "a.gif"), (video.mp4, "a.mp4")):
        with pytest.raises(jg.InputError, match=r"jg.budget\(video_seconds=1.01e\+09\)"):
            write(film, tmp_path / name)
    film.time = np.array([500.0])
    with pytest.raises(jg.InputError, match=r"jg.budget\(unpacked_bytes="):
        video.gif(film, tmp_path / "a.gif", 480, 300)
    assert not list(tmp_path.iterdir())


def test_a_cloud_of_points_is_counted_before_it_is_drawn():
    robot = jg.Description("r")
    robot.add_link("a", 1.0).shapes.append(jg.Shape("points", (0.0,), points=np.zeros((100, 3)), role="visual"))
    model = quiet(robot.compile)
    with pytest.raises(jg.InputError, match=r"jg.budget\(corners="), jg.budget(corners=1000):
        scene_of(model)
    piece = scene_of(model).pieces[0]
    assert len(piece.triangles()[0]) <= piece.n_corners


# pages -------------------------------------------------------------------------------------------------------------------

OWNED = "parent.owned = 1"
HOSTILE = f"""<iframe srcdoc="<script>{OWNED}</script>"></iframe><img src=x onerror="owned=1"> *a* `b` {{1+1}} [c](http://d) &lt;"""


def hostile_model():
    """A note of the scene says which link has a shape that cannot be drawn."""
    robot = jg.Description("r")
    robot.add_link(HOSTILE, 1.0).shapes += [
        jg.Shape("sphere", (0.1,)),
        jg.Shape("mesh", (1.0, 1.0, 1.0), mesh="lost.stl", role="visual"),
    ]
    return quiet(robot.compile)


def test_nothing_in_a_name_is_markup():
    import html

    said = plain(HOSTILE)
    assert not re.search(r"[<>*`{}\[\]()_\"'\\|~]", said) and html.unescape(said) == HOSTILE
    assert plain("a\nb\0c\u2028# d") == "a b c &#35; d"
    assert plain("Gelenk ä 3, 4") == "Gelenk ä 3, 4"


def test_every_text_of_the_viewer_is_made_plain():
    """What viser takes as Markdown goes through one function."""
    from pathlib import Path

    from jointgrad.viewer import browser

    text = Path(browser.__file__).read_text()
    given = re.findall(r"(?:add_markdown\(|\.content = )([^\n]*)", text)
    assert len(given) >= 4 and all(g.startswith(("plain(", '"")')) for g in given)
    assert not re.search(r"add_html|add_modal|add_notification|icon_html", text)


def test_a_name_of_dollars_is_no_formula(tmp_path):
    robot = jg.Description("r")
    robot.add_link("a", 1.0, inertia=(1.0, 1.0, 1.0))
    robot.add_joint(r"$\frac{$", "revolute", None, "a")
    model = quiet(robot.compile)
    plots.phase(jg.rollout(model, model.initial_state(), steps=3), path=tmp_path / "a.png")


@pytest.mark.parametrize(
    "origin, asked, host, answer",
    [
        ("http://localhost:8080", "localhost:8080", "127.0.0.1", True),
        ("http://LOCALHOST:8080", "localhost:8080", "127.0.0.1", True),
        ("http://127.0.0.1:8080", "127.0.0.1:8080", "127.0.0.1", True),
        ("http://[::1]:8080", "[::1]:8080", "::1", True),
        ("http://robot.local:8080", "robot.local:8080", "robot.local", True),
        ("http://localhost:9999", "localhost:8080", "127.0.0.1", False),
        ("http://evil.example", "localhost:8080", "127.0.0.1", False),
        ("http://evil.example:8080", "evil.example:8080", "127.0.0.1", False),  # a name that was made to point here
        ("null", "localhost:8080", "127.0.0.1", False),
        ("file://", "localhost:8080", "127.0.0.1", False),
        ("http://[", "localhost:8080", "127.0.0.1", False),
        ("http://localhost:8080@evil.example", "localhost:8080", "127.0.0.1", False),
    ],
)
def test_whose_page_it_is(origin, asked, host, answer):
    assert is_ours(origin, asked, host) is answer


@in_browser
def test_a_hostile_name_is_only_a_name_in_the_viewer():
    pytest.importorskip("viser")
    viewer = jg.view(hostile_model(), block=False, port=8291)
    try:
        with Browser() as browser:
            browser.open(viewer.address)
            browser.wait_for("document.body.innerText.includes('srcdoc')")
            time.sleep(1.0)  # for what an iframe would run
            assert browser.evaluate("document.querySelectorAll('iframe, img[src=x]').length") == 0
            assert browser.evaluate("String(window.owned)") == "undefined"
    finally:
        viewer.stop()


@in_browser
def test_a_hostile_name_is_only_a_name_in_a_replay(tmp_path):
    film = film_of(hostile_model(), title=HOSTILE)
    path = replay.write_html(film, tmp_path / "a.html")
    with Browser() as browser:
        browser.open(path.as_uri())
        browser.wait_for("document.getElementById('note').textContent.includes('srcdoc')")
        assert browser.evaluate("document.title") == HOSTILE
        assert browser.evaluate("document.querySelectorAll('iframe, img').length") == 0
        assert browser.evaluate("String(window.owned)") == "undefined"


@in_browser
def test_a_page_of_others_cannot_speak_to_the_viewer(tmp_path):
    viser = pytest.importorskip("viser")
    (tmp_path / "index.html").write_text("<p>somebody else's page</p>")

    def handler(*given):
        return http.server.SimpleHTTPRequestHandler(*given, directory=str(tmp_path))

    viewer = jg.view(hostile_model(), block=False, port=8292)
    other = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=other.serve_forever, daemon=True).start()
    port = viewer.server.get_port()
    try:
        with Browser() as browser:
            for page, heard in ((viewer.address, "open"), (f"http://localhost:{other.server_port}", "refused")):
                browser.open(page)
                browser.evaluate(
                    f"window.heard = ''; s = new WebSocket('ws://localhost:{port}', 'viser-v{viser.__version__}');"
                    "s.onopen = () => { window.heard = 'open' }; s.onerror = () => { window.heard = window.heard || 'refused' }"
                )
                browser.wait_for("window.heard !== ''")
                assert browser.evaluate("window.heard") == heard
    finally:
        other.shutdown()
        other.server_close()
        viewer.stop()
