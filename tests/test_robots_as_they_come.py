"""Meshes, terrains, filters and links without mass, from files and from code: what compiles, and how it rests."""

import struct
import zlib
from pathlib import Path

import mujoco
import numpy as np
import pytest
import trimesh

import jointgrad as jg
from jointgrad.files.hull import Hulls, hull_corners, reduced
from jointgrad.files.lint.repair import repaired
from jointgrad.files.mesh import load_mesh
from jointgrad.files.mjcf.hfield import read_heights
from jointgrad.files.xml import FileError
from jointgrad.model.bodies import hull, mesh_data
from jointgrad.model.solids import matter_of_shapes

CUBE = np.array([(x, y, z) for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])


def body(shape: jg.Shape, mass: float = 1.0) -> jg.Description:
    robot = jg.Description("body", base="free")
    robot.add_link("body", mass, inertia=(0.01, 0.01, 0.01)).shapes.append(shape)
    return robot


# bodies ----------------------------------------------------------------------------------------------------------------


def test_hulls_are_those_of_qhull():
    points = np.random.default_rng(0).normal(size=(40, 3))
    corners, normals = hull(points)
    assert np.array_equal(np.sort(corners), np.sort(trimesh.convex.ConvexHull(points).vertices))
    assert len(normals) == len(trimesh.convex.convex_hull(points).faces)
    assert ((points[corners] @ normals.T).max(0) > 0).all()


def test_corners_inside_faces_and_edges_are_no_corners():
    inside = [(0, 0, 1), (0, 1, 1), (0, 0, 0)]
    assert len(hull(np.concatenate([CUBE, inside]))[0]) == 8
    assert len(hull(CUBE)[1]) == 6


@pytest.mark.parametrize("corners", [CUBE[:3], CUBE * (1, 1, 0), np.full((8, 3), np.nan), np.zeros((8, 2))])
def test_what_bounds_no_body_is_refused(corners):
    with pytest.raises(jg.ModelError, match="corners of a mesh"):
        mesh_data("a mesh", corners)


def test_mass_of_hulls_is_that_of_trimesh():
    points = np.random.default_rng(1).normal(size=(20, 3)) * (0.1, 0.2, 0.3)
    solid = trimesh.convex.convex_hull(points)
    mass, com, inertia = matter_of_shapes([jg.Shape("mesh", (1, 1, 1), pieces=[points])], 500.0)
    np.testing.assert_allclose([mass, *com], [500 * solid.volume, *solid.center_mass])
    I = 500 * solid.moment_inertia
    np.testing.assert_allclose(inertia, I[np.triu_indices(3)], atol=1e-12)


def test_a_ball_is_cut_to_its_budget_and_the_error_is_true():
    ball = trimesh.creation.icosphere(4).vertices
    kept, error = reduced(hull_corners(ball), 48)
    assert len(kept) == 48
    planes = trimesh.convex.ConvexHull(kept).equations
    assert error == pytest.approx((planes[:, :3] @ ball.T + planes[:, 3:]).max())
    assert 0.01 < error < 0.2


@pytest.mark.parametrize("suffix", ["stl", "obj", "ply", "dae"])
def test_hulls_of_files(tmp_path, suffix):
    path = tmp_path / f"cube.{suffix}"
    trimesh.Trimesh(CUBE, trimesh.convex.convex_hull(CUBE).faces, process=False).export(path)
    (corners,) = Hulls().pieces(str(path))
    assert sorted(map(tuple, np.round(corners, 6))) == sorted(map(tuple, CUBE))


def test_a_ply_that_promises_more_than_it_holds_is_refused(tmp_path):
    path = tmp_path / "bomb.ply"
    path.write_bytes(b"ply\nformat binary_little_endian 1.0\nelement vertex 2000000000\nproperty float x\nend_header\n")
    with pytest.raises(FileError, match="more than the file holds"):
        load_mesh(path)


