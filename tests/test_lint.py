"""The linter: every finding in a tiny file, at its place, and not in the repaired twin; the bad files of the seeds; repairs."""

from __future__ import annotations

import json
import os
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import jointgrad as jg
from jointgrad import cli
from jointgrad.files import load_urdf
from jointgrad.files.lint import Finding, exit_code, fix, lint, report
from jointgrad.files.lint.solids import solid_of
from jointgrad.model.description import Link, Shape

MODELS = Path(__file__).resolve().parents[2] / "shared" / "models"
SEEDS = MODELS / "urdf" / "github"

# a box 0.2 x 0.1 x 0.4 m of 2 kg
BOX = '<box size="0.2 0.1 0.4"/>'
SOLID = 'ixx="0.02833" ixy="0" ixz="0" iyy="0.03333" iyz="0" izz="0.00833"'
LIMIT = '<limit lower="-1" upper="1" effort="10" velocity="5"/>'


def link(name: str, *, mass=2.0, inertia=SOLID, shape=BOX, extra="", com="0 0 0") -> str:
    inertial = f'<inertial><origin xyz="{com}"/><mass value="{mass}"/><inertia {inertia}/></inertial>' if mass else ""
    form = f"<collision><geometry>{shape}</geometry></collision>" if shape else ""
    return f'<link name="{name}">{inertial}{form}{extra}</link>'


def joint(name: str, parent: str, child: str, *, kind="revolute", inside=LIMIT, xyz="0 0 1", rpy="0 0 0") -> str:
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return (
        f'<joint name="{name}" type="{kind}"><origin xyz="{xyz}" rpy="{rpy}"/>{ends}<axis xyz="0 1 0"/>{inside}</joint>'
    )


def urdf(*parts: str) -> str:
    """One part per line, from line 2 on."""
    return "\n".join(['<robot name="r">', *parts, "</robot>"])


def arm(**changes) -> str:
    """A base (line 2), an arm (line 3) and the joint between them (line 4)."""
    of_joint = {k: changes.pop(k) for k in ("kind", "xyz", "rpy", "inside") if k in changes}
    return urdf(link("base"), link("arm", **changes), joint("elbow", "base", "arm", **of_joint))


def mjcf(body: str, before: str = "") -> str:
    return f'<mujoco model="m">\n{before}<worldbody>\n<body name="b">\n{body}\n</body>\n</worldbody>\n</mujoco>'


def hinge(**attributes) -> str:
    words = " ".join(f'{k}="{v}"' for k, v in attributes.items())
    return f'<joint name="j" {words}/>\n<geom size="0.1" mass="1"/>'


def limits(lower, upper, effort='effort="10"') -> str:
    return f'<limit lower="{lower}" upper="{upper}" {effort} velocity="5"/>'


def chain(leader: str) -> str:
    """Three fingers of which the last follows the one that is named."""
    parts = [link("base"), *(link(f"f{k}") for k in range(3))]
    follow = [
        "",
        '<mimic joint="j0" multiplier="2" offset="0.1"/>',
        f'<mimic joint="{leader}" multiplier="3" offset="0.2"/>',
    ]
    places = [f"{k} 0 1" for k in range(3)]
    return urdf(*parts, *(joint(f"j{k}", "base", f"f{k}", inside=LIMIT + follow[k], xyz=places[k]) for k in range(3)))


