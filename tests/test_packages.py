"""Where meshes of URDF files are found: packages of ROS, and folders above a file, without opening what a stranger asks for."""

import sys

import numpy as np
import pytest

import jointgrad as jg
from jointgrad.files.mesh import load_mesh

STL = b"solid a\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\nendloop\nendfacet\nendsolid a\n"


def urdf(reference: str) -> str:
    return (
        f'<robot name="arm"><link name="a"><collision><geometry><mesh filename="{reference}"/></geometry></collision>'
        '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>'
    )


@pytest.fixture
def home(tmp_path, monkeypatch):
    """workspace/src/arm_description/urdf/robot.urdf, with meshes in its own package and in others."""
    for variable in ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH"):
        monkeypatch.delenv(variable, raising=False)
    src = tmp_path / "workspace" / "src"
    for package in ("arm_description", "hand_description", "loose", "share_me"):
        (src / package / "meshes").mkdir(parents=True)
        (src / package / "meshes" / "a.stl").write_bytes(STL)
    (src / "hand_description" / "package.xml").write_text("<package/>")
    (src / "arm_description" / "urdf").mkdir()
    return src


def mesh_of(home, reference: str, **options) -> str:
    path = home / "arm_description" / "urdf" / "robot.urdf"
    path.write_text(urdf(reference))
    return jg.load(path, **options).links["a"].shapes[0].mesh


@pytest.mark.parametrize("package", ["arm_description", "hand_description"])
def test_above_the_file(home, package):
    assert mesh_of(home, f"package://{package}/meshes/a.stl") == str(home / package / "meshes" / "a.stl")


def test_a_package_without_a_name(home):
    (home / "arm_description" / "urdf" / "b.stl").write_bytes(STL)
    assert mesh_of(home, "package:///b.stl").endswith("urdf/b.stl")


@pytest.mark.parametrize(
    "variable, inside", [("ROS_PACKAGE_PATH", ""), ("ROS_PACKAGE_PATH", "stack"), ("AMENT_PREFIX_PATH", "share")]
)
def test_by_the_environment(home, tmp_path, monkeypatch, variable, inside):
    there = tmp_path / "opt" / "ros"
    (there / inside / "leg_description").mkdir(parents=True)
    (there / inside / "leg_description" / "a.stl").write_bytes(STL)
    monkeypatch.setenv(variable, f"/nowhere:relative:{there}")
    assert mesh_of(home, "package://leg_description/a.stl") == str(there / inside / "leg_description" / "a.stl")


@pytest.mark.parametrize("package", ["loose", "..", ".", "workspace"])
def test_a_folder_that_does_not_say_that_it_is_a_package_stays_closed(home, package):
    with pytest.raises(jg.ModelError, match="not found|none of the search roots|leads out"):
        mesh_of(home, f"package://{package}/meshes/a.stl")


def test_no_way_out_of_a_package(home):
    with pytest.raises(jg.ModelError, match="search_roots"):
        mesh_of(home, "package://arm_description/../loose/meshes/a.stl")


def test_the_error_says_what_was_tried(home):
    with pytest.raises(jg.ModelError) as caught:
        mesh_of(home, "package://arm_description/meshes/missing/of/a/long/name.stl")
    said = str(caught.value)
    for part in (
        '"meshes/missing/of/a/long/name.stl"',
        f'"{home / "arm_description"}"',
        "search_roots=",
        "ROS_PACKAGE_PATH",
    ):
        assert part in said
    assert mesh_of(home, "package://loose/meshes/a.stl", search_roots=home).endswith("loose/meshes/a.stl")


DAE = """<?xml version="1.0"?><COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><unit name="meter" meter="1"/><up_axis>Z_UP</up_axis></asset>
<library_geometries><geometry id="g"><mesh>
<source id="p"><float_array id="pa" count="9">0 0 0 1 0 0 0 2 0</float_array><technique_common>
<accessor source="#pa" count="3" stride="3">
<param name="X" type="float"/><param name="Y" type="float"/><param name="Z" type="float"/></accessor>
</technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
<triangles count="1"><input semantic="VERTEX" source="#v" offset="0"/><p>0 1 2</p></triangles></mesh></geometry>
</library_geometries>
<library_visual_scenes><visual_scene id="s"><node><instance_geometry url="#g"/></node></visual_scene></library_visual_scenes>
<scene><instance_visual_scene url="#s"/></scene></COLLADA>"""


def test_collada(tmp_path):
    pytest.importorskip("collada")
    (tmp_path / "a.dae").write_text(DAE)
    mesh = load_mesh(tmp_path / "a.dae")
    assert len(mesh.faces) == 1 and np.ptp(mesh.vertices, axis=0).tolist() == [1.0, 2.0, 0.0]


def test_a_missing_reader_is_said_once(tmp_path, monkeypatch):
    from jointgrad.viewer.scene import scene_of

    (tmp_path / "a.dae").write_text(DAE)
    monkeypatch.setitem(sys.modules, "collada", None)
    robot = jg.Description("arm", base="free")
    link = robot.add_link("a", 1.0, inertia=(1.0, 1.0, 1.0))
    link.shapes += [jg.Shape("mesh", (1.0, 1.0, 1.0), mesh=str(tmp_path / "a.dae"), role="visual")] * 200
    notes = scene_of(robot.compile(contact=None)).notes
    assert len(notes) == 1 and "200 meshes" in notes[0] and "jointgrad[mesh]" in notes[0]