def test_an_angle_iron_is_split_in_convex_pieces(tmp_path, monkeypatch):
    pytest.importorskip("coacd")
    monkeypatch.setenv("JOINTGRAD_CACHE", str(tmp_path / "cache"))
    bars = [trimesh.creation.box((1.0, 0.2, 0.2)), trimesh.creation.box((0.2, 0.2, 1.0))]
    bars[0].apply_translation((0.4, 0.0, 0.0))
    bars[1].apply_translation((0.0, 0.0, 0.4))
    path = tmp_path / "angle.stl"
    trimesh.boolean.union(bars).export(path) if hasattr(trimesh.boolean, "_manifold") else trimesh.util.concatenate(
        bars
    ).export(path)
    pieces = Hulls("decompose").pieces(str(path))
    assert len(pieces) >= 2
    volumes = sum(trimesh.convex.convex_hull(p).volume for p in pieces)
    assert volumes < 0.75 * trimesh.convex.convex_hull(np.concatenate(pieces)).volume
    assert len(list((tmp_path / "cache" / "hulls").glob("*.npz"))) == 1
    again = Hulls("decompose").pieces(str(path))
    assert all(np.array_equal(a, b) for a, b in zip(pieces, again, strict=True))


# terrains --------------------------------------------------------------------------------------------------------------