MODERATE = 'ixx="{0}" ixy="0" ixz="0" iyy="{1}" iyz="0" izz="{2}"'
ZERO = MODERATE.format(0, 0, 0)
# code, severity, place, bad file, good file
CASES = {
    "triangle": ("inertia-unphysical", "error", ':3 link "arm"', arm(inertia=MODERATE.format(1, 1, 3)), arm()),
    "negative moment": ("inertia-unphysical", "error", ':3 link "arm"', arm(inertia=MODERATE.format(-1, 1, 1)), arm()),
    "negative mass": ("not-simulable", "error", ':3 link "arm"', arm(mass=-1), arm()),
    "no inertia": ("inertia-zero", "warning", ':3 link "arm"', arm(inertia=ZERO, com="0 0 0.2"), arm(com="0 0 0.2")),
    "no inertia about the axis": ("inertia-zero", "error", ':3 link "arm"', arm(inertia=ZERO), arm()),
    "far off": ("inertia-shape", "warning", ':3 link "arm"', arm(inertia=MODERATE.format(0.9, 0.9, 0.9)), arm()),
    "swapped": ("inertia-swapped", "warning", ':3 link "arm"', arm(inertia=MODERATE.format(0.00833, 0.0333, 0.0283)), arm()),
    "units by shape": ("units-inertia", "warning", ':3 link "arm"', arm(inertia=MODERATE.format(28.33e3, 33.33e3, 8.33e3)), arm()),
    "units by mass": (
        "units-inertia", "warning", ':3 link "arm"', arm(shape="", inertia=MODERATE.format(900, 900, 900)), arm(shape=""),
    ),
    "massless leaf": ("massless", "error", ':3 link "arm"', arm(mass=0), arm()),
    "massless between": (
        "massless", "warning", ':3 link "m"',
        urdf(link("base"), link("m", mass=0, shape=""), link("tip"), joint("a", "base", "m"), joint("b", "m", "tip")),
        urdf(link("base"), link("m"), link("tip"), joint("a", "base", "m"), joint("b", "m", "tip")),
    ),
    "large shape": ("units-millimetres", "warning", ':3 link "arm"', arm(shape='<box size="200 100 400"/>'), arm()),
    "large offset": ("units-millimetres", "warning", ':3 link "arm"', arm(xyz="0 0 250"), arm(xyz="0 0 0.25")),
    "degrees": ("units-degrees", "warning", ':4 joint "elbow"', arm(inside=limits(-90, 90)), arm(inside=limits(-1.57, 1.57))),
    "degrees of a pose": ("units-degrees", "warning", ":4 origin", arm(rpy="0 90 0"), arm(rpy="0 1.5708 0")),
    "radians": (
        "units-radians", "warning", "<text>", mjcf(hinge(range="-1.57 2") + '<joint name="k" axis="1 0 0" range="-1 1"/>'),
        mjcf(hinge(range="-1.57 2") + '<joint name="k" axis="1 0 0" range="-1 1"/>', '<compiler angle="radian"/>'),
    ),
    "two links of a name": ("duplicate-name", "error", ':3 link "base"', urdf(link("base"), link("base")), urdf(link("base"))),
    "two joints of a name": (
        "duplicate-name", "error", ':6 joint "j"',
        urdf(link("a"), link("b"), link("c"), joint("j", "a", "b"), joint("j", "b", "c")),
        urdf(link("a"), link("b"), link("c"), joint("j", "a", "b"), joint("k", "b", "c")),
    ),
    "two bodies of a name": ("duplicate-name", "error", ':4 body "b"', mjcf('<body name="b"/>'), mjcf(hinge())),
    "no name": ("missing-name", "error", ":3 link", urdf(link("a"), "<link/>"), urdf(link("a"))),
    "robot without a name": ("missing-name", "note", ":1 robot", f"<robot>{link('a')}</robot>", urdf(link("a"))),
    "joint without a name": ("missing-name", "note", "<text>", mjcf('<joint/><geom size="0.1"/>'), mjcf(hinge())),
    "unknown link": (
        "unknown-link", "error", ':3 joint "j"', urdf(link("a"), joint("j", "a", "z")),
        urdf(link("a"), joint("j", "a", "z"), link("z")),
    ),
    "cycle": (
        "cycle", "error", ':3 link "b"',
        urdf(link("a"), link("b"), link("c"), joint("j", "c", "b"), joint("k", "b", "c")),
        urdf(link("a"), link("b"), link("c"), joint("j", "a", "b"), joint("k", "b", "c")),
    ),
    "two parents": (
        "two-parents", "error", ':6 joint "k"',
        urdf(link("a"), link("b"), link("c"), joint("j", "a", "c"), joint("k", "b", "c"), joint("l", "a", "b")),
        urdf(link("a"), link("b"), link("c"), joint("j", "a", "c"), joint("l", "a", "b", xyz="1 0 0")),
    ),
    "two roots": (
        "several-roots", "error", ':4 link "c"',
        urdf(link("a"), link("b"), link("c"), link("d"), joint("j", "a", "b"), joint("k", "c", "d")),
        urdf(link("a"), link("b"), link("c"), link("d"), joint("j", "a", "b"), joint("k", "c", "d"), joint("l", "b", "c")),
    ),
    "unused link": ("unused-link", "error", ':5 link "z"', arm().replace("</robot>", link("z") + "\n</robot>"), arm()),
    "unused material": (
        "unused-material", "note", ':2 material "red"', urdf('<material name="red"/>', link("a")), urdf(link("a")),
    ),
    "unused asset": (
        "unused-material", "note", ":2 asset", mjcf(hinge(), '<asset><material name="red"/></asset>'), mjcf(hinge()),
    ),
    "zero excluded": ("limit-zero", "note", ':4 joint "elbow"', arm(inside=limits(0.2, 1)), arm(inside=limits(0, 1))),
    "lower above upper": ("limit-order", "error", ':4 joint "elbow"', arm(inside=limits(1, -1)), arm(inside=limits(-1, 1))),
    "no range": ("limit-empty", "warning", ':4 joint "elbow"', arm(inside=limits(0, 0)), arm()),
    "no limit": ("limit-missing", "warning", ':4 joint "elbow"', arm(inside=""), arm(inside="", kind="continuous")),
    "no effort": ("effort-missing", "note", ':4 joint "elbow"', arm(inside=limits(-1, 1, "")), arm()),
    "overlap": (
        "overlap", "warning", ':2 link "a"',
        urdf(link("a"), link("b"), link("c"), joint("j", "a", "b"), joint("k", "b", "c", xyz="0 0 -0.7")),
        urdf(link("a"), link("b"), link("c"), joint("j", "a", "b"), joint("k", "b", "c", xyz="0 0 0.7")),
    ),
    "mimic chain": ("mimic-chain", "warning", ':8 joint "j2"', chain("j1"), chain("j0")),
    "armature of a link": ("armature", "warning", ':3 link "arm"', arm(extra='<armature value="1"/>'), arm()),
    "armature of a joint": ("armature", "note", ':4 joint "j"', mjcf(hinge(armature=1)), mjcf(hinge(armature=0.01))),
    "negative damping": ("negative-damping", "error", ':4 joint "elbow"', arm(inside=LIMIT + '<dynamics damping="-1"/>'), arm()),
    "inertial without inertia": (
        "inertial-incomplete", "warning", ':2 link "a"', urdf('<link name="a"><inertial><mass value="1"/></inertial></link>'),
        urdf(link("a")),
    ),
    "unknown tag": ("unknown-tag", "warning", ":3 <colision> in <link>", arm(extra="<colision/>"), arm()),
    "tag of others": ("unread-tag", "note", ":2 <transmission> in <robot>", urdf("<transmission/>", link("a")), urdf(link("a"))),
    "mesh": ("mesh-missing", "note", "<text>", arm(shape='<mesh filename="no.stl"/>'), arm()),
    "not XML": ("not-readable", "error", "<text>:1", "<robot><link></robot>", urdf(link("a"))),
    "not a robot": ("not-readable", "error", "<text>:1", "<html/>", urdf(link("a"))),
    "bad number": ("not-readable", "error", "<text>:4", arm(inside=limits("x", 1)), arm()),
    "bad MJCF": ("not-readable", "error", "<text>:5", mjcf('<joint name="j" type="ball"/>\n<geom size="big"/>'), mjcf(hinge())),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_finding_and_its_repaired_twin(case):
    code, severity, place, bad, good = CASES[case]
    found = [f for f in lint(bad) if f.code == code]
    assert found, lint(bad)
    assert found[0].severity == severity and found[0].place.endswith(place), found
    assert found[0].message and found[0].remedy
    assert not [f for f in lint(good) if f.code == code]


def test_only_what_is_wrong_is_found():
    """A bad file of this list has one fault, so that the other findings are silent about it."""
    several = {"negative mass", "large shape", "large offset", "no limit", "unknown link", "two parents", "robot without a name",
               "radians", "massless leaf", "unused asset", "mesh"}  # fmt: skip
    for case, (code, _, _, bad, _) in CASES.items():
        if case not in several:
            assert {f.code for f in lint(bad)} <= {code, "inertia-zero", "missing-name"}, case


def test_a_clean_file_gives_nothing():
    assert lint(arm()) == [] and lint(mjcf(hinge(armature=0.001, damping=0.1))) == [] and lint(chain("j0")) == []
    assert report("arm.urdf", []) == "arm.urdf: nothing suspicious"


def test_findings_come_in_the_order_of_the_file():
    lines = [int(re.search(r":(\d+)", f.place)[1]) for f in lint(arm(inertia=ZERO, inside=limits(1, -1), extra="<x/>"))]
    assert len(lines) >= 3 and lines == sorted(lines)


@pytest.mark.parametrize("shape, kind", [
    ('<sphere radius="0.3"/>', "sphere"), ('<cylinder radius="0.3" length="0.4"/>', "cylinder"),
    ('<capsule radius="0.1" length="0.4"/>', "capsule"), (BOX, "box"),
])  # fmt: skip
def test_inertia_of_a_shape_is_that_of_random_points_in_it(shape, kind):
    robot = load_urdf(urdf(f'<link name="a"><visual><geometry>{shape}</geometry></visual></link>'))
    solid = solid_of(robot.link("a"))
    p = np.random.default_rng(0).uniform(-0.31, 0.31, (1_500_000, 3))
    if kind == "sphere":
        inside = np.linalg.norm(p, axis=1) < 0.3
    elif kind == "cylinder":
        inside = (np.hypot(p[:, 0], p[:, 1]) < 0.3) & (abs(p[:, 2]) < 0.2)
    elif kind == "capsule":
        nearest = np.clip(p[:, 2], -0.2, 0.2)
        inside = np.linalg.norm(p - nearest[:, None] * [0, 0, 1], axis=1) < 0.1
    else:
        inside = (abs(p) < [0.1, 0.05, 0.2]).all(1)
    p = p[inside]
    cloud = (p**2).sum() / len(p) * np.eye(3) - p.T @ p / len(p)
    np.testing.assert_allclose(solid.inertia, cloud, atol=0.02 * cloud.max())


@pytest.fixture
def meshes(tmp_path):
    """A folder with the box of this file's links as a closed mesh, in millimetres and turned, and with one side open."""
    trimesh = pytest.importorskip("trimesh", reason="meshes are read by trimesh (extra [mesh])")
    pytest.importorskip("scipy", reason="convex hulls need scipy (extra [mesh])")
    box = trimesh.creation.box((200, 100, 400))
    box.export(tmp_path / "closed.stl")
    box.faces = box.faces[1:]
    box.export(tmp_path / "open.stl")
    return tmp_path


@pytest.mark.parametrize(("name", "severity"), [("closed", "warning"), ("open", "note")])
def test_inertia_is_compared_with_that_of_a_mesh(meshes, name, severity):
    """A closed mesh bounds what it bounds; of an open one only the hull is known."""
    shape, path = f'<mesh filename="{name}.stl" scale="0.001 0.001 0.001"/>', meshes / "robot.urdf"
    path.write_text(arm(shape=shape))
    assert [f for f in lint(path) if "inertia" in f.code] == []
    path.write_text(arm(shape=shape, inertia=MODERATE.format(0.9, 0.9, 0.9)))
    found = [f for f in lint(path) if f.code == "inertia-shape"]
    assert [(f.severity, 'link "arm"' in str(f)) for f in found] == [(severity, True)]


def test_mesh_solid_is_that_of_the_box(meshes):
    """Placed and turned, with a primitive beside it: as two boxes."""
    place = dict(position=(0.1, 0.2, 0.3), orientation=(0.8, 0.0, 0.6, 0.0))
    other = Shape("box", (0.1, 0.1, 0.1), (0.0, 0.0, 0.5))
    ours = solid_of(Link("a", shapes=[Shape("mesh", (1e-3,) * 3, mesh=str(meshes / "closed.stl"), **place), other]))
    theirs = solid_of(Link("a", shapes=[Shape("box", (0.1, 0.05, 0.2), **place), other]))
    np.testing.assert_allclose(ours.inertia, theirs.inertia, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("a, b, gap", [
    ('<sphere radius="0.2"/>', '<sphere radius="0.3"/>', 0.5),
    ('<sphere radius="0.2"/>', '<box size="1 1 0.6"/>', 0.5),
    ('<box size="1 1 0.4"/>', '<capsule radius="0.1" length="0.4"/>', 0.5),
    ('<capsule radius="0.2" length="0.4"/>', '<capsule radius="0.1" length="0.4"/>', 0.7),
    ('<box size="1 1 0.4"/>', '<box size="0.2 0.2 0.6"/>', 0.5),
    ('<cylinder radius="0.1" length="0.4"/>', '<sphere radius="0.3"/>', 0.5),
])  # fmt: skip
@pytest.mark.parametrize("order", [1, -1])
def test_overlap_begins_where_shapes_meet(a, b, gap, order):
    """Two shapes above each other, with a shape between their links in the tree that is far away."""
    first, second = (a, b)[::order]

    def robot(z):
        parts = [link("a", shape=first), link("m"), link("b", shape=second)]
        return urdf(*parts, joint("j", "a", "m", xyz="5 0 0"), joint("k", "m", "b", xyz=f"-5 0 {z}"))

    assert [f.code for f in lint(robot(gap - 0.05)) if f.code == "overlap"]
    assert not [f for f in lint(robot(gap + 0.01)) if f.code == "overlap"]


def test_links_welded_or_next_to_each_other_may_overlap():
    parts = [link("a"), link("b", mass=0, shape=""), link("c"), joint("k", "b", "c", xyz="0 0 0.1")]
    for kind in ("fixed", "continuous"):  # in between is nothing that could touch
        found = lint(urdf(*parts, joint("j", "a", "b", kind=kind, xyz="0 0 0", inside="")))
        assert "overlap" not in {f.code for f in found}


# the bad files of the seeds ------------------------------------------------------------------------------------------------


def seed(path: str) -> Path:
    if not (SEEDS / path).exists():
        pytest.skip(f"there is no {path} in {SEEDS}")
    return SEEDS / path


def test_seed_ant_puts_armature_into_links():
    found = [f for f in lint(seed("YilingQiao+diffarticulated/data/ant_torso1.urdf")) if f.code == "armature"]
    assert len(found) == 12 and all('link "' in f.place and f.severity == "warning" for f in found)
    assert found[0].place.endswith(':27 link "front_left_leg"')


def test_seed_swimmer_has_swapped_inertias():
    swimmer = seed("google-research+tiny-differentiable-simulator/data/swimmer/swimmer05/swimmer05.urdf")
    found = [f for f in lint(swimmer) if f.code == "inertia-swapped"]
    assert [re.search('"(.*)"', f.place)[1] for f in found] == [f"link0{k}" for k in range(5)]


def test_seed_laikago_has_no_inertia():
    path = seed("YilingQiao+diffarticulated/data/laikago/laikago_toes_zup.urdf")
    assert len([f for f in lint(path) if f.code == "inertia-zero"]) == 13


# from the table of that file: name, mass, centre of mass, and what it hangs on
LAIKAGO = [("hip", 1.095, "0.02 0 0"), ("upper", 1.527, "0 -0.04 -0.04"), ("lower", 0.241, "0 -0.16 -0.02")]


def laikago() -> str:
    parts, above = [link("chassis", mass=13.715, inertia=ZERO, shape="")], "chassis"
    for k, (name, mass, com) in enumerate(LAIKAGO):
        parts.append(link(name, mass=mass, inertia=ZERO, com=com, shape=""))
        parts.append(joint(f"j{k}", above, name, kind="continuous", inside=""))
        above = name
    toe = link("toe", mass=0.1, inertia=MODERATE.format(2.5e-5, 2.5e-5, 2.5e-5), shape='<sphere radius="0.03"/>')
    return urdf(*parts, toe, joint("foot", above, "toe", kind="fixed", inside="", xyz="0 -0.25 -0.022"))


def test_the_figures_of_the_seed_laikago_have_no_inertia():
    found = [f for f in lint(laikago()) if f.code == "inertia-zero"]
    assert [re.search('"(.*)"', f.place)[1] for f in found] == ["chassis", "hip", "upper", "lower"]
    assert "13.7" in found[0].message and all(f.severity == "warning" for f in found)


# repairs -------------------------------------------------------------------------------------------------------------------


def fixed(tmp_path: Path, text: str) -> tuple[Path, list[str]]:
    path, out = tmp_path / "in.urdf", tmp_path / "out.urdf"
    path.write_text(text)
    said = fix(path, out)
    assert path.read_text() == text
    return out, said


@pytest.mark.parametrize("case", ["no inertia", "no inertia about the axis", "lower above upper", "mimic chain"])
def test_repaired_file_is_clean(tmp_path, case):
    code, _, place, bad, _ = CASES[case]
    out, said = fixed(tmp_path, bad)
    assert len(said) == 1 and place.split(" ", 1)[1] in said[0]
    assert lint(out) == []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jg.UnsupportedWarning)
        load_urdf(out).compile()


def test_repaired_laikago_keeps_its_masses(tmp_path):
    out, said = fixed(tmp_path, laikago())
    assert len(said) == 4 and lint(out) == []
    robot, before = load_urdf(out), load_urdf(laikago())
    assert {n: k.mass for n, k in robot.links.items()} == {n: k.mass for n, k in before.links.items()}
    radius = (3 * 13.715 / (4 * np.pi * 1000)) ** (1 / 3)
    assert robot.link("chassis").inertia[0] == pytest.approx(0.4 * 13.715 * radius**2)


def test_repair_takes_the_shape_and_minds_the_turned_frame(tmp_path):
    form = f'<origin rpy="0.3 0.2 0.1"/><geometry>{BOX}</geometry>'
    inertial = '<inertial><origin xyz="0 0 0.1" rpy="0.5 -0.4 0.7"/><mass value="2"/><!-- kept --></inertial>'
    arm_link = f'<link name="arm">{inertial}<collision>{form}</collision></link>'
    out, _ = fixed(tmp_path, "\n\n" + urdf(link("base"), arm_link, joint("elbow", "base", "arm")))
    assert "<!-- kept --><inertia ixx=" in out.read_text() and lint(out) == []
    repaired = load_urdf(out).link("arm")
    xx, xy, xz, yy, yz, zz = repaired.inertia
    wanted = 2 * solid_of(repaired).inertia
    np.testing.assert_allclose([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], wanted, rtol=1e-12, atol=1e-15)


def test_repair_changes_nothing_else(tmp_path):
    text = (
        arm(inside="<limit\tupper='-1'  lower = '1' effort='10'\n velocity='5' ><!-- > --></limit>") + "<!-- end -->\n"
    )
    out, _ = fixed(tmp_path, text)
    assert out.read_text() == text.replace("upper='-1'", 'upper="1.0"').replace("lower = '1'", 'lower="-1.0"')


def test_mimic_chain_is_repaired_to_the_same_motion(tmp_path):
    robot = load_urdf(fixed(tmp_path, chain("j1"))[0])
    assert robot.joint("j2").mimic == ("j0", 6.0, pytest.approx(0.5))


def test_swapped_axes_are_not_changed(tmp_path):
    text = CASES["swapped"][3]
    out, said = fixed(tmp_path, text)
    assert said == [] and out.read_text() == text


def test_input_is_overwritten_only_under_its_own_name(tmp_path):
    path, other = tmp_path / "in.urdf", tmp_path / "other.urdf"
    path.write_text(CASES["lower above upper"][3])
    os.link(path, other)
    with pytest.raises(jg.ModelError, match="under another name"):
        fix(path, other)
    assert fix(path, path) and lint(path) == []


# the command -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "case, code", [("no effort", 0), ("swapped", 1), ("cycle", 2), ("not XML", 2), ("bad MJCF", 2)]
)
def test_exit_codes(tmp_path, capsys, case, code):
    path = tmp_path / "robot.urdf"
    path.write_text(CASES[case][3])
    assert cli.main(["lint", str(path)]) == code == exit_code(lint(path))
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith(f"{path}") and said[1].startswith("    -> ")
    assert re.fullmatch(rf"{re.escape(str(path))}: 1 (error|warning|note)", said[-1])


