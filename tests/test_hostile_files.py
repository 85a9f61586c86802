"""Files that mean harm, or were harmed: only our own errors, no hang, nothing read outside the folders that were named."""

from __future__ import annotations

import random
import re
import time
import warnings

import numpy as np
import pytest

import jointgrad as jg
from jointgrad.files import load, load_urdf, mesh
from jointgrad.files.xml import FileError, MissingFileError, confined, parse

ROBOT = """<?xml version="1.0"?>
<robot name="victim">
  <!-- a robot with one of everything -->
  <material name="red"><color rgba="1 0 0 1"/></material>
  <link name="base"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
  <link name="arm">
    <inertial><origin xyz="0 0 0.1" rpy="0 0.5 0"/><mass value="2.5"/>
      <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial>
    <visual><origin xyz="0 0 0"/><geometry><box size="1 2 3"/></geometry><material name="red"/></visual>
    <collision><geometry><cylinder radius="0.1" length="1"/></geometry></collision>
    <collision><geometry><mesh filename="package://victim/arm.stl" scale="1 1 1"/></geometry></collision>
  </link>
  <link name="hand"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="arm"/><origin xyz="0 0 1" rpy="0 0 1"/>
    <axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="10" velocity="2"/><dynamics damping="0.1" friction="0"/></joint>
  <joint name="wrist" type="continuous"><parent link="arm"/><child link="hand"/><mimic joint="shoulder" multiplier="2"/></joint>
  <gazebo reference="arm"><mu1>0.5</mu1></gazebo>
</robot>
"""


def refused(text, **options) -> str:
    start = time.perf_counter()
    with pytest.raises(FileError) as caught:
        load(text, **options)
    assert time.perf_counter() - start < 10
    said = str(caught.value)
    assert "\n" not in said and len(said) < 1000
    return said


def test_document_types_and_entities_are_refused(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("hidden")
    laughs = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 12))
    for text in (
        f'<!DOCTYPE robot [<!ENTITY l0 "ha">{laughs}]><robot name="&l11;"><link name="a"/></robot>',
        f'<!DOCTYPE robot [<!ENTITY x SYSTEM "file://{secret}">]><robot><link name="a">&x;</link></robot>',
        '<!DOCTYPE robot SYSTEM "http://example.org/robot.dtd"><robot><link name="a"/></robot>',
        '<!DOCTYPE robot [<!ENTITY % p SYSTEM "http://example.org/x"> %p;]><robot/>',
        "<!DOCTYPE robot><robot/>",
    ):
        said = refused(text)
        assert "<!DOCTYPE>" in said and said.startswith("<text>:1:") and "hidden" not in said
    assert "undefined entity" in refused('<robot><link name="&x;"/></robot>')


@pytest.mark.parametrize(
    "text, said",
    [
        ("<robot>" + "<a>" * 100_000, "jg.budget(depth="),
        ("<robot>" + "<a/>" * 600_000 + "</robot>", "jg.budget(elements="),
        (f'<robot name="{"x" * 5_000_000}"/>', "jg.budget(attribute=5.05e+06)"),
        (f'<robot {"x" * 5000}="1"/>', "longer than"),
        ("<robot>" + " " * 33_000_000 + "</robot>", "jg.budget(file_bytes="),
    ],
    ids=("depth", "count", "attribute", "attribute name", "size"),
)
def test_growth_is_bounded(text, said):
    assert said in refused(text)


def test_time_grows_with_the_file_and_not_faster():
    """Chains, stars and heaps that would take minutes if something looked at all pairs."""
    n = 10_000
    links = "".join(f'<link name="l{i}"/>' for i in range(n))
    chain = "".join(
        f'<joint name="j{i}" type="continuous"><parent link="l{i}"/><child link="l{i + 1}"/><mimic joint="j{i + 1}"/></joint>'
        for i in range(n - 1)
    )
    shapes = "".join(
        f'<{role}><geometry><sphere radius="{i}"/></geometry></{role}>'
        for role in ("visual", "collision")
        for i in range(n)
    )
    gazebo = "<gazebo><mu1/></gazebo>" * n
    for text, said in (
        (f"<robot>{links}{chain}</robot>", f'mimics joint "j{n - 1}", which is not in the file'),
        (f"<robot>{links}{chain}</robot>".replace(f'<mimic joint="j{n - 1}"/>', ""), None),
        (f'<robot><link name="a">{shapes}</link>{gazebo}</robot>', None),
        (
            f'<robot><link name="a"><inertial><mass value="{"1" * 3_000_000}"/></inertial></link></robot>',
            "inf is not a finite",
        ),
        (f'<robot><link name="{"a" * 3_000_000}"/></robot>', None),
    ):
        start = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", jg.UnsupportedWarning)
                load(text)
            assert said is None
        except FileError as error:
            assert said is not None and said in str(error) and len(str(error)) < 500
        assert time.perf_counter() - start < 10