def png(rows: np.ndarray, bits: int, filters) -> bytes:
    """A grey picture whose lines are filtered as told."""
    step, raw = bits // 8, rows.astype(">u2" if bits == 16 else np.uint8).tobytes()
    width = rows.shape[1] * step
    lines = np.frombuffer(raw, np.uint8).reshape(len(rows), width).astype(int)
    out, above = b"", np.zeros(width, int)
    for line, kind in zip(lines, filters, strict=True):
        left, corner = np.r_[np.zeros(step, int), line[:-step]], np.r_[np.zeros(step, int), above[:-step]]
        p = left + above - corner
        d = np.abs(p - left), np.abs(p - above), np.abs(p - corner)
        paeth = np.where((d[0] <= d[1]) & (d[0] <= d[2]), left, np.where(d[1] <= d[2], above, corner))
        guess = (0, left, above, (left + above) // 2, paeth)[kind]
        out += bytes([kind]) + ((line - guess) % 256).astype(np.uint8).tobytes()
        above = line

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", rows.shape[1], len(rows), bits, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(out)) + chunk(b"IEND", b"")


@pytest.mark.parametrize("bits", [8, 16])
def test_heights_of_pictures(tmp_path, bits):
    rows = np.random.default_rng(bits).integers(0, 2**bits, size=(5, 7))
    path = tmp_path / "field.png"
    path.write_bytes(png(rows, bits, range(5)))
    assert np.array_equal(read_heights(path), rows[::-1])


@pytest.mark.parametrize(
    "raw", [b"", b"\x89PNG\r\n\x1a\n", struct.pack("<ii", 10**6, 10**6), png(np.zeros((2, 2)), 8, (0, 0))[:45]]
)
def test_pictures_that_are_none_are_refused(tmp_path, raw):
    path = tmp_path / "field.png"
    path.write_bytes(raw)
    with pytest.raises(FileError, match="height field"):
        read_heights(path)


def test_height_fields_of_mjcf_stand_as_in_mujoco(tmp_path):
    rows = np.random.default_rng(3).integers(0, 255, size=(6, 8))
    (tmp_path / "f.png").write_bytes(png(rows, 8, [0] * 6))
    inline = " ".join(map(str, rows.ravel()))
    for asset in ('file="f.png"', f'nrow="6" ncol="8" elevation="{inline}"'):
        text = f"""<mujoco><asset><hfield name="h" {asset} size="2 1 0.5 0.1"/></asset>
        <worldbody><geom type="hfield" hfield="h"/></worldbody></mujoco>"""
        (tmp_path / "m.xml").write_text(text)
        m = mujoco.MjModel.from_xml_path(str(tmp_path / "m.xml"))
        robot = jg.load(tmp_path / "m.xml")
        (shape,) = (s for link in robot.links.values() for s in link.shapes)
        np.testing.assert_allclose(shape.heights, m.hfield_data.reshape(6, 8), atol=1e-6)
        assert shape.size == (2.0, 1.0, 0.5, 0.1)


def test_ready_made_terrains():
    for heights in (
        jg.terrain.flat(),
        jg.terrain.slopes(),
        jg.terrain.stairs(),
        jg.terrain.steps(),
        jg.terrain.rough(),
    ):
        assert np.isfinite(heights).all() and heights[heights.shape[0] // 2, heights.shape[1] // 2] == pytest.approx(
            0.0
        )
    assert np.array_equal(jg.terrain.rough(seed=4), jg.terrain.rough(seed=4))
    assert set(np.round(np.diff(jg.terrain.stairs(rise=0.1)[0]), 9)) == {-0.1, 0.0, 0.1}
    with pytest.raises(jg.ModelError, match="spacing"):
        jg.terrain.flat((1.0, 1.0), 2.0)
    with pytest.raises(jg.ModelError, match="spacing of terrain"):
        jg.World().add_terrain(np.zeros((3, 3)), 0.0)
    with pytest.raises(jg.ModelError, match='heights of terrain "hill"'):
        jg.World().add_terrain(np.zeros(3), 0.1, name="hill")


# links without mass, filters ---------------------------------------------------------------------------------------------

URDF = """<robot name="r"><link name="base"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>
</inertial></link><link name="arm"><collision><geometry><box size=".1 .1 .4"/></geometry></collision></link><link name="tool"/>
<joint name="elbow" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/></joint>
<joint name="wrist" type="continuous"><parent link="arm"/><child link="tool"/><axis xyz="0 1 0"/></joint></robot>"""


def test_joints_without_mass():
    robot = jg.load(URDF)
    with pytest.raises(jg.ModelError, match='joint "wrist" moves'):
        robot.compile()
    with pytest.warns(jg.UnphysicalWarning, match='welded .* "elbow", "wrist"'):
        assert robot.compile(massless="weld").nv == 0
    with pytest.warns(jg.UnphysicalWarning) as heard:
        model = robot.compile(massless="estimate")
    np.testing.assert_allclose(model.params["link.mass"], [1.0, 4.0, 0.0])
    assert model.actuator_names == ("elbow",)
    assert any('"wrist"' in str(w.message) for w in heard) and robot.joints["wrist"].kind == "continuous"
    with pytest.raises(jg.ModelError, match="massless"):
        robot.compile(massless="no")


def test_a_joint_is_welded_where_it_starts():
    robot = jg.Description("r")
    robot.add_link("a", 1.0, inertia=(1, 1, 1))
    robot.add_link("b")
    robot.add_joint("j", "revolute", "a", "b", position=(0.1, 0, 0), axis=(0, 0, 2), initial=0.5, anchor=(0.2, 0, 0))
    moving = robot.copy()
    moving.links["b"].mass, moving.links["b"].inertia = 1.0, (1, 0, 0, 1, 0, 1)
    with pytest.warns(jg.UnphysicalWarning):
        welded = robot.compile(massless="weld")
    one, other = (jg.plain.link_positions(m, m.initial_state().q) for m in (welded, moving.compile()))
    np.testing.assert_allclose(one[1], other[1], atol=1e-12)


def test_lint_repairs_links_without_mass(tmp_path):
    path = tmp_path / "r.urdf"
    path.write_text(URDF)
    data, said = repaired(path)
    assert len(said) == 2
    np.testing.assert_allclose(jg.load(data.decode()).compile().params["link.mass"], [1.0, 4.0, 0.0])


def test_a_world_that_does_not_move_compiles():
    model = jg.World().add_ground().add_terrain(jg.terrain.rough(), 0.1, name="hills").compile()
    assert jg.rollout(model, model.initial_state(), steps=2).q.shape == (3, 0)


def test_srdf_keeps_links_apart(tmp_path):
    (tmp_path / "r.urdf").write_text(URDF.replace('<link name="tool"/>', '<link name="tool"><collision><geometry><sphere '
                                                  'radius=".1"/></geometry></collision></link>'))  # fmt: skip
    rule = '<robot name="r"><disable_collisions link1="{}" link2="tool" reason="Never"/></robot>'
    (tmp_path / "r.srdf").write_text(rule.format("base"))
    assert [(c.link1, c.link2) for c in jg.load(tmp_path / "r.urdf").constraints] == [("base", "tool")]
    assert jg.load(tmp_path / "r.urdf", srdf=False).constraints == []
    with pytest.raises(FileError, match='no link "bass"'):
        jg.load(tmp_path / "r.urdf", srdf=rule.format("bass"))


# rest and motion -----------------------------------------------------------------------------------------------------------


def test_a_dodecahedron_comes_to_rest_on_a_face():
    g = (1 + 5**0.5) / 2
    spread = [(0, s / g, t * g) for s in (-1, 1) for t in (-1, 1)]
    corners = np.array([*CUBE, *spread, *((y, z, x) for x, y, z in spread), *((z, x, y) for x, y, z in spread)])
    world = jg.World(dt=2e-3).add_ground(friction=0.8)
    world.add(
        body(jg.Shape("mesh", (0.1,) * 3, pieces=[corners])), position=(0, 0, 0.3), orientation=(1, 0.2, 0.4, 0.1)
    )
    model = world.compile()
    motion = jg.rollout(model, model.initial_state(), steps=2000)
    w, x, y, z = motion.q[-1, 3:7]
    up = np.array([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)])
    normals = hull(corners)[1]
    assert len(normals) == 12 and np.abs(motion.qd[-1]).max() < 1e-3
    assert (normals @ up).max() > 1 - 1e-8
    inradius = 0.1 * (corners @ normals.T).max()
    assert motion.q[-1, 2] == pytest.approx(inradius, abs=1e-5)