def test_clean_and_missing_files(tmp_path, capsys):
    path = tmp_path / "robot.urdf"
    path.write_text(arm())
    assert cli.main(["lint", str(path)]) == 0
    assert capsys.readouterr().out == f"{path}: nothing suspicious\n"
    assert cli.main(["lint", str(tmp_path / "none.urdf")]) == 2
    assert "there is no such file" in capsys.readouterr().out


def test_json(tmp_path, capsys):
    path, out = tmp_path / "robot.urdf", tmp_path / "out.urdf"
    path.write_text(CASES["lower above upper"][3])
    assert cli.main(["lint", str(path), "--json"]) == 2
    said = json.loads(capsys.readouterr().out)
    assert [Finding(**f) for f in said["findings"]] == lint(path)
    assert said["counts"] == {"error": 1, "warning": 0, "note": 0} and "repairs" not in said
    assert cli.main(["lint", str(path), "--json", "--fix", str(out)]) == 0
    said = json.loads(capsys.readouterr().out)
    assert len(said["repairs"]) == 1 and said["left"] == [] and lint(out) == []


def test_fix_says_what_it_did(tmp_path, capsys):
    path, out = tmp_path / "robot.urdf", tmp_path / "out.urdf"
    path.write_text(CASES["lower above upper"][3])
    assert cli.main(["lint", str(path), "--fix", str(out)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[-2].startswith("repaired: ") and "exchanged" in said[-2]
    assert said[-1] == f"wrote {out}: nothing suspicious"


def test_fix_is_only_for_urdf(tmp_path, capsys):
    path, out = tmp_path / "robot.xml", tmp_path / "out.xml"
    path.write_text(mjcf(hinge()))
    assert cli.main(["lint", str(path), "--fix", str(out)]) == 2
    assert "only URDF" in capsys.readouterr().err and not out.exists()


def test_help_tells_the_exit_codes(capsys):
    with pytest.raises(SystemExit):
        cli.main(["lint", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "exit code" in said and "--json" in said and "--fix" in said


def test_descriptions():
    robot = load_urdf(arm())
    assert lint(robot) == []
    robot.link("arm").inertia = (0.0,) * 6
    (found,) = lint(robot)
    assert (found.code, found.place) == ("inertia-zero", 'r link "arm"')


def test_places_in_included_files(tmp_path):
    (tmp_path / "part.xml").write_text('<mujoco>\n<worldbody>\n<geom size="big"/>\n</worldbody>\n</mujoco>')
    (tmp_path / "robot.xml").write_text('<mujoco>\n<include file="part.xml"/>\n</mujoco>')
    assert [f.place for f in lint(tmp_path / "robot.xml")] == [f"{tmp_path / 'part.xml'}:3"]


def test_open_files_and_nonsense():
    import io

    assert lint(io.StringIO(arm())) == []
    for nonsense in (
        "<",
        "<robot/>",
        "<mujoco/>",
        "<robot name='r'><link name='a'><inertial><mass/></inertial></link></robot>",
    ):
        assert all(isinstance(f, Finding) and f.code != "internal" for f in lint(nonsense))
    assert lint(io.BytesIO(arm().encode())) == []
    for unreadable in (io.StringIO(""), io.BytesIO(b"\xff\xfe\xff"), "no such file.urdf", 17):
        assert [f.code for f in lint(unreadable)] == ["not-readable"]


def test_every_kind_of_shape_touches():
    """A note is for kinds that the engine leaves out of contact, and there are none left."""
    robot = jg.Description("r")
    for name, kind, count in (("foot", "cylinder", 2), ("head", "ellipsoid", 3), ("toe", "sphere", 1)):
        robot.add_link(name, 1.0, inertia=(0.1, 0.1, 0.1)).shapes.append(jg.Shape(kind, (0.1,) * count))
    assert [f for f in lint(robot) if f.code == "no-contact"] == []