def test_bounds_can_be_narrowed_and_show_the_line():
    with pytest.raises(FileError, match="<text>:3: .* more than the 1 that"), jg.budget(depth=1):
        parse("<a>\n\n<b/></a>")
    assert parse("\n\n<a><b x='1'/></a>").children[0].line == 3


BYTES = [
    b"\xff\xfe\x00", b"\x00" * 100, b"\x80abc", b"<robot name='\xff'/>", b"", b"   ", b"{}", b"<", b"PK\x03\x04",
    b"<?xml version='1.0' encoding='utf-99'?><robot/>", b"<?xml version='1.0' encoding='idna'?><robot/>",
]  # fmt: skip


@pytest.mark.parametrize("data", BYTES)
def test_bytes_that_are_no_text(tmp_path, data):
    path = tmp_path / "robot.urdf"
    path.write_bytes(data)
    assert str(path) in refused(path)


def test_names_that_are_no_files(tmp_path):
    for source in ("a\0b", "x" * 100_000, tmp_path, tmp_path / "none.urdf", "/dev/zero", "<a>\ud800</a>"):
        refused(source)


def test_references_stay_inside_the_folders(tmp_path):
    folder, outside = tmp_path / "robot", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (outside / "secret.stl").write_text("hidden")
    (folder / "own.stl").write_text("own")
    (folder / "link.stl").symlink_to(outside / "secret.stl")
    (folder / "door").symlink_to(outside)
    (folder / "loop").symlink_to(folder / "loop")
    urdf = folder / "robot.urdf"
    bad = [
        "../outside/secret.stl",
        "../../../../../../etc/passwd",
        "/etc/passwd",
        "link.stl",
        "door/secret.stl",
        "loop",
    ]
    bad += [
        f"file://{outside}/secret.stl",
        "file:///etc/passwd",
        "package://../outside/secret.stl",
        "..\\outside\\secret.stl",
    ]
    bad += [
        "package://robot/../outside/secret.stl",
        "http://example.org/a.stl",
        "a\nb",
        "~/x",
        "x" * 10_000,
        "none.stl",
    ]
    for reference in bad:
        urdf.write_text(ROBOT.replace("package://victim/arm.stl", reference))
        said = refused(urdf)
        assert "hidden" not in said and said.startswith(f"{urdf}:11:")
        with pytest.raises(FileError):
            confined(reference, [folder])
        with pytest.warns(jg.UnsupportedWarning, match="1 meshes not found"):
            robot = load(urdf, missing_meshes="skip")
        shape = robot.link("arm").shapes[-1]
        assert shape.mesh == "" and shape.reference == reference.strip().replace("\n", " ")  # a word, not a path
    assert confined("own.stl", [folder]) == (folder / "own.stl").resolve()
    assert confined("../outside/secret.stl", [folder, tmp_path]) == (outside / "secret.stl").resolve()
    with pytest.raises(MissingFileError, match=re.escape(str(folder.resolve()))):
        confined("none.stl", [folder])
    with pytest.raises(FileError, match="leads out of the folders that may be read"):
        confined("../outside/secret.stl", [folder])


# mutations ---------------------------------------------------------------------------------------------------------------

WORDS = [
    "nan", "inf", "-1e999", "", "0", "1e308", "1 2", "a", "world", "base", "arm", "${x}", "\u00e9", "1_0", "-", "0x10", "1,0,0",
    "floating", "planar", "fixed", "mesh", "shoulder", "wrist", "package://", "../..", "true", "9" * 400, "1e-320", "-3",
]  # fmt: skip
NUMBERS = ["0", "-3", "1e-320", "1e308", "2.5e9", "1 2 3", "-0 .5 1.", "nan", "7"]
NUMBER = r'="[-\d. ]+"'
PARTS = [NUMBER] * 4 + [r'"[^"]*"', r"<(\w+)[^<>]*/>", r"\b\w+=", r"<link(?:(?!<link).)*?</link>", r"<joint.*?</joint>"]