@pytest.mark.parametrize(("part", "falls"), [(0.95, False), (1.05, True)])
def test_a_cylinder_tips_over_its_rim_at_the_closed_form_angle(part, falls):
    """Leaning by less than atan(r / h) it stands up again, by more it falls over."""
    radius, half = 0.05, 0.15
    angle = part * np.arctan(radius / half)
    world = jg.World(dt=1e-3).add_ground(friction=1.0)
    height = half * np.cos(angle) + radius * np.sin(angle)
    turn = (np.cos(angle / 2), np.sin(angle / 2), 0.0, 0.0)
    world.add(body(jg.Shape("cylinder", (radius, half))), position=(0, 0, height), orientation=turn)
    model = world.compile()
    motion = jg.rollout(model, model.initial_state(), steps=1200)
    _, x, y, _ = motion.q[-1, 3:7]
    lean = np.arccos(np.clip(1 - 2 * (x * x + y * y), -1, 1))
    assert (lean > 1.2) == falls and (falls or lean < angle)


def test_saved_models_keep_their_corners(tmp_path):
    path = tmp_path / "cube.stl"
    trimesh.Trimesh(0.1 * CUBE, trimesh.convex.convex_hull(CUBE).faces).export(path)
    model = jg.World().add(body(jg.Shape("mesh", (1, 1, -1), mesh=str(path)))).add_ground().compile()
    model.save(tmp_path / "m.npz")
    Path(path).unlink()
    again = jg.load_model(tmp_path / "m.npz")
    assert again.topology.tree["number"] == model.topology.tree["number"] and again.topology.tree["pair_kind"] != []


def test_meshes_that_cannot_be_read_are_told(tmp_path):
    path = tmp_path / "bad.stl"
    path.write_bytes(b"nothing")
    with (
        pytest.warns(jg.UnsupportedWarning, match="cannot be read"),
        pytest.warns(jg.UnsupportedWarning, match="do not touch anything"),
    ):
        jg.World().add(body(jg.Shape("mesh", (1, 1, 1), mesh=str(path)))).add_ground().compile()