def mutated(text: str, rng: random.Random) -> str | bytes:
    """Bytes changed, cut, doubled; or attributes, tags and whole elements changed, moved, lost."""
    if rng.random() < 0.4:
        data = bytearray(text.encode())
        for _ in range(rng.randint(1, 3)):
            at, length = rng.randrange(len(data)), rng.randint(1, 40)
            change = rng.randrange(4)
            if change == 0:
                data[at] = rng.randrange(256)
            elif change == 1:
                del data[at : at + length]
            elif change == 2:
                data[at:at] = data[at : at + length]
            else:
                data[at] = rng.choice(b"<>&\"'/= \x00-0.")
            data = data or bytearray(b"<")
        return bytes(data)
    for _ in range(rng.randint(1, 2)):
        places = list(re.finditer(rng.choice(PARTS), text, re.S))
        if not places:
            continue
        at = rng.choice(places)
        word = rng.choice(WORDS)
        new = {'"': f'"{word}"', "=": f'="{rng.choice(NUMBERS)}"', "<": rng.choice(["", at[0] * 2, "<x/>"])}.get(
            at[0][0], f"{rng.choice(['name', 'xyz', 'x'])}="
        )
        text = text[: at.start()] + new + text[at.end() :]
    return text


def test_mutated_files_fail_in_our_words_only(tmp_path):
    """500 here. What loads must also compile, or be refused in our words."""
    rng = random.Random(20261115)
    path = tmp_path / "robot.urdf"
    outcomes = {"loaded": 0, "compiled": 0, "refused": 0}
    for k in range(500):
        source = mutated(ROBOT, rng)
        path.write_bytes(source if isinstance(source, bytes) else source.encode())
        start = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", jg.UnsupportedWarning)
                warnings.simplefilter("ignore", jg.UnphysicalWarning)
                robot = load_urdf(path, missing_meshes=("skip", "error")[k % 10 == 0])
                outcomes["loaded"] += 1
                robot.compile()
                outcomes["compiled"] += 1
        except jg.ModelError as error:
            outcomes["refused"] += 1
            assert "\n" not in str(error) and len(str(error)) < 2000
        assert time.perf_counter() - start < 2, source
    assert min(outcomes.values()) > 50, outcomes


# meshes ------------------------------------------------------------------------------------------------------------------


def test_meshes_say_what_is_missing(tmp_path):
    for name, said in (("a.stl", "there is no such file"), ("a.exe", "meshes are read from .stl, .obj, .dae, .glb")):
        with pytest.raises(FileError, match=re.escape(said)):
            mesh.load_mesh(tmp_path / name)
    (tmp_path / "a.dae").write_text('<!DOCTYPE x [<!ENTITY y "z">]><COLLADA>&y;</COLLADA>')
    with pytest.raises(FileError, match="DOCTYPE"):
        mesh.load_mesh(tmp_path / "a.dae")


def test_a_box_from_a_file_has_the_mass_of_a_box(tmp_path):
    trimesh = pytest.importorskip("trimesh", reason="meshes are read by trimesh (extra [mesh])")
    pytest.importorskip("scipy", reason="convex hulls need scipy (extra [mesh])")
    box = trimesh.creation.box((0.2, 0.4, 0.6))
    box.apply_translation((1, 2, 3))
    for ending in ("stl", "obj", "glb", "msh"):
        if ending == "msh":  # MuJoCo's own, which trimesh does not write
            counts = np.array((len(box.vertices), 0, 0, len(box.faces)), "<i4")
            parts = (counts, box.vertices.astype("<f4"), box.faces.astype("<i4"))
            (tmp_path / "box.msh").write_bytes(b"".join(part.tobytes() for part in parts))
        else:
            box.export(tmp_path / f"box.{ending}")
        for scale, flip in (((1, 1, 1), 1), ((1, 1, -1), -1)):
            found = mesh.load_mesh(tmp_path / f"box.{ending}", scale)
            assert found.is_closed and np.allclose(found.vertices.min(0)[:2], (0.9, 1.8), atol=1e-6)
            for body in (found, mesh.convex_hull(found)):
                mass, com, inertia = mesh.mass_properties(body, density=500.0)
                assert np.allclose((mass, *com), (24, 1, 2, 3 * flip), rtol=1e-6)
                assert np.allclose(inertia, (2 * 0.52, 0, 0, 2 * 0.4, 0, 2 * 0.2), rtol=1e-5, atol=1e-5)
    box.faces = box.faces[1:]
    box.export(tmp_path / "open.stl")
    with pytest.raises(jg.ModelError, match="is not closed"):
        mesh.mass_properties(mesh.load_mesh(tmp_path / "open.stl"))
    stray = np.array((3, 0, 0, 1, *[0] * 9, 0, 1, 7), "<i4").tobytes()  # a triangle to a corner that is not there
    for junk in (b"", b"solid x\nvertex a b c", b"\x00" * 84, bytes(range(256)), stray):
        for ending in ("stl", "obj", "glb", "msh"):
            (tmp_path / f"junk.{ending}").write_bytes(junk)
            with pytest.raises(jg.ModelError):
                mesh.load_mesh(tmp_path / f"junk.{ending}")
